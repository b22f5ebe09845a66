"""Regions of a space of mappings, told by ranges of the extents of their chains (see `ragged`)."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

import numpy as np

from tilewright.cost.reference.proof_space import Indices, Values
from tilewright.cost.reference.ragged_space import Case

FIRST = 16.0
"""How sharply the largest of several is told from others at first."""
MOST_SPLIT = 500
"""Ranges of extents at a node."""
Key = tuple[str, int, int, int]
"""What a region is parted by: "lanes" or "extent" of a group, at a node and place in the group; or a "side"."""


class PartOf(NamedTuple):
    """How a region came to be a part of another: by what key, which of its parts it is, and how much differed there."""

    key: Key
    part: int
    spread: float


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a space: for each group of dimensions ranges of extents that are left at each node."""

    case: Case
    ranges: list[list[Indices]]
    """``[g][v]`` of ``(n, k, 2)``: lowest and highest extents."""
    sides: dict[tuple[int, int], tuple[int, bool]]
    """By memory and side of the array inside it how many lanes there may be, and whether there are exactly as many."""
    lanes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By dimension and memory how few and how many lanes there are inside, where that is told."""
    point: Values | None = None
    sharp: float = FIRST
    """Where to begin to look for a bound, and how sharply: what it is a part of has its bound there."""
    part_of: PartOf | None = None
    least: float = -inf
    """What no mapping scores below (a logarithm) of what it is a part of."""
    few: bool = False
    """Whether few chains are left, which are tried together as soon as it is said what runs innermost."""

    @property
    def single(self) -> bool:
        """Whether every range has one extent."""
        return all((own[..., 0] == own[..., 1]).all() for row in self.ranges for own in row)


def finer(region: Region) -> Region | None:
    """Return a region with its ranges of extents in halves; None where none can be."""
    ranges, found = [], False
    for row in region.ranges:
        own = []
        for every in row:
            made = every
            for k in range(every.shape[1]):
                wide = made[:, k, 0] < made[:, k, 1]
                if not wide.any() or len(made) + wide.sum() > MOST_SPLIT:
                    continue
                lower, upper, found = made[wide].copy(), made[wide].copy(), True
                lower[:, k, 1] = made[wide, k].sum(axis=1) // 2
                upper[:, k, 0] = lower[:, k, 1] + 1
                made = np.concatenate([made[~wide], lower, upper])
            own.append(made)
        ranges.append(own)
    return replace(region, ranges=ranges) if found else None

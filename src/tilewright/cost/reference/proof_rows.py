"""What the checker of `proofs` lists: loops outside a tile, words that cross a boundary, rows of one half of a nest."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.cost.reference.proof_space import Indices, ProofSpace


@dataclass(frozen=True)
class Loops:
    """Which loops stand outside a tile, as far as they decide how often it is brought in: of each tensor, arrays.

    ``still`` is how often the loops run that leave the tensor in place, ``steps`` has for every group along which the
    tensor slides whether the innermost loop that moves it may run along it, its step, and how often it runs.
    """

    still: list[Any]
    steps: list[dict[int, tuple[Any, ...]]]

    @classmethod
    def none(cls, space: ProofSpace) -> "Loops":
        """Return that there are none."""
        return cls([1.0] * len(space.uses), [
            {g: (np.False_, 1, 1) for slide in slides for g in (slide.first, slide.second)} for slides in space.slides])

    def inside(self, space: ProofSpace, counts: list[Any], steps: list[Any], kind: tuple[bool, ...] | None) -> "Loops":
        """Return these with those of one more memory; of the innermost runs along a group of ``kind`` there.

        Tensors that do not use it stay in place along all loops there that they do not use, at best (rule 2).
        """
        still, found = [], []
        for t, used in enumerate(space.uses):
            moves: Any = np.False_
            apart: Any = 1.0
            for g, count in enumerate(counts):
                if used[g]:
                    moves = moves | (count > 1)
                else:
                    apart = apart * count
            stays = kind is not None and kind[t]
            still.append(np.where(moves, apart if stays else 1.0, apart * self.still[t]))
            found.append({g: (
                np.where(moves, (counts[g] > 1) & (stays or space.patterns[g] == kind), before[0]),
                np.where(moves, steps[g], before[1]), np.where(moves, counts[g], before[2]))
                for g, before in self.steps[t].items()})
        return Loops(still, found)

    @classmethod
    def joined(cls, parts: list[tuple["Loops", int]]) -> "Loops":
        """Return the loops of rows one after another, so many of each."""
        def together(values: Iterable[Any]) -> Any:
            return np.concatenate([np.broadcast_to(one, many) for one, (_, many) in zip(values, parts, strict=True)])

        first = parts[0][0]
        return cls([together([loops.still[t] for loops, _ in parts]) for t in range(len(first.still))], [
            {g: tuple(map(together, zip(*(loops.steps[t][g] for loops, _ in parts), strict=True))) for g in each}
            for t, each in enumerate(first.steps)])

    def take(self, rows: Indices) -> "Loops":
        """Return those of some rows."""
        return Loops([of_rows(one, rows) for one in self.still], [
            {g: tuple(of_rows(one, rows) for one in step) for g, step in each.items()} for each in self.steps])


def of_rows(values: Any, rows: Any) -> Any:
    """Return the values of some rows; one that stands for all of them as it is."""
    return values[rows] if np.ndim(values) else values


def crossing(space: ProofSpace, tensor: int, tile: list[Any], lanes: list[Any], loops: Loops) -> tuple[Any, Any]:
    """Return the words that cross a boundary out of the parent, and into the tiles of all instances, at least."""
    both = []
    for side in ([1] * len(tile), lanes):
        together = [extent * many for extent, many in zip(tile, side, strict=True)]
        often: Any = 1.0
        for size, extent in zip(space.sizes, together, strict=True):
            often = often * (size / extent)
        words = space.words(tensor, together)
        share: Any = 1.0
        for slide in space.slides[tensor]:
            ends = (slide.first, slide.second)
            some, many = ((each[slide.first], each[slide.second]) for each in (tile, side))
            box = slide.words(together[ends[0]], together[ends[1]])
            for which, g in enumerate(ends):
                able, step, count = loops.steps[tensor][g]
                new = slide.crossing(some, many, which, step)
                share = np.where(able, np.minimum(share, (box + (count - 1) * new) / (count * box)), share)
        both.append(words * often * share / loops.still[tensor])
    return both[1], both[0]


@dataclass(frozen=True, eq=False)
class Half:
    """Chains of factors of each group at the levels of one half of the machine, and rows that choose one for each."""

    levels: tuple[int, ...]
    chains: tuple[Indices, ...]
    """``(c, l)`` of each group: how often its loops run at each level, in time at memories."""
    rows: Indices
    """``(r, g)``: places of chains."""
    known: dict[tuple[int, ...], list[Any]] = field(default_factory=dict)

    def counts(self, at: int) -> list[Indices]:
        """Return the counts at a level, of each group."""
        where = self.levels.index(at)
        return [chains[self.rows[:, g], where] for g, chains in enumerate(self.chains)]

    def product(self, levels: Iterable[int]) -> list[Any]:
        """Return the products of the counts at some levels, of each group."""
        where = tuple(self.levels.index(at) for at in levels if at in self.levels)
        if where not in self.known:
            self.known[where] = [chains[:, where].prod(axis=1)[self.rows[:, g]] for g, chains in enumerate(self.chains)]
        return list(self.known[where])

    def take(self, rows: Any) -> "Half":
        """Return some of the rows."""
        return Half(self.levels, self.chains, self.rows[rows])


def factors(size: int, slots: int) -> list[tuple[int, ...]]:
    """Return all tuples of so many factors whose product divides a size."""
    if not slots:
        return [()]
    return [(first, *rest) for first in range(1, size + 1) if size % first == 0
            for rest in factors(size // first, slots - 1)]

"""What one operator takes of a fused group, and how the operators of a tree add up (docs/concepts.md)."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.cost.records import COMPUTE, KINDS, Count
from tilewright.cost.vector import UNIT
from tilewright.hardware import Accelerator
from tilewright.mapping import FusedLeaf, FusedNode, FusedTree

Resources = Counter[str]
"""Cycles of compute, of the vector unit and of the port of each memory."""


@dataclass
class FusedShare:
    """What one operator of a group takes, all its runs together.

    ``cold_start`` and ``tail`` are those of the first and the last run, ``first_turn`` the cycles that the vector unit
    takes for its first turn.
    """

    macs: int = 0
    cycles: Resources = field(default_factory=Counter)
    energy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    made: float = 1.0
    cold_start: int = 0
    tail: int = 0
    first_turn: int = 0

    def add(self, found: dict[tuple[str, str], Count], times: int = 1) -> None:
        """Add counts by (memory, tensor), ``times`` over."""
        for key, count in found.items():
            before = self.counts.get(key, Count(0, 0, 0, 0))
            self.counts[key] = Count(*(getattr(before, kind) + times * getattr(count, kind)
                                       for kind in KINDS))


@dataclass(frozen=True)
class PartCycles:
    """Cycles of a part of a tree: steady ones, what sets them, and the ramp."""

    steady_cycles: int
    ramp_cycles: int
    bottleneck: str


def summed(parts: Iterable[Resources]) -> Resources:
    """Return the sum of cycles by resource."""
    found: Resources = Counter()
    for part in parts:
        found.update(part)
    return found


def pace(tree: FusedTree, shares: dict[str, FusedShare], accelerator: Accelerator, part: FusedLeaf | FusedNode,
         outer: int = 1) -> PartCycles:
    """Return the cycles of a part of the tree that runs by itself, ``outer`` being the iterations around it."""
    if isinstance(part, FusedLeaf):
        share = shares[part.operator]
        return _together(share.cycles, share.cold_start + share.tail, accelerator)
    turns = len(tree.turns(part.last, part))
    if turns <= outer:
        inner = [pace(tree, shares, accelerator, each, turns) for each in part.parts]
        slowest = max(inner, key=lambda each: each.steady_cycles)
        return PartCycles(sum(each.steady_cycles for each in inner), sum(each.ramp_cycles for each in inner),
                    slowest.bottleneck)
    beside = [name for name in part.names if _overlaps(tree, name)]
    cycles = summed(shares[name].cycles if name in beside else _in_turn(shares[name].cycles) for name in part.names)
    ramp = shares[part.names[0]].cold_start + shares[part.last].tail
    return _together(cycles, ramp + sum(shares[name].first_turn for name in beside), accelerator)


def _together(cycles: Resources, ramp: int, accelerator: Accelerator) -> PartCycles:
    order = [COMPUTE, *(memory.name for memory in accelerator.memories), UNIT]
    slowest = max(order, key=lambda name: cycles[name])
    return PartCycles(cycles[slowest], ramp, slowest)


def _overlaps(tree: FusedTree, name: str) -> bool:
    """Whether all intermediate tensors at the ends of an operator are held twice: the next one is made meanwhile."""
    ends = [link.producer for link in (*tree.group.sources(name), *tree.group.readers(name))]
    held = [tree.held(producer) for producer in ends]
    return all(each is not None and each.copies == 2 for each in held)


def _in_turn(cycles: Resources) -> Resources:
    found = Counter(cycles)
    found[COMPUTE] += found.pop(UNIT, 0)
    return found

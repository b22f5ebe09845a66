"""The dense model, one mapping at a time: the readable statement of the closed forms.

By the counting rules (docs/concepts.md) every count follows from small tables {extent: multiplicity}: how large the
pieces are that the loops outside a memory leave of a dimension, and how many of each there are. `kernel` computes
the same for many mappings at once; this module is its documentation, serves single mappings, and feeds `explain`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import NamedTuple

from tilewright.cost.dense.nest import Boundary, Nest, NestLoop, merges, standing
from tilewright.workload import Axis, Tensor

Table = dict[int, int]
PairTable = dict[tuple[int | None, int], int]


class Role(Enum):
    """What a loop outside a child does to the pieces of its dimension."""

    TIME = "T"
    """An advancing temporal loop: every piece is visited."""
    LANE = "N"
    """A spatial loop whose instances are counted separately."""
    MERGED = "C"
    """A spatial loop whose instances share words on the way to or from the parent."""
    STILL = "-"
    """A temporal loop inside the innermost advancing one: it does not move the tile."""
    FIRST = "0"
    """A loop of which only the first iteration or lane is looked at (for the busiest instance, for the cold start)."""
    LAST = "$"
    """A temporal loop of which only the last iteration is looked at (for the tail)."""


@dataclass(frozen=True)
class View:
    """Which of the instances a count is about, and whether merged lanes count once or each for itself.

    ``merged``: lanes that merge collapse into one. ``first_outside``: spatial loops of levels outside this one are
    looked at in their first lane only. ``visit`` picks the first or last visit instead of all.
    """

    merged: bool
    first_outside: int = 0
    visit: str = "all"


class RoledLoop(NamedTuple):
    """A loop with its role at one boundary.

    ``halo`` marks the innermost advancing loop where words carry over; ``skip`` is the extent that lies before the last
    iteration of the first lane, where only that iteration is looked at.
    """

    loop: NestLoop
    role: Role
    halo: bool = False
    skip: int = 0


Loops = dict[str, list[RoledLoop]]
"""The loops outside a child by dimension, outermost first."""


def innermost_advancing(nest: Nest, boundary: Boundary) -> int:
    """Index in ``nest.loops`` of the innermost loop that advances the child's tile, -1 if none does (rule 2)."""
    fed, child, relevant = boundary.child == len(nest.mapping.levels), boundary.child, boundary.tensor.dimensions
    for index in reversed(range(len(nest.loops))):
        loop = nest.loops[index]
        if not loop.spatial and (fed or (loop.level < child and loop.dimension in relevant)):
            return index
    return -1


def roles(nest: Nest, boundary: Boundary, view: View) -> list[RoledLoop]:
    """Say what each loop outside the child does at this boundary, outermost first."""
    tensor, child = boundary.tensor, boundary.child
    last = innermost_advancing(nest, boundary)
    halo = not tensor.is_output and child < len(nest.mapping.levels)
    found: list[RoledLoop] = []
    broken: set[str] = set()
    for index in reversed(range(len(nest.loops))):
        loop = nest.loops[index]
        if loop.level >= child:
            continue
        if not loop.spatial:
            role = Role.TIME if index <= last else Role.STILL
            broken.add(loop.dimension)
        else:
            apart = not merges(nest.accelerator, boundary, loop.level, loop.side) or (
                loop.dimension in broken and loop.dimension in tensor.sliding)
            role = Role.MERGED if view.merged and not apart else Role.LANE
            place = standing(nest.accelerator, boundary, loop.level, loop.side)
            if place is None or place < view.first_outside:
                role = Role.FIRST
            if apart:
                broken.add(loop.dimension)
        found.append(RoledLoop(loop, role, halo and index == last and loop.dimension in tensor.sliding))
    return found[::-1]


def split(table: Table, step: int) -> Table:
    """Cut every piece into pieces of ``step`` and a remainder."""
    found: Table = {}
    for extent, count in table.items():
        whole, rest = divmod(extent, step)
        if whole:
            found[step] = found.get(step, 0) + whole * count
        if rest:
            found[rest] = found.get(rest, 0) + count
    return found


def iteration(extent: int, roled: RoledLoop) -> int:
    """Return the extent in the one iteration of a loop that is looked at, 0 if a piece does not get that far."""
    return max(0, extent - roled.skip) if roled.role is Role.LAST else min(extent, roled.loop.step)


def last_visit(loops: list[RoledLoop]) -> list[RoledLoop]:
    """Look at advancing loops in the last iteration of the first lane only; ``loops`` are those of one dimension."""
    found = []
    extent = loops[0].loop.outer if loops else 0
    for roled in loops:
        if roled.role is Role.TIME:
            skip = (extent - 1) // roled.loop.step * roled.loop.step
            found.append(RoledLoop(roled.loop, Role.LAST, skip=skip))
            extent -= skip
        else:
            found.append(roled)
            extent = min(extent, roled.loop.step)
    return found


def pick(table: Table, roled: RoledLoop) -> Table:
    """Keep of every piece only one iteration of a loop."""
    found: Table = {}
    for extent, count in table.items():
        kept = iteration(extent, roled)
        if kept:
            found[kept] = found.get(kept, 0) + count
    return found


def pieces(size: int, loops: Iterable[RoledLoop]) -> Table:
    """Table of a dimension of ``size`` under its own loops."""
    table = {size: 1}
    for roled in loops:
        cut = roled.role in (Role.TIME, Role.LANE)
        table = split(table, roled.loop.step) if cut else pick(table, roled)
    return table


def count_pieces(table: Table) -> int:
    """Count the pieces in a table."""
    return sum(table.values())


def total_extent(table: Table) -> int:
    """Extents of all pieces together."""
    return sum(extent * count for extent, count in table.items())


def factors(nest: Nest, boundary: Boundary, view: View) -> dict[str, int]:
    """Factors of a count, by axis (joined dimension names) and by dimension that the tensor does not use.

    Their product is the number of words moved: of the parent's reads or updates where ``view.merged``, else of the
    fills or evictions of all instances.
    """
    found = roles(nest, boundary, view)
    if view.visit == "first":
        found = [RoledLoop(r.loop, Role.FIRST) if r.role is Role.TIME else r for r in found]
    loops = by_dimension(nest, found)
    if view.visit == "last":
        loops = {name: last_visit(own) for name, own in loops.items()}
    return factors_of(boundary.tensor, nest.operator.sizes, loops)


def by_dimension(nest: Nest, loops: Iterable[RoledLoop]) -> Loops:
    """Sort loops by their dimension."""
    found: Loops = {name: [] for name in nest.operator.sizes}
    for roled in loops:
        found[roled.loop.dimension].append(roled)
    return found


def factors_of(tensor: Tensor, sizes: dict[str, int], loops: Loops, plain: Loops | None = None) -> dict[str, int]:
    """Return `factors` under given loops; those over plain axes may be other ones, ``plain``."""
    found = {"+".join(axis.dimensions): axis_words(axis, sizes, plain if plain and len(axis.terms) == 1 else loops)
             for axis in tensor.axes}
    return found | {name: count_pieces(pieces(size, loops[name])) for name, size in sizes.items()
                    if name not in tensor.dimensions}


def axis_words(axis: Axis, sizes: dict[str, int], loops: Loops) -> int:
    """Words of one axis summed over all visits and instances."""
    if len(axis.terms) == 1:
        name = axis.terms[0][0]
        apart = [RoledLoop(r.loop, Role.LANE) if r.role is Role.MERGED else r for r in loops[name]]
        return total_extent(pieces(sizes[name], apart))
    return sum(alike.times * (alike.words - alike.carried) for alike in windows(*sides(axis, sizes, loops)))


@dataclass(frozen=True)
class SlidingDimension:
    """One dimension of a sliding axis: its name, size, reduced coefficient and loops outside the child."""

    name: str
    size: int
    coefficient: int
    loops: tuple[RoledLoop, ...]

    @property
    def outer(self) -> tuple[RoledLoop, ...]:
        """The loops that cut or pick pieces; merged lanes are not among them."""
        return tuple(roled for roled in self.loops if roled.role is not Role.MERGED)

    @property
    def lanes(self) -> tuple[int, ...]:
        """Steps of the merged lane loops next to the child, outermost first."""
        return tuple(roled.loop.step for roled in self.loops if roled.role is Role.MERGED)


def sides(axis: Axis, sizes: dict[str, int], loops: Loops) -> tuple[SlidingDimension, SlidingDimension]:
    """Dimensions of a sliding axis: first the one along which the tile steps on where words carry over."""
    first, second = (SlidingDimension(name, sizes[name], coefficient, tuple(loops[name]))
                     for name, coefficient in zip(axis.dimensions, axis.coprime, strict=True))
    return (second, first) if any(roled.halo for roled in second.loops) else (first, second)


@dataclass(frozen=True)
class TileGroup:
    """Tiles along a sliding axis that are alike, ``times`` in number."""

    previous: int | None
    present: int
    """Extent of the moving dimension in the visit before and in this one; ``previous`` is None where a whole tile
    comes."""
    extent: int
    """Of the other dimension."""
    times: int
    words: int
    carried: int
    """Distinct words of the tile, and how many of them every lane needing them holds from the visit before."""


def windows(moving: SlidingDimension, still: SlidingDimension) -> list[TileGroup]:
    """Tiles along a sliding axis over all visits and instances."""
    step = next((roled.loop.step for roled in moving.loops if roled.halo), 0)
    found = []
    for (previous, present), count in pair_pieces(moving).items():
        for extent, times in pieces(still.size, still.outer).items():
            words = present * extent - max(0, present - still.coefficient) * max(0, extent - moving.coefficient)
            held = 0 if previous is None else carried(moving, still, step, (previous, present, extent))
            found.append(TileGroup(previous, present, extent, count * times, words, held))
    return found


def pair_pieces(side: SlidingDimension) -> PairTable:
    """Cut the moving dimension into (previous extent, present extent); previous is None where a whole tile comes."""
    table: PairTable = {(None, side.size): 1}
    for roled in side.outer:
        found: PairTable = {}
        for pair, count in table.items():
            for piece, times in _cut_pair(pair, roled):
                found[piece] = found.get(piece, 0) + times * count
        table = found
    return table


def _cut_pair(pair: tuple[int | None, int], roled: RoledLoop) -> Sequence[tuple[tuple[int | None, int], int]]:
    previous, present = pair
    step = roled.loop.step
    if roled.role not in (Role.TIME, Role.LANE):
        kept = iteration(present, roled)
        return [((None if previous is None else iteration(previous, roled), kept), 1)] * (kept > 0)
    whole, rest = divmod(present, step)
    if roled.halo:
        found: list[tuple[tuple[int | None, int], int]] = [((None, min(step, present)), 1)]
        found += [((step, step), whole - 1)] * (whole > 1)
        return found + [((step, rest), 1)] * (whole > 0 and rest > 0)
    if previous is None:
        return [((None, step), whole)] * (whole > 0) + [((None, rest), 1)] * (rest > 0)
    return [((step, step), whole)] * (whole > 0) + [((min(step, previous - whole * step), rest), 1)] * (rest > 0)


def carried(moving: SlidingDimension, still: SlidingDimension, step: int, piece: tuple[int, int, int]) -> int:
    """Words of a visit that every merged lane needing them held in the visit before, ``step`` further back.

    ``piece`` is (previous extent, present extent, extent of the other dimension). Words fall into classes by the
    residue of the moving index modulo the other coefficient (CLOSED_FORMS, "Sliding axis").
    """
    previous, present, window = piece
    stride, dilation = moving.coefficient, still.coefficient
    lanes = {window: 1}
    first_lane = window
    for size in still.lanes:
        lanes, first_lane = split(lanes, size), min(first_lane, size)
    others = lanes | {first_lane: lanes[first_lane] - 1}
    total = 0
    for residue in range(min(dilation, present)):
        visits = -((residue - present) // dilation)
        start, width = _finest_lane(previous, moving.lanes, residue)
        end = start + width - 1
        last = end - (end - residue - step) % dilation
        if last < start:
            continue
        lag = (step + residue - last) // dilation
        corner = _corner(moving, step, dilation, (previous, residue, min(visits, -(-first_lane // stride))))
        if corner:
            total += max(0, first_lane - stride * lag) - max(0, first_lane - stride * (lag + corner))
            continue
        total += max(0, first_lane - stride * lag)
        total += sum(n * max(0, lane - stride * (lag + visits - 1)) for lane, n in others.items())
    return total


def _finest_lane(extent: int, steps: tuple[int, ...], position: int) -> tuple[int, int]:
    """Start and width of the finest lane of [0, extent) that holds ``position``."""
    start = 0
    for step in steps:
        index = (position - start) // step
        start, extent = start + index * step, min(step, extent - index * step)
    return start, extent


def _corner(moving: SlidingDimension, step: int, dilation: int, where: tuple[int, int, int]) -> int:
    """First later window whose lane held no word of the residue at all; 0 if there is none."""
    previous, residue, most = where
    if dilation == 1 or not moving.lanes or step % dilation == 0:
        return 0
    for index in range(1, most):
        position = residue + index * dilation
        start, width = _finest_lane(previous, moving.lanes, position)
        if (position - start + step) % dilation >= width:
            return index
    return 0


def words(nest: Nest, boundary: Boundary, view: View) -> int:
    """Product of the factors: words moved at a boundary, seen as ``view`` says."""
    # Views that differ in no lane see the same.
    places = [standing(nest.accelerator, boundary, loop.level, loop.side) for loop in nest.loops if loop.spatial]
    first = sum(place is not None and place < view.first_outside for place in places)
    merged = view.merged and any(place is not None and boundary.parent <= place < boundary.child for place in places)
    key = boundary.tensor.name, boundary.parent, boundary.child, merged, first, view.visit
    if key not in nest.known_words:
        nest.known_words[key] = prod(factors(nest, boundary, view).values())
    return nest.known_words[key]


def combines(nest: Nest, boundary: Boundary) -> bool:
    """Whether partial sums are combined at the parent because instances that share words do not merge (rule 5)."""
    output = boundary.tensor
    plain = {axis.terms[0][0] for axis in output.axes if len(axis.terms) == 1}
    return any(
        roled.role is Role.LANE and roled.loop.level > boundary.parent and roled.loop.dimension not in plain
        for roled in roles(nest, boundary, View(merged=True))
    )


def steps(nest: Nest) -> int:
    """Return the steps of compute: the real temporal iterations of the longest-running instance (rule 7)."""
    loops = by_dimension(nest, first_lanes(nest.loops))
    return prod(count_pieces(pieces(size, loops[name])) for name, size in nest.operator.sizes.items())


def first_lanes(loops: Iterable[NestLoop]) -> list[RoledLoop]:
    """Look at every iteration of temporal loops, in the first lane."""
    return [RoledLoop(loop, Role.FIRST if loop.spatial else Role.TIME) for loop in loops]

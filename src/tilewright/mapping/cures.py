"""Single changes to a mapping, in words and done: what `violations` chooses its cures from."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.fit import (
    Extents,
    Room,
    array_use,
    extents_at,
    homed_at,
    kept_tensors,
    lanes,
    rooms,
    step_inside,
)
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping, SpatialAxis
from tilewright.workload import Operator


@dataclass(frozen=True)
class Inspection:
    """A mapping of an operator on an accelerator that is inspected, and what follows from it."""

    mapping: Mapping
    operator: Operator
    accelerator: Accelerator

    @cached_property
    def extents(self) -> list[Extents]:
        """Extents outside each level, and last inside all."""
        return extents_at(self.mapping, self.operator.sizes)


@dataclass(frozen=True)
class Cure:
    """A changed mapping.

    ``text`` says what changed. ``tier`` ranks the kind of change (0 one step, 1 several steps, 2 what is kept) and
    ``change`` its size: the largest ratio between an old and a new step.
    """

    mapping: Mapping
    text: str
    tier: int = 0
    change: float = 1.0


class Draft:
    """A mapping being changed; `cure` hands out the result."""

    def __init__(self, case: Inspection) -> None:
        self.case = case
        self.levels = [list(entry.loops) for entry in case.mapping.levels]
        self._phrases: dict[tuple[int, int, str], str] = {}
        self._change = 1.0
        self._touched: set[str] = set()

    def outside(self, level: int, position: int, dimension: str) -> int:
        """Return the extent of ``dimension`` outside the loop at ``position`` of ``level``, as the draft stands."""
        extent = self.case.operator.sizes[dimension]
        for index, loops in enumerate(self.levels):
            for place, loop in enumerate(loops):
                if (index, place) >= (level, position):
                    return extent
                if loop.dimension == dimension:
                    extent = step_inside(loop.step, extent)
        return extent

    def set_step(self, level: int, position: int, step: int) -> None:
        """Give one loop another step."""
        loop = self.levels[level][position]
        if step == loop.step:
            return
        self.levels[level][position] = replace(loop, step=step)
        original = self.case.mapping.levels[level].loops
        before = original[position].step if position < len(original) else loop.step
        verb = "raise" if step > before else "lower"
        where = self.case.mapping.levels[level].level
        self._phrases[level, position, "step"] = (
            f"{verb} the step of {loop.dimension} at {where} from {before} to {step}")
        self._note(loop.dimension, before, step)

    def add_loop(self, level: int, dimension: str, step: int) -> None:
        """Put a temporal loop innermost at a level."""
        outside = self.outside(level, len(self.levels[level]), dimension)
        where = self.case.mapping.levels[level].level
        self._phrases[level, len(self.levels[level]), "add"] = (
            f"add a loop over {dimension} with step {step} at {where}")
        self.levels[level].append(Loop(dimension, step))
        self._note(dimension, outside, step)

    def narrow(self, level: int, dimension: str, target: int) -> bool:
        """Bring the extent of ``dimension`` outside ``level`` down to ``target`` by loops of the nearest outer memory.

        Spatial loops between the two keep the lanes they have, on smaller tiles. False where there is no such memory.
        """
        levels = self.case.accelerator.levels
        home = max((i for i in range(level) if isinstance(levels[i], Memory)), default=None)
        if home is None:
            return False
        inside = target
        for index in range(level - 1, home, -1):
            for position in reversed(range(len(self.levels[index]))):
                loop = self.levels[index][position]
                if loop.dimension == dimension:
                    outside = self.outside(index, position, dimension)
                    count = -(-outside // step_inside(loop.step, outside))
                    self.set_step(index, position, inside)
                    inside *= count
        own = [p for p, loop in enumerate(self.levels[home]) if loop.dimension == dimension]
        if own and inside < self.levels[home][own[-1]].step:
            self.set_step(home, own[-1], inside)
        elif inside < self.outside(home, len(self.levels[home]), dimension):
            self.add_loop(home, dimension, inside)
        return True

    def cure(self, tier: int = 0) -> Cure | None:
        """Return the changed mapping, steps inside the changed ones cut where they would be too large."""
        if not self._phrases:
            return None
        cut = False
        extents = dict(self.case.operator.sizes)
        for loops in self.levels:
            for position, loop in enumerate(loops):
                outside = extents.get(loop.dimension, loop.step)
                if loop.dimension in self._touched and loop.step > outside:
                    loops[position] = replace(loop, step=outside)
                    cut = True
                extents[loop.dimension] = step_inside(loops[position].step, outside)
        text = " and ".join(self._phrases.values()) + (" (and cut the larger steps inside)" if cut else "")
        entries = zip(self.case.mapping.levels, self.levels, strict=True)
        mapping = Mapping(tuple(replace(entry, loops=tuple(loops)) for entry, loops in entries))
        return Cure(mapping, text, tier, self._change)

    def _note(self, dimension: str, before: int, after: int) -> None:
        low, high = sorted((max(before, 1), max(after, 1)))
        self._change = max(self._change, high / low)
        self._touched.add(dimension)


def change_entry(case: Inspection, level: int, entry: LevelLoops, text: str, tier: int = 0) -> Cure:
    """Return the cure that replaces the entry of one level."""
    levels = list(case.mapping.levels)
    levels[level] = entry
    return Cure(Mapping(tuple(levels)), text, tier)


def name_cures(case: Inspection, level: int, position: int) -> Iterator[Cure]:
    """Yield the changes that mend a loop over an unknown dimension: a near name, or no loop over it.

    Where the loop behind it is such a one too, removing it alone would put that one in its place.
    """
    entry = case.mapping.levels[level]
    loop, loops = entry.loops[position], list(entry.loops)
    for near in get_close_matches(loop.dimension.upper(), list(case.operator.sizes), 1):
        loops[position] = replace(loop, dimension=near)
        yield change_entry(case, level, replace(entry, loops=tuple(loops)), f"call it {near}")
    loops.pop(position)
    yield change_entry(case, level, replace(entry, loops=tuple(loops)), "remove it")
    others = tuple(other for other in entry.loops if other.dimension != loop.dimension)
    yield change_entry(case, level, replace(entry, loops=others), f"remove all loops over {loop.dimension}", 1)


def axis_cures(case: Inspection, level: int, position: int) -> Iterator[Cure]:
    """Yield the changes that make one loop spatial at a fan-out, temporal at a memory."""
    entry, loops = case.mapping.levels[level], list(case.mapping.levels[level].loops)
    at_fanout = isinstance(case.accelerator.levels[level], Fanout)
    axes: tuple[SpatialAxis | None, ...] = ("X", "Y") if at_fanout else (None,)
    for axis in axes:
        loops[position] = replace(loops[position], axis=axis)
        text = f"spread it along {axis}" if axis else "run it in time"
        yield change_entry(case, level, replace(entry, loops=tuple(loops)), text)


def with_keeps(case: Inspection, level: int, keeps: tuple[str, ...] | None, text: str, tier: int = 0) -> Cure:
    """Return the cure that changes what a level keeps."""
    return change_entry(case, level, replace(case.mapping.levels[level], keeps=keeps), text, tier)


def step_cures(case: Inspection, level: int, position: int, step: int) -> Iterator[Cure | None]:
    """Yield the cure that gives one loop another step."""
    draft = Draft(case)
    draft.set_step(level, position, step)
    yield draft.cure()


def extent_cures(case: Inspection, level: int, dimension: str, target: int) -> Iterator[Cure | None]:
    """Yield changes that bring the extent of ``dimension`` outside ``level`` (inside all: one past the last) down."""
    last = [(i, p) for i in range(level) for p, loop in enumerate(case.mapping.levels[i].loops)
            if loop.dimension == dimension]
    if last:
        yield from step_cures(case, *last[-1], target)
    draft = Draft(case)
    if draft.narrow(level, dimension, target):
        yield draft.cure()


def array_cures(case: Inspection, level: int, axes: tuple[str, ...]) -> Iterator[Cure | None]:
    """Yield changes that make the loops along ``axes`` of a fan-out fit: larger steps, or less to spread."""
    fanout, entry = case.accelerator.levels[level], case.mapping.levels[level]
    assert isinstance(fanout, Fanout)
    counts = lanes(entry, case.extents[level])
    extents = dict(case.extents[level])
    everything = Draft(case)
    for position, loop in enumerate(entry.loops):
        if loop.dimension not in extents:
            continue
        extent, step = extents[loop.dimension], step_inside(loop.step, extents[loop.dimension])
        extents[loop.dimension] = step
        count = -(-extent // step)
        if loop.axis not in axes or count == 1:
            continue
        allowed = _most_lanes(fanout, counts, loop.axis, count, axes)
        if allowed:
            yield from step_cures(case, level, position, -(-extent // allowed))
            if extent == case.extents[level][loop.dimension]:
                yield from extent_cures(case, level, loop.dimension, allowed * step)
    for loop in entry.loops:
        if loop.axis in axes and loop.dimension in extents:
            everything.narrow(level, loop.dimension, extents[loop.dimension])
    yield everything.cure(tier=1)


def _most_lanes(fanout: Fanout, counts: tuple[int, int], axis: str, count: int, axes: tuple[str, ...]) -> int:
    """Return the most lanes (fewer than ``count``) that one loop along ``axis`` may take while the others stay."""
    x, y = counts

    def fits(n: int) -> bool:
        use = array_use(fanout, x // count * n, y) if axis == "X" else array_use(fanout, x, y // count * n)
        return all(needed <= available for side, needed, available in use if len(axes) == 2 or side in axes)

    return _largest(fits, count - 1)


def room_cures(case: Inspection, level: int, partition: str | None) -> Iterator[Cure | None]:
    """Yield changes that make the tiles in one room of a memory fit: smaller extents outside, or fewer tensors."""
    extents = case.extents[level]
    names = [name for name, _ in _room(case, level, partition, extents).bytes_by_tensor]
    used = {d for name in names for d in case.operator.tensor(name).dimensions}
    dimensions = [d for d in case.operator.sizes if d in used and extents[d] > 1]
    for dimension in dimensions:
        def fits(n: int, dimension: str = dimension) -> bool:
            return _room(case, level, partition, {**extents, dimension: n}).fits

        target = _largest(fits, extents[dimension] - 1)
        if target:
            yield from extent_cures(case, level, dimension, target)
    yield _shrink_together(case, level, partition, dimensions)
    if level:
        entry, memory = case.mapping.levels[level], case.accelerator.levels[level]
        assert isinstance(memory, Memory)
        kept = [t.name for t in kept_tensors(entry, memory, case.operator)]
        for gone in [*([name] for name in names), names]:
            rest = tuple(name for name in kept if name not in gone)
            yield with_keeps(case, level, rest, f"let {entry.level} not keep {'+'.join(gone)}", 1 + len(gone))


def _shrink_together(case: Inspection, level: int, partition: str | None, dimensions: list[str]) -> Cure | None:
    """Halve the largest extents until the room fits."""
    extents = dict(case.extents[level])
    while dimensions and not _room(case, level, partition, extents).fits:
        largest = max(dimensions, key=lambda d: extents[d])
        if extents[largest] == 1:
            return None
        extents[largest] = -(-extents[largest] // 2)
    draft = Draft(case)
    for dimension in dimensions:
        smaller = extents[dimension] < case.extents[level][dimension]
        if smaller and not draft.narrow(level, dimension, extents[dimension]):
            return None
    return draft.cure(tier=1)


def _room(case: Inspection, level: int, partition: str | None, extents: Extents) -> Room:
    memory = case.accelerator.levels[level]
    assert isinstance(memory, Memory)
    kept = kept_tensors(case.mapping.levels[level], memory, case.operator)
    homed = homed_at(level, case.mapping, case.operator, case.accelerator)
    return next(room for room in rooms(memory, kept, extents, case.accelerator, homed) if room.partition == partition)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest n of 1..most for which the monotone ``fits`` holds, 0 if there is none."""
    return bisect_left(range(1, most + 1), True, key=lambda n: not fits(n))

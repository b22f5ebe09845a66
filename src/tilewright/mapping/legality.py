"""What is wrong with a mapping, by name, and the smallest change that would make it right (counting rule 10)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Literal

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.cures import (
    Cure,
    Inspection,
    array_cures,
    axis_cures,
    extent_cures,
    name_cures,
    room_cures,
    step_cures,
    with_keeps,
)
from tilewright.mapping.fit import (
    array_use,
    barred_dimensions,
    full_keeps,
    home_of,
    homed_at,
    kept_tensors,
    lanes,
    rooms,
    step_inside,
)
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Operator

Kind = Literal["levels", "dimension", "step", "coverage", "axis", "array", "shared", "keeps", "outermost",
               "capacity"]


@dataclass(frozen=True)
class _Broken:
    """A rule that a mapping breaks, where, and how."""

    kind: Kind
    """``levels`` (missing, unknown, repeated or out of order), ``dimension`` (unknown), ``step`` (less than 1, or
    larger than the extent outside), ``coverage`` (a dimension not brought down to 1), ``axis`` (a loop at a
    fan-out without one, or at a memory with one), ``array`` (spatial loops exceed a side, the instances or the
    blocks), ``shared`` (lanes over what a memory keeps that is one for all of them), ``keeps`` (a tensor where it
    cannot be kept), ``outermost`` (a tensor without a home), ``capacity`` (tiles do not fit)."""
    level: str
    """Name of the level, empty where the mapping as a whole is meant."""
    subject: str
    """The dimension, tensor, side or partition concerned."""
    message: str
    """What is wrong, with the figures."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two violations the same: kind, level and subject."""
        return self.kind, self.level, self.subject


@dataclass(frozen=True)
class Violation(_Broken):
    """One rule that a mapping breaks."""

    mend: str
    """The smallest change found that cures it, in words."""
    cure: Mapping | None
    """The mapping with that change made; None where no mapping can be right on this accelerator."""

    def __str__(self) -> str:
        return f"{self.message}; {self.mend}"


@dataclass(frozen=True)
class _Finding(_Broken):
    """A violation before its cure is chosen; ``otherwise`` is said where none of ``cures`` works."""

    cures: Callable[[], Iterable[Cure | None]]
    otherwise: str = "no single change cures it"


def violations(mapping: Mapping, operator: Operator, accelerator: Accelerator) -> tuple[Violation, ...]:
    """Return all that is wrong with a mapping, outermost first; empty if it is legal.

    Where levels are missing, unknown or out of order, only that is reported, as nothing else has a meaning yet. Of all
    changes that cure a violation, that is chosen which causes the fewest others, and then the smallest.
    """
    findings = _findings(Inspection(mapping, operator, accelerator))
    before = {finding.key for finding in findings}
    return tuple(_with_cure(finding, before, operator, accelerator) for finding in findings)


def is_legal(mapping: Mapping, operator: Operator, accelerator: Accelerator) -> bool:
    """Whether a mapping has no violations; quicker than `violations`, as it looks for no cures."""
    return not _findings(Inspection(mapping, operator, accelerator))


def smallest_mapping(operator: Operator, accelerator: Accelerator) -> Mapping:
    """Return the mapping with the smallest tiles there are: all loops in time, at the outermost memory."""
    outermost, *inner = accelerator.levels
    loops = tuple(Loop(name, 1) for name, size in operator.dimensions if size > 1)
    return Mapping((LevelLoops(outermost.name, loops), *(LevelLoops(level.name) for level in inner)))


def repair(mapping: Mapping, operator: Operator, accelerator: Accelerator, rounds: int = 100) -> Mapping | None:
    """Return a legal mapping made by applying cure after cure, or None if that does not lead to one."""
    for _ in range(rounds):
        found = violations(mapping, operator, accelerator)
        if not found:
            return mapping
        cures = [violation.cure for violation in found if violation.cure is not None]
        if not cures:
            return None
        mapping = min(cures, key=lambda cure: len(_findings(Inspection(cure, operator, accelerator))))
    return None


def _with_cure(finding: _Finding, before: set[tuple[str, str, str]], operator: Operator,
               accelerator: Accelerator) -> Violation:
    best: tuple[tuple[int, int, float, int], Cure] | None = None
    for cure in finding.cures():
        if cure is None:
            continue
        left = {other.key for other in _findings(Inspection(cure.mapping, operator, accelerator))}
        rank = (len(left - before), cure.tier, cure.change, len(left))
        if finding.key not in left and (best is None or rank < best[0]):
            best = rank, cure
    mend, mapping = (best[1].text, best[1].mapping) if best else (finding.otherwise, None)
    return Violation(finding.kind, finding.level, finding.subject, finding.message, mend, mapping)


def _findings(case: Inspection) -> list[_Finding]:
    found = list(_level_findings(case))
    if found:
        return found
    for index in range(len(case.mapping.levels)):
        found += _loop_findings(case, index)
        if isinstance(case.accelerator.levels[index], Fanout):
            found += _array_findings(case, index)
        else:
            found += _keeps_findings(case, index)
            found += _room_findings(case, index)
    found += _home_findings(case)
    for name, extent in case.extents[-1].items():
        if extent > 1:
            last = len(case.mapping.levels)
            found.append(_Finding("coverage", "", name, f"{name}: no loop brings it below {extent}",
                                  partial(extent_cures, case, last, name, 1)))
    return found


def _level_findings(case: Inspection) -> Iterator[_Finding]:
    names = [level.name for level in case.accelerator.levels]
    entries = case.mapping.levels
    given = [entry.level for entry in entries]
    missing = [name for name in names if name not in given]

    def cured(levels: list[LevelLoops], text: str) -> Callable[[], list[Cure]]:
        return lambda: [Cure(Mapping(tuple(levels)), text)]

    for index, entry in enumerate(entries):
        rest = [other for other in entries if other is not entry]
        if entry.level not in names:
            near = get_close_matches(entry.level, missing, 1)
            changed = [*entries[:index], replace(entry, level=near[0]), *entries[index + 1:]] if near else rest
            message = f"{entry.level}: {case.accelerator.name} has no such level"
            yield _Finding("levels", entry.level, "unknown", message,
                           cured(changed, f"call it {near[0]}" if near else "remove it"))
        elif entry.level in given[:index]:
            first = given.index(entry.level)
            merged = replace(entries[first], loops=entries[first].loops + entry.loops)
            changed = [merged if i == first else other for i, other in enumerate(entries) if i != index]
            yield _Finding("levels", entry.level, "repeated", f"{entry.level}: is given more than once",
                           cured(changed, "put all its loops into its first entry"))
    for name in missing:
        place = sum(other in given for other in names[:names.index(name)])
        yield _Finding("levels", name, "missing", f"{name}: is missing",
                       cured([*entries[:place], LevelLoops(name), *entries[place:]], "add it without loops"))
    known = list(dict.fromkeys(name for name in given if name in names))
    if known != [name for name in names if name in known]:
        ordered = sorted(entries, key=lambda e: names.index(e.level) if e.level in names else len(names))
        yield _Finding("levels", "", "order", f"levels stand in the order {', '.join(known)}",
                       cured(ordered, f"put them in the order {', '.join(names)}"))


def _loop_findings(case: Inspection, index: int) -> Iterator[_Finding]:
    """Yield what is wrong with single loops: dimension, step, axis."""
    entry, extents = case.mapping.levels[index], dict(case.extents[index])
    at_fanout = isinstance(case.accelerator.levels[index], Fanout)
    for position, loop in enumerate(entry.loops):
        where, subject = f"{entry.level}.{loop.dimension}", f"{loop.dimension}[{position}]"
        if loop.dimension not in extents:
            yield _Finding("dimension", entry.level, subject, f"{where}: {case.operator.name} has no such dimension",
                           partial(name_cures, case, index, position))
            continue
        outside = extents[loop.dimension]
        extents[loop.dimension] = step_inside(loop.step, outside)
        if not 1 <= loop.step <= outside:
            rule = f"exceeds the extent {outside} outside" if loop.step > outside else "is less than 1"
            yield _Finding("step", entry.level, subject, f"{where}: step {loop.step} {rule}",
                           partial(step_cures, case, index, position, extents[loop.dimension]))
        if at_fanout and loop.axis not in ("X", "Y"):
            yield _Finding("axis", entry.level, subject, f"{where}: a loop at a fan-out needs an axis, X or Y",
                           partial(axis_cures, case, index, position))
        elif not at_fanout and loop.axis is not None:
            yield _Finding("axis", entry.level, subject, f"{where}: a loop at a memory runs in time, it has no axis",
                           partial(axis_cures, case, index, position))


def _array_findings(case: Inspection, index: int) -> Iterator[_Finding]:
    entry, fanout = case.mapping.levels[index], case.accelerator.levels[index]
    assert isinstance(fanout, Fanout)
    if entry.keeps:
        yield _Finding("keeps", entry.level, "fan-out", f"{entry.level}: a fan-out keeps nothing",
                       partial(_only, with_keeps(case, index, None, f"remove its keeps {'+'.join(entry.keeps)}")))
    for side, needed, available in array_use(fanout, *lanes(entry, case.extents[index])):
        if needed > available:
            axes = (side,) if side in ("X", "Y") else ("X", "Y")
            where = f"{entry.level}.{side}" if side in ("X", "Y") else entry.level
            unit = "" if side in ("X", "Y") else f" {side}"
            yield _Finding("array", entry.level, side, f"{where}: loops need {needed} of {available}{unit}",
                           partial(array_cures, case, index, axes))
    yield from _shared_findings(case, index)


def _shared_findings(case: Inspection, index: int) -> Iterator[_Finding]:
    """Yield lanes over dimensions of what a memory keeps that serves all of them together."""
    entry, extents = case.mapping.levels[index], dict(case.extents[index])
    kept = full_keeps(case.mapping, case.operator, case.accelerator)
    barred = barred_dimensions(case.operator, case.accelerator, kept)
    for position, loop in enumerate(entry.loops):
        outside, place = extents.get(loop.dimension, 1), f"{entry.level}.{loop.axis}"
        extents[loop.dimension] = step_inside(loop.step, outside)
        if loop.dimension in barred.get(place, ()) and extents[loop.dimension] < outside:
            message = f"{place}: lanes over {loop.dimension} want different words of a memory that serves them all"
            yield _Finding("shared", entry.level, f"{loop.dimension}[{position}]", message,
                           partial(step_cures, case, index, position, outside))


def _keeps_findings(case: Inspection, index: int) -> Iterator[_Finding]:
    entry, memory = case.mapping.levels[index], case.accelerator.levels[index]
    assert isinstance(memory, Memory)
    tensors = {t.name: t for t in case.operator.tensors}
    keeps = entry.keeps or ()
    for name in dict.fromkeys(keeps):
        rest = tuple(other for other in keeps if other != name)
        if name not in tensors:
            message = f"{case.operator.name} has no tensor {name}"
        elif not memory.can_keep(name, tensors[name].role):
            message = f"cannot keep {name} (it keeps {', '.join(memory.keeps) or 'nothing'})"
        else:
            continue
        cure = with_keeps(case, index, rest, f"let {entry.level} not keep {name}")
        yield _Finding("keeps", entry.level, name, f"{entry.level}: {message}", partial(_only, cure))


def _home_findings(case: Inspection) -> Iterator[_Finding]:
    """Yield what is wrong with homes (rule 11): a tensor kept nowhere, an output whose sums never meet."""
    entry, memory = case.mapping.levels[0], case.accelerator.levels[0]
    assert isinstance(memory, Memory)
    kept = full_keeps(case.mapping, case.operator, case.accelerator)
    for tensor in case.operator.tensors:
        able = memory.can_keep(tensor.name, tensor.role)
        home = home_of(tensor.name, [kept.get(level.level, ()) for level in case.mapping.levels])
        apart = home is not None and tensor.is_output and case.accelerator.instances(
            case.mapping.levels[home].level) > 1
        if home is not None and not apart:
            continue
        keeps = None if entry.keeps is None else (*entry.keeps, tensor.name)
        cure = with_keeps(case, 0, keeps, f"let it keep {tensor.name}") if able else None
        yield _Finding("outermost", entry.level, tensor.name,
                       f"{entry.level}: a memory outside all arrays must keep {tensor.name}" if apart else
                       f"{entry.level}: some memory must keep {tensor.name}", partial(_only, cure),
                       f"let {entry.level} of {case.accelerator.name} keep {tensor.role}")


def _only(cure: Cure | None) -> list[Cure | None]:
    return [cure]


def _room_findings(case: Inspection, index: int) -> Iterator[_Finding]:
    entry, memory = case.mapping.levels[index], case.accelerator.levels[index]
    assert isinstance(memory, Memory)
    homed = homed_at(index, case.mapping, case.operator, case.accelerator)
    for room in rooms(memory, kept_tensors(entry, memory, case.operator), case.extents[index], case.accelerator, homed):
        if room.fits:
            continue
        where = entry.level if room.partition is None else f"{entry.level}.{room.partition}"
        names = "+".join(name for name, _ in room.bytes_by_tensor)
        twice = ", twice" if room.copies == 2 else ""
        yield _Finding("capacity", entry.level, room.partition or "shared",
                       f"{where} holds {room.needed_bytes:.10g} B of {room.capacity_bytes:.10g} B for {names}{twice}",
                       partial(room_cures, case, index, room.partition),
                       f"give {where} of {case.accelerator.name} at least {room.needed_bytes:.10g} B")

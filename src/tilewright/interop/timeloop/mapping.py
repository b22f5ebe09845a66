"""Timeloop's mappings and constraints: factors, permutations (innermost first), splits, bypass and remainders."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilewright.hardware import Accelerator, Memory
from tilewright.interop.timeloop.architecture import Design, Place
from tilewright.interop.timeloop.source import Section
from tilewright.mapping import ANY, Bounds, Constraints, LevelLoops, Loop
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

_FACTOR = re.compile(r"([A-Za-z_]\w*?)\s*(<=|>=|==|=)?\s*(\d+)(?:,(\d+)(?=[\s,]|$))?")
_TENSOR_TYPES = ("dataspace", "datatype", "bypass", "bypassing")
_KNOWN = {"target", "name", "type", "factors", "permutation", "split", "keep", "bypass"}
Path = tuple[str | int, ...]
Side = Literal["X", "Y"]


@dataclass(frozen=True)
class Factor:
    """``P=5,3``: how often a loop runs, how often in its last round, and how the number binds in a constraint."""

    count: int
    remainder: int | None
    sign: str


@dataclass
class Directive:
    """What is said of one target: loops in time, loops in space, or tensors kept."""

    section: Section
    path: Path
    place: Place
    kind: str
    factors: dict[str, Factor] = field(default_factory=dict)
    permutation: tuple[str, ...] = ()
    split: int | None = None
    keep: tuple[str, ...] | None = None
    bypass: tuple[str, ...] | None = None


def read_directives(section: Section, design: Design, operator: Operator) -> list[Directive]:
    """Return the directives of a ``mapping`` or constraints section, checked against names.

    Raises
    ------
    InputError
        With file and line, where a target, type, dimension or tensor is unknown or a number wrong.
    """
    base: Path = ()
    tree = section.tree
    if isinstance(tree, Mapping):
        base = ("targets",)
        for name in set(tree) - {"targets", "version"}:
            section.note((name,), "dropped", "not part of constraints that is known here")
        tree = tree.get("targets", [])
    found = []
    for index, entry in enumerate(section.list(tree, base)):
        path = (*base, index)
        fields = section.mapping(entry, path)
        target = fields.get("target", fields.get("name"))
        if target is None:
            raise section.fail(path, "must have a target")
        kind = str(fields.get("type", "temporal"))
        if kind in _TENSOR_TYPES:
            kind = "tensors"
        elif kind not in ("temporal", "spatial"):
            if kind in ("utilization", "max_overbooked_proportion"):
                section.note(path, "dropped", f"a constraint on {kind}")
                continue
            raise section.fail((*path, "type"), "must be temporal, spatial, dataspace (datatype or bypass)", kind)
        found += _directive(section, path, fields, kind, str(target), design, operator)
    return found


def node_directives(design: Design, operator: Operator) -> list[Directive]:
    """Return the directives that stand at the nodes of a version 0.4 architecture."""
    found = []
    for place in design.places:
        for kind, fields in place.constraints.items():
            path = (*place.path, "constraints", kind)
            section = design.section
            if kind in ("temporal", "spatial", "dataspace") and isinstance(fields, Mapping):
                made = "tensors" if kind == "dataspace" else kind
                found += _directive(section, path, fields, made, place.name, design, operator)
            else:
                section.note(path, "dropped", f"constraints of kind {kind}")
    for directive in found:
        if directive.kind == "tensors" and directive.keep is not None and directive.bypass is None:
            directive.bypass = tuple(t.name for t in operator.tensors if t.name not in directive.keep)
    return found


def _directive(section: Section, path: Path, fields: Mapping[str, Any], kind: str, target: str,  # noqa: PLR0913, PLR0917
               design: Design, operator: Operator) -> list[Directive]:
    place = _target(section, path, target, kind, design, fields)
    if place is None:
        return []
    for name in set(fields) - _KNOWN:
        section.note((*path, name), "dropped", "not part of a directive that is known here")
    made = Directive(section, path, place, kind)
    if kind == "tensors":
        names = tuple(tensor.name for tensor in operator.tensors)
        for key in ("keep", "bypass"):
            if fields.get(key) is not None:
                given = tuple(str(name) for name in section.list(fields[key], (*path, key)))
                unknown = [name for name in given if name not in names]
                if unknown:
                    raise section.fail((*path, key), f"must be among {', '.join(names)}", ", ".join(unknown))
                setattr(made, key, given)
        return [made]
    made.factors = _factors(section, (*path, "factors"), fields.get("factors"), operator)
    made.permutation = _permutation(section, (*path, "permutation"), fields.get("permutation"), operator)
    if fields.get("split") is not None:
        made.split = section.whole(fields["split"], (*path, "split"), least=0)
    return [made]


def _target(section: Section, path: Path, target: str, kind: str,  # noqa: PLR0913, PLR0917
            design: Design, fields: Mapping[str, Any]) -> Place | None:
    """Return the place that is meant; None where nothing there can loop or keep (a dummy memory of an array)."""
    if kind == "spatial":
        spread = design.spread(target)
        if spread is not None:
            return spread
    memory = next((place for place in design.memories if place.name == target), None)
    if memory is not None and kind != "spatial":
        return memory
    if memory is None and design.spread(target) is None and target != design.compute.name:
        names = ", ".join(place.name for place in design.places[:-1])
        raise section.fail((*path, "target"), f"must be one of {names}", target)
    runs = [f for f in re.findall(r"\d+", str(fields.get("factors", ""))) if int(f) != 1]
    if kind != "tensors" and runs:
        where = "an array" if kind == "temporal" else "no array"
        raise section.fail(path, f"must not loop at {target}, which is {where}", str(fields.get("factors")))
    return None


def _factors(section: Section, path: Path, given: Any, operator: Operator) -> dict[str, Factor]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        given = [f"{name}={count}" for name, count in given.items()]
    text = given if isinstance(given, str) else " ".join(str(part) for part in section.list(given, path))
    found = {}
    for name, sign, count, remainder in _FACTOR.findall(text):
        if name not in operator.sizes:
            raise section.fail(path, f"must be factors of {', '.join(operator.sizes)}", f"{name}{sign}{count}")
        if name in found:
            raise section.fail(path, f"must give {name} once", text)
        found[name] = Factor(int(count), int(remainder) if remainder else None, sign or "=")
    left = _FACTOR.sub("", text).replace(",", " ").strip()
    if left:
        raise section.fail(path, "must be factors such as R=3 P=16, P=5,3 with a remainder", left)
    return found


def _permutation(section: Section, path: Path, given: Any, operator: Operator) -> tuple[str, ...]:
    if given is None:
        return ()
    names = list(operator.sizes)
    if not isinstance(given, str):
        parts = [str(part) for part in section.list(given, path)]
    elif "," in given or " " in given.strip() or given in names:
        parts = given.replace(",", " ").split()
    else:
        parts = list(given)
    unknown = [part for part in parts if part not in names]
    if unknown or len(set(parts)) < len(parts):
        raise section.fail(path, f"must name each of {', '.join(names)} at most once, innermost first", str(given))
    return tuple(parts)


def sides(directive: Directive) -> dict[str, Side]:
    """Return the side of the array for each dimension: those before the split go along X, the others along Y."""
    order = [*directive.permutation, *(name for name in directive.factors if name not in directive.permutation)]
    x, y = directive.place.mesh
    if directive.split is not None:
        return {name: "X" if index < directive.split else "Y" for index, name in enumerate(order)}
    if y == 1 or x == 1:
        return dict.fromkeys(order, "X" if y == 1 else "Y")
    chosen: dict[str, Side] = {}
    used = 1
    for name in order:
        used *= max(1, directive.factors[name].count) if name in directive.factors else 1
        chosen[name] = "X" if used <= x and "Y" not in chosen.values() else "Y"
    return chosen


def build_mapping(section: Section, directives: Sequence[Directive], design: Design, operator: Operator,
                  accelerator: Accelerator) -> Nest:
    """Return the mapping that directives describe; a factor of 0 stands for all that is left.

    Raises
    ------
    InputError
        If a place is looped at twice, or factors or remainders do not make up a dimension.
    """
    at = {}
    for directive in directives:
        key = (directive.place.name, directive.kind)
        if key in at:
            raise section.fail(directive.path, f"must be the only {directive.kind} directive of {key[0]}")
        at[key] = directive
    loops = {place.name: list(_loops(at.get((place.name, "spatial" if place.spreads else "temporal")), operator))
             for place in design.places[:-1]}
    steps = _steps(section, loops, operator)
    levels = []
    for level in accelerator.levels:
        made = tuple(Loop(name, steps[level.name, name], side) for name, _, side, _ in loops[level.name]
                     if (level.name, name) in steps)
        levels.append(LevelLoops(level.name, made, _keeps(at.get((level.name, "tensors")), level, operator)))
    return Nest(tuple(levels))


Spelt = tuple[str, Factor, Side | None, Directive]


def _loops(directive: Directive | None, operator: Operator) -> Iterator[Spelt]:
    """Yield the loops of a place, outermost first."""
    if directive is None:
        return
    named = [name for name in directive.permutation if name in directive.factors]
    order = [*named, *(name for name in operator.sizes if name in directive.factors and name not in named)]
    along = sides(directive) if directive.kind == "spatial" else {}
    for name in reversed(order):
        yield name, directive.factors[name], along.get(name), directive


def _steps(section: Section, loops: Mapping[str, list[Spelt]], operator: Operator) -> dict[tuple[str, str], int]:
    """Return the step of each loop that runs more than once."""
    steps = {}
    for dimension, size in operator.dimensions:
        chain = [(place, spelt) for place, listed in loops.items() for spelt in listed if spelt[0] == dimension]
        open_ends = [index for index, (_, spelt) in enumerate(chain) if spelt[1].count == 0]
        if len(open_ends) > 1:
            where = chain[open_ends[1]][1][3]
            raise where.section.fail((*where.path, "factors"), f"must leave the factor of {dimension} open once only")
        counts = [spelt[1].count for _, spelt in chain]
        if open_ends:
            known = 1
            for count in counts:
                known *= count or 1
            counts[open_ends[0]] = -(-size // known)
        step = 1
        for index in reversed(range(len(chain))):
            place, (_, factor, _, directive) = chain[index]
            last = (size - 1) // step % counts[index] + 1
            if factor.remainder is not None and factor.remainder != last:
                raise directive.section.fail(
                    (*directive.path, "factors"), f"must have the remainder of {dimension} that its size {size} "
                    f"leaves, {last}", factor.remainder)
            if counts[index] > 1:
                steps[place, dimension] = step
            step *= counts[index]
        outermost = next((count for count in counts if count > 1), 1)
        if step < size or -(-size // (step // outermost)) != outermost:
            at: Path = (*chain[0][1][3].path, "factors") if chain else ()
            raise section.fail(at, f"must make up {dimension}, of size {size}", step,
                               f"Factors of {dimension} must multiply to {size}, or just above it with remainders")
    return steps


def _keeps(directive: Directive | None, level: Any, operator: Operator) -> tuple[str, ...] | None:
    if directive is None or not isinstance(level, Memory):
        return None
    able = [tensor.name for tensor in operator.tensors if level.can_keep(tensor.name, tensor.role)]
    if directive.bypass is None and directive.keep is not None:
        kept = [name for name in able if name in directive.keep]
    else:
        kept = [name for name in able if name not in (directive.bypass or ())]
    return None if kept == able else tuple(kept)


def kept_by(directives: Sequence[Directive], operator: Operator) -> dict[str, tuple[str, ...]]:
    """Return what memories keep by the directives on tensors, by the memory's name."""
    return {directive.place.name: tuple(t.name for t in operator.tensors if t.name not in directive.bypass)
            for directive in directives if directive.kind == "tensors" and directive.bypass is not None}


def build_constraints(directives: Sequence[Directive], operator: Operator, accelerator: Accelerator) -> Constraints:
    """Return the restrictions that directives mean: factors by side of the array, orders, tensors kept."""
    keeps: dict[str, tuple[str, ...]] = {}
    orders: dict[str, tuple[tuple[str, ...], ...]] = {}
    factors: dict[str, dict[str, Bounds]] = {}
    outermost = accelerator.levels[0].name
    for directive in directives:
        name = directive.place.name
        if directive.kind == "tensors":
            kept = _keeps(directive, accelerator.level(name), operator)
            if kept is not None and name != outermost:
                keeps[name] = kept
        elif directive.kind == "temporal":
            if directive.permutation:
                inner = tuple(reversed(directive.permutation))
                whole = len(inner) == len(operator.sizes)
                orders[name] = (inner if whole else (ANY, *inner),)
            _bound(factors, name, directive.factors, operator)
        else:
            _bound_sides(factors, directive, operator)
    return Constraints(keeps=keeps, orders=orders, factors=factors)


def _bound(factors: dict[str, dict[str, Bounds]], place: str, given: Mapping[str, Factor], operator: Operator) -> None:
    for name, factor in given.items():
        size = operator.sizes[name]
        if factor.count:
            count = min(factor.count, size)
            least = 1 if factor.sign == "<=" else count
            most = None if factor.sign == ">=" else count
            factors.setdefault(place, {})[name] = Bounds(least, most)


def _bound_sides(factors: dict[str, dict[str, Bounds]], directive: Directive, operator: Operator) -> None:
    """Bound the factors on either side; where a split says so, a dimension has one side only."""
    along = sides(directive) if directive.split is not None else {}
    place = directive.place
    for side, length in zip(("X", "Y"), place.mesh, strict=True):
        if length == 1:
            continue
        other = {name for name, chosen in along.items() if chosen != side}
        if directive.split is not None:
            other |= {name for name in operator.sizes if name not in along and side == "X"}
        here = {name: factor for name, factor in directive.factors.items()
                if name not in other and (factor.count == 1 or name in along or 1 in place.mesh or factor.sign == "<=")}
        _bound(factors, f"{place.name}.{side}", here, operator)
        for name in other:
            factors.setdefault(f"{place.name}.{side}", {})[name] = Bounds(1, 1)

"""Timeloop's mappings and constraints, made ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tilewright.hardware import Accelerator, Memory
from tilewright.interop.sections import Section, Side
from tilewright.interop.timeloop.architecture import Design
from tilewright.interop.timeloop.directives import Directive, Factor, sides, split_sides
from tilewright.interop.timeloop.machine import role_of
from tilewright.mapping import ANY, Bounds, Constraints, LevelLoops, Loop
from tilewright.mapping import Mapping as Nest
from tilewright.workload import ROLES, Operator


def build_mapping(section: Section, directives: Sequence[Directive], design: Design, operator: Operator,
                  accelerator: Accelerator) -> Nest:
    """Return the mapping that directives describe; a factor of 0 stands for all that is left.

    Raises an `InputError` if a place is looped at twice, or factors or remainders do not make up a dimension.
    """
    at = {}
    for directive in directives:
        key = (directive.place.name, directive.kind)
        if key in at:
            raise directive.node.fail(f"must be the only {directive.kind} directive of {key[0]}")
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
    along = sides(directive, operator) if directive.kind == "spatial" else {}
    for name in reversed(order):
        yield name, directive.factors[name], along.get(name), directive


def _steps(section: Section, loops: Mapping[str, list[Spelt]], operator: Operator) -> dict[tuple[str, str], int]:
    """Return the step of each loop that runs more than once."""
    steps = {}
    for dimension, size in operator.dimensions:
        chain = [(place, spelt) for place, listed in loops.items() for spelt in listed if spelt[0] == dimension]
        open_ends = [index for index, (_, spelt) in enumerate(chain) if spelt[1].count == 0]
        if len(open_ends) > 1:
            where = chain[open_ends[1]][1][3].node["factors"]
            raise where.fail(f"must leave the factor of {dimension} open once only")
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
                raise directive.node["factors"].fail(f"must have the remainder of {dimension} that its size {size} "
                                                     f"leaves, {last}", factor.remainder)
            if counts[index] > 1:
                steps[place, dimension] = step
            step *= counts[index]
        outermost = next((count for count in counts if count > 1), 1)
        if step < size or -(-size // (step // outermost)) != outermost:
            at = chain[0][1][3].node["factors"] if chain else section.root
            raise at.fail(f"must make up {dimension}, of size {size}", step,
                          f"Factors of {dimension} must multiply to {size}, or just above it with remainders")
    return steps


def _keeps(directive: Directive | None, level: Any, operator: Operator) -> tuple[str, ...] | None:
    """Return the tensors that a directive leaves in a memory, None for all that it can keep."""
    if directive is None or not isinstance(level, Memory):
        return None
    able = [tensor.name for tensor in operator.tensors if level.can_keep(tensor.name, tensor.role)]
    unable = [name for name in directive.keep or () if name not in able]
    if unable:
        raise directive.node.fail(f"must keep only {', '.join(able) or 'nothing'} in {level.name}, which the others "
                                  "bypass", ", ".join(unable))
    kept = [name for name in able if name not in (directive.bypass or ())]
    return None if kept == able else tuple(kept)


def apart_in(directives: Sequence[Directive]) -> dict[str, frozenset[str]]:
    """Return the tensors that lanes do not share, by the name of their array."""
    found: dict[str, frozenset[str]] = {}
    for directive in directives:
        if directive.apart:
            found[directive.place.name] = found.get(directive.place.name, frozenset()) | set(directive.apart)
    return found


def kept_by(directives: Sequence[Directive], operator: Operator) -> dict[str, tuple[str, ...]]:
    """Return what memories keep by the directives on tensors, by the memory's name."""
    return {directive.place.name: tuple(t.name for t in operator.tensors if t.name not in directive.bypass)
            for directive in directives if directive.kind == "tensors" and directive.bypass is not None}


def kept_by_names(design: Design) -> dict[str, tuple[str, ...]]:
    """Return the roles that memories keep, as far as the tensors' names tell; all else needs a problem."""
    found: dict[str, tuple[str, ...]] = {}
    for place in design.places:
        for kind, fields in place.constraints.items():
            said = fields if isinstance(fields, Mapping) else {}
            named = {key: [role_of(str(name), None) for name in said.get(key) or ()]
                     for key in ("keep", "bypass", "keep_only", "bypass_only")}
            roles = [role for names in named.values() for role in names]
            if kind == "dataspace" and not place.spreads and set(roles) <= set(ROLES):
                kept = {*named["keep"], *named["keep_only"]}
                passed = {*named["bypass"], *named["bypass_only"]}
                found[place.name] = tuple(role for role in ROLES if (role in kept if kept else role not in passed))
            elif fields:
                place.node["constraints"][kind].dropped(
                    "it needs the problem whose tensors and dimensions it names")
    return found


def build_constraints(directives: Sequence[Directive], operator: Operator, accelerator: Accelerator) -> Constraints:
    """Return the restrictions that directives mean: factors by side of the array, orders, tensors kept."""
    keeps: dict[str, tuple[str, ...]] = {}
    orders: dict[str, tuple[tuple[str, ...], ...]] = {}
    factors: Limits = {}
    utilization: dict[str, float] = {}
    outermost = accelerator.levels[0].name
    for directive in directives:
        name = directive.place.name
        if directive.share is not None:
            utilization[name] = max(directive.share, utilization.get(name, 0.0))
        elif directive.kind == "tensors":
            kept = _bound_keeps(directive, accelerator.level(name), operator)
            if kept is not None and name != outermost:
                _once(directive, keeps, kept, "tensors")
        elif directive.kind == "temporal":
            if directive.permutation:
                inner = tuple(reversed(directive.permutation))
                whole = len(inner) == len(operator.sizes)
                _once(directive, orders, (inner if whole else (ANY, *inner),), "an order")
            for dim, factor in _all_factors(directive, operator).items():
                _bound(factors, name, (dim, factor), directive, operator)
        else:
            _bound_sides(factors, directive, operator)
    return Constraints(keeps=keeps, orders=orders, factors=factors, utilization=utilization)


def keeping_as(nest: Nest, constraints: Constraints, section: Section) -> Constraints:
    """Return constraints that also keep what a design's own mapping does, where memories are free to keep less."""
    chosen = {entry.level: entry.keeps for entry in nest.levels[1:]
              if entry.keeps is not None and entry.level not in constraints.keeps}
    for name, kept in chosen.items():
        section.root.approximated(f"what {name} keeps, which is open: {', '.join(kept) or 'nothing'}, as the mapping "
                                  "does")
    return replace(constraints, keeps={**constraints.keeps, **chosen})


Limits = dict[str, dict[str, Bounds]]
V = TypeVar("V")


def _once(directive: Directive, found: dict[str, V], value: V, what: str) -> None:
    name = directive.place.name
    if found.get(name, value) != value:
        raise directive.node.fail(f"must not give {name} {what} once more: another one is given")
    found[name] = value


def _bound_keeps(directive: Directive, level: Any, operator: Operator) -> tuple[str, ...] | None:
    """Return what a constraint leaves in a memory; what it neither keeps nor bypasses is taken to bypass it."""
    if directive.keep is not None and directive.bypass is None and isinstance(level, Memory):
        able = [tensor.name for tensor in operator.tensors if level.can_keep(tensor.name, tensor.role)]
        free = [name for name in able if name not in directive.keep]
        if free:
            directive.node.approximated(f"{', '.join(free)}, which {level.name} may keep or not: here it does not")
            directive = replace(directive, bypass=tuple(free))
    return _keeps(directive, level, operator)


def _bound(factors: Limits, place: str, given: tuple[str, Factor], directive: Directive, operator: Operator) -> None:
    name, factor = given
    size = operator.sizes[name]
    count = min(factor.count or size, size)
    held = factors.setdefault(place, {}).get(name, Bounds())
    mosts = [held.most, None if factor.sign == ">=" else count]
    most = min((number for number in mosts if number is not None), default=None)
    least = max(held.least, 1 if factor.sign == "<=" else count)
    if most is not None and least > most:
        raise directive.node["factors"].fail(f"must let {name} run as often at {place} as other constraints say, "
                                             f"{held}", f"{name}{factor.sign}{factor.count}")
    factors[place][name] = Bounds(least, most)


def _all_factors(directive: Directive, operator: Operator) -> dict[str, Factor]:
    """Return the factors that are given, and the most or least of all others."""
    found = dict(directive.factors)
    for name in operator.sizes:
        if name not in found and directive.most is not None:
            found[name] = Factor(directive.most, None, "<=")
        elif name not in found and directive.least is not None:
            found[name] = Factor(directive.least, None, ">=")
    return found


def _bound_sides(factors: Limits, directive: Directive, operator: Operator) -> None:
    """Bound the factors on either side; where a split says so, a dimension has one side only."""
    along = split_sides(directive, operator)
    place, given = directive.place, _all_factors(directive, operator)
    if directive.split is not None and len(along) < len(operator.sizes):
        directive.node["split"].approximated(f"a split at {directive.split} among dimensions that no permutation "
                                             "names: they may lie on either side, any number of them")
    lengths = dict(zip(("X", "Y"), place.mesh, strict=True))
    open_sides = [side for side, length in lengths.items() if length > 1]
    for name, factor in given.items():
        count = min(factor.count or operator.sizes[name], operator.sizes[name])
        chosen = [along[name]] if name in along else open_sides
        if count > 1 and factor.sign != "<=":
            if len(chosen) > 1:
                directive.node["factors"].dropped(f"{name}{factor.sign}{count} on both sides of {place.name} together: "
                                                  "a split would say on which")
                continue
            if lengths[chosen[0]] == 1:
                raise directive.node["factors"].fail(f"must not spread {name} along {chosen[0]}, where {place.name} "
                                                     "has one lane", f"{name}={count}")
        for side in chosen if count > 1 else open_sides:
            if side in open_sides:
                _bound(factors, f"{place.name}.{side}", (name, factor), directive, operator)
    for side in open_sides:
        for name in (name for name, chosen in along.items() if chosen != side):
            _bound(factors, f"{place.name}.{side}", (name, Factor(1, None, "=")), directive, operator)

"""Timeloop's directives, of mappings and constraints: factors, permutations, splits, tensors kept and passed by."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tilewright.interop.timeloop.architecture import Design, Place
from tilewright.interop.timeloop.source import Section
from tilewright.workload import Operator

_FACTOR = re.compile(r"([A-Za-z_]\w*?)\s*(<=|>=|==|=)?\s*([0-9]+)(?:,([0-9]+)(?=[\s,]|$))?")
_TENSOR_TYPES = ("dataspace", "datatype", "bypass", "bypassing")
_SHARE_TYPES = ("utilization", "parallelism")
_KNOWN = {"target", "name", "type", "attributes", "constraints"}
_LOOPS = _KNOWN | {"factors", "permutation", "default_max_factor", "default_min_factor", "factors_only",
                   "no_iteration_over_dataspaces", "must_iterate_over_dataspaces"}
_FIELDS = {
    "spatial": _LOOPS | {"split", "no_multicast_no_reduction", "no_reuse"},
    "temporal": _LOOPS,
    "tensors": _KNOWN | {"keep", "bypass", "keep_only", "bypass_only"},
    "share": _KNOWN | {"min"},
}
_DROPPED = {
    "no_link_transfer": "neighbours hand no words on in our counts; replay --as timeloop lets them",
    "no_temporal_reuse": "words are taken anew at every iteration: here they are kept as long as they can",
    "no_reuse": "words are taken anew at every iteration: here they are kept as long as they can",
    "rmw_on_first_writeback": "outputs start from zero without a read",
    "rmw_first_update": "outputs start from zero without a read",
    "passthrough": "tensors that pass through a memory: they are kept or bypass it",
    "no_coalesce": "accesses that are not coalesced",
    "remainders": "a limit on remainders: --tiling says which there may be",
    "maximize_dims": "factors that Timeloop's front end makes as large as they fit",
    "maximize_dims_capacity": "factors that Timeloop's front end makes as large as they fit",
}
Path = tuple[str | int, ...]
Side = Literal["X", "Y"]
OPEN: tuple[object, ...] = (None, [], {}, "")


@dataclass(frozen=True)
class Factor:
    """``P=5,3``: how often a loop runs (0: all that is left), how often in its last round, how the number binds."""

    count: int
    remainder: int | None
    sign: str


@dataclass
class Directive:
    """What is said of one target: loops in time, loops in space, tensors kept, or the least share of lanes in use.

    Parameters
    ----------
    most, least
        Of all factors that are not given.
    apart
        Tensors that lanes do not share.
    """

    section: Section
    path: Path
    place: Place
    kind: str
    factors: dict[str, Factor] = field(default_factory=dict)
    permutation: tuple[str, ...] = ()
    split: int | None = None
    keep: tuple[str, ...] | None = None
    bypass: tuple[str, ...] | None = None
    most: int | None = None
    least: int | None = None
    apart: tuple[str, ...] = ()
    share: float | None = None


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
        base = ("constraints",) if "targets" not in tree and "constraints" in tree else ("targets",)
        for name in tree:
            if name == "template":
                section.note((name,), "dropped", f"the map space {tree[name]}: --tiling says which factors may be")
            elif name not in {*base, "version"}:
                section.note((name,), "dropped", "not part of constraints that is known here")
        tree = tree.get(base[0]) or []
    reader = _Reader(section, design, operator)
    return [made for index, entry in enumerate(section.list(tree, base))
            for made in reader.entry((*base, index), section.mapping(entry, (*base, index)))]


def node_directives(design: Design, operator: Operator) -> list[Directive]:
    """Return the directives that stand at the nodes of a version 0.4 architecture.

    In parallel branches every tensor has one branch: what is kept in one passes by the others.
    """
    found: list[Directive] = []
    reader = _Reader(design.section, design, operator)
    for place in design.places:
        for kind, fields in place.constraints.items():
            path = (*place.path, "constraints", kind)
            if kind in ("temporal", "spatial", "dataspace") and isinstance(fields, Mapping):
                made = "tensors" if kind == "dataspace" else kind
                found += reader.directive(path, fields, made, place.name)
            elif fields not in OPEN:
                design.section.note(path, "dropped", f"constraints of kind {kind}")
    for directive in found:
        if directive.kind == "tensors" and directive.keep is not None and directive.bypass is None:
            rest = tuple(t.name for t in operator.tensors if t.name not in directive.keep)
            directive.bypass = rest
            if rest and not directive.place.branch:
                directive.section.note(directive.path, "approximated", f"{', '.join(rest)}, which "
                                       f"{directive.place.name} may keep or not: here it does not")
    return found


class _Reader:
    """Reads the directives of one section."""

    def __init__(self, section: Section, design: Design, operator: Operator) -> None:
        self.section, self.design, self.operator = section, design, operator
        self.tensors = tuple(tensor.name for tensor in operator.tensors)

    def entry(self, path: Path, fields: Mapping[str, Any]) -> Iterator[Directive]:
        """Yield what one entry of a list says; it may hold a list of its own, and attributes apart."""
        target = fields.get("target", fields.get("name"))
        if target is None:
            raise self.section.fail(path, "must have a target")
        listed = fields.get("constraints")
        if listed is not None:
            for index, inner in enumerate(self.section.list(listed, (*path, "constraints"))):
                at = (*path, "constraints", index)
                yield from self.entry(at, {"target": target, **self.section.mapping(inner, at)})
            return
        kind = str(fields.get("type", "temporal"))
        if kind == "max_overbooked_proportion":
            self.section.note(path, "dropped", "overbooking: tiles must fit")
            return
        if kind == "skew":
            raise self.section.fail(path, "must not skew loops, which cannot be said here", str(target))
        kind = "tensors" if kind in _TENSOR_TYPES else "share" if kind in _SHARE_TYPES else kind
        if kind not in ("temporal", "spatial", "tensors", "share"):
            raise self.section.fail((*path, "type"), "must be temporal, spatial, dataspace (datatype or bypass)", kind)
        apart = fields.get("attributes")
        if apart is not None:
            fields = {**self.section.mapping(apart, (*path, "attributes")), **fields}
        yield from self.directive(path, fields, kind, self._named(target, path))

    def _named(self, target: Any, path: Path) -> str:
        """Return a target's name; numbers count memories, innermost first."""
        if not isinstance(target, int) or isinstance(target, bool):
            return str(target)
        memories = self.design.memories
        if not 0 <= target < len(memories):
            raise self.section.fail((*path, "target"), f"must be from 0 to {len(memories) - 1}, or a name", target)
        return memories[-1 - target].name

    def directive(self, path: Path, fields: Mapping[str, Any], kind: str, target: str) -> Iterator[Directive]:
        """Yield what is said of a target, if anything there can loop or keep."""
        for name, value in fields.items():
            if name not in _FIELDS[kind] and value not in OPEN:
                self.section.note((*path, name), "dropped", _DROPPED.get(name, "not known here"))
        if kind == "share":
            yield from self._share(path, fields)
            return
        place = self._target(path, target, kind, fields)
        if place is None:
            return
        made = Directive(self.section, path, place, kind)
        if kind == "tensors":
            self._tensors(made, fields)
        else:
            self._loops(made, fields)
        yield made

    def _share(self, path: Path, fields: Mapping[str, Any]) -> Iterator[Directive]:
        """Yield the least share of all lanes in use, where one array makes up all lanes."""
        arrays = [place for place in self.design.places if place.spreads]
        share = self.section.number(fields.get("min"), (*path, "min"))
        if share < 0 or share > 1:
            raise self.section.fail((*path, "min"), "must be from 0 to 1", share)
        if len(arrays) == 1 and share > 0:
            yield Directive(self.section, path, arrays[0], "share", share=share)
        elif share > 0:
            self.section.note(path, "dropped", f"the least share of all lanes in use: there are {len(arrays)} arrays")

    def _tensors(self, made: Directive, fields: Mapping[str, Any]) -> None:
        for key in ("keep", "bypass"):
            if fields.get(key) is not None:
                setattr(made, key, self._list(fields[key], (*made.path, key)))
        for key, other in (("keep", "bypass"), ("bypass", "keep")):
            only = f"{key}_only"
            if fields.get(only) is not None:
                given = self._list(fields[only], (*made.path, only))
                setattr(made, key, given)
                setattr(made, other, tuple(name for name in self.tensors if name not in given))
        both = set(made.keep or ()) & set(made.bypass or ())
        if both:
            raise made.section.fail(made.path, "must not both keep and bypass a tensor", ", ".join(sorted(both)))
        if made.bypass and made.place is self.design.memories[0]:
            made.section.note(made.path, "approximated", f"{', '.join(made.bypass)} at the outermost memory: it keeps "
                              "all tensors")
            made.keep, made.bypass = self.tensors, ()

    def _list(self, given: Any, path: Path) -> tuple[str, ...]:
        """Return names of tensors; ``*`` stands for all."""
        names = tuple(str(name) for name in self.section.list(given, path))
        if "*" in names:
            return self.tensors
        unknown = [name for name in names if name not in self.tensors]
        if unknown:
            raise self.section.fail(path, f"must be among {', '.join(self.tensors)}", ", ".join(unknown))
        return names

    def _loops(self, made: Directive, fields: Mapping[str, Any]) -> None:
        section, path = self.section, made.path
        made.factors = _factors(section, (*path, "factors"), fields.get("factors"), self.operator)
        made.permutation = _permutation(section, (*path, "permutation"), fields.get("permutation"), self.operator)
        if fields.get("factors_only") is not None:
            only = _factors(section, (*path, "factors_only"), fields["factors_only"], self.operator)
            made.factors = {**made.factors, **only}
            self._still(made, set(self.operator.sizes) - set(made.factors))
        for key in ("no_iteration_over_dataspaces", "must_iterate_over_dataspaces"):
            if fields.get(key) not in OPEN:
                named = {dim for name in self._list(fields[key], (*path, key))
                         for dim in self.operator.tensor(name).dimensions}
                self._still(made, named if key.startswith("no") else set(self.operator.sizes) - named)
        for key, at in (("most", "default_max_factor"), ("least", "default_min_factor")):
            if fields.get(at) is not None:
                setattr(made, key, section.whole(fields[at], (*path, at)))
        if fields.get("split") is not None:
            made.split = section.whole(fields["split"], (*path, "split"), least=0)
        if made.kind == "spatial":
            made.apart = tuple(name for key in ("no_multicast_no_reduction", "no_reuse")
                               if fields.get(key) not in OPEN for name in self._list(fields[key], (*path, key)))

    def _still(self, made: Directive, dimensions: set[str]) -> None:
        """Let dimensions run once at a place, as some words of Timeloop's front end mean."""
        for name in (name for name in self.operator.sizes if name in dimensions):
            if made.factors.setdefault(name, Factor(1, None, "=")).count != 1:
                raise made.section.fail(made.path, f"must not both loop and not loop over {name}")

    def _target(self, path: Path, target: str, kind: str, fields: Mapping[str, Any]) -> Place | None:
        """Return the place that is meant; None where nothing there can loop or keep (a dummy memory of an array)."""
        design = self.design
        if kind == "spatial":
            spread = design.spread(target)
            if spread is not None:
                return spread
        memory = next((place for place in design.memories if place.name == target), None)
        if memory is not None and kind != "spatial":
            return memory
        if memory is None and design.spread(target) is None and target not in {design.compute.name, *design.dummies}:
            names = ", ".join(place.name for place in design.places[:-1])
            raise self.section.fail((*path, "target"), f"must be one of {names}", target)
        runs = [f for f in re.findall(r"\d+", str(fields.get("factors", ""))) if int(f) != 1]
        if kind != "tensors" and runs:
            where = "an array" if kind == "temporal" else "no array"
            raise self.section.fail(path, f"must not loop at {target}, which is {where}", str(fields.get("factors")))
        if kind == "tensors" and fields.get("keep"):
            raise self.section.fail((*path, "keep"), f"must keep nothing in {target}, which is no memory",
                                    str(fields["keep"]))
        return None


def _factors(section: Section, path: Path, given: Any, operator: Operator) -> dict[str, Factor]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        given = [f"{name}={count}" for name, count in given.items()]
    text = given if isinstance(given, str) else " ".join(str(part) for part in section.list(given, path))
    text = text.split("#")[0]
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
    """Return the dimensions of ``[P, Q]``, ``P,Q``, ``PQ`` or ``P QR``, innermost first."""
    if given is None:
        return ()
    names = list(operator.sizes)
    if isinstance(given, str):
        words = given.replace(",", " ").split()
        parts = words if all(word in names for word in words) else list("".join(words))
    else:
        parts = [str(part) for part in section.list(given, path)]
    unknown = [part for part in parts if part not in names]
    if unknown or len(set(parts)) < len(parts):
        raise section.fail(path, f"must name each of {', '.join(names)} at most once, innermost first", str(given))
    return tuple(parts)


def together(directives: Sequence[Directive], design: Design, operator: Operator) -> list[Directive]:
    """Return directives with all that is said of the loops of one array in one of them, as Timeloop's front end does.

    It also puts innermost what runs once there, if no permutation names it: a split counts those loops too.

    Raises
    ------
    InputError
        If two give an array different permutations or splits.
    """
    found: list[Directive] = []
    spatial: dict[str, Directive] = {}
    for directive in directives:
        if directive.kind != "spatial":
            found.append(directive)
        elif directive.place.name not in spatial:
            spatial[directive.place.name] = replace(directive, factors=dict(directive.factors))
            found.append(spatial[directive.place.name])
        else:
            _join(spatial[directive.place.name], directive)
    if design.by_front_end:
        for directive in spatial.values():
            once = (name for name, factor in directive.factors.items() if factor.count == 1)
            for name in (*once, *(name for name, size in operator.dimensions if size == 1)):
                if name not in directive.permutation:
                    directive.permutation = (name, *directive.permutation)
    return found


def _join(directive: Directive, other: Directive) -> None:
    first = directive.section.where(*directive.path)
    for what, mine, theirs in (("permutation", directive.permutation, other.permutation),
                               ("split", directive.split, other.split)):
        if mine not in ((), None) and theirs not in ((), None) and mine != theirs:
            raise other.section.fail((*other.path, what), f"must be {mine} as in {first}", theirs)
    for name, factor in other.factors.items():
        held = directive.factors.setdefault(name, factor)
        if held.count != factor.count:
            raise other.section.fail((*other.path, "factors"), f"must give {name} as in {first}: {held.count}",
                                     factor.count)
    directive.permutation = directive.permutation or other.permutation
    directive.split = other.split if directive.split is None else directive.split
    directive.most = other.most if directive.most is None else directive.most
    directive.least = other.least if directive.least is None else directive.least
    directive.apart = (*directive.apart, *other.apart)


def split_sides(directive: Directive, operator: Operator) -> dict[str, Side]:
    """Return the side of the array for each dimension by the split: those before it go along X, the others along Y.

    Dimensions that no permutation names come behind, in any order: where the split is among those, they may be on
    either side and are left out here.
    """
    split, order = directive.split, directive.permutation
    if split is None:
        return {}
    found: dict[str, Side] = {name: "X" if index < split else "Y" for index, name in enumerate(order)}
    if split <= len(order) or split >= len(operator.sizes):
        found |= {name: "Y" if split <= len(order) else "X" for name in operator.sizes if name not in order}
    return found


def sides(directive: Directive, operator: Operator) -> dict[str, Side]:
    """Return the side of the array for each dimension of a mapping that gives factors."""
    if directive.split is not None:
        rest = (name for name in operator.sizes if name not in directive.permutation)
        return split_sides(replace(directive, permutation=(*directive.permutation, *rest)), operator)
    order = [*directive.permutation, *(name for name in directive.factors if name not in directive.permutation)]
    x, y = directive.place.mesh
    if y == 1 or x == 1:
        return dict.fromkeys(order, "X" if y == 1 else "Y")
    chosen: dict[str, Side] = {}
    used = 1
    for name in order:
        used *= max(1, directive.factors[name].count) if name in directive.factors else 1
        chosen[name] = "X" if used <= x and "Y" not in chosen.values() else "Y"
    return chosen

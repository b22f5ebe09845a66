"""Timeloop's directives, of mappings and constraints: factors, permutations, splits, tensors kept and passed by."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.interop.sections import Node, Section, Side
from tilewright.interop.timeloop.architecture import Design, Place
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
OPEN: tuple[object, ...] = (None, [], {}, "")


@dataclass(frozen=True)
class Factor:
    """``P=5,3``: how often a loop runs (0: all that is left), how often in its last round, how the number binds."""

    count: int
    remainder: int | None
    sign: str


@dataclass
class Directive:
    """What is said of one target: loops in time, loops in space, tensors kept, or the least share of lanes in use."""

    node: Node
    place: Place
    kind: str
    factors: dict[str, Factor] = field(default_factory=dict)
    permutation: tuple[str, ...] = ()
    split: int | None = None
    keep: tuple[str, ...] | None = None
    bypass: tuple[str, ...] | None = None
    most: int | None = None
    least: int | None = None
    """Of all factors that are not given."""
    apart: tuple[str, ...] = ()
    """Tensors that lanes do not share."""
    share: float | None = None


def read_directives(section: Section, design: Design, operator: Operator) -> list[Directive]:
    """Return the directives of a ``mapping`` or constraints section, checked against names.

    Raises an `InputError` with file and line, where a target, type, dimension or tensor is unknown or a number wrong.
    """
    listed = section.root
    if isinstance(section.tree, Mapping):
        base = "constraints" if "targets" not in listed and "constraints" in listed else "targets"
        for name, said in section.tree.items():
            if name == "template":
                listed[name].dropped(f"the map space {said}: --tiling says which factors may be")
            elif name not in {base, "version"}:
                listed[name].dropped("not part of constraints that is known here")
        listed = listed.at(base, section.tree.get(base) or [])
    reader = _Reader(design, operator)
    return [made for entry in listed.items() for made in reader.entry(entry)]


def node_directives(design: Design, operator: Operator) -> list[Directive]:
    """Return the directives that stand at the nodes of a version 0.4 architecture.

    In parallel branches every tensor has one branch: what is kept in one passes by the others.
    """
    found: list[Directive] = []
    reader = _Reader(design, operator)
    for place in design.places:
        for kind, fields in place.constraints.items():
            node = place.node["constraints"].at(kind, fields)
            if kind in ("temporal", "spatial", "dataspace") and isinstance(fields, Mapping):
                found += reader.directive(node, "tensors" if kind == "dataspace" else kind, place.name)
            elif fields not in OPEN:
                node.dropped(f"constraints of kind {kind}")
    for directive in found:
        if directive.kind == "tensors" and directive.keep is not None and directive.bypass is None:
            rest = tuple(t.name for t in operator.tensors if t.name not in directive.keep)
            directive.bypass = rest
            if rest and not directive.place.branch:
                directive.node.approximated(f"{', '.join(rest)}, which {directive.place.name} may keep or not: here it "
                                            "does not")
    return found


class _Reader:
    """Reads directives."""

    def __init__(self, design: Design, operator: Operator) -> None:
        self.design, self.operator = design, operator
        self.tensors = tuple(tensor.name for tensor in operator.tensors)

    def entry(self, node: Node) -> Iterator[Directive]:
        """Yield what one entry of a list says; it may hold a list of its own, and attributes apart."""
        fields = node.fields()
        target = fields.get("target", fields.get("name"))
        if target is None:
            raise node.fail("must have a target")
        if fields.get("constraints") is not None:
            for inner in node["constraints"].items():
                yield from self.entry(replace(inner, value={"target": target, **inner.fields()}))
            return
        kind = str(fields.get("type", "temporal"))
        if kind == "max_overbooked_proportion":
            node.dropped("overbooking: tiles must fit")
            return
        if kind == "skew":
            raise node.fail("must not skew loops, which cannot be said here", str(target))
        kind = "tensors" if kind in _TENSOR_TYPES else "share" if kind in _SHARE_TYPES else kind
        if kind not in ("temporal", "spatial", "tensors", "share"):
            raise node["type"].fail("must be temporal, spatial, dataspace (datatype or bypass)", kind)
        if fields.get("attributes") is not None:
            node = replace(node, value={**node["attributes"].fields(), **fields})
        yield from self.directive(node, kind, self._named(target, node))

    def _named(self, target: Any, node: Node) -> str:
        """Return a target's name; numbers count memories, innermost first."""
        if not isinstance(target, int) or isinstance(target, bool):
            return str(target)
        memories = self.design.memories
        if not 0 <= target < len(memories):
            raise node["target"].fail(f"must be from 0 to {len(memories) - 1}, or a name", target)
        return memories[-1 - target].name

    def directive(self, node: Node, kind: str, target: str) -> Iterator[Directive]:
        """Yield what is said of a target, if anything there can loop or keep."""
        for name, value in node.value.items():
            if name not in _FIELDS[kind] and value not in OPEN:
                node[name].dropped(_DROPPED.get(name, "not known here"))
        if kind == "share":
            yield from self._share(node)
            return
        place = self._target(node, target, kind)
        if place is None:
            return
        made = Directive(node, place, kind)
        if kind == "tensors":
            self._tensors(made)
        else:
            self._loops(made)
        yield made

    def _share(self, node: Node) -> Iterator[Directive]:
        """Yield the least share of all lanes in use, where one array makes up all lanes."""
        arrays = [place for place in self.design.places if place.spreads]
        share = node["min"].number()
        if share < 0 or share > 1:
            raise node["min"].fail("must be from 0 to 1", share)
        if len(arrays) == 1 and share > 0:
            yield Directive(node, arrays[0], "share", share=share)
        elif share > 0:
            node.dropped(f"the least share of all lanes in use: there are {len(arrays)} arrays")

    def _tensors(self, made: Directive) -> None:
        for key in ("keep", "bypass"):
            if made.node[key].value is not None:
                setattr(made, key, self._list(made.node[key]))
        for key, other in (("keep", "bypass"), ("bypass", "keep")):
            if made.node[f"{key}_only"].value is not None:
                names = self._list(made.node[f"{key}_only"])
                setattr(made, key, names)
                setattr(made, other, tuple(name for name in self.tensors if name not in names))
        both = set(made.keep or ()) & set(made.bypass or ())
        if both:
            raise made.node.fail("must not both keep and bypass a tensor", ", ".join(sorted(both)))
        if made.bypass and made.place is self.design.memories[0]:
            made.node.approximated(f"{', '.join(made.bypass)} at the outermost memory: it keeps all tensors")
            made.keep, made.bypass = self.tensors, ()

    def _list(self, given: Node) -> tuple[str, ...]:
        """Return names of tensors; ``*`` stands for all."""
        names = tuple(given.texts())
        if "*" in names:
            return self.tensors
        unknown = [name for name in names if name not in self.tensors]
        if unknown:
            raise given.fail(f"must be among {', '.join(self.tensors)}", ", ".join(unknown))
        return names

    def _loops(self, made: Directive) -> None:
        node = made.node
        made.factors = _factors(node["factors"], self.operator)
        made.permutation = _permutation(node["permutation"], self.operator)
        if node["factors_only"].value is not None:
            made.factors = {**made.factors, **_factors(node["factors_only"], self.operator)}
            self._still(made, set(self.operator.sizes) - set(made.factors))
        for key in ("no_iteration_over_dataspaces", "must_iterate_over_dataspaces"):
            if node[key].value not in OPEN:
                named = {dim for name in self._list(node[key]) for dim in self.operator.tensor(name).dimensions}
                self._still(made, named if key.startswith("no") else set(self.operator.sizes) - named)
        for key, least, at in (("most", 1, "default_max_factor"), ("least", 1, "default_min_factor"),
                               ("split", 0, "split")):
            if node[at].value is not None:
                setattr(made, key, node[at].whole(least=least))
        if made.kind == "spatial":
            made.apart = tuple(name for key in ("no_multicast_no_reduction", "no_reuse")
                               if node[key].value not in OPEN for name in self._list(node[key]))

    def _still(self, made: Directive, dimensions: set[str]) -> None:
        """Let dimensions run once at a place, as some words of Timeloop's front end mean."""
        for name in (name for name in self.operator.sizes if name in dimensions):
            if made.factors.setdefault(name, Factor(1, None, "=")).count != 1:
                raise made.node.fail(f"must not both loop and not loop over {name}")

    def _target(self, node: Node, target: str, kind: str) -> Place | None:
        """Return the place that is meant; None where nothing there can loop or keep (a dummy memory of an array)."""
        design, spread = self.design, self.design.spread(target)
        memory = next((place for place in design.memories if place.name == target), None)
        found = spread if kind == "spatial" else memory
        if found is not None:
            return found
        if memory is None and spread is None and target not in {design.compute.name, *design.dummies}:
            raise node["target"].fail(f"must be one of {', '.join(place.name for place in design.places[:-1])}", target)
        factors, keep = str(node.get("factors", "").value), node["keep"]
        if kind != "tensors" and any(int(count) != 1 for count in re.findall(r"\d+", factors)):
            where = "an array" if kind == "temporal" else "no array"
            raise node.fail(f"must not loop at {target}, which is {where}", factors)
        if kind == "tensors" and keep.value:
            raise keep.fail(f"must keep nothing in {target}, which is no memory", str(keep.value))
        return None


def _factors(node: Node, operator: Operator) -> dict[str, Factor]:
    given = node.value
    if given is None:
        return {}
    if isinstance(given, Mapping):
        text = " ".join(f"{name}={count}" for name, count in given.items())
    else:
        text = given if isinstance(given, str) else " ".join(node.texts())
    text = text.split("#")[0]
    found = {}
    for name, sign, count, remainder in _FACTOR.findall(text):
        if name not in operator.sizes:
            raise node.fail(f"must be factors of {', '.join(operator.sizes)}", f"{name}{sign}{count}")
        if name in found:
            raise node.fail(f"must give {name} once", text)
        found[name] = Factor(int(count), int(remainder) if remainder else None, sign or "=")
    left = _FACTOR.sub("", text).replace(",", " ").strip()
    if left:
        raise node.fail("must be factors such as R=3 P=16, P=5,3 with a remainder", left)
    return found


def _permutation(node: Node, operator: Operator) -> tuple[str, ...]:
    """Return the dimensions of ``[P, Q]``, ``P,Q``, ``PQ`` or ``P QR``, innermost first."""
    given, names = node.value, list(operator.sizes)
    if given is None:
        return ()
    if isinstance(given, str):
        words = given.replace(",", " ").split()
        parts = words if all(word in names for word in words) else list("".join(words))
    else:
        parts = node.texts()
    if not set(parts) <= set(names) or len(set(parts)) < len(parts):
        raise node.fail(f"must name each of {', '.join(names)} at most once, innermost first", str(given))
    return tuple(parts)


def together(directives: Sequence[Directive], design: Design, operator: Operator) -> list[Directive]:
    """Return directives with all that is said of the loops of one array in one of them, as Timeloop's front end does.

    It also puts innermost what runs once there, if no permutation names it: a split counts those loops too.

    Raises an `InputError` if two give an array different permutations or splits.
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
    first = directive.node.where
    for what, mine, theirs in (("permutation", directive.permutation, other.permutation),
                               ("split", directive.split, other.split)):
        if mine not in ((), None) and theirs not in ((), None) and mine != theirs:
            raise other.node[what].fail(f"must be {mine} as in {first}", theirs)
    for name, factor in other.factors.items():
        held = directive.factors.setdefault(name, factor)
        if held.count != factor.count:
            raise other.node["factors"].fail(f"must give {name} as in {first}: {held.count}", factor.count)
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

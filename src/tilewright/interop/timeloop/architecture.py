"""Timeloop's architectures (versions 0.3 and 0.4) as places: memories, arrays and the compute unit, outermost first."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.interop.timeloop.attributes import SPELLINGS, kind_of, names_used, note_attributes
from tilewright.interop.timeloop.source import Section

DUMMY = "dummy_storage"
_RANGE = re.compile(r"(?P<name>[^\[\]<>]+?)\s*(?:[\[<](?P<first>[^\[\]<>]+?)\.\.(?P<last>[^\[\]<>]+?)[\]>])?")
_FIELDS = {"!", "name", "class", "subclass", "attributes", "spatial", "constraints", "sparse_optimizations", "enabled",
           "required_actions", "nodes", "local", "subtree", "networks"}
"""What is read of a node; required actions only say what must be estimated."""
_DUMMY_NAME = re.compile(r"inter_(.+)_spatial")
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """A node of an architecture: a memory, the compute unit, or a spread of what follows.

    Parameters
    ----------
    attributes
        Its own, and what it inherits; the class and subclass as ``class``.
    mesh
        How often what follows is there, along X and Y, beside this; ``(1, 1)`` but for spreads.
    aliases
        Names by which mappings and constraints mean it.
    branch
        Whether it stands in parallel with others: then each tensor has its own branch.
    """

    name: str
    kind: str
    path: Path
    attributes: Mapping[str, Any]
    constraints: Mapping[str, Any] = field(default_factory=dict)
    mesh: tuple[int, int] = (1, 1)
    aliases: tuple[str, ...] = ()
    branch: bool = False

    @property
    def spreads(self) -> bool:
        """Whether it is an array of what follows."""
        return self.kind == "spread"


@dataclass(frozen=True)
class Design:
    """An architecture as places, outermost first; the last is the compute unit.

    Parameters
    ----------
    dummies
        Memories that hold nothing: there only so that an array can stand between them.
    """

    section: Section
    name: str
    places: tuple[Place, ...]
    cycle_seconds: float
    technology: str
    dummies: frozenset[str] = frozenset()

    @property
    def memories(self) -> tuple[Place, ...]:
        """The memories, outermost first."""
        return tuple(place for place in self.places if place.kind == "memory")

    @property
    def by_front_end(self) -> bool:
        """Whether it is as Timeloop's front end reads it (version 0.4), not the program itself."""
        return "nodes" in self.section.tree

    @property
    def compute(self) -> Place:
        """The compute unit."""
        return self.places[-1]

    def spread(self, target: str) -> Place | None:
        """Return the spread that a mapping's ``target`` means, if any."""
        return next((place for place in self.places if place.spreads and target in (place.name, *place.aliases)), None)


def read_design(section: Section, variables: Mapping[str, Any]) -> Design:
    """Return the places of an ``architecture`` section, of version 0.4 (``nodes``) or 0.3 (``subtree``).

    Raises
    ------
    InputError
        If it is neither, or has no memory or compute unit.
    """
    tree = section.mapping(section.tree, ())
    reader = _Reader(section, dict(variables))
    if "nodes" in tree:
        places = list(reader.nodes(tree["nodes"], ("nodes",)))
    elif "subtree" in tree or "local" in tree:
        places = list(reader.levels(tree))
    else:
        raise section.fail((), "must have nodes (version 0.4) or a subtree (version 0.3)", ", ".join(tree) or "nothing")
    section.note_unknown((), {"version", "nodes", "subtree", "local", "attributes"})
    leaves = [index for index, place in enumerate(places) if not place.spreads]
    if len(leaves) < 2:
        raise section.fail((), "must have a memory and a compute unit", len(leaves))
    places = places[:leaves[-1] + 1]
    if places[-1].kind != "compute":
        raise section.fail(places[-1].path, "must be a compute unit, as nothing else follows",
                           f"class {places[-1].attributes['class']}",
                           "Timeloop knows a compute unit by a class such as mac, intmac or compute")
    if places[0].spreads:
        raise section.fail(places[0].path, "must begin with a memory, not with an array", places[0].name)
    names = [place.name for place in places]
    twice = next((place for place in places if names.count(place.name) > 1), None)
    if twice:
        raise section.fail(twice.path, "must have a name of its own", twice.name)
    found = reader.inherited
    seconds = section.number(found.get("global_cycle_seconds", 1e-9), (), found)
    if seconds <= 0:
        raise section.fail((), "must have positive global_cycle_seconds", seconds)
    return Design(section, _name(section), tuple(places), seconds, str(found.get("technology", "")),
                  frozenset(reader.dummies))


def _name(section: Section) -> str:
    """Return the name of the outermost container, or that of the file."""
    nodes = section.tree.get("nodes") or section.tree.get("subtree") or [{}]
    first = nodes[0]
    named = first.get("!", "!Container") == "!Container" and "name" in first
    return str(first["name"]) if named else section.label.removesuffix(".yaml").removesuffix(".yml")


class _Reader:
    """Reads places; ``inherited`` are the attributes that hold for all that follows."""

    def __init__(self, section: Section, variables: dict[str, Any]) -> None:
        self.section, self.inherited = section, variables
        self.used = {*names_used(section.tree), *names_used(variables)}
        self.dummies: list[str] = []

    def nodes(self, nodes: Any, path: Path, branch: bool = False) -> Iterator[Place]:
        """Yield the places of version 0.4; attributes of a container hold for all that follows."""
        for index, node in enumerate(self.section.list(nodes, path)):
            at = (*path, index)
            fields = self.section.mapping(node, at)
            tag = fields.get("!", "!Component")
            if tag in ("!Parallel", "!Hierarchical", "!Pipelined"):
                self.section.note_unknown(at, {"!", "nodes"})
                yield from self.nodes(fields.get("nodes", []), (*at, "nodes"), tag == "!Parallel")
            elif tag in ("!Component", "!Container"):
                yield from self._node(fields, at, branch)
            elif tag != "!Nothing":
                self.section.note(at, "dropped", f"a node of kind {tag}")

    def _node(self, fields: Mapping[str, Any], at: Path, branch: bool) -> Iterator[Place]:
        """Yield the array that a container or component stands for, and the component itself."""
        section = self.section
        if "name" not in fields:
            raise section.fail(at, "must have a name")
        name, contains = str(fields["name"]), fields.get("!") == "!Container"
        if fields.get("enabled") in (False, "false", "False"):
            section.note(at, "dropped", f"{name}, which is not enabled")
            return
        attributes = self._attributes(fields, at)
        if contains:
            self.inherited.update(attributes)
        constraints = section.mapping(fields.get("constraints") or {}, (*at, "constraints"))
        mesh, aliases = self._mesh(fields, at), (name, f"inter_{name}_spatial")
        rest = {kind: said for kind, said in constraints.items() if kind != "spatial" and said}
        if mesh != (1, 1):
            spread = {"spatial": constraints["spatial"]} if constraints.get("spatial") else {}
            yield Place(aliases[0 if contains else 1], "spread", at, {}, spread, mesh, aliases)
        elif constraints.get("spatial"):
            section.note((*at, "constraints", "spatial"), "dropped",
                         f"spatial constraints of {name}, which is no array")
        if contains:
            for what in (*(("constraints", kind) for kind in rest), ("sparse_optimizations",)):
                if section.at((*at, *what)):
                    section.note((*at, *what), "dropped", f"{name} is a container, no memory")
        elif kind := self._kind(fields, at):
            yield Place(name, kind, at, {**self.inherited, **attributes, "class": _class(fields)}, rest, branch=branch)

    def _attributes(self, fields: Mapping[str, Any], at: Path) -> Mapping[str, Any]:
        """Return a node's own attributes, once what is not honoured of the node is noted."""
        attributes = self.section.mapping(fields.get("attributes") or {}, (*at, "attributes"))
        if attributes:
            note_attributes(self.section, (*at, "attributes"), self.used)
        self.section.note_unknown(at, _FIELDS)
        if fields.get("networks"):
            self.section.note((*at, "networks"), "dropped", "networks: arrays multicast and add, at no energy")
        return attributes

    def _kind(self, fields: Mapping[str, Any], at: Path) -> str:
        """Return what a component is; nothing where it is no place that words pass through."""
        kind = kind_of(fields.get("class", ""))
        if kind == "network":
            self.section.note(at, "dropped", f"the network {fields['name']}: arrays multicast and add, at no energy")
        elif not kind:
            self.section.note(at, "dropped", f"{fields['name']}, of a class that Timeloop passes over: "
                              f"{fields.get('class') or 'none'}")
        return "" if kind == "network" else kind

    def _mesh(self, fields: Mapping[str, Any], path: Path) -> tuple[int, int]:
        section = self.section
        spatial = section.mapping(fields.get("spatial") or {}, (*path, "spatial"))
        section.note_unknown((*path, "spatial"), {"meshX", "meshY"})
        x, y = (section.whole(spatial.get(side, 1), (*path, "spatial", side), self.inherited)
                for side in ("meshX", "meshY"))
        return x, y

    def levels(self, tree: Mapping[str, Any]) -> Iterator[Place]:
        """Yield the places of version 0.3: numbers of instances tell where arrays are; the compute unit comes last."""
        section, before, before_x, outer = self.section, 1, 1, ""
        found = [entry for entry in self._locals(tree, (), 1) if entry[1]]
        taken = {self._counted(fields["name"], path)[0] for fields, _, path, _ in found}
        for fields, kind, path, copies in sorted(found, key=lambda entry: entry[1] == "compute"):
            name, own = self._counted(fields.get("name"), path)
            attributes = section.mapping(fields.get("attributes") or {}, (*path, "attributes"))
            count = own * copies
            if attributes.get("instances") is not None:
                count = section.whole(attributes["instances"], (*path, "attributes", "instances"), self.inherited)
            if count % before:
                raise section.fail(path, f"must have a multiple of the {before} instances outside it", count)
            side = section.whole(attributes.get("meshX") or 0, (*path, "attributes", "meshX"), self.inherited, least=0)
            ratio, x = count // before, side // before_x if side and side % before_x == 0 else 0
            if ratio > 1:
                if not x or ratio % x:
                    x = ratio
                spread = named[1] if (named := _DUMMY_NAME.fullmatch(outer)) and named[1] not in taken else (
                    outer if named else f"{outer}_fanout")
                yield Place(spread, "spread", path, {}, {}, (x, ratio // x), (outer, spread))
            if _is_dummy(fields, attributes):
                self.dummies.append(name)
            else:
                yield Place(name, kind, path, {**self.inherited, **attributes, "class": _class(fields)})
            before, before_x, outer = count, side or before_x * (x or 1), name

    def _locals(self, tree: Mapping[str, Any], path: Path,
                copies: int) -> Iterator[tuple[Mapping[str, Any], str, Path, int]]:
        section = self.section
        self.inherited.update(self._attributes(tree, path) if path else
                              section.mapping(tree.get("attributes") or {}, ("attributes",)))
        for index, local in enumerate(section.list(tree.get("local") or [], (*path, "local"))):
            at = (*path, "local", index)
            fields = section.mapping(local, at)
            if "name" not in fields:
                raise section.fail(at, "must have a name")
            if fields.get("enabled") in (False, "false", "False"):
                section.note(at, "dropped", f"{fields['name']}, which is not enabled")
                continue
            self._attributes(fields, at)
            yield fields, self._kind(fields, at), at, copies
        for index, inner in enumerate(section.list(tree.get("subtree") or [], (*path, "subtree"))):
            at = (*path, "subtree", index)
            below = section.mapping(inner, at)
            _, own = self._counted(below.get("name", "subtree"), at)
            yield from self._locals(below, at, copies * own)

    def _counted(self, name: Any, path: Path) -> tuple[str, int]:
        """Return the name and number of ``PE[0..255]`` or ``PE<0..255>``."""
        match, section = _RANGE.fullmatch(str(name)), self.section
        if match is None:
            raise section.fail((*path, "name"), "must be a name, with a range such as PE[0..15] where there are "
                               "several", str(name))
        if match["first"] is None:
            return match["name"], 1
        first, last = (section.whole(match[end], (*path, "name"), self.inherited, least=0) for end in ("first", "last"))
        if last < first:
            raise section.fail((*path, "name"), "must have a range that does not run backwards", str(name))
        return match["name"], last - first + 1


def _class(fields: Mapping[str, Any]) -> str:
    """Return class and subclass."""
    return f"{fields.get('class', '')} {fields.get('subclass') or ''}".strip()


def _is_dummy(fields: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Whether a memory can hold nothing."""
    return str(fields.get("class", "")) == DUMMY or any(
        attributes.get(name) in (0, "0") for kind in ("depth", "entries", "kilobytes") for name in SPELLINGS[kind])

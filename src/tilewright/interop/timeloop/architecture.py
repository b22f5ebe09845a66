"""Timeloop's architectures (versions 0.3 and 0.4) as places: memories, arrays and the compute unit, outermost first.

Attributes of components are those that are read, those that change nothing here, and those to be told. Names and
meanings are those of Timeloop's buffers (``BufferLevel::ParseSpecs``) and of the storage attributes of its front end.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.interop.sections import Node, Section

BUFFERS = ("DRAM", "SRAM", "regfile", "smartbuffer", "storage")
COMPUTES = ("mac", "compute")
NETWORKS = ("XY_NoC", "Legacy", "ReductionTree", "SimpleMulticast")
"""Timeloop tells what a component is by these parts of its class, and passes over all others."""

SPELLINGS: dict[str, tuple[str, ...]] = {
    "depth": ("depth", "memory_depth", "data_storage_depth"),
    "entries": ("entries",),
    "kilobytes": ("sizeKB",),
    "width": ("width", "memory_width", "data_storage_width"),
    "word": ("datawidth", "word-bits", "word_bits", "word_width"),
    "block": ("block-size", "block_size", "n_words"),
    "cluster": ("cluster-size", "cluster_size"),
    "read": ("read_bandwidth",),
    "write": ("write_bandwidth",),
    "shared": ("shared_bandwidth",),
    "both": ("bandwidth",),
    "buffering": ("multiple_buffering", "multiple-buffering"),
    "energy": ("vector-access-energy", "vector_access_energy"),
    "bits": ("width", "multiplier_width", "datawidth", "word-bits", "word_bits"),
}
"""What is read of a component, and how files spell it."""

READ = {name for names in SPELLINGS.values() for name in names} | {
    "technology", "global_cycle_seconds", "type", "instances", "meshX", "meshY", "class"}

ESTIMATED = {
    "adder_width", "multiplier_width", "exponent", "mantissa", "num_pipeline_stages", "latency", "cycle_time",
    "voltage", "n_banks", "num_banks", "num-banks", "n_ports", "num_ports", "num-ports", "nports", "n_rd_ports",
    "n_wr_ports",
    "n_rw_ports", "n_rdwr_ports", "update_fifo_depth", "metadata_counter_width", "max_fanout", "vdd", "temperature",
    "action_latency_cycles", "area_scale", "energy_scale", "n_bits", "precision", "version", "comment", "description",
}
"""What only estimates of energy and area ask for: those come from the ERT, or from our tables (which is told)."""

METADATA = {"metadata_storage_width", "metadata_storage_depth", "metadata_datawidth", "metadata_block_size",
            "decompression_supported", "compression_supported"}
"""What only compressed tensors ask for; the formats say what is kept of them."""

_OFF: tuple[object, ...] = (None, False, 0, 0.0, "", "false", "False", "no", {}, [])
NEUTRAL: dict[str, tuple[tuple[object, ...], str]] = {
    "has_power_gating": (_OFF, "power gating: leakage is that of all instances"),
    "power_gated_at": ((None, ""), "power gating: leakage is that of all instances"),
    "min_utilization": (_OFF, "a least share of the memory that tiles must fill"),
    "min-utilization": (_OFF, "a least share of the memory that tiles must fill"),
    "reduction_supported": ((None, True, "true", "True", "yes"), "a memory that cannot add: it is taken to"),
    "network_fill_latency": (_OFF, "the latency of the network"),
    "network_drain_latency": (_OFF, "the latency of the network"),
    "per_dataspace_bandwidth_consumption_scale": (_OFF, "bandwidths that differ from tensor to tensor"),
    "allow_overbooking": (_OFF, "overbooking: tiles must fit"),
    "concordant_compressed_tile_traversal": (_OFF, "the order in which compressed tiles are read"),
    "tile_partition_supported": (_OFF, "tiles of compressed tensors that are cut while it runs"),
    "addr-gen-energy": (_OFF, "the energy of generating addresses"),
    "cluster-area": (_OFF, "the area of a cluster"),
    "network-word-bits": ((None,), "the width of the network's words: energy of networks is not counted"),
    "network_word_bits": ((None,), "the width of the network's words: energy of networks is not counted"),
    "network_read": ((None,), "which network serves reads: all serve all"),
    "network_fill": ((None,), "which network serves fills: all serve all"),
    "network_drain": ((None,), "which network serves drains: all serve all"),
    "network_update": ((None,), "which network serves updates: all serve all"),
    "router-energy": (_OFF, "energy of the network"), "wire-energy": (_OFF, "energy of the network"),
}
"""Values with which an attribute changes nothing, and what any other would have said."""

_POWER_OFF = {"power_gated_at"}
_NAME = re.compile(r"[A-Za-z_]\w*")
DUMMY = "dummy_storage"
_RANGE = re.compile(r"(?P<name>[^\[\]<>]+?)\s*(?:[\[<](?P<first>[^\[\]<>]+?)\.\.(?P<last>[^\[\]<>]+?)[\]>])?")
_FIELDS = {"!", "name", "class", "subclass", "attributes", "spatial", "constraints", "sparse_optimizations", "enabled",
           "required_actions", "nodes", "local", "subtree", "networks"}
"""What is read of a node; required actions only say what must be estimated."""
_DUMMY_NAME = re.compile(r"inter_(.+)_spatial")


def kind_of(name: object) -> str:
    """Return what Timeloop takes a class for: ``memory``, ``compute``, ``network``, or nothing."""
    text = str(name)
    if any(part in text for part in BUFFERS):
        return "memory"
    if any(part in text for part in COMPUTES):
        return "compute"
    return "network" if any(part in text for part in NETWORKS) else ""


def names_used(tree: Any) -> Iterator[str]:
    """Yield the names that stand in expressions anywhere in a tree."""
    if isinstance(tree, Mapping):
        for value in tree.values():
            yield from names_used(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from names_used(value)
    elif isinstance(tree, str):
        yield from _NAME.findall(tree)


def note_attributes(attributes: Node, used: set[str]) -> None:
    """Note those of a node's attributes that say something which is not honoured; ``used`` are names in expressions."""
    given = attributes.fields(empty=True)
    gated = given.get("has_power_gating") not in _OFF
    for name, value in given.items():
        if name in READ or name in ESTIMATED or name in METADATA or name in used:
            continue
        if name in NEUTRAL:
            neutral, text = NEUTRAL[name]
            if not any(value is one or (value == one and type(value) is type(one)) for one in neutral) and (
                    name not in _POWER_OFF or gated):
                attributes[name].dropped(text)
        else:
            attributes[name].dropped("an attribute that is not known here")


@dataclass(frozen=True)
class Place:
    """A node of an architecture: a memory, the compute unit, or a spread of what follows."""

    name: str
    kind: str
    node: Node
    attributes: Mapping[str, Any]
    """Its own, and what it inherits; the class and subclass as ``class``."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    mesh: tuple[int, int] = (1, 1)
    """How often what follows is there, along X and Y, beside this; ``(1, 1)`` but for spreads."""
    aliases: tuple[str, ...] = ()
    """Names by which mappings and constraints mean it."""
    branch: bool = False
    """Whether it stands in parallel with others: then each tensor has its own branch."""

    @property
    def spreads(self) -> bool:
        """Whether it is an array of what follows."""
        return self.kind == "spread"


@dataclass(frozen=True)
class Design:
    """An architecture as places, outermost first; the last is the compute unit."""

    section: Section
    name: str
    places: tuple[Place, ...]
    cycle_seconds: float
    technology: str
    dummies: frozenset[str] = frozenset()
    """Memories that hold nothing: there only so that an array can stand between them."""

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

    Raises an `InputError` if it is neither, or has no memory or compute unit.
    """
    root = section.root
    tree = root.fields()
    reader = _Reader(section, dict(variables))
    if "nodes" in tree:
        places = list(reader.nodes(root["nodes"]))
    elif "subtree" in tree or "local" in tree:
        places = list(reader.levels(root))
    else:
        raise root.fail("must have nodes (version 0.4) or a subtree (version 0.3)", ", ".join(tree) or "nothing")
    root.note_unknown({"version", "nodes", "subtree", "local", "attributes"})
    leaves = [index for index, place in enumerate(places) if not place.spreads]
    if len(leaves) < 2:
        raise root.fail("must have a memory and a compute unit", len(leaves))
    places = places[:leaves[-1] + 1]
    if places[-1].kind != "compute":
        raise places[-1].node.fail("must be a compute unit, as nothing else follows",
                                   f"class {places[-1].attributes['class']}",
                                   "Timeloop knows a compute unit by a class such as mac, intmac or compute")
    if places[0].spreads:
        raise places[0].node.fail("must begin with a memory, not with an array", places[0].name)
    names = [place.name for place in places]
    twice = next((place for place in places if names.count(place.name) > 1), None)
    if twice:
        raise twice.node.fail("must have a name of its own", twice.name)
    found = reader.inherited
    seconds = replace(root, value=found.get("global_cycle_seconds", 1e-9)).number(found)
    if seconds <= 0:
        raise root.fail("must have positive global_cycle_seconds", seconds)
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
        self.inherited = variables
        self.used = {*names_used(section.tree), *names_used(variables)}
        self.dummies: list[str] = []

    def nodes(self, listed: Node, branch: bool = False) -> Iterator[Place]:
        """Yield the places of version 0.4; attributes of a container hold for all that follows."""
        for node in listed.items():
            tag = node.fields().get("!", "!Component")
            if tag in ("!Parallel", "!Hierarchical", "!Pipelined"):
                node.note_unknown({"!", "nodes"})
                yield from self.nodes(node.get("nodes", []), tag == "!Parallel")
            elif tag in ("!Component", "!Container"):
                yield from self._node(node, branch)
            elif tag != "!Nothing":
                node.dropped(f"a node of kind {tag}")

    def _node(self, node: Node, branch: bool) -> Iterator[Place]:
        """Yield the array that a container or component stands for, and the component itself."""
        fields = node.fields()
        if not self._enabled(node):
            return
        name, contains = str(fields["name"]), fields.get("!") == "!Container"
        attributes = self._attributes(node)
        if contains:
            self.inherited.update(attributes)
        constraints = node["constraints"].fields(empty=True)
        mesh, aliases = self._mesh(node["spatial"]), (name, f"inter_{name}_spatial")
        rest = {kind: said for kind, said in constraints.items() if kind != "spatial" and said}
        if mesh != (1, 1):
            spread = {"spatial": constraints["spatial"]} if constraints.get("spatial") else {}
            yield Place(aliases[0 if contains else 1], "spread", node, {}, spread, mesh, aliases)
        elif constraints.get("spatial"):
            node["constraints"]["spatial"].dropped(f"spatial constraints of {name}, which is no array")
        if contains:
            for what in (*(node["constraints"][kind] for kind in rest), node["sparse_optimizations"]):
                if what.value:
                    what.dropped(f"{name} is a container, no memory")
        elif kind := self._kind(fields, node):
            yield Place(name, kind, node, {**self.inherited, **attributes, "class": _class(fields)}, rest,
                        branch=branch)

    def _enabled(self, node: Node) -> bool:
        """Whether a component, which must have a name, is not switched off."""
        if "name" not in node.fields():
            raise node.fail("must have a name")
        if node["enabled"].value in (False, "false", "False"):
            node.dropped(f"{node['name'].value}, which is not enabled")
            return False
        return True

    def _attributes(self, node: Node) -> Mapping[str, Any]:
        """Return a node's own attributes, once what is not honoured of the node is noted."""
        note_attributes(node["attributes"], self.used)
        node.note_unknown(_FIELDS)
        if node["networks"].value:
            node["networks"].dropped("networks: arrays multicast and add, at no energy")
        return node["attributes"].fields(empty=True)

    def _kind(self, fields: Mapping[str, Any], node: Node) -> str:
        """Return what a component is; nothing where it is no place that words pass through."""
        kind = kind_of(fields.get("class", ""))
        if kind == "network":
            node.dropped(f"the network {fields['name']}: arrays multicast and add, at no energy")
        elif not kind:
            node.dropped(f"{fields['name']}, of a class that Timeloop passes over: {fields.get('class') or 'none'}")
        return "" if kind == "network" else kind

    def _mesh(self, spatial: Node) -> tuple[int, int]:
        spatial.fields(empty=True)
        spatial.note_unknown({"meshX", "meshY"})
        x, y = (spatial.get(side, 1).whole(self.inherited) for side in ("meshX", "meshY"))
        return x, y

    def levels(self, tree: Node) -> Iterator[Place]:
        """Yield the places of version 0.3: numbers of instances tell where arrays are; the compute unit comes last."""
        before, before_x, outer = 1, 1, ""
        found = [entry for entry in self._locals(tree, 1) if entry[1]]
        taken = {self._counted(node, node.value["name"])[0] for node, _, _ in found}
        for node, kind, copies in sorted(found, key=lambda entry: entry[1] == "compute"):
            name, own = self._counted(node, node["name"].value)
            attributes = node["attributes"].fields(empty=True)
            count = own * copies
            if attributes.get("instances") is not None:
                count = node["attributes"]["instances"].whole(self.inherited)
            if count % before:
                raise node.fail(f"must have a multiple of the {before} instances outside it", count)
            side = node["attributes"].at("meshX", attributes.get("meshX") or 0).whole(self.inherited, least=0)
            ratio, x = count // before, side // before_x if side and side % before_x == 0 else 0
            if ratio > 1:
                if not x or ratio % x:
                    x = ratio
                spread = named[1] if (named := _DUMMY_NAME.fullmatch(outer)) and named[1] not in taken else (
                    outer if named else f"{outer}_fanout")
                yield Place(spread, "spread", node, {}, {}, (x, ratio // x), (outer, spread))
            if _is_dummy(node.value, attributes):
                self.dummies.append(name)
            else:
                yield Place(name, kind, node, {**self.inherited, **attributes, "class": _class(node.value)})
            before, before_x, outer = count, side or before_x * (x or 1), name

    def _locals(self, tree: Node, copies: int) -> Iterator[tuple[Node, str, int]]:
        """Yield the components of a tree and its subtrees: what they are, and how many times each is there."""
        self.inherited.update(self._attributes(tree) if tree.path else tree["attributes"].fields(empty=True))
        for node in tree["local"].items(empty=True):
            if self._enabled(node):
                self._attributes(node)
                yield node, self._kind(node.value, node), copies
        for inner in tree["subtree"].items(empty=True):
            _, own = self._counted(inner, inner.fields().get("name", "subtree"))
            yield from self._locals(inner, copies * own)

    def _counted(self, node: Node, name: Any) -> tuple[str, int]:
        """Return the name and number of ``PE[0..255]`` or ``PE<0..255>``."""
        match = _RANGE.fullmatch(str(name))
        if match is None:
            raise node["name"].fail("must be a name, with a range such as PE[0..15] where there are several", str(name))
        if match["first"] is None:
            return match["name"], 1
        first, last = (node.at("name", match[end]).whole(self.inherited, least=0) for end in ("first", "last"))
        if last < first:
            raise node["name"].fail("must have a range that does not run backwards", str(name))
        return match["name"], last - first + 1


def _class(fields: Mapping[str, Any]) -> str:
    return f"{fields.get('class', '')} {fields.get('subclass') or ''}".strip()


def _is_dummy(fields: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Whether a memory can hold nothing."""
    return str(fields.get("class", "")) == DUMMY or any(
        attributes.get(name) in (0, "0") for kind in ("depth", "entries", "kilobytes") for name in SPELLINGS[kind])

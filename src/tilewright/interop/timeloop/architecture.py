"""Timeloop's architectures (versions 0.3 and 0.4) and Accelergy's reference tables, to an accelerator.

Timeloop counts words, whatever their width: where the memories' word widths differ, the machine is made of words of 8
bits, so that one word of a tensor is one word of every memory, as there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ruamel.yaml import YAML

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, load_accelerator
from tilewright.interop.timeloop.source import WEIGHTS_NAME, Files, Section
from tilewright.workload import Operator

COUNTED_WORD_BITS = 8
TECHNOLOGIES = {16: "16nm", 28: "28nm", 45: "45nm", 65: "65nm"}
DEFAULT_TECHNOLOGY = 45
DUMMY = "dummy_storage"
_ROLE_HINTS = (("weights", WEIGHTS_NAME),
               ("outputs", re.compile(r"(?i)o|z|.*(output|psum|ofmap).*")),
               ("inputs", re.compile(r"(?i)i|.*(input|ifmap|activation).*")))
_RANGE = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<first>\d+)\.\.(?P<last>\d+)\])?")
_ATTRIBUTES = {"depth": ("depth", "memory_depth", "entries"), "width": ("width", "memory_width"),
               "word": ("datawidth", "word-bits", "word_bits"), "read": ("read_bandwidth",),
               "write": ("write_bandwidth",), "shared": ("shared_bandwidth",), "block": ("block-size", "block_size")}
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """A node of an architecture: a memory, the compute unit, or a spread of what follows.

    Parameters
    ----------
    mesh
        How often what follows is there, along X and Y, beside this; ``(1, 1)`` but for spreads.
    aliases
        Names by which mappings and constraints mean it.
    """

    name: str
    kind: str
    path: Path
    attributes: Mapping[str, Any]
    constraints: Mapping[str, Any] = field(default_factory=dict)
    mesh: tuple[int, int] = (1, 1)
    aliases: tuple[str, ...] = ()

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

    @property
    def memories(self) -> tuple[Place, ...]:
        """The memories, outermost first."""
        return tuple(place for place in self.places if place.kind == "memory")

    @property
    def compute(self) -> Place:
        """The compute unit."""
        return self.places[-1]

    def spread(self, target: str) -> Place | None:
        """Return the spread that a mapping's ``target`` means, if any."""
        return next((place for place in self.places if place.spreads and target in (place.name, *place.aliases)), None)


def read_design(section: Section) -> Design:
    """Return the places of an ``architecture`` section, of version 0.4 (``nodes``) or 0.3 (``subtree``).

    Raises
    ------
    InputError
        If it is neither, or has no memory or compute unit.
    """
    tree = section.mapping(section.tree, ())
    globals_: dict[str, Any] = {}
    if "nodes" in tree:
        places = list(_nodes(section, tree["nodes"], ("nodes",), globals_))
    elif "subtree" in tree or "local" in tree:
        places = list(_levels(section, tree, globals_))
    else:
        raise section.fail((), "must have nodes (version 0.4) or a subtree (version 0.3)", ", ".join(tree) or "nothing")
    leaves = [index for index, place in enumerate(places) if not place.spreads]
    if len(leaves) < 2:
        raise section.fail((), "must have a memory and a compute unit", len(leaves))
    places = places[:leaves[-1] + 1]
    places[-1] = replace(places[-1], kind="compute")
    if places[0].spreads:
        raise section.fail(places[0].path, "must begin with a memory, not with an array", places[0].name)
    names = [place.name for place in places]
    twice = next((place for place in places if names.count(place.name) > 1), None)
    if twice:
        raise section.fail(twice.path, "must have a name of its own", twice.name)
    seconds = section.number(globals_.get("global_cycle_seconds", 1e-9), ())
    if seconds <= 0:
        raise section.fail((), "must have positive global_cycle_seconds", seconds)
    return Design(section, _name(section), tuple(places), seconds, str(globals_.get("technology", "")))


def _name(section: Section) -> str:
    """Return the name of the outermost container, or that of the file."""
    nodes = section.tree.get("nodes") or section.tree.get("subtree") or [{}]
    first = nodes[0]
    named = first.get("!", "!Container") == "!Container" and "name" in first
    return str(first["name"]) if named else section.label.removesuffix(".yaml").removesuffix(".yml")


def _nodes(section: Section, nodes: Any, path: Path, inherited: dict[str, Any]) -> Iterator[Place]:
    """Yield the places of version 0.4; attributes of a container hold for all that follows."""
    for index, node in enumerate(section.list(nodes, path)):
        at = (*path, index)
        fields = section.mapping(node, at)
        tag = fields.get("!", "!Component")
        if tag in ("!Parallel", "!Hierarchical", "!Pipelined"):
            yield from _nodes(section, fields.get("nodes", []), (*at, "nodes"), inherited)
        elif tag in ("!Component", "!Container"):
            yield from _node(section, fields, at, inherited)
        elif tag != "!Nothing":
            section.note(at, "dropped", f"a node of kind {tag}")


def _node(section: Section, fields: Mapping[str, Any], at: Path, inherited: dict[str, Any]) -> Iterator[Place]:
    """Yield the array that a container or component stands for, and the component itself."""
    if "name" not in fields:
        raise section.fail(at, "must have a name")
    name, contains = str(fields["name"]), fields.get("!") == "!Container"
    if fields.get("enabled") is False:
        section.note(at, "dropped", f"{name}, which is not enabled")
        return
    attributes = section.mapping(fields.get("attributes") or {}, (*at, "attributes"))
    if contains:
        inherited.update(attributes)
    mesh = _mesh(section, fields, at)
    constraints = section.mapping(fields.get("constraints") or {}, (*at, "constraints"))
    aliases = (name, f"inter_{name}_spatial")
    if mesh != (1, 1):
        spread = {kind: said for kind, said in constraints.items() if kind == "spatial"}
        yield Place(aliases[0 if contains else 1], "spread", at, {}, spread, mesh, aliases)
    elif constraints.get("spatial"):
        section.note((*at, "constraints"), "dropped", f"spatial constraints of {name}, which is no array")
    if not contains:
        own = {kind: said for kind, said in constraints.items() if kind != "spatial"}
        yield Place(name, "memory", at, {**inherited, **attributes, "class": fields.get("class", "")}, own)


def _mesh(section: Section, fields: Mapping[str, Any], path: Path) -> tuple[int, int]:
    spatial = section.mapping(fields.get("spatial") or {}, (*path, "spatial"))
    for name in set(spatial) - {"meshX", "meshY"}:
        section.note((*path, "spatial", name), "dropped", "not part of an array that is known here")
    x = section.whole(spatial.get("meshX", 1), (*path, "spatial", "meshX"))
    y = section.whole(spatial.get("meshY", 1), (*path, "spatial", "meshY"))
    return x, y


def _levels(section: Section, tree: Mapping[str, Any], globals_: dict[str, Any]) -> Iterator[Place]:
    """Yield the places of version 0.3: numbers of instances tell where arrays are."""
    before, before_x, outer = 1, 1, ""
    for fields, path, copies in _locals(section, tree, (), 1, globals_):
        if "name" not in fields:
            raise section.fail(path, "must have a name")
        name, own = _counted(section, fields["name"], path)
        attributes = section.mapping(fields.get("attributes") or {}, (*path, "attributes"))
        count = own * copies
        if "instances" in attributes:
            count = section.whole(attributes["instances"], (*path, "attributes", "instances"))
        if count % before:
            raise section.fail(path, f"must have a multiple of the {before} instances outside it", count)
        side = section.whole(attributes.get("meshX", 0) or 0, (*path, "attributes", "meshX"), least=0)
        ratio, x = count // before, side // before_x if side and side % before_x == 0 else 0
        if ratio > 1:
            if not x or ratio % x:
                x = ratio
            dummy = outer if outer.endswith("_spatial") else f"{outer}_fanout"
            yield Place(dummy, "spread", path, {}, {}, (x, ratio // x), (outer, dummy))
        if str(fields.get("class", "")) != DUMMY:
            yield Place(name, "memory", path, {**attributes, "class": fields.get("class", "")})
        before, before_x, outer = count, side or before_x * (x or 1), name


def _locals(section: Section, tree: Mapping[str, Any], path: Path, copies: int,
            globals_: dict[str, Any]) -> Iterator[tuple[Mapping[str, Any], Path, int]]:
    globals_.update(section.mapping(tree.get("attributes") or {}, (*path, "attributes")))
    for index, fields in enumerate(section.list(tree.get("local") or [], (*path, "local"))):
        yield section.mapping(fields, (*path, "local", index)), (*path, "local", index), copies
    for index, inner in enumerate(section.list(tree.get("subtree") or [], (*path, "subtree"))):
        at = (*path, "subtree", index)
        below = section.mapping(inner, at)
        _, own = _counted(section, below.get("name", "subtree"), at)
        yield from _locals(section, below, at, copies * own, globals_)


def _counted(section: Section, name: Any, path: Path) -> tuple[str, int]:
    """Return the name and number of ``PE[0..255]``."""
    match = _RANGE.fullmatch(str(name))
    if match is None:
        raise section.fail((*path, "name"), "must be a name, with a range such as PE[0..15] where there are several",
                           str(name))
    if match["first"] is None:
        return match["name"], 1
    count = int(match["last"]) - int(match["first"]) + 1
    if count < 1:
        raise section.fail((*path, "name"), "must have a range that does not run backwards", str(name))
    return match["name"], count


@dataclass(frozen=True)
class Energies:
    """Picojoules per action by component, and area, from reference tables; empty where none were given."""

    actions: Mapping[str, Mapping[str, float]]
    areas: Mapping[str, float]


def read_energies(files: Files) -> Energies:
    """Return the energy and area reference tables (ERT, ART) of the files."""
    actions: dict[str, dict[str, float]] = {}
    areas: dict[str, float] = {}
    for section in files.named("ERT"):
        for at, entry in _table(section):
            name = _component(section, entry, at)
            found = actions.setdefault(name, {})
            for index, action in enumerate(section.list(entry.get("actions", []), (*at, "actions"))):
                path = (*at, "actions", index)
                fields = section.mapping(action, path)
                found[str(fields.get("name"))] = section.number(fields.get("energy"), (*path, "energy"))
    for section in files.named("ART"):
        for at, entry in _table(section):
            areas[_component(section, entry, at)] = section.number(entry.get("area"), (*at, "area"))
    return Energies(actions, areas)


def _table(section: Section) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    tree = section.mapping(section.tree, ())
    for index, entry in enumerate(section.list(tree.get("tables"), ("tables",))):
        yield ("tables", index), section.mapping(entry, ("tables", index))


def _component(section: Section, entry: Mapping[str, Any], path: Path) -> str:
    """Return ``GLB`` of ``system.chip.GLB[1..4]``."""
    if "name" not in entry:
        raise section.fail(path, "must have a name")
    return re.sub(r"\[\d+\.\.\d+\]", "", str(entry["name"])).split(".")[-1]


def build_accelerator(design: Design, energies: Energies, operator: Operator | None = None,
                      keeps: Mapping[str, Sequence[str]] | None = None) -> Accelerator:
    """Return the machine of a design; ``keeps`` says what a memory can keep where that is less than everything.

    Energies that no reference table gives come from our own technology tables, with a note for each.

    Raises
    ------
    InputError
        If an attribute is wrong, or an energy is neither given nor known.
    """
    builder = _Builder(design, energies, operator, keeps or {})
    levels: list[Memory | Fanout] = []
    for place in design.places[:-1]:
        if place.spreads:
            levels.append(Fanout(place.name, place.mesh))
        else:
            levels.append(builder.memory(place, outermost=not levels))
    bits = builder.word_bits
    return Accelerator(
        design.name, tuple(levels), builder.compute(), frequency_mhz=round(1e-6 / design.cycle_seconds, 6),
        word_bits=tuple((role, bits) for role in ("inputs", "weights", "outputs")),
        sources=(f"read from {design.section.label}",), assumptions=tuple(builder.assumptions))


class _Builder:
    """Turns places into levels."""

    def __init__(self, design: Design, energies: Energies, operator: Operator | None,
                 keeps: Mapping[str, Sequence[str]]) -> None:
        self.design, self.section, self.energies, self.keeps = design, design.section, energies, keeps
        self.roles = {tensor.name: tensor.role for tensor in operator.tensors} if operator else {}
        self.assumptions: list[str] = []
        widths = {self._attribute(place, "word", 8) or 8 for place in design.memories}
        self.word_bits = int(min(widths)) if len(widths) == 1 else COUNTED_WORD_BITS
        if len(widths) > 1:
            self.section.note((), "approximated", "word widths differ from memory to memory; words are counted, as "
                              f"Timeloop does, and shown as words of {COUNTED_WORD_BITS} bits")

    def _attribute(self, place: Place, kind: str, default: float | None = None) -> float | None:
        for name in _ATTRIBUTES[kind]:
            if place.attributes.get(name) is not None:
                path = (*place.path, "attributes", name)
                value = self.section.number(place.attributes[name], path, place.attributes)
                if value <= 0:
                    raise self.section.fail(path, "must be positive", value)
                return value
        return default

    def memory(self, place: Place, outermost: bool) -> Memory:
        """Return a memory."""
        word = self._attribute(place, "word", 8)
        block = self._attribute(place, "block")
        width = self._attribute(place, "width", None if block is None or word is None else block * word)
        depth = self._attribute(place, "depth")
        assert word is not None
        words = max(1.0, (width or word) / word)
        unlimited = depth is None or "dram" in str(place.attributes["class"]).lower()
        capacity = None if unlimited or depth is None else depth * words * self.word_bits / 8
        if capacity is None and not outermost and "sizeKB" in place.attributes:
            size = self.section.number(place.attributes["sizeKB"], (*place.path, "attributes", "sizeKB"))
            capacity = size * 1024 * self.word_bits / word
        double = self.section.number(place.attributes.get("multiple_buffering", 1),
                                     (*place.path, "attributes", "multiple_buffering"))
        bandwidth = Bandwidth(*(self._attribute(place, kind) for kind in ("read", "write", "shared")))
        return Memory(
            place.name, self._kept(place, outermost), self._access(place, words, capacity, word), capacity,
            word_bits=self.word_bits, bandwidth=bandwidth, buffering="double" if double >= 2 else "buffet",
            area_um2=self.energies.areas.get(place.name, 0.0), leakage_mw=self._leakage(place))

    def _leakage(self, place: Place) -> float:
        """Return milliwatts of an instance; the table has picojoules per cycle."""
        leak = self.energies.actions.get(place.name, {}).get("leak", 0.0)
        return float(f"{leak * 1e-9 / self.design.cycle_seconds:.12g}")

    def _kept(self, place: Place, outermost: bool) -> tuple[str, ...]:
        given = self.keeps.get(place.name)
        if given is None or outermost:
            return ("inputs", "weights", "outputs")
        return tuple(dict.fromkeys(self._role(name) for name in given))

    def _role(self, name: str) -> str:
        """Return a tensor's role where the problem or its name tells it and no other tensor has it, else its name."""
        if self.roles:
            role = self.roles.get(name, name)
            return role if list(self.roles.values()).count(role) == 1 else name  # type: ignore[arg-type]
        return next((role for role, hint in _ROLE_HINTS if hint.fullmatch(name)), name)

    def _access(self, place: Place, words: float, capacity: float | None, word: float) -> AccessEnergy:
        """Return energies per word: those of a whole block's access over the words in it."""
        table = self.energies.actions.get(place.name)
        if table is None:
            return self._known_access(place, capacity, word)
        missing = [name for name in ("read", "write") if name not in table]
        if missing:
            raise InputError(f"ERT.{place.name}", f"must have the action {missing[0]}", ", ".join(table))
        read, write = table["read"] / words, table["write"] / words
        return AccessEnergy(read, write, table.get("update", table["write"]) / words, read)

    def _known_access(self, place: Place, capacity: float | None, word: float) -> AccessEnergy:
        kind = str(place.attributes["class"]).lower()
        fields: dict[str, Any] = {"memory": "M", "keeps": ["inputs", "weights", "outputs"], "word_bits": int(word)}
        if "dram" in kind or capacity is None:
            fields |= {"kind": "dram", "dram_type": str(place.attributes.get("type", "LPDDR4"))}
        else:
            registers = any(part in kind for part in ("reg", "_rf", "latch"))
            fields |= {"kind": "registers" if registers else "sram",
                       "capacity_bytes": capacity * word / self.word_bits}
        machine = self._tabled(place, [fields])
        energy = machine.levels[-1].energy  # type: ignore[union-attr]
        self.section.note(place.path, "approximated",
                          f"energy of {place.name} from our {machine.technology} table; an ERT would give Accelergy's")
        return energy

    def compute(self) -> Compute:
        """Return the compute unit."""
        place = self.design.compute
        table = self.energies.actions.get(place.name)
        if table:
            action = next((name for name in ("compute", "mac_random", "mac") if name in table), None)
            if action is None:
                raise InputError(f"ERT.{place.name}", "must have the action compute", ", ".join(table))
            return Compute(place.name, table[action], self.energies.areas.get(place.name, 0.0), self._leakage(place))
        kind = "fp" if "fp" in str(place.attributes["class"]).lower() else "int"
        names = ("width", "multiplier_width", "datawidth", "word-bits")
        given = next((place.attributes[name] for name in names if name in place.attributes), 8)
        bits = self.section.whole(given, (*place.path, "attributes"), place.attributes)
        machine = self._tabled(place, [], {"name": place.name, "type": kind, "width_bits": bits})
        self.section.note(place.path, "approximated",
                          f"energy of {place.name} from our {machine.technology} table; an ERT would give Accelergy's")
        return replace(machine.compute, name=place.name)

    def _tabled(self, place: Place, levels: list[dict[str, Any]],
                compute: dict[str, Any] | None = None) -> Accelerator:
        """Return a machine of these levels with figures of the nearest technology that we know."""
        text = re.search(r"\d+", str(place.attributes.get("technology", self.design.technology)))
        asked = int(text.group()) if text else DEFAULT_TECHNOLOGY
        nearest = min(TECHNOLOGIES, key=lambda node: abs(node - asked))
        outermost = {"memory": "outermost", "keeps": ["inputs", "weights", "outputs"], "kind": "dram",
                     "dram_type": "LPDDR4"}
        tree = {"name": "looked up", "technology": TECHNOLOGIES[nearest], "frequency_mhz": 1e-6 /
                self.design.cycle_seconds, "word_bits": {"inputs": 8, "weights": 8, "outputs": 8},
                "leakage": "omitted", "levels": [outermost, *levels],
                "compute": compute or {"name": "MAC", "energy_pj_per_mac": 0.0, "area_um2": 0.0, "leakage_mw": 0.0}}
        try:
            return load_accelerator(_yaml(tree))
        except InputError as error:
            raise self.section.fail(place.path, f"must have an energy that our tables know: {error.rule}", error.given,
                                    "Give Accelergy's ERT file beside the architecture") from None


def _yaml(tree: Mapping[str, Any]) -> str:
    from io import StringIO  # noqa: PLC0415

    out = StringIO()
    YAML(typ="safe", pure=True).dump(dict(tree), out)
    return out.getvalue()

"""ZigZag's mapping files: spatial loops as constraints; mappings where the order of the temporal loops is given."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from tilewright.hardware import Accelerator, Memory
from tilewright.interop.sections import Node, Section, Side
from tilewright.interop.zigzag.machine import LINKS, Places
from tilewright.interop.zigzag.workload import ours
from tilewright.mapping import Bounds, Constraints, LevelLoops, Loop, held_bits
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Graph, Operator

DEFAULT = "default"
_UNROLLED = re.compile(r"([A-Za-z]\w*)\s*,\s*(\d+)")
_KNOWN = {"name", "spatial_mapping", "spatial_mapping_hint", "temporal_ordering", "memory_operand_links",
          "core_allocation"}
_ROLES = {"I": "inputs", "W": "weights", "O": "outputs"}
Counted = list[tuple[str, int]]
"""Dimensions with how often their loops run."""


@dataclass(frozen=True)
class Entries:
    """The entries of a mapping file by the layer, or the type of layers, that they map."""

    root: Node
    named: Mapping[str, Node]
    links: Mapping[str, str]

    @classmethod
    def read(cls, section: Section) -> "Entries":
        """Read a file; an entry must be for all layers that no other one names.

        Raises an `InputError` if it is wrong, or entries link operands to memories in different ways.
        """
        named: dict[str, Node] = {}
        links: dict[str, dict[str, str]] = {}
        for entry in section.root.items():
            entry.fields()
            entry.note_unknown(_KNOWN)
            name = str(entry["name"].value or "")
            if not name or name in named:
                raise entry["name"].fail("must be a name that no other entry has", name or None)
            named[name] = entry
            links[name] = _links(entry.get("memory_operand_links", {"O": "O", "I": "I1", "W": "I2"}))
            if links[name] != next(iter(links.values())):
                raise entry["memory_operand_links"].fail("must be those of the first entry, as a machine has one kind",
                                                         ", ".join(f"{k}: {v}" for k, v in links[name].items()))
        if DEFAULT not in named:
            raise section.root.fail(f"must have an entry called {DEFAULT}", ", ".join(named) or "none")
        return cls(section.root, named, links[DEFAULT])

    def of(self, operator: Operator) -> Node:
        """Return the entry of a layer: by its name, its type, or the one for all others."""
        kind = str(dict(operator.attributes).get("layer_type", ""))
        return self.named.get(operator.name) or self.named.get(kind) or self.named[DEFAULT]

    def applied(self, graph: Graph, machine: Accelerator, places: Places) -> tuple[dict[str, Nest], Constraints | None]:
        """Return the mappings of layers whose loops are ordered, and what the spatial loops leave of the others' space.

        Raises an `InputError` if an entry names dimensions that are not there, or more lanes than there are.
        """
        operators = [node.operator for node in graph.mac_nodes]
        mappings = {}
        for operator in operators:
            entry = self.of(operator)
            nest = _nest(entry, operator, machine, places)
            if nest is not None:
                mappings[operator.name] = nest
        used = {self.of(operator).path for operator in operators}
        if not operators:
            return mappings, None
        if len(used) > 1:
            self.root.dropped(f"spatial loops of {len(used)} entries as constraints, which hold for all layers; "
                              "they are kept where one entry is for all")
            return mappings, None
        return mappings, _constraints(self.of(operators[0]), operators, machine, places)


def _links(node: Node) -> dict[str, str]:
    found = {}
    for name, operand in node.fields().items():
        if operand not in LINKS or name not in _ROLES or (name == "O") != (operand == "O"):
            raise node[name].fail("must link I and W to I1 and I2, O to O", operand)
        found[operand] = _ROLES[name]
    if len(found) < len(LINKS):
        raise node.fail("must link I, W and O, each to a memory operand of its own",
                        ", ".join(map(str, node.value.values())))
    return found


def _spatial(entry: Node, operator: Operator, machine: Accelerator, places: Places) -> Iterator[tuple[str, Counted]]:
    """Yield each dimension of the array that is spread over, and the loops along it, cut to the sizes of the layer."""
    node = entry.get("spatial_mapping", {})
    for name in node.fields(empty=True):
        if name not in places:
            raise node[name].fail(f"must be a dimension of the array ({', '.join(places)})", name)
        loops: Counted = []
        for given in node[name].items():
            match = _UNROLLED.fullmatch(str(given.value))
            if match is None or int(match[2]) < 1:
                raise given.fail("must be a dimension and how many lanes it takes, such as K, 32", given.value)
            dimension = ours(match[1])
            if dimension in operator.sizes:
                loops.append((dimension, min(int(match[2]), operator.sizes[dimension])))
        fanout, side = places[name]
        lanes = machine.level(fanout).shape["XY".index(side)]  # type: ignore[union-attr]
        if prod(count for _, count in loops) > lanes:
            raise node[name].fail(f"must take at most {lanes} lanes, those of {name}",
                                  " x ".join(f"{dimension} {count}" for dimension, count in loops))
        yield name, loops


def _temporal(entry: Node, operator: Operator, spread: Mapping[str, int]) -> Counted | None:
    """Return temporal loops, innermost first; ``*`` is all that is left. None where they are not given, or not all."""
    node = entry.get("temporal_ordering", [])
    loops: list[tuple[str, int | None]] = []
    for given in node.items(empty=True):
        pair = given.items()
        if len(pair) != 2:
            raise given.fail("must be a dimension and how often its loop runs, such as [K, 4]", given.value)
        dimension = ours(str(pair[0].value))
        if dimension in operator.sizes:
            loops.append((dimension, None if pair[1].value == "*" else pair[1].whole()))
    if not loops:
        return None
    left = {name: ceil(size / spread.get(name, 1)) for name, size in operator.sizes.items()}
    for name, most in tuple(left.items()):
        runs = prod(count for dimension, count in loops if dimension == name and count is not None)
        if runs > most:
            raise node.fail(f"must run {name} of {operator.name} at most {most} times", runs)
        left[name] = ceil(most / runs)
    found = []
    for dimension, count in loops:
        found.append((dimension, left.pop(dimension, 1) if count is None else count))
    if any(count > 1 for count in left.values()):
        node.dropped(f"the order of {operator.name} leaves open " + ", ".join(
            f"{name} {count}" for name, count in left.items() if count > 1) + "; ZigZag takes none of it either")
        return None
    return found


def _nest(entry: Node, operator: Operator, machine: Accelerator, places: Places) -> Nest | None:
    """Return the mapping of an entry: as many of the innermost temporal loops at or below each memory as fit."""
    along = dict(_spatial(entry, operator, machine, places))
    spread: dict[str, int] = {}
    for dimension, count in (loop for loops in along.values() for loop in loops):
        spread[dimension] = spread.get(dimension, 1) * count
    temporal = _temporal(entry, operator, spread)
    if temporal is None:
        return None
    spatial: dict[str, list[tuple[str, int, Side]]] = {}
    for name, loops in along.items():
        fanout, side = places[name]
        spatial.setdefault(fanout, []).extend((dimension, count, side) for dimension, count in loops)
    below = _allocated(temporal, spatial, operator, machine)
    levels, extents = [], dict.fromkeys(operator.sizes, 1)
    inner = 0
    for level in reversed(machine.levels):
        counted: Sequence[tuple[str, int, Side | None]] = spatial.get(level.name, ())
        if isinstance(level, Memory):
            counted = [(*loop, None) for loop in temporal[inner:below[level.name]]]
            inner = below[level.name]
        made = []
        for dimension, count, axis in counted:
            if count > 1:
                made.append(Loop(dimension, extents[dimension], axis))
                extents[dimension] *= count
        levels.append(LevelLoops(level.name, tuple(reversed(made))))
    return Nest(tuple(reversed(levels)))


def _allocated(temporal: Counted, spatial: Mapping[str, Sequence[tuple[str, int, Side]]], operator: Operator,
               machine: Accelerator) -> dict[str, int]:
    """Return how many of the innermost temporal loops run at or below each memory; at the outermost one, all."""
    most = len(temporal)
    found = {machine.levels[0].name: most}
    inside = [level.name for level in machine.levels]
    for at, level in enumerate(machine.levels[1:], start=1):
        if not isinstance(level, Memory):
            continue
        for number in range(most, -1, -1):
            extents = dict.fromkeys(operator.sizes, 1)
            spread = [loop[:2] for name in inside[at:] for loop in spatial.get(name, ())]
            for dimension, count in (*spread, *temporal[:number]):
                extents[dimension] = min(extents[dimension] * count, operator.sizes[dimension])
            bits = sum(tensor.words(extents) * held_bits(tensor, machine)
                       for tensor in operator.tensors if level.can_keep(tensor.name, tensor.role))
            if number == 0 or bits * level.copies <= 8 * (level.capacity_bytes or 0):
                most = number
                break
        found[level.name] = most
    return found


def _constraints(entry: Node, operators: Sequence[Operator], machine: Accelerator, places: Places) -> Constraints:
    """Return that arrays spread what the entry says and nothing else, or only what its hint names."""
    dimensions = [name for name in operators[0].sizes if all(name in other.sizes for other in operators)]
    hint = entry.get("spatial_mapping_hint", {})
    loops = {}
    for name in hint.fields(empty=True):
        if name not in places:
            raise hint[name].fail(f"must be a dimension of the array ({', '.join(places)})", name)
        fanout, side = places[name]
        named = {ours(text) for text in hint[name].texts()}
        loops[f"{fanout}.{side}"] = tuple(dimension for dimension in dimensions if dimension in named)
    if not entry["spatial_mapping"].value:
        return Constraints(loops=loops)
    factors: dict[str, dict[str, Bounds]] = {}
    for operator in operators:
        for name, counted in _spatial(entry, operator, machine, places):
            place = factors.setdefault(".".join(places[name]), {})
            for dimension in dimensions:
                count = prod(count for given, count in counted if given == dimension)
                held = place.get(dimension, Bounds(count, count))
                place[dimension] = Bounds(min(held.least, count), max(held.most or count, count))
    return Constraints(factors=factors)

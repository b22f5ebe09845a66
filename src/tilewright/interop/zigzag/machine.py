"""ZigZag's accelerators: memories that serve dimensions of an array of units, made a chain of levels.

Every memory of ZigZag says which dimensions of the array one instance serves; ours stand one inside the other. Where
two serve what crosses (D1 and D2), that of operands stands further in, and one instance is shared along the sides of
arrays further out that it serves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.interop.figures import Estimated
from tilewright.interop.sections import Node, Section, Side

LINKS = {"I1": "inputs", "I2": "weights", "O": "outputs"}
"""Roles of memory operands, where no mapping links them otherwise."""
WORD_BITS = {"inputs": 8, "weights": 8, "outputs": 16}
"""Widths that ZigZag takes for networks that state none (``onnx_operator_parser.py``)."""
FREQUENCY_MHZ = 1000.0
DIRECTIONS = {"tl": "r", "th": "r", "fh": "w", "fl": "w"}
"""What goes to or from the memory below (l) or above (h), and whether that is read or written."""
SIDES: tuple[Side, Side] = ("X", "Y")
_PORT = re.compile(r"(rw|r|w)_port_\d+")
_MEMORY = {"size", "r_cost", "w_cost", "area", "latency", "mem_type", "auto_cost_extraction", "operands", "ports",
           "served_dimensions", "force_double_buffering", "r_bw", "w_bw", "r_port", "w_port", "rw_port",
           "min_r_granularity", "min_w_granularity"}
_ARRAY = {"dimensions", "sizes", "unit_energy", "unit_area", "multiplier_energy", "multiplier_area", "input_precision",
          "is_imc", "imc_type", "adc_resolution", "bit_serial_precision"}
Places = Mapping[str, tuple[str, Side]]
"""The array and side (X or Y) on which a dimension of ZigZag's array lies."""


@dataclass(frozen=True)
class MemoryPort:
    """A port: ``r``, ``w`` or ``rw``, its least and most bits a cycle, and the moves that it serves, ``I1, tl``."""

    kind: str
    least: int
    most: int
    moves: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class ServedMemory:
    """A memory as the file has it; ``shared`` are dimensions that it serves of arrays outside it."""

    node: Node
    operands: tuple[str, ...]
    served: frozenset[str]
    ports: tuple[MemoryPort, ...]
    index: int
    shared: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Its name in the file."""
        return str(self.node.path[-1])


def read_machine(section: Section, links: Mapping[str, str]) -> tuple[Accelerator, Places]:
    """Return the machine, and where dimensions of the array lie; ``links`` are roles of memory operands.

    Raises an `InputError` if something is missing or wrong, or memories do not lie one inside the other.
    """
    root = section.root
    root.fields()
    root.note_unknown({"name", "memories", "operational_array", "dataflows"})
    if "dataflows" in root:
        root["dataflows"].dropped("spatial mappings of the accelerator; a mapping file gives them")
    array = root["operational_array"]
    array.fields()
    array.note_unknown(_ARRAY)
    if array["is_imc"].value:
        raise array["is_imc"].fail("must be false: arrays that compute in memory are not modelled", True)
    names, sizes = array["dimensions"].texts(), [size.whole() for size in array["sizes"].items()]
    if len(names) != len(sizes) or len(set(names)) < len(names):
        raise array["sizes"].fail("must be one size for each of the array's dimensions", ", ".join(map(str, sizes)),
                                  f"Dimensions: {', '.join(names) or 'none'}")
    lanes = dict(zip(names, sizes, strict=True))
    root["memories"].fields()
    stores = [_store(root["memories"][name], index, lanes) for index, name in enumerate(root["memories"].value)]
    levels, places = _chain(root, stores, lanes)
    bits = _widths(array)
    roles = {**LINKS, **links}
    sides = {name: f"{array}.{side.lower()}" for name, (array, side) in places.items()}
    built = [level if isinstance(level, Fanout) else replace(_memory(level, behind, roles, bits), shared=tuple(
        side for name, side in sides.items() if name in level.shared)) for level, behind in _behind(levels)]
    root.approximated(f"no clock in the file: {FREQUENCY_MHZ:g} MHz; figures of area, which have no unit, are left out")
    try:
        machine = Accelerator(str(root.get("name", "zigzag").value), tuple(built), _compute(array, bits["weights"]),
                              FREQUENCY_MHZ, tuple(bits.items()), sources=(f"read from {section.label}",))
    except InputError as error:
        raise root.passed_on(error) from None
    return machine, places


def _behind(levels: Iterable[ServedMemory | Fanout]) -> Iterable[tuple[Any, bool]]:
    """Yield each level, and whether it lies behind an array."""
    behind = False
    for level in levels:
        yield level, behind
        behind = behind or (isinstance(level, Fanout) and level.instances > 1)


def _widths(array: Node) -> dict[str, int]:
    given = [entry.whole() for entry in array.get("input_precision", []).items()]
    if given and len(given) != 2:
        raise array["input_precision"].fail("must be two widths in bits", ", ".join(map(str, given)))
    return {**WORD_BITS, **dict(zip(("inputs", "weights"), given, strict=False))}


def _compute(array: Node, bits: int) -> Compute:
    given = next((array[name] for name in ("unit_energy", "multiplier_energy") if array[name].value is not None), None)
    if given is None:
        return _looked_up(array, "MAC", "int").compute(bits)
    return Compute(energy_pj_per_mac=given.not_negative())


def _looked_up(node: Node, name: str, kind: str) -> Estimated:
    return Estimated(node, name, kind, "", FREQUENCY_MHZ, "the file would give it as r_cost and w_cost (unit_energy)")


def _store(node: Node, index: int, lanes: Mapping[str, int]) -> ServedMemory:
    node.fields()
    node.note_unknown(_MEMORY)
    for name in ("size", "operands", "ports", "served_dimensions"):
        if name not in node:
            raise node.fail(f"must have {name}")
    operands, served = node["operands"].texts(), node["served_dimensions"].texts()
    for listed, names, known in ((node["operands"], operands, LINKS), (node["served_dimensions"], served, lanes)):
        unknown = [name for name in names if name not in known]
        if unknown or len(set(names)) < len(names):
            raise listed.fail(f"must be distinct names among {', '.join(known)}", ", ".join(unknown or names))
    if not operands:
        raise node["operands"].fail("must name at least one operand")
    entries = node["ports"].items()
    old = any(set(entry.fields()) <= set(DIRECTIONS) for entry in entries)
    ports = _old_ports(node, operands, entries) if old else [_port(entry, operands) for entry in entries]
    if not ports:
        raise node["ports"].fail("must be at least one port")
    return ServedMemory(node, tuple(operands), frozenset(served), tuple(ports), index)


def _port(entry: Node, operands: list[str]) -> MemoryPort:
    """Read a port as versions since 2025 write it."""
    entry.note_unknown({"name", "type", "bandwidth_min", "bandwidth_max", "allocation"})
    kinds = {"read": "r", "write": "w", "read_write": "rw"}
    said, moves = str(entry["type"].value), set()
    if said not in kinds:
        raise entry["type"].fail(f"must be one of {', '.join(kinds)}", said)
    kind = kinds[said]
    for move in entry["allocation"].items():
        operand, _, direction = (part.strip() for part in str(move.value).partition(","))
        if operand not in operands or direction not in DIRECTIONS or DIRECTIONS[direction] not in kind:
            raise move.fail("must be an operand of the memory and a direction of a port that is "
                            f"{entry['type'].value}, such as {operands[0]}, {'fh' if kind == 'w' else 'tl'}",
                            move.value)
        moves.add((operand, direction))
    least, most = entry["bandwidth_min"].whole(), entry["bandwidth_max"].whole()
    if least > most:
        raise entry["bandwidth_min"].fail(f"must not be above bandwidth_max ({most})", least)
    return MemoryPort(kind, least, most, frozenset(moves))


def _old_ports(node: Node, operands: list[str], entries: list[Node]) -> list[MemoryPort]:
    """Read ports as versions up to 2024 write them: for each operand, the port of each direction."""
    if len(entries) != len(operands):
        raise node["ports"].fail("must be one entry for each operand", len(entries), ", ".join(operands))
    moves: dict[str, set[tuple[str, str]]] = {}
    for operand, entry in zip(operands, entries, strict=True):
        for direction, name in entry.fields().items():
            match = _PORT.fullmatch(str(name))
            if direction not in DIRECTIONS or match is None or DIRECTIONS[direction] not in match[1]:
                raise entry.fail("must name a port for each of tl, th (reading) and fh, fl (writing)",
                                 f"{direction}: {name}", "For example tl: r_port_1")
            moves.setdefault(str(name), set()).add((operand, direction))
    found = []
    for name, served in moves.items():
        kind = name.split("_")[0]
        most = node["w_bw" if kind == "w" else "r_bw"].whole()
        least = node.get("min_w_granularity" if kind == "w" else "min_r_granularity", most).whole()
        found.append(MemoryPort(kind, min(least, most), most, frozenset(served)))
    return found


def _chain(root: Node, stores: list[ServedMemory], lanes: Mapping[str, int],
           ) -> tuple[list[ServedMemory | Fanout], Places]:
    """Return memories and arrays, outermost first: each memory serves what the next one does, and more."""
    for lower, upper in combinations(range(len(stores)), 2):
        missing = stores[lower].served - stores[upper].served
        if missing and set(stores[lower].operands) & set(stores[upper].operands):
            stores[upper].node["served_dimensions"].approximated(
                f"{', '.join(sorted(missing))}, which {stores[lower].name} below serves: taken to be served here too")
            stores[upper] = replace(stores[upper], served=stores[upper].served | missing)
    placed: list[ServedMemory] = []
    for store in sorted(stores, key=lambda store: ("O" not in store.operands, -store.index)):
        served = store.served
        for other in sorted({one.served for one in placed}, key=len, reverse=True):
            served = served if served <= other or other <= served else served & other
        crossed = frozenset(name for name in store.served - served if lanes[name] > 1)
        placed.append(replace(store, served=served, shared=crossed))
    placed = list(_outward(placed))
    if not placed or placed[0].served != set(lanes):
        raise root["memories"].fail("must end in a memory that serves every dimension of the array",
                                    placed[0].name if placed else "none")
    levels: list[ServedMemory | Fanout] = []
    places: dict[str, tuple[str, Side]] = {}
    for store, inner in zip(placed, [*(one.served for one in placed[1:]), frozenset[str]()], strict=True):
        levels.append(store)
        free = [name for name in lanes if name in store.served - inner]
        for pair in (free[at:at + 2] for at in range(0, len(free), 2)):
            name = "x".join(pair)
            levels.append(Fanout(name, (lanes[pair[0]], lanes[pair[1]] if len(pair) > 1 else 1)))
            places |= {dimension: (name, side) for dimension, side in zip(pair, SIDES, strict=False)}
    return levels, places


def _outward(stores: list[ServedMemory]) -> Iterator[ServedMemory]:
    """Yield memories, outermost first; of those that keep different operands for the same units, the largest first."""
    left = sorted(stores, key=lambda store: (-len(store.served), -store.node["size"].whole()))
    while left:
        first = next(store for store in left if not any(
            other.index > store.index and set(other.operands) & set(store.operands) for other in left))
        left.remove(first)
        yield first


def _memory(store: ServedMemory, behind: bool, roles: Mapping[str, str], bits: Mapping[str, int]) -> Memory:
    """Return a memory whose words are as wide as those of what it keeps, outputs last."""
    node, kept = store.node, [roles[operand] for operand in store.operands]
    word = next(bits[role] for role in ("inputs", "weights", "outputs") if role in kept)
    capacity = node["size"].whole() / 8
    grain = min(port.least for port in store.ports)
    if grain > word and (behind or any(port.least != grain for port in store.ports)):
        node.approximated(f"{store.name} moves at least {grain} bits at a time: a word costs its share of an access, "
                          "what is left of an access nothing")
    return Memory(store.name, tuple(kept), _access(store, word, capacity), capacity, word_bits=word,
                  block_words=1 if behind else max(1, grain // word), bandwidth=_bandwidth(store, word),
                  buffering="double" if node["force_double_buffering"].value else "buffet")


def _bandwidth(store: ServedMemory, word: int) -> Bandwidth:
    rates: dict[str, float | None] = {}
    for kind in ("r", "w", "rw"):
        ports = [port.most for port in store.ports if port.kind == kind]
        rates[kind] = sum(ports) / word if ports else None
        if len(ports) > 1:
            store.node["ports"].approximated(f"{len(ports)} {kind} ports of {store.name} as one of {sum(ports)} bits a "
                                             "cycle")
    if rates["rw"] is None:
        return Bandwidth(rates["r"], rates["w"])
    rest = [rate for kind in ("r", "w") if (rate := rates[kind]) is not None]
    if rest:
        store.node["ports"].approximated("read, write and shared ports as one that is shared")
    return Bandwidth(shared=rates["rw"] + sum(rest))


def _access(store: ServedMemory, word: int, capacity: float) -> AccessEnergy:
    """Return picojoules a word: an access of all bits of a port costs what the file says, fewer bits their share."""
    node, costs = store.node, {}
    if any(node[name].value is None for name in ("r_cost", "w_cost")):
        kinds = {"rf": "regfile", "dram": "DRAM"}
        kind = str(node.get("mem_type", "sram").value)
        return _looked_up(node, store.name, kinds.get(kind, kind)).access(capacity, word)
    for direction, kind in DIRECTIONS.items():
        widths = {port.most for port in store.ports if any(move == direction for _, move in port.moves)}
        widths = widths or {port.most for port in store.ports if kind in port.kind} or {
            port.most for port in store.ports}
        if len(widths) > 1:
            node["ports"].approximated(f"{direction} of {store.name} over ports of {sorted(widths)} bits: energies of "
                                       "a bit are those of the narrowest")
        costs[direction] = node[f"{kind}_cost"].not_negative() * word / min(widths)
    return AccessEnergy(costs["tl"], costs["fh"], costs["fl"], costs["th"])

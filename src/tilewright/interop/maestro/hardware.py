"""MAESTRO's hardware files, and the machines that they and the clusters of a dataflow make.

The machine is DRAM, a shared L2, one array for every level of clusters, and an L1 in each processing element. Words
have 8 bits, since MAESTRO counts elements and bytes alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.base import unknown_name
from tilewright.hardware import (
    MOST_INSTANCES,
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Compute,
    Fanout,
    Memory,
    technology,
)
from tilewright.hardware import Technology as Table
from tilewright.interop.maestro.mapping import DRAM, L1, L2, RESHAPED, array_name, between_name
from tilewright.interop.maestro.source import Reader
from tilewright.interop.notes import Notes
from tilewright.interop.signs import KEYS

_WRITTEN = {"elements": "num_pes", "l1_bytes": "l1_size_cstr", "l2_bytes": "l2_size_cstr",
            "network_words": "noc_bw_cstr", "offchip_words": "offchip_bw_cstr"}
ROLES = ("inputs", "weights", "outputs")
WORD_BITS = 8
TECHNOLOGY, DRAM_TYPE = "28nm", "LPDDR4"
TYPICAL_L1_BYTES, TYPICAL_L2_BYTES = 2048, 2**20
"""Sizes by whose energies memories are counted where a hardware file leaves theirs without limit."""
NAME = "maestro"


@dataclass(frozen=True)
class Hardware:
    """A hardware file: what is not given is without limit."""

    elements: int
    """Processing elements."""
    l1_bytes: int | None = None
    l2_bytes: int | None = None
    network_words: int | None = None
    offchip_words: int | None = None
    """Words per cycle that L2 sends and takes, and that go to and from DRAM."""


def parse_hardware(label: str, text: str, notes: Notes) -> Hardware:
    """Return the hardware in a text of lines ``num_pes: 256``.

    Raises an `InputError` with file and line, where a field is unknown, given twice or no positive whole number, or
    num_pes is missing.
    """
    reader = Reader(label, text)
    found: dict[str, int] = {}
    while reader.next is not None:
        token = reader.word("a field such as num_pes")
        key = KEYS.get(token.text.lower())
        if key is None:
            wrong = unknown_name("field of a hardware file", token.text, list(KEYS))
            raise reader.fail(wrong.rule, token.text, wrong.mend, line=token.line)
        if key in found:
            raise reader.fail(f"{token.text} must be given once", line=token.line)
        reader.skip(":", "=")
        found[key] = reader.whole(token.text)
        if key == "elements" and found[key] > MOST_INSTANCES:
            raise reader.fail(f"{token.text} must be at most {MOST_INSTANCES}", found[key], line=token.line)
        reader.skip(";", ",")
        if key == "hops":
            notes.dropped(f"{label}:{token.line} {token.text}", "hops take no time here")
    if "elements" not in found:
        raise reader.fail("must give num_pes", ", ".join(found) or "nothing", line=1)
    found.pop("hops", None)
    return Hardware(**found)


def hardware_text(hardware: Hardware, names: Mapping[str, str] = _WRITTEN) -> str:
    """Return the hardware as a file that `parse_hardware` reads back; ``names`` are those of its fields, of `KEYS`."""
    lines = [f"{name}: {value}" for key, name in names.items() if (value := getattr(hardware, key)) is not None]
    return "\n".join(lines) + "\n"


def build_machine(hardware: Hardware, arrays: Sequence[int] | None) -> Accelerator:
    """Return the machine of a hardware file with arrays of these lengths, outermost first; None: one of any shape.

    Energies come from our own technology tables.
    """
    table = technology(TECHNOLOGY)
    dram_pj = table.dram_pj(DRAM_TYPE, WORD_BITS)
    offchip, network = hardware.offchip_words, hardware.network_words
    levels: list[Memory | Fanout] = [
        Memory(DRAM, ROLES, AccessEnergy(dram_pj, dram_pj, dram_pj, dram_pj), word_bits=WORD_BITS,
               bandwidth=Bandwidth(shared=offchip)),
        _memory(table, L2, hardware.l2_bytes, TYPICAL_L2_BYTES, Bandwidth(read=network, write=network)),
    ]
    if arrays is None:
        levels.append(Fanout(RESHAPED, (hardware.elements, 1), flexible=True))
    for index, length in enumerate(arrays or ()):
        levels.append(Fanout(array_name(index), (length, 1)))
        if index < len(arrays or ()) - 1:
            levels.append(Memory(between_name(index), (), AccessEnergy(0.0, 0.0, 0.0, 0.0), word_bits=WORD_BITS))
    levels.append(_memory(table, L1, hardware.l1_bytes, TYPICAL_L1_BYTES, Bandwidth()))
    unlimited = [f"{name} has no limit; its energies are those of {size} bytes." for name, given, size in (
        (L2, hardware.l2_bytes, TYPICAL_L2_BYTES), (L1, hardware.l1_bytes, TYPICAL_L1_BYTES)) if given is None]
    compute = Compute("MAC", table.mac_pj("int", WORD_BITS), table.mac_um2("int", WORD_BITS))
    return Accelerator(NAME, tuple(levels), compute, word_bits=tuple((role, WORD_BITS) for role in ROLES),
                       technology=TECHNOLOGY, assumptions=(
                           "Words have 8 bits, as MAESTRO takes bytes for elements.",
                           f"Energies and areas are those of our {TECHNOLOGY} table and {DRAM_TYPE}.",
                           "The off-chip bandwidth serves both directions together, that of the network each.",
                           *unlimited, "No memory is known to leak."))


def _memory(table: Table, name: str, capacity: int | None, typical: int, bandwidth: Bandwidth) -> Memory:
    curve = table.storage["sram"].read_pj_per_bit
    sized = min(max(capacity or typical, curve.low), curve.high)
    read, write = table.read_pj("sram", sized, WORD_BITS), table.write_pj("sram", sized, WORD_BITS)
    return Memory(name, ROLES, AccessEnergy(read, write, write, read), capacity, word_bits=WORD_BITS,
                  bandwidth=bandwidth, area_um2=table.area_um2("sram", sized) if capacity else 0.0)


def hardware_of(accelerator: Accelerator, notes: Notes) -> Hardware:
    """Return an accelerator as MAESTRO's hardware: L2 is the memory outside its arrays, L1 the one inside all of them.

    What MAESTRO has no place for is added to ``notes``.
    """
    levels = accelerator.levels
    arrays = [index for index, level in enumerate(levels) if isinstance(level, Fanout) and level.instances > 1]
    first, last = (arrays[0], arrays[-1]) if arrays else (len(levels) - 1, len(levels) - 2)
    before = [level for level in levels[1:first] if isinstance(level, Memory)]
    inside = [level for level in levels[last + 1:] if isinstance(level, Memory) and level is not levels[0]]
    between = [level for level in levels[first:last] if isinstance(level, Memory) and level.keeps]
    outer, l2 = accelerator.memories[0], before[-1] if before else None
    for memory in [*before[:-1], *between]:
        notes.dropped(f"{accelerator.name}.{memory.name}", "MAESTRO has only DRAM, L2 and L1")
    if len(inside) > 1:
        notes.approximated(f"{accelerator.name}.{inside[-1].name}",
                           f"{' and '.join(memory.name for memory in inside)} as one L1")
    rates = outer.bandwidth
    ports = l2.bandwidth if l2 is not None else Bandwidth()
    return Hardware(
        accelerator.compute_instances, _bytes([memory for memory in inside if memory.keeps]),
        _bytes([l2] if l2 is not None else []),
        _words(f"{accelerator.name}.{L2}", notes, ports.read, ports.write, ports.shared),
        _words(f"{accelerator.name}.{outer.name}", notes, rates.shared, rates.read, rates.write))


def _bytes(memories: Sequence[Memory]) -> int | None:
    """Return the capacity of memories together; None where it is unlimited."""
    total = 0.0
    for memory in memories:
        parts = sum(size for _, size in memory.partitions_bytes)
        if memory.capacity_bytes is None and not parts:
            return None
        total += parts + (memory.capacity_bytes or 0)
    return int(total) or None


def _words(where: str, notes: Notes, *rates: float | None) -> int | None:
    """Return the slowest of some rates as a whole number of words per cycle."""
    known = [rate for rate in rates if rate is not None]
    if not known:
        return None
    slowest = min(known)
    whole = max(1, int(slowest))
    if any(rate != whole for rate in known):
        notes.approximated(f"{where}.bandwidth", f"{slowest:g} words per cycle as {whole}")
    return whole

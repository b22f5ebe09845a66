"""From the fields of an accelerator file to the machine: what is not given comes from the technology."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import TypeVar

from tilewright.base import InputError, Location
from tilewright.hardware.accelerator import Accelerator
from tilewright.hardware.levels import ACCESSES, AccessEnergy, Bandwidth, Compute, Fanout, Memory, sharing_issues
from tilewright.hardware.numbers import read_bandwidth
from tilewright.hardware.precision import NumberType, Precision, number_type
from tilewright.hardware.schema import (
    ENERGIES,
    AcceleratorFields,
    ComputeFields,
    EnergyFields,
    FanoutFields,
    MemoryFields,
    PrecisionFields,
    merging_of,
)
from tilewright.hardware.sparsity import ROLE_NAMES
from tilewright.hardware.technology import Technology

Fail = Callable[[Location, str, object, str], InputError]
LevelFields = MemoryFields | FanoutFields
Figure = TypeVar("Figure")


def look_up(fail: Fail, where: Location, read: Callable[..., Figure], *given: object) -> Figure:
    """Read a technology; say which place of the file asked when it does not know."""
    try:
        return read(*given)
    except InputError as error:
        path = f"{error.field} " if error.field.startswith("technology.") else ""
        raise fail(where, path + error.rule, error.given, error.mend) from None


@dataclass
class Resolver:
    """Turns validated fields into an `Accelerator`."""

    fields: AcceleratorFields
    technology: Technology | None
    """Table for the figures that the file leaves out; None where it must give all of them."""
    technology_name: str
    fail: Fail
    """Makes the `InputError` for a place in the file."""
    assumptions: list[str] = field(default_factory=list)
    unknown_leakage: list[str] = field(default_factory=list)
    unstated_widths: dict[str, list[str]] = field(default_factory=dict)

    def accelerator(self, levels: list[LevelFields]) -> Accelerator:
        """Return the machine of these levels, outermost first; an `InputError` says where a figure is missing."""
        fields, bits = self.fields, self.fields.word_bits
        self.assumptions = list(fields.assumptions)
        compute = self._compute(fields.compute)
        precisions = tuple(self._precision(name, given, fields.compute)
                           for name, given in fields.compute.precisions.items())
        pairs = [(one.inputs, one.weights) for one in precisions]
        if len(set(pairs)) < len(pairs):
            raise self.fail(("compute", "precisions"), "must state each pair of types once",
                            ", ".join(fields.compute.precisions), "Leave out those that say the same types again")
        built: list[Memory | Fanout] = []
        inner_um2 = compute.area_um2
        for index in reversed(range(len(levels))):
            level = levels[index]
            if isinstance(level, MemoryFields):
                memory = self._memory(level, ("levels", index))
                inner_um2 += memory.area_um2
                built.insert(0, memory)
            else:
                fanout = self._fanout(level, inner_um2)
                inner_um2 *= fanout.instances
                built.insert(0, fanout)
        self._note_leakage()
        self.assumptions += [f"{', '.join(names)}: word width not given: {told}."
                             for told, names in self.unstated_widths.items()]
        for index, rule, given in sharing_issues(built):
            raise self.fail(("levels", index, "shared"), rule, given, "")
        return Accelerator(
            name=fields.name,
            levels=tuple(built),
            compute=compute,
            frequency_mhz=float(fields.frequency_mhz),
            word_bits=tuple((name, width) for name, width in bits if width is not None),
            technology=self.technology_name,
            sources=tuple(fields.sources),
            assumptions=tuple(dict.fromkeys(self.assumptions)),
            footprint=fields.footprint,
            precisions=precisions,
        )

    def _note_leakage(self) -> None:
        names = ", ".join(reversed(self.unknown_leakage))
        if names and self.fields.leakage == "omitted":
            self.assumptions.append(f"Leakage of {names}: left out by the file (leakage: omitted).")
        elif names:
            self.assumptions.append(f"Leakage of {names}: not known, counted as 0.")

    def _memory(self, fields: MemoryFields, where: Location) -> Memory:
        bits = fields.word_bits or self._word_bits(fields)
        known = self.technology is not None and fields.kind is not None and fields.kind != "dram"
        memory = Memory(
            name=fields.memory,
            keeps=tuple(fields.keeps),
            always=fields.always,
            shared=tuple(fields.shared),
            energy=self._energy(fields, bits, where),
            capacity_bytes=fields.capacity_bytes,
            partitions_bytes=tuple(fields.partitions_bytes.items()),
            word_bits=bits,
            block_words=fields.block_words,
            bandwidth=self._bandwidth(fields, bits, where),
            buffering=fields.buffering,
            forwards=fields.forwards,
            access_grain=(fields.access_grain[0], fields.access_grain[1]),
            storage=self.technology.storage[fields.kind] if known else None,  # type: ignore[union-attr, index]
        )
        return replace(memory, area_um2=self._memory_area(fields, memory, where),
                       leakage_mw=self._memory_leakage(fields, memory, where))

    def _bandwidth(self, fields: MemoryFields, bits: int, where: Location) -> Bandwidth:
        """Return words a cycle, from bytes a second where these are stated."""
        if fields.bandwidth is None:
            ports = fields.bandwidth_words_per_cycle
            return Bandwidth(ports.read, ports.write, ports.shared)
        found: dict[str, float] = {}
        for port, text in fields.bandwidth.model_dump(exclude_none=True).items():
            try:
                found[port] = read_bandwidth(text, self.fields.frequency_mhz) * 8 / bits
            except InputError as error:
                raise self.fail((*where, "bandwidth", port), error.rule, text, error.mend) from None
        return Bandwidth(**found)

    def _word_bits(self, fields: MemoryFields) -> int:
        """Return the width of words where a memory does not state it: of what it keeps, inputs before the others."""
        widths = {role: int(getattr(self.fields.word_bits, role)) for role in ROLE_NAMES}
        kept = {role: bits for role, bits in widths.items() if role in fields.keeps} or widths
        role, bits = next(iter(kept.items()))
        why = "" if len({*kept.values()}) == 1 else f", as those of {role} (others take as many as their bits need)"
        self.unstated_widths.setdefault(f"{bits} bits assumed{why}", []).insert(0, fields.memory)
        return bits

    def _energy(self, fields: MemoryFields, bits: int, where: Location) -> AccessEnergy:
        name = next((name for name in ENERGIES if name in fields.model_fields_set), ENERGIES[0])
        per = dict(zip(ENERGIES, (1.0, 1 / fields.block_words, bits), strict=True))[name]
        given = {kind: value for kind, value in getattr(fields, name) or () if value is not None}
        missing = [kind for kind in EnergyFields.model_fields if kind not in given]
        read = write = 0.0
        if missing:
            if self.technology is None or fields.kind is None:
                raise self.fail(
                    (*where, name), f"must give {', '.join(missing)}", None,
                    "Add the figures, or kind: dram, sram or registers with a technology that knows them",
                )
            read, write = self._table_energy(fields, bits, where, self.technology)
        return AccessEnergy(**{f"{kind}_pj": given[kind] * per if kind in given else table for port, table in (
            ("read", read), ("write", write)) for kind in ACCESSES[port]})

    def _table_energy(
        self, fields: MemoryFields, bits: int, where: Location, table: Technology
    ) -> tuple[float, float]:
        """Return picojoules of a read and a write of one word; partitions cost what the largest of them costs."""
        if fields.kind == "dram":
            energy = look_up(self.fail, (*where, "dram_type"), table.dram_pj, fields.dram_type, bits)
            return energy, energy
        kind = fields.kind or "sram"
        capacity = max([*fields.partitions_bytes.values(), fields.capacity_bytes or 0.0])
        spot = (*where, "partitions_bytes" if fields.partitions_bytes else "capacity_bytes")
        read = look_up(self.fail, spot, table.read_pj, kind, capacity, bits)
        return read, look_up(self.fail, spot, table.write_pj, kind, capacity, bits)

    def _memory_area(self, fields: MemoryFields, memory: Memory, where: Location) -> float:
        if fields.area_um2 is not None:
            return float(fields.area_um2)
        if fields.kind == "dram":
            return 0.0
        if memory.storage is None:
            self.assumptions.append(f"Area of {fields.memory}: not known, counted as 0.")
            return 0.0
        spot = (*where, "capacity_bytes")
        return float(look_up(self.fail, spot, memory.storage.area, memory.arrays_of(memory.numbers)))

    def _memory_leakage(self, fields: MemoryFields, memory: Memory, where: Location) -> float:
        if fields.leakage_mw is not None:
            return float(fields.leakage_mw)
        storage = memory.storage
        if self.fields.leakage != "modelled" or storage is None or storage.leakage_mw is None:
            self.unknown_leakage.append(fields.memory)
            return 0.0
        spot = (*where, "capacity_bytes")
        return float(look_up(self.fail, spot, storage.leakage, memory.arrays_of(memory.numbers)))

    def _fanout(self, fields: FanoutFields, inner_um2: float) -> Fanout:
        network, wire = self._network(fields, inner_um2)
        return Fanout(
            name=fields.fanout,
            shape=fields.xy,
            multicast=merging_of(fields.multicast),
            reduce=merging_of(fields.reduce),
            flexible=fields.flexible,
            blocks=(fields.blocks[0], fields.blocks[1]) if fields.blocks else None,
            network_energy_pj_per_word=network,
            wire_pj_per_mm=wire,
        )

    def _network(self, fields: FanoutFields, inner_um2: float) -> tuple[float, float | None]:
        """Return picojoules per delivered word: the given figure, or wire of the given length, or of one pitch.

        And picojoules per millimetre in the last case.
        """
        if fields.network_energy_pj_per_word is not None:
            return float(fields.network_energy_pj_per_word), None
        length_mm = fields.network_mm
        if self.technology is None or (length_mm is None and inner_um2 <= 0):
            self.assumptions.append(f"Network of {fields.fanout}: energy not known, counted as 0.")
            return 0.0, None
        bits = max(self.fields.word_bits.inputs, self.fields.word_bits.weights)
        if length_mm is not None:
            return self.technology.wire_pj(bits, length_mm), None
        length_mm = sqrt(inner_um2) / 1000
        self.assumptions.append(
            f"Network of {fields.fanout}: each word crosses one pitch of the array ({length_mm:.3g} mm of wire)."
        )
        return self.technology.wire_pj(bits, length_mm), self.technology.wire_pj(bits, 1.0)

    def _compute(self, fields: ComputeFields) -> Compute:
        table, kind, bits = self.technology, fields.type, fields.width_bits
        known = table is not None and kind is not None and bits is not None
        energy, area = fields.energy_pj_per_mac, fields.area_um2
        if energy is None and not known:
            raise self.fail(("compute",), "must give energy_pj_per_mac", None,
                            "Add it, or type: int or fp and width_bits with a technology that knows them")
        if table is not None and kind is not None and bits is not None:
            where: Location = ("compute", "width_bits")
            if energy is None:
                energy = look_up(self.fail, where, table.mac_pj, kind, bits)
            if area is None:
                area = look_up(self.fail, where, table.mac_um2, kind, bits)
        if area is None:
            self.assumptions.append(f"Area of {fields.name}: not known, counted as 0.")
        if fields.leakage_mw is None:
            self.unknown_leakage.append(fields.name)
        return Compute(fields.name, float(energy or 0.0), float(area or 0.0), float(fields.leakage_mw or 0.0))

    def _precision(self, name: str, given: PrecisionFields, fields: ComputeFields) -> Precision:
        """Return what lanes do with ``int4`` (both operands) or ``fp16*int4`` (inputs and weights).

        Energy that is not given comes from the technology, by the wider operand; where that does not know it, a lane
        takes the same energy every cycle.
        """
        where: Location = ("compute", "precisions", name)
        types = [number_type(part) for part in name.split("*")]
        if len(types) > 2 or not all(found is not None and not found.scale_bits for found in types):
            raise self.fail(where, "must be a type of numbers, or two (of inputs and weights) with an asterisk between "
                            "them", name, "For example int4, fp16 or fp16*int4")
        pair = [found for found in types if found is not None]
        energy = given.energy
        if energy is None:
            energy = self._relative_energy(max(pair, key=lambda found: found.bits), fields)
        if energy is None:
            energy = 1 / given.macs_per_cycle
            self.assumptions.append(f"Energy of {fields.name} at {name}: not known, the same every cycle.")
        return Precision(pair[0].name, pair[-1].name, given.macs_per_cycle, energy, given.partial_bits)

    def _relative_energy(self, wider: NumberType, fields: ComputeFields) -> float | None:
        """Return the energy of a product of a type over that of the unit's own width, where the technology knows."""
        table, own = self.technology, fields.width_bits
        if table is None or own is None or fields.type is None:
            return None
        try:
            return table.mac_pj(wider.kind, wider.bits) / table.mac_pj(fields.type, own)
        except (InputError, KeyError):
            return None

"""What it runs on: memories and fan-outs, outermost first, ending in the compute unit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isqrt, prod
from typing import Any

from tilewright.base import InputError, text_html
from tilewright.hardware.flexibility import Flexibility, FlexibilityOverhead, Issue, MemoryOutline, issues
from tilewright.hardware.levels import (
    LEAST_RATE,
    MOST,
    MOST_BITS,
    MOST_INSTANCES,
    AccessEnergy,
    Compute,
    Fanout,
    Footprint,
    Memory,
    Number,
    sharing_issues,
)
from tilewright.hardware.precision import Precision
from tilewright.hardware.sparsity import Sparsity, sparsity_issues
from tilewright.hardware.technology import Value
from tilewright.hardware.text import describe
from tilewright.hardware.vector import VectorUnit, vector_issues


@dataclass(frozen=True)
class Accelerator:
    """A machine: its levels, outermost first, and its compute unit.

    Raises an `InputError` if names repeat, no memory comes first, or a number is out of range.
    """

    name: str
    levels: tuple[Memory | Fanout, ...]
    compute: Compute = field(default_factory=Compute)
    frequency_mhz: float = 1000.0
    word_bits: tuple[tuple[str, int], ...] = (("inputs", 8), ("weights", 8), ("outputs", 8))
    """``(role, bits)`` used for tensors that do not state their own width; perhaps also of ``partial_sums``, where
    these are wider than outputs."""
    technology: str = "given"
    """Name of the technology table that the energies and areas came from, or ``"given"``."""
    sources: tuple[str, ...] = field(default=(), compare=False)
    """Where the figures come from, one citation per line."""
    assumptions: tuple[str, ...] = field(default=(), compare=False)
    """What no figure was known for and how it is counted instead, one sentence per line."""
    flexibility: Flexibility | None = None
    """What a mapper may choose, and what that costs; None where nothing is said (then all that the levels allow)."""
    sparsity: Sparsity | None = None
    """What it makes of zeros; None where it treats them as any other words."""
    footprint: Footprint = "exact"
    """What a tile takes of a memory's capacity: the words that it touches (``exact``), or all words of the smallest
    box around them (``box``), as in Timeloop. Counts, cycles and energies are of the words touched either way."""
    vector: VectorUnit | None = None
    """What it does with operators that are no multiply-accumulate loops; None where nothing is said (`vector_unit`)."""
    precisions: tuple[Precision, ...] = ()
    """What its lanes do with words of other types than the compute unit's figures are of."""

    def __post_init__(self) -> None:
        path = f"{self.name}.levels"
        names = [level.name for level in self.levels]
        if len(set(names)) != len(names):
            raise InputError(path, "must have distinct names", names)
        if not self.levels or not isinstance(self.levels[0], Memory):
            raise InputError(f"{path}[0]", "must be a memory", names[:1])
        for name, value, least, most in _figures(self):
            if not least <= value <= most:
                raise InputError(f"{self.name}.{name}", f"must be from {least:g} to {most:g}", value)
        for index, level in enumerate(self.levels):
            if isinstance(level, Fanout) and not (min(level.shape) >= 1 and level.instances <= MOST_INSTANCES):
                raise InputError(f"{path}[{index}].shape",
                                 f"must be two positive integers, {MOST_INSTANCES:,} instances at most", level.shape)
        for index, rule, given in sharing_issues(self.levels):
            raise InputError(f"{path}[{index}].shared", rule, given)
        for section, issue in section_issues(self, self.flexibility, self.sparsity, self.vector):
            raise InputError(".".join(map(str, (self.name, section, *issue.where))), issue.rule, issue.given,
                             issue.mend)

    def _repr_html_(self) -> str:
        return text_html(describe(self))

    @cached_property
    def structure(self) -> "Accelerator":
        """What programs depend on: the machine with 1 for every number, without its name and what uses zeros.

        Whether it leaks, and which networks take energy, belong to it.
        """
        leaks = float(self.leakage_mw > 0)
        return Accelerator(
            name="", levels=tuple(level.structure for level in self.levels), frequency_mhz=1.0,
            compute=Compute(self.compute.name, 1.0, leakage_mw=leaks), word_bits=self.word_bits,
            footprint=self.footprint, precisions=self.precisions)

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories, outermost first."""
        return tuple(level for level in self.levels if isinstance(level, Memory))

    @cached_property
    def fanouts(self) -> tuple[Fanout, ...]:
        """The fan-outs, outermost first."""
        return tuple(level for level in self.levels if isinstance(level, Fanout))

    @property
    def compute_instances(self) -> int:
        """Multiply-accumulate units in the whole machine."""
        return prod(fanout.instances for fanout in self.fanouts)

    def instances(self, name: str, numbers: Mapping[Number, Any] | None = None) -> Any:
        """Physical instances of the level called ``name`` (for a fan-out: of the array itself), or by `numbers`."""
        count: Any = 1
        here = next((level for level in self.levels if level.name == name), None)
        for level in self.levels:
            if level is here:
                return count
            if isinstance(level, Fanout):
                own = [side for side in "xy" if not (isinstance(here, Memory) and here.shares(level.name, side))]
                for what in own if len(own) < 2 else ("instances",):
                    count = count * (level.numbers[what] if numbers is None else numbers[level.name, what])
        raise InputError(f"{self.name}.levels", f"must be one of {', '.join(x.name for x in self.levels)}", name)

    def level(self, name: str) -> Memory | Fanout:
        """Return the level called ``name``."""
        self.instances(name)
        return next(level for level in self.levels if level.name == name)

    def memory(self, which: str | int) -> Memory:
        """Return the memory of this name, or at this place among the levels."""
        found = self.level(which) if isinstance(which, str) else self.levels[which]
        assert isinstance(found, Memory)
        return found

    @cached_property
    def numbers(self) -> dict[Number, float]:
        """Every number that a candidate may have for itself, by (level, what)."""
        parts = [*((level.name, level.numbers) for level in self.levels), (self.compute.name, vars(self.compute))]
        return {(name, what): value for name, numbers in parts for what, value in numbers.items() if what != "name"}

    def total(self, what: str, numbers: Mapping[Number, Value]) -> Value:
        """Return ``area_um2`` or ``leakage_mw`` of all memory instances and compute units, from `numbers`."""
        found: Any = 0
        count: Any = 1
        for level in self.levels:
            if isinstance(level, Fanout):
                count = count * numbers[level.name, "instances"]
            else:
                found = found + numbers[level.name, what] * (
                    self.instances(level.name, numbers) if level.shared else count)
        total: Value = found + numbers[self.compute.name, what] * count
        return total

    @cached_property
    def shares_lanes(self) -> bool:
        """Whether one instance of any memory serves several lanes."""
        return any(memory.shared for memory in self.memories)

    @cached_property
    def unshared(self) -> "Accelerator":
        """The machine where every lane has memories of its own: no mapping of this one costs less there.

        What the instances of a memory take, all that stand for one take together, and the networks of arrays outside
        it that part; the arrays concerned multicast everything, and their networks take no energy.
        """
        if not self.shares_lanes:
            return self
        return replace(self, levels=tuple(map(self._unshared, self.levels)))

    def _part(self, memory: Memory) -> float:
        """Return which part of all lanes outside a memory its instances are; sums in another order are no larger."""
        arrays = (array for array in self.levels[:self.levels.index(memory)] if isinstance(array, Fanout))
        found: float = (1 - 1e-12) * self.instances(memory.name) / prod(array.instances for array in arrays)
        return found

    def _unshared(self, level: Memory | Fanout) -> Memory | Fanout:
        if isinstance(level, Fanout):
            inner = [memory for memory in self.levels[self.levels.index(level):] if isinstance(memory, Memory)]
            if any(memory.shares(level.name, side) for memory in inner for side in "xy"):
                return replace(level, multicast=True, network_energy_pj_per_word=0.0)
            part = min((self._part(memory) for memory in inner if memory.shared), default=1.0)
            return replace(level, network_energy_pj_per_word=level.network_energy_pj_per_word * part)
        part = self._part(level)
        energy = AccessEnergy(*(each * part for each in vars(level.energy).values()))
        return replace(level, shared=(), energy=energy, area_um2=level.area_um2 * part,
                       leakage_mw=level.leakage_mw * part) if level.shared else level

    @cached_property
    def vector_unit(self) -> VectorUnit:
        """Its vector unit with every figure: what is not stated follows from the machine, as `VectorUnit` says.

        Of a machine that says nothing it has as many lanes as a square array of its multiply-accumulate units has rows.
        """
        given = self.vector or VectorUnit(isqrt(self.compute_instances))
        inner = (memory.name for memory in self.memories[1:]
                 if all(memory.can_keep(role, role) for role in ("inputs", "outputs")))
        energy = given.energy_pj_per_operation
        return replace(given, memory=given.memory or next(inner, self.memories[0].name),
                       energy_pj_per_operation=self.compute.energy_pj_per_mac if energy is None else energy)

    @property
    def vector_assumption(self) -> str:
        """What is assumed of its vector unit, in a sentence; empty where the machine states one."""
        unit = self.vector_unit
        return "" if self.vector is not None else (
            f"Vector unit (the machine states none): {unit.lanes:g} lanes, the square root of its "
            f"{self.compute_instances:,} {self.compute.name}s, at {unit.memory}; an operation takes the energy of a "
            "multiply-accumulate, and none is folded.")

    @cached_property
    def base_leakage_mw(self) -> float:
        """Leakage of all memory instances and compute units."""
        return self.total("leakage_mw", self.numbers)

    @cached_property
    def base_area_um2(self) -> float:
        """Area of all memory instances and compute units."""
        return self.total("area_um2", self.numbers)

    @cached_property
    def overhead(self) -> FlexibilityOverhead:
        """What stated flexibility adds."""
        return flexibility_overhead(self)

    @cached_property
    def leakage_mw(self) -> float:
        """Leakage of all memory instances and compute units, and of what stated flexibility adds."""
        return self.base_leakage_mw + self.overhead.leakage_mw

    @cached_property
    def area_um2(self) -> float:
        """Area of all memory instances and compute units, and of what stated flexibility adds."""
        return self.base_area_um2 + self.overhead.total_um2


def flexibility_overhead(accelerator: Accelerator, numbers: Mapping[Number, Any] | None = None) -> FlexibilityOverhead:
    """Return what the flexibility of ``accelerator`` adds to its area and leakage; zeros where it states none.

    ``numbers`` are those of many candidates in place of the machine's own; all figures are then arrays.
    """
    numbers = numbers or accelerator.numbers
    base_um2, base_mw = (accelerator.total(what, numbers) for what in ("area_um2", "leakage_mw"))
    flexibility = accelerator.flexibility
    if flexibility is None:
        return FlexibilityOverhead(dict.fromkeys("TOPS", 0.0), 0.0, base_um2, base_mw)
    costs = flexibility.costs
    elements = accelerator.instances(flexibility.array, numbers) * numbers[flexibility.array, "instances"]
    memories = max(1, len(flexibility.tile.partitions))
    whole = {
        "T": costs.tile_um2 * memories * accelerator.instances(flexibility.memory, numbers),
        "O": costs.order_um2 + costs.order_um2_per_element * elements,
        "P": costs.parallelism_um2 + costs.parallelism_um2_per_element * elements,
        "S": costs.shape_um2_per_element * elements,
    }
    shares = {"inflexible": 0.0, "partial": costs.partial_share, "full": 1.0}
    area = {letter: whole[letter] * shares[degree] for letter, degree in flexibility.degrees.items()}
    density: Any = costs.leakage_mw_per_um2
    if density is None:
        # No area is known of a machine that has none; elsewhere the quotient of 0 and 1 stands in.
        known = base_um2 > 0
        density = base_mw * known / (base_um2 + (base_um2 <= 0))
    return FlexibilityOverhead(area, density * sum(area.values()), base_um2, base_mw, costs.power_per_area)


def section_issues(machine: Accelerator, flexibility: Flexibility | None = None, sparsity: Sparsity | None = None,
                   vector: VectorUnit | None = None) -> Iterator[tuple[str, Issue]]:
    """Yield what is wrong with statements about a machine, each with the name of its section."""
    memories = {memory.name: memory for memory in machine.memories}
    if flexibility is not None:
        outlines = {name: MemoryOutline(memory.capacity_bytes, memory.keeps) for name, memory in memories.items()}
        arrays = {fanout.name: fanout.instances for fanout in machine.fanouts}
        yield from (("flexibility", issue) for issue in issues(flexibility, outlines, arrays))
    if sparsity is not None:
        if any(memory.shared for memory in memories.values()):
            yield "sparsity", Issue((), "must be left out where a memory is shared along sides of arrays", None)
        kept = {name: memory.keeps for name, memory in memories.items()}
        yield from (("sparsity", issue) for issue in sparsity_issues(sparsity, kept))
    if vector is not None:
        yield from (("vector", issue) for issue in vector_issues(vector, tuple(memories), LEAST_RATE, MOST))


def refuse_shared(machine: Accelerator, what: str) -> None:
    """Refuse a machine of whose memories one instance serves lanes, where ``what`` does not know them."""
    for memory in machine.memories:
        if memory.shared:
            raise InputError(f"{machine.name}.{memory.name}.shared", f"must be left out for {what}",
                             ", ".join(memory.shared))


def _figures(machine: Accelerator) -> Iterator[tuple[str, float, float, float]]:
    """Yield every figure of a machine: its field, its value, and the least and most that it may be."""
    yield "frequency_mhz", machine.frequency_mhz, LEAST_RATE, MOST
    for role, bits in machine.word_bits:
        yield f"word_bits.{role}", bits, 1, MOST_BITS
    for name in ("energy_pj_per_mac", "area_um2", "leakage_mw"):
        yield f"compute.{name}", getattr(machine.compute, name), 0, MOST
    for lane in machine.precisions:
        path = f"compute.precisions.{lane.name}"
        yield f"{path}.macs_per_cycle", lane.macs_per_cycle, LEAST_RATE, MOST
        yield f"{path}.energy", lane.energy, 0, MOST
        yield f"{path}.partial_bits", lane.partial_bits or 1, 1, MOST_BITS
    for index, level in enumerate(machine.levels):
        path = f"levels[{index}]"
        if isinstance(level, Fanout):
            yield f"{path}.network_energy_pj_per_word", level.network_energy_pj_per_word, 0, MOST
            continue
        yield f"{path}.word_bits", level.word_bits, 1, MOST_BITS
        yield f"{path}.block_words", level.block_words, 1, MOST_INSTANCES
        rooms = (("capacity_bytes", level.capacity_bytes), *level.partitions_bytes)
        yield from ((f"{path}.{name}", room, 0, MOST) for name, room in rooms if room is not None)
        for name, rate in vars(level.bandwidth).items():
            if rate is not None:
                yield f"{path}.bandwidth_words_per_cycle.{name}", rate, LEAST_RATE, MOST
        figures = {**vars(level.energy), "area_um2": level.area_um2, "leakage_mw": level.leakage_mw}
        yield from ((f"{path}.{name}", figure, 0, MOST) for name, figure in figures.items())

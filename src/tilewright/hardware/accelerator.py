"""What it runs on: memories and fan-outs, outermost first, ending in the compute unit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt, prod
from typing import Any, Literal, TypeAlias

from tilewright.base import InputError, text_html
from tilewright.hardware.flexibility import Flexibility, Issue, MemoryOutline, issues
from tilewright.hardware.flexibility_costs import FlexibilityOverhead
from tilewright.hardware.precision import Precision
from tilewright.hardware.sparsity import ROLE_NAMES, Sparsity, sparsity_issues
from tilewright.hardware.technology import Storage, Value
from tilewright.hardware.vector import VectorUnit, vector_issues

Buffering = Literal["single", "double", "buffet"]
Forwards = Literal["tiles", "words"]
Footprint = Literal["exact", "box"]
Along = bool | Literal["x", "y"]
"""Where words merge in an array: along both sides, along none, or along one."""
Merging = Along | tuple[tuple[str, Along], ...]
"""The same by role or tensor name; tensors that are not named merge along both sides."""
MOST_INSTANCES = 2**31 - 1
"""Instances that one array may have: searches count them in 32 bits."""
MOST, LEAST_RATE, MOST_BITS = 1e18, 1e-6, 1024
"""Figures (bytes, picojoules, areas, rates) are no larger, rates and frequencies no smaller: with those, products of
figures and counts stay far within what the engine holds."""
Number: TypeAlias = tuple[str, str]
"""Names a number of a machine: its level (or the compute unit), and what it is."""
NETWORK = "network_energy_pj_per_word"
RATE = "bandwidth_words_per_cycle.{}"
"""Name of the number of a port."""
PARTIAL_SUMS = "partial_sums"
"""Stands among the roles of `Accelerator.word_bits` where sums that are not final have a width of their own."""
ROOM = "capacity_bytes"
"""Name of the number of the room that tensors share; see `room_name`."""
PORTS = ("read", "write", "shared")


def room_name(partition: str | None) -> str:
    """Return the name of the number of a partition, a role or tensor; that of the shared room where None."""
    return ROOM if partition is None else f"{ROOM}[{partition}]"


@lru_cache(maxsize=4096)
def exact_rate(words_per_cycle: float) -> Fraction:
    """Return a bandwidth as the fraction that is meant: 0.7 is 7/10, and 0.3333333333333333 is 1/3.

    It is the nearest one to the decimal number that is printed whose terms multiply to no more than 2^46: cycles are
    then whole divisions that double precision carries exactly. One that is not positive is an `InputError`.
    """
    if not words_per_cycle > 0:
        raise InputError("arch.bandwidth", "must be positive words per cycle, or none for unlimited", words_per_cycle)
    given = Fraction(str(words_per_cycle))
    found = given.limit_denominator(max(1, isqrt(int(2**46 / given))))
    return found or given


@dataclass(frozen=True)
class AccessEnergy:
    """Picojoules to move one word of the memory's own width, for each kind of access.

    ``read_pj``: read by a child or the compute unit; ``fill_pj``: written from the parent; ``update_pj``: written from
    a child or the compute unit; ``drain_pj``: read when an output tile leaves for the parent.
    """

    read_pj: float
    fill_pj: float
    update_pj: float
    drain_pj: float


@dataclass(frozen=True)
class Bandwidth:
    """Words (of the memory's own width) per cycle and instance; None is unlimited.

    ``read`` serves reads and drains, ``write`` fills and updates, ``shared`` all four together.
    """

    read: float | None = None
    write: float | None = None
    shared: float | None = None


@dataclass(frozen=True)
class Memory:
    """A memory level."""

    name: str
    keeps: tuple[str, ...]
    """The tensors it can keep, by role (``weights``) or by tensor name (``W``); all others bypass it."""
    energy: AccessEnergy
    capacity_bytes: float | None = None
    """Shared capacity of one instance; None is unlimited. Ignored for tensors with a partition of their own."""
    partitions_bytes: tuple[tuple[str, float], ...] = ()
    """``(role or tensor name, bytes)`` where tensors have scratchpads of their own."""
    word_bits: int = 8
    """Width of a word, to which energies and bandwidths refer; a tensor of another width scales them. Files that do
    not state it mean the width of what the memory keeps, that of inputs before weights before outputs."""
    block_words: int = 1
    """Words that one access moves. Accesses = words / block, rounded up per tensor and instance; energies stay per
    word, so that an access costs ``block_words`` times the energy of one word."""
    bandwidth: Bandwidth = Bandwidth()
    buffering: Buffering = "double"
    """``double``: tiles must fit twice, transfers overlap compute.
    ``single``: tiles fit once, transfers block compute.
    ``buffet``: tiles fit once and are replaced word by word behind the compute, which overlaps them."""
    area_um2: float = 0.0
    leakage_mw: float = 0.0
    """``area_um2`` and ``leakage_mw``: of one instance."""
    access_grain: tuple[int, int] = (1, 1)
    """Behind an array, where words count one by one: ``(words, instances)`` that one access really moves, a block of
    every instance of a cluster. Only replays by Timeloop's conventions, and exports to it, know it."""
    always: bool = False
    """Whether it keeps all tensors that it can in every mapping that is searched; else a mapping may let some pass."""
    forwards: Forwards = "tiles"
    """What is handed on inward at the cold start: ``tiles``, when the whole first tile is here, or ``words``, as they
    come: then only what the first tile of the next memory inward needs is waited for. Not of ``single`` buffers."""
    shared: tuple[str, ...] = ()
    """Sides of arrays further out (``PEs.x``) along which one instance serves all: for what it keeps, lanes along
    them lie inside it. They may spread only dimensions that none of these tensors uses. Of operands alone."""
    storage: Storage | None = field(default=None, compare=False, repr=False)
    """Curves of the technology by which its figures follow from its capacity, where they were read from them."""

    def shares(self, array: str, side: str) -> bool:
        """Whether one instance serves all lanes along a side, X or Y, of an array."""
        return f"{array}.{side.lower()}" in self.shared

    @property
    def copies(self) -> int:
        """How often a tile must fit: twice where the next one comes in while this one is used."""
        return 2 if self.buffering == "double" else 1

    @property
    def rooms(self) -> dict[str | None, float | None]:
        """Bytes of the shared room (None), and of each partition; None is unlimited."""
        return {None: self.capacity_bytes, **dict(self.partitions_bytes)}

    @property
    def structure(self) -> "Memory":
        """The memory with 1 for every number that a candidate may have for itself."""
        ones = self.with_numbers(dict.fromkeys(self.numbers, 1.0))
        return replace(ones, area_um2=0.0, leakage_mw=0.0, access_grain=(1, 1), always=False, storage=None)

    @property
    def numbers(self) -> dict[str, float]:
        """Every number that a candidate may have for itself, by what it is; what is unlimited is not among them."""
        found = {room_name(owner): room for owner, room in self.rooms.items() if room is not None}
        found |= {RATE.format(port): rate for port in PORTS if (rate := getattr(self.bandwidth, port)) is not None}
        found |= {f"{kind}_energy_pj_per_word": getattr(self.energy, f"{kind}_pj")
                  for kind in ("read", "fill", "update", "drain")}
        return found | {"area_um2": self.area_um2, "leakage_mw": self.leakage_mw}

    def with_numbers(self, numbers: Mapping[str, float]) -> "Memory":
        """Return the memory with other `numbers`."""
        own = {what: numbers[what] for what in self.numbers}
        return replace(
            self, capacity_bytes=own.get(ROOM),
            partitions_bytes=tuple((owner, own[room_name(owner)]) for owner, _ in self.partitions_bytes),
            bandwidth=Bandwidth(**{port: own.get(RATE.format(port)) for port in PORTS}),
            energy=AccessEnergy(**{name: own[f"{name.removesuffix('_pj')}_energy_pj_per_word"]
                                   for name in vars(self.energy)}),
            area_um2=own["area_um2"], leakage_mw=own["leakage_mw"])

    def arrays_of(self, numbers: Mapping[str, Value]) -> list[Value]:
        """Return the capacities in bytes of the separate arrays that make the memory up, from its `numbers`."""
        parts = [numbers[room_name(owner)] for owner, _ in self.partitions_bytes]
        if self.capacity_bytes and set(self.keeps) - {owner for owner, _ in self.partitions_bytes}:
            parts.append(numbers[ROOM])
        return parts

    def can_keep(self, name: str, role: str) -> bool:
        """Whether a tensor of this name and role may stay here; no outputs do where one instance serves lanes."""
        return (name in self.keeps or role in self.keeps) and not (self.shared and role == "outputs")


@dataclass(frozen=True)
class Fanout:
    """An X-by-Y array of what lies inside.

    Raises an `InputError` if it is not said properly where words merge.
    """

    name: str
    shape: tuple[int, int]
    """``(x, y)`` instances along the two axes. For ``flexible`` arrays only their product counts."""
    multicast: Merging = True
    """One read at the parent serves all instances along these sides that want the word."""
    reduce: Merging = True
    """Outputs of the instances along these sides are summed on the way to the parent."""
    flexible: bool = False
    """The array can be reshaped to any X by Y (or 1-D) arrangement of at most ``instances`` instances."""
    blocks: tuple[int, int] | None = None
    """Building block ``(x, y)`` of a partly flexible array: any arrangement of whole blocks, None if not so built."""
    network_energy_pj_per_word: float = 0.0
    """For each word that an instance receives from, or sends to, the parent's side."""
    wire_pj_per_mm: float | None = field(default=None, compare=False, repr=False)
    """Of one word, where it crosses one pitch of the array: the network's energy then follows from the area inside."""

    def __post_init__(self) -> None:
        for what, given in (("multicast", self.multicast), ("reduce", self.reduce)):
            if not isinstance(given, bool) and (rule := merging_rule(given, self.flexible or self.blocks is not None)):
                raise InputError(f"{self.name}.{what}", rule, given)

    @property
    def instances(self) -> int:
        """Instances in the array."""
        return self.shape[0] * self.shape[1]

    def merges(self, name: str, role: str) -> tuple[bool, bool]:
        """Whether words of a tensor of this name and role merge along X, and along Y, on the way in or out."""
        given = self.reduce if role == "outputs" else self.multicast
        if isinstance(given, tuple):
            named = dict(given)
            given = named.get(name, named.get(role, True))
        return given in (True, "x"), given in (True, "y")

    @property
    def structure(self) -> "Fanout":
        """The array with 1 for every number that a candidate may have for itself."""
        return replace(self, shape=(1, 1), network_energy_pj_per_word=float(self.network_energy_pj_per_word > 0),
                       wire_pj_per_mm=None)

    @property
    def numbers(self) -> dict[str, float]:
        """Every number that a candidate may have for itself, by what it is."""
        x, y = self.shape
        return {"x": x, "y": y, "instances": self.instances, NETWORK: self.network_energy_pj_per_word}

    def with_numbers(self, numbers: Mapping[str, float]) -> "Fanout":
        """Return the array with other `numbers`; where its sides do not make its instances, in one row."""
        x, y, instances = (int(numbers[what]) for what in ("x", "y", "instances"))
        return replace(self, shape=(x, y) if x * y == instances else (instances, 1),
                       network_energy_pj_per_word=numbers[NETWORK])


def merging_rule(given: Merging, one_piece: bool) -> str:
    """Return what is wrong with where words merge; ``one_piece``: in an array that has no fixed sides."""
    values = [along for _, along in given] if isinstance(given, tuple) else [given]
    if not values or any(not isinstance(along, bool) and along not in ("x", "y") for along in values):
        return "must be true, false, x or y, or one of them for each role or tensor"
    if one_piece and any(isinstance(along, str) for along in values):
        return "must be true or false in an array whose sides are not fixed (flexible, or built of blocks)"
    return ""


@dataclass(frozen=True)
class Compute:
    """The multiply-accumulate unit behind the innermost level."""

    name: str = "MAC"
    energy_pj_per_mac: float = 0.0
    area_um2: float = 0.0
    leakage_mw: float = 0.0


@dataclass(frozen=True)
class Accelerator:
    """A machine: its levels, outermost first, and its compute unit.

    Raises an `InputError` if names repeat, no memory comes first, or a number is out of range.
    """

    name: str
    levels: tuple[Memory | Fanout, ...]
    compute: Compute = Compute()
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
        from tilewright.hardware.text import describe  # noqa: PLC0415  (it knows this class)

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

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memories, outermost first."""
        return tuple(level for level in self.levels if isinstance(level, Memory))

    @property
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
    def unshared(self) -> "Accelerator":
        """The machine where every lane has memories of its own: no mapping of this one costs less there.

        What the instances of a memory take, all that stand for one take together; the arrays concerned multicast
        everything, and their networks take no energy.
        """
        if not any(memory.shared for memory in self.memories):
            return self
        return replace(self, levels=tuple(map(self._unshared, self.levels)))

    def _unshared(self, level: Memory | Fanout) -> Memory | Fanout:
        if isinstance(level, Fanout):
            one = any(memory.shares(level.name, side) for memory in self.memories for side in "xy")
            return replace(level, multicast=True, network_energy_pj_per_word=0.0) if one else level
        part = self.instances(level.name) / prod(
            array.instances for array in self.levels[:self.levels.index(level)] if isinstance(array, Fanout))
        part *= 1 - 1e-12  # sums in another order are no larger for it
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


def sharing_issues(levels: Sequence[Memory | Fanout]) -> Iterator[tuple[int, str, str]]:
    """Yield what is wrong with memories that serve all lanes along a side: the level, the rule and what was given."""
    for at, memory in enumerate(levels):
        if not isinstance(memory, Memory) or not memory.shared:
            continue
        given = ", ".join(memory.shared)
        sides = [f"{level.name}.{side}" for level in levels[:at] if isinstance(level, Fanout)
                 and not level.flexible and level.blocks is None for side in "xy"]
        if not set(memory.shared) <= set(sides):
            yield at, f"must be sides of arrays of fixed shape further out ({', '.join(sides) or 'none'})", given
            continue
        if "outputs" in memory.keeps:
            yield at, "must be left out of a memory that keeps outputs: put it outside these arrays", given
        for array, side in (place.rsplit(".", 1) for place in memory.shared):
            first = [level.name for level in levels].index(array)
            for other in levels[first:at]:
                if isinstance(other, Memory) and not other.shares(array, side) and _may_keep_alike(other, memory):
                    yield at, f"must not name {array}.{side}, along which {other.name} outside is private", given


def _may_keep_alike(one: Memory, other: Memory) -> bool:
    """Whether two memories may keep the same operand, as names and roles tell."""
    roles, operands = {*ROLE_NAMES}, {*ROLE_NAMES} - {"outputs"}
    pairs = [({*one.keeps}, {*other.keeps}), ({*other.keeps}, {*one.keeps})]
    return any(a & b - {"outputs"} or (a & operands and b - roles) for a, b in pairs)


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

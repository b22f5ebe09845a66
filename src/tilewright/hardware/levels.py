"""What machines are made of: memories, arrays of what lies inside them, compute units."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Literal, TypeAlias

from tilewright.base import InputError
from tilewright.hardware.sparsity import ROLE_NAMES
from tilewright.hardware.technology import Storage, Value

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
ACCESSES = {"read": ("read", "drain"), "write": ("fill", "update"), "shared": ("read", "fill", "update", "drain")}
"""Kinds of access that each port serves."""
PORTS = tuple(ACCESSES)


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
                  for kind in ACCESSES["shared"]}
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
            if not isinstance(given, bool) and (rule := merging_rule(given, self.one_piece)):
                raise InputError(f"{self.name}.{what}", rule, given)

    @property
    def one_piece(self) -> bool:
        """Whether its sides are not fixed, so that both have all instances in common."""
        return self.flexible or self.blocks is not None

    def side(self, axis: str) -> int:
        """Return the most lanes along X or Y, where the other side has one; of an array of blocks about that."""
        return self.instances if self.one_piece else self.shape["XY".index(axis)]

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


def sharing_issues(levels: Sequence[Memory | Fanout]) -> Iterator[tuple[int, str, str]]:
    """Yield what is wrong with memories that serve all lanes along a side: the level, the rule and what was given."""
    for at, memory in enumerate(levels):
        if not isinstance(memory, Memory) or not memory.shared:
            continue
        given = ", ".join(memory.shared)
        sides = [f"{level.name}.{side}" for level in levels[:at] if isinstance(level, Fanout)
                 and not level.one_piece for side in "xy"]
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

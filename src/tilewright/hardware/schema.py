"""What an accelerator file may say: pydantic models of its fields, with their units in the names."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tilewright.base import Fields, wrong
from tilewright.hardware.levels import LEAST_RATE, MOST, MOST_BITS, MOST_INSTANCES, Along, Merging, merging_rule

_UNITS = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


def parse_bytes(value: Any) -> Any:
    """Turn ``"108 KiB"`` into bytes; numbers pass, anything else is refused."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise wrong("must be a positive number of bytes or a text such as '108 KiB'")
    number, unit = match.groups()
    if unit not in _UNITS:
        raise wrong(
            f"must have one of the units {', '.join(_UNITS)}",
            f"Write {number} KiB (1024 bytes) or {number} kB (1000 bytes)" if unit == "KB" else "",
        )
    return float(number) * _UNITS[unit]


UNLIMITED = "unlimited"
"""What a bandwidth or a capacity may be in place of a number, as where it is left out."""


def limited(value: Any) -> Any:
    """Return None for what is said to be unlimited, all else as it is."""
    return None if value == UNLIMITED else value


Positive = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST, allow_inf_nan=False)]
Port = Annotated[Rate | None, BeforeValidator(limited)]
Bits = Annotated[int, Field(ge=1, le=MOST_BITS)]
Bytes = Annotated[Positive, BeforeValidator(parse_bytes)]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MOST_INSTANCES)]


def merging_of(value: Any) -> Merging:
    """Return where words merge in an array as it is given by role or tensor, or for all."""
    return tuple(value.items()) if isinstance(value, dict) else value


def _merging(value: Any) -> Any:
    if (rule := merging_rule(merging_of(value), False)):
        raise wrong(rule, "For example x, or {inputs: y, weights: true}")
    return value


Merges = Annotated[Along | dict[Name, Along], BeforeValidator(_merging)]


class BandwidthFields(Fields):
    """Words per cycle and instance."""

    read: Port = None
    """For reads by children and drains; unlimited where left out."""
    write: Port = None
    """For fills and updates."""
    shared: Port = None
    """For all four kinds of access together."""


class RateFields(Fields):
    """Bytes per second or cycle and instance, each with its unit: ``16GB/s``, or ``16B/cycle``."""

    read: Name | None = None
    """For reads by children and drains; unlimited where left out."""
    write: Name | None = None
    """For fills and updates."""
    shared: Name | None = None
    """For all four kinds of access together."""


class EnergyFields(Fields):
    """Picojoules per word, access or bit; what is left out comes from the technology."""

    read: NotNegative | None = None
    """Read by a child or the compute unit."""
    fill: NotNegative | None = None
    """Written from the parent."""
    update: NotNegative | None = None
    """Written from a child or the compute unit."""
    drain: NotNegative | None = None
    """Read as an output tile leaves for the parent."""


ENERGIES = ("energy_pj_per_word", "energy_pj_per_access", "energy_pj_per_bit")
"""Fields of a memory's energies, of which it may have one."""
BANDWIDTHS = ("bandwidth_words_per_cycle", "bandwidth")
"""Fields of what its ports move, of which it may have one."""


class MemoryFields(Fields):
    """A memory level."""

    memory: Name
    """Its name."""
    keeps: list[Name]
    """Roles (``inputs``, ``weights``, ``outputs``) or names of the tensors that it can keep; all others pass it by."""
    always: bool = False
    """Whether it keeps all of them in every mapping that is searched."""
    shared: list[Name] = Field(default_factory=list)
    """Sides of arrays further out, as ``PEs.x``, along which one instance serves all lanes. Of operands alone."""
    kind: Literal["dram", "sram", "registers"] | None = None
    """What it is made of, by which the technology gives what is left out."""
    dram_type: str | None = None
    """With ``kind: dram``, a type that the technology knows, as ``LPDDR4``."""
    capacity_bytes: Annotated[Bytes | None, BeforeValidator(limited)] = None
    """Of one instance, all tensors together; ``unlimited``, as where left out. A number of bytes, or ``108 KiB``."""
    partitions_bytes: dict[str, Bytes] = Field(default_factory=dict)
    """Capacities of tensors, by role or name, that have scratchpads of their own."""
    word_bits: Bits | None = None
    """Width of a word, to which energies and bandwidths refer; that of what it keeps where left out."""
    block_words: Count = 1
    """Words that one access moves; accesses are rounded up to whole blocks."""
    access_grain: Annotated[list[Count], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [1, 1])
    """Words and instances that one access really moves behind an array; for replays by Timeloop's rules."""
    bandwidth_words_per_cycle: Annotated[BandwidthFields, BeforeValidator(
        lambda value: {} if value == UNLIMITED else value)] = BandwidthFields()
    """What its ports move, of one instance; ``unlimited`` where none limits it."""
    bandwidth: Annotated[RateFields | None, BeforeValidator(
        lambda value: {"shared": value} if isinstance(value, str) else value)] = None
    """The same in bytes, with units, in its place; one text, as ``16GB/s``, is of all ports together."""
    energy_pj_per_word: EnergyFields = EnergyFields()
    """What each kind of access takes."""
    energy_pj_per_access: EnergyFields | None = None
    """The same for an access of ``block_words``, in its place."""
    energy_pj_per_bit: EnergyFields | None = None
    """The same for a bit, in its place."""
    area_um2: NotNegative | None = None
    """Of one instance."""
    leakage_mw: NotNegative | None = None
    """Of one instance."""
    buffering: Literal["single", "double", "buffet"] = "double"
    """``double``: tiles fit twice and transfers overlap compute; ``single``: once, and compute waits; ``buffet``:
    once, replaced word by word.
    """
    forwards: Literal["tiles", "words"] = "tiles"
    """What is waited for at the cold start: the whole first ``tiles``, or only the ``words`` of the first tile further
    inward.
    """

    @model_validator(mode="after")
    def _check(self) -> "MemoryFields":
        stray = [name for name in self.partitions_bytes if name not in self.keeps]
        if stray:
            raise wrong(
                f"partitions_bytes must name tensors that the memory keeps ({', '.join(self.keeps)})",
                f"Add {', '.join(stray)} to keeps, or remove the partition",
            )
        for names in (ENERGIES, BANDWIDTHS):
            said = [name for name in names if name in self.model_fields_set]
            if len(said) > 1:
                raise wrong(f"takes one of {', '.join(names)}", f"Remove all but one of {', '.join(said)}")
        if self.forwards == "words" and self.buffering == "single":
            raise wrong("forwards: words needs transfers that overlap compute",
                        "Set buffering: double or buffet, or leave forwards out")
        if self.kind == "dram" and self.dram_type is None:
            raise wrong("kind: dram needs a dram_type", "Add dram_type, for example LPDDR4")
        if self.kind != "dram" and self.dram_type is not None:
            raise wrong("dram_type goes with kind: dram only", "Remove dram_type, or set kind: dram")
        if self.kind in ("sram", "registers") and self.capacity_bytes is None and not self.partitions_bytes:
            raise wrong(f"kind: {self.kind} needs a capacity", "Add capacity_bytes or partitions_bytes")
        return self


class FanoutFields(Fields):
    """An array of what lies inside."""

    fanout: Name
    """Its name."""
    shape: Annotated[list[Count], Field(min_length=1, max_length=2)] | None = None
    """Instances along X and Y."""
    instances: Count | None = None
    """In place of ``shape``: instances along one side."""
    flexible: bool = False
    """Whether it can be arranged anew, so that only the number of instances counts."""
    blocks: Annotated[list[Count], Field(min_length=2, max_length=2)] | None = None
    """Sides of the block that a partly flexible array is built of."""
    multicast: Merges = True
    """Whether one read serves all instances that want a word: ``true``, ``false``, along one side (``x``, ``y``), or by
    role or tensor (``{inputs: y, weights: true}``, all others ``true``)."""
    reduce: Merges = True
    """Whether outputs of instances are added up on the way out, said in the same way."""
    network_energy_pj_per_word: NotNegative | None = None
    """For each word that an instance receives or sends."""
    network_mm: NotNegative | None = None
    """In its place: how far each such word goes, by the technology's wires."""

    @model_validator(mode="after")
    def _check(self) -> "FanoutFields":
        if (self.shape is None) == (self.instances is None):
            raise wrong("needs exactly one of shape and instances", "Write shape: [x, y], or instances: n for one axis")
        x, y = self.xy
        if self.blocks and (x % self.blocks[0] or y % self.blocks[1]):
            raise wrong(
                f"must be built of whole blocks of {self.blocks[0]} by {self.blocks[1]}, not {x} by {y}",
                "Change shape or blocks so that each side divides",
            )
        for what in ("multicast", "reduce"):
            if (rule := merging_rule(merging_of(getattr(self, what)), self.flexible or self.blocks is not None)):
                raise wrong(f"{what} {rule}", "Say true or false, or fix the shape")
        if self.network_energy_pj_per_word is not None and self.network_mm is not None:
            raise wrong("takes one of network_energy_pj_per_word and network_mm", "Remove one of them")
        return self

    @property
    def xy(self) -> tuple[int, int]:
        """Sides of the array; one axis where only the number of instances is given."""
        sides = self.shape or [self.instances or 1]
        return sides[0], sides[1] if len(sides) > 1 else 1


class PrecisionFields(Fields):
    """What a lane does with words of a type: how many products a cycle, and their energy in those of its own width."""

    macs_per_cycle: Rate = 1.0
    """Multiply-accumulates of a lane in a cycle."""
    energy: NotNegative | None = None
    """Energy of one of them, as a multiple of one at the unit's own width."""
    partial_bits: Bits | None = None
    """Width of partial sums of this type."""


class ComputeFields(Fields):
    """The multiply-accumulate unit."""

    name: Name = "MAC"
    """What tables call it."""
    type: Literal["int", "fp"] | None = None
    """Integers or floating point, by which the technology gives what is left out."""
    width_bits: Bits | None = None
    """Width of its operands."""
    energy_pj_per_mac: NotNegative | None = None
    """Of one multiply-accumulate."""
    area_um2: NotNegative | None = None
    """Of one unit."""
    leakage_mw: NotNegative | None = None
    """Of one unit."""
    precisions: dict[Name, PrecisionFields] = Field(default_factory=dict)
    """Types of words, as ``int8`` or ``fp16``, and what a lane does with them."""


class WordBitsFields(Fields):
    """Bits of a word by role, for tensors that do not state their own."""

    inputs: Bits
    """Of inputs."""
    weights: Bits
    """Of weights."""
    outputs: Bits
    """Of final outputs."""
    partial_sums: Bits | None = None
    """Of outputs that are not final yet; that of outputs where left out."""


class VectorFields(Fields):
    """What runs operators that are no multiply-accumulate loops."""

    lanes: Rate
    """Scalar operations that begin in a cycle."""
    memory: Name | None = None
    """The memory that it reads and writes; the outermost on chip that keeps inputs and outputs where left out."""
    energy_pj_per_operation: NotNegative | None = None
    """Of one scalar operation; that of a multiply-accumulate where left out."""
    operations_per_cycle: dict[Name, Rate] = Field(default_factory=dict)
    """Rates of kinds that are slower or faster, as ``softmax: 4``."""
    folds: list[Name] = Field(default_factory=list)
    """Kinds that the output path does on the way."""


class StorageRow(Fields):
    """Energy of an access of ``width_bits`` to a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    """Of the memory."""
    width_bits: Bits
    """Of the access."""
    read_pj_per_access: Positive
    """Of a read."""
    write_pj_per_access: Positive
    """Of a write."""
    source: Name
    """Where the figures come from."""


class AreaRow(Fields):
    """Area of a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    """Of the memory."""
    area_um2: Positive
    """Its area."""
    source: Name
    """Where the figure comes from."""


class LeakageRow(Fields):
    """Leakage of a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    """Of the memory."""
    leakage_mw: Positive
    """Its leakage."""
    source: Name
    """Where the figure comes from."""


class DramRow(Fields):
    """Energy per bit of a DRAM type."""

    type: Name
    """What ``dram_type`` names."""
    energy_pj_per_bit: Positive
    """Read or written."""
    source: Name
    """Where the figure comes from."""


class MacRow(Fields):
    """Energy and area of a multiply-accumulate unit."""

    type: Literal["int", "fp"]
    """Integers or floating point."""
    width_bits: Bits
    """Of the operands."""
    energy_pj: Positive
    """Of one multiply-accumulate."""
    area_um2: Positive
    """Of one unit."""
    source: Name
    """Where the figures come from."""


class WireRow(Fields):
    """Energy of moving a bit on chip."""

    energy_pj_per_bit_mm: Positive
    """Of one bit over one millimetre."""
    source: Name
    """Where the figure comes from."""


class ScaleFields(Fields):
    """Another node and voltage to scale the base to."""

    node_nm: Positive
    """Feature size."""
    voltage_v: Positive
    """Supply voltage."""
    source: str | None = None
    """Where the factors come from."""


class TechnologyFields(Fields):
    """A technology of the user's own: a shipped base with rows on top, or a bare name where all figures are given."""

    name: Name
    """What tables call it."""
    base: str | None = None
    """A technology that comes with Tilewright, which ``tilewright list technologies`` names."""
    scale_to: ScaleFields | None = None
    """The node and voltage to which figures are scaled."""
    range_bytes: dict[Literal["sram", "registers"], Annotated[list[Bytes], Field(min_length=2, max_length=2)]] | None \
        = None
    """Capacities between which curves of memories hold."""
    dram: list[DramRow] | None = None
    """Types of DRAM."""
    sram: list[StorageRow] | None = None
    """Accesses of SRAM."""
    sram_area: list[AreaRow] | None = None
    """Areas of SRAM."""
    sram_leakage: list[LeakageRow] | None = None
    """Leakage of SRAM."""
    registers: list[StorageRow] | None = None
    """Accesses of register files."""
    registers_area: list[AreaRow] | None = None
    """Areas of register files."""
    registers_leakage: list[LeakageRow] | None = None
    """Leakage of register files."""
    mac: list[MacRow] | None = None
    """Multiply-accumulate units."""
    wire: WireRow | None = None
    """Wires."""

    @model_validator(mode="after")
    def _check(self) -> "TechnologyFields":
        rows = sorted(self.model_dump(exclude_none=True).keys() - {"name", "base"})
        if self.base is None and rows:
            raise wrong(f"needs a base for {', '.join(rows)}", "Add base, for example 45nm")
        return self


class AcceleratorFields(Fields):
    """A whole accelerator file.

    ``levels`` are validated one by one, as memories or fan-outs, and ``technology`` as a name or `TechnologyFields`,
    ``flexibility`` as `tilewright.hardware.flexibility_files.FlexibilityFields`, ``sparsity`` as
    `tilewright.hardware.files.SparsityFields`.
    """

    name: Name
    """Of the machine."""
    levels: Annotated[list[dict[str, Any]], Field(min_length=1)]
    """Memories and arrays, outermost first; the first is a memory."""
    compute: ComputeFields = ComputeFields()
    """The multiply-accumulate unit, innermost of all."""
    technology: Any = "given"
    """The name of a technology, or one of your own."""
    frequency_mhz: Rate
    """The clock."""
    word_bits: WordBitsFields
    """Widths of tensors."""
    leakage: Literal["modelled", "omitted"] = "modelled"
    """Whether leakage is counted."""
    sources: list[str] = Field(default_factory=list)
    """Where figures come from, a line each."""
    assumptions: list[str] = Field(default_factory=list)
    """What no figure was known for, and how it is counted."""
    flexibility: dict[str, Any] | None = None
    """What a mapper may choose."""
    sparsity: dict[str, Any] | None = None
    """What it makes of zeros."""
    vector: VectorFields | None = None
    """What runs vector work."""
    design: dict[str, Any] | None = None
    """What ``tilewright design`` may change."""
    footprint: Literal["exact", "box"] = "exact"
    """What a tile takes of a capacity: the words that it touches, or all of the box around them."""

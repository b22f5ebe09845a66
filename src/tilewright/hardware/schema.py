"""What an accelerator file may say: pydantic models of its fields, with their units in the names."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tilewright.hardware.accelerator import LEAST_RATE, MOST, MOST_BITS, MOST_INSTANCES

_UNITS = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


def wrong(rule: str, mend: str = "") -> PydanticCustomError:
    """Return the error for a broken ``rule``; the mend travels with it to the message."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "mend": mend})


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


Positive = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST, allow_inf_nan=False)]
Bits = Annotated[int, Field(ge=1, le=MOST_BITS)]
Bytes = Annotated[Positive, BeforeValidator(parse_bytes)]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MOST_INSTANCES)]


class Fields(BaseModel):
    """Strict fields: no unknown names, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BandwidthFields(Fields):
    """Words per cycle and instance."""

    read: Rate | None = None
    write: Rate | None = None
    shared: Rate | None = None


class EnergyFields(Fields):
    """Picojoules per word; what is left out comes from the technology."""

    read: NotNegative | None = None
    fill: NotNegative | None = None
    update: NotNegative | None = None
    drain: NotNegative | None = None


class MemoryFields(Fields):
    """A memory level."""

    memory: Name
    keeps: list[Name]
    always: bool = False
    kind: Literal["dram", "sram", "registers"] | None = None
    dram_type: str | None = None
    capacity_bytes: Bytes | None = None
    partitions_bytes: dict[str, Bytes] = Field(default_factory=dict)
    word_bits: Bits | None = None
    block_words: Count = 1
    access_grain: Annotated[list[Count], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [1, 1])
    bandwidth_words_per_cycle: BandwidthFields = BandwidthFields()
    energy_pj_per_word: EnergyFields = EnergyFields()
    area_um2: NotNegative | None = None
    leakage_mw: NotNegative | None = None
    buffering: Literal["single", "double", "buffet"] = "double"

    @model_validator(mode="after")
    def _check(self) -> "MemoryFields":
        stray = [name for name in self.partitions_bytes if name not in self.keeps]
        if stray:
            raise wrong(
                f"partitions_bytes must name tensors that the memory keeps ({', '.join(self.keeps)})",
                f"Add {', '.join(stray)} to keeps, or remove the partition",
            )
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
    shape: Annotated[list[Count], Field(min_length=1, max_length=2)] | None = None
    instances: Count | None = None
    flexible: bool = False
    blocks: Annotated[list[Count], Field(min_length=2, max_length=2)] | None = None
    multicast: bool = True
    reduce: bool = True
    network_energy_pj_per_word: NotNegative | None = None
    network_mm: NotNegative | None = None

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
    energy: NotNegative | None = None
    partial_bits: Bits | None = None


class ComputeFields(Fields):
    """The multiply-accumulate unit."""

    name: Name = "MAC"
    type: Literal["int", "fp"] | None = None
    width_bits: Bits | None = None
    energy_pj_per_mac: NotNegative | None = None
    area_um2: NotNegative | None = None
    leakage_mw: NotNegative | None = None
    precisions: dict[Name, PrecisionFields] = Field(default_factory=dict)


class WordBitsFields(Fields):
    """Bits of a word by role, for tensors that do not state their own."""

    inputs: Bits
    weights: Bits
    outputs: Bits
    partial_sums: Bits | None = None


class VectorFields(Fields):
    """What runs operators that are no multiply-accumulate loops."""

    lanes: Rate
    memory: Name | None = None
    energy_pj_per_operation: NotNegative | None = None
    operations_per_cycle: dict[Name, Rate] = Field(default_factory=dict)
    folds: list[Name] = Field(default_factory=list)


class StorageRow(Fields):
    """Energy of an access of ``width_bits`` to a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    width_bits: Bits
    read_pj_per_access: Positive
    write_pj_per_access: Positive
    source: Name


class AreaRow(Fields):
    """Area of a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    area_um2: Positive
    source: Name


class LeakageRow(Fields):
    """Leakage of a memory of ``capacity_bytes``."""

    capacity_bytes: Bytes
    leakage_mw: Positive
    source: Name


class DramRow(Fields):
    """Energy per bit of a DRAM type."""

    type: Name
    energy_pj_per_bit: Positive
    source: Name


class MacRow(Fields):
    """Energy and area of a multiply-accumulate unit."""

    type: Literal["int", "fp"]
    width_bits: Bits
    energy_pj: Positive
    area_um2: Positive
    source: Name


class WireRow(Fields):
    """Energy of moving a bit on chip."""

    energy_pj_per_bit_mm: Positive
    source: Name


class ScaleFields(Fields):
    """Another node and voltage to scale the base to."""

    node_nm: Positive
    voltage_v: Positive
    source: str | None = None


class TechnologyFields(Fields):
    """A technology of the user's own: a shipped base with rows on top, or a bare name where all figures are given."""

    name: Name
    base: str | None = None
    scale_to: ScaleFields | None = None
    range_bytes: dict[Literal["sram", "registers"], Annotated[list[Bytes], Field(min_length=2, max_length=2)]] | None \
        = None
    dram: list[DramRow] | None = None
    sram: list[StorageRow] | None = None
    sram_area: list[AreaRow] | None = None
    sram_leakage: list[LeakageRow] | None = None
    registers: list[StorageRow] | None = None
    registers_area: list[AreaRow] | None = None
    registers_leakage: list[LeakageRow] | None = None
    mac: list[MacRow] | None = None
    wire: WireRow | None = None

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
    `tilewright.hardware.sparsity_files.SparsityFields`.
    """

    name: Name
    levels: Annotated[list[dict[str, Any]], Field(min_length=1)]
    compute: ComputeFields = ComputeFields()
    technology: Any = "given"
    frequency_mhz: Rate
    word_bits: WordBitsFields
    leakage: Literal["modelled", "omitted"] = "modelled"
    sources: list[str] = Field(default_factory=list)
    assumptions: list[str] = Field(default_factory=list)
    flexibility: dict[str, Any] | None = None
    sparsity: dict[str, Any] | None = None
    vector: VectorFields | None = None
    design: dict[str, Any] | None = None
    footprint: Literal["exact", "box"] = "exact"

"""The ``sparsity:`` section of an accelerator file, in and out."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tilewright.base import Fields, wrong
from tilewright.hardware.schema import Count, Name
from tilewright.hardware.sparsity import (
    FORMATS,
    Action,
    Capacity,
    Compression,
    Elision,
    Format,
    Sparsity,
)

ACTIONS: tuple[Action, ...] = ("skip", "gate")


class FormatFields(Fields):
    """A format, with the bits of its runs or coordinates where they are fixed."""

    format: Format
    """How zeros are left out."""
    bits: Count | None = None
    """Of a run or coordinate, where fixed."""


def _format(given: Any) -> Any:
    """Read the bare name of a format."""
    if isinstance(given, str):
        if given not in FORMATS:
            raise wrong(f"must be one of {', '.join(FORMATS)}")
        return {"format": given}
    return given


Formats = dict[Name, dict[Name, Annotated[FormatFields, BeforeValidator(_format)]]]
Leaders = dict[Name, dict[Name, list[Name]]]


class ComputeZeros(Fields):
    """Operands whose zeros the compute unit gates or skips."""

    gate: list[Name] = Field(default_factory=list)
    """Operands whose zeros take no energy."""
    skip: list[Name] = Field(default_factory=list)
    """Operands whose zeros take no time either."""


class SparsityFields(Fields):
    """What a machine makes of zeros."""

    capacity: Capacity = "expected"
    """Whether a tile must fit in the mean, or at its fullest."""
    formats: Formats = Field(default_factory=dict)
    """By memory and tensor, the name of a format or its fields."""
    skip: Leaders = Field(default_factory=dict)
    """By memory and tensor, the tensors at whose zeros its words are not moved at all."""
    gate: Leaders = Field(default_factory=dict)
    """The same, but the cycles are spent."""
    compute: ComputeZeros = ComputeZeros()
    """What the compute unit does."""


def read_sparsity(fields: SparsityFields) -> Sparsity:
    """Return what a file says of zeros."""
    capacity: Capacity = fields.capacity
    return Sparsity(
        tuple(Compression(memory, tensor, given.format, given.bits)
              for memory, inner in fields.formats.items() for tensor, given in inner.items()),
        tuple(Elision(memory, action, tensor, tuple(on)) for action in ACTIONS
              for memory, inner in getattr(fields, action).items() for tensor, on in inner.items()),
        tuple(fields.compute.gate), tuple(fields.compute.skip), capacity)


def sparsity_tree(sparsity: Sparsity) -> dict[str, Any]:
    """Return the section that reads back to ``sparsity``, as plain collections."""
    formats: dict[str, dict[str, Any]] = {}
    for given in sparsity.formats:
        formats.setdefault(given.memory, {})[given.tensor] = (
            given.format if given.bits is None else {"format": given.format, "bits": given.bits})
    leaders: dict[str, dict[str, dict[str, list[str]]]] = {}
    for elision in sparsity.elisions:
        leaders.setdefault(elision.action, {}).setdefault(elision.memory, {})[elision.tensor] = list(elision.on)
    compute = {name: list(given) for name, given in (("gate", sparsity.gated), ("skip", sparsity.skipped)) if given}
    tree = {"capacity": sparsity.capacity, "formats": formats, **leaders, "compute": compute}
    return {name: value for name, value in tree.items() if value}

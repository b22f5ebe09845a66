"""The ``design:`` section of an accelerator file."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from tilewright.base import Fields, InputError, Location, wrong
from tilewright.hardware.accelerator import Accelerator
from tilewright.hardware.design import DesignSpace, NumberRange
from tilewright.hardware.levels import RATE, Number
from tilewright.hardware.resolve import Fail
from tilewright.hardware.schema import Bytes, Name, Positive


class RangeFields(Fields):
    """Values ``from`` one ``to`` another in steps, or a list of ``values``; capacities take units."""

    least: Bytes | None = Field(None, alias="from")
    """The least value."""
    most: Bytes | None = Field(None, alias="to")
    """The largest value."""
    step: Bytes | None = None
    """Between values."""
    values: Annotated[list[Bytes], Field(min_length=1)] | None = None
    """In place of these: the values."""

    @model_validator(mode="after")
    def _check(self) -> "RangeFields":
        if (self.values is None) == (self.least is None or self.most is None):
            raise wrong("must be a list of values, or give from and to", "For example {from: 1, to: 1024, step: 1}")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise wrong(f"must not end ({self.most:g}) before it begins ({self.least:g})")
        if self.values is not None and sorted(set(self.values)) != self.values:
            raise wrong("must list its values in ascending order, each once")
        return self

    def range(self, step: float) -> NumberRange:
        """Return the range; ``step`` is that where none is given."""
        if self.values is not None:
            return NumberRange.listed(tuple(self.values))
        assert self.least is not None
        assert self.most is not None
        return NumberRange(self.least, self.most, self.step or step)


class FollowFields(Fields):
    """A number that is a multiple of another one."""

    of: Name
    """The number that it follows, as ``PEs.x``."""
    times: Positive = 1.0
    """What that is multiplied by."""


def _listed(given: Any) -> Any:
    return {"values": given} if isinstance(given, list) else given


class DesignFields(Fields):
    """Which numbers vary (``LEVEL.number``), what follows from them, and which levels a machine may do without."""

    vary: Annotated[dict[Name, Annotated[RangeFields, BeforeValidator(_listed)]], Field(min_length=1)]
    """By number (``SG.capacity_bytes``), its range or a list of values."""
    follow: dict[Name, FollowFields] = Field(default_factory=dict)
    """By number, what it follows."""
    optional: list[Name] = Field(default_factory=list)
    """Levels that a machine may do without."""


def read_design(fields: DesignFields, machine: Accelerator, fail: Fail) -> DesignSpace:
    """Return the design space that the section of a machine's file describes; ``fail`` points into the file."""
    ranges: dict[Number, NumberRange] = {}
    for name, given in fields.vary.items():
        where: Location = ("design", "vary", name)
        key = _number(machine, name)
        rate = key[1].startswith(RATE.format(""))
        ranges[key] = given.range(0.125 if rate else 1.0)
        whole = key[1] in ("x", "y", "instances")
        if whole and any(value != int(value) for value in (
                *ranges[key].values, ranges[key].low, ranges[key].high, ranges[key].step)):
            raise fail(where, "must be whole numbers", None, "")
        _checked(machine, ranges, {}, (), where, fail)
    follow: dict[Number, tuple[Number, float]] = {}
    for name, source in fields.follow.items():
        follow[_number(machine, name)] = _number(machine, source.of), source.times
        _checked(machine, ranges, follow, (), ("design", "follow", name), fail)
    return _checked(machine, ranges, follow, tuple(fields.optional), ("design", "optional"), fail)


def _number(machine: Accelerator, text: str) -> Number:
    """Return (level, what) of ``LEVEL.what``; levels may have dots in their names."""
    for level in machine.levels:
        if text.startswith(f"{level.name}."):
            return level.name, text.removeprefix(f"{level.name}.")
    name, _, what = text.partition(".")
    return name, what


def _checked(machine: Accelerator, ranges: dict[Number, NumberRange], follow: dict[Number, tuple[Number, float]],  # noqa: PLR0913, PLR0917
             optional: tuple[str, ...], where: Location, fail: Fail) -> DesignSpace:
    try:
        return DesignSpace(machine, ranges, follow, optional)
    except InputError as error:
        raise fail(where, error.rule, error.given, error.mend) from None

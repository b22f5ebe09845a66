"""What a space file may say: pydantic models of its fields."""

from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from tilewright.base import Fields, wrong
from tilewright.mapping.dataflows import DATAFLOWS
from tilewright.mapping.spaces.rules.constraints import ANY
from tilewright.mapping.spaces.rules.tilings import TILINGS, Tiling


def _near(name: object, known: list[str]) -> str:
    near = get_close_matches(str(name).lower(), known, 1, 0.5)
    return f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}"


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong("must be a whole number of at least 1")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise wrong("must be a share above 0 and at most 1")
    return float(value)


def _bounded(value: Any) -> Any:
    """Let a number stand for bounds that fix it."""
    if isinstance(value, dict):
        return value
    try:
        return {"least": _whole(value), "most": value}
    except PydanticCustomError:
        raise wrong("must be a whole number of at least 1, or least and most",
                     "For example 4, or {least: 1, most: 4}") from None


def _order_list(value: Any) -> Any:
    """Let one order stand for a list of one."""
    if isinstance(value, list) and value and not any(isinstance(item, list) for item in value):
        return [value]
    if isinstance(value, list) and value:
        return value
    raise wrong("must be an order, or a list of orders", f'For example [K, "{ANY}", R, S]')


def _distinct(names: list[str]) -> list[str]:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise wrong(f"must not name {twice[0]} twice")
    return names


def _tiling(value: Any) -> Any:
    if value not in TILINGS:
        raise wrong("must be a known tiling", _near(value, list(TILINGS)))
    return value


def _dataflow(value: Any) -> Any:
    if value not in DATAFLOWS:
        raise wrong("must be a known dataflow", _near(value, list(DATAFLOWS)))
    return value


class BoundsFields(Fields):
    """Least and most of a number."""

    least: Annotated[int, BeforeValidator(_whole)] = 1
    """The least."""
    most: Annotated[int, BeforeValidator(_whole)] | None = None
    """The most; without end where left out."""

    @model_validator(mode="after")
    def _in_order(self) -> "BoundsFields":
        if self.most is not None and self.least > self.most:
            raise wrong("must have a least that is not above its most")
        return self


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Name], AfterValidator(_distinct)]
Limits = dict[Name, Annotated[BoundsFields, BeforeValidator(_bounded)]]


class SpaceFields(Fields):
    """A whole space file; the format is described in `files`."""

    operator: str | None = None
    """For people."""
    accelerator: str | None = None
    """For people."""
    dimensions: dict[Name, Annotated[int, BeforeValidator(_whole)]] = Field(default_factory=dict)
    """Sizes that must then agree with the operator."""
    tiling: Annotated[Tiling, BeforeValidator(_tiling)] | None = None
    """How tiles divide."""
    dataflow: Annotated[str, BeforeValidator(_dataflow)] | None = None
    """A dataflow whose constraints hold beside all others."""
    keeps: dict[Name, Names] = Field(default_factory=dict)
    """By memory: tensors that stay there, by name or role."""
    loops: dict[Name, Names] = Field(default_factory=dict)
    """By place (a memory, or one side of an array, as ``PEs.X``): dimensions that may loop there."""
    orders: dict[Name, Annotated[list[Names], BeforeValidator(_order_list)]] = Field(default_factory=dict)
    """By memory: a loop order, outermost first, or a list of them; ``"*"`` stands for all others."""
    factors: dict[Name, Limits] = Field(default_factory=dict)
    """By place: how often a loop runs; a number fixes it."""
    tiles: dict[Name, Limits] = Field(default_factory=dict)
    """By memory: the extent of the tile that it holds; a number fixes it."""
    utilization: dict[Name, Annotated[float, BeforeValidator(_share)]] = Field(default_factory=dict)
    """By array: the least share of its instances in use."""

"""The ``flexibility:`` section of an accelerator file, in and out."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tilewright.base import Fields, wrong
from tilewright.hardware.flexibility import (
    CONVOLUTION,
    Flexibility,
    FlexibilityCosts,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
)
from tilewright.hardware.resolve import Fail, LevelFields
from tilewright.hardware.schema import Count, MemoryFields, Name, NotNegative, Positive

Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TileFields(Fields):
    """``any``, or extents by memory (of its tile, or for each element), or a ratio of hard partitions by memory."""

    fixed: dict[Name, dict[Name, Count]] | None = None
    """By memory, the extents of its tile."""
    per_element: dict[Name, dict[Name, Count]] | None = None
    """By memory, the extents of the tile of each element."""
    partitions: dict[Name, dict[Name, Positive]] | None = None
    """By memory, shares of its capacity by tensor."""


class OrderFields(Fields):
    """``any``, or the orders to choose from, outermost loop first."""

    choices: list[list[Name]] | None = None
    """Orders of dimensions."""


class ParallelismFields(Fields):
    """``any``, or the pairs to choose from, for the X and the Y side."""

    choices: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] | None = None
    """Pairs of dimensions."""
    dimensions_per_side: Annotated[Literal[1] | None,
                                   BeforeValidator(lambda given: None if given == "any" else given)] = 1
    """One dimension a side, or ``any`` number of them."""


class ShapeFields(Fields):
    """``any``, or one shape, or a building block."""

    fixed: Pair | None = None
    """Sides of the array."""
    blocks: Pair | None = None
    """Sides of the block."""


class OverheadFields(Fields):
    """Areas that flexibility adds, where they are known better than by the cited table."""

    tile_um2: NotNegative | None = None
    """Of choosing tiles."""
    order_um2: NotNegative | None = None
    """Of choosing orders."""
    order_um2_per_element: NotNegative | None = None
    """Of choosing orders, for each element."""
    parallelism_um2: NotNegative | None = None
    """Of choosing what is parallel."""
    parallelism_um2_per_element: NotNegative | None = None
    """Of choosing what is parallel, for each element."""
    shape_um2_per_element: NotNegative | None = None
    """Of choosing the shape, for each element."""
    partial_share: Share | None = None
    """Share of these that partial choice takes."""
    leakage_mw_per_um2: NotNegative | None = None
    """Leakage of the area added."""
    power_per_area: NotNegative | None = None
    """Power added, for each part of the area added."""


def _any(fields: type[Fields]) -> BeforeValidator:
    """Return what reads ``any`` as a statement without limits, and asks that others say something."""
    known = ", ".join(fields.model_fields)

    def read(given: Any) -> Any:
        if given == "any":
            return fields()
        if not isinstance(given, dict) or not given:
            raise wrong(f"must be any, or give {known}", f"Write any, or a mapping with {known}")
        return given

    return BeforeValidator(read)


class FlexibilityFields(Fields):
    """What a mapper may choose."""

    memory: Name | None = None
    """The memory whose tiles it is about."""
    array: Name | None = None
    """The array that it is about."""
    tile: Annotated[TileFields, _any(TileFields)]
    """Tile sizes: ``any``, or as below."""
    order: Annotated[OrderFields, _any(OrderFields)]
    """Loop orders."""
    parallelism: Annotated[ParallelismFields, _any(ParallelismFields)]
    """Dimensions that are spread."""
    shape: Annotated[ShapeFields, _any(ShapeFields)]
    """Shapes of the array."""
    dimensions: list[Name] = Field(default_factory=lambda: list(CONVOLUTION))
    """Names of dimensions that the choices speak of."""
    overhead: OverheadFields = OverheadFields()
    """What all this costs."""

    @model_validator(mode="after")
    def _check(self) -> "FlexibilityFields":
        for name, given in (("order", self.order.choices), ("parallelism", self.parallelism.choices)):
            if given == []:
                raise wrong(f"must give {name} at least one choice", f"Add one, or write {name}: any")
        if {} in (self.tile.fixed, self.tile.per_element, self.tile.partitions):
            raise wrong("must name a memory in tile", "Add it, or write tile: any")
        return self


def read_flexibility(fields: FlexibilityFields, levels: list[LevelFields], node_nm: float | None,
                     fail: Fail) -> Flexibility:
    """Return the flexibility that a file states; ``node_nm`` scales the cited areas (None: as cited)."""
    arrays = [level.fanout for level in levels if not isinstance(level, MemoryFields)]
    limited = [level.memory for level in levels
               if isinstance(level, MemoryFields) and (level.capacity_bytes or level.partitions_bytes)]
    if fields.memory is None and not limited:
        raise fail(("flexibility",), "must say which memory holds the tiles", None, "Add memory: NAME")
    if fields.array is None and len(arrays) != 1:
        raise fail(("flexibility",), "must say which array is meant", ", ".join(arrays) or "none", "Add array: NAME")
    return Flexibility(
        memory=fields.memory or limited[0],
        array=fields.array or arrays[0],
        tile=TileFlexibility(_nested(fields.tile.fixed), _nested(fields.tile.per_element),
                             _nested(fields.tile.partitions)),
        order=OrderFlexibility(tuple(tuple(order) for order in fields.order.choices or ())),
        parallelism=ParallelismFlexibility(tuple((x, y) for x, y in fields.parallelism.choices or ()),
                                           fields.parallelism.dimensions_per_side),
        shape=ShapeFlexibility(_pair(fields.shape.fixed), _pair(fields.shape.blocks)),
        dimensions=tuple(fields.dimensions),
        costs=_costs(fields.overhead, node_nm),
    )


def _nested(given: dict[str, dict[str, Any]] | None) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    return tuple((name, tuple(inner.items())) for name, inner in (given or {}).items())


def _pair(given: list[int] | None) -> tuple[int, int] | None:
    return (given[0], given[1]) if given else None


def _costs(fields: OverheadFields, node_nm: float | None) -> FlexibilityCosts:
    base = FlexibilityCosts() if node_nm is None else FlexibilityCosts().at_node(node_nm)
    given = {name: float(value) for name, value in fields if value is not None}
    return FlexibilityCosts(**{**vars(base), **given})


def flexibility_tree(flexibility: Flexibility) -> dict[str, Any]:
    """Return the section that reads back to ``flexibility``, as plain collections."""
    tile, parallel, shape = flexibility.tile, flexibility.parallelism, flexibility.shape
    pairs: dict[str, Any] = {"choices": [list(pair) for pair in parallel.choices]} if parallel.choices else {}
    if parallel.dimensions_per_side is None:
        pairs["dimensions_per_side"] = "any"
    tiles = {name: {memory: dict(inner) for memory, inner in given}
             for name, given in (("fixed", tile.fixed), ("per_element", tile.per_element),
                                 ("partitions", tile.partitions)) if given}
    shapes = {name: list(sides) for name, sides in (("fixed", shape.fixed), ("blocks", shape.blocks)) if sides}
    orders = {"choices": [list(order) for order in flexibility.order.choices]} if flexibility.order.choices else {}
    return {
        "memory": flexibility.memory,
        "array": flexibility.array,
        "dimensions": list(flexibility.dimensions),
        "tile": tiles or "any",
        "order": orders or "any",
        "parallelism": pairs or "any",
        "shape": shapes or "any",
        "overhead": {name: value for name, value in vars(flexibility.costs).items() if value is not None},
    }

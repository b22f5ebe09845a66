"""How many ways a machine can run one operator: what is fixed and what is free in Tile, Order, Parallelism, Shape.

Source: Kao, dissertation, Georgia Tech 2022, chapter 3 (Flexion), sections 3.1 and 3.2.

What flexibility costs are the parts of its figure 3.4 that each flexible axis adds to a machine, with the areas of
table 3.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, NamedTuple

from tilewright.base import InputError

SOURCE = ("Kao, dissertation, Georgia Tech 2022, table 3.2 (Nangate 15 nm, 1024 elements, 100 KB buffer) by the parts "
          "of figure 3.4")
PUBLISHED_NODE_NM = 15.0
PUBLISHED_ELEMENTS = 1024
PUBLISHED_UM2 = {"InFlex": 736_843, "T-Flex": 763_874, "O-Flex": 738_458, "P-Flex": 737_720, "S-Flex": 737_055,
                 "PartFlex": 738_209, "FullFlex": 739_576}
"""Table 3.2 as printed. T-Flex must be a slip for 736,874: see `T_FLEX_READ_UM2`."""
PUBLISHED_PERCENT = {"T-Flex": 0.004, "O-Flex": 0.21, "P-Flex": 0.11, "S-Flex": 0.02, "PartFlex": 0.19,
                     "FullFlex": 0.37}
T_FLEX_READ_UM2 = 736_874
"""T-Flex with its second and third digits exchanged: only so is it +0.004 % as printed, and only so do the four axes
add up (31 + 1615 + 877 + 212 = 2735) to what FullFlex adds (2733), which as printed would be below T-Flex alone."""
Degree = Literal["inflexible", "partial", "full"]
Extents = tuple[tuple[str, int], ...]
Ratio = tuple[tuple[str, float], ...]
CONVOLUTION = ("K", "C", "P", "Q", "R", "S")
AXES = "TOPS"
CLASSES = tuple("".join(bits) for bits in product("01", repeat=4))
"""The 16 classes of section 3.1.2, from ``0000`` to ``1111``: one digit for each of T, O, P, S."""


def _added(name: str) -> float:
    area = T_FLEX_READ_UM2 if name == "T-Flex" else PUBLISHED_UM2[name]
    return float(area - PUBLISHED_UM2["InFlex"])


# The table gives one sum for each axis. Order and parallelism both add three address counters with generators
# (figure 3.4 b, c); we take these as equal, and the multiplexer that parallelism adds to an element as large as the
# demultiplexer that shape adds. That leaves one value for each part.
_PER_ELEMENT = _added("S-Flex") / PUBLISHED_ELEMENTS
_GENERATORS = _added("P-Flex") - _added("S-Flex")


@dataclass(frozen=True)
class FlexibilityCosts:
    """Area that each flexible axis adds; overridable figure by figure."""

    tile_um2: float = _added("T-Flex")
    """Base, bound and current registers and multiplexers of one memory with flexible tiles."""
    order_um2: float = _GENERATORS
    order_um2_per_element: float = (_added("O-Flex") - _GENERATORS) / PUBLISHED_ELEMENTS
    """``order_um2`` and ``order_um2_per_element``: address counters and generators; the counter register of an
    element."""
    parallelism_um2: float = _GENERATORS
    parallelism_um2_per_element: float = _PER_ELEMENT
    """``parallelism_um2`` and ``parallelism_um2_per_element``: address counters and generators; the multiplexer of an
    element."""
    shape_um2_per_element: float = _PER_ELEMENT
    """Demultiplexer and distribution network of an element."""
    partial_share: float = 0.5
    """Part of an axis's area that a partly flexible axis has (table 3.2: PartFlex adds 1366 of FullFlex's 2733)."""
    leakage_mw_per_um2: float | None = None
    """None: as the machine without flexibility leaks per area."""
    power_per_area: float = 1.0
    """Power of the added parts over that of the rest, per area. The paper gives no power: 1 is assumed."""

    def at_node(self, node_nm: float) -> "FlexibilityCosts":
        """Return the published areas scaled to another node by the square of the feature size."""
        factor = (node_nm / PUBLISHED_NODE_NM) ** 2
        areas = {name: value * factor for name, value in vars(self).items()
                 if "_um2" in name and not name.startswith("leakage")}
        return replace(self, **areas)


@dataclass(frozen=True)
class FlexibilityOverhead:
    """What the flexibility of one machine adds.

    ``area_um2`` is by axis (T, O, P, S); ``base_area_um2`` and ``base_leakage_mw`` are of the machine without it.
    """

    area_um2: dict[str, float]
    leakage_mw: float
    base_area_um2: float
    base_leakage_mw: float
    power_per_area: float = 1.0

    @property
    def total_um2(self) -> float:
        """Area that all axes add."""
        return sum(self.area_um2.values())

    @property
    def area_share(self) -> float:
        """Added area over the area without it; infinite where that is not known."""
        return self.total_um2 / self.base_area_um2 if self.base_area_um2 > 0 else float("inf")

    @property
    def power_share(self) -> float:
        """Added power over the power without it, estimated from the area."""
        return self.power_per_area * self.area_share


@dataclass(frozen=True)
class TileFlexibility:
    """Tile sizes: fixed ones by memory (inflexible), any within hard partitions (partial), or any that fit (full).

    ``fixed`` are extents of the tile that a memory holds. ``per_element`` are those for each place of the array: a
    dimension along a side has as many times its extent as there are lanes, so that the tile follows the array.
    ``partitions`` are ratios by role; a memory's capacity is split by them.
    """

    fixed: tuple[tuple[str, Extents], ...] = ()
    per_element: tuple[tuple[str, Extents], ...] = ()
    partitions: tuple[tuple[str, Ratio], ...] = ()

    @property
    def degree(self) -> Degree:
        """How flexible it is."""
        return "inflexible" if self.fixed or self.per_element else "partial" if self.partitions else "full"


@dataclass(frozen=True)
class OrderFlexibility:
    """Loop orders, outermost first: one (inflexible), several (partial), or any (full, no ``choices``)."""

    choices: tuple[tuple[str, ...], ...] = ()

    @property
    def degree(self) -> Degree:
        """How flexible it is."""
        return _degree(len(self.choices))


@dataclass(frozen=True)
class ParallelismFlexibility:
    """Dimensions spread along the X and the Y side: one pair (inflexible), several (partial), or any (full).

    ``dimensions_per_side`` is 1, as in the paper, or None where any number may share a side.
    """

    choices: tuple[tuple[str, str], ...] = ()
    dimensions_per_side: int | None = 1

    @property
    def degree(self) -> Degree:
        """How flexible it is."""
        return _degree(len(self.choices))


@dataclass(frozen=True)
class ShapeFlexibility:
    """Array shapes: one X by Y (inflexible), whole building blocks (partial), or any arrangement (full)."""

    fixed: tuple[int, int] | None = None
    blocks: tuple[int, int] | None = None

    @property
    def degree(self) -> Degree:
        """How flexible it is."""
        return "inflexible" if self.fixed else "partial" if self.blocks else "full"


@dataclass(frozen=True)
class Flexibility:
    """What a machine lets a mapper choose."""

    memory: str
    """The buffer whose tiles are meant (and counted) where an axis is fully flexible."""
    array: str
    """The fan-out that parallelism and shape are about."""
    tile: TileFlexibility = TileFlexibility()
    order: OrderFlexibility = OrderFlexibility()
    parallelism: ParallelismFlexibility = ParallelismFlexibility()
    shape: ShapeFlexibility = ShapeFlexibility()
    dimensions: tuple[str, ...] = CONVOLUTION
    """The dimensions spoken of. Operators that are no convolutions take part by what their dimensions do: see
    `tilewright.mapping.stand_ins`."""
    costs: FlexibilityCosts = field(default_factory=FlexibilityCosts)
    """What flexibility costs in area and leakage."""

    @property
    def degrees(self) -> dict[str, Degree]:
        """Degree of each axis, by its letter in TOPS."""
        return {"T": self.tile.degree, "O": self.order.degree, "P": self.parallelism.degree, "S": self.shape.degree}

    @property
    def class_bits(self) -> str:
        """The class as four digits, T O P S: 1 where the axis is flexible at all (equation 3.1)."""
        return "".join("0" if degree == "inflexible" else "1" for degree in self.degrees.values())

    @property
    def name(self) -> str:
        """``InFlex-0000``, ``FullFlex-1010`` or ``PartFlex-1010`` (partial on some flexible axis)."""
        found = set(self.degrees.values())
        return f"{'PartFlex' if 'partial' in found else 'FullFlex' if 'full' in found else 'InFlex'}-{self.class_bits}"

    def of_class(self, bits: str) -> "Flexibility":
        """Return the flexibility of a class: axes of digit 1 become full, those of digit 0 stay as they are.

        An unknown class, or an axis of digit 0 that is not inflexible here, is an `InputError`.
        """
        if bits not in CLASSES:
            raise InputError("flexibility class", "must be four digits 0 or 1, for T, O, P, S", bits,
                             "For example 1010")
        loose = [letter for letter, bit in zip(AXES, bits, strict=True)
                 if bit == "0" and self.degrees[letter] != "inflexible"]
        if loose:
            raise InputError("flexibility class", f"must be 1 for {', '.join(loose)}", bits,
                             "Begin with a machine that is inflexible on these axes")
        full: dict[str, object] = {"tile": TileFlexibility(), "order": OrderFlexibility(),
                                   "parallelism": ParallelismFlexibility(), "shape": ShapeFlexibility()}
        chosen = {name: axis for (name, axis), bit in zip(full.items(), bits, strict=True) if bit == "1"}
        return replace(self, **chosen)  # type: ignore[arg-type]


def _degree(choices: int) -> Degree:
    return "full" if choices == 0 else "inflexible" if choices == 1 else "partial"


class MemoryOutline(NamedTuple):
    """What flexibility is checked against: a memory's capacity (None is unlimited), and what it keeps."""

    capacity_bytes: float | None
    keeps: tuple[str, ...]


@dataclass(frozen=True)
class Issue:
    """What is wrong with a statement of flexibility or sparsity: where (keys below it), the rule, what was given."""

    where: tuple[str | int, ...]
    rule: str
    given: object = None
    mend: str = ""


def issues(flexibility: Flexibility, memories: Mapping[str, MemoryOutline],
           arrays: Mapping[str, int]) -> Iterator[Issue]:
    """Yield what is wrong with a statement about these memories and these arrays, of so many instances."""
    for name, given, known in (("memory", flexibility.memory, memories), ("array", flexibility.array, arrays)):
        if given not in known:
            yield Issue((name,), f"must be one of {', '.join(known) or 'none: the machine has no such level'}", given)
            return
    if len(set(flexibility.dimensions)) < len(flexibility.dimensions) or len(flexibility.dimensions) < 2:
        yield Issue(("dimensions",), "must be two or more different names", list(flexibility.dimensions))
    yield from _tile_issues(flexibility, memories)
    yield from _order_issues(flexibility)
    yield from _parallelism_issues(flexibility)
    yield from _shape_issues(flexibility, arrays[flexibility.array])


def _tile_issues(flexibility: Flexibility, memories: Mapping[str, MemoryOutline]) -> Iterator[Issue]:
    tile, dims = flexibility.tile, flexibility.dimensions
    if sum(map(bool, (tile.fixed, tile.per_element, tile.partitions))) > 1:
        yield Issue(("tile",), "takes one of fixed, per_element and partitions", mend="Remove the others")
    for key, given in (("fixed", tile.fixed), ("per_element", tile.per_element)):
        for name, extents in given:
            where = ("tile", key, name)
            if name not in memories:
                yield Issue(where, f"must be one of {', '.join(memories)}", name)
            yield from _extent_issues(where, extents, dims)
    yield from _partition_issues(tile, memories)


def _extent_issues(where: tuple[str, ...], extents: Extents, dims: tuple[str, ...]) -> Iterator[Issue]:
    given = [d for d, _ in extents]
    if set(given) != set(dims):
        missing = [d for d in dims if d not in given]
        yield Issue(where, f"must give {', '.join(dims)}", ", ".join(given),
                    f"Add {', '.join(missing)}" if missing else "Remove the others")
    for dimension, extent in extents:
        if extent < 1:
            yield Issue((*where, dimension), "must be a positive integer", extent)


def _partition_issues(tile: TileFlexibility, memories: Mapping[str, MemoryOutline]) -> Iterator[Issue]:
    for name, ratio in tile.partitions:
        if name not in memories:
            yield Issue(("tile", "partitions", name), f"must be one of {', '.join(memories)}", name)
        elif memories[name].capacity_bytes is None:
            yield Issue(("tile", "partitions", name), "must be a memory with a capacity_bytes to divide", name)
        elif {part for part, _ in ratio} != set(memories[name].keeps):
            yield Issue(("tile", "partitions", name), f"must give each of {', '.join(memories[name].keeps)}",
                        ", ".join(part for part, _ in ratio))
        if not ratio or min(share for _, share in ratio) <= 0:
            yield Issue(("tile", "partitions", name), "must give each role a positive part of the ratio")


def _order_issues(flexibility: Flexibility) -> Iterator[Issue]:
    choices, dims = flexibility.order.choices, flexibility.dimensions
    for index, choice in enumerate(choices):
        if sorted(choice) != sorted(dims):
            yield Issue(("order", "choices", index), f"must hold each of {', '.join(dims)} once", list(choice))
        if choice in choices[:index]:
            yield Issue(("order", "choices", index), "must differ from the others", list(choice))


def _parallelism_issues(flexibility: Flexibility) -> Iterator[Issue]:
    parallel, dims = flexibility.parallelism, flexibility.dimensions
    if parallel.dimensions_per_side not in (1, None):
        yield Issue(("parallelism", "dimensions_per_side"), "must be 1 or any", parallel.dimensions_per_side)
    if parallel.choices and parallel.dimensions_per_side is None:
        yield Issue(("parallelism",), "takes one of choices and dimensions_per_side: any")
    for index, choice in enumerate(parallel.choices):
        where = ("parallelism", "choices", index)
        if len(set(choice)) != 2 or len(choice) != 2:
            yield Issue(where, "must name two different dimensions, for X and Y", list(choice))
        elif set(choice) - set(dims):
            yield Issue(where, f"must name dimensions among {', '.join(dims)}", list(choice))
        if choice in parallel.choices[:index]:
            yield Issue(where, "must differ from the others", list(choice))


def _shape_issues(flexibility: Flexibility, instances: int) -> Iterator[Issue]:
    shape = flexibility.shape
    if shape.fixed and shape.blocks:
        yield Issue(("shape",), "takes one of fixed and blocks", mend="Remove one of them")
    for name, sides in (("fixed", shape.fixed), ("blocks", shape.blocks)):
        if sides and min(sides) < 1:
            yield Issue(("shape", name), "must be two positive integers", list(sides))
        elif sides and sides[0] * sides[1] > instances:
            yield Issue(("shape", name), f"must have at most the {instances} instances of {flexibility.array}",
                        list(sides))

"""What flexibility costs: square micrometres for the parts that each flexible axis adds to a machine.

The parts are those of figure 3.4 of Kao's dissertation (Georgia Tech 2022), the areas those of its table 3.2.
"""

from dataclasses import dataclass, replace

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

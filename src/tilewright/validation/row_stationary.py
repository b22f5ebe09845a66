"""Row-stationary mappings from the parameters by which the papers on Eyeriss describe them.

A *pass* takes ``n`` images, ``p`` filters and ``q`` channels in every set of processing elements; a set has a row for
each row of the filter and a column for each of ``e`` output rows. ``t`` sets take different filters, ``r`` sets
different channels. The global buffer holds the partial sums of ``m`` output channels until all channels are through.
(Chen et al., JSSC 52(1), 2017, section IV; table III has the parameters for AlexNet.)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Operator


@dataclass(frozen=True)
class Passes:
    """Parameters of a row-stationary mapping, by the letters of the paper."""

    m: int
    n: int
    e: int
    p: int
    q: int
    r: int
    t: int


def row_stationary(passes: Passes, operator: Operator, accelerator: Accelerator) -> Mapping:
    """Return the mapping: passes from DRAM, sums in ``GLB``, rows in ``PEs`` and ``Spads``.

    A memory ``Filters``, where there is one, holds the filters of one pass. More output rows than the array has columns
    are folded over its rows.
    """
    at = {level.name: level for level in accelerator.levels}
    array = at["PEs"]
    assert isinstance(array, Fanout)
    images = (("N", 1), ("Q", 1))
    steps: dict[str, tuple[tuple[str, int], ...]] = {
        "DRAM": (("G", 1), ("N", passes.n), ("P", passes.e), ("K", passes.m), ("C", passes.q * passes.r)),
        "GLB": (("K", passes.p * passes.t), *(() if "Filters" in at else images)),
        "Filters": images,
        "Spads": (("K", 1), ("C", 1), ("S", 1)),
    }
    left = dict(operator.sizes)
    levels = [LevelLoops(name, tuple(_spread(passes, array, left) if name == "PEs" else _in_time(steps[name], left)))
              for name in at]
    return Mapping(tuple(levels))


def active_elements(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> int:
    """Return how many processing elements work in a full pass."""
    outside, inside = dict(operator.sizes), {}
    for level, entry in zip(accelerator.levels, mapping.levels, strict=True):
        steps = {loop.dimension: loop.step for loop in entry.loops}
        if isinstance(level, Fanout):
            inside = outside | steps
            break
        outside |= steps
    return prod(-(-outside[name] // step) for name, step in inside.items())


def _in_time(steps: Iterable[tuple[str, int]], left: dict[str, int]) -> Iterable[Loop]:
    """Yield the loops that run more than once, and keep in ``left`` what their tiles leave."""
    for name, step in steps:
        if step < left.get(name, 1):
            left[name] = step
            yield Loop(name, step)


def _spread(passes: Passes, array: Fanout, left: dict[str, int]) -> Iterable[Loop]:
    """Yield the loops in space: output rows by filter rows, sets of filters beside one another where there is room."""
    columns, _ = array.shape
    beside = "X" if passes.e * passes.t <= columns else "Y"
    for name, step, side in (("P", columns, "Y"), ("K", passes.p, beside), ("C", passes.q, "Y"), ("R", 1, "Y"),
                             ("P", 1, "X")):
        if step < left[name]:
            left[name] = step
            yield Loop(name, step, "X" if side == "X" else "Y")

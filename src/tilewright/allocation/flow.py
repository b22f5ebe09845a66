"""What to keep, each tensor in part if need be, as a flow of least cost: a bound on every plan, and a guide to plans.

Room flows from step to step: what waits in a gap between two uses takes its bytes past the operations between, and
saves what it would cost to bring it back. Solved by OR-Tools (extra ``cp-sat``). Where a product that leaves in several
gaps is stored but once, that cost is laid on its gaps so that they bear it as evenly as they leave (subgradients).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilewright.allocation.bounds import Crowd, Gap, crowds, disjoint, role_bound
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Prices, Shares

ROUNDS, SETTLED = 8, 2
"""In which the cost of stores is laid on gaps anew; and those in which the guide settles what it stores."""
FINE = 2**24
"""Steps of the largest price of a byte: flows have whole costs, rounded so that the bound holds."""


def flow_bound(problem: ResidencyProblem, prices: Prices, stopped: Callable[[], bool]) -> tuple[int, Shares]:
    """Return what no plan scores below, moves between scratchpads being free, and how much stays where that is so."""
    worths, shares = dict[frozenset[int], int](), Shares()
    for crowd in sorted(crowds(problem, prices), key=lambda one: len(one.pads)):
        worths[crowd.pads], found = _flow(crowd, stopped)
        shares |= found
    return role_bound(problem, prices) + disjoint(worths), shares


def _flow(crowd: Crowd, stopped: Callable[[], bool]) -> tuple[int, Shares]:
    gaps = [gap for gap in crowd.prized if gap[2] > gap[1] + 1]
    if not gaps:
        return 0, {}
    price = np.array([crowd.prized[gap][0] for gap in gaps], dtype=np.int64)
    place = {gap: at for at, gap in enumerate(gaps)}
    stores = [(saving, np.array(here)) for saving, here in (
        (saving, [place[gap] for gap in mine if gap in place]) for saving, mine in crowd.stores) if here]
    laid = np.zeros(len(gaps))
    for saving, here in stores:
        laid[max(here.tolist(), key=lambda at: gaps[at][2] - gaps[at][1])] = saving
    best, kept = 0, np.zeros(len(gaps))
    for count in range(1, ROUNDS + 1):
        worth, found = _kept(crowd, gaps, price + laid.astype(np.int64))
        if worth >= best:
            best, kept = worth, found
        if stopped():
            break
        for saving, here in stores:
            gone = 1 - found[here]
            moved = np.maximum(0, laid[here] + saving * (gone - gone.mean()) / count)
            laid[here] = moved * (saving / max(moved.sum(), 1e-9))
    for _ in range(0 if stopped() else SETTLED):
        # What leaves in one gap is stored already for all others, and what leaves in none would have to be.
        for saving, here in stores:
            laid[here] = saving * kept[here].min()
        kept = _kept(crowd, gaps, price + laid.astype(np.int64))[1]
    return best, {gap[:2]: float(share) for gap, share in zip(gaps, kept, strict=True)}


def _kept(crowd: Crowd, gaps: list[Gap], price: NDArray[np.int64]) -> tuple[int, NDArray[np.float64]]:
    """Return what leaves at least, and the share of each gap that stays; nothing where numbers are too large."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow  # noqa: PLC0415  (an extra)

    size = np.array([crowd.prized[gap][1] for gap in gaps], dtype=np.int64)
    dearest = int(np.argmax(price / size))
    up, down = FINE * int(size[dearest]), max(1, int(price[dearest]))
    unit = [-(-int(each) * up // (int(bytes_) * down)) for each, bytes_ in zip(price, size, strict=True)]
    flow, steps = SimpleMinCostFlow(), np.arange(len(crowd.room))
    flow.add_arcs_with_capacity_and_unit_cost(steps, steps + 1, np.full(len(steps), max(crowd.room)), 0 * steps)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        np.array([gap[1] + 1 for gap in gaps]), np.array([gap[2] for gap in gaps]), size, -np.array(unit))
    flow.set_nodes_supplies(np.arange(len(steps) + 1), np.diff([0, *crowd.room, 0]))
    if flow.solve() != flow.OPTIMAL:
        return 0, np.zeros(len(gaps))
    return int(price.sum()) + flow.optimal_cost() * down // up, flow.flows(arcs) / size

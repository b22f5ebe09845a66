"""What no plan is below: what must be moved in any case, and what does not fit beside the operations of each step.

The last also as a flow of least cost, which guides plans too: each tensor is kept in part if need be. Room flows from
step to step: what waits in a gap between two uses takes its bytes past the operations between, and saves what it would
cost to bring it back. Solved by OR-Tools (extra ``cp-sat``). Where a product that leaves in several gaps is stored but
once, that cost is laid on its gaps so that they bear it as evenly as they leave (subgradients).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Prices, Shares

Gap = tuple[int, int, int]
Group = frozenset[int]
"""Scratchpads."""
ROUNDS, SETTLED = 8, 2
"""In which the cost of stores is laid on gaps anew; and those in which the guide settles what it stores."""
FINE = 2**24
"""Steps of the largest price of a byte: flows have whole costs, rounded so that the bound holds."""


def role_bound(problem: ResidencyProblem, prices: Prices) -> int:
    """Return the compulsory score and what must pass the main memory as no scratchpad may hold it for both of two uses.

    It holds for every order of the operations, and for all ways to run them in tiles that touch the same words.
    """
    forced = [gap for gap in problem.gaps if not [*_between(problem, gap)]]
    stored = {(tensor, _version(problem, tensor, first)): prices.saving(tensor, first) for tensor, first, _ in forced}
    return prices.compulsory + sum(prices.again(tensor, last) for tensor, _, last in forced) + sum(stored.values())


def capacity_bound(problem: ResidencyProblem, prices: Prices) -> int:
    """Return `role_bound` and what must leave for want of room, over steps that share no tensor in waiting.

    In one step the tensors that wait for later uses on some scratchpads must leave until the others that may be nowhere
    else fit there, the cheapest for its bytes first, the last one in part. Steps whose tensors wait elsewhere add up,
    and so do scratchpads that no tensor may share: the best such choice is found from left to right.
    """
    return role_bound(problem, prices) + disjoint({one.pads: _swept(one) for one in crowds(problem, prices)})


@dataclass(frozen=True)
class Crowd:
    """What can wait on some scratchpads alone."""

    pads: Group
    room: tuple[int, ...]
    """Bytes beside what an operation touches there, by step."""
    prized: dict[Gap, tuple[int, int]]
    """By gap between two uses, what it costs at least if the tensor leaves, and the least bytes that it takes."""
    stores: tuple[tuple[int, tuple[Gap, ...]], ...]
    """What storing costs besides, once for all gaps of a product that leaves in several, and these gaps."""


def crowds(problem: ResidencyProblem, prices: Prices) -> Iterator[Crowd]:
    """Give what waits on each set of scratchpads to which some tensors or uses are bound, and on all of them."""
    kept = {gap: frozenset(_between(problem, gap)) for gap in problem.gaps}
    version = {gap: (gap[0], _version(problem, *gap[:2])) for gap in kept}
    forced = {version[gap] for gap, pads in kept.items() if not pads}
    prized = {gap: (prices.again(gap[0], gap[2]) + (0 if version[gap] in forced else _sole(
        problem, prices, *gap[:2])), _least_room(problem, gap[0], pads)) for gap, pads in kept.items() if pads}
    shared: dict[tuple[int, int], list[Gap]] = {}
    for gap in prized:
        if version[gap] not in forced and not _sole(problem, prices, *gap[:2]):
            shared.setdefault(version[gap], []).append(gap)
    touched = [[(frozenset(problem.pads_of(one, at)), one) for one in step.touches]
               for at, step in enumerate(problem.steps)]
    for group in {*filter(None, kept.values()), *(pads for step in touched for pads, _ in step),
                  frozenset(range(len(problem.pads)))}:
        room = sum(problem.pads[pad].capacity_bytes for pad in group)
        yield Crowd(
            group, tuple(room - sum(_least_room(problem, one, pads) for pads, one in step if pads <= group)
                         for step in touched),
            {gap: worth for gap, worth in prized.items() if kept[gap] <= group},
            tuple((saving, tuple(gaps)) for gaps in shared.values() if all(kept[gap] <= group for gap in gaps)
                  and (saving := prices.saving(*gaps[0][:2]))))


def _swept(crowd: Crowd) -> int:
    """Return what must leave at least, over steps that share no gap."""
    waiting: list[list[Gap]] = [[] for _ in crowd.room]
    for gap in crowd.prized:
        for at in range(gap[1] + 1, gap[2]):
            waiting[at].append(gap)
    best = [0] * (len(crowd.room) + 1)
    for at, gaps in enumerate(waiting):
        excess = sum(crowd.prized[gap][1] for gap in gaps) - crowd.room[at]
        if excess > 0 and gaps:
            first, last = min(gap[1] for gap in gaps), max(gap[2] for gap in gaps)
            best[last] = max(best[last], best[first] + _least([crowd.prized[gap] for gap in gaps], excess))
        best[at + 1] = max(best[at + 1], best[at])
    return max(best)


def disjoint(found: dict[Group, int]) -> int:
    """Return the largest sum over groups that share no scratchpad."""
    @cache
    def best(left: Group) -> int:
        return max((worth + best(left - group) for group, worth in found.items() if worth and group <= left), default=0)

    return best(frozenset().union(*found))


def _between(problem: ResidencyProblem, gap: Gap) -> Iterator[int]:
    """Give the scratchpads on which a tensor may be from one use to the next."""
    tensor, first, last = gap
    ends = set(problem.pads_of(tensor, first)) & set(problem.pads_of(tensor, last))
    for pad in problem.idle_pads[tensor]:
        if problem.moving or pad in ends:
            yield pad


def _version(problem: ResidencyProblem, tensor: int, step: int) -> int:
    """Return the last step up to ``step`` that wrote a tensor; -1 for none."""
    return max((at for at in problem.written[tensor] if at <= step), default=-1)


def _least_room(problem: ResidencyProblem, tensor: int, pads: Group) -> int:
    return min(problem.rooms[tensor][pad] for pad in pads)


def _least(prized: list[tuple[int, int]], excess: int) -> int:
    """Return the least that so many bytes cost to leave, of gaps by price and size, rounded down."""
    cost = 0
    for price, size in sorted(prized, key=lambda one: one[0] / one[1]):
        if excess <= size:
            return cost + price * excess // size
        cost, excess = cost + price, excess - size
    return cost


def _sole(problem: ResidencyProblem, prices: Prices, tensor: int, first: int) -> int:
    """Return what storing adds where a tensor leaves in one gap alone: a store serves all gaps until the next write."""
    begin = max(0, _version(problem, tensor, first))
    end = min((at for at in problem.written[tensor] if at > first), default=len(problem.steps))
    alone = sum(begin < at <= end for at in problem.touches[tensor]) == 1
    return prices.saving(tensor, first) if alone else 0


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

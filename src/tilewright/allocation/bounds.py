"""What no plan is below: what must be moved in any case, and what does not fit beside the operations of each step."""

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Prices


def capacity_bound(problem: ResidencyProblem, prices: Prices) -> int:
    """Return the compulsory score and what must leave for want of room, over steps that share no tensor in waiting.

    In one step the tensors that wait for later uses must leave until the others fit, the cheapest for its bytes first,
    the last one in part. Steps whose tensors wait elsewhere add up: the best such choice is found from left to right.
    """
    room = sum(pad.capacity_bytes for pad in problem.pads)
    waiting: list[list[tuple[int, int, int]]] = [[] for _ in problem.steps]
    for gap in problem.gaps:
        for at in range(gap[1] + 1, gap[2]):
            waiting[at].append(gap)
    best = [0] * (len(problem.steps) + 1)
    """By step: what all before it must pay."""
    for at, gaps in enumerate(waiting):
        excess = sum(min(problem.rooms[one][pad] for pad in problem.pads_of(one, at))
                     for one in (*problem.steps[at].touches, *(gap[0] for gap in gaps))) - room
        if excess > 0:
            first, last = min(gap[1] for gap in gaps), max(gap[2] for gap in gaps)
            best[last] = max(best[last], best[first] + _least(problem, prices, gaps, excess))
        best[at + 1] = max(best[at + 1], best[at])
    return prices.compulsory + max(best)


def _least(problem: ResidencyProblem, prices: Prices, gaps: list[tuple[int, int, int]], excess: int) -> int:
    """Return the least that so many bytes cost to leave, rounded down."""
    prized = sorted((prices.again(tensor, last) + _sole(problem, prices, tensor, first),
                     min(problem.rooms[tensor][pad] for pad in problem.idle_pads[tensor]))
                    for tensor, first, last in gaps)
    prized.sort(key=lambda one: one[0] / one[1])
    cost = 0
    for price, size in prized:
        if excess <= size:
            return cost + price * excess // size
        cost, excess = cost + price, excess - size
    return cost


def _sole(problem: ResidencyProblem, prices: Prices, tensor: int, first: int) -> int:
    """Return what storing adds where a tensor leaves in one gap alone: a store serves all gaps until the next write."""
    writes = problem.written[tensor]
    begin = max((at for at in writes if at <= first), default=0)
    end = min((at for at in writes if at > first), default=len(problem.steps))
    alone = sum(begin < at <= end for at in problem.touches[tensor]) == 1
    return prices.saving(tensor, first) if alone else 0

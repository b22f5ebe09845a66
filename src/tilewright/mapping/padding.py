"""Padding: sizes rounded up so that whole tiles fill the arrays; the work on zeros is paid for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping.flexible import flexible_machine, flexible_spaces
from tilewright.mapping.spaces.rules.constraints import Constraints
from tilewright.workload import Operator

Goal = Literal["steps", "side"]


@dataclass(frozen=True)
class Padding:
    """An operator as it is and as it was padded."""

    original: Operator
    padded: Operator

    @property
    def ineffectual_share(self) -> float:
        """The share of the padded operator's multiply-accumulates that are on padding."""
        return 1 - self.original.macs / self.padded.macs

    @property
    def grown(self) -> dict[str, tuple[int, int]]:
        """Size before and after, of the dimensions that grew."""
        return {d: (size, self.padded.sizes[d]) for d, size in self.original.dimensions if size < self.padded.sizes[d]}


def padded(operator: Operator, accelerator: Accelerator, constraints: Constraints | None = None, *,
           to: Goal = "steps") -> Operator:
    """Return the operator with sizes rounded up, so that perfect tiling fills the arrays; nothing ever shrinks.

    Memories, and bounds on their tiles, are not looked at: a size whose steps hardly divide (129 = 3 x 43) may fill the
    array and still cost more, where what limits a layer is its data.

    Parameters
    ----------
    constraints
        Only dimensions that they (and the machine's stated flexibility) let loop along a side are rounded up for it.
        One with a bound on its factor there takes the least factor, to whose multiple it is rounded up, and no more.
    to
        ``steps``: as little as takes the fewest steps, over any number of dimensions a side; 113 on 16 places is then
        120, 8 steps on 15 of them. Arrays are filled from the outermost inward, side X before side Y, each with what
        the ones before left to run (which need not be the fewest steps over all sides together); one that can be
        reshaped, freely or by whole blocks, in that of its full arrangements which leaves the fewest steps, of equals
        the least work.

        ``side``: one dimension a side, to a multiple of the whole side as it is drawn, as in Ruby's figure 8 (128): of
        those that may lie there the one that grows least, and of these the largest. Each side is looked at alone, so
        that what is rounded up for two sides need not fill both.

    Raises
    ------
    InputError
        If ``to`` is unknown, or the constraints or the machine's flexibility do not fit the operator.

    Examples
    --------
    >>> from tilewright.hardware import preset
    >>> from tilewright.workload import matmul
    >>> padded(matmul("gemm", m=127, n=14, k=8), preset("eyeriss")).dimensions
    (('B', 1), ('M', 129), ('N', 14), ('K', 8))
    """
    if to not in get_args(Goal):
        raise InputError("padding.to", f"must be one of {', '.join(get_args(Goal))}", to)
    constraints = constraints or Constraints()
    machine = flexible_machine(accelerator)
    constraints.check(operator, machine)
    allowed = _spreadable(operator, accelerator, constraints)
    if to == "side":
        return _to_sides(operator, machine, constraints, allowed)
    plan = _Plan(dict(operator.sizes), dict.fromkeys(operator.sizes, 1))
    for fanout in machine.fanouts:
        filled = [_filled(plan, fanout.name, shape, constraints, allowed) for shape in _shapes(fanout)]
        plan = min(filled, key=lambda one: (one.steps, one.macs))
    return replace(operator, dimensions=tuple((d, plan.rest[d] * plan.lanes[d]) for d in operator.sizes))


@dataclass(frozen=True)
class _Plan:
    """By dimension: how much is left to run, and over how many lanes it lies so far."""

    rest: dict[str, int]
    lanes: dict[str, int]

    @property
    def steps(self) -> int:
        return math.prod(self.rest.values())

    @property
    def macs(self) -> int:
        return self.steps * math.prod(self.lanes.values())

    def spread(self, lanes: dict[str, int]) -> "_Plan":
        """Return the plan with dimensions over so many lanes more, rounded up."""
        return _Plan({d: -(-rest // lanes.get(d, 1)) for d, rest in self.rest.items()},
                     {d: before * lanes.get(d, 1) for d, before in self.lanes.items()})


def _filled(plan: _Plan, array: str, shape: tuple[int, int], constraints: Constraints,
            allowed: dict[str, tuple[str, ...]]) -> _Plan:
    """Return the plan with what is left spread over one array of this shape."""
    for axis, places in zip("XY", shape, strict=True):
        place = f"{array}.{axis}"
        fixed = {d: bounds.least for d, bounds in constraints.factors.get(place, {}).items()}
        plan = plan.spread(fixed)
        choices = [d for d in allowed.get(place, tuple(plan.rest)) if plan.rest[d] > 1 and d not in fixed]
        plan = plan.spread(_fewest_steps(plan, choices, places // math.prod(fixed.values())))
    return plan


def _to_sides(operator: Operator, machine: Accelerator, constraints: Constraints,
              allowed: dict[str, tuple[str, ...]]) -> Operator:
    """Return the operator with one dimension for each side rounded up to its multiple, each side for itself."""
    sizes = dict(operator.sizes)
    for fanout in machine.fanouts:
        for axis, places in zip("XY", fanout.shape, strict=True):
            place = f"{fanout.name}.{axis}"
            fixed = constraints.factors.get(place, {})
            side = places // math.prod(bounds.least for bounds in fixed.values())
            choices = [d for d in allowed.get(place, tuple(sizes)) if sizes[d] > 1 and d not in fixed]
            if side > 1 and choices:
                grown = {d: -(-sizes[d] // side) * side for d in choices}
                best = min(choices, key=lambda d: (grown[d] / sizes[d], -sizes[d]))
                sizes[best] = grown[best]
    return replace(operator, dimensions=tuple(sizes.items()))


def _fewest_steps(plan: _Plan, choices: list[str], places: int) -> dict[str, int]:
    """Return how to spread dimensions over at most ``places`` lanes for the fewest steps, then the least work.

    For each number of lanes the fewest steps are kept, dimension by dimension: work is the product of both.
    """
    best: dict[int, tuple[int, dict[str, int]]] = {1: (1, {})}
    for d in choices:
        ways = _ways(plan.rest[d], places)
        found: dict[int, tuple[int, dict[str, int]]] = {}
        for used, (steps, spread) in best.items():
            for lanes, count in ways:
                both = used * lanes
                if both > places:
                    break
                if both not in found or steps * count < found[both][0]:
                    found[both] = steps * count, {**spread, d: lanes}
        best = found
    used = min(best, key=lambda lanes: (best[lanes][0], lanes))
    return best[used][1]


def _ways(size: int, places: int) -> list[tuple[int, int]]:
    """Return the numbers of lanes that leave fewer steps than any smaller one, ascending, with those steps."""
    found = [(1, size)]
    for lanes in range(2, min(size, places) + 1):
        count = -(-size // lanes)
        if count < found[-1][1]:
            found.append((lanes, count))
    return found


def _shapes(fanout: Fanout) -> Iterator[tuple[int, int]]:
    """Yield the arrangements of an array that use all of it, the stated one first."""
    yield fanout.shape
    block = (1, 1) if fanout.flexible else fanout.blocks
    if block is not None:
        blocks = fanout.instances // (block[0] * block[1])
        yield from ((block[0] * x, block[1] * (blocks // x)) for x in range(1, blocks + 1) if blocks % x == 0)


def _spreadable(operator: Operator, accelerator: Accelerator, constraints: Constraints) -> dict[str, tuple[str, ...]]:
    """Return, by place, the dimensions that may loop there; a place that is not named leaves all."""
    if accelerator.flexibility is None:
        return dict(constraints.loops)
    found = dict(constraints.loops)
    members = [space.constraints.loops for space in flexible_spaces(operator, accelerator)]
    for place in {place for loops in members for place in loops}:
        able = {d for loops in members for d in loops.get(place, tuple(operator.sizes))}
        found[place] = tuple(d for d in constraints.loops.get(place, tuple(operator.sizes)) if d in able)
    return found

"""Groups joined to a plan of the network: dynamic programming over what has run, exact over the groups considered.

A state is the set of units that have run; it is closed: with each unit all run that it needs. Of a chain these are its
cuts, and of series-parallel networks products of cuts of their branches. Of each state those costs are kept that no
other beats. Where there are more states than `MOST_STATES`, groups begin with the first unit that has not run: that
leaves the cuts of one order, and the plan is the best of those alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.fusion.trees.network import FusableUnit, TreeCost, TreeGoal

MOST_STATES = 4000
MOST_POINTS = 200
"""Costs kept of one state, for products of cycles and energy; beyond, those are left out that lie close to others."""
WEIGHED = 4
"""Plans of least weighted sums that are looked for, whose products others must come below."""
Places = tuple[int, ...]


@dataclass(frozen=True)
class GroupLimits:
    """How large groups may be: layers, and units in all."""

    layers: int = 3
    units: int = 7


@dataclass(frozen=True)
class Steps:
    """What may run next in each state: the states in an order in which they are reached, and the groups from each."""

    groups: Mapping[int, tuple[Places, ...]]
    whole: bool
    """Whether all closed sets are states."""


def steps_through(units: Sequence[FusableUnit], limits: GroupLimits) -> Steps:
    """Return the states of a network and the groups that lead from each to others."""
    whole = _steps(units, limits, False)
    return Steps(whole, True) if whole is not None else Steps(_steps(units, limits, True) or {}, False)


def _steps(units: Sequence[FusableUnit], limits: GroupLimits, ordered: bool) -> dict[int, tuple[Places, ...]] | None:
    needs = [_bits(unit.before) for unit in units]
    found, waiting, everything = dict[int, tuple[Places, ...]](), {0}, (1 << len(units)) - 1
    while waiting:
        state = min(waiting, key=lambda each: (each.bit_count(), each))
        waiting.discard(state)
        if state == everything:
            continue
        if len(found) >= MOST_STATES and not ordered:
            return None
        found[state] = tuple(_groups(units, needs, state, limits, ordered))
        waiting |= {state | _bits(group) for group in found[state]} - found.keys()
    return found


def _groups(units: Sequence[FusableUnit], needs: list[int], state: int, limits: GroupLimits,
            ordered: bool) -> Iterator[Places]:
    """Yield the connected groups that can run next."""
    first = next(place for place in range(len(units)) if not state >> place & 1)
    fronts, seen = list[Places]([()]), set[Places]()
    while fronts:
        group = fronts.pop()
        inside = state | _bits(group)
        reach = range(group[0] if group else first, min(len(units), first + 4 * limits.units))
        for place in reach:
            larger = tuple(sorted({*group, place}))
            if inside >> place & 1 or needs[place] & ~inside or larger in seen or len(larger) > limits.units:
                continue
            if len(larger) > 1 and (not all(units[each].fusable for each in larger)
                                    or sum(units[each].layer for each in larger) > limits.layers):
                continue
            seen.add(larger)
            fronts.append(larger)
            if (not ordered or first in larger) and (len(larger) == 1 or _connected(units, larger)):
                yield larger


def _connected(units: Sequence[FusableUnit], group: Places) -> bool:
    reached, rest = {group[0]}, set(group[1:])
    while True:
        more = {place for place in rest if any(place in units[other].before or other in units[place].before
                                               for other in reached)}
        if not more:
            return not rest
        reached, rest = reached | more, rest - more


@dataclass(frozen=True)
class _Reached:
    """One way to reach a state: what it costs, the group that was last, and which of its plans."""

    cost: TreeCost
    before: "_Reached | None" = None
    group: Places = ()
    plan: int = 0


def best_join(steps: Steps, plans: Mapping[Places, Sequence[TreeCost]], goal: TreeGoal,
              begin: TreeCost) -> tuple[list[tuple[Places, int]], bool]:
    """Return the groups of the best plan and which plan each has, in their order, and whether none makes a better one.

    Parameters
    ----------
    plans
        Of each group what the plans cost that may be chosen, less what the group makes needless elsewhere.
    begin
        What every plan takes besides.
    """
    reached: dict[int, list[_Reached]] = {0: [_Reached(begin)]}
    exact, hopes = steps.whole, _Hopes.of(steps, plans, begin) if goal == "edp" else None
    for state, groups in steps.groups.items():
        ways = _leading(reached.pop(state, []), goal)
        if hopes is not None:
            ways = [way for way in ways if hopes.may_lead(way.cost, state)]
        if len(ways) > MOST_POINTS:
            exact, hopes = False, None
            ways = [ways[round(at * (len(ways) - 1) / (MOST_POINTS - 1))] for at in range(MOST_POINTS)]
        for group in groups:
            after = state | _bits(group)
            reached.setdefault(after, []).extend(
                _Reached(way.cost + cost, way, group, at) for way in ways
                for at, cost in enumerate(plans.get(group, ())))
    (ends,) = reached.values()
    end: _Reached | None = min(ends, key=lambda way: way.cost.value(goal))
    found = list[tuple[Places, int]]()
    while end is not None and end.group:
        found.append((end.group, end.plan))
        end = end.before
    return found[::-1], exact


@dataclass(frozen=True)
class _Hopes:
    """What no way on from a state is below, in cycles and in energy, and a product of both that a plan has."""

    fastest: Mapping[int, TreeCost]
    leanest: Mapping[int, TreeCost]
    most: float

    @classmethod
    def of(cls, steps: Steps, plans: Mapping[Places, Sequence[TreeCost]], begin: TreeCost) -> "_Hopes":
        """Return them; the plan is the best of those of least weighted sums, each weighed by the one before."""
        fastest, leanest = (_least(steps, plans, *weights) for weights in ((1.0, 0.0), (0.0, 1.0)))
        ends = [begin + fastest[0], begin + leanest[0]]
        for _ in range(WEIGHED):
            last = ends[-1]
            ends.append(begin + _least(steps, plans, last.energy_pj, float(last.latency_cycles))[0])
        return cls(fastest, leanest, min(end.value("edp") for end in ends) * (1 + 1e-9))

    def may_lead(self, cost: TreeCost, state: int) -> bool:
        """Return whether what costs so much at a state may become as good as the plan that is known."""
        if state not in self.fastest:
            return False
        return (cost.latency_cycles + self.fastest[state].latency_cycles) * (
            cost.energy_pj + self.leanest[state].energy_pj) <= self.most


def _least(steps: Steps, plans: Mapping[Places, Sequence[TreeCost]], cycles: float,
           energy: float) -> dict[int, TreeCost]:
    """Return the way on of the least weighted sum from every state that has one."""
    last = max(steps.groups, key=int.bit_count)
    found = {max(last | _bits(group) for group in steps.groups[last]): TreeCost()}
    for state, groups in reversed(list(steps.groups.items())):
        ways = [cost + found[after] for group in groups if (after := state | _bits(group)) in found
                for cost in plans.get(group, ())]
        if ways:
            found[state] = min(ways, key=lambda way: cycles * way.latency_cycles + energy * way.energy_pj)
    return found


def _bits(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)


def _leading(ways: list[_Reached], goal: TreeGoal) -> list[_Reached]:
    """Return those that may still lead to the best: of sums the least, of products all that no other beats."""
    if goal != "edp":
        return [min(ways, key=lambda way: way.cost.value(goal))] if ways else []
    kept, least = list[_Reached](), np.inf
    for way in sorted(ways, key=lambda way: (way.cost.latency_cycles, way.cost.energy_pj)):
        if way.cost.energy_pj < least:
            least = way.cost.energy_pj
            kept.append(way)
    return kept

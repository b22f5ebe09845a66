"""What to keep in each step, exactly, where moves between scratchpads are free: by dynamic programming over steps.

A state is which tensors of later use are on scratchpads after a step, and which of them the main memory has not yet
got. Keeping more never costs more, so that something leaves only where an operation needs its room. What this finds is
a bound on every plan, and where one scratchpad can be given to each stretch, or moves cost nothing, the best plan.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from tilewright.allocation.problem import MOST_SURE, ResidencyProblem, packed
from tilewright.allocation.stays import Prices

MOST_STATES, MOST_IDLE = 4_000, 16
"""States after a step, and tensors that wait in one of them, beyond which it is given up."""

State = tuple[frozenset[int], frozenset[int]]
"""Tensors on scratchpads, and those of them that would have to be stored."""

Reached = TypeVar("Reached", bound=tuple[Any, ...])
"""What a state costs, before all else."""


@dataclass(frozen=True)
class BestSets:
    """What to hold in each step, and the score of that."""

    sets: tuple[frozenset[int], ...]
    score: int


class StepSets:
    """What transitions from step to step need."""

    def __init__(self, problem: ResidencyProblem, prices: Prices) -> None:
        self.problem, self.prices = problem, prices
        self.known: dict[tuple[int, frozenset[int]], bool] = {}

    def fits(self, at: int, tensors: frozenset[int]) -> bool:
        """Whether tensors fit on scratchpads together in a step."""
        key = at, tensors
        if key not in self.known:
            self.known[key] = packed(self.problem, at, tensors, sure=True) is not None
        return self.known[key]

    def kept(self, at: int, idle: frozenset[int]) -> Iterator[frozenset[int]]:
        """Give the sets of what waits that fit beside an operation and cannot be larger."""
        touched = frozenset(self.problem.steps[at].touches)
        if self.fits(at, touched | idle):
            yield idle
            return
        order = sorted(idle, key=lambda one: (-self.problem.tensors[one].size_bytes, one))

        def choose(place: int, kept: frozenset[int]) -> Iterator[frozenset[int]]:
            if place == len(order):
                if not any(self.fits(at, touched | kept | {one}) for one in idle - kept):
                    yield kept
                return
            more = kept | {order[place]}
            if self.fits(at, touched | more):
                yield from choose(place + 1, more)
            yield from choose(place + 1, kept)

        yield from choose(0, frozenset())

    def after(self, at: int, state: State) -> Iterator[tuple[State, frozenset[int], int]]:
        """Give states after a step, what is held in it, and what leaves for it costs."""
        problem, (held, dirty) = self.problem, state
        step = problem.steps[at]
        idle = held - set(step.touches)
        written = {one for one in step.writes if problem.dirty(one, at)}
        clean = {one for one in step.touches if one in step.writes and one not in written}
        for kept in self.kept(at, idle):
            cost = 0
            for one in idle - kept:
                following = next(use for use in problem.touches[one] if use > at)
                cost += self.prices.again(one, following) + (self.prices.saving(one, at) if one in dirty else 0)
            here = kept | set(step.touches)
            later = frozenset(one for one in here if problem.touches[one][-1] > at)
            yield (later, (((dirty & here) - clean) | written) & later), here, cost


def best_sets(problem: ResidencyProblem, prices: Prices, upper: int | None = None,
              stopped: Callable[[], bool] = lambda: False) -> BestSets | None:
    """Return the best sets to hold in each step, moves being free; None where there are too many states.

    What scores above ``upper`` is left out.
    """
    steps = StepSets(problem, prices)
    room = None if upper is None else upper - prices.compulsory
    start: State = frozenset(), frozenset()
    layers: list[dict[State, tuple[int, State, frozenset[int]]]] = [{start: (0, start, frozenset())}]
    for at in range(len(problem.steps)):
        found: dict[State, tuple[int, State, frozenset[int]]] = {}
        touched = problem.steps[at].touches
        for state, (spent, _, _) in layers[-1].items():
            if len(state[0]) > MOST_IDLE or len(state[0].union(touched)) > MOST_SURE or stopped():
                return None
            for following, here, cost in steps.after(at, state):
                total = spent + cost
                if (room is None or total <= room) and (following not in found or total < found[following][0]):
                    found[following] = total, state, here
        layers.append(undominated(found, lambda one, at=at: prices.saving(one, at)))  # type: ignore[misc]
        if not layers[-1] or len(layers[-1]) > MOST_STATES:
            return None
    state = min(layers[-1], key=lambda one: layers[-1][one][0])
    score, sets = layers[-1][state][0], list[frozenset[int]]()
    for layer in reversed(layers[1:]):
        _, before, here = layer[state]
        sets.append(here)
        state = before
    return BestSets(tuple(reversed(sets)), prices.compulsory + score)


def undominated(found: dict[State, Reached], store: Callable[[int], int]) -> dict[State, Reached]:
    """Leave out states that others can become at no more cost, where storing a tensor costs ``store``."""
    order = sorted(found.items(), key=lambda one: (one[1][0], -len(one[0][0])))
    kept: list[tuple[State, Reached]] = []
    for state, value in order:
        if not any(other[0] >= state[0] and more[0] + sum(map(store, other[1] - state[1])) <= value[0]
                   for other, more in kept):
            kept.append((state, value))
    return dict(kept)

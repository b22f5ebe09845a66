"""The best order of operations together with what to keep, exactly, where operations are few and moves are free.

By dynamic programming over sets of operations that have run: a state is such a set, what is on scratchpads after it,
and what of that the main memory has not yet got. `tilewright.allocation.sets` does the same for one order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.allocation.heuristics import belady, greedy
from tilewright.allocation.problem import MOST_SURE, ResidencyProblem
from tilewright.allocation.sets import State, StepSets, undominated
from tilewright.allocation.stays import Prices, transfers_of

MOST_OPERATIONS, MOST_JOINT_STATES = 24, 6_000
"""Operations, and states after as many of them, beyond which it is given up."""

JointState = tuple[int, frozenset[int], frozenset[int]]
"""Operations that have run, as bits; tensors on scratchpads, and those of them that would have to be stored."""
JointLayer = dict[JointState, tuple[int, JointState, int]]
"""States after as many operations: what each costs, the state before, and the last operation."""


@dataclass(frozen=True)
class BestOrder:
    """An order of the operations, and what no plan scores below in any order."""

    order: tuple[int, ...]
    score: int


class _Uses:
    """Which operations touch and write each tensor, as bits."""

    def __init__(self, problem: ResidencyProblem, before: Sequence[frozenset[int]]) -> None:
        self.before = [sum(1 << one for one in steps) for steps in before]
        self.touching = [sum(1 << at for at in steps) for steps in problem.touches]
        self.writing = [sum(1 << at for at in steps) for steps in problem.written]

    def ready(self, done: int) -> Iterator[int]:
        """Give the operations that may run next."""
        for at, needed in enumerate(self.before):
            if not done >> at & 1 and not needed & ~done:
                yield at


def best_order(problem: ResidencyProblem, prices: Prices, before: Sequence[frozenset[int]],
               stopped: Callable[[], bool] = lambda: False) -> BestOrder | None:
    """Return the best of all orders, moves being free; None where operations or states are too many.

    What scores above the better of two heuristics in the given order is left out.

    Parameters
    ----------
    before
        For each operation those that must come before it.
    """
    count = len(problem.steps)
    if count > MOST_OPERATIONS:
        return None
    run = _Joint(problem, prices, before)
    room = min(prices.score(transfers_of(problem, rule(problem, prices))) for rule in (
        belady, greedy)) - prices.compulsory
    start: JointState = 0, frozenset(), frozenset()
    layers: list[JointLayer] = [{start: (0, start, -1)}]
    for _ in range(count):
        found = run.next(layers[-1], room, stopped)
        if not found:
            return None
        layers.append(found)
    state = min(layers[-1], key=lambda one: layers[-1][one][0])
    score, order = layers[-1][state][0], list[int]()
    for layer in reversed(layers[1:]):
        _, state, at = layer[state]
        order.append(at)
    return BestOrder(tuple(reversed(order)), prices.compulsory + score)


class _Joint:
    """What transitions from operation to operation need."""

    def __init__(self, problem: ResidencyProblem, prices: Prices, before: Sequence[frozenset[int]]) -> None:
        self.problem, self.prices, self.uses = problem, prices, _Uses(problem, before)
        self.steps = StepSets(problem, prices)
        self.stores = [min((prices.saving(one, at) for at in steps if problem.dirty(one, at)), default=0)
                       for one, steps in enumerate(problem.written)]

    def after(self, at: int, state: JointState) -> Iterator[tuple[JointState, int]]:
        """Give states after an operation, and what has to come again or to be stored for it."""
        problem, uses, (done, held, dirty) = self.problem, self.uses, state
        touched = problem.steps[at].touches
        cost = sum(self.prices.again(one, at) for one in touched if one not in held and uses.touching[one] & done)
        ran = done | 1 << at
        fresh = {one for one in problem.steps[at].writes
                 if not problem.tensors[one].leaves or uses.writing[one] & ~ran}
        for kept in self.steps.kept(at, held.difference(touched)):
            stored = sum(self.stores[one] for one in dirty - kept - set(touched))
            here = kept.union(touched)
            later = frozenset(one for one in here if uses.touching[one] & ~ran)
            left = dirty.difference(problem.steps[at].writes) | fresh
            yield (ran, later, left & later), cost + stored

    def next(self, layer: JointLayer, room: int, stopped: Callable[[], bool]) -> JointLayer:
        """Return the states after one more operation that cost no more than ``room``; none where they are too many."""
        found: JointLayer = {}
        for state, (spent, _, _) in layer.items():
            for at in self.uses.ready(state[0]):
                if len(state[1].union(self.problem.steps[at].touches)) > MOST_SURE:
                    return {}
                for following, cost in self.after(at, state):
                    total = spent + cost
                    if total <= room and (following not in found or total < found[following][0]):
                        found[following] = total, state, at
            if len(found) > 4 * MOST_JOINT_STATES or stopped():
                return {}
        left = self.least(found)
        return left if len(left) <= MOST_JOINT_STATES else {}

    def least(self, found: JointLayer) -> JointLayer:
        """Leave out states that others, after the same operations, can become at no more cost."""
        groups: dict[int, dict[State, tuple[int, JointState, int]]] = {}
        for (done, held, dirty), value in found.items():
            groups.setdefault(done, {})[held, dirty] = value
        return {(done, *state): value for done, states in groups.items()
                for state, value in undominated(states, self.stores.__getitem__).items()}

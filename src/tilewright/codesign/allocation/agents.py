"""ConfuciuX's agent: REINFORCE on a recurrent policy, layer by layer, then a genetic algorithm from where it ended."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.codesign.allocation.methods import METHODS, FineTuning, Trial
from tilewright.codesign.allocation.problem import AllocationProblem
from tilewright.mapping import classes_of
from tilewright.search import Resumable
from tilewright.workload import Operator

if TYPE_CHECKING:
    from tilewright.learn import RecurrentPolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EPISODES = 8
"""Drawn between two steps of learning; one as published."""
DISCOUNT = 0.9
GLOBAL = 1 / 9
"""Share of the epochs for the first stage: 5,000 before 2,000 generations of 20 (8.2.5); the release has two thirds."""


def observations(problem: AllocationProblem) -> NDArray[np.float32]:
    """Return what each layer is known by ``(l, 8)``: K C Y X R S, its kind, its place; from -1 to 1 (equation 8.1).

    Sizes are taken by their logarithms, as they span orders of magnitude. K, C, Y of a matrix product are N, K and M.
    """
    rows = np.array([_sizes(operator) for operator in problem.table.stages.operators], dtype=np.float64)
    rows[:, :6] = np.log2(rows[:, :6])
    rows = np.concatenate([rows, np.arange(len(rows))[:, None]], axis=1)
    low, high = rows.min(axis=0), rows.max(axis=0)
    scaled: NDArray[np.float32] = np.where(high > low, 2 * (rows - low) / np.maximum(high - low, 1e-9) - 1, 0.0).astype(
        np.float32)
    return scaled


def _sizes(operator: Operator) -> list[int]:
    classes, sizes = classes_of(operator), operator.sizes

    def size(kind: str) -> int:
        return int(np.prod([sizes[name] for name in classes[kind]]))

    window = [sizes[name] for name in classes["window"]][-2:]
    return [size("filters") * size("groups"), size("channels") * size("groups"), size("rows"), size("columns"),
            *[1] * (2 - len(window)), *window, int(size("groups") > 1)]


def rewards(problem: AllocationProblem, cells: Ints, lowest: float) -> tuple[Floats, NDArray[np.bool_], float]:
    """Return rewards ``(b, l)`` of episodes (equation 8.2), which steps were made, and the lowest performance so far.

    An episode ends where it is over the budget, with minus the sum of its rewards until then.
    """
    figures, costs = problem.of_layers(cells)
    performance = -figures.prod(axis=0)
    over = np.any(np.cumsum(costs, axis=2) > problem.limits[:, None, None], axis=0)
    made: NDArray[np.bool_] = np.cumsum(over, axis=1) == over  # no violation until the step before
    lowest = min(lowest, float(performance[made].min()))
    found = np.where(over, 0.0, performance - lowest)
    penalty = -np.cumsum(found, axis=1)
    return np.where(over, penalty, found) * made, made, lowest


@METHODS.register("reinforce")
class Reinforce(Resumable):
    """REINFORCE on an LSTM of 128, layer by layer (Kao 2022, section 8.1): the first stage of ConfuciuX."""

    changing = ("policy", "lowest")
    extra = "learn"
    recurrent = True

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        require_extra(self.extra, "method", "reinforce")
        self.problem, self.seed, self.lowest = problem, seed, np.inf

    @cached_property
    def policy(self) -> "RecurrentPolicy":
        """The network."""
        from tilewright.learn import RecurrentPolicy  # noqa: PLC0415 - PyTorch loads late

        return RecurrentPolicy(observations(self.problem), self.problem.axes, self.seed, self.recurrent)

    def step(self, trial: Trial) -> None:
        """Draw some episodes and learn from them."""
        actions = self.policy.draw(min(EPISODES, trial.left))
        cells = self.problem.cells(actions)
        trial.score(cells)
        reward, made, self.lowest = rewards(self.problem, cells, self.lowest)
        self.policy.learn(actions, _returns(reward, made), made)


@METHODS.register("reinforce-mlp")
class PlainReinforce(Reinforce):
    """REINFORCE on two plain layers, which know of no step before the last (section 8.2.7)."""

    recurrent = False


def _returns(reward: Floats, made: NDArray[np.bool_]) -> Floats:
    """Return discounted sums of rewards to come, standardised over each episode before and after."""
    total = np.zeros_like(reward)
    standard = _standard(reward, made)
    ahead = np.zeros(len(reward))
    for step in reversed(range(reward.shape[1])):
        ahead = standard[:, step] + DISCOUNT * ahead
        total[:, step] = ahead
    return _standard(total, made)


def _standard(rows: Floats, made: NDArray[np.bool_]) -> Floats:
    count = made.sum(axis=1, keepdims=True)
    mean = (rows * made).sum(axis=1, keepdims=True) / count
    spread = np.sqrt((((rows - mean) * made) ** 2).sum(axis=1, keepdims=True) / count)
    return np.asarray((rows - mean) * made / np.maximum(spread, 1e-12))


@METHODS.register("confuciux")
class Confuciux(Resumable):
    """Both stages of ConfuciuX: REINFORCE for a ninth of the epochs, then the genetic algorithm of section 8.1.8."""

    changing = ("first", "second")
    extra = Reinforce.extra

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        self.epochs = epochs
        self.first = Reinforce(problem, epochs, seed)
        self.second = FineTuning(problem, np.random.default_rng(seed))

    def step(self, trial: Trial) -> None:
        """Let the stage whose turn it is make a step."""
        (self.first if trial.spent < GLOBAL * self.epochs else self.second).step(trial)



class BaselineAgent(Resumable):
    """An agent of Stable-Baselines3 or sb3-contrib, with its own defaults, on the environment of allocations.

    It acts until its epochs end in one step; what was stopped before begins anew, and ends as it would have.
    """

    changing = ()
    extra = "rl"
    name = ""

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        require_extra(self.extra, "method", self.name)
        self.seed = seed

    def step(self, trial: Trial) -> None:
        """Act until the end."""
        from tilewright.codesign.allocation.environment import act  # noqa: PLC0415 - loads PyTorch

        act(self.name, trial, self.seed)


for _name in ("a2c", "ppo", "trpo", "ddpg", "sac", "td3"):
    METHODS.register(_name)(type(_name, (BaselineAgent,), {"name": _name, "__doc__": BaselineAgent.__doc__}))

"""ConfuciuX's agent: REINFORCE on a recurrent policy, layer by layer, then a genetic algorithm from where it ended."""

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.codesign.allocation.methods import METHODS, FineTuning, FrontTuning, Trial, Tuning
from tilewright.codesign.allocation.problem import AllocationProblem, observations
from tilewright.search import AgentMethod, Options, Resumable

if TYPE_CHECKING:
    from tilewright.learn import RecurrentPolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DISCOUNT = 0.9
GLOBAL = 1 / 9
"""Share of the epochs for the first stage: 5,000 before 2,000 generations of 20 (8.2.5); the release has two thirds."""


def rewards(problem: AllocationProblem, cells: Ints, lowest: float) -> tuple[Floats, NDArray[np.bool_], float]:
    """Return rewards ``(b, l)`` of episodes (equation 8.2), which steps were made, and the lowest performance so far.

    An episode ends where it is over the budget, with minus the sum of its rewards until then.
    """
    figures, costs = problem.of_layers(cells)
    performance = -figures.prod(axis=0)
    taken = np.cumsum(costs, axis=2) if problem.deployment == "pipelined" else costs
    over = np.any(taken > problem.limits[:, None, None], axis=0)
    made: NDArray[np.bool_] = np.cumsum(over, axis=1) == over  # no violation until the step before
    lowest = min(lowest, float(performance[made].min()))
    found = np.where(over, 0.0, performance - lowest)
    penalty = -np.cumsum(found, axis=1)
    return np.where(over, penalty, found) * made, made, lowest


class Affordable:
    """Which choices of a layer leave room for the least that all layers to come may take; all, where none do.

    Layers that run in turn take the pair of the first, which has to serve each of them in some style.
    """

    def __init__(self, problem: AllocationProblem) -> None:
        cells, self.limits = problem.table.stages.shape[1:], problem.limits
        self.costs = problem.costs.reshape(*problem.costs.shape[:2], *cells)[:, :, :, problem.coarse]
        self.together = problem.deployment == "sequential"
        least = self.costs.min(axis=(2, 3, 4))
        self.ahead = np.cumsum(least[:, ::-1], axis=1)[:, ::-1] - least
        self.fits = np.all(self.costs <= self.limits[:, None, None, None, None], axis=0)
        self.left = self.limits[:, None]

    def __call__(self, layer: int, last: Ints | None) -> NDArray[np.bool_]:
        """Return which are open ``(b, s, p, k)``, by what was chosen ``(b, 3)`` for the layer before."""
        if self.together:
            pairs = self.fits.any(axis=1).all(axis=0)[None] if last is None else np.zeros(
                (len(last), *self.fits.shape[2:]), dtype=np.bool_)
            if last is not None:
                pairs[np.arange(len(last)), last[:, 1], last[:, 2]] = True
            found: NDArray[np.bool_] = self.fits[layer] & pairs[:, None]
        else:
            self.left = self.limits[:, None] if last is None else self.left - self.costs[:, layer - 1][:, *last.T]
            spare = self.left - self.ahead[:, layer, None]
            found = np.all(self.costs[:, None, layer] <= spare[..., None, None, None], axis=0)
        return found | ~found.any(axis=(1, 2, 3), keepdims=True)


@METHODS.register("reinforce")
class Reinforce(Resumable):
    """REINFORCE on an LSTM of 128, layer by layer: ConfuciuX's agent, with choices that cannot break the budget.

    What it has other than the paper (`PublishedReinforce`): choices are drawn among those that leave room for the
    layers to come; an episode is measured by the others of its batch, step by step, not by its own other layers; what
    comes later counts in full, as the budget is shared; and a bonus for entropy falls to nothing as epochs end.
    """

    changing = ("policy", "lowest")
    extra = "learn"
    recurrent = affordable = True
    episodes, rate, entropy = 16, 3e-3, 0.1
    """Drawn between two steps of learning; of learning; a choice at the first epoch, in spreads of what is gained."""

    def __init__(self, session: Trial, options: Options, epochs: int | None = None) -> None:
        require_extra(self.extra, "method", "reinforce")
        self.session, self.problem, self.lowest = session, session.problem, np.inf
        self.epochs = epochs or session.epochs

    @cached_property
    def policy(self) -> "RecurrentPolicy":
        """The network."""
        from tilewright.learn import RecurrentPolicy  # noqa: PLC0415 - PyTorch loads late

        problem, seed = self.problem, self.session.seed
        return RecurrentPolicy(observations(problem), problem.axes, seed, self.recurrent, self.rate)

    @cached_property
    def open(self) -> Affordable | None:
        """What may be chosen; None for all."""
        return Affordable(self.problem) if self.affordable else None

    def step(self) -> None:
        """Draw some episodes and learn from them."""
        left = self.epochs - self.session.spent
        actions, values = self.policy.draw(min(self.episodes, left), self.open)
        cells = self.problem.cells(actions)
        self.session.score(cells)
        reward, made, self.lowest = rewards(self.problem, cells, self.lowest)
        self.policy.learn(actions, self.returns(reward, made), made, values, self.entropy * left / self.epochs)

    def returns(self, reward: Floats, made: NDArray[np.bool_]) -> Floats:
        """Return rewards to come, less what the batch has at that step, over the spread of all."""
        ahead = np.cumsum(reward[:, ::-1], axis=1)[:, ::-1]
        above = (ahead - (ahead * made).sum(axis=0) / np.maximum(made.sum(axis=0), 1)) * made
        return np.asarray(above / max(np.sqrt((above**2).sum() / made.sum()), 1e-12))


@METHODS.register("reinforce-published")
class PublishedReinforce(Reinforce):
    """REINFORCE as published (Kao 2022, section 8.1), but for eight episodes a step of learning in place of one."""

    affordable = False
    episodes, rate, entropy = 8, 1e-3, 0.0

    def returns(self, reward: Floats, made: NDArray[np.bool_]) -> Floats:
        """Return discounted sums of rewards to come, standardised over each episode before and after."""
        total = np.zeros_like(reward)
        standard = _standard(reward, made)
        ahead = np.zeros(len(reward))
        for step in reversed(range(reward.shape[1])):
            ahead = standard[:, step] + DISCOUNT * ahead
            total[:, step] = ahead
        return _standard(total, made)


@METHODS.register("reinforce-mlp")
class PlainReinforce(PublishedReinforce):
    """REINFORCE on two plain layers, which know of no step before the last (section 8.2.7)."""

    recurrent = False


def _standard(rows: Floats, made: NDArray[np.bool_]) -> Floats:
    count = made.sum(axis=1, keepdims=True)
    mean = (rows * made).sum(axis=1, keepdims=True) / count
    spread = np.sqrt((((rows - mean) * made) ** 2).sum(axis=1, keepdims=True) / count)
    return np.asarray((rows - mean) * made / np.maximum(spread, 1e-12))


@METHODS.register("confuciux")
class Confuciux(Resumable):
    """Both stages of ConfuciuX: REINFORCE for a ninth of the epochs, then a genetic algorithm from where it ended."""

    changing = ("first", "second")
    extra = Reinforce.extra
    agent: type[Reinforce] = Reinforce
    tuning: type[Tuning] = FrontTuning

    def __init__(self, session: Trial, options: Options) -> None:
        self.first = self.agent(session, options, max(1, round(GLOBAL * session.epochs)))
        shared = session.problem.deployment == "sequential"  # of one pair for all layers there are no fronts
        self.second = (FineTuning if shared else self.tuning)(session, options)

    def step(self) -> None:
        """Let the stage whose turn it is make a step."""
        (self.first if self.first.session.spent < self.first.epochs else self.second).step()


@METHODS.register("confuciux-published")
class PublishedConfuciux(Confuciux):
    """Both stages of ConfuciuX as published: its REINFORCE, then the genetic algorithm of section 8.1.8."""

    agent, tuning = PublishedReinforce, FineTuning


def _episodes(session: Trial, continuous: bool) -> Any:
    from tilewright.codesign.allocation.environment import AllocationEnv  # noqa: PLC0415 - loads Gymnasium

    return AllocationEnv(session.problem, session, continuous)


for _name in ("a2c", "ppo", "trpo", "ddpg", "sac", "td3"):
    METHODS.register(_name)(AgentMethod(_name, partial(_episodes, continuous=_name in ("ddpg", "sac", "td3")),
                                        {"gamma": DISCOUNT}))

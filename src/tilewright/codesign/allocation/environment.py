"""Allocation as an environment of Gymnasium, and the agents of Stable-Baselines3 on it (extra ``rl``).

>>> import gymnasium, tilewright.codesign.allocation.environment
>>> environment = gymnasium.make("tilewright/Allocation-v0")
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tilewright.codesign.allocation.methods import Trial
from tilewright.codesign.allocation.problem import AllocationProblem, observations
from tilewright.hardware import preset
from tilewright.workload import zoo

NAME = "tilewright/Allocation-v0"
Step = tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]


class AllocationEnv(gymnasium.Env[NDArray[np.float32], NDArray[Any]]):
    """One episode gives every layer its style, elements and buffer (Kao 2022, section 8.1).

    Observations are the ten numbers of equation 8.1, rewards those of equation 8.2 over the largest figure of the
    table: by what a layer is better than the worst seen; at a violation, which ends the episode, minus all until then.

    Parameters
    ----------
    problem
        What is allocated; by default the convolutions of MobileNet-V2 in NVDLA's style, within 10 % of the area.
    trial
        Counts the episodes, and keeps the best; by default none does.
    continuous
        Whether actions are numbers from -1 to 1, each cut into as many parts as there are choices.
    """

    def __init__(self, problem: AllocationProblem | None = None, trial: Trial | None = None,
                 continuous: bool = False) -> None:
        if problem is None:
            problem = AllocationProblem.of(zoo.load("mobilenet-v2"), preset("confuciux"), "area=iot", convolutions=True)
        self.problem, self.trial, self.continuous = problem, trial, continuous
        self.known, self.axes = observations(self.problem), np.array(self.problem.axes)
        self.action_space = spaces.Box(-1.0, 1.0, (3,)) if continuous else spaces.MultiDiscrete(self.axes)
        self.observation_space = spaces.Box(-1.0, 1.0, (10,))
        self.worst = float(self.problem.figures.prod(axis=0).max())
        self.lowest = np.inf
        self._begin()

    def _begin(self) -> None:
        self.actions, self.total = np.empty((0, 3), dtype=np.int64), 0.0
        self.left = self.problem.limits.copy()

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode at the first layer."""
        super().reset(seed=seed)
        self._begin()
        return self._seen(), {}

    def step(self, action: NDArray[Any]) -> Step:
        """Give the next layer its cell."""
        if self.continuous:
            parts = (np.asarray(action, dtype=np.float64) + 1) / 2 * self.axes
            action = np.clip(parts, 0, self.axes - 1)
        self.actions = np.concatenate([self.actions, np.asarray(action, dtype=np.int64)[None]])
        layer, cell = len(self.actions) - 1, int(self.problem.cells(self.actions)[-1])
        performance = -float(self.problem.figures[:, layer, cell].prod()) / self.worst
        if self.problem.deployment == "sequential":
            self.left = self.problem.limits.copy()  # each layer has all of it in its turn
        self.left -= self.problem.costs[:, layer, cell]
        self.lowest = min(self.lowest, performance)
        over = bool((self.left < 0).any())
        reward = -self.total if over else performance - self.lowest
        self.total += 0.0 if over else reward
        ended = over or len(self.actions) == len(self.known)
        if ended and self.trial is not None:
            self._count()
        return self._seen(), reward, ended, False, {"over": over}

    def _count(self) -> None:
        """Count the episode; one that ended early as the largest cells from there on, which are over, too."""
        assert self.trial is not None
        rest = np.tile(self.axes - 1, (len(self.known) - len(self.actions), 1))
        self.trial.score(self.problem.cells(np.concatenate([self.actions, rest]))[None])

    def _seen(self) -> NDArray[np.float32]:
        place = min(len(self.actions), len(self.known) - 1)
        last = self.actions[-1, 1:] if len(self.actions) else np.zeros(2)
        scaled = 2 * last / np.maximum(self.axes[1:] - 1, 1) - 1
        seen: NDArray[np.float32] = np.concatenate([self.known[place, :7], scaled, self.known[place, 7:]]).astype(
            np.float32)
        return seen


gymnasium.register(NAME, entry_point=f"{__name__}:AllocationEnv")

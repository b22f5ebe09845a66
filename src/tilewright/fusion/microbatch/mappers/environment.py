"""Micro-batches as an environment of Gymnasium (extra ``rl``).

>>> import gymnasium, tilewright.fusion.microbatch.mappers.environment
>>> environment = gymnasium.make("tilewright/MicroBatch-v0")
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tilewright.fusion.microbatch.costs import scores
from tilewright.fusion.microbatch.problem import OVER, SYNC, MicroBatchProblem
from tilewright.fusion.microbatch.session import STATE, FusionEpisode, FusionSession
from tilewright.hardware import preset
from tilewright.workload import zoo

NAME = "tilewright/MicroBatch-v0"
LARGEST = 60.0
"""Logarithms of what states tell are below."""
Step = tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]


class MicroBatchEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """One episode makes a strategy: each step chooses a micro-batch, 0 for -1 (see `FusionEpisode`).

    Observations are the logarithms of the state. The reward comes at the end: by what share the strategy is better than
    layer by layer; where it does not fit, minus how many times it is over.

    Parameters
    ----------
    problem
        What is fused; by default AlexNet on ``dnnfuser``, 8 samples in 2 MB.
    session
        Counts the episodes, and keeps the best strategy; by default none does.
    """

    def __init__(self, problem: MicroBatchProblem | None = None, session: FusionSession | None = None) -> None:
        self.problem = MicroBatchProblem.of(zoo.load("alexnet"), preset("dnnfuser"), 8, 2e6) \
            if problem is None else problem
        self.session = session
        self.unfused = float(scores(self.problem, self.problem.unfused)[0])
        self.episode = FusionEpisode(self.problem)
        self.action_space = spaces.Discrete(self.problem.batch + 1)
        self.observation_space = spaces.Box(0.0, LARGEST, (STATE,))

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a strategy."""
        super().reset(seed=seed)
        self.episode = FusionEpisode(self.problem)
        return self._seen(), {}

    def step(self, action: np.int64) -> Step:
        """Choose the next micro-batch."""
        self.episode.choose(int(action) or SYNC)
        if not self.episode.ended:
            return self._seen(), 0.0, False, False, {}
        plans = self.episode.strategy[None]
        score = float((scores(self.problem, plans) if self.session is None else self.session.score(plans))[0])
        reward = 1.0 - score / self.unfused if score < OVER else -score / OVER
        return np.zeros(STATE, dtype=np.float32), max(reward, -LARGEST), True, False, {}

    def _seen(self) -> NDArray[np.float32]:
        return np.log1p(self.episode.state).astype(np.float32)


gymnasium.register(NAME, entry_point=f"{__name__}:MicroBatchEnv")

"""Scheduling as an environment of Gymnasium (extra ``rl``).

>>> import gymnasium, tilewright.scheduling.methods.environment
>>> environment = gymnasium.make("tilewright/Schedule-v0")
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tilewright.scheduling.methods.lists import as_plan, mapping_rules
from tilewright.scheduling.problem import AnalysisTable, ScheduleProblem
from tilewright.scheduling.session import ScheduleSession
from tilewright.scheduling.simulation import simulate

NAME = "tilewright/Schedule-v0"
WINDOW = 5
"""Waiting jobs that an agent chooses among, as in the release."""
Step = tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]


def small_problem() -> ScheduleProblem:
    """Return twenty jobs on three cores, of which one is slow."""
    rng = np.random.default_rng(0)
    cycles = rng.integers(100, 1000, (20, 1, 1)) * np.array([1.0, 1.0, 4.0])[None, :, None]
    traffic = rng.integers(0, 4000, (20, 1, 1)) * np.ones((1, 3, 1))
    table = AnalysisTable(cycles, traffic, np.ones((20, 3, 1)), np.ones((20, 3), dtype=np.int64))
    return ScheduleProblem(table, np.arange(20), 8.0)


class ScheduleEnv(gymnasium.Env[NDArray[np.float32], NDArray[Any]]):
    """One episode makes a plan: each step takes one of the next five waiting jobs and a core (Kao 2022, table 7.3).

    Observations are how long each core is busy so far, and what the waiting jobs take on each core with their fastest
    mappings, as shares x of an even part of all, told as x / (1 + x); 0 where there is none. Rewards are minus what a
    step adds to the longest busy time, and at the end minus the objective, over that of a plan in the order given on
    the next core each. A job that the core does not fit goes to the next that it fits.

    Parameters
    ----------
    problem
        What is scheduled; by default `small_problem`.
    session
        Counts the episodes, and keeps the best plan; by default none does.
    """

    def __init__(self, problem: ScheduleProblem | None = None, session: ScheduleSession | None = None) -> None:
        self.problem, self.session = small_problem() if problem is None else problem, session
        self.times, self.option = mapping_rules(self.problem)[0]
        cores, least = self.problem.cores, self.times.min(axis=1)
        self.even = float(least.sum()) / cores
        self.action_space = spaces.MultiDiscrete([WINDOW, cores])
        self.observation_space = spaces.Box(0.0, 1.0, ((1 + WINDOW) * cores,))
        turns = np.arange(self.problem.jobs) % cores
        plain = as_plan(self.problem, self.problem.topological, self._fitting(turns), self.option)
        self.worth = max(float(simulate(self.problem, plain).score[0]), 1e-300)
        self._begin()

    def _begin(self) -> None:
        self.waiting = self.problem.topological.tolist()
        self.jobs: list[int] = []
        self.core = np.zeros(self.problem.jobs, dtype=np.int64)
        self.busy = np.zeros(self.problem.cores)

    def _fitting(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each job ``(n)`` the core that is wanted, or the next that it fits."""
        cores = (wanted[:, None] + np.arange(self.problem.cores)) % self.problem.cores
        fits = self.problem.counts[np.arange(self.problem.jobs)[:, None], cores] > 0
        found: NDArray[np.int64] = cores[np.arange(self.problem.jobs), fits.argmax(axis=1)]
        return found

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an empty plan."""
        super().reset(seed=seed)
        self._begin()
        return self._seen(), {}

    def step(self, action: NDArray[Any]) -> Step:
        """Give one of the waiting jobs to a core; the last of them where fewer wait."""
        job = self.waiting.pop(min(int(action[0]), len(self.waiting) - 1))
        core = int(self._fitting(np.full(self.problem.jobs, int(action[1])))[job])
        longest = self.busy.max()
        self.jobs.append(job)
        self.core[job], self.busy[core] = core, self.busy[core] + self.times[job, core]
        reward = -float(self.busy.max() - longest) / self.even
        if not self.waiting:
            plan = as_plan(self.problem, np.array(self.jobs), self.core, self.option)
            score = (simulate(self.problem, plan).score if self.session is None else self.session.score(plan))[0]
            reward -= float(score) / self.worth if np.isfinite(score) else 0.0
        return self._seen(), reward, not self.waiting, False, {}

    def _seen(self) -> NDArray[np.float32]:
        window = np.zeros((WINDOW, self.problem.cores))
        known = self.times[self.waiting[:WINDOW]]
        window[:len(known)] = np.where(np.isfinite(known), known, 0.0)
        shares = np.concatenate([self.busy, window.ravel()]) / self.even
        return (shares / (1 + shares)).astype(np.float32)


gymnasium.register(NAME, entry_point=f"{__name__}:ScheduleEnv")

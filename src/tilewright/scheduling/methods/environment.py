"""Scheduling as an environment of Gymnasium (extra ``rl``), one episode at a time or many side by side.

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


class ScheduleEpisodes:
    """Episodes side by side, each of which makes a plan: a step takes one of the next five waiting jobs and a core.

    Observations are how long each core is busy so far, and what the waiting jobs take on each core with their fastest
    mappings, as shares x of an even part of all, told as x / (1 + x); 0 where there is none. Rewards are minus what a
    step adds to the longest busy time, and at the end minus the objective, over that of a plan in the order given on
    the next core each. A job that the core does not fit goes to the next that it fits. All begin and end together, as
    each step of each takes a job.

    Parameters
    ----------
    problem
        What is scheduled.
    session
        Counts the episodes, and keeps the best plan; by default none does.
    """

    def __init__(self, problem: ScheduleProblem, session: ScheduleSession | None = None, count: int = 1) -> None:
        self.problem, self.session, self.count = problem, session, count
        self.times, self.option = mapping_rules(problem)[0]
        cores, least = problem.cores, self.times.min(axis=1)
        self.even = float(least.sum()) / cores
        self.known = np.append(np.where(np.isfinite(self.times), self.times, 0.0), np.zeros((1, cores)), axis=0)
        wanted = (np.arange(cores)[:, None] + np.arange(cores)) % cores
        self.fitting = wanted[np.arange(cores), (problem.counts[:, wanted] > 0).argmax(axis=2)]
        self.action_space = spaces.MultiDiscrete([WINDOW, cores])
        self.observation_space = spaces.Box(0.0, 1.0, ((1 + WINDOW) * cores,))
        core = self.fitting[np.arange(problem.jobs), np.arange(problem.jobs) % cores]
        plain = as_plan(problem, problem.topological, core, self.option)
        self.worth = max(float(simulate(problem, plain).score[0]), 1e-300)
        self.reset()

    def reset(self) -> NDArray[np.float32]:
        """Begin empty plans; return what agents see ``(e, o)``."""
        waiting = np.append(self.problem.topological, np.full(WINDOW, self.problem.jobs))
        self.window = np.tile(waiting[:WINDOW], (self.count, 1))
        self.behind, self.left = waiting[WINDOW:], self.problem.jobs
        self.jobs = np.empty((self.count, self.problem.jobs), dtype=np.int64)
        self.core = np.zeros((self.count, self.problem.jobs), dtype=np.int64)
        self.busy = np.zeros((self.count, self.problem.cores))
        return self._seen()

    def step(self, actions: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float64], bool]:
        """Give one of the waiting jobs of each to a core; the last of them where fewer wait.

        Returns
        -------
        What agents see ``(e, o)``, the rewards ``(e)``, and whether all have ended.
        """
        rows, wanted = np.arange(self.count), np.asarray(actions, dtype=np.int64)
        place = np.minimum(wanted[:, 0], self.left - 1)
        job = self.window[rows, place]
        core = self.fitting[job, wanted[:, 1]]
        longest, at = self.busy.max(axis=1), self.problem.jobs - self.left
        self.jobs[:, at], self.core[rows, job] = job, core
        self.busy[rows, core] += self.times[job, core]
        others = self.window[np.arange(WINDOW) != place[:, None]].reshape(self.count, -1)
        self.window = np.concatenate([others, np.full((self.count, 1), self.behind[at])], axis=1)
        self.left -= 1
        rewards = -(self.busy.max(axis=1) - longest) / self.even
        if not self.left:
            plans = as_plan(self.problem, self.jobs, self.core, self.option)
            scores = simulate(self.problem, plans).score if self.session is None else self.session.score(plans)
            rewards -= np.where(np.isfinite(scores), scores, 0.0) / self.worth
        return self._seen(), rewards, not self.left

    def _seen(self) -> NDArray[np.float32]:
        shares = np.concatenate([self.busy, self.known[self.window].reshape(self.count, -1)], axis=1) / self.even
        return (shares / (1 + shares)).astype(np.float32)


class ScheduleEnv(gymnasium.Env[NDArray[np.float32], NDArray[Any]]):
    """One of `ScheduleEpisodes` (Kao 2022, table 7.3), by default of `small_problem`."""

    def __init__(self, problem: ScheduleProblem | None = None, session: ScheduleSession | None = None) -> None:
        self.episodes = ScheduleEpisodes(small_problem() if problem is None else problem, session)
        self.action_space = self.episodes.action_space
        self.observation_space = self.episodes.observation_space

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an empty plan."""
        super().reset(seed=seed)
        return self.episodes.reset()[0], {}

    def step(self, action: NDArray[Any]) -> Step:
        """Give one of the waiting jobs to a core; the last of them where fewer wait."""
        seen, rewards, ended = self.episodes.step(np.asarray(action)[None])
        return seen[0], float(rewards[0]), ended, False, {}


gymnasium.register(NAME, entry_point=f"{__name__}:ScheduleEnv")

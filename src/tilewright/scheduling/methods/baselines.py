"""The baselines of table 7.3: optimisers that know numbers alone, and A2C and PPO (extra ``rl``), with its settings.

The first are those of `MAPPERS`; agents act in the environment ``tilewright/Schedule-v0``.
"""

from typing import Any

import numpy as np

from tilewright.scheduling.problem import Floats, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import AgentMethod, register_points

EPISODES = 32
"""Side by side; the settings say nothing of it."""
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"learning_rate": 7e-4, "gamma": 0.99, "use_rms_prop": True},
    "ppo": {"learning_rate": 2.5e-4, "gamma": 0.99, "clip_range": 0.2, "n_steps": 128, "n_epochs": 4,
            "batch_size": 128 * EPISODES // 4, "ent_coef": 0.01},
}
"""Of table 7.3; what it does not name is as Stable-Baselines3 has it, of PPO as PPO2 of Stable Baselines had it."""
LAYERS = (128, 128, 128)


def decoded(problem: ScheduleProblem, points: Floats) -> PlanGenomes:
    """Return the plans of points ``(b, 3 n)`` of the unit cube, or ``(b, 2 n)``: cores, priorities, mappings.

    A core, and a mapping, is the one at that share of those that the job may use.
    """
    cores, priority, options = np.split(np.pad(points, ((0, 0), (0, 3 * problem.jobs - points.shape[1]))), 3, axis=1)
    core = problem.cores_at(np.clip(cores, 0.0, 1.0))
    return PlanGenomes(core, np.clip(priority, 0.0, 1.0), problem.options_at(core, np.clip(options, 0.0, 1.0)))


def _numbers(session: ScheduleSession) -> int:
    return (3 if session.problem.counts.max() > 1 else 2) * session.problem.jobs


register_points(SCHEDULERS, _numbers, lambda session, points: decoded(session.problem, points))


def _episodes(session: ScheduleSession) -> Any:
    from tilewright.scheduling.methods.environment import ScheduleEpisodes  # noqa: PLC0415 - loads Gymnasium

    return ScheduleEpisodes(session.problem, session, EPISODES)


for _name, _settings in SETTINGS.items():
    SCHEDULERS.register(_name)(AgentMethod(
        _name, _episodes, {"policy_kwargs": {"net_arch": list(LAYERS)}, **_settings}))

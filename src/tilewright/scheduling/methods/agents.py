"""A2C and PPO on the environment ``tilewright/Schedule-v0``, with the settings of table 7.3 (extra ``rl``)."""

from typing import Any

from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import AgentMethod

EPISODES = 32
"""Side by side; the settings say nothing of it."""
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"learning_rate": 7e-4, "gamma": 0.99, "use_rms_prop": True},
    "ppo": {"learning_rate": 2.5e-4, "gamma": 0.99, "clip_range": 0.2, "n_steps": 128, "n_epochs": 4,
            "batch_size": 128 * EPISODES // 4, "ent_coef": 0.01},
}
"""Of table 7.3; what it does not name is as Stable-Baselines3 has it, of PPO as PPO2 of Stable Baselines had it."""
LAYERS = (128, 128, 128)


def _episodes(session: ScheduleSession) -> Any:
    from tilewright.scheduling.methods.environment import ScheduleEpisodes  # noqa: PLC0415 - loads Gymnasium

    return ScheduleEpisodes(session.problem, session, EPISODES)


for _name, _settings in SETTINGS.items():
    SCHEDULERS.register(_name)(AgentMethod(
        _name, _episodes, {"policy_kwargs": {"net_arch": list(LAYERS)}, **_settings}))

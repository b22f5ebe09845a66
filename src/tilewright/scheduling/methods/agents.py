"""A2C and PPO on the environment ``tilewright/Schedule-v0``, with the settings of table 7.3 (extra ``rl``)."""

from dataclasses import dataclass
from typing import Any

from tilewright.base import require_extra
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import MapperOptions, Options, Resumable, read_options

EPISODES = 32
"""Side by side; the settings say nothing of it."""
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"learning_rate": 7e-4, "gamma": 0.99, "use_rms_prop": True},
    "ppo": {"learning_rate": 2.5e-4, "gamma": 0.99, "clip_range": 0.2, "n_steps": 128, "n_epochs": 4,
            "batch_size": 128 * EPISODES // 4, "ent_coef": 0.01},
}
"""Of table 7.3; what it does not name is as Stable-Baselines3 has it, of PPO as PPO2 of Stable Baselines had it."""
LAYERS = (128, 128, 128)


class ScheduleAgent(Resumable):
    """An agent that makes plans, side by side; each is an episode, and one sample.

    It acts until the budget ends in one step; what was stopped before begins anew, and ends as it would have.
    """

    changing = ()

    def __init__(self, session: ScheduleSession, name: str) -> None:
        self.session, self.name = session, name

    def step(self) -> None:
        """Act until the end."""
        from tilewright.learn import train_agent  # noqa: PLC0415 - loads PyTorch
        from tilewright.scheduling.methods.environment import ScheduleEpisodes  # noqa: PLC0415

        session = self.session
        session.restart()
        episodes = ScheduleEpisodes(session.problem, session, EPISODES)
        train_agent(self.name, episodes, session.seed % 2**32, lambda: not session.over,
                    policy_kwargs={"net_arch": list(LAYERS)}, **SETTINGS[self.name])


@dataclass(frozen=True)
class AgentScheduler:
    """An agent of Stable-Baselines3 on the environment of schedules, with the settings of table 7.3."""

    name: str
    extra: str = "rl"

    def __call__(self, session: ScheduleSession, options: Options) -> ScheduleAgent:
        """Return a scheduler; an `InputError` if there are options, or the extra is not installed."""
        read_options(MapperOptions, options, self.name)
        require_extra(self.extra, "method", self.name)
        return ScheduleAgent(session, self.name)


for _name in SETTINGS:
    SCHEDULERS.register(_name)(AgentScheduler(_name))

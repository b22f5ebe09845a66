"""A2C on the environment ``tilewright/MicroBatch-v0`` (extra ``rl``): the agent of the paper's table 1."""

from dataclasses import dataclass

from tilewright.base import require_extra
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, FusionSession
from tilewright.search import MapperOptions, Options, Resumable, read_options


class FusionAgent(Resumable):
    """An agent of Stable-Baselines3, with its defaults, that makes one strategy an episode, which is one sample."""

    changing = ()

    def __init__(self, session: FusionSession, name: str) -> None:
        self.session, self.name = session, name

    def step(self) -> None:
        """Act until the end."""
        from tilewright.fusion.microbatch.mappers.environment import MicroBatchEnv  # noqa: PLC0415
        from tilewright.learn import train_agent  # noqa: PLC0415 - loads PyTorch

        session = self.session
        train_agent(self.name, MicroBatchEnv(session.problem, session), session.seed % 2**32,
                    lambda: not session.over)


@dataclass(frozen=True)
class AgentMapper:
    """An agent of Stable-Baselines3 that chooses one micro-batch after the other."""

    name: str
    extra: str = "rl"

    def __call__(self, session: FusionSession, options: Options) -> FusionAgent:
        """Return a mapper; an `InputError` if there are options, or the extra is not installed."""
        read_options(MapperOptions, options, self.name)
        require_extra(self.extra, "mapper", self.name)
        return FusionAgent(session, self.name)


FUSION_MAPPERS.register("a2c")(AgentMapper("a2c"))

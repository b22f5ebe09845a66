"""The baselines of the paper's table 1: optimisers that know numbers alone, and A2C (extra ``rl``)."""

from typing import Any

from tilewright.fusion.microbatch.session import FUSION_MAPPERS, FusionSession
from tilewright.search import AgentMethod, register_points


def _episodes(session: FusionSession) -> Any:
    from tilewright.fusion.microbatch.mappers.environment import MicroBatchEnv  # noqa: PLC0415 - loads Gymnasium

    return MicroBatchEnv(session.problem, session)


# Each entry's number, from 0 to 1, is its place among all choices.
register_points(FUSION_MAPPERS, lambda session: session.problem.length,
                lambda session, points: session.problem.at(points))
FUSION_MAPPERS.register("a2c")(AgentMethod("a2c", _episodes))

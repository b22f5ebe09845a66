"""The exact mapper: dynamic programming that proves the best strategy."""

from math import inf

from tilewright.fusion.microbatch.exact import best_strategy
from tilewright.fusion.microbatch.mappers.sampler import Sampler
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, SAMPLES, FusionSession
from tilewright.search import MapperOptions, Options, Resumable, read_options


@FUSION_MAPPERS.register("exact")
class Exact(Resumable):
    """Dynamic programming over groups, from where G-Sampler ends; what is stopped keeps the best strategy so far."""

    changing = ()

    def __init__(self, session: FusionSession, options: Options) -> None:
        read_options(MapperOptions, options, "exact")
        self.session, self.sampler = session, Sampler(session, {})

    def step(self) -> None:
        """Score a generation of G-Sampler, or after the last one what is proved to be best, and end."""
        session = self.session
        session.samples = None
        if session.spent < SAMPLES:
            self.sampler.step()
            return
        best, proven = best_strategy(session.problem, session.value, lambda: not (
            session.stop.is_set() or session.used_seconds >= (session.seconds or inf)))
        if best is not None:
            session.score(best)
        if proven:
            session.floor = session.value
        session.ended = True

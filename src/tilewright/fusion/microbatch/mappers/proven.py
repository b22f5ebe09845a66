"""The exact mapper: dynamic programming that proves the best strategy."""

from math import inf

from tilewright.fusion.microbatch.exact import SAME, best_strategy
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
        """Run G-Sampler, then what proves the best, and end.

        Of plans that are as good, one of plain micro-batches is taken.
        """
        session = self.session
        session.samples = None
        while session.spent < SAMPLES and not session.over:
            self.sampler.step()
        session.ended = True
        if (session.best == session.nothing).all() and session.value <= session.least * (1 + SAME):
            return
        best, least = best_strategy(session.problem, session.value, lambda: not (
            session.stop.is_set() or session.used_seconds >= (session.seconds or inf)))
        if best is not None:
            score = float(session.score(best)[0])
            if score <= session.value * (1 + SAME):
                session.value, session.best = score, best
        session.floor = min(least, session.value)

"""The exact mapper: dynamic programming that proves the best strategy."""

from tilewright.fusion.microbatch.exact import best_strategy
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, FusionSession
from tilewright.search import MapperOptions, Options, Resumable, read_options


@FUSION_MAPPERS.register("exact")
class Exact(Resumable):
    """Dynamic programming over groups; what is stopped before its end keeps the best strategy so far, and a bound."""

    changing = ()

    def __init__(self, session: FusionSession, options: Options) -> None:
        read_options(MapperOptions, options, "exact")
        self.session = session

    def step(self) -> None:
        """Score layer by layer, then what is proved to be best."""
        session = self.session
        session.score(session.problem.unfused)
        if session.value > session.least:
            best, proven = best_strategy(
                session.problem, session.value,
                lambda: not (session.stop.is_set() or session.used_seconds >= (session.seconds or float("inf"))))
            if best is not None:
                session.samples = None if session.samples is None else max(session.samples, session.spent + 1)
                session.score(best)
            if proven:
                session.floor = session.value
        session.ended = True

"""The exact mapper: dynamic programming that proves the best strategy."""

from math import inf

from tilewright.fusion.microbatch.exact import SAME, GroupSearch
from tilewright.fusion.microbatch.mappers.sampler import Sampler
from tilewright.fusion.microbatch.problem import Ints
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, SAMPLES, FusionSession
from tilewright.search import MapperOptions, Options, Resumable, State, read_options

OPEN = 1 - 3e-6
"""Bounds of a proof under way are lowered to this share, as a run whose gap is as good as closed would be over."""


@FUSION_MAPPERS.register("exact")
class Exact(Resumable):
    """Dynamic programming over groups, from where G-Sampler ends; what is stopped keeps the best strategy so far."""

    changing = ("search",)

    def __init__(self, session: FusionSession, options: Options) -> None:
        read_options(MapperOptions, options, "exact")
        self.session = session
        self.search: GroupSearch | None = None

    def step(self) -> None:
        """Run G-Sampler and look for plain micro-batches, powers of two runs; from then on solve group by group.

        Of plans that are as good, one of plain micro-batches is taken.
        """
        session, problem = self.session, self.session.problem
        if self.search is None:
            session.samples, sampler = None, Sampler(session, {})
            while session.spent < SAMPLES and not session.over:
                sampler.step()
            session.ended = (session.best == session.nothing).all() and session.value <= session.least * (1 + SAME)
            if session.ended:
                return
            plain = GroupSearch(problem, session.value * (1 + SAME), self._going, problem.choices[
                (problem.runs & (problem.runs - 1)) == 0])
            while not plain.ended and self._going():
                plain.step()
            self._take(plain.plan)
            session.ended = session.value <= session.least * (1 + SAME)
            self.search = GroupSearch(problem, session.value, self._going, problem.choices)
        else:
            self.search.step()
            self._take(self.search.plan)
            session.ended = self.search.ended
        session.floor = min(session.value, self.search.least * (1 if session.ended else OPEN))

    def _going(self) -> bool:
        session = self.session
        return not (session.stop.is_set() or session.used_seconds >= (session.seconds or inf))

    def _take(self, plan: Ints) -> None:
        session = self.session
        if len(plan) and (plan != session.best).any():
            score = float(session.score(plan)[0])
            if score <= session.value * (1 + SAME):
                session.value, session.best = score, plan

    def restore(self, state: State) -> None:
        """Undo `state`, in which a proof that has begun is."""
        session = self.session
        if any(name.startswith("search.") for name in state):
            session.samples = None
            self.search = GroupSearch(session.problem, session.value, self._going, session.problem.choices)
        super().restore(state)

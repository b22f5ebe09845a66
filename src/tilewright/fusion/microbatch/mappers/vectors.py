"""Optimisers that know numbers alone, as mappers of micro-batches: the baselines of the paper's table 1, and others."""

from dataclasses import dataclass

from tilewright.fusion.microbatch.session import FUSION_MAPPERS, FusionSession
from tilewright.search import MAPPERS, BlackBox, Options, PointSearch, Problem, Resumable


class PointMapper(Resumable):
    """Lets an optimiser search strategies: each entry's number, from 0 to 1, is its place among all choices."""

    changing = ("search",)

    def __init__(self, session: FusionSession, box: BlackBox, options: Options) -> None:
        self.session = session
        self.search = PointSearch(box, options, Problem(session.problem.length, session.seed % 2**32, session.samples))

    def step(self) -> None:
        """Score what it proposes."""
        self.search.advance(lambda points: self.session.score(self.session.problem.at(points)))


@dataclass(frozen=True)
class BoxMapper:
    """A `BlackBox` as a member of `FUSION_MAPPERS`, with the options of the mapper."""

    box: BlackBox

    @property
    def extra(self) -> str:
        """The extra of the package that it cannot do without, if any."""
        return self.box.extra

    def __call__(self, session: FusionSession, options: Options) -> PointMapper:
        """Return a mapper; an `InputError` if an option is wrong or the extra is not installed."""
        return PointMapper(session, self.box, options)


for _box in (MAPPERS.get(name) for name in MAPPERS):
    if isinstance(_box, BlackBox) and not _box.metrics:
        FUSION_MAPPERS.register(_box.name, _box.options_type)(BoxMapper(_box))

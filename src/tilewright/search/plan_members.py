"""What any registry of methods for plans may have: optimisers that know numbers alone, and agents.

They are members: called with a session, a `PlanSession`, and options they return what steps until that is over.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import Registry, require_extra
from tilewright.search.boxes import BlackBox, PointSearch, Problem
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import MAPPERS, MapperOptions, Options, read_options
from tilewright.search.plans import PlanSession

Decoder = Callable[[Any, NDArray[np.float64]], Any]
"""Returns the plans of a session at points ``(b, n)`` of the unit cube."""


class PointPlans(Resumable):
    """Lets an optimiser search plans as points."""

    changing = ("search",)

    def __init__(self, session: PlanSession, box: BlackBox, options: Options, how: tuple[int, Decoder]) -> None:
        self.session, (length, self.plans) = session, how
        self.search = PointSearch(box, options, Problem(length, session.seed % 2**32, session.samples))

    def step(self) -> None:
        """Score what it proposes."""
        self.search.advance(lambda points: self.session.score(self.plans(self.session, points)))


@dataclass(frozen=True)
class PointMethod:
    """A `BlackBox` that searches plans, with the options of the mapper; ``length`` tells the numbers of a plan."""

    box: BlackBox
    length: Callable[[Any], int]
    plans: Decoder

    @property
    def extra(self) -> str:
        """The extra of the package that it cannot do without, if any."""
        return self.box.extra

    def __call__(self, session: PlanSession, options: Options) -> PointPlans:
        """Return the search; an `InputError` if an option is wrong or the extra is not installed."""
        return PointPlans(session, self.box, options, (self.length(session), self.plans))


def register_points(registry: Registry[Any], length: Callable[[Any], int], plans: Decoder) -> None:
    """Register all optimisers of one number, by the names that they have as mappers."""
    for box in (MAPPERS.get(name) for name in MAPPERS):
        if isinstance(box, BlackBox) and not box.metrics:
            registry.register(box.name, box.options_type)(PointMethod(box, length, plans))


class AgentPlans(Resumable):
    """An agent that makes plans: each is an episode, and one sample.

    It acts until the budget ends in one step; what was stopped before begins anew, and ends as it would have.
    """

    changing = ()

    def __init__(self, session: PlanSession, method: "AgentMethod") -> None:
        self.session, self.method = session, method

    def step(self) -> None:
        """Act until the end."""
        from tilewright.learn import train_agent  # noqa: PLC0415 - loads PyTorch

        self.session.restart()
        train_agent(self.method.name, self.method.episodes(self.session), self.session.seed % 2**32,
                    lambda: not self.session.over, **self.method.settings)


@dataclass(frozen=True)
class AgentMethod:
    """An agent of Stable-Baselines3 or sb3-contrib that learns to make plans, on episodes that count as samples."""

    name: str
    episodes: Callable[[Any], Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    extra: str = "rl"

    def __call__(self, session: PlanSession, options: Options) -> AgentPlans:
        """Return a search; an `InputError` if there are options, or the extra is not installed."""
        read_options(MapperOptions, options, self.name)
        require_extra(self.extra, "method", self.name)
        return AgentPlans(session, self)

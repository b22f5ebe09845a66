"""Budgets, progress and results of searches."""

import math
import re
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tilewright.base import InputError
from tilewright.cost import Cost, Totals
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping, SpaceSize
from tilewright.search.bounding import Bounding, KeptBounding, relative_gap
from tilewright.search.front import Front
from tilewright.search.objective import BREAKS_CONSTRAINT
from tilewright.search.start import Origin
from tilewright.workload import Operator

Stopped = Literal["samples", "seconds", "exhausted", "interrupted"]
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Budget:
    """How long one search may go on: mappings scored, seconds, or whichever ends first.

    Only a budget of samples gives the same result every time.

    Raises an `InputError` if there is neither, or one is not positive and finite.
    """

    samples: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.samples is None and self.seconds is None:
            raise InputError("budget", "must limit samples or seconds")
        for name, value in (("samples", self.samples), ("seconds", self.seconds)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"budget.{name}", "must be positive and finite", value)

    @classmethod
    def parse(cls, text: "str | int | Budget") -> "Budget":
        """Read ``10000``, ``1e6``, ``10s``, ``5min`` or both, ``1e6,10s``."""
        if isinstance(text, Budget):
            return text
        samples: int | None = None
        seconds: float | None = None
        for part in str(text).split(","):
            found = re.fullmatch(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE]\+?\d+)?)\s*(ms|s|min|m|h)?\s*", part, re.ASCII)
            if not found:
                raise InputError("budget", "must be a number of samples or a time", text, "For example 10000 or 10s")
            if (seconds if found.group(2) else samples) is not None:
                raise InputError("budget", "must give samples once, and a time once", text,
                                 "Write thousands without a comma: 10000, or 10k")
            if found.group(2):
                seconds = float(found.group(1)) * _SECONDS[found.group(2)]
            else:
                number = float(found.group(1))
                if number < math.inf and not number.is_integer():
                    raise InputError("budget", "must be a whole number of samples, or a time", text,
                                     "A time has a unit: 1.5s")
                samples = int(number)
        return cls(samples, seconds)


@dataclass(frozen=True)
class Improvement:
    """A best score so far: after how many samples and seconds it was found."""

    samples: int
    seconds: float
    score: float


@dataclass(frozen=True)
class Progress:
    """Where a search stands.

    ``best`` is None before a mapping meets all requirements, ``bound`` (which no score can beat) and ``eta_seconds``
    if unknown; scores are in ``unit``.
    """

    name: str
    samples: int
    legal_samples: int
    seconds: float
    best: float | None
    total_samples: int | None
    eta_seconds: float | None
    bound: float | None = None
    unit: str = ""

    @property
    def gap(self) -> float | None:
        """By how much of the bound the best score is above it; None if unknown."""
        return relative_gap(self.best, self.bound)

    @property
    def fraction(self) -> float | None:
        """Share of the budget that is spent, None if unknown."""
        if self.eta_seconds is None:
            return None
        whole = self.seconds + self.eta_seconds
        return self.seconds / whole if whole > 0 else 1.0


class ProgressObserver(Protocol):
    """Shown a search's progress a few times a second, and once at its end."""

    def update(self, progress: Progress) -> None:
        """Show where the search stands; may be called from several threads."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    operator: Operator
    mapping: Mapping | None
    cost: Cost | None
    """``mapping`` and ``cost``: the best legal mapping and its full cost; None if none was found."""
    score: float
    """The objective of that mapping, in the objective's unit; infinite if there is none."""
    feasible: bool
    """Whether the mapping also meets the constraints. If none did, the one that broke them least is given."""
    samples: int
    legal_samples: int
    """``samples`` and ``legal_samples``: mappings scored, and how many of them were legal."""
    seconds: float
    history: tuple[Improvement, ...]
    """Every improvement of the best score among legal mappings that meet the constraints."""
    mapper: str
    seed: int | tuple[int, ...]
    objective: str
    budget: Budget
    space_size: SpaceSize | None
    """Size of the space, where the mapper counts it (exhaustive)."""
    complete: bool
    """Every mapping of the space was scored (up to equal cost), so that the best found is the optimum."""
    stopped: Stopped
    """Why the search ended."""
    proven: float | None = None
    """Score that the mapper has proved no mapping of the space to beat, where it proves anything."""
    bounding: Bounding | KeptBounding | None = field(default=None, compare=False, repr=False)
    """Works out the bound that is known without a search."""
    start: tuple[Origin, ...] = ()
    """Where the mappings were found that the search began from; empty if it began from none."""
    front: Front | None = None
    """The Pareto front of the metrics asked for, if any."""
    machine: Accelerator | None = None
    """The machine of the mapping, where the mapper proposes machines too."""

    @property
    def bound(self) -> float | None:
        """Score that no mapping of the space can beat; None for objectives without one (power)."""
        return self.score if self.complete and self.feasible else None if self.impossible else self._known

    @property
    def impossible(self) -> bool:
        """Whether it is proved that no mapping of the space meets the constraints."""
        return not self.feasible and (self.complete or (self._known or 0.0) >= BREAKS_CONSTRAINT)

    @property
    def _known(self) -> float | None:
        known = [self.proven, None if self.bounding is None else self.bounding.score]
        return max((bound for bound in known if bound is not None), default=None)

    @property
    def gap(self) -> float | None:
        """By how much of the bound the best score is above it; None if either is unknown."""
        return relative_gap(self.score if self.feasible else None, self.bound)


@dataclass(frozen=True)
class LayerResult:
    """The search of one distinct operator: the nodes that run it, how often in all, and what was found."""

    names: tuple[str, ...]
    count: int
    result: SearchResult


@dataclass(frozen=True)
class NetworkResult:
    """The searches of all distinct operators of a network, in the order of their first use.

    ``layers`` holds what is finished, and of an interrupted run also what was found so far; ``unfinished`` names the
    operators whose search had not ended. ``seconds`` are those of the search, in all legs of a run that was taken up;
    ``setup_seconds`` those before it.
    """

    layers: tuple[LayerResult, ...]
    unfinished: tuple[str, ...]
    seconds: float
    setup_seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every search ended by itself."""
        return not self.unfinished

    @property
    def latency_cycles(self) -> float:
        """Cycles of all layers one after the other; infinite where a layer has no mapping."""
        found: float = self._totals.latency_cycles
        return found

    @property
    def energy_pj(self) -> float:
        """Picojoules of all layers; infinite where a layer has no mapping."""
        found: float = self._totals.energy_pj
        return found

    @property
    def samples(self) -> int:
        """Mappings scored in all searches."""
        return sum(layer.result.samples for layer in self.layers)

    @property
    def _totals(self) -> Totals:
        return Totals.of((layer.count, layer.result.cost) for layer in self.layers)

"""Two loops: one proposes machines, the other maps every layer on each (6.2.2; HASCO, ISCA 2021, is of this kind)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tilewright.base import require_extra, unknown_name
from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.methods.boxes import REFUSED
from tilewright.codesign.methods.decoding import NeededDesigns
from tilewright.codesign.methods.grid import ABREAST, SharedOptions
from tilewright.codesign.screening import reaching
from tilewright.codesign.session import MachineSearch, Session
from tilewright.hardware import Number
from tilewright.search import Options, read_options

OUTER = "random", "tpe", "gp"


@dataclass(frozen=True)
class TwoLoopOptions(SharedOptions):
    """Options of ``two-loop``."""

    outer: Annotated[str, "What proposes machines: ``random``, or of Optuna ``tpe`` (tree-structured Parzen "
                          "estimators) or ``gp`` (Bayesian optimisation with a Gaussian process)."] = "tpe"
    mapper: Annotated[str, "What maps their layers."] = "gamma"


@DESIGNERS.register("two-loop", TwoLoopOptions)
class TwoLoopDesigner:
    """Machines proposed one after the other by what the best mappings of those before them came to.

    What is proposed over the limits is taken back to them on the way to the smallest machine, even in logarithms.
    """

    extra = "optimizers"

    def __init__(self, session: Session, options: Options) -> None:
        given = read_options(TwoLoopOptions, options, "two-loop")
        if given.outer not in OUTER:
            raise unknown_name("outer loop", given.outer, list(OUTER), "options.outer")
        require_extra(self.extra, "design method", "two-loop")
        population = max(2, min(50, given.share // 5))
        self.session, self.share = session, given.share
        self.by = MachineSearch(given.mapper, {"population": population} if given.mapper == "gamma" else {})
        self.study = _study(given.outer, session.seed)

    def steps(self) -> Iterator[None]:
        """Propose, map, and tell the score."""
        session = self.session
        while True:
            trials = [self.study.ask() for _ in range(ABREAST)]
            found = session.map([self._machine(trial) for trial in trials], self.share, by=self.by)
            for trial, candidate in zip(trials, found, strict=False):
                loss = math.log(max(candidate.score, 1e-300)) if candidate.score < math.inf else REFUSED
                self.study.tell(trial, loss)
            yield
            if session.over:
                return

    def _machine(self, trial: Any) -> dict[Number, float]:
        """Return the machine of a trial."""
        problem = self.session.problem
        highest, ranges = NeededDesigns(problem).highest, problem.space.ranges
        low = np.array([[one.place(problem.budget.smallest[key]) for key, one in ranges.items()]])
        wanted = {key: trial.suggest_float(".".join(key), 0.0, 1.0) for key in ranges}
        high = np.array([[one.place(problem.budget.smallest[key] * (highest[key] / problem.budget.smallest[key])
                                    ** wanted[key]) for key, one in ranges.items()]])
        places = reaching(problem, low, np.maximum(high, low))[0]
        return {key: float(one.value(int(at))) for (key, one), at in zip(ranges.items(), places, strict=True)}


def _study(outer: str, seed: int) -> Any:
    import optuna  # noqa: PLC0415  (an extra)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler,
                "gp": optuna.samplers.GPSampler}
    return optuna.create_study(sampler=samplers[outer](seed=seed % 2**32))

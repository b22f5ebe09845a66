"""Plans of any kind that methods look for within a budget: counted alike, the best so far and what none is below."""

import time
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.jobs import Observer, Spending, Stop, present_stop
from tilewright.search.checkpoint import Resumable, State, load_checkpoint, part, save_checkpoint

CLOSED = 1e-6
"""Gap below which a plan counts as the best there is."""
KEEP_SECONDS = 5.0
"""How often a run is kept."""


class PlanMethod(Protocol):
    """Proposes plans to its session, step by step; a `Resumable`, whose state is all that changes."""

    def step(self) -> None:
        """Score some plans, at least one, or set the session's ``ended``."""

    def state(self) -> State:
        """Return all that changes, as arrays."""

    def restore(self, state: State) -> None:
        """Undo `state`."""


class PlanSession(Spending, Resumable):
    """Scores plans within a budget, and keeps the best. A sample is a plan that is scored.

    Parameters
    ----------
    nothing
        What the best plan is before there is one. Batches of plans have a length, and give some of theirs by a slice.

    Raises
    ------
    InputError
        If ``samples`` or ``seconds`` are given and not positive.
    """

    known = 0.0
    """What no plan is below by what is known beforehand."""
    changing: ClassVar[tuple[str, ...]] = ("spent", "value", "best", "steps", "ended", "earlier", "floor")

    def __init__(self, nothing: Any, samples: int | None, seconds: float | None, seed: int, stop: Stop | None) -> None:
        for name, given in (("samples", samples), ("seconds", seconds)):
            if given is not None and not given > 0:
                raise InputError(name, "must be positive", given)
        super().__init__(samples, seconds, present_stop() if stop is None else stop)
        self.nothing, self.seed, self.floor = nothing, seed, 0.0
        self.restart()

    def restart(self) -> None:
        """Forget all plans."""
        self.spent, self.value, self.ended = 0, inf, False
        self.best = self.nothing
        self.steps = np.empty((0, 3))

    @property
    def least(self) -> float:
        """What no plan is below: what is ``known``, or the ``floor``, which methods raise by what they prove."""
        return max(self.known, self.floor)

    @property
    def over(self) -> bool:
        """Whether to end: nothing is left to spend, the method has ended, or nothing better is to be found."""
        return self.ended or self.exhausted or self.value <= self.least * (1 + CLOSED)

    @property
    def title(self) -> str:
        """What is shown of the best."""
        return f"best {self.value:.6g}, bound {self.least:.6g}:"

    def cost(self, plans: Any) -> NDArray[np.float64]:
        """Return the objective ``(b)`` of plans."""
        raise NotImplementedError

    def score(self, plans: Any) -> NDArray[np.float64]:
        """Return the objective ``(b)`` of plans; those that no sample is left for count as infinite."""
        scores = np.full(len(plans), inf)
        count = int(min(self.left, len(plans)))
        if count:
            scores[:count] = self.cost(plans[:count])
            best = int(scores.argmin())
            self.note(scores[:count], plans[best:best + 1])
        return scores

    def note(self, scores: NDArray[np.float64], best: Any) -> None:
        """Count the samples that have these scores, one after the other; ``best`` is the plan of the least."""
        least = np.minimum.accumulate(np.minimum(scores, self.value))
        better = np.flatnonzero(least < np.concatenate([[self.value], least[:-1]]))
        now = np.full(len(better), self.used_seconds)
        self.steps = np.concatenate([self.steps, np.stack([self.spent + 1.0 + better, now, least[better]], axis=1)])
        self.spent += len(scores)
        if len(better):
            self.value, self.best = float(least[-1]), best

    def run(self, method: Any, told: Observer | None, file: Path | None, identity: dict[str, str]) -> None:
        """Let a `PlanMethod` go on until it is over.

        Parameters
        ----------
        told
            Shown after each step where it stands.
        file, identity
            What keeps the run, every few seconds and at its end, and takes it up; and what it is a run of.

        Raises
        ------
        InputError
            If the file is of another run.
        """
        kept = None if file is None else load_checkpoint(file, identity)
        if kept is not None:
            self.restore(part(kept, "session"))
            method.restore(part(kept, "method"))
        saved = time.perf_counter()
        while not self.over:
            method.step()
            if told is not None:
                told(self.standing(self.title))
            if time.perf_counter() - saved > KEEP_SECONDS:
                saved = self._keep(method, file, identity)
        self._keep(method, file, identity)

    def _keep(self, method: Any, file: Path | None, identity: dict[str, str]) -> float:
        """Keep the run, but where it was stopped within a method that has no state to be taken up by."""
        if file is not None and (method.changing or not self.stop.is_set()):
            session = self.state() | {"earlier": np.array(self.used_seconds)}
            save_checkpoint(file, identity, {f"session.{key}": array for key, array in session.items()}
                            | {f"method.{key}": array for key, array in method.state().items()})
        return time.perf_counter()

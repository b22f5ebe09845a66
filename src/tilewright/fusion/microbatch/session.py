"""Searches for strategies under way: all mappers are counted alike, and end where nothing better is to be found.

One strategy may be made as an episode: one micro-batch after the other, each with what was known before it (equation 2
of Kao et al. 2022).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np

from tilewright.base import Registry, digest
from tilewright.fusion.microbatch.costs import bound_of, figures, scores
from tilewright.fusion.microbatch.problem import OVER, SYNC, Floats, Ints, MicroBatchProblem
from tilewright.fusion.microbatch.records import LATENCY, MEMORY
from tilewright.jobs import Observer, Stop
from tilewright.search import Options, PlanMethod, PlanSession

SAMPLES = 2_000
"""Strategies that a search may score where nothing is said: 40 by 50, as in the paper."""
FIRST = 6
"""Entries and samples of the problem that is solved for nothing, by energy, as its bound leaves all steps to do."""
STATE = 8
"""Numbers of a state: ``K, C, Y, X, R, S``, the memory over the batch, and the runtime so far."""


class FusionSession(PlanSession):
    """Scores strategies within a budget, and keeps the best that fits."""

    def __init__(self, problem: MicroBatchProblem, samples: int | None, seconds: float | None, seed: int = 0, *,  # noqa: PLR0913
                 threads: int = 1, stop: Stop | None = None) -> None:
        super().__init__(problem.unfused, samples, seconds, seed, stop)
        self.problem, self.threads, self.known = problem, threads, bound_of(problem)

    def cost(self, plans: Ints) -> Floats:
        """Return the objective ``(b)`` of strategies; see `scores`."""
        return scores(self.problem, plans, self.threads)


FUSION_MAPPERS: Registry[Callable[[FusionSession, Options], PlanMethod]] = Registry("fusion mapper")
"""Every mapper of micro-batches by name. One module and one line ``@FUSION_MAPPERS.register(name)`` add one."""


@dataclass(frozen=True)
class Fused:
    """What a mapper found."""

    problem: MicroBatchProblem
    mapper: str
    seed: int
    strategy: Ints
    """``(N + 1)``: the best one that fits; layer by layer where none was found."""
    score: float
    """Its objective."""
    found: bool
    """Whether a strategy of the mapper's own fits."""
    least_memory_bytes: float
    """What the best of its strategies takes: more than there is where ``found`` is false."""
    bound: float
    """What no strategy is below, by all that was proved."""
    samples: int
    seconds: float
    """``samples`` and ``seconds``: strategies scored, and time spent."""
    trace: Floats
    """Every improvement: samples and seconds by then, and the objective ``(i, 3)``."""
    interrupted: bool = False

    @property
    def gap(self) -> float:
        """By what share the score is above the bound, at most so far from the optimum."""
        return max(0.0, self.score / self.bound - 1) if self.bound > 0 else inf


def fuse(problem: MicroBatchProblem, mapper: str = "exact", *, samples: int | None = None,  # noqa: PLR0913
         seconds: float | None = None, seed: int = 0, options: Options | None = None, threads: int = 1,
         checkpoint: Path | None = None, told: Observer | None = None, stop: Stop | None = None) -> Fused:
    """Look for a good strategy; the same seed and samples find the same one, on any number of threads.

    Parameters
    ----------
    samples, seconds
        Strategies scored, and time, at most; 2,000 strategies where neither is given. Ends sooner at a proven optimum.
    options
        The mapper's own.
    checkpoint
        File that keeps the run, every few seconds and at its end, and takes it up.
    told
        Shown after each step where it stands.
    stop
        Ends the search, with the best strategy so far.

    Raises
    ------
    InputError
        If the mapper or an option is unknown, its extra is not installed, a budget is not positive, or the checkpoint
        is of another run.
    """
    make = FUSION_MAPPERS.get(mapper)
    if seconds is not None and "model" not in (options or {}):  # programs are loaded before time counts
        small = replace(problem, entries=problem.entries[:FIRST], batch=min(problem.batch, FIRST),
                        memory_bytes=float(problem.tiles[:FIRST].sum()), objective="energy")
        fuse(small, mapper, samples=SAMPLES // 10, seed=seed, options=options, threads=threads, stop=stop)
    session = FusionSession(problem, SAMPLES if samples is None and seconds is None else samples, seconds, seed,
                            threads=threads, stop=stop)
    search = make(session, options or {})
    session.run(search, told, checkpoint, {
        "problem": digest(problem), "mapper": mapper, "seed": str(seed), "plan": repr((samples, seconds)),
        "options": repr(sorted((options or {}).items()))})
    found = session.value < OVER
    strategy = session.best if found else problem.unfused
    score = session.value if found else float(scores(problem, problem.unfused)[0])
    used = float(figures(problem, session.best)[0, MEMORY])
    return Fused(problem, mapper, seed, strategy[0].copy(), score, found, used, min(session.least, score),
                 session.spent, session.used_seconds, session.steps, session.stop.is_set())


@dataclass
class FusionEpisode:
    """Chooses the micro-batches of the input and of each layer in turn (Kao et al. 2022, section 4.2)."""

    problem: MicroBatchProblem
    actions: list[int] = field(default_factory=list)
    """The micro-batches chosen so far; all entries after them run layer by layer."""

    @property
    def ended(self) -> bool:
        """Whether all ``N + 1`` micro-batches are chosen."""
        return len(self.actions) == self.problem.length

    @property
    def strategy(self) -> Ints:
        """``(N + 1)``: what is chosen, and -1 from there on."""
        found: Ints = self.problem.unfused[0]
        found[:len(self.actions)] = self.actions
        return found

    @property
    def latency_cycles(self) -> float:
        """``P``: what the network takes with what is chosen so far."""
        return float(figures(self.problem, self.strategy)[0, LATENCY])

    @property
    def used_bytes(self) -> float:
        """What micro-batches of the group that is open take so far."""
        sizes = self.strategy[:len(self.actions)]
        begin = int(np.flatnonzero(sizes == SYNC).max(initial=-1)) + 1
        return float((sizes[begin:] * self.problem.tiles[begin:len(sizes)]).sum())

    @property
    def most(self) -> int:
        """The largest micro-batch of the next entry that fits beside its group; 0 where only -1 does."""
        left = self.problem.memory_bytes - self.used_bytes
        return int(min(self.problem.batch, max(0.0, left // self.problem.tiles[len(self.actions)])))

    @property
    def state(self) -> Floats:
        """``(8)``: the shape of the entry to choose for, memory over batch in bytes, and cycles so far (equation 2)."""
        shape = self.problem.entries[len(self.actions)].shape
        return np.array([*shape, self.problem.memory_bytes / self.problem.batch, self.latency_cycles])

    def choose(self, size: int) -> None:
        """Choose the next micro-batch, -1 or from 1 to the batch."""
        self.actions.append(size)

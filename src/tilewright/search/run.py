"""The one search loop: every mapper reaches the cost model through it, so that all are counted alike."""

import math
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tilewright.base import digest, working_seconds
from tilewright.cost import Cost, DenseModel, HardwareBatch, SparseModel, outermost_bytes
from tilewright.hardware import Accelerator
from tilewright.jobs import Stop, finished, interruptible, present_stop
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.bounding import Bounding, KeptBounding
from tilewright.search.checkpoint import Resumable, State, load_checkpoint, save_checkpoint
from tilewright.search.front import Archive, metric_values, read_front
from tilewright.search.mapper import MAPPERS, FrontMapper, Mapper, Options, Task
from tilewright.search.objective import BREAKS_CONSTRAINT, ILLEGAL, Constraint, Costs, Objective, Scorer
from tilewright.search.records import Budget, Improvement, Progress, ProgressObserver, SearchResult, Stopped
from tilewright.search.scoring import CostModel, machine_of, machine_rows, model_of, score_on
from tilewright.search.start import Origin, Start, start_batch
from tilewright.search.sweep import Densities, SweptModel
from tilewright.workload import Operator

Seed = int | tuple[int, ...]
Searching = Generator[None, None, SearchResult]
"""A search that goes on batch by batch: set up at the first step, it returns the result at the end."""
PROGRESS_SECONDS = 0.1
FIRST_RATE = 1000.0
"""Mappings a second that a mapper is taken to propose at first, where time is limited."""
FEWEST = 8
"""Mappings asked for at least, however little time is left."""
CHECKPOINTS = "10"
"""Version of what checkpoints hold."""


@dataclass(frozen=True)
class Watch:
    """What goes on beside a search: who is shown it, where it is kept, and what may stop it."""

    progress: ProgressObserver | None = None
    """Shown where the search stands."""
    checkpoint: Path | None = None
    """File to take the search up from, if it exists, and to keep it in every ``checkpoint_seconds`` and at the end."""
    checkpoint_seconds: float = 10.0
    stop: Stop = field(default_factory=present_stop)
    """Ends the search after the present batch when set, by default with the job that it is part of."""
    recorder: Callable[[SearchResult], None] | None = None
    """Called with the result."""
    threads: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """Threads that one search may use, by default one for each core; the result does not depend on them."""
    left: Callable[[], float] | None = None
    """Tells the seconds left to this search and others together, where their time is limited."""
    clock: Callable[[], float] = working_seconds
    """Tells the time, in seconds."""
    told: set[Path] = field(default_factory=set)
    """Folders of which was told that they cannot be written."""

    @contextmanager
    def keeping(self, place: Path) -> Iterator[None]:
        """Say once that a folder cannot be written, and go on."""
        try:
            yield
        except OSError as error:
            if place not in self.told:
                self.told.add(place)
                warnings.warn(f"The checkpoint in {place} cannot be written ({error.strerror or error}): the search "
                              "goes on, and tries again", RuntimeWarning, stacklevel=2)


@dataclass(frozen=True)
class Request:
    """All that decides what a search finds (under a budget of samples).

    ``plan`` is what the mapper plans for, where that is not the budget.
    """

    space: MapSpace
    objective: Objective
    mapper: str
    budget: Budget
    seed: Seed
    options: Options
    start: Start | MappingBatch | None = None
    front: tuple[str, ...] = ()
    plan: Budget | None = None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where the mappings that the search begins from were found."""
        if self.start is None:
            return ()
        return self.start.origins if isinstance(self.start, Start) else (Origin("given"),)

    @property
    def identity(self) -> dict[str, str]:
        """What a checkpoint must agree with: all but the budget, as a search can go on under a larger one."""
        space = self.space
        begin = {} if self.start is None else {"start": digest(_plain(self.start))}
        front = {"front": ",".join(self.front)} if self.front else {}
        return begin | front | {
            "version": CHECKPOINTS,
            "operator": digest(space.operator.signature),
            "accelerator": digest(space.accelerator),
            "space": digest((space.tiling, space.constraints)),
            "objective": f"{self.objective}; {', '.join(map(str, self.objective.constraints))}",
            "mapper": self.mapper,
            "seed": str(self.seed),
            "options": digest(sorted(self.options.items())),
        }


def search(  # noqa: PLR0913  (keywords of the one entry point)
    operator: Operator,
    accelerator: Accelerator,
    *,
    objective: str | Objective = "edp",
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: Seed = 0,
    constraints: Iterable[str | Constraint] = (),
    space: MapSpace | None = None,
    options: Options | None = None,
    model: CostModel | None = None,
    start: Start | MappingBatch | None = None,
    densities: Densities | None = None,
    front: str | Iterable[str] = (),
    progress: ProgressObserver | None = None,
    checkpoint: str | Path | None = None,
    watch: Watch | None = None,
) -> SearchResult:
    """Search the best mapping of an operator on an accelerator.

    Exactly ``budget.samples`` mappings are scored, unless the mapper has none left, time runs out or the search is
    interrupted; the same seed then gives the same result in every process and on any number of threads. Ctrl-C ends the
    search after the present batch with what was found (and kept in ``checkpoint``).

    Parameters
    ----------
    objective, constraints
        See `Objective.parse`.
    mapper, options
        A name in `MAPPERS`, and that mapper's own options.
    space
        The mappings to choose from; by default all, with imperfect tiling.
    model
        What scores them; by default the dense model, or the sparse one of a machine with a ``sparsity`` section.
    start
        Mappings to begin from (see `Start`): they are scored first, and all mappers that learn go on from them.
    densities
        Score each mapping over these densities of the inputs, or of the tensors that a text names (see `Sweep.parse`);
        its cost is told at the largest. For machines that make use of zeros.
    front
        Metrics, such as ``latency,energy``, of which to keep the Pareto front: all mappings scored, by whatever mapper,
        that are legal, meet the constraints, and are beaten in all of them by no other.
    progress, checkpoint
        Short for ``watch`` with only these.

    Raises
    ------
    InputError
        If a name is unknown or a value out of range, or the checkpoint belongs to another search.
    """
    goal = Objective.parse(objective, constraints).over(densities)
    space = goal.widest(space or MapSpace(operator, accelerator))
    request = Request(space, goal, mapper, Budget.parse(budget), seed, options or {}, start, read_front(front))
    if watch is None:
        watch = Watch(progress=progress, checkpoint=Path(checkpoint) if checkpoint else None)
    with interruptible(watch.stop):
        return finished(searching(request, watch, model))


def searching(request: Request, watch: Watch, model: CostModel | None = None) -> Searching:
    """Search step by step, as `search` does in one go."""
    run = SearchRun(request, watch, model or model_of(request.space, request.objective))
    # What is worked out once, before time counts.
    getattr(run.model, "program", None)
    getattr(run.bounding if watch.progress is not None else None, "score", None)
    yield
    yield from run.batches()
    return run.finish()


def generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a seed: a number, or a number and the path of a child (as a layer's index)."""
    first, *path = seed if isinstance(seed, tuple) else (seed,)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(first, spawn_key=tuple(path))))


def _plain(start: Start | MappingBatch) -> object:
    return start if isinstance(start, Start) else (start.steps.tolist(), start.ranks.tolist())


class SearchRun(Resumable):
    """One search under way."""

    changing = "mapper", "archive", "samples", "legal_samples", "best", "spent_seconds", "best_mapping"

    def __init__(self, request: Request, watch: Watch, model: CostModel) -> None:
        self.request, self.watch, self.model = request, watch, model
        space = request.space
        self.scorer = Scorer(request.objective, space.operator, space.accelerator)
        # Bounds hold for the scores of our own models on the machine of the space.
        own = isinstance(model, DenseModel | SparseModel | SweptModel)
        start = start_batch(request.start, space)
        self.rival = math.inf
        """The best score known of other spaces of the same union."""
        kept = None if watch.checkpoint is None else load_checkpoint(watch.checkpoint, request.identity)
        self.plan = request.plan or request.budget
        if kept is not None:  # the mapper goes on as it began
            samples, seconds = kept["plan"].tolist()
            self.plan = Budget(int(samples) or None, seconds or None)
        goal, seen = request.objective.as_energy(space)
        task = Task(seen, generator(request.seed), self.plan.samples, request.options, watch.threads,
                    goal, start, isinstance(model, DenseModel), request.front, self.plan.seconds,
                    lambda: self._left() <= 0, lambda: self.rival)
        self.mapper: Mapper = MAPPERS.get(request.mapper)(task)
        known = own and not hasattr(self.mapper, "hardware")
        self.bounding: Bounding | KeptBounding | None = Bounding((space,), request.objective) if known else None
        # What the loop itself scores first, as the mapper does not.
        self.lead = space.empty(0) if start is None or getattr(self.mapper, "takes_start", False) else start
        self.archive = Archive(request.front, space) if request.front else None
        self.samples = self.legal_samples = 0
        self.best = math.inf
        self.best_mapping = space.empty(1)
        self.best_machine: Accelerator | None = None
        """The machine of the best mapping, where the mapper proposed it."""
        self.history: list[Improvement] = []
        self.stopped: Stopped | None = None
        self.rate = FIRST_RATE
        self.spent_seconds = 0.0
        self.since: float | None = None
        """When the clock was started; None while it stands still."""
        self.shown = watch.clock()
        self.saved = -math.inf
        if kept is not None:
            self._take_up(kept)

    @property
    def proven(self) -> float | None:
        """What the mapper has proved no score to be below; None if it proves nothing."""
        bound = getattr(self.mapper, "bound", None)
        return None if bound is None else min(float(bound), self.best)

    @property
    def seconds(self) -> float:
        """Seconds spent, those before a resumption included; the clock runs only while a batch is under way."""
        return self.spent_seconds + (0.0 if self.since is None else self.watch.clock() - self.since)

    def batches(self) -> Iterator[None]:
        """Search to the end, one batch a step; what was found is kept, also where something fails."""
        try:
            while self.stopped is None:
                self.since = self.watch.clock()
                self.stopped = self._reason()
                if self.stopped is None:
                    self._look_up()
                    self._step()
                self.spent_seconds, self.since = self.seconds, None
                yield
        except Exception:
            with suppress(Exception):
                self._save()
            raise

    @property
    def feasible(self) -> bool:
        """Whether a mapping was found that meets all constraints."""
        return self.best < BREAKS_CONSTRAINT

    def keep(self) -> None:
        """Save and show the search where it stands."""
        self._save()
        self._show(self.watch.clock())

    def finish(self) -> SearchResult:
        """Keep and hand out what was found."""
        self._save()
        result = self.result()
        self._show(self.watch.clock())
        if self.watch.recorder:
            self.watch.recorder(result)
        return result

    def spend(self, samples: int | None, seconds: float | None = None) -> Iterator[None]:
        """Score up to ``samples`` more mappings than so far, for up to ``seconds`` more."""
        if (samples is not None and samples < 1) or (seconds is not None and seconds <= 0) or (
                self.stopped == "exhausted"):
            return
        self.request = replace(self.request, budget=Budget(
            None if samples is None else self.samples + samples, None if seconds is None else self.seconds + seconds))
        self.stopped = None
        yield from self.batches()

    def _left(self) -> float:
        own = self.request.budget.seconds
        together = math.inf if self.watch.left is None else self.watch.left()
        return min(together, math.inf if own is None else own - self.seconds)

    def _reason(self) -> Stopped | None:
        """Return why to stop now, None to go on; where time is short, after one batch at least."""
        budget = self.request.budget
        if budget.samples is not None and self.samples >= budget.samples:
            return "samples"
        if self.watch.stop.is_set():
            return "interrupted"
        return "seconds" if self.samples and self._left() <= 0 else None

    def _step(self) -> None:
        most, seconds = self.request.budget.samples, self._left()
        left = 1 << 30 if most is None else most - self.samples
        if seconds < math.inf:
            left = min(left, max(FEWEST, int(self.rate * seconds)))
        begun, leading = self.seconds, self.samples < len(self.lead)
        batch = self.lead.take(slice(self.samples, self.samples + left)) if leading else self.mapper.ask(left)
        if len(batch) == 0:
            self.stopped = "exhausted"
            return
        hardware: HardwareBatch | None = None if leading else getattr(self.mapper, "hardware", None)
        costs = score_on(self.model, batch, hardware, self.watch.threads)
        scores = self.scorer.scores(costs)
        if not leading:
            self._tell(batch, costs, scores)
        if self.archive is not None:
            self.archive.add(batch, costs, scores < BREAKS_CONSTRAINT)
        self._improve(batch, scores, hardware)
        self.samples += len(batch)
        self.legal_samples += int(np.count_nonzero(costs.legal))
        self.rate = len(batch) / max(self.seconds - begun, 1e-9)

    def _improve(self, batch: MappingBatch, scores: NDArray[np.float64], hardware: HardwareBatch | None) -> None:
        """Keep the best mapping of a batch if it is the best of all, and every improvement on the way to it."""
        index = int(scores.argmin())
        if not scores[index] < self.best:
            return
        before = np.minimum.accumulate(np.concatenate([[min(self.best, BREAKS_CONSTRAINT)], scores[:index]]))
        seconds = self.seconds
        self.history += [Improvement(self.samples + int(place) + 1, seconds, float(scores[place]))
                         for place in np.flatnonzero(scores[:index + 1] < before)]
        self.best = float(scores[index])
        self.best_mapping = batch.take(slice(index, index + 1))
        self.best_machine = None if hardware is None else hardware.machine(index, self.request.space.accelerator)

    def _tell(self, batch: MappingBatch, costs: Costs, scores: NDArray[np.float64]) -> None:
        metrics = getattr(self.mapper, "metrics", ())
        if metrics:
            values = metric_values(metrics, costs, self.request.space.accelerator)
            cast(FrontMapper, self.mapper).tell_metrics(batch, scores, values)
        else:
            self.mapper.tell(batch, scores)

    def _look_up(self) -> None:
        """Show progress and save, where it is time."""
        watch = self.watch
        if watch.progress is None and watch.checkpoint is None:
            return
        now = watch.clock()
        if now - self.shown >= PROGRESS_SECONDS:
            self._show(now)
        if now - self.saved >= watch.checkpoint_seconds:
            self._save()

    def _show(self, now: float) -> None:
        self.shown = now
        if self.watch.progress is None:
            return
        budget, seconds = self.request.budget, self.seconds
        left = [math.inf]
        if budget.samples is not None and self.samples:
            left.append(seconds * (budget.samples - self.samples) / self.samples)
        left.append(max(0.0, self._left()))
        eta = 0.0 if self.stopped else min(left)
        known = self.bounding.score if self.bounding is not None else None
        bounds = [bound for bound in (known, self.proven) if bound is not None]
        self.watch.progress.update(Progress(
            self.request.space.operator.name, self.samples, self.legal_samples, seconds,
            self.best if self.best < BREAKS_CONSTRAINT else None, budget.samples, eta if eta < math.inf else None,
            max(bounds, default=None), self.request.objective.unit,
        ))

    def _save(self) -> None:
        self.saved = self.watch.clock()
        if self.watch.checkpoint is None:
            return
        state = self.state() | {
            "spent_seconds": np.array(self.seconds), "exhausted": np.array(self.stopped == "exhausted"),
            "history": np.array([astuple(step) for step in self.history]).reshape(-1, 3),
            "plan": np.array([self.plan.samples or 0, self.plan.seconds or 0.0])}
        if self.best_machine is not None:
            state["machine"] = machine_rows(self.best_machine)
        with self.watch.keeping(self.watch.checkpoint.parent):
            save_checkpoint(self.watch.checkpoint, self.request.identity, state)

    def _take_up(self, state: State) -> None:
        """Go on where a search was kept."""
        self.restore(state)
        self.history = [Improvement(int(n), float(s), float(v)) for n, s, v in state["history"]]
        if "machine" in state:
            self.best_machine = machine_of(state["machine"], self.request.space.accelerator)
        self.stopped = "exhausted" if state["exhausted"] else None

    def _plain_score(self, cost: Cost) -> float:
        """Return the objective of the best mapping, whose cost this is, whether or not it meets the constraints."""
        objective = self.request.objective
        if objective.densities is None:
            machine = self.best_machine or self.request.space.accelerator
            moved = outermost_bytes(cost, self.scorer.operator, machine) if objective.traffic else None
            return float(cast(float, self.scorer.values(float(cost.latency_cycles), cost.energy_pj, machine.area_um2,
                                                        moved)))
        scorer = replace(self.scorer, objective=replace(objective, constraints=()))
        own = None if self.best_machine is None else HardwareBatch.of([self.best_machine])
        return float(scorer.scores(score_on(self.model, self.best_mapping, own))[0])

    def _best_model(self) -> CostModel:
        if self.best_machine is None:
            return self.model
        return model_of(replace(self.request.space, accelerator=self.best_machine), self.request.objective)

    def result(self) -> SearchResult:
        """Return what has been found."""
        request = self.request
        operator = request.space.operator
        mapping = cost = None
        score = math.inf
        if self.best < ILLEGAL:
            mapping = self.best_mapping.mapping(0, operator.sizes)
            cost = self._best_model().cost(mapping)
            score = self._plain_score(cost)
        covers = self.mapper.covers_space
        return SearchResult(
            operator=operator, mapping=mapping, cost=cost, score=score, feasible=self.feasible,
            samples=self.samples, legal_samples=self.legal_samples, seconds=self.seconds,
            history=tuple(self.history), mapper=request.mapper, seed=request.seed,
            objective="; ".join([str(request.objective), *map(str, request.objective.constraints)]),
            budget=request.plan or request.budget, space_size=request.space.size() if covers else None,
            complete=covers and self.stopped == "exhausted", stopped=self.stopped or "interrupted", proven=self.proven,
            bounding=self.bounding, start=request.origins,
            front=None if self.archive is None else self.archive.front(), machine=self.best_machine,
        )

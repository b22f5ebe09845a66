"""The exact mapper: branch and bound over partial mappings, until the best found is proved to be the optimum.

Dimensions get their steps one after another; whatever cannot fit, or cannot beat the best so far, is left out with all
that would follow. A short run of `gamma` provides that best first. The choices for the first two dimensions are taken
up in the order of their bounds, so that the least bound left rises all the time: no mapping scores below it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Accelerator, AccessEnergy, Memory
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import MAPPERS, Count, Limits, MapperOptions, Task, read_options
from tilewright.search.mappers.exact.orders import Orders
from tilewright.search.mappers.exact.tables import Tables
from tilewright.search.mappers.gamma import GammaMapper
from tilewright.search.objective import ILLEGAL, Objective
from tilewright.workload import matmul

MOST_HEADS = 20_000_000
NODES_IN_TIME = 30_000
"""Partial mappings looked at at a time where time is limited: some hundredths of a second."""
FOUND = 2048


@dataclass(frozen=True)
class ExactOptions(MapperOptions):
    """Options of ``exact``."""

    start: Annotated[Count, "Mappings that `gamma` proposes first; none in spaces that are no larger."] = 20_000
    gap: Annotated[float, Limits(ge=0, lt=1), "How far above the optimum the result may be, as a share; 0 asks for the "
                                              "optimum."] = 0.0
    nodes: Annotated[Count, "Partial mappings looked at before the search may show progress or be stopped."] = 300_000


@MAPPERS.register("exact", ExactOptions)
class ExactMapper(Resumable):
    """Proposes what may beat the best so far; ends by itself once nothing is left that can.

    Where a dimension has too many chains of steps to list (large ones without perfect tiling), and where scores are not
    those of the dense model (on machines that make use of zeros), it goes on as `gamma`, and proves nothing.
    """

    takes_start = True
    changing = ("gamma", "given", "best", "beaten", "best_mapping", "kept", "reached", "heads", "bounds", "top", "at",
                "ended", "covers_space", "listed")

    def __init__(self, task: Task) -> None:
        self.options = read_options(ExactOptions, task.options, "exact")
        self.task = task
        self.nodes = self.options.nodes if task.seconds is None else min(self.options.nodes, NODES_IN_TIME)
        samples = None if task.samples is None else min(task.samples, self.options.start)
        self.gamma = GammaMapper(replace(task, samples=samples, options={}))
        self.given, self.best, self.beaten = 0, np.inf, np.inf
        self.kept: MappingBatch = task.space.empty(0)
        self.best_mapping = task.space.empty(0)
        self.reached = -np.inf
        """What no mapping in ``kept`` scores below: they may come from heads before the present one."""
        self.heads = np.zeros((0, 2), dtype=np.int64)
        self.bounds = np.zeros(0)
        self.top, self.listed, self.at = 0, 0, np.zeros(0, dtype=np.int64)
        self.ended = self.covers_space = False
        compile_descent()

    @property
    def bound(self) -> float | None:
        """What no mapping of the space that beats its rivals scores below; None while nothing is proved."""
        goal = min(self.best, self.beaten) / (1 + self.options.gap)
        if self.ended:
            return goal
        if not len(self.at) or self.task.objective is None or not self.provable:
            return None
        return float(min(goal, self.reached if len(self.kept) else self._least))

    @property
    def _least(self) -> float:
        """What no choice that has not been looked at scores below, unless it has been ruled out."""
        head = max(int(self.at[0]), 0)
        return float(self.bounds[head]) if head < len(self.bounds) else np.inf

    @property
    def provable(self) -> bool:
        """Whether there are choices, all can be listed, and the objective be bound."""
        return self._tables is not None and bool(self._tables.chains) and len(self._tables.arrays.terms) > 0

    @cached_property
    def tables(self) -> "Tables":
        """The arrays of the descent."""
        tables = self._tables
        assert tables is not None
        return tables

    @cached_property
    def _tables(self) -> Tables | None:
        if not self.task.bounded:
            return None
        return Tables.of(self.task.space, self.task.objective or Objective.parse("edp"))

    @cached_property
    def _orders(self) -> Orders:
        return Orders(self.tables)

    @cached_property
    def _start(self) -> int:
        return 0 if self.task.space.within(self.options.start) else self.options.start

    @cached_property
    def _any(self) -> MappingBatch:
        """One mapping of the space, to show where the search stands before any is found."""
        return self.task.space.sample(np.random.default_rng(0), 1)

    @property
    def _breeds(self) -> bool:
        """Whether `gamma` proposes: to begin with, unless another space has done better, or where nothing is proved."""
        return self._tables is None or (self.given < self._start and not self.listed and self.best <= self.beaten)

    def ask(self, most: int) -> MappingBatch:
        """Propose the next mappings that may beat the best so far, or the best again where none has been found yet."""
        self.beaten = min(self.beaten, self.task.rival())
        if self._breeds:
            asked = most if self._tables is None else min(most, self._start - self.given)
            return self.gamma.ask(asked)
        start = self.task.start
        if start is not None and self.given < len(start):
            return start.take(slice(self.given, min(self.given + most, len(start))))
        while not len(self.kept) and not self.ended:
            self._descend()
            if not len(self.kept) and not self.ended and (len(self.best_mapping) or self.beaten < np.inf):
                return self.best_mapping if len(self.best_mapping) else self._any
        batch = self.kept.take(slice(0, most))
        self.kept = self.kept.take(slice(most, None))
        return batch

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn the scores; the lowest is what has to be beaten."""
        if self._breeds:
            self.gamma.tell(batch, scores)
        self.given += len(batch)
        index = int(scores.argmin())
        if scores[index] < min(self.best, ILLEGAL):
            self.best = float(scores[index])
            self.best_mapping = batch.take(slice(index, index + 1))

    @property
    def _cut(self) -> float:
        known = self.task.objective is not None and len(self.tables.arrays.terms)
        return min(self.best, self.beaten) / (1 + self.options.gap) if known else np.inf

    def _descend(self) -> None:
        """Look at more partial mappings; keep the mappings of those that are complete."""
        from tilewright.search.mappers.exact import kernels as compiled  # noqa: PLC0415  (Numba loads late)

        tables, dims = self.tables, len(self.tables.chains)
        if not dims:
            self.kept = self.task.space.empty(1)
            self._end(True)
            self.kept.ranks[:] = np.arange(self.kept.ranks.shape[1], dtype=np.int8)[None, :, None]
            return
        work = tables.room
        if not len(self.at):
            self._list(work)
            return
        found = np.zeros((FOUND, dims), dtype=np.int64)
        reach = np.zeros(FOUND, dtype=np.int64)
        self.reached = self._least
        count = compiled.descend(tables.arrays, tables.starts, self.top, self.heads, self.bounds, self._cut, self.at,
                                 self.nodes, work, found, reach)
        if count:
            every = self._orders.batches(found[:count], reach[:count])
            space = self.task.space
            ruled = space.arrays.ruled or space.constraints.orders
            self.kept = every.take(np.flatnonzero(space.contains(every))) if ruled else every
        self._end(bool(self.at[1] < 0) and not len(self.kept))

    def _end(self, ended: bool) -> None:
        """Take note of whether nothing is left that could score lower, unless within a gap that was allowed."""
        self.ended = ended
        self.covers_space = ended and self.options.gap == 0 and self.best <= self.beaten
        if ended:
            self.heads, self.bounds = np.zeros((0, 2), dtype=np.int64), np.zeros(0)

    @property
    def looked(self) -> int:
        """How many partial mappings have been looked at."""
        each = len(self.tables.chains[1]) if self.top == 2 else 1
        return self.listed * each + int(self.at[-1:].sum())

    def _list(self, work: NDArray[np.float64]) -> None:
        """List more of the choices for the first dimensions, and when these are all, in the order of their bounds."""
        from tilewright.search.mappers.exact import kernels as compiled  # noqa: PLC0415  (Numba loads late)

        tables = self.tables
        first, others = len(tables.chains[0]), len(tables.chains[1]) if len(tables.chains) > 1 else 0
        self.top = 2 if 0 < first * others <= MOST_HEADS else 1
        each = others if self.top == 2 else 1
        last = min(first, self.listed + max(1, self.nodes // each))
        most = (last - self.listed) * each
        heads, bounds, at = np.zeros((most, 2), dtype=np.int64), np.zeros(most), np.zeros(
            len(tables.chains) + 3, dtype=np.int64)
        at[:2] = self.listed, last
        count = compiled.heads_into(tables.arrays, tables.starts, self.top, self._cut, work, at, heads, bounds)
        self.heads = np.concatenate([self.heads, heads[:count]])
        self.bounds = np.concatenate([self.bounds, bounds[:count]])
        self.listed = last
        if last == first:
            order = np.argsort(self.bounds, kind="stable")
            self.heads, self.bounds = self.heads[order], self.bounds[order]
            self.at = np.zeros(len(tables.chains) + 4, dtype=np.int64)
            self.at[0] = -1


_COMPILED: list[bool] = []


def compile_descent() -> None:
    """Compile the descent (or load it) on a tiny layer, so that no search loses its time to that."""
    if _COMPILED:
        return
    _COMPILED.append(True)
    free = AccessEnergy(0.0, 0.0, 0.0, 0.0)
    machine = Accelerator("one", (Memory("M", ("inputs", "weights", "outputs"), free),))
    space = MapSpace(matmul("one", m=2, n=2, k=2), machine, "perfect")
    mapper = ExactMapper(Task(space, np.random.default_rng(0)))
    while not len(mapper.kept):
        mapper._descend()

"""What no schedule of a group can beat, however the bandwidth is shared: relaxations solved by HiGHS, through SciPy."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.scheduling.problem import Floats, Ints, ScheduleProblem
from tilewright.search import hull_corners

SLACK, WHOLE_SLACK = 1e-8, 2e-6
"""What is taken off of a relaxation, and of an integer program, for the tolerances of the solver."""
WINDOWS = 6
"""Of the times before which jobs cannot begin, and those that must follow them, how many make constraints."""
NODES = 10_000
"""Branches that an integer program looks at, at most."""


@dataclass(frozen=True)
class ScheduleBound:
    """A lower bound on the objective of a problem."""

    value: float
    """What no schedule is below."""
    shares: dict[str, float] = field(default_factory=dict)
    """Of a bound on the makespan: what part of it is held by each of ``cores``, ``bandwidth``, ``order`` (releases and
    precedence) and ``jobs`` (a single one takes so long): by the prices of the relaxation."""


def schedule_bound(problem: ScheduleProblem, seconds: float | None = None) -> ScheduleBound:
    """Return a bound on the problem's objective, for any schedule and any way to share the bandwidth.

    Of the makespan: the least T for which every job can be split among cores and mappings, so that no core is busy for
    longer than T, no more bytes are moved than in T, and no job or chain of jobs takes longer; jobs use only what ends
    within T (Lenstra, Shmoys and Tardos, 1990). Of the EDP: the least product of T and energy of such splits; of the
    energy, each job's least. Of the slowdown: what the jobs that are quick alone must come to, as they end within a
    multiple of that; of deadlines: the jobs that cannot meet theirs.

    Parameters
    ----------
    seconds
        For a bound on the makespan: time for an integer program, in which no job is split.
    """
    if problem.objective == "energy":
        return ScheduleBound(float(problem.of_jobs[2].min(axis=(1, 2)).sum()) * (1 - SLACK))
    if problem.objective == "deadlines":
        return ScheduleBound(float((problem.heads + problem.alone > problem.deadline * (1 + SLACK)).sum()))
    if problem.objective == "slowdown":
        return ScheduleBound(_slowdown(problem) * (1 - SLACK))
    relaxation = Relaxation(problem)
    if problem.objective == "edp":
        return ScheduleBound(_product(relaxation) * (1 - SLACK))
    value, shares = relaxation.makespan()
    if seconds is not None:
        value = max(value, Relaxation(problem, apart=True).assign(seconds, value)[1])
    return ScheduleBound(value, shares)


class _Constraints(NamedTuple):
    """What splits of jobs meet: sums that are at most some limits, and sums that are sizes of classes."""

    upper: Any
    limits: Floats
    equal: Any
    sizes: Floats
    names: list[str]
    """What each of the limits is of."""


@dataclass(frozen=True)
class Relaxation:
    """Jobs split among cores and mappings. Times are in units of ``unit`` cycles, for the solver's sake.

    Jobs that are alike are one class (``q``), and cores that are alike one kind (``k``): by symmetry that changes no
    relaxation. Columns ``v`` are a class on a kind with one mapping; there follow the begin of each class where there
    is precedence, and T.
    """

    problem: ScheduleProblem
    apart: bool = False
    """Whether to tell cores that are alike apart, as integer programs may."""
    usable: NDArray[np.bool_] | None = None
    """``(n, a, o)``: which mappings may be used, by default all; what is found of some is no bound."""
    idle: float = 0.0
    """What part of their time cores do nothing in; what is found with some is no bound."""

    @cached_property
    def kinds(self) -> tuple[Ints, Ints]:
        """A core of each kind, and the kind of each core ``(a)``."""
        if self.apart:
            return np.arange(self.problem.cores), np.arange(self.problem.cores)
        cycles, traffic, energy = self.problem.of_jobs
        told = np.nan_to_num(np.stack([cycles, traffic, energy]), posinf=-1.0)
        _, first, kind = np.unique(told.transpose(2, 0, 1, 3).reshape(self.problem.cores, -1), axis=0,
                                   return_index=True, return_inverse=True)
        return first, kind.reshape(-1)

    @cached_property
    def classes(self) -> tuple[Ints, Ints]:
        """A job of each class, and the class of each job ``(n)``."""
        if len(self.problem.before):
            return np.arange(self.problem.jobs), np.arange(self.problem.jobs)
        told = np.stack([self.problem.rows.astype(np.float64), self.problem.release], axis=1)
        _, first, kind = np.unique(told, axis=0, return_index=True, return_inverse=True)
        return first, kind.reshape(-1)

    @cached_property
    def columns(self) -> tuple[Ints, Ints, Ints]:
        """Class, kind and mapping of each ``(v)``."""
        first, cores = self.classes[0], self.kinds[0]
        count = self.problem.counts[first][:, cores]
        inside = np.arange(int(count.max())) < count[:, :, None]
        if self.usable is not None:
            inside &= self.usable[first][:, cores]
        where = np.nonzero(inside)
        return where[0], where[1], where[2]

    def of_columns(self, table: Floats) -> Floats:
        """Return what a table ``(n, a, o)`` says of each column."""
        q, k, o = self.columns
        found: Floats = table[self.classes[0][q], self.kinds[0][k], o]
        return found

    @cached_property
    def unit(self) -> float:
        """Cycles that make a time of one."""
        busy = self.problem.alone.sum() / self.problem.cores
        return float(max(busy, (self.problem.heads + self.problem.alone + self.problem.tails).max()))

    @cached_property
    def needed(self) -> Floats:
        """``(v)``: the makespan of a plan that uses the column is no less, in units."""
        first = self.classes[0]
        around = (self.problem.heads + self.problem.tails)[first][self.columns[0]]
        return np.asarray((self.of_columns(self.problem.durations) + around) / self.unit)

    @cached_property
    def _rows(self) -> _Constraints:
        """All that splits meet."""
        q, k, _ = self.columns
        first, size = self.classes[0], np.bincount(self.classes[1])
        problem, cores = self.problem, np.bincount(self.kinds[1])
        busy, moved = self.of_columns(problem.durations) / self.unit, self.of_columns(problem.of_jobs[1])
        entries, limits, names = _Entries(), [], []
        chained = bool(len(problem.before))
        last = len(q) + (len(first) if chained else 0)
        heads, tails = problem.heads[first] / self.unit, problem.tails[first] / self.unit
        for head in _thresholds(heads):
            for tail in _thresholds(tails):
                inside = (heads[q] >= head) & (tails[q] >= tail)
                if not inside.any():
                    continue
                for kind, count in enumerate(cores):
                    mine = np.flatnonzero(inside & (k == kind))
                    entries.add([*mine, last], [*busy[mine] / (count * (1 - self.idle)), -1.0])
                    names.append("cores")
                mine = np.flatnonzero(inside)
                entries.add([*mine, last], [*moved[mine] / (problem.bandwidth * self.unit), -1.0])
                names.append("bandwidth")
                limits += [-head - tail] * (len(cores) + 1)
        for each in range(len(first)):
            mine = np.flatnonzero(q == each)
            entries.add([*mine, last], [*(busy[mine] / size[each]), -1.0])
            limits.append(-heads[each] - tails[each])
            names.append("order" if heads[each] + tails[each] > 0 else "jobs")
            if chained:
                entries.add([*mine, len(q) + each, last], [*busy[mine], 1.0, -1.0])
                limits.append(0.0)
                names.append("order")
        for one, other in problem.before.tolist():
            mine = np.flatnonzero(q == one)
            entries.add([*mine, len(q) + one, len(q) + other], [*busy[mine], 1.0, -1.0])
            limits.append(0.0)
            names.append("order")
        whole = _Entries()
        for each in range(len(first)):
            mine = np.flatnonzero(q == each)
            whole.add(mine.tolist(), [1.0] * len(mine))
        return _Constraints(entries.matrix(last + 1), np.array(limits), whole.matrix(last + 1),
                            size.astype(np.float64), names)

    def split(self, weights: tuple[float, float] = (1.0, 0.0), most: float = inf) -> tuple[tuple[float, float], Any]:
        """Return T and energy, each in units, of a split with the least weighted sum of them, and its prices.

        Only columns are used that are needed within ``most``. Infinite where there is no such split.
        """
        from scipy.optimize import linprog  # noqa: PLC0415  (takes part of a second to load)

        rows = self._rows
        energy = self.of_columns(self.problem.of_jobs[2]) / self.energy_unit
        costs = np.zeros(rows.upper.shape[1])
        costs[:len(energy)], costs[-1] = weights[1] * energy, weights[0]
        highest = np.full(len(costs), inf)
        highest[:len(energy)] = np.where(self.needed <= most, inf, 0.0)
        lowest = np.zeros(len(costs))
        if len(self.problem.before):
            lowest[len(energy):-1] = self.problem.release / self.unit
        found = linprog(costs, rows.upper, rows.limits, rows.equal, rows.sizes, np.stack([lowest, highest], axis=1),
                        method="highs-ds",
                        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10})
        if found.x is None or found.status != 0:
            return (inf, inf), None
        return (float(found.x[-1]), float(energy @ found.x[:len(energy)])), found

    @cached_property
    def energy_unit(self) -> float:
        """Picojoules that make an energy of one."""
        return float(self.problem.of_jobs[2].min(axis=(1, 2)).sum()) or 1.0

    def makespan(self) -> tuple[float, dict[str, float]]:
        """Return the bound in cycles, and what holds it."""
        (least, _), found = self.split()
        steps = np.concatenate([[least], np.unique(self.needed[self.needed > least]), [inf]])
        low, high = 0, len(steps) - 2
        known: dict[int, tuple[float, Any]] = {}
        while True:  # the first step at which what is usable then suffices before the next one
            middle = low if not known else (low + high) // 2
            (value, _), solved = self.split(most=steps[middle])
            known[middle] = max(value, float(steps[middle])), solved
            if value < steps[middle + 1]:
                high = middle
            else:
                low = middle + 1
            if low >= high and high in known:
                break
        value, solved = known[high]
        return value * self.unit * (1 - SLACK), self._shares(solved or found)

    def _shares(self, found: Any) -> dict[str, float]:
        shares = dict.fromkeys(("cores", "bandwidth", "order", "jobs"), 0.0)
        for name, price in zip(self._rows.names, -np.asarray(found.ineqlin.marginals), strict=True):
            shares[name] += float(price)
        whole = sum(shares.values()) or 1.0
        return {name: value / whole for name, value in shares.items()}

    def assign(self, seconds: float, least: float = 0.0, nodes: int = NODES) -> tuple[Ints, float]:
        """Return how many jobs of a class use each column ``(v)`` in the best whole split found, and a bound in cycles.

        The numbers are empty where none was found.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

        rows = self._rows
        costs, kinds, count = np.zeros(rows.upper.shape[1]), np.zeros(rows.upper.shape[1]), len(self.columns[0])
        costs[-1], kinds[:count] = 1.0, 1
        lowest = np.zeros(len(costs))
        if len(self.problem.before):
            lowest[count:-1] = self.problem.release / self.unit
        lowest[-1] = least / self.unit
        found = milp(costs, integrality=kinds, bounds=Bounds(lowest, np.full(len(costs), inf)),
                     constraints=[LinearConstraint(rows.upper, -inf, rows.limits),
                                  LinearConstraint(rows.equal, rows.sizes, rows.sizes)],
                     options={"time_limit": seconds, "node_limit": nodes, "mip_rel_gap": 1e-4})
        bound = found.mip_dual_bound if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound) else 0.0
        chosen = np.empty(0, dtype=np.int64) if found.x is None else np.rint(found.x[:count]).astype(np.int64)
        return chosen, float(bound) * self.unit * (1 - WHOLE_SLACK)


class _Entries:
    """A sparse matrix, row by row."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.values: list[float] = []
        self.ends = [0]

    def add(self, columns: Sequence[Any], values: Sequence[float]) -> None:
        """Add a row."""
        self.columns += columns
        self.values += values
        self.ends.append(len(self.columns))

    def matrix(self, width: int) -> Any:
        """Return it."""
        from scipy.sparse import csr_array  # noqa: PLC0415

        return csr_array((self.values, np.array(self.columns, dtype=np.int32), np.array(self.ends, dtype=np.int32)),
                         shape=(len(self.ends) - 1, width))


def _thresholds(times: Floats) -> Floats:
    """Return the least time, and some of the others that lie apart."""
    known = np.unique(times)
    chosen: Floats = known[np.unique(np.linspace(0, len(known) - 1, WINDOWS).astype(np.int64))]
    return chosen


def _product(relaxation: Relaxation) -> float:
    corners = hull_corners(relaxation.split)
    return min(first * second for (first, second), _ in corners) * relaxation.unit * relaxation.energy_unit


def _slowdown(problem: ScheduleProblem) -> float:
    found = float(((problem.heads - problem.release) / problem.alone).max()) + 1.0
    for limit in _thresholds(problem.alone):
        inside = problem.alone <= limit
        part = _part(problem, inside)
        latest = float(part.release.max())
        found = max(found, (Relaxation(part).makespan()[0] - latest) / float(limit))
    return found


def _part(problem: ScheduleProblem, inside: NDArray[np.bool_]) -> ScheduleProblem:
    """Return the problem of some of the jobs alone."""
    pairs = problem.before[inside[problem.before].all(axis=1)]
    return replace(problem, rows=problem.rows[inside], release=problem.release[inside],
                   deadline=problem.deadline[inside], before=np.cumsum(inside)[pairs] - 1)

"""Machines side by side: given ones, or all that come of numbers that vary."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

import tilewright.report
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import Machine, load_accelerator, load_layers, name_of, refuse_sparse
from tilewright.api.machine_options import SweepOptions
from tilewright.api.network_runs import map_network
from tilewright.api.places import ready_cache
from tilewright.api.runs import Run
from tilewright.api.sheets import OnSheet
from tilewright.api.spaces import choose_space
from tilewright.api.study_runs import study_runner
from tilewright.api.tasks import budget_text, check_seed, counts_vector, read_budget
from tilewright.base import InputError
from tilewright.codesign import (
    GOALS,
    DesignProblem,
    SidedMachine,
    SidedMachines,
    SweptMachine,
    machine_bounds,
    sweep_machines,
)
from tilewright.hardware import (
    Accelerator,
    DesignSpace,
    Fanout,
    Number,
    NumberRange,
    check_number,
    completed,
    read_values,
)
from tilewright.jobs import interruptible
from tilewright.search import METRICS, read_front
from tilewright.workload import unique_operators

MOST_MACHINES = 10_000


@dataclass(frozen=True, repr=False)
class MachineSweep(SidedMachines, OnSheet):
    """Machines side by side, in the order of their numbers.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.sweep("matmul:M=64,N=64,K=64", "edge-s1", ["SG.capacity=8KiB..64KiB*2", "PEs.shape=8x8,16x16"],
    ...                  objective="latency", budget=100)
    >>> len(found.machines), found.best.values["PEs.shape"]
    (8, '16x16')
    """

    mapped: tuple[SweptMachine, ...] = ()
    """Mappings of the layers on the machines, where machines were swept; see `mappings`."""
    layers: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    """Whole runs, where machines were mapped each by itself."""

    def mappings(self, machine: SidedMachine) -> dict[str, Any]:
        """Return the mapping of each layer on one of the machines."""
        at = self.machines.index(machine)
        if self.runs:
            from tilewright.store import mapping_of  # noqa: PLC0415

            return {name: mapping_of(layer) for name, layer in self.runs[at].layers.items()
                    if layer.mapping is not None}
        return dict(zip(self.layers, self.mapped[at].mappings, strict=False))

    @cached_property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.sweep_sheet(self, self.front(), [run.record for run in self.runs])

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return tilewright.report.sweep_tree(self, self.front())


@takes(SweepOptions)
def sweep(asked: SweepOptions) -> MachineSweep:
    """Map a network on every machine that comes of numbers that vary, and set the machines side by side.

    Mappings are shared: each machine is offered about ``budget`` mappings of every layer, a tenth of them bred for
    it where there are ten machines or more of its bandwidths, the others for its neighbours. What memories keep is
    chosen with the mappings. The bound is worked out of the machines on the front and the best one.
    """
    machine = load_accelerator(asked.arch)
    graph = load_layers(asked.network, asked.bind, asked.layers, arch=machine, precision=asked.precision)
    problem, values, chosen = _problem(asked, machine, list(unique_operators(graph)))
    budget = read_budget(asked.budget)
    if budget.samples is None or budget.seconds is not None:
        raise InputError("budget", "must be a number of mappings", budget_text(budget), "For example 2000")
    check_seed(asked.seed)
    metrics = read_front(asked.front)
    if counts_vector(asked.vector):
        problem = replace(problem, vector=((1.0, graph),))
    ready_cache()
    with study_runner(asked, "sweep") as runner, interruptible(runner.stop):
        found, samples = sweep_machines(problem, chosen, budget.samples, asked.seed, runner)
        stopped = runner.stop.is_set()
    names = [f"{machine.name}:{','.join(f'{name}={value}' for name, value in texts.items())}" for texts in values]
    sided = [SidedMachine(texts, replace(one.machine, name=name), one.figures.latency_cycles, one.figures.energy_pj,
                          one.score, unmapped=one.unmapped)
             for texts, name, one in zip(values, names, found, strict=False)]
    command = command_line(
        "sweep", asked, network=name_of(asked.network), arch=name_of(asked.arch), vary=_texts(asked.vary),
        budget=budget_text(budget), front=metrics)
    made = MachineSweep(graph.name, problem.objective, tuple(values[0]), tuple(sided), metrics, samples, command,
                        stopped, tuple(found), tuple(layer.name for layer in problem.layers))
    shown = {id(one) for one in (*made.front(), *sorted(sided, key=lambda one: one.score)[:1])}
    rows = [row for row, one in enumerate(sided) if id(one) in shown and not stopped]
    if rows:
        bounds = machine_bounds(problem, {key: column[rows] for key, column in chosen.items()})
        bounded = {row: replace(sided[row], bound=bound) for row, bound in zip(rows, bounds.tolist(), strict=True)}
        sided = [bounded.get(row, one) for row, one in enumerate(sided)]
    return replace(made, machines=tuple(sided))


def side_by_side(machines: Sequence[Machine], **asked: Any) -> MachineSweep:
    """Map a network on each of some machines as `map_network` does, and set them side by side.

    ``asked`` is as of `map_network`, but for ``arch`` and ``checkpoint``. What is compared is the objective of the
    whole network; EDP where that is a weighted sum, or traffic.
    """
    runs = []
    for machine in machines:
        run = map_network(**asked, arch=machine)
        runs.append(run)
        if run.interrupted:
            break
    first = runs[0].record
    asked_for = METRICS.get(first.request.objective)
    goal = "edp" if asked_for is None or asked_for.traffic else first.request.objective
    return MachineSweep(
        first.network.name, goal, ("machine",), tuple(_sided(run, goal) for run in runs), ("latency", "energy"),
        sum(run.record.totals.samples for run in runs), " && ".join(run.record.request.command for run in runs),
        runs[-1].interrupted, runs=tuple(runs))


def _sided(run: Run, goal: str) -> SidedMachine:
    """Return the machine of a run, and what the network takes on it, of which ``goal`` counts."""
    from tilewright.store import accelerator_of  # noqa: PLC0415

    record = run.record
    totals, machine = record.totals, accelerator_of(record.accelerator)
    lost = tuple(name for layer in record.layers if layer.mapping is None for name in layer.names)
    if lost or record.unfinished:
        return SidedMachine({"machine": machine.name}, machine, inf, inf, inf, None, lost)
    score = METRICS[goal].of(float(totals.latency_cycles), totals.energy_pj, totals.area_um2, machine.frequency_mhz)
    bounds = {"latency": totals.bound_latency_cycles, "energy": totals.bound_energy_pj, "edp": totals.bound_edp}
    return SidedMachine({"machine": machine.name}, machine, float(totals.latency_cycles), totals.energy_pj,
                        float(score), bounds.get(goal))


def _problem(asked: SweepOptions, machine: Accelerator, layers: Sequence[Any],
             ) -> tuple[DesignProblem, list[dict[str, str]], Mapping[Number, Any]]:
    """Return what is searched on all machines, what each is told apart by, and their numbers ``(m)``."""
    refuse_sparse(machine, "to be swept")
    if machine.flexibility is not None:
        raise InputError(f"{machine.name}.flexibility", "must be left out of sweeps, whose mappings may be any", None,
                         "Take the section out of the machine; tilewright explore tells what flexibility is worth")
    if asked.objective not in GOALS:
        raise InputError("objective", f"must be one of {', '.join(GOALS)}", asked.objective)
    axes = [read_values(machine, text) for text in _texts(asked.vary)]
    if not axes:
        raise InputError("--vary", "must be given", None, "For example --vary PEs.shape=8x8,16x16")
    count = prod(len(texts) for _, texts, _ in axes)
    if count > MOST_MACHINES:
        raise InputError("vary", f"must come to at most {MOST_MACHINES:,} machines", f"{count:,}")
    values = [dict(zip([name for name, _, _ in axes], texts, strict=True))
              for texts in product(*(texts for _, texts, _ in axes))]
    rows: list[dict[Number, float]] = []
    for parts in product(*(numbers for _, _, numbers in axes)):
        if len({key for part in parts for key in part}) < sum(map(len, parts)):
            raise InputError("vary", "must name each number once", ", ".join(_texts(asked.vary)))
        rows.append(_of_arrays(machine, {key: value for part in parts for key, value in part.items()}))
    chosen = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    completed(machine, DesignSpace(machine, {}).numbers(chosen))  # what the technology does not know is told first
    for key in chosen:
        with suppress(InputError):
            check_number(machine, key)
            continue
        raise InputError(f"vary {'.'.join(key)}", "must be a capacity, a bandwidth or sides of an array", key[1],
                         "Set another number in a file, or by --set, and sweep each by itself")
    ranges = {key: NumberRange.listed(tuple(np.unique(column).tolist())) for key, column in chosen.items()}
    choice = choose_space(asked.tiling, None, asked.dataflow, [layer.operator for layer in layers])
    problem = DesignProblem.of([(layers, 1.0)], DesignSpace(machine, ranges), (), objective=asked.objective,
                               tiling=choice.tiling, dataflow=choice.dataflow)
    return problem, values, chosen


def _of_arrays(machine: Accelerator, numbers: Mapping[Number, float]) -> dict[Number, float]:
    """Return numbers with the instances of arrays whose shape is free in place of their sides."""
    found = dict(numbers)
    for level in machine.levels:
        if isinstance(level, Fanout) and level.one_piece:
            sides = {side: found.pop((level.name, side)) for side in ("x", "y") if (level.name, side) in found}
            if sides:
                x, y = (sides.get(side, float(level.shape[at])) for at, side in enumerate(("x", "y")))
                found[level.name, "instances"] = x * y
    return found


def _texts(vary: str | Iterable[str]) -> tuple[str, ...]:
    return (vary,) if isinstance(vary, str) else tuple(vary)

"""Budgets shared among the layers of a network: what is asked for, and what came of it (Kao 2022, chapter 8)."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.inputs import load_design_space
from tilewright.api.machine_options import EPOCHS, DesignOptions
from tilewright.api.machine_runs import OnMachines, write_machines
from tilewright.api.runs import Run, kept_run
from tilewright.api.study_runs import study_runner
from tilewright.api.tasks import texts_of
from tilewright.base import InputError
from tilewright.codesign.allocation import METHODS, AllocatedLayer, AllocationProblem, AllocationResult, allocate
from tilewright.hardware import Accelerator
from tilewright.jobs import interruptible, stopped_by
from tilewright.search import Budget
from tilewright.store import RequestRecord, RunRecord, layer_record, new_run
from tilewright.workload import Graph


@dataclass(frozen=True, repr=False)
class AllocationRun(OnMachines):
    """What came of a design with a ``deployment``: the whole in ``result``, and the network as a run.

    There are no ``runs`` where nothing was found within the limits. ``command`` repeats it.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.design("ncf", "confuciux", "area=iot", deployment="pipelined", store=False)
    >>> found.gap, len(found.machines) == len(found.result.problem.table.stages)
    (0.0, True)
    """

    result: AllocationResult
    runs: tuple[Run, ...]
    network: str
    seconds: float
    interrupted: bool
    command: str

    @property
    def found(self) -> bool:
        """Whether there is an allocation within the limits."""
        return self.result.cells is not None

    @property
    def score(self) -> float:
        """The objective; infinite where nothing was found."""
        return self.result.value

    @cached_property
    def bound(self) -> float:
        """What no allocation within the limits scores below: the proven optimum; 0 where it cannot be proven."""
        with suppress(InputError):
            return self.result.optimum.value
        return 0.0

    @property
    def machines(self) -> dict[str, Accelerator]:
        """The machine that each layer runs on; one for all where they run in turn."""
        return {layer.name: layer.machine for layer in self.result.layers}

    def write(self, path: str | os.PathLike[str], mappings: str | os.PathLike[str] | None = None) -> Path:
        """Write the machine as YAML that every verb takes, and into a folder the mapping of each layer.

        Of a pipeline ``path`` is a folder, too, with a machine for each layer.

        Raises an `InputError` if nothing was found, or a place cannot be written.
        """
        if not self.found:
            raise InputError("design", "must have been found", f"none within {len(self.result.curve)} allocations",
                             "Give more of them, or a larger budget")
        machines: Any = self.machines
        if self.result.problem.table.stages.together:
            machines = next(iter(machines.values()))
        return write_machines(path, machines, self.layers, self.command, mappings)

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.allocation_sheet(self.result, self._told, self.records)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return tilewright.report.allocation_tree(self.result, self._told, self.records)

    @property
    def _told(self) -> dict[str, Any]:
        return {"network": self.network, "seconds": self.seconds, "bound": self.bound, "gap": self.gap,
                "interrupted": self.interrupted, "command": self.command}


def allocated(asked: DesignOptions, graph: Graph, budget: Budget, command: str) -> AllocationRun:
    """Share a budget among the layers of a network: the part of `design` that is asked for by ``deployment``."""
    method = "exact" if asked.method == "auto" else asked.method
    METHODS.get(method)
    _refuse(asked)
    problem = AllocationProblem.of(
        graph, load_design_space(asked.arch), asked.within or "", objective=asked.objective or "latency",  # type: ignore[arg-type]
        deployment=asked.deployment or "", styles=styles_of(asked.styles))
    began = time.perf_counter()
    with study_runner(asked, "design") as runner, interruptible(runner.stop):
        with stopped_by(runner.stop):
            found = allocate(problem, method, epochs=budget.samples or EPOCHS, seconds=budget.seconds, seed=asked.seed,
                             told=asked.told, folder=None if asked.out is None else Path(asked.out))
        runs = () if found.cells is None else (kept_run(_record(found, graph, asked, command), asked.store),)
        return AllocationRun(found, runs, graph.name, time.perf_counter() - began, runner.stop.is_set(), command)


def _refuse(asked: DesignOptions) -> None:
    """Refuse what an allocation has no use for."""
    for name, mend in (("front", "Ask for one objective"), ("fix", "Name --styles, which fix the mappings"),
                       ("tiling", "Name --styles, which fix the mappings"),
                       ("per_layer", "Layers have machines of their own"), ("options", "Methods here have none"),
                       ("warm_start", "Methods here begin afresh")):
        if getattr(asked, name) and getattr(asked, name) != "off":
            flag = f"--{name.removesuffix('s').replace('_', '-')}"
            raise InputError(flag, "must be left out with --deployment", str(getattr(asked, name)), mend)
    if not asked.within:
        raise InputError("--within", "must be given", None, "For example area=iot, fpga-edge, or unlimited")


def styles_of(given: str | Iterable[str]) -> list[str]:
    """Return the styles that are named, one by one or in one text with commas."""
    names = list(texts_of(given))
    if len(set(names)) < len(names):
        raise InputError("--styles", "must be named once each", ", ".join(names))
    return names or ["nvdla"]


def _record(found: AllocationResult, graph: Graph, asked: DesignOptions, command: str) -> RunRecord:
    """Return the network on its machines as a run: of a pipeline with the area and the elements of all stages."""
    problem, groups = found.problem, dict[object, list[AllocatedLayer]]()
    for layer in found.layers:
        groups.setdefault((layer.operator.signature, layer.place), []).append(layer)
    layers = [layer_record(each[0].operator, each[0].machine, (each[0].mapping, each[0].cost), None,
                           names=tuple(one.name for one in each), count=sum(one.runs for one in each))
              for each in groups.values()]
    request = RequestRecord(
        objective=problem.objective, mapper=f"allocate {found.method}", seed=found.seed, tiling="imperfect",
        constraints=tuple(str(problem.budget).split(",")), command=command,
        options={"deployment": problem.deployment, "styles": ",".join(problem.table.stages.styles)})
    machine = replace(found.layers[0].machine, name=f"{problem.table.stages.machine.name}-{problem.deployment}")
    record = new_run(graph, machine, request, layers, unfinished=(), seconds=(0.0, 0.0, 0.0), cause="")
    taken = problem.taken(found.closest)
    return replace(record, accelerator=replace(
        record.accelerator, area_um2=taken["area"], compute_instances=round(taken["elements"])), totals=replace(
        record.totals, samples=len(found.curve), area_um2=taken["area"]))

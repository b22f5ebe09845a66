"""The machine and the mappings together: what is asked for, and what came of it."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tilewright.report
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import (
    Network,
    each_network,
    load_design_space,
    name_of,
    refuse_sparse,
    several_networks,
)
from tilewright.api.machine_options import EPOCHS, DesignOptions
from tilewright.api.machine_runs import OnMachines, write_machines
from tilewright.api.places import ready_cache
from tilewright.api.runs import Run, kept_run
from tilewright.api.spaces import choose_space
from tilewright.api.study_runs import study_runner
from tilewright.api.tasks import budget_text, check_seed, counts_vector, read_budget, texts_of
from tilewright.api.warm import LibraryUse, Warmth, warmth
from tilewright.base import InputError
from tilewright.codesign import (
    DESIGNERS,
    Candidate,
    Designed,
    DesignProblem,
    Figures,
    design_each,
    design_front,
    design_structures,
    read_limits,
)
from tilewright.codesign import design as design_of
from tilewright.cost import kept_bounds, layer_bounds
from tilewright.hardware import Accelerator, DesignSpace
from tilewright.jobs import interruptible
from tilewright.mapping import DATAFLOWS, precise_graph
from tilewright.search import METRICS, Objective, read_front
from tilewright.store import Provenance, RequestRecord, RunRecord, layer_record, new_run
from tilewright.workload import Graph, UniqueOperator, unique_operators

if TYPE_CHECKING:
    from tilewright.api.allocating import AllocationRun

SIGN = "*"
SAMPLES = 40_000
"""Mappings of a layer that are scored in all unless told."""


@dataclass(frozen=True, repr=False)
class DesignRun(OnMachines):
    """What came of a design: the whole in ``result``, and each network on the machine that was found as a run.

    There are no ``runs`` where nothing was found within the limits. ``networks`` have their weights, ``front`` names
    the metrics of the front that was asked for, ``command`` repeats it.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.design("matmul:M=32,N=32,K=32", "edge-s2", "area=0.02mm2", budget=300, store=False)
    >>> found.machine.area_um2 <= 20_000, found.bound <= found.score
    (True, True)
    """

    result: Designed
    runs: tuple[Run, ...]
    networks: tuple[tuple[str, float], ...]
    front: tuple[str, ...]
    command: str

    @property
    def found(self) -> bool:
        """Whether there is a machine within the limits."""
        return self.result.best is not None

    @property
    def machine(self) -> Accelerator:
        """The machine that was found; an `InputError` where there is none."""
        return self.result.machine

    @property
    def figures(self) -> Figures:
        """What the networks take on it, by their weights."""
        return self.result.figures

    @property
    def score(self) -> float:
        """The objective; infinite where nothing was found."""
        return self.result.score

    @property
    def bound(self) -> float:
        """What no machine within the limits scores below, whatever its mappings and whatever memories keep."""
        return self.result.bound

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early."""
        return self.result.interrupted

    def points(self, metrics: str | Sequence[str] | None = None) -> tuple[Candidate, ...]:
        """Return the Pareto front of the machines tried, by default of the metrics asked for: see `Designed.front`."""
        return self.result.front(metrics or self.front)

    def write(self, path: str | os.PathLike[str], mappings: str | os.PathLike[str] | None = None) -> Path:
        """Write the machine as YAML that every verb takes, and into a folder the mapping of each layer beside it.

        Raises an `InputError` if nothing was found, or a place cannot be written.
        """
        return write_machines(path, self.machine, self.layers, self.command, mappings)

    @cached_property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.design_sheet(self.result, self.records, self.networks, self.front, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return tilewright.report.design_tree(self.result, self.records, self.networks, self.front, self.command)

@dataclass(frozen=True, repr=False)
class LayersRun(OnMachines):
    """What came of a design of a machine for every layer by itself: each in ``results``, the networks as runs."""

    results: tuple[Designed, ...]
    runs: tuple[Run, ...]
    networks: tuple[tuple[str, float], ...]
    command: str

    @property
    def found(self) -> bool:
        """Whether every layer has a machine within the limits."""
        return all(one.best is not None for one in self.results)

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early."""
        return any(one.interrupted for one in self.results)

    @property
    def score(self) -> float:
        """The objective of all layers; infinite where one has no machine."""
        return sum(one.score for one in self.results)

    @property
    def bound(self) -> float:
        """What no machines within the limits, one for each layer, score below, whatever their mappings."""
        return sum(one.bound for one in self.results)

    @property
    def machines(self) -> dict[str, Accelerator]:
        """The machine of every distinct layer by its name."""
        return {one.problem.layers[0].name: one.machine for one in self.results}

    def write(self, path: str | os.PathLike[str], mappings: str | os.PathLike[str] | None = None) -> Path:
        """Write into a folder the machine of every distinct layer as YAML, and into another the mappings.

        Raises an `InputError` if a layer has no machine, or a place cannot be written.
        """
        return write_machines(path, self.machines, self.layers, self.command, mappings)

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.machines_sheet(self.results, self.records, self.networks, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return tilewright.report.machines_tree(self.results, self.records, self.networks, self.command)


@takes(DesignOptions, raises=", or not even the smallest machine is within the limits")
def design(asked: DesignOptions) -> "DesignRun | LayersRun | AllocationRun":
    """Find a machine within a budget together with the mapping of every layer, and what no such machine can beat.

    With a ``deployment`` the budget is shared among the layers, as in chapter 8 of Kao's dissertation (2022). Where
    ``out`` names a folder, the same call later goes on from what had been searched, and comes to the same end. Ctrl-C
    ends it and returns what was found.
    """
    given = _weighted(asked.networks)
    space = load_design_space(asked.arch)
    graphs = [precise_graph(graph, space.accelerator, asked.precision)
              for graph in several_networks([network for network, _ in given], asked.bind)]
    if asked.budget is not None and asked.samples is not None:
        raise InputError("samples", "must be left out where there is a budget", asked.samples)
    unless = SAMPLES if asked.deployment is None else EPOCHS
    told = next((one for one in (asked.budget, asked.samples) if one is not None), unless)
    budget, front = read_budget(told), read_front(asked.front)
    check_seed(asked.seed)
    if any(METRICS[name].traffic for name in front):
        raise InputError("front", "must be of cycles, energy and area in designs", "traffic", "Leave traffic out")
    command = command_line(
        "design", asked, budget=budget_text(budget), front=front,
        networks=[name_of(one) + (f"{SIGN}{weight:g}" if weight != 1 else "") for one, weight in given],
        arch=name_of(asked.arch.accelerator if isinstance(asked.arch, DesignSpace) else asked.arch),
        fix=texts_of(asked.fix), within=",".join(map(str, texts_of(asked.within))),
        styles=",".join(texts_of(asked.styles)))
    if asked.deployment is not None:
        if len(given) != 1 or given[0][1] != 1:
            raise InputError("networks", "must be one, without a weight, with --deployment", command.split(" --")[0])
        from tilewright.api.allocating import allocated  # noqa: PLC0415  (loads what no other design needs)

        return allocated(asked, graphs[0], budget, command)
    if asked.styles:
        raise InputError("--styles", "must come with --deployment", ",".join(texts_of(asked.styles)))
    DESIGNERS.get(asked.method)
    problem = _problem(asked, space, [(graph, weight) for graph, (_, weight) in zip(graphs, given, strict=True)], front)
    if front and (asked.per_layer or problem.space.optional):
        raise InputError("--front", "must be left out with --per-layer and with optional levels", ",".join(front))
    if not problem.space.optional:
        problem.budget.check(areas=any(METRICS[name].area for name in front))
    ready_cache()
    warm = _warm(asked, problem)
    with study_runner(asked, "design") as runner, interruptible(runner.stop):
        if budget.seconds is not None:  # no run should lose time to loading (or compiling) the engine
            least = min(problem.layers, key=lambda layer: layer.macs)
            design_of(replace(problem, layers=(least,), weights=problem.weights[:1], vector=()), asked.method,
                      samples=1)
        terms: dict[str, Any] = {
            "method": asked.method, "samples": budget.samples, "seconds": budget.seconds, "seed": asked.seed,
            "runner": runner, "options": asked.options, "told": asked.told,
            "known": warm.known}
        if asked.per_layer:
            found = design_each(problem, **terms)
        else:
            found = (design_front(problem, front, **terms) if front else design_structures(problem, **terms),)
        runs = () if any(one.best is None for one in found) else tuple(
            kept_run(record, asked.store) for record in _as_runs(found, graphs, replace(
                _request(asked, problem), front=front, command=command)))
        library = _keep_mappings(found, runs, warm)
        runs = (*(replace(run, library=library) for run in runs[:1]), *runs[1:])
    networks = tuple((graph.name, weight) for graph, (_, weight) in zip(graphs, given, strict=True))
    return LayersRun(found, runs, networks, command) if asked.per_layer else DesignRun(
        found[0], runs, networks, front, command)


def _warm(asked: DesignOptions, problem: DesignProblem) -> Warmth:
    """Return what layers begin from; with a folder, what was read from the library stays there."""
    if asked.warm_start not in ("off", "library"):
        raise InputError("warm_start", "must be off or library", asked.warm_start)
    if asked.warm_start != "off" and asked.method != "auto":
        raise InputError("warm_start", "must be off unless the method is auto", asked.warm_start)
    spaces = {layer.name: problem.map_space(at, problem.widest) for at, layer in enumerate(problem.layers)}
    folder = None if asked.out is None else Path(asked.out) / f"library-{problem.identity[:12]}"
    return warmth(asked.warm_start, asked.store, spaces, Objective.parse(problem.sums), folder)


def _keep_mappings(found: Sequence[Designed], runs: Sequence[Run], warm: Warmth) -> LibraryUse:
    """Put the mappings of designs into the library; return what became of it."""
    for one in found if runs else ():
        assert one.best is not None
        goal = one.problem.sums
        for at, layer in enumerate(one.layers.values()):
            space = one.problem.map_space(at, one.machine, int(one.best.nests(at).kept[0]))
            score = METRICS[goal].of(layer.cost.latency_cycles, layer.cost.energy_pj, 0.0, one.machine.frequency_mhz)
            warm.put(space, goal, (layer.mapping, layer.cost, float(score)), Provenance(
                runs[0].record.network.name, runs[0].record.id, f"design {one.method}", str(one.seed), one.samples))
    return warm.end()


def _weighted(networks: Network | Sequence[Network] | Mapping[Network, float]) -> list[tuple[Network, float]]:
    if isinstance(networks, Mapping):
        return [(network, _weight(weight, str(weight))) for network, weight in networks.items()]
    found: list[tuple[Network, float]] = []
    for one in each_network(networks):
        name, sign, weight = one.rpartition(SIGN) if isinstance(one, str) else ("", "", "")
        found.append((name, _weight(weight, str(one))) if sign else (one, 1.0))
    return found


def _weight(weight: str | float, given: str) -> float:
    try:
        found = float(weight) if str(weight).isascii() else math.nan
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise InputError("networks", "must have a positive number as weight", given, "For example bert-base*0.3")
    return found


def _fixed(asked: DesignOptions) -> tuple[str | None, bool]:
    """Return the dataflow that mappings follow, if any, and whether the machine is as it is."""
    found: dict[str, str] = {}
    for part in texts_of(asked.fix):
        name, sign, flow = part.partition("=")
        if name not in ("mapping", "hardware") or (name == "mapping") != bool(sign) or name in found:
            raise InputError("fix", "must be mapping=DATAFLOW or hardware, each once", part,
                             f"For example mapping=nvdla; dataflows: {', '.join(DATAFLOWS)}")
        found[name] = flow
    return found.get("mapping"), "hardware" in found


def _problem(asked: DesignOptions, space: DesignSpace, networks: Sequence[tuple[Graph, float]],
             front: tuple[str, ...]) -> DesignProblem:
    (flow, as_it_is), machine = _fixed(asked), space.accelerator
    refuse_sparse(machine, "to be designed")
    if machine.flexibility is not None:
        raise InputError(f"{machine.name}.flexibility", "must be left out of designs, whose mappings may be any", None,
                         "Take the section out of the machine; tilewright explore tells what flexibility is worth")
    if not asked.within and not as_it_is:
        raise InputError("--within", "must be given, unless the hardware is fixed", None, "For example area=0.2mm2")
    layers = [_layers(graph, len(networks) > 1) for graph, _ in networks]
    choice = choose_space(asked.tiling, None, flow, ())
    return DesignProblem.of(
        [(each, weight) for each, (_, weight) in zip(layers, networks, strict=True)],
        DesignSpace.as_it_is(machine) if as_it_is else space, read_limits(asked.within) if asked.within else (),
        objective=asked.objective or _goal(front), tiling=choice.tiling, spread=bool(front),
        dataflow=flow or "",
        vector=tuple((weight, graph) for graph, weight in networks) if _counted(asked) else ())


def _counted(asked: DesignOptions) -> bool:
    """Return whether the networks' vector work counts: layers that have machines of their own have none."""
    return counts_vector(asked.vector) and not asked.per_layer


def _layers(graph: Graph, several: bool) -> list[UniqueOperator]:
    """Return the distinct layers of a network, named with it where there are several."""
    return [replace(one, operator=replace(one.operator, name=f"{graph.name}/{one.operator.name}")) if several else one
            for one in unique_operators(graph)]


def _goal(front: Sequence[str]) -> str:
    """Return the product of what a front has, which the search then minimises: its middle."""
    powers = [METRICS[name] for name in front]
    parts = [any(getattr(one, name) for one in powers) for name in ("latency", "energy", "area")]
    sums = "edp" if parts[0] and parts[1] else "energy" if parts[1] else "latency"
    return sums + ("-area" if parts[2] else "")


def _request(asked: DesignOptions, problem: DesignProblem) -> RequestRecord:
    """Return what was asked for, as runs have it."""
    return RequestRecord(
        objective=problem.objective, mapper=f"design {asked.method}", seed=asked.seed, tiling=problem.tiling,
        constraints=tuple(f"{limit.what}<={limit.most:g}" for limit in problem.limits),
        options=dict(asked.options or {}), dataflow=_fixed(asked)[0] or "",
        warm_start=asked.warm_start, vector="included" if _counted(asked) else "free")


def _as_runs(found: Sequence[Designed], graphs: Sequence[Graph], request: RequestRecord) -> Iterator[RunRecord]:
    """Yield each network on the machine that was found, or on those of its layers, of which the largest is named.

    Bounds of their layers are tight in energy where that counts in the design: else they would take a third of it.
    """
    designed = {operator.signature: (one.machine, layer) for one in found
                for operator, layer in zip(one.problem.layers, one.layers.values(), strict=True)}
    machine = max((one.machine for one in found), key=lambda one: one.area_um2)
    bounds = kept_bounds if found[0].problem.priced else partial(layer_bounds, bypass=True)
    for graph in graphs:
        layers = []
        for unique in unique_operators(graph):
            own, layer = designed[unique.operator.signature]
            layers.append(layer_record(
                unique.operator, own, (layer.mapping, layer.cost), bounds(unique.operator, own),
                names=unique.names, count=unique.count))
        seconds = sum(one.seconds for one in found)
        record = new_run(graph, machine, request, layers, unfinished=(), seconds=(seconds, 0.0, 0.0), cause="")
        yield replace(record, totals=replace(record.totals, samples=sum(one.samples for one in found)))

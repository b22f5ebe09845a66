"""What DiGamma's evaluation designs (Kao 2022, section 6.3.1): networks, platforms, and the methods by name.

Platforms are Gamma's second systems: one array of any shape between a shared and a local buffer, in the technology of
the release's areas, within 0.2 and 7 mm2 of elements and buffers. In the release traffic is free; beside that stand the
platforms with their DRAM and ports. One machine runs the whole network, each layer with a mapping of its own; a sample
is one scored mapping of one layer. Batches are 1, sequences as the zoo has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from math import inf, isfinite, isnan, nan
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from tilewright.codesign import DesignProblem, Nests, Session, budget_bound, design, read_limits
from tilewright.hardware import Bandwidth, DesignSpace, Memory, find_accelerator
from tilewright.jobs import Runner
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import MappingBatch, classes_of, dataflow, dump_mapping
from tilewright.reproduce.claims import Claim, Judgement, judge
from tilewright.reproduce.searching import median_run, oracle_cell
from tilewright.reproduce.study import Cell, Setting, Table, Value
from tilewright.search import Watch, search
from tilewright.workload import Operator, unique_operators, zoo

BUDGETS = {"edge": "area=0.2mm2", "cloud": "area=7mm2"}
NETWORKS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "mobilenet-v2": "MobileNet-V2", "mnasnet": "MnasNet",
            "bert-base": "BERT", "ncf": "NCF", "dlrm": "DLRM"}
DIGAMMA, OURS, AUTO = "DiGamma", "DiGamma, tuned", "auto"
GENES = {"genes": True}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Random": ("random", GENES), "stdGA": ("ga", GENES), "PSO": ("pso", GENES), "TBPSA": ("tbpsa", GENES),
    "(1+1)-ES": ("one-plus-one", GENES), "DE": ("de", GENES), "Portfolio": ("portfolio", GENES),
    "CMA": ("cma-es", GENES), DIGAMMA: ("digamma", {"preset": "release"}), OURS: ("digamma", {}), AUTO: ("auto", {})}
"""All but `auto` search the encoding of figure 6.3: it is of the framework that baselines are plugged into (6.2.1)."""
FLOWS = {"Grid + dla": "nvdla", "Grid + shi": "shidiannao", "Grid + eye": "eyeriss"}
"""Hardware alone is searched, on a grid, with the one mapping of a style that each machine has for a layer."""
MACHINES = {"Buffer + Gamma": 0.25, "Medium + Gamma": 0.5, "Compute + Gamma": 0.75}
"""Mappings alone are searched, on machines with this share of the area in elements, and as much in either buffer."""
GRID = [(share / 12, split / 6) for share in range(1, 12) for split in range(1, 6)]
"""Its machines: shares of the area in elements, and of the rest in the local buffers."""
ELEMENT_UM2 = 282.0
TRAFFIC = {True: "free traffic, as published", False: "the platform's DRAM and ports"}

Row = tuple[str, str]
Figures = Mapping[Row, Mapping[str, float]]
"""By platform and network, by method; infinite where nothing was found."""


@cache
def problem(network: str, platform: str, free: bool, keeping: bool = True) -> DesignProblem:
    """Return the design of a platform for a network; ``free``: no port limits; ``keeping``: no tensor passes a memory.

    DiGamma and its cost model know mappings by which memories keep all tensors.
    """
    text = (resources.files("tilewright.hardware") / "zoo" / f"{platform}-s2.yaml").read_text(encoding="utf-8")
    own = next(line for line in text.splitlines() if line.startswith("technology:"))
    machine = find_accelerator(text.replace(own, "technology: kao-15nm"))
    machine = replace(machine, levels=tuple(
        replace(level, always=keeping, bandwidth=Bandwidth() if free else level.bandwidth)
        if isinstance(level, Memory) else level for level in machine.levels))
    return DesignProblem.of([(unique_operators(zoo.load(network)), 1.0)], DesignSpace.of(machine),
                            read_limits(BUDGETS[platform]))


def design_cell(of: Sequence[Any], method: str, samples: int, seed: int) -> Cell:
    """Return the cell of one run on the `problem` ``of``: cycles and square micrometres, if it found a design.

    Besides its machine, the mapping of its smallest layer, and what share of the multiply-accumulates is in layers
    that spread filters, channels, positions.
    """
    def compute() -> dict[str, Any]:
        asked = problem(*of)
        found = (_gridded(asked, FLOWS[method]) if method in FLOWS
                 else _mapped(asked, MACHINES[method], samples, seed) if method in MACHINES
                 else _designed(asked, method, samples, seed))
        if found is None:
            return {"latency": None, "area": None}
        latency, chosen, nests = found
        least = min(range(len(nests)), key=lambda at: asked.layers[at].macs)
        macs = [layer.macs * weight for layer, weight in zip(asked.layers, asked.weights, strict=True)]
        spread = [spread_of(layer, nest) for layer, nest in zip(asked.layers, nests, strict=True)]
        return {"latency": latency, "area": float(asked.area(chosen)), "elements": chosen["PEs", "instances"],
                "spread": {kind: float(sum(count for count, kinds in zip(macs, spread, strict=True) if kind in kinds)
                                       / sum(macs)) for kind in ("filters", "channels", "positions")},
                "machine": {".".join(key): value for key, value in chosen.items()},
                "mapping": dump_mapping(nests[least], asked.layers[least], asked.machine(chosen))}

    return Cell({"of": list(of), "method": method, "samples": samples, "seed": seed}, compute, samples)


def _designed(asked: DesignProblem, method: str, samples: int, seed: int) -> tuple[float, Any, list[Nest]] | None:
    """Return cycles, machine and mappings that a design method finds."""
    name, options = METHODS[method]
    found = design(asked, name, samples=samples, seed=seed, runner=Runner(workers=1), options=options, proof=0)
    if not isfinite(found.score):
        return None
    return found.score, found.chosen, [layer.mapping for layer in found.layers.values()]


def _gridded(asked: DesignProblem, flow: str) -> tuple[float, Any, list[Nest]] | None:
    """Return the same of the best machine of the grid with the mappings of a style."""
    grid = [given_machine(asked, *shares) for shares in GRID]
    machines, batches = [asked.machine(chosen) for chosen in grid], []
    for layer, layout in zip(asked.layers, asked.layouts, strict=True):
        laid = [MappingBatch.from_mappings([dataflow(flow, layer, machine)], layer, machine).relaid(layout)
                for machine in machines]
        batches.append(MappingBatch(layout, np.concatenate([one.steps for one in laid], axis=2),
                                    np.concatenate([one.ranks for one in laid], axis=2)))
    columns = {key: np.array([chosen[key] for chosen in grid]) for key in asked.space.ranges}
    scores = Session(asked, None, None, 0, Runner(workers=1)).score(columns, list(map(Nests.of, batches))).score
    best = int(scores.argmin())
    if not isfinite(scores[best]):
        return None
    return float(scores[best]), grid[best], [batch.mapping(best, layer.sizes)
                                             for layer, batch in zip(asked.layers, batches, strict=True)]


def _mapped(asked: DesignProblem, share: float, samples: int, seed: int) -> tuple[float, Any, list[Nest]] | None:
    """Return the same of the mapper Gamma, layer by layer, on the machine with this share of its area in elements."""
    chosen = given_machine(asked, share)
    machine, latency, nests = asked.machine(chosen), 0.0, []
    for at, (layer, weight) in enumerate(zip(asked.layers, asked.weights, strict=True)):
        found = search(layer, machine, objective="latency", mapper="gamma", budget=samples // len(asked.layers),
                       seed=(seed, at), watch=Watch(threads=1))
        if found.mapping is None or found.cost is None or not found.feasible:
            return None
        latency += float(weight) * found.cost.latency_cycles
        nests.append(found.mapping)
    return latency, chosen, nests


def given_machine(asked: DesignProblem, share: float, local: float = 0.5) -> dict[tuple[str, str], float]:
    """Return the numbers of a machine within the area that has a share of it in elements, one of the rest locally."""
    whole = asked.budget.most("area")
    elements = int(share * whole / ELEMENT_UM2)
    rest = whole - elements * ELEMENT_UM2
    found = {key: float(elements) if key[1] == "instances" else 1.0 for key in asked.space.ranges}
    for name, part in (("SL", local), ("SG", 1 - local)):
        one, more = (float(asked.area({**found, (name, "capacity_bytes"): size})) for size in (1.0, 1001.0))
        found[name, "capacity_bytes"] = float(int(part * rest / (more - one) * 1000))
    return found


def spread_of(operator: Operator, nest: Nest) -> set[str]:
    """Return which of filters, channels and positions a mapping spreads over the array."""
    kinds = classes_of(operator)
    named = {"filters": (*kinds["filters"], *kinds["groups"]), "channels": kinds["channels"],
             "positions": (*kinds["rows"], *kinds["columns"])}
    used = {loop.dimension for entry in nest.levels for loop in entry.loops if loop.axis is not None}
    return {kind for kind, names in named.items() if used & set(names)}


def bound_cell(of: Sequence[Any], rounds: int) -> Cell:
    """Return the cell of what no machine within the budget can beat."""
    return Cell({"of": list(of), "bound": rounds}, lambda: {"latency": budget_bound(problem(*of), rounds)})


@dataclass(frozen=True)
class Designs:
    """Runs of methods by row of platform and network, and the bound of each row."""

    found: Mapping[Row, Mapping[str, Sequence[Mapping[str, Any]]]]
    least: Mapping[Row, float]
    note: str

    def seeds(self, name: str = "latency") -> list[Figures]:
        """Return a figure by seed: the latency, or its product with the area."""
        count = len(next(iter(next(iter(self.found.values())).values())))
        return [{row: {method: figure(runs[seed], name) for method, runs in methods.items()}
                 for row, methods in self.found.items()} for seed in range(count)]


def contest(rows: Sequence[Row], methods: Iterable[str], free: bool, setting: Setting, runner: Runner) -> Designs:
    """Run methods on rows with every seed; the oracle counts the smallest layer of every design of median latency."""
    asked = {row: (row[1], row[0], free) for row in rows}
    draws = {method: 1 if method in FLOWS else setting.seeds for method in methods}
    cells = [design_cell(of, method, setting["samples"], seed) for of in asked.values()
             for method, count in draws.items() for seed in range(count)]
    values = iter(runner.run(cells))
    found = {row: {method: [next(values) for _ in range(count)] * (setting.seeds // count)
                   for method, count in draws.items()} for row in rows}
    bounds = runner.run([bound_cell(of, setting["rounds"]) for of in asked.values()])
    least = {row: float(bound["latency"]) for row, bound in zip(rows, bounds, strict=True)}
    checks = []
    for row, of in asked.items():
        for value in (median_run(runs, "latency") for runs in found[row].values()):
            if value is not None:
                design_of = problem(*of)
                layer = min(design_of.layers, key=lambda layer: layer.macs)
                machine = design_of.machine({key: value["machine"][".".join(key)] for key in design_of.space.ranges})
                checks.append(oracle_cell({"of": list(of), "machine": value["machine"]}, layer, machine,
                                          value["mapping"]))
    told = runner.run(checks)
    return Designs(found, least, f"The oracle confirms the smallest layer of {sum(one['agrees'] for one in told)} of "
                                 f"{len(told)} designs, those of median latency, {TRAFFIC[free]}.")


def figure(run: Mapping[str, Any], name: str) -> float:
    """Return latency, or its product with the area; infinite where nothing was found."""
    if run["latency"] is None:
        return inf
    return float(run["latency"]) * (float(run["area"]) if name == "product" else 1.0)


def lead(figures: Figures, platform: str, of: str, over: Sequence[str]) -> float:
    """Return the least geometric mean gain of a method over others, of rows where both found a design."""
    gains = []
    for name in over:
        pairs = [row[name] / row[of] for (where, _), row in figures.items()
                 if where == platform and max(row[name], row[of]) < inf]
        gains += [geometric_mean(pairs)] if pairs else []
    return min(gains, default=nan)


def judged_of(claim: Claim, seeds: Sequence[Figures], measure: Any, unit: str = "x", whole: int = 1) -> Judgement:
    """Judge by DiGamma at its release's rates; tell it with its tuned rates beside."""
    values, ours = ([measure(one, method) for one in seeds] for method in (DIGAMMA, OURS))
    told = [f"{_middle([whole * each for each in given])}{unit} {how}" for given, how in (
        (values, "at the release's rates"), (ours, "tuned"))]
    return judge(claim, values, ", ".join(told))


def _middle(values: Sequence[float]) -> str:
    known = [value for value in values if not isnan(value)]
    return f"{median(known):.3g}" if known else "none"


def over_table(head: tuple[str, str], designs: Designs, base: str, published: Mapping[Row, Sequence[float]] | None,
               what: str = "latency") -> Table:
    """Return medians over seeds, over that of a method, beside the published ones in brackets; ``head``: its titles."""
    seeds, rows = designs.seeds(what), list[tuple[Value, ...]]()
    methods = list(next(iter(designs.found.values())))
    for row, least in designs.least.items():
        middle = {method: median(one[row][method] for one in seeds) for method in methods}
        theirs = dict(zip(methods, ("N/A" if isnan(value) else f"{value:g}" for value in (published or {}).get(
            row, ())), strict=False))
        cells = [f"{_over(middle[method], middle[base])}"
                 f"{f' ({theirs[method]})' if method in theirs else ''}" for method in methods]
        best = middle[OURS]
        rows.append((row[0], NETWORKS[row[1]], *cells, best if best < inf else None, *(
            (least,) if what == "latency" else ())))
    columns = ("Platform", "Network", *methods, f"{OURS} ({'cycles' if what == 'latency' else 'cycles um2'})", *(
        ("No machine below (cycles)",) if what == "latency" else ()))
    return Table(*head, columns, tuple(rows), (
        "Medians over seeds (published in brackets). N/A: nothing within the budget in half the seeds; where the base "
        "found nothing, figures are not put over it.",) if published else ())


def _over(value: float, base: float) -> str:
    if value == inf:
        return "N/A"
    return f"{value / base:.3g}" if base < inf else f"{value:.3g}"

"""Mappings of scratchpads (Jang, Drexel 2023): figures 4.2 and 4.3, 5.4 and 5.5, and what OnSRAM gains by its rules.

The figures are pictures without figures; what the text says of them is judged on graphs like that of figure 4.1, and on
the thesis's networks. Of the matrix of figure 5.4 all is printed.
"""

from collections import Counter
from collections.abc import Iterable
from math import ceil
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

from tilewright.allocation import (
    TILE,
    OperationStep,
    Pad,
    PlanSearch,
    ResidencyProblem,
    ResidentTensor,
    network_problem,
    read_pads,
    tally,
    transfers_of,
)
from tilewright.base import InputError
from tilewright.jobs import Runner
from tilewright.reproduce.claims import apart, counted, judge, lower
from tilewright.reproduce.spm_savings import NETWORKS, SIZES, Found, faults, measured, problem_of, solved
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction
from tilewright.workload import MacNode, tensor_graph, zoo

RULES = ("naive", "onsram-static", "onsram-eager", "onsram-multi", "exact")
WORSE, PORTED = claims("spm-fig4.2")
FEWER, MEETS = claims("spm-fig4.3")
GRAPHS = Setting("quick", 1, {"graphs": 40}), Setting("full", 1, {"graphs": 400})


def reuse_graph(seed: int) -> ResidencyProblem:
    """Return a graph like that of figure 4.1, drawn: results are read by the next operation, and by later ones."""
    rng = np.random.default_rng(seed)
    while True:
        sizes = rng.integers(1, 8, 8).tolist()
        reads = [(at,) if at == 0 or rng.random() < 0.5 else (int(rng.integers(0, at)), at) for at in range(7)]
        read = {one for each in reads for one in each}
        tensors = tuple(ResidentTensor(f"t{at}", size, outside=at == 0, leaves=at not in read)
                        for at, size in enumerate(sizes))
        steps = tuple(OperationStep(f"node{at}", each, (at + 1,)) for at, each in enumerate(reads))
        try:
            return ResidencyProblem(f"graph {seed}", steps, tensors, tuple(Pad(f"pad{at}", 9) for at in range(3)))
        except InputError:
            continue


def reuse(seed: int) -> dict[str, Any]:
    """Return bytes that move and that are stored on a drawn graph, by rule, and the bound."""
    problem = reuse_graph(seed)
    plans = {rule: solved(problem, rule) for rule in RULES}
    tallies = {rule: tally(problem, transfers_of(problem, plan.stays)) for rule, plan in plans.items()}
    best = plans["exact"]
    return {"moved": {rule: one.dram_bytes for rule, one in tallies.items()},
            "stored": {rule: one.stored_bytes for rule, one in tallies.items()},
            "bound": best.prices.first(best.bound),
            "verifier": "agrees" if not faults(*plans.values()) else "disagrees"}


def _graphs(setting: Setting, runner: Runner) -> tuple[list[dict[str, Any]], Table]:
    found = runner.run([Cell({"graph": seed}, lambda seed=seed: reuse(seed)) for seed in range(setting["graphs"])])
    rows = [(seed, *(one["moved"][rule] for rule in RULES), one["bound"], one["stored"]["onsram-eager"],
             one["stored"]["exact"], one["verifier"]) for seed, one in enumerate(found)]
    return found, Table("graphs", "Bytes from and to the main memory, by rule", (
        "Graph", *RULES, "Bound", "Stored by the eager rule", "Stored by the best", "Verifier"), tuple(rows),
        ("Graphs are drawn: 7 operations, tensors of 1 to 7 bytes, three scratchpads of 9.",))


@reproduction("spm-fig4.2", *GRAPHS)
def figure42(setting: Setting, runner: Runner) -> Findings:
    """Map drawn graphs by rules."""
    found, table = _graphs(setting, runner)
    worse = [one["moved"]["onsram-eager"] > one["moved"]["exact"] for one in found]
    ported = [one["moved"]["onsram-static"] > one["moved"]["onsram-multi"] for one in found]
    return Findings((table,), (counted(WORSE, worse), counted(PORTED, ported)),
                    (_matrix("greedy", "The eager rule on the first graph", solved(reuse_graph(0), "onsram-eager")),))


@reproduction("spm-fig4.3", *GRAPHS, cells="spm-fig4.2")
def figure43(setting: Setting, runner: Runner) -> Findings:
    """Map the same graphs at best."""
    found, table = _graphs(setting, runner)
    fewer = [one["stored"]["exact"] < one["stored"]["onsram-eager"] for one in found]
    meets = [one["moved"]["exact"] <= one["bound"] for one in found]
    return Findings((table,), (counted(FEWER, fewer), counted(MEETS, meets)),
                    (_matrix("best", "The best plan of the first graph", solved(reuse_graph(0), "exact")),))


PRINTED = ([0], [1], [2], [3], [4], [0], [5, 11], [6, 12], [7, 13], [8, 14])
"""Figure 5.4 by operation: columns of its two input scratchpads, ten each; its result's column is the operation's."""
COUNTS, PLACES = claims("spm-fig5.4")
SHOWN = ("LeNet5", "Minerva")


def places(network: str, kilobytes: int) -> dict[str, Any]:
    """Return which share of tensors of operations the naive map has on the scratchpad of their role."""
    problem = problem_of(network, kilobytes)
    plan = solved(problem, "naive")
    own = [stay.pad == {"inputs": 0, "weights": 1, "outputs": 2}[problem.role(stay.tensor, stay.first)]
           for stay in plan.stays]
    return {"own": fmean(own), "verifier": "agrees" if not faults(plan) else "disagrees"}


def printed_changes() -> tuple[int, int]:
    """Return the changes between operations of the matrix of figure 5.4, and the loads and stores that it shows."""
    matrix = np.zeros((len(PRINTED), 30), dtype=np.int64)
    for at, columns in enumerate(PRINTED):
        matrix[at, [*columns, 20 + at]] = 1
    return int(np.abs(np.diff(matrix, axis=0)).sum()), int(matrix.sum())


@reproduction("spm-fig5.4", Setting("quick", 1, {"kilobytes": 32, "networks": tuple(NETWORKS)}),
              Setting("full", 1, {"kilobytes": 32, "networks": tuple(NETWORKS)}), version=2, cells="spm-table7.1")
def figure54(setting: Setting, runner: Runner) -> Findings:
    """Count the changes of the naive map, printed and ours."""
    size, networks = setting["kilobytes"], setting["networks"]
    found = measured(runner, (size,), networks)
    own = runner.run([Cell({"network": network, "kilobytes": size, "of": "places"},
                           lambda network=network: places(network, size)) for network in networks])
    each = [float(found[network, size]["changes_per_transfer"]) for network in networks]
    shares = [float(one["own"]) for one in own]
    changes, transfers = printed_changes()
    table = Table("naive", f"The naive map with three scratchpads of {size} KB", (
        "Network", "Changes for each transfer", "On scratchpads of their own", "Bytes", "Bound", "Verifier"), (
            ("figure 5.4", changes / transfers, 1.0, None, None, ""),
            *((network, one, share, found[network, size]["naive_bytes"],
               found[network, size]["bound_left"] * found[network, size]["naive_bytes"], placed["verifier"])
              for network, one, share, placed in zip(networks, each, shares, own, strict=True))))
    return Findings((table,), (
        judge(COUNTS, geometric_mean(each), f"{geometric_mean(each):.2f}",
              f"each use comes and goes; the printed matrix has {changes} for {transfers} loads and stores"),
        judge(PLACES, fmean(shares), f"{fmean(shares):.3f}")),
        tuple(_matrix(name, name, solved(problem_of(name, size), "naive")) for name in SHOWN if name in networks))


WEIGHS, SAME = claims("spm-fig5.5")
CHOSEN = ("vgg16", "resnet18")


@reproduction("spm-fig5.5", Setting("quick", 1, {"sizes": (32, 2048), "networks": tuple(NETWORKS)}),
              Setting("full", 1, {"sizes": SIZES, "networks": tuple(NETWORKS)}), version=2, cells="spm-table7.1")
def figure55(setting: Setting, runner: Runner) -> Findings:
    """Minimise the printed objective, and hold its plans against those of fewest bytes."""
    found: Found = {**measured(runner, setting["sizes"], setting["networks"]), **measured(runner, (256,), CHOSEN)}
    rows = tuple((network, size, one["constant_part"], one["thesis_over_true"], one["naive_bytes"],
                  one["bound_left"] * one["naive_bytes"], "yes" if one["proven"] else "no", one["verifier"])
                 for (network, size), one in found.items())
    weighed = [1 - float(found[network, 256]["constant_part"]) for network in CHOSEN]
    least = [float(one["thesis_over_true"]) < 1 + 1e-9 for (network, _), one in found.items() if network not in CHOSEN]
    table = Table("objective", "The printed objective and bytes that move", (
        "Network", "KB", "Constant part of the objective", "Its bytes over the least", "Naive bytes", "Bound", "Proven",
        "Verifier"), rows)
    return Findings((table,), (
        judge(WEIGHS, fmean(weighed), ", ".join(f"{one:.3f}" for one in weighed),
              "each life begins and ends once in any plan; with words of 8 bits nothing else is left of either"),
        counted(SAME, least)), tuple(
            _matrix(name, name, solved(problem_of(name, 32), "exact", "thesis")) for name in SHOWN
            if name in setting["networks"]))


def _matrix(name: str, title: str, plan: PlanSearch) -> Plot:
    """Draw a mapping matrix: operations down, tensors of each scratchpad across."""
    problem = plan.problem
    across = len(problem.tensors)
    matrix = np.zeros((len(problem.steps), across * len(problem.pads)), dtype=np.int64)
    for stay in plan.stays:
        matrix[stay.first:stay.last + 1, stay.pad * across + stay.tensor] = 1
    labels = [f"{pad.name} {tensor.name}" for pad in problem.pads for tensor in problem.tensors]
    return Plot(name.lower(), title, [{"type": "heatmap", "z": matrix.tolist(), "x": labels, "showscale": False,
                                       "y": [step.name for step in problem.steps], "colorscale": "Greys"}],
                {"yaxis": {"autorange": "reversed"}})


MACS, BYTES, SIZE = 1500, 32, "2MB"
"""Of a cycle, and of the scratchpad: 3 TFLOP and 32 GB/s at 1 GHz; words of 16 bits."""
ZOO = ("alexnet", "vgg16", "resnet18", "resnet50", "googlenet", "squeezenet", "densenet121", "mobilenet-v2",
       "shufflenet", "yolov8n", "bert-base", "lenet5")
LOW, HIGH, EAGER, BEHIND, MEAN, NEAR = claims("onsram-static")


def onsram(network: str) -> dict[str, Any]:
    """Return cycles of a network on one scratchpad, by rule, and what a scratchpad that holds all would take.

    Operations whose tensors do not fit run in tiles. Transfers of an operation overlap it: it takes the longer of both.
    """
    graph = zoo.load(network)
    work = {node.name: (ceil(node.macs / MACS), 0.0) for node in graph.nodes if isinstance(node, MacNode)}
    problem = network_problem(tensor_graph(graph), read_pads(SIZE), work, (16, 16), "tile")
    plans = {rule: solved(problem, rule) for rule in RULES[:3]}
    found = {rule: cycles_of(problem, [(one.step, one.bytes) for one in transfers_of(problem, plan.stays)])
             for rule, plan in plans.items()}
    must = [(problem.touches[at][0] if tensor.outside else problem.written[at][-1], tensor.size_bytes)
            for at, tensor in enumerate(problem.tensors) if tensor.outside or tensor.leaves]
    return {"cycles": found | {"ideal": cycles_of(problem, must)},
            "verifier": "agrees" if not faults(*plans.values()) else "disagrees"}


def cycles_of(problem: ResidencyProblem, moved: Iterable[tuple[int, int]]) -> int:
    """Return the cycles of all operations where bytes move in steps; tiles belong to their operation."""
    compute, dram = Counter[str](), Counter[str]()
    for step in problem.steps:
        compute[step.name.rpartition(TILE)[0] or step.name] += step.cycles
    for at, size in moved:
        name = problem.steps[at].name
        dram[name.rpartition(TILE)[0] or name] += size
    return sum(max(compute[name], ceil(dram[name] / BYTES)) for name in compute)


@reproduction("onsram-static", Setting("quick", 1, {"networks": ZOO[:3] + ZOO[5:6]}),
              Setting("full", 1, {"networks": ZOO}))
def onsram_static(setting: Setting, runner: Runner) -> Findings:
    """Run networks of the zoo by both rules, against the naive map and a scratchpad that holds all."""
    networks = setting["networks"]
    found = runner.run([Cell({"network": one}, lambda one=one: onsram(one)) for one in networks])
    static, eager, ideal = ([one["cycles"]["naive"] / one["cycles"][rule] for one in found]
                            for rule in ("onsram-static", "onsram-eager", "ideal"))
    near = [one / limit for one, limit in zip(static, ideal, strict=True)]

    def most(gains: list[float]) -> str:
        return f"{max(gains):.2f}x ({networks[gains.index(max(gains))]})"

    table = Table("networks", "Cycles on one scratchpad, batch 1", (
        "Network", "Naive", "Static", "Eager", "Bound (all on chip)", "Static gains", "Eager gains", "At most",
        "Verifier"), tuple(
            (name, *(one["cycles"][rule] for rule in ("naive", "onsram-static", "onsram-eager", "ideal")), *gains,
             one["verifier"]) for name, one, *gains in zip(networks, found, static, eager, ideal, strict=True)),
        ("Its twelve networks are not these. Vector operations take no cycles beside what they move.",))
    return Findings((table,), (
        judge(LOW, apart(min(static), 1.02), f"{min(static):.2f}x"), judge(HIGH, max(static), most(static)),
        judge(EAGER, max(eager), most(eager)),
        judge(BEHIND, lower(list(zip(eager, static, strict=True))),
              f"{sum(one < other for one, other in zip(eager, static, strict=True))} of {len(static)}",
              "our eager rule sees the run itself, not a history of runs before"),
        judge(MEAN, fmean(static), f"{fmean(static):.2f}x"), judge(NEAR, fmean(near), f"{fmean(near):.2f}")))

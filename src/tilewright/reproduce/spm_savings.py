"""Scratchpads managed by integer programming (Jang, Drexel 2023): table 7.1 and figures 7.1 to 7.4.

The cycles of SMAUG are not published but as shares, so that speedups follow from these shares and from what is saved,
by the equations of section 6.2. What is saved is counted three times: loads and stores, whatever their sizes; changes
of the mapping matrix, as that section prints; and bytes that really move.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

from tilewright.allocation import (
    SOLVERS,
    OperationStep,
    Pad,
    PlanSearch,
    Prices,
    ResidencyProblem,
    ResidentTensor,
    Stay,
    cut_tensors,
    network_problem,
    plan_record,
    read_pads,
    standing_bounds,
    tally,
    transfers_of,
    verify,
)
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, apart, counted, judge, lower
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, published, reproduction
from tilewright.workload import TensorGraph, tensor_graph, zoo

BITS, PADS, PLENTY = (16, 16), 3, 2**20
"""Of SMAUG's words; scratchpads; kilobytes of one that holds all."""
SIZES = (32, 64, 128, 256, 512, 1024, 2048)
NETWORKS = {"CNN": "cnn10", "LeNet5": "lenet5", "LSTM": "", "Minerva": "minerva", "ELU": "elu",
            "Large-ELU": "large-elu", "ResNet": "resnet50", "VGG": "vgg-cifar10"}
TABLE = {network: row for (network,), row in published("spm-table7.1", 1).items()}
"""Table 7.1, all in percent: share of DMA, speedup without any, with an infinite scratchpad, and mean over sizes."""
WHOLE_FROM = ("LSTM", "Minerva", "LeNet5", "CNN")
"""Networks that figure 7.2 has at all of the infinite scratchpad's speedup from 128 KB on."""
Found = Mapping[tuple[str, int], Mapping[str, Any]]


def lstm(steps: int = 8, inputs: int = 32, hidden: int = 32) -> tuple[list[ResidentTensor], list[OperationStep]]:
    """Return a layer of an LSTM, step by step, as SMAUG unrolls it; its sizes are ours, as they are not published."""
    width = BITS[0] // 8
    tensors = [ResidentTensor("W", 4 * hidden * inputs * width, weights=True, outside=True),
               ResidentTensor("U", 4 * hidden * hidden * width, weights=True, outside=True),
               *(ResidentTensor(name, hidden * width, outside=True) for name in "hc")]
    made: list[OperationStep] = []
    state, memory = 2, 3
    for at in range(steps):
        first = len(tensors)
        tensors += [ResidentTensor(f"x{at}", inputs * width, outside=True),
                    *(ResidentTensor(f"{name}{at}", 4 * hidden * width) for name in ("Wx", "Uh")),
                    ResidentTensor(f"h{at}", hidden * width, leaves=True),
                    ResidentTensor(f"c{at}", hidden * width, leaves=at + 1 == steps)]
        made += [OperationStep(f"input{at}", (first, 0), (first + 1,)),
                 OperationStep(f"state{at}", (state, 1), (first + 2,)),
                 OperationStep(f"cell{at}", (first + 1, first + 2, memory), (first + 3, first + 4))]
        state, memory = first + 3, first + 4
    return tensors, made


@cache
def _graph(name: str) -> TensorGraph:
    return tensor_graph(zoo.load(name))


def problem_of(network: str, kilobytes: int) -> ResidencyProblem:
    """Return the problem of a network of the thesis, or of the zoo, on three scratchpads, tensors cut to them (6.3)."""
    pads: tuple[Pad, ...] = read_pads(f"{PADS}x{kilobytes}KB", BITS[0] // 8)
    if NETWORKS.get(network, network):
        return network_problem(_graph(NETWORKS.get(network, network)), pads, bits=BITS, oversize="cut")
    tensors, steps = lstm()
    cut, told = cut_tensors(tensors, steps, pads)
    return ResidencyProblem(network, tuple(steps), cut, pads, told)


def transitions(problem: ResidencyProblem, stays: tuple[Stay, ...]) -> int:
    """Return changes of the mapping matrix between operations, without sizes (6.2)."""
    there = np.zeros((len(problem.tensors), len(problem.pads), len(problem.steps)), dtype=np.int64)
    for stay in stays:
        there[stay.tensor, stay.pad, stay.first:stay.last + 1] = 1
    return int(np.abs(np.diff(there, axis=2)).sum())


def solved(problem: ResidencyProblem, solver: str, metric: str = "bytes") -> PlanSearch:
    """Return what a solver finds by one metric."""
    search = PlanSearch(problem, Prices(problem, (metric,)))
    standing_bounds(search)
    SOLVERS.get(solver)(search)
    return search


def faults(*plans: PlanSearch) -> int:
    """Return how many faults the verifier finds in plans."""
    return sum(len(verify(plan_record(plan, {"command": "", "machine": "", "assumptions": (), "solver": "",
                                             "objective": plan.prices.metrics}, (), 1))) for plan in plans)


def measure(network: str, kilobytes: int) -> dict[str, Any]:
    """Return what the naive map and the best ones move, by number, change and bytes; the verifier looks at all."""
    problem = problem_of(network, kilobytes)
    plans = {"naive": solved(problem, "naive"), "thesis": solved(problem, "exact", "thesis"),
             "true": solved(problem, "exact")}
    wrong = faults(*plans.values()) if kilobytes <= max(SIZES) else 0
    moves = {name: transfers_of(problem, plan.stays) for name, plan in plans.items()}
    moved = {name: tally(problem, transfers).dram_bytes for name, transfers in moves.items()}
    changes = {name: transitions(problem, plan.stays) for name, plan in plans.items()}
    ends = sum(tensor.size_bytes * ((at[0] > 0) + (at[-1] + 1 < len(problem.steps)))
               for tensor, at in zip(problem.tensors, problem.touches, strict=True) if at)
    thesis, true = plans["thesis"], plans["true"]
    return {"transfers_left": len(moves["thesis"]) / len(moves["naive"]), "naive_bytes": moved["naive"],
            "changes_left": changes["thesis"] / changes["naive"], "bytes_left": moved["true"] / moved["naive"],
            "bound_left": true.prices.first(true.bound) / moved["naive"],
            "thesis_over_true": moved["thesis"] / moved["true"],
            "constant_part": ends / thesis.prices.first(thesis.score or 1),
            "changes_per_transfer": changes["naive"] / len(moves["naive"]),
            "proven": thesis.closed and true.closed, "verifier": "agrees" if not wrong else "disagrees"}


def measured(runner: Runner, sizes: tuple[int, ...], networks: Iterable[str] = NETWORKS) -> Found:
    """Return what every network moves with every size."""
    keys = [(network, size) for network in networks for size in sizes]
    cells = [Cell({"network": network, "kilobytes": size}, lambda network=network, size=size: measure(network, size))
             for network, size in keys]
    return dict(zip(keys, runner.run(cells), strict=True))


def speedup(share: float, saved: float) -> float:
    """Return by how many percent a network is faster where so much of its DMA is saved (6.2); all are parts of one."""
    return 100 * (1 / (1 - share * saved) - 1)


def saved(found: Mapping[str, Any], what: str = "transfers") -> float:
    """Return the part of the naive map's ``transfers`` (or ``changes``, ``bytes``) that the best plan saves."""
    return 1 - float(found[f"{what}_left"])


def _speedups(found: Found, network: str, sizes: tuple[int, ...]) -> list[float]:
    return [speedup(TABLE[network][0] / 100, saved(found[network, size])) for size in sizes]


PUBLISHED = geometric_mean(1 + infinite / 100 for _, _, infinite, _ in TABLE.values())
WAYS = ("transfers", "changes", "bytes")


FOLLOWS, PRINTED, INFINITE, CHANGES, BYTES, MEANS = claims(
    "spm-table7.1", INFINITE=PUBLISHED, CHANGES=PUBLISHED, BYTES=PUBLISHED)


@reproduction("spm-table7.1", Setting("quick", 1, {"sizes": (32, 2048)}), Setting("full", 1, {"sizes": SIZES}),
              version=2)
def table71(setting: Setting, runner: Runner) -> Findings:
    """Work out speedups from the printed shares and our savings."""
    found = measured(runner, (*setting["sizes"], PLENTY))
    rows, worth, follows, inverted = [], [], [], []
    for network, (share, without, infinite, mean) in TABLE.items():
        ours = [speedup(share / 100, saved(found[network, PLENTY], way)) for way in WAYS]
        worth.append([1 + each / 100 for each in ours])
        follows.append(follows_from(share, without))
        inverted.append(follows_from(100 - share, without))
        rows.append((network, share, without, speedup(share / 100, 1), infinite, *ours, mean,
                     fmean(_speedups(found, network, setting["sizes"])), found[network, PLENTY]["verifier"]))
    means = [geometric_mean(each) for each in zip(*worth, strict=True)]
    told = [f"{mean:.2f} ({min(each):.2f} to {max(each):.2f})"
            for mean, each in zip(means, zip(*worth, strict=True), strict=True)]
    floor = 5 * TABLE["Minerva"][2] / 7
    table = Table("speedups", "Speedups (%), published and ours", (
        "Network", "DMA (%)", "Without DMA", "Ours", "Infinite scratchpad", "Ours by number", "By changes",
        "By bytes", "Mean over sizes", "Ours", "Verifier"), tuple(rows), (
            "Tensors are cut to the scratchpads; the LSTM has sizes of ours.",))
    return Findings((table,), (
        judge(FOLLOWS, fmean(follows), f"{sum(follows)} of eight, as shares are rounded"),
        judge(PRINTED, fmean(inverted), f"{sum(inverted)} of eight",
              "the table has DMA / total, as section 6.2 says in words"),
        judge(INFINITE, means[0], told[0]), judge(CHANGES, means[1], told[1]),
        judge(BYTES, means[2], told[2], "weights move once whatever is kept, and outweigh activations there"),
        judge(MEANS, 0.0, f"five sizes alone make {floor:.2f} %", "figure 7.2 has Minerva at 100 % from 128 KB",
              impossible=floor > TABLE["Minerva"][3])),
        (_plot(found, (*setting["sizes"], PLENTY)),))


def follows_from(share: float, without: float) -> bool:
    """Whether a speedup without DMA follows from its share, both as they are rounded, in percent."""
    low, high = (speedup((share + shift) / 100, 1) for shift in (-0.005, 0.005))
    return low - 0.005 <= without <= high + 0.005


PRINTED_LEAST = 19.0
LEAST, MEAN, SMALLEST, FORTY = claims("spm-fig7.1", LEAST=60.46 / PRINTED_LEAST)
SHOWN = Setting("quick", 1, {"sizes": (32, 128, 2048)}), Setting("full", 1, {"sizes": SIZES})


@reproduction("spm-fig7.1", *SHOWN, version=2, cells="spm-table7.1")
def figure71(setting: Setting, runner: Runner) -> Findings:
    """Sweep the sizes for all networks."""
    sizes = setting["sizes"]
    found = measured(runner, (*sizes, PLENTY))
    speedups = {network: _speedups(found, network, sizes) for network in NETWORKS}
    least = min((value, network, size) for network in NETWORKS for value, size in zip(
        speedups[network], sizes, strict=True))
    means = {network: fmean(values) for network, values in speedups.items()}
    high = [values[0] > 50 for values in speedups.values()]
    return _swept(found, sizes, (
        judge(LEAST, apart(least[0], PRINTED_LEAST), f"{1 + least[0] / 100:.3f} ({least[1]} at {least[2]} KB)"),
        judge(MEAN, 1 + min(means.values()) / 100, f"{1 + min(means.values()) / 100:.3f}"),
        counted(SMALLEST, high, "the text's own least is 1.19x, at 32 KB"),
        judge(FORTY, 0.0, f"{least[0]:.1f} % ({least[1]})", "the text has 1.19x for ResNet at 32 KB",
              impossible=PRINTED_LEAST < 40)))


WHOLE, WORST, EARLIER, ABOVE = claims("spm-fig7.2")


@reproduction("spm-fig7.2", *SHOWN, version=2, cells="spm-table7.1")
def figure72(setting: Setting, runner: Runner) -> Findings:
    """Hold speedups against those of a scratchpad that holds all."""
    sizes = setting["sizes"]
    found = measured(runner, (*sizes, PLENTY))
    whole = [_part(found, network, 128) > 0.999 > _part(found, network, 32) for network in WHOLE_FROM]
    worst = 100 * _part(found, "ResNet", 32)
    first = [next(size for size in (*sizes, PLENTY) if _part(found, network, size) > 0.999)
             for network in ("LSTM", "Minerva")]
    return _swept(found, sizes, (
        counted(WHOLE, whole), judge(WORST, apart(worst, 39.5), f"{worst:.1f} %"),
        judge(EARLIER, lower([(first[0], first[1])]), f"{first[0]} and {first[1]} KB"),
        judge(ABOVE, 0.0, "42.93 % and 43.71 % in table 7.1, 47.76 % and 53.65 % without limit",
              impossible=TABLE["LSTM"][3] < TABLE["VGG"][3])))


GROWS, WEIGHED = claims("spm-fig7.3")
WHOLE_NETWORKS = ("vgg16", "alexnet")


@reproduction("spm-fig7.3", *SHOWN, version=2, cells="spm-table7.1")
def figure73(setting: Setting, runner: Runner) -> Findings:
    """Count what is saved, and of two networks of the zoo the bytes that can be."""
    sizes = setting["sizes"]
    found, zoos = measured(runner, (*sizes, PLENTY)), measured(runner, (PLENTY,), WHOLE_NETWORKS)
    grows = [saved(found[network, max(sizes)]) - saved(found[network, 32]) > 0.01 for network in NETWORKS]
    real = [1 - float(value["bound_left"]) for value in zoos.values()]
    numbers = [saved(value) for value in zoos.values()]
    return _swept({**found, **zoos}, sizes, (
        counted(GROWS, grows, "a chain whose tensors are cut to the scratchpads never has to let go of one"),
        judge(WEIGHED, min(real), f"{real[0]:.2f} and {real[1]:.2f}",
              f"of transfers by number {numbers[0]:.2f} and {numbers[1]:.2f}: sizes are left out")))


CHAINS, FURTHEST = claims("spm-fig7.4")


@reproduction("spm-fig7.4", *SHOWN, version=2, cells="spm-table7.1")
def figure74(setting: Setting, runner: Runner) -> Findings:
    """Hold transfers against those of a scratchpad that holds all."""
    sizes = setting["sizes"]
    found = measured(runner, (*sizes, PLENTY))
    over = {network: _over(found, network, 32) for network in NETWORKS}
    chains = [over[network] > 1.01 for network in ("CNN", "LeNet5", "Minerva", "VGG")]
    furthest = max(over, key=lambda network: over[network])
    return _swept(found, sizes, (
        counted(CHAINS, chains, "cut tensors of one operation always fit"),
        judge(FURTHEST, float(furthest == "ResNet"), f"{furthest}, {over[furthest]:.2f} times")))


def _swept(found: Found, sizes: tuple[int, ...], judgements: tuple[Judgement, ...]) -> Findings:
    """Return what all figures of sizes show, and what is judged of it."""
    rows = []
    for (network, size), value in found.items():
        known = (network, PLENTY) in found and network in TABLE
        rows.append((network, size, saved(value), saved(value, "bytes"), 1 - float(value["bound_left"]),
                     speedup(TABLE[network][0] / 100, saved(value)) if known else "",
                     _part(found, network, size) if known else "", _over(found, network, size) if known else "",
                     "yes" if value["proven"] else "no", value["verifier"]))
    table = Table("sizes", "What is saved and what it is worth", (
        "Network", "KB", "Transfers saved", "Bytes saved", "Bound on bytes saved", "Speedup (%)", "Of the infinite",
        "Over the least", "Proven", "Verifier"), tuple(rows), (f"{PLENTY} KB stands for an infinite scratchpad.",))
    return Findings((table,), judgements, (_plot(found, (*sizes, PLENTY)),))


def _over(found: Found, network: str, size: int) -> float:
    """Return how many times the least transfers there are."""
    return float(found[network, size]["transfers_left"]) / float(found[network, PLENTY]["transfers_left"])


def _part(found: Found, network: str, size: int) -> float:
    """Return which part of the infinite scratchpad's speedup a size has."""
    share = TABLE[network][0] / 100
    most = speedup(share, saved(found[network, PLENTY]))
    return speedup(share, saved(found[network, size])) / most if most else 1.0


def _plot(found: Found, sizes: tuple[int, ...]) -> Plot:
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines+markers", "name": f"{network}, {way}",
         "visible": "legendonly" if way == "transfers" else True, "x": [str(size) for size in sizes],
         "y": [saved(found[network, size], way) for size in sizes]} for way in ("bytes", "transfers")
        for network in NETWORKS]
    return Plot("saved", "Part of the naive map's transfers that is saved", data, {
        "xaxis": {"title": {"text": "KB of each scratchpad"}}, "yaxis": {"title": {"text": "saved"}}})

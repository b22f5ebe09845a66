"""SAGAR, figures 3, 7 and 11 to 14: what partitions of a systolic array are worth, without learning.

Samajdar, Pellauer, Krishna, "Learning Flexible GEMM Accelerator Configuration and Mapping-space using ML". A run that
waits for nothing is always fastest on the smallest sub-arrays; what a switch of `PartitionEffects` makes win stands
beside it.

SIGMA (Qin et al., HPCA 2020) lets the words of one operand that are not zero rest, as many as there are units, and
streams the other one past them, a row a cycle over a network that reaches every unit at once; an adder tree then sums
up. The paper says of its model only that it counts streaming, computing and adding. Ours waits for nothing, as all of
SAGAR's figures do: a fold is a cycle to fill, one for each row that streams, and the depth of the tree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import ceil, log2, prod
from typing import Any

import numpy as np

from tilewright.cost import (
    SAGAR,
    SCALE_SIM,
    SCALE_SIM_PAPER,
    STALL_FREE,
    SYSTOLIC_RULES,
    ArrayConfiguration,
    PartitionEffects,
    SystolicProduct,
    best_configurations,
    partitioned_counts,
    systolic_array,
    systolic_runtime,
)
from tilewright.hardware import Accelerator, preset
from tilewright.jobs import Runner
from tilewright.reproduce.claims import counted, judge, lower, right
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, reproduction
from tilewright.search import search
from tilewright.workload import Operator, zoo

SIDES = (128, 64, 32, 16, 8, 4)
SWITCHES = {
    "stall-free": STALL_FREE, "bypass": PartitionEffects(bypass=True),
    "sums in a tree": PartitionEffects(summation="tree"), "sums in banks": PartitionEffects(summation="banks"),
    "ports": PartitionEffects(ports=True), "ports, reads collated": PartitionEffects(ports=True, collation=True),
    "all, DRAM apart": PartitionEffects(bypass=True, summation="banks", ports=True, dram="replicated"),
}
"""What is counted, by what people call it."""
Found = Mapping[str, Any]


def square(side: int) -> ArrayConfiguration:
    """Return the plane of 128 x 128 as sub-arrays of one side, outputs resting."""
    return ArrayConfiguration(side, side, 128 // side, 128 // side, "os")


def _one(runner: Runner, key: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> Found:
    (found,) = runner.run([Cell(key, compute)])
    return found


def _bars(name: str, title: str, values: Mapping[str, float], unit: str) -> Plot:
    return Plot(name, title, [{"type": "bar", "x": list(values), "y": list(values.values())}],
                {"yaxis": {"title": {"text": unit}}})


WINNER, TWICE, READS = claims("sagar-fig3")


def _figure3() -> dict[str, Any]:
    product, layouts = [(256, 256, 64)], [square(side) for side in SIDES]
    found: dict[str, Any] = {}
    for name, rules in (("cycles", SYSTOLIC_RULES), ("scale_sim", SCALE_SIM), ("paper", SCALE_SIM_PAPER)):
        found[name] = partitioned_counts(product, layouts, SAGAR, conventions=rules).cycles[0].tolist()
    found["ports"] = partitioned_counts(product, layouts, SAGAR, SWITCHES["ports"]).cycles[0].tolist()
    found["reads"] = partitioned_counts(product, layouts, SAGAR).sram_reads[0].tolist()
    return found


@reproduction("sagar-fig3", Setting("quick", 1), Setting("full", 1))
def figure3(setting: Setting, runner: Runner) -> Findings:
    """Count one product on six layouts."""
    found = _one(runner, {"figure": 3}, _figure3)
    cycles, at = found["cycles"], SIDES.index(32)
    least = 256 * 256 * 64 // SAGAR.macs
    names = ("cycles", "scale_sim", "paper", "ports", "reads")
    rows = tuple((f"{side}x{side}", *(found[name][place] for name in names), least)
                 for place, side in enumerate(SIDES))
    table = Table("layouts", "Cycles and reads by sub-array", (
        "Sub-arrays", "Ours", "SCALE-Sim", "Its paper", "Ours, one word a bank", "Reads", "Bound (cycles)"), rows, (
            "Ours agree with a walk of every word (tests/oracle/partition_walk.py).",))
    fastest = [side for place, side in enumerate(SIDES) if cycles[place] == min(cycles)]
    return Findings((table,), (
        judge(WINNER, float(fastest == [32]), f"{fastest[0]}x{fastest[0]}, {min(cycles):,.0f} cycles; 32x32 takes "
              f"{cycles[at]:,.0f}", "smaller sub-arrays only fill and drain sooner"),
        judge(TWICE, cycles[0] / cycles[at], f"{cycles[0] / cycles[at]:.2f}x"),
        judge(READS, found["reads"][at] / found["reads"][0], f"{found['reads'][at] / found['reads'][0]:.2f}x")), (
            _bars("cycles", "Cycles", dict(zip([row[0] for row in rows], cycles, strict=True)), "cycles"),))


LAYER = ArrayConfiguration(16, 4, 8, 32, "ws")
CLASSES, LAYER19, NEAR = claims("sagar-fig7")


def layers(network: str, most: int | None = None) -> list[tuple[str, tuple[int, int, int], int]]:
    """Return the first products of a network: name, sizes, times."""
    found = []
    for node in zoo.load(network).mac_nodes[:most]:
        product = SystolicProduct.of(node.operator)
        found.append((node.name, (product.m, product.n, product.k), product.count * node.count))
    return found


def _figure7() -> dict[str, Any]:
    configurations = SAGAR.configurations()
    sizes = layers("faster-rcnn", 19)[18][1]
    found: dict[str, Any] = {"classes": len(configurations), "bound_cycles": -(-prod(sizes) // SAGAR.macs)}
    for name, effects in SWITCHES.items():
        cycles = partitioned_counts([sizes], configurations, SAGAR, effects).cycles[0]
        best = configurations[best_configurations([sizes], configurations, SAGAR, effects).index[0]]
        theirs = cycles[configurations.index(LAYER)]
        found[name] = {"least": int(cycles.min()), "theirs": int(theirs), "fewer": int((cycles < theirs).sum()),
                       "text": str(best)}
    return found


@reproduction("sagar-fig7", Setting("quick", 1), Setting("full", 1))
def figure7(setting: Setting, runner: Runner) -> Findings:
    """Count configurations, and one layer on all of them."""
    found = _one(runner, {"figure": 7}, _figure7)
    free = found["stall-free"]
    table = Table("layer19", "Layer 19 of Faster R-CNN", (
        "Counted", "Best", "Cycles", "Published best", "Faster ones", "Bound (cycles)"), tuple(
            (name, found[name]["text"], found[name]["least"], found[name]["theirs"], found[name]["fewer"],
             found["bound_cycles"]) for name in SWITCHES), (
                "The layer is the 19th product of our Faster R-CNN; which layer the paper counts as 19 is not said.",
                "Ours agree with a walk of every word (tests/oracle/partition_walk.py)."))
    return Findings((table,), (
        judge(CLASSES, right([(found["classes"], 858)]), f"{found['classes']:,.0f}"),
        judge(LAYER19, float(free["theirs"] <= free["least"]), f"{free['text']}; {free['fewer']:,.0f} are faster"),
        judge(NEAR, free["theirs"] / free["least"], f"{free['theirs'] / free['least']:.2f}x")), (
            _bars("cycles", "Fewest cycles by what is counted", {name: found[name]["least"] for name in SWITCHES},
                  "cycles"),))


SYNTHETIC = [*((size,) * 3 for size in (128, 256, 512, 1024, 2048)),
             *((size, 64, 64) for size in (128, 256, 512, 1024, 2048)),
             *((64, size, 64) for size in (128, 256, 512, 1024, 2048)),
             *((64, 64, size) for size in (128, 256, 512, 1024, 2048))]
"""G1 to G20 of table IV: m, n, k."""
FAVOUR, = claims("sagar-fig12")


def _figure12() -> dict[str, Any]:
    return {name: np.transpose([best_configurations(SYNTHETIC, SAGAR.units(side, side), SAGAR, effects).cycles
                                for side in SIDES]).tolist() for name, effects in SWITCHES.items()}


def won(cycles: list[list[float]]) -> dict[int, int]:
    """Return how many products take the fewest cycles on sub-arrays of each side, the larger among equals."""
    sides = [SIDES[row.index(min(row))] for row in cycles]
    return {side: sides.count(side) for side in SIDES}


@reproduction("sagar-fig12", Setting("quick", 1), Setting("full", 1), also=("sagar-table4",))
def figure12(setting: Setting, runner: Runner) -> Findings:
    """Find the best square sub-arrays of twenty products under every switch."""
    found = {name: won(cycles) for name, cycles in _one(runner, {"figure": 12}, _figure12).items()}
    table = Table("sides", "Products that are fastest on sub-arrays of each side", (
        "Counted", *(f"{side}x{side}" for side in SIDES)), tuple(
            (name, *(found[name][side] for side in SIDES)) for name in SWITCHES), (
                "Among equals the largest are counted.",
                "Ours agree with a walk of every word (tests/oracle/partition_walk.py)."))
    shares = {name: (found[name][8] + found[name][32]) / len(SYNTHETIC) for name in SWITCHES}
    told = "; ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    return Findings((table,), (judge(FAVOUR, shares["stall-free"], told, "only fill and drain tell sides apart"),), (
        _bars("shares", "Share that is fastest on 8x8 or 32x32", shares, "share"),))


NETWORKS = {"alphagozero": None, "deepspeech2": None, "faster-rcnn": 10}
"""Workloads of figure 11, and how many of their layers."""
SAMPLES = 300
"""Mappings of a layer, of which the fastest is taken where a machine needs a search."""
MONOLITHIC_POWER = 1 / 1.5
"""Of SAGAR's (V-B): SAGAR takes half as much again."""
TENFOLD, FASTER, EDP = claims("sagar-fig11")


@lru_cache
def _steps(operator: Operator, machine: Accelerator) -> int:
    """Return the cycles in which the fastest mapping found computes."""
    cost = search(operator, machine, objective="latency", budget=SAMPLES).cost
    assert cost is not None
    return cost.compute_cycles


def _figure11(network: str) -> dict[str, Any]:
    products = layers(network, NETWORKS[network])
    sizes, times = [sizes for _, sizes, _ in products], np.array([count for *_, count in products])
    spaces = {"sagar": SAGAR.configurations("realisable"), "monolithic": SAGAR.units(128, 128),
              "distributed": SAGAR.units(4, 4)}
    cycles = {name: best_configurations(sizes, space, SAGAR).cycles for name, space in spaces.items()}
    tpu, (m, n, k) = systolic_array(preset("tpu-like"), "ws"), np.transpose(sizes)
    cycles["tpu-like"] = systolic_runtime(m, n, k, tpu.rows, tpu.columns, tpu.dataflow)
    work = float(np.prod(sizes, axis=1, dtype=float) @ times)
    used = {name: work / units / float(cycles[name] @ times) for name, units in (
        ("sagar", SAGAR.macs), ("tpu-like", tpu.rows * tpu.columns))}
    mesh = preset("eyeriss-v2-like")
    steps = sum(_steps(replace(node.operator, name=network), mesh) * node.count
                for node in zoo.load(network).mac_nodes[:NETWORKS[network]])
    used[mesh.name] = work / mesh.compute_instances / steps
    return {name: (values * times).tolist() for name, values in cycles.items()} | {"used": used}


@reproduction("sagar-fig11", Setting("quick", 1), Setting("full", 1), version=3)
def figure11(setting: Setting, runner: Runner) -> Findings:
    """Count three networks on the best configuration of three machines, layer by layer."""
    found = dict(zip(NETWORKS, runner.run([Cell({"figure": 11, "network": name}, lambda name=name: _figure11(name))
                                           for name in NETWORKS]), strict=True))
    ratios = [alone / ours for each in found.values()
              for alone, ours in zip(each["monolithic"], each["sagar"], strict=True)]
    faster = lower(pair for each in found.values()
                   for pair in zip(each["distributed"], each["monolithic"], strict=True))
    edp = {name: (sum(each["sagar"]) / sum(each["monolithic"]))**2 / MONOLITHIC_POWER for name, each in found.items()}
    whole = {name: [float(sum(each[machine])) for machine in ("monolithic", "distributed", "sagar")]
             for name, each in found.items()}
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (name, *cycles, cycles[0] / cycles[2], edp[name], *(
            f"{found[name]['used'][machine]:.1%}" for machine in ("sagar", "tpu-like", "eyeriss-v2-like")))
        for name, cycles in whole.items())
    table = Table("networks", "Cycles that wait for nothing", (
        "Network", "128x128", "4x4", "SAGAR", "Speedup", "EDP over 128x128", "SAGAR's units in use",
        "tpu-like's", "eyeriss-v2-like's"), rows, (
            "Networks are those of our zoo; every machine may choose its dataflow and layout for each layer.",
            "tpu-like is the machine of the zoo, 256x256 with weights at rest, which waits for nothing either;",
            "eyeriss-v2-like, 384 units, takes a mapping of least latency of every layer, memories included.",
            "Ours agree with a walk of every word (tests/oracle/partition_walk.py)."))
    return Findings((table,), (
        judge(TENFOLD, max(ratios), f"{max(ratios):.1f}x at most"),
        judge(FASTER, faster, f"{100 * faster:.0f} % of {len(ratios)} layers"),
        judge(EDP, max(edp.values()), ", ".join(f"{name} {value:.2f}" for name, value in edp.items()))), (
            _bars("edp", "EDP over that of one array", edp, "ratio"),))


PRINTED = dict(zip(("TOPS", "power", "area", "units", "banks"), claims("sagar-fig13"), strict=True))
PRINTED_BY = {"TOPS": 32.768, "power": 3.5, "area": 3.2, "units": 2734.0, "banks": 7.0}
TABLE3 = {"4x4": (1024, 16, 4, 256), "8x8": (256, 64, 8, 512), "16x16": (64, 256, 16, 1024),
          "32x32": (16, 1024, 32, 2048), "64x64": (4, 4096, 64, 4096), "128x128": (1, 16384, 128, 8192),
          "SAGAR": (1, 16384, 1024, 1024)}
"""Table III: units, multiply-accumulates each, banks of a buffer each, bytes of a bank."""


@reproduction("sagar-fig13", Setting("quick", 1), Setting("full", 1), also=("sagar-table3",))
def figure13(setting: Setting, runner: Runner) -> Findings:
    """Work out the text's figures from one another."""
    whole = sum(units * macs == SAGAR.macs and units * banks * words == 2**20
                for units, macs, banks, words in TABLE3.values())
    ours = {"TOPS": 2 * SAGAR.macs * SAGAR.clock_ghz / 1e3, "power": 5.3 / 1.5, "area": 5 / 1.08,
            "units": 0.7 * SAGAR.macs, "banks": float(whole)}
    digits = {"TOPS": 3, "power": 1, "area": 1, "units": 0, "banks": 0}
    table = Table("printed", "Figures of the text, and what follows from its others", (
        "Figure", "Published", "Follows"), tuple((name, PRINTED_BY[name], ours[name]) for name in ours), (
            "Whether they agree is judged at the digits that are printed.",))
    return Findings((table,), tuple(
        judge(claim, float(round(ours[name], digits[name]) == PRINTED_BY[name]), f"{ours[name]:,.4g}")
        for name, claim in PRINTED.items()), (_bars("figures", "Follows over published", {
            name: ours[name] / PRINTED_BY[name] for name in ours}, "ratio"),))


SIGMAS = {"sigma_c": SAGAR.macs, "sigma_a": 2734, "sigma_70": round(0.7 * SAGAR.macs)}
"""SIGMA of as many units as SAGAR, as many as figure 14 has at equal area, and as many as 30 % of the area pay for."""
SPARSITIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def sigma_cycles(product: Sequence[int], units: int, sparsity: float = 0.0) -> int:
    """Return the cycles of a product (m, n, k) on SIGMA, the better of its operands resting; see the module.

    Zeros, of ``sparsity`` in either operand, do not rest, and never shorten what streams: a row is one cycle.
    """
    m, n, k = product
    found = []
    for resting, rows in ((k * n, m), (m * k, n)):
        words = max(1, ceil((1 - sparsity) * resting))
        tree = ceil(log2(min(units, max(1, ceil((1 - sparsity) * k)))))
        found.append(ceil(words / units) * (1 + rows + tree))
    return min(found)


def _network(name: str) -> dict[str, list[float]]:
    """Return cycles of every layer, times how often it runs: SAGAR, one array, and SIGMAs at all sparsities."""
    products = layers(name, NETWORKS[name])
    sizes = [size for _, size, _ in products]
    spaces = {"sagar": SAGAR.configurations("realisable"), "monolithic": SAGAR.units(128, 128)}
    cycles = {machine: best_configurations(sizes, space, SAGAR).cycles.tolist() for machine, space in spaces.items()}
    for sigma, units in SIGMAS.items():
        cycles |= {f"{sigma} {sparsity}": [sigma_cycles(size, units, sparsity) for size in sizes]
                   for sparsity in SPARSITIES}
    return {machine: [float(each * times) for each, (*_, times) in zip(values, products, strict=True)]
            for machine, values in cycles.items()}


AHEAD, WIDER, AREA_TENFOLD, BEHIND, SEVENTY = claims("sagar-fig14")


def crossing(found: Mapping[str, Sequence[float]], sigma: str) -> float:
    """Return the last sparsity at which SAGAR is not slower than a SIGMA; -1 where it always is."""
    return max((each for each in SPARSITIES if sum(found["sagar"]) <= sum(found[f"{sigma} {each}"])), default=-1.0)


@reproduction("sagar-fig14", Setting("quick", 1), Setting("full", 1))
def figure14(setting: Setting, runner: Runner) -> Findings:
    """Count three networks on SAGAR and on SIGMAs of three sizes."""
    found = dict(zip(NETWORKS, runner.run([Cell({"figure": 14, "network": name}, lambda name=name: _network(name))
                                           for name in NETWORKS]), strict=True))
    whole = {name: {machine: sum(values) for machine, values in each.items()} for name, each in found.items()}
    ahead = [theirs < ours for each in found.values()
             for theirs, ours in zip(each["sigma_c 0.0"], each["sagar"], strict=True)]
    speech = [whole["deepspeech2"][f"sigma_c {each}"] for each in SPARSITIES]
    wider = [later < before for before, later in pairwise(speech)]
    ratios = [each["sigma_a 0.0"] / each["sigma_c 0.0"] for each in whole.values()]
    behind = [each["sagar"] < each["sigma_a 0.0"] for each in whole.values()]
    last = {sigma: crossing(found["alphagozero"], sigma) for sigma in SIGMAS}
    machines = ("sagar", "monolithic", "sigma_c 0.0", "sigma_a 0.0", "sigma_70 0.0", "sigma_c 0.7", "sigma_a 0.7")
    table = Table("networks", "Cycles that wait for nothing", ("Network", *machines), tuple(
        (name, *(each[machine] for machine in machines)) for name, each in whole.items()), (
            f"A name of SIGMA, then sparsity. Units: {', '.join(f'{one} {most:,}' for one, most in SIGMAS.items())}. "
            "SIGMA's own ten layers are not told.",
            "Those of SAGAR agree with a walk of every word (tests/oracle/partition_walk.py); SIGMA's are a formula."))
    shown = [{"type": "scatter", "name": sigma, "x": list(SPARSITIES), "y": [
        whole["alphagozero"][f"{sigma} {each}"] / whole["alphagozero"]["sagar"] for each in SPARSITIES]}
        for sigma in SIGMAS]
    fewer = SAGAR.macs / SIGMAS["sigma_a"]
    return Findings((table,), (
        counted(AHEAD, ahead, of="layers"), counted(WIDER, wider, of="steps"),
        judge(AREA_TENFOLD, max(ratios), f"{max(ratios):.1f}x", f"there are {fewer:.1f} times fewer units"),
        counted(BEHIND, behind, of="networks"),
        judge(SEVENTY, float(last["sigma_a"] == 0.7), f"{last['sigma_a']:.0%}; {last['sigma_70']:.0%} with "
              f"{SIGMAS['sigma_70']:,} units, which are of SAGAR's area if that is 30 % less")), (
            Plot("sparsity", "Cycles of AlphaGoZero over SAGAR's", shown, {
                "xaxis": {"title": {"text": "sparsity"}}, "yaxis": {"type": "log"}}),))

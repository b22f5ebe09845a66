"""Ruby, figures 10 to 12: perfect tiling against Ruby-S, layer by layer.

ResNet-50 on an Eyeriss-like machine (10) and on two Simba-like ones (12), DeepBench on the first (11).
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from statistics import geometric_mean
from typing import Any

from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, judge, lower
from tilewright.reproduce.ruby_contest import (
    BESIDE,
    PARTS,
    RANDOM,
    Entry,
    Match,
    change,
    eyeriss_like,
    network_total,
    oracle_word,
    simba_like,
)
from tilewright.reproduce.searching import Layer, by_seed, network_layers, play, said
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction

Rows = list[tuple[Entry, Entry]]
"""Perfect tiling and Ruby-S, layer by layer."""
_NAMED = 5

EDP10, CYCLES10, ENERGY10, BEST10, MEAN10, FLAT10, NEVER_WORSE = claims("ruby-fig10")
EDP15, BEST15, EDP9 = claims("ruby-fig12")
CLAIMS12 = (EDP15, BEST15, EDP9, NEVER_WORSE)

SUITE = ("deepbench-conv-server", "deepbench-gemm-server")
IMAGENET = (224, 112, 56, 28, 14, 7)
"""Sides of feature maps of networks for Imagenet."""

MEAN11, BEST11, VISION, OTHERS, LATENCY = claims("ruby-fig11")
CLAIMS11 = (MEAN11, BEST11, VISION, OTHERS, LATENCY, NEVER_WORSE)


def rows_of(runner: Runner, layers: Sequence[Layer], *match: Any, seeds: int, figure: str = "edp") -> Rows:
    """Search layers by perfect tiling and by Ruby-S: ``match`` are machine, dataflow, mapper, samples, objective."""
    machine, *rest = match
    found = play(runner, [Match(layer, machine, strategy, *rest) for layer in layers
                          for strategy in ("perfect", "ruby-s")], lambda one: one.case(seeds), figure)
    return list(zip(found[::2], found[1::2], strict=True))


def layer_table(name: str, title: str, rows: Rows) -> Table:
    """Return the table of a contest: perfect tiling against Ruby-S by layer, with what nothing can beat."""
    columns = ("Layer", "Times", "EDP bound", "EDP perfect", "EDP Ruby-S", "Ruby-S / perfect: EDP", "energy", "cycles",
               "Compute bound (cycles)", "Data bound (cycles)", "Cycles Ruby-S", "Use perfect (%)", "Use Ruby-S (%)",
               "Oracle")
    lines: list[tuple[Value, ...]] = []
    for perfect, ruby in rows:
        layer, bound, cycles = perfect.of.layer, perfect.of.bounds, ruby["latency_cycles"]
        lines.append((
            layer.name, layer.count, bound["edp"], perfect["edp"], ruby["edp"],
            *(ruby[figure] / perfect[figure] for _, figure, _ in PARTS),
            int(bound["compute_cycles"]), int(bound["data_cycles"]), int(cycles) if math.isfinite(cycles) else None,
            100 * perfect["utilisation"], 100 * ruby["utilisation"], said(perfect.oracle, ruby.oracle)))
    return Table(name, title, columns, tuple(lines), (
        "EDP in pJ x cycles; figures are those of the median run. " + oracle_word(one for pair in rows for one in pair),
    ))


def ratio(rows: Rows, name: str) -> float:
    """Return Ruby-S over perfect for the whole network."""
    return network_total((ruby for _, ruby in rows), name) / network_total((perfect for perfect, _ in rows), name)


def ratios(rows: Rows, name: str = "edp") -> list[float]:
    """Return Ruby-S over perfect by layer."""
    return [ruby[name] / perfect[name] for perfect, ruby in rows]


def mean_ratio(rows: Rows, name: str = "edp") -> float:
    """Return the geometric mean over layers of Ruby-S over perfect."""
    return geometric_mean(ratios(rows, name))


def best_ratio(rows: Rows) -> float:
    """Return the least of all layers' EDP by Ruby-S over that by perfect tiling."""
    return min(ratios(rows))


def worse(rows: Rows) -> list[str]:
    """Return the layers where the median EDP of Ruby-S is above that of perfect tiling, the worst first."""
    lost = [(ruby["edp"] / perfect["edp"], perfect.of.layer.name) for perfect, ruby in rows
            if ruby["edp"] > perfect["edp"] * (1 + 1e-9)]
    return [f"{layer} {change(times)}" for times, layer in sorted(lost, reverse=True)]


def never_worse(by_mapper: dict[str, Rows]) -> Judgement:
    """Judge whether Ruby-S ends above perfect tiling anywhere, by the mapper named first; tell the others' losses."""
    told: list[str] = []
    for mapper, rows in by_mapper.items():
        lost = worse(rows)
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        told.append(f"{mapper}: {len(rows) - len(lost)} of {len(rows)} at or below"
                    + (f", above: {', '.join(lost[:_NAMED])}{more}" if lost else ""))
    rows = next(iter(by_mapper.values()))
    return judge(NEVER_WORSE, [1 - len(worse(one)) / len(one) for one in by_seed(rows)], "; ".join(told))


def judged_ratio(claim: Claim, by_mapper: dict[str, Rows], measure: Callable[[Rows], float],
                 figure: Callable[[float], float] = float) -> Judgement:
    """Judge (a ``figure`` of) a ratio of the mapper named first, and tell those of the others."""
    told = ", ".join(f"{change(measure(rows))} ({mapper})" for mapper, rows in by_mapper.items())
    return judge(claim, [figure(measure(one)) for one in by_seed(next(iter(by_mapper.values())))], told)


def ratio_plot(name: str, title: str, rows: Rows) -> Plot:
    """Return bars of Ruby-S over perfect tiling by layer: EDP, energy and cycles."""
    labels = [perfect.of.layer.name for perfect, _ in rows]
    data = [{"type": "bar", "name": text, "x": list(range(len(rows))), "marker": {"color": colour},
             "y": ratios(rows, figure), "customdata": labels,
             "hovertemplate": "%{customdata}: %{y:.3f}<extra>" + text + "</extra>"} for text, figure, colour in PARTS]
    data.append({"type": "scatter", "mode": "lines", "name": "perfect tiling", "x": [-0.5, len(rows) - 0.5],
                 "y": [1, 1], "line": {"color": "@strong", "dash": "dash"}, "hoverinfo": "skip"})
    return Plot(name, title, data, {
        "barmode": "group", "yaxis": {"title": {"text": "Ruby-S / perfect"}, "rangemode": "tozero"},
        "xaxis": {"tickvals": list(range(len(rows))), "ticktext": labels, "tickangle": -50}})


def _measured(setting: Setting, runner: Runner, machine: Accelerator, flow: str) -> dict[str, Rows]:
    """Return perfect tiling and Ruby-S for every layer that the setting asks for, by mapper."""
    layers = network_layers("resnet50", every=setting["every"])
    return {mapper: rows_of(runner, layers, machine, flow, mapper, setting["samples"], seeds=setting.seeds)
            for mapper in setting["mappers"]}


def _tables(by_mapper: dict[str, Rows], machine: Accelerator) -> tuple[Table, ...]:
    return tuple(layer_table(f"{machine.name}-{mapper}", f"ResNet-50 on {machine.name}, {mapper}", rows)
                 for mapper, rows in by_mapper.items())


_QUICK = Setting("quick", 3, {"mappers": (RANDOM, "gamma"), "samples": 5_000, "every": 4})
_FULL = Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 20_000, "every": 1})


@reproduction("ruby-fig10", _QUICK, _FULL)
def run10(setting: Setting, runner: Runner) -> Findings:
    """Search ResNet-50 on the Eyeriss-like baseline with every mapper of the setting; judge by the first."""
    machine = eyeriss_like()
    by_mapper = _measured(setting, runner, machine, "row-stationary")
    first, rows = next(iter(by_mapper.items()))
    judged = (
        judged_ratio(EDP10, by_mapper, lambda one: ratio(one, "edp")),
        judged_ratio(CYCLES10, by_mapper, lambda one: ratio(one, "latency_cycles")),
        judged_ratio(ENERGY10, by_mapper, lambda one: ratio(one, "energy_pj"), lambda energy: apart(energy, 1.0)),
        judged_ratio(BEST10, by_mapper, best_ratio), judged_ratio(MEAN10, by_mapper, mean_ratio), _flat(rows),
        never_worse(by_mapper))
    return Findings(_tables(by_mapper, machine), judged, (
        ratio_plot("layers", f"Ruby-S over perfect tiling by layer ({first}; figure 10)", rows),), (BESIDE,))


def _split(rows: Rows, first: Callable[[Layer], bool]) -> tuple[Rows, Rows]:
    """Return the rows whose layers are of a kind, and the others."""
    return ([pair for pair in rows if first(pair[0].of.layer)], [pair for pair in rows if not first(pair[0].of.layer)])


def _flat(rows: Rows) -> Judgement:
    """Judge whether layers without a window gain more than those with one."""
    def flat(layer: Layer) -> bool:
        return layer.operator.sizes.get("R", 1) == layer.operator.sizes.get("S", 1) == 1

    if not all(_split(rows, flat)):
        return Judgement(FLAT10, "only one kind was measured", "not judged")
    plain, other = (change(mean_ratio(part)) for part in _split(rows, flat))
    seeds = [_split(one, flat) for one in by_seed(rows)]
    return judge(FLAT10, [lower(product(ratios(one), ratios(rest))) for one, rest in seeds],
                 f"pointwise and dense {plain}, others {other}")


@reproduction("ruby-fig12", _QUICK, _FULL, claims=CLAIMS12)
def run12(setting: Setting, runner: Runner) -> Findings:
    """Search ResNet-50 on two Simba-like machines; judge by the mapper named first."""
    found = {machine: _measured(setting, runner, machine, "channels")
             for machine in (simba_like(15, 4, 4), simba_like(9, 3, 3))}
    fifteen, nine = found.values()
    judged = (
        judged_ratio(EDP15, fifteen, lambda one: ratio(one, "edp")), judged_ratio(BEST15, fifteen, best_ratio),
        judged_ratio(EDP9, nine, lambda one: ratio(one, "edp")),
        never_worse({f"{mapper} on {machine.name}": rows for machine, by_mapper in found.items()
                     for mapper, rows in by_mapper.items()}))
    plots = tuple(ratio_plot(machine.name, f"Ruby-S over perfect tiling by layer on {machine.name} (figure 12)",
                             next(iter(by_mapper.values()))) for machine, by_mapper in found.items())
    return Findings(tuple(table for machine, by_mapper in found.items() for table in _tables(by_mapper, machine)),
                    judged, plots, (BESIDE,))


def kernels(every: int) -> list[Layer]:
    """Return the distinct kernels of the suite of batch 1, or every so manieth of them."""
    return [layer for layer in network_layers(*SUITE) if layer.operator.sizes.get("N", 1) == 1
            or layer.operator.kind == "matmul"][::every]


def imagenet(layer: Layer) -> bool:
    """Whether a kernel is a convolution, larger than 1 x 1, with a feature map of Imagenet's sizes."""
    sizes = layer.operator.sizes
    return sizes.get("P") in IMAGENET and sizes.get("Q") in IMAGENET and max(sizes["R"], sizes["S"]) > 1


@reproduction("ruby-fig11", Setting("quick", 3, {"mappers": (RANDOM,), "samples": 5_000, "every": 20}),
              Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 10_000, "every": 1}), claims=CLAIMS11)
def run11(setting: Setting, runner: Runner) -> Findings:
    """Search every kernel for EDP with every mapper, and for latency with the first; judge by the first."""
    machine, given = eyeriss_like(), setting["samples"]
    layers, flow, seeds = kernels(setting["every"]), "row-stationary", setting.seeds
    by_mapper = {mapper: rows_of(runner, layers, machine, flow, mapper, given, seeds=seeds)
                 for mapper in setting["mappers"]}
    first, rows = next(iter(by_mapper.items()))
    fast = rows_of(runner, layers, machine, flow, first, given, "latency", seeds=seeds, figure="latency_cycles")
    judged = (judged_ratio(MEAN11, by_mapper, mean_ratio), judged_ratio(BEST11, by_mapper, best_ratio), *_vision(rows),
              judged_ratio(LATENCY, {first: fast}, lambda one: mean_ratio(one, "latency_cycles")),
              never_worse(by_mapper))
    tables = [layer_table(f"kernels-{mapper}", f"DeepBench on {machine.name}, {mapper}", found)
              for mapper, found in by_mapper.items()]
    tables.append(layer_table("latency", f"DeepBench on {machine.name}, searched for latency, {first}", fast))
    return Findings(tuple(tables), judged, (
        ratio_plot("kernels", f"Ruby-S over perfect tiling by kernel ({first}; figure 11)", rows),), (BESIDE,))


def _vision(rows: Rows) -> tuple[Judgement, Judgement]:
    """Judge kernels of Imagenet's sizes, and the others beside them."""
    vision, others = _split(rows, imagenet)
    if not (others and vision):
        told = "only one kind was measured"
        return Judgement(VISION, told, "not judged"), Judgement(OTHERS, told, "not judged")
    seeds = [_split(one, imagenet) for one in by_seed(rows)]
    return (
        judge(VISION, [apart(mean_ratio(seen), 1.0) for seen, _ in seeds],
              f"{change(mean_ratio(vision))} over {len(vision)} kernels"),
        judge(OTHERS, [lower(product(ratios(rest), ratios(seen))) for seen, rest in seeds],
              f"{change(mean_ratio(others))} over {len(others)} kernels"))

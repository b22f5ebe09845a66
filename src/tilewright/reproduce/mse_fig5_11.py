"""Kao's dissertation, figures 5.10 and 5.11: how much sooner a warm search converges, and whether as well."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, cases, gain, judge, kept, lower, part_of
from tilewright.reproduce.mse_warm import (
    GENERATION,
    NETWORKS,
    Layer,
    above_bound,
    geometric,
    measure,
    oracle_words,
)
from tilewright.reproduce.searching import median_curve
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Plot, Setting, Study, Table, Value

Found = Mapping[str, Sequence[Layer]]
BAR = 5.0
QUALITY = kept("Warm searches end as low as cold ones", "comparable EDP",
               "the part of the cold search's gain over its first generation that the warm one has too, on the network "
               "where it is least")
SOONER = gain("They converge sooner (generations to 99.5 % of the improvement)", "3.3x to 7.3x", 3.3,
              "the median over layers, on the network where it is least")
LEAST = cases("MnasNet, whose shapes are irregular, gains least", "3.3x",
              "the share of other networks with a larger median over layers, by samples")
LATER = cases("On VGG16 a later layer begins better and converges sooner", "figure 5.10",
              "whether the last convolution's warm search begins below the cold one's first generation, and gets to "
              "99.5 % in fewer samples (half for one of both)")
OURS = gain("Beyond the paper: by samples, at least 5 times sooner (median over layers)", "our bar: 5x", BAR,
            "on the network where it is least")
CLAIMS = (QUALITY, SOONER, LEAST, LATER, OURS)


def run(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figures 5.10 and 5.11."""
    every = measure(runner, setting, setting["networks"])
    found = {network: [layer for layer in layers if layer.warm] for network, layers in every.items()}
    seeds = [{network: [layer.at(seed) for layer in layers] for network, layers in found.items()}
             for seed in range(setting.seeds)]
    judged = (_quality(found, seeds), _sooner(SOONER, found, seeds, generations=True), _least(found, seeds),
              _later(every["vgg16"], setting.seeds), _sooner(OURS, found, seeds, generations=False))
    notes = (
        "Improvement: from a random mapping (the median of the legal ones of 2,000), as the searches of figure 5.9 "
        "are initialised, to the final EDP of the cold search with the same seed; both must reach 99.5 % of it. "
        "Strict: from the best of the cold search's first generation (200 mappings). Medians over seeds; a search that "
        "never gets there counts as infinitely long. The first layer of each kind is left out.",
        _hurt(found), oracle_words(every))
    tables = (_summary(found), *(_layers(network, layers) for network, layers in found.items()))
    return Findings(tables, judged, (*_curves(every["vgg16"], setting["samples"]), _bars(found)), notes)


def middle(layers: Sequence[Layer], strict: bool = False, generations: bool = False) -> float:
    """Return the median over layers of how many times sooner the warm search converges."""
    return median(layer.speedup(strict, generations) for layer in layers)


def quality(layers: Sequence[Layer]) -> float:
    """Return the geometric mean of final EDPs, warm over cold."""
    return geometric([layer.final("warm") / layer.final("cold") for layer in layers])


def _by_network(found: Found, text: Mapping[str, str]) -> str:
    return ", ".join(f"{NETWORKS[network]} {text[network]}" for network in found)


def _quality(found: Found, seeds: Sequence[Found]) -> Judgement:
    def part(layers: Sequence[Layer]) -> float:
        warm, cold = (geometric([layer.final(kind) / (layer.first_generation * min(map(layer.final, ("cold", "warm"))))
                                 for layer in layers]) for kind in ("warm", "cold"))
        return part_of(warm, cold)

    return judge(QUALITY, [min(part(layers) for layers in one.values()) for one in seeds],
                 _by_network(found, {network: f"{quality(layers):.3f}" for network, layers in found.items()}))


def _sooner(claim: Claim, found: Found, seeds: Sequence[Found], generations: bool) -> Judgement:
    said = {strict: _by_network(found, {network: f"{middle(layers, strict, generations):.1f}x"
                                        for network, layers in found.items()}) for strict in (False, True)}
    return judge(claim, [min(middle(layers, generations=generations) for layers in one.values()) for one in seeds],
                 said[False], f"Strict: {said[True]}")


def _least(found: Found, seeds: Sequence[Found]) -> Judgement:
    medians = {network: middle(layers) for network, layers in found.items()}
    order = sorted(medians, key=lambda network: medians[network])
    return judge(LEAST, [lower((middle(one["mnasnet"]), middle(layers)) for network, layers in one.items()
                               if network != "mnasnet") for one in seeds],
                 " < ".join(f"{NETWORKS[network]} {medians[network]:.1f}x" for network in order))


def _later(layers: Sequence[Layer], seeds: int) -> Judgement:
    def both(last: Layer) -> float:
        return ((last.start("similar", whole=True) < last.first_generation)
                + (last.samples("warm") < last.samples("cold"))) / 2

    last = _last_convolution(layers)
    return judge(LATER, [both(last.at(seed)) for seed in range(seeds)],
                 f"{last.name}: begins at {last.start('similar', whole=True):.2f} times the final EDP instead of "
                 f"{last.first_generation:.2f}, converges after {_count(last.samples('warm'))} instead of "
                 f"{_count(last.samples('cold'))} samples")


def _last_convolution(layers: Sequence[Layer]) -> Layer:
    return [layer for layer in layers if layer.operator.kind == "conv"][-1]


def _hurt(found: Found) -> str:
    slower = {network: [layer.name for layer in layers if layer.speedup() < 1] for network, layers in found.items()}
    worse = {network: [f"{layer.name} {layer.final('warm') / layer.final('cold') - 1:+.1%}" for layer in layers
                       if layer.final("warm") > 1.005 * layer.final("cold")] for network, layers in found.items()}
    parts = [f"{NETWORKS[network]} " + "; ".join(filter(None, (
        f"later: {', '.join(slower[network])}" if slower[network] else "",
        f"more than 0.5 % above: {', '.join(worse[network])}" if worse[network] else "")))
        for network in found if slower[network] or worse[network]]
    return f"Where warm start hurts: {'. '.join(parts) if parts else 'nowhere in these medians'}."


def _count(samples: float) -> str:
    return f"{samples:,.0f}" if samples < math.inf else "never"


def _summary(found: Found) -> Table:
    rows: list[tuple[Value, ...]] = []
    for network, layers in found.items():
        rows.append((
            NETWORKS[network], len(layers), round(quality(layers), 3),
            *(round(middle(layers, strict, generations), 1) for strict in (False, True)
              for generations in (True, False)),
            sum(layer.speedup() < 1 for layer in layers),
            round(geometric([above_bound(layer) for layer in layers]), 2)))
    return Table("networks", "Warm start by similarity on Accel-B: medians over layers",
                 ("Network", "Layers", "EDP warm / cold", "Sooner by generations", "by samples",
                  "strict, by generations", "strict, by samples", "Layers later", "Final over bound"), tuple(rows),
                 ("Published: 3.3x to 7.3x by generations, MnasNet 3.3x.",
                  "A warm search that converges in its first generation of 200 counts as 1 generation: no ratio by "
                  "generations is above the number that the cold search takes."))


def _layers(network: str, layers: Sequence[Layer]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        cold, warm = layer.samples("cold"), layer.samples("warm")
        rows.append((
            layer.name, _lenders(layer), round(layer.final("warm") / layer.final("cold"), 4),
            _count(cold), _count(warm), round(layer.speedup(), 1), _count(layer.samples("cold", True)),
            _count(layer.samples("warm", True)), round(layer.speedup(True), 1), round(above_bound(layer), 2)))
    return Table(network, f"{NETWORKS[network]}: samples to 99.5 % of the improvement",
                 ("Layer", "Began from", "EDP warm / cold", "Cold", "Warm", "Sooner", "Cold, strict", "Warm, strict",
                  "Sooner, strict", "Final over bound"), tuple(rows))


def _lenders(layer: Layer) -> str:
    nearest, *others = layer.runs[0]["warm"]["from"]
    return f"{nearest} and {len(others)} more" if others else nearest


def _curves(layers: Sequence[Layer], samples: int) -> list[Plot]:
    plots = []
    at = [1, *range(GENERATION, samples + 1, GENERATION)]
    for layer, which in ((layers[0], "first"), (_last_convolution(layers), "later")):
        data: list[dict[str, Any]] = [
            {"type": "scatter", "mode": "lines", "name": kind, "x": at, "line": {"color": f"@curve-{index}"},
             "y": median_curve([run[kind]["history"] for run in layer.runs], at)}
            for index, kind in enumerate(("cold", "warm"))]
        plots.append(Plot(f"curve-{which}", f"VGG16 {layer.name}: best EDP so far (figure 5.10)", data, {
            "xaxis": {"title": {"text": "samples"}}, "yaxis": {"type": "log", "title": {"text": "EDP (pJ cycles)"}}}))
    return plots


def _bars(found: Found) -> Plot:
    data: list[dict[str, Any]] = [
        {"type": "box", "name": NETWORKS[network], "y": [max(layer.speedup(), 0.01) for layer in layers],
         "boxpoints": "all", "text": [layer.name for layer in layers], "marker": {"color": f"@curve-{index}"}}
        for index, (network, layers) in enumerate(found.items())]
    return Plot("sooner", "How many times sooner warm searches converge, by layer (figure 5.11)", data, {
        "showlegend": False, "yaxis": {"type": "log", "title": {"text": "samples cold / warm"}}})


_QUICK = Setting("quick", 3, {"samples": 5_000, "networks": tuple(NETWORKS)})
_FULL = Setting("full", 10, {"samples": 10_000, "networks": tuple(NETWORKS)})

REPRODUCTIONS.register("mse-fig5.11")(Study(
    "mse-fig5.11", "Warm start by similarity: as good, and how much sooner, on four networks",
    "Kao, dissertation, Georgia Tech 2022, section 5.3.1, figures 5.10 and 5.11", CLAIMS, _QUICK, _FULL, run))

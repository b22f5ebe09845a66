"""Kao's dissertation, figures 5.10 and 5.11: how much sooner a warm search converges, and whether as well."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tilewright.reproduce.mse_warm import (
    GENERATION,
    NETWORKS,
    Layer,
    above_bound,
    geometric,
    measure,
    oracle_words,
)
from tilewright.reproduce.running import Watch
from tilewright.reproduce.searching import median_curve
from tilewright.reproduce.study import (
    QUARTER,
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Plot,
    Setting,
    Study,
    Table,
    Value,
)

Found = Mapping[str, Sequence[Layer]]
BAR = 5.0
QUALITY = Claim("Warm searches end as low as cold ones", "comparable EDP",
                "holds where the geometric mean of warm over cold EDP is at most 1.01 on every network, in direction "
                "where at most 1.05")
SOONER = Claim("They converge sooner (generations to 99.5 % of the improvement)", "3.3x to 7.3x",
               "holds where the median over layers is 3.3 or more on every network, in direction for at least a "
               "quarter of that in logarithms")
LEAST = Claim("MnasNet, whose shapes are irregular, gains least", "3.3x",
              "holds where its median over layers, by samples, is the lowest, in direction where it is not the "
              "highest")
LATER = Claim("On VGG16 the first layer converges alike, a later one begins better and converges sooner",
              "figure 5.10", "holds where the first layer's curves are the same, and the last convolution's warm "
              "search begins below the cold one's first generation and gets to 99.5 % in fewer samples")
OURS = Claim("Beyond the paper: by samples, at least 5 times sooner (median over layers)", "our bar: 5x",
             f"holds where so on every network, {QUARTER}")
CLAIMS = (QUALITY, SOONER, LEAST, LATER, OURS)


def run(setting: Setting, watch: Watch) -> Findings:
    """Measure and judge figures 5.10 and 5.11."""
    every = measure(watch, setting, setting["networks"])
    found = {network: [layer for layer in layers if layer.warm] for network, layers in every.items()}
    judged = (_quality(found), _sooner(SOONER, found, 3.3, generations=True), _least(found), _later(every["vgg16"]),
              _sooner(OURS, found, BAR, generations=False))
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


def _quality(found: Found) -> Judgement:
    means = {network: quality(layers) for network, layers in found.items()}
    largest = max(means.values())
    return Judgement(QUALITY, _by_network(found, {network: f"{value:.3f}" for network, value in means.items()}),
                     "holds" if largest <= 1.01 else "holds in direction" if largest <= 1.05 else "does not hold")


def _sooner(claim: Claim, found: Found, published: float, generations: bool) -> Judgement:
    medians = {network: middle(layers, generations=generations) for network, layers in found.items()}
    strict = {network: middle(layers, True, generations) for network, layers in found.items()}
    least = min(medians.values())
    quarter = published ** 0.25
    return Judgement(
        claim, _by_network(found, {network: f"{value:.1f}x" for network, value in medians.items()}),
        "holds" if least >= published else "holds in direction" if least >= quarter else "does not hold",
        f"Strict: {_by_network(found, {network: f'{value:.1f}x' for network, value in strict.items()})}")


def _least(found: Found) -> Judgement:
    medians = {network: middle(layers) for network, layers in found.items()}
    order = sorted(medians, key=lambda network: medians[network])
    return Judgement(LEAST, " < ".join(f"{NETWORKS[network]} {medians[network]:.1f}x" for network in order),
                     "holds" if order[0] == "mnasnet" else "holds in direction" if order[-1] != "mnasnet" else
                     "does not hold")


def _later(layers: Sequence[Layer]) -> Judgement:
    first, last = layers[0], _last_convolution(layers)
    alike = all(run["cold"]["history"] == run["warm"]["history"] for run in first.runs)
    begun, random = last.start("similar", whole=True), last.first_generation
    cold, warm = last.samples("cold"), last.samples("warm")
    return Judgement(
        LATER, f"{first.name}: {'the same' if alike else 'different'}; {last.name}: begins at {begun:.2f} times the "
        f"final EDP instead of {random:.2f}, converges after {_count(warm)} instead of {_count(cold)} samples",
        "holds" if alike and begun < random and warm < cold else
        "holds in direction" if warm < cold else "does not hold")


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

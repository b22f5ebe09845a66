"""Kao's dissertation, figures 5.9 to 5.11: layers searched cold, and warm from layers before them.

Figure 5.9 tells how good a mapping is that a search begins from, 5.10 and 5.11 how much sooner a warm search converges,
and whether as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.jobs import Runner, present_stop
from tilewright.mapping import MappingBatch, MapSpace, Tiling
from tilewright.reproduce.claims import Claim, Judgement, apart, judge, lower, part_of
from tilewright.reproduce.oracle import check
from tilewright.reproduce.searching import bound_figures, by_seed, median_curve
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, reproduction
from tilewright.search import LayerResult, Source, Start, WarmStart, beginnings, search_network
from tilewright.workload import Operator, unique_operators, zoo

REGULAR, IRREGULAR, PREVIOUS, SIMILAR = claims("mse-fig5.9")

BAR = 5.0
QUALITY, SOONER, LEAST, LATER, OURS = claims("mse-fig5.11", OURS=BAR)

NETWORKS = {"vgg16": "VGG16", "resnet50": "ResNet-50", "mobilenet-v2": "MobileNet-V2", "mnasnet": "MnasNet"}
MACHINE = "accel-b"
TILING: Tiling = "perfect"
MAPPER = "gamma"
GENERATION = 200
DRAWS = 2000
SHARE = 0.995
KINDS: tuple[WarmStart, ...] = ("previous", "similar")


@dataclass(frozen=True)
class Warmed:
    """One layer of a network, and what was measured with every seed.

    Of a run: ``cold`` and ``warm`` searches, the EDP of a ``random`` mapping (the median of the legal ones drawn), and
    those of the mappings that were ``previous`` and ``similar`` starts: ``published``, scaled by the outermost loops (a
    loop that is new innermost and outermost), and ``all`` that Tilewright makes of the lent one.
    """

    network: str
    name: str
    operator: Operator
    runs: tuple[Mapping[str, Any], ...]

    def at(self, seed: int) -> "Warmed":
        """Return what was measured with one seed."""
        return replace(self, runs=(self.runs[seed],))

    @property
    def warm(self) -> bool:
        """Whether there was a layer before it to begin from."""
        return bool(self.runs[0]["warm"]["from"])

    def final(self, kind: str) -> float:
        """Return the median final EDP of ``cold`` or ``warm`` searches."""
        return float(median(run[kind]["edp"] for run in self.runs))

    def start(self, kind: str, whole: bool = False) -> float:
        """Return the median EDP of the mapping begun from, over the final one (the better of cold and warm).

        With ``whole`` the best of all mappings that are made of the lent one, else of those scaled as published.
        """
        return float(median(min(run[kind]["all" if whole else "published"]) / _best(run) for run in self.runs))

    @property
    def random(self) -> float:
        """The median EDP of a random mapping over the final one."""
        return float(median(run["random"] / _best(run) for run in self.runs))

    @property
    def first_generation(self) -> float:
        """The median of the best EDP of the cold search's first generation over the final one."""
        return median(_first(run) / _best(run) for run in self.runs)

    def samples(self, kind: str, strict: bool = False) -> float:
        """Return the median number of samples to 99.5 % of the improvement of the cold search; infinite if never.

        The improvement is that from a random mapping, which is what the paper's searches are initialised with, to the
        final one; where ``strict``, that from the best of the first generation.
        """
        return median(_reached(run, kind, strict) for run in self.runs)

    def speedup(self, strict: bool = False, generations: bool = False) -> float:
        """Return how many times sooner the warm search gets there, by samples or by generations; 0 if never."""
        cold, warm = (self.samples(kind, strict) for kind in ("cold", "warm"))
        if generations:
            cold, warm = (math.ceil(samples / GENERATION) if samples < math.inf else samples
                          for samples in (cold, warm))
        return cold / warm


def _best(run: Mapping[str, Any]) -> float:
    return float(min(run["cold"]["edp"], run["warm"]["edp"]))


def _first(run: Mapping[str, Any]) -> float:
    history = run["cold"]["history"]
    return float(min([score for samples, score in history if samples <= GENERATION], default=history[0][1]))


def _reached(run: Mapping[str, Any], kind: str, strict: bool) -> float:
    begin = _first(run) if strict else run["random"]
    target = begin - SHARE * (begin - run["cold"]["edp"])
    return float(next((samples for samples, score in run[kind]["history"] if score <= target * (1 + 1e-12)), math.inf))


Layers = Sequence[Warmed]
Found = Mapping[str, Layers]


def measure(runner: Runner, setting: Setting, networks: Sequence[str]) -> dict[str, list[Warmed]]:
    """Search all distinct layers of networks cold and warm, with every seed."""
    cells = [_cell(network, setting["samples"], seed) for network in networks for seed in range(setting.seeds)]
    values = runner.run(cells)
    found = {}
    for place, network in enumerate(networks):
        runs = values[place * setting.seeds:(place + 1) * setting.seeds]
        found[network] = [Warmed(network, operator.name, operator, tuple(run["layers"][index] for run in runs))
                          for index, operator in enumerate(operators(network))]
    return found


def operators(network: str) -> list[Operator]:
    """Return the distinct layers of a network, in the order of their first use."""
    return [unique.operator for unique in unique_operators(zoo.load(network))]


def space(operator: Operator) -> MapSpace:
    """Return the mappings to choose from: whole factors, as in the paper's cost model."""
    return MapSpace(operator, preset(MACHINE), TILING)


def _cell(network: str, samples: int, seed: int) -> Cell:
    """Return the cell of one network and seed: its layers one after another, cold, then warm by similarity."""
    def compute() -> dict[str, Any]:
        layers = operators(network)
        cold, warm = (search_network(
            layers, preset(MACHINE), mapper=MAPPER, budget=samples, seed=seed, space=space, warm_start=kind,
            workers=1).layers for kind in ("off", "similar"))
        if present_stop().is_set():
            return {}
        begin = {kind: beginnings(layers, kind) for kind in KINDS}
        rng = np.random.default_rng(seed)
        found = []
        for index, operator in enumerate(layers):
            lent = [(str(kind), warm[begin[kind][index].lenders[0].place])
                    for kind in KINDS if begin[kind][index].lenders]
            found.append({
                "cold": _told(cold[index]), "warm": _told(warm[index]), "random": _random(operator, rng),
                "lenders": {kind: one.names[0] for kind, one in lent},
                **{kind: _lent(one, operator) for kind, one in lent}})
        return {"layers": found}

    key = {"network": network, "machine": MACHINE, "tiling": TILING, "mapper": MAPPER, "samples": samples, "seed": seed}
    return Cell(key, compute, 2 * samples * len(operators(network)))


def _told(layer: LayerResult) -> dict[str, Any]:
    result = layer.result
    assert result.mapping is not None and result.cost is not None
    return {"edp": result.score, "latency_cycles": result.cost.latency_cycles,
            "history": [[step.samples, step.score] for step in result.history],
            "from": [origin.layer for origin in result.start],
            "oracle": check(result.operator, preset(MACHINE), result.mapping).agrees}


def _lent(lender: LayerResult, operator: Operator) -> dict[str, list[float]]:
    result = lender.result
    assert result.mapping is not None
    start = Start((Source(result.mapping, result.operator.sizes),))
    return {"published": _scores(start.batch(space(operator), ways=1), operator),
            "all": _scores(start.batch(space(operator)), operator)}


def _scores(batch: MappingBatch, operator: Operator) -> list[float]:
    costs = DenseModel(operator, preset(MACHINE), batch.layout).score(batch)
    return [float(edp) for edp in np.where(costs.legal, costs.latency_cycles * costs.energy_pj, np.inf)]


def _random(operator: Operator, rng: np.random.Generator) -> float:
    scores = _scores(space(operator).sample(rng, DRAWS), operator)
    return float(np.median([score for score in scores if math.isfinite(score)]))


def above_bound(layer: Warmed) -> float:
    """Return the warm search's final EDP over what no mapping can beat."""
    return layer.final("warm") / bound_figures(layer.operator, preset(MACHINE))["edp"]


def oracle_words(found: Mapping[str, Sequence[Warmed]]) -> str:
    """Say how many best mappings the oracle confirmed."""
    said = [run[kind]["oracle"] for layers in found.values() for layer in layers for run in layer.runs
            for kind in ("cold", "warm")]
    return (f"The oracle confirms {sum(said):,} of the {len(said):,} best mappings (those too large to be walked as "
            "twins of the same structure).")


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


_SHOWN = ("vgg16", "mnasnet")


@reproduction("mse-fig5.9", Setting("quick", 3, {"samples": 5_000, "networks": _SHOWN}),
              Setting("full", 10, {"samples": 10_000, "networks": _SHOWN}), cells="mse-fig5.11")
def run9(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 5.9."""
    found = {network: [layer for layer in layers if layer.warm]
             for network, layers in measure(runner, setting, setting["networks"]).items()}
    vgg, mnasnet = found["vgg16"], found["mnasnet"]
    measures: tuple[tuple[Claim, Callable[[Layers, Layers], float], str], ...] = (
        (REGULAR, lambda v, m: apart(mean(v, "previous"), mean(v, "similar")),
         f"; the same layer lends in {_same_lender(vgg)} of {len(vgg)}"),
        (IRREGULAR, lambda v, m: mean(m, "previous") / mean(m, "similar"),
         f"; another layer lends in {len(mnasnet) - _same_lender(mnasnet)} of {len(mnasnet)}"),
        (PREVIOUS, lambda v, m: _over_random([*v, *m], "previous"), ""),
        (SIMILAR, lambda v, m: _over_random([*v, *m], "similar"), ""))
    judged = tuple(judge(claim, [measure(*one) for one in by_seed((vgg, mnasnet))],
                         f"{measure(vgg, mnasnet):.2f}x{more}") for claim, measure, more in measures)
    notes = (
        "EDP over the final one of the layer (the better of the cold and the warm search), medians over seeds. Random: "
        "the median of the legal ones of 2,000 random mappings. Previous and similar: the lent mapping scaled by its "
        "outermost loops as published, the better of two places for a loop that is new there (the paper does not say "
        "which), mended where it does not fit. Best of all: of those that Tilewright makes of the lent mapping.",
        "Layers lend to layers of their kind: convolutions to convolutions, depthwise ones to depthwise ones. The "
        "first of each kind is left out, as it has none to begin from.", oracle_words(found))
    return Findings(tuple(_starts_table(network, layers) for network, layers in found.items()), judged,
                    tuple(_starts_plot(network, layers) for network, layers in found.items()), notes)


def mean(layers: Layers, kind: str) -> float:
    """Return the geometric mean of the EDP begun from, over the final one."""
    return geometric([layer.start(kind) for layer in layers])


def _same_lender(layers: Layers) -> int:
    lenders = [layer.runs[0]["lenders"] for layer in layers]
    return sum(each["previous"] == each["similar"] for each in lenders)


def _over_random(layers: Layers, kind: str) -> float:
    return geometric([layer.random for layer in layers]) / mean(layers, kind)


def _starts_table(network: str, layers: Layers) -> Table:
    figures = [[layer.random, layer.first_generation, layer.start("previous"), layer.start("similar"),
                layer.start("similar", whole=True), above_bound(layer)] for layer in layers]
    rows: list[tuple[Value, ...]] = [
        (layer.name, layer.runs[0]["lenders"]["previous"], layer.runs[0]["lenders"]["similar"],
         *(round(value, 2) for value in values)) for layer, values in zip(layers, figures, strict=True)]
    means: tuple[Value, ...] = ("geometric mean", "", "", *(
        round(geometric(column), 2) for column in zip(*figures, strict=True)))
    return Table(network, f"{NETWORKS[network]} on Accel-B: EDP of what a search begins from, over the final one",
                 ("Layer", "Layer before", "Most similar", "Random", "Best of 200 random", "Previous", "Similar",
                  "Similar, best of all", "Final over bound"), (*rows, means),
                 ("Published (figure 5.9, as far as the text states it): previous 2.1x and similar 4.3x better than "
                  "random, similar 2x better than previous on MnasNet.",))


def _starts_plot(network: str, layers: Layers) -> Plot:
    bars: Mapping[str, list[float]] = {
        "random": [layer.random for layer in layers], "previous": [layer.start("previous") for layer in layers],
        "similar": [layer.start("similar") for layer in layers]}
    data: list[dict[str, Any]] = [
        {"type": "bar", "name": name, "x": [layer.name for layer in layers], "y": values,
         "marker": {"color": f"@curve-{index}"}, "hovertemplate": "%{x}: %{y:.2f}<extra>" + name + "</extra>"}
        for index, (name, values) in enumerate(bars.items())]
    return Plot(network, f"{NETWORKS[network]}: EDP begun from, over the final one (figure 5.9)", data, {
        "barmode": "group", "xaxis": {"tickangle": -50},
        "yaxis": {"type": "log", "title": {"text": "EDP / final EDP"}}})


@reproduction("mse-fig5.11", Setting("quick", 3, {"samples": 5_000, "networks": tuple(NETWORKS)}),
              Setting("full", 10, {"samples": 10_000, "networks": tuple(NETWORKS)}))
def run11(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figures 5.10 and 5.11."""
    every = measure(runner, setting, setting["networks"])
    found = {network: [layer for layer in layers if layer.warm] for network, layers in every.items()}
    seeds = by_seed(found)
    judged = (_quality(found, seeds), _sooner(SOONER, found, seeds, generations=True), _least(found, seeds),
              _later(every["vgg16"]), _sooner(OURS, found, seeds, generations=False))
    notes = (
        "Improvement: from a random mapping (the median of the legal ones of 2,000), as the searches of figure 5.9 "
        "are initialised, to the final EDP of the cold search with the same seed; both must reach 99.5 % of it. "
        "Strict: from the best of the cold search's first generation (200 mappings). Medians over seeds; a search that "
        "never gets there counts as infinitely long. The first layer of each kind is left out.",
        _hurt(found), oracle_words(every))
    tables = (_networks_table(found), *(_layers_table(network, layers) for network, layers in found.items()))
    return Findings(tables, judged, (*_curves(every["vgg16"], setting["samples"]), _bars(found)), notes)


def middle(layers: Layers, strict: bool = False, generations: bool = False) -> float:
    """Return the median over layers of how many times sooner the warm search converges."""
    return median(layer.speedup(strict, generations) for layer in layers)


def quality(layers: Layers) -> float:
    """Return the geometric mean of final EDPs, warm over cold."""
    return geometric([layer.final("warm") / layer.final("cold") for layer in layers])


def _by_network(found: Found, say: Callable[[Layers], str]) -> str:
    return ", ".join(f"{NETWORKS[network]} {say(layers)}" for network, layers in found.items())


def _quality(found: Found, seeds: Sequence[Found]) -> Judgement:
    def part(layers: Layers) -> float:
        warm, cold = (geometric([layer.final(kind) / (layer.first_generation * min(map(layer.final, ("cold", "warm"))))
                                 for layer in layers]) for kind in ("warm", "cold"))
        return part_of(warm, cold)

    return judge(QUALITY, [min(part(layers) for layers in one.values()) for one in seeds],
                 _by_network(found, lambda layers: f"{quality(layers):.3f}"))


def _sooner(claim: Claim, found: Found, seeds: Sequence[Found], generations: bool) -> Judgement:
    return judge(claim, [min(middle(layers, generations=generations) for layers in one.values()) for one in seeds],
                 _by_network(found, lambda layers: f"{middle(layers, False, generations):.1f}x"),
                 f"Strict: {_by_network(found, lambda layers: f'{middle(layers, True, generations):.1f}x')}")


def _least(found: Found, seeds: Sequence[Found]) -> Judgement:
    medians = {network: middle(layers) for network, layers in found.items()}
    order = sorted(medians, key=lambda network: medians[network])
    return judge(LEAST, [lower((middle(one["mnasnet"]), middle(layers)) for network, layers in one.items()
                               if network != "mnasnet") for one in seeds],
                 " < ".join(f"{NETWORKS[network]} {medians[network]:.1f}x" for network in order))


def _later(layers: Layers) -> Judgement:
    def both(last: Warmed) -> float:
        return ((last.start("similar", whole=True) < last.first_generation)
                + (last.samples("warm") < last.samples("cold"))) / 2

    last = _last_convolution(layers)
    return judge(LATER, [both(one) for one in by_seed(last)],
                 f"{last.name}: begins at {last.start('similar', whole=True):.2f} times the final EDP instead of "
                 f"{last.first_generation:.2f}, converges after {_count(last.samples('warm'))} instead of "
                 f"{_count(last.samples('cold'))} samples")


def _last_convolution(layers: Layers) -> Warmed:
    return [layer for layer in layers if layer.operator.kind == "conv"][-1]


def _hurt(found: Found) -> str:
    parts = []
    for network, layers in found.items():
        slower = [layer.name for layer in layers if layer.speedup() < 1]
        worse = [f"{layer.name} {layer.final('warm') / layer.final('cold') - 1:+.1%}" for layer in layers
                 if layer.final("warm") > 1.005 * layer.final("cold")]
        told = [f"later: {', '.join(slower)}"] * bool(slower)
        told += [f"more than 0.5 % above: {', '.join(worse)}"] * bool(worse)
        parts += [f"{NETWORKS[network]} {'; '.join(told)}"] * bool(told)
    return f"Where warm start hurts: {'. '.join(parts) if parts else 'nowhere in these medians'}."


def _count(samples: float) -> str:
    return f"{samples:,.0f}" if samples < math.inf else "never"


def _networks_table(found: Found) -> Table:
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


def _layers_table(network: str, layers: Layers) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        nearest, *others = layer.runs[0]["warm"]["from"]
        sooner = (told for strict in (False, True) for told in (
            _count(layer.samples("cold", strict)), _count(layer.samples("warm", strict)),
            round(layer.speedup(strict), 1)))
        rows.append((layer.name, f"{nearest} and {len(others)} more" if others else nearest,
                     round(layer.final("warm") / layer.final("cold"), 4), *sooner, round(above_bound(layer), 2)))
    return Table(network, f"{NETWORKS[network]}: samples to 99.5 % of the improvement",
                 ("Layer", "Began from", "EDP warm / cold", "Cold", "Warm", "Sooner", "Cold, strict", "Warm, strict",
                  "Sooner, strict", "Final over bound"), tuple(rows))


def _curves(layers: Layers, samples: int) -> list[Plot]:
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

"""Kao's dissertation, figure 5.9: how good a mapping is that a search begins from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, apart, gain, judge, same
from tilewright.reproduce.mse_warm import (
    NETWORKS,
    Layer,
    above_bound,
    geometric,
    measure,
    oracle_words,
)
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Plot, Setting, Study, Table, Value

SHOWN = ("vgg16", "mnasnet")
REGULAR = same("On VGG16 it makes no difference whether a layer begins from the one before it or from the most "
               "similar one", "layers 1 to 4 equal", 2.0, "the ratio of the geometric means")
IRREGULAR = gain("On MnasNet beginning from the most similar layer is better", "2x", 2.0,
                 "of geometric means over layers")
PREVIOUS = gain("Beginning from the layer before is better than from a random mapping", "2.1x", 2.1,
                "of geometric means over both networks")
SIMILAR = gain("Beginning from the most similar layer is better than from a random mapping", "4.3x", 4.3,
               "of geometric means over both networks")
CLAIMS = (REGULAR, IRREGULAR, PREVIOUS, SIMILAR)


Layers = Sequence[Layer]


def run(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 5.9."""
    found = {network: [layer for layer in layers if layer.warm]
             for network, layers in measure(runner, setting, setting["networks"]).items()}
    vgg, mnasnet = found["vgg16"], found["mnasnet"]
    measures: tuple[tuple[Claim, Callable[[Layers, Layers], float], str], ...] = (
        (REGULAR, lambda v, m: apart(mean(v, "previous"), mean(v, "similar")),
         f"; the same layer lends in {_same(vgg)} of {len(vgg)}"),
        (IRREGULAR, lambda v, m: mean(m, "previous") / mean(m, "similar"),
         f"; another layer lends in {len(mnasnet) - _same(mnasnet)} of {len(mnasnet)}"),
        (PREVIOUS, lambda v, m: _over_random([*v, *m], "previous"), ""),
        (SIMILAR, lambda v, m: _over_random([*v, *m], "similar"), ""))
    judged = tuple(judge(claim, [measure(*([layer.at(seed) for layer in layers] for layers in (vgg, mnasnet)))
                                 for seed in range(setting.seeds)], f"{measure(vgg, mnasnet):.2f}x{more}")
                   for claim, measure, more in measures)
    notes = (
        "EDP over the final one of the layer (the better of the cold and the warm search), medians over seeds. Random: "
        "the median of the legal ones of 2,000 random mappings. Previous and similar: the lent mapping scaled by its "
        "outermost loops as published, the better of two places for a loop that is new there (the paper does not say "
        "which), mended where it does not fit. Best of all: of those that Tilewright makes of the lent mapping.",
        "Layers lend to layers of their kind: convolutions to convolutions, depthwise ones to depthwise ones. The "
        "first of each kind is left out, as it has none to begin from.", oracle_words(found))
    return Findings(tuple(_table(network, layers) for network, layers in found.items()), judged,
                    tuple(_plot(network, layers) for network, layers in found.items()), notes)


def mean(layers: Sequence[Layer], kind: str) -> float:
    """Return the geometric mean of the EDP begun from, over the final one."""
    return geometric([layer.start(kind) for layer in layers])


def _same(layers: Sequence[Layer]) -> int:
    lenders = [layer.runs[0]["lenders"] for layer in layers]
    return sum(each["previous"] == each["similar"] for each in lenders)


def _over_random(layers: Layers, kind: str) -> float:
    return geometric([layer.random for layer in layers]) / mean(layers, kind)


def _table(network: str, layers: Sequence[Layer]) -> Table:
    rows: list[tuple[Value, ...]] = [(
        layer.name, layer.runs[0]["lenders"]["previous"], layer.runs[0]["lenders"]["similar"], round(layer.random, 2),
        round(layer.first_generation, 2), round(layer.start("previous"), 2), round(layer.start("similar"), 2),
        round(layer.start("similar", whole=True), 2), round(above_bound(layer), 2)) for layer in layers]
    means: tuple[Value, ...] = ("geometric mean", "", "", *(round(geometric(values), 2) for values in (
        [layer.random for layer in layers], [layer.first_generation for layer in layers],
        [layer.start("previous") for layer in layers], [layer.start("similar") for layer in layers],
        [layer.start("similar", whole=True) for layer in layers], [above_bound(layer) for layer in layers])))
    return Table(network, f"{NETWORKS[network]} on Accel-B: EDP of what a search begins from, over the final one",
                 ("Layer", "Layer before", "Most similar", "Random", "Best of 200 random", "Previous", "Similar",
                  "Similar, best of all", "Final over bound"), (*rows, means),
                 ("Published (figure 5.9, as far as the text states it): previous 2.1x and similar 4.3x better than "
                  "random, similar 2x better than previous on MnasNet.",))


def _plot(network: str, layers: Sequence[Layer]) -> Plot:
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


_QUICK = Setting("quick", 3, {"samples": 5_000, "networks": SHOWN})
_FULL = Setting("full", 10, {"samples": 10_000, "networks": SHOWN})

REPRODUCTIONS.register("mse-fig5.9")(Study(
    "mse-fig5.9", "How good a mapping is that a search begins from: random, of the layer before, of the most similar",
    "Kao, dissertation, Georgia Tech 2022, section 5.3.1, figure 5.9", CLAIMS, _QUICK, _FULL, run,
    cells="mse-fig5.11"))

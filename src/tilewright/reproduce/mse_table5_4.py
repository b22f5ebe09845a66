"""Sparse activations: one mapping scored over several densities against mappings for one (Kao 2022, table 5.4)."""

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import geometric_mean, median

from tilewright.jobs import Runner
from tilewright.report import finite
from tilewright.reproduce.claims import Claim, Judgement, judge, part_of
from tilewright.reproduce.mse_sparse import LAYERS, Asked, Sought, bound_edp, checked_note, edp_at, searches, steep_note
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, published_groups, reproduction
from tilewright.search import PAPER

TESTED = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
STATIC = (1.0, 0.5, 0.1)
PUBLISHED = {layer: tuple(rows.values()) for layer, rows in published_groups("mse-table5.4").items()}
"""By layer: sparsity-aware, static 1.0, 0.5 and 0.1, each at the densities of `TESTED`."""

READINGS = {"operands": ("inputs", "weights"), "inputs": ("inputs",)}
"""What has the density: both operands, as the fall of the published figures with its third power implies (cycles fall
with the square of the density then, words with the density), or the activations alone, as the text says."""
_REACH = geometric_mean(min(column[place] for column in rows) / rows[1][place]
                        for rows in PUBLISHED.values() for place in range(len(TESTED)))
"""What the mapping for dense activations reaches of the best published at each density."""
_KEPT = 1 - log(0.997) / log(_REACH)
NEAR, ALONE, BAR, BAR_ALONE, DENSE = claims(
    "mse-table5.4", *[_KEPT] * 4, geometric_mean(rows[1][-1] / rows[0][-1] for rows in PUBLISHED.values()))

OURS = TESTED
"""Densities of the mappings scored by the geometric mean: no other search is over these."""
Runs = Mapping[tuple[str, tuple[float, ...]], Sought]
"""By layer and the densities searched over."""
Best = Mapping[tuple[str, float], float]


@reproduction("mse-table5.4", Setting("quick", 2, {"layers": ("conv3", "inception"), "samples": 4_000}),
              Setting("full", 3, {"layers": ("conv3", "inception"), "samples": 200_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search each layer over the paper's densities at once and at each density alone, in both readings."""
    layers = setting["layers"]
    read = {reading: _searched(reading, setting, runner) for reading in READINGS}
    (runs, best), (alone, best_alone) = read["operands"], read["inputs"]
    note = checked_note([*runs.values(), *alone.values()])
    judged = (_near(NEAR, runs, best, PAPER), _near(ALONE, alone, best_alone, PAPER),
              _near(BAR, runs, best, OURS), _near(BAR_ALONE, alone, best_alone, OURS),
              _dense(runs, layers))
    return Findings((_table("operands", runs, best, layers, note), _table("inputs", alone, best_alone, layers, note)),
                    judged, (_plot(runs, best, layers),), (steep_note(
                        [(dict(zip(TESTED, column, strict=True)), density) for layer in layers
                         for column in PUBLISHED[layer] for density in TESTED[1:]]),
                        "Where both operands are sparse the third power is what cycles (square) and words allow."))


def _searched(reading: str, setting: Setting, runner: Runner) -> tuple[Runs, Best]:
    """Return all searches, and the best EDP that any of them has at each density."""
    layers, over = setting["layers"], [PAPER, *((density,) for density in TESTED)]
    runs = {(one.of.layer, one.of.over): one for one in searches(runner, [
        Asked(layer, READINGS[reading], densities, TESTED) for layer in layers for densities in over], setting)}

    def begin(asked: Asked, seed: int) -> list[str]:
        """Return the mappings that one seed found for each density, without repetition."""
        found = [runs[asked.layer, (density,)].runs[seed]["mapping"] for density in TESTED]
        return list(dict.fromkeys(text for text in found if text is not None))

    runs |= {(one.of.layer, OURS): one for one in searches(runner, [
        Asked(layer, READINGS[reading], OURS, TESTED, geometric=True) for layer in layers], setting, begin)}
    return runs, {(layer, density): min(edp_at(value, density) for (of, _), tried in runs.items() if of == layer
                                        for value in tried.runs) for layer in layers for density in TESTED}


def _mean(values: Sequence[float]) -> float:
    return exp(sum(log(max(value, 1e-300)) for value in values) / len(values))


def _middle(runs: Runs, layer: str, over: tuple[float, ...], density: float) -> float:
    """Return the median EDP over seeds of a search's mappings at a density."""
    return median(edp_at(value, density) for value in runs[layer, over].runs)


def _table(reading: str, runs: Runs, best: Best, layers: tuple[str, ...], note: str) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        for place, density in enumerate(TESTED):
            ours = [_middle(runs, layer, over, density) for over in (PAPER, *((d,) for d in STATIC), OURS)]
            bound = bound_edp(layer, density, READINGS[reading])
            rows.append((LAYERS[layer].name, density, *(f"{column[place]:.2E}" for column in PUBLISHED[layer]),
                         *(f"{edp:.3E}" if edp < float("inf") else "does not fit" for edp in ours),
                         f"{best[layer, density]:.3E}", f"{best[layer, density] / ours[0]:.2%}",
                         f"{best[layer, density] / ours[-1]:.2%}", f"{bound:.1E}"))
    names = ("aware", "static 1.0", "static 0.5", "static 0.1")
    notes = (note, "Ours are medians over seeds; the best is of all searches at all densities and seeds.",
             "The same dense layer on the same machine is printed as 3.7E+10 in table 5.2 and as 2.39E+13 here, headed "
             "\"Energy uJ\".")
    return Table(reading, f"EDP (cycles x uJ) by density of the {' and '.join(READINGS[reading])}", (
        "Layer", "Density", *(f"Paper {name}" for name in names), *(f"Ours {name}" for name in names),
        "Ours geometric mean", "Ours best", "Aware reaches", "Geometric mean reaches", "Bound"), tuple(rows), notes)


def _near(claim: Claim, runs: Runs, best: Best, over: tuple[float, ...]) -> Judgement:
    layers = tuple(dict.fromkeys(layer for layer, _ in runs))

    def reach(seed: int, densities: tuple[float, ...]) -> dict[str, float]:
        return {layer: _mean([best[layer, d] / edp_at(runs[layer, densities].runs[seed], d) for d in TESTED])
                for layer in layers}

    seeds = range(len(runs[layers[0], over].runs))
    shares, dense = ([reach(seed, densities) for seed in seeds] for densities in (over, (1.0,)))
    ours, static = (median(_mean(list(one.values())) for one in each) for each in (shares, dense))
    told = ", ".join(f"{LAYERS[layer].name} {median(one[layer] for one in shares):.1%}" for layer in layers)
    return judge(claim, [1 - part_of(_mean(list(a.values())), _mean(list(d.values())))
                         for a, d in zip(shares, dense, strict=True)],
                 f"{ours:.1%} ({told}); static 1.0 reaches {static:.1%}")


def _dense(runs: Runs, layers: tuple[str, ...]) -> Judgement:
    def ratios(seed: int) -> list[float]:
        return [edp_at(runs[layer, (1.0,)].runs[seed], 0.05) / edp_at(runs[layer, PAPER].runs[seed], 0.05)
                for layer in layers]

    every = [ratios(seed) for seed in range(len(runs[layers[0], PAPER].runs))]
    return judge(DENSE, [_mean(one) for one in every],
                 ", ".join(f"{median(column):.3f}" for column in zip(*every, strict=True)) + " times")


def _plot(runs: Runs, best: Best, layers: tuple[str, ...]) -> Plot:
    data = []
    for layer in layers:
        for index, (name, over) in enumerate((("aware", PAPER), *((f"static {d:g}", (d,)) for d in STATIC),
                                              ("geometric mean", OURS))):
            data.append({"type": "scatter", "mode": "lines+markers", "name": f"{LAYERS[layer].name}, {name}",
                         "x": list(TESTED), "y": [finite(_middle(runs, layer, over, d) / best[layer, d])
                                                  for d in TESTED],
                         "line": {"color": f"@curve-{index}", "dash": "solid" if layer == layers[0] else "dot"}})
    return Plot("densities", "EDP over the best found at each density", data,
                {"xaxis": {"title": "density of the operands"}, "yaxis": {"title": "times the best"}})



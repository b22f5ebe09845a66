"""The sparse studies of map-space exploration (Kao 2022, tables 5.2 to 5.4): weights, styles, activations.

The machine is that of the authors' release (`accel-b-sparse` says what is from it), as are densities: what is not zero
is spread evenly (fixed-structured). Layers are those of table 5.1, Y and X taken as output sizes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import exp, inf, isfinite, log
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from tilewright.cost import SparseModel, layer_bounds
from tilewright.cost.reference import SparseNest
from tilewright.hardware import Accelerator, Memory, preset
from tilewright.jobs import Runner
from tilewright.mapping import MappingBatch, MapSpace, dataflow_constraints, dump_mapping, is_legal, load_mapping
from tilewright.report import finite
from tilewright.reproduce.claims import Claim, Judgement, judge, lower, part_of
from tilewright.reproduce.oracle import check, twin
from tilewright.reproduce.searching import Tried, by_seed
from tilewright.reproduce.study import (
    Cell,
    Findings,
    Plot,
    Setting,
    Table,
    Value,
    claims,
    published_groups,
    reproduction,
)
from tilewright.search import PAPER, Sweep, Watch, search
from tilewright.workload import EVEN, Operator, convolution, linear, matmul, with_densities

PJ = 1e6
"""Picojoules in the microjoule of the published EDP."""
LARGEST_TWIN, SAMPLES = 12_000, 8
UNEVEN = 0.07
"""Share by which the expected energy of a twin with uneven tiles may differ from that of sampled tensors."""
ROUNDED = 1.1
"""What two figures printed with two digits may be off by, as a ratio."""

LAYERS: Mapping[str, Operator] = {
    "conv3": convolution("Resnet Conv_3", in_channels=128, out_channels=128, kernel=3, out_size=28, batch=16),
    "conv4": convolution("Resnet Conv_4", in_channels=256, out_channels=256, kernel=3, out_size=14, batch=16),
    "inception": convolution("Inception Conv_2", in_channels=192, out_channels=192, kernel=5, out_size=27, batch=16),
    "kqv": linear("Bert-large KQV", rows=16 * 512, in_features=1024, out_features=1024),
    "attn": matmul("Bert-large Attn", m=512, n=512, k=1024, batch=16),
    "fc": linear("Bert-large FC", rows=16 * 512, in_features=1024, out_features=4096),
}


@cache
def machine() -> Accelerator:
    """Return the machine of all three studies."""
    return preset("accel-b-sparse")


@dataclass(frozen=True)
class Asked:
    """One search: the densities that it scores mappings over, and those that its best mapping is tested at."""

    layer: str
    tensors: tuple[str, ...]
    """The sparse operands, by role, all of one density."""
    over: tuple[float, ...]
    """Densities of the search: one, or several with the paper's weights."""
    tested: tuple[float, ...]
    dataflow: str = ""
    geometric: bool = False
    """Whether several are scored by their geometric mean instead."""

    def operator(self, density: float) -> Operator:
        """Return the layer at a density."""
        return with_densities(LAYERS[self.layer], dict.fromkeys(self.tensors, f"{EVEN}{density!r}"))

    @property
    def space(self) -> MapSpace:
        """The mappings to choose from, at the largest density searched."""
        operator = self.operator(max(self.over))
        if not self.dataflow:
            return MapSpace(operator, machine())
        return MapSpace(operator, machine(), constraints=dataflow_constraints(self.dataflow, operator, machine()))

    @property
    def sweep(self) -> Sweep | None:
        """The densities of the search with their weights; None for one."""
        points = tuple((d, 1.0 if self.geometric else d ** -len(self.tensors)) for d in self.over)
        return Sweep(self.tensors, points, even=True, geometric=self.geometric) if len(points) > 1 else None

    def cell(self, samples: int, seed: int, begin: Sequence[str] = ()) -> Cell:
        """Return the cell of the search: the mapping, and its EDP where it fits at each density tested.

        ``begin`` are mappings to begin from, as files.
        """
        def compute() -> dict[str, Any]:
            space = self.space
            first = [load_mapping(text, space.operator, machine()) for text in begin]
            start = MappingBatch.from_mappings(first, space.operator, machine()) if first else None
            found = search(space.operator, machine(), mapper="gamma", budget=samples, seed=seed, space=space,
                           start=start, densities=self.sweep, watch=Watch(threads=1))
            if found.mapping is None:
                return {"mapping": None, "edp": {}}
            figures: dict[str, Any] = {}
            for density in self.tested:
                operator = self.operator(density)
                cost = SparseModel(operator, machine()).cost(found.mapping)
                fits = is_legal(found.mapping, operator, machine())
                figures[f"{density:g}"] = cost.edp / PJ if fits else None
            return {"mapping": dump_mapping(found.mapping, space.operator, machine()), "edp": figures}

        key = {"layer": self.layer, "tensors": list(self.tensors), "over": list(self.over),
               "tested": list(self.tested), "dataflow": self.dataflow, "mapper": "gamma", "samples": samples,
               "seed": seed, "even": True}
        if self.geometric:
            key |= {"geometric": True, "begin": list(begin)}
        return Cell(key, compute, samples * len(self.over))


Sought = Tried[Asked]


def searches(runner: Runner, asked: Sequence[Asked], setting: Setting,
               begin: Callable[[Asked, int], Sequence[str]] = lambda one, seed: ()) -> list[Sought]:
    """Make searches with every seed; of each the run that is best at its least density, counted by both oracles."""
    seeds = range(setting.seeds)
    values = iter(runner.run([one.cell(setting["samples"], seed, begin(one, seed)) for one in asked for seed in seeds]))
    runs = [[next(values) for _ in seeds] for _ in asked]
    best = [min(some, key=partial(edp_at, density=min(one.over))) for one, some in zip(asked, runs, strict=True)]
    checks = runner.run([check_cell(one, value, min(one.over)) for one, value in zip(asked, best, strict=True)])
    return [Tried(one, some, middle, [told], "mapping")
            for one, some, middle, told in zip(asked, runs, best, checks, strict=True)]


def edp_at(value: Mapping[str, Any] | None, density: float) -> float:
    """Return a found mapping's EDP at a density, in cycles x uJ; infinite where it does not fit or none was found."""
    return (value or {"edp": {}})["edp"].get(f"{density:g}") or inf


def bound_edp(layer: str, density: float, tensors: tuple[str, ...] = ("weights",)) -> float:
    """Return what no mapping can beat where some operands have a density, in cycles x uJ."""
    return layer_bounds(Asked(layer, tensors, (density,), ()).operator(density), machine()).edp / PJ


def check_cell(asked: Asked, value: Mapping[str, Any], density: float) -> Cell:
    """Return the cell in which both oracles count a mapping: all words of its schedule, and sampled tensors.

    The first is exact; the second compares the expected energy with the mean over tensors drawn at the density, on a
    twin whose loops run less often, word by word instead of in blocks, and agrees within 7 % and four standard errors:
    where tiles are ragged or slide, accesses serve different numbers of products, and the model goes by their mean.
    Tensors are drawn with their zeros anywhere, and counted so here too: none is even in all directions.
    """
    operator = with_densities(LAYERS[asked.layer], dict.fromkeys(asked.tensors, density))
    text = value["mapping"]

    def compute() -> dict[str, Any]:
        mapping = load_mapping(text, operator, machine())
        plain = replace(machine(), sparsity=None)
        dense = check(LAYERS[asked.layer], plain, mapping)
        small, nest = operator, mapping
        for most in (5, 4, 3, 2):
            small, nest = twin(operator, mapping, most)
            if small.macs <= LARGEST_TWIN:
                break
        if small.macs > 16 * LARGEST_TWIN:
            return {"dense": dense.agrees, "ratio": None, "agrees": dense.agrees, "macs": small.macs}
        whole = replace(machine(), levels=tuple(replace(level, block_words=1) if isinstance(level, Memory) else level
                                                for level in machine().levels))
        walker = SparseNest(small, whole, nest)
        energies = [walker.walk(masks).energy_pj for masks in walker.samples(np.random.default_rng(0), SAMPLES)]
        mean, error = float(np.mean(energies)), float(np.std(energies, ddof=1) / SAMPLES**0.5)
        mine = SparseModel(small, whole).cost(nest).energy_pj
        return {"dense": dense.agrees, "ratio": mine / mean, "macs": small.macs,
                "agrees": dense.agrees and abs(mine - mean) <= 4 * error + UNEVEN * mean}

    return Cell({"layer": asked.layer, "tensors": list(asked.tensors), "density": density, "oracles": text}, compute)


def checked_note(found: Iterable[Sought]) -> str:
    """Return what the oracles said, in a sentence."""
    checks = [tried.oracle or {} for tried in found]
    agreeing = sum(one["agrees"] for one in checks)
    ratios = [one["ratio"] for one in checks if one["ratio"] is not None]
    sampled = (f"; expected energy of {len(ratios)} twins {min(ratios):.3f} to {max(ratios):.3f} times the mean over "
               f"{SAMPLES} sampled tensors" if ratios else "")
    said = "agrees with" if agreeing == len(checks) else "disagrees with some of"
    return f"The oracle {said} {len(checks)} mappings ({agreeing} confirmed: every word of the schedule{sampled})"


def steep_note(published: Sequence[tuple[Mapping[float, float], float]], ours: Sequence[float] = ()) -> str:
    """Say how many published falls from density 1 (EDP by density, the density it falls to) nothing can have.

    Cycles and words fall with one tensor's density at most in proportion, each: what is left of any of them is at
    least that share, so that EDP falls by its square at most. ``ours`` are falls times that square.
    """
    wrong = sum(edp[1.0] / edp[density] > ROUNDED / density**2 for edp, density in published)
    return (f"{wrong} of {len(published)} published falls of EDP are steeper than the square of the one sparse "
            "tensor's density, which no mapping's can be" + (f"; ours at most {max(ours):.2f} of it." if ours else "."))


DENSITIES = (1.0, 0.5, 0.1, 0.01)
Published = Mapping[str, Sequence[Sequence[float]]]
"""By layer, density tested (rows), and what was searched for (columns), in cycles x uJ."""
CONVOLUTIONS, PRODUCTS = ({layer: tuple(rows.values()) for layer, rows in published_groups(name).items()}
                          for name in ("mse-table5.2", "mse-table5.3"))

OWN, CARRIED, BELOW2 = claims("mse-table5.2",
                              CARRIED=geometric_mean(rows[3][0] / rows[3][3] for rows in CONVOLUTIONS.values()))

Found = dict[tuple[str, float, str], Sought]
"""By layer, the density searched, and style."""


def _by_density(setting: Setting, runner: Runner, asked: Iterable[Asked]) -> Found:
    return {(one.of.layer, one.of.over[0], one.of.dataflow): one for one in searches(runner, list(asked), setting)}


def _below(claim: Claim, published: Mapping[str, float], told: str, because: str) -> Judgement:
    """Judge what is published of layers at the least density by what no mapping can beat."""
    bounds = {layer: bound_edp(layer, 0.01) for layer in published}
    under = [layer for layer, edp in published.items() if edp < bounds[layer]]
    part = f"{len(under)} of {len(bounds)}"
    return judge(claim, 1 - len(under) / len(bounds), told.format(
        under=part, bounds=", ".join(f"{bound:.1E}" for bound in bounds.values())), because.format(under=part),
        impossible=bool(under))


@reproduction("mse-table5.2", Setting("quick", 3, {"layers": ("conv3", "conv4", "inception"), "samples": 5_000}),
              Setting("full", 3, {"layers": ("conv3", "conv4", "inception"), "samples": 200_000}))
def run2(setting: Setting, runner: Runner) -> Findings:
    """Search each layer at each density, then test every mapping at every density."""
    layers = setting["layers"]
    found = _by_density(setting, runner, (Asked(layer, ("weights",), (density,), DENSITIES)
                                        for layer in layers for density in DENSITIES))
    seeds = by_seed(found)
    judged = (
        judge(OWN, [_own(one, layers) for one in seeds], f"{_own(found, layers):.0%}, the best runs"),
        judge(CARRIED, [geometric_mean(_carried(one, layers)) for one in seeds],
              ", ".join(f"{ratio:.2f}" for ratio in _carried(found, layers)) + " times",
              "cycles and most words fall alike under every mapping here; the published ratios rest on figures that "
              "fall faster than any count can"),
        _below(BELOW2, {layer: CONVOLUTIONS[layer][3][3] for layer in layers}, "bounds {bounds}",
               "{under} published figures are below: inputs and outputs are dense, and next to none of them meets "
               "weights of zero alone, so that they must cross the DRAM once"))
    return Findings((_tested_table(found, layers),), judged, notes=(_tested_falls(found, layers),))


def _tested_table(found: Found, layers: tuple[str, ...]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        for place, tested in enumerate(DENSITIES):
            ours = [edp_at(found[layer, searched, ""].median, tested) for searched in DENSITIES]
            rows.append((LAYERS[layer].name, tested, *(f"{edp:.1E}" for edp in CONVOLUTIONS[layer][place]),
                         *(f"{edp:.2E}" if isfinite(edp) else "does not fit" for edp in ours),
                         f"{bound_edp(layer, tested):.1E}"))
    heads = [f"{who} {density:g}" for who in ("Paper", "Ours") for density in DENSITIES]
    return Table("edp", "EDP (cycles x uJ) of mappings optimised at one density of the weights (columns) and tested at "
                 "others (rows)", ("Layer", "Tested at", *heads, "Bound"), tuple(rows), (checked_note(found.values()),))


def _own(found: Found, layers: tuple[str, ...]) -> float:
    return lower((edp_at(found[layer, tested, ""].median, tested), edp_at(found[layer, other, ""].median, tested))
                 for layer in layers for tested in DENSITIES for other in DENSITIES if other != tested)


def _carried(found: Found, layers: tuple[str, ...]) -> list[float]:
    return [edp_at(found[layer, 1.0, ""].median, 0.01) / edp_at(found[layer, 0.01, ""].median, 0.01)
            for layer in layers]


def _published_falls(published: Published, layers: tuple[str, ...]) -> list[tuple[dict[float, float], float]]:
    """Return each column from density 1 on, and the density that it falls to."""
    columns = [dict(zip(DENSITIES, column, strict=True)) for layer in layers
               for column in zip(*published[layer], strict=True)]
    return [(column, tested) for column in columns for tested in DENSITIES[1:]]


def _tested_falls(found: Found, layers: tuple[str, ...]) -> str:
    falls = [(edp_at(one.median, 1.0), edp_at(one.median, tested), tested) for one in found.values()
             for tested in DENSITIES[1:]]
    return steep_note(_published_falls(CONVOLUTIONS, layers), [
        whole / part * tested**2 for whole, part, tested in falls if max(whole, part) < inf])


STYLES = ("inner-product", "outer-product")
INNER, OUTER, BELOW3 = claims(
    "mse-table5.3",
    INNER=geometric_mean(rows[place][1] / rows[place][0] for rows in PRODUCTS.values() for place in (0, 1)),
    OUTER=geometric_mean(rows[3][1] / rows[3][0] for rows in PRODUCTS.values()))


@reproduction("mse-table5.3", Setting("quick", 3, {"layers": ("kqv", "attn", "fc"), "samples": 5_000}),
              Setting("full", 3, {"layers": ("kqv", "attn", "fc"), "samples": 200_000}))
def run3(setting: Setting, runner: Runner) -> Findings:
    """Search each layer at each density in both styles."""
    layers = setting["layers"]
    found = _by_density(setting, runner, (Asked(layer, ("weights",), (density,), (density,), style)
                                        for layer in layers for density in DENSITIES for style in STYLES))
    ratios, seeds = _ratios(found, layers), [_ratios(one, layers) for one in by_seed(found)]
    judged = tuple(judge(claim, [_mean_finite(one, densities) for one in seeds], told) for claim, densities, told in (
        (INNER, (1.0, 0.5), f"outer over inner {_mean_finite(ratios, (1.0, 0.5)):.3f}"),
        (OUTER, (0.01,), "outer over inner at 0.01: " + ", ".join(f"{ratios[layer, 0.01]:.3f}" for layer in layers))))
    ours = [_edp(found, layer, 1.0, style) / _edp(found, layer, density, style) * density**2
            for layer in layers for style in STYLES for density in DENSITIES[1:]]
    return Findings((_styles_table(found, layers),), (*judged, _below(
        BELOW3, {layer: min(PRODUCTS[layer][3]) for layer in layers}, "{under} layers below",
        "the dense matrix and the products must cross the DRAM once")),
        notes=(steep_note(_published_falls(PRODUCTS, layers), ours),))


def _ratios(found: Found, layers: tuple[str, ...]) -> dict[tuple[str, float], float]:
    return {(layer, density): _edp(found, layer, density, STYLES[1]) / _edp(found, layer, density, STYLES[0])
            for layer in layers for density in DENSITIES}


def _mean_finite(ratios: Mapping[tuple[str, float], float], densities: tuple[float, ...]) -> float:
    return geometric_mean(ratio for (_, density), ratio in ratios.items() if density in densities)


def _edp(found: Found, layer: str, density: float, style: str) -> float:
    return edp_at(found[layer, density, style].median, density)


def _styles_table(found: Found, layers: tuple[str, ...]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        for place, density in enumerate(DENSITIES):
            inner, outer = (_edp(found, layer, density, style) for style in STYLES)
            theirs = PRODUCTS[layer][place]
            rows.append((LAYERS[layer].name, density, *(f"{edp:.1E}" for edp in theirs),
                         f"{theirs[1] / theirs[0]:.3g}", f"{inner:.2E}", f"{outer:.2E}", f"{outer / inner:.3f}",
                         f"{bound_edp(layer, density):.1E}"))
    return Table("edp", "EDP (cycles x uJ) of the best inner and outer products by density of the weights",
                 ("Layer", "Density", "Paper inner", "Paper outer", "Paper outer/inner", "Ours inner", "Ours outer",
                  "Ours outer/inner", "Bound"), tuple(rows), (checked_note(found.values()),))


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
def run4(setting: Setting, runner: Runner) -> Findings:
    """Search each layer over the paper's densities at once and at each density alone, in both readings."""
    layers = setting["layers"]
    read = {reading: _read(reading, setting, runner) for reading in READINGS}
    (runs, best), (alone, best_alone) = read["operands"], read["inputs"]
    note = checked_note([*runs.values(), *alone.values()])
    judged = (_near_best(NEAR, runs, best, PAPER), _near_best(ALONE, alone, best_alone, PAPER),
              _near_best(BAR, runs, best, OURS), _near_best(BAR_ALONE, alone, best_alone, OURS),
              _dense_over(runs, layers))
    tables = (_reading_table("operands", runs, best, layers, note),
              _reading_table("inputs", alone, best_alone, layers, note))
    return Findings(tables, judged, (_densities_plot(runs, best, layers),), (steep_note(
                        [(dict(zip(TESTED, column, strict=True)), density) for layer in layers
                         for column in PUBLISHED[layer] for density in TESTED[1:]]),
                        "Where both operands are sparse the third power is what cycles (square) and words allow."))


def _read(reading: str, setting: Setting, runner: Runner) -> tuple[Runs, Best]:
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


def _reading_table(reading: str, runs: Runs, best: Best, layers: tuple[str, ...], note: str) -> Table:
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


def _near_best(claim: Claim, runs: Runs, best: Best, over: tuple[float, ...]) -> Judgement:
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


def _dense_over(runs: Runs, layers: tuple[str, ...]) -> Judgement:
    def ratios(seed: int) -> list[float]:
        return [edp_at(runs[layer, (1.0,)].runs[seed], 0.05) / edp_at(runs[layer, PAPER].runs[seed], 0.05)
                for layer in layers]

    every = [ratios(seed) for seed in range(len(runs[layers[0], PAPER].runs))]
    return judge(DENSE, [_mean(one) for one in every],
                 ", ".join(f"{median(column):.3f}" for column in zip(*every, strict=True)) + " times")


def _densities_plot(runs: Runs, best: Best, layers: tuple[str, ...]) -> Plot:
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

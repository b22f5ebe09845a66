"""Inner and outer products on sparse-dense matrix products of BERT-large (Kao 2022, table 5.3)."""

from collections.abc import Mapping
from statistics import geometric_mean

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, exact, gain, judge
from tilewright.reproduce.mse_sparse import LAYERS, Asked, Sought, bound_edp, checked_note, edp_at, searches, steep_note
from tilewright.reproduce.searching import by_seed
from tilewright.reproduce.study import Findings, Setting, Table, Value, reproduction

DENSITIES = (1.0, 0.5, 0.1, 0.01)
STYLES = ("inner-product", "outer-product")
PUBLISHED: Mapping[str, tuple[tuple[float, float], ...]] = {
    "kqv": ((7.6e11, 9.8e11), (1.1e11, 1.4e11), (9.0e8, 1.6e5), (1.9e5, 1.6e5)),
    "attn": ((1.9e11, 2.5e11), (2.8e10, 3.6e10), (3.4e8, 3.6e8), (2.0e5, 8.0e4)),
    "fc": ((7.8e14, 9.1e14), (1.5e14, 1.5e14), (1.4e12, 1.1e8), (1.8e8, 1.1e8)),
}
"""By layer and density: inner and outer product, in cycles x uJ."""

INNER = gain("Inner products are better at densities of 0.5 and above", "1.17 to 1.32 times; FC at 0.5 equal",
             geometric_mean(rows[place][1] / rows[place][0] for rows in PUBLISHED.values() for place in (0, 1)),
             "outer over inner, the geometric mean over layers and both densities")
OUTER = gain("Outer products have an edge at low densities", "KQV and FC at 0.1 and 0.01, Attn at 0.01",
             geometric_mean(rows[3][1] / rows[3][0] for rows in PUBLISHED.values()),
             "outer over inner at 0.01, the geometric mean over layers")
BELOW = exact("EDP at a density of 0.01", "1.6E+05 to 1.1E+08",
              "layers without one below what no mapping can beat on this machine, whatever it skips")
CLAIMS = (INNER, OUTER, BELOW)

Found = dict[tuple[str, float, str], Sought]
"""By layer, density and style."""


@reproduction(
    "mse-table5.3", "Inner and outer products on sparse-dense products of BERT-large",
    "Kao, dissertation, Georgia Tech 2022, table 5.3 (Kao et al., Demystifying map space exploration, IISWC 2022)",
    CLAIMS, Setting("quick", 3, {"layers": ("kqv", "attn", "fc"), "samples": 5_000}),
    Setting("full", 3, {"layers": ("kqv", "attn", "fc"), "samples": 200_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search each layer at each density in both styles."""
    layers = setting["layers"]
    found = {(one.of.layer, one.of.over[0], one.of.dataflow): one for one in searches(runner, [
        Asked(layer, ("weights",), (density,), (density,), style)
        for layer in layers for density in DENSITIES for style in STYLES], setting)}
    ratios, seeds = _ratios(found, layers), [_ratios(one, layers) for one in by_seed(found)]
    judged = tuple(judge(claim, [_mean(one, densities) for one in seeds], told) for claim, densities, told in (
        (INNER, (1.0, 0.5), f"outer over inner {_mean(ratios, (1.0, 0.5)):.3f}"),
        (OUTER, (0.01,), "outer over inner at 0.01: " + ", ".join(f"{ratios[layer, 0.01]:.3f}" for layer in layers))))
    return Findings((_table(found, layers),), (*judged, _below(layers)), notes=(_steep(found, layers),))


def _ratios(found: Found, layers: tuple[str, ...]) -> dict[tuple[str, float], float]:
    return {(layer, density): _edp(found, layer, density, 1) / _edp(found, layer, density, 0)
            for layer in layers for density in DENSITIES}


def _mean(ratios: Mapping[tuple[str, float], float], densities: tuple[float, ...]) -> float:
    return geometric_mean(ratio for (_, density), ratio in ratios.items() if density in densities)


def _edp(found: Found, layer: str, density: float, style: int) -> float:
    return edp_at(found[layer, density, STYLES[style]].median, density)


def _table(found: Found, layers: tuple[str, ...]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        for place, density in enumerate(DENSITIES):
            inner, outer = (_edp(found, layer, density, style) for style in (0, 1))
            theirs = PUBLISHED[layer][place]
            rows.append((LAYERS[layer].name, density, *(f"{edp:.1E}" for edp in theirs),
                         f"{theirs[1] / theirs[0]:.3g}", f"{inner:.2E}", f"{outer:.2E}", f"{outer / inner:.3f}",
                         f"{bound_edp(layer, density):.1E}"))
    return Table("edp", "EDP (cycles x uJ) of the best inner and outer products by density of the weights",
                 ("Layer", "Density", "Paper inner", "Paper outer", "Paper outer/inner", "Ours inner", "Ours outer",
                  "Ours outer/inner", "Bound"), tuple(rows), (checked_note(found.values()),))


def _steep(found: Found, layers: tuple[str, ...]) -> str:
    falls = [({1.0: PUBLISHED[layer][0][style], density: PUBLISHED[layer][place][style]}, density)
             for layer in layers for style in (0, 1) for place, density in enumerate(DENSITIES[1:], 1)]
    ours = [_edp(found, layer, 1.0, style) / _edp(found, layer, density, style) * density**2
            for layer in layers for style in (0, 1) for density in DENSITIES[1:]]
    return steep_note(falls, ours)


def _below(layers: tuple[str, ...]) -> Judgement:
    under = [layer for layer in layers if min(PUBLISHED[layer][3]) < bound_edp(layer, 0.01)]
    return judge(BELOW, 1 - len(under) / len(layers), f"{len(under)} of {len(layers)} layers below",
                 "the dense matrix and the products must cross the DRAM once", impossible=bool(under))

"""Sparse weights (Kao 2022, tables 5.2 and 5.3): a mapping for each density, and inner or outer products for each."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from statistics import geometric_mean

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, judge, lower
from tilewright.reproduce.mse_sparse import LAYERS, Asked, Sought, bound_edp, checked_note, edp_at, searches, steep_note
from tilewright.reproduce.searching import by_seed
from tilewright.reproduce.study import Findings, Setting, Table, Value, claims, published_groups, reproduction

DENSITIES = (1.0, 0.5, 0.1, 0.01)
Published = Mapping[str, Sequence[Sequence[float]]]
"""By layer, density tested (rows), and what was searched for (columns), in cycles x uJ."""
CONVOLUTIONS, PRODUCTS = ({layer: tuple(rows.values()) for layer, rows in published_groups(name).items()}
                          for name in ("mse-table5.2", "mse-table5.3"))

OWN, CARRIED, BELOW2 = claims("mse-table5.2",
                              CARRIED=geometric_mean(rows[3][0] / rows[3][3] for rows in CONVOLUTIONS.values()))

Found = dict[tuple[str, float, str], Sought]
"""By layer, the density searched, and style."""


def _searched(setting: Setting, runner: Runner, asked: Iterable[Asked]) -> Found:
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
    found = _searched(setting, runner, (Asked(layer, ("weights",), (density,), DENSITIES)
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
    found = _searched(setting, runner, (Asked(layer, ("weights",), (density,), (density,), style)
                                        for layer in layers for density in DENSITIES for style in STYLES))
    ratios, seeds = _ratios(found, layers), [_ratios(one, layers) for one in by_seed(found)]
    judged = tuple(judge(claim, [_mean(one, densities) for one in seeds], told) for claim, densities, told in (
        (INNER, (1.0, 0.5), f"outer over inner {_mean(ratios, (1.0, 0.5)):.3f}"),
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


def _mean(ratios: Mapping[tuple[str, float], float], densities: tuple[float, ...]) -> float:
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

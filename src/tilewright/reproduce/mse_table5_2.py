"""Sparse weights: does each density need a mapping of its own? (Kao 2022, table 5.2)."""

from collections.abc import Mapping
from math import inf, isfinite
from statistics import geometric_mean

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, cases, exact, gain, judge, lower
from tilewright.reproduce.mse_sparse import LAYERS, Asked, Sought, bound_edp, checked_note, edp_at, searches, steep_note
from tilewright.reproduce.searching import by_seed
from tilewright.reproduce.study import Findings, Setting, Table, Value, reproduction

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PUBLISHED: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "conv3": ((3.7e10, 3.9e10, 5.8e10, 1.6e12), (1.0e10, 4.9e9, 9.1e9, 3.9e11), (8.0e8, 6.6e7, 6.4e7, 8.3e8),
              (5.0e7, 3.1e4, 4.8e4, 1.6e4)),
    "conv4": ((3.1e10, 3.6e10, 1.0e11, 4.3e11), (8.3e9, 4.9e9, 1.4e10, 9.6e10), (5.5e8, 9.1e7, 2.3e7, 3.7e8),
              (3.0e7, 7.0e5, 6.4e3, 5.4e3)),
    "inception": ((1.1e13, 1.3e13, 1.5e13, 5.9e14), (3.4e12, 2.0e12, 2.3e12, 1.5e14), (3.5e11, 1.3e10, 5.1e9, 4.0e10),
                  (3.3e9, 9.4e6, 3.3e6, 6.2e5)),
}
"""By layer, density tested (rows) and density searched (columns), in cycles x uJ."""

OWN = cases("The mapping optimised for a density is the best at that density", "12 of 12 rows",
            "the share of rows and other mappings whose EDP is not lower there")
CARRIED = gain("A mapping optimised for dense weights does not carry over to a density of 0.01",
               "3,125, 5,556 and 5,323 times the EDP of the mapping optimised for it",
               geometric_mean(rows[3][0] / rows[3][3] for rows in PUBLISHED.values()), "the geometric mean over layers")
BELOW = exact("EDP at a density of 0.01", "1.6E+04, 5.4E+03, 6.2E+05",
              "those that are not below what no mapping can beat on this machine, whatever it skips")
CLAIMS = (OWN, CARRIED, BELOW)

Found = dict[tuple[str, float], Sought]
"""By layer and the density searched."""


@reproduction(
    "mse-table5.2", "Mappings optimised at one density of the weights, tested at others",
    "Kao, dissertation, Georgia Tech 2022, table 5.2 (Kao et al., Demystifying map space exploration, IISWC 2022)",
    CLAIMS, Setting("quick", 3, {"layers": ("conv3", "conv4", "inception"), "samples": 5_000}),
    Setting("full", 3, {"layers": ("conv3", "conv4", "inception"), "samples": 200_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search each layer at each density, then test every mapping at every density."""
    layers = setting["layers"]
    found = {(one.of.layer, one.of.over[0]): one for one in searches(runner, [
        Asked(layer, ("weights",), (density,), DENSITIES) for layer in layers for density in DENSITIES], setting)}
    seeds = by_seed(found)
    judged = (
        judge(OWN, [_own(one, layers) for one in seeds], f"{_own(found, layers):.0%}, the best runs"),
        judge(CARRIED, [geometric_mean(_carried(one, layers)) for one in seeds],
              ", ".join(f"{ratio:.2f}" for ratio in _carried(found, layers)) + " times",
              "cycles and most words fall alike under every mapping here; the published ratios rest on figures that "
              "fall faster than any count can"), _below(layers))
    return Findings((_table(found, layers),), judged, notes=(_steep(found, layers),))


def _table(found: Found, layers: tuple[str, ...]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for layer in layers:
        for place, tested in enumerate(DENSITIES):
            ours = [edp_at(found[layer, searched].median, tested) for searched in DENSITIES]
            rows.append((LAYERS[layer].name, tested, *(f"{edp:.1E}" for edp in PUBLISHED[layer][place]),
                         *(f"{edp:.2E}" if isfinite(edp) else "does not fit" for edp in ours),
                         f"{bound_edp(layer, tested):.1E}"))
    heads = [f"{who} {density:g}" for who in ("Paper", "Ours") for density in DENSITIES]
    return Table("edp", "EDP (cycles x uJ) of mappings optimised at one density of the weights (columns) and tested at "
                 "others (rows)", ("Layer", "Tested at", *heads, "Bound"), tuple(rows), (checked_note(found.values()),))


def _own(found: Found, layers: tuple[str, ...]) -> float:
    return lower((edp_at(found[layer, tested].median, tested), edp_at(found[layer, other].median, tested))
                 for layer in layers for tested in DENSITIES for other in DENSITIES if other != tested)


def _carried(found: Found, layers: tuple[str, ...]) -> list[float]:
    return [edp_at(found[layer, 1.0].median, 0.01) / edp_at(found[layer, 0.01].median, 0.01) for layer in layers]


def _steep(found: Found, layers: tuple[str, ...]) -> str:
    columns = [{tested: PUBLISHED[layer][row][place] for row, tested in enumerate(DENSITIES)}
               for layer in layers for place in range(len(DENSITIES))]
    falls = [(edp_at(one.median, 1.0), edp_at(one.median, tested), tested) for one in found.values()
             for tested in DENSITIES[1:]]
    return steep_note([(column, tested) for column in columns for tested in DENSITIES[1:]],
                      [whole / part * tested**2 for whole, part, tested in falls if max(whole, part) < inf])


def _below(layers: tuple[str, ...]) -> Judgement:
    bounds = {layer: bound_edp(layer, 0.01) for layer in layers}
    under = [layer for layer in layers if PUBLISHED[layer][3][3] < bounds[layer]]
    told = ", ".join(f"{bound:.1E}" for bound in bounds.values())
    return judge(BELOW, 1 - len(under) / len(layers), f"bounds {told}",
                 f"{len(under)} of {len(layers)} published figures are below: inputs and outputs are dense, and next "
                 "to none of them meets weights of zero alone, so that they must cross the DRAM once",
                 impossible=bool(under))

"""Gamma, table 4.5 and figure 4.7: four networks on S3 against fixed dataflows, and how soon Gamma gets there."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from tilewright.cost import network_sum
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, judge, lower
from tilewright.reproduce.gamma_contest import (
    FIXED,
    GAMMA,
    OURS,
    OWN,
    PAPER,
    PLATFORMS,
    Method,
    Tries,
    Try,
    bound_total,
    contest,
    convolutions,
    least,
    machine,
    oracle_word,
    span,
    times,
)
from tilewright.reproduce.searching import by_seed, median_curve, total
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, published, reproduction

NETWORKS = {"mobilenet-v2": "MobileNet-V2", "mnasnet": "MnasNet", "shufflenet-v2": "ShuffleNet", "resnet50": "ResNet50"}
"""ShuffleNet is version 2 at width 1.0 in the released model files."""
FLOWS = tuple(method.label for method in FIXED)
OBJECTIVES = ("latency", "energy")
POPULATION, LAST = 200, 50

PUBLISHED = {(network, objective, platform): row
             for (network, objective, platform), row in published("gamma-table4.5", 3).items()}
"""Gamma, NVDLA-like, Eyeriss-like, ShiDianNao-like; cycles, and nanojoules."""

LOWEST, LATENCY, ENERGY, BOUNDS, NONE_BEST, ORDER = claims("gamma-table4.5")

RAPID, SETTLED = claims("gamma-fig4.7")

Row = tuple[str, str, str]


def measure(setting: Setting, runner: Runner, methods: Sequence[Method], rows: Sequence[Row]) -> dict[Row, Tries]:
    """Let methods map networks on S3, for an objective, on a platform."""
    return {row: contest(runner, convolutions(row[0], setting["every"]), machine(row[2], "s3"), methods,
                         seeds=setting.seeds, samples=setting["samples"], objective=row[1]) for row in rows}


_QUICK = Setting("quick", 2, {"samples": 2_000, "every": 5, "networks": tuple(NETWORKS)})
_FULL = Setting("full", 10, {"samples": 10_000, "every": 1, "networks": tuple(NETWORKS)})


@reproduction("gamma-table4.5", _QUICK, _FULL)
def run45(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge table 4.5."""
    rows = [row for row in PUBLISHED if row[0] in setting["networks"]]
    found = measure(setting, runner, (GAMMA, OWN, *FIXED), rows)
    sums = _sums(found)
    seeds = [_sums(one) for one in by_seed(found)]
    judged = (
        judge(LOWEST, [_lowest(one, PAPER) for one in seeds],
              f"{_lowest(sums, PAPER):.0%} as published, {_lowest(sums, OURS):.0%} of ours"),
        *(judge(claim, [least(_over(one, name)) for one in seeds], span(_over(sums, name)), _platforms(sums, name))
          for claim, name in ((LATENCY, "latency"), (ENERGY, "energy"))),
        _bounds(), _none_best(sums), _order(sums))
    notes = (
        "Dataflows here grow their tiles as memories allow, and are mapped on all three sides of S3. The published "
        f"NVDLA-like figure for ResNet-50 on the edge is {1.04e11 / 4.087e9:.0f} cycles for each multiply-accumulate, "
        "on 168 elements. The published cost model counts neither the DRAM's energy nor any limit of bandwidth; here "
        "bandwidth is not limited either, but DRAM costs energy. Published energies are multiples of some "
        "multiply-accumulate's, whatever their unit is called.", _stated())
    return Findings((_table(setting, found, sums),), judged, (_plot(sums),), notes)


def bound_of(row: Row, every: int = 1) -> float:
    """Return the compute cycles, or picojoules, that a row of the table can't be below."""
    name = "compute_cycles" if row[1] == "latency" else "energy_pj"
    return bound_total(convolutions(row[0], every), machine(row[2], "s3"), name)


def _table(setting: Setting, found: Mapping[Row, Tries], sums: Mapping[Row, Mapping[str, float]]) -> Table:
    columns = ("Network", "Objective", "Platform", "Bound", "Published: Gamma", "closest dataflow over it",
               "Gamma as published", "Gamma, ours", *FLOWS, "Closest dataflow over Gamma", "Oracle")
    rows: list[tuple[Value, ...]] = []
    for row, ours in sums.items():
        theirs, label = PUBLISHED[row], NETWORKS[row[0]]
        whole = bound_of(row)
        impossible = " (impossible)" if row[1] == "latency" and theirs[0] < whole else ""
        rows.append((label, f"{row[1]} ({'cycles' if row[1] == 'latency' else 'nJ'})", row[2],
                     _unit(row, bound_of(row, setting["every"])), f"{theirs[0]:.3g}{impossible}",
                     min(theirs[1:]) / theirs[0], *(_unit(row, ours[name]) for name in (PAPER, OURS, *FLOWS)),
                     min(ours[name] for name in FLOWS) / ours[PAPER],
                     oracle_word(each for tries in found[row].values() for each in tries)))
    some = () if setting["every"] == 1 else (f"Only one in {setting['every']} of the distinct layers is measured; "
                                             "published figures are of all, as is the bound they are held against.",)
    return Table("networks", "End to end on S3: the sum over all layers", columns, tuple(rows), some)


def _unit(row: Row, value: float) -> Value:
    if not math.isfinite(value):
        return None
    return round(value) if row[1] == "latency" else value * 1e-3


Sums = Mapping[Row, Mapping[str, float]]


def _sums(found: Mapping[Row, Tries]) -> Sums:
    return {row: {label: total(each) for label, each in tries.items()} for row, tries in found.items()}


def _lowest(sums: Sums, label: str) -> float:
    return lower((ours[label], ours[flow]) for ours in sums.values() for flow in FLOWS)


def _over(sums: Sums, objective: str) -> dict[str, float]:
    """Return the dataflows' figures over Gamma's, by row and dataflow."""
    return {f"{NETWORKS[row[0]]} {row[2]} {flow}": ours[flow] / ours[PAPER]
            for row, ours in sums.items() if row[1] == objective for flow in FLOWS if math.isfinite(ours[PAPER])}


def _platforms(sums: Sums, objective: str) -> str:
    return "; ".join(f"{platform} {times(min(these))} to {times(max(these))}" for platform in PLATFORMS if (
        these := [ratio for name, ratio in _over(sums, objective).items() if f" {platform} " in name]))


def _stated() -> str:
    told = []
    for objective in OBJECTIVES:
        ratios = [other / theirs[0] for row, theirs in PUBLISHED.items() if row[1] == objective for other in theirs[1:]]
        told.append(f"{objective} {times(min(ratios))} to {times(max(ratios))}")
    return f"The ranges that the text states are not those of its table: {', '.join(told)}."


def _bounds() -> Judgement:
    rows = [row for row in PUBLISHED if row[1] == "latency"]
    below = {row: PUBLISHED[row][0] / bound_of(row) for row in rows if PUBLISHED[row][0] < bound_of(row)}
    told = ", ".join(f"{NETWORKS[row[0]]} {row[2]} {share:.2f} of it" for row, share in below.items())
    return judge(BOUNDS, 1 - len(below) / len(rows),
                 f"{len(below)} of {len(rows)} are below the compute bound: {told}" if below else "none is below",
                 "MAESTRO counts too few multiply-accumulates where tiles run past an edge" if below else "",
                 impossible=bool(below))


def _none_best(sums: Sums) -> Judgement:
    named = {"edge": "ShiDianNao-like", "cloud": "NVDLA-like"}
    rows = {row: ours for row, ours in sums.items() if row[1] == "latency"}
    best = {row: min(FLOWS, key=lambda flow: ours[flow]) for row, ours in rows.items()}
    told = "; ".join(f"{platform}: " + ", ".join(f"{NETWORKS[row[0]]} {flow}" for row, flow in best.items()
                                                 if row[2] == platform) for platform in PLATFORMS)
    return judge(NONE_BEST, lower((ours[named[row[2]]], ours[flow]) for row, ours in rows.items() for flow in FLOWS
                                  if flow != named[row[2]]), told)


def _order(sums: Sums) -> Judgement:
    rows = [ours for row, ours in sums.items() if row[1] == "energy"]
    full = sum(ours[FLOWS[0]] < ours[FLOWS[1]] < ours[FLOWS[2]] for ours in rows)
    return judge(ORDER, lower((ours[a], ours[b]) for ours in rows for a, b in combinations(FLOWS, 2)),
                 f"{full} of {len(rows)} rows in full")


def _plot(sums: Mapping[Row, Mapping[str, float]]) -> Plot:
    names = [f"{NETWORKS[row[0]]}, {row[1]}, {row[2]}" for row in sums]
    data = [{"type": "bar", "name": flow, "x": names, "y": [ours[flow] / ours[PAPER] for ours in sums.values()],
             "marker": {"color": f"@curve-{index}"}} for index, flow in enumerate(FLOWS)]
    theirs = [min(PUBLISHED[row][1:]) / PUBLISHED[row][0] for row in sums]
    data.append({"type": "scatter", "mode": "markers", "name": "closest, published", "x": names, "y": theirs,
                 "marker": {"symbol": "diamond", "size": 10, "color": "@strong"}})
    return Plot("ratios", "Dataflows over Gamma", data, {
        "barmode": "group", "yaxis": {"title": {"text": "times Gamma's"}, "type": "log"}, "xaxis": {"tickangle": -50}})


@reproduction("gamma-fig4.7", _QUICK, _FULL, cells="gamma-table4.5")
def run47(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 4.7 from the searches of table 4.5."""
    rows = [row for row in PUBLISHED if row[0] in setting["networks"] and row[1:] == ("latency", "edge")]
    found = measure(setting, runner, (GAMMA, OWN), rows)
    generations = range(1, setting["samples"] // POPULATION + 1)
    curves = {(row[0], label): curve(tries[label], generations) for row, tries in found.items() for label in tries}
    table = []
    for (network, label), values in curves.items():
        bound = bound_total(convolutions(network, setting["every"]), machine("edge", "s3"), "compute_cycles")
        table.append((
            NETWORKS[network], label, values[0], *(values[len(values) * part // 5 - 1] for part in (1, 2, 5)), bound,
            100 * _gained(values, 0.0, 0.5), oracle_word(found[network, "latency", "edge"][label])))
    seeds = [[curve(tries[PAPER], generations) for tries in one.values()] for one in by_seed(found)]
    own = {row[0]: curves[row[0], PAPER] for row in found}
    judged = tuple(
        judge(claim, [fmean(_gained(values, *part) for values in one) for one in seeds],
              ", ".join(f"{NETWORKS[name]} {_gained(values, *part):.0%}" for name, values in own.items()))
        if len(generations) >= least_generations else
        Judgement(claim, f"{len(generations)} generations", "not judged")
        for claim, part, least_generations in ((RAPID, (0.0, 0.5), 2), (SETTLED, (0.8, 1.0), LAST)))
    columns = ("Network", "Method", "Generation 1 (cycles)", "a fifth of them", "two fifths", "all", "Compute bound",
               "Improvement after half of them (%)", "Oracle")
    notes = ("Missing: some layer has no legal mapping yet. Medians over seeds, layer by layer.",)
    shown = Table("generations", f"S3 edge, latency after generations of {POPULATION}", columns, tuple(table), notes)
    return Findings((shown,), judged, (_generations_plot(curves, generations),))


def curve(tries: Sequence[Try], generations: range) -> list[float | None]:
    """Return the network's latency after every generation, medians of each layer summed; None while one has none."""
    at = [POPULATION * generation for generation in generations]
    layers = [median_curve([run.get("history", []) for run in each.runs], at) for each in tries]
    counts = [each.of.layer.count for each in tries]
    return [None if any(value is None for value in column) else network_sum(zip(counts, column, strict=True))
            for column in zip(*layers, strict=True)]


def _gained(values: Sequence[float | None], first: float, last: float) -> float:
    """Return which part of the whole improvement, in logarithms, falls between two parts of the generations."""
    known = [value for value in values if value is not None]
    whole = math.log(known[0] / known[-1]) if known else 0.0
    begin, end = (values[max(0, round(len(values) * part) - 1)] for part in (first, last))
    if end is None:
        return 0.0
    return math.log((begin or known[0]) / end) / whole if whole > 0 else 1.0 if first == 0.0 else 0.0


def _generations_plot(curves: Mapping[tuple[str, str], list[float | None]], generations: range) -> Plot:
    data = [{"type": "scatter", "mode": "lines", "name": f"{NETWORKS[network]}, {label}", "x": list(generations),
             "y": values, "line": {"color": f"@curve-{index // 2}", "dash": "solid" if label == PAPER else "dot"}}
            for index, ((network, label), values) in enumerate(curves.items())]
    return Plot("generations", "Latency of the whole network over generations (S3 edge)", data, {
        "xaxis": {"title": {"text": f"generation of {POPULATION}"}},
        "yaxis": {"title": {"text": "cycles"}, "type": "log"}})

"""Ruby, figures 13 and 14: Eyeriss-like arrays from 2 x 7 to 16 x 16, area against EDP under three strategies."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Any

from tilewright.hardware import Accelerator
from tilewright.reproduce.ruby_contest import Entry, Layer, Match, change, network_layers, oracle_word, play, total
from tilewright.reproduce.ruby_fig11 import kernels
from tilewright.reproduce.ruby_machines import eyeriss_like
from tilewright.reproduce.running import Watch
from tilewright.reproduce.searching import bound_figures
from tilewright.reproduce.study import (
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Plot,
    Setting,
    Study,
    Table,
    Value,
    Verdict,
)

STRATEGIES = ("perfect", "padding", "ruby-s")
NAMES = {"perfect": "PFM", "padding": "PFM + padding", "ruby-s": "Ruby-S"}
ARRAYS = ((2, 7), (4, 6), (4, 8), (7, 6), (8, 8), (7, 12), (10, 10), (14, 8), (12, 12), (14, 12), (14, 14), (16, 16))
"""The paper names only the first and the last; those between are ours."""

CLAIMS13 = (
    Claim("(a) Ruby-S forms the Pareto front of area and EDP over ResNet-50", "all points of the front",
          "holds where every point of the common front is Ruby-S's or equals one of its, in direction where most are"),
    Claim("(b) and over a selection of DeepBench", "all points of the front", "as (a)"),
    Claim("Ruby-S consistently improves upon the alternatives", "on every array",
          "holds where its EDP is at most that of both others on every array and workload, in direction where it is on "
          "four out of five"),
)
CLAIMS14 = (
    Claim("(a) ResNet-50: the average improvement over all arrays is 24 % (20 % in the abstract)", "-24 %",
          "holds within 7 points, in direction for any other decrease"),
    Claim("(a) Some arrays see 60 %", "up to -60 % (55 % in the abstract)",
          "holds where the best gains 50 % or more, in direction where it gains 30 %"),
    Claim("(a) Arrays on the Pareto front see 50 % to 55 % (30 % on average in the abstract)", "-30 % to -55 %",
          "holds where their average is 30 % to 55 %, in direction for any other decrease"),
    Claim("(b) DeepBench: up to 55 %", "up to -55 %", "holds where the best gains 45 % or more, in direction where it "
          "gains 25 %"),
    Claim("(b) Arrays on the Pareto front gain 20 % on average", "-20 %",
          "holds within 7 points, in direction for any other decrease"),
)


@dataclass(frozen=True)
class Point:
    """One array under one strategy over one workload.

    ``edp`` is a network's energy times its cycles, and the geometric mean over kernels that do not belong together;
    cycles are summed.
    """

    array: tuple[int, int]
    strategy: str
    area_um2: float
    edp: float
    latency_cycles: float
    compute_cycles: float
    edp_bound: float


Workload = Callable[[int], list[Layer]]
WORKLOADS: dict[str, tuple[str, Workload]] = {
    "a": ("ResNet-50", lambda every: network_layers("resnet50", every=every)),
    "b": ("DeepBench selection", lambda every: kernels(8 * every)),
}


def sweep(setting: Setting, watch: Watch) -> tuple[dict[str, list[Point]], list[Entry]]:
    """Search all layers of both workloads on all arrays under all strategies."""
    matches = [Match(layer, eyeriss_like(*array), strategy, "row-stationary", setting["mapper"], setting["samples"])
               for _, workload in WORKLOADS.values() for array in setting["arrays"] for strategy in STRATEGIES
               for layer in workload(setting["every"])]
    entries = play(watch, matches, setting.seeds)
    left = iter(entries)
    points = {part: [_point(part, array, strategy, [next(left) for _ in workload(setting["every"])])
                     for array in setting["arrays"] for strategy in STRATEGIES]
              for part, (_, workload) in WORKLOADS.items()}
    return points, entries


def _point(part: str, array: tuple[int, int], strategy: str, entries: list[Entry]) -> Point:
    across, down = array
    machine = eyeriss_like(across, down)
    bounds = [_bound(entry, machine) for entry in entries]
    if part == "a":
        edp = total(entries, "edp")
        least = sum(bound["energy_pj"] for bound in bounds) * sum(
            max(bound["compute_cycles"], bound["data_cycles"]) for bound in bounds)
    else:
        edp = geometric_mean(entry["edp"] for entry in entries)
        least = geometric_mean(bound["edp"] / entry.match.layer.count for bound, entry in
                               zip(bounds, entries, strict=True))
    return Point((across, down), strategy, machine.area_um2, edp, total(entries, "latency_cycles"),
                 sum(bound["compute_cycles"] for bound in bounds), least)


def _bound(entry: Entry, machine: Accelerator) -> dict[str, float]:
    """Return the bounds of the layer as it is, not as it was padded, over all its repeats."""
    layer = entry.match.layer
    bound = bound_figures(layer.operator, machine, entry.match.space.constraints.keeps)
    return {name: layer.count * value for name, value in bound.items()}


def front(points: list[Point]) -> list[Point]:
    """Return the points that no other beats in both area and EDP, smallest area first; of equals all."""
    return sorted((point for point in points if not any(
        other.area_um2 <= point.area_um2 and other.edp <= point.edp
        and (other.area_um2 < point.area_um2 or other.edp < point.edp) for other in points)),
        key=lambda point: (point.area_um2, point.strategy))


def by_array(points: list[Point]) -> dict[tuple[int, int], dict[str, Point]]:
    """Return the points by array and strategy."""
    found: dict[tuple[int, int], dict[str, Point]] = {}
    for point in points:
        found.setdefault(point.array, {})[point.strategy] = point
    return found


def _table(part: str, points: list[Point], entries: list[Entry]) -> Table:
    best = set(front(points))
    rows: list[tuple[Value, ...]] = []
    for array, found in by_array(points).items():
        perfect, pad, ruby = (found[strategy] for strategy in STRATEGIES)
        on_front = ", ".join(NAMES[strategy] for strategy in STRATEGIES if found[strategy] in best)
        rows.append((f"{array[0]}x{array[1]}", perfect.area_um2 / 1e6, perfect.edp_bound, perfect.edp, pad.edp,
                     ruby.edp, ruby.edp / perfect.edp, ruby.edp / pad.edp, int(ruby.compute_cycles),
                     int(ruby.latency_cycles), on_front or "-"))
    return Table(f"arrays-{part}", f"({part}) {WORKLOADS[part][0]}: area against EDP", (
        "Array", "Area (mm2)", "EDP bound", "EDP PFM", "EDP PFM + padding", "EDP Ruby-S", "Ruby-S / PFM",
        "Ruby-S / padding", "Compute bound (cycles)", "Cycles Ruby-S", "On the front"), tuple(rows), (
        f"Area by the table 45nm; EDP is {_EDP[part]}, from the layers' median runs. " + oracle_word(entries),))


def run13(setting: Setting, watch: Watch) -> Findings:
    """Compare the fronts of area and EDP."""
    points, entries = sweep(setting, watch)
    judged: list[Judgement] = []
    for claim, part in zip(CLAIMS13, WORKLOADS, strict=False):
        best = front(points[part])
        equal = [any(mate.array == point.array and mate.strategy == "ruby-s" for mate in best) for point in best]
        verdict: Verdict = "holds" if all(equal) else "does not hold"
        if not all(equal) and sum(equal) > len(equal) / 2:
            verdict = "holds in direction"
        told = ", ".join(f"{point.array[0]}x{point.array[1]} {NAMES[point.strategy]}" for point in best)
        judged.append(Judgement(claim, f"{sum(equal)} of {len(equal)} points: {told}", verdict))
    judged.append(_consistent(points))
    return Findings(tuple(_table(part, found, entries) for part, found in points.items()), tuple(judged),
                    tuple(_front_plot(part, found) for part, found in points.items()),
                    (f"Medians of {len(entries)} searches over {setting.seeds} seeds, at equal samples.",))


def _consistent(points: dict[str, list[Point]]) -> Judgement:
    lost, cases = [], 0
    for part, found in points.items():
        for array, mates in by_array(found).items():
            cases += 1
            other = min((mates[strategy] for strategy in STRATEGIES[:2]), key=lambda point: point.edp)
            if mates["ruby-s"].edp > other.edp * (1 + 1e-9):
                lost.append(f"({part}) {array[0]}x{array[1]} {change(mates['ruby-s'].edp / other.edp)} against "
                            f"{NAMES[other.strategy]}")
    verdict: Verdict = "holds" if not lost else "holds in direction" if len(lost) <= cases / 5 else "does not hold"
    return Judgement(CLAIMS13[2], f"{cases - len(lost)} of {cases} cases{': not ' if lost else ''}{', '.join(lost)}",
                     verdict)


def run14(setting: Setting, watch: Watch) -> Findings:
    """Compare EDP array by array."""
    points, entries = sweep(setting, watch)
    gains = {part: {array: mates["ruby-s"].edp / mates["perfect"].edp for array, mates in by_array(found).items()}
             for part, found in points.items()}
    on_front = {part: fmean(gains[part][point.array] for point in front(
        [point for point in found if point.strategy == "ruby-s"])) for part, found in points.items()}
    mean, best = fmean(gains["a"].values()), {part: min(found.values()) for part, found in gains.items()}
    judged = (
        Judgement(CLAIMS14[0], change(mean), _within(mean, 0.76)),
        Judgement(CLAIMS14[1], f"up to {change(best['a'])}", _most(best["a"], 0.5, 0.7)),
        Judgement(CLAIMS14[2], change(on_front["a"]), "holds" if 0.45 <= on_front["a"] <= 0.7
                  else _most(on_front["a"], 0, 1)),
        Judgement(CLAIMS14[3], f"up to {change(best['b'])}", _most(best["b"], 0.55, 0.75)),
        Judgement(CLAIMS14[4], change(on_front["b"]), _within(on_front["b"], 0.8)),
    )
    return Findings(tuple(_table(part, found, entries) for part, found in points.items()), judged,
                    tuple(_gain_plot(part, found) for part, found in points.items()),
                    ("On the front: arrays that are on Ruby-S's own front of area and EDP.",))


def _within(value: float, published: float) -> Verdict:
    return "holds" if abs(value - published) <= 0.07 else "holds in direction" if value < 1 else "does not hold"


def _most(value: float, holds: float, direction: float) -> Verdict:
    return "holds" if value <= holds else "holds in direction" if value < direction else "does not hold"


_EDP = {"a": "the network's energy times its cycles", "b": "the geometric mean over kernels"}
_COLOURS = {"perfect": "@strong", "padding": "@curve-1", "ruby-s": "@curve-0"}


def _front_plot(part: str, points: list[Point]) -> Plot:
    data: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        own = [point for point in points if point.strategy == strategy]
        best = front(own)
        data.append({"type": "scatter", "mode": "lines", "name": f"front of {NAMES[strategy]}", "hoverinfo": "skip",
                     "x": [point.area_um2 / 1e6 for point in best], "y": [point.edp for point in best],
                     "line": {"color": _COLOURS[strategy], "shape": "hv", "width": 1}})
        data.append({"type": "scatter", "mode": "markers", "name": NAMES[strategy],
                     "x": [point.area_um2 / 1e6 for point in own], "y": [point.edp for point in own],
                     "customdata": [f"{point.array[0]}x{point.array[1]}" for point in own],
                     "hovertemplate": "%{customdata}: %{x:.2f} mm2, %{y:.3e}<extra>" + NAMES[strategy] + "</extra>",
                     "marker": {"color": _COLOURS[strategy], "size": 8}})
    return Plot(f"front-{part}", f"({part}) {WORKLOADS[part][0]}", data, {
        "xaxis": {"title": {"text": "Area (mm2)"}},
        "yaxis": {"type": "log", "title": {"text": "EDP (pJ x cycles)"}}})


def _gain_plot(part: str, points: list[Point]) -> Plot:
    found = by_array(points)
    labels = [f"{across}x{down}" for across, down in found]
    data = [{"type": "bar", "name": NAMES[strategy], "x": labels, "marker": {"color": _COLOURS[strategy]},
             "y": [mates[strategy].edp / mates["perfect"].edp for mates in found.values()]} for strategy in STRATEGIES]
    return Plot(f"gains-{part}", f"({part}) {WORKLOADS[part][0]}: EDP over that of PFM", data, {
        "barmode": "group", "xaxis": {"type": "category", "title": {"text": "Array"}},
        "yaxis": {"title": {"text": "EDP / EDP of PFM"}, "rangemode": "tozero"}})


_QUICK = Setting("quick", 3, {"mapper": "gamma", "samples": 2_000, "every": 3, "arrays": ARRAYS[::4] + ARRAYS[-1:]})
_FULL = Setting("full", 10, {"mapper": "gamma", "samples": 5_000, "every": 1, "arrays": ARRAYS})

REPRODUCTIONS.register("ruby-fig13")(Study(
    "ruby-fig13", "Arrays from 2x7 to 16x16: fronts of area and EDP under PFM, padding and Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 13", CLAIMS13, _QUICK, _FULL, run13))
REPRODUCTIONS.register("ruby-fig14")(Study(
    "ruby-fig14", "Arrays from 2x7 to 16x16: EDP of padding and Ruby-S over that of PFM",
    "Horeni et al., Ruby, ISPASS 2022, figure 14", CLAIMS14, _QUICK, _FULL, run14, cells="ruby-fig13"))

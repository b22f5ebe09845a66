"""Ruby, figures 13 and 14: Eyeriss-like arrays from 2 x 7 to 16 x 16, area against EDP under three strategies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, geometric_mean
from typing import Any

from tilewright.cost import network_sum
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, judge
from tilewright.reproduce.ruby_contest import (
    BESIDE,
    RANDOM,
    Entry,
    Match,
    change,
    eyeriss_like,
    network_total,
    oracle_word,
)
from tilewright.reproduce.ruby_layers import kernels
from tilewright.reproduce.searching import Layer, by_seed, network_layers, play
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction

STRATEGIES = ("perfect", "padding", "ruby-s")
NAMES = {"perfect": "PFM", "padding": "PFM + padding", "ruby-s": "Ruby-S"}
ARRAYS = ((2, 7), (4, 6), (4, 8), (7, 6), (8, 8), (7, 12), (10, 10), (14, 8), (12, 12), (14, 12), (14, 14), (16, 16))
"""The paper names only the first and the last; those between are ours."""

FRONTS_A, FRONTS_B, CONSISTENT = claims("ruby-fig13")
MEAN_A, BEST_A, FRONT_A, BEST_B, FRONT_B = claims("ruby-fig14")


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
    entries: Sequence[Entry] = field(compare=False)


WORKLOADS: dict[str, tuple[str, Callable[[int], list[Layer]]]] = {
    "a": ("ResNet-50", lambda every: network_layers("resnet50", every=every)),
    "b": ("DeepBench selection", lambda every: kernels(8 * every)),
}
Points = dict[str, list[Point]]
Measures = tuple[tuple[Claim, Callable[[Points], float], Callable[[float], str]], ...]


def sweep(setting: Setting, runner: Runner, mapper: str) -> tuple[Points, list[Points]]:
    """Search all layers of both workloads on all arrays under all strategies: points of median runs, and by seed."""
    parts = [(part, array, strategy) for part in WORKLOADS for array in setting["arrays"] for strategy in STRATEGIES]
    layers = {part: workload(setting["every"]) for part, (_, workload) in WORKLOADS.items()}
    matches = [Match(layer, eyeriss_like(*array), strategy, "row-stationary", mapper, setting["samples"])
               for part, array, strategy in parts for layer in layers[part]]
    found = play(runner, matches, lambda match: match.case(setting.seeds))

    def points(of: list[Entry]) -> Points:
        left, made = iter(of), Points({part: [] for part in WORKLOADS})
        for part, array, strategy in parts:
            entries = [next(left) for _ in layers[part]]
            edp = network_total(entries, "edp") if part == "a" else geometric_mean(entry["edp"] for entry in entries)
            made[part].append(Point(array, strategy, eyeriss_like(*array).area_um2, edp,
                                    network_total(entries, "latency_cycles"), entries))
        return made

    return points(found), [points(one) for one in by_seed(found)]


def _bounds(part: str, point: Point) -> tuple[float, float]:
    """Return the compute cycles and the EDP that nothing is below."""
    bounds = [(entry.of.layer.count, entry.of.bounds) for entry in point.entries]
    compute = network_sum((count, bound["compute_cycles"]) for count, bound in bounds)
    if part == "b":
        return compute, geometric_mean(bound["edp"] for _, bound in bounds)
    cycles = network_sum((count, max(bound["compute_cycles"], bound["data_cycles"])) for count, bound in bounds)
    return compute, cycles * network_sum((count, bound["energy_pj"]) for count, bound in bounds)


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


def _tables(found: Points) -> tuple[Table, ...]:
    word = oracle_word(entry for points in found.values() for point in points for entry in point.entries)
    return tuple(_table(part, points, word) for part, points in found.items())


def _table(part: str, points: list[Point], word: str) -> Table:
    best = front(points)
    rows: list[tuple[Value, ...]] = []
    for array, found in by_array(points).items():
        perfect, pad, ruby = (found[strategy] for strategy in STRATEGIES)
        on_front = ", ".join(NAMES[strategy] for strategy in STRATEGIES if found[strategy] in best)
        compute, bound = _bounds(part, perfect)
        rows.append((f"{array[0]}x{array[1]}", perfect.area_um2 / 1e6, bound, perfect.edp, pad.edp, ruby.edp,
                     ruby.edp / perfect.edp, ruby.edp / pad.edp, int(compute), int(ruby.latency_cycles),
                     on_front or "-"))
    return Table(f"arrays-{part}", f"({part}) {WORKLOADS[part][0]}: area against EDP", (
        "Array", "Area (mm2)", "EDP bound", "EDP PFM", "EDP PFM + padding", "EDP Ruby-S", "Ruby-S / PFM",
        "Ruby-S / padding", "Compute bound (cycles)", "Cycles Ruby-S", "On the front"), tuple(rows), (
        f"Area by the table 45nm; EDP is {_EDP[part]}, from the layers' median runs. " + word,))


def _compared(setting: Setting, runner: Runner, measures: Measures, plot: Callable[[str, list[Point]], Plot],
              *notes: str) -> Findings:
    """Judge measures by the mapper named first, and tell those of the others' median runs beside."""
    by_mapper = {mapper: sweep(setting, runner, mapper) for mapper in setting["mappers"]}
    found, seeds = next(iter(by_mapper.values()))
    judged = tuple(judge(claim, [measure(one) for one in seeds], ", ".join(
        f"{say(measure(points))} ({mapper})" for mapper, (points, _) in by_mapper.items()))
        for claim, measure, say in measures)
    return Findings(_tables(found), judged, tuple(plot(part, points) for part, points in found.items()),
                    (*notes, BESIDE))


_QUICK = Setting("quick", 3, {"mappers": (RANDOM,), "samples": 2_000, "every": 12, "arrays": ARRAYS[::5] + ARRAYS[-1:]})
_FULL = Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 5_000, "every": 1, "arrays": ARRAYS})


@reproduction("ruby-fig13", _QUICK, _FULL)
def run13(setting: Setting, runner: Runner) -> Findings:
    """Compare the fronts of area and EDP."""
    return _compared(setting, runner, (
        (FRONTS_A, lambda one: _front_share(one["a"]), "{:.0%}".format),
        (FRONTS_B, lambda one: _front_share(one["b"]), "{:.0%}".format),
        (CONSISTENT, _consistent, "{:.0%}".format)), _front_plot)


def _front_share(points: list[Point]) -> float:
    best = front(points)
    equal = [any(mate.array == point.array and mate.strategy == "ruby-s" for mate in best) for point in best]
    return sum(equal) / len(equal) if equal else 0.0


def _consistent(points: Points) -> float:
    least = [mates["ruby-s"].edp <= min(mates[strategy].edp for strategy in STRATEGIES[:2]) * (1 + 1e-9)
             for found in points.values() for mates in by_array(found).values()]
    return sum(least) / len(least)


def gains(points: list[Point]) -> dict[tuple[int, int], float]:
    """Return Ruby-S over perfect tiling by array."""
    return {array: mates["ruby-s"].edp / mates["perfect"].edp for array, mates in by_array(points).items()}


def _on_front(points: list[Point]) -> float:
    """Return the mean ratio of the arrays on Ruby-S's own front."""
    ratios = gains(points)
    return fmean(ratios[point.array] for point in front([one for one in points if one.strategy == "ruby-s"]))


@reproduction("ruby-fig14", _QUICK, _FULL, cells="ruby-fig13")
def run14(setting: Setting, runner: Runner) -> Findings:
    """Compare EDP array by array."""
    return _compared(setting, runner, (
        (MEAN_A, lambda one: fmean(gains(one["a"]).values()), change),
        (BEST_A, lambda one: min(gains(one["a"]).values()), change), (FRONT_A, lambda one: _on_front(one["a"]), change),
        (BEST_B, lambda one: min(gains(one["b"]).values()), change), (FRONT_B, lambda one: _on_front(one["b"]), change),
    ), _gain_plot, "On the front: arrays that are on Ruby-S's own front of area and EDP.")


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

"""Figure 5.4 of the map-space study: the map space in two dimensions, and what mappers sample of it."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from tilewright.base import has_extra
from tilewright.jobs import Runner
from tilewright.report import landscape_plots
from tilewright.reproduce.claims import Judgement, judge
from tilewright.reproduce.mse_fig5_3 import FULL_NETWORK, QUICK_NETWORK, Network, trained
from tilewright.reproduce.mse_study import SearchSetup, bound, published, scores_table, searches, space_of
from tilewright.reproduce.study import Cell, Findings, Setting, Table, Value, claims, reproduction
from tilewright.search.studies import ENCODING, Contender, Landscape, Points, study_landscape

MACHINE, NAME = "accel-a", "Resnet Conv_4"
GAMMA, RANDOM, OURS, MIND = "Gamma", "random-pruned", "our Gamma", "Mind Mappings"
NEAR = 2.0
"""A point is high-performing where its EDP is at most so many times the best known."""
FIRST, LAST = 200, 1000
"""Samples at the beginning and at the end of a search that are looked at."""
_SHOWN = 3000

UNIFORM = "uniform random"
LARGE, SCATTER, LOW, STARTS, REACHES, STOPS = claims("mse-fig5.4")


def contenders(network: Network | None) -> tuple[Contender, ...]:
    """Return whose samples are drawn; Mind Mappings with a network, if there is one."""
    found = (Contender(GAMMA, "gamma", published()), Contender(RANDOM, "random-pruned"), Contender(OURS, "gamma"))
    return found if network is None else (
        *found, Contender(MIND, "mind-mappings", {"surrogate": str(network.file)}))


@reproduction("mse-fig5.4", Setting("quick", 3, {"samples": 5_000, "points": 5_000, **QUICK_NETWORK}),
              Setting("full", 10, {"samples": 5_000, "points": 20_000, **FULL_NETWORK}),
              cells="mse-fig5.3")
def run(setting: Setting, runner: Runner) -> Findings:
    """Draw the space and search it with every seed; the picture is that of the first."""
    network = trained(runner, setting, MACHINE) if has_extra("learn") else None
    drawers = contenders(network)
    pictures = runner.run([_cell(seed, setting, drawers, network) for seed in range(setting.seeds)])
    searched = searches(runner, [SearchSetup(NAME, each.name, each.mapper, each.options, MACHINE)
                                   for each in drawers if each.name != MIND], setting)
    first = pictures[0]
    drawn = Landscape(NAME, MACHINE, "edp", "pJ x cycles", tuple(first["explained"]), first["features"], ((), ()),
                      _points(first["shown"]["random"]), {each.name: _points(first["shown"][each.name])
                                                          for each in drawers}, first["bound"])
    tables = (_table(pictures, setting, [each.name for each in drawers]),
              scores_table(searched, GAMMA, "The best mappings that were sampled"))
    return Findings(tables, _judge(pictures), landscape_plots(drawn), (
        f"The picture: {ENCODING} The paper names no encoding. Its two axes hold {first['explained'][0]:.1%} and "
        f"{first['explained'][1]:.1%} of the variance of {first['features']} features.",
        "Random mappings are drawn uniformly, as Timeloop draws factors and orders. Our mappers, random-pruned too, "
        "begin from draws spread over all scales of tiles.", *((
            "Mind Mappings is left out: the extra learn (PyTorch) is not installed.",) if network is None else ())))


def _cell(seed: int, setting: Setting, drawers: Sequence[Contender], network: Network | None) -> Cell:
    """Return the cell of one picture: what was counted, and some of the points."""
    points, samples = setting["points"], setting["samples"]

    def compute() -> dict[str, Any]:
        space = space_of(NAME, MACHINE)
        found = study_landscape(space, drawers, points=points, budget=samples, seed=seed, uniform=True)
        goal = NEAR * found.best
        return {
            "explained": list(found.explained), "features": found.features, "bound": found.bound, "best": found.best,
            "random": {"near": found.background.near(goal), "spread": _spread(found.background),
                       "median": float(np.median(found.background.scores)) / found.best},
            "mappers": {name: {"near": trail.near(goal), "best": float(trail.scores.min()), "legal": len(trail),
                               "first": _part(trail, 0, FIRST).near(goal),
                               "last": _part(trail, samples - LAST, samples).near(goal)}
                        for name, trail in {UNIFORM: _part(found.background, 0, samples), **found.trails}.items()},
            "distances": {name: found.distance(name) for name in found.trails},
            "shown": {name: _plain(trail.thinned(_SHOWN)) for name, trail in
                      (("random", found.background), *found.trails.items())} if seed == 0 else {},
        }

    key = {"picture of": NAME, "machine": MACHINE, "points": points, "samples": samples, "seed": seed,
           "contenders": [each.name for each in drawers], "network": dict(network.terms) if network else None}
    return Cell(key, compute, points + len(drawers) * samples)


def _part(points: Points, after: int, until: int) -> Points:
    return points.take(np.flatnonzero((points.samples > after) & (points.samples <= until)))


def _spread(points: Points) -> float:
    """Return how far the best 1 % spread around their middle, over how far all do around theirs."""
    best = points.take(np.argsort(points.scores)[:max(2, len(points) // 100)])
    return math.sqrt((best.x.var() + best.y.var()) / (points.x.var() + points.y.var()))


def _plain(points: Points) -> list[list[float]]:
    return [[round(float(value), 3) for value in row] for row in (points.x, points.y)] + [
        [float(score) for score in points.scores], [int(sample) for sample in points.samples]]


def _points(plain: Sequence[Sequence[float]]) -> Points:
    x, y, scores, samples = (np.array(row) for row in plain)
    return Points(x, y, scores, samples.astype(np.int64))


def _table(pictures: Sequence[Mapping[str, Any]], setting: Setting, names: Sequence[str]) -> Table:
    rows: list[tuple[Value, ...]] = [("random mappings", setting["points"], None, 100 * median(
        each["random"]["near"] for each in pictures), None, None, None)]
    for name in (UNIFORM, *names):
        told = [each["mappers"][name] for each in pictures]
        rows.append((name, int(median(each["legal"] for each in told)), median(
            each["mappers"][name]["best"] / each["best"] for each in pictures),
            *(100 * median(each[part] for each in told) for part in ("near", "first", "last")),
            median(each["distances"][name] for each in pictures) if name != UNIFORM else None))
    limits = bound(NAME, space_of(NAME, MACHINE).accelerator)
    return Table("points", f"Legal mappings of {NAME} on Accel-A, {setting.seeds} seeds", (
        "Points", "Legal", "Best over best known", "High-performing (%)", f"of the first {FIRST} (%)",
        f"of the last {LAST:,} (%)", "Best point's distance"), tuple(rows), (
        f"Medians over seeds. High-performing: EDP at most {NEAR:g} times the best known of the seed. Best known of "
        f"all: {min(each['best'] for each in pictures):.4g} pJ x cycles; bound {limits['edp']:.4g}. Distance: from the "
        "middle of the random mappings in the picture, over their root mean square distance.",))


def _judge(pictures: Sequence[Mapping[str, Any]]) -> tuple[Judgement, ...]:
    random, gamma = ([each["mappers"][name] for each in pictures] for name in (UNIFORM, GAMMA))
    pruned = median(each["mappers"][RANDOM]["near"] for each in pictures)
    near, spread = ([each["random"][name] for each in pictures] for name in ("near", "spread"))
    over = [each["best"] / whole["best"] for each, whole in zip(random, pictures, strict=True)]
    first, last = ([each[part] for each in gamma] for part in ("first", "last"))
    return (
        judge(LARGE, [1 - each for each in near], f"{median(near):.1%} of random mappings are within twice the best"),
        judge(SCATTER, spread, f"the best 1 % spread {median(spread):.2f} times as far as all"),
        judge(LOW, [float(each > NEAR) for each in over],
              f"{median(each['near'] for each in random):.1%} of its points are high-performing, the best "
              f"{median(over):.2f} times the best known; random-pruned {pruned:.1%}"),
        judge(STARTS, [1 - each for each in first], f"{median(first):.1%} of its first {FIRST} are",
              "populations here begin from draws spread over all scales of tiles"),
        judge(REACHES, last, f"{median(last):.1%} of its last {LAST:,}"),
        _stops(pictures))


def _stops(pictures: Sequence[Mapping[str, Any]]) -> Judgement:
    if MIND not in pictures[0]["mappers"]:
        return Judgement(STOPS, "not measured", "not judged", "the extra learn (PyTorch) is not installed")
    minds = [each["mappers"][MIND] for each in pictures]
    over = [mind["best"] / each["best"] for mind, each in zip(minds, pictures, strict=True)]
    first, last = (median(each[part] for each in minds) for part in ("first", "last"))
    return judge(STOPS, [((mind["last"] > mind["first"]) + (best > 1.05)) / 2
                         for mind, best in zip(minds, over, strict=True)],
                 f"{first:.1%} of its first {FIRST}, {last:.1%} of its last {LAST:,}; its best {median(over):.2f} "
                 "times the best known")

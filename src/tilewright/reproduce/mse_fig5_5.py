"""Figure 5.5 of the map-space study: one axis of mappings explored at a time."""

import math
from dataclasses import replace
from functools import cache, partial
from statistics import fmean

import numpy as np

from tilewright.cost import DenseModel
from tilewright.jobs import Runner
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.report import contest_plot
from tilewright.reproduce.claims import Judgement, judge, lower
from tilewright.reproduce.mse_study import (
    SIZES,
    Found,
    SearchSetup,
    contest_of,
    published,
    scores_table,
    searches,
    space_of,
)
from tilewright.reproduce.searching import by_seed
from tilewright.reproduce.study import Cell, Findings, Setting, Table, claims, reproduction
from tilewright.search.studies import AXES, AxisStudy, axis_sets, axis_space, base_mapping, label, median_interval

MACHINE = "accel-b"
FULL = "Gamma"
_DRAWN = 20_000
_SPREAD = 1000.0

TILE, LEAST, ENOUGH, SPREAD = claims("mse-fig5.5", SPREAD=_SPREAD)


@reproduction("mse-fig5.5", Setting("quick", 3, {"samples": 5_000, "workloads": 3}),
              Setting("full", 10, {"samples": 5_000, "workloads": 3}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search with one mutation at a time, and with any mapper in spaces where other axes are fixed."""
    names = tuple(SIZES)[:setting["workloads"]]
    mutated = searches(runner, [
        SearchSetup(name, title, "gamma", options, MACHINE)
        for name in names for title, options in (
            (FULL, published()), *((f"mutate {axis}", published([axis], crossover=False)) for axis in AXES))], setting)
    alone = searches(runner, [SearchSetup(name, label(axes), "gamma", {}, MACHINE, partial(_fixed, name, axes))
                                for name in names for axes in axis_sets()], setting)
    spreads = runner.run([_spread(name) for name in names])
    studies = {name: _study(alone, name) for name in names}
    worst = {name: spread["worst"] / min(min(tried.scores) for (where, _), tried in {**mutated, **alone}.items()
                                         if where == name) for name, spread in zip(names, spreads, strict=True)}
    plots = tuple(contest_plot(contest_of(mutated, name, [FULL, *(f"mutate {axis}" for axis in AXES)]), "samples",
                               title=(f"curves-{place}", f"{name} on Accel-B, by what is mutated"))
                  for place, name in enumerate(names))
    fixed = replace(scores_table(alone, label(AXES), "Our Gamma in spaces of some axes"), name="fixed")
    return Findings((scores_table(mutated, FULL, "Gamma's published operators, one axis at a time"), _shares(studies),
                     fixed), _judge(mutated, studies, worst), plots, (
        "In the first table the population is random in all axes and one kind of mutation goes on from there, as "
        "published. In the others every seed has one random mapping, and what is fixed is left out of the space.",))


@cache
def _fixed(name: str, axes: tuple[str, ...], seed: int) -> tuple[MapSpace, MappingBatch]:
    base = _begin(name, seed)
    return axis_space(space_of(name, MACHINE), base, axes), base


@cache
def _begin(name: str, seed: int) -> MappingBatch:
    return base_mapping(space_of(name, MACHINE), seed)


def _spread(name: str) -> Cell:
    """Return the cell of the worst of many random legal mappings."""
    def compute() -> dict[str, float]:
        space = space_of(name, MACHINE)
        costs = DenseModel(space.operator, space.accelerator).score(space.sample(np.random.default_rng(0), _DRAWN))
        return {"worst": float((costs.latency_cycles * costs.energy_pj)[costs.legal].max())}

    return Cell({"workload": name, "machine": MACHINE, "random": _DRAWN}, compute, _DRAWN)


def _study(alone: Found, name: str) -> AxisStudy:
    contest = contest_of(alone, name, [label(axes) for axes in axis_sets()])
    space = space_of(name, MACHINE)
    model = DenseModel(space.operator, space.accelerator)
    bases = [model.cost(_begin(name, seed).mapping(0, space.operator.sizes)).edp for seed in contest.seeds]
    return AxisStudy(contest, tuple(bases), "gamma")


def _shares(studies: dict[str, AxisStudy]) -> Table:
    rows = []
    for name, study in studies.items():
        for axis in AXES:
            gain, alone, fixed, share = (median_interval(values).median for values in (
                study.gains([axis]), study.alone(axis), study.fixed(axis), study.shares(axis)))
            rows.append((name, axis, 10**gain, 100 * alone, 100 * fixed, 100 * share))
    return Table("shares", "What each axis gains over a random mapping, others fixed", (
        "Workload", "Axis", "Gain alone (x)", "Of the gain of all (%)", "Lost where it is fixed (%)", "Share (%)"),
        tuple(rows), ("Medians over seeds, in logarithms. Share: Shapley value; those of a seed add up to 100 %.",))


def _judge(mutated: Found, studies: dict[str, AxisStudy], worst: dict[str, float]) -> tuple[Judgement, ...]:
    def over_tile(name: str, axis: str) -> float:
        return mutated[name, f"mutate {axis}"]["edp"] / mutated[name, "mutate tile"]["edp"]

    others = [(name, axis) for name in studies for axis in AXES[1:]]
    shares = {name: {axis: study.shares(axis) for axis in AXES} for name, study in studies.items()}
    tiles = {name: study.alone("tile") for name, study in studies.items()}
    seeds = range(len(next(iter(tiles.values()))))
    return (
        judge(TILE, [lower((one[name, "mutate tile"]["edp"], one[name, f"mutate {axis}"]["edp"])
                           for name, axis in others) for one in by_seed(mutated)],
              "; ".join(f"{name}: " + ", ".join(f"{axis} {over_tile(name, axis):.2f}x" for axis in AXES[1:])
                        + " of tile's EDP" for name in studies),
              "spreading a dimension resizes the tiles around the array too; the next claim is judged with tiles "
              "fixed"),
        judge(LEAST, [lower((shares[name][axis][seed], shares[name]["tile"][seed]) for name, axis in others)
                      for seed in seeds],
              "; ".join(f"{name}: " + ", ".join(f"{axis} {median_interval(values).median:.0%}"
                                                for axis, values in each.items()) for name, each in shares.items())),
        judge(ENOUGH, [fmean(values[seed] for values in tiles.values()) for seed in seeds],
              ", ".join(f"{name} {median_interval(values).median:.0%}" for name, values in tiles.items())),
        judge(SPREAD, max(worst.values()),
              ", ".join(f"{name} 10^{math.log10(value):.1f}" for name, value in worst.items())))

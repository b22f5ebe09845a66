"""Figures 5.5 to 5.7 of the map-space study: axes of mappings one by one, what crossover is worth, all loop orders."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import fmean, median
from typing import Any

import numpy as np

from tilewright.cost import DenseModel
from tilewright.jobs import Runner
from tilewright.mapping import MappingBatch, MapSpace, dump_mapping, load_mapping
from tilewright.report import contest_plot, orders_plot
from tilewright.reproduce.claims import Judgement, judge, lower, part_of
from tilewright.reproduce.gamma_contest import baselines
from tilewright.reproduce.mse_study import (
    SIZES,
    Found,
    SearchSetup,
    bound,
    contest_of,
    oracle_words,
    published,
    scores_table,
    searches,
    space_of,
)
from tilewright.reproduce.searching import by_seed, oracle_cell, said
from tilewright.reproduce.study import Cell, Findings, Setting, Table, claims, reproduction
from tilewright.search.studies import (
    AXES,
    CROSSOVER_ONLY,
    AxisStudy,
    OrderStudy,
    axis_sets,
    axis_space,
    base_mapping,
    label,
    median_interval,
    study_orders,
)

MACHINE = "accel-b"
_DRAWN = 20_000
_SPREAD = 1000.0

TILE, LEAST, ENOUGH, SPREAD = claims("mse-fig5.5", SPREAD=_SPREAD)


@reproduction("mse-fig5.5", Setting("quick", 3, {"samples": 5_000, "workloads": 3}),
              Setting("full", 10, {"samples": 5_000, "workloads": 3}))
def run55(setting: Setting, runner: Runner) -> Findings:
    """Search with one mutation at a time, and with any mapper in spaces where other axes are fixed."""
    names = tuple(SIZES)[:setting["workloads"]]
    mutated = searches(runner, [
        SearchSetup(name, title, "gamma", options, MACHINE)
        for name in names for title, options in (
            (FULL, published()), *((f"mutate {axis}", published([axis], crossover=False)) for axis in AXES))], setting)
    alone = searches(runner, [SearchSetup(name, label(axes), "gamma", {}, MACHINE, partial(_fixed, name, axes))
                                for name in names for axes in axis_sets()], setting)
    spreads = runner.run([_spread(name) for name in names])
    studies = {name: _axis_study(alone, name) for name in names}
    worst = {name: spread["worst"] / min(min(tried.scores) for (where, _), tried in {**mutated, **alone}.items()
                                         if where == name) for name, spread in zip(names, spreads, strict=True)}
    plots = tuple(contest_plot(contest_of(mutated, name, [FULL, *(f"mutate {axis}" for axis in AXES)]), "samples",
                               title=(f"curves-{place}", f"{name} on Accel-B, by what is mutated"))
                  for place, name in enumerate(names))
    fixed = replace(scores_table(alone, label(AXES), "Our Gamma in spaces of some axes"), name="fixed")
    return Findings((scores_table(mutated, FULL, "Gamma's published operators, one axis at a time"), _shares(studies),
                     fixed), _judge_axes(mutated, studies, worst), plots, (
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


def _axis_study(alone: Found, name: str) -> AxisStudy:
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


def _judge_axes(mutated: Found, studies: dict[str, AxisStudy], worst: dict[str, float]) -> tuple[Judgement, ...]:
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


FULL, WITHOUT, ONLY, STANDARD = "Gamma", "without crossover", "crossover only", "standard GA"
OURS, OURS_WITHOUT, OURS_ONLY = "our Gamma", "ours without crossover", "ours, crossover only"
TEN = 10.0

ORDER, HUGE, INADEQUATE, BEST = claims("mse-fig5.6", ORDER=TEN)


@reproduction("mse-fig5.6", Setting("quick", 5, {"samples": 5_000, "workloads": 3}),
              Setting("full", 10, {"samples": 5_000, "workloads": 3}))
def run56(setting: Setting, runner: Runner) -> Findings:
    """Search with and without crossover, with nothing else, and without domain operators."""
    names = tuple(SIZES)[:setting["workloads"]]
    ready, missing = baselines()
    methods = [(FULL, "gamma", published()), (WITHOUT, "gamma", published(crossover=False)),
               (ONLY, "gamma", published(())), (OURS, "gamma", {}), (OURS_WITHOUT, "gamma", {"crossover": 0.0}),
               (OURS_ONLY, "gamma", {name: float(rate) for name, rate in CROSSOVER_ONLY.items()}),
               *((STANDARD, method.mapper, {}) for method in ready if method.label == STANDARD)]
    found = searches(runner, [SearchSetup(name, title, mapper, options, MACHINE)
                                for name in names for title, mapper, options in methods], setting)
    labels = [title for title, _, _ in methods]
    plots = tuple(contest_plot(contest_of(found, name, labels), "samples", bands=False,
                               title=(f"curves-{place}", f"{name} on Accel-B")) for place, name in enumerate(names))
    notes = [f"Gamma has its published operators at rates of 0.5; ours has the extensions of this mapper, at its rates "
             f"({OURS_ONLY}: crossover at 1)."]
    notes.append("The standard GA was not measured: what it needs is not installed." if STANDARD in missing else
                 "The standard GA sees mappings as shares of the logarithms of sizes, and is told how far over the "
                 "memories a mapping is, which is kinder than tile sizes themselves and one penalty.")
    return Findings((scores_table(found, FULL, "Gamma with and without crossover"),), _judge_crossover(found, names),
                    plots, tuple(notes))


def _judge_crossover(found: Found, names: tuple[str, ...]) -> tuple[Judgement, ...]:
    seeds = by_seed(found)
    rivals = [title for title in (WITHOUT, ONLY, STANDARD) if (names[0], title) in found]

    def told(title: str, of: str = FULL) -> str:
        return ", ".join(f"{name} {found[name, title]['edp'] / found[name, of]['edp']:.2f}x" for name in names)

    def higher(*titles: str) -> list[float]:
        return [lower((one[name, FULL]["edp"], one[name, title]["edp"]) for name in names for title in titles)
                for one in seeds]

    lowest = {name: min([FULL, *rivals], key=lambda title: found[name, title]["edp"]) for name in names}
    ten = Judgement(ORDER, "not measured", "not judged", "no standard GA can be built here")
    if STANDARD in rivals:
        ten = judge(ORDER, [min(one[name, STANDARD]["edp"] / one[name, FULL]["edp"] for name in names)
                            for one in seeds], f"{told(STANDARD)}; over our Gamma: {told(STANDARD, OURS)}")
    return (
        ten, judge(HUGE, higher(WITHOUT), f"{told(WITHOUT)}; ours: {told(OURS_WITHOUT, OURS)}"),
        judge(INADEQUATE, higher(ONLY), f"{told(ONLY)}; ours: {told(OURS_ONLY, OURS)}"),
        judge(BEST, higher(*rivals), "lowest: " + ", ".join(f"{name} {title}" for name, title in lowest.items())))


NAME = "Resnet Conv_4"
VALUES, RATIO, ALL = 16, 14.4, 5_040

FEW, APART, OWN, BUCKETS = CLAIMS = claims("mse-fig5.7", FEW=VALUES / ALL, APART=RATIO, BUCKETS=ALL / VALUES)


@reproduction("mse-fig5.7", Setting("quick", 5, {"samples": 5_000}), Setting("full", 20, {"samples": 5_000}))
def run57(setting: Setting, runner: Runner) -> Findings:
    """Search a mapping with every seed and try all orders of each."""
    space = space_of(NAME, MACHINE)
    found = searches(runner, [SearchSetup(NAME, title, "gamma", options, MACHINE)
                                for title, options in ((FULL, published()), (OURS, {}))], setting)
    runs = [(title, seed, value["mapping"]) for (_, title), tried in found.items()
            for seed, value in enumerate(tried.runs) if value["edp"] is not None]
    told = runner.run([_orders_cell(title, seed, text) for title, seed, text in runs])
    checks = runner.run([oracle_cell({"workload": NAME, "orders of": seed}, space.operator, space.accelerator,
                                    each["mapping"]) for (_, seed, _), each in zip(runs, told, strict=True)])
    published_runs = [each for (title, _, _), each in zip(runs, told, strict=True) if title == FULL]
    rows = tuple((title, seed, each["groups"], each["latencies"], each["ratio"], each["own"] / each["best"],
                  100 * each["largest"] / ALL, each["best"], int(each["cycles"]), said(check))
                 for (title, seed, _), each, check in zip(runs, told, checks, strict=True))
    limits = bound(NAME, space.accelerator)
    table = Table("orders", f"All {ALL:,} orders of mappings of {NAME} on Accel-B", (
        "Found by", "Seed", "Different EDPs", "Different cycles", "Worst over best", "As found over best",
        "Largest group (%)", "EDP of the best order", "Its cycles", "Oracle"), rows, (
        f"No mapping has an EDP below {limits['edp']:.3g} pJ x cycles, or takes less than "
        f"{limits['compute_cycles']:,.0f} cycles. Oracle: on the best order.",
        f"The oracle confirms {sum(bool(check['agrees']) for check in checks)} of {len(checks)} mappings with the best "
        f"order, and {oracle_words(found).removeprefix('The oracle confirms ')}"))
    plots = tuple(orders_plot(_order_study(text), (
        f"orders-{place}", f"EDP of all {ALL:,} orders of a mapping by {title}"))
                  for place, (title, seed, text) in enumerate(runs) if seed == 0)
    return Findings((table, _groups(_order_study(runs[0][2]))), _judge_orders(published_runs, [
        each for (title, _, _), each in zip(runs, told, strict=True) if title == OURS]), plots)


def _order_study(text: str) -> OrderStudy:
    space = space_of(NAME, MACHINE)
    return study_orders(space.operator, space.accelerator, load_mapping(text, space.operator, space.accelerator))


def _orders_cell(title: str, seed: int, text: str) -> Cell:
    def compute() -> dict[str, Any]:
        space, found = space_of(NAME, MACHINE), _order_study(text)
        best = found.groups[0]
        return {"groups": len(found.groups), "latencies": found.latencies, "ratio": found.ratio, "own": found.own,
                "best": best.score, "cycles": best.latency_cycles, "largest": max(g.count for g in found.groups),
                "orders": found.orders, "mapping": dump_mapping(found.best_mapping, space.operator, space.accelerator)}

    return Cell({"orders of": title, "seed": seed, "mapping": text}, compute, ALL)


def _groups(found: OrderStudy) -> Table:
    rows = tuple((place + 1, group.score, group.score / found.groups[0].score, group.count, int(group.latency_cycles),
                  group.pattern) for place, group in enumerate(found.groups))
    return Table("groups", "Orders of equal EDP, first mapping", (
        "Group", "EDP", "Over best", "Orders", "Cycles", "Innermost loops, by memory"), rows, (
        "Innermost loops: of those that run more than once at the memory, the ones that some order of the group has "
        "innermost.",))


def _judge_orders(runs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> tuple[Judgement, ...]:
    def told(name: str, end: str = "") -> str:
        values, own = ([each[name] for each in some] for some in (runs, ours))
        return (f"{median(values):.3g}{end} (from {min(values):.3g} to {max(values):.3g})"
                + (f"; ours {median(own):.3g}{end}" if own else ""))

    places = [1 - part_of(each["own"] / each["best"], each["ratio"]) for each in runs]
    return (
        judge(FEW, [each["groups"] / ALL for each in runs], told("groups")),
        judge(APART, [each["ratio"] for each in runs], told("ratio", "x")),
        judge(OWN, places, f"{median(places):.2f} (from {min(places):.2f})"),
        judge(BUCKETS, [each["largest"] for each in runs], told("largest")))

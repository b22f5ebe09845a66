"""Figure 5.5 of the map-space study: one axis of mappings explored at a time."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from tilewright.cost import DenseModel
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.reproduce.mse_study import (
    SIZES,
    Entry,
    Found,
    contest_of,
    play,
    published,
    same_space,
    scores_table,
    space_of,
)
from tilewright.reproduce.running import Cell, Watch
from tilewright.reproduce.study import REPRODUCTIONS, Claim, Findings, Judgement, Setting, Study, Table, Verdict
from tilewright.reproduce.study_plots import contest_plot
from tilewright.search.studies import (
    AXES,
    AxisStudy,
    Contest,
    axis_sets,
    axis_space,
    base_mapping,
    label,
    median_interval,
)

MACHINE = "accel-b"
FULL = "Gamma"
_DRAWN = 20_000
_SPREAD = 1000.0

TILE = Claim("Mutating tiles has the highest impact on EDP of the three axes", "named (figure 5.5)",
             "holds where its median EDP is the lowest of the three on all workloads, in direction on most")
LEAST = Claim("Exploring order or parallelism is not as critical as exploring tiles", "named (takeaways)",
              "holds where tiles have the largest share of the gain (Shapley value in logarithms, from a random "
              "mapping, others fixed) on all workloads, in direction on most")
ENOUGH = Claim("A few random orders and parallelisms are often adequate for a competitive mapping", "named",
               "holds where tiles alone, from random populations, end at most 25 % above all of Gamma's operators on "
               "all workloads, in direction on most, or where at most twice as high on all")
SPREAD = Claim("Two mappings of one problem differ by up to three orders of magnitude", "1,000x",
               "holds where the worst of the random legal mappings costs 1,000 times the best known on some workload, "
               "in direction from 100 times")
CLAIMS = (TILE, LEAST, ENOUGH, SPREAD)


def run(setting: Setting, watch: Watch) -> Findings:
    """Search with one mutation at a time, and with any mapper in spaces where other axes are fixed."""
    names, seeds, samples = tuple(SIZES)[:setting["workloads"]], setting.seeds, setting["samples"]
    mutated = play(watch, [
        Entry(name, title, "gamma", options, same_space(name, MACHINE))
        for name in names for title, options in (
            (FULL, published()), *((f"mutate {axis}", published([axis], crossover=False)) for axis in AXES))],
        seeds, samples)
    alone = play(watch, [Entry(name, label(axes), "gamma", {}, _fixed(name, axes), _base(name))
                         for name in names for axes in axis_sets()], seeds, samples)
    spreads = watch.run([_spread(name) for name in names])
    studies = {name: _study(alone, name, seeds) for name in names}
    worst = {name: spread["worst"] / min(min(tried.scores) for (where, _), tried in {**mutated, **alone}.items()
                                         if where == name) for name, spread in zip(names, spreads, strict=True)}
    judged = (_tile(mutated, names), _least(studies), _enough(mutated, names), _wide(worst))
    plots = tuple(contest_plot(contest_of(mutated, name, [FULL, *(f"mutate {axis}" for axis in AXES)]), "samples",
                               title=(f"curves-{place}", f"{name} on Accel-B, by what is mutated"))
                  for place, name in enumerate(names))
    return Findings((scores_table(mutated, FULL, "Gamma's published operators, one axis at a time"),
                     _shares(studies), _renamed(scores_table(alone, label(AXES), "Our Gamma in spaces of some axes"))),
                    judged, plots, (
        "In the first table the population is random in all axes and one kind of mutation goes on from there, as "
        "published. In the others every seed has one random mapping, and what is fixed is left out of the space.",))


def _fixed(name: str, axes: tuple[str, ...]) -> Callable[[int], MapSpace]:
    return cache(lambda seed: axis_space(space_of(name, MACHINE), _begin(name, seed), axes))


def _base(name: str) -> Callable[[int], MappingBatch]:
    return lambda seed: _begin(name, seed)


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


def _study(alone: Found, name: str, seeds: int) -> AxisStudy:
    contest: Contest = contest_of(alone, name, [label(axes) for axes in axis_sets()])
    space = space_of(name, MACHINE)
    model = DenseModel(space.operator, space.accelerator)
    bases = [model.cost(_begin(name, seed).mapping(0, space.operator.sizes)).edp for seed in range(seeds)]
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


def _renamed(table: Table) -> Table:
    return Table("fixed", table.title, table.columns, table.rows, table.notes)


def most(holds: list[bool]) -> Verdict:
    """Return whether something is so on all workloads, on most, or not."""
    return "holds" if all(holds) else "holds in direction" if 2 * sum(holds) > len(holds) else "does not hold"


def _tile(mutated: Found, names: tuple[str, ...]) -> Judgement:
    ratios = {name: [mutated[name, f"mutate {axis}"].edp / mutated[name, "mutate tile"].edp for axis in AXES[1:]]
              for name in names}
    text = "; ".join(f"{name}: order {order:.2f}x, parallelism {parallel:.2f}x of tile's EDP"
                     for name, (order, parallel) in ratios.items())
    verdict = most([min(values) > 1 for values in ratios.values()])
    return Judgement(TILE, text, verdict, "" if verdict == "holds" else (
        "spreading a dimension resizes the tiles around the array too; the next claim is judged with tiles fixed"))


def _least(studies: dict[str, AxisStudy]) -> Judgement:
    shares = {name: [median_interval(study.shares(axis)).median for axis in AXES] for name, study in studies.items()}
    text = "; ".join(f"{name}: " + ", ".join(f"{axis} {share:.0%}" for axis, share in zip(AXES, values, strict=True))
                     for name, values in shares.items())
    return Judgement(LEAST, text, most([values[0] == max(values) for values in shares.values()]))


def _enough(mutated: Found, names: tuple[str, ...]) -> Judgement:
    over = {name: mutated[name, "mutate tile"].edp / mutated[name, FULL].edp for name in names}
    verdict = most([value <= 1.25 for value in over.values()])
    if verdict == "does not hold" and max(over.values()) <= 2:
        verdict = "holds in direction"
    return Judgement(ENOUGH, ", ".join(f"{name} {value:.2f}x" for name, value in over.items()), verdict)


def _wide(worst: dict[str, float]) -> Judgement:
    widest = max(worst.values())
    return Judgement(SPREAD, ", ".join(f"{name} 10^{math.log10(value):.1f}" for name, value in worst.items()),
                     "holds" if widest >= _SPREAD else "holds in direction" if widest >= 100 else "does not hold")


REPRODUCTIONS.register("mse-fig5.5")(Study(
    "mse-fig5.5", "One axis of mappings explored at a time, on Accel-B",
    "Kao, dissertation, Georgia Tech 2022, figure 5.5", CLAIMS,
    Setting("quick", 3, {"samples": 5_000, "workloads": 3}), Setting("full", 10, {"samples": 5_000, "workloads": 3}),
    run))

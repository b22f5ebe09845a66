"""DiGamma, figures 6.7 and 6.8: both at once against hardware alone and mappings alone, and what they find."""

from collections.abc import Mapping
from math import inf
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, cases, exact, follows, gain, judge, ratio
from tilewright.reproduce.digamma_designs import (
    DIGAMMA,
    ELEMENT_UM2,
    FLOWS,
    GRID,
    MACHINES,
    NETWORKS,
    OURS,
    TRAFFIC,
    Figures,
    Row,
    contest,
    judged_of,
    lead,
    over_table,
)
from tilewright.reproduce.study import Findings, Setting, Table, reproduction
from tilewright.workload import zoo

DLA, COMPUTE = "Grid + dla", "Compute + Gamma"
METHODS = (*FLOWS, *MACHINES, DIGAMMA, OURS)
SOURCE = "Kao, dissertation, Georgia Tech 2022, figure {}"
PUBLISHED: Mapping[Row, tuple[float, ...]] = {
    ("edge", "resnet18"): (7.8, 94.8, 29.8, 3.7, 2.4, 1.0, 0.8),
    ("edge", "resnet50"): (3.6, 88.4, 27.8, 3.7, 1.9, 1.0, 0.8),
    ("edge", "mobilenet-v2"): (2.4, 48.5, 15.9, 2.9, 1.8, 1.0, 0.7),
    ("edge", "mnasnet"): (2.5, 61.2, 20.5, 3.5, 2.0, 1.0, 0.7),
    ("edge", "bert-base"): (1.3, 4.1, 1.1, 5.6, 2.8, 1.0, 0.8),
    ("edge", "ncf"): (1.8, 908.0, 482.4, 5.2, 2.7, 1.0, 0.8),
    ("edge", "dlrm"): (1.8, 890.8, 473.4, 4.7, 2.4, 1.0, 1.0),
    ("cloud", "resnet18"): (8.6, 877.6, 275.7, 1.1, 1.2, 1.0, 0.2),
    ("cloud", "resnet50"): (3.4, 786.9, 141.0, 1.1, 0.9, 1.0, 0.4),
    ("cloud", "mobilenet-v2"): (3.2, 276.4, 90.6, 1.1, 0.9, 1.0, 0.4),
    ("cloud", "mnasnet"): (3.6, 322.6, 107.9, 1.1, 0.9, 1.0, 0.4),
    ("cloud", "bert-base"): (1.0, 100.3, 26.6, 3.0, 1.5, 1.0, 0.7),
    ("cloud", "ncf"): (1.0, 12288.1, 6528.1, 2.3, 1.2, 1.0, 0.9),
    ("cloud", "dlrm"): (1.3, 10846.3, 5763.9, 1.8, 1.1, 1.0, 0.7),
}
"""Latency over that of the compute-focused machine, by platform and network: all but our own tuning."""
STATED = {("edge", DLA): "3.25", ("cloud", DLA): "4.8", ("edge", COMPUTE): "1.25", ("cloud", COMPUTE): "2.0"}
GAINS = {(where, over): gain(
    f"{where.capitalize()}: it is faster than {'hardware alone, the best style' if over == DLA else 'mappings alone'}",
    f"{text}x", float(text), "the least geometric mean gain over " + (
        "the three styles" if over == DLA else "the three machines")) for (where, over), text in STATED.items()}
BEST = cases("DiGamma is the fastest, or ties", "14 of 14 rows", "the share of rows", none=1 / 7)
MEANS = exact("Gains of the text follow from the printed rows", "3.25x, 4.8x, 1.25x, 2.0x",
              "those that the rows can give, as they are rounded")
SETTING = {"samples": 40_000, "networks": tuple(NETWORKS), "traffic": ("free", "dram"), "rounds": 12}
QUICK = {"samples": 40_000, "networks": ("ncf", "dlrm"), "traffic": ("free",), "rounds": 0}


@reproduction("digamma-fig6.7", "Hardware and mapping at once against either alone", SOURCE.format("6.7"),
              (BEST, *GAINS.values(), MEANS), Setting("quick", 2, QUICK), Setting("full", 10, SETTING),
              cells="digamma-fig6.6")
def run67(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.7."""
    rows = [row for row in PUBLISHED if row[1] in setting["networks"]]
    runs = {free: contest(rows, METHODS, free, setting, runner) for free in setting.free}
    tables = [over_table(("free" if free else "limited", f"Latency over that of {COMPUTE}, {TRAFFIC[free]}"), found,
                         COMPUTE, PUBLISHED if free else None) for free, found in runs.items()]
    seeds = next(iter(runs.values())).seeds()
    judged = (judged_of(BEST, seeds, best_share, f" of {len(rows)} rows", len(rows)), *(
        judged_of(claim, seeds, lambda one, of, where=where, over=over: lead(
            one, where, of, tuple(FLOWS if over == DLA else MACHINES)))
        for (where, over), claim in GAINS.items()), means(PUBLISHED))
    return Findings(tuple(tables), judged, notes=(
        f"The grid has {len(GRID)} machines, and tiles of a style are as large as fit. Which machines were picked by "
        "hand is not told: here a quarter, half and three quarters of the area are elements, and the rest is both "
        "buffers in equal parts. Gamma has an equal share of the samples for each layer.",
        *(each.note for each in runs.values())))


def best_share(figures: Figures, method: str = DIGAMMA) -> float:
    """Return the share of rows where a method has the least latency of it and those that search one alone, or ties."""
    told = [row[method] <= 1.05 * min(row[name] for name in (*FLOWS, *MACHINES)) and row[method] < inf
            for row in figures.values()]
    return sum(told) / len(told)


def means(published: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the gains of the text by the printed rows."""
    stated = []
    for (where, over), text in STATED.items():
        mean = {name: (1.0, 1.0) if name == COMPUTE else between(
            values[METHODS.index(name)] for (platform, _), values in published.items() if platform == where)
            for name in (over, DIGAMMA)}
        stated.append((f"{where}, {over}", text, ratio(mean[over], mean[DIGAMMA])))
    return follows(MEANS, stated)


SOLUTIONS = {DLA: (448, 3.74e6, 1.99e5, 67), COMPUTE: (504, 1.14e6, 1.83e5, 39), DIGAMMA: (396, 9.80e5, 1.99e5, 56)}
"""Figure 6.8, MnasNet on the edge: elements, cycles, square micrometres (printed as mm2), percent of elements in it."""
HARDWARE = gain("DiGamma's design is faster than that of hardware alone", "3.8x", 3.8)
MAPPINGS = gain("It is faster than that of mappings alone", "1.6x; its figure gives 1.16x", 1.6)
PARALLEL = cases("Its mapping is parallel over filters and positions", "K and X",
                 "the share of multiply-accumulates in layers that spread filters, and positions: the lesser",
                 none=1 / 3)
RATIOS = exact("The gains of the text are those of the printed designs", "3.8x and 1.6x", "those that follow")
AREAS = exact("Printed shares of area are those of the printed elements", "67 : 33, 39 : 61, 56 : 44",
              f"those that {ELEMENT_UM2:g} um2 an element, as released, round to")
POSSIBLE = exact("No printed latency is below what so many elements allow", "3.74E+06, 1.14E+06, 9.80E+05 cycles",
                 "the share not below multiply-accumulates over elements")
Solutions = Mapping[str, tuple[float, ...]]


@reproduction("digamma-fig6.8", "What is found for MnasNet on the edge: cycles, area by part, what is parallel",
              SOURCE.format("6.8"), (HARDWARE, MAPPINGS, PARALLEL, RATIOS, AREAS, POSSIBLE),
              Setting("quick", 2, QUICK | {"networks": ("mnasnet",), "traffic": ("free", "dram")}),
              Setting("full", 10, SETTING | {"networks": ("mnasnet",)}), cells="digamma-fig6.6")
def run68(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.8."""
    row, names = ("edge", "mnasnet"), (*SOLUTIONS, OURS)
    runs = {free: contest([row], names, free, setting, runner) for free in setting.free}
    found = next(iter(runs.values()))

    def over(other: str) -> Any:
        return lambda one, of: lead(one, "edge", of, (other,))

    tables = tuple(_solutions(each.found[row], free) for free, each in runs.items())
    judged = (judged_of(HARDWARE, found.seeds(), over(DLA)), judged_of(MAPPINGS, found.seeds(), over(COMPUTE)),
              judge(PARALLEL, values := [_parallel(run) for run in found.found[row][DIGAMMA]],
                    f"{median(values):.0%} at the release's rates, "
                    f"{median(map(_parallel, found.found[row][OURS])):.0%} tuned"),
              ratios(SOLUTIONS), areas(SOLUTIONS), possible(SOLUTIONS))
    return Findings(tables, judged, notes=tuple(each.note for each in runs.values()))


def _parallel(run: Mapping[str, Any]) -> float:
    return 0.0 if run["latency"] is None else min(run["spread"]["filters"], run["spread"]["positions"])


def _solutions(found: Mapping[str, Any], free: bool) -> Table:
    """Return the design of median latency of each method beside the printed one."""
    rows = []
    for name, runs in found.items():
        elements, latency, area, share = SOLUTIONS.get(name, (None,) * 4)
        known = sorted((run for run in runs if run["latency"] is not None), key=lambda run: run["latency"])
        ours = known[(len(known) - 1) // 2] if known else None
        rows.append((name, elements, latency, area, share, *((None,) * 5 if ours is None else (
            ours["elements"], ours["latency"], ours["area"], round(100 * ours["elements"] * ELEMENT_UM2 / ours["area"]),
            ", ".join(f"{kind} {part:.0%}" for kind, part in ours["spread"].items())))))
    heads = ("elements", "cycles", "um2", "% elements")
    return Table("designs" if free else "designs-limited", f"Designs for MnasNet on the edge, {TRAFFIC[free]}", (
        "Method", *(f"Paper {head}" for head in heads), *(f"Ours {head}" for head in heads), "Ours spreads (of MACs)"),
        tuple(rows))


def ratios(printed: Solutions) -> Judgement:
    """Judge the gains of the text."""
    latency = {name: between([values[1]], 3) for name, values in printed.items()}
    return follows(RATIOS, [(name, text, ratio(latency[name], latency[DIGAMMA]))
                            for name, text in ((DLA, "3.8"), (COMPUTE, "1.6"))])


def areas(printed: Solutions) -> Judgement:
    """Judge the printed shares of area."""
    stated = []
    for name, (elements, _, area, share) in printed.items():
        low, high = ratio((elements, elements), between([area], 3))
        stated.append((name, f"{share:g}", (100 * ELEMENT_UM2 * low, 100 * ELEMENT_UM2 * high)))
    return follows(AREAS, stated)


def possible(printed: Solutions) -> Judgement:
    """Judge whether so few cycles can be."""
    bounds = {name: zoo.load("mnasnet").macs / values[0] for name, values in printed.items()}
    below = [name for name, bound in bounds.items() if printed[name][1] < bound]
    return judge(POSSIBLE, 1 - len(below) / len(bounds), "; ".join(
        f"{name} {bound:.2E}" for name, bound in bounds.items()), ", ".join(below), impossible=bool(below))



"""DiGamma, figures 6.6 to 6.8: both at once against eight optimisers, and against hardware or mappings alone."""

from collections.abc import Mapping, Sequence
from math import inf, isnan, nan
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, cases, exact, follows, gain, judge, ratio
from tilewright.reproduce.digamma_designs import (
    BUDGETS,
    DIGAMMA,
    ELEMENT_UM2,
    FLOWS,
    GRID,
    MACHINES,
    METHODS,
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

SOURCE = "Kao, dissertation, Georgia Tech 2022, figure {}"
TIED = 1.05
"""Figures that are no further apart are tied, as they are at the digits printed."""
WHOLE = {"samples": 40_000, "networks": tuple(NETWORKS), "traffic": ("free", "dram"), "rounds": 12}
FEW = {"networks": ("ncf", "dlrm"), "traffic": ("free",), "rounds": 0}


def best_share(figures: Figures, rivals: Sequence[str], method: str = DIGAMMA) -> float:
    """Return the share of rows where a method is the best, or tied with the best, of it and its rivals."""
    told = [row[method] <= TIED * min(row[name] for name in rivals) and row[method] < inf for row in figures.values()]
    return sum(told) / len(told)


BASELINES = tuple(METHODS)[:-2]
NAN = nan
LATENCY: Mapping[Row, tuple[float, ...]] = {
    ("edge", "resnet18"): (NAN, 4.7, 169.3, NAN, NAN, 0.8, 0.8, 1.0, 0.5),
    ("edge", "resnet50"): (NAN, NAN, 110.9, 0.7, 21.7, 1.1, 0.3, 1.0, 0.3),
    ("edge", "mobilenet-v2"): (NAN, 29.0, 1.0, 0.5, 0.5, 0.2, 3.7, 1.0, 0.2),
    ("edge", "mnasnet"): (NAN, 5.3, 27.6, 0.1, 33.5, 0.04, 0.04, 1.0, 0.04),
    ("edge", "bert-base"): (NAN, NAN, NAN, 1.0, 2.0, 10.0, 0.5, 1.0, 0.4),
    ("edge", "ncf"): (229.8, 88.4, NAN, 133.6, 0.5, NAN, 1.9, 1.0, 0.4),
    ("edge", "dlrm"): (304.7, 151.5, 1.2, 168.8, 2.8, 5.2, 15.6, 1.0, 0.8),
    ("cloud", "resnet18"): (NAN, 64.9, 1652.5, 0.4, 373.6, NAN, 0.3, 1.0, 0.03),
    ("cloud", "resnet50"): (NAN, 116.2, 1904.7, 3593.7, NAN, 1.5, 6.4, 1.0, 0.3),
    ("cloud", "mobilenet-v2"): (0.8, 0.8, 20.8, 0.8, 8.9, 3.2, 0.6, 1.0, 0.4),
    ("cloud", "mnasnet"): (NAN, 10.8, 0.2, 0.1, 0.2, NAN, 10.6, 1.0, 0.1),
    ("cloud", "bert-base"): (10669.5, 18.9, 27.2, 13173.1, 1043.3, 42.3, 2.3, 1.0, 1.2),
    ("cloud", "ncf"): (47.1, 15.0, 0.6, 0.3, 41.2, 0.6, 0.4, 1.0, 0.01),
    ("cloud", "dlrm"): (3481.5, 17.1, 0.8, 28.0, 54.1, 4230.0, 27.9, 1.0, 0.6),
}
"""Latency over that of CMA, by platform and network: the eight baselines and DiGamma; NaN where nothing was found."""
PRODUCT: Mapping[Row, tuple[float, ...]] = {
    ("edge", "resnet18"): (NAN, 6.3, 46.2, NAN, NAN, 1.2, 1.2, 1.0, 0.7),
    ("edge", "resnet50"): (NAN, NAN, 12.0, 0.7, 20.8, 1.1, 0.3, 1.0, 0.3),
    ("edge", "mobilenet-v2"): (NAN, 20.0, 1.1, 0.4, 0.6, 0.2, 2.7, 1.0, 0.2),
    ("edge", "mnasnet"): (NAN, 1.0, 2.5, 0.1, 35.3, 0.04, 0.04, 1.0, 0.05),
    ("edge", "bert-base"): (NAN, NAN, NAN, 0.7, 2.6, 13.2, 0.7, 1.0, 0.5),
    ("edge", "ncf"): (179.3, 78.4, NAN, 105.0, 0.5, NAN, 1.9, 1.0, 0.4),
    ("edge", "dlrm"): (211.2, 83.1, 1.2, 140.5, 1.6, 5.2, 15.8, 1.0, 0.7),
    ("cloud", "resnet18"): (NAN, 30.3, 19.1, 0.1, 201.7, NAN, 0.3, 1.0, 0.03),
    ("cloud", "resnet50"): (NAN, 113.9, 262.8, 1352.9, NAN, 1.4, 4.5, 1.0, 0.3),
    ("cloud", "mobilenet-v2"): (1.4, 1.4, 28.6, 1.4, 20.5, 6.1, 1.3, 1.0, 0.7),
    ("cloud", "mnasnet"): (NAN, 7.2, 0.2, 0.1, 0.3, NAN, 12.0, 1.0, 0.1),
    ("cloud", "bert-base"): (1528.0, 14.6, 12.0, 7659.3, 990.3, 35.8, 2.4, 1.0, 1.3),
    ("cloud", "ncf"): (39.2, 10.8, 0.8, 0.4, 14.9, 0.8, 0.6, 1.0, 0.01),
    ("cloud", "dlrm"): (2098.1, 8.8, 0.6, 16.0, 53.0, 760.0, 26.1, 1.0, 0.4),
}
"""The same of latency times area."""
FIGURES = {"latency": ("Latency", LATENCY), "product": ("Latency times area", PRODUCT)}

BEST6 = cases("DiGamma has the least latency of all methods, or ties", "13 of 14 rows", "the share of rows", 13 / 14,
             1 / 9)
BEST_PRODUCT = cases("It has the least latency times area, or ties", "12 of 14 rows", "the share of rows",
                     12 / 14, 1 / 9)
EDGE = gain("On the edge it is faster than the best baseline", "3.0x", 3.0,
            "the least of its geometric mean gains over each baseline, of rows where both found a design")
CLOUD = gain("In the cloud it is faster still", "10.0x", 10.0, "the same in the cloud")
MEANS6 = exact("Geometric means of the printed rows", "3.0x and 10.0x over the best baseline",
              "those that the printed rows can give, as they are rounded")
CLAIMS6 = (BEST6, BEST_PRODUCT, EDGE, CLOUD, MEANS6)


@reproduction("digamma-fig6.6", "Hardware and mapping in one search: DiGamma against eight optimisers, edge and cloud",
              SOURCE.format(6.6), CLAIMS6, Setting("quick", 2, {"samples": 600} | FEW), Setting("full", 10, WHOLE))
def run66(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.6."""
    rows = [row for row in LATENCY if row[1] in setting["networks"]]
    runs = {free: contest(rows, METHODS, free, setting, runner) for free in setting.free}
    tables = [over_table((f"{name}-{'free' if free else 'limited'}", f"{title} over that of CMA, {TRAFFIC[free]}"),
                         found, "CMA", published if free else None, name)
              for free, found in runs.items() for name, (title, published) in FIGURES.items()]
    found = next(iter(runs.values()))

    def beats(one: Figures, method: str) -> float:
        return best_share(one, BASELINES, method)

    judged = (
        *(judged_of(claim, found.seeds(name), beats, f" of {len(rows)} rows", len(rows))
          for claim, name in ((BEST6, "latency"), (BEST_PRODUCT, "product"))),
        *(judged_of(claim, found.seeds(), lambda one, of, where=where: lead(one, where, of, BASELINES))
          for claim, where in ((EDGE, "edge"), (CLOUD, "cloud"))),
        means6(LATENCY))
    return Findings(tuple(tables), judged, notes=(
        "Judged is DiGamma at its release's rates, with free traffic; every sample is one mapping of one layer, so "
        "that a network of many layers has few designs. Baselines are the mappers of those names, on points of "
        "hardware and mappings, to which all designs over the budget are alike.",
        "Published means leave out what found nothing, which favours methods that fail.",
        *(each.note for each in runs.values())))


def means6(published: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the means of the text: the best baseline's over DiGamma's, each of the rows where it found something."""
    stated = []
    for platform, text in zip(BUDGETS, ("3.0", "10.0"), strict=True):
        columns = list(zip(*(row for (where, _), row in published.items() if where == platform), strict=True))
        mean = [between(value for value in column if not isnan(value)) for column in columns]
        mean[-2] = (1.0, 1.0)  # of CMA, over which all are
        found = [ratio(one, mean[-1]) for one in mean[:-1]]
        stated.append((platform, text, (min(low for low, _ in found), min(high for _, high in found))))
    return follows(MEANS6, stated)


DLA, COMPUTE = "Grid + dla", "Compute + Gamma"
ENTRANTS = (*FLOWS, *MACHINES, DIGAMMA, OURS)
SCHEMES: Mapping[Row, tuple[float, ...]] = {
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
BEST7 = cases("DiGamma is the fastest, or ties", "14 of 14 rows", "the share of rows", none=1 / 7)
MEANS7 = exact("Gains of the text follow from the printed rows", "3.25x, 4.8x, 1.25x, 2.0x",
              "those that the rows can give, as they are rounded")


@reproduction("digamma-fig6.7", "Hardware and mapping at once against either alone", SOURCE.format(6.7),
              (BEST7, *GAINS.values(), MEANS7), Setting("quick", 2, {"samples": 40_000} | FEW),
              Setting("full", 10, WHOLE), cells="digamma-fig6.6")
def run67(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.7."""
    rows = [row for row in SCHEMES if row[1] in setting["networks"]]
    runs = {free: contest(rows, ENTRANTS, free, setting, runner) for free in setting.free}
    tables = [over_table(("free" if free else "limited", f"Latency over that of {COMPUTE}, {TRAFFIC[free]}"), found,
                         COMPUTE, SCHEMES if free else None) for free, found in runs.items()]
    seeds = next(iter(runs.values())).seeds()

    def beats(one: Figures, method: str) -> float:
        return best_share(one, (*FLOWS, *MACHINES), method)

    judged = (judged_of(BEST7, seeds, beats, f" of {len(rows)} rows", len(rows)), *(
        judged_of(claim, seeds, lambda one, of, where=where, over=over: lead(
            one, where, of, tuple(FLOWS if over == DLA else MACHINES)))
        for (where, over), claim in GAINS.items()), means7(SCHEMES))
    return Findings(tuple(tables), judged, notes=(
        f"The grid has {len(GRID)} machines, and tiles of a style are as large as fit. Which machines were picked by "
        "hand is not told: here a quarter, half and three quarters of the area are elements, and the rest is both "
        "buffers in equal parts. Gamma has an equal share of the samples for each layer.",
        *(each.note for each in runs.values())))


def means7(published: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the gains of the text by the printed rows."""
    stated = []
    for (where, over), text in STATED.items():
        mean = {name: (1.0, 1.0) if name == COMPUTE else between(
            values[ENTRANTS.index(name)] for (platform, _), values in published.items() if platform == where)
            for name in (over, DIGAMMA)}
        stated.append((f"{where}, {over}", text, ratio(mean[over], mean[DIGAMMA])))
    return follows(MEANS7, stated)


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
              SOURCE.format(6.8), (HARDWARE, MAPPINGS, PARALLEL, RATIOS, AREAS, POSSIBLE),
              Setting("quick", 2, WHOLE | {"networks": ("mnasnet",), "rounds": 0}),
              Setting("full", 10, WHOLE | {"networks": ("mnasnet",)}), cells="digamma-fig6.6")
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



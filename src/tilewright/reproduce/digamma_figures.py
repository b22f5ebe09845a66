"""DiGamma, figures 6.6 to 6.8: both at once against eight optimisers, and against hardware or mappings alone."""

from collections.abc import Mapping, Sequence
from math import inf, isnan
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, follows, judge, ratio
from tilewright.reproduce.confuciux_tables import TIED
from tilewright.reproduce.digamma_designs import (
    BUDGETS,
    DIGAMMA,
    ELEMENT_UM2,
    FLOWS,
    GENES,
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
from tilewright.reproduce.searching import median_run
from tilewright.reproduce.study import Findings, Setting, Table, claims, published, reproduction
from tilewright.workload import zoo

WHOLE = {"samples": 40_000, "networks": tuple(NETWORKS), "traffic": ("free", "dram"), "rounds": 12}
FEW = {"networks": ("ncf", "dlrm"), "traffic": ("free",), "rounds": 0}


def best_share(figures: Figures, rivals: Sequence[str], method: str = DIGAMMA) -> float:
    """Return the share of rows where a method is the best, or tied with the best, of it and its rivals."""
    told = [row[method] <= TIED * min(row[name] for name in rivals) and row[method] < inf for row in figures.values()]
    return sum(told) / len(told)


BASELINES = tuple(name for name, (_, options) in METHODS.items() if options is GENES)
LATENCY, PRODUCT, SCHEMES = (
    {(platform, network): row for (platform, network), row in published(f"digamma-{name}").items()}
    for name in ("fig6.6-latency", "fig6.6-product", "fig6.7"))
"""Latency over that of CMA, by platform and network: the eight baselines and DiGamma, NaN where nothing was found; the
same of latency times area; latency over that of the compute-focused machine, of all but our own tuning."""
FIGURES = {"latency": ("Latency", LATENCY), "product": ("Latency times area", PRODUCT)}

BEST6, BEST_PRODUCT, EDGE, CLOUD, MEANS6 = claims("digamma-fig6.6")


@reproduction("digamma-fig6.6", Setting("quick", 2, {"samples": 600} | FEW), Setting("full", 10, WHOLE), version=2)
def run66(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.6."""
    rows = [row for row in LATENCY if row[1] in setting["networks"]]
    runs = {free: contest(rows, METHODS, free, setting, runner) for free in setting.free}
    tables = [over_table((f"{name}-{'free' if free else 'limited'}", f"{title} over that of CMA, {TRAFFIC[free]}"),
                         found, "CMA", printed if free else None, name)
              for free, found in runs.items() for name, (title, printed) in FIGURES.items()]
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
        "that a network of many layers has few designs. Baselines are the mappers of those names, on points that "
        "stand for DiGamma's genes (figure 6.3), tiles even in their logarithm; to them, designs over the budget are "
        "alike. By these genes each level spreads one dimension; auto may spread several.",
        "Published means leave out what found nothing, which favours methods that fail.",
        *(each.note for each in runs.values())))


def means6(printed: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the means of the text: the best baseline's over DiGamma's, each of the rows where it found something."""
    stated = []
    for platform, text in zip(BUDGETS, ("3.0", "10.0"), strict=True):
        columns = list(zip(*(row for (where, _), row in printed.items() if where == platform), strict=True))
        mean = [between(value for value in column if not isnan(value)) for column in columns]
        mean[-2] = (1.0, 1.0)  # of CMA, over which all are
        found = [ratio(one, mean[-1]) for one in mean[:-1]]
        stated.append((platform, text, (min(low for low, _ in found), min(high for _, high in found))))
    return follows(MEANS6, stated)


DLA, COMPUTE = "Grid + dla", "Compute + Gamma"
ENTRANTS = (*FLOWS, *MACHINES, DIGAMMA, OURS)
STATED = {("edge", DLA): "3.25", ("cloud", DLA): "4.8", ("edge", COMPUTE): "1.25", ("cloud", COMPUTE): "2.0"}
BEST7, *_GAINS, MEANS7 = claims("digamma-fig6.7", 1.0, *map(float, STATED.values()))
GAINS = dict(zip(STATED, _GAINS, strict=True))


@reproduction("digamma-fig6.7", Setting("quick", 2, {"samples": 40_000} | FEW), Setting("full", 10, WHOLE),
              cells="digamma-fig6.6")
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


def means7(printed: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the gains of the text by the printed rows."""
    stated = []
    for (where, over), text in STATED.items():
        mean = {name: (1.0, 1.0) if name == COMPUTE else between(
            values[ENTRANTS.index(name)] for (platform, _), values in printed.items() if platform == where)
            for name in (over, DIGAMMA)}
        stated.append((f"{where}, {over}", text, ratio(mean[over], mean[DIGAMMA])))
    return follows(MEANS7, stated)


SOLUTIONS = {DLA: (448, 3.74e6, 1.99e5, 67), COMPUTE: (504, 1.14e6, 1.83e5, 39), DIGAMMA: (396, 9.80e5, 1.99e5, 56)}
"""Figure 6.8, MnasNet on the edge: elements, cycles, square micrometres (printed as mm2), percent of elements in it."""
HARDWARE, MAPPINGS, PARALLEL, RATIOS, AREAS, POSSIBLE = claims("digamma-fig6.8")
Solutions = Mapping[str, tuple[float, ...]]


@reproduction("digamma-fig6.8", Setting("quick", 2, WHOLE | {"networks": ("mnasnet",), "rounds": 0}),
              Setting("full", 10, WHOLE | {"networks": ("mnasnet",)}),
              cells="digamma-fig6.6")
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
        ours = median_run(runs, "latency")
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



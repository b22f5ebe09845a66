"""DiGamma, figure 6.6: hardware and mappings together against eight optimisers, seven networks on edge and cloud."""

from collections.abc import Mapping
from math import inf, isnan, nan

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, cases, exact, follows, gain, ratio
from tilewright.reproduce.digamma_designs import (
    BUDGETS,
    DIGAMMA,
    METHODS,
    NETWORKS,
    TRAFFIC,
    Figures,
    Row,
    contest,
    judged_of,
    lead,
    over_table,
)
from tilewright.reproduce.study import Findings, Setting, reproduction

BASELINES = tuple(METHODS)[:-2]
NAN = nan
LATENCY: Mapping[tuple[str, str], tuple[float, ...]] = {
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
PRODUCT: Mapping[tuple[str, str], tuple[float, ...]] = {
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
TIED = 1.05
"""Figures that are no further apart are tied, as they are at the digits printed."""

BEST = cases("DiGamma has the least latency of all methods, or ties", "13 of 14 rows", "the share of rows", 13 / 14,
             1 / 9)
BEST_PRODUCT = cases("It has the least latency times area, or ties", "12 of 14 rows", "the share of rows",
                     12 / 14, 1 / 9)
EDGE = gain("On the edge it is faster than the best baseline", "3.0x", 3.0,
            "the least of its geometric mean gains over each baseline, of rows where both found a design")
CLOUD = gain("In the cloud it is faster still", "10.0x", 10.0, "the same in the cloud")
MEANS = exact("Geometric means of the printed rows", "3.0x and 10.0x over the best baseline",
              "those that the printed rows can give, as they are rounded")
CLAIMS = (BEST, BEST_PRODUCT, EDGE, CLOUD, MEANS)

_QUICK = Setting("quick", 2, {"samples": 600, "networks": ("ncf", "dlrm"), "traffic": ("free",), "rounds": 0})
_FULL = Setting("full", 10, {"samples": 40_000, "networks": tuple(NETWORKS), "traffic": ("free", "dram"), "rounds": 12})


@reproduction("digamma-fig6.6", "Hardware and mapping in one search: DiGamma against eight optimisers, edge and cloud",
              "Kao, dissertation, Georgia Tech 2022, figure 6.6", CLAIMS, _QUICK, _FULL)
def run66(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.6."""
    rows = [row for row in LATENCY if row[1] in setting["networks"]]
    runs = {free: contest(rows, METHODS, free, setting, runner) for free in setting.free}
    tables = [over_table((f"{name}-{'free' if free else 'limited'}", f"{title} over that of CMA, {TRAFFIC[free]}"),
                         found, "CMA", published if free else None, name)
              for free, found in runs.items() for name, (title, published) in FIGURES.items()]
    found = next(iter(runs.values()))
    judged = (
        *(judged_of(claim, found.seeds(name), best_share, f" of {len(rows)} rows", len(rows))
          for claim, name in ((BEST, "latency"), (BEST_PRODUCT, "product"))),
        *(judged_of(claim, found.seeds(), lambda one, of, where=where: lead(one, where, of, BASELINES))
          for claim, where in ((EDGE, "edge"), (CLOUD, "cloud"))),
        means(LATENCY))
    return Findings(tuple(tables), judged, notes=(
        "Judged is DiGamma at its release's rates, with free traffic; every sample is one mapping of one layer, so "
        "that a network of many layers has few designs. Baselines are the mappers of those names, on points of "
        "hardware and mappings, to which all designs over the budget are alike.",
        "Published means leave out what found nothing, which favours methods that fail.",
        *(each.note for each in runs.values())))


def best_share(figures: Figures, method: str = DIGAMMA) -> float:
    """Return the share of rows where a method is the best, or tied with the best, of it and all baselines."""
    told = [row[method] <= TIED * min(row[name] for name in BASELINES) and row[method] < inf
            for row in figures.values()]
    return sum(told) / len(told)


def means(published: Mapping[Row, tuple[float, ...]]) -> Judgement:
    """Judge the means of the text: the best baseline's over DiGamma's, each of the rows where it found something."""
    stated = []
    for platform, text in zip(BUDGETS, ("3.0", "10.0"), strict=True):
        columns = list(zip(*(row for (where, _), row in published.items() if where == platform), strict=True))
        mean = [between(value for value in column if not isnan(value)) for column in columns]
        mean[-2] = (1.0, 1.0)  # of CMA, over which all are
        found = [ratio(one, mean[-1]) for one in mean[:-1]]
        stated.append((platform, text, (min(low for low, _ in found), min(high for _, high in found))))
    return follows(MEANS, stated)

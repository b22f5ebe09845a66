"""DiGamma, figure 6.6: hardware and mappings together against eight optimisers, seven networks on edge and cloud."""

import math
from collections.abc import Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, cases, exact, gain, judge, printed
from tilewright.reproduce.digamma_designs import (
    BASELINES,
    BUDGETS,
    DIGAMMA,
    METHODS,
    NETWORKS,
    OURS,
    bound_cell,
    confirmed_note,
    design_cell,
)
from tilewright.reproduce.study import Findings, Setting, Table, Value, reproduction

NAN = math.nan
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
TRAFFIC = {True: "free traffic, as published", False: "the platform's DRAM and ports"}
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
              "those that the printed rows give, at the digits printed")
CLAIMS = (BEST, BEST_PRODUCT, EDGE, CLOUD, MEANS)

Row = tuple[str, str]
Figures = Mapping[Row, Mapping[str, float]]
"""By platform and network, by method; infinite where nothing was found."""

_QUICK = Setting("quick", 2, {"samples": 600, "networks": ("ncf", "dlrm"), "traffic": (True,), "rounds": 0})
_FULL = Setting("full", 10, {"samples": 40_000, "networks": tuple(NETWORKS), "traffic": (True, False), "rounds": 12})


@reproduction("digamma-fig6.6", "Hardware and mapping in one search: DiGamma against eight optimisers, edge and cloud",
              "Kao, dissertation, Georgia Tech 2022, figure 6.6", CLAIMS, _QUICK, _FULL)
def run66(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 6.6."""
    rows = [row for row in LATENCY if row[1] in setting["networks"]]
    tables, judged, checked = [], tuple[Judgement, ...](), list[tuple[Sequence[Any], Mapping[str, Any]]]()
    for free in setting["traffic"]:
        asked = [(network, platform, free) for platform, network in rows]
        cells = [design_cell(of, method, setting["samples"], seed) for of in asked for method in METHODS
                 for seed in range(setting.seeds)]
        values = iter(runner.run(cells))
        found = {row: {method: [next(values) for _ in range(setting.seeds)] for method in METHODS} for row in rows}
        checked += [((network, platform, free), found[platform, network][method][0])
                    for platform, network in rows for method in (DIGAMMA, OURS)]
        bounds = runner.run([bound_cell(of, setting["rounds"]) for of in asked])
        least = {row: float(bound["latency"]) for row, bound in zip(rows, bounds, strict=True)}
        seeds = {name: [{row: {method: figure(runs[seed], name) for method, runs in by_method.items()}
                         for row, by_method in found.items()} for seed in range(setting.seeds)] for name in FIGURES}
        tables += [_table(name, free, seeds[name], least) for name in FIGURES]
        judged = judged or _judged(seeds)
    return Findings(tuple(tables), judged, notes=(
        "Judged is DiGamma at its release's rates, with free traffic; every sample is one mapping of one layer, so "
        "that a network of many layers has few designs. Baselines are the mappers of those names, on points of "
        "hardware and mappings, to which all designs over the budget are alike.",
        "Published means leave out what found nothing, which favours methods that fail.",
        confirmed_note(runner, checked)))


def figure(run: Mapping[str, Any], name: str) -> float:
    """Return latency, or its product with the area; infinite where nothing was found."""
    if run["latency"] is None:
        return math.inf
    return float(run["latency"]) * (float(run["area"]) if name == "product" else 1.0)


def best_share(figures: Figures, method: str = DIGAMMA) -> float:
    """Return the share of rows where a method is the best, or tied with the best, of it and all baselines."""
    told = [row[method] <= TIED * min(row[name] for name in BASELINES) and row[method] < math.inf
            for row in figures.values()]
    return sum(told) / len(told)


def lead(figures: Figures, platform: str, method: str = DIGAMMA) -> float:
    """Return the least geometric mean gain over a baseline, of rows where both found a design."""
    gains = []
    for name in BASELINES:
        pairs = [row[name] / row[method] for (where, _), row in figures.items()
                 if where == platform and max(row[name], row[method]) < math.inf]
        gains += [geometric_mean(pairs)] if pairs else []
    return min(gains, default=NAN)


def published_leads() -> tuple[float, ...]:
    """Return by platform what the printed rows give: the best baseline's geometric mean over DiGamma's."""
    found = []
    for platform in BUDGETS:
        columns = list(zip(*(row for (where, _), row in LATENCY.items() if where == platform), strict=True))
        means = [geometric_mean(value for value in column if not math.isnan(value)) for column in columns]
        found.append(min(means[:-1]) / means[-1])
    return tuple(found)


def _judged(seeds: Mapping[str, Sequence[Figures]]) -> tuple[Judgement, ...]:
    def told(values: Sequence[float], ours: Sequence[float], unit: str) -> str:
        return f"{_middle(values)}{unit} at the release's rates, {_middle(ours)}{unit} tuned"

    rows = len(seeds["latency"][0])
    found = []
    for claim, name in ((BEST, "latency"), (BEST_PRODUCT, "product")):
        shares, ours = ([best_share(one, method) for one in seeds[name]] for method in (DIGAMMA, OURS))
        found.append(judge(claim, shares, told([rows * each for each in shares], [rows * each for each in ours],
                                               f" of {rows} rows")))
    for claim, platform in ((EDGE, "edge"), (CLOUD, "cloud")):
        leads, ours = ([lead(one, platform, method) for one in seeds["latency"]] for method in (DIGAMMA, OURS))
        found.append(judge(claim, leads, told(leads, ours, "x")))
    means = published_leads()
    agree = [printed(round(mean, 1), theirs) for mean, theirs in zip(means, (3.0, 10.0), strict=True)]
    return (*found, judge(MEANS, sum(agree) / len(agree), " and ".join(f"{mean:.1f}x" for mean in means),
                          "0.159 is printed as 0.1, and the means leave out what found nothing"))


def _middle(values: Sequence[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return f"{median(known):.3g}" if known else "none"


def _table(name: str, free: bool, seeds: Sequence[Figures], least: Mapping[Row, float]) -> Table:
    """Return the medians over seeds, over that of CMA, beside the published ones in brackets."""
    title, published = FIGURES[name]
    columns = ("Platform", "Network", *METHODS, f"{OURS} (cycles)" if name == "latency" else f"{OURS} (cycles um2)",
               *(("No machine below (cycles)",) if name == "latency" else ()))
    rows: list[tuple[Value, ...]] = []
    for row, theirs in published.items():
        if row not in least:
            continue
        middle = {method: median(one[row][method] for one in seeds) for method in METHODS}
        cells = [f"{_over(middle[method], middle['CMA'])}{f' ({_shown(value)})' if free and value is not None else ''}"
                 for method, value in zip(METHODS, (*theirs, None), strict=True)]
        best = middle[OURS]
        rows.append((row[0], NETWORKS[row[1]], *cells, best if best < math.inf else None,
                     *((least[row],) if name == "latency" else ())))
    return Table(f"{name}-{'free' if free else 'limited'}", f"{title} over that of CMA, {TRAFFIC[free]}", columns,
                 tuple(rows), ("Medians over seeds (published in brackets). N/A: nothing within the budget in half the "
                               "seeds; where CMA found nothing, figures are not put over it.",) if free else ())


def _over(value: float, base: float) -> str:
    if value == math.inf:
        return "N/A"
    return f"{value / base:.3g}" if base < math.inf else f"{value:.3g}"


def _shown(value: float) -> str:
    return "N/A" if math.isnan(value) else f"{value:g}"

"""ConfuciuX, table 8.8: layers of a pipeline on an FPGA's elements, by both stages, beside bound and optimum."""

from collections.abc import Mapping
from statistics import geometric_mean
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, cases, exact, gain, judge
from tilewright.reproduce.confuciux_allocation import confirmed_note, method_cell, optimum_cell, shown
from tilewright.reproduce.searching import median_run
from tilewright.reproduce.study import Findings, Setting, Table, reproduction

PUBLISHED: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("fpga-cloud", "resnet50"): (2.352e8, 2.346e8, 2.2e8, 8.1e7, 6.6e7),
    ("fpga-cloud", "mobilenet-v2"): (2.5e7, 2.3e7, 2.0e7, 9.4e6, 6.0e6),
    ("fpga-edge", "resnet50"): (1.8e9, 1.5e9, 1.2e9, 1.1e9, 8.0e8),
    ("fpga-edge", "mobilenet-v2"): (1.13e8, 1.08e8, 6.9e7, 8.7e7, 5.7e7),
}
"""Cycles: the same pair for all layers, then both stages in NVDLA's style, then both with a choice of styles."""
COLUMNS = ("baseline-dla", "dla global", "dla fine-tuned", "MIX global", "MIX fine-tuned")


def _mean(place: int, other: int) -> float:
    return geometric_mean(row[place] / row[other] for row in PUBLISHED.values())


POSSIBLE = exact("No published latency is below what so many elements allow",
                 "8.0E+08 cycles on 256 elements (ResNet-50)",
                 "the share of figures not below (sum of sqrt(MACs))^2 / elements")
FIRST = cases("The first stage in NVDLA's style beats one pair for all layers", "4 of 4 rows", "the share of rows")
SECOND = gain("Fine-tuning improves the first stage in NVDLA's style", "7 % to 36 %; its table gives 6.2 % to 36 %",
              _mean(1, 2), "the geometric mean of global over fine-tuned")
MIX = gain("Both stages with a choice of styles beat one pair for all layers",
           "50 % to 72 %; its table gives 50 % to 76 %", _mean(0, 4), "the geometric mean of baseline over fine-tuned")
CLAIMS = (POSSIBLE, FIRST, SECOND, MIX)
Where = tuple[str, str]


@reproduction("confuciux-table8.8", "Elements and buffers of an FPGA for the layers of a pipeline: both stages",
              "Kao, dissertation, Georgia Tech 2022, table 8.8 (Kao et al., ConfuciuX, MICRO 2020)", CLAIMS,
              Setting("quick", 2, {"epochs": 4_500, "networks": ("mobilenet-v2",)}),
              Setting("full", 10, {"epochs": 45_000, "networks": ("resnet50", "mobilenet-v2")}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Let the method allocate with every seed, in one style and with a choice."""
    rows = [where for where in PUBLISHED if where[1] in setting["networks"]]
    asked = [(network, style, within, "latency", True) for within, network in rows for style in ("dla", "MIX")]
    every = [(network, style, within, "latency", True) for within, network in PUBLISHED for style in ("dla", "MIX")]
    optima = dict(zip(every, runner.run([optimum_cell(of) for of in every]), strict=True))
    values = iter(runner.run([method_cell(of, "confuciux", setting["epochs"], seed) for of in asked
                              for seed in range(setting.seeds)]))
    found = {of: [next(values) for _ in range(setting.seeds)] for of in asked}

    def at(where: Where, seed: int | None) -> tuple[float, ...]:
        within, network = where
        both = [(network, style, within, "latency", True) for style in ("dla", "MIX")]
        runs = [found[of][seed] if seed is not None else median_run(found[of], "last") or found[of][0] for of in both]
        return (float(optima[both[0]]["uniform"]), *(float(run[stage]) for run in runs for stage in ("first", "last")))

    seeds = [[at(where, seed) for where in rows] for seed in range(setting.seeds)]
    first = [sum(row[1] < row[0] for row in each) / len(each) for each in seeds]
    judged = (
        _possible(optima), judge(FIRST, first, f"{sum(first) * len(rows) / len(seeds):.3g} of {len(rows)}"),
        *(judge(claim, ratios, f"{geometric_mean(ratios):.2f} times") for claim, ratios in (
            (SECOND, _ratios(seeds, 1, 2)), (MIX, _ratios(seeds, 0, 4)))))
    table = Table("allocations", "Latency (cycles) within an FPGA's elements and buffers: medians over seeds",
                  ("Budget", "Network", *(f"{who} {column}" for who in ("Paper", "Ours") for column in COLUMNS),
                   "Optimum dla", "Optimum MIX", "Bound", "Above the optimum"),
                  tuple(_row(where, at(where, None), optima) for where in rows),
                  (" ".join(confirmed_note(runner, network, "MIX") for network in setting["networks"]),
                   "Bytes are those of one element of each layer; elements from 1 to 128, all of them. The first stage "
                   "has a ninth of the epochs and the levels of table 8.1."))
    return Findings((table,), judged)


def _ratios(seeds: list[list[tuple[float, ...]]], place: int, other: int) -> list[float]:
    return [geometric_mean(row[place] / row[other] for row in rows) for rows in seeds]


def _possible(optima: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> Judgement:
    bounds = {(of[2], of[0]): float(found["bound"]) for of, found in optima.items()}
    below = [(where, value) for where, bound in bounds.items() for value in PUBLISHED[where] if value < bound]
    whole = sum(len(PUBLISHED[where]) for where in bounds)
    told = ", ".join(f"{where[1]} within {where[0]}: {bound:.2E}" for where, bound in bounds.items())
    return judge(POSSIBLE, 1 - len(below) / whole, f"bounds {told}", "; ".join(
        f"{value:.1E} is published for {where[1]} within {where[0]}" for where, value in below), impossible=bool(below))


def _row(where: Where, ours: tuple[float, ...], optima: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> tuple[Any, ...]:
    dla, mix = (optima[where[1], style, where[0], "latency", True] for style in ("dla", "MIX"))
    return (*where, *(f"{value:.1E}" for value in PUBLISHED[where]), *(shown(value) for value in ours),
            shown(dla["optimum"]), shown(mix["optimum"]), f"{mix['bound']:.2E}",
            f"{100 * (ours[2] / dla['optimum'] - 1):.0f} %, {100 * (ours[4] / mix['optimum'] - 1):.0f} %")

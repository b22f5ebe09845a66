"""SAGAR, table II and figures 7e, 8b and 9: what links carry, which learner tells configurations, and in how long."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from tilewright.cost import SAGAR, ArrayConfiguration, ReconfigurableArray, partitioned_counts, systolic_runtime
from tilewright.jobs import Runner
from tilewright.recommendation import (
    BASELINES,
    NETWORKS,
    AdviserCore,
    Choices,
    Fallback,
    LabelledProducts,
    ProductSample,
    best_fixed,
    cycles_on_cells,
    label,
    score,
    train_recommender,
    training_options,
)
from tilewright.reproduce.claims import counted, judge, listed, right
from tilewright.reproduce.study import Cell, Findings, Setting, Table, claims, reproduction
from tilewright.reproduce.study import Value as Entry

FIXED, FIXED_SHARE = 0.108, 0.945
"""Always 32x32 of 4x4, os: as few cycles as the best, and their geometric mean, on 200,000 uniform products."""
TESTED, UNSEEN = 20_000, 200_000
"""Products that slow learners are tested on at most, and networks."""
BATCH, STARTS = 1024, 20
"""Products between two steps of networks, and fresh starts of terms at most."""
OURS = ("fixed", "adaptnet", "terms")
"""Who learns from all products; of the other learners, networks make passes over some, and the rest fit some."""
LIVE = ("Stall-free, only configurations of 4x4 cells are ever the best: {} of {} classes here. Accuracy is told among "
        "these; 'same cycles' counts equally good ones as right.")
Value = Mapping[str, Any]
FLOWS = {"os": ("m", "n", "k"), "ws": ("k", "n", "m"), "is": ("k", "m", "n")}
"""What lies along rows, along columns, and streams."""


@lru_cache(2)
def labels_of(macs: int, samples: int, seed: int) -> tuple[Choices, LabelledProducts]:
    """Return uniform products with the best of all published configurations of an array."""
    choices = Choices(ReconfigurableArray(macs), "published")
    return choices, label(choices, ProductSample("uniform", samples, seed))


def _learnt(macs: int, learner: str, samples: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train a network, or fit a baseline, and test it on products that it has not seen."""
    choices, known = labels_of(macs, samples, seed)
    shown, unseen = known.parts
    unseen, began = unseen.rows(slice(None, UNSEEN)), time.process_time()
    if learner in NETWORKS:
        passes = STARTS if NETWORKS.get(learner).adds else epochs
        done = train_recommender(choices, shown, learner, training_options(learner, passes, BATCH, seed))
        spent, told = time.process_time() - began, done.recommender.judged(unseen)
        safe = done.recommender.judged(unseen, Fallback())
        return {**asdict(told), **{f"safe_{name}": value for name, value in asdict(safe).items()},
                "calibration_error": done.calibration_error, "cpu_seconds": spent, "samples": samples}
    if learner == "fixed":
        advice, spent = np.full(len(unseen.products), best_fixed(choices, shown)), 0.0
    else:
        unseen = unseen.rows(slice(None, TESTED))
        classify = BASELINES.get(learner)(shown, seed)
        spent = time.process_time() - began
        advice = classify(unseen.products)
    return {**asdict(score(learner, choices, unseen, advice)), "cpu_seconds": spent, "samples": samples}


def _runs(setting: Setting, runner: Runner, asked: Sequence[tuple[int, str]]) -> dict[tuple[int, str], list[Value]]:
    """Return what came of learners on arrays, by seed."""
    cells = []
    for seed, (macs, learner) in product(range(setting.seeds), asked):
        samples, epochs = (setting[name] for name in (
            ("samples", "epochs") if learner in OURS else ("other_samples", "other_epochs")))
        cells.append(Cell({"macs": macs, "learner": learner, "samples": samples, "epochs": epochs, "seed": seed},
                          partial(_learnt, macs, learner, samples, epochs, seed)))
    found: list[Value] = [*runner.run(cells)]
    return {each: found[at::len(asked)] for at, each in enumerate(asked)}


def _table(found: Mapping[tuple[int, str], Sequence[Value]], published: Mapping[tuple[int, str], str]) -> Table:
    def middle(values: Sequence[Value], name: str) -> str:
        return f"{median(float(value[name]) for value in values):.2%}" if name in values[0] else ""

    def least(values: Sequence[Value], name: str) -> str:
        return f"{min(float(value[name]) for value in values):.2%}" if name in values[0] else ""

    shares = ("same_class", "same_cycles", "mean_share", "worst_share", "calibration_error", "safe_mean_share",
              "safe_worst_share", "safe_searched")
    rows: list[tuple[Entry, ...]] = [(
        macs, learner, published.get((macs, learner), ""),
        *((least if "worst" in name else middle)(values, name) for name in shares),
        *(f"{median(value[name] for value in values):.0f}" for name in ("live", "cpu_seconds")))
        for (macs, learner), values in found.items()]
    return Table("learners", "Who tells the best configuration", (
        "MACs", "Learner", "Published", "Same class", "Same cycles", "Of the best, mean", "Worst", "Calibration error",
        "Mean with fallback", "Worst with fallback", "All looked at", "Classes told", "CPU s"), tuple(rows), (
        "Medians over seeds; the worst of all seeds. 'terms' is ours: sums of products of terms, learnt from the "
        "cycles of all live classes on 4,000 products, where others are shown the best class. With "
        f"fallback {Fallback().top} guesses are scored, and all configurations looked at where the best of these takes "
        f"{Fallback().within:.0%} more than a bound.",))


def _notes(macs: int, samples: int) -> tuple[str, ...]:
    """Return how many classes live, and whether the labels agree with each configuration counted by itself."""
    choices, known = labels_of(macs, samples, 0)
    wrong = 0
    for each, cycles in zip(known.products[:4].tolist(), known.cycles[:4], strict=True):
        least = min(_alone(each, one) for one in choices.configurations[::7] + _best_of(choices, each))
        wrong += least != cycles
    return (LIVE.format(len(known.live), len(choices.configurations)),
            f"Labels {'disagree' if wrong else 'agree'} with configurations counted alone on {4 - wrong} of 4.")


def _best_of(choices: Choices, product: Sequence[int]) -> tuple[ArrayConfiguration, ...]:
    return (choices.configurations[choices.best(np.array([product])).classes[0]],)


def _alone(product: Sequence[int], one: ArrayConfiguration) -> int:
    """Return the cycles of the largest block on one sub-array, by the runtime of single arrays."""
    sizes = dict(zip("mnk", product, strict=True))
    down, across, _ = FLOWS[one.dataflow]
    sizes[down], sizes[across] = -(-sizes[down] // one.down), -(-sizes[across] // one.across)
    return int(systolic_runtime(sizes["m"], sizes["n"], sizes["k"], one.rows, one.columns, one.dataflow))


RIGHT, TREES, AHEAD = claims("sagar-fig7e")


@reproduction("sagar-fig7e",
              Setting("quick", 1, {
                  "samples": 20_000, "epochs": 2, "other_samples": 20_000, "other_epochs": 2,
                  "learners": ("fixed", "neighbours", "memory", "xgboost", "mlp-a", "adaptnet", "terms")}),
              Setting("full", 3, {
                  "samples": 14_000_000, "epochs": 2, "other_samples": 2_000_000, "other_epochs": 20,
                  "learners": ("fixed", *BASELINES, *NETWORKS)}),
              cells="sagar-fig8")
def figure7(setting: Setting, runner: Runner) -> Findings:
    """Train and fit all learners on the same products."""
    found = _runs(setting, runner, [(SAGAR.macs, learner) for learner in setting["learners"]])
    rates = {learner: [float(value["same_class"]) for value in values] for (_, learner), values in found.items()}
    others = [name for name in rates if name in ("svc", "xgboost") or name.startswith("mlp")]
    ahead = [float(np.mean([ours > rates[name][seed] for name in others])) if others else float("nan")
             for seed, ours in enumerate(rates["adaptnet"])]
    published = {(SAGAR.macs, "adaptnet"): "95 %", (SAGAR.macs, "xgboost"): "87 %"}
    return Findings((_table(found, published),), (
        listed(RIGHT, rates["adaptnet"]), listed(TREES, rates.get("xgboost", [])), listed(AHEAD, ahead)),
        notes=_notes(SAGAR.macs, setting["samples"]))


EVERY, LARGER, NEAR = claims("sagar-fig8", NEAR=(0.9993 - FIXED_SHARE) / (1 - FIXED_SHARE))


@reproduction("sagar-fig8", Setting("quick", 1, {"samples": 20_000, "epochs": 2, "arrays": (2**12, 2**14)}),
              Setting("full", 3, {"samples": 14_000_000, "epochs": 2, "arrays": (2**12, 2**13, 2**14)}),
              version=2)
def figure8(setting: Setting, runner: Runner) -> Findings:
    """Train AdaptNet, and ours, for each array."""
    found = _runs(setting, runner, [(macs, learner) for macs in setting["arrays"]
                                    for learner in OURS])
    rates = np.array([[value["same_class"] for value in found[macs, "adaptnet"]] for macs in setting["arrays"]])
    largest = max(setting["arrays"])
    closed = [(ours["mean_share"] - none["mean_share"]) / (1 - none["mean_share"]) for ours, none in zip(
        found[largest, "adaptnet"], found[largest, "fixed"], strict=True)]
    published = {(macs, "adaptnet"): "> 90 %" for macs in setting["arrays"]}
    return Findings((_table(found, published),), (
        listed(EVERY, rates.min(axis=0).tolist()), listed(LARGER, (rates > 0.9).mean(axis=0).tolist()),
        listed(NEAR, closed)), notes=_notes(largest, setting["samples"]))


CORE, CELLS, MOST = claims("sagar-fig9")
FITTING, PASSES = (3 * 13, 128, 858), (3 * 86, 128, 858)
"""Inputs of the dense layers: three embeddings that 512 KB hold, and the narrowest that 256 multipliers do not."""


@reproduction("sagar-fig9", Setting("quick", 1, {"multipliers": (128, 256, 512, 1024, 2048)}),
              Setting("full", 1, {"multipliers": tuple(1 << power for power in range(5, 13))}))
def figure9(setting: Setting, runner: Runner) -> Findings:
    """Count dense layers on two units of multipliers, and on cells."""
    sizes = setting["multipliers"]
    cores = {widths: [AdviserCore(each).cycles(widths) for each in sizes] for widths in (FITTING, PASSES)}
    cells = {widths: [cycles_on_cells(widths, each) for each in sizes] for widths in (FITTING, PASSES)}
    rows = tuple((each, cores[FITTING][at], cores[PASSES][at], cells[FITTING][at], cells[PASSES][at],
                  {512: "576 (AdaptNetX)", 1024: "1,134 (cells)"}.get(each, "")) for at, each in enumerate(sizes))
    core, wide = (AdviserCore(512).cycles(widths) for widths in (FITTING, PASSES))
    own, wider = (cycles_on_cells(widths, 1024) for widths in (FITTING, PASSES))
    least = min(range(len(sizes)), key=lambda at: (cores[PASSES][at], sizes[at]))
    every = ReconfigurableArray(1024).configurations()
    alone = sum(min(_alone((1, out, into), one) for one in every) for into, out in ((39, 128), (128, 858)))
    table = Table("cycles", "Cycles of AdaptNet-858", (
        "Multipliers", "AdaptNetX, 39 inputs", "AdaptNetX, 258 inputs", "Cells, 39 inputs", "Cells, 258 inputs",
        "Published"), rows, ("Stall-free; a cycle a row of weights and unit, a tree that fills for each layer.",))
    return Findings((table,), (
        judge(CORE, right([(core, 576)]), f"{core}", f"576 wants 257 to 512 inputs ({wide} with 258), whose tables "
              f"take {3 * 86 * 10_000 / 1e6:.1f} MB and not 512 KB"),
        judge(CELLS, right([(own, 1134)]), f"{own}", f"{wider} with 258 inputs"),
        judge(MOST, float(sizes[least] == 512), f"{sizes[least]}", (
            "with 258 inputs, as the units then hold all of them; with 39, 256 multipliers take 510 cycles"))),
        notes=(f"A count of every configuration by itself {'agrees' if alone == own else 'disagrees'} with {own}.",))


OPERANDS = {"inputs": "mk", "weights": "nk", "outputs": "mn"}
PRINTED = {"os": ("high", "high", "low", "inputs", "weights"), "ws": ("high", "low", "high", "inputs", "outputs"),
           "is": ("low", "high", "high", "weights", "outputs")}
"""Table II: bandwidth of inputs, weights and outputs; what horizontal and vertical bypass links carry."""
BANDWIDTH, LINKS = claims("sagar-table2")


@reproduction("sagar-table2", Setting("quick", 1, {"size": 4096}), Setting("full", 1, {"size": 8192}))
def table2(setting: Setting, runner: Runner) -> Findings:
    """Count a large product on the plane as one array."""
    size, side = setting["size"], SAGAR.plane[0]
    product = np.array([[size, size, size]])
    rows, agrees = [], True
    for flow, (along_rows, along_columns, streamed) in FLOWS.items():
        one = ArrayConfiguration(*SAGAR.plane, 1, 1, flow)
        counts = partitioned_counts(product, (one,), SAGAR)
        agrees &= _alone((size,) * 3, one) == counts.cycles[0, 0]
        words = (counts.input_reads, counts.weight_reads, counts.output_writes)
        levels = ["high" if each[0, 0] / counts.cycles[0, 0] > side / 2 else "low" for each in words]
        edges = [next(name for name, axes in OPERANDS.items() if set(axes) == {axis, streamed})
                 for axis in (along_rows, along_columns)]
        rows.append((flow, *levels, *edges))
    same = [[ours == theirs for ours, theirs in zip(row[1:], PRINTED[str(row[0])], strict=True)] for row in rows]
    table = Table("links", "Bandwidth of operands, and what links carry", (
        "Dataflow", "Inputs", "Weights", "Outputs", "Horizontal", "Vertical"), tuple(rows))
    moved, linked = ([each for row in same for each in row[part]] for part in (slice(0, 3), slice(3, 5)))
    return Findings((table,), (counted(BANDWIDTH, moved), counted(LINKS, linked)),
                    notes=(f"The array as one partition {'agrees' if agrees else 'disagrees'} with "
                           "`tilewright systolic`.",))

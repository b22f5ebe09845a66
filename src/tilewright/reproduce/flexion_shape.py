"""Flexion, figures 3.11 and 3.12: what flexible array shapes are worth, by their building blocks and by array size."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import isqrt, log, log2

from tilewright.codesign import with_array, with_flexibility
from tilewright.hardware import ShapeFlexibility, preset
from tilewright.jobs import Runner
from tilewright.mapping import flexion
from tilewright.reproduce.claims import Judgement, cases, exact, gain, judge, kept, lower, part_of
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    WRITTEN,
    Isolation,
    Published,
    Results,
    Target,
    average_venn,
    axis_targets,
    right,
    search_all,
    shape_of,
    study_table,
    total,
)
from tilewright.reproduce.searching import Layer, by_seed
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Plot, Setting, Study, Table

SIDE = 32
PUBLISHED = (
    Published("Layer 15", "InFlex0001", 1.0, 1.0, 1.0, 0.001, 0.01, "32x32"),
    Published("Layer 15", "PartFlex0001A", 0.67, 1.0, 0.67, 0.004, 0.06, "48x16"),
    Published("Layer 15", "PartFlex0001B", 0.50, 0.97, 0.48, 0.06, 0.25, "24x42"),
    Published("Layer 15", "FullFlex0001", 0.50, 0.97, 0.48, 1.0, 1.0, "24x42"),
    Published("Layer 15", "FullFlex1111", 0.04, 0.95, 0.03, None, None, "72x14"),
    Published("Layer 16", "InFlex0001", 1.0, 1.0, 1.0, 0.001, 0.03, "32x32"),
    Published("Layer 16", "PartFlex0001A", 0.75, 0.98, 0.74, 0.004, 0.08, "16x64"),
    Published("Layer 16", "PartFlex0001B", 0.63, 0.99, 0.62, 0.06, 0.25, "40x24"),
    Published("Layer 16", "FullFlex0001", 0.63, 0.99, 0.62, 1.0, 1.0, "40x25"),
    Published("Layer 16", "FullFlex1111", 0.04, 0.96, 0.04, None, None, "8x128"),
    Published("Layer 25", "InFlex0001", 1.0, 1.0, 1.0, 0.001, 0.01, "32x32"),
    Published("Layer 25", "PartFlex0001A", 0.89, 0.99, 0.88, 0.004, 0.05, "16x48"),
    Published("Layer 25", "PartFlex0001B", 0.89, 0.99, 0.88, 0.06, 0.25, "16x48"),
    Published("Layer 25", "FullFlex0001", 0.87, 0.99, 0.86, 1.0, 1.0, "24x42"),
    Published("Layer 25", "FullFlex1111", 0.80, 1.21, 0.97, None, None, "24x42"),
    Published(MODEL, "InFlex0001", 1.0, 1.0, 1.0, 0.00, 0.02),
    Published(MODEL, "PartFlex0001A", 0.98, 1.0, 0.97, 0.00, 0.04),
    Published(MODEL, "PartFlex0001B", 0.96, 0.99, 0.95, 0.06, 0.20),
    Published(MODEL, "FullFlex0001", 0.96, 0.99, 0.95, 1.0, 0.98),
    Published(MODEL, "FullFlex1111", 0.15, 1.03, 0.15, None, None),
)
BLOCKS = {"InFlex0001": (32, 32), "PartFlex0001A": (16, 16), "PartFlex0001B": (4, 4), "FullFlex0001": (1, 1)}
SIZES = exact("Of 1,024 shapes a machine of 1,024 elements has so many (H-F), and of the sides that a layer can use so "
              "many (W-F)", "0.001 0.004 0.06 1.00; 0.01 0.06 0.25 1.00, 0.03 0.08 0.25 1.00, 0.01 0.05 0.25 1.00",
              "all 24 figures")
FOLDS = exact("The best shapes fold layers 15, 16 and 25 so often", "0.67 0.50 0.50; 0.75 0.63 0.63; 0.89 0.89 0.87",
              "the least folds over those of 32x32, all nine")
FASTER = gain("Flexible shapes make MnasNet faster", "runtime 0.96", 0.96)
NEARLY = kept("Blocks of 4x4 get nearly all that any shape gets, with 6 % of the shapes", "1.001 times slower",
              "the part of its gain", log(0.96 * 1.001) / log(0.96))
COARSE = gain("Blocks of 16x16 gain less than blocks of 4x4", "runtime 0.98 against 0.96", 0.96 / 0.98)
LARGER = cases("Larger arrays run faster, with diminishing returns from about 45x45 to 64x64", "figure 3.12",
               "the share of pairs of steps in which the larger array gains less by a doubling")
CLAIMS = (SIZES, FOLDS, FASTER, NEARLY, COARSE, LARGER)


def isolation(every: int = 1) -> Isolation:
    """Return the machines and layers of figure 3.11."""
    targets = axis_targets(with_array(preset("flexion"), (SIDE, SIDE)), "S", ShapeFlexibility(),
                           A=ShapeFlexibility(blocks=(16, 16)), B=ShapeFlexibility(blocks=(4, 4)))
    return Isolation.of("S", targets, (15, 16, 25), every, PUBLISHED, shape_of)


def folds(sizes: tuple[int, int], shape: tuple[int, int]) -> int:
    """Return how often a layer's two parallel dimensions fold over an array."""
    return -(-sizes[0] // shape[0]) * -(-sizes[1] // shape[1])


def shapes(instances: int, block: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the arrays of whole blocks: each X side with the largest Y side."""
    blocks = instances // (block[0] * block[1])
    return [(wide * block[0], blocks // wide * block[1]) for wide in range(1, blocks + 1)]


def run(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, then any shape of every size of array."""
    study = isolation(setting["every"])
    results = study.search(runner, setting)
    sweep = _sweep(runner, setting, study.model)
    table = study_table(study, results, "Shape flexibility on layers of MnasNet, 1,024 elements (figure 3.11)")
    venn = average_venn(study, "Spaces of shapes, averaged over the layers of MnasNet (figure 3.11 b)")
    return Findings((table, _fold_table(), _sweep_table(sweep)), _judge(study, results, sweep),
                    (venn, _sweep_plot(sweep)), (_contradictions(),))


def _parallel(layer: str) -> tuple[int, int]:
    """Return the sizes of C and K of a layer shown: what lies along X and Y."""
    k, c, *_ = WRITTEN[int(layer.split()[1])]
    return c, k


def _least(layer: str, target: str) -> tuple[int, tuple[int, int]]:
    """Return the least folds of a layer on a machine, and the shape that has them."""
    return min((folds(_parallel(layer), shape), shape) for shape in shapes(SIDE * SIDE, BLOCKS[target]))


def _fold_table() -> Table:
    rows = []
    for row in PUBLISHED:
        if row.layer == MODEL or row.target not in BLOCKS:
            continue
        base = folds(_parallel(row.layer), (SIDE, SIDE))
        wide, high = (int(side) for side in row.chosen.split("x"))
        least, best = _least(row.layer, row.target)
        printed_folds = folds(_parallel(row.layer), (wide, high))
        whole = wide % BLOCKS[row.target][0] == 0 and high % BLOCKS[row.target][1] == 0
        rows.append((row.layer, "x".join(map(str, _parallel(row.layer))), row.target, row.runtime, row.chosen,
                     "yes" if whole else "no", printed_folds / base, f"{best[0]}x{best[1]}", least / base))
    return Table("folds", "How often layers fold over the shapes chosen (figure 3.11)", (
        "Layer", "C x K", "Machine", "Runtime paper", "Chosen, paper", "Of whole blocks", "Folds of it / 32x32",
        "Best shape", "Folds of the best / 32x32"), tuple(rows), (
        "Folds: ceil(C / X) ceil(K / Y), which the printed runtimes follow where the shapes allow them.",))


Sweep = list[tuple[int, float, float, float, tuple[float, ...]]]


def _sweep(runner: Runner, setting: Setting, model: tuple[Layer, ...]) -> Sweep:
    """Return for each array: elements, cycles of a fixed square and of any shape, W-F of any shape, cycles by seed."""
    found: Sweep = []
    for side in setting["sides"]:
        base = with_array(preset("flexion"), (side, side))
        targets = (Target("InFlex0001", base),
                   Target("FullFlex0001", with_flexibility(base, shape=ShapeFlexibility())))
        results = search_all(runner, targets, model, setting["samples"], setting.seeds)
        each = [flexion(layer.operator, targets[1].machine, "S").workload for layer in model]
        found.append((side * side, total(results, "InFlex0001", model), total(results, "FullFlex0001", model),
                      sum(each) / len(each), tuple(total(one, "FullFlex0001", model) for one in by_seed(results))))
    return found


def _sweep_table(sweep: Sweep) -> Table:
    rows = tuple((f"{isqrt(elements)}x{isqrt(elements)}", square, loose, loose / square, sweep[0][2] / loose, share)
                 for elements, square, loose, share, _ in sweep)
    return Table("arrays", "Flexible shapes by array size (figure 3.12)", (
        "Elements", "Cycles, square", "Cycles, any shape", "Any / square", "Speed over the smallest", "W-F"), rows)


def _contradictions() -> str:
    """Say where figure 3.11 contradicts itself: runtimes that follow from folds, and shapes that have others."""
    base = {name: folds(_parallel(name), (SIDE, SIDE)) for name in ("Layer 15", "Layer 25")}
    chosen = folds(_parallel("Layer 15"), (48, 16)) / base["Layer 15"]
    other = [folds(_parallel("Layer 25"), shape) / base["Layer 25"] for shape in ((16, 48), (24, 42))]
    return (f"Printed runtimes follow from folds, but not with the shapes printed beside them: 48x16 folds layer 15 "
            f"{chosen:.2f} times as often as 32x32 (0.67 printed; 48x21 would, but is not of whole 16x16 blocks), "
            f"16x48 and 24x42 fold layer 25 {other[0]:.2f} and {other[1]:.2f} times as often (0.89 and 0.87; 16x64 and "
            "27x37 would). 24x42 is no array of 4x4 blocks: 42 is 10.5 of them.")


def _judge(study: Isolation, results: Results, sweep: Sweep) -> tuple[Judgement, ...]:
    rows = [row for row in PUBLISHED if row.layer != MODEL and row.workload is not None]
    flexions = [(study.flexions(row.target, row.layer), row) for row in rows]
    sizes = [*((workload, row.workload or 0.0) for (_, workload), row in flexions),
             *((hardware, row.hardware or 0.0) for (hardware, _), row in flexions)]
    base = {name: folds(_parallel(name), (SIDE, SIDE)) for name in ("Layer 15", "Layer 16", "Layer 25")}
    best = [(_least(row.layer, row.target)[0] / base[row.layer], row.runtime) for row in rows
            if row.target in BLOCKS and row.target != "InFlex0001"]
    names = ("PartFlex0001A", "PartFlex0001B", "FullFlex0001")
    seeds = list(zip(*(study.runtimes(results, name) for name in names), strict=True))
    sixteen, four, full = (study.over_base(results, name)[0] for name in names)
    return (
        judge(SIZES, right(sizes), f"{right(sizes):.0%} of {len(sizes)}",
              "1, 4, 64 and 1,024 X sides of 1,024; a layer can use sides up to the size along it"),
        judge(FOLDS, right(best), " ".join(f"{ours:.2f}" for ours, _ in best)),
        study.judged(FASTER, results, "FullFlex0001"),
        judge(NEARLY, [part_of(b, c) for _, b, c in seeds], f"{four / full:.3f} times slower"),
        judge(COARSE, [b / a for a, b, _ in seeds], f"runtime {sixteen:.2f} against {four:.2f}"),
        _judge_sweep(sweep),
    )


def _judge_sweep(sweep: Sweep) -> Judgement:
    if len(sweep) < 3:
        return Judgement(LARGER, "too few sizes", "not judged")

    def doublings(cycles: Sequence[float]) -> list[float]:
        return [(early / late) ** (1 / _doublings(one[0], two[0]))
                for (one, two), (early, late) in zip(pairwise(sweep), pairwise(cycles), strict=True)]

    whole = doublings([row[2] for row in sweep])
    return judge(LARGER, [lower((later, earlier) for earlier, later in combinations(doublings(cycles), 2))
                          for cycles in zip(*(row[4] for row in sweep), strict=True)],
                 f"a doubling gains {whole[0]:.2f} times at first, {whole[-1]:.2f} in the end; W-F {sweep[0][3]:.2f} "
                 f"to {sweep[-1][3]:.2f}")


def _doublings(fewer: int, more: int) -> float:
    return log2(more / fewer)


def _sweep_plot(sweep: Sweep) -> Plot:
    elements = [row[0] for row in sweep]
    lines = (("square, cycles", 1, "y", "@curve-1", "solid"), ("any shape, cycles", 2, "y", "@curve-0", "solid"),
             ("any shape, W-F", 3, "y2", "@curve-0", "dot"))
    data = [{"type": "scatter", "mode": "lines+markers", "name": name, "x": elements, "y": [row[at] for row in sweep],
             "yaxis": axis, "line": {"color": colour, "dash": dash}} for name, at, axis, colour, dash in lines]
    return Plot("arrays", "Runtime and W-F by array size (figure 3.12)", data, {
        "xaxis": {"type": "log", "title": {"text": "Elements"}},
        "yaxis": {"type": "log", "title": {"text": "Cycles"}},
        "yaxis2": {"title": {"text": "W-F"}, "overlaying": "y", "side": "right", "range": [0, 1.05]}})


REPRODUCTIONS.register("flexion-shape")(Study(
    "flexion-shape", "What flexible array shapes are worth on MnasNet, by building block and array size",
    "Kao, dissertation, Georgia Tech 2022, figures 3.11 and 3.12", CLAIMS,
    Setting("quick", 2, {"samples": 2_000, "every": 1, "sides": (8, 16, 32, 64)}),
    Setting("full", 5, {"samples": 10_000, "every": 1, "sides": (8, 16, 24, 32, 45, 64, 91, 128)}), run))

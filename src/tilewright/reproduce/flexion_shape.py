"""Flexion, figures 3.11 and 3.12: what flexible array shapes are worth, by their building blocks and by array size."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import isqrt, log, log2

from tilewright.codesign import with_array, with_flexibility
from tilewright.hardware import ShapeFlexibility, preset
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, judge, lower, part_of, right
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    WRITTEN,
    Isolation,
    PublishedRow,
    SweepPoint,
    Target,
    average_venn,
    axis_targets,
    shape_of,
    study_table,
    sweep,
    sweep_plot,
)
from tilewright.reproduce.study import Findings, Setting, Table, claims, reproduction

SIDE = 32
BLOCKS = {"InFlex0001": (32, 32), "PartFlex0001A": (16, 16), "PartFlex0001B": (4, 4), "FullFlex0001": (1, 1)}
SIZES, FOLDS, FASTER, NEARLY, COARSE, LARGER = claims("flexion-shape", NEARLY=log(0.96 * 1.001) / log(0.96))


def folds(sizes: tuple[int, int], shape: tuple[int, int]) -> int:
    """Return how often a layer's two parallel dimensions fold over an array."""
    return -(-sizes[0] // shape[0]) * -(-sizes[1] // shape[1])


def shapes(instances: int, block: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the arrays of whole blocks: each X side with the largest Y side."""
    blocks = instances // (block[0] * block[1])
    return [(wide * block[0], blocks // wide * block[1]) for wide in range(1, blocks + 1)]


@reproduction("flexion-shape", Setting("quick", 2, {"samples": 2_000, "every": 1, "sides": (8, 16, 32, 64)}),
              Setting("full", 5, {"samples": 10_000, "every": 1, "sides": (8, 16, 24, 32, 45, 64, 91, 128)}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, then any shape of every size of array."""
    targets = axis_targets(with_array(preset("flexion"), (SIDE, SIDE)), "S", ShapeFlexibility(),
                           A=ShapeFlexibility(blocks=(16, 16)), B=ShapeFlexibility(blocks=(4, 4)))
    study = Isolation.of("S", targets, (15, 16, 25), setting["every"], shape_of).searched(runner, setting)
    swept = sweep(runner, setting, study, {side * side: _machines(side) for side in setting["sides"]})
    table = study_table(study, "Shape flexibility on layers of MnasNet, 1,024 elements (figure 3.11)")
    venn = average_venn(study, "Spaces of shapes, averaged over the layers of MnasNet (figure 3.11 b)")
    return Findings((table, _fold_table(study), _sweep_table(swept)), _judge(study, swept), (venn, sweep_plot(
        "arrays", "Runtime and W-F by array size (figure 3.12)", swept, ("square", "any shape"), {1: "any shape"},
        {"xaxis": {"type": "log", "title": {"text": "Elements"}},
         "yaxis": {"type": "log", "title": {"text": "Cycles"}}}, 1.05)), (_contradictions(),))


def _parallel(layer: str) -> tuple[int, int]:
    """Return the sizes of C and K of a layer shown: what lies along X and Y."""
    k, c, *_ = WRITTEN[int(layer.split()[1])]
    return c, k


def _least(layer: str, target: str) -> tuple[int, tuple[int, int]]:
    """Return the least folds of a layer on a machine, and the shape that has them."""
    return min((folds(_parallel(layer), shape), shape) for shape in shapes(SIDE * SIDE, BLOCKS[target]))


def _folding(study: Isolation) -> list[PublishedRow]:
    """Return the rows of layers on machines whose shapes are of blocks."""
    return [row for row in study.published if row.layer != MODEL and row.target in BLOCKS]


def _fold_table(study: Isolation) -> Table:
    rows = []
    for row in _folding(study):
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


def _machines(side: int) -> tuple[Target, Target]:
    """Return a fixed square, and an array of any shape."""
    base = with_array(preset("flexion"), (side, side))
    return Target("InFlex0001", base), Target("FullFlex0001", with_flexibility(base, shape=ShapeFlexibility()))


def _sweep_table(swept: Sequence[SweepPoint]) -> Table:
    rows = tuple((f"{isqrt(one.size)}x{isqrt(one.size)}", *one.cycles, one.cycles[1] / one.cycles[0],
                  swept[0].cycles[1] / one.cycles[1], one.workload[1]) for one in swept)
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


def _judge(study: Isolation, swept: Sequence[SweepPoint]) -> tuple[Judgement, ...]:
    sizes = study.printed()
    best = [(_least(row.layer, row.target)[0] / folds(_parallel(row.layer), (SIDE, SIDE)), row.runtime)
            for row in _folding(study) if row.target != "InFlex0001"]
    names = ("PartFlex0001A", "PartFlex0001B", "FullFlex0001")
    seeds = list(zip(*(study.runtimes(name) for name in names), strict=True))
    sixteen, four, full = (study.over_base(name)[0] for name in names)
    return (
        judge(SIZES, right(sizes), f"{right(sizes):.0%} of {len(sizes)}",
              "1, 4, 64 and 1,024 X sides of 1,024; a layer can use sides up to the size along it"),
        judge(FOLDS, right(best), " ".join(f"{ours:.2f}" for ours, _ in best)),
        study.judged(FASTER, "FullFlex0001"),
        judge(NEARLY, [part_of(b, c) for _, b, c in seeds], f"{four / full:.3f} times slower"),
        judge(COARSE, [b / a for a, b, _ in seeds], f"runtime {sixteen:.2f} against {four:.2f}"),
        _judge_sweep(swept),
    )


def _judge_sweep(swept: Sequence[SweepPoint]) -> Judgement:
    if len(swept) < 3:
        return Judgement(LARGER, "too few sizes", "not judged")

    def doublings(cycles: Sequence[float]) -> list[float]:
        return [(early / late) ** (1 / log2(two.size / one.size))
                for (one, two), (early, late) in zip(pairwise(swept), pairwise(cycles), strict=True)]

    whole = doublings([one.cycles[1] for one in swept])
    return judge(LARGER, [lower((later, earlier) for earlier, later in combinations(doublings(loose), 2))
                          for loose in zip(*([any_shape for _, any_shape in one.seeds] for one in swept), strict=True)],
                 f"a doubling gains {whole[0]:.2f} times at first, {whole[-1]:.2f} in the end; W-F "
                 f"{swept[0].workload[1]:.2f} to {swept[-1].workload[1]:.2f}")

"""Flexion, figures 3.9 to 3.12: what choices of loop orders, of dimensions to spread and of array shapes are worth."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from math import isqrt, log, log2

from tilewright.codesign import with_array, with_flexibility
from tilewright.hardware import OrderFlexibility, ParallelismFlexibility, ShapeFlexibility, preset
from tilewright.jobs import Runner
from tilewright.mapping import flexible_machine, load_mapping
from tilewright.reproduce.claims import Judgement, apart, judge, lower, part_of, right
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    WRITTEN,
    Isolation,
    PublishedRow,
    SweepPoint,
    Target,
    average_venn,
    axis_targets,
    order_of,
    pair_of,
    shape_of,
    study_table,
    sweep,
    sweep_plot,
)
from tilewright.reproduce.study import Findings, Setting, Table, claims, reproduction

OUTPUT, WEIGHT, INPUT = (("P", "Q", "K", "C", "R", "S"), ("K", "C", "R", "S", "P", "Q"), ("C", "P", "Q", "K", "R", "S"))

ORDERS, MEAN, THREE, ALL_ORDERS, THREE_NEARLY, DEPTHWISE_ORDERS, FULL_ORDERS = claims(
    "flexion-order", NEARLY=log(0.90) / log(0.89))


@reproduction("flexion-order", Setting("quick", 2, {"samples": 1_000, "every": 1}),
              Setting("full", 5, {"samples": 10_000, "every": 1}))
def run_orders(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine."""
    rigid = with_flexibility(preset("flexion"), order=OrderFlexibility((OUTPUT,)))
    targets = axis_targets(rigid, "O", OrderFlexibility(), _=OrderFlexibility((OUTPUT, INPUT, WEIGHT)))
    study = Isolation.of("O", targets, (16, 21, 29), setting["every"], order_of).searched(runner, setting)
    table = study_table(study, "Order flexibility on layers of MnasNet (figure 3.9)")
    return Findings((table,), _judge_orders(study),
                    (average_venn(study, "Spaces of orders, averaged over the layers of MnasNet (figure 3.9 b)"),),
                    ("Chosen, ours: the loops over tiles, at the DRAM; those that run once are left out.",))


def _judge_orders(study: Isolation) -> tuple[Judgement, ...]:
    found = study.printed()
    rigid, part = (study.flexions(name)[1] for name in ("InFlex0100", "PartFlex0100"))
    three, every = (study.runtimes(name) for name in ("PartFlex0100", "FullFlex0100"))
    middle = [study.over_base(name)[0] for name in ("PartFlex0100", "FullFlex0100")]
    last, bound = study.over_base("FullFlex0100", "Layer 29")[0], study.bound()
    return (
        judge(ORDERS, right(found), f"{right(found):.0%} of {len(found)}", "720 = 6!; 1/4!, 3/4! and 1/5!, 3/5!"),
        judge(MEAN, right([(rigid, 0.01), (part, 0.03)]), f"{rigid:.3f} and {part:.3f}",
              "most layers have four dimensions larger than 1, of which one order is 1/24 = 0.04"),
        study.judged(THREE, "PartFlex0100"), study.judged(ALL_ORDERS, "FullFlex0100"),
        judge(THREE_NEARLY, [part_of(a, b) for a, b in zip(three, every, strict=True)],
              f"{middle[0] / middle[1]:.3f} times slower"),
        judge(DEPTHWISE_ORDERS, [apart(each, 1.0) for each in study.runtimes("FullFlex0100", "Layer 29")],
              f"runtime {last:.3f}"),
        study.judged(FULL_ORDERS, "FullFlex1111", f"the compute bound is {bound:.3f} of InFlex's runtime: no machine "
                     "of 1,024 elements can be faster"),
    )


PAIRS, LAST, TWO, ALL_PAIRS, DEPTHWISE_PAIRS, UNUSUAL, FULL_PAIRS = claims("flexion-parallelism")
KC, YX = ("C", "K"), ("P", "Q")


def isolation(shape: tuple[int, int], every: int) -> Isolation:
    """Return the machines and layers of figure 3.10, on an array of ``shape``."""
    targets = axis_targets(with_array(preset("flexion"), shape), "P", ParallelismFlexibility(),
                           _=ParallelismFlexibility((KC, YX)))
    return Isolation.of("P", targets, (10, 16, 29), every, pair_of)


@reproduction("flexion-parallelism", Setting("quick", 2, {"samples": 1_000, "every": 2}),
              Setting("full", 5, {"samples": 10_000, "every": 1}))
def run_pairs(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, on both arrays."""
    study, square = (isolation(shape, setting["every"]).searched(runner, setting) for shape in ((16, 64), (32, 32)))
    table = study_table(study, "Parallelism flexibility on layers of MnasNet, 16x64 array (figure 3.10 a)")
    rows = tuple((name, target.name, *square.over_base(target.name, name))
                 for name in (*(layer.name for layer in square.layers), "MnasNet") for target in square.targets)
    second = Table("square", "The same on a 32x32 array (figure 3.10 b, which prints no figures)", (
        "Layer", "Machine", "Runtime", "Energy", "EDP"), rows, ("Over those of InFlex0010 on the same array.",))
    return Findings((table, second), _judge_pairs(study),
                    (average_venn(study, "Spaces of pairs, averaged over the layers of MnasNet (figure 3.10 c)"),),
                    ("Pairs are X-Y, so that K-C is told as C-K. Fixed tiles are per element: a dimension along a side "
                     "has a tile as wide as the side.",))


def _judge_pairs(study: Isolation) -> tuple[Judgement, ...]:
    found = study.printed("Layer 10", "Layer 16")
    rigid, part = (study.flexions(name, "Layer 29")[1] for name in ("InFlex0010", "PartFlex0010"))
    two, every = (study.runtimes(name) for name in ("PartFlex0010", "FullFlex0010"))
    below = study.below_bound("FullFlex1111")
    unusual, usable = _unusual(study), {d for d, size in study.written["Layer 29"].dimensions if size > 1}
    return (
        judge(PAIRS, right(found), f"{right(found):.0%} of {len(found)}",
              "1/30, 2/30; four dimensions larger than 1 have 12 pairs"),
        judge(LAST, right([(rigid, 0.05), (part, 0.10)]), f"{rigid:.2f} and {part:.2f}",
              f"the {len(usable)} dimensions larger than 1 ({' '.join(sorted(usable))}) have "
              f"{len(usable) * (len(usable) - 1)} pairs, K-C none of them"),
        study.judged(TWO, "PartFlex0010"), study.judged(ALL_PAIRS, "FullFlex0010"),
        judge(DEPTHWISE_PAIRS, study.runtimes("FullFlex0010", "Layer 29"),
              f"runtime {study.over_base('FullFlex0010', 'Layer 29')[0]:.3f}"),
        judge(UNUSUAL, [b / a for a, b in zip(two, every, strict=True)],
              ", ".join(f"{pair} {count} times" for pair, count in unusual.most_common()) or "none"),
        study.judged(FULL_PAIRS, "FullFlex1111", "compute bounds over InFlex: " + ", ".join(
            f"{name} {bound:.3f}" for name, _, bound in below) if below else ""),
    )


def _unusual(study: Isolation) -> "Counter[str]":
    """Return the pairs, but K-C and Y-X either way round, that all layers together chose, and how often."""
    found: Counter[str] = Counter()
    machine = flexible_machine(study.machine("FullFlex0010"))
    for layer in {layer.name: layer for layer in (*study.layers, *study.model)}.values():
        value = study.results["FullFlex0010", layer.name].median
        if value is not None:
            pair = sorted(pair_of(load_mapping(value["mapping"], layer.operator, machine), layer.operator).split("-"))
            if "none" not in pair and pair not in (["C", "K"], ["P", "Q"]):
                found["-".join(pair)] += 1
    return found


SIDE = 32
BLOCKS = {"InFlex0001": (32, 32), "PartFlex0001A": (16, 16), "PartFlex0001B": (4, 4), "FullFlex0001": (1, 1)}
SHAPES, FOLDS, FASTER, NEARLY, COARSE, LARGER = claims("flexion-shape", NEARLY=log(0.96 * 1.001) / log(0.96))


def folds(sizes: tuple[int, int], shape: tuple[int, int]) -> int:
    """Return how often a layer's two parallel dimensions fold over an array."""
    return -(-sizes[0] // shape[0]) * -(-sizes[1] // shape[1])


def shapes(instances: int, block: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the arrays of whole blocks: each X side with the largest Y side."""
    blocks = instances // (block[0] * block[1])
    return [(wide * block[0], blocks // wide * block[1]) for wide in range(1, blocks + 1)]


@reproduction("flexion-shape", Setting("quick", 2, {"samples": 2_000, "every": 1, "sides": (8, 16, 32, 64)}),
              Setting("full", 5, {"samples": 10_000, "every": 1, "sides": (8, 16, 24, 32, 45, 64, 91, 128)}))
def run_shapes(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, then any shape of every size of array."""
    targets = axis_targets(with_array(preset("flexion"), (SIDE, SIDE)), "S", ShapeFlexibility(),
                           A=ShapeFlexibility(blocks=(16, 16)), B=ShapeFlexibility(blocks=(4, 4)))
    study = Isolation.of("S", targets, (15, 16, 25), setting["every"], shape_of).searched(runner, setting)
    swept = sweep(runner, setting, study, {side * side: _machines(side) for side in setting["sides"]})
    table = study_table(study, "Shape flexibility on layers of MnasNet, 1,024 elements (figure 3.11)")
    venn = average_venn(study, "Spaces of shapes, averaged over the layers of MnasNet (figure 3.11 b)")
    return Findings((table, _fold_table(study), _sweep_table(swept)), _judge_shapes(study, swept), (venn, sweep_plot(
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


def _judge_shapes(study: Isolation, swept: Sequence[SweepPoint]) -> tuple[Judgement, ...]:
    sizes = study.printed()
    best = [(_least(row.layer, row.target)[0] / folds(_parallel(row.layer), (SIDE, SIDE)), row.runtime)
            for row in _folding(study) if row.target != "InFlex0001"]
    names = ("PartFlex0001A", "PartFlex0001B", "FullFlex0001")
    seeds = list(zip(*(study.runtimes(name) for name in names), strict=True))
    sixteen, four, full = (study.over_base(name)[0] for name in names)
    return (
        judge(SHAPES, right(sizes), f"{right(sizes):.0%} of {len(sizes)}",
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

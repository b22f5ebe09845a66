"""Flexion, figure 3.10: what a choice of the dimensions to spread is worth, on an oblong and on a square array."""

from collections import Counter

from tilewright.codesign import with_array
from tilewright.hardware import ParallelismFlexibility, preset
from tilewright.jobs import Runner
from tilewright.mapping import flexible_machine, load_mapping
from tilewright.reproduce.claims import Judgement, judge, right
from tilewright.reproduce.flexion_isolation import Isolation, average_venn, axis_targets, pair_of, study_table
from tilewright.reproduce.study import Findings, Setting, Table, claims, reproduction

SIZES, LAST, TWO, ALL, DEPTHWISE, UNUSUAL, FULL = claims("flexion-parallelism")
KC, YX = ("C", "K"), ("P", "Q")


def isolation(shape: tuple[int, int], every: int) -> Isolation:
    """Return the machines and layers of figure 3.10, on an array of ``shape``."""
    targets = axis_targets(with_array(preset("flexion"), shape), "P", ParallelismFlexibility(),
                           _=ParallelismFlexibility((KC, YX)))
    return Isolation.of("P", targets, (10, 16, 29), every, pair_of)


@reproduction("flexion-parallelism", Setting("quick", 2, {"samples": 1_000, "every": 2}),
              Setting("full", 5, {"samples": 10_000, "every": 1}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, on both arrays."""
    study, square = (isolation(shape, setting["every"]).searched(runner, setting) for shape in ((16, 64), (32, 32)))
    table = study_table(study, "Parallelism flexibility on layers of MnasNet, 16x64 array (figure 3.10 a)")
    rows = tuple((name, target.name, *square.over_base(target.name, name))
                 for name in (*(layer.name for layer in square.layers), "MnasNet") for target in square.targets)
    second = Table("square", "The same on a 32x32 array (figure 3.10 b, which prints no figures)", (
        "Layer", "Machine", "Runtime", "Energy", "EDP"), rows, ("Over those of InFlex0010 on the same array.",))
    return Findings((table, second), _judge(study),
                    (average_venn(study, "Spaces of pairs, averaged over the layers of MnasNet (figure 3.10 c)"),),
                    ("Pairs are X-Y, so that K-C is told as C-K. Fixed tiles are per element: a dimension along a side "
                     "has a tile as wide as the side.",))


def _judge(study: Isolation) -> tuple[Judgement, ...]:
    found = study.printed("Layer 10", "Layer 16")
    rigid, part = (study.flexions(name, "Layer 29")[1] for name in ("InFlex0010", "PartFlex0010"))
    two, every = (study.runtimes(name) for name in ("PartFlex0010", "FullFlex0010"))
    below = study.below_bound("FullFlex1111")
    unusual, usable = _unusual(study), {d for d, size in study.written["Layer 29"].dimensions if size > 1}
    return (
        judge(SIZES, right(found), f"{right(found):.0%} of {len(found)}",
              "1/30, 2/30; four dimensions larger than 1 have 12 pairs"),
        judge(LAST, right([(rigid, 0.05), (part, 0.10)]), f"{rigid:.2f} and {part:.2f}",
              f"the {len(usable)} dimensions larger than 1 ({' '.join(sorted(usable))}) have "
              f"{len(usable) * (len(usable) - 1)} pairs, K-C none of them"),
        study.judged(TWO, "PartFlex0010"), study.judged(ALL, "FullFlex0010"),
        judge(DEPTHWISE, study.runtimes("FullFlex0010", "Layer 29"),
              f"runtime {study.over_base('FullFlex0010', 'Layer 29')[0]:.3f}"),
        judge(UNUSUAL, [b / a for a, b in zip(two, every, strict=True)],
              ", ".join(f"{pair} {count} times" for pair, count in unusual.most_common()) or "none"),
        study.judged(FULL, "FullFlex1111", "compute bounds over InFlex: " + ", ".join(
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

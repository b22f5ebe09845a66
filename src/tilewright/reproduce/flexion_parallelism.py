"""Flexion, figure 3.10: what a choice of the dimensions to spread is worth, on an oblong and on a square array."""

from collections import Counter

from tilewright.codesign import with_array
from tilewright.hardware import ParallelismFlexibility, preset
from tilewright.mapping import flexible_machine, load_mapping
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    Isolation,
    Published,
    Results,
    average_venn,
    axis_targets,
    gain_verdict,
    pair_of,
    printed,
    study_table,
)
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import (
    QUARTER,
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Setting,
    Study,
    Table,
    Verdict,
    reaches,
)

PUBLISHED = (
    Published("Layer 10", "InFlex0010", 1.0, 1.0, 1.0, 0.03, 0.08, "KC"),
    Published("Layer 10", "PartFlex0010", 0.48, 1.59, 0.76, 0.07, 0.17, "YX"),
    Published("Layer 10", "FullFlex0010", 0.46, 1.20, 0.55, 1.0, 1.0, "XK"),
    Published("Layer 10", "FullFlex1111", 0.00003, 0.90, 0.00002, None, None, "XK"),
    Published("Layer 16", "InFlex0010", 1.0, 1.0, 1.0, 0.03, 0.08, "KC"),
    Published("Layer 16", "PartFlex0010", 0.88, 1.85, 1.63, 0.07, 0.17, "YX"),
    Published("Layer 16", "FullFlex0010", 0.48, 1.50, 0.72, 1.0, 1.0, "KS"),
    Published("Layer 16", "FullFlex1111", 0.00006, 0.92, 0.00006, None, None, "KC"),
    Published("Layer 29", "InFlex0010", 1.0, 1.0, 1.0, 0.03, 0.05, "KC"),
    Published("Layer 29", "PartFlex0010", 0.50, 0.50, 0.25, 0.07, 0.10, "YX"),
    Published("Layer 29", "FullFlex0010", 0.05, 1.62, 0.09, 1.0, 1.0, "RS"),
    Published("Layer 29", "FullFlex1111", 0.0001, 0.16, 0.00001, None, None, "KY"),
    Published(MODEL, "InFlex0010", 1.0, 1.0, 1.0, 0.03, 0.07),
    Published(MODEL, "PartFlex0010", 0.81, 0.87, 0.70, 0.07, 0.14),
    Published(MODEL, "FullFlex0010", 0.59, 0.99, 0.58, 1.0, 1.0),
    Published(MODEL, "FullFlex1111", 0.0004, 0.56, 0.0002, None, None),
)
CLAIMS = (
    Claim("There are 30 pairs of six dimensions; a machine has 1, 2 or all of them (H-F), and so many of those that a "
          "layer can use (W-F of layers 10 and 16)", "0.03 0.07 1.00; 0.08 0.17 1.00",
          "holds where all figures of layers 10 and 16 round to the printed ones"),
    Claim("Of what layer 29, depthwise with K = 1, can use, K-C is one pair", "0.05, with Y-X 0.10",
          "holds where both figures round to it, impossible where K or C is not larger than 1"),
    Claim("A choice of K-C or Y-X makes MnasNet faster than K-C alone", "runtime 0.81",
          f"holds within 10 %, {QUARTER}"),
    Claim("All pairs make it faster still, 1.6 and 1.3 times", "runtime 0.59",
          f"holds within 10 %, {QUARTER}, on both others"),
    Claim("A depthwise layer gains most: K-C spreads it over one side only", "runtime 0.05",
          f"holds where its runtime is at most 0.1, {QUARTER}, where it gains more than layers 10 and 16"),
    Claim("Unconventional pairs are worth it", "X-K, K-S, R-S chosen",
          "holds where full flexibility chooses other pairs than K-C and Y-X on some layers, and gains at least a "
          "quarter (in logarithms) of what it gains over both in the paper"),
    Claim("What parallelism is worth depends on the array's shape", "figures 3.10 a and b",
          "holds where the runtime with all pairs over K-C differs by more than 5 % between 16x64 and 32x32"),
    Claim("All four axes together are far ahead of pairs alone", "runtime 0.0004; 0.00003 0.00006 0.0001 on layers 10, "
          "16, 29", "impossible where a published runtime is below the compute bound, holds within 10 % on MnasNet, "
          + QUARTER),
)
KC, YX = ("C", "K"), ("P", "Q")


def isolation(shape: tuple[int, int] = (16, 64), every: int = 1) -> Isolation:
    """Return the machines and layers of figure 3.10, on an array of ``shape``."""
    targets = axis_targets(with_array(preset("flexion"), shape), "P", ParallelismFlexibility(),
                           _=ParallelismFlexibility((KC, YX)))
    return Isolation.of("P", targets, (10, 16, 29), every, PUBLISHED, pair_of)


def run(setting: Setting, watch: Watch) -> Findings:
    """Search the layers shown and the network on every machine, on both arrays."""
    study, square = isolation(every=setting["every"]), isolation((32, 32), setting["every"])
    results = study.play(watch, setting["samples"], setting.seeds)
    other = square.play(watch, setting["samples"], setting.seeds)
    table = study_table(study, results, "Parallelism flexibility on layers of MnasNet, 16x64 array (figure 3.10 a)")
    return Findings((table, _square_table(square, other)), _judge(study, results, square, other),
                    (average_venn(study, "Spaces of pairs, averaged over the layers of MnasNet (figure 3.10 c)"),),
                    ("Pairs are X-Y, so that K-C is told as C-K. Fixed tiles are per element: a dimension along a side "
                     "has a tile as wide as the side.",))


def _square_table(square: Isolation, other: Results) -> Table:
    names = [layer.name for layer in square.layers] + [MODEL]
    rows = tuple((name, target.name, *square.over_base(other, target.name, name)) for name in names
                 for target in square.targets)
    return Table("square", "The same on a 32x32 array (figure 3.10 b, which prints no figures)", (
        "Layer", "Machine", "Runtime", "Energy", "EDP"), rows, ("Over those of InFlex0010 on the same array.",))


def _judge(study: Isolation, results: Results, square: Isolation, other: Results) -> tuple[Judgement, ...]:
    rows = [row for row in PUBLISHED if row.layer in ("Layer 10", "Layer 16") and row.hardware is not None]
    right = sum(all(printed(value, paper or 0.0) for value, paper in zip(
        study.flexions(row.target, row.layer), (row.hardware, row.workload), strict=True)) for row in rows)
    rigid, part = (study.flexions(name, "Layer 29")[1] for name in ("InFlex0010", "PartFlex0010"))
    two, every = (study.over_base(results, name)[0] for name in ("PartFlex0010", "FullFlex0010"))
    each = {layer.name: study.over_base(results, "FullFlex0010", layer.name)[0] for layer in study.layers}
    squared = square.over_base(other, "FullFlex0010")[0]
    everything, below = study.over_base(results, "FullFlex1111")[0], study.below_bound(results, "FullFlex1111")
    unusual, usable = _unusual(study, results), {d for d, size in study.written["Layer 29"].dimensions if size > 1}
    theirs, last = 0.59 / 0.81, each["Layer 29"]
    return (
        Judgement(CLAIMS[0], f"{right} of {len(rows)} rows", "holds" if right == len(rows) else "does not hold",
                  "1/30, 2/30; four dimensions larger than 1 have 12 pairs"),
        Judgement(CLAIMS[1], f"{rigid:.2f} and {part:.2f}", pair_verdict(rigid, part, usable),
                  f"the {len(usable)} dimensions larger than 1 ({' '.join(sorted(usable))}) have "
                  f"{len(usable) * (len(usable) - 1)} pairs"),
        Judgement(CLAIMS[2], f"runtime {two:.2f}", gain_verdict(two, 0.81)),
        Judgement(CLAIMS[3], f"runtime {every:.2f}; {1 / every:.2f} and {two / every:.2f} times",
                  gain_verdict(every, 0.59) if reaches(every / two, theirs) else "does not hold"),
        Judgement(CLAIMS[4], f"runtime {last:.3f}", "holds" if last <= 0.1 else "holds in direction"
                  if last == min(each.values()) and reaches(last, 0.05) else "does not hold"),
        Judgement(CLAIMS[5], ", ".join(f"{pair} {count} times" for pair, count in unusual.most_common()) or "none",
                  "holds" if unusual and reaches(every / two, theirs) and reaches(every, 0.59) else "does not hold"),
        Judgement(CLAIMS[6], f"{every:.2f} on 16x64, {squared:.2f} on 32x32",
                  "holds" if abs(squared / every - 1) > 0.05 else "does not hold"),
        Judgement(CLAIMS[7], f"runtime {everything:.3f}",
                  "impossible as published" if below else gain_verdict(everything, 0.0004),
                  "compute bounds over InFlex: " + ", ".join(f"{name} {bound:.3f}" for name, _, bound in below)
                  if below else ""),
    )


def pair_verdict(rigid: float, part: float, usable: set[str]) -> Verdict:
    """Judge W-F of layer 29: impossible where K-C is no pair of what the layer can use, whatever is counted."""
    if printed(rigid, 0.05) and printed(part, 0.10):
        return "holds"
    return "does not hold" if {*KC} <= usable else "impossible as published"


def _unusual(study: Isolation, results: Results) -> "Counter[str]":
    """Return the pairs, but K-C and Y-X either way round, that all layers together chose, and how often."""
    found: Counter[str] = Counter()
    machine = flexible_machine(study.machine("FullFlex0010"))
    for layer in {layer.name: layer for layer in (*study.layers, *study.model)}.values():
        value = results["FullFlex0010", layer.name].value
        if value is not None:
            pair = sorted(pair_of(load_mapping(value["mapping"], layer.operator, machine), layer.operator).split("-"))
            if "none" not in pair and pair not in (["C", "K"], ["P", "Q"]):
                found["-".join(pair)] += 1
    return found


REPRODUCTIONS.register("flexion-parallelism")(Study(
    "flexion-parallelism", "What a choice of the dimensions to spread is worth on MnasNet",
    "Kao, dissertation, Georgia Tech 2022, figure 3.10", CLAIMS,
    Setting("quick", 1, {"samples": 1_000, "every": 2}), Setting("full", 5, {"samples": 10_000, "every": 1}), run))

"""Flexion, figure 3.9: what a choice of loop orders is worth."""

from tilewright.codesign import with_flexibility
from tilewright.hardware import OrderFlexibility, preset
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    Isolation,
    Published,
    Results,
    average_venn,
    axis_targets,
    gain_verdict,
    order_of,
    printed,
    study_table,
)
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import QUARTER, REPRODUCTIONS, Claim, Findings, Judgement, Setting, Study

OUTPUT, WEIGHT, INPUT = (("P", "Q", "K", "C", "R", "S"), ("K", "C", "R", "S", "P", "Q"), ("C", "P", "Q", "K", "R", "S"))

PUBLISHED = (
    Published("Layer 16", "InFlex0100", 1.0, 1.0, 1.0, 0.001, 0.04, "YXKCRS"),
    Published("Layer 16", "PartFlex0100", 0.82, 1.003, 0.82, 0.004, 0.13, "KCRSYX"),
    Published("Layer 16", "FullFlex0100", 0.80, 0.9997, 0.80, 1.0, 1.0, "CXYKRS"),
    Published("Layer 16", "FullFlex1111", 0.002, 0.99, 0.002, None, None, "YCKSXR"),
    Published("Layer 21", "InFlex0100", 1.0, 1.0, 1.0, 0.001, 0.04, "YXKCRS"),
    Published("Layer 21", "PartFlex0100", 0.77, 0.998, 0.77, 0.004, 0.13, "KCRSYX"),
    Published("Layer 21", "FullFlex0100", 0.74, 0.997, 0.74, 1.0, 1.0, "CKXYRS"),
    Published("Layer 21", "FullFlex1111", 0.002, 1.29, 0.002, None, None, "KCYRXS"),
    Published("Layer 29", "InFlex0100", 1.0, 1.0, 1.0, 0.001, 0.01, "YXKCRS"),
    Published("Layer 29", "PartFlex0100", 1.0, 1.09, 1.09, 0.004, 0.03, "KCRSYX"),
    Published("Layer 29", "FullFlex0100", 0.997, 1.001, 0.998, 1.0, 1.0, "KCXYSR"),
    Published("Layer 29", "FullFlex1111", 0.0003, 0.48, 0.0001, None, None, "KSYRXC"),
    Published(MODEL, "InFlex0100", 1.0, 1.0, 1.0, 0.001, 0.01),
    Published(MODEL, "PartFlex0100", 0.90, 1.02, 0.91, 0.004, 0.03),
    Published(MODEL, "FullFlex0100", 0.89, 0.996, 0.89, 1.0, 1.0),
    Published(MODEL, "FullFlex1111", 0.004, 1.0, 0.004, None, None),
)
CLAIMS = (
    Claim("One, three, all of the 720 orders (H-F), and so many of those of the dimensions that a layer has (W-F)",
          "0.001 0.004 1.00; 0.04 0.13 1.00 for layers 16 and 21, 0.01 0.03 1.00 for layer 29",
          "holds where all figures of the layers shown round to the printed ones"),
    Claim("Averaged over MnasNet, W-F is as of layer 29", "0.01 and 0.03",
          "holds where both round to it, in direction within a factor of 5"),
    Claim("A choice of three orders makes MnasNet faster than the output-stationary order alone", "runtime 0.90",
          f"holds within 10 %, {QUARTER}"),
    Claim("All orders make it 1.12 times as fast", "runtime 0.89", f"holds within 10 %, {QUARTER}"),
    Claim("Three orders get nearly all that 720 do", "1.01 times slower", "holds where at most 2 % slower"),
    Claim("Layer 29, depthwise, gains nothing from other orders", "1.00 and 0.997",
          "holds where at most 1 % is gained"),
    Claim("All four axes together are far ahead of orders alone", "runtime 0.004",
          f"impossible where the published runtime is below the compute bound, holds within 10 %, {QUARTER}"),
)


def isolation(every: int = 1) -> Isolation:
    """Return the machines and layers of figure 3.9."""
    rigid = with_flexibility(preset("flexion"), order=OrderFlexibility((OUTPUT,)))
    targets = axis_targets(rigid, "O", OrderFlexibility(), _=OrderFlexibility((OUTPUT, INPUT, WEIGHT)))
    return Isolation.of("O", targets, (16, 21, 29), every, PUBLISHED, order_of)


def run(setting: Setting, watch: Watch) -> Findings:
    """Search the layers shown and the network on every machine."""
    study = isolation(setting["every"])
    results = study.play(watch, setting["samples"], setting.seeds)
    table = study_table(study, results, "Order flexibility on layers of MnasNet (figure 3.9)")
    return Findings((table,), _judge(study, results),
                    (average_venn(study, "Spaces of orders, averaged over the layers of MnasNet (figure 3.9 b)"),),
                    ("Chosen, ours: the loops over tiles, at the DRAM; those that run once are left out.",))


def _judge(study: Isolation, results: Results) -> tuple[Judgement, ...]:
    rows = [row for row in PUBLISHED if row.layer != MODEL and row.hardware is not None]
    found = [(row, *study.flexions(row.target, row.layer)) for row in rows]
    right = sum(_rounds(hardware, row.hardware or 0.0) and printed(workload, row.workload or 0.0)
                for row, hardware, workload in found)
    rigid, part = (study.flexions(name)[1] for name in ("InFlex0100", "PartFlex0100"))
    times = {name: study.over_base(results, name)[0] for name in ("PartFlex0100", "FullFlex0100", "FullFlex1111")}
    three, every, everything = times.values()
    depthwise = study.over_base(results, "FullFlex0100", "Layer 29")[0]
    bound = study.bound(results)
    near = 0.2 <= rigid / 0.01 <= 5 and 0.2 <= part / 0.03 <= 5
    return (
        Judgement(CLAIMS[0], f"{right} of {len(rows)} rows", "holds" if right == len(rows) else "does not hold",
                  "720 = 6!; 1/4!, 3/4! and 1/5!, 3/5!"),
        Judgement(CLAIMS[1], f"{rigid:.3f} and {part:.3f}", "holds" if printed(rigid, 0.01) and printed(part, 0.03)
                  else "holds in direction" if near else "does not hold",
                  "most layers have four dimensions larger than 1, of which one order is 1/24 = 0.04"),
        Judgement(CLAIMS[2], f"runtime {three:.2f}", gain_verdict(three, 0.90)),
        Judgement(CLAIMS[3], f"runtime {every:.2f}", gain_verdict(every, 0.89)),
        Judgement(CLAIMS[4], f"{three / every:.3f} times slower",
                  "holds" if three <= 1.02 * every else "does not hold"),
        Judgement(CLAIMS[5], f"runtime {depthwise:.3f}", "holds" if depthwise >= 0.99 else "does not hold"),
        Judgement(CLAIMS[6], f"runtime {everything:.3f}", gain_verdict(everything, 0.004, bound=bound),
                  f"the compute bound is {bound:.3f} of InFlex's runtime: no machine of 1,024 elements can be faster"),
    )


def _rounds(value: float, published: float) -> bool:
    return abs(value - published) <= 0.0005


REPRODUCTIONS.register("flexion-order")(Study(
    "flexion-order", "What a choice of loop orders is worth on MnasNet",
    "Kao, dissertation, Georgia Tech 2022, figure 3.9", CLAIMS,
    Setting("quick", 1, {"samples": 1_000, "every": 1}), Setting("full", 5, {"samples": 10_000, "every": 1}), run))

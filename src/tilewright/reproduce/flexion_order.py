"""Flexion, figure 3.9: what a choice of loop orders is worth."""

from math import log

from tilewright.codesign import with_flexibility
from tilewright.hardware import OrderFlexibility, preset
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, apart, judge, part_of, right
from tilewright.reproduce.flexion_isolation import Isolation, average_venn, axis_targets, order_of, study_table
from tilewright.reproduce.study import Findings, Setting, claims, reproduction

OUTPUT, WEIGHT, INPUT = (("P", "Q", "K", "C", "R", "S"), ("K", "C", "R", "S", "P", "Q"), ("C", "P", "Q", "K", "R", "S"))

SIZES, MEAN, THREE, ALL, NEARLY, DEPTHWISE, FULL = claims("flexion-order", NEARLY=log(0.90) / log(0.89))


@reproduction("flexion-order", Setting("quick", 2, {"samples": 1_000, "every": 1}),
              Setting("full", 5, {"samples": 10_000, "every": 1}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine."""
    rigid = with_flexibility(preset("flexion"), order=OrderFlexibility((OUTPUT,)))
    targets = axis_targets(rigid, "O", OrderFlexibility(), _=OrderFlexibility((OUTPUT, INPUT, WEIGHT)))
    study = Isolation.of("O", targets, (16, 21, 29), setting["every"], order_of).searched(runner, setting)
    table = study_table(study, "Order flexibility on layers of MnasNet (figure 3.9)")
    return Findings((table,), _judge(study),
                    (average_venn(study, "Spaces of orders, averaged over the layers of MnasNet (figure 3.9 b)"),),
                    ("Chosen, ours: the loops over tiles, at the DRAM; those that run once are left out.",))


def _judge(study: Isolation) -> tuple[Judgement, ...]:
    found = study.printed()
    rigid, part = (study.flexions(name)[1] for name in ("InFlex0100", "PartFlex0100"))
    three, every = (study.runtimes(name) for name in ("PartFlex0100", "FullFlex0100"))
    middle = [study.over_base(name)[0] for name in ("PartFlex0100", "FullFlex0100")]
    last, bound = study.over_base("FullFlex0100", "Layer 29")[0], study.bound()
    return (
        judge(SIZES, right(found), f"{right(found):.0%} of {len(found)}", "720 = 6!; 1/4!, 3/4! and 1/5!, 3/5!"),
        judge(MEAN, right([(rigid, 0.01), (part, 0.03)]), f"{rigid:.3f} and {part:.3f}",
              "most layers have four dimensions larger than 1, of which one order is 1/24 = 0.04"),
        study.judged(THREE, "PartFlex0100"), study.judged(ALL, "FullFlex0100"),
        judge(NEARLY, [part_of(a, b) for a, b in zip(three, every, strict=True)],
              f"{middle[0] / middle[1]:.3f} times slower"),
        judge(DEPTHWISE, [apart(each, 1.0) for each in study.runtimes("FullFlex0100", "Layer 29")],
              f"runtime {last:.3f}"),
        study.judged(FULL, "FullFlex1111", f"the compute bound is {bound:.3f} of InFlex's runtime: no machine "
                     "of 1,024 elements can be faster"),
    )

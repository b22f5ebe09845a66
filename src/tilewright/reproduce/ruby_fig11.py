"""Ruby, figure 11: DeepBench on the Eyeriss-like machine, perfect tiling against Ruby-S, for EDP and for latency."""

from itertools import product

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, apart, cases, gain, judge, lower, same
from tilewright.reproduce.ruby_contest import (
    RANDOM,
    Layer,
    Match,
    Rows,
    best_ratio,
    by_seed,
    change,
    layer_table,
    mean_ratio,
    network_layers,
    play,
    ratio_plot,
)
from tilewright.reproduce.ruby_fig10 import BESIDE, NEVER_WORSE, judged_ratio, never_worse
from tilewright.reproduce.ruby_machines import eyeriss_like
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Setting, Study

SUITE = ("deepbench-conv-server", "deepbench-gemm-server")
IMAGENET = (224, 112, 56, 28, 14, 7)
"""Sides of feature maps of networks for Imagenet."""

MEAN = gain("Ruby-S lowers the EDP of the suite by 10 % on average", "-10 %", 0.9, "the geometric mean over kernels")
BEST = gain("Kernels gain up to 45 % (33 % in the text)", "up to -45 %", 0.55, "the best kernel's ratio")
VISION = same("On vision layers of Imagenet's sizes Ruby-S almost always matches perfect tiling", "about 1", 0.9,
              "the mean ratio of convolutions with such feature maps and filters larger than 1 x 1")
OTHERS = cases("Kernels of other sizes gain more", "speech, faces, speakers",
               "the share of pairs of such a kernel and a vision layer in which its ratio is lower")
LATENCY = gain("Searched for latency, Ruby-S lowers it by 14 %", "-14 %", 0.86, "the geometric mean over kernels")
CLAIMS = (MEAN, BEST, VISION, OTHERS, LATENCY, NEVER_WORSE)


def kernels(every: int) -> list[Layer]:
    """Return the distinct kernels of the suite of batch 1, or every so manieth of them."""
    return [layer for layer in network_layers(*SUITE) if layer.operator.sizes.get("N", 1) == 1
            or layer.operator.kind == "matmul"][::every]


def imagenet(layer: Layer) -> bool:
    """Whether a kernel is a convolution, larger than 1 x 1, with a feature map of Imagenet's sizes."""
    sizes = layer.operator.sizes
    return sizes.get("P") in IMAGENET and sizes.get("Q") in IMAGENET and max(sizes["R"], sizes["S"]) > 1


def run(setting: Setting, runner: Runner) -> Findings:
    """Search every kernel for EDP with every mapper, and for latency with the first; judge by the first."""
    layers, machine = kernels(setting["every"]), eyeriss_like()

    def rows_of(mapper: str, objective: str, figure: str) -> Rows:
        matches = [Match(layer, machine, strategy, "row-stationary", mapper, setting["samples"], objective)
                   for layer in layers for strategy in ("perfect", "ruby-s")]
        found = play(runner, matches, setting.seeds, figure)
        return list(zip(found[::2], found[1::2], strict=True))

    by_mapper = {mapper: rows_of(mapper, "edp", "edp") for mapper in setting["mappers"]}
    first, rows = next(iter(by_mapper.items()))
    fast = rows_of(first, "latency", "latency_cycles")
    judged = (judged_ratio(MEAN, by_mapper, mean_ratio), judged_ratio(BEST, by_mapper, best_ratio), *_vision(rows),
              judged_ratio(LATENCY, {first: fast}, lambda one: mean_ratio(one, "latency_cycles")),
              never_worse(by_mapper))
    tables = [layer_table(f"kernels-{mapper}", f"DeepBench on {machine.name}, {mapper}", found)
              for mapper, found in by_mapper.items()]
    tables.append(layer_table("latency", f"DeepBench on {machine.name}, searched for latency, {first}", fast))
    return Findings(tuple(tables), judged, (
        ratio_plot("kernels", f"Ruby-S over perfect tiling by kernel ({first}; figure 11)", rows),), (BESIDE,))


def _vision(rows: Rows) -> tuple[Judgement, Judgement]:
    """Judge kernels of Imagenet's sizes, and the others beside them."""
    vision = [imagenet(perfect.match.layer) for perfect, _ in rows]
    if all(vision) or not any(vision):
        told = "only one kind was measured"
        return Judgement(VISION, told, "not judged"), Judgement(OTHERS, told, "not judged")

    def part(one: Rows, kind: bool) -> Rows:
        return [pair for pair, of in zip(one, vision, strict=True) if of is kind]

    def gains(one: Rows, kind: bool) -> list[float]:
        return [ruby["edp"] / perfect["edp"] for perfect, ruby in part(one, kind)]

    seeds = by_seed(rows)
    return (
        judge(VISION, [apart(mean_ratio(part(one, True)), 1.0) for one in seeds],
              f"{change(mean_ratio(part(rows, True)))} over {sum(vision)} kernels"),
        judge(OTHERS, [lower(product(gains(one, False), gains(one, True))) for one in seeds],
              f"{change(mean_ratio(part(rows, False)))} over {len(vision) - sum(vision)} kernels"))


REPRODUCTIONS.register("ruby-fig11")(Study(
    "ruby-fig11", "DeepBench on an Eyeriss-like machine: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 11 and section IV.D", CLAIMS,
    Setting("quick", 3, {"mappers": (RANDOM,), "samples": 5_000, "every": 20}),
    Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 10_000, "every": 1}), run))

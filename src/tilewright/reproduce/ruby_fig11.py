"""Ruby, figure 11: DeepBench on the Eyeriss-like machine, perfect tiling against Ruby-S, for EDP and for latency."""

from tilewright.reproduce.ruby_contest import (
    Entry,
    Layer,
    Match,
    below,
    change,
    layer_table,
    mean_ratio,
    near,
    network_layers,
    play,
    ratio_plot,
)
from tilewright.reproduce.ruby_fig10 import NEVER_WORSE, never_worse
from tilewright.reproduce.ruby_machines import eyeriss_like
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import REPRODUCTIONS, Claim, Findings, Judgement, Setting, Study

Rows = list[tuple[Entry, Entry]]
SUITE = ("deepbench-conv-server", "deepbench-gemm-server")
IMAGENET = (224, 112, 56, 28, 14, 7)
"""Sides of feature maps of networks for Imagenet."""

CLAIMS = (
    Claim("Ruby-S lowers the EDP of the suite by 10 % on average", "-10 %",
          "holds where the geometric mean over kernels is within 5 points, in direction for any other decrease"),
    Claim("Kernels gain up to 45 % (33 % in the text)", "up to -45 %",
          "holds where the best kernel gains 33 % or more, in direction where it gains 15 %"),
    Claim("On vision layers of Imagenet's sizes Ruby-S almost always matches perfect tiling", "about 1",
          "holds where the mean over convolutions with such feature maps and filters larger than 1 x 1 is within 5 %"),
    Claim("Kernels of other sizes gain more", "speech, faces, speakers", "holds where their mean is at least 5 points "
          "lower than that of the convolutions of Imagenet's sizes"),
    Claim("Searched for latency, Ruby-S lowers it by 14 %", "-14 %",
          "holds where the geometric mean is within 5 points, in direction for any other decrease"),
    NEVER_WORSE,
)


def kernels(every: int) -> list[Layer]:
    """Return the distinct kernels of the suite of batch 1, or every so manieth of them."""
    return [layer for layer in network_layers(*SUITE) if layer.operator.sizes.get("N", 1) == 1
            or layer.operator.kind == "matmul"][::every]


def imagenet(layer: Layer) -> bool:
    """Whether a kernel is a convolution, larger than 1 x 1, with a feature map of Imagenet's sizes."""
    sizes = layer.operator.sizes
    return sizes.get("P") in IMAGENET and sizes.get("Q") in IMAGENET and max(sizes["R"], sizes["S"]) > 1


def run(setting: Setting, watch: Watch) -> Findings:
    """Search every kernel for EDP with every mapper, and for latency with the first; judge by the first."""
    layers, machine = kernels(setting["every"]), eyeriss_like()

    def rows_of(mapper: str, objective: str, figure: str) -> Rows:
        matches = [Match(layer, machine, strategy, "row-stationary", mapper, setting["samples"], objective)
                   for layer in layers for strategy in ("perfect", "ruby-s")]
        found = play(watch, matches, setting.seeds, figure)
        return list(zip(found[::2], found[1::2], strict=True))

    by_mapper = {mapper: rows_of(mapper, "edp", "edp") for mapper in setting["mappers"]}
    first, rows = next(iter(by_mapper.items()))
    fast = rows_of(first, "latency", "latency_cycles")
    judged = _judge(rows, fast)
    means = ", ".join(f"{change(mean_ratio(found))} ({mapper})" for mapper, found in by_mapper.items())
    judged[0] = Judgement(CLAIMS[0], means, judged[0].verdict)
    tables = [layer_table(f"kernels-{mapper}", f"DeepBench on {machine.name}, {mapper}", found)
              for mapper, found in by_mapper.items()]
    tables.append(layer_table("latency", f"DeepBench on {machine.name}, searched for latency, {first}", fast))
    return Findings(tuple(tables), (*judged, never_worse(by_mapper)), (
        ratio_plot("kernels", f"Ruby-S over perfect tiling by kernel ({first}; figure 11)", rows),))


def _judge(rows: Rows, fast: Rows) -> list[Judgement]:
    mean, best = mean_ratio(rows), min(ruby["edp"] / perfect["edp"] for perfect, ruby in rows)
    vision = [pair for pair in rows if imagenet(pair[0].match.layer)]
    other = [pair for pair in rows if not imagenet(pair[0].match.layer)]
    latency = mean_ratio(fast, "latency_cycles")
    found = [Judgement(CLAIMS[0], change(mean), near(mean, 0.9)),
             Judgement(CLAIMS[1], f"up to {change(best)}", below(best, 0.67, 0.85))]
    if vision and other:
        of_vision, of_other = mean_ratio(vision), mean_ratio(other)
        found += [Judgement(CLAIMS[2], f"{change(of_vision)} over {len(vision)} kernels",
                            "holds" if 0.95 <= of_vision <= 1.05 else "does not hold"),
                  Judgement(CLAIMS[3], f"{change(of_other)} over {len(other)} kernels",
                            below(of_other, of_vision - 0.05, of_vision))]
    else:
        found += [Judgement(claim, "only one kind was measured", "not judged") for claim in CLAIMS[2:4]]
    return [*found, Judgement(CLAIMS[4], change(latency), near(latency, 0.86))]


REPRODUCTIONS.register("ruby-fig11")(Study(
    "ruby-fig11", "DeepBench on an Eyeriss-like machine: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 11 and section IV.D", CLAIMS,
    Setting("quick", 3, {"mappers": ("gamma",), "samples": 5_000, "every": 9}),
    Setting("full", 10, {"mappers": ("gamma", "random-pruned"), "samples": 10_000, "every": 1}), run))

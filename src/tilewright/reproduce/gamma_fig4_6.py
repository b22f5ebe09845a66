"""Gamma, figure 4.6: what the mappings that it finds for an early, a medium and a late layer of ResNet-18 spread."""

from tilewright.jobs import Runner
from tilewright.mapping import load_mapping
from tilewright.reproduce.claims import judge
from tilewright.reproduce.gamma_contest import Try, contest, oracle_word
from tilewright.reproduce.gamma_methods import GAMMA, OWN, PAPER
from tilewright.reproduce.gamma_platforms import convolutions, machine
from tilewright.reproduce.study import Findings, Plot, Setting, Table, claims, reproduction

SPREAD = {"conv1": ({"P", "Q"},), "layer2.0.downsample": ({"P", "Q"}, {"K"}, {"C"}),
          "layer4.0.downsample": ({"C"}, {"K"})}
"""What figure 4.6 spreads of layers 1, 8 and 18; rows and columns are alike in these layers, and count as one."""
SPREADS, = claims("gamma-fig4.6")


def spread(found: Try) -> set[str]:
    """Return the dimensions that the mapping of a run spreads over arrays, columns and rows."""
    if found.median is None:
        return set()
    nest = load_mapping(found.median["mapping"], found.of.layer.operator, machine("edge", "s3"))
    return {loop.dimension for entry in nest.levels for loop in entry.loops if loop.axis is not None}


def share(tries: list[Try]) -> float:
    """Return the share of what the paper spreads that is spread here."""
    told = [bool(group & spread(each)) for each in tries for group in SPREAD[each.of.layer.name]]
    return sum(told) / len(told)


@reproduction("gamma-fig4.6", Setting("quick", 6, {"samples": 2_000}), Setting("full", 20, {"samples": 10_000}),
              cells="gamma-fig4.4")
def run(setting: Setting, runner: Runner) -> Findings:
    """Search the three layers as in figure 4.4 e."""
    layers = [layer for layer in convolutions("resnet18") if layer.name in SPREAD]
    tries = contest(runner, layers, machine("edge", "s3"), (GAMMA, OWN), seeds=setting.seeds,
                    samples=setting["samples"], objective="latency")
    rows = tuple((each.of.layer.name, label, " ".join(sorted(spread(each))) or "nothing",
                  int(each.median["latency_cycles"]) if each.median else None, oracle_word([each]))
                 for label, found in tries.items() for each in found)
    seeds = [share([each.at(seed) for each in tries[PAPER]]) for seed in range(setting.seeds)]
    nests = tuple(f"{each.of.layer.name}:\n{each.median['mapping']}" for each in tries[PAPER] if each.median)
    plot = Plot("spread", "Share of what figure 4.6 spreads, by seed", [{"type": "bar", "y": seeds}],
                {"yaxis": {"title": {"text": "share"}, "range": [0, 1]}})
    table = Table("layers", "Dimensions spread by the median runs, S3 edge", (
        "Layer", "Method", "Spread", "Cycles", "Oracle"), rows, ("P, Q are rows and columns of outputs.",))
    return Findings((table,), (judge(SPREADS, seeds, f"{share(tries[PAPER]):.0%} as published (median runs), "
                                     f"{share(tries[OWN.label]):.0%} ours"),), (plot,), nests)

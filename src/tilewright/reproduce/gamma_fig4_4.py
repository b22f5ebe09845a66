"""Gamma, figures 4.4 to 4.6: ResNet-18 by all methods on systems S1 to S3, and what Gamma's mappings spread."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import geometric_mean

from tilewright.jobs import Runner
from tilewright.mapping import load_mapping
from tilewright.reproduce.claims import Judgement, judge, lower
from tilewright.reproduce.gamma_contest import (
    BASELINES,
    FIXED,
    GAMMA,
    OURS,
    OWN,
    PAPER,
    PLATFORMS,
    SYSTEMS,
    Tries,
    Try,
    baselines,
    bound_total,
    contest,
    convolutions,
    failed,
    layers_plot,
    least,
    machine,
    oracle_word,
    ratios,
    span,
    summary_table,
    times,
    unmapped,
)
from tilewright.reproduce.gamma_release import released
from tilewright.reproduce.searching import by_seed, total
from tilewright.reproduce.study import Findings, Plot, Setting, Table, claims, reproduction

PUBLISHED = {("s1", "edge"): (224.0, 440.0), ("s1", "cloud"): (153.0, 1.3e7), ("s2", "edge"): (209.0, 1035.0),
             ("s2", "cloud"): (337.0, 7.1e5), ("s3", "edge"): (241.0, 644.0), ("s3", "cloud"): (657.0, 1.2e5)}
ENERGY = {"edge": (11.0, 36.0), "cloud": (2.0, 42.0)}
*_RATIOS, ALWAYS, FAILING, RANDOM, CLOUD, GROWS, BEST, EARLY = claims(
    "gamma-fig4.4", *(low for low, _ in PUBLISHED.values()))
RATIOS = dict(zip(PUBLISHED, _RATIOS, strict=True))
ENCODING = ("Baselines as released see tile sizes themselves, and one penalty for all mappings that do not fit, as in "
            "Gamma's release; claims on S1 are judged by them. The others see mappings as shares of the logarithms of "
            "sizes, and are told how far over the memories a mapping is.")
*LESS_ENERGY, NO_EDGE, NVDLA = claims("gamma-fig4.5", *(low for low, _ in ENERGY.values()))

Found = dict[tuple[str, str], Tries]
UNBUILT = "no baseline can be built"


def measure(setting: Setting, runner: Runner, objective: str, systems: Sequence[str]) -> Found:
    """Let all methods that can be built map ResNet-18 on both platforms of some systems."""
    layers = convolutions("resnet18", setting["every"])
    methods = (GAMMA, OWN, *FIXED, *baselines()[0])
    return {(system, platform): contest(runner, layers, machine(platform, system), methods, seeds=setting.seeds,
                                        samples=setting["samples"], objective=objective)
            for system in systems for platform in PLATFORMS}


def others(tries: Tries) -> list[str]:
    """Return the methods that the paper compares Gamma with; random search is not drawn there."""
    return [label for label in tries if label not in (PAPER, OURS, "random")]


def searched(tries: Tries) -> list[str]:
    """Return the baselines among them."""
    return [label for label in tries if label in BASELINES and label != "random"]


_QUICK44 = Setting("quick", 2, {"samples": 300, "every": 6})
_QUICK45 = Setting("quick", 2, {"samples": 600, "every": 4})
_FULL = Setting("full", 5, {"samples": 10_000, "every": 1})


@reproduction("gamma-fig4.4", _QUICK44, _FULL)
def run44(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 4.4."""
    found = measure(setting, runner, "latency", SYSTEMS)
    layers = convolutions("resnet18", setting["every"])
    theirs = {platform: released(runner, layers, machine(platform, "s1"), seeds=setting.seeds,
                                 samples=setting["samples"]) for platform in PLATFORMS}
    judged = [_ratio(found[key], theirs[key[1]] if key[0] == "s1" else {}, key) for key in PUBLISHED]
    judged += [_always(found), *_release_claims(theirs), _grows(found), _best(found), _early(found)]
    tables = tuple(_table(f"s1-{platform}-released", f"ResNet-18 on S1 {platform}: latency, baselines as released",
                          {PAPER: found["s1", platform][PAPER], **tries}, ("s1", platform), "latency")
                   for platform, tries in theirs.items() if tries)
    return _findings(found, "latency", judged, tables, ENCODING)


def _findings(found: Found, objective: str, judged: list[Judgement], more: tuple[Table, ...], *notes: str) -> Findings:
    tables = [_table(f"{system}-{platform}", f"ResNet-18 on {system.upper()} {platform}: {objective}", tries,
                     (system, platform), objective) for (system, platform), tries in found.items()]
    plots = [layers_plot(f"{system}-{platform}", f"{system.upper()} {platform}: {objective} of every layer", tries)
             for (system, platform), tries in found.items()]
    missing = baselines()[1]
    told = (f"Not measured, as no such mapper can be built here: {', '.join(missing)}.",) if missing else ()
    return Findings((*tables, *more), tuple(judged), tuple(plots), (*told, *notes))


def _table(name: str, title: str, tries: Tries, key: tuple[str, str], objective: str) -> Table:
    return summary_table(name, title, tries, _bound(tries, key, objective))


def _bound(tries: Tries, key: tuple[str, str], objective: str) -> float:
    return bound_total([each.of.layer for each in tries[PAPER]], machine(key[1], key[0]),
                         "compute_cycles" if objective == "latency" else "energy_pj")


def _ratio(tries: Tries, theirs: Tries, key: tuple[str, str]) -> Judgement:
    """Judge Gamma against the dataflows and the baselines: as released where they were run so.

    Beside it stand our Gamma, and how much less than the closest other method any mapping can take.
    """
    rivals = [*(method.label for method in FIXED), *_rivals(theirs)] if theirs else others(tries)

    def ratios_of(one: Tries) -> dict[str, float]:
        return ratios(one, rivals)

    whole = {label: total(tries[label]) for label in others(tries)}
    closest = min(whole, key=lambda label: whole[label])
    room = f"the compute bound is {times(whole[closest] / _bound(tries, key, 'latency'))} below {closest}"
    if theirs and (own := ratios(tries, searched(tries))):
        closest = min(own, key=lambda label: own[label])
        room = f"{closest} with our encoding: {times(own[closest])}; {room}"
    both = {**tries, **theirs}
    return judge(RATIOS[key], [least(ratios_of(one)) for one in by_seed(both)], span(ratios_of(both)),
                 f"{_own(tries)}; {room}")


def _own(tries: Tries) -> str:
    """Tell how our Gamma stands beside the published one."""
    found = ratios(tries, [OURS]).values()
    return f"Gamma, ours: {', '.join(map(times, found)) or 'none found'}"


def _always(found: Found) -> Judgement:
    ours, theirs = (_all({label: tries[label]} for tries in found.values()) for label in (OURS, PAPER))
    runs = sum(len(each.runs) for each in theirs)
    return judge(ALWAYS, [1 - _missing_share(one) for one in by_seed(theirs)],
                 f"{runs - failed(theirs)} of {runs} runs as published, {runs - failed(ours)} of {runs} of ours")


def _all(tries: Iterable[Tries]) -> list[Try]:
    return [each for one in tries for found in one.values() for each in found]


def _missing_share(tries: Sequence[Try]) -> float:
    missing, of = unmapped(tries)
    return missing / of if of else 0.0


def _rivals(tries: Tries) -> Tries:
    return {label: found for label, found in tries.items() if not label.startswith("random")}


def _release_claims(theirs: Mapping[str, Tries]) -> tuple[Judgement, ...]:
    """Judge what baselines find under the release's encoding, on both platforms of S1."""
    edge, cloud = (_rivals(theirs[platform]) for platform in ("edge", "cloud"))
    if not edge:
        return tuple(Judgement(claim, UNBUILT, "not judged") for claim in (FAILING, RANDOM, CLOUD))
    drawn = _all([{label: found for label, found in theirs["edge"].items() if label.startswith("random")}])
    told = ", ".join(f"{label} {unmapped(found)[0]}" for label, found in edge.items() if unmapped(found)[0]) or "none"
    legal, every = (sum(run[name] for each in drawn for run in each.runs) for name in ("legal_samples", "samples"))
    pairs = _all([cloud])
    return (
        judge(FAILING, [sum(_missing_share(found) > 0 for found in one.values()) / len(one) for one in by_seed(edge)],
              f"layers without a mapping: {told}"),
        judge(RANDOM, [_missing_share(one) for one in by_seed(drawn)],
              f"{unmapped(drawn)[0]} layers; {100 * legal / max(1, every):.2g} % of its mappings fit"),
        judge(CLOUD, [1 - _missing_share(one) for one in by_seed(pairs)],
              f"{len(pairs) - unmapped(pairs)[0]} of {len(pairs)} layers and methods",
              "the elements have 64 bytes here, 4 MiB in all; the paper prints 4 MiB"))


def _grows(found: Found) -> Judgement:
    def missing(one: Found, system: str) -> int:
        return sum(unmapped(one[system, platform][label])[0] for platform in PLATFORMS
                   for label in searched(one[system, platform]))

    if not searched(found["s1", "edge"]):
        return Judgement(GROWS, UNBUILT, "not judged")
    told = ", ".join(f"{system.upper()} {missing(found, system)}" for system in SYSTEMS)
    return judge(GROWS, [lower([(missing(one, "s1"), missing(one, "s3"))]) for one in by_seed(found)], told,
                 "the release's encoding of S3 spreads loops that our memories can't tell apart")


def _best(found: Found) -> Judgement:
    def whole(one: Found) -> dict[tuple[str, str], float]:
        return {key: total(tries[PAPER]) for key, tries in one.items()}

    def share(cycles: dict[tuple[str, str], float]) -> float:
        return lower((cycles["s3", platform], cycles[system, platform]) for platform in PLATFORMS
                     for system in SYSTEMS[:2])

    told = "; ".join(f"{platform} " + ", ".join(f"{system.upper()} {whole(found)[system, platform]:,.0f}"
                                                for system in SYSTEMS) for platform in PLATFORMS)
    return judge(BEST, [share(whole(one)) for one in by_seed(found)], told)


def _early(found: Found) -> Judgement:
    if not searched(found["s2", "edge"]):
        return Judgement(EARLY, UNBUILT, "not judged")

    def pairs(one: Found) -> Iterator[tuple[float, float]]:
        for platform in PLATFORMS:
            tries = one["s2", platform]
            third = max(1, len(tries[PAPER]) // 3)
            for flow, part in (("ShiDianNao-like", slice(0, third)), ("NVDLA-like", slice(-third, None))):
                for label in searched(tries):
                    yield total(tries[flow][part]), total(tries[label][part])

    return judge(EARLY, [lower(pairs(one)) for one in by_seed(found)], f"{lower(pairs(found)):.0%} of the pairs")


@reproduction("gamma-fig4.5", _QUICK45, _FULL)
def run45(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 4.5."""
    found = measure(setting, runner, "energy", ("s2",))
    judged = []
    for platform, claim in zip(ENERGY, LESS_ENERGY, strict=True):
        tries = found["s2", platform]
        over_bound = total(tries[PAPER]) / _bound(tries, ("s2", platform), "energy")
        judged.append(judge(claim, [least(ratios(one, others(one))) for one in by_seed(tries)],
                            span(ratios(tries, others(tries))),
                            f"Gamma is {times(over_bound)} the bound; {_own(tries)}"))
    edge, cloud = found["s2", "edge"], found["s2", "cloud"]
    flows = [method.label for method in FIXED]

    def won(one: Tries) -> float:
        return lower((total(one[label]), total(one[flow])) for label in searched(one) for flow in flows)

    judged.append(judge(NO_EDGE, [won(one) for one in by_seed(edge)], f"{won(edge):.0%} of the pairs")
                  if searched(edge) else Judgement(NO_EDGE, UNBUILT, "not judged"))
    over = [total(cloud[flow]) / total(cloud[flows[0]]) for flow in flows[1:]]
    judged.append(judge(NVDLA, geometric_mean(over) if all(0 < each < math.inf for each in over) else math.nan,
                        ", ".join(map(times, over))))
    return _findings(found, "energy", judged, (),
                     "Energy here counts the DRAM, which the published cost model does not.")


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


def spread_share(tries: list[Try]) -> float:
    """Return the share of what the paper spreads that is spread here."""
    told = [bool(group & spread(each)) for each in tries for group in SPREAD[each.of.layer.name]]
    return sum(told) / len(told)


@reproduction("gamma-fig4.6", Setting("quick", 6, {"samples": 2_000}), Setting("full", 20, {"samples": 10_000}),
              cells="gamma-fig4.4")
def run46(setting: Setting, runner: Runner) -> Findings:
    """Search the three layers as in figure 4.4 e."""
    layers = [layer for layer in convolutions("resnet18") if layer.name in SPREAD]
    tries = contest(runner, layers, machine("edge", "s3"), (GAMMA, OWN), seeds=setting.seeds,
                    samples=setting["samples"], objective="latency")
    rows = tuple((each.of.layer.name, label, " ".join(sorted(spread(each))) or "nothing",
                  int(each.median["latency_cycles"]) if each.median else None, oracle_word([each]))
                 for label, found in tries.items() for each in found)
    seeds = [spread_share([each.at(seed) for each in tries[PAPER]]) for seed in range(setting.seeds)]
    nests = tuple(f"{each.of.layer.name}:\n{each.median['mapping']}" for each in tries[PAPER] if each.median)
    plot = Plot("spread", "Share of what figure 4.6 spreads, by seed", [{"type": "bar", "y": seeds}],
                {"yaxis": {"title": {"text": "share"}, "range": [0, 1]}})
    table = Table("layers", "Dimensions spread by the median runs, S3 edge", (
        "Layer", "Method", "Spread", "Cycles", "Oracle"), rows, ("P, Q are rows and columns of outputs.",))
    return Findings((table,), (judge(SPREADS, seeds, f"{spread_share(tries[PAPER]):.0%} as published (median runs), "
                                     f"{spread_share(tries[OWN.label]):.0%} ours"),), (plot,), nests)

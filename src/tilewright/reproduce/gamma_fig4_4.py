"""Gamma, figures 4.4 and 4.5: ResNet-18 by all methods on systems S1 to S3, latency, and energy on S2."""

from collections.abc import Mapping, Sequence

from tilewright.reproduce.gamma_contest import (
    FIGURES,
    Tries,
    contest,
    judge_range,
    layers_plot,
    network_bound,
    ratios,
    summary_table,
    times,
    total,
    unmapped,
)
from tilewright.reproduce.gamma_platforms import (
    BASELINES,
    FIXED,
    GAMMA,
    OURS,
    OWN,
    PAPER,
    PLATFORMS,
    SYSTEMS,
    baselines,
    convolutions,
    machine,
)
from tilewright.reproduce.gamma_release import released
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import QUARTER, REPRODUCTIONS, Claim, Findings, Judgement, Plot, Setting, Study, Table

PUBLISHED = {("s1", "edge"): (224.0, 440.0), ("s1", "cloud"): (153.0, 1.3e7), ("s2", "edge"): (209.0, 1035.0),
             ("s2", "cloud"): (337.0, 7.1e5), ("s3", "edge"): (241.0, 644.0), ("s3", "cloud"): (657.0, 1.2e5)}
ENERGY = {"edge": (11.0, 36.0), "cloud": (2.0, 42.0)}
_LEAST = f"holds where the closest other method takes at least the published least, {QUARTER}"

RATIO_CLAIMS = {
    (system, platform): Claim(f"Gamma's mappings take less latency than all others, {system.upper()} {platform}",
                              f"{times(low)} to {times(high)}", _LEAST)
    for (system, platform), (low, high) in PUBLISHED.items()}
ALWAYS = Claim("Gamma always finds a legal mapping", "on all layers, systems and platforms",
               "holds where every run does, in direction where it does on all layers in most runs")
FAILING = Claim("Some other optimisers find no legal mapping in 10,000 samples on the edge", "missing points (NAN)",
                "holds where some layer of S1 edge has none in most runs of a baseline, in direction where in some")
RANDOM = Claim("Random search finds none for most layers on the edge", "not drawn for that reason",
               "holds where so on more than half of the layers of S1, in direction where on some")
CLOUD = Claim("On the cloud platform all optimisers find mappings (S1)", "all",
              "holds where all do on all layers (random search aside), in direction where on nine in ten")
GROWS = Claim("On S3 it happens more often than on S1", "significantly more missing points",
              "holds where more (layer, baseline) pairs lack a mapping on S3 than on S1, over both platforms")
BEST = Claim("Gamma does best on S3, the most flexible", "figure 4.4 g, h",
             "holds where its network latency there is the least of the three on both platforms, to 0.1 %")
EARLY = Claim("On S2 ShiDianNao-like beats the optimisers on early layers, NVDLA-like on late ones", "named",
              "holds where so (sums over the first and the last third of the layers, all baselines) on both platforms, "
              "in direction on one")
ENCODING = ("Baselines as released see tile sizes themselves, and one penalty for all mappings that do not fit, as in "
            "Gamma's release; claims on S1 are judged by them. The others see mappings as shares of the logarithms of "
            "sizes, and are told how far over the memories a mapping is.")
CLAIMS44 = (*RATIO_CLAIMS.values(), ALWAYS, FAILING, RANDOM, CLOUD, GROWS, BEST, EARLY)

ENERGY_CLAIMS = {platform: Claim(f"Gamma's mappings take less energy than all others, S2 {platform}",
                                 f"{times(low)} to {times(high)}", _LEAST)
                 for platform, (low, high) in ENERGY.items()}
NO_EDGE = Claim("On the edge most optimisers beat the fixed dataflows", "most of them",
                "holds where more than half beat all three, in direction where more than half beat two")
NVDLA = Claim("On the cloud NVDLA-like is far better than the other two dataflows", "named",
              "holds where it takes at most half of the energy of either, in direction where less")
CLAIMS45 = (*ENERGY_CLAIMS.values(), NO_EDGE, NVDLA)

Found = dict[tuple[str, str], Tries]


def measure(setting: Setting, watch: Watch, objective: str, systems: Sequence[str]) -> Found:
    """Let all methods that can be built map ResNet-18 on both platforms of some systems."""
    layers = convolutions("resnet18", setting["every"])
    methods = (GAMMA, OWN, *FIXED, *baselines()[0])
    return {(system, platform): contest(watch, layers, machine(platform, system), methods, seeds=setting.seeds,
                                        samples=setting["samples"], objective=objective)
            for system in systems for platform in PLATFORMS}


def others(tries: Tries) -> list[str]:
    """Return the methods that the paper compares Gamma with; random search is not drawn there."""
    return [label for label in tries if label not in (PAPER, OURS, "random")]


def searched(tries: Tries) -> list[str]:
    """Return the baselines among them."""
    return [label for label in tries if label in BASELINES and label != "random"]


def run44(setting: Setting, watch: Watch) -> Findings:
    """Measure and judge figure 4.4."""
    found = measure(setting, watch, "latency", SYSTEMS)
    layers = convolutions("resnet18", setting["every"])
    theirs = {platform: released(watch, layers, machine(platform, "s1"), seeds=setting.seeds,
                                 samples=setting["samples"]) for platform in PLATFORMS}
    judged = [_ratio(found[key], theirs[key[1]] if key[0] == "s1" else {}, key) for key in RATIO_CLAIMS]
    judged += [_always(found), _failing(theirs), _random(theirs), _cloud(theirs), _grows(found), _best(found),
               _early(found)]
    tables = tuple(_table(f"s1-{platform}-released", f"ResNet-18 on S1 {platform}: latency, baselines as released",
                          {PAPER: found["s1", platform][PAPER], **tries}, ("s1", platform), "latency")
                   for platform, tries in theirs.items() if tries)
    return Findings((*_tables(found, "latency"), *tables), tuple(judged), _plots(found, "latency"),
                    (*_missing(), ENCODING))


def _ratio(tries: Tries, theirs: Tries, key: tuple[str, str]) -> Judgement:
    """Judge Gamma against the dataflows and the baselines: as released where they were run so."""
    figure = FIGURES["latency"]
    flows = [method.label for method in FIXED]
    rivals = [label for label in theirs if not label.startswith("random")]
    every = ratios({**tries, **theirs}, PAPER, figure, [*flows, *rivals] if theirs else others(tries))
    room = _room(tries, key)
    if theirs:
        own = ratios(tries, PAPER, figure, searched(tries))
        closest = min(own, key=lambda label: own[label], default=None)
        room = (f"{closest} with our encoding: {times(own[closest])}; " if closest else "") + room
    return judge_range(RATIO_CLAIMS[key], every, PUBLISHED[key], room)


def _room(tries: Tries, key: tuple[str, str]) -> str:
    """Return how much less than the closest other method any mapping can take."""
    bound = network_bound([each.layer for each in tries[PAPER]], machine(key[1], key[0]), "compute_cycles")
    whole = {label: total(tries[label], FIGURES["latency"]) for label in others(tries)}
    closest = min(whole, key=lambda label: whole[label])
    return f"the compute bound is {times(whole[closest] / bound)} below {closest}"


def _tables(found: Found, objective: str) -> tuple[Table, ...]:
    return tuple(_table(f"{system}-{platform}", f"ResNet-18 on {system.upper()} {platform}: {objective}", tries,
                        (system, platform), objective) for (system, platform), tries in found.items())


def _table(name: str, title: str, tries: Tries, key: tuple[str, str], objective: str) -> Table:
    bound = network_bound([each.layer for each in tries[PAPER]], machine(key[1], key[0]),
                          "compute_cycles" if objective == "latency" else "energy_pj")
    return summary_table(name, title, tries, PAPER, FIGURES[objective], bound)


def _plots(found: Found, objective: str) -> tuple[Plot, ...]:
    return tuple(layers_plot(f"{system}-{platform}", f"{system.upper()} {platform}: {objective} of every layer", tries,
                             FIGURES[objective]) for (system, platform), tries in found.items())


def _missing() -> tuple[str, ...]:
    missing = baselines()[1]
    return (f"Not measured, as no such mapper can be built here: {', '.join(missing)}.",) if missing else ()


def _always(found: Found) -> Judgement:
    failed = {key: sum(each.failed for each in tries[PAPER]) for key, tries in found.items()}
    layers = sum(unmapped(tries[PAPER])[0] for tries in found.values())
    runs = sum(len(each.runs) for tries in found.values() for each in tries[PAPER])
    ours = f"{runs - sum(failed.values())} of {runs} runs as published"
    own = sum(each.failed for tries in found.values() for each in tries[OURS])
    return Judgement(ALWAYS, f"{ours}, {runs - own} of {runs} of ours",
                     "holds" if not any(failed.values()) else "holds in direction" if not layers else "does not hold")


def _failing(theirs: Mapping[str, Tries]) -> Judgement:
    tries = _rivals(theirs["edge"])
    if not tries:
        return Judgement(FAILING, "no baseline can be built", "not judged")
    layers = {label: unmapped(found)[0] for label, found in tries.items()}
    some = sum(each.failed for found in tries.values() for each in found)
    told = ", ".join(f"{label} {count}" for label, count in layers.items() if count) or "none"
    return Judgement(FAILING, f"layers without a mapping: {told}; {some} runs without",
                     "holds" if any(layers.values()) else "holds in direction" if some else "does not hold")


def _rivals(tries: Tries) -> Tries:
    return {label: found for label, found in tries.items() if not label.startswith("random")}


def _random(theirs: Mapping[str, Tries]) -> Judgement:
    tries = next((found for label, found in theirs["edge"].items() if label.startswith("random")), None)
    if tries is None:
        return Judgement(RANDOM, "random search can't be built", "not judged")
    missing, layers = unmapped(tries)
    legal = sum(run["legal_samples"] for each in tries for run in each.runs)
    share = 100 * legal / sum(run["samples"] for each in tries for run in each.runs)
    return Judgement(RANDOM, f"{missing} of {layers} layers; {share:.2g} % of its mappings fit",
                     "holds" if 2 * missing > layers else "holds in direction" if missing else "does not hold")


def _cloud(theirs: Mapping[str, Tries]) -> Judgement:
    tries = _rivals(theirs["cloud"])
    if not tries:
        return Judgement(CLOUD, "no baseline can be built", "not judged")
    pairs = [unmapped(found) for found in tries.values()]
    missing, of = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return Judgement(CLOUD, f"{of - missing} of {of} layers and methods",
                     "holds" if not missing else "holds in direction" if missing <= of / 10 else "does not hold",
                     "the elements have 64 bytes here, 4 MiB in all; the paper prints 4 MiB" if missing else "")


def _grows(found: Found) -> Judgement:
    counts = {system: sum(unmapped(found[system, platform][label])[0] for platform in PLATFORMS
                          for label in searched(found[system, platform])) for system in SYSTEMS}
    told = ", ".join(f"{system.upper()} {count}" for system, count in counts.items())
    if not any(counts.values()):
        return Judgement(GROWS, f"{told}, with our encoding", "not judged",
                         "the release's encoding of S3 spreads loops that our memories can't tell apart")
    return Judgement(GROWS, told, "holds" if counts["s3"] > counts["s1"] else "does not hold")


def _best(found: Found) -> Judgement:
    whole: dict[str, Mapping[str, float]] = {
        platform: {system: total(found[system, platform][PAPER], "latency_cycles") for system in SYSTEMS}
        for platform in PLATFORMS}
    best = all(each["s3"] <= 1.001 * min(each.values()) for each in whole.values())
    told = "; ".join(f"{platform} " + ", ".join(f"{system.upper()} {cycles:,.0f}" for system, cycles in each.items())
                     for platform, each in whole.items())
    one = any(each["s3"] <= 1.001 * min(each.values()) for each in whole.values())
    return Judgement(BEST, told, "holds" if best else "holds in direction" if one else "does not hold")


def _early(found: Found) -> Judgement:
    told, held = [], 0
    for platform in PLATFORMS:
        tries = found["s2", platform]
        third = max(1, len(tries[PAPER]) // 3)
        if not searched(tries):
            return Judgement(EARLY, "no baseline can be built", "not judged")
        parts = {"ShiDianNao-like": slice(0, third), "NVDLA-like": slice(-third, None)}
        won = {flow: sum(total(tries[flow][part], "latency_cycles") < total(tries[label][part], "latency_cycles")
                         for label in searched(tries)) for flow, part in parts.items()}
        held += all(count == len(searched(tries)) for count in won.values())
        told.append(f"{platform}: " + ", ".join(f"{flow} before {count} of {len(searched(tries))}"
                                                for flow, count in won.items()))
    return Judgement(EARLY, "; ".join(told),
                     "holds" if held == 2 else "holds in direction" if held else "does not hold")


def run45(setting: Setting, watch: Watch) -> Findings:
    """Measure and judge figure 4.5."""
    found = measure(setting, watch, "energy", ("s2",))
    figure = FIGURES["energy"]
    judged = [judge_range(claim, ratios(found["s2", platform], PAPER, figure, others(found["s2", platform])),
                          ENERGY[platform]) for platform, claim in ENERGY_CLAIMS.items()]
    edge, cloud = found["s2", "edge"], found["s2", "cloud"]
    flows = [method.label for method in FIXED]
    if searched(edge):
        won = [sum(total(edge[label], figure) < total(edge[flow], figure) for flow in flows)
               for label in searched(edge)]
        told = f"{sum(count == 3 for count in won)} of {len(won)} beat all three, {sum(c >= 2 for c in won)} two"
        judged.append(Judgement(NO_EDGE, told, "holds" if 2 * sum(c == 3 for c in won) > len(won) else
                                "holds in direction" if 2 * sum(c >= 2 for c in won) > len(won) else "does not hold"))
    else:
        judged.append(Judgement(NO_EDGE, "no baseline can be built", "not judged"))
    share = max(total(cloud["NVDLA-like"], figure) / total(cloud[flow], figure) for flow in flows[1:])
    judged.append(Judgement(NVDLA, f"at most {share:.2f} of the others'", "holds" if share <= 0.5 else
                            "holds in direction" if share < 1 else "does not hold"))
    return Findings(_tables(found, "energy"), tuple(judged), _plots(found, "energy"), (
        *_missing(), "Energy here counts the DRAM, which the published cost model does not."))


_QUICK44 = Setting("quick", 1, {"samples": 500, "every": 6})
_QUICK45 = Setting("quick", 1, {"samples": 1_000, "every": 4})
_FULL = Setting("full", 3, {"samples": 10_000, "every": 1})

REPRODUCTIONS.register("gamma-fig4.4")(Study(
    "gamma-fig4.4", "ResNet-18 by all methods on S1, S2, S3, edge and cloud: latency",
    "Kao, dissertation, Georgia Tech 2022, figure 4.4", CLAIMS44, _QUICK44, _FULL, run44))
REPRODUCTIONS.register("gamma-fig4.5")(Study(
    "gamma-fig4.5", "ResNet-18 by all methods on S2: energy", "Kao, dissertation, Georgia Tech 2022, figure 4.5",
    CLAIMS45, _QUICK45, _FULL, run45))

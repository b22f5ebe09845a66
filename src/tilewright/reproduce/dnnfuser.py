"""DNNFuser, tables 1 to 3 and figure 4: how fast fused networks are, on the stated machine and where they can be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import floor, log, log10, sqrt
from statistics import mean, median
from typing import Any

import numpy as np

from tilewright.fusion.microbatch import (
    SYNC,
    FusedMachine,
    MicroBatchProblem,
    bound_of,
    demonstrations,
    figures,
    fuse,
    scores,
    train_fuser,
    walk_strategy,
    written,
)
from tilewright.hardware import changed, preset
from tilewright.jobs import Runner
from tilewright.reproduce.claims import (
    Claim,
    Judgement,
    between,
    follows,
    judge,
    listed,
    part_of,
    ratio,
)
from tilewright.reproduce.study import Cell, Findings, Setting, Table, Value, claims, published_cells, reproduction
from tilewright.workload import zoo

MB = 1e6
STATED = 900.0
"""GB/s off chip (section 5.1)."""
MOST_SECONDS = 10.0
"""For the exact mapper; where it does not end, its bound stands."""
Place = tuple[str, int, float]
"""A network, its batch, and the memory in MB."""
FIRST: Mapping[Place, Mapping[str, float]] = {("vgg16", 64, 20.0): {"A2C": 0.98, "G-Sampler": 1.19},
                                              ("vgg16", 128, 40.0): {"G-Sampler": 2.06}}
"""Table 1: speedups over layer by layer; no plan of the other mappers fits."""
LEARNT = {("vgg16", 64, 20.0): 1.20, ("vgg16", 128, 40.0): 3.13}
"""Table 1, DNNFuser."""
MINUTES = {"PSO": 69.17, "CMA": 77.03, "DE": 65.17, "TBPSA": 110.5, "stdGA": 61.66, "A2C": 335.63, "G-Sampler": 0.66}
"""Table 1, 20 MB: search times; DNNFuser's is 0.01, and G-Sampler's at 40 MB 1.27."""
NAMES = {"PSO": "pso", "CMA": "cma-es", "DE": "de", "TBPSA": "tbpsa", "stdGA": "ga", "A2C": "a2c",
         "G-Sampler": "g-sampler"}
Printed = Mapping[str, Mapping[str, Mapping[float, float]]]
"""By mapper or model, the first of which is G-Sampler: speedups by network and MB, where it found a plan."""


def _printed(table: str) -> Printed:
    (_, _, *names), *lines = published_cells(table)
    found: dict[str, dict[str, dict[float, float]]] = {name: {} for name in names}
    for network, memory, *speedups in lines:
        for name, speedup in zip(names, speedups, strict=True):
            if speedup:
                found[name].setdefault(network, {})[float(memory)] = float(speedup)
    return found


SECOND, THIRD = _printed("dnnfuser-table2"), _printed("dnnfuser-table3")
"""Tables 2 and 3, 64 samples: models were shown plans for `SHOWN` alone; ``Transfer`` had a tenth of the training after
that on `BEFORE`, ``Direct`` began from nothing."""
SHOWN, BEFORE = (16.0, 32.0, 48.0, 64.0), ("vgg16", "resnet18")
MODELS: Mapping[str, tuple[str, bool]] = {
    "DNNFuser": ("transformer", False), "Seq2Seq": ("lstm", False), "Transfer": ("transformer", True),
    "Direct": ("transformer", False)}
"""The kind of model, and whether it was trained on `BEFORE` first."""
PLANS = {"DNNFuser": (42, -1, 30, 27, -1, 30, -1, 30, -1, -1, -1, 31, -1, 36, -1, -1, 47, 62, 35),
         "G-Sampler": (64, -1, 36, -1, 64, -1, -1, 25, -1, 60, 43, 20, 36, 42, 61, 46, 1, 37, 21)}
"""Figure 4: ResNet-18, 64 samples, 20 MB; their speedups are 1.27 and 1.37 (table 2)."""
BOUND = ("Bound: cycles of all multiplications on all elements, and what must cross the chip's edge. On the stated "
         "machine (1,024 elements, 1 GHz, 900 GB/s) layers alone are bound by their multiplications; no plan, fused in "
         "any way, takes fewer cycles than these.")


@cache
def _stated(place: Place) -> MicroBatchProblem:
    network, batch, memory = place
    return MicroBatchProblem.of(zoo.load(network), preset("dnnfuser"), batch, memory * MB)


@cache
def problem_of(place: Place, gigabytes: float) -> MicroBatchProblem:
    """Return what is fused, on the stated machine with so many GB/s off chip."""
    machine = changed(preset("dnnfuser"), [f"DRAM.bandwidth={gigabytes:.9g}GB/s"])
    return replace(_stated(place), machine=FusedMachine.of(machine))


def limit(place: Place, gigabytes: float) -> float:
    """Return the speedup that no plan exceeds."""
    problem = problem_of(place, gigabytes)
    return float(scores(problem, problem.unfused)[0]) / bound_of(problem)


def nearest(place: Place, speedup: float) -> float:
    """Return the most GB/s off chip, all else as stated, at which a speedup is not impossible."""
    low, high = STATED * 1e-6, STATED
    if limit(place, high) >= speedup:
        return high
    for _ in range(40):
        middle = sqrt(low * high)
        low, high = (middle, high) if limit(place, middle) >= speedup else (low, middle)
    unit = 10.0 ** (floor(log10(low)) - 2)
    return float(f"{floor(low / unit) * unit:.3g}")


def _search(place: Place, gigabytes: float, mapper: str, samples: int, seed: int) -> dict[str, Any]:
    problem = problem_of(place, gigabytes)
    proves = mapper == "exact"
    run = fuse(problem, mapper, samples=None if proves else samples, seed=seed,
               seconds=MOST_SECONDS if proves else None)
    unfused = float(scores(problem, problem.unfused)[0])
    walked = walk_strategy(problem, run.strategy.tolist())
    return {"speedup": unfused / run.score, "limit": unfused / bound_of(problem), "found": float(run.found),
            "memory": run.least_memory_bytes / MB, "gap": run.gap, "seconds": run.seconds, "samples": run.samples,
            "agrees": abs(walked.latency_cycles / run.score - 1) < 1e-9}


def _cell(place: Place, gigabytes: float, mapper: str, samples: int, seed: int) -> Cell:
    key = {"place": list(place), "gigabytes": gigabytes, "mapper": mapper, "samples": samples, "seed": seed}
    return Cell(key, partial(_search, place, gigabytes, mapper, samples, seed), lambda value: int(value["samples"]))


def _taught(network: str, gigabytes: float, memories: Sequence[float], model: str,
            training: Mapping[str, Any]) -> dict[str, Any]:
    """Train a model on proven plans for `SHOWN`; return the speedups of what it writes, by memory."""
    from tilewright.learn import SequenceOptions  # noqa: PLC0415  (PyTorch loads late)

    def shown(names: Sequence[str]) -> list[Any]:
        return demonstrations([problem_of((name, 64, memory), gigabytes) for name in names for memory in SHOWN],
                              "exact", 1, seconds=training["seconds"])

    kind, before = MODELS[model]
    options = SequenceOptions(kind=kind, steps=training["steps"], width=training["width"],  # type: ignore[arg-type]
                              seed=training["seed"])
    first = train_fuser(shown(BEFORE), options) if before else None
    options = replace(options, steps=max(1, options.steps // 10)) if before else options
    trained, found = train_fuser(shown([network]), options, first), dict[str, Any]()
    for memory in memories:
        problem = problem_of((network, 64, memory), gigabytes)
        plan = written(trained, problem)
        own = figures(problem, plan)[0]
        found[f"{memory:g}"] = _speedup(problem, plan) if own[2] <= problem.memory_bytes else 0.0
    return {"speedups": found, "samples": len(memories)}


def _lesson(network: str, gigabytes: float, memories: Sequence[float], model: str, training: Mapping[str, Any]) -> Cell:
    key = {"network": network, "gigabytes": gigabytes, "memories": list(memories), "model": model, **training}
    return Cell(key, partial(_taught, network, gigabytes, memories, model, training),
                lambda value: int(value["samples"]))


def _agreement(found: Sequence[Mapping[str, Any]]) -> str:
    wrong = sum(not each["agrees"] for each in found)
    return (f"A literal walk of the plans {'disagrees' if wrong else 'agrees'} with the model on "
            f"{wrong or len(found)} of {len(found)}.")


def _impossible(claim: Claim, published: Mapping[Place, float]) -> Judgement:
    """Judge speedups by what is possible on the stated machine."""
    most = {place: limit(place, STATED) for place in published}
    above = sum(published[place] > most[place] for place in published)
    told = f"at most {max(most.values()):.3f}x on the stated machine"
    near = min((nearest(place, speedup), place[0]) for place, speedup in published.items())
    return judge(claim, max(most.values()), told, (
        f"{above} of {len(published)} are above the bound; all are possible from {near[0]:g} GB/s off chip down, all "
        f"else as stated ({near[1]} needs the least)"), impossible=above > 0)


FASTER, NOTHING, AHEAD, QUICKER, FACTORS = claims("dnnfuser-table1")


@reproduction("dnnfuser-table1",
              Setting("quick", 2, {"samples": 400, "methods": ("PSO", "CMA", "DE", "TBPSA", "stdGA", "G-Sampler")}),
              Setting("full", 5, {"samples": 2_000, "methods": tuple(NAMES)}))
def table1(setting: Setting, runner: Runner) -> Findings:
    """Search by every mapper, on the nearest machine on which the speedups are possible."""
    rates = {place: nearest(place, LEARNT[place]) for place in FIRST}
    keys = [(place, name, seed) for place in FIRST for name in (*setting["methods"], "best")
            for seed in range(setting.seeds if name != "best" else 1)]
    found = dict(zip(keys, runner.run([
        _cell(place, rates[place], NAMES.get(name, "exact"), setting["samples"], seed) for place, name, seed in keys]),
        strict=True))
    others = [name for name in setting["methods"] if name != "G-Sampler"]
    nothing = [mean(1.0 - found[place, name, seed]["found"] for place in FIRST for name in others)
               for seed in range(setting.seeds)]
    ahead = [mean(_beats(found[place, "G-Sampler", seed], found[place, name, seed])
                  for place in FIRST for name in others) for seed in range(setting.seeds)]
    quicker = [median(_pace(found[place, name, seed]) for place in FIRST for name in others)
               / median(_pace(found[place, "G-Sampler", seed]) for place in FIRST) for seed in range(setting.seeds)]
    rows: list[tuple[Value, ...]] = []
    for place in FIRST:
        for name in (*setting["methods"], "best"):
            one = found[place, name, 0]
            rows.append((f"{place[2]:g} MB, batch {place[1]}", name, FIRST[place].get(name), limit(place, STATED),
                         one["speedup"] if one["found"] else None, one["limit"], one["memory"],
                         MINUTES.get(name) if place[2] == 20 else None, one["seconds"]))
    table = Table("speedups", "Speedup of VGG16 over layer by layer (first seed)", (
        "Case", "Mapper", "published", "at most, stated", "ours, nearest", "at most, nearest", "MB",
        "published (minutes)", "ours (s)"), tuple(rows), (
            "Nearest: the stated machine with " + " and ".join(f"{rate:g}" for rate in rates.values())
            + " GB/s off chip, where DNNFuser's speedups are not impossible. Best: the exact mapper. Memory is what "
            "the best plan found takes, too much where there is no speedup.",))
    calls = ("Counted in calls of the cost model DNNFuser is 2,000 times ahead (1 against 2,000). In seconds here "
             f"{setting['samples']:,} samples of G-Sampler take "
             f"{1e3 * median(found[place, 'G-Sampler', 0]['seconds'] for place in FIRST):.0f} ms: where a sample costs "
             "no more, hardly any inference is faster; where it costs 20 ms, as 0.66 minutes for 2,000 do, one is.")
    return Findings((table,), (
        _impossible(FASTER, LEARNT), listed(NOTHING, nothing), listed(AHEAD, ahead),
        listed(QUICKER, quicker, "{:.3g}x"),
        follows(FACTORS, [(f"{minutes} minutes", text, ratio(between([minutes], 2), between([0.01], 1)))
                          for minutes, text in ((0.66, "66"), (1.27, "127"))])),
        notes=(BOUND, calls, _agreement(list(found.values()))))


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    return float(one["found"] > 0 and (other["found"] <= 0 or one["speedup"] > other["speedup"]))


def _pace(one: Mapping[str, Any]) -> float:
    return float(one["seconds"]) / max(1.0, float(one["samples"]))


def _by_memory(setting: Setting, runner: Runner, printed: Printed, claims: tuple[Claim, ...]) -> Findings:
    (_, published), *learnt = printed.items()
    models = [model for model, _ in learnt]
    places = {(network, 64, float(memory)): speedup for network in setting["networks"]
              for memory, speedup in published[network].items() if memory in setting["memories"]}
    # One machine a network, so that memories can be told apart.
    rates = {network: min(nearest(place, speedup) for place, speedup in places.items() if place[0] == network)
             for network in setting["networks"]}
    keys = [(place, mapper, seed) for place in places for mapper in ("exact", "g-sampler")
            for seed in range(1 if mapper == "exact" else setting.seeds)]
    found = dict(zip(keys, runner.run([_cell(place, rates[place[0]], mapper, setting["samples"], seed)
                                       for place, mapper, seed in keys]), strict=True))
    parts = [min(part_of(found[place, "g-sampler", seed]["speedup"], found[place, "exact", 0]["speedup"])
                 for place in places) for seed in range(setting.seeds)]
    steps = [mean([float(found[b, "g-sampler", seed]["speedup"] >= found[a, "g-sampler", seed]["speedup"] * (1 - 1e-9))
                   for a, b in pairwise(places) if a[0] == b[0]] or [1.0]) for seed in range(setting.seeds)]
    asked = [(network, model, seed) for network in setting["taught"] for model in models
             for seed in range(setting["lessons"])]
    told = [place for place in places if place[0] in setting["taught"]]
    memories = {network: [place[2] for place in told if place[0] == network] for network in setting["taught"]}
    training = {name: setting[name] for name in ("steps", "width", "seconds")}
    taught = dict(zip(asked, runner.run([
        _lesson(network, rates[network], memories[network], model, {**training, "seed": seed})
        for network, model, seed in asked]), strict=True))

    def wrote(place: Place, model: str, seed: int) -> float:
        return float(taught[place[0], model, seed]["speedups"][f"{place[2]:g}"])

    own, other = models
    does = [min(part_of(wrote(place, own, seed), found[place, "exact", 0]["speedup"]) for place in told)
            for seed in range(setting["lessons"])]
    ahead = [mean(float(wrote(place, own, seed) >= wrote(place, other, seed) * (1 - 1e-9)) for place in told)
             for seed in range(setting["lessons"])]
    rows = tuple((f"{place[0]}, {place[2]:g} MB", speedup, limit(place, STATED), rates[place[0]],
                  found[place, "exact", 0]["speedup"], found[place, "exact", 0]["limit"],
                  found[place, "exact", 0]["gap"],
                  median(found[place, "g-sampler", seed]["speedup"] for seed in range(setting.seeds)),
                  *(figure for model, speedups in learnt for figure in (
                      speedups[place[0]].get(place[2]),
                      median(wrote(place, model, seed) for seed in range(setting["lessons"]))
                      if place in told else None)))
                 for place, speedup in places.items())
    table = Table("speedups", "Speedup over layer by layer, 64 samples", (
        "Network", "published", "at most, stated", "nearest (GB/s)", "best, nearest", "at most, nearest", "gap",
        "G-Sampler, nearest", *(name for model in models for name in (f"{model}, published", f"{model}, nearest"))),
        rows, (
            "Nearest: the stated machine with so many GB/s off chip, where no published speedup of the network is "
            "impossible. Best: the exact mapper; gap: how far it can be from the best at most. Models: the median over "
            f"seeds, shown proven plans for {', '.join(f'{memory:g}' for memory in SHOWN)} MB alone, and for all sizes "
            "up to the next of these.",))
    falls = [f"{network} {old} to {new} from {a:g} to {b:g} MB" for network, row in published.items()
             for (a, old), (b, new) in pairwise(row.items()) if new < old]
    note = ("A plan for less memory fits more, so that the best speedup never falls with memory; published ones do "
            f"({'; '.join(falls)}): their search missed better plans.")
    return Findings((table,), (
        _impossible(claims[0], places), listed(claims[1], parts), listed(claims[2], steps), listed(claims[3], does),
        listed(claims[4], ahead)),
        notes=(BOUND, note, _agreement(list(found.values()))))


TWO, THREE = claims("dnnfuser-table2"), claims("dnnfuser-table3")
_TAUGHT = {"steps": 300, "width": 128, "seconds": MOST_SECONDS, "samples": 2_000}
_QUICK = {**_TAUGHT, "networks": BEFORE, "memories": (20, 25, 30, 35, 40, 45), "taught": BEFORE}


@reproduction("dnnfuser-table2", Setting("quick", 3, {**_QUICK, "lessons": 2}),
              Setting("full", 10, {**_QUICK, "lessons": 5}))
def table2(setting: Setting, runner: Runner) -> Findings:
    """Search for each memory, and let models write plans."""
    return _by_memory(setting, runner, SECOND, TWO)


_LARGER = {**_TAUGHT, "networks": ("resnet50", "mobilenet-v2", "mnasnet"), "memories": (25, 35, 45, 55)}


@reproduction("dnnfuser-table3", Setting("quick", 3, {**_LARGER, "taught": ("resnet50",), "lessons": 1}),
              Setting("full", 10, {**_LARGER, "taught": _LARGER["networks"], "lessons": 5}))
def table3(setting: Setting, runner: Runner) -> Findings:
    """Search for each memory, and let models write plans."""
    return _by_memory(setting, runner, THIRD, THREE)


FITS, DEEPER, PLAN = claims("dnnfuser-fig4")


@reproduction("dnnfuser-fig4", Setting("quick", 1, {"samples": 2_000}), Setting("full", 1, {"samples": 2_000}))
def figure4(setting: Setting, runner: Runner) -> Findings:
    """Count what the printed plans take, beside the optimum."""
    place: Place = ("resnet18", 64, 20.0)
    rate = nearest(place, 1.37)
    best, = runner.run([Cell({"place": list(place), "gigabytes": rate, "of": "plans"}, partial(_plans, place, rate))])
    names = (*PLANS, "best")
    fits = [best["memory"][name] <= place[2] for name in PLANS]
    deeper = [best["second"][name] > best["first"][name] for name in names]
    rows = tuple((name, " ".join(map(str, best["plan"][name])), best["memory"][name], best["stated"][name],
                  best["nearest"][name], best["first"][name], best["second"][name]) for name in names)
    table = Table("plans", "ResNet-18, 64 samples, 20 MB", (
        "Plan", "Micro-batches", "MB", "speedup, stated", "speedup, nearest", "layers a group, first half",
        "second half"), rows, (
            f"Best: the exact mapper on the nearest machine, with {rate:g} GB/s off chip. At two bytes a word "
            "G-Sampler's plan does not fit. Layers alone are groups of one.",))
    told = ", ".join(f"{name} {best['memory'][name]:.2f} MB" for name in PLANS)
    return Findings((table,), (
        judge(FITS, sum(fits) / len(fits), told), judge(DEEPER, sum(deeper) / len(deeper), f"{sum(deeper)} of 3 plans"),
        _impossible(PLAN, {place: 1.37})), notes=(BOUND, _agreement([best])))


def _plans(place: Place, rate: float) -> dict[str, Any]:
    stated, near = problem_of(place, STATED), problem_of(place, rate)
    run = fuse(near, "exact", seconds=MOST_SECONDS)
    plans = {**{name: list(plan) for name, plan in PLANS.items()}, "best": run.strategy.tolist()}
    arrays = {name: np.array([plan]) for name, plan in plans.items()}
    walked = {name: walk_strategy(near, plan).latency_cycles for name, plan in plans.items()}
    cycles = {name: float(figures(near, plan)[0, 0]) for name, plan in arrays.items()}
    lengths = {name: _lengths(plan) for name, plan in plans.items()}
    half = stated.length // 2
    return {"plan": plans, "memory": {name: float(figures(stated, plan)[0, 2]) / MB for name, plan in arrays.items()},
            "stated": {name: _speedup(stated, plan) for name, plan in arrays.items()},
            "nearest": {name: _speedup(near, plan) for name, plan in arrays.items()},
            "first": {name: mean(each[:half]) for name, each in lengths.items()},
            "second": {name: mean(each[half:]) for name, each in lengths.items()}, "samples": run.samples,
            "agrees": all(abs(log(walked[name] / cycles[name])) < 1e-9 for name in plans)}


def _speedup(problem: MicroBatchProblem, plan: Any) -> float:
    return float(figures(problem, problem.unfused)[0, 0] / figures(problem, plan)[0, 0])


def _lengths(plan: Sequence[int]) -> list[int]:
    """Return of each layer how many layers its group has."""
    groups, place = list[int](), 0
    for size in plan[1:]:
        groups.append(place)
        place += size == SYNC
    return [groups.count(group) for group in groups]

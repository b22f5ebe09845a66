"""MAGMA, figures 7.6 to 7.13 and table 7.4: jobs alone, schedules, groups, and plans that begin warm."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import comb, factorial, floor, log10, nan
from statistics import harmonic_mean, mean, median, pstdev
from typing import Any

import numpy as np

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, follows, judge, listed, lower, ratio
from tilewright.reproduce.magma_systems import (
    BLACK_BOX,
    FEW,
    HAND,
    HERALD,
    MAGMA,
    NOTES,
    OURS,
    TENTHS,
    WHOLE,
    Groups,
    Place,
    analysed,
    as_published,
    cell_key,
    first_mapping,
    flops,
    only,
    oracles,
    sweep,
)
from tilewright.reproduce.study import Cell, Findings, Setting, Table, Value, claims, published_groups, reproduction
from tilewright.scheduling import KnownPlan, LayerJob, Scheduled, adopted, analyse, network_jobs, schedule
from tilewright.workload import zoo

DLA, EYE = "dla", "eye"
ANALYSED = published_groups("magma-fig7.6")
"""Mean cycles of a job on each core, and the bandwidth that it needs: 64 x 64 elements, figure 7.6 (a)."""
MEANS = {"Vision": (1.7e5, 2.8e6), "Lang": (7.4e3, 1.5e6), "Recom": (1.9e2, 7.6e5)}
OPTIONS: Mapping[str, Mapping[str, int]] = {"Vision": {}, "Lang": {"sequence": 20}, "Recom": {}}
"""One image, one sentence of 20 words (as in the released lists), one recommendation: the text has no sizes."""
BYTES_A_CYCLE = 5.0
"""What one GB/s is at 200 MHz: the more generous reading of the printed bandwidths."""

*_SLOWER, NEEDS, ONCE = claims("magma-fig7.6", *(slow / fast for fast, slow in MEANS.values()))
SLOWER = dict(zip(MEANS, _SLOWER, strict=True))


@reproduction("magma-fig7.6", Setting("quick", 2, {"samples": 90, "every": 9}),
              Setting("full", 10, {"samples": 2_000, "every": 1}))
def run76(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.6 (a)."""
    asked = [(task, name, seed) for task, names in ANALYSED.items() for name in names
             for seed in range(setting.seeds)]
    cells = [_analysis_cell(task, name, seed, setting) for task, name, seed in asked]
    found = dict(zip(asked, runner.run(cells), strict=True))
    system = only("s5", range(4, 8))
    told = oracles(runner, [(cell, _jobs(task, name, setting)[0], system.cores[0].accelerator, found[task, name, seed])
                            for cell, (task, name, seed) in zip(cells, asked, strict=True) if seed == 0])
    seeds = range(setting.seeds)
    judged = [listed(claim, (_ratio(found, task, seed) for seed in seeds), "{:.3g}x")
              for task, claim in SLOWER.items()]
    judged.append(listed(NEEDS, (lower(
        (found[task, name, seed]["bandwidth"][EYE], found[task, name, seed]["bandwidth"][DLA])
        for task, names in ANALYSED.items() for name in names) for seed in seeds)))
    covered = [_allowed(task, name, cycles, rate) for task, names in ANALYSED.items()
               for name, row in names.items() for cycles, rate in zip(row[:2], row[2:], strict=True)]
    judged.append(judge(ONCE, sum(covered) / len(covered), f"{sum(covered)} of {len(covered)}",
                        "the others move less than their weights, even if GB/s are meant and one job has all of both",
                        impossible=not all(covered)))
    return Findings((_jobs_table(found),), tuple(judged), notes=(
        "The released program divides one tile by the runtime; ours are all bytes of the fastest mapping found, over "
        "its cycles. Layers are those of the zoo, one in so many as the setting says.", told))


def _jobs(task: str, name: str, setting: Setting) -> Sequence[LayerJob]:
    return network_jobs([(zoo.load(name, **OPTIONS[task]), 1)])[::setting["every"]]


def _allowed(task: str, name: str, cycles: float, rate: float) -> bool:
    """Whether jobs of these mean cycles and GB/s can move the weights of a network's layers once, one byte a word."""
    operators = [node.operator for node in zoo.load(name, **OPTIONS[task]).mac_nodes]
    weights = sum(tensor.words(one.sizes) for one in operators for tensor in one.operands
                  if tensor.role == "weights" and "weights" not in dict(one.attributes))
    return len(operators) ** 2 * cycles * BYTES_A_CYCLE * rate >= weights


def _analysis_cell(task: str, name: str, seed: int, setting: Setting) -> Cell:
    def compute() -> dict[str, Any]:
        jobs, system = _jobs(task, name, setting), only("s5", range(4, 8))
        analysis = analyse(jobs, system, samples=setting["samples"], seed=seed, runner=Runner(workers=1))
        cores = {DLA: 0, EYE: len(system.cores) - 1}
        cycles = analysis.table.cycles[analysis.rows][:, :, 0]
        moved = analysis.table.traffic_bytes[analysis.rows][:, :, 0]
        return {"cycles": {key: float(cycles[:, core].mean()) for key, core in cores.items()},
                "bandwidth": {key: float((moved[:, core] / cycles[:, core]).mean()) for key, core in cores.items()},
                "samples": analysis.samples,
                "mapping": first_mapping(jobs, analysis)}

    return Cell({"network": name, "every": setting["every"], "mappings": setting["samples"], "seed": seed}, compute,
                lambda value: int(value["samples"]))


def _ratio(found: Mapping[Any, Any], task: str, seed: int) -> float:
    slow, fast = (sum(found[task, name, seed]["cycles"][core] for name in ANALYSED[task]) for core in (EYE, DLA))
    return slow / fast if fast else nan


def _jobs_table(found: Mapping[Any, Any]) -> Table:
    rows = []
    for task, names in ANALYSED.items():
        for name, (dla, eye, rate_dla, rate_eye) in names.items():
            value = found[task, name, 0]
            rows.append((task, name, value["cycles"][DLA], dla, value["cycles"][EYE], eye, value["bandwidth"][DLA],
                         rate_dla, value["bandwidth"][EYE], rate_eye))
    return Table("jobs", "Mean of a network's jobs, 64 x 64 elements (first seed)", (
        "Task", "Network", "HB cycles", "published", "LB cycles", "published", "HB bytes a cycle", "published",
        "LB bytes a cycle", "published"), tuple(rows), ("Published bandwidths are in GB/s, or in bytes a cycle.",))


SMALL, LARGE = "16GB/s", "256GB/s"
HOMOGENEOUS: dict[Place, float] = {("vision", "s1", SMALL): 249, ("lang", "s1", SMALL): 397,
                                   ("recom", "s1", SMALL): 194, ("mix", "s1", SMALL): 329}
HETEROGENEOUS: dict[Place, float] = {("vision", "s2", SMALL): 254, ("mix", "s2", SMALL): 271,
                                     ("vision", "s4", LARGE): 254, ("mix", "s4", LARGE): 383}
"""MAGMA's throughput in GFLOP/s, as printed."""
RECOM_FLOP_PER_BYTE = 2.0
"""Of the released lists of recommendation jobs, each tensor moved once: all are fully connected layers of one row
(github.com/maestro-project/magma, commit f25ef66, batch_recom)."""

OVER_HERALD, OVER_AIMT, OVER_REST, RECOM = claims("magma-fig7.7")

FACTORS = {("s2", "herald-like"): 2.3, ("s2", "ai-mt-like"): 39.5, ("s2", "black-box methods"): 13.4,
           ("s4", "herald-like"): 1.7, ("s4", "ai-mt-like"): 52.0, ("s4", "black-box methods"): 10.0}
PLAIN = {"s2": "s1", "s4": "s3"}
"""Systems of as many elements whose cores are all of one style."""
ABOVE_TEN = (13.4 * 10.0) ** 0.5
*_FASTER, NO_SLOW, NO_LISTS = claims("magma-fig7.8", *FACTORS.values(), ABOVE_TEN, ABOVE_TEN)
FASTER = dict(zip(FACTORS, _FASTER, strict=True))

TASKS = ("vision", "lang", "recom", "mix")
_QUICK77 = Setting("quick", 2, FEW | {"tasks": ("recom", "mix")})
_FULL77 = Setting("full", 10, WHOLE | {"tasks": TASKS})


@reproduction("magma-fig7.7", _QUICK77, _FULL77, version=2)
def run77(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.7."""
    places = tuple(place for place in HOMOGENEOUS if place[0] in setting["tasks"])
    found = Groups.scheduled(places, setting, runner)
    most = RECOM_FLOP_PER_BYTE * 16
    printed = HOMOGENEOUS["recom", "s1", SMALL]
    return Findings((found.throughput(HOMOGENEOUS),), (
        found.leads(OVER_HERALD, places, HAND[:1]), found.leads(OVER_AIMT, places, HAND[1:]),
        found.leads(OVER_REST, places, BLACK_BOX),
        judge(RECOM, float(printed <= most), f"at most {most:g} GFLOP/s",
              "2 FLOP a byte; batches of 7 and more could, of which the text says nothing",
              impossible=printed > most)), notes=(*NOTES, found.beside(places), found.oracle))


@reproduction("magma-fig7.8", _QUICK77, _FULL77, version=2, cells="magma-fig7.7")
def run78(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.8; beside it the same on systems without a slow core."""
    places = tuple(place for place in HETEROGENEOUS if place[0] in setting["tasks"])
    plain = tuple((task, PLAIN[name], bandwidth) for task, name, bandwidth in places)
    found = Groups.scheduled((*places, *plain), setting, runner)
    judged = [found.leads(claim, [place for place in places if place[1] == system],
                          BLACK_BOX if "box" in other else (other,)) for (system, other), claim in FASTER.items()]
    judged += [found.leads(NO_SLOW, plain, BLACK_BOX), found.leads(NO_LISTS, places, OURS[:1])]
    return Findings((found.throughput(HETEROGENEOUS),), tuple(judged),
                    notes=(*NOTES, found.beside(places), found.oracle))


OTHERS = (*HAND, *BLACK_BOX)
LESS = 1e-3
"""By what share two throughputs differ at least that are not alike."""
CELLS: Mapping[str, Any] = {"version": 2, "cells": "magma-fig7.7"}
_QUICK, _FULL = Setting("quick", 2, FEW), Setting("full", 10, WHOLE)


def ahead(found: Groups, seed: int, pairs: Iterable[tuple[Place, Place]]) -> float:
    """Return the share of pairs whose first place has the higher throughput by MAGMA; half for those that are alike."""
    told = []
    for one, other in pairs:
        ratio = found.values[one, seed]["gflops"][MAGMA] / found.values[other, seed]["gflops"][MAGMA]
        told.append(1.0 if ratio > 1 + LESS else 0.0 if ratio < 1 - LESS else 0.5)
    return mean(told)


def more(found: Groups, seed: int, what: str, pairs: Iterable[tuple[Place, Place]]) -> float:
    """Return the share of pairs whose first place has more ``cycles`` or ``bytes`` a cycle of jobs alone."""
    told = [found.values[one, seed]["alone"][what] - found.values[other, seed]["alone"][what] for one, other in pairs]
    return mean(1.0 if each > 0 else 0.0 if each < 0 else 0.5 for each in told)


WIDTHS9 = {"s2": (16, 8, 4, 1), "s4": (256, 64, 16, 1)}
AT16, AT1, GROWS = claims("magma-fig7.9")


@reproduction("magma-fig7.9", Setting("quick", 2, FEW | {"systems": tuple(WIDTHS9)}),
              Setting("full", 10, WHOLE | {"systems": tuple(WIDTHS9)}), **CELLS)
def run79(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.9."""
    places = sweep(("mix",), {name: WIDTHS9[name] for name in setting["systems"]})
    found = Groups.scheduled(places, setting, runner)

    def grown(seed: int) -> float:
        rows = [[found.lead([place], seed, OTHERS) for place in places if place[1] == name]
                for name in setting["systems"]]
        return mean(float(low > high) for row in rows for high, low in pairwise(row))

    small = sweep(("mix",), {"s2": (16, 1)})
    judged = [found.leads(claim, [place], OTHERS) for claim, place in zip((AT16, AT1), small, strict=True)]
    return Findings((found.throughput({}),), (*judged, found.shares(GROWS, grown)), notes=(
        *NOTES, "Text and figures 7.8 and 7.9 give 1.01x to 39.5x and 1.2x for the same S2 at 16 GB/s.",
        found.beside(places), found.oracle))


LONGER, LITTLE, SCARCE, PLENTY = claims("magma-fig7.10")


@reproduction("magma-fig7.10", _QUICK, _FULL, **CELLS)
def run710(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.10."""
    low, high = (sweep(("mix",), {name: (width,) for name in ("s3", "s4", "s5")}) for width in (1, 256))
    found = Groups.scheduled((*low, *high), setting, runner, (MAGMA,))
    (p3, p4, p5), (q3, q4, q5) = low, high
    return Findings((found.throughput({}, (MAGMA,)),), (
        found.shares(LONGER, lambda seed: mean((more(found, seed, "cycles", [(p4, p3)]),
                                                more(found, seed, "bytes", [(p3, p4)])))),
        found.shares(LITTLE, lambda seed: more(found, seed, "bytes", [(p3, p5), (p4, p5)])),
        found.shares(SCARCE, lambda seed: ahead(found, seed, [(p5, p4), (p4, p3)])),
        found.shares(PLENTY, lambda seed: ahead(found, seed, [(q3, q4), (q4, q5)]))), notes=(*NOTES, found.oracle))


SHORTER, WANTED, FLEXIBLE = claims("magma-fig7.11")


@reproduction("magma-fig7.11", Setting("quick", 2, FEW | {"tasks": ("mix",)}),
              Setting("full", 10, WHOLE | {"tasks": ("vision", "mix")}), **CELLS)
def run711(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.11."""
    widths = {"s1": (16, 1), "s3": (256, 1)}
    fixed = sweep(setting["tasks"], widths)
    pairs = [((task, f"{name}-flex", width), (task, name, width)) for task, name, width in fixed]
    wide = [pair for pair in pairs if pair[0][2] != "1GB/s"]
    found = Groups.scheduled([place for pair in pairs for place in pair], setting, runner, (MAGMA,))
    return Findings((found.throughput({}, (MAGMA,)),), (
        found.shares(SHORTER, lambda seed: more(found, seed, "cycles", [pair[::-1] for pair in wide])),
        found.shares(WANTED, lambda seed: more(found, seed, "bytes", wide)),
        found.shares(FLEXIBLE, lambda seed: ahead(found, seed, pairs))), notes=(
            *NOTES, "Flexible cores have larger memories, too: 1 KB an element and 2 MB, as in the text.",
            found.oracle))


EARLY, EVEN, LATER = claims("magma-fig7.12")


@reproduction("magma-fig7.12", _QUICK, _FULL, **CELLS)
def run712(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.12."""
    place = "mix", "s5", "1GB/s"
    found = Groups.scheduled((place,), setting, runner, (MAGMA, HERALD))
    asked, drawn = ([value[what] for value in found.values.values()] for what in ("asked", "drawn"))
    half = TENTHS // 2
    rows = tuple((f"{part + 1}", *(rows[0][method][part] for method in (MAGMA, HERALD) for rows in (asked, drawn)))
                 for part in range(TENTHS))
    table = Table("bandwidth", "What running jobs ask for and have, as parts of the bandwidth (first seed)", (
        "Tenth of its time", *(f"{method}: {what}" for method in (MAGMA, HERALD) for what in ("asked", "has"))), rows)
    return Findings((table, found.throughput({}, (MAGMA, HERALD))), (
        found.shares(EARLY, lambda seed: float(sum(asked[seed][HERALD][:half]) > sum(asked[seed][HERALD][half:]))),
        found.shares(EVEN, lambda seed: float(_uneven(asked[seed][MAGMA]) < _uneven(asked[seed][HERALD]))),
        found.shares(LATER, lambda seed: float(found.lead([place], seed, (HERALD,)) > 1 + LESS))),
        notes=(*NOTES, found.oracle))


def _uneven(rows: list[float]) -> float:
    return pstdev(rows) / mean(rows) if mean(rows) > 0 else 0.0


ENOUGH = 0.9
"""What part of the throughput of the whole is not "drastically" less: our reading."""
TINY, ALIKE, PLANS = claims("magma-fig7.13")
PLACE13: Place = "mix", "s2", "16GB/s"


def plans_of(jobs: int, cores: int) -> int:
    """Return in how many ways jobs can be split among cores and put into order on each; the text has equal shares."""
    return factorial(jobs) * comb(jobs + cores - 1, cores - 1)


@reproduction("magma-fig7.13", Setting("quick", 2, FEW | {"jobs": 120, "sizes": (4, 10, 40, 120)}),
              Setting("full", 10, WHOLE | {"jobs": 1_000, "sizes": (4, 10, 40, 100, 200, 500, 1_000)}))
def run713(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.13; as many jobs in all, chopped into groups of each size."""
    (small, *others, whole) = setting["sizes"]
    found = Groups.measured(runner, setting, [PLACE13], lambda _, seed: _chopped(seed, setting))
    rates = [{size: value["gflops"][str(size)] for size in setting["sizes"]} for value in found.values.values()]
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (size, rates[0][size], rates[0][size] / rates[0][whole],
         found.values[PLACE13, 0]["bound_gflops"][str(size)]) for size in rates[0])
    order = floor(log10(plans_of(60, 4)))
    return Findings((Table("groups", "Throughput in GFLOP/s over sizes of groups (first seed)",
                           ("Jobs a group", "MAGMA", "over one group", "bound"), rows),), (
        found.shares(TINY, lambda seed: float(rates[seed][small] < ENOUGH * rates[seed][whole])),
        found.shares(ALIKE, lambda seed: mean(float(rates[seed][size] >= ENOUGH * rates[seed][whole])
                                              for size in others)),
        judge(PLANS, float(order == 81), f"O(1e{order})", "60! counts plans with 15 jobs on each core alone")),
        notes=(*NOTES, "A group of any size has the same number of plans simulated.", found.oracle))


def _chopped(seed: int, setting: Setting) -> Cell:
    def compute() -> dict[str, Any]:
        (jobs,), analysis = analysed(*PLACE13[:2], 1, setting["jobs"], setting["mappings"], seed)
        rate, rows = flops(jobs, analysis.system), analysis.rows.tolist()
        runs = {size: [schedule(as_published(jobs[at:at + size], rows[at:at + size], analysis, PLACE13), MAGMA,
                                samples=setting["samples"], seed=seed) for at in range(0, len(jobs), size)]
                for size in setting["sizes"]}
        return {"gflops": {str(size): rate / sum(run.score for run in those) for size, those in runs.items()},
                "bound_gflops": {str(size): rate / sum(run.bound.value for run in those)
                                 for size, those in runs.items()},
                "samples": sum(run.samples for those in runs.values() for run in those) + analysis.samples,
                "mapping": first_mapping(jobs, analysis)}

    return Cell(cell_key(PLACE13, seed, setting) | {"sizes": list(setting["sizes"])}, compute,
                lambda value: int(value["samples"]))


EPOCHS = (0, 1, 30, 100)
RAW, COLD = "raw", "cold"
Found = Mapping[tuple[Place, int], Any]
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    RAW: (0.04, 0.02, 0.09, 0.05), "0": (0.32, 0.60, 0.78, 0.58), "1": (0.43, 0.73, 0.96, 0.88),
    "30": (0.99, 0.98, 0.99, 0.99), "100": (1.0, 1.0, 1.0, 1.0)}
"""Throughput of the groups that begin warm over that after 100 epochs: table 7.4 (a), Mix, S4, 1 GB/s."""
AVERAGES = {RAW: 0.03, "0": 0.51, "1": 0.68, "30": 0.99, "100": 1.0}
"""Their averages, as printed; they are harmonic means."""
OVER_SYSTEMS = {"mix": (0.02, 0.48), "vision": (0.04, 0.28), "lang": (0.014, 0.52), "recom": (0.004, 0.88)}
"""Raw and after no epoch, the mean over S1 to S6 at 1 GB/s: table 7.4 (b)."""
CLOSE = 0.99
"""What part of the last throughput counts as reached."""

BEGIN, ONE, SOON, FOLLOW, EPOCH = claims("magma-table7.4")

_QUICK74 = FEW | {"tasks": ("mix",), "systems": ("s4",)}
_FULL74 = WHOLE | {"tasks": ("mix", "vision", "lang", "recom"), "systems": ("s1", "s2", "s3", "s4", "s5", "s6")}


@reproduction("magma-table7.4", Setting("quick", 2, _QUICK74), Setting("full", 10, _FULL74))
def run74(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge table 7.4: claims are of Mix on S4, if the setting has it."""
    places: list[Place] = [(task, name, "1GB/s") for task in setting["tasks"] for name in setting["systems"]]
    groups = Groups.measured(runner, setting, places, lambda place, seed: _cell(place, seed, setting))
    found, seeds = groups.values, groups.seeds
    first = next((place for place in places if place[:2] == ("mix", "s4")), places[0])
    ours = [_averages(found, first, seed) for seed in seeds]
    begun = [each["0"] / each[RAW] for each in ours]
    one = [(each["1"] - each[RAW]) / (1.0 - each[RAW]) if each[RAW] < 1.0 else 0.0 for each in ours]
    soon = [sum(part >= CLOSE - 0.01 for part in _parts(found, first, seed)["30"]) / len(found[first, seed]["groups"])
            for seed in seeds]
    return Findings((_table(ours[0]), _everywhere(found, places)), (
        listed(BEGIN, begun, "{:.3g}x"), listed(ONE, one), listed(SOON, soon), printed_factors(AVERAGES, OVER_SYSTEMS),
        printed_epoch(AVERAGES["1"])), notes=(*NOTES, _sooner(found), groups.oracle))


def printed_factors(averages: Mapping[str, float], tasks: Mapping[str, tuple[float, float]]) -> Judgement:
    """Judge what the text says a warm start gains, by what is printed."""
    gains = [ratio(between([warm], 1), between([raw], 1)) for raw, warm in tasks.values()]
    return follows(FOLLOW, [
        ("Mix, S4", "16", ratio(between([averages["0"]], 2), between([averages[RAW]], 1))),
        ("the least task", "7.4", min(gains)), ("the most", "152", max(gains))])


def printed_epoch(average: float) -> Judgement:
    """Judge what the text says that one epoch gives, by what is printed."""
    low, high = between([average], 2)
    return follows(EPOCH, [("Mix, S4, in percent", "93", (100 * low, 100 * high))])


def _cell(place: Place, seed: int, setting: Setting) -> Cell:
    def compute() -> dict[str, Any]:
        groups, analysis = analysed(*place[:2], 1 + len(PUBLISHED["0"]), setting["jobs"], setting["mappings"], seed)
        size, samples, told, spent = setting["jobs"], setting["samples"], [], analysis.samples
        known = None
        for number, jobs in enumerate(groups):
            rows = analysis.rows[number * size:(number + 1) * size].tolist()
            problem = as_published(jobs, rows, analysis, place)
            cold = schedule(problem, MAGMA, samples=samples, seed=seed)
            spent += cold.samples
            if known is None:
                known = KnownPlan.of(problem, cold.plan)
                continue
            warm = schedule(problem, MAGMA, samples=samples, seed=seed, warm=adopted(problem, known, seed))
            spent += warm.samples
            last = warm.score
            least = {str(epoch): _after(warm, 1 if epoch == 0 else (1 + epoch) * size) for epoch in EPOCHS[:-1]}
            told.append({RAW: last / _after(cold, size), "100": 1.0, COLD: last / cold.score,
                         **{name: last / score for name, score in least.items()},
                         "sooner": [_reached(cold, cold.score), _reached(warm, cold.score)],
                         "gap": warm.gap})
        return {"groups": told, "samples": spent, "mapping": first_mapping(groups[0], analysis)}

    return Cell(cell_key(place, seed, setting), compute, lambda value: int(value["samples"]))


def _after(run: Scheduled, samples: int) -> float:
    """Return the best objective after so many plans."""
    return float(run.trace[run.trace[:, 0] <= samples, 2].min())


def _reached(run: Scheduled, score: float) -> list[float]:
    """Return the plans until a run came as near to an objective as counts as reached, and whether it did."""
    near = np.flatnonzero(run.trace[:, 2] <= score / CLOSE)
    return [float(run.trace[near[0], 0]) if len(near) else float(run.samples), float(len(near) > 0)]


def _parts(found: Found, place: Place, seed: int) -> dict[str, list[float]]:
    groups: Sequence[Mapping[str, Any]] = found[place, seed]["groups"]
    return {name: [float(group[name]) for group in groups] for name in (*PUBLISHED, COLD)}


def _averages(found: Found, place: Place, seed: int) -> dict[str, float]:
    return {name: harmonic_mean(parts) for name, parts in _parts(found, place, seed).items()}


def _table(ours: Mapping[str, float]) -> Table:
    rows = tuple((f"after {name} epochs" if name.isdecimal() else name, AVERAGES.get(name), one)
                 for name, one in ours.items())
    return Table("warm", "Throughput over that after the last epoch, harmonic means of groups (first seed)",
                 ("Plan", "published", "ours"), rows,
                 ("Raw: the best of a random population. Cold: after as many plans from a random population.",))


def _everywhere(found: Found, places: Sequence[Place]) -> Table:
    shown = RAW, "0", "1", "30", COLD
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (*place, *(_averages(found, place, 0)[name] for name in shown)) for place in places)
    return Table("places", "The same of each task and system (first seed)", (
        "Task", "System", "Bandwidth", "raw", "after 0 epochs", "1", "30", "cold"), rows)


def _sooner(found: Found) -> str:
    """Return how much sooner a warm start reaches what a cold one comes to."""
    times = [group["sooner"] for value in found.values() for group in value["groups"]]
    ratios = [cold[0] / warm[0] for cold, warm in times]
    missed = sum(not warm[1] for _, warm in times)
    return (f"A warm start has {CLOSE:.0%} of what a cold one comes to {median(ratios):.3g} times sooner (median of "
            f"{len(ratios)} groups, {missed} of which do not come to it within their plans).")

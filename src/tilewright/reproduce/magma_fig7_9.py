"""MAGMA, figures 7.9 to 7.13: over bandwidths, systems and sizes of groups, and what plans ask of the bandwidth."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from math import comb, factorial, floor, log10
from statistics import mean, pstdev
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, cases, exact, gain, judge
from tilewright.reproduce.magma_systems import (
    BLACK_BOX,
    FEW,
    HAND,
    HERALD,
    MAGMA,
    NOTES,
    SOURCE,
    TENTHS,
    WHOLE,
    Found,
    Place,
    analysed,
    as_published,
    beside,
    cell_key,
    contest,
    first_mapping,
    flops,
    lead,
    leads,
    measured,
    sweep,
    throughput,
)
from tilewright.reproduce.study import Cell, Findings, Setting, Table, Value, reproduction
from tilewright.scheduling import schedule

OTHERS = (*HAND, *BLACK_BOX)
LESS = 1e-3
"""By what share two throughputs differ at least that are not alike."""
CELLS: Mapping[str, Any] = {"version": 2, "cells": "magma-fig7.7"}
_QUICK, _FULL = Setting("quick", 2, FEW), Setting("full", 10, WHOLE)


def ahead(found: Found, seed: int, pairs: Iterable[tuple[Place, Place]]) -> float:
    """Return the share of pairs whose first place has the higher throughput by MAGMA; half for those that are alike."""
    told = []
    for one, other in pairs:
        ratio = found[one, seed]["gflops"][MAGMA] / found[other, seed]["gflops"][MAGMA]
        told.append(1.0 if ratio > 1 + LESS else 0.0 if ratio < 1 - LESS else 0.5)
    return mean(told)


def more(found: Found, seed: int, what: str, pairs: Iterable[tuple[Place, Place]]) -> float:
    """Return the share of pairs whose first place has more ``cycles`` or ``bytes`` a cycle of jobs alone."""
    told = [found[one, seed]["alone"][what] - found[other, seed]["alone"][what] for one, other in pairs]
    return mean(1.0 if each > 0 else 0.0 if each < 0 else 0.5 for each in told)


def _shares(claim: Claim, setting: Setting, share: Callable[[int], float]) -> Judgement:
    ours = [share(seed) for seed in range(setting.seeds)]
    return judge(claim, ours, ", ".join(f"{one:.2f}" for one in ours))


WIDTHS9 = {"s2": (16, 8, 4, 1), "s4": (256, 64, 16, 1)}
AT16 = gain("On S2 MAGMA is faster than others at 16 GB/s", "1.2x", 1.2, "the geometric mean over methods, Mix")
AT1 = gain("It is at 1 GB/s", "1.6x", 1.6, "the same")
GROWS = cases("The less bandwidth, the further it is ahead", "on S2 and S4", "the share of steps to less bandwidth")


@reproduction("magma-fig7.9", "MAGMA against other methods over bandwidths", SOURCE.format("figure 7.9"),
              (AT16, AT1, GROWS), Setting("quick", 2, FEW | {"systems": tuple(WIDTHS9)}),
              Setting("full", 10, WHOLE | {"systems": tuple(WIDTHS9)}), **CELLS)
def run79(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.9."""
    places = sweep(("mix",), {name: WIDTHS9[name] for name in setting["systems"]})
    found, told = contest(places, setting, runner)

    def grown(seed: int) -> float:
        rows = [[lead(found, [place], seed, OTHERS) for place in places if place[1] == name]
                for name in setting["systems"]]
        return mean(float(low > high) for row in rows for high, low in pairwise(row))

    small = sweep(("mix",), {"s2": (16, 1)})
    judged = [leads(claim, found, [place], setting, OTHERS) for claim, place in zip((AT16, AT1), small, strict=True)]
    return Findings((throughput(found, places, {}),), (*judged, _shares(GROWS, setting, grown)), notes=(
        *NOTES, "Text and figures 7.8 and 7.9 give 1.01x to 39.5x and 1.2x for the same S2 at 16 GB/s.",
        beside(found, places, setting), told))


LONGER = cases("Jobs take longer on S4 than on S3, and ask for less", "of Mix", "both, by the means over cores")
LITTLE = cases("They ask for less on S5", "less than on S3 and S4", "both")
SCARCE = cases("At 1 GB/s S5 is the fastest, and S4 faster than S3", "in this order", "the share of both steps")
PLENTY = cases("At 256 GB/s S3 is the fastest, and S5 the slowest", "in this order", "the share of both steps")


@reproduction("magma-fig7.10", "Large systems: all alike, of two styles, big and little", SOURCE.format("figure 7.10"),
              (LONGER, LITTLE, SCARCE, PLENTY), _QUICK, _FULL, **CELLS)
def run710(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.10."""
    low, high = (sweep(("mix",), {name: (width,) for name in ("s3", "s4", "s5")}) for width in (1, 256))
    found, told = contest((*low, *high), setting, runner, (MAGMA,))
    (p3, p4, p5), (q3, q4, q5) = low, high
    return Findings((throughput(found, (*low, *high), {}, (MAGMA,)),), (
        _shares(LONGER, setting, lambda seed: mean((more(found, seed, "cycles", [(p4, p3)]),
                                                    more(found, seed, "bytes", [(p3, p4)])))),
        _shares(LITTLE, setting, lambda seed: more(found, seed, "bytes", [(p3, p5), (p4, p5)])),
        _shares(SCARCE, setting, lambda seed: ahead(found, seed, [(p5, p4), (p4, p3)])),
        _shares(PLENTY, setting, lambda seed: ahead(found, seed, [(q3, q4), (q4, q5)]))), notes=(*NOTES[:1], told))


SHORTER = cases("Arrays of any shape take fewer cycles", "Vision and Mix, small and large", "the share of these four")
WANTED = cases("They ask for more bandwidth", "Vision and Mix, small and large", "the share of these four")
FLEXIBLE = cases("They are faster at any bandwidth", "all eight", "the share of task, size and bandwidth")


@reproduction("magma-fig7.11", "Arrays of one shape, and of any", SOURCE.format("figure 7.11"),
              (SHORTER, WANTED, FLEXIBLE), Setting("quick", 2, FEW | {"tasks": ("mix",)}),
              Setting("full", 10, WHOLE | {"tasks": ("vision", "mix")}), **CELLS)
def run711(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.11."""
    widths = {"s1": (16, 1), "s3": (256, 1)}
    fixed = sweep(setting["tasks"], widths)
    pairs = [((task, f"{name}-flex", width), (task, name, width)) for task, name, width in fixed]
    wide = [pair for pair in pairs if pair[0][2] != "1GB/s"]
    places = [place for pair in pairs for place in pair]
    found, told = contest(places, setting, runner, (MAGMA,))
    return Findings((throughput(found, places, {}, (MAGMA,)),), (
        _shares(SHORTER, setting, lambda seed: more(found, seed, "cycles", [pair[::-1] for pair in wide])),
        _shares(WANTED, setting, lambda seed: more(found, seed, "bytes", wide)),
        _shares(FLEXIBLE, setting, lambda seed: ahead(found, seed, pairs))), notes=(
            *NOTES[:1], "Flexible cores have larger memories, too: 1 KB an element and 2 MB, as in the text.", told))


EARLY = cases("Herald-like asks for most in the first half", "shown", "whether it asks for more than in the second")
EVEN = cases("MAGMA asks for the bandwidth more evenly", "shown", "whether what it asks for in tenths of its time "
             "deviates less, over its mean")
LATER = cases("Herald-like takes longer", "shown", "whether its throughput is lower")


@reproduction("magma-fig7.12", "What plans of MAGMA and Herald-like ask of the bandwidth", SOURCE.format("figure 7.12"),
              (EARLY, EVEN, LATER), _QUICK, _FULL, **CELLS)
def run712(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.12."""
    place = "mix", "s5", "1GB/s"
    found, told = contest((place,), setting, runner, (MAGMA, HERALD))
    asked, drawn = ([found[place, seed][what] for seed in range(setting.seeds)] for what in ("asked", "drawn"))
    half = TENTHS // 2
    rows = tuple((f"{part + 1}", *(rows[0][method][part] for method in (MAGMA, HERALD) for rows in (asked, drawn)))
                 for part in range(TENTHS))
    table = Table("bandwidth", "What running jobs ask for and have, as parts of the bandwidth (first seed)", (
        "Tenth of its time", *(f"{method}: {what}" for method in (MAGMA, HERALD) for what in ("asked", "has"))), rows)
    return Findings((table, throughput(found, (place,), {}, (MAGMA, HERALD))), (
        _shares(EARLY, setting, lambda seed: float(sum(asked[seed][HERALD][:half]) > sum(asked[seed][HERALD][half:]))),
        _shares(EVEN, setting, lambda seed: float(_uneven(asked[seed][MAGMA]) < _uneven(asked[seed][HERALD]))),
        _shares(LATER, setting, lambda seed: float(lead(found, [place], seed, (HERALD,)) > 1 + LESS))),
        notes=(*NOTES, told))


def _uneven(rows: list[float]) -> float:
    return pstdev(rows) / mean(rows) if mean(rows) > 0 else 0.0


ENOUGH = 0.9
"""What part of the throughput of the whole is not "drastically" less: our reading."""
TINY = cases("Groups of 4 are slower", "clearly, against 1,000", f"whether they have less than {ENOUGH:.0%}",
             none=0.0)
ALIKE = cases("Other sizes of groups are not", "shown", f"the share of those with {ENOUGH:.0%} and more")
PLANS = exact("60 jobs on 4 cores have O(1e81) plans", "60! = O(1e81)", "whether the number of plans is of this order")
PLACE13: Place = "mix", "s2", "16GB/s"


def plans_of(jobs: int, cores: int) -> int:
    """Return in how many ways jobs can be split among cores and put into order on each; the text has equal shares."""
    return factorial(jobs) * comb(jobs + cores - 1, cores - 1)


@reproduction("magma-fig7.13", "Throughput over sizes of groups", SOURCE.format("figure 7.13 and section 7.1.6"),
              (TINY, ALIKE, PLANS), Setting("quick", 2, FEW | {"jobs": 120, "sizes": (4, 10, 40, 120)}),
              Setting("full", 10, WHOLE | {"jobs": 1_000, "sizes": (4, 10, 40, 100, 200, 500, 1_000)}))
def run713(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.13; as many jobs in all, chopped into groups of each size."""
    (small, *others, whole) = setting["sizes"]
    found, told = measured(runner, {(PLACE13, seed): _chopped(seed, setting) for seed in range(setting.seeds)})
    rates = [{size: found[PLACE13, seed]["gflops"][str(size)] for size in setting["sizes"]}
             for seed in range(setting.seeds)]
    rows: tuple[tuple[Value, ...], ...] = tuple((size, rates[0][size], rates[0][size] / rates[0][whole],
                                                 found[PLACE13, 0]["bound_gflops"][str(size)]) for size in rates[0])
    order = floor(log10(plans_of(60, 4)))
    return Findings((Table("groups", "Throughput in GFLOP/s over sizes of groups (first seed)",
                           ("Jobs a group", "MAGMA", "over one group", "bound"), rows),), (
        _shares(TINY, setting, lambda seed: float(rates[seed][small] < ENOUGH * rates[seed][whole])),
        _shares(ALIKE, setting, lambda seed: mean(float(rates[seed][size] >= ENOUGH * rates[seed][whole])
                                                  for size in others)),
        judge(PLANS, float(order == 81), f"O(1e{order})", "60! counts plans with 15 jobs on each core alone")),
        notes=(*NOTES[:1], "A group of any size has the same number of plans simulated.", told))


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

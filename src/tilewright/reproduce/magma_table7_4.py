"""MAGMA, table 7.4: groups that begin from the plan of another group of their task."""

from collections.abc import Mapping, Sequence
from statistics import harmonic_mean, median
from typing import Any

import numpy as np

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, follows, listed, ratio
from tilewright.reproduce.magma_systems import (
    FEW,
    MAGMA,
    NOTES,
    WHOLE,
    Groups,
    Place,
    analysed,
    as_published,
    cell_key,
    first_mapping,
)
from tilewright.reproduce.study import Cell, Findings, Setting, Table, Value, claims, reproduction
from tilewright.scheduling import KnownPlan, Scheduled, adopted, schedule

EPOCHS = (0, 1, 30, 100)
RAW, COLD = "raw", "cold"
Found = Mapping[tuple[Place, int], Any]
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    RAW: (0.04, 0.02, 0.09, 0.05), "0": (0.32, 0.60, 0.78, 0.58), "1": (0.43, 0.73, 0.96, 0.88),
    "30": (0.99, 0.98, 0.99, 0.99), "100": (1.0, 1.0, 1.0, 1.0)}
"""Throughput of the groups that begin warm over that after 100 epochs: table 7.4 (a), Mix, S4, 1 GB/s."""
AVERAGES = {RAW: 0.03, "0": 0.51, "1": 0.68, "30": 0.99, "100": 1.0}
"""Their averages, as printed; they are harmonic means."""
TASKS = {"mix": (0.02, 0.48), "vision": (0.04, 0.28), "lang": (0.014, 0.52), "recom": (0.004, 0.88)}
"""Raw and after no epoch, the mean over S1 to S6 at 1 GB/s: table 7.4 (b)."""
CLOSE = 0.99
"""What part of the last throughput counts as reached."""

BEGIN, ONE, SOON, FACTORS, EPOCH = claims("magma-table7.4")

_QUICK = FEW | {"tasks": ("mix",), "systems": ("s4",)}
_FULL = WHOLE | {"tasks": ("mix", "vision", "lang", "recom"), "systems": ("s1", "s2", "s3", "s4", "s5", "s6")}


@reproduction("magma-table7.4", Setting("quick", 2, _QUICK), Setting("full", 10, _FULL))
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
        listed(BEGIN, begun, "{:.3g}x"), listed(ONE, one), listed(SOON, soon), printed_factors(AVERAGES, TASKS),
        printed_epoch(AVERAGES["1"])), notes=(*NOTES, _sooner(found), groups.oracle))


def printed_factors(averages: Mapping[str, float], tasks: Mapping[str, tuple[float, float]]) -> Judgement:
    """Judge what the text says a warm start gains, by what is printed."""
    gains = [ratio(between([warm], 1), between([raw], 1)) for raw, warm in tasks.values()]
    return follows(FACTORS, [
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

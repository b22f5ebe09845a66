"""Random mapped nests beside `timeloop-model`: by its own conventions, and by our rules.

``data/timeloop-random.jsonl`` holds 137 random nests with what ``timeloop-model`` (input format 0.4, dense, ample
capacity) said of them: for each memory and tensor reads, fills and updates per instance, instances, and the tile held.
Of ragged nests there are also (``walked``) those with neighbour links and extrapolation off. ``tags`` are the
assumptions that part a case from an exact count, as found by hand.

``data/timeloop-further.jsonl`` holds 245 more, made by us and given to ``timeloop-model`` (commit 4cf6d4c) in the form
that ``tilewright convert --to timeloop-model`` writes: of 600 drawn, those with ragged loops, arrays that are not all
used, clusters, blocks behind arrays, ports of 0.3, 0.7 or 1.1 words a cycle, and leakage; and five made for what none
of these reaches. They are counted by its conventions only.
"""

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.cost import Cost, DenseModel
from tilewright.cost.reference import TIMELOOP, Replay, replay
from tilewright.interop import Case, parse_case
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own

FILE = DATA / "timeloop-random.jsonl"
FURTHER = DATA / "timeloop-further.jsonl"
REPLAYED = "counts, its conventions"
REPLAYED_CYCLES = "cycles, its conventions"
REPLAYED_ENERGY = "energy, its conventions"
WORDS = "words moved, our rules"
CYCLES = "cycles, our rules"
ENERGY = "energy, our rules"


class TimeloopCase(NamedTuple):
    """A nest, and what Timeloop says of it."""

    case: Case
    theirs: dict[str, Any]


def timeloop_cases(file: Path = FILE) -> Iterator[TimeloopCase]:
    """Yield the nests with Timeloop's figures, in the order of the file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        yield TimeloopCase(parse_case(line), json.loads(line)["timeloop"])


def run(watch: ValidationWatch) -> SetFigures:
    """Count every nest by Timeloop's conventions, literally, and the first ones by our rules, with the fast model."""
    cases, further = list(timeloop_cases()), list(timeloop_cases(FURTHER))
    figures: list[Figure] = []
    parted: Counter[str] = Counter()
    agreeing = 0
    for done, (case, theirs) in enumerate([*cases, *further]):
        watch.tell(done, len(cases) + len(further))
        figures += _replayed(case.id, replay(case.operator, case.accelerator, case.mapping, TIMELOOP), theirs)
        if done >= len(cases):
            continue
        ours = DenseModel(case.operator, case.accelerator).cost(case.mapping)
        figures += _by_our_rules(case.id, ours, theirs)
        agreeing += _same_counts(ours, theirs)
        parted.update(theirs["tags"])
    named = ", ".join(f"{name} ({count})" for name, count in parted.most_common())
    return SetFigures(tuple(figures), (
        f"By our rules every count of {agreeing} of the {len(cases)} nests equals Timeloop's.",
        f"What parts the others, by the number of nests that it touches: {named}."))


def _replayed(name: str, found: Replay, theirs: dict[str, Any]) -> Iterator[Figure]:
    for place, (reads, fills, updates, instances, capacity) in theirs["counts"].items():
        memory, _, tensor = place.partition(".")
        ours = found.counts[memory, tensor]
        pairs: dict[str, tuple[Fraction | int, int]] = {
            "reads": (ours.reads, reads), "fills": (ours.fills, fills), "updates": (ours.updates, updates),
            "instances": (ours.instances, instances), "tile": (ours.capacity_words, capacity)}
        for kind, (mine, other) in pairs.items():
            yield Figure(f"{name} {place}.{kind}", REPLAYED, float(mine), other)
    yield Figure(name, REPLAYED_CYCLES, found.cycles, theirs["cycles"])
    digits = 6 if "tags" in theirs else 1
    yield Figure(name, REPLAYED_ENERGY, round(found.energy_pj, digits), round(theirs["energy_pj"], digits))


def _by_our_rules(name: str, ours: Cost, theirs: dict[str, Any]) -> Iterator[Figure]:
    moved = sum((reads + fills + updates) * instances
                for reads, fills, updates, instances, _ in theirs["counts"].values())
    yield Figure(name, WORDS, sum(c.reads + c.fills + c.updates for c in ours.counts.values()), moved)
    yield Figure(name, CYCLES, ours.steady_cycles, theirs["cycles"])
    yield Figure(name, ENERGY, round(ours.energy_pj, 6), theirs["energy_pj"])


def _same_counts(ours: Cost, theirs: dict[str, Any]) -> bool:
    return all((mine.reads, mine.fills, mine.updates) == (reads * instances, fills * instances, updates * instances)
               for place, (reads, fills, updates, instances, _) in theirs["counts"].items()
               for mine in [ours.counts[tuple(place.split("."))]])


add_own(
    "timeloop-random",
    (Quantity(REPLAYED, "words", "a literal walk under Timeloop's conventions; reads, fills, updates per instance, "
              "instances and tiles"),
     Quantity(REPLAYED_CYCLES, "cycles", "the same walk"), Quantity(REPLAYED_ENERGY, "pJ", "the same walk"),
     Quantity(WORDS, "words", "the fast model: reads, fills and updates of all memories", ordered=True),
     Quantity(CYCLES, "cycles", "the fast model, without ramps, which Timeloop does not know", ordered=True),
     Quantity(ENERGY, "pJ", "the fast model", ordered=True)), run)

"""Cycles of arrays that run in rounds, beside RTL simulation of Gemmini.

``data/gemmini.jsonl``: 74 layer mappings on Gemmini-style arrays with their cycles on RTL (FireSim) and by Timeloop,
from the data set published with DOSA (github.com/ucb-bar/dosa, data/firesim_test_data).
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from tilewright.cost import DenseModel, round_latency
from tilewright.interop import Case, parse_case
from tilewright.validation.records import (
    DATA,
    Figure,
    Quantity,
    SetFigures,
    ValidationWatch,
    add_own,
    summary,
)

FILE = DATA / "gemmini.jsonl"
ROUNDS = Quantity("cycles in rounds", "cycles", "`tilewright.cost.round_latency`", ordered=True)
PLAIN = Quantity("cycles, dense model", "cycles", "the model that searches use, which knows no rounds", ordered=True)


class GemminiCase(NamedTuple):
    """A mapped layer with its cycles on RTL and by Timeloop."""

    case: Case
    rtl_cycles: int
    timeloop_cycles: int


def gemmini_cases() -> Iterator[GemminiCase]:
    """Yield the layers in the order of the file."""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        yield GemminiCase(parse_case(line), raw["rtl_cycles"], raw["timeloop_cycles"])


def run(watch: ValidationWatch) -> SetFigures:
    """Count every layer in rounds, and by the dense model."""
    cases = list(gemmini_cases())
    figures: list[Figure] = []
    for done, (case, rtl, _) in enumerate(cases):
        watch.tell(done, len(cases))
        rounds = round_latency(case.operator, case.accelerator, case.mapping).cycles
        plain = DenseModel(case.operator, case.accelerator).cost(case.mapping).latency_cycles
        figures += (Figure(case.id, ROUNDS.name, rounds, rtl), Figure(case.id, PLAIN.name, plain, rtl))
    theirs = summary(ROUNDS, tuple(Figure(case.id, ROUNDS.name, cycles, rtl) for case, rtl, cycles in cases))
    own = [figure for figure in figures if figure.quantity == ROUNDS.name]
    low, high = min(own, key=lambda figure: figure.error), max(own, key=lambda figure: figure.error)
    return SetFigures(tuple(figures), (
        f"Timeloop's own cycles of the same mappings: median error {100 * theirs.median_error:.1f} %, worst "
        f"{100 * theirs.worst_error:.1f} %, {100 * (theirs.order or 0):.1f} % of pairs in order.",
        f"In rounds, RTL takes up to {low.reference / low.ours:.1f} times as long as we say ({low.case}); where we say "
        f"too much, it is up to {100 * high.error:.1f} % ({high.case})."))


add_own("gemmini", (ROUNDS, PLAIN), run)

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
    ReferenceSet,
    SetFigures,
    ValidationWatch,
    register,
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


register(ReferenceSet(
    "gemmini", "Gemmini's RTL", "RTL",
    "FireSim runs of Gemmini (Genc et al., DAC 2021), data set published with DOSA (Hong et al., MICRO 2023; "
    "github.com/ucb-bar/dosa, data/firesim_test_data)",
    (ROUNDS, PLAIN), run,
    """\
74 layers with their mappings. Gemmini's sequencer takes one tile of the scratchpad a time and orders the work inside
it by itself, so that of a mapping only the outermost loops and the tile count. `tilewright evaluate --cases FILE
--rounds` gives its cycles, `tilewright.cost.round_latency` from Python. What is modelled, with one set of parameters
for all cases, none of them fitted case by case:

- every round loads its weights and inputs anew at the outermost memory's bandwidth (8 words a cycle), while the round
  before computes: inputs that a roofline counts once are loaded once a round;
- a block of weights enters behind the rows of the block before, and takes at least as many cycles as the array has
  rows (16);
- a run of rows takes at least 4 cycles (the sequencer's pipeline), and each instruction one cycle more;
- the first load and the last store (16 outputs in 4 cycles) overlap nothing.""",
    "Layers whose rows are a word or two wide (one input channel, or few outputs) take longer on RTL, since a transfer "
    "of one word costs as much as one of sixteen, which is not modelled; small layers of one round are overestimated. "
    "So do, up to 3.8 times, layers of the data set whose weights are larger than any cache of the chip and are read "
    "again in slices of 16 outputs in every round (3x3 with 1,024 channels in and out on 28x28, which are not among "
    "these 74): rows of 16 bytes lie 1,024 apart, each takes 19 to 26 cycles instead of 2, what a line and often a "
    "page of its own would take. We do not model it: the data tell nothing of caches and pages, and one mapping takes"
    " 76 or 100 million cycles on two scratchpads that both hold its tiles (gemmini-62, gemmini-210). On the 148 "
    "mappings of the data set that are not among these the median error is 7.9 %, with 96.2 % of pairs in order; "
    "charging such rows 10 or 20 cycles makes that 8.0 or 8.7 %, a line and its share of a page 7.9 to 8.4 % with a "
    "mean error of 19 % instead of 13 %, and letting tiles that do not fit twice load before they compute 31 %. "
    "The dense model, made for mappings whose loops run as written, is nearly always too low here."))

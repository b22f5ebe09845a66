"""Cycles and accesses of systolic arrays, beside what SCALE-Sim reports.

``data/scalesim.jsonl``: figures of SCALE-Sim's reports, releases 2.0.2 and 3.0.0 (PyPI; github.com/scalesim-project),
of products and convolutions with ragged folds on arrays of all shapes. Where both releases report the same, a line
names both. ``interface`` is its InterfaceBandwidth: CALC never waits for DRAM, USER does.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tilewright.cost import (
    SCALE_SIM,
    SYSTOLIC_RULES,
    SystolicArray,
    SystolicConventions,
    SystolicLayer,
    SystolicMemories,
    systolic_layer,
)
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own
from tilewright.workload import Operator, convolution, matmul

FILE = DATA / "scalesim.jsonl"
CYCLES = Quantity("cycles, its conventions", "cycles", "folds of closed forms; its total less its stalls")
UTIL = Quantity("utilisation, its conventions", "%", "overall utilisation and mapping efficiency")
READS = Quantity("SRAM reads", "words", "of inputs and weights; alike by our rules")
WRITES = Quantity("SRAM writes, its conventions", "words", "of outputs, with the words that it counts too many")
DRAM_READS = Quantity("DRAM reads, its conventions", "words", "the accesses, through halves of fifty sets each")
DRAM_WRITES = Quantity("DRAM writes, its conventions", "words", "all sums that leave the array")
OUR_CYCLES = Quantity("cycles, our rules", "cycles", "partial tiles take only what they need", ordered=True)
OUR_WRITES = Quantity("SRAM writes, our rules", "words", "the sums that leave the array", ordered=True)


class ScaleSimCase(NamedTuple):
    """A layer on an array, and the figures that SCALE-Sim reports (``total_cycles``, ``sram_ifmap_reads`` ...)."""

    id: str
    operator: Operator
    array: SystolicArray
    interface: str
    figures: dict[str, Any]

    def ours(self, conventions: SystolicConventions) -> SystolicLayer:
        """Return our figures."""
        return systolic_layer(self.operator, self.array, conventions)


def scalesim_cases() -> Iterator[ScaleSimCase]:
    """Yield the cases in the order of the file."""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        memories = SystolicMemories(*(1024 * size for size in raw["sram_kb"]))
        array = SystolicArray(raw["rows"], raw["columns"], raw["dataflow"], memories)
        yield ScaleSimCase(raw["id"], _operator(raw), array, raw["interface"], raw)


def _operator(raw: dict[str, Any]) -> Operator:
    if raw["layer"] == "gemm":
        m, n, k = raw["sizes"]
        return matmul(raw["id"], m=m, n=n, k=k)
    height, width, kernel_height, kernel_width, channels, filters, stride = raw["sizes"]
    out = -(-(height - kernel_height) // stride) + 1, -(-(width - kernel_width) // stride) + 1
    made = convolution(raw["id"], in_channels=channels, out_channels=filters, kernel=(kernel_height, kernel_width),
                       out_size=out, stride=stride)
    return replace(made, attributes=tuple((dict(made.attributes) | {"in_size": f"{height}x{width}"}).items()))


def run(watch: ValidationWatch) -> SetFigures:
    """Count every case as SCALE-Sim does, and by our rules."""
    cases = list(scalesim_cases())
    figures: list[Figure] = []
    stalled = 0
    for done, case in enumerate(cases):
        watch.tell(done, len(cases))
        figures += _compared(case)
        stalled += case.figures["stall_cycles"] > 0
    equal = sum(not figure.error for figure in figures if figure.quantity == DRAM_WRITES.name)
    every = sum(figure.quantity == DRAM_WRITES.name for figure in figures)
    return SetFigures(tuple(figures), (
        f"DRAM writes are equal in {equal} of {every} cases. {stalled} cases with a bandwidth report stalls, which are "
        "not compared.",))


def _compared(case: ScaleSimCase) -> Iterator[Figure]:
    theirs, ours, reported = case.ours(SCALE_SIM), case.ours(SYSTOLIC_RULES), case.figures
    compute = reported["total_cycles"] - reported["stall_cycles"]
    pairs = [
        (CYCLES, "", theirs.compute_cycles, compute), (OUR_CYCLES, "", ours.compute_cycles, compute),
        (UTIL, " mapping", round(100 * float(theirs.counts.mapping_efficiency), 6), reported["mapping_efficiency"]),
        (READS, " ifmap", int(ours.counts.input_reads), reported["sram_ifmap_reads"]),
        (READS, " filter", int(ours.counts.weight_reads), reported["sram_filter_reads"]),
        (WRITES, "", int(theirs.counts.output_writes), reported["sram_ofmap_writes"]),
        (OUR_WRITES, "", int(ours.counts.output_writes), reported["sram_ofmap_writes"])]
    if case.interface == "CALC":
        pairs += [
            (UTIL, " overall", round(100 * float(theirs.counts.utilization), 6), reported["overall_util"]),
            (DRAM_READS, " ifmap", theirs.words.input_reads, reported["dram_ifmap_reads"]),
            (DRAM_READS, " filter", theirs.words.weight_reads, reported["dram_filter_reads"]),
            (DRAM_WRITES, "", theirs.words.output_writes, reported["dram_ofmap_writes"])]
    for quantity, part, left, right in pairs:
        yield Figure(f"{case.id}{part}", quantity.name, left, right)


add_own("scale-sim", (CYCLES, UTIL, READS, WRITES, DRAM_READS, DRAM_WRITES, OUR_CYCLES, OUR_WRITES), run)

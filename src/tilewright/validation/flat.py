"""FLAT's own model: its plans of BERT's and T5's attention, replayed by the rules that are read off them.

``data/flat.csv``: machine, model, sequence, rows of a tile (0: a whole head), tensors that the plan stages, what is
stationary in the array, and the model's figures: share of the footprint that the buffer holds, bytes of DRAM, ideal and
actual latency (s), energy (pJ). From workspace/outputs/pregenerated/results/flat_validation.csv of
github.com/FPSG-UIUC/micro24-fusemax-artifact, commit f543beb (MIT), columns renamed, numbers to 12 digits.
"""

import csv
from collections.abc import Iterator
from typing import NamedTuple

from tilewright.fusion.flat import (
    Attention,
    FlatMachine,
    RerunPlan,
    attention_bound,
    flat_block,
    flat_machine,
    rerun_best,
    rerun_cost,
)
from tilewright.hardware import preset
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own

BYTES, LATENCY, ENERGY = "DRAM bytes", "latency", "DRAM energy"
BUFFERED, IDEAL = "share of the footprint in the buffer", "ideal latency"
COLUMNS = {BUFFERED: "buffered", BYTES: "dram_bytes", IDEAL: "ideal_seconds", LATENCY: "latency_seconds",
           ENERGY: "energy_pj"}


class FlatRow(NamedTuple):
    """A plan of the authors' model on one of their machines, and its figures by quantity."""

    name: str
    attention: Attention
    machine: FlatMachine
    plan: RerunPlan
    figures: dict[str, float]


def flat_rows() -> Iterator[FlatRow]:
    """Yield the rows of the run of the authors' model."""
    with (DATA / "flat.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            plan = RerunPlan(int(row["rows"]), frozenset(row["staged"].split()), row["stationary"] == "weights")
            attention = flat_block(row["model"], int(row["sequence"])).attention
            yield FlatRow(f"{row['model']} {int(row['sequence']):,}, {row['machine']}", attention,
                          flat_machine(preset(row["machine"])), plan,
                          {name: float(row[column]) for name, column in COLUMNS.items()})


def run(watch: ValidationWatch) -> SetFigures:
    """Replay every plan, and search by the same rules for a better one."""
    figures, better, below, rows = list[Figure](), 0, 0, list(flat_rows())
    for done, row in enumerate(rows):
        cost, given = rerun_cost(row.attention, row.machine, row.plan), row.figures
        ours = {BUFFERED: cost.buffered, BYTES: cost.dram_bytes, IDEAL: cost.ideal_seconds,
                LATENCY: cost.latency_seconds, ENERGY: cost.energy_pj}
        figures += (Figure(row.name, name, ours[name], given[name]) for name in ours)
        best = rerun_best(row.attention, row.machine, fused=True)[1].latency_seconds
        better += best < 0.95 * given[LATENCY]
        least = attention_bound(row.attention, row.machine).latency_cycles / (row.machine.clock_mhz * 1e6)
        below += given[LATENCY] < least
        watch.tell(done + 1, len(rows))
    return SetFigures(tuple(figures), (
        f"By the same rules there are plans at least 5 % faster than the published ones in {better} of "
        f"{len(rows)} rows.",
        f"{below} published latencies are below what no plan can beat (`tilewright.fusion.flat.attention_bound`)."))


add_own(
    "flat",
    (Quantity(BYTES, "B", ordered=True), Quantity(LATENCY, "s", ordered=True), Quantity(IDEAL, "s"), Quantity(BUFFERED),
     Quantity(ENERGY, "pJ")), run)

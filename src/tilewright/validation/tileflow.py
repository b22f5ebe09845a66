"""Fused pairs of matrix products on TileFlow's RTL: cycles, and words between memory, buffer and registers.

``data/tileflow.csv``: 66 of the 131 pairs of AE/validation of github.com/pku-liang/TileFlow, commit d72d278 (MIT):
sizes of both products, their tiles, cycles of the RTL, and bits that it moved.
"""

import csv
from collections.abc import Iterator

from tilewright.cost import FusedCost, fused_cost
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedLink,
    FusedMapping,
    FusedNode,
    HeldTensor,
    LevelLoops,
    Loop,
    Mapping,
    SharedLoop,
)
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own
from tilewright.workload import ROLES, AxisLink, Digit, matmul

CYCLES, FETCHED, WRITTEN = "cycles", "words from memory", "words to memory"
READ, UPDATED = "words from the buffer", "words to the buffer"
BITS, SIDE = 16, 16
COLUMNS = {CYCLES: "rtl_cycles", FETCHED: "mem_to_buf", WRITTEN: "buf_to_mem", READ: "buf_to_reg",
           UPDATED: "reg_to_buf"}


def tileflow_machine() -> Accelerator:
    """Return the machine of AE/validation/arch.yaml: 16 by 16 elements, 32 words a cycle of buffer, 4 of memory."""
    nothing = AccessEnergy(0.0, 0.0, 0.0, 0.0)
    return Accelerator("tileflow-rtl", (
        Memory("Memory", ROLES, nothing, word_bits=BITS, bandwidth=Bandwidth(4, 4)),
        Memory("Buffer", ROLES, nothing, word_bits=BITS, bandwidth=Bandwidth(32, 32)), Fanout("PEs", (SIDE, SIDE)),
        Memory("Registers", ("inputs",), nothing, word_bits=BITS)), Compute("MAC", 0.0),
        word_bits=tuple((role, BITS) for role in ROLES))


def tileflow_pairs() -> Iterator[tuple[dict[str, int], FusedGroup, FusedMapping]]:
    """Yield each row with its products and its tree."""
    with (DATA / "tileflow.csv").open(encoding="utf-8", newline="") as file:
        for given in csv.DictReader(file):
            row = {name: int(value) for name, value in given.items()}
            first, second = (matmul(name, m=row[f"M{at}"], n=row[f"N{at}"], k=row[f"K{at}"])
                             for name, at in (("first", 1), ("second", 2)))
            link = FusedLink("first", "second", "I", tuple(
                (name, AxisLink((Digit(own, extent=size),)))
                for name, own, size in (("M", "M", row["M1"]), ("N", "K", row["N1"]))))
            leaves = tuple(FusedLeaf(name, _nest(row, at)) for name, at in (("first", 1), ("second", 2)))
            root = FusedNode((SharedLoop("Memory", "M", row["micro_M1"]),), leaves)
            yield row, FusedGroup((first, second), (link,)), FusedMapping(root, (HeldTensor("first", "Buffer"),))


def _nest(row: dict[str, int], at: int) -> Mapping:
    """Return the loops of a product inside the shared one: tiles of the buffer, then of the array, columns innermost.

    The RTL brings weights in for every turn, also where their tile is all of them; cut in two they come again here too.
    """
    columns, depth = row[f"micro_N{at}"], row[f"micro_K{at}"]
    columns = -(-columns // 2) if depth == row[f"K{at}"] else columns
    return Mapping((
        LevelLoops("Memory", (Loop("N", columns), Loop("K", depth))),
        LevelLoops("Buffer", (Loop("K", SIDE), Loop("M", SIDE))),
        LevelLoops("PEs", (Loop("M", 1, "X"), Loop("K", 1, "Y"))), LevelLoops("Registers", (Loop("N", 1),))))


def _figures(cost: FusedCost) -> dict[str, float]:
    def moved(memory: str, kind: str) -> int:
        return sum(getattr(count, kind) for (_, place, _), count in cost.counts.items() if place == memory)

    return {CYCLES: cost.latency_cycles, FETCHED: moved("Memory", "reads"), WRITTEN: moved("Memory", "updates"),
            READ: moved("Buffer", "reads"), UPDATED: moved("Buffer", "updates")}


def run(watch: ValidationWatch) -> SetFigures:
    """Count every pair."""
    figures, pairs, machine = list[Figure](), list(tileflow_pairs()), tileflow_machine()
    for done, (row, group, mapping) in enumerate(pairs):
        ours = _figures(fused_cost(group, machine, mapping))
        case = (f"{row['M1']}x{row['K1']}x{row['N1']}x{row['N2']}, tiles of {row['micro_M1']} rows, depth "
                f"{row['micro_K1']} and {row['micro_K2']}")
        figures += (Figure(case, name, ours[name], row[column] / (1 if name == CYCLES else BITS))
                    for name, column in COLUMNS.items())
        watch.tell(done + 1, len(pairs))
    return SetFigures(tuple(figures))


add_own(
    "tileflow",
    (Quantity(CYCLES, "cycles", "the fused model", ordered=True), Quantity(FETCHED, "words"),
     Quantity(WRITTEN, "words"), Quantity(READ, "words"), Quantity(UPDATED, "words")), run)

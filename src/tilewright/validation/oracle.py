"""The fast model beside the oracle, which walks the loops literally, on random nests."""

from collections.abc import Iterator

import numpy as np

from tilewright.cost import Cost, DenseModel
from tilewright.cost.reference import KINDS, walk
from tilewright.validation.random_nests import random_case
from tilewright.validation.records import Figure, Quantity, SetFigures, ValidationWatch, add_own

SEED = 2026
QUICK, FULL = 500, 10_000
COUNTS, STEPS, CYCLES, ENERGY = "counts", "steps", "cycles", "energy"


def run(watch: ValidationWatch) -> SetFigures:
    """Draw nests, and count each by both."""
    total = FULL if watch.full else QUICK
    figures: list[Figure] = []
    for seed in range(total):
        watch.tell(seed, total)
        operator, accelerator, mapping = random_case(np.random.default_rng([SEED, seed]), 2000, sliding=seed % 2 == 1)
        ours, oracle = DenseModel(operator, accelerator).cost(mapping), walk(operator, accelerator, mapping)
        figures += _compared(f"nest {seed}", ours, oracle)
    parted = sum(figure.quantity == CYCLES and bool(figure.error) for figure in figures)
    return SetFigures(tuple(figures), (f"Cycles are equal in {total - parted:,} of {total:,} nests.",))


def _compared(name: str, ours: Cost, oracle: Cost) -> Iterator[Figure]:
    for (memory, tensor), count in oracle.counts.items():
        for kind in KINDS:
            yield Figure(f"{name} {memory}.{tensor}.{kind}", COUNTS, getattr(ours.counts[memory, tensor], kind),
                         getattr(count, kind))
    yield Figure(name, STEPS, ours.steps, oracle.steps)
    yield Figure(name, CYCLES, ours.latency_cycles, oracle.latency_cycles)
    yield Figure(name, ENERGY, ours.energy_pj, oracle.energy_pj)


add_own(
    "oracle",
    (Quantity(COUNTS, "words", "reads, fills, updates and drains of every memory and tensor"),
     Quantity(STEPS, "cycles"), Quantity(CYCLES, "cycles", "with ramps"), Quantity(ENERGY, "pJ")), run, about=(
    f"{QUICK} random nests ({FULL:,} with `--full`; 20,000 in `tests/oracle/test_fast_model.py`): convolutions of all "
    "kinds, transposed ones, matrix products and odd sliding axes, on up to five memories and five arrays, with ragged "
    "tiles, bypass, words of several widths, and arrays that do not multicast or reduce. Every other nest is one where "
    "another instance of a memory than the first may be the busiest: lanes over a sliding axis of the *output* "
    "(transposed convolutions), operands with holes carried over by lanes of unequal width, ports at such rates as 0.7 "
    "words a cycle. Ours are the closed forms for single mappings; that test holds the compiled engine, which searches "
    "use, to the same figures."))

"""Compiled counts of products on sub-arrays: products ``p``, configurations ``c``.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Along an axis,
blocks of ``ceil(size / parts)`` go to the parts; the last one that has any may have less, further ones have nothing.
"""
# ruff: noqa: PLR0913, PLR0917  (numbers as arguments compile fastest)

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.base import kept
from tilewright.mapping.spaces.kernels import compiled, inlined

Words = NDArray[np.int64]
Amounts = NDArray[np.float64]

FIGURES = ("cycles", "compute_cycles", "input_reads", "weight_reads", "output_writes", "output_reads", "dram_reads",
           "dram_writes", "active_partitions")
"""What is counted of a product on a configuration, in this order."""
(CYCLES, COMPUTE_CYCLES, INPUT_READS, WEIGHT_READS, OUTPUT_WRITES, OUTPUT_READS, DRAM_READS, DRAM_WRITES,
 ACTIVE_PARTITIONS) = range(len(FIGURES))
ROWS, COLUMNS, DOWN, ACROSS, FLOW = range(5)
"""Columns of a configuration: sides of an array, how many arrays stand down and across, and the dataflow."""
SIDE, PARTS = range(2)
"""Columns of a pair that splits an axis."""
OUTPUT_STATIONARY, WEIGHT_STATIONARY, INPUT_STATIONARY = range(3)
"""Dataflows: what rests."""
TREE, BANKS = 1, 2
"""How partial sums are added up; 0 for free."""
WHOLE, REPLICATED = 1, 2
"""Which memory DRAM fills: one that serves all arrays, or each its own; 0 for none."""


class Rules(NamedTuple):
    """What is modelled, as compiled code takes it: effects, then conventions, then the machine's numbers."""

    bypass: bool
    summation: int
    """`TREE`, `BANKS` or 0."""
    ports: bool
    collation: bool
    dram: int
    """`WHOLE`, `REPLICATED` or 0."""
    whole_folds: bool
    shifted_outputs: bool
    last_cycle_index: bool
    side_writes: bool
    unread_partial_sums: bool
    cell: int
    banks: int
    memory_words: int
    """Of each memory, both halves."""
    cells_per_stage: int
    plane_rows: int
    plane_columns: int
    """``plane_rows`` and ``plane_columns``: in units; for stages of bypass links."""
    dram_rate: float
    """Words a cycle; 0: any number."""


class EventPrices(NamedTuple):
    """What is to be least, 0 cycles, 1 energy, 2 their product; and picojoules (`tilewright.cost.ArrayEnergy`)."""

    objective: int
    mac: float
    read: float
    write: float
    dram: float
    standing: float


class Split(NamedTuple):
    """An axis of a product, split over parts whose arrays have ``side`` elements along it.

    Parameters
    ----------
    block, rest
        Size of each of ``whole`` parts, and of one more (0: there is none).
    folds, rest_folds
        Of a whole part and of the one more.
    """

    side: int
    block: int
    whole: int
    rest: int
    folds: int
    rest_folds: int


@inlined
def split(size: int, parts: int, side: int) -> Split:
    """Return how an axis falls apart."""
    block = (size + parts - 1) // parts
    whole = size // block
    rest = size - whole * block
    return Split(side, block, whole, rest, (block + side - 1) // side, (rest + side - 1) // side)


@inlined
def all_folds(along: Split) -> int:
    """Return the folds of all parts of an axis."""
    return along.whole * along.folds + along.rest_folds


@inlined
def axes_of(flow: int) -> tuple[int, int]:
    """Return which of m, n and k lie along rows and columns."""
    return 0 if flow == OUTPUT_STATIONARY else 2, 0 if flow == INPUT_STATIONARY else 1


@inlined
def parts_used(along: Split) -> int:
    """Return how many parts of an axis have any of it."""
    return along.whole + (along.rest > 0)


@inlined
def accesses(m: int, n: int, k: int, flow: int, folds: int, every: int, used: int, columns: int,
             rules: Rules) -> tuple[int, int, int, int]:
    """Return the words of inputs and weights read, of outputs written, and of partial sums read again.

    ``folds`` are those of a part along rows, ``every`` of all ``used`` ones, ``columns`` those that read along columns.
    """
    rows, merged = folds if rules.collation else every, rules.summation == TREE
    resting = flow == OUTPUT_STATIONARY
    written = 1 if resting else (folds if merged else every)
    begun = 1 if resting or merged else used
    return (m * k * (1 if flow == INPUT_STATIONARY else columns),
            n * k * (1 if flow == WEIGHT_STATIONARY else (rows if resting else columns)),
            m * n * written, 0 if rules.unread_partial_sums else m * n * (written - begun))


@inlined
def cycles_of(down: int, across: int, streamed: int, row_folds: int, column_folds: int, rows: int, columns: int,
              flow: int, rules: Rules) -> int:
    """Return the cycles of one sub-array with ``down`` x ``across`` of a product, as `systolic_runtime` does."""
    folds = row_folds * column_folds
    used = folds * (rows + columns) if rules.whole_folds else column_folds * down + row_folds * across
    resting = flow == OUTPUT_STATIONARY
    cycles = folds * (streamed - 2 + (0 if resting else rows)) + used
    if rules.shifted_outputs and resting:
        cycles += folds * rows
    return cycles - 1 if rules.last_cycle_index else cycles


@njit(nogil=True)
def choose(sizes: Words, entries: Words, ranks: Words, rules: Rules, found: Words | Amounts) -> tuple[int, int]:
    """Return the best of one product (least, then lowest rank, then fewest reads, then the first), and its equals."""
    least = found.min()
    chosen, same, reads = -1, 0, -1
    figures = np.empty(len(FIGURES), np.int64)
    for index in range(found.shape[0]):
        if found[index] != least:
            continue
        same += 1
        if chosen < 0 or ranks[index] < ranks[chosen]:
            chosen, reads = index, -1
        elif ranks[index] == ranks[chosen]:
            if reads < 0:
                reads = reads_of(sizes, entries[chosen], rules, figures)
            here = reads_of(sizes, entries[index], rules, figures)
            if here < reads:
                chosen, reads = index, here
    return chosen, same


@inlined
def sram_reads(figures: Words) -> int:
    """Return the words that all three memories hand out, of the `FIGURES` of a run."""
    return int(figures[INPUT_READS] + figures[WEIGHT_READS] + figures[OUTPUT_READS])


@inlined
def reads_of(sizes: Words, entry: Words, rules: Rules, figures: Words) -> int:
    """Return the words that all three memories hand out."""
    count_one(sizes[0], sizes[1], sizes[2], entry, rules, figures)
    return sram_reads(figures)


@kept
@njit(nogil=True)
def least(products: Words, entries: Words, pairs: Words, lines: Words, ranks: Words, rules: Rules,
          prices: EventPrices, free: bool, best: Words, cycles: Words, equals: Words) -> None:
    """Find each product's best configuration under any rules, by any objective.

    Folds and sizes along an axis depend on one size of the product and one pair of side and parts: they are tabled. So
    cycles of computing come first, and what is read and written; what takes more with these than the best so far is
    not counted further.

    Parameters
    ----------
    products
        ``(p, 3)``: m, n, k.
    entries
        ``(c, 5)``: rows, columns, down, across, dataflow.
    pairs
        ``(u, 2)``: side, parts.
    lines
        ``(c, 2)``: the pair of a configuration's rows, and of its columns.
    ranks
        ``(c)``: which of equals comes first.
    free
        Whether runs take the cycles of computing, and these are what is to be least.
    best, cycles, equals
        ``(p)``, written: the configuration, its cycles, how many are as good.
    """
    kinds, count = pairs.shape[0], entries.shape[0]
    blocks, folds, every, used = np.empty((4, 3, kinds), np.int64)
    figures = np.empty(len(FIGURES), np.int64)
    found, spent = np.empty(count, np.int64), np.empty(count, np.float64)
    for product in range(products.shape[0]):
        sizes = products[product]
        m, n, k = sizes
        once = m * k + n * k + m * n if rules.dram else 0
        for axis in range(3):
            for kind in range(kinds):
                along = split(sizes[axis], pairs[kind, PARTS], pairs[kind, SIDE])
                blocks[axis, kind], folds[axis, kind] = along.block, along.folds
                if prices.objective:
                    every[axis, kind], used[axis, kind] = all_folds(along), parts_used(along)
        for index in range(count):
            flow, (row_line, column_line) = entries[index, FLOW], lines[index]
            down, across = axes_of(flow)
            found[index] = cycles_of(blocks[down, row_line], blocks[across, column_line], sizes[3 - down - across],
                                     folds[down, row_line], folds[across, column_line], entries[index, ROWS],
                                     entries[index, COLUMNS], flow, rules)
        if prices.objective:
            for index in range(count):
                flow, (row_line, column_line) = entries[index, FLOW], lines[index]
                down, across = axes_of(flow)
                inputs, weights, written, again = accesses(
                    m, n, k, flow, folds[down, row_line], every[down, row_line], used[down, row_line],
                    (folds if rules.collation else every)[across, column_line], rules)
                spent[index] = spent_by(m * n * k, inputs + weights + again, written, once, found[index], prices)
        if not free:
            count_leading(sizes, entries, rules, prices, found, spent, figures)
        best[product], equals[product] = (choose(sizes, entries, ranks, rules, spent) if prices.objective
                                          else choose(sizes, entries, ranks, rules, found))
        cycles[product] = found[best[product]]


@compiled
def count_leading(sizes: Words, entries: Words, rules: Rules, prices: EventPrices, found: Words, spent: Amounts,
                  figures: Words) -> None:
    """Write cycles (and energies, or products of both) of what may be best; others get what they take at least."""
    m, n, k = sizes
    fewest, limit = np.iinfo(np.int64).max, np.inf
    # That of the least lower bound first: what it takes rules out most of the others uncounted.
    first = spent.argmin() if prices.objective else found.argmin()
    for place in range(-1, entries.shape[0]):
        index = first if place < 0 else place
        if place == first or (spent[index] > limit if prices.objective else found[index] > fewest):
            continue
        count_one(m, n, k, entries[index], rules, figures)
        found[index] = figures[CYCLES]
        fewest = min(fewest, figures[CYCLES])
        if prices.objective:
            spent[index] = spent_by(m * n * k, sram_reads(figures), figures[OUTPUT_WRITES],
                                    figures[DRAM_READS] + figures[DRAM_WRITES], figures[CYCLES], prices)
            limit = min(limit, spent[index])


@inlined
def spent_by(macs: int, reads: int, writes: int, dram: int, cycles: int, prices: EventPrices) -> float:
    """Return picojoules, added in the order of `tilewright.cost.PartitionedEnergy`, times cycles where asked for."""
    energy = float(macs * prices.mac + reads * prices.read + writes * prices.write + dram * prices.dram
                   + cycles * prices.standing)
    return energy * cycles if prices.objective == 2 else energy


@kept
@njit(nogil=True)
def count_all(products: Words, entries: Words, rules: Rules, figures: Words) -> None:
    """Write all figures of all products on all configurations into ``figures`` ``(p, c, figure)``."""
    for product in range(products.shape[0]):
        m, n, k = products[product]
        for index in range(entries.shape[0]):
            count_one(m, n, k, entries[index], rules, figures[product, index])


@compiled
def count_one(m: int, n: int, k: int, entry: Words, rules: Rules, figures: Words) -> None:
    """Write the `FIGURES` of one product on one configuration."""
    sizes, flow = (m, n, k), entry[FLOW]
    down_axis, across_axis = axes_of(flow)
    down = split(sizes[down_axis], entry[DOWN], entry[ROWS])
    across = split(sizes[across_axis], entry[ACROSS], entry[COLUMNS])
    streamed = sizes[3 - down_axis - across_axis]
    used_down = parts_used(down)
    compute = cycles_of(down.block, across.block, streamed, down.folds, across.folds, down.side, across.side, flow,
                        rules)
    row_folds, column_folds = all_folds(down), all_folds(across)
    figures[COMPUTE_CYCLES] = compute
    figures[INPUT_READS], figures[WEIGHT_READS], figures[OUTPUT_WRITES], figures[OUTPUT_READS] = accesses(
        m, n, k, flow, down.folds, row_folds, used_down, across.folds if rules.collation else column_folds, rules)
    if rules.side_writes and flow == OUTPUT_STATIONARY:
        figures[OUTPUT_WRITES] += row_folds * column_folds * (down.side + across.side)
    steady = compute
    if rules.ports:
        for words in (figures[INPUT_READS], figures[WEIGHT_READS], figures[OUTPUT_WRITES] + figures[OUTPUT_READS]):
            steady = max(steady, (words + rules.banks - 1) // rules.banks)
    figures[DRAM_READS] = figures[DRAM_WRITES] = 0
    if rules.dram:
        figures[DRAM_READS], figures[DRAM_WRITES] = moved(m, n, k, flow, down, across, streamed,
                                                          entry[DOWN] * entry[ACROSS], rules)
        if rules.dram_rate > 0.0:
            steady = max(steady, int(np.ceil((figures[DRAM_READS] + figures[DRAM_WRITES]) / rules.dram_rate)))
    figures[CYCLES] = steady + ends(m * n, flow, used_down, entry, rules, figures)
    figures[ACTIVE_PARTITIONS] = used_down * parts_used(across)


@inlined
def ends(outputs: int, flow: int, used_down: int, entry: Words, rules: Rules, figures: Words) -> int:
    """Return the cycles before and after a run that nothing overlaps, and count the pass that adds sums in banks."""
    cycles = 0
    if rules.bypass:
        for side, plane in ((ROWS, rules.plane_rows), (COLUMNS, rules.plane_columns)):
            cycles += max(plane - entry[side], 0) // rules.cell // rules.cells_per_stage
    if flow == OUTPUT_STATIONARY or used_down == 1:
        return cycles
    if rules.summation == TREE:
        # An adder tree has one stage, and takes one cycle, for each halving of the sums.
        reach = 1
        while reach < used_down:
            reach, cycles = reach * 2, cycles + 1
    elif rules.summation == BANKS:
        figures[OUTPUT_WRITES] += outputs
        figures[OUTPUT_READS] += outputs * used_down
        cycles += (outputs * (used_down + 1) + rules.banks - 1) // rules.banks
    return cycles


@compiled
def moved(m: int, n: int, k: int, flow: int, down: Split, across: Split, streamed: int, partitions: int,
          rules: Rules) -> tuple[int, int]:
    """Return the words that come from DRAM, and that go there, by the rules of `tilewright.cost.systolic.traffic`.

    Memories that are whole serve all sub-arrays in step: fold by fold, as one array that is as wide as all of them.
    """
    used_down, row_folds = parts_used(down), all_folds(down)
    copies = used_down if rules.summation == BANKS and flow != OUTPUT_STATIONARY else 1
    come, gone = 0, m * n
    if rules.dram == WHOLE:
        half = rules.memory_words // 2
        operands, partial = tile_words(across.block, across.whole, across.rest, (m, n, k)[axes_of(flow)[0]],
                                       down.folds, across.side, across.folds, streamed, flow, half, copies)
        again = partial * (row_folds if copies > 1 else down.folds - 1)
        return operands + again, gone + again
    # Each sub-array has its share of the memory, of which one half is filled while the other is read.
    half = rules.memory_words // partitions // 2
    for height, row_parts, rows_folded in ((down.block, down.whole, down.folds), (down.rest, 1, down.rest_folds)):
        for width, parts, folded in ((across.block, across.whole, across.folds), (across.rest, 1, across.rest_folds)):
            if height and width:
                operands, partial = tile_words(width, 1, 0, height, rows_folded, across.side, folded, streamed, flow,
                                               half, 1)
                again = partial * (rows_folded - 1)
                come += row_parts * parts * (operands + again)
                gone += row_parts * parts * again
    if copies > 1:
        come, gone = come + m * n * copies, gone + m * n * copies
    return come, gone


@compiled
def tile_words(block: int, whole: int, rest: int, height: int, row_folds: int, side: int, column_folds: int,
               streamed: int, flow: int, half: int, copies: int) -> tuple[int, int]:
    """Return the words of operands that come, and the outputs whose partial sums leave with every fold.

    Parameters
    ----------
    block, whole, rest
        Columns of the ``whole`` parts that share the memory, and of one more.
    height
        Of the product along rows.
    half
        Words of a memory's half in use.
    copies
        Partial sums held of each output.
    """
    width = block * whole + rest
    streaming, resting = height * streamed, flow == OUTPUT_STATIONARY
    come = streaming * (1 if streaming <= half else column_folds) + width * (streamed if resting else height)
    if not resting and row_folds == 1 and copies == 1:
        return come, 0
    leaving = 0
    for fold in range(column_folds):
        words = streamed * (whole * min(side, block - fold * side) + max(0, min(side, rest - fold * side)))
        # Sums of this fold do not stay on chip until the next one adds to them: they leave and come again.
        if words * copies > half:
            leaving += words
    if resting:
        return come + leaving * (row_folds - 1), 0
    return come, leaving

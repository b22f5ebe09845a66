"""Systolic arrays: the closed forms beside a walk that moves every word, and both beside SCALE-Sim's reports."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from systolic_walk import fetched_words, walk_systolic

from tilewright.cost import (
    SCALE_SIM,
    SCALE_SIM_PAPER,
    SYSTOLIC_ASSUMPTIONS,
    SYSTOLIC_RULES,
    SystolicArray,
    SystolicConventions,
    SystolicMemories,
    systolic_counts,
    systolic_layer,
    systolic_words,
)
from tilewright.cost.reference import walk
from tilewright.interop import ScaleSimConfig
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.validation import scalesim_cases
from tilewright.workload import convolution, matmul

DATAFLOWS = st.sampled_from(["os", "ws", "is"])
SIDES = st.integers(1, 5)
SIZES = st.tuples(*[st.integers(1, 9)] * 3)


def operands(m, n, k):
    return np.arange(m * k).reshape(m, k) % 7 - 3, np.arange(k * n).reshape(k, n) % 5 - 2


@settings(max_examples=120, deadline=None)
@given(SIZES, SIDES, SIDES, DATAFLOWS, st.sampled_from([SYSTOLIC_RULES, SCALE_SIM, SCALE_SIM_PAPER]))
def test_closed_forms_count_what_the_walk_moves(sizes, rows, columns, dataflow, conventions):
    a, b = operands(*sizes)
    walked = walk_systolic(a, b, SystolicArray(rows, columns, dataflow), conventions)
    counts = systolic_counts(*sizes, rows, columns, dataflow, conventions)
    assert (walked.product == a @ b).all()
    for name in ("cycles", "input_reads", "weight_reads", "output_writes", "output_reads"):
        assert getattr(walked, name) == getattr(counts, name), name


@pytest.mark.parametrize("name", [name for name in SYSTOLIC_ASSUMPTIONS
                                  if name not in ("partial_sums_leave", "hundredth_sets", "reach_beyond")])
def test_each_assumption_alone_changes_the_walk_as_the_closed_forms(name):
    changed = 0
    for dataflow in ("os", "ws", "is"):
        conventions = SystolicConventions().having(name, True)
        a, b = operands(5, 7, 8)
        walked = walk_systolic(a, b, SystolicArray(3, 4, dataflow), conventions)
        counts = systolic_counts(5, 7, 8, 3, 4, dataflow, conventions)
        ours = systolic_counts(5, 7, 8, 3, 4, dataflow)
        figures = [(getattr(walked, key), int(getattr(counts, key)), int(getattr(ours, key)))
                   for key in ("cycles", "output_writes", "output_reads")]
        assert all(walk == closed for walk, closed, _ in figures)
        changed += any(closed != rule for _, closed, rule in figures)
    assert changed


def fetched_by_walk(operator, sizes, array, conventions, addresses):
    """Words of inputs and weights that come from DRAM, by the order in which the walk asks for them."""
    walked = walk_systolic(*operands(*sizes), array, conventions)
    n, whole = sizes[1], conventions.hundredth_sets
    halves = [words // 100 * 50 if whole else words // 2 for words in (array.memories.inputs, array.memories.weights)]
    asked = ([addresses[place] for place in walked.input_order],
             [row * n + column for row, column in walked.weight_order])
    return [fetched_words(order, half, eager=whole) for order, half in zip(asked, halves, strict=True)]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 3)] * 2), st.tuples(*[st.integers(1, 5)] * 2), st.integers(1, 3), st.integers(1, 3),
       st.integers(1, 6), st.tuples(SIDES, SIDES), DATAFLOWS, st.integers(100, 450))
def test_dram_reads_as_scale_sim_are_those_of_the_walk(kernel, out, stride, channels, filters, sides, dataflow, words):
    operator = convolution("c", in_channels=channels, out_channels=filters, kernel=kernel, out_size=out, stride=stride)
    sizes = out[0] * out[1], filters, kernel[0] * kernel[1] * channels
    array = SystolicArray(*sides, dataflow, SystolicMemories(words, words, words))
    addresses = im2col(kernel, out, stride, channels)
    found = systolic_words(operator, array, SCALE_SIM)
    assert [found.input_reads, found.weight_reads] == fetched_by_walk(operator, sizes, array, SCALE_SIM, addresses)


def moved_by_folds(sizes, array):
    """Words of weights that come and of outputs that go and come, by walking the folds and what each finds held."""
    (m, n, k), flow = sizes, array.dataflow
    down, across = {"os": (m, n), "ws": (k, n), "is": (k, m)}[flow]
    weights = out = back = 0
    fits_whole = n * k <= array.memories.weights // 2
    met = set()
    for left in range(0, across, array.columns):
        width, resting = min(array.columns, across - left), False
        for top in range(0, down, array.rows):
            height = min(array.rows, down - top)
            tile = {"os": {(r, left + c) for r in range(k) for c in range(width)},
                    "ws": {(top + r, left + c) for r in range(height) for c in range(width)},
                    "is": {(top + r, c) for r in range(height) for c in range(n)}}[flow]
            if fits_whole:
                weights += len(tile - met)
                met |= tile
            elif flow != "os" or not resting:
                weights += len(tile)
                resting = flow == "os" and len(tile) <= array.memories.weights // 2
            sums = height * width if flow == "os" else width * (m if flow == "ws" else n)
            last = flow == "os" or top + height == down
            held = flow != "os" and sums <= array.memories.outputs // 2
            out += sums if last or not held else 0
            back += sums if flow != "os" and top > 0 and not held else 0
    return weights, out, back


@settings(max_examples=150, deadline=None)
@given(SIZES, SIDES, SIDES, DATAFLOWS, st.integers(2, 90), st.integers(2, 60))
def test_weights_and_outputs_move_as_the_folds_find_them_held(sizes, rows, columns, dataflow, weights, outputs):
    array = SystolicArray(rows, columns, dataflow, SystolicMemories(None, weights, outputs))
    m, n, k = sizes
    found = systolic_words(matmul("p", m=m, n=n, k=k), array)
    assert (found.weight_reads, found.output_writes, found.output_reads) == moved_by_folds(sizes, array)


def nest(dataflow, rows, columns):
    """The folds as a mapping of a product onto the machine of a configuration: columns outermost, all operands held."""
    across, down, streamed = {"os": "NMK", "ws": "NKM", "is": "MKN"}[dataflow]
    loops = {"OfmapSRAM": (Loop(across, columns), Loop(down, rows)),
             "PEs": (Loop(across, 1, "X"), Loop(down, 1, "Y")), "PERegister": (Loop(streamed, 1),)}
    levels = ("DRAM", "IfmapSRAM", "FilterSRAM", "OfmapSRAM", "PEs", "PERegister")
    return Mapping(tuple(LevelLoops(level, loops.get(level, ())) for level in levels))


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(2, 5), st.integers(2, 5), DATAFLOWS)
def test_the_rules_of_mappings_count_the_same_accesses(sizes, rows, columns, dataflow):
    """The oracle of mappings, on the machine that a configuration becomes: every access of every memory agrees."""
    m, n, k = sizes
    config, operator = ScaleSimConfig("c", rows, columns, (1, 1, 1), dataflow), matmul("p", m=m, n=n, k=k)
    counts = walk(operator, config.accelerator(), nest(dataflow, rows, columns)).counts
    layer = systolic_layer(operator, config.array())
    assert counts["IfmapSRAM", "I"].reads == layer.counts.input_reads
    assert counts["FilterSRAM", "W"].reads == layer.counts.weight_reads
    assert counts["OfmapSRAM", "O"].updates == layer.counts.output_writes
    assert counts["OfmapSRAM", "O"].reads == layer.counts.output_reads
    assert counts["DRAM", "I"].reads == layer.words.input_reads
    assert counts["DRAM", "W"].reads == layer.words.weight_reads
    assert counts["DRAM", "O"].updates == layer.words.output_writes


def im2col(kernel, out, stride, channels, size=None):
    """The address of every word of the inputs as a matrix; -1 past the edge of ``size``."""
    width = (out[1] - 1) * stride + kernel[1]
    rows = []
    for p in range(out[0]):
        for q in range(out[1]):
            row = []
            for r in range(kernel[0]):
                for s in range(kernel[1]):
                    y, x = p * stride + r, q * stride + s
                    inside = size is None or (y < size[0] and x < size[1])
                    row += [(y * width + x) * channels + c if inside else -1 for c in range(channels)]
            rows.append(row)
    return np.array(rows)


@settings(max_examples=60, deadline=None)
@given(SIZES, SIDES, SIDES, DATAFLOWS, st.integers(2, 60))
def test_our_dram_reads_lie_between_one_pass_and_what_the_walk_fetches(sizes, rows, columns, dataflow, words):
    """Whole tiles that stay are at least as good as halves that fill up anywhere; nothing comes less than once."""
    m, n, k = sizes
    array = SystolicArray(rows, columns, dataflow, SystolicMemories(words, words, words))
    found = systolic_words(matmul("p", m=m, n=n, k=k), array)
    inputs, weights = fetched_by_walk(None, sizes, array, SYSTOLIC_RULES, np.arange(m * k).reshape(m, k))
    assert found.input_reads == inputs
    assert k * n <= found.weight_reads <= weights
    assert found.output_writes - found.output_reads == m * n


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 3)] * 2), st.tuples(*[st.integers(1, 5)] * 2), st.integers(1, 3),
       st.tuples(SIDES, SIDES), DATAFLOWS, st.integers(2, 60))
def test_windows_share_what_the_half_still_holds(kernel, out, channels, sides, dataflow, words):
    """Our own rule, in one round of columns: the filters fit side by side, or the inputs rest."""
    filters = 1 if dataflow != "is" else 4
    operator = convolution("c", in_channels=channels, out_channels=filters, kernel=kernel, out_size=out)
    sizes = out[0] * out[1], filters, kernel[0] * kernel[1] * channels
    array = SystolicArray(*sides, dataflow, SystolicMemories(words, words, words))
    walked = walk_systolic(*operands(*sizes), array)
    addresses = im2col(kernel, out, 1, channels)
    asked = [addresses[place] for place in walked.input_order]
    held = len(set(asked)) <= words // 2
    assert systolic_words(operator, array).input_reads == (len(set(asked)) if held else
                                                           fetched_words(asked, words // 2))


CASES = list(scalesim_cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_figures_are_those_of_scale_sim(case):
    layer, reported = case.ours(SCALE_SIM), case.figures
    counts = layer.counts
    assert layer.compute_cycles == reported["total_cycles"] - reported["stall_cycles"]
    assert counts.input_reads == reported["sram_ifmap_reads"]
    assert counts.weight_reads == reported["sram_filter_reads"]
    assert counts.output_writes == reported["sram_ofmap_writes"]
    assert 100 * counts.mapping_efficiency == pytest.approx(reported["mapping_efficiency"], abs=1e-6)
    if case.interface == "CALC":
        assert 100 * counts.utilization == pytest.approx(reported["overall_util"], abs=1e-6)
        assert layer.words.input_reads == reported["dram_ifmap_reads"]
        assert layer.words.weight_reads == reported["dram_filter_reads"]
        assert 0 <= reported["dram_ofmap_writes"] - layer.words.output_writes < 64


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.id)
def test_our_figures_part_from_scale_sims_as_the_assumptions_say(case):
    theirs, ours = case.ours(SCALE_SIM), case.ours(SYSTOLIC_RULES)
    assert ours.compute_cycles <= theirs.compute_cycles + 1
    assert ours.counts.input_reads == theirs.counts.input_reads
    assert ours.counts.weight_reads == theirs.counts.weight_reads
    assert ours.counts.output_writes <= theirs.counts.output_writes
    assert ours.counts.output_writes - ours.counts.output_reads == ours.m * ours.n
    assert ours.words.output_writes <= theirs.words.output_writes

"""Systolic arrays that fall apart: spaces, cycles of sub-arrays, the best and its ties, what is refused."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import (
    SAGAR,
    SCALE_SIM,
    SCALE_SIM_PAPER,
    SYSTOLIC_RULES,
    ArrayConfiguration,
    PartitionEffects,
    ReconfigurableArray,
    best_configurations,
    partitioned_counts,
    partitioned_cycles,
    reconfigurable_array,
    systolic_counts,
    systolic_runtime,
)

PRODUCTS = np.random.default_rng(7).integers(1, 300, (20, 3))


def test_spaces_have_as_many_configurations_as_published():
    """Figure 7a of Samajdar et al.: 858 classes on 2^14 units; no two are alike, and all use every unit."""
    assert [len(ReconfigurableArray(2**power).configurations()) for power in (12, 13, 14, 16)] == [495, 660, 858, 1365]
    assert [len(SAGAR.configurations(space)) for space in ("realisable", "planar")] == [648, 108]
    found = SAGAR.configurations()
    assert len(set(found)) == 858
    assert {one.macs for one in found} == {2**14}
    assert sum(max(one.rows, one.columns) > 128 for one in found) == 210


@pytest.mark.parametrize("conventions", [SYSTOLIC_RULES, SCALE_SIM, SCALE_SIM_PAPER])
def test_one_sub_array_counts_as_a_systolic_array(conventions):
    array = ReconfigurableArray(64, cell=2)
    alone = [ArrayConfiguration(rows, 64 // rows, 1, 1, flow) for rows in (2, 8, 32) for flow in ("os", "ws", "is")]
    found = partitioned_counts(PRODUCTS, alone, array, conventions=conventions)
    for index, one in enumerate(alone):
        counts = systolic_counts(*PRODUCTS.T, one.rows, one.columns, one.dataflow, conventions)
        for name in ("cycles", "input_reads", "weight_reads", "output_writes", "output_reads", "utilization"):
            assert (getattr(found, name)[:, index] == getattr(counts, name)).all(), name


def test_the_best_is_that_of_the_whole_table_and_ties_go_by_the_rule():
    array = ReconfigurableArray(256)
    given = array.configurations()[::-1]
    table = partitioned_counts(PRODUCTS, given, array)
    found = best_configurations(PRODUCTS, given, array, threads=2)
    assert (found.cycles == table.cycles.min(axis=1)).all()
    assert (found.equals == (table.cycles == table.cycles.min(axis=1, keepdims=True)).sum(axis=1)).all()
    assert found.equals.max() > 1
    for product, index in enumerate(found.index):
        def rule(one, product=product):
            fewest = given[one].order
            return table.cycles[product, one], fewest[:2], table.sram_reads[product, one], fewest

        assert index == min(range(len(given)), key=rule)


def test_effects_that_change_nothing_find_the_same_best():
    """A rate of DRAM without end: the general search is held to the tables of the stall-free one."""
    array = ReconfigurableArray(256)
    quick = best_configurations(PRODUCTS, array.configurations(), array)
    slow = best_configurations(PRODUCTS, array.configurations(), array, PartitionEffects(dram="whole"))
    assert (quick.index == slow.index).all()
    assert (quick.cycles == slow.cycles).all()


def test_without_waiting_the_smallest_sub_arrays_win():
    """Figure 3 of Samajdar et al. has 32 x 32 win; stall-free, 4 x 4 takes 280 cycles and 32 x 32 takes 504."""
    layouts = [ArrayConfiguration(side, side, 128 // side, 128 // side, "os") for side in (128, 64, 32, 16, 8, 4)]
    assert partitioned_cycles([(256, 256, 64)], layouts, SAGAR).tolist() == [[1272, 760, 504, 376, 312, 280]]
    draws = np.random.default_rng(1).integers(1, 10_001, (500, 3))
    best = best_configurations(draws, SAGAR.configurations(), SAGAR).index
    assert {(SAGAR.configurations()[one].rows, SAGAR.configurations()[one].columns) for one in best} == {(4, 4)}


def test_the_largest_block_tells_the_cycles_of_ragged_ones():
    one = ArrayConfiguration(4, 8, 8, 4, "ws")
    array = ReconfigurableArray(1024)
    for m, n, k in PRODUCTS:
        parts = systolic_runtime(m, -(-n // 4), -(-k // 8), 4, 8, "ws")
        assert partitioned_cycles([(m, n, k)], [one], array) == parts


@pytest.mark.parametrize(("call", "message"), [
    (lambda: ReconfigurableArray(100), "power of two"),
    (lambda: ReconfigurableArray(64, cell=0), "positive"),
    (lambda: SAGAR.configurations("all"), "published"),
    (lambda: SAGAR.units(3, 3), "powers of two"),
    (lambda: ArrayConfiguration(4, 4, 1, 1, "rs"), "os"),
    (lambda: PartitionEffects(summation="rows"), "free, tree, banks"),
    (lambda: partitioned_cycles([(1, 2, 0)], SAGAR.configurations(), SAGAR), "positive integers"),
    (lambda: partitioned_cycles([(1, 2, 3)], [ArrayConfiguration(4, 4, 1, 1, "os")], SAGAR), "16384 units"),
    (lambda: partitioned_cycles([(2**20, 2**20, 2**20)], SAGAR.configurations(), SAGAR), "61 bits"),
    (lambda: partitioned_cycles([(1, 2, 3)], [], SAGAR), "one or more"),
    (lambda: reconfigurable_array("sagra"), "sagar"),
])
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()

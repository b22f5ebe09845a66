"""Systolic arrays that fall apart: spaces, cycles of sub-arrays, the best and its ties, what is refused."""

from itertools import product as every
from math import ceil

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import (
    DISTRIBUTED,
    FIXED_ARRAYS,
    MONOLITHIC,
    SAGAR,
    SCALE_SIM,
    SCALE_SIM_PAPER,
    SYSTOLIC_RULES,
    TIE_RULE,
    ArrayConfiguration,
    PartitionEffects,
    ReconfigurableArray,
    array_energy,
    best_configurations,
    partitioned_counts,
    partitioned_cycles,
    partitioned_energy,
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


def test_machines_of_table_iii_have_a_megabyte_for_each_memory_and_arrays_that_stay_what_they_are():
    banks = {"monolithic": (128, 128), "distributed-4x4": (4, 4), "distributed-8x8": (8, 8),
             "distributed-16x16": (16, 16), "distributed-32x32": (32, 32), "distributed-64x64": (64, 64)}
    for name, (side, each) in banks.items():
        machine = FIXED_ARRAYS[name]
        units = 2**14 // side**2
        assert (machine.banks, machine.banks * machine.bank_words) == (units * each, 2**20)
        layouts = machine.configurations("units")
        assert {(one.rows, one.columns) for one in layouts} == {(side, side)}
        assert len(layouts) == 3 * units.bit_length()
        assert set(layouts) == set(SAGAR.units(side, side))
    assert set(FIXED_ARRAYS) == set(banks)


@pytest.mark.parametrize("conventions", [SYSTOLIC_RULES, SCALE_SIM, SCALE_SIM_PAPER])
def test_one_sub_array_counts_as_a_systolic_array(conventions):
    array = ReconfigurableArray(64, cell=2)
    alone = [ArrayConfiguration(rows, 64 // rows, 1, 1, flow) for rows in (2, 8, 32) for flow in ("os", "ws", "is")]
    found = partitioned_counts(PRODUCTS, alone, array, conventions=conventions)
    for index, one in enumerate(alone):
        counts = systolic_counts(*PRODUCTS.T, one.rows, one.columns, one.dataflow, conventions)
        for name in ("cycles", "input_reads", "weight_reads", "output_writes", "output_reads", "utilization"):
            assert (getattr(found, name)[:, index] == getattr(counts, name)).all(), name


@pytest.mark.parametrize("ties", [
    TIE_RULE, ("is", "partitions"), ("reads", "ws"), ("ws", "reads", "partitions"), ()])
def test_the_best_is_that_of_the_whole_table_and_ties_go_by_the_rule(ties):
    array = ReconfigurableArray(256)
    given = array.configurations()[::-1]
    table = partitioned_counts(PRODUCTS, given, array)
    found = best_configurations(PRODUCTS, given, array, threads=2, ties=ties)
    assert (found.cycles == table.cycles.min(axis=1)).all()
    assert (found.equals == (table.cycles == table.cycles.min(axis=1, keepdims=True)).sum(axis=1)).all()
    assert found.equals.max() > 1
    for product, index in enumerate(found.index):
        def rule(one, product=product):
            words = {"partitions": given[one].partitions, "reads": table.sram_reads[product, one]}
            by = [words.get(word, given[one].dataflow != word) for word in ties]
            return table.cycles[product, one], by, given[one].order

        assert index == min(range(len(given)), key=rule)


def test_effects_that_change_nothing_find_the_same_best():
    """A rate of DRAM without end: the general search is held to the tables of the stall-free one."""
    array = ReconfigurableArray(256)
    quick = best_configurations(PRODUCTS, array.configurations(), array)
    slow = best_configurations(PRODUCTS, array.configurations(), array, PartitionEffects(dram="whole"))
    assert (quick.index == slow.index).all()
    assert (quick.cycles == slow.cycles).all()


@pytest.mark.parametrize("effects", [
    PartitionEffects(), PartitionEffects(True, "banks", True, True, "replicated"), PartitionEffects(collation=True),
    PartitionEffects(summation="tree"), PartitionEffects(summation="tree", collation=True)])
def test_the_best_by_energy_and_by_edp_are_those_of_the_whole_table(effects):
    array = ReconfigurableArray(256, power_w=0.5, dram_words_per_cycle=8.0)
    given = array.configurations()[::-1]
    table = partitioned_counts(PRODUCTS, given, array, effects)
    spent = partitioned_energy(table, array).total_pj
    for objective, figures in (("energy", spent), ("edp", spent * table.cycles)):
        found = best_configurations(PRODUCTS, given, array, effects, objective=objective)
        at = np.arange(len(PRODUCTS)), found.index
        assert (figures[at] == figures.min(axis=1)).all()
        assert (found.cycles == table.cycles[at]).all()
        equal = figures == figures.min(axis=1, keepdims=True)
        assert (found.equals == equal.sum(axis=1)).all()
        for product, index in enumerate(found.index):
            assert index == min(np.flatnonzero(equal[product]), key=lambda one, product=product: (
                given[one].order[:2], table.sram_reads[product, one], given[one].order))
        bound = array_energy(array).bound(PRODUCTS, -(-PRODUCTS.prod(axis=1) // array.macs))
        assert (spent >= bound[:, None]).all()


def test_all_parts_at_full_use_take_the_power_that_was_laid_out():
    """V-B: 13.01 W; SAGAR takes half as much again as one array, and 3.5 times less than distributed ones."""
    for array, power_w in ((SAGAR, 13.01), (MONOLITHIC, 13.01 / 1.5), (DISTRIBUTED, 13.01 * 3.533)):
        each = array_energy(array)
        busy = array.macs * each.mac_pj + 2 * array.banks * each.read_pj + each.standing_pj
        assert busy * 1e-12 * array.clock_ghz * 1e9 == pytest.approx(power_w, rel=1e-3)
        assert each.standing_pj > 0
    assert SAGAR.area_mm2 / MONOLITHIC.area_mm2 == pytest.approx(1.08)


def test_each_effect_makes_a_run_longer_or_leaves_it():
    """Collated reads relieve ports; a tree hands memories fewer sums, so that with ports it may be the shorter."""
    array = ReconfigurableArray(256, banks=8, bank_words=64, cells_per_stage=1, dram_words_per_cycle=4.0)
    products, given = PRODUCTS[:6], array.configurations()
    made = {(bypass, summation, ports, collation, dram): partitioned_cycles(
        products, given, array, PartitionEffects(bypass, summation, ports, collation, dram))
        for bypass, summation, ports, collation, dram in every(
            (False, True), ("free", "tree", "banks"), (False, True), (False, True), ("off", "whole", "replicated"))}
    grown = dict.fromkeys(("bypass", "tree", "banks", "ports", "whole", "replicated", "not collated"), 0)
    for (bypass, summation, ports, collation, dram), cycles in made.items():
        others = {"bypass": bypass and (False, summation, ports, collation, dram),
                  summation: (summation == "banks" or (summation == "tree" and not ports)) and (
                      bypass, "free", ports, collation, dram),
                  "ports": ports and (bypass, summation, False, collation, dram),
                  dram: dram != "off" and (bypass, summation, ports, collation, "off"),
                  "not collated": not collation and (bypass, summation, ports, True, dram)}
        for name, without in others.items():
            if without:
                assert (cycles >= made[without]).all(), name
                grown[name] += (cycles > made[without]).any()
    assert min(grown.values()) > 0, grown


def test_without_effects_cycles_are_those_of_the_published_formula():
    """SCALE-Sim's paper: folds of each sub-array times 2 R + C + T - 2, on every configuration."""
    array = ReconfigurableArray(256)
    given = array.configurations()
    found = partitioned_counts(PRODUCTS, given, array, conventions=SCALE_SIM_PAPER).cycles
    for product, (m, n, k) in enumerate(PRODUCTS.tolist()):
        for place, one in enumerate(given):
            down, across, streamed = {"os": (m, n, k), "ws": (k, n, m), "is": (k, m, n)}[one.dataflow]
            folds = ceil(ceil(down / one.down) / one.rows) * ceil(ceil(across / one.across) / one.columns)
            assert found[product, place] == folds * (2 * one.rows + one.columns + streamed - 2)


def test_without_waiting_the_smallest_sub_arrays_win():
    """Figure 3 of Samajdar et al. has 32 x 32 win; stall-free, 4 x 4 takes 280 cycles and 32 x 32 takes 504."""
    layouts = [ArrayConfiguration(side, side, 128 // side, 128 // side, "os") for side in (128, 64, 32, 16, 8, 4)]
    assert partitioned_cycles([(256, 256, 64)], layouts, SAGAR).tolist() == [[1272, 760, 504, 376, 312, 280]]
    draws = np.random.default_rng(1).integers(1, 10_001, (60, 3))
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
    (lambda: reconfigurable_array("monolithic"), "sagar"),
    (lambda: ReconfigurableArray(64, power_w=0.0), "power_w"),
    (lambda: array_energy(ReconfigurableArray(64)), "must be known"),
    (lambda: array_energy(ReconfigurableArray(64, power_w=0.01)), "Give 0.428"),
    (lambda: best_configurations([(1, 2, 3)], SAGAR.units(4, 4), SAGAR, objective="area"), "latency, energy, edp"),
    (lambda: best_configurations([(1, 2, 3)], SAGAR.units(4, 4), SAGAR, ties=("os", "rows")), "ties: must be"),
])
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()

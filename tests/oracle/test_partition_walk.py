"""Sub-arrays of reconfigurable arrays: compiled counts beside a walk of every word, and beside SCALE-Sim's rules."""

from dataclasses import fields, replace

import numpy as np
import pytest
from partition_walk import PartitionWalk, blocks

from tilewright.cost import (
    DRAM_MEMORIES,
    SCALE_SIM,
    SCALE_SIM_PAPER,
    STALL_FREE,
    SUMMATIONS,
    PartitionEffects,
    ReconfigurableArray,
    SystolicArray,
    SystolicMemories,
    best_configurations,
    partitioned_counts,
    partitioned_energy,
    systolic_counts,
    systolic_words,
)
from tilewright.hardware import technology
from tilewright.workload import matmul


def drawn(generator):
    """A random array of up to 256 units, one of its configurations, a product and effects."""
    cell = int(generator.integers(1, 5))
    doublings = int(generator.integers(0, (256 // cell**2).bit_length()))
    array = ReconfigurableArray(cell**2 << doublings, cell, banks=int(generator.integers(1, 9)),
                                bank_words=int(generator.integers(2, 30)),
                                cells_per_stage=int(generator.integers(1, 4)),
                                dram_words_per_cycle=[None, 0.7, 3.0][generator.integers(3)])
    spaces = array.configurations()
    one = spaces[generator.integers(len(spaces))]
    bypass, ports, collation = (bool(flag) for flag in generator.integers(2, size=3))
    effects = PartitionEffects(bypass, SUMMATIONS[generator.integers(3)], ports, collation,
                               DRAM_MEMORIES[generator.integers(3)])
    return tuple(int(size) for size in generator.integers(1, 15, 3)), one, array, effects


def hold(seeds):
    """Compare all figures; return how often each switch came to something."""
    changed = dict.fromkeys((entry.name for entry in fields(PartitionEffects)), 0)
    for seed in seeds:
        sizes, one, array, effects = drawn(np.random.default_rng(seed))
        found = partitioned_counts([sizes], [one], array, effects)
        walked = PartitionWalk(sizes, one, array, effects).run()
        for name, words in walked.items():
            assert getattr(found, name).item() == words, (seed, name, sizes, str(one), array, effects)
        for name in changed:
            other = replace(effects, **{name: getattr(STALL_FREE, name)})
            without = partitioned_counts([sizes], [one], array, other)
            changed[name] += any(getattr(without, figure) != getattr(found, figure) for figure in walked)
    return changed


def test_all_figures_are_those_of_the_walk():
    assert min(hold(range(60)).values()) > 2


def test_energy_and_what_is_least_of_it_are_those_of_the_walk():
    table = technology("28nm")
    for seed in range(3):
        sizes, _, array, effects = drawn(np.random.default_rng(seed))
        array = replace(array, macs=16, cell=2, bank_words=64 << seed % 5, power_w=0.01 + seed / 100,
                        clock_ghz=1.0 + seed % 2)
        given = array.configurations()[seed % 2::4]
        walked = [PartitionWalk(sizes, one, array, effects) for one in given]
        spent = np.array([walk.energy_pj(array.bank_words, table) for walk in walked])
        counts = partitioned_counts([sizes], given, array, effects)
        assert partitioned_energy(counts, array).total_pj[0] == pytest.approx(spent, rel=1e-12)
        for objective, least in (("energy", spent), ("edp", spent * counts.cycles[0])):
            best = best_configurations([sizes], given, array, effects, objective=objective)
            assert least[best.index[0]] == pytest.approx(least.min(), rel=1e-12)
            assert best.cycles == counts.cycles[0, best.index[0]]


@pytest.mark.slow
def test_all_figures_are_those_of_the_walk_at_length():
    hold(range(1000, 3000))


def test_one_sub_array_moves_the_words_of_dram_that_a_systolic_array_moves():
    generator = np.random.default_rng(5)
    for _ in range(100):
        (m, n, k), _, array, _ = drawn(generator)
        words = array.banks * array.bank_words
        for one in (found for found in array.configurations() if found.partitions == 1):
            memories = SystolicMemories(words, words, words)
            alone = systolic_words(matmul("p", m=m, n=n, k=k),
                                   SystolicArray(one.rows, one.columns, one.dataflow, memories))
            for dram in ("whole", "replicated"):
                found = partitioned_counts([(m, n, k)], [one], array, PartitionEffects(dram=dram))
                assert found.dram_writes == alone.output_writes
                assert found.dram_reads == alone.total - alone.output_writes


@pytest.mark.parametrize("conventions", [SCALE_SIM, SCALE_SIM_PAPER])
def test_each_sub_array_counts_as_scale_sim_does(conventions):
    """The slowest sub-array's cycles and all sub-arrays' accesses, each by the rules that SCALE-Sim's reports meet."""
    generator = np.random.default_rng(3)
    for _ in range(60):
        (m, n, k), one, array, _ = drawn(generator)
        found = partitioned_counts([(m, n, k)], [one], array, conventions=conventions)
        down, across, streamed = {"os": (m, n, k), "ws": (k, n, m), "is": (k, m, n)}[one.dataflow]
        parts = [{"os": (len(rows), len(columns), streamed), "ws": (streamed, len(columns), len(rows)),
                  "is": (len(columns), streamed, len(rows))}[one.dataflow]
                 for rows in blocks(down, one.down) for columns in blocks(across, one.across) if rows and columns]
        counts = systolic_counts(*np.array(parts).T, one.rows, one.columns, one.dataflow, conventions)
        assert found.cycles == counts.cycles.max()
        for name in ("input_reads", "weight_reads", "output_writes", "output_reads"):
            assert getattr(found, name) == getattr(counts, name).sum(), name

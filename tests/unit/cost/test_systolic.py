"""Systolic arrays: broadcasting, what is refused, waiting for DRAM, energy."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import (
    SCALE_SIM,
    SCALE_SIM_PAPER,
    SYSTOLIC_ASSUMPTIONS,
    SystolicArray,
    SystolicConventions,
    SystolicMemories,
    systolic_array,
    systolic_counts,
    systolic_energy,
    systolic_layer,
    systolic_runtime,
    systolic_words,
)
from tilewright.hardware import preset
from tilewright.workload import convolution, depthwise, einsum, matmul, transposed_convolution


def test_the_closed_forms_of_scale_sim():
    """ceil(M/R) ceil(N/C) (K + R + C - 2) - 1 and so on, as reported by its releases 2 and 3."""
    m, n, k, rows, columns = 100, 70, 33, 32, 16
    assert systolic_runtime(m, n, k, rows, columns, "os", SCALE_SIM) == 4 * 5 * (k + rows + columns - 2) - 1
    assert systolic_runtime(m, n, k, rows, columns, "ws", SCALE_SIM) == 2 * 5 * (m + 2 * rows + columns - 2) - 1
    assert systolic_runtime(m, n, k, rows, columns, "is", SCALE_SIM) == 2 * 7 * (n + 2 * rows + columns - 2) - 1


def test_the_analytical_model_of_its_paper():
    """(2R + C + T - 2) for each fold, whatever the dataflow (ISPASS 2020)."""
    for dataflow, streamed in (("os", 33), ("ws", 100), ("is", 70)):
        found = systolic_counts(100, 70, 33, 32, 16, dataflow, SCALE_SIM_PAPER)
        assert found.cycles == found.row_folds * found.column_folds * (2 * 32 + 16 + streamed - 2)


def test_small_arrays_read_as_much_more_as_published():
    """256 x 64 by 64 x 256 on sixteen arrays of 32 x 32 reads four times what one of 128 x 128 does (figure 3b of
    Samajdar et al., "Learning Flexible GEMM Accelerator Configuration and Mapping-space using ML")."""
    found = systolic_counts(256, 256, 64, [32, 128], [32, 128], "os")
    many, one = found.input_reads + found.weight_reads
    assert many == 4 * one


def test_sizes_sides_and_dataflows_broadcast():
    m = np.array([10, 20, 30])[:, None, None]
    sides = np.array([4, 8])
    dataflows = np.array(["os", "ws", "is"])[:, None]
    found = systolic_counts(m, 12, 14, sides, sides[::-1], dataflows)
    assert found.cycles.shape == found.utilization.shape == (3, 3, 2)
    for i, rows in enumerate(m.ravel()):
        for j, dataflow in enumerate(dataflows.ravel()):
            for x in range(2):
                alone = systolic_counts(int(rows), 12, 14, int(sides[x]), int(sides[1 - x]), str(dataflow)).one()
                assert alone["cycles"] == found.cycles[i, j, x]
                assert alone["input_reads"] == found.input_reads[i, j, x]
                assert alone["weight_reads"] == found.weight_reads[i, j, x]


def test_names_of_dataflows_may_be_long():
    assert systolic_runtime(5, 6, 7, 2, 3, "weight-stationary") == systolic_runtime(5, 6, 7, 2, 3, "ws")


def test_a_single_element_takes_a_cycle_for_each_multiplication():
    assert systolic_runtime(3, 4, 5, 1, 1, "os") == 60
    assert systolic_counts(3, 4, 5, 1, 1, "os").utilization == 1


@pytest.mark.parametrize(("arguments", "field"), [
    ((0, 1, 1, 1, 1, "os"), "m"), ((1, -3, 1, 1, 1, "os"), "n"), ((1, 1, 2.5, 1, 1, "os"), "k"),
    ((1, 1, 1, 0, 1, "os"), "rows"), ((1, 1, 1, 1, 0, "os"), "columns"), ((1, 1, 1, 1, 1, "rs"), "dataflow"),
    ((10**7, 10**7, 10**7, 1, 1, "os"), "m, n, k"),
])
def test_what_cannot_be_counted_is_refused(arguments, field):
    with pytest.raises(InputError) as error:
        systolic_counts(*arguments)
    assert error.value.field.startswith(field)


@pytest.mark.parametrize("build", [
    lambda: SystolicArray(0, 4, "os"), lambda: SystolicArray(4, 0, "os"), lambda: SystolicArray(4, 4, "rs"),
    lambda: SystolicArray(4, 4, "os", bandwidths=(0, None, None)), lambda: SystolicMemories(inputs=1),
    lambda: systolic_words(matmul("p", m=4, n=4, k=4), SystolicArray(2, 2, "os", SystolicMemories(50)), SCALE_SIM),
    lambda: systolic_words(einsum("ab->a", {"a": 3, "b": 4}), SystolicArray(2, 2, "os")),
    lambda: systolic_words(transposed_convolution("t", in_channels=2, out_channels=2, kernel=3, in_size=(4, 4)),
                           SystolicArray(2, 2, "os")),
    lambda: systolic_array(preset("simba-like"), "ws"),
])
def test_arrays_memories_and_operators_that_do_not_go_together_are_refused(build):
    with pytest.raises(InputError):
        build()


def test_groups_run_one_after_the_other():
    array = SystolicArray(8, 8, "ws")
    one = systolic_layer(convolution("c", in_channels=1, out_channels=1, in_size=(10, 10), kernel=3), array)
    many = systolic_layer(depthwise("d", channels=6, in_size=(10, 10), kernel=3), array)
    assert (many.count, many.m, many.n, many.k) == (6, 64, 1, 9)
    assert many.compute_cycles == 6 * one.compute_cycles
    assert many.words.total == 6 * one.words.total


def test_waiting_for_dram_is_the_longest_move_and_what_nothing_overlaps():
    operator = matmul("p", m=64, n=32, k=48)
    free = systolic_layer(operator, SystolicArray(16, 16, "ws"))
    assert (free.stall_cycles, free.bound, free.waits) == (0, "compute", {})
    slow = systolic_layer(operator, SystolicArray(16, 16, "ws", bandwidths=(0.1, 4, None)))
    assert slow.bound == "inputs"
    assert slow.cycles == 64 * 48 / 0.1 + 16 * 16 / 4
    fast = systolic_layer(operator, SystolicArray(16, 16, "os", bandwidths=(100, 100, 8), shared_bandwidth=50))
    assert (fast.bound, fast.cycles) == ("compute", fast.compute_cycles + 16 * 16 / 8)
    assert slow.utilization < free.utilization


def test_partial_sums_go_to_dram_only_where_their_block_does_not_fit():
    operator = matmul("p", m=64, n=32, k=48)  # three row folds, blocks of 64 x 16 sums
    fits = systolic_words(operator, SystolicArray(16, 16, "ws", SystolicMemories(outputs=2 * 64 * 16)))
    spills = systolic_words(operator, SystolicArray(16, 16, "ws", SystolicMemories(outputs=2 * 64 * 16 - 2)))
    assert (fits.output_writes, fits.output_reads) == (64 * 32, 0)
    assert (spills.output_writes, spills.output_reads) == (3 * 64 * 32, 2 * 64 * 32)


def test_a_machine_of_ours_as_a_systolic_array():
    array = systolic_array(preset("tpu-like"), "ws")
    assert (array.rows, array.columns, array.shared_bandwidth) == (256, 256, 48.57)
    assert array.memories == SystolicMemories(24 * 2**20, None, 2**20)


@pytest.mark.parametrize("flow", ["os", "is"])
def test_weights_that_just_fit_a_half_come_once_and_a_word_more_again_for_each_fold(flow):
    operator, sides = matmul("p", m=64, n=16, k=32), (16, 16)
    just, short = (systolic_words(operator, SystolicArray(*sides, flow, SystolicMemories(weights=words))).weight_reads
                   for words in (2 * 16 * 32, 2 * 16 * 32 - 2))
    assert (just, short) == (16 * 32, 4 * 16 * 32)


def test_energy_adds_up_what_moves_and_what_is_multiplied():
    machine = preset("tpu-like")
    layer = systolic_layer(matmul("p", m=300, n=512, k=300), systolic_array(machine, "ws"))
    found = systolic_energy(layer, machine)
    assert set(found) == {"DRAM", "UnifiedBuffer", "Accumulators", "MAC"}
    assert found["MAC"] == pytest.approx(300 * 512 * 300 * machine.compute.energy_pj_per_mac)
    dram = machine.memories[0].energy
    assert found["DRAM"] == pytest.approx((300 * 300 + 300 * 512) * dram.read_pj + 4 * 300 * 512 * dram.update_pj)
    accumulators = machine.level("Accumulators").energy
    assert found["Accumulators"] == pytest.approx(
        300 * 512 * (2 * accumulators.update_pj + accumulators.read_pj + accumulators.drain_pj))


def test_each_assumption_says_what_ours_is():
    assert set(SYSTOLIC_ASSUMPTIONS) == set(SystolicConventions(*[True] * len(SYSTOLIC_ASSUMPTIONS)).made)
    assert all("(ours:" in text for text in SYSTOLIC_ASSUMPTIONS.values())
    assert "shifted_outputs" not in SCALE_SIM.made

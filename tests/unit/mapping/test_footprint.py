"""What compressed tiles take, by format and rule of capacity, against counts by hand."""

import numpy as np
import pytest

from tilewright.hardware import Accelerator, AccessEnergy, Compression, Compute, Memory, Sparsity
from tilewright.mapping import footprint_bits, tensor_bits, tile_bytes
from tilewright.mapping.footprint import least_word_bits
from tilewright.workload import matmul, with_densities

SIDES = [np.array([4.0]), np.array([8.0])]
"""32 words in 4 rows of 8."""


def taken(given, capacity="worst", density=0.25):
    weights = with_densities(matmul("m", m=2, n=8, k=4), {"weights": density}).tensor("W")
    energy = AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("m", (Memory("Main", ("inputs", "weights", "outputs"), energy),), Compute("MAC", 1.0),
                          sparsity=Sparsity((given,) if given else (), capacity=capacity))
    bits = tensor_bits(weights, machine)
    found = footprint_bits(machine, "Main", weights, bits, SIDES)
    assert tile_bytes(weights, {"M": 2, "K": 4, "N": 8}, machine, "Main") * 8 == pytest.approx(found[0])
    assert least_word_bits(machine, "Main", weights, bits) * 32 <= found[0] + 1e-9
    return found[0]


@pytest.mark.parametrize(("format", "bits", "worst", "expected"), [
    ("bitmask", None, 32 * 8 + 32, 8 * 8 + 32),
    ("coordinates", None, 32 * (8 + 5), 8 * (8 + 5)),
    ("csr", None, 32 * (8 + 3) + 5 * 6, 8 * (8 + 3) + 5 * 6),
    ("uop-cp", None, 32 * (8 + 3) + 5 * 6, 8 * (8 + 3) + 5 * 6),
    ("uop-cp", 4, 32 * (8 + 4) + 5 * 4, 8 * (8 + 4) + 5 * 4),
])
def test_formats_take_what_is_counted_by_hand(format, bits, worst, expected):
    given = Compression("Main", "weights", format, bits)
    assert taken(given) == pytest.approx(worst)
    assert taken(given, "expected") == pytest.approx(expected)
    assert taken(given, "dense") == 32 * 8 == taken(None)


def test_blocks_of_a_structure_may_be_cut_at_both_ends_of_a_row():
    """Of 8 words in a row, 2 of every 4 not zero, a tile may begin in a block's middle: 2 + 2 + 2 at most."""
    assert taken(Compression("Main", "weights", "bitmask"), density="2:4") == pytest.approx(4 * 6 * 8 + 32)


def test_the_last_chance_of_even_zeros_counts():
    from tilewright.mapping import Zeros

    chances = Zeros(1000, 0.3, even=True).empty(np.arange(6.0))
    assert chances == pytest.approx([1.0, 0.7, 0.4, 0.1, 0.0, 0.0])


def test_even_words_never_fill_the_tile():
    assert taken(Compression("Main", "weights", "bitmask"), density="even:0.25") == pytest.approx(8 * 8 + 32)
    assert taken(Compression("Main", "weights", "bitmask"), density="even:0.26") == pytest.approx(9 * 8 + 32)
    assert taken(Compression("Main", "weights", "uop-cp", 4), density="even:0.25") == pytest.approx(8 * 12 + 20)


def test_run_lengths_store_a_zero_wherever_a_run_outgrows_its_field():
    given = Compression("Main", "weights", "run-length", 3)
    assert taken(given) == 32 * (8 + 3)
    assert taken(given, density="even:0.25") == (8 + 32 // 2**3) * (8 + 3)


def test_every_axis_but_the_last_has_a_rank_of_offsets():
    from tilewright.mapping import Zeros, stored

    sides = [np.array([2.0]), np.array([3.0]), np.array([5.0])]
    found = stored(Compression("Main", "W", "uop-cp", 4), Zeros(30, 0.5), sides)
    assert found.words[0] == 0.5
    assert found.metadata_bits[0] * 30 == pytest.approx(15 * 4 + ((2 + 1) + 2 * (3 + 1)) * 4)
    lone = stored(Compression("Main", "W", "uop-cp", 4), Zeros(5, 0.4), [np.array([5.0])])
    assert lone.metadata_bits[0] * 5 == pytest.approx(2 * 4)

"""The published areas of DiGamma and of ConfuciuX's cost model come back from the technology and the preset."""

import numpy as np
import pytest

from tilewright.hardware import preset, technology, with_numbers


@pytest.mark.parametrize("kind", ["sram", "registers"])
@pytest.mark.parametrize("capacity_bytes", [1, 64, 1000.5, 108_000, 2**30])
def test_a_bit_of_any_buffer_takes_the_same_area(kind, capacity_bytes):
    assert technology("kao-15nm").area_um2(kind, capacity_bytes) == pytest.approx(8 * 0.086 * capacity_bytes, rel=1e-12)


def test_elements_have_their_published_areas():
    table = technology("kao-15nm")
    assert (table.mac_um2("int", 8), table.mac_um2("int", 32)) == (282, 3495)
    # DiGamma's row of figure 6.8: 33 x 12 elements are 56 % of 1.99E+05.
    assert 396 * table.mac_um2("int", 8) == pytest.approx(0.56 * 1.99e5, rel=0.01)


@pytest.mark.parametrize("capacity_bytes", [448, 8192, 32768, 1048576, 20_000, 60_000_000])
def test_energies_are_those_of_16_nm(capacity_bytes):
    ours, base = technology("kao-15nm"), technology("16nm")
    for read in ("read_pj", "write_pj"):
        assert getattr(ours, read)("sram", capacity_bytes, 8) == pytest.approx(
            getattr(base, read)("sram", capacity_bytes, 8), rel=1e-9)
        assert getattr(ours, read)("registers", 100, 8) == getattr(base, read)("registers", 100, 8)
    assert ours.mac_pj("int", 8) == pytest.approx(base.mac_pj("int", 8), rel=1e-12)
    assert ours.dram_pj("LPDDR4", 8) == base.dram_pj("LPDDR4", 8)


def test_energies_of_tiny_and_huge_buffers_are_defined_and_grow():
    sizes = np.array([1, 2, 4, 19, 129, 448, 4096, 2.0**20, 2.0**32])
    for kind in ("sram", "registers"):
        read = technology("kao-15nm").storage[kind].read_pj_per_bit.at(sizes)
        assert (np.diff(read) > 0).all() and read[0] > 0
    word_pj = technology("16nm").read_pj("registers", 4, 32)
    assert technology("kao-15nm").read_pj("sram", 4, 32) == pytest.approx(word_pj)


@pytest.mark.parametrize(("elements", "l1_bytes", "l2_bytes"), [(1, 64, 32768), (128, 129, 65536), (12, 19, 64)])
def test_a_stage_of_confuciux_has_maestros_areas(elements, l1_bytes, l2_bytes):
    machine = with_numbers(preset("confuciux"), {
        ("PEs", "x"): elements, ("L1", "capacity_bytes"): l1_bytes, ("L2", "capacity_bytes"): l2_bytes})
    published = elements * (4470 + 4505.2 * l1_bytes / 64) + 4161.5 * l2_bytes / 32768
    assert machine.area_um2 == pytest.approx(published, rel=1e-12)


def test_traffic_of_confuciux_is_free():
    ports = [memory.bandwidth for memory in preset("confuciux").memories]
    assert all(port.read is port.write is port.shared is None for port in ports)

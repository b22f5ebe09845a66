"""The zoo: figures of the chips, sanity of every preset, round trips."""

import subprocess
import sys

import pytest

from tilewright.base import InputError
from tilewright.hardware import (
    Accelerator,
    Bandwidth,
    Fanout,
    describe,
    dump_accelerator,
    find_accelerator,
    format_bytes,
    load_accelerator,
    preset,
    preset_names,
    technology_names,
    with_numbers,
)

KIB = 1024
UNLIMITED = ("accel-b-sparse", "confuciux", "magma-core")
"""Machines whose ports never limit, as in the files that they are from."""
NAMES = preset_names()

MULTIPLIERS = {
    "eyeriss": 168, "simba-like": 1024, "nvdla-like": 2048, "shidiannao-like": 64, "tpu-like": 65536,
    "edge-s1": 168, "edge-s2": 168, "edge-s3": 168, "cloud-s1": 65536, "cloud-s2": 65536, "cloud-s3": 65536,
    "accel-a": 256, "accel-b": 1024, "accel-b-sparse": 1024, "flexion": 1024, "confuciux": 128, "magma-core": 2048,
    "dnnfuser": 1024, "eyeriss-v2-like": 384,
    "flat-edge": 1024, "flat-cloud": 65536,
}


def _mean(energy):
    return (energy.read_pj + energy.fill_pj + energy.update_pj + energy.drain_pj) / 4


def test_the_promised_machines_are_there():
    assert set(NAMES) == set(MULTIPLIERS)
    assert {name: preset(name).compute_instances for name in NAMES} == MULTIPLIERS


@pytest.mark.parametrize("name", NAMES)
def test_preset_is_sane(name):
    machine = preset(name)
    assert machine.name == name
    assert machine.sources
    assert machine.area_um2 > 0
    assert machine.compute.energy_pj_per_mac > 0
    assert machine.memories[0].capacity_bytes is None
    assert set(machine.memories[0].keeps) == {"inputs", "weights", "outputs"}
    assert 1 <= len(machine.fanouts) <= 3
    for memory in machine.memories:
        ports = memory.bandwidth
        assert ports.shared or (ports.read and ports.write) or name in UNLIMITED, memory.name
        assert min(memory.energy.read_pj, memory.energy.fill_pj, memory.energy.update_pj, memory.energy.drain_pj) > 0
        assert memory.block_words == 1 or machine.instances(memory.name) == 1
        if memory is not machine.memories[0]:
            assert memory.area_um2 > 0
            assert memory.capacity_bytes or set(memory.keeps) == {part for part, _ in memory.partitions_bytes}
    for fanout in machine.fanouts:
        assert fanout.network_energy_pj_per_word > 0


@pytest.mark.parametrize("name", NAMES)
def test_energy_per_bit_rises_outward(name):
    machine = preset(name)
    chain = [memory for memory in machine.memories if memory.name != "Accumulators"]  # beside the unified buffer
    energies = [_mean(memory.energy) / memory.word_bits for memory in chain]
    assert energies == sorted(energies, reverse=True)
    assert len(set(energies)) == len(energies)


@pytest.mark.parametrize("name", NAMES)
def test_preset_survives_the_round_trip(name):
    machine = preset(name)
    again = load_accelerator(dump_accelerator(machine))
    assert again == machine
    assert (again.sources, again.assumptions) == (machine.sources, machine.assumptions)
    for memory in again.memories[1:]:  # what follows from capacities does so again, by a technology of ours
        if memory.capacity_bytes is not None and machine.technology in technology_names():
            less = {(memory.name, "capacity_bytes"): 0.75 * memory.capacity_bytes}
            assert with_numbers(again, less).level(memory.name) == with_numbers(machine, less).level(memory.name)


@pytest.mark.parametrize("name", NAMES)
def test_description_names_every_level(name):
    machine = preset(name)
    text = describe(machine)
    positions = [text.index(f"{level.name}  ") for level in machine.levels]
    assert positions == sorted(positions)
    assert f"{machine.compute_instances:,} multiply-accumulate units" in text
    assert all(line in text for line in machine.assumptions)


def test_eyeriss_has_the_figures_of_the_chip():
    machine = preset("eyeriss")
    pes, spads, glb = machine.level("PEs"), machine.level("Spads"), machine.level("GLB")
    assert pes.shape == (14, 12)
    assert dict(spads.partitions_bytes) == {"inputs": 12 * 2, "weights": 224 * 2, "outputs": 24 * 2}
    assert (glb.capacity_bytes, glb.keeps) == (108 * KIB, ("inputs", "outputs"))
    assert dict(machine.word_bits) == {"inputs": 16, "weights": 16, "outputs": 16}
    total = sum(size for _, size in spads.partitions_bytes if size == 448) * 168 + glb.capacity_bytes
    assert total == 181.5 * KIB  # on-chip SRAM of the chip's specification
    unit = machine.compute.energy_pj_per_mac
    ratios = [memory.energy.read_pj / unit for memory in machine.memories]
    assert ratios == pytest.approx([200, 6, 1])
    assert pes.network_energy_pj_per_word == pytest.approx(2 * unit)
    assert machine.area_um2 < 12.25e6  # core area of the chip


def test_tpu_peak_is_the_published_one():
    machine = preset("tpu-like")
    assert 2 * machine.compute_instances * machine.frequency_mhz * 1e6 == pytest.approx(92e12, rel=0.01)
    assert machine.level("UnifiedBuffer").capacity_bytes == 24 * KIB**2
    assert machine.level("Accumulators").capacity_bytes == 4 * KIB**2
    assert machine.area_um2 < 331e6


def test_simba_and_nvdla_buffers():
    simba = preset("simba-like")
    assert dict(simba.level("PEBuffers").partitions_bytes) == {
        "inputs": 8 * KIB, "weights": 32 * KIB, "outputs": 3 * KIB}
    assert simba.level("GlobalBuffer").capacity_bytes == 64 * KIB
    assert simba.instances("PEBuffers") == 16
    nvdla = preset("nvdla-like")
    assert nvdla.level("CBUF").capacity_bytes == 512 * KIB
    assert [fanout.instances for fanout in nvdla.fanouts] == [32, 64]


@pytest.mark.parametrize(("platform", "arrays", "sg", "sl"), [
    ("edge", 4, 108_000, 512), ("cloud", 16, 24 * KIB**2, 4 * KIB**2 // 65536),
])
def test_gamma_platforms_differ_only_in_their_arrays(platform, arrays, sg, sl):
    fixed, flexible, scaled = (preset(f"{platform}-s{i}") for i in (1, 2, 3))
    for machine in (fixed, flexible, scaled):
        assert (machine.level("SG").capacity_bytes, machine.level("SL").capacity_bytes) == (sg, sl)
        assert machine.memories == fixed.memories
        assert machine.compute == fixed.compute
    assert [fanout.flexible for fanout in fixed.fanouts] == [False]
    assert [fanout.flexible for fanout in flexible.fanouts] == [True]
    assert [fanout.instances for fanout in scaled.fanouts] == [arrays, fixed.compute_instances // arrays]
    assert isinstance(scaled.levels[2], Fanout)
    assert scaled.fanouts[1].flexible


def test_accel_a_and_b():
    a, b = preset("accel-a"), preset("accel-b")
    assert (a.level("Shared").capacity_bytes, a.level("Private").capacity_bytes) == (512 * KIB, 64 * KIB)
    assert (b.level("Shared").capacity_bytes, b.level("Private").capacity_bytes) == (64 * KIB, 256)
    assert b.level("ALUs").instances == 4
    assert b.instances("Private") == 256


def test_the_sparse_accel_b_is_that_of_the_release():
    machine = preset("accel-b-sparse")
    assert [machine.instances(memory.name) for memory in machine.memories] == [1, 1, 256]
    assert machine.compute_instances == 1024
    words = [memory.capacity_bytes * 8 / memory.word_bits for memory in machine.memories[1:]]
    assert words == [65_536, 256] and {bits for _, bits in machine.word_bits} == {16}
    assert all(memory.bandwidth == Bandwidth() for memory in machine.memories)
    sparsity = machine.sparsity
    assert sparsity.capacity == "dense" and set(sparsity.skipped) == {"inputs", "weights"}
    assert len(sparsity.formats) == 9 and {(one.format, one.bits) for one in sparsity.formats} == {("uop-cp", 4)}
    assert {(one.memory, one.action) for one in sparsity.elisions} == {
        (memory.name, "skip") for memory in machine.memories}


def test_unknown_names_suggest_near_ones(tmp_path):
    with pytest.raises(InputError, match=r"Got 'eyeris'; Did you mean eyeriss, eyeriss-v2-like\?"):
        find_accelerator("eyeris")
    with pytest.raises(InputError, match="must be an existing file"):
        find_accelerator("nowhere.yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(dump_accelerator(preset("edge-s1")), encoding="utf-8")
    assert find_accelerator(str(path)) == find_accelerator("edge-s1")


@pytest.mark.parametrize(("count", "text"), [
    (None, "unlimited"), (512, "512 B"), (110592, "108 KiB"), (108000, "108,000 B"), (24 * KIB**2, "24 MiB"),
    (1.5 * KIB**3, "1.5 GiB"), (2.5, "2.50 B"),
])
def test_bytes_are_shown_in_exact_units(count, text):
    assert format_bytes(count) == text


def test_importing_the_room_stays_light():
    code = "import sys, tilewright.hardware; print(sorted({'numpy', 'numba', 'onnx', 'torch'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_presets_are_accelerators():
    assert all(isinstance(preset(name), Accelerator) for name in NAMES)

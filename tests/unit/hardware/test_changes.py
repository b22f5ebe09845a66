"""Numbers of machines as people type them: what they change, what follows, lists of values, and what is wrong."""

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.hardware import changed, dump_accelerator, load_design_space, preset, read_values


def test_what_is_changed_is_as_if_the_file_said_so() -> None:
    text = """
name: small
technology: 45nm
word_bits: {inputs: 16, weights: 16, outputs: 16}
levels:
  - {memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4,
     bandwidth_words_per_cycle: {shared: 8}}
  - {memory: GLB, keeps: [inputs, weights, outputs], kind: sram, capacity_bytes: CAPACITY}
  - {fanout: PEs, shape: SHAPE, network_mm: 0.5}
  - {memory: Spads, keeps: [inputs, weights], kind: registers, partitions_bytes: {inputs: 48, weights: WEIGHTS}}
compute: {name: MAC, type: int, width_bits: 16}
frequency_mhz: 500
"""
    before, wanted = (tw.load_accelerator(text.replace("CAPACITY", glb).replace("SHAPE", pes).replace("WEIGHTS", own))
                      for glb, pes, own in (("64 KiB", "[8, 8]", "64"), ("256 KiB", "[16, 4]", "96")))
    found = changed(before, ["GLB.capacity=256KB", "PEs.shape=16x4", "Spads.capacity[weights]=96"])
    assert found.name == "small:GLB.capacity=256KB,PEs.shape=16x4,Spads.capacity[weights]=96"
    assert found.numbers == wanted.numbers
    assert found.area_um2 == wanted.area_um2 > before.area_um2
    assert [line for line in dump_accelerator(found).splitlines() if not line.startswith("name")] == [
        line for line in dump_accelerator(wanted).splitlines() if not line.startswith("name")]


@pytest.mark.parametrize(("text", "number", "value"), [
    ("SG.capacity=1MB", "capacity_bytes", 1e6), ("SG.capacity=1024KB", "capacity_bytes", 2.0**20),
    ("SG.capacity=65536", "capacity_bytes", 65536.0),
    ("DRAM.bandwidth=16GB/s", "bandwidth_words_per_cycle.shared", 80),
    ("DRAM.bandwidth=16B/cycle", "bandwidth_words_per_cycle.shared", 16), ("PEs.shape=16x8", "instances", 128),
    ("SG.bandwidth.read=4", "bandwidth_words_per_cycle.read", 4),
    ("SG.bandwidth=4", "bandwidth_words_per_cycle.write", 4),
    ("DRAM.energy=7", "drain_energy_pj_per_word", 7), ("MAC.energy=0.5", "energy_pj_per_mac", 0.5),
    ("SG.area=5", "area_um2", 5), ("SG.read_energy_pj_per_word=1", "read_energy_pj_per_word", 1)])
def test_each_number_has_a_short_name(text: str, number: str, value: float) -> None:
    machine = tw.load_accelerator(f"edge-s2:{text}")
    assert machine.numbers[text.partition(".")[0], number] == value


def test_words_of_a_memory_are_as_wide_as_they_are() -> None:
    machine = tw.load_accelerator("eyeriss:DRAM.bandwidth=16B/cycle")
    assert machine.numbers["DRAM", "bandwidth_words_per_cycle.shared"] == 8


def test_the_pitch_of_an_outer_array_has_all_lanes_of_the_inner_one_in_it() -> None:
    machine = tw.load_accelerator("simba-like:Lanes.shape=4x4")
    outer, inner = machine.fanouts
    inside = machine.level("PEBuffers").area_um2 + 16 * machine.compute.area_um2
    assert inner.instances == 16
    assert outer.network_energy_pj_per_word == pytest.approx(outer.wire_pj_per_mm * inside**0.5 / 1000)


def test_the_clock_comes_first_as_bandwidths_in_bytes_a_second_depend_on_it() -> None:
    machine = tw.load_accelerator("edge-s2:DRAM.bandwidth=16GB/s,clock=1GHz")
    assert machine.frequency_mhz == 1000
    assert machine.numbers["DRAM", "bandwidth_words_per_cycle.shared"] == 16


def test_what_is_set_does_not_vary_in_a_design() -> None:
    space = load_design_space(dump_accelerator(preset("edge-s2")) + "design:\n  vary:\n    SG.capacity_bytes: "
                              "{from: 1 KiB, to: 1 MiB}\n    PEs.instances: {from: 1, to: 512}\n")
    fixed = space.changed(["SG.capacity=108000"])
    assert [len(one) for one in fixed.ranges.values()] == [1, 512]
    assert fixed.ranges["SG", "capacity_bytes"].low == 108000
    assert tw.load_design_space("edge-s2:SG.capacity=64KiB").ranges["SG", "capacity_bytes"].high == 65536


@pytest.mark.parametrize(("text", "values"), [
    ("SG.capacity=64KB..1MB*2", "64KB 128KB 256KB 512KB 1024KB"), ("SG.capacity=64kB..1MB*2", "64kB 128kB 256kB 512kB"),
    ("SG.capacity=64KB..256KB+64KB", "64KB 128KB 192KB 256KB"), ("PEs.shape=8x8,16x16", "8x8 16x16"),
    ("PEs.x=4..16+4,32", "4 8 12 16 32"), ("DRAM.bandwidth=4GB/s..16GB/s*2", "4GB/s 8GB/s 16GB/s")])
def test_values_are_listed_or_stepped(text: str, values: str) -> None:
    name, texts, numbers = read_values(preset("edge-s2"), text)
    assert name == text.partition("=")[0]
    assert " ".join(texts) == values
    assert len({tuple(one.values()) for one in numbers}) == len(texts)


@pytest.mark.parametrize(("text", "last"), [
    ("SG.capacity=512KB,1MB", 2**20), ("SG.capacity=512KB..1MB*2", 2**20), ("SG.capacity=500kB,1MB", 10**6),
    ("SG.capacity=512KB,1MB..4MB*2", 2**22),
    ("SG.capacity=1234567..2469135+1234567", 2469134)])
def test_no_digit_is_lost_and_a_unit_means_the_same_in_all_values(text: str, last: int) -> None:
    name, texts, numbers = read_values(preset("edge-s2"), text)
    assert numbers[-1] == {("SG", "capacity_bytes"): last}
    alone = [tw.load_accelerator(f"edge-s2:{name}={one}").numbers["SG", "capacity_bytes"] for one in texts]
    assert alone == [number["SG", "capacity_bytes"] for number in numbers]


@pytest.mark.parametrize(("text", "said"), [
    ("SG.size=3", "must be a number of the machine"), ("XX.capacity=3", "must be a number of one of DRAM"),
    ("SG.capacity=3 apples", "must have one of the units"), ("SG.capacity=", "must be LEVEL.NUMBER=VALUE"),
    ("SG.capacity=0", "must be positive"), ("SG.capacity=-3", "must be a positive number"),
    ("PEs.shape=0x3", "must be a whole number from 1"), ("PEs.shape=a", "must be sides as 16x16"),
    ("PEs.x=1.5", "must be a whole number"), ("PEs.x=\u0661", "must be a whole number"),
    ("DRAM.bandwidth=0", "words a cycle"), ("DRAM.bandwidth=4 GB", "must be a number with a unit"),
    ("clock=3", "must have one of the units kHz"), ("clock=0MHz", "must be positive"),
    ("clock=1GHz,clock=2GHz", "must be set once"), ("SG.capacity=4,SG.capacity=5", "must be set once"),
    ("DRAM.capacity=4GB", "must be a number of the machine"), ("SG.capacity=1", "knows 64 to"),
    ("SG.area=1um2", "without a unit"), ("SG.shape=4x4", "must be a number of the machine")])
def test_what_cannot_be_set_says_why(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tw.load_accelerator(f"edge-s2:{text}")


@pytest.mark.parametrize(("text", "said"), [
    ("SG.capacity=4KB..1KB*2", "must have from 1"), ("SG.capacity=4KB..8KB*1", "must grow"),
    ("SG.capacity=4KB..8KB+0", "must grow"), ("PEs.shape=8x8..16x16*2", "must list its values"),
    ("SG.capacity=4KB,4KB", "must list each value once"), ("SG.capacity=1..9e9+1", "must have from 1 to 10,000"),
    ("SG.capacity", "must be LEVEL.NUMBER=VALUES"), ("SG.capacity=..*2", "must be FIRST"),
    ("SG.capacity=4KB..8KB", "must be FIRST")])
def test_what_cannot_vary_says_why(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_values(preset("edge-s2"), text)

"""Systems: the presets against the published table, files, bandwidths with units, and what is wrong with them."""

from math import prod

import pytest

from tilewright.base import InputError
from tilewright.hardware import Fanout, preset, read_bandwidth
from tilewright.scheduling import load_system, system_names
from tilewright.workload import matmul

# Kao, dissertation, Georgia Tech 2022, table 7.2: cores as (height, style, buffers in KB), and elements in all.
TABLE_7_2 = {
    "s1": [(32, "HB", 146)] * 4,
    "s2": [(32, "HB", 146)] * 3 + [(32, "LB", 110)],
    "s3": [(128, "HB", 580)] * 8,
    "s4": [(128, "HB", 580)] * 7 + [(128, "LB", 434)],
    "s5": [(128, "HB", 580)] * 3 + [(128, "LB", 434)] + [(64, "HB", 291)] * 3 + [(64, "LB", 218)],
    "s6": [(128, "HB", 580)] * 7 + [(128, "LB", 434)] + [(64, "HB", 291)] * 7 + [(64, "LB", 218)],
}
ELEMENTS = {"s1": 8_192, "s2": 8_192, "s3": 65_536, "s4": 65_536, "s5": 49_152, "s6": 98_304}
STYLES = {"HB": "nvdla", "LB": "eyeriss-rows"}

MINE = """
name: mine
clock_mhz: 500
host_bandwidth: 32GB/s
memory_bandwidth: 16GB/s
cores:
- {accelerator: eyeriss, count: 2, with: {GLB.bandwidth: 4GB/s}}
- {name: small, accelerator: beside.yaml, dataflow: shidiannao}
- {accelerator: magma-core, flexible: true, with: {PEs.x: 8, SG.capacity_bytes: 64 KiB}}
"""


def total_bytes(core):
    levels, instances, found = core.accelerator.levels, 1, 0
    for level in levels[1:]:
        if isinstance(level, Fanout):
            instances *= level.instances
        else:
            found += instances * level.capacity_bytes
    return found


@pytest.mark.parametrize("name", TABLE_7_2)
def test_presets_are_those_of_the_table(name):
    system = load_system(name)
    assert len(system.cores) == len(TABLE_7_2[name]) and system.clock_mhz == 200
    for core, (height, style, kilobytes) in zip(system.cores, TABLE_7_2[name], strict=True):
        assert core.accelerator.compute_instances == 64 * height
        assert core.dataflow == STYLES[style] and core.name.startswith(style)
        assert total_bytes(core) == 1000 * kilobytes
        assert core.accelerator.word_bits == (("inputs", 8), ("weights", 8), ("outputs", 8))
    assert sum(core.accelerator.compute_instances for core in system.cores) == ELEMENTS[name]
    assert system.peak_gflops == pytest.approx(ELEMENTS[name] * 2 * 0.2)
    assert any("SL" in line for line in system.assumptions) and system.sources


@pytest.mark.parametrize(("name", "like"), [("s1-flex", "s1"), ("s3-flex", "s3")])
def test_flexible_presets_have_arrays_of_any_shape(name, like):
    system, fixed = load_system(name), load_system(like)
    for core, other in zip(system.cores, fixed.cores, strict=True):
        (array,) = core.accelerator.fanouts
        assert array.flexible and array.instances == prod(other.accelerator.fanouts[0].shape)
        assert [memory.capacity_bytes for memory in core.accelerator.memories[1:]] == [2_000_000, 1000]


def test_files_list_presets_and_files_of_their_own_folder(tmp_path):
    from tilewright.hardware import dump_accelerator

    (tmp_path / "beside.yaml").write_text(dump_accelerator(preset("shidiannao-like")))
    (tmp_path / "mine.yaml").write_text(MINE)
    system = load_system(tmp_path / "mine.yaml")
    assert [core.name for core in system.cores] == ["eyeriss.1", "eyeriss.2", "small", "magma-core"]
    assert [core.style for core in system.cores] == ["free", "free", "shidiannao", "free"]
    assert system.bandwidth == pytest.approx(16e9 / 500e6)
    assert [core.accelerator.frequency_mhz for core in system.cores] == [500] * 4
    assert system.cores[0].accelerator.numbers["GLB", "bandwidth_words_per_cycle.read"] == 8 / 2  # at 500 MHz
    assert all(core.accelerator.memories[0].bandwidth.shared is None for core in system.cores)
    assert system.kind_of.tolist() == [0, 0, 1, 2] and len(system.kinds) == 3
    assert system.cores[3].accelerator.numbers["SG", "capacity_bytes"] == 64 * 1024
    assert system.with_bandwidth("16B/cycle").bandwidth == 16
    assert load_system(system) is system


def test_styles_leave_a_product_of_twenty_rows_twenty_lanes():
    product = matmul("product", m=20, n=256, k=256)
    fast, slow = (core.space(product) for core in load_system("s2").cores[2:])
    import numpy as np

    from tilewright.cost import DenseModel

    best = []
    for space in (fast, slow):
        batch = space.sample(np.random.default_rng(0), 200)
        best.append(DenseModel(product, space.accelerator, space.layout).score(batch).steps.min())
    assert best[1] >= product.macs / 20 and best[0] < product.macs / 100


@pytest.mark.parametrize(("text", "cycles"), [
    ("16GB/s", 80), ("16 GB/s", 80), ("16B/cycle", 16), ("200 MB/s", 1), ("1e-3TB/s", 5), ("1GiB/s", 2**30 / 2e8)])
def test_bandwidths_are_read_with_their_units(text, cycles):
    assert read_bandwidth(text, 200) == pytest.approx(cycles)


@pytest.mark.parametrize(("text", "says"), [
    ("16", "must be a number with a unit"), ("", "must be a number with a unit"), ("fast", "must be a number"),
    ("16GB", "must be a number with a unit"), ("16 Gbit/s", "must have one of the units"), ("-1GB/s", "must be a"),
    ("0GB/s", "must be positive"), ("1e999GB/s", "must be positive"), ("1e999B/cycle", "must be positive"),
    (16, "unit")])
def test_wrong_bandwidths_are_told(text, says):
    with pytest.raises(InputError, match=says):
        read_bandwidth(text, 200)


HEAD = MINE.partition("cores:")[0]
WRONG = {
    "nothing": ("", "must be a mapping of fields"),
    "a list": ("- 1\n- 2\n", "must be a mapping of fields"),
    "no cores": (HEAD, "cores: is required"),
    "empty cores": (HEAD + "cores: []\n", "at least 1"),
    "no clock": (MINE.replace("clock_mhz: 500\n", ""), "clock_mhz: is required"),
    "clock zero": (MINE.replace("500", "0"), "greater than 0"),
    "no unit": (MINE.replace("16GB/s", "16 "), "memory_bandwidth: must be a number with a unit"),
    "wrong unit": (MINE.replace("16GB/s", "16Gb/s"), "must have one of the units"),
    "zero": (MINE.replace("16GB/s", "0GB/s"), "must be positive"),
    "misspelt": (MINE.replace("host_band", "hots_band"), "is not a known field.*host_bandwidth"),
    "unknown core": (MINE.replace("accelerator: eyeriss", "accelerator: eyeris"), "Did you mean eyeriss"),
    "missing file": (MINE.replace("beside.yaml", "nowhere.yaml"), "nowhere.yaml"),
    "unknown style": (MINE.replace("shidiannao", "shidianao"), "must be a known dataflow.*shidiannao"),
    "count zero": (MINE.replace("count: 2", "count: 0"), "greater than or equal to 1"),
    "too many": (MINE.replace("count: 2", "count: 256"), "at most 256"),
    "unknown number": (MINE.replace("PEs.x", "PEs.z"), "PEs.z: must be a number of the machine.*Of PEs: shape"),
    "wrong number": (MINE.replace("PEs.x: 8", "PEs.x: 0"), "must be a whole number from 1"),
    "wrong bytes": (MINE.replace("64 KiB", "64 KO"), "bytes"),
    "set twice": (MINE.replace("PEs.x: 8", "PEs.x: 8, PEs.shape: 8x8"), "PEs.shape: must be set once"),
    "beyond the technology": (MINE.replace("64 KiB", "64 GB"), "knows 64 to"),
    "sparse": (MINE.replace("accelerator: eyeriss", "accelerator: accel-b-sparse"), "no flexibility or sparsity"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_told_with_their_line(case, tmp_path):
    from tilewright.hardware import dump_accelerator

    (tmp_path / "beside.yaml").write_text(dump_accelerator(preset("shidiannao-like")))
    text, says = WRONG[case]
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=says) as told:
        load_system(tmp_path / "mine.yaml")
    assert str(told.value).startswith("mine.yaml:")
    assert "\n" not in str(told.value)


def test_unknown_systems_are_told():
    assert set(system_names()) == {*TABLE_7_2, "s1-flex", "s3-flex"}
    with pytest.raises(InputError, match="Did you mean s4"):
        load_system("s44")
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        load_system("nowhere.yaml")

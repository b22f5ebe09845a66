"""Accelerator files: what they may say, and what is said of the wrong ones."""

import pytest

from tilewright.base import InputError
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Compute,
    Fanout,
    Memory,
    dump_accelerator,
    load_accelerator,
    technology,
)

GOOD = """\
name: tiny
technology: 45nm
frequency_mhz: 1e3
word_bits: {inputs: 8, weights: 8, outputs: 16}
levels:
  - memory: DRAM
    keeps: [inputs, weights, outputs]
    kind: dram
    dram_type: LPDDR4
    bandwidth_words_per_cycle: {shared: 16}
  - memory: GLB
    keeps: [inputs, outputs]
    kind: sram
    capacity_bytes: 64 KiB
    bandwidth_words_per_cycle: {read: 8, write: 8}
    energy_pj_per_word: {update: 5}
  - fanout: PEs
    shape: [4, 2]
    blocks: [2, 2]
  - memory: RF
    keeps: [weights]
    kind: registers
    capacity_bytes: 32
    buffering: single
compute: {type: int, width_bits: 8}
"""


@pytest.mark.parametrize(("keeps", "bits", "told"), [
    ("[outputs]", 16, False), ("[inputs, weights]", 8, False), ("[weights]", 8, False), ("[weights, outputs]", 8, True),
    ("[inputs, outputs]", 8, True), ("[O]", 8, True),
])
def test_words_of_a_memory_are_those_of_what_it_keeps(keeps, bits, told):
    """32-bit outputs in a memory that keeps nothing else are not taken for 8-bit words; a choice is told."""
    machine = load_accelerator(GOOD.replace("keeps: [inputs, outputs]", f"keeps: {keeps}"))
    glb = machine.levels[1]
    assert glb.word_bits == bits
    assert glb.energy.read_pj == technology("45nm").read_pj("sram", 65536, bits)
    (line,) = (line for line in machine.assumptions if "GLB" in line and f"not given: {bits} bits assumed" in line)
    assert (", as those of " in line) == told
    stated = load_accelerator(GOOD.replace("keeps: [inputs, outputs]", f"keeps: {keeps}\n    word_bits: 12"))
    assert stated.levels[1].word_bits == 12
    assert not any("GLB" in line and "width not given" in line for line in stated.assumptions)


def test_energies_may_be_of_accesses_or_bits():
    """Of an access of eight words of eight bits, of a bit, or of a word: the same machine."""
    def read(field, value):
        text = GOOD.replace("energy_pj_per_word: {update: 5}", f"block_words: 8\n    {field}: {{update: {value}}}")
        return load_accelerator(text).level("GLB")

    word = read("energy_pj_per_word", 5)
    assert read("energy_pj_per_access", 40) == word
    assert read("energy_pj_per_bit", 0.625) == word
    assert (word.energy.update_pj, word.energy.fill_pj > 0) == (5, True)
    assert read("word_bits: 16\n    energy_pj_per_bit", 0.625).energy.update_pj == 10


def test_bandwidths_may_be_of_bytes_with_units():
    """Words of the memory's own width: 16 of eight bits a cycle are 16 bytes."""
    machine, stated = load_accelerator(GOOD), "bandwidth_words_per_cycle: {shared: 16}"
    rate = 16 * machine.frequency_mhz / 1e3
    for said in (f"bandwidth: {rate}GB/s", f"bandwidth: {{shared: {rate}GB/s}}", "bandwidth: {shared: 16B/cycle}"):
        assert load_accelerator(GOOD.replace(stated, said)) == machine, said
    wide = GOOD.replace(stated, "word_bits: 16\n    bandwidth: {read: 16B/cycle, write: 4B/cycle}")
    assert load_accelerator(wide).memories[0].bandwidth == Bandwidth(8, 2)


def test_ports_and_capacities_may_be_unlimited():
    plain = GOOD.replace("    bandwidth_words_per_cycle: {shared: 16}\n", "")
    said = GOOD.replace("{shared: 16}", "unlimited\n    capacity_bytes: unlimited")
    assert load_accelerator(said) == load_accelerator(plain)
    one = load_accelerator(GOOD.replace("{read: 8, write: 8}", "{read: unlimited, write: 8}"))
    assert one.level("GLB").bandwidth == Bandwidth(write=8)


def test_a_good_file():
    machine = load_accelerator(GOOD)
    table = technology("45nm")
    glb, pes, rf = machine.levels[1:]
    assert machine.frequency_mhz == 1000
    assert glb.capacity_bytes == 65536
    assert glb.energy.update_pj == 5
    assert glb.energy.read_pj == glb.energy.drain_pj == table.read_pj("sram", 65536, 8)
    assert glb.energy.fill_pj == table.write_pj("sram", 65536, 8)
    assert glb.area_um2 == table.area_um2("sram", 65536)
    assert glb.leakage_mw == table.leakage_mw("sram", 65536)
    assert (pes.blocks, pes.instances, pes.multicast) == ((2, 2), 8, True)
    assert rf.energy.read_pj == table.read_pj("registers", 32, 8)
    assert machine.levels[0].energy == AccessEnergy(64, 64, 64, 64)
    assert machine.compute.energy_pj_per_mac == 0.3
    pitch_mm = (rf.area_um2 + machine.compute.area_um2) ** 0.5 / 1000
    assert pes.network_energy_pj_per_word == pytest.approx(0.12 * 8 * pitch_mm)
    assert any("PEs" in line for line in machine.assumptions)
    assert "Leakage of DRAM, MAC: not known, counted as 0." in machine.assumptions
    assert machine.area_um2 == pytest.approx(glb.area_um2 + 8 * (rf.area_um2 + 419))


def test_leakage_can_be_left_out():
    machine = load_accelerator(GOOD + "leakage: omitted\n")
    assert all(memory.leakage_mw == 0 for memory in machine.memories)
    assert "Leakage of DRAM, GLB, RF, MAC: left out by the file (leakage: omitted)." in machine.assumptions


def test_partitions_cost_what_the_largest_costs_and_add_up_in_area():
    text = GOOD.replace("    capacity_bytes: 64 KiB\n", "    partitions_bytes: {inputs: 1 KiB, outputs: 4 kB}\n")
    glb = load_accelerator(text).levels[1]
    table = technology("45nm")
    assert dict(glb.partitions_bytes) == {"inputs": 1024, "outputs": 4000}
    assert glb.energy.read_pj == table.read_pj("sram", 4000, 8)
    assert glb.area_um2 == table.area_um2("sram", 1024) + table.area_um2("sram", 4000)


def test_technology_can_be_overridden_in_the_file():
    own = ("technology:\n  name: mine\n  base: 45nm\n  scale_to: {node_nm: 16, voltage_v: 0.8}\n"
           "  mac:\n    - {type: int, width_bits: 8, energy_pj: 0.05, area_um2: 70, source: our synthesis}\n")
    machine = load_accelerator(GOOD.replace("technology: 45nm\n", own))
    assert machine.technology == "mine"
    assert machine.compute == Compute("MAC", 0.05, 70)
    assert machine.levels[1].energy.read_pj == technology("16nm").read_pj("sram", 65536, 8)
    again = load_accelerator(dump_accelerator(machine))
    assert again == machine


def test_a_machine_built_in_python_survives_the_round_trip():
    energy = AccessEnergy(1.5, 1e-07, 0.25, 1 / 3)
    machine = Accelerator(
        name="no",
        levels=(
            Memory("1e3", ("inputs", "weights", "outputs"), energy, block_words=4),
            Fanout("yes", (3, 5), multicast=False, reduce=False, flexible=True, network_energy_pj_per_word=0.1),
            Memory("x: y", ("W", "outputs"), energy, capacity_bytes=512, partitions_bytes=(("W", 100.5),),
                   word_bits=12, bandwidth=Bandwidth(read=0.5, write=2), buffering="buffet", forwards="words",
                   area_um2=10, leakage_mw=0.01, access_grain=(4, 5)),
            Fanout("lanes", (4, 4), blocks=(2, 4)),
            Fanout("mesh", (4, 4), multicast=(("inputs", "y"), ("W", False)), reduce="x"),
            Memory("one", ("inputs", "weights"), energy, capacity_bytes=4, shared=("mesh.x",)),
        ),
        compute=Compute("true", 0.4, 5, 0.001),
        frequency_mhz=123.4,
        technology="own #1",
        sources=("a: b # c",),
    )
    assert load_accelerator(dump_accelerator(machine)) == machine


def test_yaml_is_1_2():
    machine = load_accelerator(GOOD.replace("name: tiny", "name: no"))
    assert machine.name == "no"


RF = "    capacity_bytes: 32\n"
MALFORMED = [
    # (what to replace, by what, line and field, rest of the message)
    ("energy_pj_per_word: {update: 5}", "energy_pj_per_word: {update: 5}\n    energy_pj_per_bit: {update: 5}",
     "11 arch.levels[1]", "takes one of energy_pj_per_word, energy_pj_per_access, energy_pj_per_bit"),
    ("energy_pj_per_word: {update: 5}", "energy_pj_per_bit: 5", "16 arch.levels[1].energy_pj_per_bit",
     "must be a mapping of fields"),
    ("bandwidth_words_per_cycle: {shared: 16}", "bandwidth: 16 apples", "10 arch.levels[0].bandwidth.shared",
     "must be a number with a unit; Got '16 apples'; For example 16GB/s"),
    ("bandwidth_words_per_cycle: {shared: 16}", "bandwidth: {shared: 16}", "10 arch.levels[0].bandwidth.shared",
     "must be a valid string"),
    ("bandwidth_words_per_cycle: {shared: 16}", "bandwidth: {read: 0GB/s}", "10 arch.levels[0].bandwidth.read",
     "must be positive and finite"),
    ("bandwidth_words_per_cycle: {shared: 16}", "bandwidth_words_per_cycle: {shared: 16}\n    bandwidth: 1GB/s",
     "6 arch.levels[0]", "takes one of bandwidth_words_per_cycle, bandwidth"),
    ("{shared: 16}", "endless", "10 arch.levels[0].bandwidth_words_per_cycle", "must be a mapping of fields"),
    ("{shared: 16}", "{shared: endless}", "10 arch.levels[0].bandwidth_words_per_cycle.shared",
     "must be a valid number"),
    ("    capacity_bytes: 64 KiB", "    capacity_byte: 64 KiB", "14 arch.levels[1].capacity_byte",
     "is not a known field; Did you mean capacity_bytes?"),
    ("capacity_bytes: 64 KiB", "capacity_bytes: 64 KB", "14 arch.levels[1].capacity_bytes",
     "must have one of the units B, kB, MB, GB, KiB, MiB, GiB; Got '64 KB'; "
     "Write 64 KiB (1024 bytes) or 64 kB (1000 bytes)."),
    ("capacity_bytes: 64 KiB", "capacity_bytes: -5", "14 arch.levels[1].capacity_bytes",
     "must be greater than 0; Got -5.0."),
    ("capacity_bytes: 64 KiB", "capacity_bytes: big", "14 arch.levels[1].capacity_bytes",
     "must be a positive number of bytes or a text such as '108 KiB'; Got 'big'."),
    ("capacity_bytes: 64 KiB", "capacity_bytes: .inf", "14 arch.levels[1].capacity_bytes",
     "must be a finite number"),
    (RF, "    capacity_bytes: 16\n    word_bits: 8.5\n", "24 arch.levels[3].word_bits",
     "must be a valid integer; Got 8.5."),
    ("{read: 8, write: 8}", "{reed: 8, write: 8}", "15 arch.levels[1].bandwidth_words_per_cycle.reed",
     "is not a known field; Did you mean read?"),
    ("{read: 8, write: 8}", "{read: 0, write: 8}", "15 arch.levels[1].bandwidth_words_per_cycle.read",
     "must be greater than or equal to 0.000001; Got 0."),
    ("{update: 5}", "{update: -1}", "16 arch.levels[1].energy_pj_per_word.update",
     "must be greater than or equal to 0; Got -1."),
    ("{update: 5}", "{update: yes}", "16 arch.levels[1].energy_pj_per_word.update",
     "must be a valid number; Got 'yes'."),
    ("    kind: sram\n", "", "15 arch.levels[1].energy_pj_per_word",
     "must give read, fill, drain; Add the figures, or kind: dram, sram or registers with a technology"),
    ("    kind: sram\n", "    kind: flash\n", "13 arch.levels[1].kind",
     "must be 'dram', 'sram' or 'registers'; Got 'flash'."),
    ("keeps: [inputs, outputs]", "keeps: [input, outputs]", "12 arch.levels[1].keeps[0]",
     "must be a role (inputs, weights, outputs) or a tensor name; Got 'input'; Did you mean inputs?"),
    ("    shape: [4, 2]\n", "    shape: [4, 2, 2]\n", "18 arch.levels[2].shape", "must have at most 2 items"),
    ("    shape: [4, 2]\n", "    shape: [4, 0]\n", "18 arch.levels[2].shape[1]",
     "must be greater than or equal to 1; Got 0."),
    ("    blocks: [2, 2]\n", "    multicast: z\n", "19 arch.levels[2].multicast",
     "must be true, false, x or y, or one of them for each role or tensor; Got 'z'; For example x, or {inputs: y,"),
    ("    blocks: [2, 2]\n", "    reduce: {}\n", "19 arch.levels[2].reduce", "must be true, false, x or y"),
    ("    blocks: [2, 2]\n", "    multicast: {input: x}\n", "19 arch.levels[2].multicast.input",
     "must be a role (inputs, weights, outputs) or a tensor name; Got 'input'; Did you mean inputs?"),
    ("    blocks: [2, 2]\n", "    blocks: [2, 2]\n    reduce: x\n", "17 arch.levels[2]",
     "reduce must be true or false in an array whose sides are not fixed (flexible, or built of blocks); Say true or"),
    ("    buffering: single", "    buffering: single\n    shared: [PEs.x]", "25 arch.levels[3].shared",
     "must be sides of arrays of fixed shape further out (none); Got 'PEs.x'"),
    ("    shape: [4, 2]\n", "", "17 arch.levels[2]", "needs exactly one of shape and instances; Write shape: [x, y]"),
    ("    blocks: [2, 2]\n", "    blocks: [3, 2]\n", "17 arch.levels[2]",
     "must be built of whole blocks of 3 by 2, not 4 by 2; Change shape or blocks"),
    ("  - fanout: PEs\n", "  - fan_out: PEs\n", "17 arch.levels[2]", "must be a memory or a fanout; Got ['blocks', "
     "'fan_out', 'shape']; Begin it with memory: NAME or fanout: NAME."),
    ("buffering: single", "buffering: triple", "24 arch.levels[3].buffering",
     "must be 'single', 'double' or 'buffet'; Got 'triple'."),
    ("buffering: single", "buffering: single\n    forwards: words", "20 arch.levels[3]",
     "forwards: words needs transfers that overlap compute; Set buffering: double or buffet, or leave forwards out."),
    ("  - memory: RF", "  - memory: GLB", "20 arch.levels[3].memory", "must have a name of its own; Got 'GLB'."),
    ("    kind: dram\n", "    kind: dram\n    partitions_bytes: {W: 4}\n", "6 arch.levels[0]",
     "partitions_bytes must name tensors that the memory keeps (inputs, weights, outputs); Add W to keeps"),
    ("dram_type: LPDDR4", "dram_type: LPDRR4", "9 arch.levels[0].dram_type",
     "must be a known DRAM type; Got 'LPDRR4'; Did you mean LPDDR2, LPDDR4?"),
    ("    dram_type: LPDDR4\n", "", "6 arch.levels[0]",
     "kind: dram needs a dram_type; Add dram_type, for example LPDDR4."),
    (RF, "    capacity_bytes: 1 MiB\n", "23 arch.levels[3].capacity_bytes",
     "technology.45nm.registers.read knows 1 to 4096 bytes only; Got 1048576.0; Give the figure in the file"),
    (RF, "", "20 arch.levels[3]", "kind: registers needs a capacity; Add capacity_bytes or partitions_bytes."),
    ("technology: 45nm", "technology: 54nm", "2 arch.technology",
     "must be a known technology; Got '54nm'; Did you mean"),
    ("technology: 45nm", "technology: 45", "2 arch.technology",
     "must be the name of a technology or a mapping of its rows; Got 45; Known: given, 16nm"),
    ("technology: 45nm", "technology: {name: mine, base: 45mn}", "2 arch.technology",
     "must be a known technology; Got '45mn'"),
    ("technology: 45nm", "technology: {name: mine, base: 45nm, dram: [{type: X, energy_pj_per_bit: 3}]}",
     "2 arch.technology.dram[0].source", "is required; Add source."),
    ("technology: 45nm", "technology: {name: mine, mac: []}", "2 arch.technology",
     "needs a base for mac; Add base, for example 45nm."),
    ("technology: 45nm", "technology: given", "25 arch.compute", "must give energy_pj_per_mac; Add it"),
    ("compute: {type: int, width_bits: 8}", "compute: {type: int, width_bits: 12.0}", "25 arch.compute.width_bits",
     "must be a valid integer; Got 12.0."),
    ("compute: {type: int, width_bits: 8}", "compute: {type: int, width_bits: 4}", "25 arch.compute.width_bits",
     "technology.45nm.mac.int.energy_pj knows 8 to 32 bits only; Got 4"),
    ("compute: {type: int, width_bits: 8}", "compute: {name: MAC}", "25 arch.compute",
     "must give energy_pj_per_mac; Add it"),
    ("frequency_mhz: 1e3", "frequency_ghz: 1", "3 arch.frequency_ghz",
     "is not a known field; Did you mean frequency_mhz?"),
    ("frequency_mhz: 1e3\n", "", "1 arch.frequency_mhz", "is required; Add frequency_mhz."),
    ("frequency_mhz: 1e3", "frequency_mhz: .nan", "3 arch.frequency_mhz", "must be"),
    ("outputs: 16}", "output: 16}", "4 arch.word_bits.output", "is not a known field; Did you mean outputs?"),
    ("name: tiny", "name: tiny\nname: again", "2", "must be YAML; The parser says: found duplicate key"),
    ("name: tiny", "name: [tiny", "2", "must be YAML"),
    ("name: tiny", "name: 7", "1 arch.name", "must be a valid string; Got 7."),
]


@pytest.mark.parametrize(("old", "new", "field", "says"), MALFORMED)
def test_malformed_files_say_where_and_how(tmp_path, old, new, field, says):
    assert old in GOOD
    path = tmp_path / "tiny.yaml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_accelerator(path)
    expected = f"tiny.yaml:{field}: "
    assert str(caught.value).startswith(expected + says), str(caught.value)


@pytest.mark.parametrize(("text", "says"), [
    ("\n", "<text>:1 arch: must be a mapping of fields; Got 'nothing'; Start with name:"),
    ("- a\n- b\n", "<text>:1 arch: must be a mapping of fields; Got 'a list'"),
    ("name: x\n\x07\n", "<text>: must be YAML"),
    ("name: x\nlevels: 3\n", "<text>:2 arch.levels: must be a valid list; Got 3."),
    ("name: x\nlevels:\n  - 5\n", "<text>:3 arch.levels[0]: must be a valid dictionary; Got 5."),
])
def test_texts_that_are_no_accelerators(text, says):
    with pytest.raises(InputError) as caught:
        load_accelerator(text)
    assert str(caught.value).startswith(says), str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="must be an existing file"):
        load_accelerator(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="must be a readable text file"):
        load_accelerator(tmp_path)
    binary = tmp_path / "image.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x01\x9c")
    with pytest.raises(InputError, match="must be a readable text file"):
        load_accelerator(binary)


def test_a_memory_may_keep_nothing_but_some_must_keep_each_tensor():
    machine = load_accelerator(GOOD.replace("keeps: [weights]", "keeps: []"))
    assert machine.level("RF").keeps == ()
    assert load_accelerator(dump_accelerator(machine)) == machine
    with pytest.raises(InputError, match="all tensors kept by some memory"):
        load_accelerator(GOOD.replace(", outputs]", "]"))

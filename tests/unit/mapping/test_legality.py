"""Every way to be illegal is named, with figures and a cure that works."""

from dataclasses import replace

import pytest

from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import (
    LevelLoops,
    Loop,
    Mapping,
    MappingBatch,
    MapSpace,
    extents_at,
    is_legal,
    repair,
    violations,
)
from tilewright.mapping.cures import Draft, Inspection
from tilewright.mapping.fit import lanes, partition_of
from tilewright.workload import convolution, matmul

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)
CONV = convolution("conv", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)
DRAM = (Loop("P", 4), Loop("K", 16), Loop("C", 16))
GLB = (Loop("P", 1), Loop("Q", 7), Loop("C", 2))
PES = (Loop("Q", 1, "X"), Loop("K", 4, "Y"), Loop("R", 1, "Y"))
RF = tuple(Loop(d, 1) for d in ("C", "K", "S"))


def mapping(dram=DRAM, glb=GLB, pes=PES, rf=RF, **keeps):
    return Mapping((LevelLoops("DRAM", dram, keeps.get("DRAM")), LevelLoops("GLB", glb, keeps.get("GLB")),
                    LevelLoops("PEs", pes, keeps.get("PEs")), LevelLoops("RF", rf, keeps.get("RF"))))


def check(found, machine, operator=CONV):
    """Every cure must cure its violation."""
    for violation in found:
        assert violation.cure is not None
        after = {other.key for other in violations(violation.cure, operator, machine)}
        assert violation.key not in after
    return [(violation.kind, str(violation)) for violation in found]


@pytest.mark.parametrize("bits", [1, 3, 4, 12, 33])
def test_a_tile_takes_the_bits_of_its_words_and_no_more(bits):
    """10 x 3 weights of any width fit a memory of just their bits, and one of an eighth of a byte less is too small."""
    layer = matmul("m", m=2, n=10, k=3)
    layer = replace(layer, tensors=tuple(replace(t, word_bits=bits) if t.name == "W" else t for t in layer.tensors))
    mapped = Mapping((LevelLoops("DRAM", (Loop("M", 1),)),
                      LevelLoops("Buffer", (Loop("N", 1), Loop("K", 1)))))
    for short in (0, 1):
        buffer = Memory("Buffer", ("weights",), ENERGY, capacity_bytes=(30 * bits - short) / 8, buffering="single")
        machine = Accelerator("a", (Memory("DRAM", ("inputs", "weights", "outputs"), ENERGY), buffer))
        assert is_legal(mapped, layer, machine) == (not short)
        batch = MappingBatch.from_mappings([mapped], layer, machine)
        assert bool(DenseModel(layer, machine, batch.layout).score(batch).legal[0]) == (not short)


def test_a_legal_mapping_has_none(machines):
    assert violations(mapping(), CONV, machines["spads"]) == ()
    assert is_legal(mapping(), CONV, machines["spads"])


CASES = [
    (mapping(dram=(*DRAM, Loop("Z", 2))), "dimension", "DRAM.Z: conv has no such dimension; remove it"),
    (mapping(dram=(Loop("Z", 2), Loop("Z", 1), *DRAM)), "dimension",
     "DRAM.Z: conv has no such dimension; remove all loops over Z"),
    (mapping(dram=(Loop("p", 4), *DRAM[1:])), "dimension", "DRAM.p: conv has no such dimension; call it P"),
    (mapping(glb=(Loop("P", 5), *GLB)), "step",
     "GLB.P: step 5 exceeds the extent 4 outside; lower the step of P at GLB from 5 to 4"),
    (mapping(rf=(Loop("C", 0), *RF[1:])), "step",
     "RF.C: step 0 is less than 1; raise the step of C at RF from 0 to 1"),
    (mapping(rf=(Loop("C", 1), Loop("K", 2), Loop("S", 1))), "coverage",
     "K: no loop brings it below 2; lower the step of K at RF from 2 to 1"),
    (mapping(rf=RF[:2]), "coverage", "S: no loop brings it below 3; add a loop over S with step 1 at RF"),
    (mapping(dram=(Loop("P", 4, "X"), *DRAM[1:])), "axis",
     "DRAM.P: a loop at a memory runs in time, it has no axis; run it in time"),
    (mapping(pes=(Loop("Q", 1), *PES[1:])), "axis",
     "PEs.Q: a loop at a fan-out needs an axis, X or Y; spread it along X"),
    (mapping(glb=(Loop("P", 1), Loop("Q", 16), Loop("C", 2))), "array",
     "PEs.X: loops need 16 of 14; lower the step of Q at GLB from 16 to 14"),
    (mapping(pes=(PES[0], Loop("K", 1, "Y"), Loop("R", 1, "Y"))), "array",
     "PEs.Y: loops need 48 of 12; raise the step of K at PEs from 1 to 4"),
    (mapping(GLB=("I", "W", "O")), "keeps",
     "GLB: cannot keep W (it keeps inputs, outputs); let GLB not keep W"),
    (mapping(GLB=("I", "X", "O")), "keeps", "GLB: conv has no tensor X; let GLB not keep X"),
    (mapping(PEs=("O",)), "keeps", "PEs: a fan-out keeps nothing; remove its keeps O"),
    (mapping(DRAM=("I", "W"), GLB=("I",)), "outermost",
     "DRAM: a memory outside all arrays must keep O; let it keep O"),
    (mapping(dram=DRAM[:1]), "array", "PEs.Y: loops need 48 of 12; raise the step of K at PEs from 4 to 16"),
    (mapping(dram=(Loop("P", 28), Loop("K", 16), Loop("C", 32))), "capacity",
     "GLB holds 161536 B of 110592 B for I+O, twice; add a loop over Q with step 37 at DRAM"),
    (mapping(pes=(Loop("Q", 1, "X"), Loop("K", 8, "Y"), Loop("R", 1, "Y")), glb=(*GLB[:2], Loop("C", 10))), "capacity",
     "RF.weights holds 240 B of 224 B for W; lower the step of C at GLB from 10 to 9"),
]


@pytest.mark.parametrize(("broken", "kind", "text"), CASES, ids=[f"{kind}-{i}" for i, (_, kind, _) in enumerate(CASES)])
def test_one_fault_is_named_and_cured(machines, broken, kind, text):
    found = violations(broken, CONV, machines["spads"])
    told = check(found, machines["spads"])
    assert any(k == kind and t.startswith(text) for k, t in told), told
    assert not is_legal(broken, CONV, machines["spads"])


def test_the_figures_of_a_capacity_are_those_of_rule_1():
    """(28+2) x (56+2) x 32 input words and 28 x 56 x 16 output words, twice."""
    assert 2 * (30 * 58 * 32 + 28 * 56 * 16) == 161536


@pytest.mark.parametrize(("buffering", "needed"), [("double", 161536), ("single", 80768), ("buffet", 80768)])
def test_only_double_buffers_need_room_twice(machines, buffering, needed):
    spads = machines["spads"]
    glb = replace(spads.levels[1], buffering=buffering, capacity_bytes=float(needed))
    machine = replace(spads, levels=(spads.levels[0], glb, *spads.levels[2:]))
    large = mapping(dram=(Loop("P", 28), Loop("K", 16), Loop("C", 32)))
    assert violations(large, CONV, machine) == ()
    tight = replace(machine, levels=(machine.levels[0], replace(glb, capacity_bytes=needed - 1.0), *machine.levels[2:]))
    assert [v.kind for v in violations(large, CONV, tight)] == ["capacity"]


def test_words_narrower_than_a_byte_take_their_bits(machines):
    spads = machines["spads"]
    machine = replace(spads, word_bits=(("inputs", 4), ("weights", 4), ("outputs", 4)))
    doubled = mapping(pes=(Loop("Q", 1, "X"), Loop("K", 8, "Y"), Loop("R", 1, "Y")), glb=(*GLB[:2], Loop("C", 4)))
    assert violations(doubled, CONV, machine) == ()
    assert [v.subject for v in violations(doubled, CONV, replace(
        machine, word_bits=(("inputs", 4), ("weights", 32), ("outputs", 4))))] == ["weights"]


def test_lanes_that_want_different_words_of_a_memory_that_serves_them_are_a_violation_everywhere():
    """Lanes over M want the same weights, those over N or K do not; a space has the former alone."""
    layer = matmul("m", m=2, n=2, k=2)
    roles = ("inputs", "weights", "outputs")
    private = Accelerator("shared", (Memory("DRAM", roles, ENERGY), Fanout("PEs", (2, 2)), Memory(
        "Reg", ("weights",), ENERGY, area_um2=3.0)))
    machine = replace(private, levels=(*private.levels[:2], replace(private.levels[2], shared=("PEs.x",))))
    assert [one.instances("Reg") for one in (private, machine)] == [4, 2]
    assert [one.area_um2 for one in (private, machine)] == [12.0, 6.0]
    drawn = [Mapping((LevelLoops("DRAM"), LevelLoops("PEs", (Loop(across, 1, "X"), Loop(down, 1, "Y"))),
                      LevelLoops("Reg", (Loop("K", 1),)))) for across, down in ("MN", "NM")]
    assert violations(drawn[0], layer, machine) == ()
    assert check(violations(drawn[1], layer, machine), machine, layer) == [
        ("shared", "PEs.X: lanes over N want different words of a memory that serves them all; raise the step of N at "
                   "PEs from 1 to 2")]
    batch = MappingBatch.from_mappings(drawn, layer, machine)
    assert DenseModel(layer, machine, batch.layout).score(batch).legal.tolist() == [True, False]
    space, every = MapSpace(layer, machine, "perfect"), MapSpace(layer, private, "perfect")
    found, mapped = ([found.mapping(i, layer.sizes) for found in one.enumerate(4096, distinct=True)
                      for i in range(len(found))] for one in (space, every))
    assert all(is_legal(mapping, layer, machine) for mapping in found)
    assert 0 < len(found) == sum(is_legal(mapping, layer, machine) for mapping in mapped) < len(mapped)


GEMM = matmul("gemm", m=50, n=60, k=70)


def two_level(*spatial: Loop) -> Mapping:
    """Tiles of 25 x 20 rows and columns at the array, then what is left inside."""
    return Mapping((LevelLoops("DRAM", (Loop("M", 25), Loop("N", 20), Loop("K", 10))),
                    LevelLoops("L2", (Loop("K", 1),)), LevelLoops("PEs", spatial),
                    LevelLoops("L1", (Loop("M", 1), Loop("N", 1)))))


@pytest.mark.parametrize(("machine", "spatial", "text"), [
    ("flexible", (Loop("M", 2, "X"), Loop("N", 2, "Y")), None),
    ("flexible", (Loop("M", 2, "Y"), Loop("N", 2, "Y")), None),
    ("flexible", (Loop("M", 1, "X"), Loop("N", 2, "Y")),
     "PEs: loops need 250 of 168 instances; lower the step of M at DRAM from 25 to 16"),
    ("blocks", (Loop("M", 2, "X"), Loop("N", 2, "Y")), None),
    ("blocks", (Loop("M", 1, "X"), Loop("N", 5, "Y")), None),
    ("blocks", (Loop("M", 1, "X"), Loop("N", 2, "Y")),
     "PEs: loops need 21 of 16 blocks; lower the step of M at DRAM from 25 to 20"),
])
def test_arrays_that_change_shape(machines, machine, spatial, text):
    broken = two_level(*spatial)
    found = violations(broken, GEMM, machines[machine])
    check(found, machines[machine], GEMM)
    assert [str(v) for v in found if v.kind == "array"] == ([] if text is None else [text])


def test_blocks_are_taken_whole():
    machine = Accelerator("b", (Memory("DRAM", ("inputs", "weights", "outputs"), ENERGY),
                                Fanout("PEs", (8, 8), blocks=(4, 4))))
    for rows, legal in ((16, True), (17, False)):
        operator = matmul("row", m=rows, n=1, k=1)
        one = Mapping((LevelLoops("DRAM"), LevelLoops("PEs", (Loop("M", 1, "X"),))))
        assert is_legal(one, operator, machine) is legal
    nine = matmul("nine", m=9, n=9, k=1)
    grid = Mapping((LevelLoops("DRAM"), LevelLoops("PEs", (Loop("M", 1, "X"), Loop("N", 1, "Y")))))
    assert [str(v).split(";")[0] for v in violations(grid, nine, machine)] == ["PEs: loops need 9 of 4 blocks"]


@pytest.mark.parametrize(("levels", "texts"), [
    (("DRAM", "PEs", "RF"), ["GLB: is missing; add it without loops"]),
    (("DRAM", "PEs", "GLB", "RF"),
     ["levels stand in the order DRAM, PEs, GLB, RF; put them in the order DRAM, GLB, PEs, RF"]),
    (("DRAM", "GLB", "PEs", "RF", "L0"), ["L0: spads has no such level; remove it"]),
    (("DRAM", "GLBB", "PEs", "RF"),
     ["GLBB: spads has no such level; call it GLB", "GLB: is missing; add it without loops"]),
    (("DRAM", "GLB", "GLB", "PEs", "RF"), ["GLB: is given more than once; put all its loops into its first entry"]),
])
def test_levels_must_be_the_machines_own(machines, levels, texts):
    whole = mapping()
    broken = Mapping(tuple(replace(whole.levels[min(i, 3)], level=name) for i, name in enumerate(levels)))
    found = violations(broken, CONV, machines["spads"])
    assert [str(v) for v in found] == texts
    for violation in found:
        assert violation.key not in {v.key for v in violations(violation.cure, CONV, machines["spads"])}


def test_where_no_mapping_can_be_right_the_machine_is_named(machines):
    small = Accelerator("small", (replace(machines["plain"].levels[0], capacity_bytes=1000.0, buffering="single"),))
    whole = Mapping((LevelLoops("DRAM", tuple(Loop(d, 1) for d in ("M", "N", "K"))),))
    found, = violations(whole, GEMM, small)
    assert found.cure is None and found.kind == "capacity"
    assert str(found) == "DRAM holds 10700 B of 1000 B for I+W+O; give DRAM of small at least 10700 B"
    assert repair(whole, GEMM, small) is None
    blind = Accelerator("blind", (replace(machines["plain"].levels[0], keeps=("inputs", "outputs")),))
    found, = violations(whole, GEMM, blind)
    assert found.cure is None
    assert str(found) == "DRAM: some memory must keep W; let DRAM of blind keep weights"


def test_a_tensor_that_never_fits_is_let_pass(machines):
    """An output word of 24 bits does not fit twice into 4 bytes, whatever the tile."""
    dram = machines["plain"].levels[0]
    machine = Accelerator("tiny", (dram, Memory("L1", ("outputs",), dram.energy, capacity_bytes=4.0)),
                          word_bits=(("inputs", 8), ("weights", 8), ("outputs", 24)))
    ones = tuple(Loop(d, 1) for d in ("M", "N", "K"))
    found, = violations(Mapping((LevelLoops("DRAM", ones), LevelLoops("L1"))), GEMM, machine)
    assert str(found) == "L1 holds 6 B of 4 B for O, twice; let L1 not keep O"
    assert is_legal(found.cure, GEMM, machine)


def test_repair_leads_to_a_legal_mapping(machines):
    broken = mapping(dram=(Loop("K", 64), Loop("Z", 1)), glb=(Loop("Q", 99),), pes=(Loop("K", 4, "X"), Loop("C", 5)),
                     rf=(Loop("P", 1),), GLB=("W", "O"))
    mended = repair(broken, CONV, machines["spads"])
    assert mended is not None and is_legal(mended, CONV, machines["spads"])


def test_spatial_loops_over_sides_that_are_not_there(machines):
    chips = machines["chiplets"]
    entries = {level.name: LevelLoops(level.name) for level in chips.levels}
    entries["lanes"] = LevelLoops("lanes", (Loop("M", 25, "Y"),))
    entries["reg"] = LevelLoops("reg", tuple(Loop(d, 1) for d in ("M", "N", "K")))
    kinds = {(v.kind, v.subject) for v in violations(Mapping(tuple(entries.values())), GEMM, chips)}
    assert ("array", "Y") in kinds


def test_fanout_names_are_in_the_violation(machines):
    broken = mapping(pes=(PES[0], Loop("K", 1, "Y"), Loop("R", 1, "Y")))
    found = next(v for v in violations(broken, CONV, machines["spads"]) if v.kind == "array")
    assert (found.level, found.subject) == ("PEs", "Y")
    assert isinstance(machines["spads"].level(found.level), Fanout)


def test_where_no_one_dimension_can_shrink_enough_several_do_and_no_more_than_they_must():
    """Tiles of 8 x 8 x 8 take 192 B; one dimension at 1 leaves 80, all three halved 48 of the 60 B there are."""
    dram = Memory("DRAM", ("inputs", "weights", "outputs"), ENERGY)
    buffer = Memory("Buffer", dram.keeps, ENERGY, capacity_bytes=60.0, buffering="single")
    machine = Accelerator("two", (dram, buffer))
    layer = matmul("m", m=8, n=8, k=8)
    inside = (Loop("M", 5), *(Loop(d, 1) for d in ("M", "N", "K")))
    found, = violations(Mapping((LevelLoops("DRAM"), LevelLoops("Buffer", inside))), layer, machine)
    assert found.mend == ("add a loop over M with step 4 at DRAM and add a loop over N with step 4 at DRAM and "
                          "add a loop over K with step 4 at DRAM (and cut the larger steps inside)")
    assert found.cure.at("Buffer").loops[0] == Loop("M", 4)
    assert is_legal(found.cure, layer, machine)


def test_sides_of_an_array_are_cured_one_by_one_and_loops_over_nothing_too(machines):
    """Each side keeps its own cure where both are too small; of two loops behind each other the second can go alone."""
    broken = mapping(glb=(Loop("P", 1), Loop("Q", 16), Loop("C", 2)), pes=(PES[0], Loop("K", 1, "Y"), PES[2]))
    mends = {v.subject: v.mend for v in violations(broken, CONV, machines["spads"]) if v.kind == "array"}
    assert mends == {"X": "lower the step of Q at GLB from 16 to 14", "Y": "raise the step of K at PEs from 1 to 4"}
    broken = mapping(dram=(Loop("Z", 2), Loop("Z", 1), *DRAM))
    assert [v.mend for v in violations(broken, CONV, machines["spads"])] == ["remove all loops over Z", "remove it"]


def test_only_the_tensors_that_must_go_are_let_go(machines):
    """A word of O takes 6 of 4 B when held twice, one of W 2 B: O goes and W stays."""
    dram = machines["plain"].levels[0]
    machine = Accelerator("tiny", (dram, Memory("L1", ("weights", "outputs"), dram.energy, capacity_bytes=4.0)),
                          word_bits=(("inputs", 8), ("weights", 8), ("outputs", 24)))
    ones = tuple(Loop(d, 1) for d in ("M", "N", "K"))
    found, = violations(Mapping((LevelLoops("DRAM", ones), LevelLoops("L1"))), GEMM, machine)
    assert found.mend == "let L1 not keep O" and found.cure.at("L1").keeps == ("W",)


def test_narrowing_tiles_behind_an_array_keeps_its_lanes(machines):
    """A tile of 4 rows at the registers becomes one of 2: 4 lanes then cover 8, the buffer's loop takes 8."""
    draft = Draft(Inspection(mapping(), CONV, machines["spads"]))
    assert draft.narrow(3, "K", 2)
    cure = draft.cure()
    assert cure.text == "lower the step of K at PEs from 4 to 2 and add a loop over K with step 8 at GLB"
    assert is_legal(cure.mapping, CONV, machines["spads"])
    assert lanes(cure.mapping.at("PEs"), extents_at(cure.mapping, CONV.sizes)[2]) == (7, 4 * 3)
    assert not Draft(Inspection(mapping(), CONV, machines["spads"])).narrow(0, "K", 2)


def test_a_tensor_stays_in_the_partition_of_its_name_before_that_of_its_role():
    memory = Memory("Spad", ("inputs", "weights", "outputs"), AccessEnergy(1.0, 1.0, 1.0, 1.0),
                    partitions_bytes=(("weights", 20), ("W", 10), ("inputs", 5)))
    found = {tensor.name: partition_of(memory, tensor) for tensor in matmul("m", m=2, n=2, k=2).tensors}
    assert found["W"] == "W" and found["I"] == "inputs" and found["O"] is None

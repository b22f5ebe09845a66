"""Explanations: their products are the counts, and their words say what the rules say."""

import re

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost.dense.derivations import explain
from tilewright.cost.dense.single import single_cost
from tilewright.cost.records import KINDS
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, preset
from tilewright.mapping import LevelLoops, Loop, Mapping, dataflow
from tilewright.workload import ROLES, Operator, convolution, depthwise, matmul, transposed_convolution

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)
CONV = convolution("conv", in_channels=4, out_channels=6, in_size=(9, 5), kernel=3, padding=1)


def machine(**network: bool) -> Accelerator:
    return Accelerator("machine", (Memory("DRAM", ROLES, ENERGY), Memory("GLB", ("inputs", "outputs"), ENERGY),
                                   Fanout("PEs", (20, 1), **network), Memory("Pad.s", ROLES, ENERGY)))


def mapped(dram: str, glb: str, lanes: str, pads: str) -> Mapping:
    """Loops such as ``K2 P3``: dimension and step."""
    def loops(text: str, axis: str | None = None) -> tuple[Loop, ...]:
        return tuple(Loop(part[0], int(part[1:]), axis) for part in text.split())  # type: ignore[arg-type]

    return Mapping((LevelLoops("DRAM", loops(dram)), LevelLoops("GLB", loops(glb)),
                    LevelLoops("PEs", loops(lanes, "X")), LevelLoops("Pad.s", loops(pads))))


MAPPING = mapped("K4 P4", "C2 Q2 K2", "P2 R1 K1", "C1 P1 Q1 S1")


def check_all(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> None:
    """Every derivation of every count multiplies and adds up to the count, and the oracle agrees."""
    cost = single_cost(operator, accelerator, mapping)
    for name in (f"{memory}.{tensor}.{kind}" for memory, tensor in cost.counts for kind in KINDS):
        found = explain(operator, accelerator, mapping, name)
        memory, tensor, kind = name.rsplit(".", 2)
        assert found.count == name
        assert found.value == getattr(cost.counts[memory, tensor], kind), name
        assert found.lines[-1].value == found.value
        assert found.lines[-1].name == name
        assert found.agrees is True, found.text()
        products = {derivation.title: derivation.value for derivation in found.derivations}
        assert products == {line.name: line.value for line in found.lines if line.name in products}
        for derivation in found.derivations:
            for factor in derivation.factors:
                check_factor(factor)
        assert f"{name} = {found.value:,} words" in found.text()


def check_factor(factor):
    """The value follows from what the factor shows, worked out anew."""
    last = [lines[-1].pieces for _, lines in factor.tables]
    formula = re.sub(r" of \d+", "", factor.formula.replace(",", "")).replace("x", "*")
    assert eval(formula) == factor.value
    if factor.windows:
        assert sum(w.times * (w.words - w.carried) for w in factor.windows) == factor.value
        for window in factor.windows:
            assert window.extent in dict(last[1])
            assert 0 <= window.carried <= window.words
    elif " of " in factor.formula:
        assert sum(count for _, count in last[0]) == factor.value
    else:
        assert sum(count * extent for extent, count in last[0]) == factor.value


@pytest.mark.parametrize("network", [{}, {"multicast": False}, {"reduce": False}])
def test_derivations_add_up(network):
    check_all(CONV, machine(**network), MAPPING)


OPERATORS = (
    CONV,
    convolution("dilated", in_channels=2, out_channels=3, in_size=(17, 6), kernel=(3, 2), stride=(2, 1),
                dilation=(3, 2)),
    depthwise("depthwise", 6, in_size=9, kernel=3, stride=2, padding=1),
    matmul("gemm", m=9, n=7, k=10),
    transposed_convolution("transposed", in_channels=2, out_channels=3, in_size=4, kernel=3, stride=2),
)


@pytest.mark.sample(2)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_derivations_add_up_on_random_mappings(operator):
    rng = np.random.default_rng(len(operator.name))
    for _ in range(4):
        network = {"multicast": bool(rng.integers(2)), "reduce": bool(rng.integers(2))}
        check_all(operator, machine(**network), random_mapping(rng, operator))


def random_mapping(rng: np.random.Generator, operator: Operator) -> Mapping:
    levels = []
    extents = dict(operator.sizes)
    for level in ("DRAM", "GLB", "PEs", "Pad.s"):
        loops = []
        for name in rng.permutation(list(extents)):
            step = 1 if level == "Pad.s" else int(np.ceil(extents[name] ** rng.random()))
            if step < extents[name] and (level == "Pad.s" or rng.random() < 0.6):
                loops.append(Loop(str(name), step, "X" if level == "PEs" else None))
                extents[name] = step
        levels.append(LevelLoops(level, tuple(loops)))
    return Mapping(tuple(levels))


def actions(explanation, index=0):
    return {(loop.level, loop.dimension): loop.action for loop in explanation.derivations[index].loops}


def test_what_each_loop_does_to_an_operand():
    """GLB to Pad.s: the innermost loop over Q slides along Q + S; P and R lanes overlap; K lanes want the same."""
    found = explain(CONV, machine(), MAPPING, "GLB.I.reads")
    assert actions(found) == {
        ("DRAM", "K"): "advances", ("DRAM", "P"): "advances", ("GLB", "C"): "advances", ("GLB", "Q"): "slides",
        ("GLB", "K"): "stands still", ("PEs", "P"): "lanes merge", ("PEs", "R"): "lanes merge",
        ("PEs", "K"): "lanes merge",
    }
    apart = explain(CONV, machine(multicast=False), MAPPING, "GLB.I.reads")
    assert {action for (level, _), action in actions(apart).items() if level == "PEs"} == {"lanes apart"}
    assert "PEs does not multicast" in apart.text()
    # K: 6 in DRAM pieces of 4 and 2; the GLB loop over K stands still; lanes of one word merge.
    factor = {factor.name: factor for factor in found.derivations[0].factors}["K"]
    assert (factor.value, factor.formula) == (2, "2 of 1")
    assert [line.pieces for line in factor.tables[0][1]] == [((6, 1),), ((4, 1), (2, 1)), ((2, 2),), ((1, 2),)]


def test_what_each_loop_does_to_the_output():
    found = explain(CONV, machine(), MAPPING, "GLB.O.updates")
    assert actions(found) == {
        ("DRAM", "K"): "advances", ("DRAM", "P"): "advances", ("GLB", "C"): "advances", ("GLB", "Q"): "advances",
        ("GLB", "K"): "advances", ("PEs", "P"): "lanes apart", ("PEs", "R"): "lanes merge", ("PEs", "K"): "lanes apart",
    }
    assert "their sums are added on the way" in found.text()
    assert "PEs does not reduce" in explain(CONV, machine(reduce=False), MAPPING, "GLB.O.updates").text()


def test_lanes_that_do_not_abut_are_said_so():
    mapping = mapped("K1 C1 Q1 R1", "S1", "P3", "P1")
    found = explain(CONV, machine(), mapping, "GLB.I.reads")
    assert actions(found)["PEs", "P"] == "lanes merge"
    to_compute = explain(CONV, Accelerator("m", (*machine().levels[:3],)), Mapping(mapped(
        "K1 C1 Q1 R1", "S1", "P3 P1", "").levels[:3]), "GLB.I.reads")
    assert [loop.action for loop in to_compute.derivations[0].loops if loop.spatial] == ["lanes merge", "lanes merge"]
    between = Accelerator("m", (*machine().levels[:3], Memory("Only.W", ("weights",), ENERGY)))
    levels = (*mapped("K1 C1 Q1 R1", "S1", "P3", "").levels[:3], LevelLoops("Only.W", (Loop("P", 1),)))
    found = explain(CONV, between, Mapping(levels), "GLB.I.reads")
    assert actions(found)["PEs", "P"] == "lanes apart"
    assert "their tiles do not abut (rule 4)" in found.text()


def test_the_chain_of_subtractions_of_an_output():
    found = explain(CONV, machine(), MAPPING, "Pad.s.O.fills")
    assert [line.name for line in found.lines] == [
        "GLB.O.updates", "DRAM.O.updates", "DRAM.O.starts from zero", "DRAM.O.reads", "GLB.O.fills", "GLB.O.drains",
        "GLB.O.starts from zero", "GLB.O.reads", "Pad.s.O.fills"]
    value = {line.name: line.value for line in found.lines}
    assert value["DRAM.O.starts from zero"] == 6 * 9 * 5
    assert value["DRAM.O.reads"] == value["DRAM.O.updates"] - value["DRAM.O.starts from zero"]
    assert value["GLB.O.starts from zero"] == value["GLB.O.drains"] - value["GLB.O.fills"]
    assert value["GLB.O.reads"] == value["GLB.O.updates"] - value["GLB.O.starts from zero"]
    combined = explain(CONV, machine(reduce=False), MAPPING, "Pad.s.O.fills")
    assert combined.value == 0
    assert "GLB combines them, so all start from zero (rule 5)" in combined.text()


@pytest.mark.parametrize(("name", "words"), [
    ("DRAM.I.fills", "never filled"), ("DRAM.O.fills", "nothing lies outside"),
    ("DRAM.O.drains", "keeps its words"), ("GLB.I.updates", "I is an operand"), ("GLB.I.drains", "I is an operand")])
def test_what_is_always_zero_says_why(name, words):
    found = explain(CONV, machine(), MAPPING, name)
    assert (found.value, found.agrees, found.derivations) == (0, True, ())
    assert words in found.text()


@pytest.mark.parametrize("name", ["GLB.I.reads", "glb.i.Reads", "GLB.Input.reads", "glb.inputs.read",
                                  "Glb.INPUTS.reads"])
def test_names_are_read_kindly(name):
    assert explain(CONV, machine(), MAPPING, name, check=False).count == "GLB.I.reads"


def test_a_memory_may_have_a_dot_in_its_name():
    assert explain(CONV, machine(), MAPPING, "pad.s.weights.fills").count == "Pad.s.W.fills"


@pytest.mark.parametrize("name", ["", "GLB", "GLB.reads", "GLB.I", "GLB.I.writes", "GLB.W.reads", "GLB.X.reads",
                                  "PEs.I.reads", "L2.I.reads", "GLB.I.reads.extra"])
def test_unknown_counts_list_what_exists(name):
    message = (r"count: must be MEMORY\.TENSOR\.KIND of a tensor that the memory keeps; Got '.*'; "
               r"Known: DRAM\.I, DRAM\.O, DRAM\.W, GLB\.I, GLB\.O, Pad\.s\.I, Pad\.s\.O, Pad\.s\.W; "
               r"each with \.reads, \.fills, \.updates, \.drains")
    with pytest.raises(InputError, match=message):
        explain(CONV, machine(), MAPPING, name)


def test_mappings_without_a_meaning_are_refused():
    with pytest.raises(InputError, match=r"mapping: C: no loop brings it below 4"):
        explain(CONV, machine(), mapped("K1", "P1 Q1", "R1", "S1"), "GLB.I.reads")
    with pytest.raises(InputError, match=r"mapping: GLB\.Z: conv has no such dimension"):
        explain(CONV, machine(), mapped("K1", "Z1 P1 Q1", "R1", "S1 C1"), "GLB.I.reads")


def test_a_mapping_that_does_not_fit_is_explained_all_the_same():
    found = explain(CONV, machine(), mapped("", "P1 K1", "C1", "Q1 R1 S1"), "GLB.I.reads")
    assert found.agrees is True
    crowded = mapped("", "P1", "K1 C1", "Q1 R1 S1")
    assert explain(CONV, machine(), crowded, "GLB.I.reads").agrees is True


def test_large_nests_say_that_they_were_not_checked():
    operator = convolution("conv2_1", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)
    accelerator = preset("eyeriss")
    found = explain(operator, accelerator, dataflow("row-stationary", operator, accelerator), "GLB.I.reads")
    assert (found.oracle, found.agrees) == (None, None)
    assert "Not checked: the oracle did not walk this nest" in found.text()


def test_the_whole_text():
    operator = matmul("gemm", m=5, n=4, k=6)
    accelerator = Accelerator("m", (Memory("DRAM", ROLES, ENERGY), Memory("Pad", ROLES, ENERGY)))
    mapping = Mapping((LevelLoops("DRAM", (Loop("M", 2), Loop("K", 3))),
                       LevelLoops("Pad", (Loop("N", 1), Loop("M", 1), Loop("K", 1)))))
    assert explain(operator, accelerator, mapping, "DRAM.weights.reads").text() == TEXT


TEXT = """\
DRAM.W.reads = 72 words, over all instances and the whole run

DRAM.W.reads: in every visit DRAM reads each word that Pad needs, once for all lanes that share it.
Loops outside, outermost first:
  DRAM  M  5 -> 2  3 times  advances  M does not concern W, but a loop inside moves its tile: it comes anew
  DRAM  K  6 -> 3  2 times  advances  innermost loop that moves W's tile
Factors:
  K: 2 x 3 -> 6
    K is a plain axis: each index lies in one piece
    pieces of K: 1 of 6 (at first); 2 of 3 (DRAM K: 3)
  N: 1 x 4 -> 4
  B: 1 of 1 -> 1
  M: 2 of 2 + 1 of 1 -> 3
    M is no dimension of the tensor: the pieces say how often the tile comes
    pieces of M: 1 of 5 (at first); 2 of 2 + 1 of 1 (DRAM M: 2)

So
  DRAM.W.reads  =  6 (K) x 4 (N) x 1 (B) x 3 (M) = 72
    in every visit DRAM reads each word that Pad needs, once for all lanes that share it

The oracle, which walks the nest literally, counts 72 too."""

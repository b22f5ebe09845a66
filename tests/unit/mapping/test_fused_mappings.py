"""Trees of fused groups: what they hold and take of memories, files of them, groups of networks."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.cost import fused_cost
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Memory, preset
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedLink,
    FusedMapping,
    FusedNode,
    FusedTree,
    HeldTensor,
    LevelLoops,
    Loop,
    Mapping,
    SharedLoop,
    dump_fused,
    fused_group,
    fused_rooms,
    fused_violations,
    load_fused,
)
from tilewright.workload import Axis, AxisLink, Digit, Operator, Tensor, matmul, zoo

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)
ALL = ("inputs", "weights", "outputs")
N, D, R = 32, 8, 4


def machine(capacity=None, buffering="double"):
    return Accelerator("chip", (Memory("DRAM", ALL, ENERGY), Memory("SG", ALL, ENERGY, capacity, buffering=buffering)),
                       Compute("MAC", 1.0))


def one(dimension, **digits):
    return dimension, AxisLink(tuple(Digit(name, times, extent=10**6) for name, times in digits.items()))


def attention():
    """Logits ``M x N`` of queries and keys, and what they attend to."""
    logits, attend = matmul("L", m=N, n=N, k=D), matmul("A", m=N, n=D, k=N)
    return FusedGroup((logits, attend), (FusedLink("L", "A", "I", (one("M", M=1), one("N", K=1))),))


def whole(operator):
    return Mapping((LevelLoops("SG", tuple(Loop(name, 1) for name, size in operator.dimensions if size > 1)),))


def rows(group, step=R, **how):
    return FusedMapping(FusedNode((SharedLoop("DRAM", "M", step),), tuple(
        FusedLeaf(op.name, whole(op)) for op in group.operators), **how), (HeldTensor("L", "SG"),))


def convolutions(rows=12, kernel=3, stride=1):
    """Two convolutions over rows, the second padded by one on either side."""
    def conv(name, p, stride):
        return Operator(name, "conv", (("P", p), ("R", kernel)), (
            Tensor("I", "inputs", (Axis((("P", stride), ("R", 1))),)), Tensor("W", "weights", (Axis((("R", 1),)),)),
            Tensor("O", "outputs", (Axis((("P", 1),)),))))
    rows_of = AxisLink((Digit("P", stride, extent=rows), Digit("R", 1, extent=kernel)), -1)
    return FusedGroup((conv("first", rows, 1), conv("second", (rows + 2 - kernel) // stride + 1, stride)),
                      (FusedLink("first", "second", "I", (("P", rows_of),)),))


def test_rows_of_attention_take_what_flat_says():
    """Table A.1, granularity R: keys and values stay, twice; queries, outputs twice, each in its turn; logits once."""
    found = fused_rooms(FusedTree(attention(), rows(attention())), machine())
    for turn in ("L", "A"):
        (room,) = found["SG", turn]
        assert room.needed_bytes == 2 * R * D + 4 * N * D + R * N
    names = {name: size for name, size in found["SG", "L"][0].bytes_by_tensor}
    assert names == {"L.I": 2 * R * D, "L.W": 2 * N * D, "A.W": 2 * N * D, "L": R * N}


def test_keys_are_fetched_once_and_logits_never_leave():
    counts = fused_cost(attention(), machine(), rows(attention())).counts
    assert counts["L", "DRAM", "W"].reads == counts["A", "DRAM", "W"].reads == N * D
    assert ("L", "DRAM", "O") not in counts
    assert ("A", "DRAM", "I") not in counts
    assert counts["A", "SG", "I"].fills == 0


@pytest.mark.parametrize(("step", "own", "most", "staying"), [
    (4, None, 12, 8),  # the second turn needs rows 3 to 8: all three tiles of four
    (4, 1, 6, 2),  # row by row: a window of 4 + 2 rows, of which 2 stay
    (12, None, 12, 0),
])
def test_halos_are_held_until_the_last_reader_has_passed(step, own, most, staying):
    group = convolutions()
    plan = rows(group)
    steps = () if own is None else (("P", own),)
    leaves = (replace(plan.root.leaves[0], steps=steps), plan.root.leaves[1])
    plan = FusedMapping(FusedNode((SharedLoop("DRAM", "P", step),), leaves), (HeldTensor("first", "SG"),))
    words = FusedTree(group, plan).held_words["first"]
    assert (words.most, words.staying) == (most, staying)
    assert fused_cost(group, machine(), plan).made["first"] == 1


def test_what_stays_for_later_turns_takes_room_while_others_run():
    pair = convolutions()
    third = matmul("third", m=12, n=1, k=1)
    group = FusedGroup((*pair.operators, third), (*pair.links, FusedLink("second", "third", "I", (one("P", M=1),))))
    first, second = rows(pair).root.parts
    leaves = (replace(first, steps=(("P", 1),)), second, FusedLeaf("third", whole(third)))
    held = HeldTensor("first", "SG"), HeldTensor("second", "SG")
    plan = FusedMapping(FusedNode((SharedLoop("DRAM", "M", 4),), leaves), held)
    found = fused_rooms(FusedTree(group, plan), machine())
    sizes = [dict(found["SG", name][0].bytes_by_tensor) for name in ("first", "second", "third")]
    assert [each.get("first", 0) for each in sizes] == [6, 6, 2]  # a window, of which two rows stay
    assert [each.get("second", 0) for each in sizes] == [0, 4, 4]
    assert [each.get("first.W", 0) for each in sizes] == [6, 6, 6]  # weights stay, twice
    assert [each.get("third.O", 0) for each in sizes] == [0, 0, 8]


def test_halos_are_made_again():
    group = convolutions()
    plan = FusedMapping(FusedNode((SharedLoop("DRAM", "P", 4),), rows(group).root.parts, again=True),
                        (HeldTensor("first", "SG"),))
    cost = fused_cost(group, machine(), plan)
    assert cost.held["first"] == (6, 0)
    assert cost.made["first"] == pytest.approx((5 + 6 + 5) / 12)  # padding is not made
    assert cost.counts["first", "DRAM", "I"].reads == 7 + 8 + 7  # every run brings its rows in
    assert cost.counts["first", "DRAM", "W"].reads == 3  # weights are there already


def test_a_memory_too_small_is_told_with_a_step_that_fits():
    group, small = attention(), machine(2 * R * D + 4 * N * D + R * N)
    assert fused_violations(group, small, rows(group)) == ()
    (found,) = fused_violations(group, small, rows(group, 16))
    assert found.kind == "capacity"
    assert "1280 B" not in found.message
    assert found.mend == "let the shared loop over A.M have a step of 4"
    assert fused_violations(group, small, found.cure) == ()


def wrong_plans():
    group = attention()
    plan = rows(group)
    node, (first, last) = plan.root, plan.root.parts
    outside = replace(last, mapping=Mapping((LevelLoops("DRAM", (Loop("N", 4),)), *last.mapping.levels)))
    yield "level", replace(plan, root=replace(node, loops=(SharedLoop("PE", "M", 4),)))
    yield "level", replace(plan, root=replace(node, loops=(SharedLoop("SG", "M", 8), SharedLoop("DRAM", "M", 4))))
    yield "own", replace(plan, root=replace(node, loops=(SharedLoop("SG", "M", 8),), parts=(first, outside)))
    yield "shared", replace(plan, root=FusedNode((), (FusedNode((SharedLoop("DRAM", "K", 4),), (first,)), last)))
    yield "again", replace(plan, root=FusedNode((), (FusedNode((), (first, last), again=True),)))
    yield "nest", replace(plan, root=replace(node, parts=(first, replace(last, mapping=Mapping(())))))
    nowhere = Mapping((LevelLoops("DRAM", keeps=("I", "O")), *(replace(entry, keeps=("I", "O"))
                                                               for entry in last.mapping.levels)))
    yield "nest", replace(plan, root=replace(node, parts=(first, replace(last, mapping=nowhere))))


@pytest.mark.parametrize(("kind", "plan"), list(wrong_plans()), ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_wrong_has_a_name_and_a_cure(kind, plan):
    group = attention()
    if kind == "again":  # read outside the node in which it is made again
        third = matmul("B", m=N, n=2, k=N)
        group = FusedGroup((*group.operators, third), (*group.links, FusedLink("L", "B", "I", (one("M", M=1),))))
        plan = replace(plan, root=replace(plan.root, parts=(*plan.root.parts, FusedLeaf("B", whole(third)))))
    found = fused_violations(group, machine(), plan)
    assert kind in [each.kind for each in found]
    assert all(each.mend for each in found)


def test_what_cannot_hold_a_tensor_is_told():
    array = preset("eyeriss")
    group = fused_group(zoo.load("resnet18"), ["layer1.0.conv1", "layer1.0.relu1"])
    plan = FusedMapping(FusedNode((), (FusedLeaf("layer1.0.conv1"), FusedLeaf("layer1.0.relu1"))),
                        (HeldTensor("layer1.0.conv1", "Spads"),))
    found = {each.kind: each for each in fused_violations(group, array, plan)}
    assert found["held"].mend == "hold it in GLB"


@pytest.mark.parametrize(("step", "loop"), [(1, ("N", 1)), (3, ("N", 3)), (4, ("M", 1)), (9, ("M", 3)), (32, None)])
def test_a_loop_over_a_merged_axis_is_one_over_what_its_step_moves(step, loop):
    table, flat = matmul("table", m=8, n=4, k=2), matmul("flat", m=1, n=3, k=32)
    merged = ("N", AxisLink((Digit("K", 1, 1, 4),))), ("M", AxisLink((Digit("K", 1, 4, 8),)))
    group = FusedGroup((table, flat), (FusedLink("table", "flat", "I", merged),))
    leaves = tuple(FusedLeaf(op.name, whole(op)) for op in group.operators)
    tree = FusedTree(group, FusedMapping(FusedNode((SharedLoop("DRAM", "K", step),), leaves)))
    assert [(each.dimension, each.step) for each in tree.shared("table")] == ([] if loop is None else [loop])


@pytest.mark.parametrize("wrong", ["missing", "unknown", "backwards", "twice", "dimension", "step", "empty", "held",
                                   "nested"])
def test_a_tree_of_another_group_is_refused(wrong):
    group = attention()
    plan = rows(group)
    node, (first, last) = plan.root, plan.root.parts
    root = {
        "missing": replace(node, parts=(last,)), "unknown": replace(node, parts=(FusedLeaf("X"), first, last)),
        "backwards": replace(node, parts=(last, first)), "twice": replace(node, parts=(first, first, last)),
        "dimension": replace(node, loops=(SharedLoop("DRAM", "Z", 4),)),
        "step": replace(node, parts=(replace(first, steps=(("M", 0),)), last)),
        "empty": replace(node, parts=(FusedNode((), ()), first, last)), "held": node,
        "nested": replace(node, parts=(FusedNode((), (first,)), last), again=True),
    }[wrong]
    held = (HeldTensor("Q", "SG"),) if wrong == "held" else ()
    with pytest.raises(InputError):
        FusedTree(group, FusedMapping(root, held))


@pytest.mark.parametrize("change", [
    {"producer": "A", "reader": "L"}, {"producer": "X"}, {"operand": "O"}, {"axes": (one("K", M=1),)},
    {"axes": (one("M", Z=1),)}])
def test_links_that_lead_nowhere_or_in_circles_are_refused(change):
    group = attention()
    with pytest.raises(InputError):
        replace(group, links=(replace(group.links[0], **change),))


def test_plans_are_read_back_as_they_were_written():
    group, array = convolutions(), machine()
    inner = FusedNode((SharedLoop("SG", "P", 2),), (FusedLeaf("second", whole(group.operators[1])),), again=True)
    first = FusedLeaf("first", Mapping((LevelLoops("SG", (Loop("R", 1), Loop("P", 1)), ("I",)),)), (("P", 1),))
    plan = FusedMapping(FusedNode((SharedLoop("DRAM", "P", 8), SharedLoop("SG", "P", 4)), (first, inner)),
                        (HeldTensor("first", "SG", 2),))
    text = dump_fused([plan, rows(attention())], "net")
    assert load_fused(text, array) == (plan, rows(attention()))
    assert str(plan).splitlines()[:3] == ["DRAM for second.P: 8", "  SG for second.P: 4", "    first, P: 1 -> SG twice"]


@pytest.mark.parametrize(("line", "text"), [
    (4, "groups: [{tree: {parts: [{}]}}]"), (1, "groups: []"), (1, "groups: [{}]"), (1, "- groups: []"),
    (4, "groups: [{tree: {parts: [{operator: a, again: true}]}}]"),
    (4, "groups: [{tree: {levels: [{level: X}], parts: [{operator: a}]}}]"),
    (4, "groups: [{tree: {levels: [{level: SG, loops: [M: 0]}], parts: [{operator: a}]}}]"),
    (4, "groups: [{tree: {levels: [{level: SG, loops: [M@X: 1]}], parts: [{operator: a}]}}]"),
    (4, "groups: [{tree: {steps: {M: 1}, parts: [{operator: a}]}}]"),
    (4, "groups: [{tree: {operator: a}, held: {a: {memory: SG, copies: 3}}}]"),
    (4, "groups: [{tree: {operator: a}, hold: {a: SG}}]"),
    (0, "groups: [{tree: &a {parts: [*a]}}]"),
])
def test_malformed_files_are_one_error_with_a_line(line, text):
    with pytest.raises(InputError, match=r":\d" if line else "hold itself"):
        load_fused(f"# a plan\n{text}\n", machine())


def test_what_is_read_outside_a_group_is_brought_out_once():
    net = zoo.load("resnet18")
    group = fused_group(net, ["maxpool", "layer1.0.conv1", "layer1.0.relu1"])
    assert group.leaving == ("maxpool", "layer1.0.relu1")  # the block's shortcut reads maxpool
    assert [name for name in ("maxpool", "layer1.0.conv1", "layer1.0.relu1") if group.leaves(name)] == ["maxpool"]
    pair = convolutions()
    plan = FusedMapping(FusedNode((SharedLoop("DRAM", "P", 4),), rows(pair).root.parts), (HeldTensor("first", "SG"),))
    counts = fused_cost(replace(pair, leaving=("first", "second")), machine(), plan).counts
    assert (counts["first", "SG", "O"].drains, counts["first", "DRAM", "O"].updates) == (12, 12)
    assert counts["second", "DRAM", "O"].updates == 12
    assert ("first", "DRAM", "O") not in fused_cost(pair, machine(), plan).counts


def test_what_the_machine_folds_need_not_be_named():
    net, names = zoo.load("resnet18"), ["layer1.0.conv1", "layer1.0.conv2"]
    assert fused_group(net, names).links == ()
    (link,) = fused_group(net, names, ["relu"]).links
    (direct,) = fused_group(net, ["layer1.0.relu1", "layer1.0.conv2"]).links
    assert dict(link.axes)["P"] == dict(direct.axes)["X2"]
    assert (link.producer, link.reader, link.operand) == (*names, "I")
    group = fused_group(net, names, ["relu"])
    assert not group.leaves("layer1.0.conv1")
    with pytest.raises(InputError, match="I: must be words of conv1 in known places"):
        fused_group(net, ["conv1", "layer1.0.conv1"], ["relu", "max_pool"])  # whose windows read several words


def test_groups_of_a_network_are_linked_as_its_tensors_are():
    bert = zoo.load("bert-base")
    names = [f"layer.0.attention.{name}" for name in ("scores", "scale", "softmax", "context")]
    group = fused_group(bert, names)
    assert [(link.producer.rpartition(".")[2], link.reader.rpartition(".")[2]) for link in group.links] == [
        ("scores", "scale"), ("scale", "softmax"), ("softmax", "context")]
    assert dict(group.links[1].axes)["X2"].digits[0].axis == "X3"  # a word of softmax needs its whole row
    shared = SharedLoop("DRAM", "B", 1), SharedLoop("DRAM", "M", 16)
    tree = FusedTree(group, FusedMapping(FusedNode(shared, tuple(FusedLeaf(op.name) for op in group.operators))))
    loops = {name.rpartition(".")[2]: [(loop.dimension, loop.step) for loop in tree.shared(name)]
             for name in tree.mapping.root.names}
    assert loops == {"scores": [("B", 1), ("M", 16)], "scale": [("X1", 512), ("X1", 16)],
                     "softmax": [("X1", 512), ("X1", 16)], "context": [("B", 1), ("M", 16)]}
    assert tree.held_words[names[0]].most == 16 * 512
    with pytest.raises(InputError, match="Did you mean"):
        fused_group(bert, ["layer.0.attention.score"])

"""Timeloop's files, written and read again: reading what was written of what was read changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.api import evaluate
from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.interop import dump_program, dump_timeloop, load_timeloop
from tilewright.mapping import ANY, Bounds, Constraints, MapSpace
from tilewright.workload import convolution, einsum, matmul

FORMS = {"front end": dump_timeloop, "program": dump_program}
MACHINES = ("eyeriss", "edge-s1", "edge-s3", "simba-like", "tpu-like", "accel-b-sparse", "nvdla-like",
            "shidiannao-like")
SMALL = st.integers(1, 7)


@st.composite
def operators(draw):
    kind = draw(st.sampled_from(("conv", "depthwise", "matmul", "einsum")))
    a, b, c, d = (draw(SMALL) for _ in range(4))
    if kind == "matmul":
        return matmul("product", m=a, n=b, k=c, batch=d)
    if kind == "einsum":
        return einsum("abc,cd->abd", {"a": a, "b": b, "c": c, "d": d})
    if kind == "depthwise":
        return convolution("depthwise", in_channels=a, out_channels=a, groups=a, kernel=3, out_size=b, batch=c)
    return convolution("conv", in_channels=a, out_channels=b, kernel=(draw(st.integers(1, 3)), 3), out_size=(c, d),
                       stride=draw(st.integers(1, 2)), dilation=draw(st.integers(1, 2)))


@st.composite
def restrictions(draw, operator, machine):
    """Draw constraints of all the kinds that Timeloop's files can say."""
    dims = list(operator.sizes)
    names = [memory.name for memory in machine.memories[1:]]
    factors = {}
    for place in draw(st.lists(st.sampled_from([memory.name for memory in machine.memories]), max_size=2, unique=True)):
        dim = draw(st.sampled_from(dims))
        least = draw(st.integers(1, operator.sizes[dim]))
        factors[place] = {dim: draw(st.sampled_from((Bounds(1, least), Bounds(least, least), Bounds(least, None))))}
    orders = {}
    for place in draw(st.lists(st.sampled_from(names), max_size=2, unique=True)):
        order = draw(st.permutations(dims))
        keep = draw(st.integers(1, len(order)))
        orders[place] = ((tuple(order) if keep == len(order) else (ANY, *order[:keep])),)
    keeps = {}
    for memory in machine.memories[1:]:
        able = [t.name for t in operator.tensors if memory.can_keep(t.name, t.role)]
        if able and not memory.partitions_bytes and draw(st.booleans()):
            keeps[memory.name] = tuple(draw(st.lists(st.sampled_from(able), unique=True)))
    return Constraints(keeps=keeps, orders=orders, factors=factors)


def turned(dump, folder, found):
    """Return what is read of what is written of what was found."""
    made = dump(*found)
    for name, text in made.files.items():
        (folder / name).write_text(text)
    back = load_timeloop([folder / name for name in made.files])
    return back, (back.operator, back.accelerator, back.mapping, back.constraints)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_import_export_import_is_the_identity(form, data, tmp_path_factory):
    operator, machine = data.draw(operators()), preset(data.draw(st.sampled_from(MACHINES)))
    constraints = data.draw(restrictions(operator, machine))
    space = MapSpace(operator, machine, data.draw(st.sampled_from(("ruby", "perfect"))))
    mapping = space.sample(np.random.default_rng(data.draw(st.integers(0, 999))), 1).mapping(0, operator.sizes)
    folder = tmp_path_factory.mktemp("timeloop")
    first, again = turned(FORMS[form], folder, (operator, machine, mapping, constraints))
    second, _ = turned(FORMS[form], folder, again)
    assert second == first
    assert first.operator.tensors == operator.tensors and first.operator.sizes == operator.sizes
    for note in first.notes:
        assert ".yaml:" in note.where
    assert not [note for note in first.notes if "not known" in note.text], "we write nothing that we do not read"


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_constraints_come_back_as_they_were(form, data, tmp_path_factory):
    operator, machine = data.draw(operators()), preset("tpu-like")
    constraints = data.draw(restrictions(operator, machine))
    back, _ = turned(FORMS[form], tmp_path_factory.mktemp("timeloop"), (operator, machine, None, constraints))
    for place, names in constraints.keeps.items():
        assert set(back.constraints.keeps.get(place, names)) == set(names)
    assert back.constraints.factors == constraints.factors
    assert back.constraints.orders == constraints.orders


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_costs_the_same(form, tmp_path):
    operator, machine = convolution("conv", in_channels=6, out_channels=5, kernel=3, out_size=7), preset("accel-b")
    batch = MapSpace(operator, machine, "ruby").sample(np.random.default_rng(3), 4)
    for index in range(4):
        mapping = batch.mapping(index, operator.sizes)
        back, _ = turned(FORMS[form], tmp_path, (operator, machine, mapping, None))
        costs = [evaluate(nest, operator, machine).cost for nest, machine in (
            (mapping, machine), (back.mapping, back.accelerator))]
        assert costs[0].steady_cycles == costs[1].steady_cycles
        assert costs[0].counts == costs[1].counts
        for memory in machine.memories:
            assert costs[1].energy_by_component_pj[memory.name] == pytest.approx(
                costs[0].energy_by_component_pj[memory.name])


def test_long_names_of_dimensions_are_refused_by_the_program_and_told_by_the_front_end():
    operator = einsum("ab,bc->ac", {"a": 2, "b": 3, "c": 4})
    long = type(operator)(operator.name, operator.kind, tuple((f"{n}{n}", s) for n, s in operator.dimensions), tuple(
        type(t)(t.name, t.role, tuple(type(x)(tuple((f"{n}{n}", c) for n, c in x.terms)) for x in t.axes))
        for t in operator.tensors))
    with pytest.raises(InputError, match="must be one letter"):
        dump_program(long, preset("tpu-like"))
    assert any("letter by letter" in note.text for note in dump_timeloop(long, preset("tpu-like")).notes)

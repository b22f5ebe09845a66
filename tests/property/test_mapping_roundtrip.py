"""Random mappings, legal and not: they survive files and arrays, and every cure cures."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import (
    LevelLoops,
    Loop,
    Mapping,
    MappingBatch,
    dump_mapping,
    extents_at,
    is_legal,
    load_mapping,
    render,
    repair,
    violations,
)
from tilewright.workload import ROLES, Operator, convolution, matmul

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)
LAYERS = (
    convolution("conv", in_channels=6, out_channels=9, in_size=12, kernel=3, stride=2, dilation=2, padding=2),
    convolution("grouped", in_channels=6, out_channels=4, in_size=(7,), kernel=2, groups=2),
    matmul("gemm", m=13, n=7, k=10),
)


@st.composite
def machines(draw: st.DrawFn) -> Accelerator:
    levels: list[Memory | Fanout] = [Memory("M0", ROLES, ENERGY)]
    for index in range(1, draw(st.integers(1, 5))):
        if draw(st.booleans()):
            keeps = tuple(role for role in ROLES if draw(st.booleans()))
            partitions = (("weights", float(draw(st.integers(1, 40)))),) if draw(st.booleans()) else ()
            levels.append(Memory(f"M{index}", keeps, ENERGY, capacity_bytes=float(draw(st.integers(4, 400))),
                                 partitions_bytes=partitions,
                                 buffering=draw(st.sampled_from(("single", "double", "buffet")))))
        else:
            kind = draw(st.sampled_from(("fixed", "flexible", "blocks")))
            shape = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
            shape = (2 * shape[0], 2 * shape[1]) if kind == "blocks" else shape
            levels.append(Fanout(f"F{index}", shape, flexible=kind == "flexible",
                                 blocks=(2, 2) if kind == "blocks" else None))
    return Accelerator("random", tuple(levels))


@st.composite
def broken_mappings(draw: st.DrawFn) -> tuple[Mapping, Operator, Accelerator]:
    """A mapping with any steps in any order, spatial and temporal loops in the right places or not."""
    operator, machine = draw(st.sampled_from(LAYERS)), draw(machines())
    entries = []
    for level in machine.levels:
        loops = []
        for _ in range(draw(st.integers(0, 4))):
            dimension = draw(st.sampled_from([*operator.sizes, "Z"] if draw(st.integers(0, 9)) == 0
                                             else list(operator.sizes)))
            spatial = isinstance(level, Fanout) != (draw(st.integers(0, 9)) == 0)
            axis = draw(st.sampled_from(("X", "Y"))) if spatial else None
            loops.append(Loop(dimension, draw(st.integers(0, 13)), axis))
        keeps = None
        if draw(st.integers(0, 3)) == 0:
            keeps = tuple(draw(st.sets(st.sampled_from(["I", "W", "O", "X"]))))
        entries.append(LevelLoops(level.name, tuple(loops), keeps))
    return Mapping(tuple(entries)), operator, machine


@st.composite
def clean_mappings(draw: st.DrawFn) -> tuple[Mapping, Operator, Accelerator]:
    """A mapping whose loops are well formed and cover everything; tiles and lanes may still not fit."""
    operator, machine = draw(st.sampled_from(LAYERS)), draw(machines())
    extents, entries = dict(operator.sizes), []
    for level in machine.levels:
        loops = []
        for _ in range(draw(st.integers(0, 5))):
            dimension = draw(st.sampled_from(list(operator.sizes)))
            step = draw(st.integers(1, extents[dimension]))
            sides = ("X", "Y") if isinstance(level, Fanout) and (level.shape[1] > 1 or level.flexible) else ("X",)
            axis = draw(st.sampled_from(sides)) if isinstance(level, Fanout) else None
            loops.append(Loop(dimension, step, axis))
            extents[dimension] = step
        able = [t.name for t in operator.tensors if isinstance(level, Memory) and level.can_keep(t.name, t.role)]
        kept = tuple(name for name in able if entries == [] or draw(st.booleans()))
        entries.append(LevelLoops(level.name, tuple(loops), kept if isinstance(level, Memory) else None))
    inner = next(i for i in reversed(range(len(entries))) if isinstance(machine.levels[i], Memory))
    late = {loop.dimension for entry in entries[inner + 1:] for loop in entry.loops}
    for index, dimensions in ((inner, set(operator.sizes) - late), (len(entries) - 1, late)):
        cover = tuple(Loop(d, 1, "X" if index > inner else None) for d in operator.sizes if d in dimensions)
        entries[index] = LevelLoops(entries[index].level, entries[index].loops + cover, entries[index].keeps)
    return Mapping(tuple(entries)), operator, machine


@settings(max_examples=30, deadline=None)
@given(broken_mappings())
def test_every_cure_cures_and_legality_agrees(case):
    mapping, operator, machine = case
    found = violations(mapping, operator, machine)
    assert is_legal(mapping, operator, machine) == (not found)
    assert len({v.key for v in found}) == len(found)
    for violation in found:
        assert violation.message and violation.mend
        assert violation.cure is not None, str(violation)
        assert violation.key not in {v.key for v in violations(violation.cure, operator, machine)}, str(violation)


@settings(max_examples=30, deadline=None)
@given(broken_mappings())
def test_repair_ends_in_a_legal_mapping(case):
    mapping, operator, machine = case
    mended = repair(mapping, operator, machine)
    assert mended is not None and is_legal(mended, operator, machine)


@settings(max_examples=60, deadline=None)
@given(clean_mappings())
def test_files_and_arrays_bring_back_what_they_were_given(case):
    mapping, operator, machine = case
    assert load_mapping(dump_mapping(mapping, operator, machine), operator, machine) == mapping
    batch = MappingBatch.from_mappings([mapping, mapping], operator, machine)
    back = batch.mapping(1, operator.sizes)
    assert extents_at(back, operator.sizes) == extents_at(mapping, operator.sizes)
    keys = [[v.key for v in violations(one, operator, machine)] for one in (back, mapping)]
    assert keys[0] == keys[1]
    again = MappingBatch.from_mappings([back], operator, machine)
    assert again.mapping(0, operator.sizes) == back
    assert (batch.steps[:, :, 0] == batch.steps[:, :, 1]).all()
    for entry, returned, level in zip(mapping.levels, back.levels, machine.levels, strict=True):
        if isinstance(level, Memory):
            assert _that_run(mapping, operator, entry.level) == list(returned.loops)


@settings(max_examples=40, deadline=None)
@given(broken_mappings())
def test_anything_can_be_drawn(case):
    mapping, operator, machine = case
    assert len(render(mapping, operator, machine).splitlines()) >= len(machine.levels) + 2


def _that_run(mapping: Mapping, operator: Operator, level: str) -> list[Loop]:
    names = [entry.level for entry in mapping.levels]
    extents, found = dict(extents_at(mapping, operator.sizes)[names.index(level)]), []
    for loop in mapping.at(level).loops:
        if loop.step < extents[loop.dimension]:
            found.append(loop)
        extents[loop.dimension] = loop.step
    return found


def test_a_loop_of_no_step_over_no_dimension_can_be_drawn():
    machine = Accelerator("one", (Memory("M0", ROLES, ENERGY),))
    mapping = Mapping((LevelLoops("M0", (Loop("Z", 0),)),))
    assert "M0" in render(mapping, LAYERS[2], machine)

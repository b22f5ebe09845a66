"""Closed forms, compiled engine and oracle agree word for word: counts, busiest instances, steps, cycles, energies."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from random_variants import forwarding, random_words, with_homes, with_shared
from tilewright.cost import Cost, CostBatch, DenseModel
from tilewright.cost.dense import scoring
from tilewright.cost.dense.model import kind_of_rates
from tilewright.cost.dense.nest import Nest
from tilewright.cost.dense.single import counts, single_cost, tallies_of
from tilewright.cost.dense.walk_records import VIEWS
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Fanout, Memory
from tilewright.interop import case_lines, parse_case
from tilewright.mapping import (
    Layout,
    LevelLoops,
    Loop,
    Mapping,
    MappingBatch,
    held_bits,
    lane_use,
    tensor_bits,
)
from tilewright.validation import random_case
from tilewright.workload import ROLES, Axis, Operator, Tensor, matmul

CASES_PER_SEED = 50
KINDS = ("reads", "fills", "updates", "drains")
ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)

Compiled = tuple[dict[tuple[str, str], dict[str, np.ndarray]], CostBatch]


@dataclass(frozen=True)
class Case:
    """What is compared, and where it came from."""

    name: str
    operator: Operator
    accelerator: Accelerator
    mapping: Mapping

    def __str__(self) -> str:
        return f"{self.name}: {self.operator}\n{self.accelerator}\n{self.mapping}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(10))
def test_all_three_agree(seed):
    for number, case in enumerate(cases(seed, CASES_PER_SEED)):
        check(case, scored=number % 3 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_all_three_agree_on_20000(seed):
    for case in cases(seed, CASES_PER_SEED):
        check(case)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2000, 2010))
def test_closed_forms_and_compiled_engine_agree_on_batches(seed):
    check_batches(seed, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3100))
def test_closed_forms_and_compiled_engine_agree_on_many_batches(seed):
    check_batches(seed, 40)


def check_batches(seed, machines):
    """Mappings drawn as arrays use every slot of their layout, as a mapper's do."""
    rng = np.random.default_rng(seed)
    for number in range(machines):
        operator, accelerator, mapping = random_case(rng, sliding=number % 2 == 1)
        accelerator = forwarding(accelerator) if number % 4 > 1 else accelerator
        layout = MappingBatch.from_mappings([mapping], operator, accelerator).layout
        batch = random_arrays(rng, layout, operator, 30)
        model = DenseModel(operator, accelerator, layout, even_after=0)
        found = told(model, batch, scored=number % 3 == 0)
        for index in range(len(batch)):
            drawn = batch.mapping(index, operator.sizes)
            where = f"seed {seed}, machine {number}, mapping {index}: {operator}\n{accelerator}\n{drawn}"
            check_compiled(found, model.cost(drawn), where, index)


def random_arrays(rng: np.random.Generator, layout: Layout, operator: Operator, count: int) -> MappingBatch:
    """Random steps, in half of the slots those of the slot outside, in random orders."""
    slots, dimensions = layout.shape
    steps = np.ones((slots, dimensions, count), np.int32)
    extents = np.array([operator.sizes[name] for name in layout.dimensions])[:, None].repeat(count, axis=1)
    for slot in range(slots - 1):
        drawn = np.ceil(extents ** rng.random(extents.shape)).astype(np.int64)
        extents = np.where(rng.random(extents.shape) < 0.5, extents, np.minimum(drawn, extents))
        steps[slot] = extents
    return MappingBatch(layout, steps, rng.random((slots, dimensions, count)).argsort(axis=1).astype(np.int8))


@pytest.mark.parametrize("seed", range(2))
def test_all_three_agree_on_windows_with_holes(seed):
    """Dilation beyond the window, tiles that step over it, lanes of several widths."""
    rng = np.random.default_rng(seed)
    for number in range(60):
        check(case_with_holes(rng, f"holes {seed}.{number}"))


def test_the_busiest_instances_of_nests_that_were_counted_wrong():
    """Words that a literal walk of each instance finds: reads and drains, fills and updates of the busiest."""
    path = Path(__file__).parent / "data" / "busiest_instances.jsonl"
    expected = [json.loads(line)["busiest"] for line in path.read_text().splitlines()]
    cases = [parse_case(line, where) for where, line in case_lines(path)]
    assert len(cases) == len(expected) == 16
    for case, memories in zip(cases, expected, strict=True):
        for cost in (walk(*case[1:]), single_cost(*case[1:])):
            found = {name: [cost.traffic[name].read_words, cost.traffic[name].write_words] for name in memories}
            assert found == memories, case.id


def test_random_nests_reach_what_makes_another_instance_the_busiest():
    """Partial sums read back by lanes of a sliding output, also through two keepers; operands with holes; odd rates."""
    met = set()
    rng = np.random.default_rng(0)
    for case in [*cases(5, 2 * CASES_PER_SEED), *(case_with_holes(rng, "holes") for _ in range(40))]:
        nest = Nest(case.operator, case.accelerator, case.mapping)
        met |= {(rate, kind) for memory in case.accelerator.memories for rate, kind in (
            (memory.bandwidth.shared, "shared"), (memory.bandwidth.read, memory.buffering))}
        told = tallies_of(nest)
        for (view, level, name, kind), words in told.items():
            if view in VIEWS and words != told["busiest", level, name, kind]:
                tensor = case.operator.tensor(name)
                keepers = len(nest.keepers(tensor))
                met |= {(tensor.role, view), ("keepers", min(keepers, 3))} if tensor.is_output else {
                    (tensor.role, view)}
    assert {("inputs", "write")} | {("outputs", view) for view in VIEWS} <= met
    assert {("keepers", 2), ("keepers", 3), (0.7, "shared"), (1 / 3, "shared"), (0.7, "single")} <= met


@pytest.mark.parametrize(("slow", "ramp"), [("Main", 32 + 32 + 1), ("Between", 1 + 32 + 1)])
def test_a_cold_start_waits_for_the_slowest_of_several_parents(slow, ramp):
    """Inputs come from the outermost memory, weights by one between, 8 words each at 16 or 0.25 a cycle; 4 go out."""
    rates = {name: Bandwidth(read=0.25 if name == slow else 16.0) for name in ("Main", "Between")}
    operator = matmul("gemm", m=4, n=4, k=4)
    accelerator = Accelerator("two ways in", (
        Memory("Main", ROLES, ENERGY, bandwidth=rates["Main"]), Memory("Between", ("weights",), ENERGY,
                                                                      bandwidth=rates["Between"]),
        Memory("Buffer", ROLES, ENERGY, bandwidth=Bandwidth(16.0, 16.0), buffering="double")))
    mapping = Mapping((LevelLoops("Main", (Loop("M", 2), Loop("N", 2))), LevelLoops("Between"),
                       LevelLoops("Buffer", tuple(Loop(name, 1) for name in operator.sizes))))
    case = Case("two ways in", operator, accelerator, mapping)
    check(case)
    assert single_cost(operator, accelerator, mapping).ramp_cycles == ramp


@pytest.mark.parametrize(("words", "rate", "cycles"), [(21, 0.7, 30), (22, 0.7, 32), (7, 1 / 3, 21), (3, 0.1, 30)])
def test_decimal_rates_are_exact(words, rate, cycles):
    """21 words at 0.7 a cycle take 30 cycles; in floating point they take 30.000000000000004."""
    operator = Operator("row", "einsum", (("M", words),), tuple(
        Tensor(name, role, (Axis((("M", 1),)),)) for name, role in (("W", "weights"), ("I", "inputs"),
                                                                   ("O", "outputs"))))
    accelerator = Accelerator("machine", (
        Memory("Main", ("weights", "inputs", "outputs"), ENERGY),
        Memory("Pad", ("inputs",), ENERGY, bandwidth=Bandwidth(write=rate))))
    check(Case("row", operator, accelerator, Mapping((LevelLoops("Main"), LevelLoops("Pad", (Loop("M", 1),))))))
    mapping = Mapping((LevelLoops("Main", (Loop("M", 1),)), LevelLoops("Pad")))
    case = Case("row", operator, accelerator, mapping)
    check(case)
    assert single_cost(operator, accelerator, mapping).steady_cycles == cycles


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
def test_all_three_agree_on_words_of_any_width(seed):
    """1, 4 or 12 bits, in memories of other widths: accesses, port time and latency are shares of words."""
    rng = np.random.default_rng((seed, 11))
    for number in range(15):
        layer, machine, mapping = random_case(rng, most_macs=2000)
        layer = replace(layer, tensors=tuple(
            replace(tensor, word_bits=int(rng.choice([1, 3, 4, 12, 24, 33]))) for tensor in layer.tensors))
        machine = replace(machine, levels=tuple(
            replace(level, word_bits=int(rng.choice([1, 4, 16, 64]))) if isinstance(level, Memory) else level
            for level in machine.levels))
        check(Case(f"widths {seed}.{number}", layer, machine, mapping))


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
def test_all_three_agree_on_words_of_any_type(seed):
    """Lanes that take a type faster or in parts, blocks with scales, partial sums wider than what comes home."""
    rng, met = np.random.default_rng((seed, 12)), set()
    for number in range(25):
        layer, machine, mapping = random_case(rng, most_macs=1500, sliding=number % 4 == 0)
        if number % 3 == 0:
            layer, machine, mapping = with_homes(rng, layer, machine, mapping)
        layer, machine = random_words(rng, layer, machine)
        check(Case(f"types {seed}.{number}", layer, machine, mapping))
        cycles = lane_use(layer, machine).cycles
        met |= {("lanes", cycles > 1, cycles < 1), ("partial", held_bits(layer.output, machine) > tensor_bits(
            layer.output, machine)), ("parts", any(tensor_bits(t, machine) % 1 for t in layer.tensors))}
    assert len(met) == 3 + 2 + 2


@pytest.mark.parametrize("kind", ["short", "long"])
def test_cycles_are_exact_whichever_way_they_are_found(kind, monkeypatch):
    """Rates that are whole numbers may be divided by as the others, and small products as large ones."""
    monkeypatch.setattr(scoring, "kind_of_rates", lambda *_: kind)
    for case in cases(6, 12):
        batch = MappingBatch.from_mappings([case.mapping], case.operator, case.accelerator)
        model = DenseModel(case.operator, case.accelerator, batch.layout)
        check_compiled(told(model, batch, scored=True), model.cost(case.mapping), str(case))


def test_large_products_are_divided_in_two_steps():
    """Past 2^53 words times cycles are rounded: 2^28 rows of 3 words at 0.700001 a cycle."""
    small, large = (Operator("rows", "einsum", (("M", 3), ("N", side), ("Q", side)), tuple(
        Tensor(name, role, tuple(Axis(((dimension, 1),)) for dimension in "MNQ")) for name, role in (
            ("W", "weights"), ("I", "inputs"), ("O", "outputs")))) for side in (2**5, 2**14))
    accelerator = Accelerator("machine", (
        Memory("Main", ("weights", "inputs", "outputs"), ENERGY, bandwidth=Bandwidth(read=0.700001)),))
    mapping = Mapping((LevelLoops("Main", (Loop("M", 1), Loop("N", 1), Loop("Q", 1))),))
    for operator, kind in ((small, "short"), (large, "long")):
        batch = MappingBatch.from_mappings([mapping], operator, accelerator)
        model = DenseModel(operator, accelerator, batch.layout)
        assert kind_of_rates(operator, accelerator, [0.700001]) == kind
        assert model.score(batch).steady_cycles[0] == model.cost(mapping).steady_cycles


def test_a_rate_is_exact_beside_another_of_a_larger_power_of_two():
    """42 words at 0.7 a cycle take 60 cycles, which 42 / 0.7 does not say, whatever sixteenths another port moves."""
    operator = Operator("rows", "einsum", (("M", 3), ("N", 7)), tuple(
        Tensor(name, role, (Axis((("M", 1),)), Axis((("N", 1),)))) for name, role in (
            ("W", "weights"), ("I", "inputs"), ("O", "outputs"))))
    accelerator = Accelerator("machine", (Memory("Main", ("weights", "inputs", "outputs"), ENERGY,
                                                 bandwidth=Bandwidth(read=0.7, write=16.0625)),))
    mapping = Mapping((LevelLoops("Main", (Loop("M", 1), Loop("N", 1))),))
    batch = MappingBatch.from_mappings([mapping], operator, accelerator)
    assert DenseModel(operator, accelerator, batch.layout).score(batch).steady_cycles[0] == 60
    assert walk(operator, accelerator, mapping).steady_cycles == 60


def cases(seed, count):
    """Of four nests, two are such that another instance than the first may be the busiest; two hand on words.

    In one of five, memories serve lanes together.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        operator, machine, mapping = random_case(rng, sliding=number % 2 == 1)
        machine = forwarding(machine) if number % 4 > 1 else machine
        if number % 5 == 3:
            operator, machine, mapping = with_shared(rng.spawn(1)[0], operator, machine, mapping)
        yield Case(f"seed {seed}, case {number}", operator, machine, mapping)


def told(model: DenseModel, batch: MappingBatch, scored: bool) -> Compiled:
    """Return words, and costs by the program that scores, or by the one of words too: to write one takes longest."""
    table = model.table(batch)
    return table.words, model.score(batch) if scored else table.costs


def check(case, scored=True):
    oracle = walk(case.operator, case.accelerator, case.mapping)
    single = single_cost(case.operator, case.accelerator, case.mapping)
    check_against_oracle(single, oracle, case)
    batch = MappingBatch.from_mappings([case.mapping], case.operator, case.accelerator)
    model = DenseModel(case.operator, case.accelerator, batch.layout, even_after=0)
    check_compiled(told(model, batch, scored), single, str(case))


def check_against_oracle(cost: Cost, oracle: Cost, case: Case):
    where = str(case)
    for figure in ("macs", "counts", "traffic", "steps", "compute_cycles", "steady_cycles", "ramp_cycles",
                   "bottleneck"):
        assert getattr(cost, figure) == getattr(oracle, figure), (figure, where)
    for component, energy in cost.energy_by_component_pj.items():
        assert energy == pytest.approx(oracle.energy_by_component_pj[component], rel=1e-12), (component, where)
    assert cost.energy_pj == pytest.approx(oracle.energy_pj, rel=1e-12), where
    assert cost.utilisation == pytest.approx(oracle.utilisation, rel=1e-12), where


def check_compiled(found: Compiled, cost: Cost, where: str, index: int = 0):
    counts, scored = found
    assert set(counts) == set(cost.counts), where
    for key, count in cost.counts.items():
        words = {kind: rows[index] for kind, rows in counts[key].items()}
        assert words == {kind: getattr(count, kind) for kind in KINDS}, (key, where)
    cycles = scored.steps[index], scored.steady_cycles[index], scored.ramp_cycles[index], scored.latency_cycles[index]
    assert cycles == (cost.steps, cost.steady_cycles, cost.ramp_cycles, cost.latency_cycles), where
    assert scored.energy_pj[index] == pytest.approx(cost.energy_pj, rel=1e-9), where


def case_with_holes(rng: np.random.Generator, name: str) -> Case:
    """A dilated 1-D convolution whose inputs alone stay in the inner memories, with their write ports limited."""
    size, window, dilation = int(rng.integers(20, 120)), int(rng.integers(2, 6)), int(rng.integers(2, 5))
    operator = Operator("holes", "conv", (("P", size), ("R", window)), (
        Tensor("W", "weights", (Axis((("R", 1),)),)),
        Tensor("I", "inputs", (Axis((("P", int(rng.integers(1, 3))), ("R", dilation))),)),
        Tensor("O", "outputs", (Axis((("P", 1),)),))))
    outer = int(rng.integers(3, 12))
    lane = int(rng.integers(1, outer))
    port = Bandwidth(write=float(rng.choice([0.5, 1.0, 2.0])))
    accelerator = Accelerator("machine", (
        Memory("Main", ("weights", "inputs", "outputs"), ENERGY),
        Fanout("Lanes", (outer, 1), multicast=bool(rng.integers(2))),
        Memory("Pad", ("inputs",), ENERGY, bandwidth=port)))
    return Case(name, operator, accelerator, Mapping((
        LevelLoops("Main", (Loop("P", outer),)), LevelLoops("Lanes", (Loop("P", lane, "X"),)),
        LevelLoops("Pad", (Loop("R", 1), Loop("P", 1))))))


def test_a_narrow_lane_may_be_busier_than_the_first():
    """100 visits of tiles of 4 and 1 of 5 outputs.

    The first lane holds 24 neighbouring inputs and is brought 5 new ones a visit, the second holds every fourth of
    24 and is brought all 6.
    """
    operator = Operator("holes", "conv", (("P", 500), ("R", 6)), (
        Tensor("W", "weights", (Axis((("R", 1),)),)),
        Tensor("I", "inputs", (Axis((("P", 1), ("R", 4))),)),
        Tensor("O", "outputs", (Axis((("P", 1),)),))))
    accelerator = Accelerator("machine", (
        Memory("Main", ("weights", "inputs", "outputs"), ENERGY), Fanout("Lanes", (2, 1)),
        Memory("Pad", ("inputs",), ENERGY, bandwidth=Bandwidth(write=0.1))))
    mapping = Mapping((
        LevelLoops("Main", (Loop("P", 5),)), LevelLoops("Lanes", (Loop("P", 4, "X"),)),
        LevelLoops("Pad", (Loop("P", 1), Loop("R", 1)))))
    check(Case("narrow lane", operator, accelerator, mapping))
    nest = Nest(operator, accelerator, mapping)
    assert counts(nest, busiest=True)[2, "I"].fills == 24 + 99 * 5
    assert single_cost(operator, accelerator, mapping).traffic["Pad"].write_words == 100 * 6

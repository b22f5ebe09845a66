"""Which flexibility pays: fixed designs, variants, explorations."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.codesign import (
    FixedDesign,
    Outcome,
    class_choices,
    explore,
    fixed_mappings,
    pareto,
    score_designs,
    tune,
    with_array,
    with_buffer,
    with_flexibility,
)
from tilewright.codesign.exploration import Exploration
from tilewright.hardware import OrderFlexibility, ParallelismFlexibility, flexibility_overhead, preset
from tilewright.jobs import Runner
from tilewright.mapping import flexible_spaces
from tilewright.search import search_flexible
from tilewright.workload import UniqueOperator, convolution, depthwise, matmul

BASE = preset("flexion")
LAYERS = [UniqueOperator(operator, count, (operator.name,)) for operator, count in (
    (convolution("a", in_channels=24, out_channels=40, in_size=14, kernel=3, padding=1), 2),
    (depthwise("b", channels=48, in_size=12, kernel=3), 1), (matmul("c", m=6, n=50, k=40), 3),
    (convolution("d", in_channels=8, out_channels=12, in_size=9, kernel=3, groups=2, batch=2), 1))]


def random_designs(count, seed=0):
    rng = np.random.default_rng(seed)
    widths = rng.choice([1, 4, 16, 30, 64, 1024], size=count)
    return FixedDesign(
        rng.integers(1, 6, size=(count, 6)), rng.permuted(np.tile(np.arange(6), (count, 1)), axis=1),
        np.stack([rng.permutation(6)[:2] for _ in range(count)]), np.stack([widths, 1024 // widths], axis=1))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.operator.name)
def test_the_mapping_of_a_fixed_design_is_the_only_one_of_its_machine(layer):
    designs = random_designs(12)
    batch = fixed_mappings(designs, layer.operator, BASE)
    figures = score_designs(designs, [replace(layer, count=1)], BASE)
    compared = 0
    for index in range(len(designs)):
        machine = with_flexibility(BASE, designs.flexibility(index, BASE.flexibility))
        assert machine.flexibility.class_bits == "0000"
        if designs.sides[index, 1] == 1:
            continue  # an array of one row has no Y side to spread along
        found = search_flexible(layer.operator, machine, objective="latency", budget=5)
        assert found.samples == 1
        if np.isfinite(figures[index, 0]):
            compared += 1
            assert figures[index].tolist() == [found.cost.latency_cycles, pytest.approx(found.cost.energy_pj)]
            mine = batch.mapping(index, layer.operator.sizes)
            (space,) = flexible_spaces(layer.operator, machine)
            assert [entry.loops for entry in mine.levels if entry.level != "PEs"] == [
                entry.loops for entry in found.mapping.levels if entry.level != "PEs"], space
        else:
            assert found.mapping is None
    assert compared > 4


def test_tuning_beats_the_design_that_it_starts_from_and_says_what_it_found():
    own = sum(layer.count * search_flexible(layer.operator, BASE, budget=2).cost.latency_cycles for layer in LAYERS)
    flexibility, latency, energy = tune(LAYERS, BASE, samples=600, seed=1)
    assert latency < own
    assert flexibility.class_bits == "0000"
    again = sum(layer.count * search_flexible(layer.operator, with_flexibility(BASE, flexibility), budget=2)
                .cost.latency_cycles for layer in LAYERS)
    assert again == latency
    assert tune(LAYERS, BASE, samples=600, seed=1) == (flexibility, latency, energy)
    assert tune(LAYERS, BASE, samples=600, seed=1, objective="energy")[2] <= energy


def test_one_sample_is_the_machine_as_it_is():
    assert tune(LAYERS, BASE, samples=1)[0].parallelism.choices == BASE.flexibility.parallelism.choices


def test_tuning_refuses_what_it_cannot_do():
    with pytest.raises(InputError, match="objective"):
        tune(LAYERS, BASE, objective="area")
    with pytest.raises(InputError, match="must be given layers and samples; Got '4 layers, 0 samples'"):
        tune(LAYERS, BASE, samples=0)
    with pytest.raises(InputError, match="found no fixed design"):
        tune(LAYERS, with_buffer(BASE, 4), samples=20)
    with pytest.raises(InputError, match="must be stated"):
        tune(LAYERS, preset("edge-s1"))


def test_variants():
    small = with_array(with_buffer(BASE, 6400), (8, 4))
    assert small.level("GLB").capacity_bytes == 6400
    assert small.level("PEs").shape == small.flexibility.shape.fixed == (8, 4)
    assert with_array(with_flexibility(BASE, BASE.flexibility.of_class("0001")), (8, 4)).flexibility.shape.fixed is None
    assert list(class_choices(BASE))[:3] == ["InFlex-0000", "FullFlex-0001", "FullFlex-0010"]
    assert len(class_choices(BASE)) == 16
    assert with_flexibility(BASE, order=OrderFlexibility()).flexibility.class_bits == "0100"


def test_area_and_energy_follow_from_the_buffer():
    small, large = (with_buffer(BASE, capacity) for capacity in (6400, 64000))
    assert small.area_um2 < large.area_um2
    assert small.level("GLB").energy.read_pj < large.level("GLB").energy.read_pj
    assert with_buffer(BASE, BASE.level("GLB").capacity_bytes) == BASE
    assert with_buffer(BASE, 4).area_um2 == BASE.area_um2  # no technology knows a memory of four bytes


def test_exploring_tells_what_each_choice_is_worth():
    choices = {"rigid": BASE.flexibility, "pairs": replace(BASE.flexibility, parallelism=ParallelismFlexibility()),
               "all": BASE.flexibility.of_class("1111")}
    told = []
    found = explore({"net": LAYERS, "one": LAYERS[:1]}, BASE, choices, samples=30,
                    runner=Runner(workers=2, observer=told.append))
    assert (told[-1].done, told[-1].total) == ((4 + 1) * 3, (4 + 1) * 3)
    assert (found.networks, found.choices) == (("net", "one"), ("rigid", "pairs", "all"))
    assert found.relative("net", "rigid") == 1
    assert found.relative("net", "pairs") <= 1
    assert found.relative("net", "all") < 0.7
    rigid, loose = found.of("net", "rigid"), found.of("net", "all")
    assert rigid.latency_cycles == sum(layer.count * search_flexible(layer.operator, BASE, budget=2)
                                       .cost.latency_cycles for layer in LAYERS)
    assert rigid.added_um2 == 0
    overhead = flexibility_overhead(with_flexibility(BASE, choices["all"]))
    assert loose.added_um2 == pytest.approx(overhead.total_um2)
    assert loose.edp == loose.energy_pj * loose.latency_cycles
    assert found.worth("all") == pytest.approx(np.sqrt(found.relative("net", "all") * found.relative("one", "all")))
    assert pareto(found)[0] == "rigid"
    assert pareto(found)[-1] == "all"
    assert explore({"net": LAYERS, "one": LAYERS[:1]}, BASE, choices, samples=30, runner=Runner(workers=1)) == found
    with pytest.raises(InputError, match="must have been asked"):
        found.of("net", "none")


def test_what_adds_area_without_gain_does_not_pay():
    def outcome(choice, latency, added):
        return Outcome("net", choice, BASE.flexibility, latency, 1.0, 10.0 + added, added, 1)

    told = (("a", 10.0, 0.0), ("b", 12.0, 1.0), ("c", 5.0, 2.0), ("d", 5.0, 3.0), ("e", 4.0, 4.0))
    found = Exploration(tuple(outcome(*each) for each in told), "a", "latency")
    assert pareto(found) == ("a", "c", "e")


def test_exploring_needs_networks_choices_and_a_statement():
    with pytest.raises(InputError, match="must be given networks and choices"):
        explore({}, BASE, class_choices(BASE))
    with pytest.raises(InputError, match="must be stated"):
        explore({"net": LAYERS}, preset("edge-s1"), {"a": BASE.flexibility})
    with pytest.raises(InputError, match="must have layers"):
        explore({"net": []}, BASE, class_choices(BASE))
    with pytest.raises(InputError, match="must be a known mapper"):
        explore({"net": LAYERS}, BASE, {"a": BASE.flexibility}, mapper="none")

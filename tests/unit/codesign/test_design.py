"""Designs: machines within a budget, their mappings, and what no machine within it can beat."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.codesign import DesignProblem, Nests, budget_bound, design, read_limits
from tilewright.codesign.problem import LayerFront, composed
from tilewright.codesign.screening import HardwareBoxes, bounds_at, values_at
from tilewright.codesign.session import Session
from tilewright.cost import DenseModel
from tilewright.cost.reference import walk
from tilewright.hardware import (
    Accelerator,
    DesignSpace,
    NumberRange,
    find_design_space,
    load_accelerator,
    preset,
    with_numbers,
)
from tilewright.jobs import Runner
from tilewright.mapping import Layout, MapSpace
from tilewright.workload import UniqueOperator, convolution, matmul

LAYERS = [UniqueOperator(matmul("product", 12, 8, 10), 2, ("product",)),
          UniqueOperator(convolution("window", in_channels=4, out_channels=6, kernel=3, out_size=5), 1, ("window",))]


def problem(within: str = "area=0.02mm2", objective: str = "latency") -> DesignProblem:
    whole = find_design_space("edge-s2")
    ranges = {key: NumberRange(one.low, min(one.high, 4096.0), one.step) for key, one in whole.ranges.items()}
    return DesignProblem.of([(LAYERS, 1.0)], DesignSpace(whole.accelerator, ranges), read_limits(within),
                            objective=objective)


@pytest.mark.sample(2)
@pytest.mark.parametrize("objective", ["latency", "energy", "edp", "latency-area"])
def test_a_design_is_within_its_limits_and_the_oracle_confirms_what_its_layers_cost(objective: str) -> None:
    asked = problem(objective=objective)
    found = design(asked, samples=400)
    assert found.machine.area_um2 <= 0.02e6
    assert found.samples <= 400
    assert found.bound <= found.score
    latency = energy = 0.0
    for operator, weight in zip(asked.layers, asked.weights, strict=True):
        walked = walk(operator, found.machine, found.layers[operator.name].mapping)
        latency += weight * float(walked.latency_cycles)
        energy += weight * walked.energy_pj
    assert latency == pytest.approx(found.figures.latency_cycles, rel=1e-12)
    assert energy == pytest.approx(found.figures.energy_pj, rel=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("objective", ["energy", "latency", "edp", "latency-area", "energy-area", "edp-area"])
def test_no_machine_of_a_box_scores_below_its_bound(objective: str) -> None:
    asked, rng = problem("area=0.03mm2,elements=40", objective), np.random.default_rng(3)
    boxes = HardwareBoxes.whole(asked)
    for _ in range(3):
        boxes.split(8, np.inf)
    tried = 0
    for low, high, bound in zip(boxes.low, boxes.high, boxes.bound, strict=True):
        places = rng.integers(low, high + 1)
        chosen = {key: float(column[0]) for key, column in values_at(asked, places[None]).items()}
        session = Session(asked, 400, None, 0, Runner(workers=1))
        session.map([chosen], 50)
        for candidate in session.tried:  # what its mappings need may be a smaller machine, of another box
            if candidate.chosen == chosen and candidate.score < np.inf:
                tried += 1
                assert candidate.score >= bound * (1 - 1e-9)
    assert tried > 10


@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_random_designs_with_random_kept_sets_never_score_below_their_bounds(objective: str) -> None:
    """Not even where each word of the largest tensor is used once, so that what passes memories is best."""
    once = [UniqueOperator(matmul("once", 1, 48, 48), 1, ("once",))]
    asked, rng = replace(DesignProblem.of([(once, 1.0)], find_design_space("edge-s2"), read_limits("area=0.03mm2")),
                         objective=objective), np.random.default_rng(7)
    places = np.floor(np.array([4000.0, 40.0, 60.0]) * rng.random((12, 3))).astype(np.int64)
    places = places[np.asarray(asked.budget.excess(values_at(asked, places)) <= 0)]
    (bounds, _), columns = bounds_at(asked, places), values_at(asked, places)
    least, session = budget_bound(asked, 6), Session(asked, None, None, 0, Runner(workers=1))
    kept, near = asked.kept[0], []
    for at, bound in enumerate(bounds):
        chosen = {key: np.full(8, column[at]) for key, column in columns.items()}
        machine = asked.machine({key: column[0] for key, column in chosen.items()})
        for number in {asked.holding(0, machine, int(one)) for one in rng.integers(len(kept), size=24)}:
            batch, layout = asked.map_space(0, machine, number).fitting(rng, 8, 0.9), asked.layout(0, number)
            assert batch.layout.keeps == layout.keeps
            scores = session.score(chosen, [Nests.of(batch.relaid(layout), number)]).score
            assert (scores >= bound * (1 - 1e-9)).all() and bound * (1 + 1e-9) >= least
            near.append(scores.min() / bound)
    assert len(places) > 3 and min(near) < 1.2


def test_what_a_machine_holds_depends_on_layer_kept_set_and_every_room() -> None:
    """It is remembered: what is asked for in any order is as worked out anew."""
    base, plain = find_design_space("edge-s2").accelerator, matmul("plain", 12, 8, 10)

    def roomy(shared: float, weights: float, own: float) -> Accelerator:
        rooms: dict[str, dict[str, Any]] = {"SG": {"capacity_bytes": shared}, "SL": {
            "capacity_bytes": own, "partitions_bytes": (("weights", weights),)}}
        return replace(base, levels=tuple(replace(level, **rooms.get(level.name, {})) for level in base.levels))

    wide = replace(plain, name="wide", tensors=tuple(replace(tensor, word_bits=32) for tensor in plain.tensors))
    asked = DesignProblem.of([([UniqueOperator(one, 1, (one.name,)) for one in (plain, wide)], 1.0)],
                             DesignSpace.as_it_is(roomy(64.0, 64.0, 64.0)), read_limits("area=1mm2"))
    rng, found = np.random.default_rng(4), dict[tuple[int, int], set[int]]()
    for turn in range(800):  # so many that other layers and sets come with the same rooms, and other rooms with these
        layer, number = turn % 2, int(rng.choice([0, 5, 18]))
        machine = roomy(*map(float, rng.choice([2, 4, 8, 16], 3)))
        held = asked.holding(layer, machine, number)
        assert held == asked._holding(layer, machine, number)
        found.setdefault((layer, number), set()).add(held)
    assert max(map(len, found.values())) > 3


def test_boxes_hold_every_machine_within_the_limits() -> None:
    asked, rng = problem("area=0.03mm2,bytes=6000B"), np.random.default_rng(5)
    boxes = HardwareBoxes.whole(asked)
    for _ in range(3):
        boxes.split(8, np.inf)
    sizes = np.array([len(one) for one in asked.space.ranges.values()])
    places = np.floor(sizes ** rng.random((4000, len(sizes)))).astype(np.int64) - 1
    places = places[(places >= [one.place(asked.smallest[key]) for key, one in asked.space.ranges.items()]).all(axis=1)]
    places = places[np.asarray(asked.budget.excess(values_at(asked, places)) <= 0)]
    assert len(places) > 100
    inside = ((places[:, None] >= boxes.low) & (places[:, None] <= boxes.high)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()


def test_a_run_that_is_kept_comes_to_the_same_end_without_searching_again(tmp_path) -> None:
    from tilewright.store import Results

    def run() -> tuple[float, int]:
        with Results(tmp_path / "kept.sqlite", "design") as kept:
            runner = Runner(keeper=kept)
            return design(problem(), samples=200, runner=runner).score, runner.computed

    (first, searched), (second, again) = run(), run()
    assert first == second
    assert searched > 0
    assert again == 0


@pytest.mark.parametrize("method", ["auto", "grid"])
def test_runs_with_other_seeds_share_nothing_that_is_kept(method: str, tmp_path) -> None:
    from tilewright.store import Results

    whole = problem()  # where memories let nothing pass: jobs begin alike but for their seeds
    machine = whole.space.accelerator
    machine = replace(machine, levels=tuple(
        replace(level, always=True) if level in machine.memories else level for level in machine.levels))
    asked = replace(whole, space=DesignSpace(machine, whole.space.ranges))

    def run(seed: int, runner: Runner) -> list[tuple[float, list[object]]]:
        found = design(asked, method, samples=120, seed=seed, runner=runner, proof=0)
        return [(one.score, [front.nests.steps.tolist() for front in one.fronts or ()]) for one in found.tried]

    with Results(tmp_path / "kept.sqlite", "design") as kept:
        first, second = (run(seed, Runner(workers=1, keeper=kept)) for seed in (0, 1))
    assert first != second == run(1, Runner(workers=1))


def test_the_number_of_workers_changes_nothing() -> None:
    one, two = (design(problem(), samples=200, runner=Runner(workers=workers)) for workers in (1, 2))
    assert one.chosen == two.chosen
    assert [step.score for step in one.history] == [step.score for step in two.history]


@pytest.mark.parametrize(("within", "told"), [
    ("area=2", "units um2, mm2"), ("area", "positive number"), ("aera=2mm2", "area"), ("area=-2mm2", "positive number"),
    ("area=0mm2", "positive"), ("elements=3PE", "no unit"), ("area=1um2,area=2um2", "each once"), ("", "known limit"),
    ("power=2", "units"), ("bytes=1KB", "units"), ("area=1e999mm2", "positive"), ("area=nanmm2", "positive number"),
    ("area=٣mm2", "positive number")])
def test_limits_that_cannot_be_read_name_field_and_rule(within: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_limits(within)


def test_a_budget_below_the_smallest_machine_tells_the_least_that_works() -> None:
    with pytest.raises(InputError, match=r"at least \d+.*um2, which the smallest machine that runs all layers takes"):
        design(problem("area=100um2"))
    with pytest.raises(InputError, match="must be one of latency"):
        problem(objective="power")
    with pytest.raises(InputError, match="one for each of the 2 layers"):
        design(problem(), samples=1)


def test_violations_name_the_smallest_cure() -> None:
    asked = problem("area=0.05mm2,elements=8")
    chosen = {("SG", "capacity_bytes"): 4000.0, ("PEs", "instances"): 10.0, ("SL", "capacity_bytes"): 64.0}
    assert (asked.budget.figures(chosen)["elements"], asked.budget.figures(chosen)["bytes"]) == (10, 4000 + 10 * 64)
    told = asked.budget.violations(chosen)
    assert any(one.startswith("elements: 10 where 8 is allowed; within it with ")
               and "PEs.instances 8 in place of 10" in one for one in told)
    (hot,) = problem("power=3mW").budget.violations(chosen, (100.0, 2000.0))  # 20 pJ a cycle of 5 ns
    assert hot == "power: 4mW where 3mW is allowed; within it with a clock of 150 MHz in place of 200"
    budget = problem("power=3mW").budget
    leaking = replace(budget.space.accelerator, compute=replace(budget.space.accelerator.compute, leakage_mw=0.1))
    (hot,) = replace(budget, space=replace(budget.space, accelerator=leaking)).violations(chosen, (100.0, 2000.0))
    assert hot.endswith("a clock of 133.3 MHz in place of 200")  # 1 of the 4 mW leaks, of 10 units, at any clock
    leaking = replace(leaking, compute=replace(leaking.compute, leakage_mw=0.3))
    (hot,) = replace(budget, space=replace(budget.space, accelerator=leaking)).violations(chosen, (100.0, 2000.0))
    assert hot == "power: 4mW where 3mW is allowed; allow 4mW"  # no clock is slow enough
    held = asked.budget.largest({**chosen, ("PEs", "instances"): 1.0}, ("PEs", "instances"))
    assert held is not None
    assert asked.budget.excess({**chosen, ("PEs", "instances"): held}) == 0
    assert asked.budget.excess({**chosen, ("PEs", "instances"): held + 1}) > 0


def test_what_follows_a_number_asks_for_its_share_of_it() -> None:
    base = find_design_space("edge-s2").accelerator
    large, small = ("SG", "capacity_bytes"), ("SL", "capacity_bytes")
    asked = DesignProblem.of([(LAYERS, 1.0)], DesignSpace(
        base, {large: NumberRange(1, 10_000)}, {small: (large, 0.125)}), read_limits("area=1mm2"))
    needs = asked.model(0, asked.layouts[0]).needs(asked.ones(0, 0))
    numbers = needs.numbers(base)
    assert asked.varying(needs)[large] == 8 * numbers[small] > numbers[large] > 0


def test_where_all_takes_too_much_power_the_least_is_taken() -> None:
    asked = problem("power=1uW", "edp")
    nests = Nests(np.ones((2, 1, 1), dtype=np.int32), np.zeros((2, 1, 1), dtype=np.int8), np.zeros(2, dtype=np.int64))
    fronts = [LayerFront(np.array([1e6, 1e5]), np.array([1e6, 1e6]), nests) for _ in asked.layers]
    chosen, figures, score = composed(asked, fronts, 1.0, asked.rows(asked.smallest))
    assert (chosen.tolist(), score) == ([0] * len(fronts), np.inf)
    assert figures.latency_cycles == 1e6 * asked.weights.sum()


@pytest.mark.parametrize("within", ["power=3W", "bytes=20kB"])
@pytest.mark.parametrize("name", ["eyeriss", "simba-like", "edge-s1"])
def test_power_or_bytes_alone_may_be_limited(name: str, within: str) -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space(name), read_limits(within))
    for method in ("auto", "random", "digamma", "grid"):
        found = design(asked, method, samples=40, proof=2, runner=Runner(workers=1))
        assert found.best is None or found.bound <= found.score
        assert found.best is not None or found.rejected


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(("name", "within"), [("edge-s2", "power=30mW"), ("tpu-like", "power=1W")])
def test_where_power_alone_is_limited_slow_machines_are_searched_from_the_start(name: str, within: str,
                                                                                seed: int) -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space(name), read_limits(within))
    found = design(asked, samples=400, seed=seed, runner=Runner(workers=1))
    assert found.best is not None and found.power_mw <= asked.limits[0].most
    assert found.bound <= found.score


@pytest.mark.parametrize("name", ["edge-s2", "edge-s1", "eyeriss"])
def test_arrays_vary_up_to_what_a_layer_can_use_and_the_same_mappings_cost_no_more_there(name: str) -> None:
    small = [UniqueOperator(matmul("product", 2, 3, 2), 1, ("product",)), UniqueOperator(matmul("other", 1, 7, 1), 1,
                                                                                         ("other",))]
    base, rng = find_design_space(name), np.random.default_rng(0)
    assert all(one.high == (2**31 - 1 if key[1] == "instances" else 46_340) for key, one in base.ranges.items()
               if key[1] in ("x", "y", "instances"))
    asked = DesignProblem.of([(small, 1.0)], base, read_limits("power=3W"))
    sides = {key: one for key, one in asked.space.ranges.items() if key[1] in ("x", "y", "instances")}
    assert sides and all(one.high == (96 if key[1] == "instances" else 12) for key, one in sides.items())
    for _ in range(20):
        drawn = {key: float(rng.integers(10, 40) * (8 if key[1] == "instances" else 1)) for key in sides}
        larger, enough = (with_numbers(base.accelerator, base.numbers(one)) for one in (
            drawn, {key: min(value, sides[key].high) for key, value in drawn.items()}))
        for layer in small:
            space, less = MapSpace(layer.operator, larger), MapSpace(layer.operator, enough)
            batch = space.sample(rng, 100)
            moved = batch.relaid(less.layout)
            assert less.contains(moved).all()
            before, after = (DenseModel(layer.operator, machine).score(each) for machine, each in (
                (larger, batch), (enough, moved)))
            assert (after.latency_cycles <= before.latency_cycles).all()
            assert (after.energy_pj <= before.energy_pj * (1 + 1e-12)).all()


def test_arrays_whose_sides_others_follow_are_not_cut() -> None:
    machine, sides = preset("edge-s1"), ("PEs", "x")
    space = DesignSpace(machine, {sides: NumberRange(1, 50)}, {("SG", "bandwidth_words_per_cycle.read"): (sides, 1.0)})
    asked = DesignProblem.of([(LAYERS[:1], 1.0)], space, read_limits("power=3W"))
    assert DesignProblem.of([([UniqueOperator(matmul("few", 2, 3, 2), 1, ("few",))], 1.0)], space,
                            asked.limits).space.ranges[sides].high == 50


def test_equal_layers_of_several_networks_are_one() -> None:
    space = find_design_space("edge-s2")
    both = DesignProblem.of([(LAYERS, 1.0), (LAYERS[:1], 0.5)], space, read_limits("area=1mm2"))
    assert [layer.name for layer in both.layers] == ["product", "window"]
    assert both.weights.tolist() == [3.0, 1.0]


def test_the_written_machine_reads_back() -> None:
    from tilewright.hardware import dump_accelerator

    machine = design(problem(), samples=100).machine
    assert load_accelerator(dump_accelerator(machine)) == machine


@pytest.mark.parametrize("name", ["edge-s1", *(pytest.param(name, marks=pytest.mark.slow) for name in (
    "shidiannao-like", "edge-s3", "eyeriss", "simba-like", "tpu-like"))])
def test_arrays_of_any_kind_are_designed_and_the_oracle_confirms_them(name: str) -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space(name), read_limits("elements=23,bytes=4KiB"))
    found = design(asked, samples=200, runner=Runner(workers=1))
    assert found.machine.compute_instances <= 23
    latency = sum(weight * float(walk(operator, found.machine, found.layers[operator.name].mapping).latency_cycles)
                  for operator, weight in zip(asked.layers, asked.weights, strict=True))
    assert found.bound <= latency == pytest.approx(found.score, rel=1e-12)


def test_mappings_move_between_machines_with_one_row_and_with_several() -> None:
    operator, flat, wide = LAYERS[1].operator, *(with_numbers(preset("edge-s1"), {
        ("PEs", "x"): 6.0, ("PEs", "y"): rows}) for rows in (1.0, 4.0))
    narrow = MapSpace(operator, flat).sample(np.random.default_rng(0), 50)
    layout = Layout.of(operator, wide)
    assert narrow.layout != layout
    moved = narrow.relaid(layout)
    assert [moved.mapping(at, operator.sizes) for at in range(50)] == [
        narrow.mapping(at, operator.sizes) for at in range(50)]
    assert (moved.relaid(narrow.layout).steps == narrow.steps).all()
    assert MapSpace(operator, flat).contains(MapSpace(operator, flat).repair(
        MapSpace(operator, wide).sample(np.random.default_rng(1), 50).relaid(narrow.layout))).all()


@pytest.mark.parametrize("flow", ["nvdla", "row-stationary"])
def test_a_dataflow_holds_on_machines_whose_arrays_have_one_side_and_on_wider_ones(flow: str) -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space("eyeriss"), read_limits("elements=12"), dataflow=flow)
    at = [layer.name for layer in asked.layers].index("window")
    sides = {(x, y): asked.map_space(at, asked.machine({**asked.smallest, ("PEs", "x"): x, ("PEs", "y"): y}))
             for x, y in ((1, 1), (1, 4), (4, 1), (3, 4))}
    loops = {shape: dict(space.constraints.loops) for shape, space in sides.items()}
    assert "PEs.Y" not in loops[4, 1] and loops[4, 1]["PEs.X"] == loops[3, 4]["PEs.X"]
    assert loops[1, 4]["PEs.Y"] == loops[3, 4]["PEs.Y"]  # though the other side has one place
    rows = {shape: space.constraints.factors.get("PEs.Y", {}) for shape, space in sides.items()}
    assert bool(rows[3, 4]) == bool(rows[1, 4]) == (flow == "row-stationary") and not rows[4, 1]
    found = design(asked, samples=200, runner=Runner(workers=1))
    assert found.machine.compute_instances <= 12
    walked = walk(asked.layers[at], found.machine, found.layers["window"].mapping)
    assert float(walked.latency_cycles) == found.layers["window"].cost.latency_cycles

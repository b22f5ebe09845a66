"""Tensors split over scratchpads: nothing is lost, no plan is worse for it, and all of it is carried out."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from random_residency import drawn, least_bytes

import tilewright as tw
from tilewright.allocation import (
    SOLVERS,
    Bus,
    OperationStep,
    Pad,
    PlanSearch,
    Prices,
    ResidencyProblem,
    ResidentTensor,
    in_order,
    plan_record,
    predecessors,
    read_pads,
    standing_bounds,
    verify,
)
from tilewright.allocation.bounds import flow_bound
from tilewright.allocation.depth import _outside
from tilewright.allocation.linear import ProgramOutcome
from tilewright.allocation.network import split_problem, stays_of_parts
from tilewright.allocation.online import OnlineRun
from tilewright.base import InputError

TOLD = {"command": "", "machine": "", "assumptions": (), "solver": "", "objective": ("bytes",)}


def solved(problem, solver="exact"):
    search = PlanSearch(problem, Prices(problem, ("bytes",)), 10.0)
    standing_bounds(search)
    SOLVERS.get(solver)(search)
    return search


def split(problem, parts):
    return split_problem(problem.name, problem.steps, problem.tensors, problem.pads, parts)


def narrow(problem):
    """Return the problem on scratchpads that are each as small as its operations allow."""
    for pad in range(len(problem.pads)):
        while True:
            one = problem.pads[pad]
            fewer = replace(one, capacity_bytes=one.capacity_bytes - one.word_bytes)
            try:
                problem = replace(problem, pads=(*problem.pads[:pad], fewer, *problem.pads[pad + 1:]))
            except InputError:
                break
    return problem


def faults(search):
    return verify(plan_record(search, TOLD, (), 1))


def test_parts_come_to_the_whole_in_whole_words():
    tensors = tuple(ResidentTensor(f"t{size}", size, outside=True) for size in (1, 7, 8, 9, 30, 64))
    steps = (OperationStep("f", (0, 1, 2), (3,)), OperationStep("g", (4, 5), (5,)))
    problem = split_problem("net", steps, tensors, read_pads("4x32B", 4), 4)
    found, made = problem.tensors, problem.steps
    sizes = {one.name: [part.size_bytes for part in found if part.name.split(" part ")[0] == one.name]
             for one in tensors}
    assert sizes == {"t1": [1], "t7": [7], "t8": [8], "t9": [8, 1], "t30": [8, 8, 8, 6], "t64": [16] * 4}
    assert [len(step.touches) for step in made] == [5, 8]
    assert [found[at].name for at in made[0].writes] == ["t9 part 0", "t9 part 1"]
    assert problem.whole is None  # t64 is on no scratchpad whole
    roomy = [split_problem("net", steps, tensors, read_pads("4x64B", 4), parts) for parts in (1, 4, "auto")]
    assert (roomy[0].tensors, roomy[0].steps, roomy[0].whole) == (tensors, steps, None)
    assert roomy[1].whole == roomy[2].whole == roomy[0]


def test_no_plan_is_worse_for_parts_and_all_are_carried_out():
    better = 0
    for kind in ({}, {"across": Bus(8.0, 1.0)}, {"roles": True}):
        for problem in map(narrow, drawn(83, 3, most_steps=6, **kind)):
            whole, parts = solved(problem), solved(split(problem, 3))
            same = PlanSearch(parts.problem, parts.prices)
            same.take("whole", stays_of_parts(problem, parts.problem, whole.stays))
            assert same.prices.first(same.score) == whole.prices.first(whole.score)
            assert faults(same) == faults(parts) == ()
            assert all(faults(solved(parts.problem, rule)) == () for rule in ("naive", "onsram-multi", "colouring"))
            assert parts.closed and parts.prices.first(parts.score) <= whole.prices.first(whole.score)
            better += parts.prices.first(parts.score) < whole.prices.first(whole.score)
    assert better > 0


def test_parts_and_their_tensors_run_in_one_order():
    problem = next(one for one in drawn(83, 40, most_steps=6) if not predecessors(one)[1])
    parts = in_order(split(problem, 3), [1, 0, *range(2, len(problem.steps))])
    assert [step.name for step in parts.whole.steps] == [step.name for step in parts.steps] != [
        step.name for step in problem.steps]
    whole = solved(parts.whole)
    search = PlanSearch(parts, Prices(parts, ("bytes",)))
    search.take("whole", stays_of_parts(parts.whole, parts, whole.stays))
    assert faults(search) == ()


def test_a_relaxation_without_time_leaves_the_naive_plan(monkeypatch):
    monkeypatch.setattr("tilewright.allocation.search.by_mathopt", lambda *_, **__: ProgramOutcome(None, 0, False))
    for parts in (1, 2):
        plan = tw.allocate("lenet5", pads="3x32KB", oversize="cut", solver="lp-bound", split=parts)
        assert plan.record.trace[-1][2] in {"naive", "whole tensors"} and plan.verify() == ()


def test_a_tensor_larger_than_a_scratchpad_lies_on_two():
    tensors = (ResidentTensor("x", 12, outside=True), ResidentTensor("y", 2, leaves=True))
    problem = ResidencyProblem("wide", (OperationStep("f", (0,), (1,)),), tensors, read_pads("2x12B"))
    narrow = replace(split(problem, 2), pads=read_pads("2x8B"))
    found = solved(narrow)
    assert {stay.pad for stay in found.stays if found.problem.tensors[stay.tensor].name.startswith("x")} == {0, 1}
    assert found.prices.first(found.score) == 14 == least_bytes(narrow)
    with pytest.raises(InputError, match="all its tensors"):
        replace(problem, pads=read_pads("2x8B"))


def test_a_network_is_split_where_that_is_asked(tmp_path):
    whole, parts = (tw.allocate("resnet18", pads="3x32KB", oversize="cut", split=split) for split in (1, 2))
    assert parts.verify() == ()
    assert parts.bound == parts.cost.dram_bytes == 1_313_960 < whole.cost.dram_bytes
    fits = tw.allocate("minerva", pads="3x80KB", oversize="refuse", split=8)
    assert len({stay.pad for stay in fits.residency if fits.record.tensors[stay.tensor].name.startswith("fc0.W")}) > 1
    for wrong, field in (({"split": 257}, "--split"), ({"split": "half"}, "--split"),
                         ({"split": 2, "export_tflite": tmp_path / "plan"}, "--export-tflite")):
        with pytest.raises(InputError) as told:
            tw.allocate("resnet18", pads="3x32KB", oversize="cut", **wrong)
        assert told.value.field == field


def test_parts_of_one_size_take_the_place_of_one_another():
    plan = tw.allocate("resnet18", pads="3x32KB", oversize="cut", split=4, solver="online")
    sizes = [plan.record.tensors[stay.tensor].size_bytes for stay in plan.residency]
    places = {stay.address % 8192 for stay, size in zip(plan.residency, sizes, strict=True) if size == 8192}
    assert sizes.count(8192) > len(sizes) / 2 and places == {0} and plan.verify() == ()


def test_places_are_in_whole_words_whatever_size_most_tensors_have():
    sizes = {"small": 3, "large": 12, **{f"six{at}": 6 for at in range(12)}}
    tensors = tuple(ResidentTensor(name, size, outside=True) for name, size in sizes.items())
    steps = (OperationStep("first", (0, 2, 3), ()), OperationStep("second", (0, 1), ()),
             *(OperationStep(f"step{at}", (at,), ()) for at in range(4, 14)))
    problem = ResidencyProblem("words", steps, tensors, (*read_pads("2x6B"), Pad("words", 32, word_bytes=4)))
    for plan in OnlineRun(problem, Prices(problem, ("bytes",))).plans():
        search = PlanSearch(problem, Prices(problem, ("bytes",)))
        search.take("online", plan)
        assert faults(search) == ()


def test_a_plan_of_whole_tensors_is_taken_where_that_of_parts_is_worse():
    whole, parts = (tw.allocate("mobilenet-v2", pads="2x100KB", oversize="cut", solver="onsram-multi", split=split)
                    for split in (1, 2))
    assert parts.cost.dram_bytes == whole.cost.dram_bytes == 1_952_680
    assert parts.record.trace[-1][2] == "whole tensors" and parts.verify() == ()


def test_what_bounds_whole_tensors_bounds_their_parts_by_bytes_unless_room_is_left_in_words():
    above, loose = 0, 0
    for problem in map(narrow, (*drawn(89, 20, most_steps=6), *drawn(5013, 1, most_steps=7, roles=True))):
        parts = split(problem, 3)
        best, whole = solved(replace(parts, whole=None)), PlanSearch(problem, Prices(problem, ("bytes",)))
        standing_bounds(whole)
        whole.raise_bound("flow", flow_bound(problem, whole.prices, lambda: False)[0])
        search = PlanSearch(parts, Prices(parts, ("bytes",)), whole=whole)
        standing_bounds(search)
        assert best.closed and search.bound <= best.score
        held = search.divides and search.bound > search.prices.compulsory
        search.take_bounds(whole)
        above += held and search.bound <= best.score
        loose += search.bound > best.score
        assert search.bound <= best.score or not search.divides
    assert above > 3 and loose == 1, (above, loose)


def test_parts_are_guided_and_bounded_by_the_flow_of_their_tensors(monkeypatch):
    asked = {"pads": "3x32KB", "oversize": "cut", "split": 4}
    best = tw.allocate("resnet18", **asked)
    monkeypatch.setattr("tilewright.allocation.order.MOST_STATES", 0)
    monkeypatch.setattr("tilewright.allocation.search.MOST_CELLS", 0)
    monkeypatch.setattr("tilewright.allocation.bounds.capacity_bound", lambda problem, prices: prices.compulsory)
    guided = tw.allocate("resnet18", **asked)
    assert best.record.proven and guided.verify() == ()
    assert guided.record.bounds["capacity"] < guided.record.bounds["flow"] == guided.bound <= best.bound
    assert best.cost.dram_bytes <= guided.cost.dram_bytes <= 1.05 * best.cost.dram_bytes


def test_a_run_moves_what_comes_from_before_it_and_what_is_read_after_it():
    """Of a chain of three: weights come in, a result comes or goes where the run does not hold its maker and reader."""
    sizes = {0: 1, 1: 10, 2: 100, 3: 1000}
    steps = (OperationStep("a", (0,), (1,)), OperationStep("b", (1,), (2,)), OperationStep("c", (2,), (3,)))
    slices = SimpleNamespace(tensors=[ResidentTensor(f"t{at}", size, outside=at == 0, leaves=at == 3)
                                      for at, size in sizes.items()])
    users = {0: [0], 1: [0, 1], 2: [1, 2], 3: [2]}
    operations = [SimpleNamespace(step=step) for step in steps]
    assert [_outside(slices, operations, users, first, end) for first, end in (
        (0, 3), (0, 2), (0, 1), (1, 2), (1, 3), (2, 3))] == [1001, 101, 11, 110, 1010, 1100]

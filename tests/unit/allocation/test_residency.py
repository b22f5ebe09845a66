"""Plans for scratchpads: the best there are by trying everything, never below a bound, and carried out word by word."""

import json
import struct
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations

import pytest
from random_residency import drawn, least_bytes

import tilewright as tw
from tilewright.allocation import (
    SOLVERS,
    Bus,
    PlanRecord,
    PlanSearch,
    Prices,
    ResidencyProblem,
    Stay,
    best_order,
    cut_tensors,
    in_order,
    network_problem,
    offline_plan,
    packed,
    plan_record,
    predecessors,
    read_pads,
    read_plan,
    reordered,
    role_bound,
    search,
    simulate,
    standing_bounds,
    verify,
)
from tilewright.allocation import (
    OperationStep as Op,
)
from tilewright.allocation import (
    ResidentTensor as Held,
)
from tilewright.allocation.addresses import proven_conflict
from tilewright.allocation.bounds import capacity_bound, flow_bound
from tilewright.allocation.online import OnlineRun
from tilewright.allocation.order import best_sets
from tilewright.allocation.search import RULES
from tilewright.allocation.stays import RESIDENCY_METRICS
from tilewright.base import InputError, has_extra
from tilewright.reproduce.spm_savings import lstm
from tilewright.workload import tensor_graph, zoo

WAY = Bus(8.0, 1.0)
KINDS = ({}, {"across": WAY}, {"roles": True}, {"roles": True, "across": WAY})
TOLD = {"command": "", "machine": "", "assumptions": (), "solver": "exact"}
QUICK = [name for name in SOLVERS if name not in ("cp-sat", "milp", "lp-bound")]


def solved(problem, solver="exact", objective=("bytes",), seconds=60.0) -> PlanSearch:
    search = PlanSearch(problem, Prices(problem, objective), seconds)
    standing_bounds(search)
    SOLVERS.get(solver)(search)
    return search


def recorded(search) -> PlanRecord:
    return plan_record(search, {**TOLD, "objective": search.prices.metrics}, (), 1)


@cache
def network(name, pads, across=None):
    return network_problem(tensor_graph(zoo.load(name)), read_pads(pads, across=across), oversize="cut")


def check_least(count, seed, **how):
    for kind in KINDS:
        for problem in drawn(seed, count, **kind, **how):
            search = solved(problem)
            assert search.prices.first(search.score) == least_bytes(problem), problem
            assert search.closed, problem


def check_solvers(count, seed, names):
    """No plan is below a bound or better than exact, and every one is carried out as it says."""
    for kind in KINDS:
        for problem in drawn(seed, count, most_steps=10, **kind):
            best = solved(problem)
            for name in names:
                search = solved(problem, name)
                assert verify(recorded(search)) == (), (name, problem)
                assert search.score >= best.bound, (name, problem)
                assert search.prices.named(search.score) >= search.prices.named(best.score), (name, problem)
                assert search.score >= search.bound, (name, problem)


def test_exact_is_the_best_by_trying_everything():
    check_least(6, 5)


@pytest.mark.slow
def test_exact_is_the_best_by_trying_everything_on_many():
    check_least(125, 17, most_steps=7)


def test_all_plans_are_carried_out_and_none_is_below_a_bound():
    check_solvers(5, 3, QUICK)


@pytest.mark.slow
def test_all_plans_are_carried_out_on_many():
    check_solvers(2_500, 11, QUICK)


def test_stays_without_addresses_together_make_a_plan_in_which_some_come_again():
    tensors = Held("x", 6, outside=True), Held("y", 5, outside=True)
    steps = [Op(str(at), reads, ()) for at, reads in enumerate([(0,), (1,), (0,)])]
    problem = ResidencyProblem("waits", tuple(steps), tensors, read_pads("1x10B"))
    stays = Stay(0, 0, 0, 0, "load"), Stay(0, 0, 1, 2, "load"), Stay(1, 0, 1, 1, "load")
    search = PlanSearch(problem, Prices(problem, ("bytes",)))
    assert search.offer("hand", stays) and set(proven_conflict(problem, stays)) == set(stays[1:])
    assert search.prices.first(search.score) == 6 + 5 + 6
    assert verify(recorded(search)) == ()


def test_every_plan_of_addresses_given_as_tensors_come_holds_and_they_save_most_of_what_can_be():
    spent = dict.fromkeys(("online", "exact", "naive"), 0.0)
    for problem in drawn(7, 25, most_steps=12):
        prices = Prices(problem, ("bytes",))
        for plan in OnlineRun(problem, prices).plans():
            search = PlanSearch(problem, prices)
            search.take("online", plan)
            assert verify(recorded(search)) == ()
        for name in spent:
            spent[name] += prices.first(solved(problem, name).score) - prices.first(prices.compulsory)
    assert spent["online"] - spent["exact"] < 0.03 * (spent["naive"] - spent["exact"])


def test_programs_agree_with_exact():
    for kind in KINDS[:2]:
        for problem in drawn(23, 3, **kind):
            best = solved(problem)
            for name in ("milp", "cp-sat", "lp-bound"):
                search = solved(problem, name)
                assert verify(recorded(search)) == ()
                assert search.bound <= best.score
                assert name == "lp-bound" or search.prices.named(search.score) == search.prices.named(best.score)


@pytest.mark.parametrize("objective", [*((one,) for one in RESIDENCY_METRICS), (
    "latency", "energy"), ("bytes", "energy")])
def test_every_objective_is_proven_and_follows_from_the_transfers(objective):
    for problem in drawn(31, 6, across=WAY):
        search = solved(problem, objective=objective)
        assert verify(recorded(search)) == ()
        assert search.score >= search.bound >= search.prices.compulsory


def test_more_room_never_costs_more():
    for problem in drawn(41, 10):
        scores = []
        for more in (0, 4, 12, 200):
            pads = tuple(replace(pad, capacity_bytes=pad.capacity_bytes + more) for pad in problem.pads)
            scores.append(solved(replace(problem, pads=pads)))
        firsts = [search.prices.first(search.score) for search in scores]
        assert firsts == sorted(firsts, reverse=True)
        assert firsts[-1] == scores[-1].prices.first(scores[-1].prices.compulsory)


# Facts of `allocation.md`, section 7: trials by CP-SAT on the same graphs.
TRIALS = [("vgg16", 32, 2_578_040, 527_016, 527_016), ("resnet18", 32, 3_775_144, 673_960, 1_364_136),
          ("resnet50", 32, 9_826_472, 1_652_904, 2_963_624)]


@pytest.mark.parametrize(("name", "kilobytes", "naive", "compulsory", "least"), TRIALS)
def test_networks_move_what_trials_found(name, kilobytes, naive, compulsory, least):
    problem = network(name, f"3x{kilobytes}KB")
    found, first = solved(problem), solved(problem, "naive")
    assert [first.score, found.prices.compulsory, found.score, found.bound] == [
        first.prices.unit * naive, found.prices.unit * compulsory, found.prices.unit * least, found.prices.unit * least]


@pytest.mark.parametrize(("name", "moves"), [("vgg16", 0), ("resnet18", 0), ("resnet50", 925_696)])
def test_the_thesis_counts_a_constant_and_transitions_within_lives(name, moves):
    problem = network(name, "3x256KB")
    search = solved(problem, objective=("thesis",))
    ends = sum(tensor.size_bytes * ((at[0] > 0) + (at[-1] < len(problem.steps) - 1))
               for tensor, at in zip(problem.tensors, problem.touches, strict=True))
    assert search.closed
    assert search.prices.first(search.score) - ends == moves


def test_addresses_are_found_where_pads_hold_just_enough():
    search = solved(network("mobilenet-v2", "3x256KB"))
    assert search.closed
    assert search.prices.first(search.score) == 2_410_920
    assert verify(recorded(search)) == ()


def test_a_chain_by_hand():
    """Two operations, 8 bytes from one to the next: kept where there is room, else stored and loaded again."""
    tensors = (Held("x", 4, outside=True), Held("a", 8), Held("b", 4),
               Held("y", 8, leaves=True))
    steps = (Op("f", (0,), (1,), 10), Op("g", (0,), (2,), 10), Op("h", (1, 2), (3,), 10))
    wide = solved(ResidencyProblem("hand", steps, tensors, read_pads("20B", dram=Bus(1.0))), objective=("latency",))
    assert wide.prices.first(wide.score) == 30 + 4 + 8
    narrow = ResidencyProblem("hand", (*steps[:2], Op("h", (1,), (3,), 10)), tensors,
                              read_pads("16B", dram=Bus(1.0)))
    assert solved(narrow).score == solved(narrow).prices.compulsory
    tight = replace(narrow, pads=read_pads("12B", dram=Bus(1.0)), tensors=(
        *tensors[:3], Held("y", 4, leaves=True)))
    assert solved(tight).prices.first(solved(tight).score) == 4 + 4 + 8 + 8


def test_bounds_of_capacity_are_between_what_must_move_and_the_best():
    tighter = [0, 0]
    for kind in (*KINDS, {"roles": "apart"}, {"roles": "apart", "across": WAY}):
        for problem in drawn(47, 20, most_steps=10, **kind):
            prices = Prices(problem, ("bytes",))
            bounds = [prices.first(one) for one in (
                prices.compulsory, role_bound(problem, prices), capacity_bound(problem, prices))]
            best = solved(problem)
            assert best.closed
            if has_extra("cp-sat"):
                bounds.append(prices.first(flow_bound(problem, prices, lambda: False)[0]))
            assert [*bounds, best.prices.first(best.score)] == sorted([*bounds, best.prices.first(best.score)])
            for at in (0, 1):
                tighter[at] += bounds[at] < bounds[at + 1]
    assert min(tighter) > 5, tighter


def test_a_store_counts_once_in_a_bound_for_all_gaps_until_the_next_write():
    """What is written at 0, read at 2 and written again at 4 leaves in both gaps: stored once, loaded twice."""
    tensors = (Held("x", 1, outside=True), Held("state", 8), Held("a", 9, leaves=True), Held("b", 1, leaves=True),
               Held("c", 9, leaves=True), Held("d", 1, leaves=True))
    steps = (Op("make", (0,), (1,)), Op("big", (0,), (2,)), Op("read", (1,), (3,)), Op("large", (0,), (4,)),
             Op("again", (1,), (1,)), Op("end", (1,), (5,)))
    problem = ResidencyProblem("twice", steps, tensors, read_pads("10B", dram=Bus(1.0)))
    prices = Prices(problem, ("bytes",))
    assert prices.first(capacity_bound(problem, prices)) == 1 + 20 + 8 + 8 < least_bytes(problem) == 1 + 20 + 8 + 8 + 8


def test_transfers_hide_behind_operations_as_far_as_addresses_allow():
    for problem in drawn(53, 15, most_steps=9):
        search = solved(problem)
        plan = recorded(search)
        over = simulate(problem, search.stays, 1)
        more = simulate(problem, search.stays, 3)
        busy = sum(one.end - one.start for one in over.events if one.kind != "compute")
        assert busy == plan.tally.dma_cycles
        assert max(busy, plan.tally.compute_cycles) <= over.cycles <= plan.tally.latency_cycles
        assert more.cycles <= plan.tally.latency_cycles
        used: list[tuple[int, int]] = sorted((one.start, one.end) for one in over.events if one.kind != "compute")
        assert all(one[1] <= other[0] for one, other in pairwise(used))
        for one in over.events:
            ends = [other.end for other in over.events if other.kind == "compute" and other.subject == one.step]
            starts = [other.start for other in over.events if other.kind == "compute" and other.subject == one.step]
            assert one.kind == "compute" or (one.start >= ends[0] if one.kind == "store" else one.end <= starts[0])


def test_nothing_comes_to_a_place_before_what_was_there_is_used_and_stored():
    seen = 0
    for problem in drawn(59, 40, most_steps=9):
        search = solved(problem)
        events = simulate(problem, search.stays, 2).events
        at = {(one.kind, one.subject, one.step): one for one in events}
        placed = [(stay, stay.address, stay.address + problem.rooms[stay.tensor][stay.pad])
                  for stay in search.stays]
        for stay, low, high in placed:
            after = at["compute", stay.first, stay.first] if stay.begins == "made" else at[
                stay.begins, stay.tensor, stay.first]
            for other, begin, end in placed:
                if other.pad == stay.pad and other.last < stay.first and low < end and begin < high:
                    stored = [one for one in events if one.kind == "store" and one.subject == other.tensor
                              and other.first <= one.step <= other.last]
                    assert all(one.end <= after.start for one in (at["compute", other.last, other.last], *stored))
                    seen += len(stored)
    assert seen > 10


def test_plans_made_from_stays_without_addresses_are_carried_out():
    cut = 0
    for problem in (one for kind in KINDS for one in drawn(71, 12, most_steps=12, **kind)):
        search = PlanSearch(problem, Prices(problem, ("bytes",)))
        stays = RULES["greedy"](problem, search.prices)
        search._place_anew("greedy", stays)
        assert verify(recorded(search)) == ()
        cut += len(search.stays) > len(stays)
    assert cut > 3


def test_the_best_sets_are_the_best_where_moves_are_free():
    alone = [problem for problem in drawn(61, 120) if len(problem.pads) == 1]
    for problem in (*drawn(61, 6, across=WAY), *alone):
        prices = Prices(problem, ("bytes",))
        found = best_sets(problem, prices)
        assert found is not None
        assert prices.first(found.score) == least_bytes(problem)
        for at, held in enumerate(found.sets):
            assert packed(problem, at, held) is not None


def test_orders_keep_what_comes_before_what_and_change_no_compulsory_byte():
    changed = 0
    for problem in drawn(67, 20, most_steps=10):
        found = reordered(problem, ("bytes",), 5.0)
        where = {step.name: at for at, step in enumerate(found.steps)}
        assert sorted(where) == sorted(step.name for step in problem.steps)
        for at, before in enumerate(predecessors(problem)):
            assert all(where[problem.steps[one].name] < where[problem.steps[at].name] for one in before)
        assert Prices(found, ("bytes",)).compulsory == Prices(problem, ("bytes",)).compulsory
        assert verify(recorded(solved(found))) == ()
        changed += found.steps != problem.steps
    assert changed > 1


def orders_of(problem):
    """Give all orders that are allowed."""
    before = predecessors(problem)
    return [order for order in permutations(range(len(before))) if all(
        set(before[at]) <= set(order[:place]) for place, at in enumerate(order))]


def turns():
    """Return two branches that are made in turns: one after the other, nothing has to leave."""
    tensors = (Held("x", 4, outside=True), Held("a", 8), Held("b", 8), Held("c", 2), Held("d", 2),
               Held("y", 4, leaves=True))
    steps = (Op("f", (0,), (1,)), Op("g", (0,), (2,)), Op("h", (1,), (3,)), Op("i", (2,), (4,)), Op("j", (3, 4), (5,)))
    return ResidencyProblem("turns", steps, tensors, read_pads("14B"))


def stored_as_it_leaves():
    """Return a tensor that is written twice and leaves the network: that it is not kept costs one load, no store."""
    tensors = (Held("x", 4, outside=True), Held("y", 8, leaves=True), Held("b", 8), Held("c", 8),
               Held("z", 2, leaves=True))
    steps = (Op("f", (0,), (1,)), Op("g", (1,), (1,)), Op("h", (0,), (2,)), Op("i", (2,), (3,)), Op("j", (1, 3), (4,)))
    return ResidencyProblem("leaves", steps, tensors, read_pads("18B"))


def tight(problem):
    """Return the problem on one scratchpad that has just the room that its largest operation needs."""
    least = max(sum(problem.tensors[one].size_bytes for one in step.touches) for step in problem.steps)
    return replace(problem, pads=read_pads(f"{least}B"))


def test_the_best_order_is_the_best_of_all_by_trying_each():
    better, stored = 0, 0
    for problem in (turns(), stored_as_it_leaves(), *map(tight, drawn(79, 120, most_steps=6))):
        orders = orders_of(problem)
        if not 1 < len(orders) < 30:
            continue
        prices = Prices(problem, ("bytes",))
        found = best_order(problem, prices, predecessors(problem))
        scores = {order: least_bytes(in_order(problem, order)) for order in orders}
        assert prices.first(found.score) == min(scores.values()) == scores[found.order]
        better += min(scores.values()) < scores[orders[0]]
        stored += found.score > prices.compulsory
    assert min(better, stored) > 5, (better, stored)


def test_an_lstm_whose_weights_do_not_fit_together_runs_all_products_of_inputs_first():
    tensors, steps = lstm()
    problem = ResidencyProblem("LSTM", tuple(steps), tuple(tensors), read_pads("1x16KB", 2))
    prices = Prices(problem, ("bytes",))
    given, best = best_sets(problem, prices), best_order(problem, prices, predecessors(problem))
    assert prices.first(given.score) == 132_288 > prices.first(best.score) == prices.first(prices.compulsory) == 17_600
    assert {steps[at].name for at in best.order[:8]} == {f"input{at}" for at in range(8)}


def test_a_small_graph_is_proven_in_every_order(monkeypatch):
    monkeypatch.setattr("tilewright.api.residing.network_problem", lambda *_, **__: turns())
    given, sought = (tw.allocate("minerva", pads="14B", order=order).record for order in (False, True))
    assert given.score > sought.score == 8 == sought.bound
    assert sought.proven and sought.bounds == {"all orders": 8}
    assert "of any order" in sought.assumptions[-1]


def test_a_bound_of_all_orders_that_is_not_met_leaves_that_of_the_order_shown(monkeypatch):
    asked = {"pads": "in=40KB,weights=40KB,out=40KB", "oversize": "cut", "order": True}
    met = tw.allocate("ncf", **asked).record
    monkeypatch.setattr("tilewright.api.residing.role_bound", lambda *_: 0)
    loose = tw.allocate("ncf", **asked).record
    for plan, orders in ((met, "any order"), (loose, "the order shown")):
        assert plan.proven and plan.score == plan.bound == 250_115
        assert f"those of {orders}." in plan.assumptions[-1]
    alone = tw.allocate("lenet5", **asked).record
    assert alone.proven and "No other order" in alone.assumptions[-1]


@pytest.mark.parametrize(("name", "pads", "most"), [("squeezenet", "3x64KB", 0.7),
                                                    pytest.param("gnmt", "3x8KB", 0.94, marks=pytest.mark.slow),
                                                    pytest.param("bert-base", "4x256KB", 0.62, marks=pytest.mark.slow),
                                                    pytest.param("alphagozero", "3x128KB", 1.0, marks=pytest.mark.slow),
                                                    pytest.param("resnet50", "3x128KB", 0.95, marks=pytest.mark.slow),
                                                    pytest.param("googlenet", "3x256KB", 0.95, marks=pytest.mark.slow)])
def test_an_order_that_is_sought_never_loses(name, pads, most):
    given, sought = (tw.allocate(name, pads=pads, oversize="cut", order=order) for order in (False, True))
    assert given.record.proven
    assert sought.cost.dram_bytes <= most * given.cost.dram_bytes
    assert sought.verify() == ()


@pytest.mark.parametrize(("pads", "field"), [("3x0KB", "--pads"), ("left=2KB", "--pads"), ("3xlots", "--pads"),
                                             ("99x2KB", "--pads"), ("in=2KB,weights=2KB", "--pads"), ("", "--pads")])
def test_wrong_scratchpads_are_told(pads, field):
    with pytest.raises(InputError, match=field):
        network_problem(tensor_graph(zoo.load("alexnet")), read_pads(pads), oversize="cut")


def test_tensors_are_cut_in_half_where_one_operation_has_more_of_them_than_there_are_scratchpads():
    tensors = tuple(Held(name, 100, outside=name != "sum") for name in ("a", "b", "c", "sum"))
    pads = read_pads("3x64B", word_bytes=16)
    cut, told = cut_tensors(tensors, [Op("sum", (0, 1, 2), (3,))], pads)
    assert sorted(one.size_bytes for one in cut) == [32, 32, 64, 64] and len(told) == 4  # the fewest that fit
    assert recorded(solved(ResidencyProblem("sum", (Op("sum", (0, 1, 2), (3,)),), cut, pads))).proven
    tensors = tuple(Held(str(at), 1, outside=True) for at in range(9))
    assert cut_tensors(tensors, [Op("many", tuple(range(9)), ())], read_pads("2B")) == (tensors, ())  # none can be less


def test_what_can_never_be_resident_is_told():
    with pytest.raises(InputError, match=r"conv1.*206,495|conv1.*bytes"):
        network_problem(tensor_graph(zoo.load("alexnet")), read_pads("3x32KB"))
    tensors = (Held("a", 4), Held("b", 4))
    with pytest.raises(InputError, match="circle"):
        ResidencyProblem("loop", (Op("f", (1,), (0,)), Op("g", (0,), (1,))), tensors, read_pads("64B"))
    with pytest.raises(InputError, match="size"):
        ResidencyProblem("none", (Op("f", (0,), ()),), (Held("a", 0, outside=True),), read_pads("64B"))


def test_objectives_that_are_none_are_told():
    for wrong in (("byte",), ("bytes", "bytes"), ()):
        with pytest.raises(InputError, match="objective"):
            Prices(network("alexnet", "3x32KB"), wrong)


def test_plans_are_read_as_they_were_written(tmp_path):
    plan = tw.allocate("alexnet", pads="3x32KB", oversize="cut", across="64B/cycle")
    again = tw.open_plan(plan.write(tmp_path / "plan.json"))
    assert again.record == plan.record
    assert again.verify() == ()
    with pytest.raises(InputError, match="kind"):
        read_plan("{}", "it")


def test_the_same_call_goes_on_from_the_plan_in_its_folder(tmp_path):
    asked = {"pads": "3x32KB", "oversize": "cut", "out": tmp_path}
    first = tw.allocate("resnet18", **asked, solver="exact")
    after = tw.allocate("resnet18", **asked, solver="naive")
    assert after.cost.dram_bytes == first.cost.dram_bytes
    assert after.record.trace[0][2] == "the plan before"


def test_an_order_that_was_found_is_gone_on_from(tmp_path, monkeypatch):
    asked = {"pads": "3x64KB", "oversize": "cut", "order": True, "out": tmp_path}
    first = tw.allocate("squeezenet", **asked)
    monkeypatch.setattr("tilewright.api.residing.reordered", lambda problem, *_: problem)
    after = tw.allocate("squeezenet", **asked, solver="naive")
    assert after.cost.dram_bytes == first.cost.dram_bytes == 796_936
    assert after.record.steps == first.record.steps and after.record.trace[0][2] == "the plan before"


def test_the_product_and_the_peak():
    plan = tw.allocate("alexnet", pads="3x32KB", oversize="cut", objective="edp")
    assert plan.record.proven
    assert plan.record.score == plan.cost.latency_cycles * plan.cost.energy_pj
    assert plan.verify() == ()
    peak = tw.allocate("matmul:M=64,N=32,K=16", pads="1x8KB", objective="peak")
    assert (peak.record.score, peak.bound) == (64 * 16 + 32 * 16 + 64 * 32, 64 * 16 + 32 * 16 + 64 * 32)


def test_a_capacity_that_was_not_shown_to_be_too_small_is_not_told_to_be(monkeypatch):
    asked = {"pads": "3x40KB", "oversize": "cut", "objective": "peak"}
    least, exact = tw.allocate("lenet5", **asked).record.score, SOLVERS.get("exact")
    monkeypatch.setitem(SOLVERS._members, "exact", lambda search: (
        exact(search) if search.problem.pads[0].capacity_bytes >= 2 * least else None))  # else ended by the time
    found = tw.allocate("lenet5", **asked)
    assert found.bound <= least < found.record.score and not found.record.proven


def offline(path):
    """Read an offline plan as TensorFlow Lite Micro does: integers of 32 bits, all tensors after the third."""
    version, subgraphs, count, *offsets = struct.unpack(f"<{path.stat().st_size // 4}i", path.read_bytes())
    assert (version, subgraphs, count) == (1, 1, len(offsets))
    told = json.loads(path.with_name(f"{path.name}.json").read_text())
    assert told["metadata"] == "OfflineMemoryAllocation"
    assert offsets == [one["offset"] for one in told["tensors"]]
    return told["tensors"], offsets


def test_an_offline_plan_overlaps_nothing_that_an_arena_holds_at_one_time(tmp_path):
    file, left = tmp_path / "plan.bin", set()
    for name, pads in (("resnet18", "3x32KB"), ("lenet5", "1x1MB")):
        plan = tw.allocate(name, pads=pads, word=16, oversize="cut", solver="belady", export_tflite=file)
        tensors, offsets = offline(file)
        problem, ends = plan.record.problem, len(plan.record.steps) - 1
        held = {}
        for at, (one, offset) in enumerate(zip(problem.tensors, offsets, strict=True)):
            stays = [stay for stay in plan.residency if stay.tensor == at]
            assert offset == -1 or not (one.weights or len(stays) > 1)
            assert (offset == -1) == bool(tensors[at]["why"])
            left.add(tensors[at]["why"])
            if offset >= 0:
                place = sum(pad.capacity_bytes for pad in problem.pads[:stays[0].pad]) + stays[0].address
                assert (offset, offset % 16, tensors[at]["size_bytes"]) == (place, 0, one.size_bytes)
                uses = problem.touches[at]
                held[at] = (0 if one.outside else uses[0], ends if one.leaves else uses[-1])
        assert any(problem.tensors[at].outside for at in held) or pads == "3x32KB"
        for one, (first, last) in held.items():
            for other, (begin, end) in held.items():
                if one < other and first <= end and begin <= last:
                    low, high = sorted((offsets[at], problem.tensors[at].size_bytes) for at in (one, other))
                    assert low[0] + low[1] <= high[0], (tensors[one], tensors[other])
    assert {"a constant", "larger than a scratchpad", "not at one place for its whole life", ""} <= left


def test_what_an_arena_holds_from_its_beginning_shares_no_place_and_tiles_have_no_offline_plan():
    tensors = (Held("x", 8, outside=True), Held("a", 8), Held("z", 8, outside=True), Held("y", 8, leaves=True))
    steps = (Op("f", (0,), (1,)), Op("g", (1, 2), (3,)))
    found = recorded(solved(ResidencyProblem("late", steps, tensors, read_pads("24B"))))
    x, a, z, y = offline_plan(found)
    assert min(x.offset, a.offset, y.offset) >= 0
    late = next(stay.address for stay in found.residency if stay.tensor == 2)
    assert (z.offset == -1) == (late in (x.offset, a.offset))
    moved = tuple(replace(stay, address={0: 0, 1: 8, 2: 0, 3: 16}[stay.tensor]) for stay in found.residency)
    assert [one.offset for one in offline_plan(replace(found, residency=moved))] == [0, 8, -1, 16]
    with pytest.raises(InputError, match="without tiles"):
        offline_plan(replace(found, steps=(replace(steps[0], name="f #0"), steps[1])))


@pytest.mark.parametrize(("objective", "ends"), [("edp", 1), ("peak", 2), ("peak", 6)])
def test_products_and_peaks_go_on_where_a_run_was_killed(tmp_path, monkeypatch, objective, ends):
    asked = {"pads": "3x40KB", "oversize": "cut", "objective": objective}
    exact, tried = SOLVERS.get("exact"), []

    def counted(search):
        tried.append((search.problem.pads[0].capacity_bytes, search.score is not None))
        exact(search)
        if len(tried) == ends:
            raise MemoryError  # what ends the process at once, as far as files tell

    monkeypatch.setitem(SOLVERS._members, "exact", counted)
    with pytest.raises(MemoryError):
        tw.allocate("lenet5", **asked, out=tmp_path)
    kept = tw.open_plan(tmp_path / "plan.json")
    assert kept.interrupted and kept.verify() == ()
    again, since = tw.allocate("lenet5", **asked, out=tmp_path), tried[ends:]
    assert again.record.score <= kept.record.score and again.bound >= kept.bound and again.verify() == ()
    if objective == "peak":
        assert kept.bound <= min(since)[0] <= max(since)[0] < kept.record.score
    else:
        assert [begun for _, begun in since] == [True, True]
    monkeypatch.setitem(SOLVERS._members, "exact", exact)
    whole = tw.allocate("lenet5", **asked)
    assert (whole.record.score, whole.bound) == (again.record.score, again.bound)
    assert tw.allocate("lenet5", **asked, out=tmp_path, solver="naive").record.score == whole.record.score


def test_exact_begins_from_online_alone_where_steps_are_many(monkeypatch):
    (asked,) = drawn(3, 1)

    def begun():
        search = PlanSearch(asked, Prices(asked, ("bytes",)))
        SOLVERS.get("exact")(search)
        return search.trace[0][2]

    assert begun() in search.RULES
    monkeypatch.setattr(search, "LARGE", 1)
    assert begun() == "online"

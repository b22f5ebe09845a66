"""Plans of fused trees: never worse than layer by layer nor below the bound, as the oracle says, joined exactly."""

import threading
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

import tilewright as tw
from tilewright.allocation import (
    SOLVERS,
    PlanSearch,
    Prices,
    network_problem,
    read_pads,
    simulate,
    tally,
    transfers_of,
)
from tilewright.base import InputError
from tilewright.cost import fused_cost
from tilewright.cost.reference import walk_fused
from tilewright.fusion.trees import (
    FusionPlan,
    GroupLimits,
    NestEffort,
    PlannedGroup,
    TreeCost,
    TreeProblem,
    TreeSearch,
    fuse_trees,
    planning,
    tree_bounds,
)
from tilewright.fusion.trees import shapes as trees_shapes
from tilewright.fusion.trees.groups import NestSearch
from tilewright.fusion.trees.joining import best_join, steps_through
from tilewright.fusion.trees.network import FusableUnit, group_cost
from tilewright.fusion.trees.shapes import shapes, steps_of
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Memory, VectorUnit, preset
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    FusedNode,
    FusedTree,
    HeldTensor,
    LevelLoops,
    Loop,
    Mapping,
    SharedLoop,
    first_needed,
    fused_rooms,
    fused_violations,
    operations_of,
)
from tilewright.report.quantities import measured
from tilewright.search import search_network
from tilewright.workload import (
    AxisLink,
    Digit,
    Graph,
    MacNode,
    VectorOperator,
    convolution,
    matmul,
    tensor_graph,
    zoo,
)

ALL = ("inputs", "weights", "outputs")
GOALS = ("latency", "energy", "edp", "dram")
DRAWN = 60
"""Random plans that the bound is held against, of each network."""
QUICK = TreeSearch(NestEffort(400, shapes=2), alone_samples=200)


def machine(capacity=600):
    return Accelerator("chip", (
        Memory("DRAM", ALL, AccessEnergy(100.0, 100.0, 100.0, 100.0), bandwidth=Bandwidth(shared=0.5), word_bits=8),
        Memory("SG", ALL, AccessEnergy(2.0, 2.0, 2.0, 2.0), capacity, buffering="single", word_bits=8)),
        Compute("MAC", 1.0), word_bits=(("inputs", 8), ("weights", 8), ("outputs", 8)))


def chain(sizes=(8, 12, 6, 10), rows=24):
    """Products of ``rows`` with one weight after another."""
    return Graph("chain", tuple(MacNode(matmul(f"m{at}", m=rows, n=n, k=k), inputs=(f"m{at - 1}",) if at else ())
                                for at, (k, n) in enumerate(pairwise(sizes))))


def problem(goal="dram", graph=None, capacity=600):
    return TreeProblem(tensor_graph(graph or chain()), machine(capacity), goal)


@pytest.mark.sample(2)
@pytest.mark.parametrize("goal", GOALS)
def test_plans_are_no_worse_than_unfused_and_above_the_bound(goal):
    plan = fuse_trees(problem(goal), QUICK)
    assert plan.cost.value(goal) <= plan.unfused.value(goal) * (1 + 1e-12)
    for other in GOALS:
        assert plan.cost.value(other) >= plan.bounds.value(other) > 0
        assert plan.unfused.value(other) >= plan.bounds.value(other)
    assert plan.gap >= 0 and plan.gain >= 1 - 1e-12


def test_a_chain_that_fits_moves_compulsory_words_alone():
    """All that passes between stays on the chip: the bound on words is reached, and layer by layer is far from it."""
    plan = fuse_trees(problem(), QUICK)
    assert plan.gap < 1e-6 and [group.names for group in plan.groups if group.fused] == [("m0", "m1", "m2")]
    words = 24 * 8 + 8 * 12 + 12 * 6 + 6 * 10 + 24 * 10
    assert plan.cost.dram_bytes == words
    assert plan.unfused.dram_bytes == words + 2 * 24 * (12 + 6)


def test_a_result_that_leaves_the_network_may_be_read_on_the_chip_too():
    """The bound on words is that of a plan which brings it out once, and does not read it again."""
    known = tensor_graph(chain())
    tensors = {**known.tensors, "m0": replace(known.tensors["m0"], is_output=True)}
    plan = fuse_trees(replace(problem(), tensors=replace(known, tensors=tensors)), QUICK)
    assert plan.gap < 1e-6 and plan.cost.dram_bytes == 24 * 8 + 8 * 12 + 24 * 12 + 12 * 6 + 6 * 10 + 24 * 10
    for goal in GOALS:
        assert plan.bounds.value(goal) <= min(plan.cost.value(goal), plan.unfused.value(goal))


def test_a_result_that_is_brought_out_for_one_reader_may_be_read_on_the_chip_by_another():
    """What runs twice is in no group, and reads from outside."""
    nodes = (MacNode(matmul("m0", m=24, n=12, k=8)), MacNode(matmul("m1", m=24, n=6, k=12), ("m0",)),
             MacNode(matmul("m2", m=24, n=6, k=12), ("m0",), count=2))
    plan = fuse_trees(problem(graph=Graph("twice", nodes)), QUICK)
    assert ("m0", "m1") in [group.names for group in plan.groups]
    assert (1 - 1e-6) * plan.cost.dram_bytes < plan.bounds.dram_bytes <= plan.cost.dram_bytes


def test_words_of_the_main_memory_are_those_of_plans_for_scratchpads_and_of_their_simulation():
    """Where tensors fit whole: fused is what the best plan moves, layer by layer what the naive one does."""
    plan, posed = fuse_trees(problem(), QUICK), network_problem(tensor_graph(chain()), read_pads("1x600B"))
    for solver, cost in (("exact", plan.cost), ("naive", plan.unfused)):
        search = PlanSearch(posed, Prices(posed, ("bytes",)))
        SOLVERS.get(solver)(search)
        took = tally(posed, transfers_of(posed, search.stays))
        events = simulate(posed, search.stays).events
        moved = {kind: sum(posed.tensors[one.subject].size_bytes for one in events if one.kind == kind)
                 for kind in ("load", "store")}
        assert (moved["load"], moved["store"]) == (took.loaded_bytes, took.stored_bytes)
        assert took.dram_bytes == cost.dram_bytes


def test_costs_are_those_of_the_oracle_and_everything_fits():
    plan = fuse_trees(problem("latency", capacity=260), QUICK)
    (group, *_) = [group for group in plan.groups if group.fused]
    tree, chip = plan.group(group), plan.problem.accelerator
    walked = walk_fused(tree, chip, group.mapping)
    assert (walked.latency_cycles, walked.counts) == (group.cost.latency_cycles, fused_cost(
        tree, chip, group.mapping).counts)
    assert walked.energy_pj == pytest.approx(group.cost.energy_pj)
    assert group_cost(tree, walked, chip).dram_bytes == group.cost.dram_bytes
    assert not fused_violations(tree, chip, group.mapping)


def test_no_plan_takes_more_room_than_there_is():
    """Layers whose weights stay want the same room: what each may take alone does not fit together."""
    for capacity in (180, 260):
        plan = fuse_trees(problem("dram", capacity=capacity), QUICK)
        for group in plan.groups:
            assert not fused_violations(plan.group(group), plan.problem.accelerator, group.mapping)


def test_shapes_fit_and_steps_are_spread():
    group = problem(capacity=100).group(("m0", "m1"))
    found = shapes(group, machine(100), 6)
    assert found and all(room.fits for shape in found for rooms in fused_rooms(shape.tree, machine(100)).values()
                         for room in rooms if {name for name, _ in room.bytes_by_tensor} <= {"m0", "m1"})
    assert [shape.estimate_bytes for shape in found] == sorted(shape.estimate_bytes for shape in found)
    assert steps_of(7, 8) == [4, 3, 2, 1] and steps_of(2, 8) == [1] and len(steps_of(4096, 5)) == 5


def convolutions():
    """Two convolutions over halos, and a sum of both results, of which the first waits for the second."""
    first, last = (convolution(name, in_channels=channels, out_channels=4, kernel=3, in_size=(12, 6), padding=1)
                   for name, channels in (("c0", 3), ("c1", 4)))
    add = VectorOperator("add", "add", 288, 576, 288, ("c0", "c1"))
    return Graph("convolutions", (MacNode(first), MacNode(last, inputs=("c0",)), add))


@pytest.mark.parametrize("capacity", [180, 260, 420])
def test_the_leading_shapes_are_those_of_all_that_there_are(capacity, monkeypatch):
    """What is held is found of a few alone, as the least that it may be leaves the others behind."""
    group, kept = problem(graph=convolutions()).group(("c0", "c1")), 3
    found = shapes(group, machine(capacity), kept)
    monkeypatch.setattr(trees_shapes, "_leading", lambda ways, most, below: sorted(
        (way.shape(held, moved) for way in ways for moved, held in (way.figures(),) if moved < below),
        key=lambda shape: (shape.estimate_bytes, shape.turns))[:most])
    every = shapes(group, machine(capacity), kept)
    assert every and [str(one.tree.mapping) for one in found] == [str(one.tree.mapping) for one in every]
    for shape in every:
        assert shape.held_bytes < capacity
        rooms = fused_rooms(FusedTree(group, shape.tree.mapping), machine(capacity))
        assert shape.held_bytes == max(sum(size for name, size in room.bytes_by_tensor if name == "c0")
                                       for (memory, _), some in rooms.items() if memory == "SG" for room in some)


def test_a_first_turn_needs_what_its_places_touch():
    rng = np.random.default_rng(5)
    for _ in range(200):
        axis = AxisLink(tuple(Digit(name, int(rng.choice([-2, 1, 3])), *rng.integers(1, 5, 2).tolist())
                              for name in ("A", "B")), int(rng.integers(-4, 5)))
        size, extents = int(rng.integers(1, 12)), dict(zip("AB", rng.integers(1, 7, 2).tolist(), strict=True))
        touched = [axis.at({"A": a, "B": b}) for a in range(extents["A"]) for b in range(extents["B"])]
        assert first_needed(axis, size, extents) == max(0, min(max(touched) + 1, size) - max(min(touched), 0))


def residual():
    """Three products and a sum of the first and the last."""
    nodes = [MacNode(matmul(f"m{at}", m=16, n=16, k=16), inputs=(before,) if before else ())
             for at, before in enumerate(("", "m0", "m1"))]
    return Graph("residual", (*nodes, VectorOperator("add", "add", 256, 512, 256, ("m0", "m2"))))


def test_a_network_with_an_edge_around_and_vector_work():
    """The sum with the block's input needs no words of DRAM but those of the input, which both read."""
    plan = fuse_trees(problem("dram", residual(), 2000), QUICK)
    assert plan.cost.dram_bytes < plan.unfused.dram_bytes and plan.cost.dram_bytes >= plan.bounds.dram_bytes


def brute(units, plans, begin):
    """The least latency of all partitions into groups, in every order that they can run in."""
    def rest(done):
        if len(done) == len(units):
            return 0
        best = float("inf")
        for size in range(1, 4):
            for group in combinations([at for at in range(len(units)) if at not in done], size):
                if group in plans and all(units[at].before <= done | set(group) for at in group):
                    best = min(best, plans[group] + rest(done | set(group)))
        return best
    return begin + rest(frozenset())


def test_joins_are_the_best_of_all_partitions():
    rng = np.random.default_rng(3)
    before = [(), (0,), (0,), (1, 2), (3,), (0, 4)]
    units = [FusableUnit((str(at),), frozenset(needs), True, True) for at, needs in enumerate(before)]
    steps = steps_through(units, GroupLimits(3, 3))
    groups = {group for some in steps.groups.values() for group in some}
    for _ in range(10):
        costs = {group: int(rng.integers(1, 40)) * len(group) for group in groups}
        chosen, exact = best_join(steps, {group: [TreeCost(cost)] for group, cost in costs.items()}, "latency",
                                  TreeCost(5))
        assert steps.whole and exact and 5 + sum(costs[group] for group, _ in chosen) == brute(units, costs, 5)


def test_nests_let_pass_what_a_memory_makes_dear_and_begin_from_layers_alone():
    """A memory dearer than the outermost one keeps no weights: neither alone, nor in a group that begins so."""
    dear = Memory("LLC", ALL, AccessEnergy(400.0, 400.0, 400.0, 400.0), 4000, buffering="single", word_bits=8)
    chip = replace(machine(), levels=(machine().levels[0], dear, *machine().levels[1:]))
    posed = TreeProblem(tensor_graph(chain((8, 12, 6))), chip, "energy")
    steps, group = NestEffort(60, shapes=1), posed.group(("m0", "m1"))
    plan = fuse_trees(posed, TreeSearch(steps, GroupLimits(1, 1), 4000))
    alone = {group.operator(one.names[0]).signature: one.mapping.root.leaves[0].mapping for one in plan.groups}
    nests, (shape, *_) = NestSearch(chip, "energy", steps), shapes(group, chip, 9)
    nests.alone = alone
    for leaf in [*alone.values(), *(nests.own(shape, operator)[0] for operator in group.operators)]:
        assert leaf.levels[1].keeps is not None and "W" not in leaf.levels[1].keeps


def test_products_of_cycles_and_energy_keep_what_sums_would_drop():
    units = [FusableUnit((str(at),), frozenset(range(at)), True, True) for at in range(2)]
    steps = steps_through(units, GroupLimits(1, 1))
    plans = {(0,): [TreeCost(1, 100.0), TreeCost(10, 11.0)], (1,): [TreeCost(1, 1.0)]}
    chosen, exact = best_join(steps, plans, "edp", TreeCost(100, 0.0))
    assert exact and chosen == [((0,), 1), ((1,), 0)]


def test_products_that_were_thinned_are_not_told_as_exact(monkeypatch):
    units = [FusableUnit((str(at),), frozenset(range(at)), True, True) for at in range(2)]
    steps = steps_through(units, GroupLimits(1, 1))
    points = [TreeCost(at, 840.0 / at) for at in range(1, 9)]  # each as good as the others, so that all may lead
    for most, known in ((8, True), (7, False)):
        monkeypatch.setattr("tilewright.fusion.trees.joining.MOST_POINTS", most)
        assert best_join(steps, {(0,): points, (1,): [TreeCost()]}, "edp", TreeCost(0))[1] is known


def test_products_are_the_least_of_all_partitions():
    rng, before = np.random.default_rng(5), [(), (0,), (0,), (1, 2), (3,)]
    units = [FusableUnit((str(at),), frozenset(needs), True, True) for at, needs in enumerate(before)]
    steps = steps_through(units, GroupLimits(2, 2))

    def ends(state, plans):
        if state not in steps.groups:
            return {(7, 5.0)}
        return {(cycles + cost.latency_cycles, energy + cost.energy_pj) for group in steps.groups[state]
                for cycles, energy in ends(state | sum(1 << at for at in group), plans) for cost in plans[group]}

    for _ in range(20):
        plans = {group: [TreeCost(int(rng.integers(1, 99)), float(rng.integers(1, 99))) for _ in range(4)]
                 for some in steps.groups.values() for group in some}
        chosen, exact = best_join(steps, plans, "edp", TreeCost(7, 5.0))
        found = sum((plans[group][at] for group, at in chosen), start=TreeCost(7, 5.0))
        assert exact and found.value("edp") == min(cycles * energy for cycles, energy in ends(0, plans))


def test_runs_go_on_where_they_were_and_files_cost_the_same(tmp_path):
    found = [tw.fuse(chain(), machine(), space="trees", objective="energy", budget=200, out=tmp_path / "kept")]
    stamp = (tmp_path / "kept" / "results.sqlite").read_bytes()
    found.append(tw.fuse(chain(), machine(), space="trees", objective="energy", budget=200, out=tmp_path / "kept"))
    assert (tmp_path / "kept" / "results.sqlite").read_bytes() == stamp
    assert found[0].plain == found[1].plain and found[0].plain["groups"][0]["fused"]
    told = tw.evaluate_fused(found[0].write_plan(tmp_path / "plan.yaml"), chain(), machine())
    assert all(each.legal for each in told)
    assert sum(each.cost.latency_cycles for each in told) == found[0].cost.latency_cycles
    assert sum(each.cost.energy_pj for each in told) == pytest.approx(found[0].cost.energy_pj)
    page = found[0].write_report(tmp_path / "page.html").read_text()
    assert "Roofline, before and after" in page and "SG over time" in page and "m0 -&gt; SG" in page
    assert measured(found[0].bounds.energy_pj, "pJ") in page and "1 group of operators" in page


def test_a_stop_before_a_layer_is_mapped_is_no_error(monkeypatch):
    stop = threading.Event()

    def stopped(*given, **named):
        stop.set()
        return search_network(*given, **named)

    monkeypatch.setattr(planning, "search_network", stopped)
    with pytest.raises(KeyboardInterrupt):
        fuse_trees(problem(), QUICK, stop=stop)


def test_what_cannot_be_planned_is_one_error():
    with pytest.raises(InputError, match="number of mappings"):
        tw.fuse(chain(), machine(), space="trees", budget="10s")
    with pytest.raises(InputError, match="--space flat alone"):
        tw.fuse(chain(), machine(), space="trees", causal=True)
    with pytest.raises(InputError, match="memory on the chip"):
        TreeProblem(tensor_graph(chain()), replace(machine(), levels=machine().levels[:1]))
    with pytest.raises(InputError, match="a layer that can be mapped"):
        problem(graph=Graph("none", (VectorOperator("r", "relu", 8, 8, 8),)))


def drawn_leaf(rng, operator):
    """An operator with random loops at both memories."""
    if operations_of(operator) is not None:
        return FusedLeaf(operator.name)
    names, outer = list(operator.sizes), []
    for name in rng.permutation(names)[:rng.integers(3)].tolist():
        outer.append(Loop(name, int(rng.integers(1, operator.sizes[name] + 1))))
    inner = tuple(Loop(name, 1) for name in rng.permutation(names).tolist())
    return FusedLeaf(operator.name, Mapping((LevelLoops("DRAM", tuple(outer)), LevelLoops("SG", inner))))


def drawn_mapping(rng, group):
    """A random tree of one node; a layer alone has no shared loops."""
    last, loops = group.operators[-1], []
    if len(group.operators) > 1:
        for name in rng.permutation(list(last.sizes))[:rng.integers(3)].tolist():
            loops.append(SharedLoop("DRAM", name, int(rng.integers(1, last.sizes[name] + 1))))
    held = tuple(HeldTensor(operator.name, str(rng.choice(["SG", "SG", "DRAM"]))) for operator in group.operators
                 if group.readers(operator.name))
    leaves = tuple(drawn_leaf(rng, operator) for operator in group.operators)
    return FusedMapping(FusedNode(tuple(loops), leaves, len(leaves) > 1 and bool(rng.random() < 0.3)), held)


def drawn_plan(rng, told):
    """A random legal plan in groups that follow one another, as the oracle costs it; None where it found none."""
    groups, left = [], list(range(len(told.units)))
    while left:
        size = int(rng.integers(1, len(left) + 1))
        names, left = told.names(left[:size]), left[size:]
        if len(names) > 1 and not all(unit.fusable for unit in told.units if set(unit.names) & set(names)):
            return None
        if all(name in told.work for name in names):
            groups.append(PlannedGroup(names, None, told.work_cost(names), TreeCost()))
            continue
        group = told.group(names)
        for _ in range(12):
            mapping = drawn_mapping(rng, group)
            if not fused_violations(group, told.accelerator, mapping):
                break
        else:
            return None
        cost = group_cost(group, walk_fused(group, told.accelerator, mapping), told.accelerator)
        groups.append(PlannedGroup(names, mapping, cost, cost))
    return FusionPlan(told, tuple(groups))


@pytest.mark.sample(2)
@pytest.mark.parametrize(("graph", "capacity"), [(chain((3, 4, 2, 3), 4), 40), (chain((3, 4, 2, 3), 4), 400),
                                                 (residual(), 900)])
def test_no_random_plan_is_below_the_bound_as_the_oracle_costs_it(graph, capacity):
    rng, told = np.random.default_rng(capacity), problem("energy", graph, capacity)
    bound, met, least = tree_bounds(told), 0, dict.fromkeys(GOALS, float("inf"))
    for _ in range(DRAWN):
        plan = drawn_plan(rng, told)
        if plan is not None:
            met += 1
            for goal in GOALS:
                least[goal] = min(least[goal], plan.cost.value(goal))
    assert met > DRAWN // 8 and all(least[goal] >= bound.value(goal) for goal in GOALS)
    if graph.name == "chain":
        assert least["energy"] <= 1.005 * bound.energy_pj


def test_a_memory_that_lets_all_pass_makes_no_bound_higher():
    """Of the homes that a tensor may have the one counts that costs least, not the last."""
    plain = problem("energy", chain((3, 4, 2, 3), 4), 400)
    dram, shared = plain.accelerator.levels
    least = tree_bounds(plain)
    for dear in (0.5, 50.0):
        more = replace(shared, name="LB", energy=AccessEnergy(dear, dear, dear, dear))
        wide = replace(plain, accelerator=replace(plain.accelerator, levels=(dram, shared, more)))
        found = tree_bounds(wide)
        assert all(found.value(goal) <= least.value(goal) * (1 + 1e-9) for goal in GOALS)


def test_a_bound_counts_no_lanes_for_what_the_output_path_does_on_the_way():
    """256 additions, a hundredth of one a cycle."""
    own = problem("latency", residual(), 2000)
    units = (VectorUnit(0.01, folds=folds) for folds in ((), ("add",)))
    lanes, folded = (tree_bounds(replace(own, accelerator=replace(own.accelerator, vector=unit))) for unit in units)
    assert (lanes.vector_cycles, folded.vector_cycles) == (25_600, 0)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["eyeriss", "edge-s2", "tpu-like"])
def test_blocks_of_mobilenet_save_words(arch):
    graph = zoo.load("mobilenet-v2")
    part = replace(graph, nodes=graph.nodes[:14])
    plan = fuse_trees(TreeProblem(tensor_graph(part), preset(arch), "dram"), QUICK)
    assert plan.bounds.dram_bytes <= plan.cost.dram_bytes < plan.unfused.dram_bytes
    assert isinstance(plan.group(plan.groups[0]), FusedGroup)

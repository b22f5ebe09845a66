"""Exact allocation: equal to trying all, to HiGHS, above its bound; budgets say what is wrong and what would do."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

import tilewright as tw
from tilewright.base import InputError
from tilewright.codesign.allocation import (
    AllocationBudget,
    AllocationProblem,
    Knapsack,
    PipelineStages,
    allocation_table,
    read_budget,
    solve,
)
from tilewright.hardware import preset


@pytest.fixture(scope="module")
def table():
    return allocation_table(PipelineStages.of(tw.load_network("mobilenet-v2"), preset("confuciux"), convolutions=True,
                                      styles=["nvdla", "shidiannao"]))


def small(table, layers=3, seed=0):
    """A few layers with figures of their own, so few cells that all can be tried."""
    stages = table.stages
    stages = replace(stages, operators=stages.operators[:layers], names=stages.names[:layers],
                     runs=stages.runs[:layers], elements=(1, 2), filters=(1, 2, 3))
    rng = np.random.default_rng(seed)
    return replace(table, stages=stages, **{name: np.round(np.exp(rng.normal(size=stages.shape)), 2) * 100 for name in (
        "latency_cycles", "energy_pj", "area_um2", "power_mw")})


def all_cells(problem):
    layers, cells = problem.figures.shape[1:]
    return np.array(list(itertools.product(range(cells), repeat=layers)))


@pytest.mark.sample(50)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("objective", ["latency", "energy", "pace", "edp"])
@pytest.mark.parametrize("measures", [(), ("area",), ("area", "power"), ("elements", "bytes")])
def test_nothing_beats_the_proven_optimum(table, seed, objective, measures):
    of = small(table, seed=seed)
    rng = np.random.default_rng(seed)
    free = AllocationProblem(of, AllocationBudget(measures, (1e9,) * len(measures)), objective)
    totals = free.costs.sum(axis=1)
    limits = [float(rng.uniform(total.min() * 1.02, total.max() * 0.7)) for total in totals]
    limits = [max(limit, cost.min(axis=1).sum()) for limit, cost in zip(limits, free.costs, strict=True)]
    problem = AllocationProblem(of, AllocationBudget(measures, tuple(limits)), objective)
    cells = all_cells(problem)
    value, over = problem.score(cells)
    if (over > 0).all():
        with pytest.raises(InputError, match="leave room for some choice"):
            solve(problem)
        return
    found = solve(problem)
    assert found.value == pytest.approx(value[over == 0].min(), rel=1e-12)
    assert problem.score(found.cells[None])[1][0] == 0


@pytest.mark.parametrize("objective", ["latency", "energy", "pace"])
def test_layers_in_turn_share_the_best_pair(table, objective):
    problem = AllocationProblem(small(table), AllocationBudget(("area",), (300.0,)), objective, "sequential")
    cells = all_cells(problem)
    value, over = problem.score(cells)
    assert solve(problem).value == value[over == 0].min()


@pytest.mark.sample(2)
@pytest.mark.parametrize("within", ["area=cloud", "area=iot", "power=iotx", "fpga-edge", "area=iot,power=iotx"])
@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_highs_finds_the_same(table, within, objective):
    problem = AllocationProblem(table, read_budget(within, table), objective)
    values, costs = problem.figures[0], problem.costs
    layers, cells = values.shape
    unit = values.min(axis=1).sum()
    once = LinearConstraint(sparse.kron(sparse.eye(layers), np.ones((1, cells))), 1, 1)
    limits = [LinearConstraint(sparse.csr_matrix(cost.reshape(1, -1) / limit), -np.inf, 1)
              for cost, limit in zip(costs, problem.limits, strict=True)]
    highs = milp(values.reshape(-1) / unit, integrality=np.ones(values.size), bounds=Bounds(0, 1),
                 constraints=[once, *limits], options={"mip_rel_gap": 1e-9})
    found = solve(problem)
    assert highs.mip_dual_bound * unit * (1 - 1e-9) <= found.value <= highs.fun * unit * (1 + 1e-9)


@pytest.mark.parametrize(("within", "elements"), [("fpga-cloud", 4096), ("fpga-edge", 256)])
@pytest.mark.parametrize("network", ["mobilenet-v2", "resnet50"])
def test_no_allocation_is_below_what_elements_allow(network, within, elements):
    stages = PipelineStages.of(tw.load_network(network), preset("confuciux"), convolutions=True, elements=range(1, 129),
                       styles=["nvdla", "eyeriss", "shidiannao"])
    every = allocation_table(stages)
    problem = AllocationProblem(every, read_budget(within, every))
    found = solve(problem)
    assert problem.taken(found.cells)["elements"] <= elements
    assert found.value >= np.sqrt(stages.macs).sum() ** 2 / elements
    # The least area that any choice takes is 52 times that of one element with the least buffer, and more.
    assert solve(AllocationProblem(every)).value <= found.value


def test_values_far_apart_do_not_hide_the_optimum():
    values = np.array([[1e15, 1e15 - 1, 5.0], [3.0, 2.0, np.inf]])
    costs = np.array([[[1.0, 2.0, 3.0], [1.0, 1.5, 0.0]]])
    assert Knapsack(values, costs, np.array([3.5])).solve()[0].tolist() == [1, 1]
    assert Knapsack(values, costs, np.array([4.0])).solve()[0].tolist() == [2, 0]
    assert Knapsack(values, costs, np.array([1.9])).solve()[0] is None


def test_shares_are_those_of_table_8_2(table):
    largest = table.area_um2[:, :, -1, -1].sum(axis=0).max()
    for name, share in (("cloud", 0.5), ("iot", 0.1), ("iotx", 0.05)):
        assert read_budget(f"area={name}", table).limits == (pytest.approx(share * largest),)
        least = table.area_um2[:, :, 0, 0].sum(axis=0).min()
        assert read_budget(f"area=release-{name}", table).limits[0] == pytest.approx(
            least + share * (largest - least), rel=0.02)
    assert read_budget("area=iot", table, "sequential").limits[0] == pytest.approx(
        0.1 * table.area_um2[:, :, -1, -1].max())


@pytest.mark.parametrize(("text", "told"), [
    ("area=0.2mm2", (("area",), (2e5,))), ("power=2W,area=3e5 um2", (("power", "area"), (2000.0, 3e5))),
    ("fpga-edge", (("elements", "bytes"), (256.0, 4096.0))), ("unlimited", ((), ())),
    ("elements=77,bytes=4KiB", (("elements", "bytes"), (77.0, 4096.0)))])
def test_budgets_are_read(table, text, told):
    budget = read_budget(text, table)
    assert (budget.measures, budget.limits) == told
    assert read_budget(str(budget), table) == budget


@pytest.mark.parametrize(("text", "message"), [
    ("area=5", "one of the units um2, mm2; Got '5'; For example area=5mm2"), ("area", "positive number and its unit"),
    ("area=iot,area=cloud", "once"), ("size=3mm2", "known limit"), ("power=3mm2", "units uW, mW, W"),
    ("elements=12um2", "must have no unit"), ("area=huge", "or of area and power cloud, iot"),
    ("area=0mm2", "positive"), ("elements=iot", "positive number and its unit"), ("bytes=4KB", "example bytes=4MiB"),
    ("area=1e999mm2", "positive"), ("", "known limit")])
def test_budgets_that_are_none_are_refused(table, text, message):
    with pytest.raises(InputError, match=message):
        read_budget(text, table)


@pytest.mark.parametrize("deployment", ["pipelined", "sequential"])
@pytest.mark.parametrize("within", ["area=100um2", "power=1mW", "elements=0.5", "bytes=18B"])
def test_a_budget_below_the_least_says_the_least_that_works(table, within, deployment):
    with pytest.raises(InputError, match="The least that works is") as refused:
        AllocationProblem(table, read_budget(within, table), deployment=deployment)
    least = refused.value.mend.removeprefix("The least that works is ")
    enough = AllocationProblem(table, read_budget(f"{within.split('=')[0]}={least}", table), deployment=deployment)
    assert solve(enough).value > 0


def test_violations_name_the_smallest_cure(table):
    problem = AllocationProblem(table, read_budget("area=iot", table))
    best = solve(problem).cells
    assert problem.violations(best) == ()
    layers = np.arange(len(best))
    dear = best.copy()
    dear[7] = int(problem.costs[0][7].argmax())
    (told,) = problem.violations(dear)
    assert told.startswith("area: ") and f"give {table.stages.names[7]} " in told
    worst = problem.costs[0].argmax(axis=1)
    (told,) = problem.violations(worst)
    assert "; allow " in told
    allowed = read_budget(f"area={told.split('allow ')[1]}", table)
    assert AllocationProblem(table, allowed).violations(worst) == ()
    assert problem.costs[0][layers, worst].sum() <= allowed.limits[0]


def test_names_that_are_unknown_are_refused(table):
    for given in ({"objective": "speed"}, {"deployment": "both"}):
        with pytest.raises(InputError, match="known"):
            AllocationProblem(table, **given)
    with pytest.raises(InputError, match="two limits at most"):
        solve(AllocationProblem(table, read_budget("area=iot,power=iot,elements=300", table)))

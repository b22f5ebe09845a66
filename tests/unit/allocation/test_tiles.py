"""Operations in tiles: what must move is what the whole tensors have, and plans are the best by trying everything."""

import os
import re
import signal
import time
from math import ceil, prod
from types import SimpleNamespace

import pytest
from random_residency import least_bytes

import tilewright as tw
from tilewright.allocation import SOLVERS, TILE, PlanSearch, Prices, network_problem, read_pads, standing_bounds
from tilewright.api import residing
from tilewright.base import InputError
from tilewright.store import mapping_of
from tilewright.workload import Graph, MacNode, build, tensor_graph, zoo


def chain(*operators):
    nodes = []
    for one in operators:
        nodes.append(MacNode(one, (nodes[-1].name,) if nodes else ()))
    return tensor_graph(Graph("chain", tuple(nodes)))


def tiled(network, pads):
    return network_problem(network, read_pads(pads), {node: (101, 7.0) for node in network.nodes}, oversize="tile")


IMAGE = {"in_size": (12, 6), "kernel": 3, "padding": 1}
CHAINS = {
    "images": (chain(build.convolution("a", in_channels=2, out_channels=4, **IMAGE),
                     build.convolution("b", in_channels=4, out_channels=2, **IMAGE)), "3x160B"),
    "matrices": (chain(build.matmul("a", 8, 6, 10), build.matmul("b", 8, 12, 6)), "2x48B"),
    "sums": (chain(build.matmul("a", 2, 2, 64)), "2x40B"),
}


def parts(problem, name):
    return [one for one in problem.tensors if one.name.rpartition(TILE)[0] == name or one.name == name]


@pytest.mark.parametrize("kind", CHAINS)
def test_slices_are_all_of_the_tensors_and_must_move_as_they_do(kind):
    network, pads = CHAINS[kind]
    problem, whole = tiled(network, pads), network_problem(network, read_pads("1x1MB"))
    assert len(problem.steps) > len(whole.steps)
    for one in whole.tensors:
        assert sum(each.size_bytes for each in parts(problem, one.name)) == one.size_bytes
    least = [Prices(each, ("bytes",)) for each in (problem, whole)]
    assert least[0].first(least[0].compulsory) == least[1].first(least[1].compulsory)
    for node in network.nodes:
        mine = [step for step in problem.steps if step.name.rpartition(TILE)[0] == node or step.name == node]
        assert sum(step.cycles for step in mine) == 101
        assert sum(step.energy_pj for step in mine) == pytest.approx(7)


def test_tiles_are_those_inside_the_loops_of_a_mapping():
    network = chain(build.convolution("a", in_channels=4, out_channels=4, **IMAGE))
    loops = {"a": [[("P", 5)], [("C", 2), ("P", 2), ("K", 3)], [("Q", 1)]]}

    def made(pads):
        problem = network_problem(network, read_pads(pads), oversize="tile", given=loops)
        return problem, problem.steps, [sum(problem.tensors[one].size_bytes for one in step.touches)
                                        for step in problem.steps]

    assert len(made("1x1MB")[1]) == 1  # as it fits whole, no loop is needed
    _, tiles, sizes = made("1x600B")  # rows 0 to 4, 5 to 9, and 10 and 11, with a halo on each side that there is
    assert [size - 4 * 4 * 9 for size in sizes] == [(6 + 5) * 24, (7 + 5) * 24, (3 + 2) * 24]
    problem, tiles, sizes = made("1x300B")
    assert len(tiles) == 6 * 2 * 2 and max(sizes) <= 300  # both loops over P are one, of the place of the outer one
    weights = [{problem.tensors[one].name for one in step.touches if problem.tensors[one].weights} for step in tiles]
    assert weights[:4] == weights[4:8] and len({frozenset(one) for one in weights[:4]}) == 4  # rows are outermost
    with pytest.raises(InputError, match="whose buffers hold less"):
        made("1x60B")


def test_tiles_come_from_a_run_of_map(tmp_path):
    run = tw.map("conv:K=16,C=8,P=4,Q=4,R=3,S=3", arch="nvdla-like", mapper="random-pruned", budget=20, store=False)
    run.write_json(tmp_path / "run.json")
    asked = {"pads": "3x1KB", "solver": "online", "tile_from": tmp_path / "run.json"}
    plan = tw.allocate("conv:K=16,C=8,P=4,Q=4,R=3,S=3", **asked)
    loops = {loop.dimension: loop.step for loop in mapping_of(run.layer("conv")).levels[0].loops}
    tiles = prod(ceil(size / loops.get(name, size)) for name, size in (("K", 16), ("C", 8), ("P", 4), ("Q", 4)))
    assert plan.verify() == () and len(plan.record.steps) == tiles > 1 and "tile-from" in plan.record.command
    for network, told in (("conv:K=16,C=8,P=2,Q=4,R=3,S=3", "sizes that it has here"),
                          ("matmul:M=64,N=64,K=64", "with layers of")):
        with pytest.raises(InputError, match=told):
            tw.allocate(network, **asked)
    with pytest.raises(InputError, match="without --oversize"):
        tw.allocate("conv:K=16,C=8,P=4,Q=4,R=3,S=3", oversize="cut", **asked)


def test_rows_of_a_halo_are_touched_by_both_tiles_and_no_others():
    network = chain(build.convolution("a", in_channels=1, out_channels=1, **IMAGE))
    problem = tiled(network, "1x60B")
    rows = 72 // 6
    tiles = len(problem.steps)
    assert tiles > 1
    size = {one: problem.tensors[one].size_bytes for one in range(len(problem.tensors))}
    read = [sum(size[one] for one in step.reads if not problem.tensors[one].weights) // 6 for step in problem.steps]
    made = [sum(size[one] for one in step.writes) // 6 for step in problem.steps]
    assert sum(made) == rows
    assert read[1:-1] == [count + 2 for count in made[1:-1]]
    assert [read[0], read[-1]] == [made[0] + 1, made[-1] + 1]


def test_partial_sums_are_written_by_each_tile_of_a_sum():
    problem = tiled(CHAINS["sums"][0], "2x40B")
    sums = [at for at, one in enumerate(problem.tensors) if one.leaves]
    assert all(len(problem.written[one]) > 1 for one in sums)


@pytest.mark.parametrize(("network", "pads"), [
    (chain(build.matmul("a", 4, 2, 3), build.matmul("b", 4, 2, 2)), "1x18B"),
    (chain(build.matmul("a", 2, 4, 6)), "2x16B"), (chain(build.matmul("a", 6, 2, 2)), "1x14B")])
def test_plans_of_tiles_are_the_best_by_trying_everything(network, pads):
    problem = tiled(network, pads)
    assert len(problem.steps) > len(network.nodes)
    search = PlanSearch(problem, Prices(problem, ("bytes",)), 10.0)
    standing_bounds(search)
    SOLVERS.get("exact")(search)
    assert search.closed
    assert search.prices.first(search.score) == least_bytes(problem)


def test_what_fits_whole_stays_whole():
    network = CHAINS["images"][0]
    assert tiled(network, "1x1MB") == network_problem(
        network, read_pads("1x1MB"), {node: (101, 7.0) for node in network.nodes})


def test_a_plan_in_tiles_holds_and_tells_them():
    plan = tw.allocate("minerva", pads="3x8KB", solver="belady")
    assert plan.verify() == ()
    assert any(re.search(r"operations were run in \d+ tiles", line) for line in plan.record.assumptions)


def test_runs_of_operations_move_less_than_operations_one_after_the_other():
    layers = [build.convolution(name, in_channels=4, out_channels=4, in_size=(64, 16), kernel=3, padding=1)
              for name in "abc"]
    problem = tiled(chain(*layers), "3x1KB")
    names = [step.name.rpartition(TILE)[0] for step in problem.steps]
    assert names != sorted(names)
    search = PlanSearch(problem, Prices(problem, ("bytes",)), 10.0)
    SOLVERS.get("belady")(search)
    assert search.score <= 1.5 * search.prices.compulsory


def test_of_a_large_table_only_the_gathered_rows_come():
    network = tensor_graph(zoo.load("bert-base", sequence=64))
    problem = tiled(network, "in=256KB,weights=512KB,out=256KB")
    rows = sum(one.size_bytes for one in problem.tensors if one.name.startswith("embedding.0.table"))
    assert rows == 64 * 768


@pytest.mark.parametrize(("pads", "told"), [("1x2B", "tiles"), ("in=1KB,out=1KB", "weights")])
def test_what_no_tile_can_do_is_told(pads, told):
    with pytest.raises(InputError, match=told) as found:
        tiled(CHAINS["matrices"][0], pads)
    assert "--oversize" not in str(found.value)


def test_addresses_given_as_tensors_come_cost_nothing_where_all_could_stay_by_size():
    layers = [build.convolution(name, in_channels=4, out_channels=4, in_size=(64, 16), kernel=3, padding=1)
              for name in "abc"]
    problem = tiled(chain(*layers), "3x1KB")
    search = PlanSearch(problem, Prices(problem, ("bytes",)), 10.0)
    SOLVERS.get("online")(search)
    assert search.trace[-1][2] == "online"
    assert search.score == search.prices.compulsory


def test_cutting_into_tiles_takes_of_the_time_of_solvers_and_ctrl_c_ends_it(monkeypatch):
    clock, left, solved = [0.0], [], residing._solved

    def slow(*told, **given):
        clock[0] += 40
        return network_problem(*told, **given)

    def noted(asked, *told):
        left.append(asked.seconds)
        return solved(asked, *told)

    monkeypatch.setattr(residing, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(residing, "network_problem", slow)
    monkeypatch.setattr(residing, "_solved", noted)
    for seconds in (60.0, 30.0):
        tw.allocate("minerva", pads="3x8KB", solver="naive", seconds=seconds)
    assert left == [20.0, residing.LEAST_SECONDS]

    def stopped(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    monkeypatch.setattr(residing, "network_problem", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    try:
        with pytest.raises(KeyboardInterrupt):
            tw.allocate("minerva", pads="3x8KB", solver="naive")
    finally:
        signal.signal(signal.SIGINT, before)

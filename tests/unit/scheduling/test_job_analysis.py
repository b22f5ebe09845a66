"""Jobs and their analysis: groups of tasks, networks, times, fronts of mappings, what is kept, what fits no core."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel, VectorShare, outermost_bytes
from tilewright.jobs import Runner
from tilewright.scheduling import (
    TASKS,
    LayerJob,
    analyse,
    check_order,
    chopped,
    load_system,
    network_jobs,
    read_time,
    system_names,
    task_groups,
    task_names,
)
from tilewright.store import Results
from tilewright.workload import matmul, zoo
from tiny_system import TINY

SAMPLES = 400
JOBS = (LayerJob("a", matmul("a", m=8, n=16, k=32)), LayerJob("b", matmul("b", m=20, n=96, k=64), count=3),
        LayerJob("again", matmul("other name", m=8, n=16, k=32)))


@pytest.mark.parametrize("task", ["vision", "lang", "recom", "mix"])
def test_groups_are_drawn_by_seed_from_the_networks_of_the_task(task):
    assert task in task_names()
    first, second = task_groups(task, 2, seed=3, size=30)
    assert (first, second) == task_groups(task, 2, seed=3, size=30) and first != second
    assert task_groups(task, 1, seed=3, size=30) == (first,) and task_groups(task, 1, seed=4, size=30) != (first,)
    of = {name for one in TASKS if task in (one, "mix") for name in TASKS[one]}
    assert {job.network for job in first} <= of and len({job.network for job in first}) > 2
    assert len({job.name for job in first}) == 30 and all(job.after == () for job in first)


def test_networks_keep_their_order_through_what_is_no_job():
    graph = zoo.load("resnet18")
    free = network_jobs([(graph, 1)])
    assert len(free) == len(graph.mac_nodes) and all(job.after == () for job in free)
    jobs = network_jobs([(graph, 2), (zoo.load("ncf"), 1)], keep_order=True, release={"ncf": 7.0},
                        deadline={"resnet18": 99.0})
    names = [job.name for job in jobs]
    after = {job.name: {names[place] for place in job.after} for job in jobs}
    assert after["resnet18#1/layer1.0.conv1"] == {"resnet18#1/conv1"}
    # A block reads its own end and, beside it, what the block before has added up.
    assert after["resnet18#2/layer1.1.conv1"] == {"resnet18#2/layer1.0.conv2", "resnet18#2/conv1"}
    assert all(other.split("/")[0] == name.split("/")[0] for name, others in after.items() for other in others)
    assert {(job.release_cycles, job.deadline_cycles) for job in jobs} == {(0.0, 99.0), (7.0, inf)}
    check_order(jobs)
    parts = chopped(jobs, 10)
    assert [len(part) for part in parts] == [10] * (len(jobs) // 10) + [len(jobs) % 10]
    assert all(0 <= place < at for part in parts for at, job in enumerate(part) for place in job.after)


def test_circles_are_told_by_the_names_of_their_jobs():
    ring = [LayerJob(name, JOBS[0].operator, after=(before,)) for name, before in (("x", 2), ("y", 0), ("z", 1))]
    with pytest.raises(InputError, match=r"must not form a circle.*before"):
        check_order([*ring, LayerJob("free", JOBS[0].operator)])


@pytest.mark.parametrize(("text", "cycles"), [("5ms", 1e6), ("1 s", 2e8), ("300us", 6e4), ("5ns", 1), ("12cycles", 12)])
def test_times_are_read_with_their_units(text, cycles):
    assert read_time(text, 200, "deadline") == pytest.approx(cycles)


@pytest.mark.parametrize("text", ["5", "", "soon", "-1ms", "1e999s", "5min"])
def test_wrong_times_are_told(text):
    with pytest.raises(InputError, match="deadline: must be a time with a unit"):
        read_time(text, 200, "deadline")


@pytest.mark.parametrize(("given", "says"), [
    ({"task": "images"}, "must be a known task"), ({"groups": 0}, "groups: must be from 1"),
    ({"size": 0}, "size: must be from 1"), ({"groups": 10**9}, "groups: must be from 1")])
def test_wrong_groups_are_told(given, says):
    with pytest.raises(InputError, match=says):
        task_groups(**{"task": "mix", **given})


@pytest.fixture(scope="module")
def analysed():
    return analyse(JOBS, load_system(TINY), samples=SAMPLES)


def test_fronts_are_those_of_the_dense_model_without_the_shared_memorys_limit(analysed):
    table, system = analysed.table, analysed.system
    assert table.cycles.shape[:2] == (2, 3) and analysed.rows.tolist() == [0, 1, 0]
    for row, job in enumerate(JOBS[:2]):
        for core, machine in enumerate(system.cores):
            model = DenseModel(job.operator, machine.accelerator)
            for option in range(table.count[row, core]):
                cost = model.cost(analysed.mapping(row, core, option))
                told = [figure[row, core, option] for figure in (table.cycles, table.traffic_bytes, table.energy_pj)]
                moved = outermost_bytes(cost, job.operator, machine.accelerator)
                assert told == pytest.approx([job.count * cost.latency_cycles, job.count * moved,
                                              job.count * cost.energy_pj])
            once = job.count * sum(tensor.words(job.operator.sizes) for tensor in job.operator.tensors)
            assert table.traffic_bytes[row, core, 0] >= once
            assert np.all(np.diff(table.cycles[row, core, :table.count[row, core]]) >= 0)
    assert np.array_equal(table.cycles[:, 0], table.cycles[:, 1])
    assert table.count.max() > 1
    # Products of 20 rows on rows alone: not even a full array's speed.
    assert table.cycles[1, 2, 0] >= JOBS[1].macs / 8


def test_a_job_does_its_vector_work_besides():
    system, share = load_system(TINY), VectorShare(latency_cycles=5, energy_pj=7.0, traffic_bytes=11.0)
    plain, whole = (analyse((replace(JOBS[1], vector=vector),), system, samples=SAMPLES).table
                    for vector in ((), (share,) * len(system.kinds)))
    for figure, more in (("cycles", 5), ("traffic_bytes", 11), ("energy_pj", 7)):
        assert getattr(whole, figure)[whole.within] == pytest.approx(getattr(plain, figure)[plain.within] + more)


def test_what_was_analysed_is_kept_and_equal_cores_are_searched_once(tmp_path, analysed):
    system = load_system(TINY)
    with Results(tmp_path / "store.sqlite", "job-analysis") as kept:
        first = analyse(JOBS, system, samples=SAMPLES, runner=Runner("jobs", keeper=kept))
        assert first.samples == 2 * 2 * SAMPLES
        more = (*JOBS, LayerJob("c", matmul("c", m=4, n=4, k=4)))
        second = analyse(more, replace(system, bandwidth=1.0), samples=SAMPLES, runner=Runner("jobs", keeper=kept))
        again = analyse(more, system, samples=SAMPLES, runner=Runner("jobs", keeper=kept, on="threads"))
    assert second.samples == 2 * SAMPLES and again.samples == 0
    assert np.array_equal(first.table.cycles, analysed.table.cycles)
    assert again.mapping(1, 2, 0) == analysed.mapping(1, 2, 0)


def test_jobs_that_fit_no_core_are_told_with_the_reason():
    system = load_system(TINY)
    cores = [replace(core, accelerator=replace(core.accelerator, levels=(
        replace(core.accelerator.memories[0], capacity_bytes=100.0), *core.accelerator.levels[1:])))
        for core in system.cores]
    with pytest.raises(InputError, match="must fit a core") as told:
        analyse(JOBS[:1], replace(system, cores=tuple(cores)), samples=30)
    assert "job a" in str(told.value) and "must be able to keep" in str(told.value)
    one = analyse(JOBS[:1], replace(system, cores=(system.cores[0], cores[2])), samples=30)
    assert one.table.count.tolist()[0][1] == 0 and "must be able to keep" in one.kept[0][1]["why"]


@pytest.mark.parametrize(("jobs", "samples", "says"), [((), 10, "must be at least one"), (JOBS, 2, "at least 3")])
def test_wrong_analyses_are_told(jobs, samples, says):
    with pytest.raises(InputError, match=says):
        analyse(jobs, load_system(system_names()[0]), samples=samples)

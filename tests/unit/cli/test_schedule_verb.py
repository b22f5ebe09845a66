"""``tilewright schedule`` and `tw.schedule`: what they find, write and keep, what is explained, what is refused."""

import re
import shlex
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.report import significant
from tilewright.report.schedule import schedule_sheet
from tilewright.scheduling import (
    explained,
    load_system,
    read_schedule,
    schedule_bound,
    simulate,
    system_names,
    timeline,
)
from tilewright.store import Results
from tilewright.workload import matmul

TINY = """
name: tiny
clock_mhz: 200
host_bandwidth: 2GB/s
memory_bandwidth: 1GB/s
cores:
- {accelerator: magma-core, name: HB, dataflow: nvdla, count: 2, with: {PEs.x: 4, PEs.y: 4, SG.capacity_bytes: 4 KiB}}
- {accelerator: magma-core, name: LB, dataflow: eyeriss-rows, with: {PEs.x: 8, PEs.y: 2, SG.capacity_bytes: 2 KiB}}
"""
LIST = """layer, job, count, arrival, deadline, after
matmul:M=8 N=16 K=32, a, , , ,
matmul:M=20 N=24 K=16, b, 2, 100cycles, 1ms, a
ncf/mlp.2, c, , , , a b
"conv:K=4,C=4,P=6,Q=6,R=3,S=3", d
"""
FEW = ("--mappings", "60", "--budget", "300", "--method", "magma", "--system", "tiny.yaml")


@pytest.fixture
def here(tilewright, tmp_path):
    """Run the verb in a folder with a system and lists."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "jobs.csv").write_text(LIST)
    (tmp_path / "magma.csv").write_text("1,1,16,32,1,1,1,1,0\n1,1,20,8,8,1,1,1,3\n1,1,4,4,6,6,3,3,1\n")
    (tmp_path / "table.yaml").write_text("name: x\nleyers: []\n")
    (tmp_path / "small.yaml").write_text(
        "name: net\ninput: [24]\nlayers:\n- linear: {name: one, out: 32, activation: relu}\n"
        "- linear: {name: two, out: 16}\n- linear: {name: three, out: 8}\n")
    return tilewright


def told(tmp_path, name="out.json"):
    return read_schedule((tmp_path / name).read_text(), name)


def test_networks_are_scheduled_with_page_json_and_a_bound(here, tmp_path):
    found = here("schedule", "small.yaml*3", "ncf", *FEW, "--report", "out.html", "--json", "out.json")
    assert found.code == 0, found.err
    record = told(tmp_path)
    assert len(record.jobs) == 3 * 3 + 4 and record.bandwidth == 5.0
    assert record.bound_cycles <= record.makespan_cycles and 0 <= record.gap
    assert record.gflops == pytest.approx(2 * record.macs / (record.makespan_cycles / 200e6) / 1e9)
    for part in ("No schedule of these mappings can do with less", "HB.1", "eyeriss-rows", "net#2/two", "Slowdown"):
        assert part in found.out or "no schedule of these mappings does better" in found.out, part
    page = (tmp_path / "out.html").read_text()
    assert all(f'data-figure="{name}"' in page for name in ("gantt", "convergence"))
    assert "the bound: no schedule of these mappings ends sooner" in page
    gantt = next(plot for plot in schedule_sheet(record).plots if plot.name == "gantt").data
    drawn = [each for each in gantt if "stackgroup" in each]
    assert [each["name"] for each in drawn if each["showlegend"]] == ["below: HB (nvdla)", "below: LB (eyeriss-rows)"]
    assert {each["fillcolor"] for each in drawn} == {"@muted"}  # colours mean networks
    assert len({each["fillpattern"]["shape"] for each in drawn}) == 2
    in_time = replace(record, groups=tuple(replace(group, jobs=tuple(
        replace(job, deadline_cycles=job.end_cycles) for job in group.jobs)) for group in record.groups))
    tables = {table.name: table.rows for table in schedule_sheet(in_time).tables}
    assert {row[-1] for row in tables["jobs"]} == {"in time"}
    assert all(0 < float(row[6].removesuffix(" %")) <= 100 for row in tables["cores"])
    # What is told is what the simulator says of the plan that was written.
    problem, plan = record.problem(0), record.genomes(0)
    assert simulate(problem, plan).makespan_cycles[0] == pytest.approx(record.makespan_cycles)
    line = timeline(problem, plan)
    assert [job.end_cycles for job in record.jobs] == pytest.approx(line.end.tolist())
    assert schedule_bound(problem).value == pytest.approx(record.bound_cycles)
    again = here(*shlex.split(record.command)[1:], "--json", "again.json")
    assert again.code == 0 and "all mappings were known" in again.out
    assert told(tmp_path, "again.json").jobs == record.jobs
    assert here("schedule", "out.json").out == found.out


def test_a_job_is_explained_by_what_the_plan_takes_with_it_elsewhere(here, tmp_path):
    assert here("schedule", "small.yaml*3", *FEW, "--json", "out.json").code == 0
    record = told(tmp_path)
    found = here("schedule", "out.json", "--explain", "4")
    assert found.code == 0, found.err
    for part in ("Job 4: net#2/two", "There:", "Then:", "At that share:", "as planned", "HB.2", "LB"):
        assert part in found.out, part
    why = explained(record, 4)
    now = [one for one in why.otherwise if (one.core, one.option) == (record.jobs[4].core, record.jobs[4].option)]
    assert now[0].makespan_cycles == pytest.approx(record.makespan_cycles)
    assert {one.core for one in why.otherwise} == {0, 1, 2}
    moved = next(one for one in why.otherwise if one.core != record.jobs[4].core)
    plan = record.genomes(0)
    plan.core[0, 4], plan.option[0, 4] = moved.core, moved.option
    assert simulate(record.problem(0), plan).makespan_cycles[0] == pytest.approx(moved.makespan_cycles)
    assert here("schedule", "out.json", "--explain", "99").code == 2


def test_orders_arrivals_and_deadlines_are_kept(here, tmp_path):
    found = here("schedule", "small.yaml*2", *FEW, "--keep-order", "--arrival", "net=500cycles",
                 "--deadline", "net=1ms", "--objective", "deadlines", "--json", "out.json")
    assert found.code == 0, found.err
    jobs = told(tmp_path).jobs
    for job in jobs:
        assert all(jobs[place].end_cycles <= job.start_cycles + 1e-6 for place in job.after)
        assert job.start_cycles >= 500 and job.deadline_cycles == 200_000
    assert [job.after for job in jobs] == [(), (0,), (1,), (), (3,), (4,)]
    assert "in time" in found.out


def test_lists_of_jobs_are_scheduled(here, tmp_path):
    assert here("schedule", "jobs.csv", *FEW, "--json", "out.json").code == 0
    a, b, c, d = told(tmp_path).jobs
    assert (b.name, b.macs, b.release_cycles, b.deadline_cycles) == ("b", 2 * 20 * 24 * 16, 100.0, 200_000.0)
    assert (b.after, c.after, c.network) == ((0,), (0, 1), "ncf") and d.deadline_cycles is None
    assert a.end_cycles <= b.start_cycles and max(a.end_cycles, b.end_cycles) <= c.start_cycles + 1e-6
    assert here("schedule", "magma.csv", *FEW, "--group-size", "2", "--json", "out.json").code == 0
    record = told(tmp_path)
    assert [len(group.jobs) for group in record.groups] == [2, 1]
    assert record.makespan_cycles == pytest.approx(sum(group.makespan_cycles for group in record.groups))
    assert here("schedule", "out.json", "--explain", "2").out.startswith("Job 2: magma/job2")
    shown = here("schedule", "out.json").out
    for group in record.groups:
        assert significant(2 * sum(job.macs for job in group.jobs) / group.makespan_cycles * 0.2) in shown


def test_tasks_are_drawn_in_groups_that_begin_from_each_other(here, tmp_path):
    words = ("schedule", "--task", "recom", "--groups", "2", "--group-size", "6", *FEW)
    assert here(*words, "--json", "cold.json").code == 0
    cold = told(tmp_path, "cold.json")
    assert len(cold.groups) == 2 and len(cold.jobs) == 12
    assert here(*words, "--warm-start", "--json", "warm.json").code == 0
    warm = told(tmp_path, "warm.json")
    assert [job.name for job in warm.jobs] == [job.name for job in cold.jobs] and warm.analysed_samples == 0
    # The first group begins from the plan that the store has of it.
    assert warm.groups[0].trace[0][2] == pytest.approx(cold.groups[0].score)


def test_a_run_that_was_stopped_goes_on_to_the_same_end(here, tmp_path):
    words = ("schedule", "small.yaml*3", *FEW, "--no-store")
    assert here(*words, "--out", "whole", "--json", "a.json").code == 0
    files = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {"group-0000.npz", "schedule.json", "schedule.html", "jobs.csv", "cores.csv"} <= files
    assert here(*words, "--out", "whole", "--json", "b.json").code == 0
    first, second = told(tmp_path, "a.json"), told(tmp_path, "b.json")
    assert first.jobs == second.jobs and first.groups[0].samples == second.groups[0].samples


def test_from_python_with_operators_and_a_system_of_ones_own():
    system = load_system(TINY)
    products = [matmul(f"p{n}", m=8 * n, n=16, k=16) for n in range(1, 5)]
    plan = tw.schedule(products, system, method="magma", budget=300, mappings=60, store=False, sharing="max-min")
    assert {job.core for job in plan.jobs} <= {"HB.1", "HB.2", "LB"} and not plan.interrupted and plan.place == ""
    assert plan.gap >= 0 and plan.jobs[2].macs == 24 * 16 * 16 and plan.jobs[2].end_cycles > 0
    fixed = tw.schedule(products, system, method="magma", budget=300, mappings=60, store=False, fastest=True)
    assert {job.option for job in fixed.jobs} == {0} and not fixed.record.choose_mapping
    more = tw.schedule({products[0]: 3}, replace(system, bandwidth=0.5), method="magma", budget=100, mappings=30,
                       store=False, objective="energy")
    assert len(more.jobs) == 3 and more.record.gap < 1e-6


def test_plans_and_analyses_go_to_the_store(here, tmp_path):
    found = here("schedule", "small.yaml", *FEW)
    place = tmp_path / "runs.sqlite"
    assert "Stored as schedule" in found.err
    with Results(place, "schedule-plans") as kept:
        identity = found.err.split("Stored as schedule ")[1].split()[0]
        (plain,) = kept.take([{"schedule": identity}])
    assert len(plain["groups"][0]["jobs"]) == 3
    network = tw.load_network(tmp_path / "small.yaml")
    jobs = [node.operator for node in network.mac_nodes]
    assert len(jobs) == 3
    assert "Stored" not in here("schedule", "small.yaml", *FEW, "--no-store").err


def test_systems_and_methods_are_listed(here):
    assert all(name in here("list", "systems").out for name in system_names())
    assert "magma" in here("list", "schedulers").out


def test_the_file_of_a_system_begins_one_of_your_own(here, tmp_path):
    (tmp_path / "mine.yaml").write_text(here("list", "systems", "s2", "--yaml").out)
    assert load_system(tmp_path / "mine.yaml") == load_system("s2")
    assert here("list", "systems", "mine.yaml").out == here("list", "systems", "s2").out
    assert "3 x nvdla" in here("list", "systems", "s2").out
    assert here("list", "systems", "s9").code == 2


@pytest.mark.parametrize(("kind", "name", "option"), [
    ("schedulers", "magma", "accelerator"), ("methods", "digamma", "trims"), ("methods", "ga", "ranked"),
    ("fusers", "g-sampler", "population"), ("mappers", "gamma", "crossover")])
def test_options_of_a_method_are_listed(here, kind, name, option):
    found = here("list", kind, name).out
    assert any(row.startswith(option) and len(row.split()) > 4 for row in found.splitlines()), found
    assert here("list", kind, "nothing").code == 2


@pytest.mark.parametrize("what", ["schedulers", "methods"])
def test_what_is_listed_is_told_by_what_it_does(here, what):
    rows = here("list", what).out.splitlines()[2:]
    assert len(rows) > 10 and not [row for row in rows if "`" in row]


SMALL = ("schedule", "small.yaml", "--mappings", "30", "--budget", "50", "--method", "magma")
ON = (*SMALL, "--system", "tiny.yaml")
WRONG = {
    "nothing": (("schedule", "--system", "s2"), "networks: must be given, unless --task is"),
    "no system": (SMALL, "--system: must be given"),
    "unknown system": ((*SMALL, "--system", "s9"), "must be a known system"),
    "missing file": ((*SMALL, "--system", "none.yaml"), "none.yaml"),
    "broken system": ((*SMALL, "--system", "table.yaml"), "table.yaml:2 system.leyers: is not a known field"),
    "no unit": ((*ON, "--bandwidth", "16"), "bandwidth: must be a number with a unit; Got '16'"),
    "zero": ((*ON, "--bandwidth", "0GB/s"), "bandwidth: must be positive"),
    "wrong unit": ((*ON, "--bandwidth", "16Gb/s"), "must have one of the units"),
    "unknown network": (("schedule", "resnet51", "--system", "s2"), "must be a known network"),
    "no times": (("schedule", "ncf*0", "--system", "s2"), "must have a whole number of runs from 1"),
    "wrong times": (("schedule", "ncf*1.5", "--system", "s2"), "must have a whole number of runs from 1"),
    "too many jobs": (("schedule", "resnet50*9999", "--system", "s2"), "must have at most 20000 jobs"),
    "task and networks": ((*ON, "--task", "mix"), "--task: must come without networks"),
    "task and order": (("schedule", "--task", "mix", "--keep-order", "--system", "s2"), "--task: must come without"),
    "groups of networks": ((*ON, "--groups", "3"), "--groups: must come with --task"),
    "method": ((*ON[:-4], "--method", "magna", "--system", "s2"), "must be a known schedule method"),
    "option": ((*ON, "--option", "mutations=0.5"), "must be a known magma option"),
    "option value": ((*ON, "--option", "mutation=7"), "options.mutation: must be at least 0 and at most 1"),
    "budget": ((*ON, "--budget", "x"), "budget: must be a number of samples or a time"),
    "seed": ((*ON, "--seed", "-1"), "seed: must be a whole number from 0"),
    "deadline of nobody": ((*ON, "--deadline", "nat=1ms"), "deadline: must be a known network; Got 'nat'"),
    "deadline without unit": ((*ON, "--deadline", "net=5"), "deadline net: must be a time with a unit"),
    "arrival form": ((*ON, "--arrival", "net"), "--arrival: must be NAME=VALUE"),
    "explain nothing": (("schedule", "--explain", "3"), "--explain: must come with one schedule in JSON"),
    "explain no schedule": (("schedule", "other.json", "--explain", "3"), "must be a schedule, of kind"),
    "explain broken": (("schedule", "broken.json", "--explain", "3"), "broken.json:1: must be JSON"),
    "store": ((*ON, "--store", "/proc/none/x.sqlite"), "store"),
}
LISTS = {
    "no layer": (LIST.replace("matmul:M=8 N=16 K=32", ""), "jobs.csv:2 layer: must be given"),
    "unknown column": (LIST.replace("deadline", "until"), "jobs.csv:1: must have the columns layer, job"),
    "operator": (LIST.replace("M=8 N=16", "M=8"), "jobs.csv:2 layer .*must give M, N, K"),
    "unknown layer": (LIST.replace("ncf/mlp.2", "ncf/mlp.9"), "jobs.csv:4 layer: must be a layer of ncf"),
    "count": (LIST.replace("b, 2,", "b, two,"), "jobs.csv:3 count: must be a positive integer"),
    "time": (LIST.replace("1ms", "soon"), "jobs.csv:3 deadline: must be a time with a unit"),
    "after nobody": (LIST.replace("a b", "a x"), "jobs.csv:4 after: must name jobs of the list"),
    "circle": (LIST.replace("a, , , ,", "a, , , , c"), "after: must not form a circle; Got '.*a before"),
    "same name": (LIST.replace(", b, 2", ", a, 2"), "jobs.csv job: must have a name of its own"),
    "too many cells": (LIST.replace("a b", "a, b"), "must have at most 6 cells"),
    "empty": (LIST.partition("\n")[0] + "\n", "must have at least one job"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_line_with_exit_code_2(case, here, tmp_path):
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "broken.json").write_text("{")
    words, says = WRONG[case]
    found = here(*words)
    assert found.code == 2, found.out
    assert says in found.err and found.err.count("\n") == 1 and found.err.startswith("Error: ")


@pytest.mark.parametrize("case", LISTS)
def test_wrong_lists_are_told_with_their_line(case, here, tmp_path):
    text, says = LISTS[case]
    (tmp_path / "jobs.csv").write_text(text)
    found = here("schedule", "jobs.csv", *FEW)
    assert found.code == 2
    assert re.search(says, found.err), found.err
    assert found.err.count("\n") == 1


def test_jobs_that_fit_no_core_and_lists_with_networks_are_refused(here):
    assert "must come alone" in here("schedule", "jobs.csv", "ncf", *FEW).err
    system = load_system(TINY)
    cores = tuple(replace(core, accelerator=replace(core.accelerator, levels=(
        replace(core.accelerator.memories[0], capacity_bytes=10.0), *core.accelerator.levels[1:])))
        for core in system.cores)
    with pytest.raises(InputError, match=r"must fit a core.*must be able to keep"):
        tw.schedule("ncf", replace(system, cores=cores), method="magma", mappings=30, store=False)

"""Jobs on a real Ray cluster of two nodes: a worker killed, a node lost, the driver restarted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.base import InputError, has_extra
from tilewright.hardware import preset
from tilewright.jobs import Job, Runner
from tilewright.jobs.executors import executor
from tilewright.search import search_network
from tilewright.workload import matmul

pytestmark = pytest.mark.skipif(not has_extra("ray"), reason="needs the extra 'ray'")
HERE = Path(__file__).parent
QUICK = {"RAY_health_check_initial_delay_ms": "0", "RAY_health_check_period_ms": "500",
         "RAY_health_check_failure_threshold": "3", "RAY_USAGE_STATS_ENABLED": "0"}
LIMIT = 300


@pytest.fixture
def cluster():
    """A cluster in a process of its own, as are all that use it: what Ray leaves behind concerns no other test."""
    process = subprocess.Popen([sys.executable, HERE / "cluster.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=os.environ | QUICK)
    process.told = json.loads(process.stdout.readline())
    yield process
    process.stdin.close()
    process.wait(timeout=LIMIT)
    process.stdout.close()


def driver(cluster, store, folder, count, seconds, deadly=-1):
    words = [store, folder, count, seconds, deadly]
    return subprocess.Popen([sys.executable, HERE / "driver.py", *map(str, words)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=os.environ | {"RAY_ADDRESS": cluster.told["address"]})


def waited_for(condition, process):
    end = time.monotonic() + LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


def begun(folder, number="*"):
    return sorted(folder.glob(f"begun-{number}-*"))


@pytest.mark.cluster
def test_on_a_cluster_nothing_is_lost_nothing_done_twice_and_all_comes_out_alike(cluster, tmp_path, kept_rows):
    """One test, as several would run on several clusters, side by side."""
    searches_find_what_threads_find(cluster)
    a_worker_a_node_and_the_driver_are_lost(cluster, tmp_path, kept_rows)


def a_worker_a_node_and_the_driver_are_lost(cluster, tmp_path, kept_rows):
    """In one run: a job kills its worker, a node goes with what is under way on it, the driver is killed."""
    place, count, other = tmp_path / "results.sqlite", 16, cluster.told["other"]
    first = driver(cluster, place, tmp_path, count, 0.3, deadly=1)
    waited_for(lambda: under_way(tmp_path, other), first)
    cluster.stdin.write("lose\n")
    cluster.stdin.flush()
    assert cluster.stdout.readline() == "lost\n"
    lost = {1, *under_way(tmp_path, other)}
    # The run goes on: what was under way there, and the job whose worker was killed, are done again.
    waited_for(lambda: lost <= set(numbers(_rows(kept_rows, place))), first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = kept_rows(place)
    times = {number: len(begun(tmp_path, number)) for number in numbers(before)}
    second = driver(cluster, place, tmp_path, count, 0.0)
    squares = [number * number for number in range(count)]
    assert second.communicate(timeout=LIMIT)[0].splitlines()[-1] == f"{count - len(before)} {sum(squares)}"
    assert {number: len(begun(tmp_path, number)) for number in times} == times
    after = kept_rows(place)
    assert [json.loads(row["value"])["square"] for row in sorted(
        after, key=lambda row: json.loads(row["job"])["number"])] == squares
    assert all(row in after for row in before)
    assert len(begun(tmp_path, 1)) >= 2  # the one whose worker was killed
    assert len(begun(tmp_path)) <= count + 5 + len(lost)  # two of each node may be under way when the driver goes


def under_way(folder, node):
    """Return the numbers of the jobs that have begun on a node, and not ended."""
    return {int(file.name.split("-")[1]) for file in begun(folder)
            if file.read_text() == node and not file.with_name(file.name.replace("begun", "ended")).exists()}


def numbers(rows):
    return [json.loads(row["job"])["number"] for row in rows]


def _rows(kept_rows, place):
    try:
        return kept_rows(place)
    except Exception:  # the table is not there yet
        return []


def searches_find_what_threads_find(cluster):
    layers = [matmul("a", m=24, n=18, k=20), matmul("b", m=64, n=8, k=8)]
    near, far = (search_network(layers, preset("eyeriss"), budget=200, seed=3, warm_start="similar", on=on)
                 for on in ("threads", cluster.told["on"]))
    assert [(one.result.score, one.result.mapping) for one in near.layers] == [
        (one.result.score, one.result.mapping) for one in far.layers]


def test_a_cluster_that_is_not_there_is_one_clear_error():
    with pytest.raises(InputError, match=r"--on: must be a Ray cluster that answers; Got 'ray://127.0.0.1:1'"):
        Runner(on="ray://127.0.0.1:1").run([Job(None, int)])


@pytest.mark.parametrize(("dying", "connects"), [(1, True), (99, False)])
def test_a_client_whose_process_died_at_its_start_asks_again(monkeypatch, dying, connects):
    import ray

    asked = []

    def init(*_, **__):
        asked.append(1)
        if len(asked) <= dying:
            raise ConnectionAbortedError("Initialization failure from server")

    for name, found in {"init": init, "is_initialized": lambda: False, "cluster_resources": lambda: {"CPU": 1},
                        "shutdown": lambda: None}.items():
        monkeypatch.setattr(ray, name, found)
    if connects:
        executor("ray", 1, 1).close()
        assert len(asked) == 2
    else:
        with pytest.raises(InputError, match="--on: must be a Ray cluster that answers"):
            executor("ray", 1, 1)

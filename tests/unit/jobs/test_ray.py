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
    for part in (searches_find_what_threads_find, a_worker_and_a_node_are_lost, the_driver_is_restarted):
        (tmp_path / part.__name__).mkdir()
        part(cluster, tmp_path / part.__name__, kept_rows)


def a_worker_and_a_node_are_lost(cluster, tmp_path, kept_rows):
    place = tmp_path / "results.sqlite"
    run = driver(cluster, place, tmp_path, 8, 0.5, deadly=1)
    other = cluster.told["other"]
    # Something is under way on the node that is then lost.
    waited_for(lambda: any(
        not file.with_name(file.name.replace("begun", "ended")).exists() and file.read_text() == other
        for file in begun(tmp_path)), run)
    cluster.stdin.write("lose\n")
    cluster.stdin.flush()
    assert cluster.stdout.readline() == "lost\n"
    assert run.communicate(timeout=LIMIT)[0].splitlines()[-1] == "8 140"  # before that, Ray tells of its node
    assert [json.loads(row["value"])["square"] for row in sorted(
        kept_rows(place), key=lambda row: json.loads(row["job"])["number"])] == [n * n for n in range(8)]
    assert len(begun(tmp_path, 1)) >= 2  # the one whose worker was killed
    assert len(begun(tmp_path)) <= 8 + 3


def the_driver_is_restarted(cluster, tmp_path, kept_rows):
    place = tmp_path / "results.sqlite"
    first = driver(cluster, place, tmp_path, 8, 0.3)
    waited_for(lambda: place.exists() and len(_rows(kept_rows, place)) >= 3, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = kept_rows(place)
    numbers = [json.loads(row["job"])["number"] for row in before]
    times = {number: len(begun(tmp_path, number)) for number in numbers}
    second = driver(cluster, place, tmp_path, 8, 0.0)
    assert second.communicate(timeout=LIMIT) == (f"{8 - len(before)} 140\n", "")
    assert {number: len(begun(tmp_path, number)) for number in numbers} == times
    after = kept_rows(place)
    assert len(after) == 8 and all(row in after for row in before)


def _rows(kept_rows, place):
    try:
        return kept_rows(place)
    except Exception:  # the table is not there yet
        return []


def searches_find_what_threads_find(cluster, *_):
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

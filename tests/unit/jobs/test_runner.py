"""The one runner: order, turns, what is kept, what is lost, and the same values wherever jobs are done."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from tilewright.base import InputError
from tilewright.jobs import Clock, Job, Runner, interruptible, present_stop
from tilewright.jobs.executors import Executor, Failed
from tilewright.store import Results, kept_in

ELSEWHERE = ("threads", "processes")


def squares(count, done=None):
    def work(number):
        if done is not None:
            done.append(number)
        return {"square": number * number}

    return [Job({"number": number}, work, inputs=(number,)) for number in range(count)]


@pytest.mark.parametrize("on", ELSEWHERE)
def test_values_come_in_order_and_in_part_from_those_before(on):
    jobs = [*squares(3), Job(None, lambda known: {"sum": sum(one["square"] for one in known)}, after=(1, 2)),
            Job(None, lambda known: known[0]["sum"] + 1, after=(3,))]
    assert Runner(on=on, workers=2).run(jobs) == [{"square": 0}, {"square": 1}, {"square": 4}, {"sum": 5}, 6]


def test_threads_serve_one_list_of_jobs_after_another_and_jobs_that_have_jobs():
    runner, at_work = Runner(workers=1), []
    inner = Job(None, lambda: at_work.append(threading.get_ident()))
    for _ in range(2):
        runner.run([Job(None, lambda: at_work.append(threading.get_ident()) or runner.part([inner]))])
    assert at_work[0] != at_work[1], "the job at work holds its thread"
    assert {*at_work[2:]} == {*at_work[:2]}


def test_steps_are_set_up_first_then_take_turns():
    told = []

    def steps(name):
        for number in range(3):
            told.append(f"{name}{number}")
            yield
        return name

    assert Runner(workers=1).run([Job(None, steps, inputs=(name,)) for name in "ab"]) == ["a", "b"]
    assert told[:4] == ["a0", "b0", "a1", "b1"]
    assert Runner(on="processes", workers=1).run([Job(None, steps, inputs=("c",))]) == ["c"]


@pytest.mark.parametrize(("span", "most", "workers"), [(None, 3, 1), (None, 3, 2), (60.0, 8, 1)])
def test_of_very_many_steps_few_are_set_up_at_once_unless_their_time_is_shared(monkeypatch, span, most, workers):
    monkeypatch.setattr("tilewright.jobs.runner.MOST_OPEN", 3)
    there, at_once = set(), []

    def steps(name):
        there.add(name)
        for _ in range(3):
            at_once.append(len(there))
            yield
        there.remove(name)
        return name

    jobs = [Job(None, steps, inputs=(name,)) for name in range(8)]
    assert Runner(workers=workers, clock=Clock(span=span)).run(jobs) == [*range(8)]
    assert max(at_once) == most and len(at_once) == 24


def test_more_workers_than_searches_that_are_set_up_at_once_all_work(monkeypatch):
    monkeypatch.setattr("tilewright.jobs.runner.MOST_OPEN", 1)
    together = threading.Barrier(3, timeout=20)
    jobs = [Job(None, lambda name: together.wait() * 0 + name, inputs=(name,)) for name in range(3)]
    assert Runner(workers=3).run(jobs) == [0, 1, 2]


def test_what_is_kept_is_not_done_again_and_a_server_shares_it_with_a_team(tmp_path, postgres_url, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STORE", postgres_url)
    for colleague, fresh in (("one", [0, 1, 2]), ("two", [3, 4])):
        done = []
        with kept_in(tmp_path / colleague, "squares") as kept:
            assert len(Runner(keeper=kept, workers=1).run(squares(5 if fresh[0] else 3, done))) >= 3
        assert done == fresh
    assert list((tmp_path / "two").iterdir()) == []


@pytest.mark.parametrize("on", ELSEWHERE)
def test_an_error_ends_the_others_and_keeps_what_had_ended(tmp_path, on):
    def broken():
        raise InputError("field", "must be right", 7, "Mend it")

    jobs = [*squares(2), Job({"number": "none"}, broken), *squares(9)[2:]]
    with Results(tmp_path / "r.sqlite", "squares") as kept:
        with pytest.raises(InputError, match="field: must be right; Got 7; Mend it"):
            Runner(on=on, keeper=kept, workers=1).run(jobs)
        assert kept.take([job.key for job in squares(3)]) == [{"square": 0}, {"square": 1}, None]


def test_a_worker_that_is_lost_is_replaced(tmp_path):
    place = tmp_path / "died"

    def deadly(number):
        if number == 1 and not place.exists():
            place.touch()
            os._exit(9)
        return {"square": number * number}

    jobs = [Job({"number": number}, deadly, inputs=(number,)) for number in range(4)]
    with Results(tmp_path / "r.sqlite", "squares") as kept:
        assert Runner(on="processes", workers=2, keeper=kept).run(jobs) == [{"square": n * n} for n in range(4)]


def comes_true(what):
    for _ in range(300):
        if what():
            return True
        time.sleep(0.1)
    return False


def test_workers_hold_ctrl_c_back_from_their_first_moment_and_end_with_a_run_that_is_killed(tmp_path):
    held = Job(None, lambda: signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    assert Runner(on="processes", workers=1).run([held]) == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    file = tmp_path / "worker"
    script = (f"import os, pathlib, time\nfrom tilewright.jobs import Job, Runner\nfile = pathlib.Path({str(file)!r})\n"
              "def work(): return file.write_text(str(os.getpid())), time.sleep(600)\n"
              "Runner(on='processes', workers=1).run([Job(None, work)])")
    with subprocess.Popen([sys.executable, "-c", script]) as run:
        assert comes_true(lambda: file.exists() and file.read_text())
        run.kill()
    worker = Path("/proc", file.read_text(), "cmdline")  # empty of one that has ended, until that is taken note of
    assert comes_true(lambda: not worker.exists() or not worker.read_bytes())


def test_a_job_that_costs_every_worker_is_told():
    with pytest.raises(RuntimeError, match="Workers were lost 4 times"):
        Runner(on="processes", workers=1).run([Job(None, lambda: os._exit(9))])


@pytest.mark.parametrize("on", ELSEWHERE)
def test_a_run_that_is_stopped_tells_what_there_is(tmp_path, on):
    stop = threading.Event()

    def until_stopped():
        present_stop()
        while not present_stop().is_set():
            pass

    def told(standing):
        if standing.done == 1:
            stop.set()

    runner = Runner(on=on, workers=1, observer=told, stop=stop)
    assert runner.part([*squares(1), Job(None, until_stopped), *squares(1)]) == [{"square": 0}, None, None]
    with pytest.raises(KeyboardInterrupt):
        runner.run(squares(1))


def test_jobs_of_a_job_end_with_it():
    outer, inner = threading.Event(), []

    def nested():
        runner = Runner(workers=1)
        outer.set()
        inner.append(runner.part(squares(2)))
        return 1

    assert Runner(workers=1, stop=outer).part([Job(None, nested)]) == [None]
    assert inner == [[None, None]]


def test_the_second_ctrl_c_raises():
    stop = threading.Event()
    with interruptible(stop), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), 2)
        assert stop.is_set()
        os.kill(os.getpid(), 2)


def test_elsewhere_must_be_known():
    with pytest.raises(InputError, match=r"--on: must be auto, threads, .*ray, or ray://HOST:PORT; Got 'slurm'"):
        Runner(on="slurm").run(squares(1))


def test_a_worker_of_multiprocessing_starts_no_processes(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(InputError, match="--on: must be threads in a worker of multiprocessing"):
        Runner(on="processes").run(squares(1))


def test_of_values_that_other_sources_computed_the_newest_is_kept(tmp_path, monkeypatch):
    for sources, moment, value in (("z", "2026-01-01", 1), ("a", "2026-01-03", 2), ("m", "2026-01-02", 3)):
        monkeypatch.setattr("tilewright.store.results.timestamp", lambda moment=moment: moment)
        with Results(tmp_path / "r.sqlite", "squares") as kept:
            kept.sources = sources
            kept.put({"number": 1}, value)
    with Results(tmp_path / "r.sqlite", "squares", keep_outdated=True) as kept:
        assert kept.take([{"number": 1}, {"number": 2}]) == [2, None] and len(kept.outdated) == 1


def test_nothing_is_kept_without_a_folder(tmp_path):
    with kept_in(None, "squares") as kept:
        assert kept is None
    with pytest.raises(InputError, match="--out: must be a folder that can be written"):
        kept_in(Path("/dev/null"), "squares")


def test_a_script_with_jobs_in_processes_is_not_run_again_in_each(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from tilewright.jobs import Job, Runner\n"
                      "print('begun', Runner(on='processes', workers=2).run([Job(None, pow, inputs=(3, 2))]))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "begun [9]\n"


class AtOnce(Executor):
    """Does each job as it is given, as if on another machine."""

    width = 2

    def submit(self, call):
        done = Future()
        done.set_result(call())
        return done

    def close(self):
        pass


def test_what_had_ended_when_a_run_breaks_off_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.jobs.runner.executor", lambda *_: AtOnce())

    def told(standing):
        if standing.done:
            raise KeyboardInterrupt

    with Results(tmp_path / "r.sqlite", "squares") as kept:
        with pytest.raises(KeyboardInterrupt):
            Runner(keeper=kept, observer=told).run(squares(3))
        assert kept.take([job.key for job in squares(3)]) == [{"square": 0}, {"square": 1}, None]


def test_what_another_run_has_kept_meanwhile_is_not_done_again(tmp_path):
    jobs, done = squares(2), []

    def first(number):
        with Results(tmp_path / "r.sqlite", "squares") as other:
            other.put(jobs[1].key, {"square": 1})
        return {"square": 0}

    with Results(tmp_path / "r.sqlite", "squares") as kept:
        found = Runner(keeper=kept, workers=1).run([Job(jobs[0].key, first, inputs=(0,)), squares(2, done)[1]])
    assert (found, done) == ([{"square": 0}, {"square": 1}], [])


def test_an_error_that_cannot_be_sent_is_told_in_words():
    class Local(Exception):
        pass

    assert repr(Failed.of(Local("a" * 3)).error) == "RuntimeError('Local: aaa')"
    assert Failed.of(InputError("a", "b")).error.field == "a"


def test_setting_up_takes_half_of_a_span_of_time_at_most():
    clock, at = Clock(span=10.0), [0.0]
    clock.now = lambda: clock.begun + at[0]
    left = []
    for seconds in (3.0, 8.0):
        at[0] = seconds
        left.append(clock.left())
    clock.start()
    at[0] = 12.0
    assert [*left, clock.left()] == pytest.approx([7.0, 5.0, 1.0])

"""Nothing that was found is lost: signals, errors, full disks, and places that cannot be written."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
import warnings

import pytest

from tilewright.api import network_runs, open_run
from tilewright.base import InputError
from tilewright.search.run import SearchRun
from tilewright.store import Store, library, opening

NO_SPACE = OSError(28, "No space left on device")
OUT = ("--json", "run.json", "--report", "run.html")


@pytest.fixture
def words(machine):
    return ("map", "ncf", "-a", machine, "-m", "random", "-b", "300")


def _mappings(record):
    return [layer.mapping for layer in record.layers]


def test_a_run_that_is_terminated_keeps_what_it_found(tilewright, machine, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "map", "ncf", "-a", machine, "-m", "random", "-b", "1000M",
         "--workers", "1", "--checkpoint", "kept", *OUT], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    end = time.monotonic() + 300
    # The second layer's first checkpoint is written when the first layer has had a batch.
    while len(list(tmp_path.glob("kept/*.npz"))) < 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    process.terminate()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM, err
    run = open_run(tmp_path / "run.json").record
    partial = len(run.layers)
    head = f"Interrupted: of 4 distinct layers 0 done, {partial} partial, {4 - partial} not begun. The totals "
    assert run.headline.startswith(head) and run.headline in out and 1 <= partial <= 4
    assert head in (tmp_path / "run.html").read_text()
    assert open_run("last").record == run
    assert head in tilewright("show", "last").out
    assert "\nOf these " in out and "\nTotal " not in out
    assert len(run.unfinished) == 4 and run.totals.samples > 0


def test_a_complete_run_has_no_headline(tilewright, words):
    assert "\nTotal " in tilewright(*words).out
    assert open_run("last").record.headline == ""


@pytest.mark.parametrize(("on", "module"), [("threads", "checkpoint"), ("processes", "layers")])
def test_a_checkpoint_that_cannot_be_written_is_told_and_the_search_goes_on(
        tilewright, words, tmp_path, monkeypatch, on, module):
    assert tilewright(*words, "--no-store", "--json", "fine.json").code == 0

    def full(*_):
        raise NO_SPACE

    monkeypatch.setattr(f"tilewright.search.{module}.replace_file", full)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        told = tilewright(*words, "--workers", 1, "--no-store", "--checkpoint", "kept", "--json", "full.json",
                          "--on", on)
    line = "Warning: The checkpoint in kept cannot be written (No space left on device): the search goes on"
    assert told.code == 0 and told.err.count(line) == 1
    fine, full_disk = (open_run(tmp_path / name).record for name in ("fine.json", "full.json"))
    assert _mappings(fine) == _mappings(full_disk)


def test_to_resume_where_nothing_is_kept_begins_and_a_larger_budget_goes_on(tilewright, words, tmp_path):
    for budget in ("300", "1000", "400"):
        words = (*words[:-1], budget)
        assert tilewright(*words, "--checkpoint", "new/kept", "--resume", "--json", f"{budget}.json").code == 0
    first, second, third = (open_run(tmp_path / f"{budget}.json").record for budget in ("300", "1000", "400"))
    assert [layer.search.samples for layer in first.layers] == [300] * 4
    assert [layer.search.samples for layer in second.layers] == [1000] * 4
    assert _mappings(third) == _mappings(second)
    for layer, later in zip(first.layers, second.layers, strict=True):
        assert later.search.score <= layer.search.score
        assert later.search.seconds >= layer.search.seconds
    # Kept to the millisecond.
    assert third.totals.seconds + 1e-3 >= second.totals.seconds >= first.totals.seconds > 0


def test_an_error_keeps_what_was_found(tilewright, words, tmp_path, monkeypatch):
    step = SearchRun._step

    def broken(self):
        if self.request.space.operator.name == "mlp.1" and self.samples:
            raise RuntimeError("no luck")
        step(self)

    monkeypatch.setattr(SearchRun, "_step", broken)
    # All have had a batch when one has its second.
    failed = tilewright(*words, "-b", "10k", "--workers", "1", "--checkpoint", "kept", *OUT)
    assert failed.code == 70 and "Internal error: RuntimeError: no luck" in failed.err
    run = open_run(tmp_path / "run.json").record
    assert run.headline.startswith("Ended by an error (RuntimeError: no luck): of 4 distinct layers ")
    assert len(run.layers) == 3 and "mlp.1" in run.unfinished and run.headline in failed.out
    assert open_run("last").record == run and (tmp_path / "run.html").exists()
    monkeypatch.setattr(SearchRun, "_step", step)
    assert tilewright(*words, "-b", "10k", "--checkpoint", "kept", "--resume").code == 0
    assert tilewright(*words, "-b", "10k", "--again").code == 0
    assert _mappings(open_run("last").record) == _mappings(open_run(_ids()[1]).record)


def _ids():
    with Store() as store:
        return [run.id for run in store.runs()]


def test_an_error_in_the_record_of_one_layer_costs_that_layer_alone(tilewright, words, tmp_path, monkeypatch):
    whole = network_runs.layer_record

    def broken(operator, *rest, **more):
        if operator.name == "mlp.1":
            raise ZeroDivisionError("odd layer")
        return whole(operator, *rest, **more)

    monkeypatch.setattr(network_runs, "layer_record", broken)
    assert tilewright(*words, *OUT).code == 70
    run = open_run(tmp_path / "run.json").record
    assert len(run.layers) == 3 and run.unfinished == ("mlp.1",) and "ZeroDivisionError" in run.headline


def test_an_error_before_anything_is_found_is_told_and_nothing_is_stored(tilewright, words, monkeypatch):
    def broken(self):
        raise RuntimeError("no luck")

    monkeypatch.setattr(SearchRun, "batches", broken)
    assert tilewright(*words).code == 70
    assert _ids() == []


@pytest.mark.parametrize("store", [(), ("--no-store",)])
def test_json_on_a_full_disk_costs_nothing_else(tilewright, words, tmp_path, store):
    full = tilewright(*words, *store, "--json", "/dev/full", "--report", "run.html")
    assert full.code == 2 and "/dev/full: must be a file that can be written" in full.err
    assert "Total" in full.out and (tmp_path / "run.html").exists()
    # In one place of the two it is in any case.
    assert (len(_ids()), len(list(tmp_path.glob("tilewright-run-*.json")))) == ((0, 1) if store else (1, 0))


@pytest.mark.parametrize("place", [("--report", "/proc/run.html"), ("--json", "/proc/none/run.json"),
                                   ("--checkpoint", "/proc/kept")])
def test_places_that_cannot_be_written_are_refused_before_the_search(tilewright, words, monkeypatch, place):
    monkeypatch.setattr(network_runs, "search_network", None)
    refused = tilewright(*words, *place)
    assert refused.code == 2 and "can be written" in refused.err


@pytest.mark.parametrize("trouble", ["locked", "full", "broken"])
def test_a_store_that_fails_at_the_end_costs_nothing(tilewright, words, tmp_path, monkeypatch, trouble):
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(library, "WAIT_SECONDS", 0.05)
    Store().append(_one(tilewright, words))
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None)) as other:
        if trouble == "locked":
            other.execute("BEGIN IMMEDIATE")
        else:
            error = InputError("store", "must have room", None) if trouble == "full" else KeyError("odd")
            monkeypatch.setattr(Store, "append", lambda *_: (_ for _ in ()).throw(error))
        done = tilewright(*words, "--again", *OUT)
    assert done.code == 0 and "The run was not stored: " in done.err and "It was written to " in done.err
    (file,) = tmp_path.glob("tilewright-run-*.json")
    assert open_run(file).record == open_run(tmp_path / "run.json").record


def _one(tilewright, words):
    assert tilewright(*words, "--no-store", "--json", "one.json").code == 0
    return open_run("one.json").record

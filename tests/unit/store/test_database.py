"""The store: appended, found again, exported, shared, and failing without losing anything."""

import csv
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from tilewright.base import InputError
from tilewright.store import (
    AcceleratorRecord,
    BoundsRecord,
    CostRecord,
    LayerRecord,
    NetworkRecord,
    OperatorRecord,
    RequestRecord,
    RunRecord,
    SearchRecord,
    SoftwareRecord,
    Store,
    TotalsRecord,
    default_path,
    keep,
    read_run,
    record_to_json,
    run_from_json,
    store_url,
    write_run,
)

LAYER = LayerRecord(
    ("fc",), 1, OperatorRecord("matmul", (("M", 4), ("N", 2)), (), 8, "f" * 64), None,
    CostRecord(8, 8, 8, 1, 9, 12.5, 112.5, {"DRAM": 12.5}, (), (), "compute", 0.9),
    BoundsRecord(8, 2, 8, 10.0, 80.0), None,
    SearchRecord("random", 3, 10, 4, 0.01, "budget", 112.5, ((1, 0.001, 200.0), (7, 0.005, 112.5))))
LOST = LayerRecord(("gru",), 2, LAYER.operator, reason="no tile fits")


def run(identity: str = "20260101-000000-aaaaaa", network: str = "tiny", created: str = "2026-01-01T00:00:00+00:00",
        ) -> RunRecord:
    return RunRecord(
        identity, created, SoftwareRecord("0.1.0", "3.11", "2.4", "0.68"),
        NetworkRecord(network, "zoo", "0" * 64), AcceleratorRecord("one", "name: one", "", "1" * 64, 100.0, 1, 2.0),
        RequestRecord("edp", "random", 3, "perfect", options={"a": 1, "b": None}, budget_samples=10),
        TotalsRecord(9, 12.5, 112.5, 8, 0.9, 2.0, 0.01, 10, 8, 10.0, 80.0, 2), (LAYER, LOST))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "deep" / "runs.sqlite") as opened:
        yield opened


def test_a_run_comes_back_equal(store):
    assert store.append(run()) == run().id
    assert store.get(run().id) == run()
    assert Store(store.url).get("last") == run()


def test_runs_are_listed_newest_first(store):
    store.append(run())
    store.append(run("20260102-000000-bbbbbb", "vgg", "2026-01-02T00:00:00+00:00"))
    assert [found.network for found in store.runs()] == ["vgg", "tiny"]
    summary = store.runs()[1]
    assert (summary.layers, summary.unmapped_layers, summary.edp, summary.seed) == (2, 2, 112.5, 3)
    assert store.get("last").network.name == "vgg"


def test_an_identity_may_be_shortened_but_not_ambiguous(store):
    store.append(run())
    store.append(run("20260101-000000-aabbbb"))
    assert store.get("20260101-000000-aaa").id == run().id
    with pytest.raises(InputError, match=r"unambiguous.*aaaaaa"):
        store.get("2026")
    with pytest.raises(InputError, match=r"must be stored.*newest are 20260101-000000-aabbbb, "):
        store.get("1999")
    with pytest.raises(InputError, match="must be stored"):
        store.get("%")


def test_an_empty_store_says_so(store):
    assert store.runs() == ()
    with pytest.raises(InputError, match="It holds no runs yet"):
        store.get("last")


def test_a_run_is_appended_once(store):
    store.append(run())
    with pytest.raises(InputError, match=r"run\.id: must be new.*never changed"):
        store.append(run())
    assert len(store.runs()) == 1


def test_exports_hold_every_run_and_layer(store, tmp_path):
    store.append(run())
    store.append(run("20260102-000000-bbbbbb", "=vgg", "2026-01-02T00:00:00+00:00"))
    assert store.export_json(tmp_path / "all.json") == 2
    records = json.loads((tmp_path / "all.json").read_text())
    assert [run_from_json(json.dumps(record)).network.name for record in records] == ["tiny", "=vgg"]
    assert store.export_csv(tmp_path / "all.csv") == 4
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert [(row["run_network"], row["name"], row["latency_cycles"]) for row in rows] == [
        ("tiny", "fc", "9"), ("tiny", "gru", ""), ("'=vgg", "fc", "9"), ("'=vgg", "gru", "")]
    assert rows[1]["reason"] == "no tile fits"
    assert store.export_csv(tmp_path / "one.csv", ("20260102",)) == 2
    assert store.export_json(tmp_path / "one.json", ("20260102",)) == 1
    with pytest.raises(InputError, match="can be written"):
        store.export_csv(tmp_path / "absent" / "all.csv")


def test_layers_can_be_asked_for_by_operator(store):
    store.append(run())
    with sqlite3.connect(sa.make_url(store.url).database) as connection:
        rows = connection.execute("select name, energy_pj, record from layers where operator_sha256 = ?",
                                  ("f" * 64,)).fetchall()
    connection.close()
    assert [row[:2] for row in rows] == [("fc", 12.5), ("gru", None)]
    assert json.loads(rows[0][2])["search"]["history"] == [[1, 0.001, 200.0], [7, 0.005, 112.5]]


def test_writers_in_many_processes_wait_for_each_other(tmp_path):
    write_run(run(), tmp_path / "run.json")
    program = (
        "import sys; from dataclasses import replace; from tilewright.store import Store, read_run\n"
        "record = read_run(sys.argv[1])\n"
        "for index in range(8):\n"
        "    Store(sys.argv[2]).append(replace(record, id=f'{sys.argv[3]}-{index}'))\n")
    place = str(tmp_path / "shared.sqlite")
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "run.json"), place, f"writer{number}"],
                                stderr=subprocess.PIPE) for number in range(2)]
    assert [(writer.communicate(timeout=60)[1], writer.returncode) for writer in writers] == [(b"", 0)] * 2
    assert len(Store(place).runs()) == 16


def test_the_place_comes_from_the_argument_the_environment_or_the_platform(tmp_path, monkeypatch):
    assert store_url("postgresql://host/db") == "postgresql://host/db"
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "a ?#%.sqlite"))
    with Store() as odd:
        odd.append(run())
    assert (tmp_path / "a ?#%.sqlite").exists()
    monkeypatch.delenv("TILEWRIGHT_STORE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data" / "tilewright" / "runs.sqlite"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Application Support" in str(default_path())
    monkeypatch.setattr(sys, "platform", "win32")
    assert "tilewright" in str(default_path())


def test_a_damaged_file_is_one_clear_error(tmp_path):
    place = tmp_path / "runs.sqlite"
    place.write_bytes(b"this was never a database" * 100)
    with pytest.raises(InputError, match=r"store sqlite.*not a database.*TILEWRIGHT_STORE"):
        Store(place).runs()
    assert place.read_bytes().startswith(b"this was")


def test_a_newer_schema_is_left_alone(store):
    store.append(run())
    store.close()
    path = sa.make_url(store.url).database
    with sqlite3.connect(path) as connection:
        connection.execute("update tilewright_meta set value = '99'")
    connection.close()
    for action in (store.runs, lambda: store.append(run("other"))):
        with pytest.raises(InputError, match=r"schema 3 or older; Got 99; Upgrade Tilewright"):
            action()


def test_an_unknown_driver_is_one_clear_error():
    with pytest.raises(InputError, match=r"store nosuch.*Install the database's driver"):
        Store("nosuch://somewhere").runs()
    with pytest.raises(InputError, match=r"store ://.*"):
        Store("://").runs()


def test_a_failure_never_loses_the_run(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    monkeypatch.chdir(here)
    kept = keep(run(), blocked / "runs.sqlite")
    assert not kept.stored and Path(kept.place).parent == here
    assert "was not stored" in kept.warning and kept.place in kept.warning and "\n" not in kept.warning
    assert read_run(kept.place) == run()
    monkeypatch.setattr("tempfile.tempdir", str(there))
    (here / f"tilewright-run-{run('next').id}.json").mkdir()  # no file can be there
    elsewhere = keep(run("next"), blocked / "runs.sqlite")
    assert Path(elsewhere.place).parent == there
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    nowhere = keep(run("next"), blocked / "runs.sqlite")
    assert (nowhere.place, nowhere.stored) == ("", False) and "No file could" in nowhere.warning


def test_a_database_that_cannot_be_written_can_still_be_read(store):
    store.append(run())
    store.close()
    fixed = Store(store.url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true")
    assert fixed.get("last") == run()
    with pytest.raises(InputError, match=r"readonly database.*permissions"):
        fixed.append(run("another"))
    fixed.close()


def test_all_is_well_without_a_warning(tmp_path):
    kept = keep(run(), tmp_path / "runs.sqlite")
    assert (kept.stored, kept.warning) == (True, "")
    assert Store(kept.place).get("last") == run()


def test_json_keeps_numbers_that_are_not_finite(tmp_path):
    search = replace(LAYER.search, history=((1, 0.0, float("inf")),), score=None)
    record = replace(run(), layers=(replace(LAYER, search=search),))
    assert "Infinity" in json.loads(record_to_json(record))["layers"][0]["search"]["history"][0]
    assert run_from_json(record_to_json(record)) == record
    with pytest.raises(TypeError, match="no place in a record"):
        record_to_json(replace(run(), not_modelled=(object(),)))


@pytest.mark.parametrize(("text", "message"), [
    ("{", "must be JSON"),
    ("[1]", "must be a run record of Tilewright, with a schema_version; Got 'list'"),
    ('{"a": 1}', "must be a run record"),
    ('{"schema_version": 2}', r"schema_version: must be from 1 to 1, which .*Got 2; Upgrade Tilewright"),
    ('{"schema_version": 0}', "must be from 1 to 1, which this version reads; Got 0"),
    ('{"schema_version": 1}', r"record\.id: field required"),
])
def test_foreign_json_is_one_clear_error(text, message):
    with pytest.raises(InputError, match=message):
        run_from_json(text)


def test_a_wrong_field_is_named_with_its_path():
    data = json.loads(record_to_json(run()))
    data["layers"][0]["cost"]["energy_pj"] = "much"
    with pytest.raises(InputError, match=r"out\.json\.layers\[0\]\.cost\.energy_pj: .*valid number.*'much'"):
        run_from_json(json.dumps(data), "out.json")


def test_files_appear_whole_or_not_at_all(tmp_path):
    assert read_run(write_run(run(), tmp_path / "out.json")) == run()
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match=r"taken: must be a file that can be written"):
        write_run(run(), tmp_path / "taken")
    with pytest.raises(InputError, match=r"absent.json: must be a readable JSON file.*No such file"):
        read_run(tmp_path / "absent.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "taken"]


def test_the_room_loads_its_libraries_late():
    program = "import sys, tilewright.store as s; s.RunRecord; print('sqlalchemy' in sys.modules); " \
              "s.Store; s.Library; " \
              "print('sqlalchemy' in sys.modules, 'sqlalchemy.dialects.postgresql' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True", "False"]
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from tilewright.store import nothing  # noqa: F401

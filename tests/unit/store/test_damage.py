"""Stores that cannot be written, and damaged records in them."""

import os
import sqlite3
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.store import Library, Store
from tilewright.workload import matmul

MACHINE = tw.load_accelerator("edge-s1")


@pytest.fixture
def place(tmp_path):
    for seed in (1, 2):
        tw.map("matmul:M=8,N=8,K=8", MACHINE, budget=50, seed=seed, mapper="random", store=tmp_path / "runs.sqlite")
    return tmp_path / "runs.sqlite"


def _spoil(place, text, *values):
    with sqlite3.connect(place) as connection:
        connection.execute(text, values)


def test_a_store_that_cannot_be_written_is_listed_and_shown(place, monkeypatch):
    Store(place).close()
    before = {path.name: path.read_bytes() for path in place.parent.iterdir()}
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: mode != os.W_OK and access(path, mode, **more))
    with Store(place) as store, Library(place) as library:
        runs = store.runs()
        assert len(runs) == 2
        assert store.get(runs[0].id).network.name == "matmul"
        assert len(library.entries()) == 1
        with pytest.raises(InputError, match="readonly"):
            store.append(replace(store.get(runs[0].id), id="another"))
    assert {path.name: path.read_bytes() for path in place.parent.iterdir()} == before


@pytest.mark.parametrize(("table", "key", "named"), [("runs", "id", "run {id}"), ("layers", "run_id", "layer matmul")])
@pytest.mark.parametrize("text", ["{", "[]", "", b"\xff\xfe"])
def test_a_damaged_record_is_named_and_others_are_read(place, table, key, named, text):
    with Store(place) as store:
        first, second = (run.id for run in store.runs())
        _spoil(place, f"update {table} set record = ? where {key} = ?", text, first)
        assert len(store.runs()) == 2
        assert store.get(second).id == second
        for read in (lambda: store.get(first), lambda: store.export_json(place.with_suffix(".json"))):
            with pytest.raises(InputError, match="damaged") as error:
                read()
            assert named.format(id=first) in error.value.field


def test_the_mapping_of_a_run_is_written_as_a_file_and_read_again(place):
    run = tw.open_run("last", place)
    layer = run.layers["matmul"]
    operator = matmul("matmul", m=8, n=8, k=8)
    text = tw.dump_mapping(layer.mapping, operator, MACHINE)
    assert text == layer.mapping.yaml
    assert tw.load_mapping(text, operator, MACHINE).levels
    assert tw.dump_mapping(layer.mapping, layer.operator, run.record.accelerator)


def test_a_damaged_entry_of_the_library_is_listed_beside_the_others(place, capsys):
    from tilewright.cli.listing import list_things

    _spoil(place, "update library set dimensions = '{'")
    list_things("library", store=str(place))
    assert "(damaged)" in capsys.readouterr().out

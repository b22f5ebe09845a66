"""Equal searches are answered from the store, and only those."""

import json
import sqlite3
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.api import network_runs
from tilewright.api.answers import _content
from tilewright.base import model_sources
from tilewright.search import MAPPERS, Budget
from tilewright.store import Store, read_run
from tilewright.workload import Graph, MacNode, matmul

LAYERS = [matmul("a", m=32, n=32, k=16), matmul("b", m=64, n=32, k=32)]
NETWORK = Graph("two", tuple(MacNode(layer) for layer in LAYERS))
MACHINE = tw.load_accelerator("eyeriss")


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


def mapped(**changes):
    return tw.map(**{"network": NETWORK, "arch": MACHINE, "mapper": "random", "budget": 300, "seed": 1,
                     "front": "latency,energy", **changes})


def answered(run):
    return [layer.search.answer is not None for layer in run.record.layers]


def bare(run):
    """Layers without what says that they came from the store."""
    return [replace(layer, search=replace(layer.search, answer=None)) for layer in run.record.layers]


def test_an_equal_search_is_answered_and_says_so(tmp_path, monkeypatch):
    first = mapped()
    assert answered(first) == [False, False]

    def refuse(*_):
        raise AssertionError("the engine was warmed up for nothing")

    monkeypatch.setattr(network_runs, "warm_up", refuse)
    second = mapped()
    third = mapped(again=False)
    assert answered(second) == answered(third) == [True, True]
    assert bare(second) == bare(third) == bare(first)
    assert {layer.search.answer.run for layer in third.record.layers} == {first.record.id}
    clocks = {name: 0.0 for name in vars(first.record.totals) if name.endswith("seconds")}
    assert replace(second.record.totals, **clocks) == replace(first.record.totals, samples=0, **clocks)
    assert f"From the store: all layers, searched {first.record.created[:10]}; --again searches anew." in str(second)
    assert f"from the store, searched {first.record.created[:10]}" in second.write_report(
        tmp_path / "page.html").read_text()
    assert "From the store" not in str(first)
    assert "of loading" in str(first)
    assert "of loading" not in str(second)
    assert read_run(second.write_json(tmp_path / "run.json")) == second.record
    assert tw.open_run("last").record == third.record


def test_again_searches_anew_and_finds_the_same():
    first, again = mapped(), mapped(again=True)
    assert answered(again) == [False, False] and again.record.totals.samples == 600
    assert [one.mapping for one in again.record.layers] == [one.mapping for one in first.record.layers]
    assert answered(mapped()) == [True, True]


def test_the_layers_that_are_known_are_answered_whatever_they_and_the_network_are_called():
    mapped()
    run = mapped(network=Graph("other", (MacNode(replace(LAYERS[0], name="x")), MacNode(matmul("y", m=5, n=4, k=4)))))
    assert answered(run) == [True, False]
    assert str(run.layers["x"].mapping).startswith("x on eyeriss")
    assert "From the store: x, searched" in str(run)
    assert run.record.totals.samples == 300
    assert answered(mapped(arch=replace(MACHINE, name="mine"))) == [True, True]


def test_a_search_that_differs_in_anything_is_made(monkeypatch):
    faster = replace(MACHINE, levels=(replace(MACHINE.levels[0], block_words=2), *MACHINE.levels[1:]))
    differ = {
        "seed": 2, "budget": 301, "mapper": "random-pruned", "objective": "energy", "tiling": "perfect", "front": (),
        "constraints": ["latency<=1e9"], "dataflow": "row-stationary", "arch": faster, "pad": True,
        "options": {"filling": 0.4}, "network": Graph("turned", NETWORK.nodes[::-1]),
    }
    mapped()
    for name, value in differ.items():
        assert not any(answered(mapped(**{name: value}))), name
    assert not any(answered(mapped(again=True)))
    assert all(answered(mapped(**{name: value})))
    weights = [mapped(objective=f"{weight!r}*latency+1*energy") for weight in (0.1234567, 0.1234568)]
    assert not any(answered(weights[1]))
    monkeypatch.setattr("tilewright.api.answers.model_sources", lambda: "others")
    assert not any(answered(mapped()))


def test_what_would_not_find_the_same_is_neither_answered_nor_an_answer(monkeypatch, tmp_path):
    mine = type("Mine", (MAPPERS.get("random"),), {"__module__": "mine"})
    monkeypatch.setitem(MAPPERS._members, "mine", mine)
    for changes in ({"budget": Budget(seconds=0.05)}, {"warm_start": "previous"}, {"mapper": "mine"}, {"store": False}):
        for _ in range(2):
            run = mapped(**changes)
            assert not any(answered(run)) and not any(layer.search.key for layer in run.record.layers), changes
    mapped()
    assert not any(answered(mapped(store=False)))
    kept = {"checkpoint": tmp_path / "kept", "budget": 400}
    assert not any(answered(mapped(**kept)))
    assert not any(answered(mapped(**kept))), "taken up"
    assert all(answered(mapped(budget=400)))


def test_a_file_that_an_option_names_counts_by_its_content(tmp_path):
    file = tmp_path / "surrogate.pt"
    assert _content("surrogate") == _content(3) == _content(str(tmp_path)) == ""
    file.write_text("of one training")
    first = _content(str(file))
    file.write_text("of another")
    assert len({first, _content(str(file)), ""}) == 3


def test_sparse_machines_and_flexible_ones_are_answered_too():
    for arch, more in (("flexion", {"mapper": "gamma"}), ("accel-b-sparse", {"density": {"W": 0.5}}),
                       ("accel-b-sparse", {"densities": "1,0.5"})):
        layer = {"network": "conv:K=16,C=8,P=8,Q=8,R=3,S=3", "arch": arch, "front": (), **more}
        first, second = mapped(**layer), mapped(**layer)
        assert answered(second) == [True] and bare(second) == bare(first)
    assert not any(answered(mapped(network="conv:K=16,C=8,P=8,Q=8,R=3,S=3", arch="accel-b-sparse", front=(),
                                   densities="1,0.4")))


@pytest.mark.parametrize("damage", ["stopped", "energy", "mapping", "half", "key"])
def test_a_record_that_is_damaged_or_of_an_interrupted_search_is_no_answer(place, damage):
    mapped()
    with sqlite3.connect(place) as base:
        for row, text in base.execute("select rowid, record from layers").fetchall():
            layer = json.loads(text)
            if damage == "stopped":
                layer["search"]["stopped"] = "interrupted"
            elif damage == "energy":
                layer["cost"]["energy_pj"] += 1.0
            elif damage == "mapping":
                for level in layer["mapping"]["levels"]:
                    level["loops"] = []
            elif damage == "key":
                del layer["search"]["key"]  # as records of older versions are
            changed = json.dumps(layer)
            base.execute("update layers set record = ? where rowid = ?",
                         (changed[:-9] if damage == "half" else changed, row))
    assert not any(answered(mapped()))


def test_a_store_that_is_not_there_or_cannot_be_read_answers_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.sqlite").write_text("no database")
    run = mapped(store=tmp_path / "damaged.sqlite")
    assert not any(answered(run)) and not run.kept.stored
    with Store(tmp_path / "none.sqlite") as store:
        assert store.missing
    assert not (tmp_path / "none.sqlite").exists()


def test_a_layer_without_a_mapping_is_answered_with_its_reason():
    tiny = replace(MACHINE, levels=tuple(
        replace(level, capacity_bytes=1.0) if level.name == "GLB" else level for level in MACHINE.levels))
    first, second = (mapped(arch=tiny, front=(), budget=90) for _ in range(2))
    assert first.record.totals.unmapped_layers == 2
    assert answered(second) == [True, True] and bare(second) == bare(first)


def test_the_sources_of_the_model_are_those_that_decide_what_is_found(monkeypatch, tmp_path):
    assert len(model_sources()) == 16
    import shutil
    from pathlib import Path

    from tilewright.base import keeping

    root = Path(keeping.__file__).parents[1]
    for room in ("hardware", "workload", "mapping", "cost", "search"):
        shutil.copytree(root / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(keeping, "__file__", str(tmp_path / "base" / "keeping.py"))
    assert model_sources.__wrapped__() == model_sources()
    changed = set()
    for file in ("hardware/zoo/eyeriss.yaml", "workload/__init__.py", "mapping/batch.py", "cost/dense/kernel.py",
                 "search/mappers/auto/__init__.py"):
        (tmp_path / file).write_text((tmp_path / file).read_text() + "\n")
        changed.add(model_sources.__wrapped__())
    assert len(changed | {model_sources()}) == 6

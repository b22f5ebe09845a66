"""Pipelines as a user asks for them: figures, records, page, and wishes that can't be granted."""

import json
import sys
from io import StringIO

import pytest
from rich.console import Console

import tilewright as tw
from tilewright.cli import main
from tilewright.report import LayersBar
from tilewright.search import Budget, Progress
from tilewright.store import Library
from tilewright.workload import Graph, MacNode, matmul

NET = Graph("net", (MacNode(matmul("a", m=24, n=18, k=20)), MacNode(matmul("b", m=96, n=64, k=80)),
                    MacNode(matmul("c", m=24, n=18, k=20))))


def pipe(**asked):
    return tw.pipeline(NET, **{"arch": "edge-s3", "budget": 600, "store": False, **asked})


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tilewright", "pipeline", *words])
    with pytest.raises(SystemExit) as end:
        main()
        sys.exit(0)
    return int(end.value.code or 0)


def test_both_searches_are_ordinary_runs(tmp_path):
    found = pipe(then="power", store=tmp_path / "runs.sqlite")
    assert [layer.names for layer in found.then.record.layers] == [("a", "c"), ("b",)]
    for name, layer in found.layers.items():
        assert found.first.layers[name].cost.latency_cycles == layer.first.cost.latency_cycles
        assert found.then.layers[name].cost.energy_pj == pytest.approx(layer.then.cost.energy_pj)
        assert found.then.layers[name].search.feasible
    limit = found.result.limit_cycles
    assert found.first.record.request.objective == "latency"
    assert found.then.record.request.objective == "power"
    assert found.then.record.request.constraints == (f"latency<={limit}",)
    assert tw.open_run("last", tmp_path / "runs.sqlite").record == found.then.record
    assert tw.open_run(found.first.record.id, tmp_path / "runs.sqlite").record == found.first.record


def test_the_first_search_fills_the_library(tmp_path):
    found = pipe(store=tmp_path / "runs.sqlite")
    assert found.first.library.added == 2
    with Library(tmp_path / "runs.sqlite") as library:
        entries = library.entries()
    assert {one.layer: one.latency_cycles for one in entries} == {
        name: found.first.layers[name].cost.latency_cycles for name in ("a", "b")}
    assert {(one.objective, one.run_id) for one in entries} == {("latency", found.first.record.id)}
    assert pipe(store=tmp_path / "runs.sqlite").first.library.added == 0
    assert pipe(store=False).first.library.added == 0


def test_its_file_is_read_back_as_its_second_run(tmp_path, monkeypatch, capsys):
    found = pipe()
    file = found.write_json(tmp_path / "pipe.json")
    assert tw.open_run(file).record == found.then.record
    monkeypatch.setattr(sys, "argv", ["tilewright", "show", str(file), "--layer", "b"])
    with pytest.raises(SystemExit):
        main()
        sys.exit(0)
    assert f"{found.then.layers['b'].cost.latency_cycles:,}" in capsys.readouterr().out
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "then": None}))
    assert tw.open_run(file).record == found.first.record
    file.write_text(json.dumps({"pipeline": {}}))
    with pytest.raises(tw.InputError, match="must be a run record"):
        tw.open_run(file)


def test_page_data_and_table_tell_the_same(tmp_path):
    found = pipe(accelerators=2)
    data = json.loads(found.write_json(tmp_path / "new" / "pipe.json").read_text())
    assert data["pipeline"]["final"]["interval_cycles"] == found.result.figures().interval_cycles
    assert data["pipeline"]["layers"][1]["final"]["energy_pj"] == found.layers["b"].then.cost.energy_pj
    assert data["then"]["id"] == found.then.record.id
    text = str(found)
    assert "3 layers on 2 accelerators" in text
    assert f"{found.layers['b'].then.cost.latency_cycles:,}" in text
    assert f"{found.result.limit_cycles:,}" in text
    page = found.write_report(tmp_path / "pipe.html").read_text()
    assert "net as a pipeline on edge-s3" in page
    assert "the pipeline may take" in page


def test_the_command_repeats_it(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    found = tw.pipeline("matmul:M=64,N=64,K=32", arch="edge-s2", then="power", budget=500, seed=3, latency_limit=5e5,
                        constraints=["energy<=1e12"], store=False)
    words = found.command.split()
    assert words[:3] == ["tilewright", "pipeline", "matmul:M=64,N=64,K=32"]
    assert command(monkeypatch, *[word.strip("'") for word in words[2:]], "--no-store", "--json", "again.json") == 0
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["pipeline"] == json.loads(json.dumps(found.plain["pipeline"]))
    assert again["command"] == found.command
    assert "Pipeline latency" in capsys.readouterr().out


def test_a_pace_that_cannot_be_kept_is_told(monkeypatch, capsys):
    code = command(monkeypatch, "matmul:M=64,N=64,K=32", "--arch", "edge-s2", "--budget", "500", "--latency-limit",
                   "3", "--no-store")
    assert code == 1
    assert "The limit of 3 cycles is not kept: matmul take" in capsys.readouterr().out


def test_a_layer_without_a_mapping_is_told(monkeypatch, capsys):
    code = command(monkeypatch, "matmul:M=4096,N=4096,K=4096", "--arch", "edge-s2", "--budget", "1", "--mapper",
                   "random", "--no-store")
    assert code == 1
    assert "No pipeline: no legal mapping of matmul" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "told"), [
    (["--then", "latency"], "must be another objective than latency"),
    (["--then", "speed"], "speed"),
    (["--accelerators", "0"], "accelerators: must be a positive integer"),
    (["--latency-limit", "-1"], "latency_limit: must be positive"),
    (["--latency-limit", "5", "--throughput", "5"], "must be left out where a throughput is given"),
    (["--slack", "0.1", "--throughput", "5"], "must be left out where a slack is given"),
    (["--budget", "soon"], "budget"),
    (["--seed", "-1"], "seed"),
])
def test_wrong_wishes_are_one_error(monkeypatch, capsys, words, told):
    assert command(monkeypatch, "matmul:M=8,N=8,K=8", "--arch", "edge-s2", "--no-store", *words) == 2
    assert told in capsys.readouterr().err


def test_the_bar_of_the_second_search_begins_anew():
    bar = LayersBar(Console(file=StringIO()))
    budget = Budget(samples=10)
    bar.begin(1, budget)
    bar.update(Progress("a", 10, 10, 1.0, 5.0, 10, 0.0))
    assert bar.bars.tasks[0].description == "1/1 layers"
    bar.begin(2, budget)
    bar.update(Progress("b", 5, 5, 1.0, 5.0, 10, 1.0))
    assert bar.bars.tasks[0].description == "0/2 layers"
    assert bar.bars.tasks[0].completed == pytest.approx(0.25)


def test_the_bar_of_layers_tells_the_time_that_is_left(monkeypatch):
    moments = iter((100.0, 130.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(moments))
    bar = LayersBar(Console(file=StringIO()))
    bar.begin(1, Budget(samples=10))
    bar.update(Progress("a", 1, 1, 30.0, 5.0, 10, 270.0))
    assert bar.bars.tasks[0].fields["about"].endswith("4:30 left")


def test_time_is_shared_by_both_searches():
    found = pipe(budget="1s")
    assert found.first.record.request.budget_seconds == found.then.record.request.budget_seconds
    assert found.first.record.request.budget_seconds <= 0.5
    assert found.result.feasible

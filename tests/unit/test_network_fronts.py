"""The front of a whole network: from Python, on the terminal, on the page, in files; and why there may be none."""

import json
import sys

import pytest

import tilewright as tw
from tilewright.cli import main
from tilewright.workload import Graph, MacNode, VectorOperator, matmul

NET = Graph("net", (MacNode(matmul("a", m=32, n=24, k=16)), VectorOperator("s", "Softmax", 4000, 800, 800, ("a",)),
                    MacNode(matmul("b", m=30, n=28, k=40), ("s",), 2), MacNode(matmul("c", m=32, n=24, k=16), ("b",))))
KEPT = {"arch": "eyeriss", "budget": 400, "mapper": "random", "store": False, "front": "latency,energy"}


@pytest.fixture(scope="module")
def run():
    return tw.map(NET, **KEPT)


def test_each_point_costs_what_its_mappings_do(run):
    machine, front = tw.load_accelerator("eyeriss"), run.front()
    operators = {node.name: node.operator for node in NET.mac_nodes}
    totals = run.record.totals
    assert totals.vector_cycles > 0 and len(front.points) > 2 and front.tolerance == 0
    for point in (front.points[0], front.points[len(front.points) // 2], front.points[-1]):
        costs = [(times, tw.evaluate(mapping, operators[name], machine).cost)
                 for name, some in point.mappings.items() for times, mapping in some]
        assert [sum(times for times, _ in some) for some in point.mappings.values()] == [2, 2]
        assert point.latency_cycles == totals.vector_cycles + sum(times * cost.latency_cycles for times, cost in costs)
        assert point.energy_pj == pytest.approx(totals.vector_energy_pj + sum(
            times * cost.energy_pj for times, cost in costs))


def test_no_point_is_below_the_bound_and_none_of_the_run_beats_all(run):
    front, totals = run.front(), run.record.totals
    assert front.bound == (totals.bound_latency_cycles, totals.bound_energy_pj)
    for point in front.points:
        assert point.latency_cycles >= front.bound[0] and point.energy_pj >= front.bound[1] * (1 - 1e-12)
    within = front.within(latency=run.latency_cycles)
    assert within.energy_pj <= run.energy_pj * (1 + 1e-12) and within.latency_cycles <= run.latency_cycles
    assert min(point.edp for point in front.points) <= totals.edp * (1 + 1e-12)
    assert front.within(energy=front.points[1].energy_pj) == front.points[1]
    assert front.within(energy=run.energy_pj).latency_cycles <= run.latency_cycles
    for wrong, said in (({"latency": 1}, "The least is"), ({}, "latency or an energy"),
                        ({"energy": 1.0}, "at least one point")):
        with pytest.raises(tw.InputError, match=said):
            front.within(**wrong)


def test_runs_of_one_layer_may_differ(run):
    """The mappings of two runs are chosen each by itself: the front has points that no single mapping reaches."""
    assert any(len(some) > 1 for point in run.front().points for some in point.mappings.values())
    assert len(run.front("a").points) > 1


def test_it_is_in_files_notebooks_and_plots(run, tmp_path):
    front, again = run.front(), tw.open_run(run.write_json(tmp_path / "run.json"))
    assert again.front() == front and again.record == run.record
    table = front.to_pandas()
    assert list(table.columns) == ["latency_cycles", "energy_pj", "edp"] and len(table) == len(front.points)
    figure = run.plot_front()
    assert [trace.name for trace in figure.data] == ["front", "least edp of each layer", "bound"]
    assert list(figure.data[0].x) == table["latency_cycles"].tolist()
    assert "NetworkFront(" in repr(front) and f"{front.points[0].latency_cycles:,.0f}" in front._repr_html_()


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tilewright", *words])
    with pytest.raises(SystemExit) as end:
        main()
        sys.exit(0)
    return end.value.code or 0


def test_the_terminal_and_the_page_show_it(monkeypatch, tmp_path, capsys):
    given = ("map", "ncf", "--arch", "eyeriss", "--budget", "200", "--mapper", "random", "--no-store")
    page, file = tmp_path / "run.html", tmp_path / "run.json"
    asked = ("--front", "latency,energy", "--report", str(page), "--json", str(file))
    assert command(monkeypatch, *given, *asked) == 0
    told = capsys.readouterr().out
    assert "Pareto front of the network" in told and "least EDP" in told and "as mapped" in told
    assert max(map(len, told.partition("front of the network")[2].partition("\nLatency  ")[0].splitlines())) <= 100
    text = page.read_text(encoding="utf-8")
    assert 'id="front"' in text and "Which mapping each layer has" in text and "mlp.1: " in text
    points = json.loads(file.read_text())["front"]["points"]
    assert {"latency_cycles", "energy_pj", "chosen"} == {*points[0]}


@pytest.mark.parametrize(("front", "more", "said"), [
    ("latency,edp", {}, "without energy"), ("area,energy", {}, "without latency"),
    ("latency,energy", {"constraints": ["latency<=1"]}, "has no mapping")])
def test_why_there_may_be_none(front, more, said):
    run = tw.map(NET, **{**KEPT, "front": front, "budget": 40}, **more)
    with pytest.raises(tw.InputError, match=said):
        run.front()
    assert "No front of the network" in str(run) and said in str(run)
    assert tw.map(NET, **{**KEPT, "front": (), "budget": 40}).front() is None


def test_the_best_within_a_limit_is_told(monkeypatch, tmp_path, capsys):
    file = tmp_path / "run.json"
    given = ("map", "ncf", "--arch", "eyeriss", "--budget", "200", "--mapper", "random", "--no-store", "--json",
             str(file))
    assert command(monkeypatch, *given, "--within", "latency=1s") == 0
    points = json.loads(file.read_text())["front"]["points"]
    assert json.loads(file.read_text())["front"]["place"] == len(points) - 1 and capsys.readouterr()
    some = len(points) // 3
    for most in (f"latency={points[some]['latency_cycles'] / 200}us", f"energy={points[some]['energy_pj'] / 1e9}mJ"):
        assert command(monkeypatch, *given, "--within", most) == 0  # at 200 MHz
        assert json.loads(file.read_text())["front"]["place"] == some
        assert f"best within {most}" in capsys.readouterr().out
    assert command(monkeypatch, *given, "--within", "energy=1pJ") == 0
    assert "No combination is within energy=1pJ" in capsys.readouterr().out
    assert json.loads(file.read_text())["front"]["place"] is None
    for wrong in ("latency", "latency=5", "energy=5ms", "area=5mm", "latency=xs"):
        assert command(monkeypatch, *given, "--within", wrong) == 2
        assert "must be latency=TIME or energy=JOULES" in capsys.readouterr().err.replace("\n", " ")

"""Runs that keep Pareto fronts: from Python, from the command line, and back from their files."""

import sys

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.cli import main
from tilewright.search.objective import METRICS
from tilewright.store import read_run

NETWORK = "matmul:M=32,N=24,K=16"
KEPT = {"arch": "eyeriss", "budget": 600, "mapper": "random", "store": False}


def test_a_run_keeps_the_front_of_every_layer_and_its_files_do(tmp_path):
    run = tw.map(NETWORK, front=("latency", "energy"), **KEPT)
    (name,) = run.layers
    front = run.front(name)
    assert front.metrics == ("latency", "energy") and front.units == ("cycles", "pJ")
    values = [point.values for point in front.points]
    assert values == sorted(values) and len(values) > 0
    assert [energy for _, energy in values] == sorted((energy for _, energy in values), reverse=True)
    layer = run.layers[name]
    for point in front.points:
        assert point.values[0] * point.values[1] >= layer.cost.edp * (1 - 1e-12)
    best = (float(layer.cost.latency_cycles), layer.cost.energy_pj)
    assert any(point.values == pytest.approx(best) for point in front.points)
    again = tw.open_run(run.write_json(tmp_path / "run.json"))
    assert again.front(name) == front
    assert "--front latency,energy" in run.record.request.command
    assert tw.map(NETWORK, **KEPT).front(name) is None
    with pytest.raises(InputError, match="layer"):
        run.front("nothing")


def test_every_mapping_of_a_front_costs_what_it_says():
    run = tw.map(NETWORK, front="latency,energy,edp", **KEPT)
    (name,) = run.layers
    machine = tw.load_accelerator("eyeriss")
    operator = tw.matmul("m", m=32, n=24, k=16)
    assert run.front(name).points
    for point in run.front(name).points[:5]:
        cost = tw.evaluate(point.mapping, operator, machine).cost
        told = METRICS["edp"].of(float(cost.latency_cycles), cost.energy_pj, 0.0, 0.0)
        assert point.values == pytest.approx((cost.latency_cycles, cost.energy_pj, told))


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tilewright", *words])
    with pytest.raises(SystemExit) as end:
        main()
        sys.exit(0)
    return end.value.code or 0


def test_the_command_line_keeps_fronts(monkeypatch, tmp_path, capsys):
    given = ("map", NETWORK, "--arch", "eyeriss", "--budget", "300", "--mapper", "random", "--no-store")
    json, page = tmp_path / "run.json", tmp_path / "run.html"
    assert command(monkeypatch, *given, "--front", "latency,energy", "--json", str(json), "--report", str(page)) == 0
    assert "Pareto fronts of latency and energy" in capsys.readouterr().out
    assert read_run(json).layers[0].front.points
    assert 'id="fronts"' in page.read_text(encoding="utf-8")
    for wrong, said in (("latency", "two or more"), ("latency,speed", "front: must be a known metric")):
        assert command(monkeypatch, *given, "--front", wrong) == 2
        assert said in capsys.readouterr().err.replace("\n", " ")

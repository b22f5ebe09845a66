"""``tilewright study``: tables, files and pages of each study, and what is refused."""

import csv
import json
from dataclasses import replace

import pytest

from tilewright.hardware import dump_accelerator, preset

ONE = "conv:K=16,C=8,P=14,Q=14,R=3,S=3"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_axes_are_told_and_kept(tilewright, tmp_path, kept_rows):
    words = ("study", "axes", ONE, "-a", "accel-b", "-b", "200", "--seeds", "2", "--out", "kept")
    first = tilewright(*words)
    assert first.code == 0, first.err
    assert names(tmp_path / "kept") == ["axes.csv", "axes.html", "axes.json", "curves.csv", "results.sqlite",
                                         "sets.csv"]
    data = json.loads((tmp_path / "kept/axes.json").read_text())
    assert [sum(one["share"][seed] for one in data["axes"]) for seed in range(2)] == [pytest.approx(1)] * 2
    assert "Share of the gain (medians): " in first.out
    assert "tile+order+parallelism" in first.out
    kept = kept_rows(tmp_path / "kept/results.sqlite")
    assert len(kept) == 14
    assert tilewright(*words).out == first.out
    assert kept_rows(tmp_path / "kept/results.sqlite") == kept


@pytest.mark.parametrize("bits", ["0000", "1000", "0100", "1100", "0001"])
def test_axes_are_studied_within_what_a_flexible_machine_can_do(tilewright, tmp_path, bits):
    base = preset("flexion")
    machine = replace(base, flexibility=base.flexibility.of_class(bits))
    (tmp_path / "m.yaml").write_text(dump_accelerator(machine), encoding="utf-8")
    found = tilewright("study", "axes", "conv:K=64,C=64,P=14,Q=14,R=3,S=3", "-a", "m.yaml", "-b", "60", "--seeds", "2")
    assert found.code == 0, found.err
    assert "tile+order+parallelism" in found.out


def test_a_machine_that_is_a_union_of_spaces_is_not_studied_by_axes(tilewright, tmp_path):
    base = preset("flexion")
    (tmp_path / "m.yaml").write_text(dump_accelerator(replace(base, flexibility=base.flexibility.of_class("0010"))))
    found = tilewright("study", "axes", "conv:K=64,C=64,P=14,Q=14,R=3,S=3", "-a", "m.yaml", "-b", "60", "--seeds", "2")
    assert found.code == 2
    assert "flexibility: must leave one map space to be studied" in found.err


def test_orders_of_the_best_and_of_a_given_mapping(tilewright, tmp_path, machine, mapping):
    found = tilewright("study", "orders", ONE, "-a", "accel-b", "-b", "300", "--json", "o.json", "--html", "o.html")
    assert found.code == 0, found.err
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["orders"] == 720 == sum(group["orders"] for group in data["groups"])
    assert data["distinct"]["scores"] == len(data["groups"])
    told = f"720 orders have {len(data['groups'])} different scores" if len(data["groups"]) > 1 else "Every order (720)"
    assert told in found.out
    assert "EDP of all 720 orders" in (tmp_path / "o.html").read_text()
    own = tilewright("study", "orders", "matmul:M=16,N=16,K=8", "-a", machine, "--mapping", mapping, "-o", "energy",
                     "--memories", "DRAM", "--out", "kept")
    assert own.code == 0, own.err
    assert names(tmp_path / "kept") == ["orders.csv", "orders.html", "orders.json"]
    assert "the same at DRAM" in (tmp_path / "kept/orders.html").read_text()


def test_orders_that_make_no_difference_are_told_so(tilewright):
    found = tilewright("study", "orders", "matmul:M=2,N=1,K=1", "-a", "accel-b", "-b", "20")
    assert found.code == 0, found.err
    assert "Every order (1) has the same score." in found.out


def test_the_landscape_has_every_point_in_a_file(tilewright, tmp_path):
    found = tilewright("study", "landscape", ONE, "-a", "accel-b", "-m", "gamma,random", "--points", "300", "-b", "200",
                       "--out", "kept")
    assert found.code == 0, found.err
    assert names(tmp_path / "kept") == ["all-points.csv", "components.csv", "landscape.html", "landscape.json",
                                        "points.csv"]
    with (tmp_path / "kept/all-points.csv").open(newline="") as file:
        points = list(csv.DictReader(file))
    data = json.loads((tmp_path / "kept/landscape.json").read_text())
    assert {name: one["legal"] for name, one in data["points"].items()} == {
        name: sum(row["Points"] == name for row in points) for name in ("random mappings", "gamma", "random")}
    assert min(float(row["edp"]) for row in points) == data["best"]


def test_crossover_is_taken_out_and_left_alone(tilewright):
    found = tilewright("study", "crossover", ONE, "-a", "accel-b", "-b", "200", "--seeds", "2")
    assert found.code == 0, found.err
    assert "gamma without crossover" in found.out and "crossover only" in found.out


@pytest.mark.parametrize(("words", "message"), [
    (("axes", ONE, "-a", "accel-b", "-m", "nobody"), "mapper: must be a known mapper"),
    (("axes", ONE, "-a", "accel-b", "--seeds", "0"), "seeds: must be from 1 to 100"),
    (("axes", ONE, "-a", "accel-b", "--mapping", "nowhere.yaml"), "nowhere.yaml"),
    (("orders", ONE, "-a", "accel-b", "--memories", "L9", "-b", "50"), "memories: must be among DRAM, Shared, Private"),
    (("orders", "resnet18", "-a", "accel-b"), "layer: must be given"),
    (("landscape", ONE, "-a", "accel-b", "--points", "1"), "points: must be at least 3"),
    (("landscape", ONE, "-a", "accel-b", "-m", "gamma,gamma"), "mappers: must differ"),
    (("crossover", ONE, "-a", "nowhere"), "nowhere"),
])
def test_what_cannot_be_is_refused_with_exit_code_2(tilewright, words, message):
    found = tilewright("study", *words)
    assert (found.code, found.out) == (2, "")
    assert message in found.err

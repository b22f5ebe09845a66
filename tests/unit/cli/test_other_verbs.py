"""``tilewright bounds``, ``list`` and the rest."""

import json
from importlib import metadata

import pytest

from tilewright.cost import kept_bounds, layer_bounds
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Fanout,
    Memory,
    dump_accelerator,
    load_accelerator,
    preset,
    preset_names,
)
from tilewright.mapping import DATAFLOWS, Constraints, MapSpace
from tilewright.search import MAPPERS, METRICS, search
from tilewright.store import Store
from tilewright.workload import ROLES, matmul, unique_operators, zoo


def test_bounds_are_those_of_every_layer(tilewright, tmp_path):
    found = tilewright("bounds", "alexnet", "--arch", "eyeriss", "--vector", "free", "--json", "b.json")
    assert found.code == 0
    layers = json.loads((tmp_path / "b.json").read_text())["layers"]
    expected = [kept_bounds(unique.operator, preset("eyeriss")) for unique in unique_operators(zoo.load("alexnet"))]
    assert [layer["latency_cycles"] for layer in layers] == [bound.latency_cycles for bound in expected]
    assert [layer["energy_pj"] for layer in layers] == [bound.energy_pj for bound in expected]
    total = sum(layer["count"] * layer["latency_cycles"] for layer in layers)
    assert f"at least {total:,} cycles" in found.out


def test_bounds_hold_whatever_memories_keep(tilewright, tmp_path):
    """A mapping that lets all pass takes less than what holds while memories keep what they can."""
    cheap, dear = AccessEnergy(1.0, 1.0, 1.0, 1.0), AccessEnergy(20.0, 20.0, 20.0, 20.0)
    machine = Accelerator("dear", (
        Memory("DRAM", ROLES, AccessEnergy(10.0, 10.0, 10.0, 10.0)), Memory("GLB", ROLES, dear), Fanout("PEs", (4, 4)),
        Memory("reg", ROLES, cheap, capacity_bytes=256)))
    (tmp_path / "dear.yaml").write_text(dump_accelerator(machine))
    operator = matmul("m", m=16, n=16, k=16)
    passed = search(operator, machine, objective="energy", budget=2000, space=MapSpace(
        operator, machine, constraints=Constraints(keeps={"GLB": ()})))
    found = tilewright("bounds", "matmul:M=16,N=16,K=16", "--arch", "dear.yaml", "--json", "b.json")
    [layer] = json.loads((tmp_path / "b.json").read_text())["layers"]
    assert layer["energy_pj"] <= passed.cost.energy_pj < layer_bounds(operator, machine).energy_pj
    assert f"at least {layer['latency_cycles']:,} cycles" in found.out


@pytest.mark.parametrize(("kind", "names"), [
    ("networks", zoo.names()), ("accelerators", preset_names()), ("mappers", tuple(MAPPERS)),
    ("dataflows", tuple(DATAFLOWS)), ("objectives", tuple(METRICS)), ("technologies", ("45nm", "eyeriss-65nm")),
])
def test_everything_is_listed(tilewright, kind, names):
    found = tilewright("list", kind)
    assert found.code == 0
    listed = [line.split()[0] for line in found.out.splitlines() if line.strip()]
    assert set(names) <= set(listed)


def test_an_empty_store_lists_no_runs(tilewright, tmp_path):
    with Store(tmp_path / "runs.sqlite") as made:
        made.runs()
    assert "No runs in sqlite:///" in tilewright("list", "runs").out


def test_a_network_is_shown_layer_by_layer(tilewright):
    out = tilewright("list", "networks", "bert-base:sequence=128").out
    assert "M128 N768 K768" in out and "Options: batch=1, sequence=128" in out


def test_a_network_is_shown_tensor_by_tensor(tilewright):
    lines = [line.split() for line in tilewright("list", "networks", "resnet18", "--tensors").out.splitlines()]
    assert ["maxpool", "1x64x56x56", "200,704", "activation", "layer1.0.conv1:I", "layer1.0.add:1"] in lines


def test_the_default_mapper_comes_first_and_is_called_so(tilewright):
    lines = [line.split() for line in tilewright("list", "mappers").out.splitlines() if line.split()]
    places = [lines.index(line) for line in lines if line[0] in MAPPERS]
    names = [lines[place][0] for place in places]
    assert names == ["auto", *sorted(set(MAPPERS) - {"auto"})]
    assert [line[0] for line in lines if "(default)" in line[:3]] == ["auto"]


def test_a_mapper_is_shown_with_its_options(tilewright):
    out = tilewright("list", "mappers", "random-pruned").out
    assert "remembered" in out and "262144" in out and "Mappings proposed at a time." in out


@pytest.mark.parametrize("name", preset_names())
def test_the_definition_of_an_accelerator_reads_back(tilewright, name):
    found = tilewright("list", "accelerators", name, "--yaml")
    assert load_accelerator(found.out) == preset(name)
    assert tilewright("list", "accelerators", name).out.startswith(f"{name}: ")


def test_the_version_is_that_of_the_package(tilewright):
    assert tilewright("--version").out == f"tilewright {metadata.version('tilewright')}\n"

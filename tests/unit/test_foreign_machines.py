"""Machines in foreign files: what they ask of mappings holds in searches, and what is lost of them is told."""

import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.api import load_accelerator, load_target
from tilewright.base import InputError
from tilewright.cli import app
from tilewright.mapping import Bounds

PROBLEM = """problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data_spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[N]], [[K]]]}
    - {name: Z, projection: [[[M]], [[N]]], read_write: true}
  instance: {M: 16, N: 4, K: 8}
"""
ARCH = """architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: 45nm}}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8}}
  - !Component {name: SMEM, class: SRAM, attributes: {depth: 256, width: 8, datawidth: 8},
                constraints: {temporal: {permutation: [K], factors: [K=1]}}}
  - !Container {name: PE, spatial: {meshX: 4, meshY: 4},
                constraints: {spatial: {permutation: [M, N, K], factors: [N=1, K<=2], split: 1}}}
  - !Component {name: LRF, class: regfile, attributes: {depth: 1, width: 8, datawidth: 8},
                constraints: {dataspace: {keep: [A], bypass: [B, Z]}, temporal: {factors: [M=1]}}}
  - !Component {name: mac, class: intmac, attributes: {width: 8}}
"""
LIST = "architecture_constraints:\n  targets:\n  - {target: SMEM, type: temporal, factors: [N=2]}\n"
OTHER = "matmul:M=8,N=8,K=8"


@pytest.fixture
def files(tmp_path):
    for name, text in (("problem", PROBLEM), ("arch", ARCH), ("list", LIST)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def searched(files, arch="arch.yaml", **options):
    arch = ",".join(str(files / name) for name in arch.split(","))
    return tw.map(str(files / "problem.yaml"), arch, mapper="random", budget=200, store=False, **options)


def test_what_an_architecture_asks_of_mappings_holds_in_a_search(files):
    machine, own = load_target(str(files / "arch.yaml"), str(files / "problem.yaml"))
    assert machine.level("LRF").keeps == ("weights",)
    assert own.factors["SMEM"]["K"] == own.factors["PE.X"]["K"] == Bounds(1, 1)
    assert own.factors["PE.Y"]["K"] == Bounds(1, 2)
    run = searched(files, tiling="perfect")
    assert run.layers["gemm"].mapping is not None
    assert "SMEM: {K: 1}" in run.record.request.space
    space = tw.map_space(str(files / "problem.yaml"), str(files / "arch.yaml"), tiling="perfect")
    assert space.constraints == own


def test_without_its_problem_the_design_could_not_be_mapped(files):
    alone = load_accelerator(str(files / "arch.yaml"))
    assert set(alone.level("LRF").keeps) == {"inputs", "weights", "outputs"}
    run = tw.map(tw.load_network(str(files / "problem.yaml")), alone, mapper="random", budget=50, store=False)
    assert run.layers["gemm"].mapping is None


def test_lists_of_constraints_hold_too_and_those_of_the_user_besides(files):
    assert "N: 2" in searched(files, "arch.yaml,list.yaml", tiling="perfect").record.request.space
    run = searched(files, "arch.yaml,list.yaml", tiling="perfect", constraints="factors:\n  SMEM: {M: 2}\n")
    assert "M: 2" in run.record.request.space
    assert "N: 2" in run.record.request.space
    with pytest.raises(InputError, match="must go with what the files of the machine say"):
        searched(files, "arch.yaml,list.yaml", constraints="factors:\n  SMEM: {N: 4}\n")


def test_a_repeated_command_finds_the_same(files):
    run = searched(files, "arch.yaml,list.yaml", tiling="perfect", footprint="exact")
    assert "--footprint exact" in run.record.request.command
    words = run.record.request.command.split()[1:]
    again = CliRunner().invoke(app, [*words, "--no-store", "--json", str(files / "again.json")])
    assert again.exit_code == 0, again.output
    other = tw.open_run(files / "again.json")
    assert other.energy_pj == run.energy_pj
    assert other.record.accelerator.sha256 == run.record.accelerator.sha256
    assert "footprint" not in other.record.accelerator.definition
    assert "footprint: box" in searched(files).record.accelerator.definition


@pytest.mark.parametrize("verb", [["map", OTHER, "--budget", "20", "--no-store", "--mapper", "random"],
                                  ["bounds", OTHER], ["space", OTHER, "--samples", "0"],
                                  ["evaluate", "--network", OTHER, "--dataflow", "weight-stationary"]])
def test_what_does_not_fit_a_network_is_told_with_file_and_line(files, verb):
    (files / "arch.yaml").write_text(ARCH.replace("depth: 1,", "depth: 64,"))
    done = CliRunner().invoke(app, [*verb, "--arch", str(files / "arch.yaml")], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "arch.yaml:7 architecture.nodes[2].constraints.temporal: dropped: it needs the problem" in done.output
    assert "arch.yaml:9 architecture.nodes[3].constraints.spatial: dropped" in done.output


def test_constraints_on_another_problem_are_told(files):
    done = CliRunner().invoke(app, ["map", OTHER, "--budget", "20", "--no-store", "--mapper", "random", "--arch",
                                    f"{files / 'arch.yaml'},{files / 'problem.yaml'}"])
    assert "dropped: constraints on gemm, which is not the network" in done.output

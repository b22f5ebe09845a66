"""``tilewright map``, and the runs that it leaves behind."""

import csv
import json
import re
import signal
import subprocess
import sys
import time

from tilewright.api import open_run
from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.store import accelerator_of, mapping_of, operator_of

OPERATOR = "matmul:M=16,N=16,K=8"


def test_a_network_is_mapped_shown_and_stored(tilewright, machine, tmp_path):
    found = tilewright("map", "ncf", "--arch", machine, "-m", "gamma", "--budget", "2000", "--report", "out/page.html",
                       "--json", "out/run.json")
    assert found.code == 0
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["network"]["name"] == "ncf"
    assert sum(layer["count"] for layer in run["layers"]) == 4
    assert all(layer["cost"]["latency_cycles"] >= layer["bounds"]["latency_cycles"] for layer in run["layers"])
    assert all(layer["search"]["score"] >= layer["bounds"]["score"] for layer in run["layers"])
    assert all(layer["search"]["samples"] == 2000 for layer in run["layers"])
    assert run["totals"]["macs"] == sum(layer["count"] * layer["operator"]["macs"] for layer in run["layers"])
    assert "ncf on small" in found.out and "100 % of MACs" in found.out
    last = found.out.strip().splitlines()[-1]
    assert re.search(r" samples in \S+ \S*s, after \S+ \S*s of loading and \S+ \S*s of set-up$", last), last
    assert (tmp_path / "out/page.html").read_text().startswith("<!DOCTYPE html>")
    assert f"Stored in sqlite:///{tmp_path}/runs.sqlite" in found.err
    listed = tilewright("list", "runs").out
    assert run["id"] in listed and "8,000" in listed
    again = tilewright("show", "last")
    assert again.out == found.out
    assert tilewright("show", run["id"][:-3]).out == found.out
    assert tilewright("show", tmp_path / "out/run.json").out == found.out


def test_equal_layers_are_searched_once(tilewright, machine, tmp_path):
    found = tilewright("map", "resnet18", "-a", machine, "-b", "500", "--layers", "layer1.*", "--json", "r.json",
                       "--no-store")
    assert found.code == 0
    run = json.loads((tmp_path / "r.json").read_text())
    (layer,) = run["layers"]
    assert (layer["count"], len(layer["names"])) == (4, 4)
    assert run["totals"]["samples"] == 500
    assert "only 4 of 21 layers, those that match layer1.*: 25.5 % of the network's MACs" in found.out
    assert not (tmp_path / "runs.sqlite").exists()


def test_the_same_seed_gives_the_same_mappings_on_any_number_of_workers(tilewright, tmp_path):
    words = ("map", "ncf", "-a", "edge-s1", "-b", "1000", "--seed", "5", "--no-store")
    for workers in (1, 2):
        assert tilewright(*words, "--workers", workers, "--json", f"{workers}.json").code == 0
    one, two = (open_run(tmp_path / f"{workers}.json").record for workers in (1, 2))
    assert [layer.mapping for layer in one.layers] == [layer.mapping for layer in two.layers]
    assert [layer.search.seed for layer in one.layers] == [(5, index) for index in range(4)]


def test_a_stored_run_holds_all_that_repeats_it(tilewright):
    tilewright("map", "ncf", "-a", "edge-s2", "-b", "2000", "--seed", "3", "--objective", "latency", "--mapper",
               "random", "--option", "filling=0.5", "--tiling", "perfect")
    record = open_run("last").record
    machine = accelerator_of(record.accelerator)
    assert machine == preset("edge-s2")
    for layer in record.layers:
        operator = operator_of(layer)
        cost = DenseModel(operator, machine).cost(mapping_of(layer))
        assert (cost.latency_cycles, cost.energy_pj) == (layer.cost.latency_cycles, layer.cost.energy_pj)
    command = tilewright("show", "last", "--command").out.split()
    assert command[:2] == ["tilewright", "map"]
    assert tilewright(*command[1:]).code == 0
    again = open_run("last").record
    assert again.id != record.id
    assert [layer.mapping for layer in again.layers] == [layer.mapping for layer in record.layers]
    assert again.request == record.request
    assert again.network.sha256 == record.network.sha256


def test_json_goes_to_stdout_alone(tilewright, machine):
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "300", "--no-store", "--json", "-")
    assert json.loads(found.out)["layers"][0]["cost"]["macs"] == 2048
    assert "matmul on small" in found.err


def test_a_budget_of_seconds_is_for_the_whole_run(tilewright, machine, tmp_path):
    words = ("map", "ncf", "-a", machine, "-b", "1s", "--no-store", "--json", "r.json", "--workers", "2",
             "--option", "prove=0")  # or it ends once the best mappings are proved
    assert tilewright(*words).code == 0
    run = json.loads((tmp_path / "r.json").read_text())
    assert run["request"]["budget_seconds"] == 0.5
    assert 0.9 < run["totals"]["seconds"] + run["totals"]["setup_seconds"] < 3
    assert "--budget 1s" in run["request"]["command"]


def test_a_layer_without_any_legal_mapping_says_why(tilewright, machine, tmp_path):
    small = machine.read_text().replace("capacity_bytes: 256", "capacity_bytes: 2")
    machine.write_text(small.replace("- memory: Buffer\n", "- memory: Buffer\n    always: true\n"))
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "90", "--json", "r.json")
    assert found.code == 1
    assert "No legal mapping among 90 samples: even the smallest tiles are illegal: Buffer holds 3 B" in found.out
    assert json.loads((tmp_path / "r.json").read_text())["layers"][0]["cost"] is None
    assert "constraints" not in found.out  # there are none, and no mapping that breaks them least


def test_a_layer_that_is_legal_only_where_tensors_pass_is_not_said_to_be_illegal(tilewright, machine):
    machine.write_text(machine.read_text().replace("capacity_bytes: 256", "capacity_bytes: 2"))
    words = ("map", OPERATOR, "-a", machine, "--no-store", "-b")
    told = " ".join(tilewright(*words, "90").out.split())
    assert "illegal where memories keep all that they can (Buffer holds 3 B" in told
    assert "but legal where tensors pass memories: give a larger budget" in told
    assert tilewright(*words, "300").code == 0


def test_every_layer_has_one_batch_however_short_the_time(tilewright, machine):
    found = tilewright("map", "matmul:M=1,N=1,K=1", "-a", machine, "-b", "0.0001ms", "--no-store")
    assert found.code == 0 and "no legal mapping" not in found.out


def test_constraints_that_nothing_meets_are_told(tilewright, machine):
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "300", "-c", "latency<=3", "--no-store")
    assert found.code == 1
    assert "No mapping can meet the constraints for matmul" in found.out


def test_weighted_objectives_and_power_have_bounds(tilewright, machine, tmp_path):
    for objective in ("0.5*latency+0.5*energy", "power"):
        words = ("map", OPERATOR, "-a", machine, "-b", "300", "--no-store", "--objective", objective)
        assert tilewright(*words, "--json", "r.json").code == 0
        layer = json.loads((tmp_path / "r.json").read_text())["layers"][0]
        assert 1.0 <= layer["bounds"]["score"] <= layer["search"]["score"]


def test_a_run_that_cannot_be_stored_is_written_beside(tilewright, machine, tmp_path):
    (tmp_path / "none.sqlite").write_text("this is no database, but it is long enough to be told from an empty file")
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "300", "--store", "none.sqlite")
    assert found.code == 0
    assert "The run was not stored" in found.err
    (saved,) = tmp_path.glob("tilewright-run-*.json")
    assert open_run(saved).layers["matmul"].cost.macs == 2048


def test_a_run_is_exported_as_json_and_csv(tilewright, machine, tmp_path):
    for seed in (1, 2):
        tilewright("map", "ncf", "-a", machine, "-b", "300", "--seed", seed)
    found = tilewright("export", "--json", "all/runs.json", "--csv", "all/layers.csv")
    assert "2 runs" in found.out and "8 layers" in found.out
    runs = json.loads((tmp_path / "all/runs.json").read_text())
    assert [run["request"]["seed"] for run in runs] == [1, 2]
    with (tmp_path / "all/layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["energy_pj"]) for row in rows[:4]] == [layer["cost"]["energy_pj"] for layer in runs[0]["layers"]]
    tilewright("export", "last", "--json", "one.json")
    assert [run["request"]["seed"] for run in json.loads((tmp_path / "one.json").read_text())] == [2]


def test_a_run_that_is_asked_for_twice_is_answered_from_the_store(tilewright, machine):
    words = ("map", "ncf", "-a", machine, "-b", "300")
    assert "From the store" not in tilewright(*words).out
    again = tilewright(*words)
    assert again.code == 0 and "From the store: all layers, searched " in again.out and " 0 samples in " in again.out
    assert "From the store" not in tilewright(*words, "--again").out
    assert "From the store" not in tilewright(*words, "--no-store").out


def test_a_layer_of_a_run_is_shown_closely_and_its_mapping_evaluates_to_the_same(tilewright, machine):
    tilewright("map", "ncf", "-a", machine, "-b", "500")
    shown = tilewright("show", "last", "--layer", "mlp.1", "--mapping", "best.yaml")
    assert shown.code == 0 and "Words moved" in shown.out
    found = tilewright("evaluate", "best.yaml", "-n", "ncf", "-l", "mlp.1", "-a", machine)
    assert (found.code, found.out) == (0, shown.out)


def test_a_checkpointed_run_is_resumed_only_when_asked(tilewright, machine, tmp_path):
    words = ("map", "ncf", "-a", machine, "-b", "1000", "--no-store", "--checkpoint", "kept")
    assert tilewright(*words, "--json", "first.json").code == 0
    refused = tilewright(*words)
    assert refused.code == 2
    assert "--checkpoint: must be a new or empty folder, unless --resume is given" in refused.err
    assert tilewright(*words, "--resume", "--json", "second.json").code == 0
    first, second = (open_run(tmp_path / name).record for name in ("first.json", "second.json"))
    assert [layer.mapping for layer in first.layers] == [layer.mapping for layer in second.layers]
    other = tilewright(*words, "--resume", "--seed", "9")
    assert other.code == 2
    assert "must belong to the same search; seed differ" in other.err
    assert "must come with --checkpoint" in tilewright("map", "ncf", "-a", machine, "--resume").err


def test_a_run_that_ends_early_goes_on_where_it_was(tilewright, tmp_path):
    """Ctrl-C keeps and shows what was found; a killed run resumes, and ends as the undisturbed one would have."""
    words = ["map", "ncf", "-a", "edge-s2", "-m", "gamma", "-b", "8k", "--workers", "1"]
    assert tilewright(*words, "--no-store", "--json", "undisturbed.json").code == 0
    undisturbed = open_run(tmp_path / "undisturbed.json").record
    for blow, folder in ((signal.SIGINT, "interrupted"), (signal.SIGKILL, "killed")):
        kept = ["--checkpoint", folder, "--json", "early.json"]
        process = subprocess.Popen([sys.executable, "-m", "tilewright", *words, *kept], cwd=tmp_path, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + 120
        while len(list(tmp_path.glob(f"{folder}/*.npz"))) < 2 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(blow)
        out, err = process.communicate(timeout=120)
        assert process.returncode == (130 if blow == signal.SIGINT else -signal.SIGKILL)
        if blow == signal.SIGINT:
            assert "Interrupted: of 4 distinct layers " in out
            assert "The same command with --resume takes it up." in err
            early = open_run(tmp_path / "early.json").record
            assert 0 < early.totals.samples < 32_000
            assert open_run("last").record.id == early.id
        assert tilewright(*words, *kept[:2], "--resume", "--again", "--json", "late.json").code == 0
        late = open_run(tmp_path / "late.json").record
        assert late.totals.samples == 32_000
        assert [layer.mapping for layer in late.layers] == [layer.mapping for layer in undisturbed.layers]

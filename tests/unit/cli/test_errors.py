"""Bad input: one message that says what to mend, exit code 2, never a traceback."""

import errno
import os
from importlib import import_module

import pytest

from tilewright.cli import app

OPERATOR = "matmul:M=16,N=16,K=8"
MAP = ("map", OPERATOR, "-a", "edge-s1", "-b", "100", "--no-store")
WRONG = {
    "network": (("map", "resnet51", "-a", "eyeriss"), "must be a known network; Got 'resnet51'; Did you mean"),
    "network file": (("map", "nets/none", "-a", "eyeriss"), "nets/none: must be a file (ONNX, layer table"),
    "network misspelt": (("map", "matmull:M=4,N=4,K=4", "-a", "eyeriss"), "Got 'matmull'; Did you mean matmul"),
    "network folder": (("map", ".", "-a", "eyeriss"), "or a network of the zoo; Got 'a folder'"),
    "network kind": (("map", "notes.txt", "-a", "eyeriss"), "must be a file (ONNX, layer table, foreign format) or"),
    "onnx missing": (("map", "none.onnx", "-a", "eyeriss"), "none.onnx: must be an ONNX file; Got 'no such file'"),
    "onnx broken": (("map", "broken.onnx", "-a", "eyeriss"), "broken.onnx: must be an ONNX file"),
    "table": (("map", "table.yaml", "-a", "eyeriss"), "must be one layer, `kind: {fields}`"),
    "option of the zoo": (("map", "resnet50", "-a", "eyeriss", "--bind", "length=3"), "length"),
    "bind": (("map", "resnet50", "-a", "eyeriss", "--bind", "batch=0"), "--bind batch: must be a positive integer"),
    "bind form": (("map", "resnet50", "-a", "eyeriss", "--bind", "batch"), "--bind: must be NAME=VALUE; Got 'batch'"),
    "operator": (("map", "matmul:M=16,N=16", "-a", "eyeriss"), "must give M, N, K; Got 'no K'"),
    "operator size": (("map", "matmul:M=16,N=x,K=1", "-a", "eyeriss"), "NAME=NUMBER, separated by commas; Got 'N=x'"),
    "operator name": (("map", "conv:K=1,Z=2", "-a", "eyeriss"), "must give only K, C, P, Q, R, S, N, G"),
    "size twice": (("map", "matmul:M=8,M=9,N=4,K=4", "-a", "eyeriss"), "must give each size once; Got 'M=9'"),
    "einsum": (("map", "einsum:ii->i:i=3", "-a", "eyeriss"), "must not repeat a letter"),
    "arch": (("map", "ncf", "-a", "eyeris"), "Got 'eyeris'; Did you mean eyeriss, eyeriss-v2-like?"),
    "arch file": (("map", "ncf", "-a", "mine.yaml"), "mine.yaml: must be an existing file"),
    "arch broken": (("map", "ncf", "-a", "table.yaml"), "table.yaml:2 arch.layers: is not a known field"),
    "objective": ((*MAP, "-o", "speed"), "must be a known metric; Got 'speed'"),
    "objective weight": ((*MAP, "-o", "-1*edp"), "must give each metric a positive weight"),
    "mapper": ((*MAP, "-m", "gama"), "must be a known mapper; Got 'gama'; Did you mean gamma"),
    "mapper option": ((*MAP, "-m", "random", "--option", "bach=3"), "Did you mean batch?"),
    "mapper option value": ((*MAP, "-m", "random", "--option", "batch=x"), "options.batch: must be of type int"),
    "random batch": ((*MAP, "-m", "random", "--option", "batch=0"), "options.batch: must be at least 1; Got 0"),
    "de population": ((*MAP, "-m", "de", "--option", "population=10000000"), "at least 1 and at most 10000"),
    "random filling": ((*MAP, "-m", "random", "--option", "filling=nan"), "options.filling: must be a finite number"),
    "pruned draws": ((*MAP, "-m", "random-pruned", "--option", "draws=-1"), "options.draws: must be at least 1"),
    "exhaustive batch": ((*MAP, "-m", "exhaustive", "--option", "batch=0"), "options.batch: must be at least 1"),
    "gamma rate": ((*MAP, "-m", "gamma", "--option", "crossover=7"),
                   "options.crossover: must be at least 0 and at most 1"),
    "gamma population": ((*MAP, "--option", "population=99999999999"), "options.population: must be at most 16777216"),
    "budget": ((*MAP[:-2], "x", "--no-store"), "budget: must be a number of samples or a time"),
    "budget endless": ((*MAP[:-2], "1e400", "--no-store"), "budget.samples: must be at most"),
    "budget too large": ((*MAP[:-2], "1e19", "--no-store"), "budget.samples: must be at most"),
    "seed": ((*MAP, "--seed", "-1"), "seed: must be a whole number from 0 to 9223372036854775807; Got -1"),
    "seed too large": ((*MAP, "--seed", "9223372036854775808"), "seed: must be a whole number from 0 to"),
    "size": (("map", "matmul:M=2147483648,N=1,K=1", "-a", "eyeriss"), "matmul.M: must be at most 2,147,483,647"),
    "macs": (("map", "matmul:M=300000,N=300000,K=300000", "-a", "eyeriss"), "matmul.macs: must be at most 2,251"),
    "bind of an operator": ((*MAP, "--bind", "batch=3"), "bind: must be left out where operators are given"),
    "budget zero": ((*MAP[:-2], "0", "--no-store"), "budget.samples: must be positive"),
    "budget of endless time": ((*MAP[:-2], "1e400s", "--no-store"), "budget.seconds: must be positive and finite"),
    "constraint": ((*MAP, "-c", "latency=3"), "must be METRIC<=NUMBER"),
    "constraint metric": ((*MAP, "-c", "cost<=3"), "must be a known metric; Got 'cost'"),
    "layers": (("map", "resnet18", "-a", "eyeriss", "--layers", "x*"), "must match at least one layer of resnet18"),
    "report place": ((*MAP, "--report", "."), "must be a file that can be written; Got 'a folder'"),
    "json place without a name": ((*MAP, "--json", ""), "must be a file that can be written; Got 'a folder'"),
    "report folder": ((*MAP, "--report", "broken.onnx/page.html"), "must be a place that can be written"),
    "plan place": (("fuse", "bert-base", "-a", "flat-edge", "--save", "broken.onnx/plan"), "must be a place that can"),
    "study place": (("study", "landscape", OPERATOR, "-a", "edge-s1", "--out", "broken.onnx/x"),
                    "landscape.json: must be a place"),
    "resume": ((*MAP, "--resume"), "--resume: must come with --checkpoint FOLDER"),
    "checkpoint": ((*MAP, "--checkpoint", "broken.onnx"), "--checkpoint: must be a folder"),
    "area": (("map", OPERATOR, "-a", "bare.yaml", "-o", "latency-area"), "must be known to minimise area"),
    "evaluate nothing": (("evaluate",), "--network: must be given"),
    "evaluate arch": (("evaluate", "-n", OPERATOR), "--arch: must be given"),
    "evaluate mapping": (("evaluate", "-n", OPERATOR, "-a", "eyeriss"), "MAPPING: must be given, or --dataflow"),
    "evaluate both": (("evaluate", "m.yaml", "--dataflow", "nvdla", "-n", OPERATOR, "-a", "eyeriss"), "Got 'both'"),
    "evaluate layer": (("evaluate", "m.yaml", "-n", "resnet50", "-l", "conv9", "-a", "eyeriss"), "Did you mean conv1?"),
    "evaluate no layer": (("evaluate", "m.yaml", "-n", "resnet50", "-a", "eyeriss"),
                          "layer: must be given, as resnet50 has 54 layers"),
    "mapping missing": (("evaluate", "none.yaml", "-n", OPERATOR, "-a", "eyeriss"),
                        "must be an existing file"),
    "mapping level": (("evaluate", "m.yaml", "-n", OPERATOR, "-a", "eyeriss"), "m.yaml:2"),
    "dataflow": (("evaluate", "--dataflow", "nvdl", "-n", OPERATOR, "-a", "eyeriss"), "Did you mean nvdla"),
    "cases alone": (("evaluate", "m.yaml", "--cases", "c.jsonl"), "--cases: must stand alone"),
    "cases missing": (("evaluate", "--cases", "c.jsonl"), "c.jsonl: must be a readable text file"),
    "reference": (("evaluate", "--reference"), "--reference: must come with --cases"),
    **{" ".join(words): (words, "runs.sqlite: must be there; Fill one: tilewright map") for words in (
        ("show", "last"), ("explain", "last"), ("list", "runs"),
        ("list", "library"), ("list", "library", "ab"), ("export", "--csv", "runs.csv"),
        ("export", "--library", "library.json"), ("prune", "--all"))},
    "show file": (("show", "none.json"), "none.json: must be a readable JSON file"),
    "show foreign": (("show", "table.yaml"), "table.yaml:1: must be JSON"),
    "export": (("export",), "export: must be told where to"),
    "list name": (("list", "objectives", "edp"), "NAME: must be left out for objectives"),
    "list yaml": (("list", "networks", "--yaml"), "--yaml: must come with the name of an accelerator"),
    "list tensors": (("list", "mappers", "--tensors"), "--tensors: must come with the name of a network"),
    "bounds": (("bounds", "resnet50", "-a", "nvdla"), "Did you mean nvdla-like?"),
}


@pytest.mark.parametrize("case", WRONG, ids=[name.replace(" ", "-") for name in WRONG])
def test_bad_input_is_one_message(tilewright, tmp_path, case):
    (tmp_path / "broken.onnx").write_bytes(b"no such format")
    (tmp_path / "table.yaml").write_text("name: t\nlayers: [3]\n")
    (tmp_path / "notes.txt").write_text("resnet50")
    (tmp_path / "m.yaml").write_text("levels:\n  - level: Cache\n")
    (tmp_path / "bare.yaml").write_text(
        "name: bare\nfrequency_mhz: 1\nword_bits: {inputs: 8, weights: 8, outputs: 8}\nlevels:\n"
        "  - {memory: D, keeps: [inputs, weights, outputs], "
        "energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}}\n"
        "compute: {energy_pj_per_mac: 1}\n")
    words, message = WRONG[case]
    found = tilewright(*words)
    assert found.code == 2
    assert message in found.err
    assert found.err.startswith("Error: ") and found.err.count("\n") == 1
    assert found.out == "" and not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize(("case", "function"), [("plan place", "fuse"), ("study place", "study_landscape")])
def test_places_are_looked_at_before_anything_is_computed(tilewright, monkeypatch, tmp_path, case, function):
    def computed(*_, **__):
        raise AssertionError("computed for nothing")

    (tmp_path / "broken.onnx").touch()
    monkeypatch.setattr(f"tilewright.api.{function}", computed)
    words, message = WRONG[case]
    refused = tilewright(*words)
    assert refused.code == 2
    assert message in refused.err


def test_a_working_folder_that_is_gone_is_told(tilewright, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr("tilewright.api.bounds", lambda *_, **__: os.getcwd())  # as what is not compiled yet asks
    found = tilewright("bounds", "ncf", "-a", "eyeriss")
    assert (found.code, found.out) == (2, "")
    assert found.err == "Error: working folder: must be there; Go to a folder that is.\n"


def test_a_fault_of_ours_says_so_and_shows_its_traceback_when_asked(tilewright, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("oh")

    monkeypatch.setattr("tilewright.api.bounds", broken)
    found = tilewright("bounds", "ncf", "-a", "eyeriss")
    assert found.code == 70
    assert found.err.startswith("Internal error: RuntimeError: oh\nThis is a fault of Tilewright")
    with pytest.raises(RuntimeError, match="oh"):
        tilewright("bounds", "ncf", "-a", "eyeriss", "--debug")


def test_a_disk_without_room_is_no_fault_of_ours(tilewright, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tilewright.api.bounds", full)
    found = tilewright("bounds", "ncf", "-a", "eyeriss")
    assert found.code == 2
    assert found.err == ("Error: standard output: must be a place with room; Got 'No space left on device'; Make room, "
                         "or write elsewhere.\n")


@pytest.mark.parametrize("verb", [command.name for command in app.registered_commands])
def test_every_verb_explains_itself(tilewright, monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "80")
    found = tilewright(verb, "--help")
    assert found.code == 0 and f"tilewright {verb}" in found.out
    assert verb == "compare" or "\N{HORIZONTAL ELLIPSIS}" not in found.out, "a word too long; defaults of compare are"


@pytest.mark.parametrize("words", [("mop",), ("map", "--arc", "eyeriss"), ("list", "things"), ()])
def test_unknown_words_end_with_code_two(tilewright, words):
    found = tilewright(*words)
    assert found.code == 2
    assert "Traceback" not in found.err


def test_a_verb_is_made_without_the_others_and_all_are_where_none_is_called_so():
    cli = import_module("tilewright.cli.verbs")
    assert [[*cli._command(verb).commands] for verb in ("design", "study")] == [["design"], ["study"]]
    assert {*cli._command("desing").commands} == {*cli._command("").commands} == {*cli.VERBS}

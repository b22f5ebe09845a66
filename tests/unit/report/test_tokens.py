"""What a language model takes for each token: figures by formula, and where they are shown."""

import json

import pytest

import tilewright as tw
from tilewright.cli import main
from tilewright.hardware import preset, preset_names
from tilewright.mapping import precise_graph
from tilewright.report import render_page, token_lines
from tilewright.store import record_to_json, run_from_json, tokens_record
from tilewright.workload import table_graph, zoo

# Llama 3 8B (arXiv:2407.21783, table 3): 32 blocks of width 4096, 8 groups of 128, feed-forward 14336, 128256 words.
READ = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128256
CACHED = 2 * 32 * 8 * 128


@pytest.mark.parametrize(("machine", "word"), [("tpu-like", 1), ("eyeriss", 2)])
@pytest.mark.parametrize(("batch", "phase"), [(1, "decode"), (8, "decode"), (1, "prefill"), (8, "prefill")])
def test_bytes_of_weights_and_cache_are_those_of_the_formulas(machine: str, word: int, batch: int, phase: str) -> None:
    new, context = (1, 4096) if phase == "decode" else (256, 256)
    length = {"context": context} if phase == "decode" else {"sequence": new}
    graph, accelerator = zoo.load("llama-3-8b", phase=phase, batch=batch, **length), preset(machine)
    found = tokens_record(graph, accelerator, 1e6, 5e6)
    assert found is not None
    assert found.weight_bytes == READ * word
    assert found.cache_read_bytes == CACHED * batch * context * word
    assert found.cache_written_bytes == CACHED * batch * new * word
    assert found.tokens == batch * new
    assert found.macs * found.tokens == graph.macs
    assert found.latency_cycles * found.tokens == 1e6
    assert found.energy_pj * found.tokens == 5e6
    assert found.tokens_per_second == pytest.approx(batch * new * accelerator.frequency_mhz)
    assert found.compute_cycles == graph.macs / accelerator.compute_instances


def test_types_of_weights_are_not_those_of_keys_and_values() -> None:
    machine = preset("tpu-like")
    graph = precise_graph(zoo.load("llama-3-8b:phase=decode,context=64"), machine, "inputs=fp16,weights=int4")
    found = tokens_record(graph, machine, 1.0, 1.0)
    assert found is not None
    assert found.weight_bytes == READ / 2
    assert (found.cache_read_bytes, found.cache_written_bytes) == (CACHED * 64 * 2, CACHED * 2)


def test_tied_weights_are_read_too() -> None:
    """Gemma 2B (arXiv:2403.08295, table 1): the head reads the table of words."""
    found = tokens_record(zoo.load("gemma-2b:phase=decode"), preset("tpu-like"), 1.0, 1.0)
    assert found is not None
    assert found.weight_bytes == 18 * (2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 16384) + 2048 * 256000


UNLIMITED = {"accel-b-sparse", "confuciux", "magma-core"}
FEW_UNITS = {"dnnfuser", "edge-s1", "edge-s2", "edge-s3", "eyeriss-v2-like"}
"""Units behind bytes a cycle, as 168 behind 32: eight rows for each byte of weights are more than they do."""


@pytest.mark.parametrize("batch", [1, 8])
def test_decode_is_bound_by_memory_on_presets_with_a_bandwidth(batch: int) -> None:
    graph = zoo.load("llama-3-8b", phase="decode", context=4096, batch=batch)
    said = {name: token_lines(tokens_record(graph, preset(name), 1.0, 1.0), 1000)[-1][1] for name in preset_names()}
    bound = {name for name, text in said.items() if text.startswith("memory-bound: DRAM holds it ")}
    assert bound == set(preset_names()) - UNLIMITED - (FEW_UNITS if batch == 8 else set())
    assert said["confuciux"] == "compute-bound: the bandwidth of DRAM is unlimited"


def test_the_roof_is_told_in_numbers() -> None:
    """A block of 16 x 16 products by hand: bytes over 32 a cycle, multiply-accumulates over 168 units."""
    graph = table_graph({"phases": {"prefill": {"sequence": 4}}, "input": [4, 16],
                         "layers": [{"linear": {"name": "l", "out": 16}}]})
    found = tokens_record(graph, preset("edge-s1"), 1.0, 1.0)
    assert found is not None
    assert (found.memory_cycles, found.compute_cycles) == ((16 * 16 + 2 * 4 * 16) / 32, 4 * 16 * 16 / 168)
    assert token_lines(found, 200)[-1] == ("Roof", "memory-bound: DRAM holds it 1.97x below the compute roof")


@pytest.fixture(scope="module")
def run():
    graph = table_graph({
        "name": "tiny", "phases": {"prefill": {"sequence": 4}, "decode": {"context": 8}}, "input": [1, 16],
        "layers": [{"decoder": {"name": "l", "repeat": 2, "heads": 4, "groups": 2, "feedforward": 32,
                                "context": "$context"}}]}, {"phase": "decode", "batch": 2})
    return tw.map(graph, "edge-s1", budget=20, store=False)


def test_a_run_shows_and_keeps_them(run) -> None:
    record, totals = run.record, run.record.totals
    assert record.tokens is not None
    assert record.tokens.tokens == 2
    assert record.tokens.latency_cycles == totals.latency_cycles / 2
    assert record.tokens.energy_pj == totals.energy_pj / 2
    lines = token_lines(record.tokens, 200)
    assert [head for head, _ in lines] == ["Tokens", "Pass", "Roof"]
    for _, text in lines:
        assert text in str(run)
        assert text in render_page(record)
    assert "reads 4.5 KiB of weights and 512 B of cached keys and values, and appends 64 B" in str(run)
    assert run_from_json(record_to_json(record)).tokens == record.tokens


def test_other_networks_have_none(run) -> None:
    assert tokens_record(zoo.load("ncf"), preset("edge-s1"), 1.0, 1.0) is None
    assert tw.map("matmul:M=4,N=4,K=4", "edge-s1", budget=5, store=False).record.tokens is None


def test_bounds_tell_what_no_mapping_beats(monkeypatch, capsys) -> None:
    network = "llama-3-8b:phase=decode,context=64"
    monkeypatch.setattr("sys.argv", ["tilewright", "bounds", network, "--arch", "tpu-like", "--json", "-"])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert not end.value.code
    found = json.loads(out)
    assert found["tokens"]["latency_cycles"] == found["totals"]["latency_cycles"]
    assert found["tokens"]["weight_bytes"] == READ
    assert "Tokens: at most " in err
    assert "tokens/s: at least " in err


@pytest.mark.parametrize("network", ["llama-3-8b:phase=decod", "llama-3-8b:phase=decode,context=0",
                                     "llama-3-8b:phase=decode,sequence=2", "bert-base:phase=decode"])
def test_wrong_phases_end_with_one_line(network: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["tilewright", "bounds", network, "--arch", "tpu-like"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1

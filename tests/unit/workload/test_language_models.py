"""Language models with phases: multiply-accumulates, weights and cache against formulas of their published sizes."""

from dataclasses import dataclass

import pytest

from tilewright.base import InputError
from tilewright.workload import Graph, MacNode, VectorOperator, coverage, read_table, table_graph, unique_operators, zoo


@dataclass(frozen=True)
class Sizes:
    """What a configuration publishes; ``parameters`` are all of them, norms included."""

    layers: int
    width: int
    heads: int
    groups: int
    head: int
    inner: int
    vocabulary: int
    parameters: int
    tied: bool = False
    experts: int = 1
    active: int = 1

    def macs(self, sequences: int, new: int, context: int) -> int:
        """Each new token passes every matrix that it is sent to, and attends to ``context`` tokens in two products."""
        attention = self.width * self.heads * self.head * 2 + self.width * self.groups * self.head * 2
        router = self.width * self.experts if self.experts > 1 else 0
        block = attention + router + self.active * 3 * self.width * self.inner + 2 * self.heads * self.head * context
        return sequences * new * (self.layers * block + self.width * self.vocabulary)

    def weights(self, experts: int) -> int:
        """Words of matrices and tables where so many experts of each block are read."""
        attention = self.width * self.heads * self.head * 2 + self.width * self.groups * self.head * 2
        router = self.width * self.experts if self.experts > 1 else 0
        block = attention + router + experts * 3 * self.width * self.inner
        return self.layers * block + self.width * self.vocabulary * (1 if self.tied else 2)

    def cache(self, sequences: int, tokens: int) -> int:
        """Words of keys and values of so many tokens."""
        return 2 * self.layers * self.groups * self.head * sequences * tokens


# num_hidden_layers, hidden_size, num_attention_heads, num_key_value_heads, head_dim, intermediate_size, vocab_size of
# config.json, and the parameters that model.safetensors.index.json tells (its bytes of bfloat16, halved).
KNOWN = {
    # arXiv:2407.21783, table 3; meta-llama/Meta-Llama-3-8B
    "llama-3-8b": Sizes(32, 4096, 32, 8, 128, 14336, 128256, 8030261248),
    # arXiv:2310.06825, table 1; mistralai/Mistral-7B-v0.1
    "mistral-7b": Sizes(32, 4096, 32, 8, 128, 14336, 32000, 7241732096),
    # arXiv:2401.04088, table 1; mistralai/Mixtral-8x7B-v0.1
    "mixtral-8x7b": Sizes(32, 4096, 32, 8, 128, 14336, 32000, 46702792704, experts=8, active=2),
    # arXiv:2403.08295, table 1; google/gemma-2b
    "gemma-2b": Sizes(18, 2048, 8, 1, 256, 16384, 256000, 2506172416, tied=True),
}
PASSES = [("prefill", 1), ("prefill", 8), ("decode", 1), ("decode", 8)]


def operand_words(graph: Graph, weights: str) -> int:
    """Words of the right sides that are marked so ("" for weights proper)."""
    return sum(node.operator.tensor("W").words(node.operator.sizes) for node in graph.mac_nodes
               if dict(node.operator.attributes).get("weights", "") == weights)


@pytest.mark.parametrize(("phase", "batch"), PASSES)
@pytest.mark.parametrize("name", KNOWN)
def test_a_pass_agrees_with_the_formulas(name: str, phase: str, batch: int) -> None:
    sizes, decode = KNOWN[name], phase == "decode"
    new, context = (1, 4096) if decode else (512, 512)
    length = {"context": context} if decode else {"sequence": new}
    graph = zoo.load(name, phase=phase, batch=batch, **length)
    read = min(sizes.experts, batch * new * sizes.active)
    assert graph.tokens == batch * new
    assert graph.macs == sizes.macs(batch, new, context)
    assert graph.weight_words == sizes.weights(read)
    assert operand_words(graph, "cache") == sizes.cache(batch, context)
    appended = [node for node in graph.nodes if node.kind == "append"]
    assert sum(node.written_words for node in appended) == sizes.cache(batch, new)
    assert sum(dict(node.attributes)["cache"] for node in appended) == sizes.cache(batch, context)
    assert coverage(graph).complete
    assert len(unique_operators(graph)) <= 8


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_are_the_published_ones_but_for_norms(name: str) -> None:
    sizes = KNOWN[name]
    norms = (2 * sizes.layers + 1) * sizes.width
    assert zoo.load(name).weight_words + norms == sizes.parameters


@pytest.mark.parametrize(("phase", "rows"), [("prefill", 2 * 64), ("decode", 2)])
def test_a_state_space_agrees_with_the_formulas(phase: str, rows: int) -> None:
    """Mamba 130M (arXiv:2312.00752; state-spaces/mamba-130m-hf): 24 blocks of 768, 1536 within, state 16, rank 48."""
    graph = zoo.load("mamba-130m", phase=phase, batch=2, **({"sequence": 64} if phase == "prefill" else {}))
    block = 768 * 3072 + 1536 * 4 + 1536 * (48 + 2 * 16) + 48 * 1536 + 1536 * 768
    assert graph.tokens == rows
    assert graph.macs == rows * (24 * block + 768 * 50280)
    assert graph.weight_words == 24 * block + 768 * 50280
    others = 1536 + 1536 + 1536 * 16 + 1536 + 768  # biases of convolution and steps, A, D, norm
    assert graph.weight_words + 24 * others + 768 == 129135360
    scan = graph.node("layer.0.scan")
    assert isinstance(scan, VectorOperator)
    assert scan.operations == 8 * rows * 1536 * 16
    assert scan.written_words == rows * 1536 + 2 * 1536 * 16
    assert scan.read_words == rows * (2 * 1536 + 2 * 16) + 3 * 1536 * 16


def test_every_network_with_phases_is_held() -> None:
    held = {*KNOWN, "mamba-130m"}
    assert held == {name for name in zoo.names() if zoo.describe(name).phases}


def test_a_group_reads_its_keys_once() -> None:
    graph = zoo.load("llama-3-8b:phase=decode,context=100,batch=2")
    node = graph.node("layer.0.attention.scores")
    assert isinstance(node, MacNode)
    assert dict(node.operator.dimensions) == {"B": 2 * 8, "M": 4, "N": 100, "K": 128}
    assert node.inputs == ("layer.0.attention.query.rotary", "layer.0.attention.key.append")
    softmax = graph.node("layer.0.attention.softmax")
    assert isinstance(softmax, VectorOperator)
    assert softmax.written_words == 2 * 32 * 100


@pytest.mark.parametrize(("batch", "shares"), [(1, [(2, 1)]), (4, [(8, 1)]), (5, [(2, 2), (6, 1)]), (8, [(8, 2)])])
def test_tokens_spread_evenly_over_experts(batch: int, shares: list[tuple[int, int]]) -> None:
    graph = zoo.load("mixtral-8x7b", phase="decode", batch=batch)
    names = ("layer.0.ff.experts.gate", "layer.0.ff.experts.rest.gate")
    gates = [node for node in graph.mac_nodes if node.name in names]
    assert [(node.operator.sizes.get("B", 1), node.operator.sizes["M"]) for node in gates] == shares
    assert "products of tokens spread evenly over experts" in coverage(graph).sentence


@pytest.mark.parametrize(("text", "message"), [
    ("llama-3-8b:phase=dcode", "llama-3-8b.options: must be a known phase; Got 'dcode'; Did you mean decode?"),
    ("llama-3-8b:phase=", "must give options as `name:option=number,...`; Got 'phase='"),
    ("llama-3-8b:phase=decode,context=0", "llama-3-8b.options.context: must be a positive integer; Got 0."),
    ("llama-3-8b:phase=decode,sequence=5", "options in decode: must be a known option; Got 'sequence'; Known: batch, "),
    ("llama-3-8b:context=5", "llama-3-8b.options in prefill: must be a known option; Got 'context'; Known: batch, seq"),
    ("bert-base:phase=decode", "bert-base.options: must be a known option; Got 'phase'"),
])
def test_wrong_phases_and_options(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        zoo.load(text)
    assert message in str(error.value)


BLOCK = {"name": "l", "repeat": 1, "heads": 4, "feedforward": 8, "context": 3}


@pytest.mark.parametrize(("block", "message"), [
    ({"groups": 3}, "l.0.attention.groups: must divide the 4 heads; Got 3."),
    ({"context": 2}, "l.context: must be at least the 3 positions; Got 2."),
    ({"experts": 2, "active": 3}, "l.active: must be from 1 to the 2 experts; Got 3."),
    ({"experts": 2}, "l.active: must be from 1 to the 2 experts; Got 0."),
    ({"active": 1}, "l.active: must be left out without experts; Got 1."),
])
def test_wrong_blocks(block: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        table_graph({"input": [3, 16], "layers": [{"decoder": {**BLOCK, **block}}]})
    assert message in str(error.value)


def test_groups_of_any_transformer() -> None:
    """Two heads of keys and values for four of queries, each 4 wide: half the projections, and half the batch."""
    layers = [{"transformer": {"name": "t", "repeat": 1, "heads": 4, "feedforward": 8, "groups": 2}}]
    graph = table_graph({"input": [3, 16], "layers": layers})
    assert graph.macs == 3 * (2 * 16 * 16 + 2 * 16 * 8 + 2 * 16 * 8) + 2 * 4 * 3 * 3 * 4
    scores = graph.node("t.0.attention.scores")
    assert isinstance(scores, MacNode)
    assert dict(scores.operator.dimensions) == {"B": 2, "M": 6, "N": 3, "K": 4}


@pytest.mark.parametrize(("phases", "message"), [
    ("[]", "t.phases: must hold the options of prefill and decode; Got []"),
    ("{}", "t.phases: must hold the options of prefill and decode; Got {}"),
    ("{train: {}}", "t.phases: must hold the options of prefill and decode"),
    ("{prefill: {}}", "t.phases.prefill: must hold the option sequence"),
    ("{decode: 3}", "t.phases: must hold the options of prefill and decode"),
])
def test_wrong_phases_of_a_table(phases: str, message: str, tmp_path) -> None:
    (tmp_path / "t.yaml").write_text(f"name: t\nphases: {phases}\nlayers: [{{matmul: {{m: 1, n: 1, k: 1}}}}]\n")
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "t.yaml")
    assert message in str(error.value)

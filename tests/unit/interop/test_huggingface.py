"""Configurations of Hugging Face: known networks against the zoo, small ones of every kind, wrong ones."""

import json
from math import prod
from pathlib import Path

import onnx
import pytest

from tilewright.base import InputError, extras
from tilewright.cli import main
from tilewright.hardware import preset
from tilewright.interop import format_of, load_huggingface, load_onnx, load_torch
from tilewright.store import tokens_record
from tilewright.workload import DataMovement, Unmodelled, coverage, table_graph, tensor_graph, zoo

CLASSES = {"id2label": {str(index): str(index) for index in range(1000)}}
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Write a configuration into a folder of its own and read it, each once."""
    folder, kept = tmp_path_factory.mktemp("model"), {}

    def build(model_type, *, bind=None, **values):
        text = json.dumps({"model_type": model_type, **values})
        key = text, json.dumps(bind)
        if key not in kept:
            (folder / "config.json").write_text(text)
            kept[key] = load_huggingface(folder, bind=bind)
        return kept[key]

    return build


def nests(graph):
    """Return the nests of a network, whatever the order and the names."""
    return sorted(tuple(size for _, size in node.operator.dimensions if size > 1) for node in graph.mac_nodes)


# Known networks: the zoo's entry (whose totals are published), and the configuration with its sizes.
KNOWN = {
    "resnet18": ("resnet18", "resnet", {"architectures": ["ResNetForImageClassification"], "depths": [2, 2, 2, 2],
                                        "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic", **CLASSES},
                 {"batch": 1, "image": 224}),
    "mobilenet-v2": ("mobilenet-v2", "mobilenet_v2", {"architectures": ["MobileNetV2ForImageClassification"],
                                                      **CLASSES}, {"batch": 1}),
    "bert-base": ("bert-base", "bert", {}, {"batch": 1, "sequence": 128}),
    "resnet50": ("resnet50", "resnet", {"architectures": ["ResNetForImageClassification"], **CLASSES},
                 {"batch": 2, "image": 224}),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", KNOWN)
def test_a_known_network_is_that_of_the_zoo(case, load):
    name, model_type, values, bind = KNOWN[case]
    ours = load(model_type, bind=bind, **values)
    theirs = zoo.load(name, **{key: size for key, size in bind.items() if key != "image"})
    assert nests(ours) == nests(theirs)
    assert ours.macs == theirs.macs
    assert ours.weight_words == theirs.weight_words
    assert coverage(ours).sentence == "100 % of MACs, 100 % of bytes modelled"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model_type", "values"), [
    ("gpt2", "gpt2", {"architectures": ["GPT2LMHeadModel"]}),
    ("bert-large", "bert", {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
                            "intermediate_size": 4096}),
])
def test_larger_networks_are_those_of_the_zoo(name, model_type, values, load):
    ours, theirs = load(model_type, bind={"batch": 1, "sequence": 128}, **values), zoo.load(name, sequence=128)
    assert (ours.macs, ours.weight_words) == (theirs.macs, theirs.weight_words)


@pytest.mark.slow
def test_t5_has_the_weights_of_the_zoo_and_its_position_biases(load):
    bind = {"batch": 1, "sequence": 64, "target": 32}
    ours = load("t5", bind=bind, architectures=["T5ForConditionalGeneration"], d_model=768, d_ff=3072, num_layers=12,
                num_heads=12)
    theirs = zoo.load("t5-base", **bind)
    assert (ours.macs, ours.weight_words) == (theirs.macs, theirs.weight_words + 2 * 32 * 12)


def test_resnet50_is_that_of_its_onnx_file(load):
    _, model_type, values, _ = KNOWN["resnet50"]
    ours = load(model_type, bind={"batch": 1, "image": 224}, **values)
    theirs = load_onnx(LIGHT / "light_resnet50.onnx")
    assert ours.macs == theirs.macs
    assert len(ours.mac_nodes) == len(theirs.mac_nodes)


TEXT = {"batch": 2, "sequence": 8}
TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 24, "vocab_size": 50}


def test_llama_by_hand(load):
    graph = load("llama", bind=TEXT, architectures=["LlamaForCausalLM"], num_key_value_heads=2, head_dim=4, **TINY)
    rows, attention = 16, 2 * 4 * 8 * 8 * 4
    weights = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 24 + 16 * 50
    assert graph.macs == rows * weights + 2 * attention
    assert graph.weight_words == weights + 50 * 16
    assert [node.name for node in graph.mac_nodes] == [
        *(f"model.layers.0.self_attn.{name}"
          for name in ("q_proj", "k_proj", "v_proj", "matmul", "matmul_2", "o_proj")),
        *(f"model.layers.0.mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")), "lm_head"]
    assert graph.node("model.embed_tokens").kind == "embedding"
    assert graph.notes[0] == "LlamaForCausalLM without weights, batch = 2, sequence = 8"


def test_mixtral_by_hand(load):
    graph = load("mixtral", bind=TEXT, architectures=["MixtralForCausalLM"], num_key_value_heads=2,
                 num_local_experts=4, num_experts_per_tok=2, **TINY)
    rows, experts = 16, 16 * 2 * (3 * 16 * 24)
    dense = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 16 * 4 + 16 * 50
    assert graph.macs == rows * dense + experts + 2 * (2 * 4 * 8 * 8 * 4)
    assert graph.weight_words == dense + 4 * 3 * 16 * 24 + 50 * 16
    first = graph.node("model.layers.0.mlp.experts.grouped_mm")
    assert dict(first.operator.dimensions) == {"B": 4, "M": 8, "N": 48, "K": 16}
    assert "tokens spread evenly over experts: how they spread depends on the data" in coverage(graph).sentence


@pytest.mark.parametrize(("tokens", "shares"), [(7, [(2, 4), (2, 3)]), (1, [(2, 1)])])
def test_tokens_spread_over_experts_as_evenly_as_they_go(tokens, shares, load):
    graph = load("mixtral", bind={"batch": 1, "sequence": tokens}, num_key_value_heads=2, num_local_experts=4,
                 num_experts_per_tok=2, **TINY)
    nodes = [node for node in graph.mac_nodes if "experts.grouped_mm" in node.name]
    assert sum(node.macs for node in nodes) == tokens * 2 * 3 * 16 * 24
    sizes = [dict(node.operator.dimensions) for node in nodes[:len(shares)]]
    assert [(one["B"], one["M"]) for one in sizes] == shares
    assert "weights" not in dict(nodes[-1].operator.attributes)
    pair = {node.name for node in nodes[:len(shares)]}
    assert any(pair <= set(node.inputs) for node in graph.nodes)


def test_gpt2_by_hand(load):
    graph = load("gpt2", bind=TEXT, architectures=["GPT2LMHeadModel"], n_embd=16, n_layer=1, n_head=4, vocab_size=50,
                 n_positions=20)
    weights = 16 * 48 + 16 * 16 + 2 * 16 * 64
    assert graph.macs == 16 * (weights + 16 * 50) + 2 * (2 * 4 * 8 * 8 * 4)
    assert graph.weight_words == weights + 50 * 16 + 20 * 16  # the head shares the table of words
    assert dict(graph.node("lm_head").operator.attributes)["weights"] == "tied"


GROUPED = {**TINY, "num_key_value_heads": 2, "head_dim": 4}
CACHED = {"batch": 2, "context": 8, "phase": "decode"}
# A class and its configuration, made as transformers makes it.
CAUSAL = {
    "llama": ("LlamaForCausalLM", GROUPED),
    "mistral": ("MistralForCausalLM", {**GROUPED, "sliding_window": 4}),
    "mixtral": ("MixtralForCausalLM", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2ForCausalLM", GROUPED),
    "gemma": ("GemmaForCausalLM", {**GROUPED, "num_key_value_heads": 1}),
    "phi3": ("Phi3ForCausalLM", {**GROUPED, "pad_token_id": 0}),
    "falcon": ("FalconForCausalLM", {**TINY, "multi_query": True}),
    "gptj": ("GPTJForCausalLM", {"n_embd": 16, "n_layer": 1, "n_head": 4, "rotary_dim": 4, "vocab_size": 50}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 16, "n_layer": 1, "n_head": 4, "vocab_size": 50}),
}
ALIKE = "qwen2", "phi3", "gptj"
"""What attends as others do: to groups of heads as llama, or to heads as gpt2."""


def counted(name, values, architecture, past, inputs):
    """Multiply-accumulates that PyTorch counts as a model of random weights runs behind ``past`` tokens."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    from tilewright.interop.pytorch.huggingface import cache_argument

    config = transformers.CONFIG_MAPPING[name](**values)
    eager = {"attn_implementation": "eager", **({"experts_implementation": "eager"} if name == "mixtral" else {})}
    model = getattr(transformers, architecture)._from_config(config, **eager).eval()
    if past:
        zeros = torch.zeros((inputs["input_ids"].shape[0], past), dtype=torch.long)
        inputs[cache_argument(model)] = model(zeros, use_cache=True).past_key_values
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**inputs)
    return counter.get_total_flops() / 2


@pytest.mark.parametrize(("name", "bind"), [
    *(pytest.param(name, CACHED, marks=[pytest.mark.slow] if name in ALIKE else []) for name in CAUSAL),
    *((name, {**TEXT, "phase": "prefill"}) for name in ("llama", "mistral"))])
def test_language_models_have_the_counts_of_pytorch(name, bind, load):
    import torch

    architecture, values = CAUSAL[name]
    graph = load(name, bind=bind, architectures=[architecture], **values)
    new, past = (1, 7) if bind is CACHED else (8, 0)
    ids = torch.zeros((2, new), dtype=torch.long)
    assert graph.macs == counted(name, values, architecture, past, {"input_ids": ids})
    assert graph.tokens == 2 * new
    assert coverage(graph).complete
    groups = 4 if name.startswith("gpt") else values.get("num_key_value_heads", 1)
    kept = 4 if name == "mistral" and bind is CACHED else 8  # three tokens of its window, and the new one
    sides = [node.operator for node in graph.mac_nodes if dict(node.operator.attributes).get("weights") == "cache"]
    assert sum(side.tensor("W").words(side.sizes) for side in sides) == 2 * 2 * groups * 4 * kept
    appended = [node.written_words for node in graph.nodes if node.kind == "append"]
    assert appended == [2 * groups * 4 * new] * 2
    assert not any(node.written_words for node in graph.nodes if node.kind == "expand" and "attn" in node.name)


@pytest.mark.parametrize(("name", "values", "block"), [
    ("llama", {}, {}), ("gemma", {"num_key_value_heads": 1}, {"groups": 1}),
    ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}, {"experts": 4, "active": 2})])
def test_decoding_is_that_of_the_zoo(name, values, block, load):
    """The zoo's blocks of the same sizes: groups read their keys once, one token is appended."""
    ours = load(name, bind=CACHED, architectures=[CAUSAL[name][0]], **{**GROUPED, **values})
    decoder = {"name": "l", "repeat": 1, "heads": 4, "groups": 2, "feedforward": 24, "context": "$context", **block}
    theirs = table_graph({"phases": {"decode": {"context": 8}}, "input": [1, 16], "layers": [
        {"decoder": decoder}, {"linear": {"name": "head", "out": 50}}]}, {"batch": 2})
    gates = [each.macs for each in theirs.mac_nodes if each.name.endswith(("experts.gate", "experts.up"))]
    assert nests(ours) == nests(theirs) or sum(gates) == ours.node("model.layers.0.mlp.experts.grouped_mm").macs
    assert (ours.macs, ours.tokens) == (theirs.macs, theirs.tokens)


def test_a_latent_cache_is_read_whole(load):
    """DeepSeek-V3 keeps 16 words of which keys and values are made, and 8 of place, for each of 2 x 8 tokens."""
    graph = load("deepseek_v3", bind=CACHED, architectures=["DeepseekV3ForCausalLM"], **{
        **TINY, "num_key_value_heads": 4, "first_k_dense_replace": 1, "q_lora_rank": 8, "kv_lora_rank": 16,
        "qk_rope_head_dim": 8, "qk_nope_head_dim": 4, "v_head_dim": 4})
    found = tokens_record(graph, preset("tpu-like"), 1.0, 1.0)
    assert (found.cache_read_bytes, found.cache_written_bytes) == (2 * 8 * 24, 2 * 24)


def test_a_pass_without_a_phase_shares_keys_too(load):
    graph = load("llama", bind=TEXT, architectures=["LlamaForCausalLM"], **GROUPED)
    scores = graph.node("model.layers.0.self_attn.matmul")
    assert dict(scores.operator.dimensions) == {"B": 4, "M": 16, "N": 8, "K": 4}
    assert dict(scores.operator.attributes)["weights"] == "activations"
    assert graph.tokens == 16
    assert not [node for node in graph.nodes if node.kind == "append"]


@pytest.mark.parametrize("name", ["distilbert", "mamba"])
def test_models_of_text_have_the_counts_of_pytorch(name, load):
    import torch

    architecture, values = {
        "distilbert": ("DistilBertModel", {"dim": 16, "n_layers": 1, "n_heads": 4, "hidden_dim": 24, "vocab_size": 50}),
        "mamba": ("MambaForCausalLM", {"hidden_size": 16, "num_hidden_layers": 1, "vocab_size": 50, "state_size": 4}),
    }[name]
    graph = load(name, bind=TEXT, architectures=[architecture], **values)
    ids = torch.zeros((2, 8), dtype=torch.long)
    scanned = 2 * 8 * 32 * 4 if name == "mamba" else 0  # products of states, which are vector work here
    assert graph.macs == counted(name, values, architecture, 0, {"input_ids": ids}) - scanned
    assert coverage(graph).complete


def test_a_scan_is_vector_work_as_in_the_zoo(load):
    """One call for all positions: of 2 x 8 tokens, 32 features with 4 words of state each."""
    graph = load("mamba", bind=TEXT, architectures=["MambaForCausalLM"], hidden_size=16, num_hidden_layers=1,
                 vocab_size=50, state_size=4)
    block = {"name": "m", "repeat": 1, "state": 4}
    theirs = table_graph({"input": [8, 16], "layers": [{"mamba": block}]}, {"batch": 2})
    (ours,) = (node for node in graph.nodes if node.kind == "selective_scan")
    zoos = theirs.node("m.0.scan")
    assert (ours.operations, ours.read_words, ours.written_words) == (
        zoos.operations, zoos.read_words, zoos.written_words)
    assert ours.operations == 8 * 2 * 8 * 32 * 4
    assert "as vector work, products of states included" in coverage(graph).sentence


def test_what_reads_repeated_words_otherwise_has_them_made():
    """Keys that heads share are repeated where more than products read them."""
    import torch

    class Shared(torch.nn.Module):
        def __init__(self, also):
            super().__init__()
            self.also = also

        def forward(self, queries, keys):
            repeated = keys[:, :, None].expand(2, 2, 3, 5, 4).reshape(2, 6, 5, 4)
            scores = queries @ repeated.transpose(2, 3)
            return (scores, repeated + 1) if self.also else scores @ repeated

    inputs = (torch.zeros(2, 6, 7, 4), torch.zeros(2, 2, 5, 4))
    shared, made = load_torch(Shared(False), inputs), load_torch(Shared(True), inputs)
    assert [dict(node.operator.dimensions) for node in shared.mac_nodes] == [
        {"B": 4, "M": 21, "N": 5, "K": 4}, {"B": 4, "M": 21, "N": 4, "K": 5}]
    moved = [sum(node.written_words for node in graph.nodes if node.kind in ("expand", "transpose"))
             for graph in (shared, made)]
    assert moved == [0, 2 * 6 * 5 * 4]


VISION = {"image_size": 16, "patch_size": 8}
# A configuration, the sizes to bind, and the inputs that these make.
OTHERS = {
    "vit": ({**TINY, **VISION}, {"batch": 1}, {"pixel_values": (1, 3, 16, 16)}),
    "t5": ({"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_heads": 4, "vocab_size": 50,
            "decoder_start_token_id": 0}, {"batch": 1, "sequence": 8, "target": 4},
           {"input_ids": (1, 8), "decoder_input_ids": (1, 4)}),
    "clip": ({"text_config": TINY, "vision_config": {**TINY, **VISION}, "projection_dim": 8},
             {"batch": 1, "sequence": 8}, {"input_ids": (1, 8), "pixel_values": (1, 3, 16, 16)}),
    "whisper": ({"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
                 "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "vocab_size": 50,
                 "max_source_positions": 20, "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 2,
                 "decoder_start_token_id": 1}, {"batch": 1, "target": 4},
                {"input_features": (1, 80, 40), "decoder_input_ids": (1, 4)}),
    "wav2vec2": ({**TINY, "conv_dim": [8, 8], "conv_stride": [5, 2], "conv_kernel": [10, 3],
                  "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}, {"batch": 1, "samples": 200},
                 {"input_values": (1, 200)}),
}


@pytest.mark.parametrize("model_type", OTHERS)
def test_models_of_other_inputs_have_the_counts_of_pytorch(model_type, load):
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import CONFIG_MAPPING, AutoModel

    values, bind, shapes = OTHERS[model_type]
    graph = load(model_type, bind=bind, **values)
    assert not any(isinstance(node, Unmodelled) for node in graph.nodes)
    with torch.device("meta"):
        model = AutoModel.from_config(CONFIG_MAPPING[model_type](**values), attn_implementation="eager").to("meta")
        inputs = {name: torch.zeros(shape, dtype=torch.long if name.endswith("ids") else torch.float32)
                  for name, shape in shapes.items()}
        with FlopCounterMode(display=False) as counter:
            model.eval()(**inputs)
    assert counter.get_total_flops() == 2 * graph.macs


def test_a_model_of_transformers_is_read_with_its_sizes():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(**TINY))
    graph = load_torch(model, bind=TEXT)
    assert graph.name == "BertModel"
    assert graph.macs == load_torch(BertModel(BertConfig(**TINY, attn_implementation="eager")), bind=TEXT).macs


def test_rows_of_a_table_are_all_that_an_embedding_moves(load):
    graph = load("bert", bind=TEXT, **TINY)
    (table,) = [node for node in graph.nodes if node.name == "embeddings.word_embeddings"]
    assert isinstance(table, DataMovement)
    assert table.read_words == prod((2, 8, 16))
    assert dict(table.attributes)["parameters"] == 50 * 16


def bert(**values):
    return json.dumps({"model_type": "bert", **TINY, **values})


def llama(**values):
    return json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **TINY, **values})


WRONG = {
    "empty": ("", TEXT, "config.json:1: must be JSON"),
    "text": ("hello", TEXT, "config.json:1: must be JSON"),
    "cut": (bert()[:-9], TEXT, "config.json:1: must be JSON"),
    "not_utf8": (b"\xff\xfe{}", TEXT, "must be a readable text file in UTF-8"),
    "deep": ("[" * 100_000, TEXT, "must be JSON"),
    "list": ("[]", TEXT, "must be a JSON object; Got 'list'"),
    "no_type": ("{}", TEXT, "model_type: must name a model of transformers"),
    "type_is_a_number": ('{"model_type": 3}', TEXT, "model_type: must name a model of transformers; Got 3"),
    "unknown_type": ('{"model_type": "brad"}', TEXT, "must be a model that the installed transformers knows; Got 'b"),
    "near_type": ('{"model_type": "mixtrall"}', TEXT, "Did you mean mixtral"),
    "code_of_its_own": ('{"model_type": "mine", "auto_map": {"AutoModel": "evil.Evil"}}', TEXT,
                        "Code that comes with a model (auto_map) is not run"),
    "architectures_are_text": (bert(architectures="BertModel"), TEXT, "architectures: must be a list of names"),
    "unknown_architecture": (bert(architectures=["BertForEverything"]), TEXT,
                             "architectures[0]: must be a model of the installed transformers; Got 'BertForE"),
    "architecture_of_another": (bert(architectures=["GPT2Model"]), TEXT,
                                "architectures[0]: must be made from a configuration of bert"),
    "no_architecture": (bert(architectures=["AutoConfig"]), TEXT, "must be a model of the installed transformers"),
    "wrong_value": (bert(hidden_size="large"), TEXT, "config.json: must "),
    "heads_do_not_divide": (bert(num_attention_heads=5), TEXT, "must describe a model that transformers can build"),
    "negative": (bert(vocab_size=-5), TEXT, "config.json: must "),
    "unknown_activation": (bert(hidden_act="magic"), TEXT, "must describe a model that transformers can build"),
    "unbound": (bert(), {"batch": 1}, "dynamic dimensions: must be bound; Got 'sequence'; Add --bind sequence=SIZE"),
    "wrong_name": (bert(), {**TEXT, "image": 3}, "bind image: must name a dynamic dimension of"),
    "zero": (bert(), {"batch": 0, "sequence": 8}, "bind batch: must be a positive integer; Got 0"),
    "too_long": (bert(), {"batch": 1, "sequence": 513}, "bind sequence: must be at most 512, the positions that"),
    "unknown_phase": (bert(), {**TEXT, "phase": "decoding"}, "bind: must be a known phase; Got 'decoding'"),
    "no_phases": (bert(), {**TEXT, "phase": "decode"}, "bind phase: must be left out but for causal language"),
    "no_context": (llama(), {"batch": 1, "phase": "decode"}, "must be bound; Got 'context'; Add --bind context=SIZE: "),
    "empty_context": (llama(), {"batch": 1, "phase": "decode", "context": 0}, "bind context: must be a positive int"),
    "long_context": (llama(), {"batch": 1, "phase": "decode", "context": 2049}, "bind context: must be at most 2048"),
    "two_sequences": (llama(), {**CACHED, "sequence": 3}, "bind sequence: must name a dynamic dimension of"),
    "context_ahead": (llama(), {**CACHED, "phase": "prefill"}, "Got 'sequence'; Add --bind sequence=SIZE"),
    "a_word": (bert(), {"batch": "many", "sequence": 8}, "bind batch: must be a positive integer; Got 'many'"),
    "uneven_groups": (llama(num_key_value_heads=3), TEXT, "num_key_value_heads: must divide the 4 heads; Got 3."),
    "few_experts": (json.dumps({"model_type": "mixtral", **GROUPED, "num_local_experts": 2, "num_experts_per_tok": 3}),
                    TEXT, "config.json: num_experts_per_tok: must be from 1 to the 2 experts; Got 3."),
    "image_too_small": (json.dumps({"model_type": "vit", **TINY, **VISION}), {"batch": 1, "image": 4},
                        "must be traceable by torch.export"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_configuration_is_one_clear_error(case, tmp_path, capfd):
    content, bind, text = WRONG[case]
    path = tmp_path / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as found:
        load_huggingface(path, bind=bind)
    assert text in str(found.value)
    assert len(str(found.value)) < 900
    assert capfd.readouterr() == ("", "")


def test_no_configuration(tmp_path):
    for place in (tmp_path, tmp_path / "none", tmp_path / "none.json"):
        with pytest.raises(InputError, match=r"must be a config\.json of Hugging Face, or a folder that has one"):
            load_huggingface(place)


def test_what_is_a_configuration_and_what_is_not(tmp_path):
    files = {"config.json": bert(), "my-bert.json": bert(), "table.json": '{"name": "x", "layers": []}'}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert format_of(tmp_path).name == "huggingface"
    assert format_of(tmp_path / "my-bert.json").name == "huggingface"
    assert format_of(tmp_path / "table.json") is None
    (tmp_path / "config.json").write_text(files["table.json"])
    assert format_of(tmp_path / "config.json") is None


def test_a_missing_extra_is_one_error_with_the_command(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(bert())
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the extra 'huggingface', which is not installed") as found:
        load_huggingface(tmp_path, bind=TEXT)
    assert found.value.mend == "pip install torch==2.13.0 && pip install 'tilewright[huggingface]'"


@pytest.mark.parametrize(("text", "bind", "code"), [
    (bert(), ["batch=1", "sequence=4"], 0), (bert(), ["batch=1"], 2), ("{}", [], 2), ("{", [], 2)])
def test_the_shell_reads_folders(text, bind, code, tmp_path, monkeypatch, capsys):
    (tmp_path / "config.json").write_text(text)
    words = [word for one in bind for word in ("--bind", one)]
    monkeypatch.setattr("sys.argv", ["tilewright", "bounds", str(tmp_path), "--arch", "eyeriss", *words])
    with pytest.raises(SystemExit) as end:
        main()
        raise SystemExit(0)
    assert (end.value.code or 0) == code
    assert "Traceback" not in capsys.readouterr().err


def test_tensors_of_a_language_model_keep_a_cache_and_share_keys(load):
    graph = load("llama", architectures=["LlamaForCausalLM"], hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                 num_attention_heads=4, num_key_value_heads=2, vocab_size=50,
                 bind={"batch": 2, "phase": "decode", "context": 16})
    found, layer = tensor_graph(graph), "model.layers.0.self_attn"
    assert sum(t.words for t in found.tensors.values() if t.kind == "weights") == graph.weight_words
    assert [t.shape for t in found.tensors.values() if t.kind == "state"] == [(2, 2, 16, 8)] * 2
    keys = dict(found.read_by(f"{layer}.matmul"))["W"]
    assert keys.storage == f"{layer}.append.state"  # turned and repeated where it lies
    (link,) = found.links(f"{layer}.add_2", f"{layer}.matmul", "W")
    assert [link.axes[axis].at({"B": 3, "K": 5, "N": 15}) for axis in range(4)] == [1, 1, 0, 5]
    assert link.axes[2].at({"B": 3, "K": 5, "N": 14}) < 0  # a token of before
    (query,) = found.links(f"{layer}.add", f"{layer}.matmul", "I")
    assert query.axes[1].at({"B": 3, "M": 1, "K": 0}) == 3  # both heads of the second group read its keys


def test_heads_of_the_zoo_are_cut_as_those_of_hugging_face(load):
    ours = tensor_graph(zoo.load("bert-base", batch=2, sequence=8))
    theirs = tensor_graph(load("bert", num_hidden_layers=1, bind={"batch": 2, "sequence": 8}))
    zoo_names, names = "layer.0.attention.{}", "encoder.layer.0.attention.{}"
    for here, there in ((("query", "scores", "I"), ("self.query", "self.matmul", "I")),
                        (("key", "scores", "W"), ("self.key", "self.matmul", "W")),
                        (("value", "context", "W"), ("self.value", "self.matmul_2", "W")),
                        (("context", "output", "I"), ("self.matmul_2", "output.dense", "I"))):
        (one,) = ours.links(zoo_names.format(here[0]), zoo_names.format(here[1]), here[2])
        (two,) = theirs.links(names.format(there[0]), names.format(there[1]), there[2])
        assert one.axes == two.axes

"""The ``quantization_config`` of a configuration of Hugging Face: types of the weights that a model is run with.

Sources: the classes of ``transformers.utils.quantization_config`` (GPTQ, AWQ, bitsandbytes, FP8, MXFP4) and the
``config_groups`` of compressed-tensors. A model is built as if it had none; its products then get these types.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.hardware import number_type
from tilewright.workload import Graph, MacNode

_HEADS = ("lm_head", "embed_out", "classifier", "score")
"""What quantisers leave as it is, where a configuration names nothing else."""
_SCALE = 16


def with_quantisation(graph: Graph, given: object) -> Graph:
    """Return the network with the types that a ``quantization_config`` gives its weights (and inputs).

    What is not known of it is told, and changes nothing.
    """
    config = given.to_dict() if hasattr(given, "to_dict") else given
    if not isinstance(config, Mapping):
        return graph
    method = str(config.get("quant_method", "unknown"))
    weights, inputs = _types(method, config)
    if number_type(weights) is None:
        return replace(graph, notes=(*graph.notes, f"quantization_config of {method} is not known: types stay"))
    given = config.get("modules_to_not_convert") or config.get("ignore")
    kept = tuple(map(str, given)) if isinstance(given, list) else _HEADS
    nodes = tuple(_typed(node, weights, inputs) if isinstance(node, MacNode) and not any(
        part in node.name for part in kept) else node for node in graph.nodes)
    told = f"weights of {weights}" + (f", inputs of {inputs}" if inputs else "")
    return replace(graph, nodes=nodes, notes=(*graph.notes, f"quantization_config of {method}: {told}"))


def _typed(node: MacNode, weights: str, inputs: str) -> MacNode:
    """Return a product with weights of its own in other types; others stay."""
    attributes = dict(node.operator.attributes)
    types = str(attributes.get("types", "")).split(",")
    if attributes.get("weights", "tied") != "tied" or len(types) != 3:
        return node
    attributes["types"] = ",".join((inputs or types[0], weights, types[2]))
    return replace(node, operator=replace(node.operator, attributes=tuple(attributes.items())))


def _types(method: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the types of weights and inputs; empty where nothing is known, or inputs stay."""
    if method in ("gptq", "awq"):
        bits, group = _whole(config.get("bits") or config.get("w_bit")), _whole(config.get("group_size"))
        return _blocked(f"int{bits}", _SCALE + bits, group), ""
    if method == "bitsandbytes":
        four = _blocked("fp4", 8 if config.get("bnb_4bit_use_double_quant") else 32, 64)
        return four if config.get("load_in_4bit") else "int8" if config.get("load_in_8bit") else "", ""
    if method == "fp8":
        block = config.get("weight_block_size")
        return _blocked("fp8", 32, prod(map(_whole, block)) if isinstance(block, list) else 0), "fp8"
    if method == "mxfp4":
        return "mxfp4", ""
    groups = config.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    if not isinstance(first, Mapping):
        return "", ""
    return _compressed(first.get("weights")), _compressed(first.get("input_activations"))


def _compressed(given: Any) -> str:
    """Return the type of one side of a group of compressed-tensors."""
    if not isinstance(given, Mapping):
        return ""
    kind = "fp" if given.get("type") == "float" else "int"
    return _blocked(f"{kind}{_whole(given.get('num_bits'))}", _SCALE, _whole(given.get("group_size")))


def _blocked(kind: str, scale_bits: int, block: int) -> str:
    """Return a type in blocks; without scales where these are of whole columns or other blocks."""
    found = f"{kind}+{scale_bits}/{block}"
    return found if 0 < block <= 1 << 14 and number_type(found) is not None else kind


def _whole(given: Any) -> int:
    return given if isinstance(given, int) else 0

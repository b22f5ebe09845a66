"""Configurations of Hugging Face: the model is built from its ``config.json`` on the meta device, without weights.

Only classes of the installed ``transformers`` are built: code that a configuration asks to fetch (``auto_map``) is
never run. Attention is the "eager" one, whose two products are seen; experts are products of groups of tokens.

What language models keep from token to token, as it is exported, are caches without words, and scans: appending to a
cache, and a scan over all positions, are one call each in place of what transformers does in PyTorch.

A model is built as if it had no ``quantization_config``; its products then get the types of the weights that this says.
Sources: the classes of ``transformers.utils.quantization_config`` (GPTQ, AWQ, bitsandbytes, FP8, MXFP4) and the
``config_groups`` of compressed-tensors.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base import InputError, read_json, read_text, require_extra, unknown_name
from tilewright.hardware import number_type
from tilewright.interop.pytorch.arranged import APPEND
from tilewright.interop.pytorch.torch import (
    export_module,
    is_of,
    on_meta,
    quietly,
    read_exported,
    selective_scan,
    stand_in,
    zeros_for,
)
from tilewright.interop.pytorch.translate import graph_of
from tilewright.interop.scene import check_bindings
from tilewright.interop.signs import HF_FILE, configuration_file
from tilewright.workload import Graph, MacNode

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_PHASES = ("prefill", "decode")
_LONGEST = ("max_position_embeddings", "n_positions", "max_sequence_length")
_HEADS = ("lm_head", "embed_out", "classifier", "score")
"""What quantisers leave as it is, where a configuration names nothing else."""
_SCALE = 16
_CACHES = ("cache", "past_key_values")
"""What models of transformers call the cache that they are given: since 5.24, and before."""
_SCAN_OF = "mamba_selective_scan"
"""What modules of transformers call the scan: position by position, where no kernel for a GPU is installed."""


def load_huggingface(path: str | Path, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a model's configuration: a ``config.json``, or the folder that has it.

    The first of its ``architectures`` is built (the bare model where there are none).

    Parameters
    ----------
    bind
        Sizes of the inputs: ``batch``; of text ``sequence`` (and ``target`` for a decoder that has its own); of
        images ``image``, of sound ``samples`` or ``frames``, where the configuration does not state them. A causal
        language model keeps keys and values with ``phase`` ``prefill``, and reads them with ``decode``, one new token a
        sequence that attends to ``context`` of them, itself included.

    Raises
    ------
    InputError
        If PyTorch or transformers is missing, the configuration cannot be read or built, or a size is not bound.
    """
    file = configuration_file(path)
    if file is None:
        given = "a folder without one" if Path(path).is_dir() else "another" if Path(path).exists() else "no such file"
        raise InputError(str(path), f"must be a {HF_FILE} of Hugging Face, or a folder that has one", given)
    require_extra("huggingface", str(file), "a configuration of Hugging Face")
    raw = _read(file)
    model = _built(file, raw)
    name = file.parent.name if file.name == HF_FILE and file.parent.name else file.stem
    return _graph(str(file), name, model, dict(bind or {}))


def load_pretrained(model: "PreTrainedModel", *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a model of transformers as it is; ``bind`` as for `load_huggingface`."""
    require_extra("huggingface", "module", type(model).__name__)
    return _graph(type(model).__name__, type(model).__name__, model, dict(bind or {}))


def is_pretrained(given: object) -> bool:
    """Whether ``given`` is a model of transformers."""
    return is_of(given, "transformers.modeling_utils", "PreTrainedModel")


def _read(file: Path) -> dict[str, Any]:
    raw = read_json(read_text(file), str(file))
    if not isinstance(raw, dict):
        raise InputError(str(file), "must be a JSON object", type(raw).__name__)
    kind = raw.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise InputError(f"{file}: model_type", "must name a model of transformers", kind, 'For example "bert"')
    names = raw.get("architectures")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError(f"{file}: architectures", "must be a list of names of classes", names)
    return raw


def _built(file: Path, raw: dict[str, Any]) -> "PreTrainedModel":
    """Build the model on the meta device."""
    with quietly():
        config = _configured(file, raw)
        maker = _maker(file, raw, config)
        try:
            with on_meta():
                model = maker(config, attn_implementation="eager")
            model.to("meta")  # what classes make elsewhere all the same
        except Exception as error:  # whatever the class makes of these settings
            raise InputError(str(file), "must describe a model that transformers can build",
                             f"{type(error).__name__}: {_first_line(error)}") from None
    return model


def _configured(file: Path, raw: dict[str, Any]) -> "PreTrainedConfig":
    from transformers import CONFIG_MAPPING  # noqa: PLC0415

    kind, known = raw["model_type"], list(CONFIG_MAPPING.keys())
    if kind not in known:
        close = get_close_matches(kind, known, 3, 0.8)
        mend = f"Did you mean {', '.join(close)}?" if close else ""
        mend = "Code that comes with a model (auto_map) is not run" if "auto_map" in raw else mend
        raise InputError(f"{file}: model_type", "must be a model that the installed transformers knows", kind, mend)
    try:
        config = CONFIG_MAPPING[kind].from_dict({key: value for key, value in raw.items() if key != "auto_map"})
    except Exception as error:  # whatever the class makes of these values
        raise InputError(str(file), f"must hold what a {kind} has", f"{type(error).__name__}: {_first_line(error)}",
                         ) from None
    config.use_cache = False
    _check_shares(file, config.get_text_config())
    return config


def _check_shares(file: Path, config: "PreTrainedConfig") -> None:
    """Refuse heads that groups do not share evenly, and fewer experts than each token is sent to."""
    heads, groups = (getattr(config, f"num_{kind}_heads", None) for kind in ("attention", "key_value"))
    if isinstance(heads, int) and isinstance(groups, int) and (groups < 1 or heads % groups):
        raise InputError(f"{file}: num_key_value_heads", f"must divide the {heads} heads", groups)
    every = (getattr(config, name, None) for name in ("num_local_experts", "num_experts", "n_routed_experts"))
    experts, active = next(filter(None, every), None), getattr(config, "num_experts_per_tok", None)
    if isinstance(experts, int) and isinstance(active, int) and not 1 <= active <= experts:
        raise InputError(f"{file}: num_experts_per_tok", f"must be from 1 to the {experts} experts", active)


def _maker(file: Path, raw: dict[str, Any], config: "PreTrainedConfig") -> Any:
    """Return what builds the architecture that the file names."""
    import transformers  # noqa: PLC0415

    names = raw.get("architectures")
    if not names:
        return transformers.AutoModel.from_config
    found: Any = getattr(transformers, names[0], None) if names[0].isidentifier() else None
    if transformers.PreTrainedModel not in getattr(found, "__mro__", ()):
        raise InputError(f"{file}: architectures[0]", "must be a model of the installed transformers", names[0],
                         "Leave architectures out to take the bare model")
    if not isinstance(config, found.config_class or ()):
        raise InputError(f"{file}: architectures[0]", f"must be made from a configuration of {raw['model_type']}",
                         names[0], "Leave architectures out to take the bare model")
    return found._from_config


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:300]


def _graph(source: str, name: str, model: "PreTrainedModel", bind: dict[str, int | str]) -> Graph:
    phase = _phase(model, bind.pop("phase", None))
    sizes = _sizes(source, model, bind, phase)
    inputs = _inputs(model, sizes)
    where = source if source == type(model).__name__ else f"{source}: {type(model).__name__}"
    with scanning(model), holding(model, sizes.get("context", 1) - 1) if phase else nullcontext():
        exported = export_module(model, (), inputs, where=where,
                                 mend="See that the configuration and the sizes that are bound go together")
    graph = graph_of(read_exported(exported, name), {})
    told = {**({"phase": phase} if phase else {}), **sizes}
    notes = (f"{type(model).__name__} without weights, " + ", ".join(f"{key} = {size}" for key, size in told.items()),
             *graph.notes)
    tokens = sizes["batch"] * sizes.get("sequence", 1) if _writes(model) else 0
    return with_quantisation(Graph(name, graph.nodes, source, notes, tokens),
                             getattr(model.config, "quantization_config", None))


def _writes(model: "PreTrainedModel") -> bool:
    """Whether it is a causal language model, which goes on with a text."""
    return bool(model.can_generate()) and not model.config.is_encoder_decoder and model.main_input_name == "input_ids"


def _phase(model: "PreTrainedModel", phase: object) -> str:
    """Return the phase that is asked for; none is "", a pass that keeps nothing."""
    if phase is None:
        return ""
    if phase not in _PHASES:
        raise unknown_name("phase", str(phase), list(_PHASES), "bind")
    if not _writes(model) or cache_argument(model) is None:
        raise InputError("bind phase", "must be left out but for causal language models with keys and values",
                         type(model).__name__)
    return str(phase)


def _sizes(source: str, model: "PreTrainedModel", bind: dict[str, int | str], phase: str) -> dict[str, int]:
    """Return the sizes of the inputs by name: what is bound, else what the configuration states."""
    stated: dict[str, int | None] = {"batch": None, "context": None} if phase == "decode" else _stated(model)
    given = {**{key: size for key, size in stated.items() if size is not None}, **bind}
    sizes = check_bindings(source, given, list(stated))
    text = _part(model, "text")
    longest = next((found for key in _LONGEST if isinstance(found := getattr(text, key, None), int)), None)
    for key in ("sequence", "target", "context"):
        if longest is not None and longest > 0 and sizes.get(key, 0) > longest:
            raise InputError(f"bind {key}", f"must be at most {longest}, the positions that the model has", sizes[key])
    return {key: sizes[key] for key in stated}


def _part(model: "PreTrainedModel", name: str) -> Any:
    """Return the configuration of a part of a model, its own where there is none."""
    return getattr(model.config, f"{name}_config", None) or model.config


def _kinds(model: "PreTrainedModel") -> list[str]:
    """Names of the inputs that a forward pass needs."""
    known = signature(model.forward).parameters
    kinds = [kind for kind in ("input_ids", "pixel_values", "input_values", "input_features") if kind in known]
    main = model.main_input_name
    if not {"input_ids", "pixel_values"} <= set(kinds) or not hasattr(model.config, "vision_config"):
        kinds = [main] if main in known else kinds[:1]
    if "decoder_input_ids" in known:
        kinds.append("decoder_input_ids")
    return kinds


def _stated(model: "PreTrainedModel") -> dict[str, int | None]:
    """Return the sizes that are asked for, with what the configuration says of them."""
    frames = getattr(model.config, "max_source_positions", None)
    known: dict[str, dict[str, int | None]] = {
        "input_ids": {"sequence": None}, "decoder_input_ids": {"target": None}, "pixel_values": _image(model),
        "input_values": {"samples": None},
        "input_features": {"frames": 2 * frames if isinstance(frames, int) else None}}
    return {"batch": None, **{name: size for kind in _kinds(model) for name, size in known.get(kind, {}).items()}}


def _image(model: "PreTrainedModel") -> dict[str, int | None]:
    """Side of a square image, or its rows and columns."""
    size = getattr(_part(model, "vision"), "image_size", None)
    if isinstance(size, Mapping):
        size = [size.get("height"), size.get("width")]
    if isinstance(size, list | tuple) and len(size) == 2 and all(isinstance(one, int) for one in size):
        return {"image": size[0]} if size[0] == size[1] else {"rows": size[0], "columns": size[1]}
    return {"image": size if isinstance(size, int) else None}


def _inputs(model: "PreTrainedModel", sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return inputs of these sizes, where the model is."""
    batch = sizes["batch"]
    rows = sizes.get("rows", sizes.get("image", 1))
    columns = sizes.get("columns", sizes.get("image", 1))
    mels = getattr(model.config, "num_mel_bins", None) or getattr(model.config, "feature_size", None) or 80
    shapes = {
        "input_ids": (batch, sizes.get("sequence", 1)),
        "decoder_input_ids": (batch, sizes.get("target", 1)),
        "pixel_values": (batch, getattr(_part(model, "vision"), "num_channels", 3), rows, columns),
        "input_values": (batch, sizes.get("samples", 1)),
        "input_features": (batch, mels, sizes.get("frames", 1)),
    }
    return {kind: zeros_for(model, shapes[kind], numbers=not kind.endswith("_ids")) for kind in _kinds(model)}


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


if TYPE_CHECKING:
    from transformers import PreTrainedModel


def cache_argument(model: "PreTrainedModel") -> str | None:
    """Return the argument by which a model is given keys and values of earlier tokens, None where it has none."""
    return next((name for name in _CACHES if name in signature(model.forward).parameters), None)


@contextmanager
def holding(model: "PreTrainedModel", past: int) -> Iterator[None]:
    """Let a model run with a cache of ``past`` tokens of each sequence, and hand out its first result alone.

    Layers that slide keep as many tokens as their window takes.
    """
    forward, own, name = model.forward, vars(model).get("forward"), cache_argument(model)
    assert name is not None

    def passed(**inputs: Any) -> Any:
        return forward(**inputs, **{name: _cache(model.config, past)}, use_cache=True)[0]

    model.forward = passed
    try:
        yield
    finally:
        del model.forward
        if own is not None:
            model.forward = own


@contextmanager
def scanning(model: "PreTrainedModel") -> Iterator[None]:
    """Let the selective scans of a model be one call each (Gu, Dao, Mamba, arXiv:2312.00752, algorithm 2)."""
    module = sys.modules[type(model).__module__]
    scan = getattr(module, _SCAN_OF, None)
    if scan is not None:
        setattr(module, _SCAN_OF, selective_scan)
    try:
        yield
    finally:
        if scan is not None:
            setattr(module, _SCAN_OF, scan)


def _appended(new: Any, positions: int) -> Any:
    return new.new_empty((*new.shape[:-2], positions, new.shape[-1]))


def _cache(config: Any, past: int) -> Any:
    """Return a cache that holds ``past`` tokens before the pass."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer  # noqa: PLC0415

    append = stand_in(APPEND, "(Tensor new, SymInt positions) -> Tensor", _appended)

    class Held(DynamicLayer):  # type: ignore[misc]
        """Keys and values of one layer."""

        def __init__(self, window: int = 0) -> None:
            super().__init__()
            self.is_sliding, self.kept = window > 0, min(past, window - 1) if window else past

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            positions = self.kept + key_states.shape[-2]
            return append(key_states, positions), append(value_states, positions)

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return self.kept + query_length, past - self.kept

        def get_seq_length(self) -> int:
            return past

    found = DynamicCache(config=config)
    kinds = (DynamicLayer, DynamicSlidingWindowLayer)
    found.layers = [Held(getattr(layer, "sliding_window", 0)) if type(layer) in kinds else layer
                    for layer in found.layers]
    found.layer_class_to_replicate = Held if found.layer_class_to_replicate is not None else None
    return found

"""ONNX import: a file becomes a `Graph` in which nothing is left out in silence.

Dynamic dimensions are bound, shapes inferred, constants folded (what is computed from constants alone costs nothing at
run time). Multiply-accumulate nodes become operators, the rest vector work or data movement with their operations and
words; what cannot be modelled is a node too, with the reason. Weights are not read: external data may be missing.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from io import StringIO
from math import prod
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    inliner,
    numpy_helper,
    shape_inference,
)

from tilewright.base import InputError
from tilewright.interop.onnx_bodies import CONTROL, RANDOM, SMALL, Bodies
from tilewright.interop.onnx_macs import MAC_TRANSLATORS, translate_macs
from tilewright.interop.onnx_vectors import seen, translate_vector
from tilewright.interop.scene import NodeView, Scene, Shape, check_bindings, folded_note, quantised_types, translated
from tilewright.workload import Edges, Graph, Node, Unmodelled

_NO_NAMES = ("", "?", "-1", "None")
"""What stands for a name of a dimension where it has none: two of them need not be alike."""
_DOMAINS = ("", "ai.onnx", "com.microsoft")
_CONTROL = {"If": "branches are chosen at run time", "Loop": "its trips are counted at run time",
            "Scan": "its body runs once a slice", "SequenceMap": "its body runs once an element"}


def load_onnx(path: str | Path, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read an ONNX file.

    Parameters
    ----------
    bind
        Sizes of dynamic dimensions, by their name in the file (``batch``), or by input and axis where they have none
        (``images[0]``).

    Raises
    ------
    InputError
        If the file is missing, no ONNX model, or contradicts itself; if a dynamic dimension is not bound, or ``bind``
        names one that the file does not have.

    Examples
    --------
    >>> graph = load_onnx("resnet50.onnx", bind={"batch": 1})  # doctest: +SKIP
    """
    file = Path(path)
    model = _inline(_read(file))
    _bind(str(file), model, dict(bind or {}))
    _check(str(file), model.graph)
    weights = _hollow(model)
    model, bodies, before = _inferred(str(file), model, weights)
    scene = _scene(str(file), model, weights)
    folded = before - len(model.graph.node) + _translate(scene, model.graph, bodies.times)
    notes = (*(f"Bound {name} = {size}" for name, size in (bind or {}).items()), *folded_note(folded), *bodies.notes,
             *scene.notes)
    return Graph(file.stem, tuple(scene.nodes), str(file), notes)


def _read(file: Path) -> ModelProto:
    if not file.is_file():
        raise InputError(str(file), "must be an ONNX file", "no such file" if not file.exists() else "not a file")
    if file.stat().st_size == 0:
        raise InputError(str(file), "must be an ONNX file", "an empty file")
    try:
        model = onnx.load(str(file), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise InputError(str(file), "must be an ONNX file", f"{type(error).__name__}: {error}",
                         "The file is broken, cut short or of another format") from None
    if not model.graph.node or not model.opset_import:
        missing = "nodes" if model.opset_import else "an opset"
        raise InputError(str(file), "must be an ONNX file with a graph", f"a model without {missing}",
                         "The file is broken, cut short or of another format")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise InputError(str(file), "must have names in UTF-8", "a name of other bytes", "The file is broken")
    return model


def _texts(model: ModelProto) -> Iterator[object]:
    """Every name in the file: protobuf hands out bytes where one is no UTF-8."""
    graph = model.graph
    yield graph.name
    yield from (opset.domain for opset in model.opset_import)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)


def _inline(model: ModelProto) -> ModelProto:
    """Put the bodies of the model's own functions in place of their calls."""
    if not model.functions:
        return model
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError):
        return model  # the calls are listed as not modelled


def _bind(path: str, model: ModelProto, bind: dict[str, int | str]) -> None:
    """Put sizes in place of dynamic dimensions, in inputs and wherever their names occur."""
    dynamic = _dynamic(path, model.graph)
    for name in [name for name in bind if name not in dict(dynamic)]:
        given, _, axis = name.rpartition(".")  # input.axis stands for input[axis]
        if f"{given}[{axis}]" in dict(dynamic):
            bind[f"{given}[{axis}]"] = bind.pop(name)
    sizes = check_bindings(path, bind, [key for key, _ in dynamic])
    for key, dim in dynamic:
        dim.dim_value = sizes[key]
    for value in (*model.graph.value_info, *model.graph.output):
        _substitute(value, sizes)


def _dynamic(path: str, graph: GraphProto) -> list[tuple[str, Any]]:
    """Name and protobuf of every dimension of the inputs that has no size (weights are no inputs)."""
    given = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    dynamic = []
    for value in graph.input:
        if value.name in given or not value.type.HasField("tensor_type"):
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise InputError(f"{path}: input {value.name}", "must state its shape", "a tensor of unknown rank")
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") or dim.dim_value < 1:
                named = dim.dim_param not in _NO_NAMES
                dynamic.append((dim.dim_param if named else f"{value.name}[{axis}]", dim))
    return dynamic


def _substitute(value: ValueInfoProto, bind: dict[str, int]) -> None:
    if not value.type.HasField("tensor_type"):
        return
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_param in bind:
            dim.dim_value = bind[dim.dim_param]
        elif dim.dim_param or (dim.HasField("dim_value") and dim.dim_value < 1):
            dim.ClearField("value")  # left to the inference


def _check(path: str, graph: GraphProto) -> None:
    """Every tensor is made once, before it is read."""
    known = {value.name for value in (*graph.input, *graph.initializer)} | {""}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    made: set[str] = set()
    outputs = {name for node in graph.node for name in node.output}
    for index, node in enumerate(graph.node):
        label = node.name or f"{index} ({node.op_type})"
        for name in node.input:
            if name not in known:
                rule = "must come after the node that makes its input" if name in outputs else "must read what exists"
                raise InputError(f"{path}: node {label}", rule, name, "The file is broken; export it again")
        for name in node.output:
            if name and name in made:
                raise InputError(f"{path}: node {label}", "must not make a tensor that exists already", name)
            made.add(name)
            known.add(name)


def _hollow(model: ModelProto) -> set[str]:
    """Turn large constants into inputs of the same shape, so that no weight is carried along; return their names."""
    graph = model.graph
    inputs = {value.name for value in graph.input}
    weights = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    kept = []
    for tensor in graph.initializer:
        if prod(tensor.dims) <= SMALL and tensor.data_location != tensor.EXTERNAL:
            kept.append(tensor)
        elif tensor.name not in inputs:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    small = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
    del graph.initializer[:]
    graph.initializer.extend(small)
    for sparse in graph.sparse_initializer:
        if sparse.values.name not in inputs:
            graph.input.append(helper.make_tensor_value_info(sparse.values.name, sparse.values.data_type,
                                                             list(sparse.dims)))
    del graph.sparse_initializer[:]
    return weights


def _inferred(path: str, model: ModelProto, weights: set[str]) -> tuple[ModelProto, Bodies, int]:
    """Infer shapes; where some stay unknown, work out small values and bodies, fold with onnxslim, and keep the best.

    Return also what became of the bodies, and how many nodes there were with these in their places.
    """
    _declare_domains(model)
    first, trouble = _infer(model)
    if first is None:
        raise InputError(path, "must pass ONNX's shape inference", trouble, "The file is broken; export it again")
    bodies, before = Bodies(model, weights, lambda one: _infer(one)[0], _shapes), len(model.graph.node)
    if any(node.op_type in CONTROL for node in model.graph.node) or _unknown(first):
        first = bodies.settled()
        before = max(before, len(first.graph.node))
    unknown = _unknown(first)
    slimmed = _slim(bodies.model) if unknown else None
    second = _infer(slimmed)[0] if slimmed is not None else None
    return (second if second is not None and _unknown(second) < unknown else first), bodies, before


def _infer(model: ModelProto) -> tuple[ModelProto | None, str]:
    """Infer shapes, through computed shapes too where that succeeds; None and the reason if nothing does."""
    trouble = ""
    for propagate in (True, False):
        try:
            return shape_inference.infer_shapes(model, data_prop=propagate), ""
        except (shape_inference.InferenceError, RuntimeError, ValueError, TypeError) as error:
            trouble = str(error).splitlines()[0] if str(error) else type(error).__name__
    return None, trouble


def _declare_domains(model: ModelProto) -> None:
    """Import the domains that nodes use without saying so: one such node would stop the inference of all others."""
    known = {opset.domain for opset in model.opset_import}
    used = {node.domain for node in model.graph.node}
    if "ai.onnx" in known | used:
        known |= {"", "ai.onnx"}
    model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in sorted(used - known))


def _slim(model: ModelProto) -> ModelProto | None:
    """Fold what onnxslim can; None if it fails or loses an output."""
    copy = type(model).FromString(model.SerializeToString())
    try:
        import onnxslim  # noqa: PLC0415

        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            slimmed = onnxslim.slim(copy, skip_optimizations=["graph_fusion", "subexpression_elimination",
                                                              "weight_tying"])
    except Exception:  # a helper that fails must not fail the import: the unfolded graph is used
        return None
    if slimmed is None or {v.name for v in slimmed.graph.output} != {v.name for v in model.graph.output}:
        return None
    return slimmed  # type: ignore[no-any-return]


def _unknown(model: ModelProto) -> int:
    """Count the nodes whose first output has no full shape."""
    shapes = _shapes(model.graph)
    return sum(bool(node.output) and node.output[0] not in shapes for node in model.graph.node)


def _shapes(graph: GraphProto) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if value.type.HasField("tensor_type") and tensor.HasField("shape"):
            dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
            if min(dims, default=0) >= 0:
                shapes[value.name] = tuple(dims)
    return shapes


def _scene(path: str, model: ModelProto, weights: set[str]) -> Scene:
    graph = model.graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    described = (*graph.input, *graph.value_info, *graph.output)
    types |= {value.name: value.type.tensor_type.elem_type for value in described}
    called = {number: name.lower() for name, number in TensorProto.DataType.items()}
    names = {name: called.get(number, f"type {number}") for name, number in types.items()}
    constants = weights | {tensor.name for tensor in graph.initializer}
    stored = quantised_types(((node.op_type, node.input, node.output) for node in graph.node), names)
    return Scene(path, _shapes(graph), names, constants, stored=stored, numbers=_numbers(graph),
                 handed=frozenset(value.name for value in graph.output))


def _numbers(graph: GraphProto) -> dict[str, list[int]]:
    """Return the whole numbers of small constants, by name."""
    found, given = dict[str, list[int]](), [(tensor.name, tensor) for tensor in graph.initializer]
    given += [(node.output[0], attribute.t) for node in graph.node if node.op_type == "Constant" and node.output
              for attribute in node.attribute if attribute.name == "value"]
    for name, tensor in given:
        if tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and prod(tensor.dims) <= SMALL:
            with suppress(ValueError, TypeError):  # a constant that is cut short has no value
                found[name] = numpy_helper.to_array(tensor).reshape(-1).tolist()
    return found


def _translate(scene: Scene, graph: GraphProto, times: Mapping[str, int]) -> int:
    """Translate every node in order, each as often as it runs; return how many were folded as constants."""
    constants = 0
    for index, proto in enumerate(graph.node):
        if _is_constant(scene, proto):
            scene.constants.update(name for name in proto.output if name)
            constants += 1
            continue
        wanted = proto.name or (proto.output[0] if proto.output else "") or f"{proto.op_type}_{index}"
        # What bodies of control flow read; among it are names of the graph around them.
        captured = tuple(name for node in _within(proto) for name in node.input)
        view = NodeView(scene, proto.op_type, scene.free_name(wanted, bool(proto.name)), tuple(proto.input),
                        tuple(proto.output), _Attributes(proto), captured)
        often = times.get(proto.output[0], 1) if proto.output else 1
        scene.add([_times(node, often) for node in _nodes(view, proto)], view, seen(view) if often == 1 else None)
    return constants


def _times(node: Node, often: int) -> Node:
    """Return a node that runs so many times as often."""
    if often == 1:
        return node
    if isinstance(node, Unmodelled):
        return replace(node, macs=node.macs and often * node.macs, words=node.words and often * node.words)
    edges = node.edges and Edges(tuple(replace(one, view=None) for one in node.edges.reads),
                                 tuple(replace(one, view=None) for one in node.edges.makes))
    return replace(node, count=often * node.count, edges=edges)


class _Attributes(Mapping[str, Any]):
    """Attributes of a node, each read when it is asked for."""

    def __init__(self, proto: NodeProto) -> None:
        self._protos = {attribute.name: attribute for attribute in proto.attribute}

    def __getitem__(self, name: str) -> Any:
        return helper.get_attribute_value(self._protos[name])

    def __contains__(self, name: object) -> bool:
        return name in self._protos

    def __iter__(self) -> Iterator[str]:
        return iter(self._protos)

    def __len__(self) -> int:
        return len(self._protos)


def _within(proto: NodeProto) -> list[NodeProto]:
    """Nodes in the bodies of a control-flow node, and in bodies within those."""
    bodies = [a.g for a in proto.attribute if a.HasField("g")] + [g for a in proto.attribute for g in a.graphs]
    return [inner for body in bodies for node in body.node for inner in (node, *_within(node))]


def _lost_within(proto: NodeProto) -> str:
    """Say what multiply-accumulates are lost with a control-flow node."""
    kinds = Counter(node.op_type for node in _within(proto) if node.op_type in MAC_TRANSLATORS)
    return f"; within it {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}" if kinds else ""


def _is_constant(scene: Scene, proto: NodeProto) -> bool:
    """Whether the node computes from constants alone (or from a shape, which is constant once all are bound)."""
    if proto.op_type in RANDOM or proto.op_type in _CONTROL:
        return False
    if proto.op_type in ("Shape", "Size") and proto.input and proto.input[0] in scene.shapes:
        return True
    return all(name in scene.constants for name in proto.input if name)


def _nodes(view: NodeView, proto: NodeProto) -> Sequence[Node]:
    if proto.op_type in _CONTROL:
        return [view.unmodelled(f"control flow, {_CONTROL[proto.op_type]}{_lost_within(proto)}")]
    if proto.domain not in _DOMAINS:
        return [view.unmodelled(f"operator of the domain {proto.domain}", _estimate(view))]

    def translate(view: NodeView) -> Sequence[Node] | None:
        nodes = translate_macs(view, proto.domain)
        single = translate_vector(view) if nodes is None else None
        return nodes if single is None else [single]

    return translated(view, translate, "ONNX", _estimate)


def _estimate(view: NodeView) -> int | None:
    """Multiply-accumulates of kinds that are not modelled but can be counted; None where nobody can tell."""
    shapes = view.scene.shapes
    needed: Iterable[Any] = [*view.inputs[:2], *view.outputs[:1]]
    if view.kind not in ("Conv", "DeformConv") or any(name not in shapes for name in needed):
        return None
    weights, out = shapes[view.inputs[1]], shapes[view.outputs[0]]
    return prod(out) * prod(weights[1:])

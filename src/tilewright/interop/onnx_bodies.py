"""Control flow of ONNX, and shapes that are computed: bodies are put in its place, small values are worked out.

Where the inference of shapes stops, what is computed from shapes and small constants is worked out node by node (by
ONNX's reference), and the inference goes on. An ``If`` becomes the branch that its condition takes or, where that
depends on the data, the larger one, which is told; ``Loop`` and ``Scan`` become one pass through their body that counts
as often as it runs.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

Infer = Callable[[ModelProto], ModelProto | None]
Shapes = dict[str, tuple[int, ...]]
SMALL = 256
"""Constants of up to so many elements keep their values: shapes are computed from them."""
CONTROL = ("If", "Loop", "Scan")
_MOST_TRIPS, _MOST_PASSES = 1 << 16, 200
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")


@dataclass
class Bodies:
    """A model whose control flow is being replaced.

    ``weights`` are names of large constants, to which those of bodies are added; ``times`` says of nodes within loops,
    by their first output, how often they run; ``notes`` what was chosen.
    """

    model: ModelProto
    weights: set[str]
    infer: Infer
    shapes_of: Callable[[GraphProto], Shapes]
    times: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    _number: int = 0

    def settled(self) -> ModelProto:
        """Return the model with its shapes, as far as they can be worked out."""
        best = self.infer(self.model) or self.model
        for _ in range(_MOST_PASSES):
            shapes = self.shapes_of(best.graph)
            if not (self._declare(shapes) or self._work_out(shapes) or self._replace(shapes)):
                return best
            best = self.infer(self.model) or best
        return best

    def _declare(self, shapes: Shapes) -> bool:
        """State the shapes of what operators of Microsoft's domain make, of which ONNX knows nothing; whether any."""
        found: Shapes = {}
        for node in self.model.graph.node:
            if node.domain == "com.microsoft" and node.output and node.output[0] not in shapes:
                found |= zip(node.output, _made(node, shapes), strict=False)
        new = {name: shape for name, shape in found.items() if name and name not in self.declared}
        self.declared |= new.keys()
        graph = self.model.graph
        kept = [value for value in graph.value_info if value.name not in new]
        del graph.value_info[:]
        graph.value_info.extend([*kept, *(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
                                          for name, shape in new.items())])
        return bool(new)

    def _work_out(self, shapes: Shapes) -> bool:
        """Put constants in place of nodes whose small values follow from shapes and constants; whether there were."""
        graph = self.model.graph
        for tensor in graph.initializer:
            if tensor.name not in self.values and prod(tensor.dims) <= SMALL:
                with suppress(ValueError, TypeError):  # a constant that is cut short has no value
                    self.values[tensor.name] = numpy_helper.to_array(tensor)
        made: list[NodeProto] = []
        found = False
        for node in graph.node:
            known = self._values_of(node, shapes)
            if known is None:
                made.append(node)
                continue
            self.values |= known
            if node.op_type == "Constant":
                made.append(node)
                continue
            found = True
            made += [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))
                     for name, value in known.items()]
        if found:
            _put(graph, made)
        return found

    def _values_of(self, node: NodeProto, shapes: Shapes) -> dict[str, NDArray[Any]] | None:
        """Return the small values of a node's results; None where they do not follow."""
        names = [name for name in node.output if name]
        if not names or node.op_type in (*CONTROL, *RANDOM) or node.domain not in ("", "ai.onnx"):
            return None
        if node.op_type in ("Shape", "Size") and node.input[0] in shapes:
            return {names[0]: _measured(node, shapes[node.input[0]])}
        if any(name and name not in self.values for name in node.input) or any(
                prod(shapes.get(name, (0,))) > SMALL for name in names):
            return None
        return self._evaluated(node, names)

    def _evaluated(self, node: NodeProto, names: list[str]) -> dict[str, NDArray[Any]] | None:
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

        given = {name: self.values[name] for name in node.input if name}
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                  for name, value in given.items()]
        outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names]
        alone = helper.make_model(helper.make_graph([node], "one", inputs, outputs),
                                  opset_imports=list(self.model.opset_import))
        try:
            found = ReferenceEvaluator(alone).run(None, given)
        except Exception:  # whatever the reference makes of a node that it does not know, or that is wrong
            return None
        values = {name: np.asarray(value) for name, value in zip(names, found, strict=True)}
        return values if all(value.size <= SMALL and value.dtype != object for value in values.values()) else None

    def _replace(self, shapes: Shapes) -> bool:
        """Put a body in place of the first control flow for which that can be told; whether there was one."""
        for settled in (True, False):
            for index, node in enumerate(self.model.graph.node):
                made = self._body(node, shapes, settled) if node.op_type in CONTROL and not node.domain else None
                if made is not None:
                    nodes = list(self.model.graph.node)
                    _put(self.model.graph, [*nodes[:index], *made, *nodes[index + 1:]])
                    return True
        return False

    def _body(self, node: NodeProto, shapes: Shapes, settled: bool) -> list[NodeProto] | None:
        if node.op_type == "If":
            return self._branch(node, settled)
        return self._loop(node) if node.op_type == "Loop" else self._scan(node, shapes)

    def _branch(self, node: NodeProto, settled: bool) -> list[NodeProto] | None:
        branches = {attribute.name: attribute.g for attribute in node.attribute}
        condition = self.values.get(node.input[0])
        if condition is None and settled:
            return None
        if condition is not None:
            chosen = branches["then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"]
        else:
            chosen = max(branches.values(), key=_weight)
            self.notes.append(f"If {node.name or node.output[0]}: its condition depends on the data; the larger branch "
                              f"({len(chosen.node)} nodes) is counted")
        return list(self._inlined(node, chosen, {}, 1, [output.name for output in chosen.output]))

    def _loop(self, node: NodeProto) -> list[NodeProto] | None:
        body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
        trips = self.values.get(node.input[0]) if node.input[0] else None
        if trips is None or not 0 < int(trips.reshape(-1)[0]) <= _MOST_TRIPS:
            return None
        count, carried = int(trips.reshape(-1)[0]), list(node.input[2:])
        self.notes.append(f"Loop {node.name or node.output[0]}: its body counts {count} times")
        first, condition = (f"{node.output[0]}/{name}" for name in ("first", "condition"))
        values = {first: np.array(0, np.int64), condition: np.array(True)}
        start = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))
                 for name, value in values.items()]
        given = dict(zip([value.name for value in body.input], [first, condition, *carried], strict=True))
        stacked = [(output.name, 0) for output in body.output[1 + len(carried):]]
        plain = [output.name for output in body.output[1:1 + len(carried)]]
        return [*start, *self._inlined(node, body, given, count, plain, stacked)]

    def _scan(self, node: NodeProto, shapes: Shapes) -> list[NodeProto] | None:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        body, scanned = attributes["body"], int(attributes["num_scan_inputs"])
        states = len(node.input) - scanned
        axes = list(attributes.get("scan_input_axes", [0] * scanned))
        whole = [shapes.get(name) for name in node.input[states:]]
        if scanned < 1 or whole[0] is None or not 0 < whole[0][axes[0]] <= _MOST_TRIPS:
            return None
        count = whole[0][axes[0]]
        self.notes.append(f"Scan {node.name or node.output[0]}: its body counts {count} times")
        zero = f"{node.output[0]}/first"
        start = [helper.make_node("Constant", [], [zero], value=numpy_helper.from_array(np.array(0, np.int64), zero))]
        slices = [f"{node.output[0]}/slice{at}" for at in range(scanned)]
        for name, taken, axis in zip(node.input[states:], slices, axes, strict=True):
            start.append(helper.make_node("Gather", [name, zero], [taken], axis=axis))
            self.times[taken] = count * self.times.get(node.output[0], 1)
        given = dict(zip([value.name for value in body.input], [*node.input[:states], *slices], strict=True))
        ends = [output.name for output in body.output]
        out_axes = attributes.get("scan_output_axes", [0] * (len(ends) - states))
        return [*start, *self._inlined(node, body, given, count, ends[:states],
                                       list(zip(ends[states:], out_axes, strict=True)))]

    def _inlined(self, node: NodeProto, body: GraphProto, given: dict[str, str], count: int,  # noqa: PLR0913, PLR0917
                 plain: list[str], stacked: "list[tuple[str, int]] | tuple[()]" = ()) -> Iterator[NodeProto]:
        """Yield the nodes of a body, with names of its own, and what hands its results to those of ``node``."""
        self._number += 1
        names = dict(given)
        own = [tensor.name for tensor in body.initializer]
        own += [name for one in body.node for name in one.output if name]
        names |= {name: f"{name}/{self._number}" for name in own}
        for tensor in body.initializer:
            self._constant(tensor, names[tensor.name])
        often = count * self.times.get(node.output[0], 1)
        for one in body.node:
            made = _renamed(one, names)
            if often > 1 and made.output:
                self.times[made.output[0]] = often
            yield made
        outputs = iter(node.output)
        for name, target in zip(plain, outputs, strict=False):
            if target:
                yield helper.make_node("Identity", [names.get(name, name)], [target], name=f"{node.name}/{target}")
        for (name, axis), target in zip(stacked, [*node.output][len(plain):], strict=False):
            if target:
                single = f"{target}/{self._number}"
                yield self._unsqueezed(names.get(name, name), single, axis)
                yield helper.make_node("Concat", [single] * count, [target], axis=axis)

    def _unsqueezed(self, name: str, made: str, axis: int) -> NodeProto:
        version = next((opset.version for opset in self.model.opset_import if opset.domain in ("", "ai.onnx")), 13)
        if version < 13:
            return helper.make_node("Unsqueeze", [name], [made], axes=[axis])
        self.model.graph.initializer.append(numpy_helper.from_array(np.array([axis], np.int64), f"{made}/axis"))
        return helper.make_node("Unsqueeze", [name, f"{made}/axis"], [made])

    def _constant(self, tensor: Any, name: str) -> None:
        """Keep a constant of a body among those of the graph: a large one by its shape alone."""
        self.weights.add(name)
        if prod(tensor.dims) > SMALL or tensor.data_location == tensor.EXTERNAL:
            self.model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
            return
        kept = type(tensor).FromString(tensor.SerializeToString())
        kept.name = name
        self.model.graph.initializer.append(kept)


_SAME = ("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "Gelu", "FastGelu",
         "BiasGelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "RotaryEmbedding")
_PRODUCTS = ("FusedMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul")


def _made(node: NodeProto, shapes: Shapes) -> list[tuple[int, ...]]:
    """Return the shapes of a node's results, as far as they are known: of its kind and the shapes of its inputs."""
    first = shapes.get(node.input[0]) if node.input else None
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if first is None:
        return []
    if node.op_type in _SAME:
        place = 3 if node.op_type in {"QLinearAdd", "QLinearMul"} else 0
        other = shapes.get(node.input[place]) if place < len(node.input) else None
        return [] if other is None else [tuple(np.broadcast_shapes(first, other))]
    if node.op_type == "DynamicQuantizeLSTM" and len(first) == len(state := shapes.get(node.input[2], ())) == 3:
        last = (state[0], first[1], state[1])
        return [(first[0], *last), last, last]
    if node.op_type == "MatMulNBits":
        return [(*first[:-1], int(attributes.get("N", 0)))]
    other = shapes.get(node.input[1]) if node.op_type in _PRODUCTS else None
    if other is None or len(other) != 2 or attributes.get("transA") or attributes.get("transB"):
        return []
    return [(*first[:-1], other[1])]


def _put(graph: GraphProto, nodes: list[NodeProto]) -> None:
    kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _measured(node: NodeProto, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return what ``Shape`` or ``Size`` tells of a shape."""
    if node.op_type == "Size":
        return np.array(prod(shape), np.int64)
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[ends.get("start", 0):ends.get("end", len(shape))], np.int64)


def _weight(body: GraphProto) -> tuple[int, int]:
    """Return how large a branch is: words of its constants, then nodes, those of bodies within it too."""
    words = sum(prod(tensor.dims) for tensor in body.initializer)
    nodes = len(body.node)
    for node in body.node:
        words += sum(prod(attribute.t.dims) for attribute in node.attribute if attribute.HasField("t"))
        within = [_weight(attribute.g) for attribute in node.attribute if attribute.HasField("g")]
        words, nodes = words + sum(w for w, _ in within), nodes + sum(n for _, n in within)
    return words, nodes


def _renamed(node: NodeProto, names: dict[str, str]) -> NodeProto:
    """Return a node that reads and makes tensors of other names, in its own bodies too."""
    made: NodeProto = type(node).FromString(node.SerializeToString())
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for attribute in made.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            own = {*(value.name for value in body.input), *(tensor.name for tensor in body.initializer),
                   *(name for one in body.node for name in one.output)}
            outside = {name: new for name, new in names.items() if name not in own}
            kept = [_renamed(one, outside) for one in body.node]
            del body.node[:]
            body.node.extend(kept)
            for output in body.output:
                output.name = outside.get(output.name, output.name)
    return made

"""Multiply-accumulates of ONNX files as they are read, beside those that onnxruntime executes.

Usage: python benchmarks/onnx_files.py FOLDER [NAME=SIZE ...]

Every ``.onnx`` under FOLDER is read with its dynamic dimensions bound: those of
``tests/unit/interop/published_onnx.json`` where that knows the file, else those given, else 1. Where onnxruntime is
installed (it is no dependency), the file is run on zeros without optimisation, and what its nodes do is counted by the
shapes in the profile, bodies of loops as often as they run: an independent count, as nothing of ours takes part in it.
Packages with such files are fetched with ``pip download --no-deps`` and unpacked.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tilewright.interop import load_onnx
from tilewright.workload import coverage

KNOWN = Path(__file__).parents[1] / "tests/unit/interop/published_onnx.json"
GATES = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}
NUMBERS = {"sr": 16000, "fmin": 40, "fmax": 2000}
"""Inputs of no dimensions that are no sizes: a rate in hertz, the range of a pitch."""


def main(folder: str, given: dict[str, int]) -> None:
    known = {entry["sha256"]: entry for entry in json.loads(KNOWN.read_text())}
    print(f"{'file':<60}{'read':>18}{'executed':>18}  lost")
    for path in sorted(Path(folder).rglob("*.onnx")):
        entry = known.get(hashlib.sha256(path.read_bytes()).hexdigest()[:16])
        bind = dict(entry["bind"]) if entry else {key: given.get(key, 1) for key in open_dimensions(path)}
        graph, ran = load_onnx(path, bind=bind), executed(path, bind)
        print(f"{path.relative_to(folder)!s:<60}{graph.macs:>18,}{'' if ran is None else f'{ran:,}':>18}  "
              f"{coverage(graph).lost}")


def open_dimensions(path: Path) -> list[str]:
    """Names of the dimensions that a file leaves open, as ``--bind`` takes them."""
    return [name for value in inputs_of(path) for name in names_of(value) if isinstance(name, str)]


def inputs_of(path: Path) -> list[onnx.ValueInfoProto]:
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def names_of(value: onnx.ValueInfoProto) -> list[str | int]:
    """Sizes, or names where there are none."""
    return [dim.dim_value if dim.dim_value > 0 else dim.dim_param if dim.dim_param not in {"", "?"} else
            f"{value.name}.{axis}" for axis, dim in enumerate(value.type.tensor_type.shape.dim)]


def executed(path: Path, bind: dict[str, int]) -> int | None:
    """Multiply-accumulates of the nodes that run; None without onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling, options.intra_op_num_threads, options.log_severity_level = True, 1, 4
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = f"{folder}/profile"
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, {value.name: zeros(value, bind) for value in inputs_of(path)})
        events = json.loads(Path(session.end_profiling()).read_text())
    weights = second_inputs(path)
    return sum(macs(event["args"], weights.get(event["name"].removesuffix("_kernel_time"))) for event in events
               if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"))


def zeros(value: onnx.ValueInfoProto, bind: dict[str, int]) -> np.ndarray:
    sizes = [bind[name] if isinstance(name, str) else name for name in names_of(value)]
    kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return np.full(sizes, NUMBERS.get(value.name, 0), kind)


def second_inputs(path: Path) -> dict[str, list[int]]:
    """Shapes of constant second inputs by node: profiles lack those of weights that were packed."""
    graph = onnx.load(path).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    shapes |= {node.output[0]: list(node.attribute[0].t.dims) for node in graph.node if node.op_type == "Constant"}
    return {node.name: shapes[node.input[1]] for node in graph.node if len(node.input) > 1 and node.input[1] in shapes}


def macs(node: dict[str, Any], weights: list[int] | None) -> int:
    """Multiply-accumulates of one execution of a node, by the shapes of what it read and made."""
    kind = node["op_name"]
    shapes: Iterator[list[list[int]]] = (
        [next(iter(shape.values())) for shape in node[f"{side}_type_shape"]] for side in ("input", "output"))
    read, made = shapes
    if kind in {"Conv", "FusedConv", "ConvInteger"}:
        return prod(made[0]) * prod(read[1][1:])
    if kind == "QLinearConv":
        return prod(made[0]) * prod(read[3][1:])
    if kind == "ConvTranspose":
        return prod(read[0]) * prod((weights or read[1])[1:])
    if kind in GATES:
        steps, batch, features = read[0]
        hidden, directions = made[0][-1], made[0][1] if len(made[0]) == 4 else made[0][0]
        return steps * batch * directions * GATES[kind] * hidden * (features + hidden)
    if kind == "Gemm":
        return prod(made[0]) * (prod(read[0]) // made[0][0])
    return prod(made[0]) * read[0][-1] if "MatMul" in kind else 0


if __name__ == "__main__":
    main(sys.argv[1], {name: int(size) for name, _, size in (word.partition("=") for word in sys.argv[2:])})

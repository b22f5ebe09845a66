"""Broken, unknown and contradictory ONNX files: one clear error each."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.base import InputError
from tilewright.interop import load_onnx

RESNET = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"


def model(nodes: list, inputs: dict, constants: dict | None = None) -> bytes:
    """Serialise a model; inputs and constants are shapes by name."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [onnx.ValueInfoProto(name=nodes[-1].output[0])] if nodes else [],
        [numpy_helper.from_array(np.zeros(s, np.float32), n) for n, s in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()


def node(kind: str, *inputs: str, out: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, list(inputs), [out], f"my_{kind.lower()}", **attributes)


def conv(x: list, w: tuple, **attributes: object) -> bytes:
    return model([node("Conv", "x", "w", **attributes)], {"x": x}, {"w": w})


def without_opset() -> bytes:
    broken = onnx.load_from_string(model([node("Relu", "x")], {"x": [2]}))
    del broken.opset_import[:]
    return broken.SerializeToString()


IMAGE = [1, 3, 8, 8]
MALFORMED: dict[str, tuple[Callable[[], bytes], dict, str]] = {
    "empty": (lambda: b"", {}, "must be an ONNX file; Got 'an empty file'."),
    "text": (lambda: b"hello, this is not a model at all\n" * 9, {}, "must be an ONNX file"),
    "random": (lambda: np.random.default_rng(0).bytes(4000), {}, "must be an ONNX file"),
    "image": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), {}, "must be an ONNX file"),
    "cut_in_half": (lambda: RESNET.read_bytes()[:40000], {}, "The file is broken, cut short or of another format."),
    "cut_early": (lambda: RESNET.read_bytes()[:12], {}, "The file is broken, cut short or of another format."),
    "no_nodes": (lambda: model([], {}), {}, "must be an ONNX file with a graph; Got 'a model without nodes'"),
    "no_opset": (without_opset, {}, "must be an ONNX file with a graph; Got 'a model without an opset'"),
    "not_utf8": (lambda: model([node("Relu", "x")], {"x": [2]}).replace(b"my_relu", b"my_\xff\xfelu"), {},
                 "must have names in UTF-8"),
    "unbound": (lambda: conv(["batch", 3, "height", "width"], (4, 3, 3, 3)), {"batch": 1},
                "must be bound; Got 'height, width'; Add --bind height=SIZE --bind width=SIZE: nothing says"),
    "unbound_nameless": (lambda: conv([None, 3, 8, 8], (4, 3, 3, 3)), {}, "Got 'x[0]'; Add --bind x[0]=SIZE: nothing"),
    "bound_unknown": (lambda: conv(IMAGE, (4, 3, 3, 3)), {"batch": 1}, "bind batch: must name a dynamic dimension of "),
    "bound_to_zero": (lambda: conv(["n", 3, 8, 8], (4, 3, 3, 3)), {"n": 0},
                      "bind n: must be a positive integer; Got 0; For example --bind n=1."),
    "bound_too_large": (lambda: conv(["n", 3, 8, 8], (4, 3, 3, 3)), {"n": 1 << 63},
                        "bind n: must be less than 2^63, as sizes in files are; Got 9223372036854775808."),
    "bound_to_text": (lambda: conv(["n", 3, 8, 8], (4, 3, 3, 3)), {"n": "1"}, "bind n: must be a positive integer"),
    "no_shape": (lambda: model([node("Relu", "x")], {"x": None}), {}, "input x: must state its shape"),
    "reads_nothing": (lambda: model([node("Add", "x", "ghost")], {"x": [2]}), {},
                      "node my_add: must read what exists; Got 'ghost'; The file is broken; export it again."),
    "out_of_order": (lambda: model([node("Relu", "late"), node("Neg", "x", out="late")], {"x": [2]}), {},
                     "node my_relu: must come after the node that makes its input; Got 'late'"),
    "made_twice": (lambda: model([node("Relu", "x"), node("Neg", "x")], {"x": [2]}), {},
                   "node my_neg: must not make a tensor that exists already; Got 'y'."),
    "channels": (lambda: conv(IMAGE, (4, 5, 3, 3)), {},
                 "must have as many input channels as the input channels of the weights times groups (5); Got 3."),
    "groups": (lambda: conv([1, 6, 8, 8], (4, 2, 3, 3), group=3), {},
               "must have output channels divisible by its 3 groups; Got 4."),
    "kernel": (lambda: conv(IMAGE, (4, 3, 9, 9)), {}, "node my_conv.kernel: must fit in the padded input of 8; Got 9"),
    "kernel_shape": (lambda: conv(IMAGE, (4, 3, 3, 3), kernel_shape=[5, 5]), {},
                     "must have the kernel_shape of its weights, [3, 3]; Got [5, 5]."),
    "ranks": (lambda: conv(IMAGE, (4, 3, 3)), {}, "must have an input and weights of one rank"),
    "pads": (lambda: conv(IMAGE, (4, 3, 3, 3), pads=[1, 1]), {}, "must have 4 pads; Got [1, 1]."),
    "strides": (lambda: conv(IMAGE, (4, 3, 3, 3), strides=[0, 1]), {}, "my_conv.stride: must be one positive integer"),
    "no_weights": (lambda: model([node("Conv", "x")], {"x": IMAGE}), {}, "must have input; Got 1."),
    "no_input": (lambda: model([node("Relu")], {"x": [2]}), {}, "must pass ONNX's shape inference; Got '"),
    "transposed": (lambda: model([node("ConvTranspose", "x", "w")], {"x": IMAGE}, {"w": (5, 3, 3, 3)}), {},
                   "must have as many input channels as the first axis of the weights (5); Got 3."),
    "matmul": (lambda: model([node("MatMul", "x", "w")], {"x": [2, 3]}, {"w": (4, 5)}), {},
               "node my_matmul (MatMul): must have inner sizes that agree; Got ((2, 3), (4, 5))."),
    "matmul_batch": (lambda: model([node("MatMul", "x", "w")], {"x": [2, 3, 4]}, {"w": (3, 4, 5)}), {},
                     "must have batch axes that agree or are 1"),
    "gemm": (lambda: model([node("Gemm", "x", "w", transB=1)], {"x": [2, 3]}, {"w": (3, 5)}), {},
             "must have inner sizes that agree; Got (3, 5); See transA and transB."),
    "gemm_rank": (lambda: model([node("Gemm", "x", "w")], {"x": [2, 3, 4]}, {"w": (4, 5)}), {},
                  "must multiply two matrices"),
    "einsum": (lambda: model([node("Einsum", "x", "w", equation="ij,jk->ik")], {"x": [2, 3]}, {"w": (4, 5)}), {},
               "must have one size for the letter 'j'; Got [3, 4]."),
    "einsum_terms": (lambda: model([node("Einsum", "x", equation="ij,jk->ik")], {"x": [2, 3]}), {},
                     "must have one term for each of its 1 inputs"),
    "einsum_rank": (lambda: model([node("Einsum", "x", "w", equation="ij,j->i")], {"x": [2, 3]}, {"w": (3, 1)}), {},
                    "must have one letter for each axis of its inputs; Got ('j', (3, 1))."),
    "lstm": (lambda: model([node("LSTM", "x", "w", "r", hidden_size=4)], {"x": [5, 1, 3]},
                           {"w": (1, 16, 7), "r": (1, 16, 4)}), {}, "must have W of 4 x 4 rows by 3 columns"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(tmp_path: Path, name: str) -> None:
    content, bind, message = MALFORMED[name]
    file = tmp_path / f"{name}.onnx"
    file.write_bytes(content())
    with pytest.raises(InputError) as error:
        load_onnx(file, bind=bind)
    assert message in str(error.value)
    assert str(file) in str(error.value) or error.value.field.startswith("bind")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be an ONNX file; Got 'no such file'"):
        load_onnx(tmp_path / "none.onnx")
    with pytest.raises(InputError, match=r"must be an ONNX file; Got 'not a file'"):
        load_onnx(tmp_path)


@pytest.mark.parametrize("length", [1, 100, 1000, 5000, 20000, 60000, 79000])
def test_files_cut_anywhere(tmp_path: Path, length: int) -> None:
    file = tmp_path / "cut.onnx"
    file.write_bytes(RESNET.read_bytes()[:length])
    with pytest.raises(InputError):
        load_onnx(file)


def test_flipped_bytes_never_show_a_traceback(tmp_path: Path) -> None:
    """Three hundred files with a few bytes overwritten: each loads, or says what is wrong."""
    good = conv(IMAGE, (4, 3, 3, 3), pads=[1, 1, 1, 1])
    rng = np.random.default_rng(1)
    file = tmp_path / "flip.onnx"
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        head = len(good) - 4 * 108 if rng.random() < 0.5 else len(good)
        for place in rng.integers(0, head, 3):
            data[place] = rng.integers(0, 256)
        file.write_bytes(bytes(data))
        try:
            load_onnx(file)
        except InputError:
            refused += 1
    assert refused > 50

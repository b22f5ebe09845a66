"""Files of ``torch.export.save`` (.pt2): the graph is read from the JSON within; weights, pickles and code stay unread.

PyTorch's own ``torch.export.load`` unpickles parts of the file and evaluates its expressions, which can run code; here
neither is done, and PyTorch need not be installed. The layout: ``<name>/models/<model>.json`` in a zip file since
PyTorch 2.8, ``serialized_exported_program.json`` before; the schema: ``torch._export.serde.schema``, version 8.

And the ways in: a module with its inputs, an exported program, a ``.pt2`` file.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.base import InputError, path_text, read_json
from tilewright.interop.pytorch.huggingface import is_pretrained, load_pretrained
from tilewright.interop.pytorch.program import (
    Body,
    Call,
    ExportedNetwork,
    Ref,
    Size,
    TensorInfo,
    Value,
    flatten,
    module_path,
)
from tilewright.interop.pytorch.torch import export_module, is_exported, is_module, read_exported
from tilewright.interop.pytorch.translate import graph_of
from tilewright.workload import Graph

_SCHEMA = 8
_LARGEST = 2**30
_OLD_LAYOUT = "serialized_exported_program.json"
_ELEMENT_TYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
                  9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
                  29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz",
                  33: "float8_e8m0fnu", 34: "uint32", 35: "uint64"}


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Tensor(_Part):
    dtype: int
    sizes: list[dict[str, Any]]


class _Argument(_Part):
    name: str
    arg: dict[str, Any]


class _Node(_Part):
    target: str
    inputs: list[_Argument]
    outputs: list[dict[str, Any]]
    metadata: dict[str, str] = Field(default_factory=dict)


class _Graph(_Part):
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    nodes: list[_Node]
    tensor_values: dict[str, _Tensor]
    sym_int_values: dict[str, dict[str, Any]] = Field(default_factory=dict)


class _Signature(_Part):
    input_specs: list[dict[str, dict[str, Any]]]


class _Module(_Part):
    graph: _Graph
    signature: _Signature


class _Range(_Part):
    min_val: int | None
    max_val: int | None


class _Version(_Part):
    major: Literal[8]
    minor: int


class _Exported(_Part):
    schema_version: _Version
    graph_module: _Module
    range_constraints: dict[str, _Range] = Field(default_factory=dict)


def read_archive(path: str | Path) -> ExportedNetwork:
    """Read the exported program in a ``.pt2`` file.

    Raises an `InputError` if the file is missing, no such archive, holds no or several programs, or does not follow the
    schema.
    """
    file = Path(path)
    name, text = _document(file)
    raw = read_json(text, f"{file}: {name}")
    try:
        exported = _Exported.model_validate(raw)
    except ValidationError as errors:
        raise _explained(errors, f"{file}: {name}") from None
    try:
        return _program(file, exported)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: {name}", "must follow the schema of torch.export",
                         f"{type(error).__name__}: {error}", "The file is broken; export it again") from None


def _document(file: Path) -> tuple[str, bytes]:
    """Return the name and the text of the one program in the archive."""
    rule = "must be a file of torch.export.save (.pt2)"
    if not file.is_file():
        raise InputError(str(file), rule, "no such file" if not file.exists() else "not a file")
    try:
        with zipfile.ZipFile(file) as archive:
            if min((info.header_offset for info in archive.infolist()), default=0) > 0:
                raise zipfile.BadZipFile("another archive within it is all that is whole")
            names = [info for info in archive.infolist() if _is_program(info.filename)]
            if not names:
                raise InputError(str(file), rule, _other(archive.namelist()),
                                 "Save the model with torch.export.save(torch.export.export(model, inputs), file)")
            if len(names) > 1:
                raise InputError(str(file), "must hold one program",
                                 ", ".join(info.filename for info in names), "Save each in a file of its own")
            if names[0].file_size > _LARGEST:
                raise InputError(f"{file}: {names[0].filename}", "must have at most 1 GiB", names[0].file_size)
            return names[0].filename, archive.read(names[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        given = "an empty file" if file.stat().st_size == 0 else f"{type(error).__name__}: {error}"
        raise InputError(str(file), rule, given, "The file is broken, cut short or of another format") from None


def _is_program(name: str) -> bool:
    parts = name.split("/")
    return name == _OLD_LAYOUT or (len(parts) >= 2 and parts[-2] == "models" and name.endswith(".json"))


def _other(names: list[str]) -> str:
    """Say what an archive without a program is."""
    bare = [name.split("/")[-1] for name in names]
    if "constants.pkl" in bare:
        return "a TorchScript module"
    if "data.pkl" in bare:
        return "a pickle of torch.save (weights, or a whole module)"
    return f"an archive of {len(names)} other files"


def _explained(errors: ValidationError, where: str) -> InputError:
    first = errors.errors()[0]
    path = path_text(first["loc"]).lstrip(".")
    if path == "schema_version.major":
        return InputError(f"{where}: {path}", f"must be {_SCHEMA}, the version known here", first["input"],
                          "Load and save the file with PyTorch 2.13")
    given = type(first["input"]).__name__ if isinstance(first["input"], dict | list) else first["input"]
    return InputError(f"{where}: {path}" if path else where, first["msg"], given, "The file is broken; export it again")


def _program(file: Path, exported: _Exported) -> ExportedNetwork:
    inputs: list[str] = []
    constants: set[str] = set()
    for spec in exported.graph_module.signature.input_specs:
        (kind, content), = spec.items()
        argument = content.get("arg", {})
        if kind == "user_input":
            inputs += _names([argument])
        elif "name" in argument:
            constants.add(_name(argument))
    body = flatten(_body(exported.graph_module.graph, {}))
    unknown = [name for name in inputs if name not in body.tensors]
    if unknown:
        raise KeyError(f"the sizes of {unknown[0]}")
    ranges = {symbol: (found.min_val, found.max_val) for symbol, found in exported.range_constraints.items()}
    return ExportedNetwork(str(file), file.stem, tuple(inputs), frozenset(constants), body, ranges)


def _body(graph: _Graph, outer: dict[str, int | str]) -> Body:
    numbers = {**outer, **{name: _size(value) for name, value in graph.sym_int_values.items()}}
    calls = tuple(_call(node, numbers) for node in graph.nodes)
    tensors = {name: TensorInfo(_ELEMENT_TYPES.get(tensor.dtype, f"type {tensor.dtype}"),
                                tuple(_size(size) for size in tensor.sizes))
               for name, tensor in graph.tensor_values.items()}
    return Body(tuple(_names(graph.inputs)), tuple(_names(graph.outputs)), calls, tensors)


def _call(node: _Node, numbers: dict[str, int | str]) -> Call:
    arguments = tuple((one.name, _value(one.arg, numbers)) for one in node.inputs)
    visit, path = _module(node.metadata.get("nn_module_stack", ""))
    return Call(_target(node.target), arguments, tuple(_names(node.outputs)), path, visit)


def _target(target: str) -> str:
    """Return ``aten.conv2d`` for ``torch.ops.aten.conv2d.default``."""
    parts = target.removeprefix("torch.ops.").split(".")
    return ".".join(parts[:2])


def _module(stack: str) -> tuple[str, str]:
    """Return visit and path of the innermost module: entries ``visit,path,type`` (the first two may have commas)."""
    if not stack:
        return "", ""
    parts = stack.rsplit(";", maxsplit=1)[-1].split(",")[:-1]
    half = len(parts) // 2
    return ",".join(parts[:half]), module_path(",".join(parts[half:]))


def _names(arguments: list[dict[str, Any]]) -> list[str]:
    """Names of the tensors among arguments, lists spread out."""
    found: list[str] = []
    for argument in arguments:
        if "as_tensor" in argument:
            found.append(_name(argument["as_tensor"]))
        elif "as_tensors" in argument:
            found += [_name(tensor) for tensor in argument["as_tensors"]]
        elif "as_optional_tensor" in argument or "as_optional_tensors" in argument:
            several = argument.get("as_optional_tensors", [argument.get("as_optional_tensor")])
            found += [_name(one["as_tensor"]) for one in several if "as_tensor" in one]
    return found


def _name(tensor: dict[str, Any]) -> str:
    if not isinstance(tensor["name"], str):
        raise TypeError(f"a tensor called {tensor['name']!r}")
    return tensor["name"]


def _size(size: dict[str, Any]) -> int | str:
    if "as_int" in size:
        return int(size["as_int"])
    return str(size["as_expr"]["expr_str"])


def _value(argument: dict[str, Any], numbers: dict[str, int | str]) -> Value:
    (kind, content), = argument.items()
    if kind in ("as_tensor", "as_tensors", "as_nested_tensors"):
        return _tensors(content)
    if kind in ("as_optional_tensor", "as_sym_int"):
        return _one(content, numbers)
    if kind in ("as_optional_tensors", "as_sym_ints"):
        return [_one(one, numbers) for one in content]
    if kind == "as_graph":
        return _body(_Graph.model_validate(content["graph"]), numbers)
    named = {"as_none": None, "as_scalar_type": _ELEMENT_TYPES.get(content) if isinstance(content, int) else None}
    return named.get(kind, content)


def _tensors(content: Any) -> Value:
    return [_tensors(one) for one in content] if isinstance(content, list) else Ref(_name(content))


def _one(content: dict[str, Any], numbers: dict[str, int | str]) -> Value:
    """Return a tensor that may be missing, or a number that may be computed."""
    if "as_tensor" in content:
        return Ref(_name(content["as_tensor"]))
    if "as_name" in content:
        known = numbers.get(content["as_name"])
        return Size(known) if isinstance(known, str) else known
    return content.get("as_int")


def load_torch(module: Any, inputs: Sequence[Any] | None = None,
               kwargs: Mapping[str, Any] | None = None, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a PyTorch module, or what ``torch.export.export`` made of one.

    A module is exported for inputs of these shapes, as for inference; shapes are all that is computed, so that module
    and inputs may be on the meta device. The module stays as it was.

    Parameters
    ----------
    module
        A ``torch.nn.Module`` or a ``torch.export.ExportedProgram``.
    inputs, kwargs
        Arguments of the module's ``forward``; none for an exported program, or for a model of transformers whose
        sizes ``bind`` gives.
    bind
        Sizes of an exported program's dynamic dimensions, by input and axis (``images[0]``), or of a transformers
        model's inputs (``batch``, ``sequence``).

    Raises
    ------
    InputError
        If PyTorch is not installed, the module cannot be traced with these inputs, or a dynamic dimension is not bound.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> graph = load_torch(torch.nn.Linear(64, 10), (torch.zeros(1, 64),))  # doctest: +SKIP
    """
    if is_exported(module):
        if inputs is not None or kwargs:
            raise InputError("inputs", "must be left out with an exported program, which has its own")
        return graph_of(read_exported(module), bind or {})
    if not is_module(module):
        raise InputError("module", "must be a torch.nn.Module or an exported program", type(module).__name__)
    if inputs is None and not kwargs and is_pretrained(module):
        return load_pretrained(module, bind=bind)
    if inputs is None and not kwargs:
        raise InputError(type(module).__name__, "must come with the inputs of its forward", None,
                         "Give them beside it, (module, inputs), or export it: torch.export.export(module, inputs)")
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise InputError("inputs", "must be a tuple of the arguments of forward", type(inputs).__name__,
                         "Write (tensor,) for a single one")
    exported = export_module(module, inputs or (), kwargs or {}, where=type(module).__name__,
                             mend="See that it runs with these inputs: module(*inputs)")
    return graph_of(read_exported(exported, type(module).__name__), bind or {})


def load_given(given: Any, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a module, an exported program, or a pair of a module and its inputs."""
    if not isinstance(given, tuple):
        return load_torch(given, bind=bind)
    module, inputs = given
    return load_torch(module, **{"kwargs" if isinstance(inputs, Mapping) else "inputs": inputs}, bind=bind)


def load_exported(path: str | Path, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a ``.pt2`` file of ``torch.export.save``; PyTorch need not be installed, and nothing in the file is run.

    Raises an `InputError` if the file cannot be read, or a dynamic dimension is not bound.
    """
    return graph_of(read_archive(path), bind or {})

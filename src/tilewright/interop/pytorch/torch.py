"""PyTorch's exported programs, as our nouns. PyTorch loads when one of these functions needs it."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.base import InputError, late_module
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

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import GraphModule
    from torch.nn import Module

torch = late_module("torch")
TorchNetwork: TypeAlias = "Module | ExportedProgram | tuple[Module, Sequence[object] | Mapping[str, object]]"

_LAST_LINES = 3
SCAN = "tilewright.selective_scan"
"""What stands for a selective scan in an exported program."""


def is_exported(given: object) -> bool:
    """Whether ``given`` is an exported program."""
    return is_of(given, "torch.export.exported_program", "ExportedProgram")


def is_module(given: object) -> bool:
    """Whether ``given`` is a PyTorch module."""
    return is_of(given, "torch.nn.modules.module", "Module")


def is_of(given: object, module: str, name: str) -> bool:
    """Whether ``given`` is of a class, which is not loaded to find out."""
    return any(one.__module__ == module and one.__name__ == name for one in type(given).__mro__)


def export_module(module: "Module", args: Sequence[Any], kwargs: Mapping[str, Any], *, where: str,
                  mend: str) -> "ExportedProgram":
    """Export a module for inputs of these shapes, as it is used for inference.

    ``where`` it comes from and how to ``mend`` what goes wrong are told in errors.

    Raises an `InputError` if ``torch.export`` cannot: the reason is told in its own words.
    """
    with quietly(), _inference(module), torch.device(_device(module) or "cpu"):
        try:
            found: ExportedProgram = torch.export.export(module, tuple(args), dict(kwargs), strict=False)
        except Exception as error:  # whatever the module's own code raises for these inputs
            raise InputError(where, "must be traceable by torch.export", _reason(error),
                             _on_data(error) or mend) from None
    return found


@contextmanager
def _inference(module: "Module") -> Iterator[None]:
    """Let a module run as for inference, and put it back as it was."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def quietly() -> Iterator[None]:
    """Keep what PyTorch says on the way to itself: the error tells what matters."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _device(module: "Module") -> str | None:
    """Where the module is; None where it is at several places, or has nothing that is anywhere."""
    places = {str(one.device) for one in (*module.parameters(), *module.buffers())}
    return places.pop() if len(places) == 1 else None


def on_meta() -> Any:
    """Return a context in which tensors have shapes, but no values."""
    return torch.device("meta")


def zeros_for(module: "Module", shape: Sequence[int], *, numbers: bool) -> Any:
    """Return an input of zeros where a module is: indices, or ``numbers`` of the type of its weights."""
    weights = next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.float32)
    return torch.zeros(tuple(shape), dtype=weights if numbers else torch.long, device=_device(module))


@cache
def stand_in(name: str, schema: str, made: Callable[..., Any]) -> Any:
    """Return an operator that is one call in an exported program; ``made`` makes a tensor of its result's shape."""
    found = torch.library.custom_op(name.replace(".", "::"), made, mutates_args=(), schema=schema)
    found.register_fake(made)
    return found


def selective_scan(x: Any, dt: Any, a: Any, b: Any, c: Any, *rest: Any, **how: Any) -> Any:
    """Scan ``x`` (batch, features, positions) as transformers does, which passes the rest by name."""
    if how.get("delta_bias") is not None:
        dt = dt + how["delta_bias"][..., None]
    if how.get("delta_softplus"):
        dt = torch.nn.functional.softplus(dt)
    schema = "(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c) -> Tensor"
    y = stand_in(SCAN, schema, _scanned)(x, dt, a, b, c)
    if how.get("D") is not None:
        y = y + x * how["D"][None, :, None]
    if how.get("z") is not None:
        y = y * torch.nn.functional.silu(how["z"])
    return (y, x.new_zeros((x.shape[0], *a.shape))) if how.get("return_last_state") else y


def _scanned(x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    return x.new_empty(x.shape)


def _reason(error: Exception) -> str:
    """Return the lines of an error that say what happened, without advice about settings of PyTorch."""
    kept = []
    for line in str(error).splitlines():
        if line.startswith(("For more information", "The error above", "The following call raised", "(Unhandled")):
            break
        if line.strip():
            kept.append(line.strip())
    return f"{type(error).__name__}: {' '.join(kept[:_LAST_LINES])}"


def _on_data(error: Exception) -> str:
    """Say how to mend what depends on values of tensors; nothing for other errors."""
    names = [one.__name__ for one in type(error).__mro__]
    if "GuardOnDataDependentSymNode" in names or "data-dependent" in str(error):
        return ("Its control flow or a shape depends on values of tensors; write it with torch.cond or torch.where, "
                "or export the parts beside it")
    return ""


def read_exported(exported: "ExportedProgram", name: str = "") -> ExportedNetwork:
    """Read an exported program.

    Raises an `InputError` if it holds what no exported graph should.
    """
    signature = exported.graph_signature
    constants = {spec.arg.name for spec in signature.input_specs
                 if spec.kind.name != "USER_INPUT" and hasattr(spec.arg, "name")}
    body = flatten(_body(exported.graph_module))
    inputs = [spec.arg.name for spec in signature.input_specs
              if spec.kind.name == "USER_INPUT" and getattr(spec.arg, "name", None) in body.tensors]
    ranges = {str(symbol): (_limit(limits.lower), _limit(limits.upper))
              for symbol, limits in exported.range_constraints.items()}
    called = name or _called(exported)
    return ExportedNetwork(called, called, tuple(inputs), frozenset(constants), body, ranges)


def _called(exported: "ExportedProgram") -> str:
    """Return the class of the module that was exported, as its calls remember it."""
    for node in exported.graph.nodes:
        for key, (_, kind) in (node.meta.get("nn_module_stack") or {}).items():
            if not str(key).startswith("_empty_"):  # PyTorch marks calls of no module so
                text = kind if isinstance(kind, str) else kind.__qualname__
                return str(text).split(".")[-1]
    return "exported program"


def _limit(bound: Any) -> int | None:
    return int(bound) if getattr(bound, "is_Integer", False) else None


class _Reader:
    """Names and values of one graph while its calls are read."""

    def __init__(self, module: "GraphModule") -> None:
        self.module = module
        self.tensors: dict[str, TensorInfo] = {}
        self.names: dict[str, Value] = {}  # what a node of the graph stands for as an argument

    def define(self, node: Any) -> tuple[str, ...]:
        """Note the results of a node; return the names of its tensors."""
        found = node.meta.get("val")
        if isinstance(found, list | tuple):
            values: list[Value] = [self._note(f"{node.name}#{i}", one) for i, one in enumerate(found)]
            self.names[node.name] = values
        else:
            values = [self._note(node.name, found)]
            self.names[node.name] = values[0]
        return tuple(value.name for value in values if isinstance(value, Ref))

    def _note(self, name: str, found: Any) -> Value:
        if _is_tensor(found):
            sizes = tuple(_size(size) for size in found.shape)
            self.tensors[name] = TensorInfo(str(found.dtype).removeprefix("torch."), sizes)
            return Ref(name)
        return _number(found)

    def value(self, argument: Any) -> Value:
        """Return an argument as our nouns."""
        if hasattr(argument, "op") and hasattr(argument, "meta"):  # a node
            return self.names[argument.name]
        if isinstance(argument, list | tuple):
            return [self.value(one) for one in argument]
        if isinstance(argument, dict):
            return [self.value(one) for one in argument.values()]
        if type(argument).__name__ == "dtype":
            return str(argument).removeprefix("torch.")
        if isinstance(argument, bool | int | float | str) or argument is None:
            return argument
        return str(argument)


def _body(module: "GraphModule") -> Body:
    reader = _Reader(module)
    inputs: list[str] = []
    outputs: list[str] = []
    calls: list[Call] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            inputs += reader.define(node)
        elif node.op == "get_attr":
            held = attrgetter(node.target)(module)
            reader.names[node.name] = _body(held) if hasattr(held, "graph") else None
            if _is_tensor(held):
                node.meta.setdefault("val", held)
                reader.define(node)
        elif node.op == "output":
            outputs += _tensors(reader.value(node.args[0]))
        elif getattr(node.target, "__name__", "") == "getitem" and isinstance(reader.value(node.args[0]), list):
            reader.names[node.name] = reader.value(node.args[0])[node.args[1]]
        else:
            calls.append(_call(reader, node))
    return Body(tuple(inputs), tuple(outputs), tuple(calls), reader.tensors)


def _tensors(value: Value) -> list[str]:
    if isinstance(value, Ref):
        return [value.name]
    return [name for one in value for name in _tensors(one)] if isinstance(value, list) else []


def _call(reader: _Reader, node: Any) -> Call:
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        space, _, name = schema.name.partition("::")
        target, names = f"{space}.{name}", [argument.name for argument in schema.arguments]
    else:
        space = "higher_order" if hasattr(node.target, "namespace") else "_operator"
        target, names = f"{space}.{node.target.__name__}", []
    named = zip_longest(names[:len(node.args)], node.args, fillvalue="")
    arguments = tuple((key, reader.value(value)) for key, value in (*named, *node.kwargs.items()))
    stack = list((node.meta.get("nn_module_stack") or {}).items())
    visit, path = (stack[-1][0], module_path(stack[-1][1][0])) if stack else ("", "")
    return Call(target, arguments, reader.define(node), path, visit)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _size(size: Any) -> int | str:
    number = _number(size)
    return number.expression if isinstance(number, Size) else int(number)


def _number(value: Any) -> Value:
    """Return a number as it is, and one that follows from sizes as its expression."""
    if hasattr(value, "node") and hasattr(value.node, "expr"):
        from sympy import srepr  # noqa: PLC0415

        expression = value.node.expr
        return int(expression) if expression.is_Integer else Size(srepr(expression))
    return value

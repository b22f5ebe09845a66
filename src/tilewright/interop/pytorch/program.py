"""What PyTorch exports, as nouns that need no PyTorch: calls of operators on named tensors, in order."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Value: TypeAlias = Any  # a number, text, None, `Ref`, `Size`, `Body`, or a list of these

# Operators that only change how their body is run (gradients, precision, checkpoints): the body stands in their place.
_WRAPPERS = {"wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap", "hints_wrapper", "invoke_subgraph",
             "tag_activation_checkpoint", "wrap_activation_checkpoint", "wrap_inference_mode"}
_SLICE = re.compile(r"slice\([^)]*\)\.?")


@dataclass(frozen=True)
class Ref:
    """A tensor as an argument."""

    name: str


@dataclass(frozen=True)
class Size:
    """A number that follows from sizes of the inputs: an expression as ``sympy.srepr`` writes it."""

    expression: str


@dataclass(frozen=True)
class TensorInfo:
    """Element type and sizes (numbers, or expressions as in `Size`)."""

    element_type: str
    sizes: tuple[int | str, ...]


@dataclass(frozen=True)
class Call:
    """One call of an operator."""

    target: str
    """Name space and name, without the overload: ``aten.conv2d``."""
    arguments: tuple[tuple[str, Value], ...]
    """By the names of the operator's schema; what is left out has its default."""
    outputs: tuple[str, ...]
    """Names of the tensors that it makes."""
    path: str = ""
    visit: str = ""
    """The module that calls it (``layer1.0.conv1``), and which of its calls that is: calls of one visit share it."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors that it reads, in the order of its arguments."""
        return tuple(refs(value for _, value in self.arguments))


@dataclass(frozen=True)
class Body:
    """Calls with the tensors that they read from outside and those that they hand out."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    calls: tuple[Call, ...]
    tensors: Mapping[str, TensorInfo]


@dataclass(frozen=True)
class ExportedNetwork:
    """An exported network."""

    source: str
    name: str
    """Where it comes from, and what to call it."""
    inputs: tuple[str, ...]
    """The tensors that its user gives."""
    constants: frozenset[str]
    """Weights, buffers and other tensors that are known before it runs."""
    body: Body
    ranges: Mapping[str, tuple[int | None, int | None]]
    """Least and largest size of each symbol; None where there is no limit."""


def refs(values: Iterable[Value]) -> Iterator[str]:
    """Give the names of all tensors among ``values``, lists included."""
    for value in values:
        if isinstance(value, Ref):
            yield value.name
        elif isinstance(value, list | tuple):
            yield from refs(value)


def module_path(path: str) -> str:
    """Return a module's path without the slices through which lists of modules were walked."""
    return _SLICE.sub("", path).strip(".")


def flatten(body: Body) -> Body:
    """Put the bodies of wrapping operators in place of their calls."""
    calls: list[Call] = []
    tensors = dict(body.tensors)
    names: dict[str, str] = {}
    for call in body.calls:
        call = _renamed(call, names)  # noqa: PLW2901  (the call as it reads once wrapped results have their names)
        wrapped = _wrapped(call)
        if wrapped is None:
            calls.append(call)
            continue
        inner, operands = wrapped
        inner = flatten(inner)
        stem = call.outputs[0]
        within = {name: f"{stem}/{name}" for one in inner.calls for name in one.outputs}
        within |= dict(zip(inner.inputs, operands, strict=True))
        calls += [_renamed(one, within, outputs=True) for one in inner.calls]
        tensors |= {within.get(name, f"{stem}/{name}"): info for name, info in inner.tensors.items()
                    if name not in inner.inputs}
        names |= dict(zip(call.outputs, (within.get(name, name) for name in inner.outputs), strict=True))
    outputs = tuple(names.get(name, name) for name in body.outputs)
    return Body(body.inputs, outputs, tuple(calls), tensors)


def _wrapped(call: Call) -> tuple[Body, list[str]] | None:
    """Return the body and the operands of a call that only wraps; None for any other."""
    space, _, name = call.target.partition(".")
    if space != "higher_order" or name not in _WRAPPERS or not call.outputs:
        return None
    values = [value for _, value in call.arguments]
    bodies = [value for value in values if isinstance(value, Body)]
    operands = list(refs(values))
    if len(bodies) != 1 or len(operands) != len(bodies[0].inputs) or len(call.outputs) != len(bodies[0].outputs):
        return None
    return bodies[0], operands


def _renamed(call: Call, names: Mapping[str, str], *, outputs: bool = False) -> Call:
    if not names:
        return call
    made = tuple(names.get(name, name) for name in call.outputs) if outputs else call.outputs
    arguments = tuple((key, _replaced(value, names)) for key, value in call.arguments)
    return replace(call, arguments=arguments, outputs=made)


def _replaced(value: Value, names: Mapping[str, str]) -> Value:
    if isinstance(value, Ref):
        return Ref(names.get(value.name, value.name))
    if isinstance(value, list | tuple):
        return [_replaced(one, names) for one in value]
    return value  # what a body reads from outside are its call's operands, renamed beside it

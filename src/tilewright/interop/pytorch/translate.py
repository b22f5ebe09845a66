"""An exported program becomes a `Graph` in which nothing is left out in silence.

Sizes that depend on dynamic dimensions are expressions read as data, never run, and the dimensions bound.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, prod
from operator import truediv
from typing import Any

from tilewright.base import InputError
from tilewright.interop.pytorch.arranged import APPEND, arrangements
from tilewright.interop.pytorch.macs import MAC_TRANSLATORS
from tilewright.interop.pytorch.program import Body, Call, ExportedNetwork, Size, Value
from tilewright.interop.pytorch.torch import SCAN
from tilewright.interop.pytorch.vectors import CONVERSIONS, KINDS, is_vector, seen, translate_vector
from tilewright.interop.scene import NodeView, Scene, Shape, check_bindings, folded_note, quantised_types, translated
from tilewright.workload import Graph, Node

_CONTROL = {"cond": "branches are chosen at run time", "while_loop": "its trips are counted at run time",
            "scan": "its body runs once a slice", "map_impl": "its body runs once a slice",
            "map": "its body runs once a slice", "associative_scan": "its body runs once a pair"}
_RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "uniform",
           "bernoulli", "multinomial", "exponential", "random", "dropout", "feature_dropout", "alpha_dropout",
           "native_dropout"}
# Made from the shape of a tensor alone, whatever its values.
_SHAPED = {"zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
           "new_empty_strided", "sym_size", "_shape_as_tensor"}
# What PyTorch makes as views: they share memory with what they are made of.
_SHARING = {*KINDS.views - {"clone", "contiguous", "lift_fresh_copy", "detach_copy", "view_copy"}, *"""
permute transpose t numpy_T adjoint mT mH movedim swapaxes swapdims slice select narrow diagonal split split_with_sizes
chunk unbind tensor_split unfold as_strided expand expand_as
""".split()}
_RENAMED = {"scaled_dot_product_attention": "attention", "_scaled_dot_product_flash_attention_for_cpu": "attention",
            "transformers.grouped_mm_fallback": "grouped_mm", "_grouped_mm": "grouped_mm", APPEND: "append",
            SCAN: "scan"}
_LONGEST = 20_000
_LARGEST = 2**63
_STEEPEST = 64
_NUMBER = re.compile(r"[+-]?[0-9.]{1,400}(e[+-]?[0-9]{1,2})?")
"""Digits of a number; a power of ten with more digits would take for ever to write out."""


def graph_of(program: ExportedNetwork, bind: Mapping[str, int | str]) -> Graph:
    """Return the network that an exported program is, with its dynamic dimensions bound.

    Raises an `InputError` if a dynamic dimension is not bound, ``bind`` names one that there is not, or the program
    contradicts itself.
    """
    try:
        bound = bind_sizes(program, bind)
        scene = _scene(program, bound.symbols)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(program.source, "must state its sizes as torch.export does", str(error),
                         "The file is broken; export it again") from None
    calls = [call for call in program.body.calls if call.outputs]
    _check(program, calls)
    found = arrangements(calls, lambda call: _kind_at(scene, call), scene.shapes, program.body.outputs)
    scene.arranged = {name: one.axes for name, one in found.items()}
    appended = {call.outputs[0] for call in calls if _kind(call) == APPEND}
    scene.caches = frozenset(name for name, one in found.items() if one.root in appended)
    shared = _Memory(calls)
    kept = [call for call in calls if not _is_folded(scene, call, shared)]
    _translate(scene, kept, bound.symbols, shared)
    notes = (*bound.notes, *folded_note(len(calls) - len(kept)), *scene.notes)
    return Graph(program.name, tuple(scene.nodes), program.source, notes)


def _scene(program: ExportedNetwork, symbols: Mapping[str, int]) -> Scene:
    shapes: dict[str, Shape] = {}
    for name, info in program.body.tensors.items():
        sizes = [size_of(size, symbols) for size in info.sizes]
        known = tuple(size for size in sizes if size is not None and size >= 0)
        if len(known) == len(sizes):
            shapes[name] = known
    types = {name: info.element_type for name, info in program.body.tensors.items()}
    stored = quantised_types(((call.target, call.tensors, call.outputs) for call in program.body.calls), types)
    return Scene(program.source, shapes, types, set(program.constants), stored=stored,
                 handed=frozenset(program.body.outputs))


def _check(program: ExportedNetwork, calls: list[Call]) -> None:
    """Every tensor is made once, before it is read."""
    known = {*program.inputs, *program.constants, *program.body.inputs}
    for index, call in enumerate(calls):
        where = f"{program.source}: call {index} ({call.target})"
        for name in call.tensors:
            if name not in known:
                raise InputError(where, "must read what exists", name, "The file is broken; export it again")
        for name in call.outputs:
            if name in known:
                raise InputError(where, "must not make a tensor that exists already", name)
            known.add(name)


def _kind(call: Call) -> str:
    """Return the operator's name as the tables have it: without PyTorch's name space and the sign of "in place"."""
    space, _, name = call.target.partition(".")
    name = name[:-1] if _is_in_place(call) else name
    return name if space == "aten" else f"{space}.{name}"


def _kind_at(scene: Scene, call: Call) -> str:
    """Return the operator's name; that of a view where it converts to the type that the tensor has."""
    kind = _kind(call)
    kept = kind in CONVERSIONS and call.tensors and scene.types.get(call.tensors[0]) == scene.types.get(call.outputs[0])
    return "view" if kept else kind


def _is_in_place(call: Call) -> bool:
    return call.target.endswith("_") and not call.target.endswith("__")


class _Memory:
    """Which tensors share memory, so that who writes into one of them changes the others."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._base: dict[str, str] = {}
        self._views: dict[str, list[str]] = {}
        for call in calls:
            if call.tensors and (_kind(call) in _SHARING or _is_in_place(call)):
                base = self.base(call.tensors[0])
                for name in call.outputs:
                    self._base[name] = base
                    self._views.setdefault(base, [base]).append(name)

    def base(self, name: str) -> str:
        """Name of the tensor that ``name`` is a view of; its own where it is none."""
        return self._base.get(name, name)

    def sharing(self, name: str) -> list[str]:
        """Names of all that share memory with a tensor, itself included."""
        return self._views.get(self.base(name), [name])


def _is_folded(scene: Scene, call: Call, memory: _Memory) -> bool:
    """Whether it computes from constants or shapes alone; its results are constants then.

    Not a table of embeddings that is read at constant places (positions): it belongs to the network's weights.
    """
    kind = _kind(call)
    constant = kind in _SHAPED or all(name in scene.constants for name in call.tensors)
    if call.target.startswith("higher_order.") or kind in _RANDOM or kind == "embedding" or not constant:
        if _is_in_place(call) and call.tensors:
            scene.constants.difference_update(memory.sharing(call.tensors[0]))
        return False
    scene.constants.update(call.outputs)
    if kind in KINDS.views | {"t", "transpose", "permute", "numpy_T", "mT"} and len(call.tensors) == 1:
        scene.origins[call.outputs[0]] = scene.origin(call.tensors[0])
    return True


def _translate(scene: Scene, calls: list[Call], symbols: Mapping[str, int], memory: _Memory) -> None:
    """Translate every call; a module's only nest, or only call, is named like the module."""
    visits = Counter(call.visit for call in calls)
    nests = Counter(call.visit for call in calls if _kind(call) in MAC_TRANSLATORS)
    for call in calls:
        kind = _kind(call)
        alone = nests[call.visit] == 1 if kind in MAC_TRANSLATORS else visits[call.visit] == 1
        short = _RENAMED.get(kind, kind.removeprefix("higher_order."))
        wanted = call.path if call.path and alone else ".".join(filter(None, (call.path, short)))
        arguments = {key or f"#{i}": _known(value, symbols) for i, (key, value) in enumerate(call.arguments)}
        # Names of what bodies make themselves do no harm.
        captured = tuple(name for _, value in call.arguments if isinstance(value, Body) for one in value.calls
                         for name in one.tensors)
        name = scene.free_name(wanted, wanted == call.path)
        view = NodeView(scene, kind, name, call.tensors, call.outputs, arguments, captured)
        scene.add(_nodes(view), view, seen(view), in_place=_is_in_place(call))
        if _is_in_place(call) and call.tensors:
            _written(scene, call, memory)


def _written(scene: Scene, call: Call, memory: _Memory) -> None:
    """Let all that share memory with what a call has changed be read from it: alone where it changed all of it."""
    makers = scene.producers[call.outputs[0]]
    changed = call.tensors[0]
    for name in memory.sharing(changed):
        before = () if memory.base(changed) == changed else scene.producers.get(name, ())
        scene.producers[name] = tuple(dict.fromkeys((*before, *makers)))
        kept = () if name in (changed, call.outputs[0]) else scene.stands.get(name, (name,))
        scene.stands[name] = (*kept, call.outputs[0])


def _known(value: Value, symbols: Mapping[str, int]) -> Any:
    """Return an argument with its sizes computed; None for a size that nobody knows."""
    if isinstance(value, Size):
        return size_of(value.expression, symbols)
    return [_known(one, symbols) for one in value] if isinstance(value, list | tuple) else value


def _nodes(view: NodeView) -> Sequence[Node]:
    name = view.kind.removeprefix("higher_order.")
    if view.kind.startswith("higher_order."):
        reason = f"control flow, {_CONTROL[name]}" if name in _CONTROL else "an operator on operators, not known here"
        return [view.unmodelled(reason)]

    def translate(view: NodeView) -> Sequence[Node] | None:
        if view.kind in MAC_TRANSLATORS:
            return MAC_TRANSLATORS[view.kind](view)
        single = translate_vector(view)
        return None if single is None else [single]

    return translated(view, translate, "PyTorch", lambda view: 0 if is_vector(view.kind) else None)


class _Unknown(Exception):
    """A symbol that is not bound, or a function that is not known."""


def size_of(size: int | str, symbols: Mapping[str, int]) -> int | None:
    """Return the value of a size, which may be an expression as ``sympy.srepr`` writes it; None where nobody knows.

    Raises a `ValueError` if it is no such expression.
    """
    if isinstance(size, int):
        return size
    try:
        value = _value(_parsed(size), symbols)
    except (_Unknown, ZeroDivisionError, OverflowError):
        return None
    except RecursionError:
        raise ValueError("an expression that is nested too deeply") from None
    return int(value) if value.denominator == 1 and abs(value) < _LARGEST else None


def symbols_of(size: int | str) -> tuple[str, ...]:
    """Return the symbols in a size, in order."""
    if isinstance(size, int):
        return ()
    found = (_symbol(node) for node in ast.walk(_parsed(size)))
    return tuple(dict.fromkeys(name for name in found if name is not None))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text)} letters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"no expression of sizes: {text[:80]}") from None


def _symbol(node: ast.AST) -> str | None:
    """Return the name in ``Symbol('s0', integer=True)``; None for anything else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Symbol" and node.args):
        return None
    name = node.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _STEEPEST or abs(base) > _LARGEST:
        raise _Unknown
    return base ** int(exponent)


def _modulo(a: Fraction, b: Fraction) -> Fraction:
    return a - b * floor(a / b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Integer": lambda a: a, "Rational": truediv, "Float": lambda a: a, "Add": lambda *terms: sum(terms),
    "Mul": lambda *factors: prod(factors), "Pow": _power, "PowByNatural": _power, "FloatPow": _power,
    "FloorDiv": lambda a, b: floor(a / b), "CeilDiv": lambda a, b: ceil(a / b), "CleanDiv": truediv,
    "IntTrueDiv": truediv, "FloatTrueDiv": truediv, "Mod": _modulo, "PythonMod": _modulo,
    "ModularIndexing": lambda a, b, c: _modulo(Fraction(floor(a / b)), c), "Max": max, "Min": min,
    "TruncToInt": int, "FloorToInt": floor, "CeilToInt": ceil, "floor": floor, "ceiling": ceil,
    "RoundToInt": round, "ToFloat": lambda a: a, "Identity": lambda a: a, "Abs": abs,
}


def _value(node: ast.expr, symbols: Mapping[str, int]) -> Fraction:
    """Compute an expression of calls, numbers and symbols; nothing of it is run."""
    name = _symbol(node)
    if name is not None:
        if name not in symbols:
            raise _Unknown
        return Fraction(symbols[name])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _NUMBER.fullmatch(node.value) is None:
            raise ValueError(f"no number: {node.value[:80]}")
        return Fraction(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, symbols)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"no expression of sizes: {ast.unparse(node)[:80]}")
    if node.func.id not in _FUNCTIONS:
        raise _Unknown
    try:
        return Fraction(_FUNCTIONS[node.func.id](*(_value(argument, symbols) for argument in node.args)))
    except TypeError:
        raise ValueError(f"no expression of sizes: {ast.unparse(node)[:80]}") from None


@dataclass(frozen=True)
class Bound:
    """Sizes of the symbols, and what is to be said about them."""

    symbols: Mapping[str, int]
    notes: tuple[str, ...]


def bind_sizes(program: ExportedNetwork, bind: Mapping[str, int | str]) -> Bound:
    """Give every dynamic dimension of the inputs its size.

    A dimension is named by input and axis (``images[0]``); one that stands at several places may be named by any of
    them, or by its symbol.

    Raises an `InputError` if a dimension is not bound, ``bind`` names one that there is not, or a size is out of the
    exported range.
    """
    places = _places(program)
    canonical = {symbol: names[0] for symbol, names in places.items()}
    symbol_of = {name: symbol for symbol, names in places.items() for name in (*names, symbol)}
    wanted: dict[str, int | str] = {}
    for name, size in bind.items():
        key = canonical[symbol_of[name]] if name in symbol_of else name
        if wanted.setdefault(key, size) != size:
            raise InputError(f"bind {name}", f"must agree with {key}, which is the same dimension", size,
                             f"It is bound to {wanted[key]}")
    sizes = check_bindings(program.source, wanted, list(canonical.values()))
    symbols = {symbol: sizes[key] for symbol, key in canonical.items()}
    notes = tuple(note for symbol, key in canonical.items() for note in _ranged(program, symbol, key, symbols[symbol]))
    return Bound(symbols, (*(f"Bound {key} = {size}" for key, size in wanted.items()), *notes))


def _places(program: ExportedNetwork) -> dict[str, list[str]]:
    """Return for every symbol where it stands alone among the inputs' sizes (its own name where it never does)."""
    places: dict[str, list[str]] = {}
    for name in program.inputs:
        for axis, size in enumerate(program.body.tensors[name].sizes):
            found = symbols_of(size)
            for symbol in found:
                places.setdefault(symbol, [])
            if isinstance(size, str) and found and _symbol(_parsed(size)):
                places[found[0]].append(f"{name}[{axis}]")
    return {symbol: names or [symbol] for symbol, names in places.items()}


def _ranged(program: ExportedNetwork, symbol: str, key: str, size: int) -> list[str]:
    """Refuse a size out of its range; a note where only PyTorch's own lower limit of 2 is undercut."""
    least, most = program.ranges.get(symbol, (None, None))
    if (least is not None and size < least and least > 2) or (most is not None and size > most):
        raise InputError(f"bind {key}", f"must be from {least or 1} to {'any' if most is None else most}, "
                                        "the range it was exported for", size)
    if least == 2 and size == 1:
        return [f"{key} = 1 lies below the range that was exported (from 2): shapes are assumed to hold for it"]
    return []

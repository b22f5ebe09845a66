"""Sizes that depend on dynamic dimensions: expressions read as data, never run, and the dimensions bound."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, prod
from operator import truediv
from typing import Any

from tilewright.base import InputError
from tilewright.interop.pytorch.program import ExportedNetwork
from tilewright.interop.scene import check_bindings

_LONGEST = 20_000
_LARGEST = 2**63
_STEEPEST = 64
_NUMBER = re.compile(r"[+-]?[0-9.]{1,400}(e[+-]?[0-9]{1,2})?")
"""Digits of a number; a power of ten with more digits would take for ever to write out."""


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

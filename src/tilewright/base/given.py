"""What people call from Python: an argument of a type that a function does not take is one clear error."""

import ast
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from tilewright.base.errors import InputError

_NUMBERS = {int: Integral, float: Real}
"""What NumPy's numbers are, too."""
_WRITTEN: dict[str, type] = {kind.__name__: kind for kind in (
    str, int, float, bool, dict, tuple, Path, PathLike, Mapping, Sequence, Iterable)} | {"None": NoneType}
"""What annotations that are text may name."""


def offered_as(package: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a package offers it: where it fails, arguments of wrong types are told in place of that."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            wrong = _wrong(function, package, given, named)
            if wrong is None:
                raise
            raise wrong from error

    call.__module__, call.__name__, call.__qualname__ = package, name, name  # where pickle finds it
    return call


def _wrong(function: Callable[..., Any], package: str, given: Sequence[Any], named: Mapping[str, Any],
           ) -> InputError | None:
    """Return the error of the first argument that is of none of the types which the function says it takes."""
    from inspect import signature as signature_of  # noqa: PLC0415  (late: most programs never need it)

    signature = signature_of(function)
    try:
        arguments = signature.bind_partial(*given, **named).arguments
    except TypeError:
        return None
    for name, value in arguments.items():
        hint = signature.parameters[name].annotation
        kinds = () if hint is signature.empty else _kinds(hint, package)
        taken = tuple(_NUMBERS.get(kind, kind) for kind in kinds)
        if kinds and (not isinstance(value, taken) or isinstance(value, bytes)):  # numbers to Python, one by one
            *others, last = [kind.__name__ for kind in kinds if kind is not NoneType]
            told = "None" if value is None else type(value).__name__
            return InputError(name, f"must be {', '.join(others)}{' or ' * bool(others)}{last}, not {told}")
    return None


def _kinds(hint: Any, package: str) -> tuple[type, ...]:
    """Return the types that an annotation allows; none where it says more than types do."""
    if isinstance(hint, str):
        kinds: list[Any] = _written(ast.parse(hint, mode="eval").body, package)
    else:
        members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = [get_origin(member) or member for member in members]
    plain = all(isinstance(kind, type) and not getattr(kind, "_is_protocol", False) for kind in kinds)
    return tuple(kinds) if plain else ()


def _written(hint: ast.expr, package: str) -> list[type | None]:
    """Return what an annotation that is text names; None for what is neither among `_WRITTEN` nor in the package."""
    if isinstance(hint, ast.BinOp):
        return [*_written(hint.left, package), *_written(hint.right, package)]
    if isinstance(hint, ast.Subscript):
        return _written(hint.value, package)
    name = ast.unparse(hint).rpartition(".")[2]
    return [_WRITTEN.get(name) or getattr(sys.modules.get(package), name, None)]

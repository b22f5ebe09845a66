"""What people call from Python: an argument of a type that a function does not take is one clear error."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin

from tilewright.base.errors import InputError

_NUMBERS = {int: Integral, float: Real}
"""What NumPy's numbers are, too."""


def offered_as(package: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a package offers it: where it fails, arguments of wrong types are told in place of that."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except (AttributeError, KeyError, TypeError) as error:
            wrong = _wrong(function, given, named)
            if wrong is None:
                raise
            raise wrong from error

    call.__module__, call.__name__, call.__qualname__ = package, name, name  # where pickle finds it
    return call


def _wrong(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> InputError | None:
    """Return the error of the first argument that is of none of the types which the function says it takes."""
    from inspect import signature as signature_of  # noqa: PLC0415  (late: most programs never need it)

    signature = signature_of(function)
    try:
        arguments = signature.bind_partial(*given, **named).arguments
    except TypeError:
        return None
    for name, value in arguments.items():
        hint = signature.parameters[name].annotation
        kinds = () if hint is signature.empty else _kinds(hint)
        if kinds and not isinstance(value, tuple(_NUMBERS.get(kind, kind) for kind in kinds)):
            *others, last = [kind.__name__ for kind in kinds if kind is not type(None)]
            told = "None" if value is None else type(value).__name__
            return InputError(name, f"must be {', '.join(others)}{' or ' * bool(others)}{last}, not {told}")
    return None


def _kinds(annotation: Any) -> tuple[type, ...]:
    """Return the types that an annotation allows; none where it says more than types do."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = [get_origin(member) or member for member in members]
    if not all(isinstance(kind, type) and not getattr(kind, "_is_protocol", False) for kind in kinds):
        return ()
    return tuple(kinds)

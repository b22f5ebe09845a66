"""What a package hands on of its modules, which may load when one of the names is first used."""

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data
from types import FunctionType, ModuleType
from typing import Any

_IMPORT = re.compile(r"^ *from (\S+) import (\w+) as (\w+)", re.MULTILINE)
"""A line for each name, as the import sorter writes them."""


@cache
def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return the module, and the name there, of what a package's ``__init__`` imports with an ``as``."""
    text = (get_data(package, "__init__.py") or b"").decode()
    return {name: (module, inside) for module, inside, name in _IMPORT.findall(text)}


def offered(package: str) -> list[str]:
    """Return the ``__all__`` of a package, by its ``__name__``: what its ``__init__`` imports by its own name.

    ``from MODULE import NAME as NAME`` says so to readers, type checkers and this function, once: constants come first,
    then classes, then functions.
    """
    names = [name for name, (_, inside) in _homes(package).items() if name == inside]
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def late_module(name: str) -> Any:
    """Return what stands for a module, which loads when something of it is first asked for."""
    return _LateModule(name)


class _LateModule:
    """A module that has not been loaded yet, or has."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what looks at all objects of a module asks for such
            raise AttributeError(name)
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, name)


def late_names(package: str, offer: Callable[..., object] | None = None) -> tuple[Callable[[str], object], list[str]]:
    """Return the ``__getattr__`` and the ``__all__`` of a package that loads late what it hands on.

    Its ``__init__`` has the imports (see `offered`) under ``if TYPE_CHECKING``. Functions are handed on as ``offer``
    makes them of package, name and function.
    """

    def load(name: str) -> object:
        homes = _homes(package)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inside = homes[name]
        found: object = getattr(import_module(module), inside)
        if offer is not None and isinstance(found, FunctionType):
            found = offer(package, name, found)
        setattr(sys.modules[package], name, found)  # the next use finds it at once
        return found

    return load, offered(package)

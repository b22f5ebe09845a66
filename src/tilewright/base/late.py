"""Packages whose modules load when one of their names is first used."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data


def late_names(package: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package that loads its names late.

    Where each name stands is said once, for readers, type checkers and this function: by the imports under
    ``if TYPE_CHECKING`` in the package's ``__init__``.

    Parameters
    ----------
    package
        The package's ``__name__``.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        body = ast.parse(get_data(package, "__init__.py") or b"").body
        (block,) = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        return {alias.asname or alias.name: (node.module or package, alias.name)
                for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    def load(name: str) -> object:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inside = homes()[name]
        found: object = getattr(import_module(module), inside)
        setattr(sys.modules[package], name, found)  # the next use finds it at once
        return found

    return load

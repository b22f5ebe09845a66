"""Set expressions of AccelForge: names of tensors, ``All``, ``Nothing``, and ``|``, ``&``, ``-``, ``~`` of them."""

import ast
from collections.abc import Mapping

from tilewright.interop.sections import Node

Sets = Mapping[str, frozenset[str]]
"""Tensors by the names that expressions have for them; ``All`` is among them."""


def chosen(node: Node, sets: Sets, text: str | None = None) -> frozenset[str]:
    """Return the tensors that an expression means: that of a node, or ``text`` in its place.

    Raises an `InputError` if it is none, or names what is not there.
    """
    given = str(node.value) if text is None else text
    try:
        return _set(ast.parse(given.strip(), mode="eval").body, sets)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
        raise node.fail("must be a set of tensors, such as ~Intermediates or input | output", given,
                        f"Known: {', '.join(sets)}" if isinstance(error, KeyError) else "") from None


def _set(node: ast.expr, sets: Sets) -> frozenset[str]:
    if isinstance(node, ast.Name):
        return sets[node.id]
    if isinstance(node, ast.Attribute) and node.attr == "tensors":
        return _set(node.value, sets)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return sets["All"] - _set(node.operand, sets)
    if isinstance(node, ast.BinOp):
        left, right = _set(node.left, sets), _set(node.right, sets)
        if isinstance(node.op, ast.BitOr):
            return left | right
        if isinstance(node.op, ast.BitAnd):
            return left & right
        if isinstance(node.op, ast.Sub):
            return left - right
    raise ValueError("no set")

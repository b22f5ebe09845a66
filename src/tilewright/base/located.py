"""Where in a file or record a value stands."""

from typing import Any

Location = tuple[str | int, ...]


def line_of(tree: Any, where: Location) -> int:
    """Return the line of the deepest part of a path that is in a file, from its tree as ruamel.yaml reads it.

    Its mappings and lists are dicts and lists that know their lines (``lc``).
    """
    node, line = tree, int(tree.lc.line)
    for key in where:
        lines: Any = getattr(node, "lc", None)
        if isinstance(node, dict) and key in node:
            if lines.data is None or key not in lines.data:  # it came with a merge key, "<<"
                break
            line = int(lines.key(key)[0])
        elif isinstance(node, list) and isinstance(key, int) and key < len(node):
            line = int(lines.item(key)[0])
        else:
            break
        node = node[key]
    return line + 1


def path_text(where: Location) -> str:
    """Return a path as people write it, behind what it is of: ``.levels[1].capacity_bytes``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where)

"""YAML composed within limits, and written: ruamel.yaml loads late, so this stands apart from what asks for it."""

from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from typing import Any, overload

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from tilewright.base.errors import InputError

_MOST_SHOWN = 200
"""Letters of what the parser says that are shown, at most."""


class _Endless(Exception):
    """A document is larger or deeper than any that is meant, or holds itself."""


class _BoundedComposer(Composer):
    """Composes nodes as they are read, and ends where the document gets too large; ruamel would go on.

    ``values`` counts what has been read so far, aliases written out; ``measured`` holds the values and the depth of
    every collection that is whole. ``limits`` are the most values, and the most collections within one another. With
    ``last`` the last of several entries of one key counts, as PyYAML has it; else they are an error.
    """

    def __init__(self, limits: tuple[int, int], last: bool, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limits, self.last = limits, last
        self.values = self.level = self.deepest = 0
        self.measured: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: Any, index: Any) -> Node:
        """Return the next node, within the limits."""
        alias = bool(self.parser.check_event(AliasEvent))
        before, outer, self.deepest = self.values, self.deepest, 0
        self.level += 1
        self._check()
        node: Node = super().compose_node(parent, index)
        if self.last and isinstance(node, MappingNode) and all(isinstance(key, ScalarNode) for key, _ in node.value):
            node.value = list({key.value: (key, value) for key, value in node.value}.values())
        if alias:
            if id(node) not in self.measured:
                raise _Endless("must not hold itself")
            values, self.deepest = self.measured[id(node)]
            self.values += values
        else:
            self.values += 1
            self.measured[id(node)] = self.values - before, self.deepest
        self._check()
        self.level -= 1
        self.deepest = max(outer, self.deepest + 1)
        return node

    def _check(self) -> None:
        values, deep = self.limits
        if self.values >= values:
            raise _Endless(f"must have fewer than {values:,} values, aliases written out")
        if self.level + self.deepest > deep:
            raise _Endless(f"must nest at most {deep} deep, aliases written out")


def composed(text: str, label: str, kind: str, limits: tuple[int, int]) -> Any:
    """Return what a YAML document says; see `tilewright.base.documents.read_yaml`."""
    yaml = YAML(typ="rt" if kind in ("lines", "last") else "safe", pure=True)
    yaml.Composer = partial(_BoundedComposer, limits, kind == "last")  # type: ignore[assignment]
    try:
        return yaml.load(text)
    except _Endless as error:
        raise InputError(label, str(error), None, "Split the file, or write less of it with aliases") from None
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = str(error.problem or error.context)
        star = "scanning an alias" in str(error.context)
        mend = 'Quote the star: "*"' if star else f"The parser says: {_short(problem)}"
        raise InputError(f"{label}{line}", "must be YAML", None, mend) from None
    except (YAMLError, ValueError, ArithmeticError, AttributeError, LookupError, TypeError,
            RecursionError) as error:  # ruamel lets bare errors of long numbers, odd tags and such through
        raise InputError(label, "must be YAML", None, f"The parser says: {_short(str(error))}") from None


@overload
def yaml_flow(value: Mapping[str, Any]) -> CommentedMap: ...
@overload
def yaml_flow(value: Sequence[Any]) -> CommentedSeq: ...
def yaml_flow(value: Mapping[str, Any] | Sequence[Any]) -> CommentedMap | CommentedSeq:
    """Return a list or mapping so that it is written on one line."""
    node = CommentedMap(value) if isinstance(value, Mapping) else CommentedSeq(value)
    node.fa.set_flow_style()
    return node


def yaml_text(tree: Mapping[str, Any], offset: int = 2) -> str:
    """Return a tree as YAML in lines of 120 letters, whose lists stand ``offset`` letters in."""
    out, yaml = StringIO(), YAML(typ="rt", pure=True)
    yaml.width = 120
    yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
    yaml.dump(tree, out)
    return out.getvalue()


def _short(text: str) -> str:
    return text.split("\n", maxsplit=1)[0][:_MOST_SHOWN]

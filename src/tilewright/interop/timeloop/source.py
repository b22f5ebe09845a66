"""Timeloop's YAML as trees that know their file and lines."""

import ast
import math
import operator as op
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from tilewright.base import MOST_VALUES, InputError, Location, line_of, path_text, read_yaml
from tilewright.interop.notes import Kind, Note
from tilewright.interop.signs import ESTIMATORS, UNUSED
from tilewright.interop.timeloop.rendering import INCLUDED
from tilewright.interop.timeloop.templates import Given, Rendered, rendered

WEIGHTS_NAME = re.compile(r"(?i)w|.*(weight|filter|kernel).*")
"""Names of tensors that are taken for weights."""
SECTIONS = ("architecture", "problem", "mapping", "architecture_constraints", "mapspace_constraints", "constraints",
            "extra_mapping_constraints", "mapspace", "sparse_optimizations", "variables", "ERT", "ART")
HARMLESS = ("version", "dumped_by_timeloop_front_end")
"""Sections that change nothing."""
_LARGEST_NUMBER = 1e30
_MOST_SHOWN = 200
"""Letters of a wrong value that are shown, at most."""
_MERGE = "<<<"
"""The key of what a mapping takes over where it says nothing itself, as Timeloop's front end knows it."""


@dataclass(frozen=True)
class Section:
    """One part of a file (``architecture`` and so on): its plain tree, and where its values stand.

    ``files`` are the names of files that parts of the document come from, by the identity of those parts.
    """

    label: str
    name: str
    tree: Any
    document: Any
    notes: list[Note] = field(compare=False)
    files: Mapping[int, str] = field(default_factory=dict, compare=False)

    def where(self, *path: str | int) -> str:
        """Return ``file:line section.path`` of a value."""
        location: Location = (self.name, *path)
        label, node = self.label, self.document
        for key in location[:-1]:
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
            label = self.files.get(id(node), label)
        return f"{label}:{line_of(self.document, location)} {path_text(location)[1:]}"

    def at(self, path: Sequence[str | int]) -> Any:
        """Return the value at a path, None where there is none."""
        node = self.tree
        for key in path:
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def fail(self, path: Sequence[str | int], rule: str, given: object = None, mend: str = "") -> InputError:
        """Return the error for a value."""
        return InputError(self.where(*path), rule, given, mend)

    def note(self, path: Sequence[str | int], kind: Kind, text: str) -> None:
        """Remember what became of a value that could not be honoured."""
        self.notes.append(Note(self.where(*path), kind, text))

    def note_unknown(self, path: Sequence[str | int], known: Collection[str]) -> None:
        """Note what a node says beside what is known of it."""
        node = self.at(path)
        for name in node if isinstance(node, Mapping) else ():
            if name not in known:
                self.note((*path, name), "dropped", "not known here")

    def mapping(self, node: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
        """Return a node that must be fields and values."""
        if not isinstance(node, Mapping):
            raise self.fail(path, "must be fields and values", _shown(node))
        return node

    def list(self, node: Any, path: Sequence[str | int]) -> Sequence[Any]:
        """Return a node that must be a list."""
        if isinstance(node, str) or not isinstance(node, Sequence):
            raise self.fail(path, "must be a list", _shown(node))
        return node

    def number(self, node: Any, path: Sequence[str | int], names: Mapping[str, Any] | None = None) -> float:
        """Return a number, or the value of an arithmetic expression of numbers and ``names``.

        Raises
        ------
        InputError
            If it is neither.
        """
        value = node
        if isinstance(node, str):
            try:
                value = evaluate(node, names or {})
            except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
                raise self.fail(path, "must be a number or an expression of known names", node[:_MOST_SHOWN],
                                str(error)[:_MOST_SHOWN]) from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
            raise self.fail(path, "must be a finite number", str(_shown(node))[:_MOST_SHOWN])
        return float(value)

    def whole(self, node: Any, path: Sequence[str | int], names: Mapping[str, Any] | None = None,
              least: int = 1) -> int:
        """Return a whole number of at least ``least``."""
        value = self.number(node, path, names)
        if value != int(value) or value < least:
            raise self.fail(path, f"must be a whole number of at least {least}", _shown(node))
        return int(value)


@dataclass
class Files:
    """All sections of some files, and the notes of reading them."""

    sections: list[Section] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def named(self, *names: str) -> list[Section]:
        """Return the sections of these names in the order of the files."""
        return [section for section in self.sections if section.name in names]

    def one(self, name: str) -> Section | None:
        """Return the section of a name, None if there is none.

        Raises
        ------
        InputError
            If there are several.
        """
        found = self.named(name)
        if len(found) > 1:
            raise found[1].fail((), f"must be given once; the first stands at {found[0].where()}")
        return found[0] if found else None


def read_files(paths: Sequence[str | Path]) -> Files:
    """Read Timeloop YAML files; Jinja2 includes are expanded, with variables such as ``top.yaml:architecture=NAME``.

    Raises
    ------
    InputError
        If a file cannot be read, is not YAML, or holds none of Timeloop's sections.
    """
    files, given = Files(), [Given.of(path) for path in paths]
    for one in given:
        path, found = one.path, False
        document, origins = _whole(path.name, rendered(one, given))
        for name, tree in document.items():
            if name in SECTIONS or name in ESTIMATORS:
                section = Section(path.name, str(name), _plain(tree), document, files.notes, origins)
                files.sections.append(section)
                found = True
            elif name in HARMLESS:
                found = True
            elif name in UNUSED:
                files.notes.append(Note(f"{path.name}:{line_of(document, (str(name),))} {name}", "dropped",
                                        UNUSED[str(name)]))
                found = True
            else:
                files.notes.append(Note(f"{path.name}:{line_of(document, (str(name),))} {name}", "dropped",
                                        "not a section of Timeloop that is known here"))
        if not found:
            raise InputError(f"{path.name}:1", f"must hold one of {', '.join(SECTIONS)}", ", ".join(map(str, document)))
    return files


def _whole(label: str, texts: Rendered) -> tuple[CommentedMap, dict[int, str]]:
    """Return the tree of a file with those of the files it includes in their places, and whose which parts are."""
    trees = {name: read_yaml(part[1], part[0], "lines") for name, part in texts.texts.items()}
    document, origins = read_yaml(texts.text, label, "lines"), {}

    def within(name: str, keys: Sequence[str]) -> Any:
        node = trees[name]
        for key in keys:
            if not isinstance(node, CommentedMap) or key not in node:
                raise InputError(texts.texts[name][0], f"must hold {'.'.join(keys)}, which {label} includes")
            node = node[key]
        origins[id(node)] = texts.texts[name][0]
        return node

    def settled(node: Any) -> Any:
        if isinstance(node, TaggedScalar) and node.tag.value == INCLUDED:
            names, *keys = str(node.value).split(".")
            found = [within(name, keys) for name in names.split("+")]
            return found[0] if len(found) == 1 else [item for part in found for item in (
                part if isinstance(part, list) else [part])]
        if isinstance(node, CommentedMap | CommentedSeq):
            for key in list(node) if isinstance(node, CommentedMap) else range(len(node)):
                node[key] = settled(node[key])
        return _merged(node)

    for tree in (*trees.values(), document):
        settled(tree)
    if not isinstance(document, CommentedMap):
        raise InputError(f"{label}:1", f"must hold one of {', '.join(SECTIONS)}",
                         "nothing" if document is None else type(document).__name__)
    _check_size(label, document)
    return document, origins


def _merged(node: Any) -> Any:
    """Return a mapping with what its key ``<<<`` holds behind its own entries, those within one another too."""
    if isinstance(node, CommentedMap) and isinstance(node.get(_MERGE), CommentedMap):
        _fill(node, node.pop(_MERGE))
    return node


def _fill(node: CommentedMap, more: CommentedMap) -> None:
    for key, value in more.items():
        if key not in node:
            node[key] = value
        elif isinstance(node[key], CommentedMap) and isinstance(value, CommentedMap) and node[key] is not value:
            _fill(node[key], value)


def _check_size(label: str, document: Any) -> None:
    """Refuse a tree that is endless, or too large, once what its aliases stand for is written out."""
    sizes: dict[int, int] = {}

    def size_of(node: Any) -> int:
        if not isinstance(node, CommentedMap | CommentedSeq):
            return 1
        if id(node) not in sizes:
            sizes[id(node)] = MOST_VALUES  # as long as it is not known: what holds itself is endless
            inside = node.values() if isinstance(node, CommentedMap) else node
            sizes[id(node)] = 1 + sum(map(size_of, inside))
        return sizes[id(node)]

    try:
        found = size_of(document)
    except RecursionError:
        found = MOST_VALUES
    if found >= MOST_VALUES:
        raise InputError(label, f"must have fewer than {MOST_VALUES:,} values, aliases written out")


def _plain(node: Any) -> Any:
    """Return the tree without ruamel's types; a tag becomes the entry ``!``."""
    if isinstance(node, CommentedMap):
        tag = {"!": str(node.tag.value)} if node.tag.value and str(node.tag.value).startswith("!") else {}
        return tag | {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return [_plain(value) for value in node]
    if isinstance(node, TaggedScalar):
        return node.value
    if isinstance(node, bool) or node is None:
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


_OPERATIONS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: op.add, ast.Sub: op.sub, ast.Mult: op.mul, ast.Div: op.truediv, ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod, ast.Pow: op.pow, ast.USub: op.neg, ast.UAdd: op.pos,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., bool]] = {
    ast.Gt: op.gt, ast.GtE: op.ge, ast.Lt: op.lt, ast.LtE: op.le, ast.Eq: op.eq, ast.NotEq: op.ne,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"ceil": math.ceil, "floor": math.floor, "int": int,
                                               "log2": math.log2, "max": max, "min": min, "round": round,
                                               "sqrt": math.sqrt}
_LARGEST_EXPONENT = 64


def evaluate(text: str, names: Mapping[str, Any]) -> float:
    """Return the value of an arithmetic expression of numbers, names and a few functions.

    Raises
    ------
    ValueError, SyntaxError, ZeroDivisionError, OverflowError
        If it is none.
    """
    return _value(ast.parse(text.strip(), mode="eval").body, names, 0)


def _value(node: ast.expr, names: Mapping[str, Any], depth: int) -> float:  # noqa: C901, PLR0911 (one case a kind)
    if depth > _LARGEST_EXPONENT:
        raise ValueError("names refer to one another")
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        found = names[node.id]
        return _value(ast.parse(str(found), mode="eval").body, names, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _value(node.left, names, depth + 1), _value(node.right, names, depth + 1)
        if isinstance(node.op, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
            raise ValueError(f"exponents may not be larger than {_LARGEST_EXPONENT}")
        return _OPERATIONS[type(node.op)](float(left) if isinstance(node.op, ast.Pow) else left, right)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.operand, names, depth + 1))
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, names, depth + 1) else node.orelse, names, depth + 1)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = _value(node.left, names, depth + 1), _value(node.comparators[0], names, depth + 1)
        return float(_COMPARISONS[type(node.ops[0])](left, right))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "variables":
        return _value(ast.Name(node.attr), names, depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_value(argument, names, depth + 1) for argument in node.args))
    raise ValueError(f"cannot read {ast.unparse(node)!r}")


def _shown(node: Any) -> object:
    if isinstance(node, Mapping | list):
        return type(node).__name__
    return "nothing" if node is None else node

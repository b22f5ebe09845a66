"""Sections of foreign YAML as trees that know their file and lines, and the arithmetic that their values may be."""

import ast
import math
import operator as op
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from tilewright.base import MOST_VALUES, InputError, Location, line_of, path_text, read_yaml, shown
from tilewright.interop.notes import Notes
from tilewright.interop.rendering import INCLUDED
from tilewright.interop.signs import Given
from tilewright.interop.templates import Rendered, rendered

WEIGHTS_NAME = re.compile(r"(?i)w|.*(weight|filter|kernel).*")
"""Names of tensors that are taken for weights."""
Side = Literal["X", "Y"]
"""The sides of an array."""
_MERGE = "<<<"
"""The key of what a mapping takes over where it says nothing itself, as Timeloop's front end knows it."""
_LARGEST_NUMBER = 1e30
_MOST_SHOWN = 200
"""Letters of a wrong value that are shown, at most."""
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


@dataclass(frozen=True)
class Section:
    """One part of a file (``architecture`` ...; all of it where it has no name): its tree, where its values stand.

    ``files`` are the names of files that parts of the document come from, by the identity of those parts.
    """

    label: str
    name: str
    tree: Any
    document: Any
    notes: Notes = field(compare=False)
    files: Mapping[int, str] = field(default_factory=dict, compare=False)

    @property
    def root(self) -> "Node":
        """All of it."""
        return Node(self, (), self.tree)

    def where(self, path: Location) -> str:
        """Return ``file:line section.path`` of a value."""
        location: Location = (self.name, *path) if self.name else path
        label, node = self.label, self.document
        for key in location[:-1]:
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
            label = self.files.get(id(node), label)
        return f"{label}:{line_of(self.document, location)} {path_text(location).lstrip('.')}".rstrip()


@dataclass(frozen=True)
class Node:
    """A value of a section with its place, which its errors and notes name; None where it is ``missing``."""

    section: Section
    path: Location
    value: Any
    missing: bool = False

    @property
    def where(self) -> str:
        """``file:line section.path``."""
        return self.section.where(self.path)

    def __getitem__(self, key: str) -> "Node":
        """Return the field of a name."""
        return self.get(key)

    def get(self, key: str, default: Any = None) -> "Node":
        """Return the field of a name, with a value that stands for it where there is none."""
        known = self.value if isinstance(self.value, Mapping) else {}
        return Node(self.section, (*self.path, key), known.get(key, default), key not in known)

    def spelt(self, name: str) -> "Node":
        """Return the field of a name of words, between which the file may have hyphens or underscores."""
        return self[next((key for key in self.value if key.replace("-", "_") == name), name)]

    def at(self, key: str | int, value: Any) -> "Node":
        """Return a value as one that stands below this one."""
        return Node(self.section, (*self.path, key), value)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, Mapping) and key in self.value

    def fail(self, rule: str, given: object = None, mend: str = "") -> InputError:
        """Return the error for the value."""
        return InputError(self.where, rule, given, mend)

    def passed_on(self, error: InputError) -> InputError:
        """Return an error of what was made of the value as one that names its place."""
        return self.fail(f"{error.field} {error.rule}", error.given, error.mend)

    def dropped(self, text: str) -> None:
        """Note that the value is not honoured."""
        self.section.notes.dropped(self.where, text)

    def approximated(self, text: str) -> None:
        """Note that the value is honoured by what is like it."""
        self.section.notes.approximated(self.where, text)

    def note_unknown(self, known: Collection[str]) -> None:
        """Note what a node says beside what is known of it."""
        for name in self.value if isinstance(self.value, Mapping) else ():
            if name not in known:
                self[name].dropped("not known here")

    def fields(self, empty: bool = False) -> Mapping[str, Any]:
        """Return what must be fields and values; ``empty`` where it may be nothing."""
        value = {} if empty and not self.value else self.value
        if not isinstance(value, Mapping):
            raise self.fail("must be fields and values", shown(value))
        return value

    def items(self, empty: bool = False) -> "list[Node]":
        """Return the entries of what must be a list; ``empty`` where it may be nothing."""
        value = [] if empty and not self.value else self.value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.fail("must be a list", shown(value))
        return [self.at(index, entry) for index, entry in enumerate(value)]

    def texts(self) -> list[str]:
        """Return the entries of what must be a list as texts."""
        return [str(entry.value) for entry in self.items()]

    def number(self, names: Mapping[str, Any] | None = None) -> float:
        """Return what must be a number, or the value of an arithmetic expression of numbers and ``names``."""
        value = self.value
        if isinstance(value, str):
            try:
                value = evaluate(value, names or {})
            except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
                raise self.fail("must be a number or an expression of known names", value[:_MOST_SHOWN],
                                str(error)[:_MOST_SHOWN]) from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
            raise self.fail("must be a finite number", str(shown(self.value))[:_MOST_SHOWN])
        return float(value)

    def not_negative(self, names: Mapping[str, Any] | None = None) -> float:
        """Return a number that is not below 0."""
        value = self.number(names)
        if value < 0:
            raise self.fail("must not be negative", value)
        return value

    def whole(self, names: Mapping[str, Any] | None = None, least: int = 1) -> int:
        """Return a whole number of at least ``least``."""
        value = self.number(names)
        if value != int(value) or value < least:
            raise self.fail(f"must be a whole number of at least {least}", shown(self.value))
        return int(value)


def whole_section(text: str, label: str, notes: Notes) -> Section:
    """Return a YAML text, all of it, as a section without a name; the last of equal keys counts, as in PyYAML.

    Raises an `InputError` if it is no YAML, too large, or neither fields nor a list.
    """
    document = read_yaml(text, label, "last")
    if not isinstance(document, CommentedMap | CommentedSeq):
        raise InputError(f"{label}:1", "must be fields and values, or a list", shown(document))
    check_size(label, document)
    return Section(label, "", plain_tree(document), document, notes)


@dataclass
class Files:
    """The sections of some files that are known, and the notes of reading them."""

    sections: list[Section]
    notes: Notes

    @classmethod
    def read(cls, paths: Sequence[str | Path], known: Sequence[str], unused: Mapping[str, str], tool: str,
             value: Callable[[str], str | int] = str) -> "Files":
        """Read YAML files; Jinja2 includes are expanded, with variables such as ``top.yaml:architecture=NAME``.

        ``unused`` are sections that are left aside, and why; nothing for those that change nothing. ``value`` makes
        what templates know of the text of a variable.

        Raises an `InputError` if a file cannot be read, is not YAML, or holds none of all these sections.
        """
        found, given = cls([], Notes()), [Given.of(path) for path in paths]
        folders = [folder for one in given for folder in one.folders]
        for one in given:
            label, variables = one.path.name, {name: value(text) for name, text in one.variables.items()}
            document, origins = _document(label, rendered(one.path, variables, folders), known)
            if not set(map(str, document)) & {*known, *unused}:
                raise InputError(f"{label}:1", f"must hold one of {', '.join(known)}", ", ".join(map(str, document)))
            for name, tree in document.items():
                section = Section(label, str(name), plain_tree(tree), document, found.notes, origins)
                if name in known:
                    found.sections.append(section)
                elif why := unused.get(str(name), f"not a section of {tool} that is known here"):
                    section.root.dropped(why)
        return found

    def named(self, *names: str) -> list[Section]:
        """Return the sections of these names in the order of the files."""
        return [section for section in self.sections if section.name in names]

    def one(self, name: str) -> Section | None:
        """Return the section of a name, of which there must be one, or None if there is none."""
        found = self.named(name)
        if len(found) > 1:
            raise found[1].root.fail(f"must be given once; the first stands at {found[0].where(())}")
        return found[0] if found else None


def _document(label: str, texts: Rendered, sections: Sequence[str]) -> tuple[CommentedMap, dict[int, str]]:
    """Return the tree of a file with those of the files it includes in their places, and whose which parts are.

    Raises an `InputError` if something is no YAML, or too large, or the file has no fields, of which ``sections`` are
    known.
    """
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
        raise InputError(f"{label}:1", f"must hold one of {', '.join(sections)}", shown(document))
    check_size(label, document)
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


def check_size(label: str, document: Any) -> None:
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


def plain_tree(node: Any) -> Any:
    """Return the tree without ruamel's types; a tag becomes the entry ``!``."""
    if isinstance(node, CommentedMap):
        tag = {"!": str(node.tag.value)} if node.tag.value and str(node.tag.value).startswith("!") else {}
        return tag | {str(key): plain_tree(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return [plain_tree(value) for value in node]
    if isinstance(node, TaggedScalar):
        return node.value
    if isinstance(node, bool) or node is None:
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def evaluate(text: str, names: Mapping[str, Any]) -> float:
    """Return the value of an arithmetic expression of numbers, names and a few functions.

    Raises a `ValueError`, `SyntaxError`, `ZeroDivisionError` or `OverflowError` if it is none.
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

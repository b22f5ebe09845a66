"""Timeloop's YAML as trees that know their file and lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from tilewright.base import InputError, line_of, read_yaml
from tilewright.interop.notes import Notes
from tilewright.interop.rendering import INCLUDED
from tilewright.interop.sections import Section, check_size, plain_tree
from tilewright.interop.signs import ESTIMATORS, UNUSED, Given
from tilewright.interop.templates import Rendered, rendered

SECTIONS = ("architecture", "problem", "mapping", "architecture_constraints", "mapspace_constraints", "constraints",
            "extra_mapping_constraints", "mapspace", "sparse_optimizations", "variables", "ERT", "ART")
HARMLESS = ("version", "dumped_by_timeloop_front_end")
"""Sections that change nothing."""
_MERGE = "<<<"
"""The key of what a mapping takes over where it says nothing itself, as Timeloop's front end knows it."""


@dataclass
class Files:
    """All sections of some files, and the notes of reading them."""

    sections: list[Section] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    def named(self, *names: str) -> list[Section]:
        """Return the sections of these names in the order of the files."""
        return [section for section in self.sections if section.name in names]

    def one(self, name: str) -> Section | None:
        """Return the section of a name, of which there must be one, or None if there is none."""
        found = self.named(name)
        if len(found) > 1:
            raise found[1].root.fail(f"must be given once; the first stands at {found[0].where(())}")
        return found[0] if found else None


def read_files(paths: Sequence[str | Path]) -> Files:
    """Read Timeloop YAML files; Jinja2 includes are expanded, with variables such as ``top.yaml:architecture=NAME``.

    Raises
    ------
    InputError
        If a file cannot be read, is not YAML, or holds none of Timeloop's sections.
    """
    files, given = Files(), [Given.of(path) for path in paths]
    folders = [folder for one in given for folder in one.folders]
    for one in given:
        path, found = one.path, False
        document, origins = _whole(path.name, rendered(path, one.variables, folders))
        for name, tree in document.items():
            known = name in SECTIONS or name in ESTIMATORS
            if known:
                files.sections.append(Section(path.name, str(name), plain_tree(tree), document, files.notes, origins))
            elif name not in HARMLESS:
                files.notes.dropped(f"{path.name}:{line_of(document, (str(name),))} {name}",
                                    UNUSED.get(str(name), "not a section of Timeloop that is known here"))
            found = found or known or name in HARMLESS or name in UNUSED
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

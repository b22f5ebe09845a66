"""Timeloop's YAML as trees that know their file and lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.base import InputError, line_of
from tilewright.interop.notes import Notes
from tilewright.interop.sections import Section, plain_tree, whole_document
from tilewright.interop.signs import ESTIMATORS, UNUSED, Given
from tilewright.interop.templates import rendered

SECTIONS = ("architecture", "problem", "mapping", "architecture_constraints", "mapspace_constraints", "constraints",
            "extra_mapping_constraints", "mapspace", "sparse_optimizations", "variables", "ERT", "ART")
HARMLESS = ("version", "dumped_by_timeloop_front_end")
"""Sections that change nothing."""


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

    Raises an `InputError` if a file cannot be read, is not YAML, or holds none of Timeloop's sections.
    """
    files, given = Files(), [Given.of(path) for path in paths]
    folders = [folder for one in given for folder in one.folders]
    for one in given:
        path, found = one.path, False
        document, origins = whole_document(path.name, rendered(path, one.variables, folders), SECTIONS)
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

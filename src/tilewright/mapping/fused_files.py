"""Files of fused groups: YAML, both ways, with the line in every error.

The format::

    network: resnet18                        # optional; for people
    groups:                                  # one after the other
      - held:                                # the memory of each intermediate tensor, by who makes it
          layer1.0.conv1: GLB
          layer1.0.relu1: {memory: GLB, copies: 2}
        tree:
          levels:                            # the shared loops, of the last operator, as in mapping files
            - {level: DRAM, loops: [P: 8]}
          again: false                       # optional: make halos again, and hold nothing
          parts:
            - operator: layer1.0.conv1
              steps: {P: 1}                  # optional: another step for a shared loop
              levels: [{level: GLB, loops: [C: 1]}]
            - operator: layer1.0.relu1
            - {levels: [], parts: [operator: layer1.0.conv2]}   # a node inside
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from tilewright.base import Fields, FieldsDocument, Location, read_text
from tilewright.hardware import Accelerator
from tilewright.mapping.files import LevelReader, MappingLevelFields, loop_text, quoted
from tilewright.mapping.fused import FusedLeaf, FusedMapping, FusedNode, HeldTensor, Part, SharedLoop
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping

TREES = "tilewright trees 1"
"""What JSON of `fuse` calls a plan of trees."""


class HeldFields(Fields):
    """What holds an intermediate tensor."""

    memory: str
    """The memory."""
    copies: Literal[1, 2] = 1
    """2: a vector operator works on one while the other is made."""


class FusedPartFields(Fields):
    """An operator, or a node with shared loops and parts."""

    operator: str | None = None
    """The operator; a node has ``parts`` instead."""
    steps: dict[str, PositiveInt] = Field(default_factory=dict)
    """Of an operator: steps by dimension, in place of those that its innermost shared loops would have."""
    levels: list[MappingLevelFields] = Field(default_factory=list)
    """Its own loops; of a node the shared ones, over dimensions of its last operator."""
    again: bool = False
    """Of a node: in every iteration all operators but the last make anew what it needs."""
    parts: "list[FusedPartFields] | None" = None
    """Of a node: what runs in each of its iterations, one after the other."""


class FusedGroupFields(Fields):
    """One group of operators."""

    tree: FusedPartFields
    """The tree of loops."""
    held: dict[str, str | HeldFields] = Field(default_factory=dict)
    """What holds each intermediate tensor, by who makes it; the outermost memory where left out."""


class FusedFileFields(Fields):
    """A file of fused groups."""

    network: str = ""
    """For people."""
    groups: list[FusedGroupFields]
    """Groups, which run one after the other."""


def is_fused_file(path: Path | None) -> bool:
    """Whether a file is one of fused groups, YAML or what `fuse` wrote as JSON; False where there is none."""
    if path is None or path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return False
    if path.suffix == ".json":
        return _saved_trees(path) is not None
    return any(line.startswith("groups:") for line in read_text(path).splitlines())


def asked_of_trees(path: Path) -> dict[str, Any]:
    """Return what `fuse` was asked for when it wrote a plan as JSON: ``network``, ``arch``, ``bind``; else nothing."""
    saved = _saved_trees(path) if path.suffix == ".json" else None
    return dict(saved.get("asked", {})) if saved is not None else {}


def load_fused(source: str | Path, accelerator: Accelerator) -> tuple[FusedMapping, ...]:
    """Return the fused mappings in a file, or in YAML text where ``source`` has more than one line.

    What operators there are, `FusedTree` tells, and whether a mapping is legal, `fused_violations`.

    Raises an `InputError` with file and line: broken YAML, unknown fields, levels of another machine, numbers that are
    none.
    """
    return tuple(numbered_groups(source, accelerator).values())


def numbered_groups(source: str | Path, accelerator: Accelerator) -> dict[int, FusedMapping]:
    """Return what `load_fused` does by number: the place in a YAML file, that of the whole plan where it is JSON."""
    saved = _saved_trees(Path(source)) if str(source).endswith(".json") else None
    if saved is not None:
        trees = {at: group["tree"] for at, group in enumerate(saved["groups"]) if group["tree"] is not None}
        return {at: next(iter(numbered_groups(tree, accelerator).values())) for at, tree in trees.items()}
    document = FieldsDocument.of(source, "plan", "groups:")
    given = document.validated(FusedFileFields, document.plain())
    if not given.groups:
        raise document.fail(("groups",), "must be some groups", "none")
    reader = _FusedReader(document, accelerator)
    return {at: reader.group(group, ("groups", at)) for at, group in enumerate(given.groups)}


def _saved_trees(path: Path) -> dict[str, Any] | None:
    """Return a plan that `fuse` wrote as JSON, None where a file is none."""
    try:
        found = json.loads(read_text(path))
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("kind") == TREES else None


class _FusedReader(LevelReader):
    """Makes mappings of checked fields; errors point into the document."""

    def group(self, given: FusedGroupFields, where: Location) -> FusedMapping:
        root = self.part(given.tree, (*where, "tree"))
        held = [HeldTensor(name, each) if isinstance(each, str) else HeldTensor(name, each.memory, each.copies)
                for name, each in given.held.items()]
        return FusedMapping(root if isinstance(root, FusedNode) else FusedNode((), (root,)), tuple(held))

    def part(self, given: FusedPartFields, where: Location) -> Part:
        if (given.operator is None) == (given.parts is None):
            raise self.document.fail(where, "must have either an operator or parts")
        levels = [self.level(level, (*where, "levels", at)) for at, level in enumerate(given.levels)]
        if given.operator is not None:
            if given.again:
                raise self.document.fail((*where, "again"), "must stand at a node, not at an operator")
            return FusedLeaf(given.operator, Mapping(tuple(levels)), tuple(given.steps.items()))
        if given.steps or any(entry.keeps is not None or any(loop.axis for loop in entry.loops) for entry in levels):
            raise self.document.fail(where, "must have loops at memories alone: it is a node",
                                     mend="Give keeps, steps and loops at arrays to operators")
        loops = tuple(SharedLoop(entry.level, loop.dimension, loop.step) for entry in levels for loop in entry.loops)
        parts = tuple(self.part(part, (*where, "parts", at)) for at, part in enumerate(given.parts or []))
        return FusedNode(loops, parts, given.again)


def dump_fused(mappings: Iterable[FusedMapping], network: str = "") -> str:
    """Return fused mappings as a YAML file (format: see the module) that `load_fused` reads back unchanged."""
    lines = [f"network: {quoted(network)}"] if network else []
    lines.append("groups:")
    for mapping in mappings:
        held = [f"{quoted(each.producer)}: {{memory: {quoted(each.memory)}, copies: {each.copies}}}"
                for each in mapping.held]
        lines += [f"  - held: {{{', '.join(held)}}}", "    tree:", *_part_lines(mapping.root, "      ")]
    return "\n".join(lines) + "\n"


def _part_lines(part: Part, indent: str) -> Iterator[str]:
    if isinstance(part, FusedLeaf):
        yield f"{indent}operator: {quoted(part.operator)}"
        if part.steps:
            yield f"{indent}steps: {{{', '.join(f'{quoted(name)}: {step}' for name, step in part.steps)}}}"
        yield from _level_lines(part.mapping.levels, indent)
        return
    yield from _level_lines([LevelLoops(loop.level, (Loop(loop.dimension, loop.step),)) for loop in part.loops], indent)
    if part.again:
        yield f"{indent}again: true"
    yield f"{indent}parts:"
    for inner in part.parts:
        first, *rest = _part_lines(inner, f"{indent}    ")
        yield f"{indent}  - {first.strip()}"
        yield from rest


def _level_lines(levels: Iterable[LevelLoops], indent: str) -> Iterator[str]:
    told = []
    for entry in levels:
        keeps = "" if entry.keeps is None else f", keeps: [{', '.join(map(quoted, entry.keeps))}]"
        told.append(f"{indent}  - {{level: {quoted(entry.level)}{keeps}, loops: "
                    f"[{', '.join(map(loop_text, entry.loops))}]}}")
    if told:
        yield f"{indent}levels:"
        yield from told


__all__ = ["TREES", "asked_of_trees", "dump_fused", "is_fused_file", "load_fused", "numbered_groups"]

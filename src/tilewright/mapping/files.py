"""Mapping files: YAML, both ways, with the line in every error.

The format, outermost level first (levels left out have no loops and keep all that they can)::

    operator: conv2_1                        # optional; for people
    accelerator: eyeriss                     # optional; for people
    dimensions: {N: 1, K: 64, C: 64, P: 56}  # optional; must then agree with the operator
    levels:
      - level: DRAM
        loops: [K: 16, P: 7]                 # dimension: step, outer to inner
      - level: GLB
        keeps: [I, O]                        # optional; tensors that stay here, by name
        loops: [{dimension: C, count: 8}]    # the step that makes the loop run 8 times
      - level: PEs
        loops: [K@X: 1, C@Y: 2]              # at a fan-out each loop says its side of the array

The number is the step: the extent of the tile just inside the loop, so that the loop runs ceil(extent / step) times.
The long form of a loop is ``{dimension: K, step: 1, axis: X}``, with ``count`` in place of ``step`` where handier.

Files of fused groups hold trees of shared loops::

    network: resnet18                        # optional; for people
    groups:                                  # one after the other
      - held:                                # the memory of each intermediate tensor, by who makes it
          layer1.0.conv1: GLB
          layer1.0.relu1: {memory: GLB, copies: 2}
        tree:
          levels:                            # the shared loops, of the last operator, as above
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
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from tilewright.base import Fields, FieldsDocument, Location, read_text, wrong
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping.fused import FusedLeaf, FusedMapping, FusedNode, HeldTensor, Part, SharedLoop
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping, SpatialAxis
from tilewright.workload import Operator

TREES = "tilewright trees 1"
"""What JSON of `fuse` calls a plan of trees."""


class LoopFields(Fields):
    """A loop, in its long form."""

    dimension: str
    """The dimension."""
    step: PositiveInt | None = None
    """The extent of the tile just inside the loop."""
    count: PositiveInt | None = None
    """In place of ``step``, of one operator alone: how often the loop runs."""
    axis: SpatialAxis | None = None
    """At an array: its side."""


def _long_form(given: Any) -> Any:
    """Return the fields of a loop in its short form, ``K@X: 1``."""
    if not isinstance(given, dict) or "dimension" in given:
        return given
    if len(given) != 1:
        raise wrong("must be one dimension and its step, as in K: 16")
    (name, step), = given.items()
    dimension, at, axis = str(name).partition("@")
    return {"dimension": dimension, "step": step, "axis": axis if at else None}


class MappingLevelFields(Fields):
    """Loops at one level, of an operator or of a node of a fused group."""

    level: str
    """The name of the level."""
    keeps: list[str] | None = None
    """Of an operator, at a memory: tensors that stay here, by name; all that can where left out."""
    loops: list[Annotated[LoopFields, BeforeValidator(_long_form)]] = Field(default_factory=list)
    """Loops, outer to inner: ``K: 16`` (dimension and step), at an array ``K@X: 1``, or the long form."""


class MappingFields(Fields):
    """A mapping file."""

    operator: str | None = None
    """For people."""
    accelerator: str | None = None
    """For people."""
    dimensions: dict[str, PositiveInt] = Field(default_factory=dict)
    """Sizes of dimensions, which must then agree with the operator."""
    levels: list[MappingLevelFields]
    """Levels, outermost first; those left out have no loops and keep all that they can."""


def dump_mapping(mapping: Mapping, operator: Operator, accelerator: Accelerator | None = None) -> str:
    """Return a mapping as a YAML file (format: see the module) that `load_mapping` reads back unchanged.

    All three may also be what the record of a run holds of them.
    """
    lines = [f"operator: {quoted(getattr(operator, 'name', operator.kind))}"]
    if accelerator is not None:
        lines.append(f"accelerator: {quoted(accelerator.name)}")
    lines += [f"dimensions: {{{', '.join(f'{quoted(d)}: {n}' for d, n in operator.dimensions)}}}", "levels:"]
    for entry in mapping.levels:
        lines.append(f"  - level: {quoted(entry.level)}")
        if entry.keeps is not None:
            lines.append(f"    keeps: [{', '.join(map(quoted, entry.keeps))}]")
        if entry.loops:
            lines.append(f"    loops: [{', '.join(map(loop_text, entry.loops))}]")
    return "\n".join(lines) + "\n"


def loop_text(loop: Loop | tuple[str, int, Literal["X", "Y"] | None]) -> str:
    """Return a loop as mapping files write it."""
    if isinstance(loop, tuple):
        loop = Loop(*loop)
    return f"{quoted(loop.dimension + ('@' + loop.axis if loop.axis else ''))}: {loop.step}"


def quoted(name: str) -> str:
    """Return a name as YAML reads it back: quoted where it would be taken for something else (``N``, ``1e3``)."""
    plain = name.replace("_", "a").replace("@", "a").isalnum() and name[:1].isalpha()
    reserved = name.lower() in ("null", "true", "false", "yes", "no", "on", "off")
    return name if plain and not reserved else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def load_mapping(source: str | Path, operator: Operator, accelerator: Accelerator) -> Mapping:
    """Return the mapping in a YAML file, or in the text itself where ``source`` is text of more than one line.

    Names must be known and numbers be positive integers; whether the mapping is legal, `violations` tells.

    Raises an `InputError` with file and line: broken YAML, unknown or repeated fields, levels, dimensions or tensors,
    levels out of order, numbers that are none, counts that no step gives, dimensions of another operator.
    """
    document = FieldsDocument.of(source, "mapping", "levels:")
    given = document.validated(MappingFields, document.plain())
    reader, extents = LevelReader(document, accelerator, operator), dict(operator.sizes)
    for name, size in given.dimensions.items():
        where = "dimensions", name
        reader.check(where, f"a dimension of {operator.name}", name, extents)
        if size != extents[name]:
            raise document.fail(where, f"must be {extents[name]}, as in {operator.name}", size,
                                "Take the line out to use the mapping for another operator")
    found: dict[str, LevelLoops] = {}
    order = [level.name for level in accelerator.levels]
    for at, entry in enumerate(given.levels):
        read = reader.level(entry, ("levels", at), extents)
        if read.level in found:
            raise document.fail(("levels", at, "level"), "must not be given twice", read.level)
        if found and order.index(read.level) < order.index(last := [*found][-1]):
            raise document.fail(("levels", at, "level"), f"must stand before {last}, outermost first", read.level)
        found[read.level] = read
    return Mapping(tuple(found.get(name, LevelLoops(name)) for name in order))


@dataclass(frozen=True)
class LevelReader:
    """Makes loops at levels of their fields; errors point into the document."""

    document: FieldsDocument
    accelerator: Accelerator
    operator: Operator | None = None
    """Whose dimensions and tensors they are, where that is known."""

    def level(self, given: MappingLevelFields, where: Location, extents: dict[str, int] | None = None) -> LevelLoops:
        """Return the loops at a level; ``extents`` are those of the tile outside, and are brought down by the loops."""
        self.check((*where, "level"), f"a level of {self.accelerator.name}", given.level,
                   [level.name for level in self.accelerator.levels])
        array = isinstance(self.accelerator.level(given.level), Fanout)
        if array and given.keeps is not None:
            raise self.document.fail((*where, "keeps"), "must not be given at a fan-out, which keeps nothing",
                                     mend="Take it out")
        if self.operator is not None:
            for at, name in enumerate(given.keeps or ()):
                self.check((*where, "keeps", at), f"a tensor of {self.operator.name}", name,
                           [tensor.name for tensor in self.operator.tensors])
        loops = tuple(self.loop(loop, (*where, "loops", at), given.level, array, extents)
                      for at, loop in enumerate(given.loops))
        return LevelLoops(given.level, loops, None if given.keeps is None else tuple(given.keeps))

    def loop(self, given: LoopFields, where: Location, level: str, array: bool, extents: dict[str, int] | None) -> Loop:
        """Return a loop, with the step that its count stands for."""
        if extents is not None and self.operator is not None:
            self.check(where, f"a dimension of {self.operator.name}", given.dimension, extents)
        if not array and given.axis is not None:
            raise self.document.fail(where, f"must have no axis at {level}, a memory", given.axis, "Take the axis out")
        if array and given.axis is None:
            raise self.document.fail(where, f"must say the side of the array at {level}, a fan-out", "no axis",
                                     "Write K@X: 1 or K@Y: 1")
        if (given.step is None) == (given.count is None):
            raise self.document.fail(where, "must have either a step or a count")
        extent = (extents or {}).get(given.dimension)
        step = given.step if given.count is None else self.counted(given.count, (*where, "count"), extent)
        assert step is not None
        if extents is not None and extent is not None:
            extents[given.dimension] = min(extent, step)
        return Loop(given.dimension, step, given.axis)

    def counted(self, count: int, where: Location, extent: int | None) -> int:
        """Return the step that makes a loop over ``extent`` run ``count`` times."""
        if extent is None:
            raise self.document.fail(where, "must be a step, for loops that operators share", count)
        step = -(-extent // count)
        if -(-extent // step) != count:
            fewer, more = -(-extent // step), -(-extent // max(step - 1, 1))
            runs = f"{fewer} or {more} times" if step > 1 else f"{extent} times at most"
            raise self.document.fail(where, f"must be one that some step gives: an extent of {extent} runs {runs}",
                                     count)
        return step

    def check(self, where: Location, what: str, given: str, names: Iterable[str]) -> None:
        """Raise an error unless ``given`` is one of the ``names``."""
        if given in (known := list(names)):
            return
        near = get_close_matches(given.lower(), [name.lower() for name in known], 1)
        match = [name for name in known if name.lower() in near]
        raise self.document.fail(where, f"must be {what}", given,
                                 f"Did you mean {match[0]}?" if match else f"Known: {', '.join(known)}")


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

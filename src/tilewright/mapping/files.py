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
"""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tilewright.base import InputError, read_text, read_yaml
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping, SpatialAxis
from tilewright.workload import Operator

Scalar = Literal["text", "integer"]
FILE_FIELDS = {
    "operator": "For people.", "accelerator": "For people.",
    "dimensions": "Sizes of dimensions, which must then agree with the operator.",
    "levels": "Levels, outermost first; those left out have no loops and keep all that they can."}
"""What a mapping file may say, and what it means."""
LEVEL_FIELDS = {
    "level": "The name of the level.",
    "keeps": "At a memory: tensors that stay here, by name; all that can where left out.",
    "loops": "Loops, outer to inner: ``K: 16`` (dimension and step), at an array ``K@X: 1``, or the long form."}
"""What each level may say."""
LOOP_FIELDS = {
    "dimension": "The dimension.", "step": "The extent of the tile just inside the loop.",
    "count": "In place of ``step``: how often the loop runs.", "axis": "At an array: its side, ``X`` or ``Y``."}
"""What the long form of a loop may say."""


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
    name, text = _read(source)
    reader = _Reader(name, operator, accelerator)
    return reader.mapping(read_yaml(text, name, "nodes"))


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or not source.endswith((".yaml", ".yml"))):
        return "mapping", source
    return str(source), read_text(source)


@dataclass(frozen=True)
class _Reader:
    """Reads the nodes of one file."""

    name: str
    operator: Operator
    accelerator: Accelerator

    def mapping(self, root: Node | None) -> Mapping:
        if root is None:
            raise InputError(self.name, "must have the field levels", "an empty file")
        fields = self.fields(root, "", tuple(FILE_FIELDS))
        for key in ("operator", "accelerator"):
            if key in fields:
                self.scalar(fields[key], key, "text")
        if "dimensions" in fields:
            self.dimensions(fields["dimensions"])
        if "levels" not in fields:
            raise self.error(root, "levels", "must be given")
        names = [level.name for level in self.accelerator.levels]
        found: dict[str, LevelLoops] = {}
        extents = dict(self.operator.sizes)
        for index, node in enumerate(self.items(fields["levels"], "levels")):
            entry = self.level(node, f"levels[{index}]", list(found), extents)
            found[entry.level] = entry
        return Mapping(tuple(found.get(name, LevelLoops(name)) for name in names))

    def dimensions(self, node: Node) -> None:
        sizes = self.operator.sizes
        for key, value in self.fields(node, "dimensions", tuple(sizes)).items():
            given = self.integer(value, f"dimensions.{key}")
            if given != sizes[key]:
                raise self.error(value, f"dimensions.{key}", f"must be {sizes[key]}, as in {self.operator.name}", given,
                                 "Take the line out to use the mapping for another operator")

    def level(self, node: Node, path: str, before: list[str], extents: dict[str, int]) -> LevelLoops:
        fields = self.fields(node, path, tuple(LEVEL_FIELDS))
        if "level" not in fields:
            raise self.error(node, f"{path}.level", "must name a level of the accelerator")
        names = [level.name for level in self.accelerator.levels]
        name = self.known(fields["level"], f"{path}.level", f"a level of {self.accelerator.name}", names)
        if name in before:
            raise self.error(fields["level"], f"{path}.level", "must not be given twice", name)
        if before and names.index(name) < names.index(before[-1]):
            raise self.error(fields["level"], f"{path}.level", f"must stand before {before[-1]}, outermost first", name)
        level = self.accelerator.level(name)
        keeps = self.keeps(fields["keeps"], f"{path}.keeps", level) if "keeps" in fields else None
        loops = [self.loop(item, f"{path}.loops[{i}]", level, extents)
                 for i, item in enumerate(self.items(fields["loops"], f"{path}.loops"))] if "loops" in fields else []
        return LevelLoops(name, tuple(loops), keeps)

    def keeps(self, node: Node, path: str, level: Memory | Fanout) -> tuple[str, ...]:
        if isinstance(level, Fanout):
            raise self.error(node, path, "must not be given at a fan-out, which keeps nothing", mend="Take it out")
        names = [tensor.name for tensor in self.operator.tensors]
        return tuple(self.known(item, f"{path}[{i}]", f"a tensor of {self.operator.name}", names)
                     for i, item in enumerate(self.items(node, path)))

    def loop(self, node: Node, path: str, level: Memory | Fanout, extents: dict[str, int]) -> Loop:
        fields = self.fields(node, path, None)
        if "dimension" in fields:
            fields = self.fields(node, path, tuple(LOOP_FIELDS))
            name_node, axis_node = fields["dimension"], fields.get("axis")
            text = self.scalar(name_node, f"{path}.dimension", "text")
            axis = self.scalar(axis_node, f"{path}.axis", "text") if axis_node is not None else None
        elif len(fields) == 1:
            (key, value), = fields.items()
            text, _, side = key.partition("@")
            name_node, axis, fields = node, side if "@" in key else None, {"step": value}
        else:
            raise self.error(node, path, "must be one dimension and its step, as in K: 16", sorted(fields))
        dimension = self.choose(name_node, path, f"a dimension of {self.operator.name}", text, list(extents))
        return self.sized(node, path, Loop(dimension, 1, self.axis(node, path, level, axis)), fields, extents)

    def axis(self, node: Node, path: str, level: Memory | Fanout, axis: str | None) -> SpatialAxis | None:
        if isinstance(level, Memory):
            if axis is not None:
                raise self.error(node, path, f"must have no axis at {level.name}, a memory", axis, "Take the axis out")
            return None
        sides: dict[str | None, SpatialAxis] = {"X": "X", "Y": "Y"}
        if axis in sides:
            return sides[axis]
        raise self.error(node, path, f"must say the side of the array at {level.name}, a fan-out", axis or "no axis",
                         "Write K@X: 1 or K@Y: 1")

    def sized(self, node: Node, path: str, loop: Loop, fields: dict[str, Node], extents: dict[str, int]) -> Loop:
        """Return the loop with its step, given or from its count, and bring ``extents`` down to it."""
        if ("step" in fields) == ("count" in fields):
            raise self.error(node, path, "must have either a step or a count")
        extent = extents[loop.dimension]
        if "step" in fields:
            step = self.integer(fields["step"], f"{path}.step" if "dimension" in fields else path)
        else:
            count = self.integer(fields["count"], f"{path}.count")
            step = -(-extent // count)
            if -(-extent // step) != count:
                fewer, more = -(-extent // step), -(-extent // max(step - 1, 1))
                runs = f"{fewer} or {more} times" if step > 1 else f"{extent} times at most"
                raise self.error(fields["count"], f"{path}.count",
                                 f"must be one that some step gives: an extent of {extent} runs {runs}", count)
        extents[loop.dimension] = min(extent, step)
        return Loop(loop.dimension, step, loop.axis)

    def fields(self, node: Node, path: str, known: tuple[str, ...] | None) -> dict[str, Node]:
        """Return the fields of a YAML mapping by key; all must be ``known`` (None: any)."""
        where = path or "the file"
        if not isinstance(node, MappingNode):
            raise self.error(node, where, "must be fields and values", _shown(node))
        found: dict[str, Node] = {}
        for key_node, value in node.value:
            key = str(key_node.value)
            field = f"{path}.{key}" if path else key
            if known is not None:
                what = "a known field" if path != "dimensions" else f"a dimension of {self.operator.name}"
                self.choose(key_node, field, what, key, list(known))
            if key in found:
                raise self.error(key_node, field, "must not be given twice")
            found[key] = value
        return found

    def items(self, node: Node, path: str) -> list[Node]:
        if not isinstance(node, SequenceNode):
            raise self.error(node, path, "must be a list", _shown(node), "Put it in [ ]")
        return list(node.value)

    def known(self, node: Node, path: str, what: str, names: list[str]) -> str:
        return self.choose(node, path, what, self.scalar(node, path, "text"), names)

    def choose(self, node: Node, path: str, what: str, given: str, names: list[str]) -> str:
        if given in names:
            return given
        near = get_close_matches(given.lower(), [name.lower() for name in names], 1)
        match = [name for name in names if name.lower() in near]
        raise self.error(node, path, f"must be {what}", given,
                         f"Did you mean {match[0]}?" if match else f"Known: {', '.join(names)}")

    def integer(self, node: Node, path: str) -> int:
        text = self.scalar(node, path, "integer")
        try:
            number = int(text, 0)
        except ValueError:
            number = 0
        if number < 1:
            raise self.error(node, path, "must be a positive integer", text)
        return number

    def scalar(self, node: Node, path: str, kind: Scalar) -> str:
        if not isinstance(node, ScalarNode) or (kind == "integer" and not str(node.tag).endswith(":int")):
            rule = "must be a positive integer" if kind == "integer" else "must be a name"
            raise self.error(node, path, rule, _shown(node))
        return str(node.value)

    def error(self, node: Node, path: str, rule: str, given: object = None, mend: str = "") -> InputError:
        return InputError(f"{self.name}:{node.start_mark.line + 1}: {path}", rule, given, mend)


def _shown(node: Node) -> str:
    if isinstance(node, ScalarNode):
        return str(node.value) or "nothing"
    return "a list" if isinstance(node, SequenceNode) else "fields and values"

"""What is known about an ONNX graph while its nodes are translated: shapes, types, constants, who made what."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright.base import InputError
from tilewright.workload import Node

Shape = tuple[int, ...]


class UnknownShape(Exception):
    """A shape that a node needs is not known; the node is listed as not modelled."""


class Unsupported(Exception):
    """A form of a node that nothing here models; the node is listed as not modelled, with this reason."""


@dataclass
class Scene:
    """Facts about the tensors of one file, by name.

    ``constants`` are known before the network runs (weights, and whatever is computed from constants alone);
    ``producers`` names the translated nodes that make a tensor; ``claimed`` are weights that a node already counts.
    """

    path: str
    shapes: dict[str, Shape]
    types: dict[str, str]
    constants: set[str]
    producers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def shape(self, name: str) -> Shape:
        """Shape of a tensor; raises `UnknownShape`."""
        if name not in self.shapes:
            raise UnknownShape(name)
        return self.shapes[name]

    def free_name(self, wanted: str) -> str:
        """Return ``wanted``, numbered if it is taken."""
        name, number = wanted, 2
        while name in self.names:
            name, number = f"{wanted}_{number}", number + 1
        self.names.add(name)
        return name


class NodeView:
    """One ONNX node as its translator sees it."""

    def __init__(self, scene: Scene, proto: Any, name: str) -> None:
        from onnx import helper  # noqa: PLC0415  (loaded already: whoever holds a node has imported onnx)

        self.scene = scene
        self.proto = proto
        self.name = name
        self.kind: str = proto.op_type
        self.inputs: list[str] = list(proto.input)
        self.outputs: list[str] = [name for name in proto.output if name]
        self._attributes = {a.name: a for a in proto.attribute}
        self._read = helper.get_attribute_value

    def has(self, index: int) -> bool:
        """Whether input ``index`` is given."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def input(self, index: int) -> str:
        """Name of input ``index``; an `InputError` if it is missing."""
        if not self.has(index):
            raise self.error("must have input", index)
        return self.inputs[index]

    def shape(self, index: int) -> Shape:
        """Shape of input ``index``."""
        return self.scene.shape(self.input(index))

    def words(self, index: int) -> int:
        """Words of input ``index``; 0 where the input is absent."""
        return prod(self.shape(index)) if self.has(index) else 0

    def out(self, index: int = 0) -> Shape:
        """Shape of output ``index``."""
        return self.scene.shape(self.proto.output[index])

    def is_constant(self, index: int) -> bool:
        """Whether input ``index`` is known before the network runs."""
        return self.has(index) and self.inputs[index] in self.scene.constants

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer attribute."""
        return int(self._value(name, default))

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of integers."""
        return [int(value) for value in self._value(name, default)]

    def text(self, name: str, default: str = "") -> str:
        """Return a text attribute."""
        value = self._value(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def given(self, name: str) -> bool:
        """Whether the attribute is there."""
        return name in self._attributes

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the translated nodes whose results this one reads."""
        makers = (self.scene.producers.get(name, ()) for name in (*self.inputs, *_captured(self.proto)))
        return tuple(dict.fromkeys(maker for group in makers for maker in group))

    @property
    def element_type(self) -> str:
        """Element type of the first input (of the output, where that is not known), as ONNX calls it."""
        names = [*self.inputs[:1], *self.outputs[:1]]
        return next((self.scene.types[name] for name in names if name in self.scene.types), "unknown")

    def error(self, rule: str, given: object = None, mend: str = "") -> InputError:
        """Return the error for something that is wrong with this node."""
        return InputError(f"{self.scene.path}: node {self.name} ({self.kind})", rule, given, mend)

    def _value(self, name: str, default: Any) -> Any:
        return self._read(self._attributes[name]) if name in self._attributes else default


def _captured(proto: Any) -> list[str]:
    """Names that the bodies of a control-flow node read, among them those of the graph around it."""
    bodies = [a.g for a in proto.attribute if a.HasField("g")] + [g for a in proto.attribute for g in a.graphs]
    inner = [node for body in bodies for node in body.node]
    return [name for node in inner for name in (*node.input, *_captured(node))]

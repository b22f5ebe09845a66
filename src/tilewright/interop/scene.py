"""What is known about a foreign network while its nodes are translated: shapes, types, constants, who made what."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.base import InputError, free_name, renamed_note
from tilewright.workload import (
    DataMovement,
    Edges,
    MacNode,
    Node,
    Operand,
    Result,
    Unmodelled,
    VectorOperator,
    View,
    result_shape,
    same,
    vector_kind,
)

if TYPE_CHECKING:
    from tilewright.interop.views import Seen

Shape = tuple[int, ...]
_NO_SHAPE = "the shape of "


class Unsupported(Exception):
    """A form of a node that nothing here models; the node is listed as not modelled, with this reason."""


@dataclass
class Scene:
    """Facts about the tensors of one file, by name.

    ``constants`` are known before the network runs (weights, and whatever is computed from constants alone);
    ``producers`` names the translated nodes that make a tensor; ``claimed`` are weights that a node already counts;
    ``origins`` say of which weight a constant is only another view; ``lost`` is the first node of whose results some
    shape is unknown. ``arranged`` tensors are never made, as products read others in their place: by name, of each axis
    the factors of its size and whether each repeats words; ``caches`` are those of them that a cache of keys and values
    is read for. ``stored`` are the types of tensors that are quantised where they lie (`quantised_types`). ``handed``
    are what the network hands out, ``numbers`` the values of small constants; ``stands`` says in place of which tensors
    others are read, which were made in parts, or written over; ``renamed`` are names with numbers,
    as those of the file were taken.
    """

    path: str
    shapes: dict[str, Shape]
    types: dict[str, str]
    constants: set[str]
    producers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    lost: Node | None = None
    arranged: "Mapping[str, tuple[tuple[tuple[int, bool], ...], ...]]" = field(default_factory=dict)
    caches: frozenset[str] = frozenset()
    stored: Mapping[str, str] = field(default_factory=dict)
    handed: frozenset[str] = frozenset()
    numbers: Mapping[str, list[int]] = field(default_factory=dict)
    stands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: list[str] = field(default_factory=list)

    def type(self, name: str) -> str:
        """Element type of a tensor as it lies in memory; empty where it is not known."""
        return self.stored.get(name) or self.types.get(name, "")

    def shape(self, name: str) -> Shape:
        """Shape of a tensor; `Unsupported` where it is not known."""
        if name not in self.shapes:
            raise Unsupported(f"{_NO_SHAPE}{name} is unknown")
        return self.shapes[name]

    def repeats(self, name: str) -> int:
        """How often each word would stand in a tensor that is never made."""
        return prod(size for axis in self.arranged.get(name, ()) for size, again in axis if again)

    def origin(self, name: str) -> str:
        """Name of the constant that ``name`` is a view of; its own where it is none."""
        return self.origins.get(name, name)

    def words(self, names: Iterable[str]) -> int:
        """Words of those tensors whose shapes are known."""
        return sum(prod(self.shapes[name]) for name in names if name in self.shapes)

    def free_name(self, wanted: str, given: bool = False) -> str:
        """Return ``wanted``, numbered if it is taken; where its file gives that name, it is told."""
        name = free_name(wanted, self.names)
        if given and name != wanted:
            self.renamed.append(name)
        self.names.add(name)
        return name

    def add(self, nodes: Sequence[Node], view: "NodeView", seen: "Seen | None" = None, *,
            in_place: bool = False) -> None:
        """Add the translation of one node, which writes over its first input where ``in_place``.

        ``seen`` are the views of a node that is no operator, where they are known.
        """
        read = {name for node in nodes for name in node.inputs}
        makers = tuple(node.name for node in nodes if node.name not in read)
        edged = [_edged(view, node, nodes, makers, in_place=in_place) for node in nodes]
        if seen is not None and len(nodes) == 1 and not isinstance(nodes[0], MacNode):
            edged = [_seen(view, edged[0], seen)]
        for name in filter(None, view.outputs):
            self.producers[name] = makers
            self.stands[name] = (name,) if len(makers) == 1 else tuple(map(within, makers))
            if self.lost is None and name not in self.shapes and nodes:
                self.lost = edged[-1]
        self.nodes.extend(edged)

    @property
    def notes(self) -> tuple[str, ...]:
        """Names that were taken, and where shapes were lost, if that is why nodes are not modelled."""
        told = renamed_note(self.renamed)
        count = sum(isinstance(node, Unmodelled) and node.reason.startswith(_NO_SHAPE) for node in self.nodes)
        if self.lost is None or not count:
            return told
        return (*told, f"Shapes were lost at {self.lost.name} ({self.lost.kind}): for want of them {count} "
                f"node{'s are' if count > 1 else ' is'} not modelled",)


@dataclass(frozen=True)
class NodeView:
    """One node of a foreign network as its translator sees it."""

    scene: Scene
    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Names of tensors; empty where one is left out."""
    attributes: Mapping[str, Any]
    """Whatever else the node states, by name."""
    captured: tuple[str, ...] = ()
    """Names of tensors that its bodies read besides (control flow)."""

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

    @property
    def read_words(self) -> int:
        """Words of all inputs."""
        return sum(self.words(index) for index in range(len(self.inputs)))

    @property
    def written_words(self) -> int:
        """Words of those outputs whose shapes are known."""
        return self.scene.words(self.outputs)

    def out(self, index: int = 0) -> Shape:
        """Shape of output ``index``."""
        return self.scene.shape(self.outputs[index])

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer attribute."""
        return int(self.attributes.get(name, default))

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of integers."""
        return [int(value) for value in self.attributes.get(name, default)]

    def text(self, name: str, default: str = "") -> str:
        """Return a text attribute."""
        value = self.attributes.get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the translated nodes whose results this one reads."""
        makers = (self.scene.producers.get(name, ()) for name in (*self.inputs, *self.captured))
        return tuple(dict.fromkeys(maker for group in makers for maker in group))

    def edges(self, reads: Iterable[tuple[str, str]], shape: Shape | None = None,
              views: Sequence[View | None] = ()) -> Edges:
        """Return what a node reads: names of operands, and those of their tensors.

        ``shape`` is that of the result where that is none of the foreign node's alone. ``views`` are those of the
        operator's operands, and of its output.
        """
        scene, found = self.scene, list[Operand]()
        for place, (operand, name) in enumerate(reads):
            tensors = scene.stands.get(name, (name,))
            view = views[place] if place < len(views) - 1 and len(tensors) == 1 else None
            for tensor in tensors:
                constant, origin, size = tensor in scene.constants, scene.origin(tensor), scene.shapes.get(tensor)
                if constant and (origin != tensor or len(view or ()) != len(size or ())):
                    view = None  # packed weights, or a view of others
                found.append(Operand(origin if constant else tensor, operand, size, "weights" if constant else "input",
                                     view))
        result = Result("", shape, view=views[-1] if views else None)
        return Edges(tuple(dict.fromkeys(found)), () if shape is None and not views else (result,))

    def beside(self, sides: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Return the inputs besides ``sides`` that are not constant, with their places."""
        known, made = {"", *sides, *self.scene.constants}, {*self.inputs, *self.scene.producers}
        return [(str(index), name) for index, name in enumerate((*self.inputs, *self.captured))
                if name not in known and name in made]

    @property
    def element_type(self) -> str:
        """Element type of the first input (of the output, where that is not known), as the file calls it."""
        names = [*self.inputs[:1], *[name for name in self.outputs if name][:1]]
        return next((self.scene.types[name] for name in names if name in self.scene.types), "unknown")

    def error(self, rule: str, given: object = None, mend: str = "") -> InputError:
        """Return the error for something that is wrong with this node."""
        return InputError(f"{self.scene.path}: node {self.name} ({self.kind})", rule, given, mend)

    def unmodelled(self, reason: str, macs: int | None = None) -> Unmodelled:
        """List the node as not modelled, with an estimate of its words where the shapes are known."""
        tensors = [name for name in (*self.inputs, *self.outputs) if name]
        words = self.scene.words(tensors) if all(name in self.scene.shapes for name in tensors) else None
        return Unmodelled(self.name, self.kind, reason, macs=macs, words=words, inputs=self.readers)


def within(name: str) -> str:
    """Return what the result of a node is called that is one of several in place of a foreign one."""
    return f"@{name}"


def _edged(view: NodeView, node: Node, nodes: Sequence[Node], makers: Sequence[str], *, in_place: bool) -> Node:
    """Return one of the ``nodes`` in place of a foreign one with the tensors that it reads and makes."""
    scene, inner = view.scene, [name for name in node.inputs if any(name == one.name for one in nodes)]
    reads = node.edges.reads if node.edges is not None else view.edges(
        [(str(index), within(name)) for index, name in enumerate(inner)] or view.beside()).reads
    if isinstance(node, VectorOperator | DataMovement):
        if vector_kind(node) == "gather" and view.inputs and view.inputs[0] in view.scene.constants:
            reads = (Operand(scene.origin(view.inputs[0]), "table", view.scene.shapes.get(view.inputs[0]), "weights"),
                     *reads)
        if node.kind in ("append", "selective_scan"):
            held = view.out() if node.kind == "append" else view.shape(2)
            reads = (*reads, Operand(f"{node.name}.state", "state", held, "state"))
    told = node.edges.makes[0] if node.edges is not None and node.edges.makes else Result("", None)
    if node.name not in makers or len(makers) > 1:
        shape = told.shape or result_shape(node)
        leaves = node.name in makers and any(name in scene.handed for name in view.outputs)
        return replace(node, edges=Edges(reads, (replace(told, name=within(node.name), shape=shape, leaves=leaves),),
                                         () if node.edges is None else node.edges.space))
    shared = ""
    if isinstance(node, DataMovement):
        if node.kind == "append":
            shared = reads[-1].tensor
        elif in_place or (vector_kind(node) == "view" and len(reads) == 1):
            shared = reads[0].tensor
    elif in_place and reads:
        shared = reads[0].tensor
    makes = tuple(Result(name, scene.shapes.get(name), shared, name in scene.handed, told.view)
                  for name in view.outputs if name)
    return replace(node, edges=Edges(reads, makes))


def _seen(view: NodeView, node: Node, seen: "Seen") -> Node:
    """Return a node whose edges have views; of what was made in parts they have none."""
    if node.edges is None:
        return node
    reads = []
    for one in node.edges.reads:
        place = int(one.name) if one.name.isdecimal() else len(seen.operands)
        alone = place < len(view.inputs) and len(view.scene.stands.get(view.inputs[place], "1")) == 1
        found = seen.operands[place] if alone and place < len(seen.operands) else None
        reads.append(replace(one, view=same(seen.space) if one.shape == seen.space and one.kind == "state" else found))
    makes = tuple(replace(one, view=two) for one, two in zip(node.edges.makes, seen.results, strict=False))
    return replace(node, edges=Edges(tuple(reads), (*makes, *node.edges.makes[len(makes):]), seen.space))


Step: TypeAlias = tuple[str, Sequence[str], Sequence[str]]
"""A node: its kind, and the names of its inputs and outputs."""
_ON_THE_WAY = ("relu", "clip", "hardtanh")
"""What a layer does as its result leaves: the type behind it is that of the result."""


def quantised_types(steps: Iterable[Step], types: Mapping[str, str]) -> dict[str, str]:
    """Return the types of tensors that a network computes with in floating point, and keeps quantised.

    That is what is dequantised where it is read, and what is quantised as it is written, perhaps behind a rectifier,
    and read by nothing else.
    """
    given, found = list(steps), dict[str, str]()
    readers = Counter(name for _, inputs, _ in given for name in set(inputs))
    for kind, inputs, outputs in reversed(given):
        plain = kind.lower().rpartition(".")[2].replace("_", "")
        if not inputs or not outputs or readers[inputs[0]] != 1:
            continue
        if plain.startswith("quantize") and types.get(outputs[0]):
            found[inputs[0]] = types[outputs[0]]
        elif plain in _ON_THE_WAY and outputs[0] in found:
            found[inputs[0]] = found[outputs[0]]
    for kind, inputs, outputs in given:
        if kind.lower().rpartition(".")[2].replace("_", "").startswith("dequantize") and inputs and outputs:
            found[outputs[0]] = types.get(inputs[0], "")
    return found


Translator = Callable[[NodeView], Sequence[Node] | None]


def translated(view: NodeView, translate: Translator, form: str,
               estimate: Callable[[NodeView], int | None] = lambda view: None) -> Sequence[Node]:
    """Translate a node; what cannot be modelled is listed with the reason and ``estimate`` of its MACs.

    ``translate`` gives None where it does not know the node; ``form`` says who prescribes what the node must be like.

    Raises an `InputError` if the node contradicts itself.
    """
    try:
        nodes = translate(view)
    except Unsupported as error:
        return [view.unmodelled(str(error), estimate(view))]
    except InputError as error:
        if error.field.startswith(view.scene.path):
            raise
        raise InputError(f"{view.scene.path}: node {error.field}", error.rule, error.given, error.mend) from None
    except (IndexError, KeyError, ValueError, TypeError) as error:
        raise view.error(f"must have inputs and attributes of the form that {form} prescribes", str(error)) from None
    return nodes if nodes is not None else [view.unmodelled("operator not known here", estimate(view))]


def check_bindings(path: str, bind: Mapping[str, int | str], dynamic: Sequence[str]) -> dict[str, int]:
    """Return sizes as they are; refuse those that do not fit the dynamic dimensions of a file.

    Raises an `InputError` if a size is no positive integer, a dimension is not bound, or ``bind`` names one that the
    file does not have.
    """
    sizes: dict[str, int] = {}
    for name, size in bind.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"bind {name}", "must be a positive integer", size, f"For example --bind {name}=1")
        if size >= 1 << 63:
            raise InputError(f"bind {name}", "must be less than 2^63, as sizes in files are", size)
        sizes[name] = size
    keys = list(dict.fromkeys(dynamic))
    unbound = [key for key in keys if key not in bind]
    if unbound:
        raise InputError(f"{path}: dynamic dimensions", "must be bound", ", ".join(unbound),
                         f"Add {' '.join(f'--bind {key}=SIZE' for key in unbound)}: nothing says how large "
                         f"{'it is' if len(unbound) == 1 else 'they are'}, and 1 may be too small")
    unknown = sorted(set(bind) - set(keys))
    if unknown:
        raise InputError(f"bind {unknown[0]}", f"must name a dynamic dimension of {path}", unknown[0],
                         f"It has: {', '.join(sorted(keys)) or 'none'}")
    return sizes


def folded_note(count: int) -> tuple[str, ...]:
    """Say how many nodes were folded, if any."""
    return (f"{count} constant node{'s' if count > 1 else ''} folded",) if count else ()

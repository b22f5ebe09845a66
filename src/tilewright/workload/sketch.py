"""A network drawn layer by layer: keeps track of shapes and of who reads whom, and ends as a `Graph`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from inspect import Parameter, signature
from math import prod
from typing import Any, TypeVar, dataclass_transform

from tilewright.base import InputError, free_name
from tilewright.workload.build import Padding, Sizes, convolution, linear, matmul
from tilewright.workload.graph import (
    OPERATIONS_PER_ELEMENT,
    DataMovement,
    Graph,
    MacNode,
    Node,
    Unmodelled,
    VectorOperator,
)
from tilewright.workload.links import (
    AxisLink,
    Digit,
    Edges,
    Operand,
    Result,
    View,
    composed,
    extents,
    operand_view,
    permuted,
    related,
    reshaped,
    result_view,
    same,
    shifted,
    spread,
    whole,
)
from tilewright.workload.operator import Operator


@dataclass(frozen=True)
class Value:
    """What a node hands on: its name ("" for an input of the network) and its shape without the batch.

    Images are ``(channels, rows, columns)``, sequences ``(positions, features)``, vectors ``(features,)``. ``label``
    is what an input of the network is called: those of one label and shape are one. A value may be a part of what a
    node made, or show it under another shape: ``view`` is the tensor, of the shape ``made``, seen from the value, both
    with the batch; None where nobody can say.
    """

    name: str
    shape: tuple[int, ...]
    label: str = "input"
    made: tuple[int, ...] = ()
    view: View | None = None

    @property
    def words(self) -> int:
        """Words of one sample."""
        return prod(self.shape)

    def seen(self, pattern: str, **sizes: int) -> "Value":
        """Return the value with axes in another order, cut or merged: ``"p hd -> h p d"``, a letter for each part.

        ``sizes`` are those of all letters.
        """
        parts, outer = ([["batch"], *map(list, side.split())] for side in pattern.split("->"))
        shape = tuple(prod(sizes[letter] for letter in axis) for axis in outer[1:])
        return self._behind(related(parts, outer, {**sizes, "batch": self.made[0] if self.made else 1}), shape)

    def part(self, axis: int, start: int, size: int) -> "Value":
        """Return ``size`` places along an axis, from ``start`` on."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1:])
        return self._behind(shifted((*self.made[:1], *self.shape), axis + 1, start, extent=size), shape)

    def shaped(self, *shape: int) -> "Value":
        """Return the same words in the same order under another shape."""
        return self._behind(reshaped((*self.made[:1], *self.shape), (*self.made[:1], *shape)), shape)

    def _behind(self, seen: View | None, shape: tuple[int, ...]) -> "Value":
        return replace(self, shape=shape, view=self.view_through(seen, (*self.made[:1], *shape)))

    def view_through(self, seen: View | None, space: tuple[int, ...]) -> View | None:
        """Return the tensor seen from a ``space`` from which this value is ``seen``, its batch included."""
        return composed(seen, self.view, dict(enumerate(space)), (*self.made[:1], *self.shape), self.made)


@dataclass(frozen=True)
class Window:
    """How a convolution or a pooling slides."""

    kernel: Sizes
    stride: Sizes = 1
    padding: Padding = 0
    dilation: Sizes = 1
    groups: int = 1


Layer = Callable[["Sketch", Value], Value]
EXPERTS = "products of tokens spread evenly over experts: how they spread depends on the data"
LAYERS: dict[str, type[Layer]] = {}
"""The kinds of layers of a layer table by name; called, a layer draws itself behind a value and returns its own."""
Drawn = TypeVar("Drawn", bound=Layer)
Draw = TypeVar("Draw", bound=Callable[..., Value])


@dataclass_transform(frozen_default=True)
def layer(kind: str) -> Callable[[type[Drawn]], type[Drawn]]:
    """Make a class the record of a kind of layer: its fields are what a layer table may say."""

    def record(made: type[Drawn]) -> type[Drawn]:
        LAYERS[kind] = found = dataclass(frozen=True)(made)
        return found

    return record


def drawn_by(kind: str) -> Callable[[Draw], Draw]:
    """Make a function a kind of layer: its parameters after sketch and value are what a layer table may say."""
    def record(draw: Draw) -> Draw:
        def call(self: Any, s: "Sketch", x: Value) -> Value:
            return draw(s, x, **vars(self))

        said = [(one.name, one.annotation, field() if one.default is Parameter.empty else field(default=one.default))
                for one in list(signature(draw).parameters.values())[2:]]
        LAYERS[kind] = make_dataclass(draw.__name__, said, frozen=True,
                                     namespace={"__call__": call, "__doc__": draw.__doc__})
        return draw

    return record


class Sketch:
    """A network in the making. Every method adds a node and returns its `Value`."""

    def __init__(self, name: str, batch: int = 1) -> None:
        self.name = name
        self.batch = batch
        self.values: dict[str, Value] = {}
        self.renamed: list[str] = []
        """Names with numbers, as those that were asked for were taken."""
        self._nodes: list[Node] = []
        self._inputs: dict[tuple[str, tuple[int, ...]], str] = {}

    def with_batch(self, batch: int) -> "Sketch":
        """Return the same sketch for drawing nodes of another batch."""
        other = Sketch(self.name, batch)
        other.values, other.renamed, other._nodes, other._inputs = self.values, self.renamed, self._nodes, self._inputs
        return other

    def graph(self, source: str, notes: Sequence[str] = (), tokens: int = 0) -> Graph:
        """Return what has been drawn."""
        return Graph(self.name, tuple(self._nodes), source, tuple(notes), tokens)

    def conv(self, x: Value, name: str, out_channels: int, window: Window, *, tied: bool = False) -> Value:
        """Add a convolution over all axes behind the first; ``tied`` weights belong to another layer."""
        name = self._free(name)
        operator = convolution(
            name, batch=self.batch, in_channels=x.shape[0], out_channels=out_channels, in_size=x.shape[1:],
            kernel=window.kernel, stride=window.stride, padding=window.padding, dilation=window.dilation,
            groups=window.groups)
        if tied:
            operator = replace(operator, attributes=(*operator.attributes, ("weights", "tied")))
        sizes = operator.sizes
        spatial = tuple(sizes[d] for d in ("D", "P", "Q") if d in sizes)
        return self._mac(operator, [x], (out_channels, *spatial))

    def linear(self, x: Value, name: str, out_features: int, *, tied: bool = False, steps: int = 1) -> Value:
        """Add a fully connected layer; an image is flattened, each position of a sequence is a row.

        ``tied`` weights belong to another layer. ``steps`` > 1 runs the rows one after the other, ``steps`` times.
        """
        positions, features = (x.shape if len(x.shape) == 2 else (1, x.words))
        if steps > 1 and positions % steps:
            raise InputError(f"{name}.steps", f"must divide the {positions} positions", steps)
        operator = linear(self._free(name), rows=self.batch * positions // steps, in_features=features,
                          out_features=out_features)
        shape = (positions, out_features) if len(x.shape) == 2 else (out_features,)
        attributes = (("weights", "tied"),) if tied else ()
        return self._mac(replace(operator, attributes=attributes), [x], shape, steps)

    def matmul(self, name: str, readers: Sequence[Value], sizes: tuple[int, int, int, int], *, steps: int = 1,
               weights: str = "activations") -> Value:
        """Add a product, ``sizes`` = (products per sample, M, N, K), result ``(products*M, N)``.

        ``weights`` says what the right side is: ``activations``, the ``cache`` of keys and values, or ``experts``.
        """
        products, m, n, k = sizes
        operator = matmul(self._free(name), m=m, n=n, k=k, batch=self.batch * products)
        note = EXPERTS if weights == "experts" else ""
        if not note:
            operator = replace(operator, attributes=(("weights", weights),))
        return self._mac(operator, readers, (products * m * steps, n), steps, note)

    def attention(self, name: str, parts: tuple[Value, Value, Value], heads: tuple[int, int], *,
                  places: Value | None = None, weights: str = "activations") -> Value:
        """Add scaled dot-product attention of queries over keys and values; masks save no work here.

        ``heads`` are those of queries, and of keys and values (as many where 0), each of which is read once by the
        heads that share it: their queries are rows of one product. Scores of ``places`` are added to the others.
        Source: Vaswani et al., NeurIPS 2017, section 3.2; groups: Ainslie et al., GQA, EMNLP 2023, section 2.2.
        """
        (query, key, value), (count, groups) = parts, (heads[0], heads[1] or heads[0])
        if count % groups:
            raise InputError(f"{name}.groups", f"must divide the {count} heads", groups)
        if query.shape[1] % count:
            raise InputError(f"{name}.heads", f"must divide the {query.shape[1]} features of the queries", count)
        rows, columns, size = query.shape[0] * (count // groups), key.shape[0], query.shape[1] // count
        width = value.shape[1] // groups
        sizes = {"p": query.shape[0], "c": columns, "g": groups, "r": count // groups, "d": size, "w": width}
        query, turned = query.seen("p grd -> g rp d", **sizes), "c gd -> g d c"
        scores = self.matmul(f"{name}.scores", [query, key.seen(turned, **sizes)], (groups, rows, columns, size),
                             weights=weights)
        if places is not None:
            placed = self.matmul(f"{name}.position_scores", [query, places.seen(turned, **sizes)],
                                 (groups, rows, columns, size))
            scores = self.vector("add", scores, f"{name}.position_add", placed)
        shares = self.vector("softmax", self.vector("scale", scores, f"{name}.scale"), f"{name}.softmax")
        mixed = self.matmul(f"{name}.context", [shares, value.seen("c gw -> g c w", **sizes)],
                            (groups, rows, width, columns), weights=weights)
        return mixed.seen("grp w -> p grw", **sizes)

    def vector(self, kind: str, x: Value, name: str, *others: Value, steps: int = 1) -> Value:
        """Add elementwise work on ``x`` (and ``others``), as `OPERATIONS_PER_ELEMENT` counts it.

        ``others`` have its shape, or a word for each channel of an image (each position of a sequence).
        ``steps`` > 1 splits the same work into that many runs, one after the other.
        """
        name = self._free(name)
        if kind not in OPERATIONS_PER_ELEMENT:
            raise InputError(f"{name}.kind", f"must be one of {', '.join(OPERATIONS_PER_ELEMENT)}", kind)
        wrong = [other.shape for other in others if other.shape not in (x.shape, x.shape[:1])]
        if wrong:
            raise InputError(f"{name}.inputs", f"must all have the shape {x.shape}", wrong[0])
        words = self.batch * x.words // steps
        repeats = max(1, len(others))
        node = VectorOperator(name, kind, OPERATIONS_PER_ELEMENT[kind] * words * repeats,
                              self.batch * sum(v.words for v in (x, *others)) // steps, words, count=steps)
        full = (self.batch, *x.shape)
        first, space = whole(full, range(len(full))[_ROWS[kind]] if kind in _ROWS else ())
        seen = [first, *(same(full)[:len(other.shape) + 1] for other in others)]
        return self._add(node, x.shape, self._reads((x, *others), seen, space), space)

    def recurrence(self, given: Value, part: str, hidden: int) -> Value:
        """Add the product of a recurrent layer's state, once for each position of what is ``given`` by its input."""
        steps, wide = given.shape
        operator = linear(self._free(f"{part}.state"), rows=self.batch, in_features=hidden, out_features=wide)
        kept, weights = (extents(operator, tensor) for tensor in operator.operands)
        reads = [Operand(f"{part}.cell.hidden", "I", kept, "state", same(kept)),
                 Operand(f"{operator.name}.W", "W", weights, "weights", same(weights))]
        return self._add(MacNode(operator, (given.name,), steps), (steps, wide), reads)

    def cell(self, kind: str, gates: Sequence[Value], name: str, hidden: int) -> Value:
        """Add the vector work of a recurrent cell, one run for each position of its ``gates``."""
        steps = gates[0].shape[0]
        read = self.batch * sum(gate.words for gate in gates) // steps
        words = self.batch * hidden
        node = VectorOperator(self._free(name), kind, OPERATIONS_PER_ELEMENT[kind] * words, read + words, 2 * words,
                              count=steps)
        space = (self.batch, steps, hidden, gates[0].shape[1] // hidden)
        seen = (*same(space[:2]), AxisLink((Digit(3, hidden, extent=space[3]), Digit(2, extent=hidden))))
        reads = self._reads(gates, [seen] * len(gates), space)
        return self._add(node, (steps, hidden), [*reads, self._state(node.name, hidden)], space)

    def scan(self, parts: Sequence[Value], name: str, state: int) -> Value:
        """Add a selective scan over the first of ``parts``, with ``state`` words for each feature, read and kept."""
        name, (positions, features) = self._free(name), parts[0].shape
        kept = self.batch * features * state
        node = VectorOperator(name, "selective_scan", OPERATIONS_PER_ELEMENT["selective_scan"] * positions * kept,
                              self.batch * sum(part.words for part in parts) + features * state + kept,
                              self.batch * parts[0].words + kept)
        return self._add(node, parts[0].shape, [*self._reads(parts), self._state(name, features, state)])

    def pool(self, x: Value, name: str, kind: str, window: Window | None, *, ceil: bool = False) -> Value:
        """Add a pooling (``max`` or ``average``) over a window, or over all positions if ``window`` is None.

        ``ceil`` rounds the number of positions up: a last window may hang over the edge.
        """
        name = self._free(name)
        shape: tuple[int, ...]
        if window is None:
            shape, reach = (x.shape[0],), prod(x.shape[1:])
        else:
            spare = _spare(x, window) if ceil else (0,) * (len(x.shape) - 1)
            probe = convolution(name, in_channels=1, out_channels=1, kernel=window.kernel, stride=window.stride,
                                in_size=tuple(a + b for a, b in zip(x.shape[1:], spare, strict=True)),
                                padding=window.padding).sizes
            shape = (x.shape[0], *(probe[d] for d in ("D", "P", "Q") if d in probe))
            reach = prod(probe[d] for d in ("T", "R", "S") if d in probe)
        words = self.batch * prod(shape)
        node = VectorOperator(name, f"{kind}_pool", words * reach, self.batch * x.words, words)
        window = window or Window(x.shape[1:])
        rank = len(x.shape) - 1
        space = (self.batch, x.shape[0], *(shape[1:] or (1,) * rank), *_each(window.kernel, rank))
        sliding = zip(_each(window.stride, rank), _before(window.padding, rank), strict=True)
        seen = (*same(space[:2]), *(
            AxisLink((Digit(2 + axis, stride, extent=space[2 + axis]), Digit(2 + rank + axis,
                     extent=space[2 + rank + axis])), -pad) for axis, (stride, pad) in enumerate(sliding)))
        return self._add(node, shape, self._reads([x], [seen], space), space)

    def move(self, kind: str, sources: Sequence[Value], name: str, shape: tuple[int, ...],
             read_words: int | None = None) -> Value:
        """Add data movement: ``shape`` is written, the sources (or ``read_words`` of a sample) are read.

        Sources of that shape are what is written, in that order.
        """
        written = self.batch * prod(shape)
        read = self.batch * (sum(v.words for v in sources) if read_words is None else read_words)
        full = (self.batch, *shape)
        seen = [same(full) if source.shape == shape and kind != "gather" else
                _repeated(self.batch, source.shape, shape) if kind == "upsample" else None for source in sources]
        return self._add(DataMovement(self._free(name), kind, read, written), shape,
                         self._reads(sources, seen, full), full)

    def join(self, sources: Sequence[Value], name: str, axis: int, before: int = 0, *, kept: bool = False) -> Value:
        """Add values one after the other along an axis, behind ``before`` places that are learned or ``kept``."""
        at, ends = axis % len(sources[0].shape), [before]
        for source in sources:
            ends.append(ends[-1] + source.shape[at])
        full = (self.batch, *sources[0].shape[:at], ends[-1], *sources[0].shape[at + 1:])
        seen = [shifted((self.batch, *source.shape), at + 1, -start, extent=ends[-1])
                for source, start in zip(sources, ends, strict=False)]
        node = DataMovement(self._free(name), "concat", self.batch * sum(v.words for v in sources), prod(full))
        reads = self._reads(sources, seen, full)
        if kept:
            reads.append(self._state(node.name, *full[1:at + 1], before, *full[at + 2:]))
        return self._add(node, full[1:], reads, full)

    def append(self, x: Value, name: str, positions: int) -> Value:
        """Add ``x`` to a cache of earlier tokens, which then holds ``positions`` of them."""
        words, shape = self.batch * x.words, (positions, x.shape[1])
        held = (("cache", self.batch * prod(shape)),)
        node = DataMovement(self._free(name), "append", words, words, attributes=held)
        full = (self.batch, *shape)
        placed = shifted((self.batch, *x.shape), 1, x.shape[0] - positions, extent=positions)
        cache = replace(self._state(node.name, *shape), view=same(full))
        return self._add(node, shape, [*self._reads([x], [placed], full), cache], full)

    def table(self, name: str, entries: int, shape: tuple[int, int], *, shared: bool = False) -> Value:
        """Add a lookup of ``shape[0]`` rows in a table of ``entries`` rows of ``shape[1]`` words (an embedding).

        A ``shared`` table belongs to another layer.
        """
        words = self.batch * prod(shape)
        node = DataMovement(self._free(name), "embedding", words, words,
                            attributes=(("parameters", 0 if shared else entries * shape[1]),))
        rows = Operand(f"{node.name}.table", "0", (entries, shape[1]), "weights")
        return self._add(node, shape, [self._tied(rows) if shared else rows])

    def unmodelled(self, x: Value, node: Unmodelled, shape: tuple[int, ...]) -> Value:
        """Add a node that is only named (its inputs are ``x``)."""
        return self._add(replace(node, name=self._free(node.name)), shape, self._reads([x]))

    def value(self, path: str, name: str) -> Value:
        """Return what the node called ``name`` hands on."""
        if name not in self.values:
            raise InputError(path, "must name a layer above", name, f"Known: {', '.join(list(self.values)[-8:])}")
        return self.values[name]

    def _mac(self, operator: Operator, values: Sequence[Value], shape: tuple[int, ...], count: int = 1,
             note: str = "") -> Value:
        reads = []
        for tensor, value in zip(operator.operands, values, strict=False):
            full, around = (self.batch, *value.shape), extents(operator, tensor)
            seen = operand_view(operator, tensor, full) if count == 1 else None
            if value.made[:1] == (1,) and self.batch > 1:  # which the whole batch shares
                seen = composed(seen, spread((1, *value.shape), full), dict(enumerate(around)), full, (1, *value.shape))
            reads += self._reads([value], [seen], around, tensor.name)
        computed = dict(operator.attributes).get("weights") == "activations"
        for tensor in operator.operands[len(values):]:
            around = extents(operator, tensor)
            mine = Operand(f"{operator.name}.{tensor.name}", tensor.name, around, "input" if computed else "weights",
                           same(around))
            reads.append(self._tied(mine) if dict(operator.attributes).get("weights") == "tied" else mine)
        return self._add(MacNode(operator, (), count, note), shape, reads)

    def _tied(self, mine: Operand) -> Operand:
        """Return weights that belong to another layer.

        That is one of the same name but for its first number (``rpn2.conv`` and ``rpn1.conv``), or else a table of as
        many words; weights of their own where there is none.
        """
        known = (one for node in self._nodes if node.edges for one in node.edges.reads if one.kind == "weights")
        others = [one for one in known if one.shape and mine.shape and prod(one.shape) == prod(mine.shape)]
        like = [one for one in others if _plain(one.tensor) == _plain(mine.tensor)]
        found = next(iter([*like, *(one for one in others if one.tensor.endswith(".table"))]), mine)
        turned = permuted(found.shape or (), (1, 0)) if found.shape == (mine.shape or ())[::-1] else None
        return replace(mine, tensor=found.tensor, view=mine.view if found.shape == mine.shape else turned)

    def _reads(self, values: Sequence[Value], seen: Sequence[View | None] = (), space: Sequence[int] = (),
               name: str = "") -> list[Operand]:
        """Return values as operands, each ``seen`` from the ``space`` of their reader where that is known."""
        found = []
        for index, value in enumerate(values):
            source = value if value.name else self._input(value)
            view = source.view_through(seen[index], tuple(space)) if index < len(seen) else None
            given = None if value.name else source.made
            found.append(Operand(source.name, name or str(index), given, view=view))
        return found

    def _input(self, value: Value) -> Value:
        """Return an input of the network by its name; those of one label and shape are one."""
        made = (self.batch, *value.shape)
        name = self._inputs.setdefault((value.label, made), free_name(value.label, self._inputs.values()))
        return Value(name, value.shape, made=made, view=same(made))

    def _state(self, name: str, *shape: int) -> Operand:
        """Return what the node called ``name`` keeps from pass to pass (or step to step)."""
        return Operand(f"{name}.state", "state", (self.batch, *shape), "state")

    def _add(self, node: Node, shape: tuple[int, ...], reads: Sequence[Operand], space: tuple[int, ...] = ()) -> Value:
        """Add a node with its operands; what is appended shares the bytes of what it is appended to."""
        made = (self.batch, *shape)
        seen: View | None = same(made)
        if isinstance(node, MacNode):
            seen = result_view(node.operator, made) if node.count == 1 else None
        result = Result(node.name, made, reads[-1].tensor if node.kind == "append" else "", view=seen)
        inputs = node.inputs or tuple(dict.fromkeys(one.tensor for one in reads if one.shape is None))
        self._nodes.append(replace(node, inputs=inputs, edges=Edges(tuple(reads), (result,), space)))
        found = Value(node.name, shape, made=made, view=same(made))
        self.values[node.name] = found
        return found

    def _free(self, name: str) -> str:
        """Return ``name``, numbered if it is taken."""
        free = free_name(name, self.values)
        if free != name:
            self.renamed.append(free)
        return free


def _plain(name: str) -> str:
    """Return a name without its first number."""
    return re.sub(r"\d+", "", name, count=1)


def _each(value: Sizes, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _before(padding: Padding, rank: int) -> tuple[int, ...]:
    sides = (padding,) * rank if isinstance(padding, int) else padding
    return tuple(side if isinstance(side, int) else side[0] for side in sides)


def _repeated(batch: int, shape: tuple[int, ...], wide: tuple[int, ...]) -> View | None:
    """Return values seen where each place stands so many times; None where they are not all as often."""
    if any(large % small for small, large in zip(shape, wide, strict=True)):
        return None
    return (AxisLink((Digit(0, extent=batch),)), *(
        AxisLink((Digit(axis, 1, large // small, small),))
        for axis, (small, large) in enumerate(zip(shape, wide, strict=True), start=1)))


_ROWS = {**dict.fromkeys(("softmax", "layer_norm", "rms_norm", "topk", "rotary"), slice(-1, None)),
         "group_norm": slice(1, None), "local_response_norm": slice(1, 2)}
"""Axes along which all places are read for each word, of those with the batch."""


def _spare(x: Value, window: Window) -> tuple[int, ...]:
    """Rows to add at the far edge so that flooring gives the ceiling of the number of positions."""
    spare = []
    for axis, size in enumerate(x.shape[1:]):
        kernel, stride = (v if isinstance(v, int) else v[axis] for v in (window.kernel, window.stride))
        padding = window.padding if isinstance(window.padding, int) else window.padding[axis]
        both = 2 * padding if isinstance(padding, int) else sum(padding)
        spare.append(-(size + both - kernel) % stride)
    return tuple(spare)

"""Layers that work on sequences and vectors: embeddings, transformers, recurrent layers, attention.

Kinds like those of `layers_image.py`. Sequences are (positions, features), vectors (features,).
"""

from math import prod
from typing import Literal

from tilewright.base import InputError
from tilewright.workload.graph import Unmodelled
from tilewright.workload.layers_image import expand
from tilewright.workload.sketch import Sketch, Value, Window, drawn_by, layer


@layer("linear")
class Linear:
    """A fully connected layer, followed by its activation where there is one.

    ``tied`` weights are those of an embedding; ``steps`` runs its positions in so many runs, one after the other.
    """

    name: str
    out: int
    activation: str = ""
    tied: bool = False
    steps: int = 1

    def __call__(self, s: Sketch, x: Value) -> Value:
        y = s.linear(x, self.name, self.out, tied=self.tied, steps=self.steps)
        if not self.activation:
            return y
        return s.vector(self.activation, y, f"{self.name}.{self.activation}", steps=self.steps)


@layer("mlp")
class Mlp:
    """Fully connected layers of these widths; the activation of the last one is ``last``."""

    name: str
    widths: list[int]
    activation: str = "relu"
    last: str = ""

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index, width in enumerate(self.widths, start=1):
            kind = self.activation if index < len(self.widths) else self.last
            x = Linear(f"{self.name}.{index}", width, kind)(s, x)
        return x


@layer("matmul")
class Matmul:
    """A matrix product on its own, M x K times K x N, ``batch`` of them; the shape that it reads does not matter."""

    name: str
    m: int
    n: int
    k: int
    batch: int = 1

    def __call__(self, s: Sketch, x: Value) -> Value:
        return s.matmul(self.name, [x], (self.batch, self.m, self.n, self.k))


@drawn_by("matmul_list")
def matmul_list(s: Sketch, x: Value, name: str, rows: list[str]) -> Value:
    """Independent matrix products, a line each: M N K and the transposes (``nn``, ``tn``, ``nt``), which cost nothing.

    A comma-separated list in place of a field stands for one product each.
    """
    for index, (m, n, k, transposes) in enumerate(expand(f"{name}.rows", rows, 3, 1)):
        own = f"{name}_m{m}_n{n}_k{k}_{transposes}"
        x = s.linear(Value("", (int(m), int(k)), f"{name}.{index}"), own, int(n))
    return x


@drawn_by("vector")
def vector(s: Sketch, x: Value, name: str, kind: str, other: str = "") -> Value:
    """Elementwise work of one kind on ``x``, and on ``other`` where it has two operands."""
    others = [s.value(f"{name}.other", other)] if other else []
    return s.vector(kind, x, name, *others)


@drawn_by("concat")
def concat(s: Sketch, x: Value, name: str, others: list[str]) -> Value:
    """Vectors, or sequences along their features, side by side."""
    sources = [x, *(s.value(f"{name}.others", other) for other in others)]
    return s.join(sources, name, -1)


@drawn_by("select")
def select(s: Sketch, x: Value, name: str, positions: int) -> Value:
    """Take the first ``positions`` of a sequence."""
    shape = (positions, x.shape[1])
    return s.move("slice", [x.part(0, 0, positions)], name, shape, read_words=shape[0] * shape[1])


@drawn_by("rearrange")
def rearrange(s: Sketch, x: Value, name: str, shape: list[int]) -> Value:
    """Put the same words in another order, under another shape."""
    y = s.move("transpose", [x], name, tuple(shape))
    if y.words != x.words:
        raise InputError(f"{name}.shape", f"must hold {x.words} words", shape)
    return y


@layer("embedding")
class Embedding:
    """Each position looked up in every table (of so many entries), the rows found added.

    ``shared`` tables belong to another layer. Indices are too few to be counted.
    """

    name: str
    positions: int
    width: int
    tables: list[int]
    shared: bool = False

    def __call__(self, s: Sketch, x: Value) -> Value:
        rows = [s.table(f"{self.name}.{index}", entries, (self.positions, self.width), shared=self.shared)
                for index, entries in enumerate(self.tables)]
        return s.vector("add", rows[0], f"{self.name}.add", *rows[1:]) if len(rows) > 1 else rows[0]


@layer("embedding_bag")
class EmbeddingBag:
    """One row of each of ``count`` tables of ``entries`` rows: ``(count, width)``, or a vector where count is 1."""

    name: str
    count: int
    entries: int
    width: int

    def __call__(self, s: Sketch, x: Value) -> Value:
        rows = s.table(self.name, self.count * self.entries, (self.count, self.width))
        return rows if self.count > 1 else rows.shaped(self.width)


@drawn_by("sequence")
def image_to_sequence(s: Sketch, x: Value, name: str) -> Value:
    """See an image (channels, rows, columns) as a sequence (columns, channels * rows)."""
    channels, rows, columns = x.shape
    turned = x.seen("c r q -> q cr", c=channels, r=rows, q=columns)
    return s.move("transpose", [turned], name, turned.shape)


@drawn_by("tokens")
def tokens(s: Sketch, x: Value, name: str, learned: int = 0) -> Value:
    """Make a sequence of the positions of an image or of sound: their channels, each with a learned place added.

    ``learned`` tokens stand before them. Source: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021,
    section 3.1.
    """
    rows = x.shaped(x.shape[0], prod(x.shape[1:]))
    turned = rows.seen("c p -> p c", c=rows.shape[0], p=rows.shape[1])
    y = s.move("transpose", [turned], name, turned.shape)
    shape = (y.shape[0] + learned, x.shape[0])
    if learned:
        y = s.join([y], f"{name}.concat", 0, learned)
    places = s.table(f"{name}.places", shape[0] + learned, shape)
    return s.vector("add", y, f"{name}.add", places)


@drawn_by("lookahead")
def lookahead(s: Sketch, x: Value, name: str, context: int) -> Value:
    """Draw a lookahead convolution: each feature mixes its own next ``context`` positions.

    Source: Amodei et al., Deep Speech 2, ICML 2016, equation 2 (row convolution).
    """
    positions, features = x.shape
    window = Window([context + 1], [1], [(0, context)], [1], groups=features)
    y = s.conv(x.seen("p f -> f p", p=positions, f=features), name, features, window)
    return y.seen("f p -> p f", p=positions, f=features)


@layer("transformer")
class Transformer:
    """Transformer blocks: attention and feed-forward, each with a residual and a normalisation.

    Parameters
    ----------
    memory
        Positions kept from the segment before, to which the keys and values extend.
    relative
        Scores of relative positions are a second product with projected position encodings (Dai et al.,
        Transformer-XL, ACL 2019, section 3.3).
    cross
        Name of the value that a second attention in every block attends to (decoders).
    shared
        Whether all blocks have the weights of the first (Lan et al., ALBERT, ICLR 2020, section 3.1).
    groups
        Heads of keys and values, each for an equal share of the ``heads``; as many where 0.
    """

    name: str
    repeat: int
    heads: int
    feedforward: int
    head_size: int = 0
    activation: str = "gelu"
    norm: str = "layer_norm"
    memory: int = 0
    relative: bool = False
    cross: str = ""
    shared: bool = False
    groups: int = 0

    def __call__(self, s: Sketch, x: Value) -> Value:
        other = s.value(f"{self.name}.cross", self.cross) if self.cross else None
        for index in range(self.repeat):
            block = f"{self.name}.{index}"
            keys = x
            if self.memory:
                keys = s.join([x], f"{block}.memory", 0, self.memory, kept=True)
            tied = self.shared and index > 0
            x = self._normed(s, x, self._attention(s, x, keys, f"{block}.attention", tied), f"{block}.attention")
            if other is not None:
                x = self._normed(s, x, self._attention(s, x, other, f"{block}.cross", tied), f"{block}.cross")
            y = s.linear(x, f"{block}.ff1", self.feedforward, tied=tied)
            y = s.vector(self.activation, y, f"{block}.{self.activation}")
            x = self._normed(s, x, s.linear(y, f"{block}.ff2", x.shape[1], tied=tied), f"{block}.ff")
        return x

    def _normed(self, s: Sketch, x: Value, y: Value, name: str) -> Value:
        return s.vector(self.norm, s.vector("add", y, f"{name}.add", x), f"{name}.norm")

    def _attention(self, s: Sketch, x: Value, keys: Value, name: str, tied: bool) -> Value:
        """Attention of ``x`` over ``keys`` with its projections."""
        size = self.head_size or x.shape[1] // self.heads
        inner, held = self.heads * size, (self.groups or self.heads) * size
        query = s.linear(x, f"{name}.query", inner, tied=tied)
        key = s.linear(keys, f"{name}.key", held, tied=tied)
        value = s.linear(keys, f"{name}.value", held, tied=tied)
        places = None
        if self.relative:
            known = Value("", (keys.shape[0], x.shape[1]), "positions")
            places = s.with_batch(1).linear(known, f"{name}.position", held)
        mixed = s.attention(name, (query, key, value), (self.heads, self.groups), places=places)
        return s.linear(mixed, f"{name}.output", x.shape[1], tied=tied)


@layer("mobilebert")
class MobileBert:
    """Transformer blocks within bottlenecks, with a ``stack`` of feed-forward layers of the narrow ``width``.

    Queries and keys are of a narrow copy, values of the wide one. Source: Sun et al., MobileBERT, ACL 2020, section 3,
    table 1.
    """

    name: str
    repeat: int
    heads: int
    width: int
    feedforward: int
    stack: int = 4

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            x = self._block(s, x, f"{self.name}.{index}")
        return x

    def _block(self, s: Sketch, x: Value, block: str) -> Value:
        narrow, shared = (s.linear(x, f"{block}.bottleneck.{part}", self.width) for part in ("input", "attention"))
        query, key = (s.linear(shared, f"{block}.attention.{part}", self.width) for part in ("query", "key"))
        value = s.linear(x, f"{block}.attention.value", self.width)
        y = s.linear(s.attention(f"{block}.attention", (query, key, value), (self.heads, 0)),
                     f"{block}.attention.output", self.width)
        y = s.vector("add", y, f"{block}.attention.add", narrow)
        for place in range(self.stack):
            part = f"{block}.ff{place}"
            inner = s.vector("relu", s.linear(y, f"{part}.1", self.feedforward), f"{part}.relu")
            y = s.vector("add", s.linear(inner, f"{part}.2", self.width), f"{part}.add", y)
        return s.vector("add", s.linear(y, f"{block}.bottleneck.output", x.shape[1]), f"{block}.add", x)


@layer("recurrent")
class Recurrent:
    """Recurrent layers over the positions of a sequence.

    The product with the input runs over all positions at once, that with the state once a position; both once a
    position where the layer is ``stepwise`` (a decoder, whose next input is not known yet). Two directions are
    concatenated or summed.
    """

    name: str
    cell: Literal["lstm", "gru", "rnn"]
    hidden: int
    directions: Literal[1, 2] = 1
    join: Literal["concat", "sum"] = "concat"
    stepwise: bool = False
    repeat: int = 1

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            x = self._layer(s, x, f"{self.name}.{index}" if self.repeat > 1 else self.name)
        return x

    def _layer(self, s: Sketch, x: Value, layer: str) -> Value:
        steps, wide = x.shape[0], {"lstm": 4, "gru": 3, "rnn": 1}[self.cell] * self.hidden
        ends = []
        for direction in ("forward", "backward")[:self.directions]:
            part = f"{layer}.{direction}" if self.directions > 1 else layer
            given = s.linear(x, f"{part}.input", wide, steps=steps if self.stepwise else 1)
            state = s.recurrence(given, part, self.hidden)
            ends.append(s.cell(f"{self.cell}_cell", [given, state], f"{part}.cell", self.hidden))
        if len(ends) == 1:
            return ends[0]
        if self.join == "sum":
            return s.vector("add", ends[0], f"{layer}.add", ends[1])
        return s.join(ends, f"{layer}.concat", 1)


@drawn_by("additive_attention")
def additive_attention(s: Sketch, x: Value, name: str, keys: str, width: int) -> Value:
    """Attention of queries to ``keys`` step by step with additive scores; hands on (steps, features of the keys).

    Source: Bahdanau et al., ICLR 2015, section 3.1, as used by GNMT (Wu et al., arXiv:1609.08144, equation 4).
    """
    memory = s.value(f"{name}.keys", keys)
    steps, columns = x.shape[0], memory.shape[0]
    projected = s.linear(memory, f"{name}.keys", width)
    query = s.linear(x, f"{name}.query", width, steps=steps)
    flat = (steps * columns, width)
    mixed = s.vector("tanh", Value(query.name, flat), f"{name}.tanh", steps=steps)
    scores = s.linear(Value(mixed.name, flat), f"{name}.scores", 1, steps=steps)
    weights = s.vector("softmax", Value(scores.name, (steps, columns)), f"{name}.softmax", steps=steps)
    return s.matmul(f"{name}.context", [weights, projected], (1, 1, memory.shape[1], columns), steps=steps)


@drawn_by("interaction")
def interaction(s: Sketch, x: Value, name: str, others: list[str]) -> Value:
    """Products of every pair of vectors (``x`` and the rows of ``others``), one half of them joined to ``x``.

    Source: Naumov et al., DLRM, arXiv:1906.00091, section 2.1.
    """
    sources = [x, *(s.value(f"{name}.others", other) for other in others)]
    width = x.shape[-1]
    count = sum(v.words for v in sources) // width
    joined = s.join([v.shaped(v.words // width, width) for v in sources], f"{name}.concat", 0)
    turned = joined.seen("c w -> w c", c=count, w=width)
    product = s.matmul(f"{name}.product", [joined, turned], (1, count, count, width))
    return s.move("concat", [x, product], f"{name}.pairs", (x.words + count * (count - 1) // 2,))


@layer("omitted")
class Omitted:
    """A node that is not modelled: why, and what it would weigh as far as known; it hands on what it reads."""

    name: str
    kind: str
    reason: str
    macs: int | None = None
    words: int | None = None

    def __call__(self, s: Sketch, x: Value) -> Value:
        return s.unmodelled(x, Unmodelled(self.name, self.kind, self.reason, self.macs, self.words), x.shape)

"""Blocks of language models of today, which keep what they know of earlier tokens.

Records like those of `layers_image.py`. Sequences are (positions, features).
"""

from tilewright.base import InputError
from tilewright.workload.sketch import Sketch, Value, Window, layer


@layer("decoder")
class Decoder:
    """Blocks of a causal language model: grouped-query attention over a cache, and a gated feed-forward.

    Norms stand before both, and residuals around them. Source: Touvron et al., LLaMA, arXiv:2302.13971, section 2.2;
    groups: Ainslie et al., GQA, EMNLP 2023, section 2.2; experts: Jiang et al., Mixtral, arXiv:2401.04088, section 2.1.

    Parameters
    ----------
    context
        Tokens that the last one attends to, itself included: keys and values of those that are read now are appended to
        the cache, from which all are read.
    groups
        Heads of keys and values (one for multi-query attention), each for an equal share of the ``heads``; as many
        where 0.
    experts, active
        Feed-forwards to choose from, and those that each token is sent to; no choice where 0. Tokens spread evenly.
    """

    name: str
    repeat: int
    heads: int
    feedforward: int
    context: int
    groups: int = 0
    head_size: int = 0
    activation: str = "silu"
    norm: str = "rms_norm"
    experts: int = 0
    active: int = 0

    def __call__(self, s: Sketch, x: Value) -> Value:
        if self.context < x.shape[0]:
            raise InputError(f"{self.name}.context", f"must be at least the {x.shape[0]} positions", self.context)
        if not min(1, self.experts) <= self.active <= self.experts:
            raise InputError(f"{self.name}.active", f"must be from 1 to the {self.experts} experts" if self.experts else
                             "must be left out without experts", self.active)
        for index in range(self.repeat):
            block = f"{self.name}.{index}"
            y = self._attention(s, s.vector(self.norm, x, f"{block}.attention.norm"), f"{block}.attention")
            x = s.vector("add", y, f"{block}.attention.add", x)
            y = s.vector(self.norm, x, f"{block}.ff.norm")
            y = self._mixture(s, y, f"{block}.ff") if self.experts else self._feedforward(s, y, f"{block}.ff")
            x = s.vector("add", y, f"{block}.ff.add", x)
        return x

    def _attention(self, s: Sketch, x: Value, name: str) -> Value:
        size = self.head_size or x.shape[1] // self.heads
        shared = (self.groups or self.heads) * size
        query = s.vector("rotary", s.linear(x, f"{name}.query", self.heads * size), f"{name}.query.rotary")
        key = s.vector("rotary", s.linear(x, f"{name}.key", shared), f"{name}.key.rotary")
        value = s.linear(x, f"{name}.value", shared)
        key, value = (s.append(part, f"{name}.{kind}.append", self.context)
                      for kind, part in (("key", key), ("value", value)))
        mixed = s.attention(name, (query, key, value), (self.heads, self.groups), weights="cache")
        return s.linear(mixed, f"{name}.output", x.shape[1])

    def _feedforward(self, s: Sketch, x: Value, name: str) -> Value:
        gate, up = (s.linear(x, f"{name}.{part}", self.feedforward) for part in ("gate", "up"))
        return s.linear(self._gated(s, gate, up, name), f"{name}.down", x.shape[1])

    def _gated(self, s: Sketch, gate: Value, up: Value, name: str) -> Value:
        return s.vector("multiply", s.vector(self.activation, gate, f"{name}.{self.activation}"), f"{name}.gated", up)

    def _mixture(self, s: Sketch, x: Value, name: str) -> Value:
        """Send each token to its experts: as many rows for each as it goes, all sequences together."""
        (positions, width), choices = x.shape, (x.shape[0] * self.active, x.shape[1])
        weights = s.vector("softmax", s.linear(x, f"{name}.router", self.experts), f"{name}.router.softmax")
        chosen = s.vector("topk", weights, f"{name}.router.topk")
        sent = s.move("gather", [x, chosen], f"{name}.gather", choices, read_words=choices[0] * width)
        every, made = s.with_batch(1), []
        for index, (count, rows) in enumerate(spread_evenly(s.batch * choices[0], self.experts)):
            part = f"{name}.experts" + (".rest" if index else "")
            gate, up = (every.matmul(f"{part}.{each}", [sent], (count, rows, self.feedforward, width),
                                     weights="experts") for each in ("gate", "up"))
            inner = self._gated(every, gate, up, part)
            made.append(every.matmul(f"{part}.down", [inner], (count, rows, width, self.feedforward),
                                     weights="experts"))
        back = s.move("gather", made, f"{name}.return", choices, read_words=choices[0] * width)
        scaled = Value(s.vector("scale", back, f"{name}.scale").name, (positions, width))
        return s.vector("add", scaled, f"{name}.sum", *[scaled] * (self.active - 1)) if self.active > 1 else scaled


@layer("mamba")
class Mamba:
    """Blocks of a selective state space in place of attention, which keep their state between passes.

    The scan over positions is vector work; the convolution keeps ``kernel`` - 1 positions. Source: Gu, Dao, Mamba,
    arXiv:2312.00752, section 3.4 and algorithm 2.
    """

    name: str
    repeat: int
    state: int = 16
    expand: int = 2
    kernel: int = 4
    rank: int = 0

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            block = f"{self.name}.{index}"
            y = self._mixer(s, s.vector("rms_norm", x, f"{block}.norm"), block)
            x = s.vector("add", y, f"{block}.add", x)
        return x

    def _mixer(self, s: Sketch, x: Value, block: str) -> Value:
        (rows, width), inner = x.shape, self.expand * x.shape[1]
        rank = self.rank or -(-width // 16)
        both = s.linear(x, f"{block}.input", 2 * inner)
        gate = s.vector("silu", both.part(1, inner, inner), f"{block}.gate")
        turned = both.part(1, 0, inner).seen("p f -> f p", p=rows, f=inner)
        window = s.join([turned], f"{block}.window", 1, self.kernel - 1, kept=True)
        y = s.conv(window, f"{block}.conv", inner, Window([self.kernel], groups=inner))
        y = s.vector("silu", y.seen("f p -> p f", p=rows, f=inner), f"{block}.conv.silu")
        chosen = s.linear(y, f"{block}.choose", rank + 2 * self.state)
        steps = s.vector("softplus", s.linear(chosen.part(1, 0, rank), f"{block}.step", inner),
                         f"{block}.step.softplus")
        sides = chosen.part(1, rank, 2 * self.state)
        scanned = s.scan([y, steps, sides], f"{block}.scan", self.state)
        return s.linear(s.vector("multiply", scanned, f"{block}.gated", gate), f"{block}.output", width)


def spread_evenly(rows: int, experts: int) -> list[tuple[int, int]]:
    """Return how rows spread over experts as evenly as they go: (experts, rows of each), without idle ones.

    >>> spread_evenly(14, 4), spread_evenly(2, 8)
    ([(2, 4), (2, 3)], [(2, 1)])
    """
    each, more = divmod(rows, experts)
    return [(count, size) for count, size in ((more, each + 1), (experts - more, each)) if count and size]

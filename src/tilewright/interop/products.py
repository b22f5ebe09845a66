"""Matrix products of foreign networks: which axes of their tensors are rows, columns, depth and batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tilewright.interop.scene import NodeView, Shape
from tilewright.workload import AxisLink, Letters, View, related


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product of tensors, told by named parts: of each axis of its two sides and its result.

    ``dimensions`` are the parts of B, M, N and K, ``sizes`` those of all parts.
    """

    left: Letters
    right: Letters
    out: Letters
    dimensions: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]
    sizes: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Sizes of B, M, N and K."""
        b, m, n, k = (prod(self.sizes[part] for part in parts) for parts in self.dimensions)
        return b, m, n, k

    @property
    def turned(self) -> "MatrixProduct":
        """The same of transposes: the right side comes first."""
        b, m, n, k = self.dimensions
        return MatrixProduct(self.right, self.left, self.out, (b, n, m, k), self.sizes)

    def views(self) -> tuple[View, View, View]:
        """Return both sides seen from the axes of I and W, and the axes of O seen from the result."""
        b, m, n, k = self.dimensions
        columns = [b, k, n] if self.shape[0] > 1 else [k, n]
        return (related(self.left, [b, m, k], self.sizes), related(self.right, columns, self.sizes),
                related([b, m, n], self.out, self.sizes))


def rows_by_columns(x: Shape, columns: Sequence[int]) -> MatrixProduct:
    """Return the product of a tensor, along its last axis, with weights (columns, depth)."""
    parts = [f"m{axis}" for axis in range(len(x) - 1)]
    wide = [f"n{axis}" for axis in range(len(columns))]
    axes, ends = [[part] for part in parts], [[part] for part in wide]
    return MatrixProduct([*axes, ["k"]], [*ends, ["k"]], [*axes, *ends], ((), parts, wide, ["k"]),
                   dict(zip([*parts, "k", *wide], [*x, *columns], strict=True)))


def shared(given: MatrixProduct, axes: Sequence[Sequence[tuple[int, bool]]]) -> MatrixProduct:
    """Return a product whose right side has axes that repeat matrices: their repetitions are rows of one matrix."""
    sizes, cut, repeats = dict(given.sizes), dict[str, list[str]](), list[str]()
    for parts, factors in zip(given.right, axes, strict=True):
        if any(again for _, again in factors) and len(parts) == 1:
            cut[parts[0]] = [f"{parts[0]}.{place}" for place in range(len(factors))]
            sizes |= dict(zip(cut[parts[0]], (size for size, _ in factors), strict=True))
            repeats += [f"{parts[0]}.{place}" for place, (_, again) in enumerate(factors) if again]

    def spelled(axis: Sequence[str]) -> list[str]:
        return [part for one in axis for part in cut.get(one, [one])]

    batch, m, n, k = (spelled(parts) for parts in given.dimensions)
    batch = [part for part in batch if part not in repeats]
    left, right, out = ([spelled(axis) for axis in side] for side in (given.left, given.right, given.out))
    return MatrixProduct(left, right, out, (batch, [*repeats, *m], n, k), sizes)


def fold(node: NodeView, a: Shape, b: Shape) -> MatrixProduct:
    """Return a NumPy-style product: axes that one side broadcasts are rows (or columns) of the other."""
    plain = len(a) > 1, len(b) > 1
    if not a or not b:
        raise node.error("must not multiply scalars", (a, b))
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise node.error("must have inner sizes that agree", (a, b))
    rank = max(len(a), len(b))
    outer_a, outer_b = ((1,) * (rank - len(s)) + s[:-2] for s in (a, b))
    parts: dict[str, list[str]] = {"b": [], "m": [], "n": []}
    sizes, left, right = {"m": a[-2], "n": b[-1], "k": a[-1]}, list[list[str]](), list[list[str]]()
    for axis, (p, q) in enumerate(zip(outer_a, outer_b, strict=True)):
        if p != q and 1 not in (p, q):
            raise node.error("must have batch axes that agree or are 1", (a, b))
        mark = "b" if p == q else "m" if q == 1 else "n"
        part = f"{mark}{axis}"
        parts[mark].append(part)
        sizes[part] = max(p, q)
        left.append([part] if mark != "n" else [])
        right.append([part] if mark != "m" else [])
    out = [[*one, *(part for part in two if part not in one)] for one, two in zip(left, right, strict=True)]
    m, n = [["m"]] if plain[0] else [], [["n"]] if plain[1] else []
    left, right = left[rank - len(a):] + m + [["k"]], [*right[rank - len(b):], ["k"], *n]
    return MatrixProduct(left, right, out + m + n, (parts["b"], [*parts["m"], "m"], [*parts["n"], "n"], ["k"]), sizes)


def heads_seen(node: NodeView, sides: Sequence[str], sizes: Mapping[str, int]) -> tuple[View | None, ...]:
    """Return queries, keys and values seen from the products of attention, and the last product from the result.

    Parts are ``g`` groups of ``r`` heads, ``p`` and ``c`` positions of queries and keys, ``d`` and ``w`` features. Axes
    are (batch ..., heads, positions, features), or (batch, positions, features of all heads).
    """
    first = node.scene.shapes.get(sides[0], ())
    count = sizes["g"] * sizes["r"]
    merged = count > 1 and len(first) == 3 and first[1:] == (sizes["p"], count * sizes["d"])
    lead = ["b0"] if merged else [f"b{axis}" for axis in range(len(first) - 3)]
    known = {**sizes, **dict(zip(lead, first, strict=False))}
    batch, found = [*lead, "g"], list[View | None]()
    alone = prod(known[part] for part in batch) == 1  # then the right sides have no batch
    outer = ([batch, ["r", "p"], ["d"]], [batch, ["d"], ["c"]][alone:], [batch, ["c"], ["w"]][alone:])
    ends = zip((*sides, node.outputs[0]), (("p", "d"), ("c", "d"), ("c", "w"), ("p", "w")), strict=True)
    for index, (name, (place, word)) in enumerate(ends):
        shape = node.scene.shapes.get(name, ())
        heads = _heads_of(node, name, merged, known, word)
        axes = [*([part] for part in lead), *([[place], [*heads, word]] if merged else [heads, [place], [word]])]
        if not merged and len(shape) == 2:
            axes = [[place], [word]]
        if not heads or len(axes) != len(shape):
            found.append(None)
        elif index == 3:
            found.append(related([batch, ["r", "p"], ["w"]], axes, known))
        else:
            at, view = axes.index([place]), related(axes, outer[index], known)
            link = AxisLink(view[at].digits, shape[at] - known[place])  # behind those of the past
            found.append((*view[:at], link, *view[at + 1:]))
    return tuple(found)


def _heads_of(node: NodeView, name: str, merged: bool, sizes: Mapping[str, int], word: str) -> list[str]:
    """Return the parts of heads that a tensor has: only groups, or every head; nothing where that is not known."""
    shape = node.scene.shapes.get(name, ())
    if len(shape) < 3:
        return ["g", "r"]
    count = shape[-1] // max(1, sizes[word]) if merged else shape[-3]
    factors = node.scene.arranged.get(name, ())[-3:-2]
    if any(again and not later for axis in factors for (_, again), (_, later) in pairwise(axis)):
        return []  # not those of a group side by side
    return ["g"] if count == sizes["g"] else ["g", "r"] if count == sizes["g"] * sizes["r"] else []

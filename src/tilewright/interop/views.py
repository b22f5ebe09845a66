"""How what foreign nodes read is what they make: nodes that only move words, work on each word, or on rows of words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tilewright.base import InputError
from tilewright.interop.scene import NodeView, Shape, Unsupported
from tilewright.workload import (
    AxisLink,
    Digit,
    View,
    permuted,
    reshaped,
    same,
    shifted,
    spread,
    whole,
)


@dataclass(frozen=True)
class Seen:
    """The views of one node: of its operands in the order of its inputs, of its results, and the space between.

    Inputs behind the last view that is given have none that is known.
    """

    operands: tuple[View | None, ...]
    space: Shape
    results: tuple[View | None, ...]


def found(find: Callable[[NodeView], Seen | None] | None, node: NodeView) -> Seen | None:
    """Return what ``find`` says of a node; None where it, or a shape, is not known, or the node contradicts itself.

    The last is told by what translates the node.
    """
    names = (*node.inputs[:1], *node.outputs[:1])
    if find is None or not node.inputs or any(name not in node.scene.shapes for name in names):
        return None
    try:
        return find(node)
    except (InputError, Unsupported, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _of(node: NodeView, *views: View | None) -> Seen:
    """Return views from the one result of a node."""
    return Seen(views, node.out(), (same(node.out()),))


def kept(node: NodeView) -> Seen:
    """See words in the same order, whatever the shape."""
    return _of(node, reshaped(node.shape(0), node.out()))


def turned(node: NodeView, order: Sequence[int]) -> Seen:
    """See axes in another order."""
    return _of(node, permuted(node.shape(0), [axis % len(order) for axis in order]))


def exchanged(node: NodeView, first: int, second: int) -> Seen:
    """See two axes in one another's place."""
    order = list(range(len(node.shape(0))))
    if order:
        order[first], order[second] = order[second], order[first]
    return turned(node, order)


def cut(node: NodeView, starts: Sequence[tuple[int, int, int]]) -> Seen:
    """See parts of axes: of each of them its axis, the first place and the step."""
    found = list(same(node.shape(0)))
    for axis, start, step in starts:
        size = node.shape(0)[axis]
        at = min(max(0, start + size if start < 0 else start), size)
        found[axis] = AxisLink((Digit(axis % len(found), step, extent=node.out()[axis]),), at)
    return _of(node, tuple(found) if all(step > 0 for _, _, step in starts) else None)


def picked(node: NodeView, axis: int, index: int) -> Seen:
    """See one place of an axis, which the result lacks."""
    shape = node.shape(0)
    return _of(node, _place(shape, axis % len(shape), index % shape[axis]))


def _place(shape: Shape, axis: int, index: int) -> View:
    """Return a tensor seen at one place of an axis, from all others."""
    return tuple(AxisLink((), index) if at == axis else AxisLink((Digit(at - (at > axis), extent=size),))
                 for at, size in enumerate(shape))


def joined(node: NodeView, axis: int) -> Seen:
    """See tensors one after the other along an axis."""
    views, at, out = list[View | None](), 0, node.out()
    for index in range(len(node.inputs)):
        shape = node.shape(index)
        views.append(shifted(shape, axis % len(out), -at, extent=out[axis]))
        at += shape[axis]
    return _of(node, *views)


def parted(node: NodeView, axis: int) -> Seen:
    """See each of several results as the places of an axis behind those of the one before; one where they lack it."""
    space, at, views = node.shape(0), 0, list[View | None]()
    for index in range(len(node.outputs)):
        lacks, size = len(node.out(index)) < len(space), 1
        if lacks:
            views.append(_place(space, axis % len(space), at))
        else:
            size = node.out(index)[axis]
            views.append(shifted(space, axis % len(space), at, extent=size))
        at += size
    return Seen((same(space),), space, tuple(views))


def padded(node: NodeView, before: Sequence[int]) -> Seen:
    """See a tensor behind so much padding along each axis (less than none crops it)."""
    return _of(node, tuple(AxisLink((Digit(axis, extent=size),), -pad)
                           for axis, (size, pad) in enumerate(zip(node.out(), before, strict=True))))


def placed_last(node: NodeView, axis: int) -> Seen:
    """See a tensor at the end of an axis of the result."""
    shape, out = node.shape(0), node.out()
    return _of(node, shifted(shape, axis % len(out), shape[axis] - out[axis], extent=out[axis]))


def broadcast(node: NodeView) -> Seen:
    """See operands as NumPy broadcasts them."""
    return _of(node, *(spread(node.scene.shapes[name], node.out()) if name in node.scene.shapes else None
                       for name in node.inputs))


def rows(node: NodeView, axes: Iterable[int]) -> Seen:
    """See all places of some axes for each word of a result of the same shape."""
    view, space = whole(node.shape(0), [axis % len(node.shape(0)) for axis in axes])
    return Seen((view,), space, (same(node.out()),))


def reduced(node: NodeView, axes: Sequence[int]) -> Seen:
    """See all places of the axes that the result lacks, or has one place of; of all axes where none are named."""
    shape, out = node.shape(0), node.out()
    gone = {axis % len(shape) for axis in axes} or set(range(len(shape)))
    stays = [axis for axis in range(len(shape)) if axis not in gone]
    places = {axis: index if len(out) < len(shape) else axis for index, axis in enumerate(stays)}
    places |= {axis: len(out) + index for index, axis in enumerate(sorted(gone))}
    view = tuple(AxisLink((Digit(places[axis], extent=size),)) for axis, size in enumerate(shape))
    return Seen((view,), (*out, *(shape[axis] for axis in sorted(gone))), (same(out),))


def windows(node: NodeView, kernel: Sequence[int], stride: Sequence[int], before: Sequence[int],
            dilation: Sequence[int]) -> Seen:
    """See the window of a pooling for each word of its result."""
    out, rank = node.out(), len(kernel)
    plain = len(out) - rank
    sliding = zip(kernel, stride, before, dilation, strict=True)
    view = (*same(out)[:plain], *(
        AxisLink((Digit(plain + axis, step, extent=out[plain + axis]), Digit(len(out) + axis, by, extent=size)), -pad)
        for axis, (size, step, pad, by) in enumerate(sliding)))
    return Seen((view,), (*out, *kernel), tuple(map(same, (out,) * len(node.outputs))))

"""What nodes read and make: tensors with names of their own, and how the axes of one are those of another.

A *view* says for each axis of a tensor which coordinate on it stands at a place of something else, from which the
tensor is seen: an offset, and a stride for each *digit* of the places. A digit is ``place // divisor % extent`` along
one axis, so that axes which were merged or cut (reshape) have views too. Coordinates outside the tensor are none of its
words: padding, or what stands beside it in a concatenation. What no view can say (a gather by data) has None for one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Literal, TypeAlias

from tilewright.workload.operator import Operator, Tensor

Kind = Literal["input", "weights", "state", "activation"]
Shape: TypeAlias = tuple[int, ...]
Key: TypeAlias = int | str
"""An axis: its place, or the name of an operator's dimension."""
Letters: TypeAlias = Sequence[Sequence[str]]
"""Of each axis the named parts that its places consist of, outermost first."""


@dataclass(frozen=True)
class Digit:
    """``stride * (place // divisor % extent)``, of the place along ``axis``."""

    axis: Key
    stride: int = 1
    divisor: int = 1
    extent: int = 1


@dataclass(frozen=True)
class AxisLink:
    """A coordinate along one axis of a tensor: ``offset`` and the sum of its ``digits``."""

    digits: tuple[Digit, ...] = ()
    offset: int = 0

    def at(self, places: Mapping[Key, int]) -> int:
        """Return the coordinate at ``places``, one along each axis."""
        return self.offset + sum(d.stride * (places[d.axis] // d.divisor % d.extent) for d in self.digits)


View: TypeAlias = tuple[AxisLink, ...]


@dataclass(frozen=True)
class Operand:
    """A tensor that a node reads."""

    tensor: str
    """Name of a `Result`; of the weights, the state or the input of the network where no node makes it."""
    name: str
    """Of a multiply-accumulate node the name of the operator's tensor that it is; otherwise its place among the
    operands, ``0``, ``1`` and so on."""
    shape: Shape | None = None
    """Of what no node makes; None where it is not known, or a node makes it."""
    kind: Kind = "input"
    """What it is where no node makes it."""
    view: View | None = None
    """The tensor seen from the node: from the axes of the operator's tensor, or else from the node's `Edges.space`."""


@dataclass(frozen=True)
class Result:
    """A tensor that a node makes."""

    name: str
    shape: Shape | None
    """None where it is not known."""
    of: str = ""
    """The tensor whose bytes it shares (it is a view of it, or written over it); empty where it has its own."""
    leaves: bool | None = None
    """Whether the network hands it out; None: if no node reads it."""
    view: View | None = None
    """What the node makes, seen from the tensor: axes of the operator's output, or else the first ones of the node's
    `Edges.space`."""


@dataclass(frozen=True)
class Edges:
    """What a node reads and makes, where that is known better than by the names of the nodes before it.

    ``space`` are the sizes of what a node that does not multiply and accumulate runs over: the axes of its result, and
    behind them those of which all are read for each word (a row of softmax, the window of a pooling).
    """

    reads: tuple[Operand, ...]
    makes: tuple[Result, ...]
    space: Shape = ()


@cache
def same(shape: Shape) -> View:
    """Return a tensor as it is.

    >>> same((2, 3))[1].at({0: 1, 1: 2})
    2
    """
    return tuple(AxisLink((Digit(axis, extent=size),)) for axis, size in enumerate(shape))


def permuted(shape: Shape, order: Sequence[int]) -> View:
    """Return a tensor of ``shape`` seen with its axes in another order (that of ``transpose`` in NumPy)."""
    return tuple(AxisLink((Digit(order.index(axis), extent=size),)) for axis, size in enumerate(shape))


def shifted(shape: Shape, axis: int, offset: int, step: int = 1, *, extent: int | None = None) -> View:
    """Return a tensor of ``shape`` seen from ``offset`` on along one axis, every ``step``-th of ``extent`` places.

    So slices see it; with an ``offset`` below zero, what pads it or stands before it in a concatenation.
    """
    moved = AxisLink((Digit(axis, step, extent=shape[axis] if extent is None else extent),), offset)
    return (*same(shape)[:axis], moved, *same(shape)[axis + 1:])


def spread(shape: Shape, wide: Shape) -> View | None:
    """Return a tensor of ``shape`` seen where it is broadcast, as NumPy does; None where it cannot be."""
    before = len(wide) - len(shape)
    if before < 0 or any(size not in (1, around) for size, around in zip(shape, wide[before:], strict=True)):
        return None
    return tuple(AxisLink((Digit(before + axis, extent=size),) if size > 1 else ()) for axis, size in enumerate(shape))


@cache
def reshaped(shape: Shape, new: Shape) -> View | None:
    """Return a tensor of ``shape`` seen in the ``new`` one; None where sizes cut one another.

    >>> [link.at({0: 7}) for link in reshaped((4, 3), (12,))]
    [2, 1]
    """
    if prod(shape) != prod(new) or not prod(shape):
        return None
    if shape == new:
        return same(shape)
    found = []
    for axis, size in enumerate(shape):
        low, digits = prod(shape[axis + 1:]), []
        for place, extent in enumerate(new):
            inner = prod(new[place + 1:])
            start, end = max(low, inner), min(low * size, inner * extent)
            if start < end:
                if start % low or start % inner or end % start:
                    return None
                digits.append(Digit(place, start // low, start // inner, end // start))
        found.append(AxisLink(tuple(digits)))
    return tuple(found)


def related(seen: Letters, outer: Letters, sizes: Mapping[str, int]) -> View:
    """Return a tensor seen from something of which the same named parts make up the axes.

    A part that ``outer`` lacks is at 0 (it is broadcast).

    >>> turned = related([["row"], ["head", "word"]], [["head"], ["row"], ["word"]], {"head": 2, "row": 5, "word": 3})
    >>> [link.at({0: 1, 1: 4, 2: 2}) for link in turned]
    [4, 5]
    """
    places = {part: (axis, prod(sizes[one] for one in parts[index + 1:]))
              for axis, parts in enumerate(outer) for index, part in enumerate(parts)}
    return tuple(AxisLink(tuple(
        Digit(places[part][0], prod(sizes[one] for one in parts[index + 1:]), places[part][1], sizes[part])
        for index, part in enumerate(parts) if part in places and sizes[part] > 1)) for parts in seen)


def composed(first: View | None, then: View | None, sizes: Mapping[Key, int], middle: Shape, shape: Shape,
             ) -> View | None:
    """Return what ``then`` sees of a tensor, seen through ``first``; None where that is not affine in digits.

    Parameters
    ----------
    first
        What stands between, of the shape ``middle``, seen from axes of these ``sizes``.
    then
        The tensor, of this ``shape``, seen from what stands between.
    """
    if first is None or then is None:
        return None
    if middle == shape and then == same(shape):
        return first
    for axis, (link, size) in enumerate(zip(first, middle, strict=False)):
        low, high = _reach(link)
        if (low < 0 or high >= size) and not any(
                _shuts(one, axis, size, around) for one, around in zip(then, shape, strict=True)):
            return None
    found = []
    for link in then:
        digits, offset = list[Digit](), link.offset
        for digit in link.digits:
            if not isinstance(digit.axis, int) or digit.axis >= len(first):
                return None
            part = _digit_of(first[digit.axis], digit, sizes, middle[digit.axis])
            if part is None:
                return None
            digits += [Digit(one.axis, one.stride * digit.stride, one.divisor, one.extent) for one in part.digits]
            offset += digit.stride * part.offset
        found.append(AxisLink(tuple(digits), offset))
    return tuple(found)


def _reach(link: AxisLink) -> tuple[int, int]:
    """Return the least and largest coordinate."""
    return link.offset, link.offset + sum(one.stride * (one.extent - 1) for one in link.digits)


def _shuts(link: AxisLink, axis: int, size: int, around: int) -> bool:
    """Whether places outside an axis of ``size`` have coordinates outside those of an axis of size ``around``."""
    for one in link.digits:
        if one.axis == axis and one.divisor * one.extent >= size and size % one.divisor == 0:
            low, high = _reach(AxisLink(tuple(other for other in link.digits if other is not one), link.offset))
            return high < one.stride and low + one.stride * (size // one.divisor) >= around
    return False


def _digit_of(link: AxisLink, digit: Digit, sizes: Mapping[Key, int], size: int) -> AxisLink | None:
    """Return a digit of the coordinate that a link gives along an axis of ``size``; the first one has no upper end."""
    high = link
    if digit.divisor > 1:
        parts = _cut(link, digit.divisor, sizes)
        if parts is None:
            return None
        high = parts[0]
    if digit.divisor * digit.extent >= size:
        return high
    parts = _cut(high, digit.extent, sizes)
    return None if parts is None else parts[1]


def _cut(link: AxisLink, by: int, sizes: Mapping[Key, int]) -> tuple[AxisLink, AxisLink] | None:
    """Divide a coordinate: return quotient and remainder; None where these are not affine in digits."""
    high, low = list[Digit](), list[Digit]()
    for one in link.digits:
        if one.stride % by == 0:
            high.append(Digit(one.axis, one.stride // by, one.divisor, one.extent))
        elif by % one.stride == 0 and one.extent > (times := by // one.stride):
            if one.extent % times and one.divisor * one.extent < sizes[one.axis]:
                return None
            high.append(Digit(one.axis, 1, one.divisor * times, -(-one.extent // times)))
            low.append(Digit(one.axis, one.stride, one.divisor, times))
        else:
            low.append(one)
    rest = AxisLink(tuple(low), link.offset % by)
    if _reach(rest)[1] >= by:
        return None
    return AxisLink(tuple(high), link.offset // by), rest


def whole(shape: Shape, axes: Iterable[int]) -> tuple[View, Shape]:
    """Return a tensor seen from a node that reads all places of some ``axes`` for each word, and the node's space."""
    behind = {axis: len(shape) + index for index, axis in enumerate(axes)}
    return (tuple(AxisLink((Digit(behind.get(axis, axis), extent=size),)) for axis, size in enumerate(shape)),
            (*shape, *(shape[axis] for axis in behind)))


def operand_view(operator: Operator, tensor: Tensor, shape: Shape) -> View | None:
    """Return an operand of ``shape`` seen from the axes of the operator's tensor.

    Images are (batch, channels, rows, columns), padding apart; others have the words in the order of the operator's.
    None where they are not as many.
    """
    around, image = extents(operator, tensor), _image(operator, "in_size")
    if tensor.role == "weights" or not image:
        return reshaped(shape, around)
    channels = ["c"] if "G" not in operator.sizes else ["g", "c"]
    axes = "xyz"[:len(image) - 2]
    sizes = dict(zip(["n", *channels, *axes], around, strict=True))
    seen = related(["n", channels, *axes], ["n", *channels, *axes], sizes)
    if operator.kind != "conv_transpose":
        seen = (*seen[:2], *(AxisLink(link.digits, -before)
                             for link, before in zip(seen[2:], _padding(operator), strict=True)))
    return seen if shape == image else composed(seen, reshaped(shape, image), dict(enumerate(around)), image, shape)


def result_view(operator: Operator, shape: Shape) -> View | None:
    """Return the output of an operator seen from a tensor of ``shape``; see `operand_view`."""
    around, image = extents(operator, operator.output), _image(operator, "out_size")
    if operator.kind != "conv_transpose":
        return reshaped(around, shape)
    if shape != image:
        return None
    rank = len(image) - 2
    seen = reshaped((*around[:-rank], *image[2:]), image)
    return seen and (*seen[:-rank], *(AxisLink(link.digits, before)
                                      for link, before in zip(seen[-rank:], _padding(operator), strict=True)))


def extents(operator: Operator, tensor: Tensor) -> Shape:
    """Return the size of each axis of an operator's tensor."""
    return tuple(axis.words(operator.sizes, box=True) for axis in tensor.axes)


def operand_shape(operator: Operator, tensor: Tensor) -> Shape:
    """Return the shape of an operand: of an image (batch, channels, rows, columns), without groups and padding."""
    image = _image(operator, "in_size") if tensor.role == "inputs" else ()
    return image or extents(operator, tensor)


def output_shape(operator: Operator) -> Shape:
    """Return the shape of an operator's output: of a convolution (batch, channels, rows, columns), without groups."""
    return _image(operator, "out_size") or extents(operator, operator.output)


def _image(operator: Operator, which: str) -> Shape:
    """Return batch, channels and ``in_size`` or ``out_size`` of a convolution; nothing of what is none."""
    told, sizes = dict(operator.attributes), operator.sizes
    if not operator.kind.startswith(("conv", "depthwise")) or not {which, "padding"} <= told.keys():
        return ()
    channels = sizes["C" if which == "in_size" else "K"] * sizes.get("G", 1)
    return (sizes["N"], channels, *map(int, str(told[which]).split("x")))


def _padding(operator: Operator) -> list[int]:
    """Return the padding before each axis."""
    return [int(side.partition(":")[0]) for side in str(dict(operator.attributes)["padding"]).split("x")]

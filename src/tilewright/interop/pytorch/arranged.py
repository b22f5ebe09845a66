"""Tensors that hold the words of others in another order, or repeated: a product reads the others in their place.

Models that share keys and values among heads repeat them for each head before they multiply (``repeat_kv`` of
transformers), and turn the keys: nothing of it need be made where products alone read it. The same holds of a cache of
keys and values, however it is turned.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

from tilewright.interop.pytorch.program import Call, Ref
from tilewright.interop.scene import Shape

APPEND = "tilewright.append"
"""What appends to a cache of keys and values (`caches`)."""

_ATTENTION = "scaled_dot_product"
Factors: TypeAlias = tuple[tuple[int, bool], ...]
_RESHAPED = {"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "contiguous", "clone"}
_SIDES = {**dict.fromkeys(("matmul", "__matmul__", "linalg_matmul"), ("self", "other")), "bmm": ("self", "mat2"),
          "baddbmm": ("batch1", "batch2")}


@dataclass(frozen=True)
class Arrangement:
    """A tensor as the words of its ``root``: of each axis the factors of its size, and whether each repeats words."""

    root: str
    axes: tuple[Factors, ...]

    @property
    def times(self) -> int:
        """How often each word stands there."""
        return _times(self.axes)


def arrangements(calls: Iterable[Call], kind_of: Callable[[Call], str], shapes: Mapping[str, Shape],
                 outputs: Iterable[str]) -> dict[str, Arrangement]:
    """Return the tensors that need not be made, as products alone read them: repeated ones, and turns of caches.

    Caches themselves are among them. ``outputs`` are what the network hands out, which is made.
    """
    known: dict[str, Arrangement] = {}
    found: dict[str, Arrangement] = {}
    steps: list[tuple[str, str]] = []
    made = set(outputs)
    for call in calls:
        kind = kind_of(call)
        if kind == APPEND:
            found[call.outputs[0]] = known[call.outputs[0]] = _plain(call.outputs[0], shapes)
            continue
        source = call.tensors[0] if call.tensors else ""
        arranged = None
        if source in shapes:
            arranged = _arranged(kind, call, known.get(source) or _plain(source, shapes), shapes)
        if arranged is not None:
            known[call.outputs[0]] = arranged
            steps.append((source, call.outputs[0]))
            continue
        made |= set(call.tensors) - _read_in_place(kind, call, known, shapes)
    for source, name in reversed(steps):
        if name in made:
            made.add(source)
    return found | {name: known[name] for _, name in steps if name not in made and (
        known[name].times > 1 or known[name].root in found)}


def _plain(name: str, shapes: Mapping[str, Shape]) -> Arrangement:
    return Arrangement(name, tuple(((size, False),) for size in shapes.get(name, ())))


def _times(axes: Iterable[Factors]) -> int:
    return prod(size for axis in axes for size, repeats in axis if repeats)


def _read_in_place(kind: str, call: Call, known: Mapping[str, Arrangement], shapes: Mapping[str, Shape]) -> set[str]:
    """Return the right side of a product (keys and values of attention) where it repeats whole matrices at most.

    Each must stand for others of the left side, and keys as often as values.
    """
    given = {key: value.name for key, value in call.arguments if isinstance(value, Ref)}
    attention = kind.strip("_").startswith(_ATTENTION)
    sides = ("query", "key", "value") if attention else _SIDES.get(kind, ("",))
    left, *right = (given.get(side, "") for side in sides)
    if not all(name in known and call.tensors.count(name) == 1 for name in right):
        return set()
    whole = all(_times(known[name].axes[-2:]) == 1 and (
        known[name].times == 1 or shapes.get(left, ())[:-2] == shapes[name][:-2]) and not (
        attention and _times(known[name].axes[:-3]) > 1) for name in right)
    return set(right) if whole and len({known[name].times for name in right}) == 1 else set()


def _arranged(kind: str, call: Call, source: Arrangement, shapes: Mapping[str, Shape]) -> Arrangement | None:
    """Return the result of a call as words of the root of its input; None where it is more than that."""
    shape, given = shapes.get(call.outputs[0]), dict(call.arguments)
    axes: list[Factors] | None = list(source.axes)
    if shape is None or len(call.tensors) != 1:
        return None
    if kind in _RESHAPED:
        axes = _reshaped(source.axes, shape)
    elif kind == "transpose":
        axes = _turned(source.axes, {given.get("dim0"): given.get("dim1"), given.get("dim1"): given.get("dim0")})
    elif kind == "permute":
        axes = _turned(source.axes, dict(enumerate(given.get("dims", ()))))
    elif kind == "expand":
        new: list[Factors] = [()] * (len(shape) - len(source.axes))
        axes = [axis if prod(n for n, _ in axis) == size else ((size, True),)
                for axis, size in zip([*new, *source.axes], shape, strict=True)]
    elif kind == "repeat_interleave" and isinstance(given.get("repeats"), int) and isinstance(given.get("dim"), int):
        axis = given["dim"] % len(source.axes)
        axes = [(*factors, (given["repeats"], True)) if i == axis else factors for i, factors in enumerate(source.axes)]
    elif kind != "slice" or shape != tuple(prod(n for n, _ in axis) for axis in source.axes):
        return None
    return None if axes is None else Arrangement(source.root, tuple(axes))


def _turned(axes: tuple[Factors, ...], places: Mapping[object, object]) -> list[Factors] | None:
    """Return axes with those at ``places`` taken from others."""
    if not all(isinstance(at, int) for pair in places.items() for at in pair):
        return None
    taken = {int(str(to)) % len(axes): int(str(of)) % len(axes) for to, of in places.items()}
    return [axes[taken.get(index, index)] for index in range(len(axes))]


def _reshaped(axes: tuple[Factors, ...], shape: Shape) -> list[Factors] | None:
    """Return the factors under another shape; None where its sizes cut them elsewhere."""
    left = [factor for axis in axes for factor in axis if factor[0] != 1]
    found = []
    for size in shape:
        axis: list[tuple[int, bool]] = []
        rest = size
        while rest > 1:
            words, repeats = left.pop(0) if left else (0, False)
            part = gcd(rest, words)
            if not words or part not in (rest, words):
                return None
            axis.append((part, repeats))
            if words > part:
                left.insert(0, (words // part, repeats))
            rest //= part
        found.append(tuple(axis))
    return found

"""Dataflow styles of ConfuciuX: for so many elements and so large buffers each has one mapping, written as arrays.

A buffer of ``9 k + 9 + k`` bytes (table 8.1) has room for ``k`` filters of nine weights, for nine inputs and ``k``
sums. An element takes as many words of the window as fit into nine, and channels for what is left of them: a window of
3 x 3, one row of 5 or 7, nine channels of 1 x 1. Filters of depthwise layers bring inputs of their own, so fewer fit.

The shared memory holds what a pass over the columns takes: all channels of the rows and filters that the array is at.
Its need follows from the mapping, as in section 8.1.7, and is no choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, Registry
from tilewright.hardware import Accelerator, DesignSpace, Fanout, Memory, NumberRange
from tilewright.mapping import Layout, MappingBatch, classes_of
from tilewright.workload import Operator

Ints = NDArray[np.int64]
WINDOW = 9
"""Weights of a filter that a buffer is made for."""
MOST_VALUES = 1024
"""Of elements, or of buffers, that a layer may choose among."""


@dataclass(frozen=True)
class AllocationStyle:
    """What a style spreads, and in which order it goes through a layer."""

    about: str
    """What it is, with its source."""
    spread: tuple[str, ...]
    """Along X and Y: ``filters``, ``channels``, ``rows``, ``columns`` or ``window rows``."""
    outside: tuple[str, ...]
    inside: tuple[str, ...]
    """``outside`` and ``inside``: classes of dimensions in the loop order of the outermost and of the other memories,
    outermost first."""


STYLES: Registry[AllocationStyle] = Registry("style")
_WEIGHTS_STAY = (("groups", "filters", "batch", "rows", "other", "channels", "window", "columns"),
                 ("groups", "filters", "batch", "rows", "other", "channels", "window", "columns"))
_OUTPUTS_STAY = (("batch", "rows", "groups", "filters", "other", "columns", "channels", "window"),
                 ("batch", "rows", "columns", "groups", "filters", "other", "channels", "window"))
STYLES.register("nvdla")(AllocationStyle(
    "filters over the elements, k for each; weights stay (Kao 2022, section 8.1.4, figure 8.3)",
    ("filters",), *_WEIGHTS_STAY))
STYLES.register("nvdla-release")(AllocationStyle(
    "input channels over the elements of one cluster, k filters at a time; weights stay "
    "(github.com/maestro-project/confuciux, commit 2885eef)", ("channels",), *_WEIGHTS_STAY))
STYLES.register("eyeriss")(AllocationStyle(
    "output rows by filter rows, k filters at a time; weights stay along a row (Kao 2022, section 8.2.1)",
    ("rows", "window rows"), *_WEIGHTS_STAY))
STYLES.register("shidiannao")(AllocationStyle(
    "a patch of output pixels, k filters at a time; outputs stay (Kao 2022, section 8.2.1)",
    ("rows", "columns"), *_OUTPUTS_STAY))


@dataclass(frozen=True)
class StageLevels:
    """The levels of a machine whose elements and buffers can be chosen: a stage of a pipeline."""

    shared: Memory
    array: Fanout
    private: Memory

    @classmethod
    def of(cls, machine: Accelerator) -> "StageLevels":
        """Return the levels of ``machine``; one that is built otherwise is an `InputError`."""
        match machine.levels:
            case (Memory(), Memory() as shared, Fanout() as array, Memory() as private) if array.flexible:
                if shared.capacity_bytes and private.capacity_bytes:
                    return cls(shared, array, private)
        raise InputError(f"{machine.name}.levels", "must be a memory, a shared memory of limited capacity, one "
                         "flexible array and a memory of limited capacity in each element",
                         ", ".join(level.name for level in machine.levels), "Start from the preset confuciux")

    @classmethod
    def choices(cls, space: DesignSpace) -> dict[str, Sequence[int | str]]:
        """Return the numbers of elements, and of filters that buffers have room for, of the machines of a space.

        Where its file says nothing of them, they are all from one to those of the machine. What does not vary has one.
        The shared memory is as large as mappings need; another number that varies is an `InputError`.
        """
        found = cls.of(space.accelerator)
        count, size = (found.array.name, "instances"), (found.private.name, "capacity_bytes")
        others = {*space.ranges, *space.follow} - {count, size, (found.shared.name, "capacity_bytes")}
        if others:
            raise InputError("design.vary", f"must name {'.'.join(count)} and {'.'.join(size)} alone where layers "
                             "share a budget", ", ".join(".".join(one) for one in sorted(others)))
        own = found.array.instances, int(found.private.capacity_bytes or 0)
        ranges = {**DesignSpace.as_it_is(space.accelerator).ranges, **space.ranges}
        if space == DesignSpace.of(space.accelerator):
            ranges |= {count: NumberRange(1, own[0]), size: NumberRange(2 * WINDOW + 1, own[1], WINDOW + 1)}
        elements, sizes = (_listed(ranges[key], ".".join(key)) for key in (count, size))
        filters = [(each - WINDOW) // (WINDOW + 1) for each in sizes]
        if min(filters, default=0) < 1 or sizes != [buffer_bytes(each) for each in filters]:
            raise InputError(f"design.vary.{'.'.join(size)}", "must be room for whole filters: 19, 29, 39 ... bytes",
                             ", ".join(map(str, sizes[:5])))
        return {"elements": elements, "filters": filters}


def _listed(values: NumberRange, name: str) -> list[int]:
    if len(values) > MOST_VALUES:
        raise InputError(f"design.vary.{name}", f"must have at most {MOST_VALUES} values", len(values),
                         "List fewer in the design section of the machine's file")
    return [int(values.value(place)) for place in range(len(values))]


def buffer_bytes(filters: Ints | int) -> Ints | int:
    """Return the bytes of a buffer for so many filters (table 8.1)."""
    return WINDOW * filters + WINDOW + filters


def style_mappings(style: AllocationStyle, operator: Operator, machine: Accelerator, elements: Ints,
                   filters: Ints) -> MappingBatch:
    """Return ``b`` mappings of ``operator``: on ``elements`` ``(b)``, with buffers for ``filters`` ``(b)``."""
    names, sizes = list(operator.sizes), operator.sizes
    classes, main = classes_of(operator), _main(operator)
    if style.spread == ("channels",) and (main["channels"] is None or sizes[main["channels"]] == 1):
        main["channels"] = main["groups"]  # of a depthwise layer
    own = _of_element(style, operator, main, filters)
    across = {name: np.ones_like(elements) for name in names}
    sides = [name for name in (main[each] for each in style.spread) if name is not None]
    for name, lanes in zip(sides, _lanes([-(-sizes[name] // own[name]) for name in sides], elements), strict=True):
        across[name] = lanes
    spread = {name: np.minimum(own[name] * across[name], sizes[name]) for name in names}
    whole = {name for kind in ("channels", "window", "columns") for name in classes[kind]}
    tile = {name: np.full_like(elements, sizes[name]) if name in whole else spread[name] for name in names}
    layout = Layout.of(operator, machine)
    steps = np.ones((*layout.shape, len(elements)), dtype=np.int32)
    ranks = np.zeros((*layout.shape, len(elements)), dtype=np.int8)
    along_x = set(sides[:1])
    for s, slot in enumerate(layout.slots):
        order = _order(style.outside if slot.level == 0 else style.inside, classes, names)
        for d, name in enumerate(names):
            after_x = own if name in along_x else spread
            values = {0: tile, 1: spread, 2: after_x if slot.axis == "X" else own}.get(slot.level)
            steps[s, d] = 1 if values is None else values[name]
            ranks[s, d] = order.index(name)
    return MappingBatch(layout, steps, ranks)


def _main(operator: Operator) -> dict[str, str | None]:
    """Return, of each class, the dimension that is tiled: the largest; groups where a layer has one filter for each."""
    sizes, classes = operator.sizes, classes_of(operator)
    found = {kind: max(names, key=lambda name: sizes[name], default=None) for kind, names in classes.items()}
    filters, groups = found["filters"], found["groups"]
    if groups is not None and (filters is None or sizes[filters] == 1):
        found["filters"] = groups
    return found


def _of_element(style: AllocationStyle, operator: Operator, main: dict[str, str | None],
                filters: Ints) -> dict[str, Ints]:
    """Return the extents ``(b)`` of the tile of one element."""
    sizes, classes = operator.sizes, classes_of(operator)
    own = {name: np.ones_like(filters) for name in sizes}
    left = WINDOW
    spread = {main[each] for each in style.spread} - {main["filters"]}
    for name in [*reversed(classes["window"]), main["channels"]]:  # innermost first
        if name is not None and name not in spread and name != main["filters"]:
            taken = min(sizes[name], left)
            own[name], left = np.full_like(filters, taken), left // taken
    many = main["filters"]
    if many is not None and many not in spread:
        words = int(np.prod([extents[0] for extents in own.values()])) if len(filters) else 1
        inputs = next(tensor for tensor in operator.tensors if tensor.role == "inputs")
        fits = buffer_bytes(filters) // (2 * words + 1) if many in inputs.dimensions else filters
        own[many] = np.minimum(np.minimum(filters, fits), sizes[many])
    return own


def _lanes(wanted: list[Ints], elements: Ints) -> list[Ints]:
    """Return the lanes ``(b)`` along each side: of two sides those with the fewest passes, then the fewest lanes."""
    if len(wanted) < 2:
        return [np.minimum(count, elements) for count in wanted]
    first, second = (int(count.max(initial=1)) for count in wanted)  # the same for all: elements have one row each
    counts, where = np.unique(elements, return_inverse=True)
    one = np.arange(1, min(first, int(counts.max(initial=1))) + 1)[:, None]  # (a, n)
    other = np.minimum(np.maximum(counts // one, 1), second)
    lanes = one * other
    dear = (-(-first // one) * -(-second // other)) * (lanes.max(initial=1) + 1.0) + lanes
    best = np.argmin(np.where(one <= counts, dear, np.inf), axis=0)
    return [one[best, 0][where], other[best, np.arange(len(counts))][where]]


def _order(kinds: tuple[str, ...], classes: dict[str, tuple[str, ...]], names: list[str]) -> list[str]:
    """Return the dimensions in the loop order of the classes."""
    found = [name for kind in kinds for name in classes[kind]]
    return [*found, *(name for name in names if name not in found)]

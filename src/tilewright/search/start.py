"""Warm start: mappings to begin a search from, brought over from a layer searched before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Fanout
from tilewright.mapping import Mapping, MappingBatch, MapSpace
from tilewright.workload import Operator

MOST_STARTS = 64
"""Mappings that a search may be started from."""

Steps = NDArray[np.int64]


@dataclass(frozen=True)
class Origin:
    """Where the mappings that a search began from were found."""

    kind: Literal["given", "previous", "similar", "library"]
    """``given`` by the caller, or the best of the ``previous`` layer of the network, of the most ``similar`` one
    before, or of an entry of the ``library``."""
    layer: str = ""
    """Name of the layer that they were found for."""
    distance: int = 0
    """Dimensions in which that layer's sizes differ."""
    run: str = ""
    """Identity of the run that found an entry of the library."""

    def __str__(self) -> str:
        if self.kind == "given":
            return self.kind
        differ = f"{self.distance} sizes differ" if self.distance > 1 else "one size differs"
        return f"{self.kind} {self.layer} ({differ if self.distance else 'same sizes'})"


@dataclass(frozen=True)
class Source:
    """A mapping to begin from: its operator's size of each dimension, and where it was found.

    It is of the accelerator of the search, or of one whose levels are of the same kinds in the same order.
    """

    mapping: Mapping
    sizes: dict[str, int]
    origin: Origin = Origin("given")


@dataclass(frozen=True)
class Start:
    """Mappings to begin a search from, whatever sizes they were found for; the best are best named first."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, mappings: Mapping | Sequence[Mapping], operator: Operator) -> "Start":
        """Return the start from mappings of ``operator``, whatever operator is to be searched."""
        found = (mappings,) if isinstance(mappings, Mapping) else mappings
        return cls(tuple(Source(mapping, operator.sizes) for mapping in found))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where the mappings were found."""
        return tuple(source.origin for source in self.sources)

    def batch(self, space: MapSpace, ways: int = 4) -> MappingBatch:
        """Return the mappings scaled to the sizes of ``space`` and mended, in a few ways each, without repetition.

        Loop orders and the dimensions spread over arrays are inherited (Kao, section 5.3.1). Tiles are scaled by the
        outermost loop, as published; so that what was held whole still is; in proportion; and with the same counts of
        the inner loops; ``ways`` says how many of these are made. A loop that a dimension did not have before stands
        innermost, or outermost. What the space does not allow, or does not fit, is then mended.

        Raises an `InputError` if there are none, or their levels are not those of the accelerator.
        """
        if not self.sources:
            raise InputError("start", "must hold at least one mapping")
        chains, ranks = [], []
        for source in self.sources:
            extents, orders = _decoded(source.mapping, source.sizes, space)
            for steps in _scalings(extents, np.array(list(space.operator.sizes.values())))[:ways]:
                chains += [steps] * len(orders)
                ranks += orders
        steps_array = np.stack(chains, axis=2).astype(np.int32)
        batch = MappingBatch(space.layout, steps_array, np.stack(ranks, axis=2).astype(np.int8))
        return _distinct(space.refit(space.repair(batch))).take(slice(0, MOST_STARTS))


def start_batch(start: "Start | MappingBatch | None", space: MapSpace) -> MappingBatch | None:
    """Return what to begin a search of ``space`` from.

    Raises an `InputError` if it is neither, or a batch is of another layout, empty, or too large.
    """
    if start is None or isinstance(start, Start):
        return None if start is None else start.batch(space)
    if not isinstance(start, MappingBatch):
        raise InputError("start", "must be a Start or a batch of mappings", type(start).__name__,
                         "Mappings and their operator make one: Start.of(mapping, operator)")
    if start.layout != space.layout:
        raise InputError("start", "must be a batch of the layout of the space",
                         mend="Take it from the space (MapSpace.layout), or give a Start, which is scaled")
    if not 1 <= len(start) <= MOST_STARTS:
        raise InputError("start", f"must hold 1 to {MOST_STARTS} mappings", len(start))
    return space.settled(space.repair(start))


def _decoded(mapping: Mapping, sizes: dict[str, int], space: MapSpace) -> tuple[Steps, list[Steps]]:
    """Return the extents ``(1 + s, d)`` of a mapping at the slots of a space, and two ranks ``(s, d)`` of its loops."""
    layout = space.layout
    _check_levels(mapping, sizes, space)
    index = {name: d for d, name in enumerate(layout.dimensions)}
    extents = np.ones((1 + len(layout.slots), len(index)), dtype=np.int64)
    present = np.array([sizes.get(name, 1) for name in layout.dimensions], dtype=np.int64)
    extents[0] = present
    last, first = (np.zeros(layout.shape, dtype=np.int64) for _ in range(2))
    for s, slot in enumerate(layout.slots):
        looping: list[int] = []
        for loop in mapping.levels[slot.level].loops:
            d = index.get(loop.dimension, -1)
            if (loop.axis or "T") == slot.axis and d >= 0 and loop.step < present[d]:
                present[d] = loop.step
                looping = [*(other for other in looping if other != d), d]
        extents[s + 1] = present
        others = [d for d in range(len(index)) if d not in looping]
        last[s, looping + others] = first[s, others + looping] = np.arange(len(index))
    extents[-1] = 1
    return extents, [last, first]


def _check_levels(mapping: Mapping, sizes: dict[str, int], space: MapSpace) -> None:
    levels = space.accelerator.levels
    if len(mapping.levels) != len(levels):
        raise InputError("start", f"must be of a machine of {len(levels)} levels, as {space.accelerator.name}",
                         len(mapping.levels))
    for entry, level in zip(mapping.levels, levels, strict=True):
        for loop in entry.loops:
            if (loop.axis is not None) != isinstance(level, Fanout):
                raise InputError(f"start.{entry.level}", f"must be of the same kind as {level.name}", str(loop))
            if loop.dimension not in sizes:
                raise InputError(f"start.{entry.level}", f"must loop over {', '.join(sizes)}", str(loop))


def _scalings(extents: Steps, sizes: Steps) -> list[Steps]:
    """Return ``(s, d)`` steps for new ``sizes`` ``(d)``, made of ``extents`` ``(1 + s, d)`` in four ways."""
    old, inner = extents[0], np.minimum(extents[1:], sizes)
    whole = np.where(extents[1:] == old, sizes, inner)
    share = np.clip(np.rint(extents[1:] * (sizes / old)), 1, sizes).astype(np.int64)
    counts = -(-extents[:-1] // extents[1:])
    kept = np.ones_like(inner)
    for s in range(len(kept) - 2, -1, -1):
        kept[s] = np.minimum(kept[s + 1] * counts[s + 1], sizes)
    share[-1] = whole[-1] = 1
    return [inner, whole, kept, share]


def _distinct(batch: MappingBatch) -> MappingBatch:
    """Return the batch without repetitions; the first of equals stays."""
    rows = np.concatenate([batch.steps, batch.ranks]).reshape(-1, len(batch)).T.tolist()
    first: dict[tuple[int, ...], int] = {}
    for at, row in enumerate(rows):
        first.setdefault(tuple(row), at)
    return batch.take(np.array(list(first.values())))

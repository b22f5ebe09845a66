"""TilePlans of rows by keys: what loops over them visit, summed exactly over full, ragged and masked tiles."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.base import Rows
from tilewright.fusion.flat.blocks import Attention

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class TilePlans(Rows):
    """Plans ``(n)``, as arrays: how rows and keys of an instance are tiled, which tiles come first, what is held.

    Rows are cut into tiles of ``rows``, keys into tiles of ``keys``; of masked keys a tile of rows does the ones that
    its last row attends to. Where ``keys_outer``, all tiles of rows pass a tile of keys before the next one comes.
    Keys and values of a tile are held whole or stream past every tile of rows, in chunks of ``key_chunk`` and
    ``value_chunk``. ``buffers`` tiles of logits take turns. What is stationary in the array takes the fewest cycles,
    or, where ``sparing``, the fewest words of the buffer.
    """

    rows: Counts
    keys: Counts
    keys_outer: NDArray[np.bool_]
    key_chunk: Counts
    value_chunk: Counts
    buffers: Counts
    sparing: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, dtype=np.bool_))


@dataclass(frozen=True)
class Visits:
    """Sums ``(n)`` over the visits of an instance: tiles of rows by the tiles of keys that they attend to.

    ``rows``, ``keys`` and ``pairs`` count what each visit has of them; an array of a by b takes ``row_strips`` =
    ceil(rows / a) and ``key_strips`` = ceil(keys / b) of a visit. ``spilled`` are the pairs beyond what is kept.
    """

    row_tiles: Counts
    key_tiles: Counts
    rows: Counts
    keys: Counts
    pairs: Counts
    strips_by_keys: Counts
    rows_by_strips: Counts
    strips: Counts
    spilled: Counts


def visits(attention: Attention, tiles: TilePlans, array: tuple[int, int], kept: Counts) -> Visits:
    """Return what the visits of plans sum to; ``kept`` ``(n)`` pairs of a tile stay on the chip.

    Only plans with one tile of keys spill: others would take fewer keys.
    """
    found = {name: np.zeros(len(tiles), dtype=np.int64) for name in Visits.__dataclass_fields__}
    for rows in np.unique(tiles.rows):
        chosen = np.flatnonzero(tiles.rows == rows)
        sizes, extents, times = _row_tiles(attention, int(rows))
        keys = tiles.keys[chosen]
        visited = -(-extents[:, None] // keys)
        full, rest = extents[:, None] // keys, extents[:, None] % keys
        key_strips = full * -(-keys // array[1]) + -(-rest // array[1])
        row_strips = -(-sizes // array[0])
        beyond = np.maximum(0, (sizes * extents)[:, None] - kept[chosen])
        weights, whole = times[:, None], np.ones_like(keys)
        every = {
            "row_tiles": weights * whole, "rows": weights * sizes[:, None] * visited,
            "keys": (times * extents)[:, None] * whole, "pairs": (times * sizes * extents)[:, None] * whole,
            "strips_by_keys": (times * row_strips * extents)[:, None] * whole,
            "rows_by_strips": (times * sizes)[:, None] * key_strips,
            "strips": (times * row_strips)[:, None] * key_strips,
            "spilled": weights * beyond}
        for name, values in every.items():
            found[name][chosen] = values.sum(axis=0)
        found["key_tiles"][chosen] = visited.max(axis=0)
    found["spilled"] *= found["key_tiles"] == 1
    return Visits(**found)


def _row_tiles(attention: Attention, rows: int) -> tuple[Counts, Counts, Counts]:
    """Return sizes of tiles of rows, the keys that they attend to, and how often there is each."""
    full, rest = divmod(attention.rows, rows)
    if attention.causal:
        ends = np.minimum(np.arange(1, full + (rest > 0) + 1) * rows, attention.rows)
        return np.diff(ends, prepend=0), attention.extents(ends), np.ones(len(ends), dtype=np.int64)
    found = np.array([(size, attention.keys, times) for size, times in ((rows, full), (rest, 1)) if size and times])
    return found[:, 0], found[:, 1], found[:, 2]


def sides(size: int, array: int, most: int | None = None) -> Counts:
    """Return the sizes of tiles that searches try along a side: powers of two, equal parts, multiples of the array.

    Of parts there are those of which a buffer may hold one alone, ``most`` if that is told, besides.
    """
    powers = [2**power for power in range(size.bit_length())]
    fewest = -(-size // max(1, size if most is None else most))
    parts = [-(-size // part) for part in (*range(1, 17), *range(fewest, fewest + 8))]
    lanes = [array * times for power in range(12) for times in (2**power, 3 * 2**power)]
    return np.unique(np.array([side for side in (*powers, *parts, *lanes) if side <= size], dtype=np.int64))

"""What plans of an attention cost: words of DRAM by tensor, footprint, cycles, energy.

A *fused* plan keeps logits on the chip. Its loops over tiles of rows and of keys are shared by both products: for each
tile L makes logits, the softmax turns them into shares, and A adds to the outputs. With one tile of keys this is
FLAT's; with more, the softmax is made online: a running maximum and a running sum of each row stay with its partial
outputs, which are scaled anew where the maximum rises. What touches DRAM takes the buffer twice, the logits once (table
A.1). Logits of one tile of keys that do not fit spill: they cross to DRAM and back.

An *unfused* plan does L, then A. Logits cross to DRAM with a maximum and a sum of each row, and the softmax is made as
they come back.

Masked work of a tile beyond the last key that its rows attend to is left out; the rest of the tile is done.

What loops over tiles of rows by keys visit is summed exactly over full, ragged and masked tiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import Rows
from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.machines import FlatMachine

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Softmax = Literal["free", "vector"]
"""Whether a softmax takes no time (FLAT, section A.3.1), or that of the machine's vector unit."""
STATISTICS = 2
"""Words that an online softmax keeps of a row: the maximum and the sum so far."""


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


@dataclass(frozen=True)
class PlanCosts:
    """Costs ``(n)`` of plans, of all instances.

    ``words`` are those of DRAM by tensor, read and written. ``compute_cycles`` are the array's, ``vector_cycles`` the
    vector unit's; ``latency_cycles`` has the cold start and the tail besides.
    """

    words: dict[str, Counts]
    footprint_words: Counts
    legal: NDArray[np.bool_]
    compute_cycles: Floats
    vector_cycles: Floats
    latency_cycles: Floats
    buffer_words: Counts
    energy_pj: Floats

    @property
    def dram_words(self) -> Counts:
        """Words of all tensors."""
        total: Counts = sum(self.words.values(), np.zeros_like(self.footprint_words))
        return total


def fused_costs(attention: Attention, machine: FlatMachine, tiles: TilePlans, softmax: Softmax = "free") -> PlanCosts:
    """Return what fused plans cost."""
    depth, width = attention.depth, attention.width
    logits = tiles.rows * tiles.keys * tiles.buffers
    footprint = _streams(tiles, depth, tiles.key_chunk) + _streams(tiles, width, tiles.value_chunk) + logits
    online, again = tiles.keys < attention.keys, tiles.keys_outer & (tiles.rows < attention.rows)
    footprint = footprint + STATISTICS * tiles.rows * online * np.where(again, 2, 1)
    over = np.maximum(0, footprint - machine.capacity_words)
    seen = visits(attention, tiles, (machine.rows, machine.columns), np.maximum(0, logits - over))
    legal = (over == 0) | (~online & (tiles.buffers == 1) & (over <= logits))
    returned = np.where(again, seen.rows - attention.rows, 0)
    words = {
        "Q": depth * np.where(again, seen.rows, attention.rows),
        "K": depth * _streamed(attention, tiles, seen, tiles.key_chunk),
        "V": width * _streamed(attention, tiles, seen, tiles.value_chunk),
        "O": width * (attention.rows + 2 * returned) + 2 * STATISTICS * returned,
        "logits": 2 * seen.spilled}
    (cycles_l, words_l), (cycles_a, words_a) = _array(attention, machine, seen, tiles)
    vector = seen.pairs / machine.softmax_rate + width * (seen.rows - attention.rows) / machine.scale_rate
    vector = vector if softmax == "vector" else np.zeros(len(tiles))
    compute = (cycles_l + cycles_a).astype(float)
    busy = np.where(tiles.buffers > 1, np.maximum(compute, vector), compute + vector)
    ramp = depth * (tiles.rows + tiles.key_chunk) + width * tiles.rows
    whole = _Instance(words, footprint, legal, compute, vector, busy, words_l + words_a, ramp)
    return _costs(attention, machine, whole)


def unfused_costs(attention: Attention, machine: FlatMachine, tiles: TilePlans, softmax: Softmax = "free",
                  ) -> tuple[PlanCosts, PlanCosts]:
    """Return what plans cost as those of L alone, and as those of A alone; chunks and buffers are left aside."""
    rows, depth, width = attention.rows, attention.depth, attention.width
    again = tiles.keys_outer & (tiles.rows < rows)
    seen = visits(attention, tiles, (machine.rows, machine.columns), tiles.rows * tiles.keys)
    returned = np.where(again, seen.rows - rows, 0)
    queries, held = np.where(again, seen.rows, rows), _streamed(attention, tiles, seen, tiles.keys)
    statistics = np.full(len(tiles), STATISTICS * rows)
    nothing = np.zeros(len(tiles))
    pairs, found = 2 * tiles.rows * tiles.keys, []
    scores, mixed = _array(attention, machine, seen, tiles)
    both = (({"Q": depth * queries, "K": depth * held, "logits": seen.pairs, "O": statistics + 4 * returned}, depth,
             scores, nothing, pairs),
            ({"V": width * held, "logits": seen.pairs, "O": width * (rows + 2 * returned) + statistics}, width,
             mixed, seen.pairs / machine.softmax_rate if softmax == "vector" else nothing, width * tiles.rows))
    for words, features, (cycles, buffered), vector, last in both:
        footprint = pairs + 2 * features * (tiles.rows + tiles.keys)
        compute = cycles.astype(float)
        first = features * tiles.keys + (features * tiles.rows if "Q" in words else tiles.rows * tiles.keys)
        found.append(_costs(attention, machine, _Instance(
            words, footprint, footprint <= machine.capacity_words, compute, vector, np.maximum(compute, vector),
            buffered, first + last)))
    return found[0], found[1]


def _streams(tiles: TilePlans, features: int, chunk: Counts) -> Counts:
    """Return the words that rows and a chunk of keys take, twice: of Q and K, or of O and V."""
    return 2 * features * (tiles.rows + np.minimum(chunk, tiles.keys))


def _streamed(attention: Attention, tiles: TilePlans, seen: Visits, chunk: Counts) -> Counts:
    """Return the keys that come in: all once where tiles of them are held and do not come back."""
    once = (chunk >= tiles.keys) & (tiles.keys_outer | (seen.key_tiles == 1))
    return np.where(once, attention.keys, seen.keys)


@dataclass(frozen=True)
class _Instance:
    """What one instance takes ``(n)``: ``busy`` are cycles of array and vector unit together, ``ramp`` words."""

    words: dict[str, Counts]
    footprint: Counts
    legal: NDArray[np.bool_]
    compute: Floats
    vector: Floats
    busy: Floats
    buffered: Counts
    ramp: Counts


def _costs(attention: Attention, machine: FlatMachine, one: _Instance) -> PlanCosts:
    """Return the costs of all instances from those of one."""
    times = attention.instances
    words = {name: times * count for name, count in one.words.items()}
    moved: Counts = sum(words.values(), np.zeros_like(one.footprint))
    inner = times * one.buffered + moved
    latency = np.maximum(np.maximum(times * one.busy, moved / machine.dram_rate), inner / machine.buffer_rate)
    energy = times * attention.pairs * (attention.depth + attention.width) * machine.mac_pj
    return PlanCosts(words, one.footprint, one.legal, times * one.compute, times * one.vector,
                     latency + one.ramp / machine.dram_rate, inner,
                     energy + inner * machine.buffer_pj + moved * machine.dram_pj)


def _array(attention: Attention, machine: FlatMachine, seen: Visits,
           tiles: TilePlans) -> tuple[tuple[Counts, Counts], tuple[Counts, Counts]]:
    """Return cycles and words of the buffer of L, and of A, by what plans let be stationary.

    Of L these are outputs, queries or keys; of A outputs, values or logits: the last one has an array of rows by keys
    busy whatever the width is.
    """
    (a, b), depth, width = (machine.rows, machine.columns), attention.depth, attention.width
    down, across = -(-depth // a), -(-depth // b)
    scores = ((depth * seen.strips, depth * (seen.rows_by_strips + seen.strips_by_keys) + seen.pairs),
              (down * seen.rows_by_strips, depth * (seen.keys + seen.rows_by_strips) + seen.pairs * (2 * down - 1)),
              (across * seen.strips_by_keys,
               depth * (seen.rows + seen.strips_by_keys) + seen.pairs * (2 * across - 1)))
    down, across = -(-width // a), -(-width // b)
    partial = width * (2 * seen.rows_by_strips - attention.rows)
    mixed = ((across * seen.strips_by_keys,
              across * seen.pairs + width * (seen.strips_by_keys + 2 * seen.rows - attention.rows)),
             (down * seen.rows_by_strips, width * seen.keys + down * seen.pairs + partial),
             (width * seen.strips, seen.pairs + width * seen.strips_by_keys + partial))
    return _chosen(scores, tiles), _chosen(mixed, tiles)


def _chosen(options: Sequence[tuple[Counts, Counts]], tiles: TilePlans) -> tuple[Counts, Counts]:
    """Return cycles and words of the option of the fewest cycles, where plans are sparing of the fewest words."""
    cycles, words = (np.stack(each) for each in zip(*options, strict=True))
    first, other = np.where(tiles.sparing, (words, cycles), (cycles, words))
    least = first.min(axis=0)
    other = np.where(first == least, other, np.iinfo(np.int64).max).min(axis=0)
    found: tuple[Counts, Counts] = np.where(tiles.sparing, other, least), np.where(tiles.sparing, least, other)
    return found

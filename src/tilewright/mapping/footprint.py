"""What compressed tiles take: words and bits of metadata for every word of a tile, by format (docs/sparsity.md).

All functions take numbers or arrays of ``b`` tiles.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import RUN_BITS, Accelerator, Compression
from tilewright.mapping.zeros import Zeros
from tilewright.workload import Tensor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stored:
    """What is stored for each word of a tile, zeros included: words, and bits of metadata."""

    words: Floats
    metadata_bits: Floats


def compression(accelerator: Accelerator, memory: str, tensor: Tensor) -> Compression | None:
    """Return how a memory compresses a tensor; None where all words are kept."""
    if accelerator.sparsity is None:
        return None
    return accelerator.sparsity.compression(memory, tensor.name, tensor.role)


def stored(given: Compression | None, zeros: Zeros, tile: Floats, row: Floats) -> Stored:
    """Return what is stored for each word of a tile of ``tile`` words in rows of ``row``, in the mean."""
    density, none = zeros.density, np.zeros(np.shape(tile))
    if given is None:
        return Stored(none + 1.0, none)
    if given.format == "bitmask":
        return Stored(none + density, none + 1.0)
    if given.format == "run-length":
        bits = given.bits or RUN_BITS
        words = density + padding_words(zeros, tile, bits) / tile
        return Stored(words, words * bits)
    if given.format == "coordinates":
        return Stored(none + density, density * (none + (given.bits or bits_for(tile))))
    offsets = (tile / row + 1) * bits_for(tile + 1) / tile
    return Stored(none + density, density * (none + (given.bits or bits_for(row))) + offsets)


def bits_for(values: Floats) -> Floats:
    """Return the bits that tell apart so many values, at least 1."""
    return np.maximum(1.0, np.ceil(np.log2(np.maximum(values, 1.0))))


def padding_words(zeros: Zeros, tile: Floats, bits: int) -> Floats:
    """Return how many zeros a run-length code of a tile stores in the mean, as runs outgrow their field of ``bits``.

    The k-th zero of a run is stored where 2^bits x k zeros come to an end, at each place with the chance that as many
    words are zero and the one before them, if there is one, is not.
    """
    span = 2**bits
    chances = zeros.table
    if zeros.density >= 1:
        return np.zeros(np.shape(tile))
    most = min(int(np.max(tile)) // span, len(chances) // span + 1)
    runs = np.arange(1, most + 1, dtype=np.float64) * span
    whole = zeros.empty(runs)
    ended = whole - zeros.empty(runs + 1)
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (whole, ended, runs * ended)]
    fitting = np.minimum(np.floor(np.asarray(tile) / span), most).astype(np.int64)
    return np.asarray(sums[0][fitting] + tile * sums[1][fitting] - sums[2][fitting])


def footprint_bits(accelerator: Accelerator, memory: str, tensor: Tensor, bits: int, sides: tuple[Floats, Floats],
                   ) -> Floats:
    """Return the bits that a tile takes in a memory, by its rule of capacity (expected or worst).

    ``sides`` are the words of the tile and those of its last axis. The expected tile is that of a tensor too large for
    its size to matter; of the worst all words are stored, or as many as structure allows in blocks along the last axis.
    """
    tile, row = sides
    given = compression(accelerator, memory, tensor)
    if given is None:
        return np.asarray(tile * float(bits))
    assert accelerator.sparsity is not None
    if accelerator.sparsity.capacity == "expected":
        found = stored(given, Zeros.endless(tensor.density), tile, row)
        return np.asarray(tile * (found.words * bits + found.metadata_bits))
    most = np.asarray(tile, dtype=np.float64)
    if tensor.structure is not None:
        some, every = tensor.structure
        most = tile / row * np.minimum(row, some * (np.ceil((row - 1) / every) + 1))
    if given.format == "run-length":
        runs = given.bits or RUN_BITS
        return np.asarray(np.minimum(tile, most + np.floor(tile / 2**runs)) * (bits + runs))
    found = stored(given, Zeros(1, 1.0), tile, row)
    fixed = tile if given.format == "bitmask" else (tile / row + 1) * bits_for(tile + 1) * (given.format == "csr")
    moving = found.metadata_bits * tile - fixed
    return np.asarray(most * bits + fixed + moving * most / tile)


def least_word_bits(accelerator: Accelerator, memory: str, tensor: Tensor, bits: int) -> float:
    """Return bits that each word of any tile takes at least, for spaces of mappings: some that do not fit are kept."""
    given = compression(accelerator, memory, tensor)
    if given is None:
        return float(bits)
    assert accelerator.sparsity is not None
    worst = accelerator.sparsity.capacity == "worst"
    share = tensor.density if tensor.structure is not None or not worst else 1.0
    fixed = {"bitmask": 1.0, "run-length": share * (given.bits or RUN_BITS), "csr": share * (given.bits or 0),
             "coordinates": share * (given.bits or 0)}
    return share * bits + fixed[given.format]

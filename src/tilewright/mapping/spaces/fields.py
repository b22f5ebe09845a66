"""Words of which compiled drawing takes several numbers at one look."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.spaces.arrays import WORD

# Rows of extents in `draws` begin after others, one of which holds ones.
ONES, EXTENTS = 3, 4
# Bits of an entry of aliases and of its chance; of how many pairs can follow; of which choices a pair stands for, how
# many, and, where they fit in besides, their loops; of how many orders there are.
ENTRY_BITS, CHANCE_BITS = 23, 40
ROW_BITS = 31
COUNT_BITS, LOOP_BITS = 18, 27
ORDER_BITS = 32


def packed_rows(rows: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Pack rows of numbers ``(s, c)`` into words ``(w, c)``, the first lowest; return them and the bits of a number."""
    bits = max(int(rows.max(initial=1)).bit_length(), 1)
    many = WORD // bits
    words = np.zeros((max(-(-len(rows) // many), 1), rows.shape[1]), dtype=np.int64)
    for s, row in enumerate(rows):
        words[s // many] |= row.astype(np.int64) << (s % many * bits)
    return words, bits


def choice_words(chains: NDArray[np.int32], offset: int) -> tuple[NDArray[np.int32], NDArray[np.int64], int, int]:
    """Return the chains of a bundle as `draws` reads them: which are listed, and of each choice where these stand.

    These places, in a list that begins at ``offset``, are packed into so many words, each in so many bits; a single
    dimension's choices are the list.
    """
    if chains.shape[1] == 1:
        return chains[:, 0], np.zeros(0, dtype=np.int64), 0, 1
    listed, places = np.unique(chains, return_inverse=True)
    words, bits = packed_rows(places.reshape(chains.shape).T + offset)
    return listed, words.T.reshape(-1), len(words), bits


def aliases(odds: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return ``(e)`` chances to keep an entry, and the entry to take else, in each run of ``odds`` from ``starts``.

    Kept is what draws no more than the chance of 2^`CHANCE_BITS` that is above the lowest `ENTRY_BITS`, which hold the
    other entry. Vose, A linear algorithm for generating random numbers with a given distribution (IEEE TSE 1991).
    """
    keep, other = np.ones(len(odds)), np.zeros(len(odds), dtype=np.int64)
    for start, end in zip(starts, np.append(starts[1:], len(odds)), strict=True):
        total = odds[start:end].sum()
        if total == 0:
            continue
        share = (odds[start:end] * ((end - start) / total)).tolist()
        small = [i for i, value in enumerate(share) if value < 1]
        large = [i for i, value in enumerate(share) if value >= 1]
        # What rounding leaves over goes to the likeliest.
        likeliest = int(np.argmax(odds[start:end]))
        keep[start:end], other[start:end] = np.minimum(share, 1), likeliest
        keep[start + likeliest] = 1
        while small and large:
            low, high = small.pop(), large[-1]
            keep[start + low], other[start + low] = share[low], high
            share[high] -= 1 - share[low]
            if share[high] < 1:
                small.append(large.pop())
        for i in large:
            keep[start + i] = 1
    return np.asarray(np.ceil(np.ldexp(keep, CHANCE_BITS)).astype(np.int64) - 1 << ENTRY_BITS | other)

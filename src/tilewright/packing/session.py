"""One packing: what is to be placed, what is found so far, and the methods that find it."""

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tilewright.base import InputError, Registry
from tilewright.jobs import Spending, Stop, present_stop
from tilewright.packing.buffers import Buffers, Ints, Packing
from tilewright.packing.inplace import pack_in_place

if TYPE_CHECKING:
    from tilewright.packing.kernels import Instance

Packer = Callable[["PackingSession"], None]
PACKERS: Registry[Packer] = Registry("packer")
"""Ways to place buffers."""


class PackingSession(Spending):
    """What a method is given: buffers in units that all addresses are multiples of, and what is found.

    Parameters
    ----------
    capacity
        A placement within it ends the search; None asks for the least height.
    bank
        Addresses of a bank, across whose ends no buffer lies; None for no banks.
    """

    def __init__(self, buffers: Buffers, capacity: int | None, seconds: float | None, stop: Stop,
                 bank: int | None = None) -> None:
        super().__init__(None, seconds, stop)
        self.buffers = buffers
        sizes = gcd(int(np.gcd.reduce(buffers.size)), bank or 0)
        self.unit = _unit(sizes, np.unique(buffers.alignment).tolist())
        self.bank = (bank or 0) // self.unit
        self.size = buffers.size // self.unit
        self.alignment = np.where(self.unit % buffers.alignment == 0, 1, buffers.alignment // self.unit)
        self.capacity = None if capacity is None else capacity // self.unit
        self.bound = buffers.live_peak // self.unit
        self.offsets: Ints | None = None
        self.height = int(self.size.sum() + self.alignment.sum()) * (2 if bank else 1)  # what no bank has room for

    @property
    def ended(self) -> bool:
        """Whether what was asked for is found, or shown not to be there."""
        wanted = self.bound if self.capacity is None else self.capacity
        return self.bound > wanted or (self.offsets is not None and self.height <= wanted)

    def offer(self, offsets: Ints) -> None:
        """Take note of a placement, in units."""
        height = int((offsets + self.size).max(initial=0))
        if self.offsets is None or height < self.height:
            self.offsets, self.height = offsets.copy(), height

    def instance(self, order: Ints) -> "Instance":
        """Return the buffers in an order, as compiled code takes them."""
        from tilewright.packing.kernels import Instance  # noqa: PLC0415  (Numba loads late)

        covers = self.buffers.covers[order]
        sparse = csr_array(covers, dtype=np.int32)
        near = (sparse @ sparse.T).toarray() > 0
        np.fill_diagonal(near, False)
        known: dict[tuple[int, int, bytes], int] = {}
        twin = np.full(len(order), -1)
        for place, i in enumerate(order):
            like = (int(self.size[i]), int(self.alignment[i]), covers[place].tobytes())
            twin[place] = known.get(like, -1)
            known[like] = place
        return Instance(self.size[order], self.alignment[order], *_rows(covers), *_rows(covers.T), *_rows(near), twin,
                        covers.shape[1], self.bank)

    def found(self, method: str) -> Packing:
        """Return what came of it, in the units of the buffers."""
        fits = self.offsets is not None and (self.capacity is None or self.height <= self.capacity)
        offsets = self.offsets * self.unit if fits and self.offsets is not None else None
        height = int((offsets + self.buffers.size).max(initial=0)) if offsets is not None else 0
        proven = self.height <= self.bound if fits else self.capacity is not None and self.bound > self.capacity
        return Packing(offsets, height, self.bound * self.unit, proven, method, self.spent, self.used_seconds)


def _unit(sizes: int, alignments: list[int]) -> int:
    """Return the largest divisor of ``sizes`` that each alignment either divides or is a multiple of."""
    unit = sizes
    while odd := [one for one in alignments if unit % one and one % unit]:
        unit = gcd(unit, *odd)
    return unit


def _rows(relation: np.ndarray) -> tuple[Ints, Ints]:
    """Return where each row's columns begin among those of all rows, and these."""
    return np.append(0, np.cumsum(relation.sum(axis=1))), np.ascontiguousarray(np.nonzero(relation)[1])


def pack(buffers: Buffers, capacity: int | None = None, method: str = "exact", *,  # noqa: PLR0913
         seconds: float | None = 60.0, stop: Stop | None = None, bank: int | None = None) -> Packing:
    """Place buffers so that none share an address at one time, but for those that may be in the place of another.

    Parameters
    ----------
    capacity
        A placement within it is asked for; None asks for the least height, with a bound, however far that comes.
    method
        One of `PACKERS`.
    seconds
        Ends the search, as ``stop`` does when set; the best until then is returned. None: no limit of time.
    bank
        Addresses of a bank, the first of which begins at 0: no buffer lies across two. None: all is one bank.

    Raises
    ------
    InputError
        If a method is unknown, the capacity or a bank is no positive number, or a buffer is larger.
    """
    packer = PACKERS.get(method)
    for what, most in (("capacity", capacity), ("bank", bank)):
        if most is None:
            continue
        if most < 1:
            raise InputError(what, "must be a positive integer", most)
        for name, size in zip(buffers.ids, buffers.size, strict=True):
            if size > most:
                raise InputError(f"size of {name}", f"must be within the {what}, {most}", int(size),
                                 "Enlarge the memory, or cut the buffer")
    if not len(buffers):
        return Packing(np.empty(0, np.int64), 0, 0, True, method)
    ended = stop or present_stop()

    def place(given: Buffers, within: float | None) -> Packing:
        session = PackingSession(given, capacity, within, ended, bank)
        packer(session)
        return session.found(method)

    if any(buffers.inplace):
        return pack_in_place(buffers, capacity, seconds, ended, place)
    return place(buffers, seconds)

"""One packing: what is to be placed, what is found so far, and the methods that find it.

Where buffers may take the place of others (results written over what they are made of), which do is chosen first. Those
of one place are then placed as one buffer, of the size of the largest, for all lives.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from math import gcd, inf, lcm, prod
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tilewright.base import InputError, Registry, late_module
from tilewright.jobs import Spending, Stop, present_stop
from tilewright.packing.buffers import Buffers, Ints, Packing, Span

if TYPE_CHECKING:
    from tilewright.packing.kernels import Instance

kernels = late_module("tilewright.packing.kernels")
Choice = tuple[int, ...]
"""For each buffer the one whose place it takes; its own for none."""
MOST_CHOICES = 64
"""Choices up to which all are tried: where sizes of pairs are equal, what none of them comes below is proven."""
Packer = Callable[["PackingSession"], None]
PACKERS: Registry[Packer] = Registry("packer")
"""Ways to place buffers."""


def pack_in_place(buffers: Buffers, capacity: int | None, seconds: float | None, stop: Stop,
                  place: Callable[[Buffers, float | None], Packing]) -> Packing:
    """Place buffers, some in the place of others where that helps; ``place`` places those that are left to place."""
    began, bound, least, nodes, method = time.perf_counter(), _shared_peak(buffers), inf, 0, ""
    offsets, height = None, 0
    others = _others(buffers)
    choices = list(dict.fromkeys(_choices(others, buffers)))
    for number, choice in enumerate(choices):
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - began))
        done = offsets is not None and (capacity is not None or height <= bound)
        if number and (done or stop.is_set() or left == 0):
            break
        joined = _joined(buffers, others, choice)
        if joined is not None:
            whole, groups = joined
            found = place(whole, None if left is None else left / min(2, len(choices) - number))
            nodes, method = nodes + found.nodes, found.method
            least = min(least, found.bound)
            if found.offsets is not None and (offsets is None or found.height < height):
                offsets = found.offsets[groups]
                height = int((offsets + buffers.size).max())
    else:
        if len(choices) == prod(map(len, others)) and all(
                buffers.size[one] == buffers.size[at] for at, each in enumerate(others) for one in each):
            bound = max(bound, int(min(least, (capacity or 0) + 1 if offsets is None else height)))
    proven = height <= bound if offsets is not None else capacity is not None and bound > capacity
    return Packing(offsets, height, bound, proven, method, nodes, time.perf_counter() - began)


def _others(buffers: Buffers) -> list[tuple[int, ...]]:
    """Return for each buffer those whose place it may take, itself first."""
    at = {name: place for place, name in enumerate(buffers.ids)}
    return [(place, *(at[name] for name in names)) for place, names in enumerate(buffers.inplace)]


def _choices(others: list[tuple[int, ...]], buffers: Buffers) -> Iterator[Choice]:
    """Give choices: first that each takes the place that is nearest to it in size and still free, and none last.

    Between them all there are or, of many, those in which one more has a place of its own.
    """
    first = list(range(len(others)))
    for at in sorted(first, key=lambda at: int(buffers.lower[at])):
        for one in sorted(others[at][1:], key=lambda one: abs(int(buffers.size[one] - buffers.size[at]))):
            if _joined(buffers, others, (*first[:at], one, *first[at + 1:])) is not None:
                first[at] = one
                break
    yield tuple(first)
    if prod(map(len, others)) <= MOST_CHOICES:
        yield from product(*others)
    else:
        yield from ((*first[:at], at, *first[at + 1:]) for at in range(len(first)))
    yield tuple(range(len(others)))


def _joined(buffers: Buffers, others: list[tuple[int, ...]], choice: Choice) -> tuple[Buffers, list[int]] | None:
    """Return buffers in which those of one place are one, and which one each is in; None where two would clash.

    Of those of one place only what may take the place of another lives beside that.
    """
    of, groups, alive = dict[int, int](), list[list[int]](), buffers.alive
    for at in sorted(range(len(choice)), key=lambda at: int(buffers.lower[at])):
        if choice[at] == at:
            of[at] = len(groups)
            groups.append([at])
            continue
        of[at] = of[choice[at]]
        if any(one not in others[at] and (alive[at] & alive[one]).any() for one in groups[of[at]]):
            return None
        groups[of[at]].append(at)
    spans = [_united(span for at in group for span in buffers.spans(at)) for group in groups]
    whole = Buffers(
        tuple(buffers.ids[group[0]] for group in groups), np.array([span[0][0] for span in spans]),
        np.array([span[-1][1] for span in spans]), np.array([max(buffers.size[group]) for group in groups]),
        np.array([lcm(*buffers.alignment[group].tolist()) for group in groups]),
        tuple(tuple((one[1], other[0]) for one, other in pairwise(span)) for span in spans))
    return whole, [of[at] for at in range(len(choice))]


def _united(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def _shared_peak(buffers: Buffers) -> int:
    """Return what no placement is below: the most that lives at one time, less what each may share with another."""
    live, alive = buffers.live[1], buffers.alive
    spared = np.zeros(len(live), np.int64)
    for at, others in enumerate(_others(buffers)):
        if len(others) > 1:
            spared += np.max([(alive[at] & alive[one]) * min(buffers.size[at], buffers.size[one])
                              for one in others[1:]], axis=0)
    return int(max((live - spared).max(initial=0), buffers.size.max(initial=0)))


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
        found: Instance = kernels.Instance(self.size[order], self.alignment[order], *_rows(covers), *_rows(covers.T),
                                           *_rows(near), twin, covers.shape[1], self.bank)
        return found

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

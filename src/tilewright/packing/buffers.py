"""Buffers that live for a while, where they are placed, and whether a placement holds; and their CSV files.

The format of these is that of minimalloc (google/minimalloc, README and converter).
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, csv_text, read_text, whole_of

Ints = NDArray[np.int64]
Span = tuple[int, int]
"""From a time, to a time that it does not include any more."""
MOST = 2**62
"""What sizes come to together, at most."""
COLUMNS = {"id": "id", "buffer": "id", "buffer_id": "id", "lower": "lower", "start": "lower", "begin": "lower",
           "upper": "upper", "end": "end", "size": "size", "alignment": "alignment", "gaps": "gaps", "hint": "hint",
           "inplace": "inplace", "offset": "offset"}
"""Heads of columns and what they hold; ``end`` is the last time, ``upper`` the first after it."""


@dataclass(frozen=True, eq=False)
class Buffers:
    """``n`` buffers, each of which needs ``size`` addresses from ``lower`` on until before ``upper``.

    Raises an `InputError` if an id is used twice, a life ends before it begins, a size or an alignment is less than 1,
    gaps are not in order within the life, with some of it left, or a buffer may take a place that it cannot.
    """

    ids: tuple[str, ...]
    """``(n)``, each a name of its own."""
    lower: Ints
    upper: Ints
    """``lower`` and ``upper``: ``(n)``: the time of the beginning, and the first after the end."""
    size: Ints
    """``(n)``, in bytes or any other unit."""
    alignment: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """``(n)``: addresses are multiples of it; 1 unless told."""
    gaps: tuple[tuple[Span, ...], ...] = ()
    """``(n)``: times within its life at which a buffer holds nothing; none unless told."""
    inplace: tuple[tuple[str, ...], ...] = ()
    """``(n)``: ids of buffers whose place each may take: it may begin at the same address as one of them while both
    live. They begin before it and end within its life; none unless told."""
    labels: InitVar[Sequence[str]] = ()
    """``(n)``: what errors call each."""

    def __post_init__(self, labels: Sequence[str]) -> None:
        n = len(self.ids)
        for name in ("lower", "upper", "size", "alignment"):
            given = getattr(self, name)
            values = np.ones(n) if name == "alignment" and not len(given) else given
            object.__setattr__(self, name, np.asarray(values, dtype=np.int64))
            if getattr(self, name).shape != (n,):
                raise InputError(name, f"must hold a number for each of the {n} buffers", len(values))
        for name in ("gaps", "inplace"):
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(map(tuple, given)) if given else ((),) * n)
        known = dict[str, int]()
        wheres = labels or [f"buffers[{place}] ({name})" for place, name in enumerate(self.ids)]
        for place, name in enumerate(self.ids):
            self._check(place, wheres[place], known)
            known[name] = place
        for place, where in enumerate(wheres):
            self._check_inplace(place, where, known)
        if float(self.size.sum(dtype=float)) + float(self.alignment.sum(dtype=float)) >= MOST:
            raise InputError("size", "must come to less than 2^62 for all buffers together", int(max(self.size)))

    def _check(self, place: int, where: str, known: Mapping[str, int]) -> None:
        lower, upper, gaps = int(self.lower[place]), int(self.upper[place]), self.gaps[place]
        if self.ids[place] in known:
            raise InputError(f"{where} id", "must be a name of its own", self.ids[place], "Another buffer has it")
        if upper <= lower:
            raise InputError(f"{where} upper", f"must be after its lower, {lower}", upper,
                             "The first time after the end is given, not the last of it")
        for what in ("size", "alignment"):
            if getattr(self, what)[place] < 1:
                raise InputError(f"{where} {what}", "must be a positive integer", int(getattr(self, what)[place]))
        times = [lower, *(time for gap in gaps for time in gap), upper]
        rising = all(one <= other for one, other in pairwise(times)) and all(first < last for first, last in gaps)
        if not rising or not self.spans(place):
            raise InputError(f"{where} gaps", "must be in order within its life, and leave some of it",
                             " ".join(f"{first}-{last}" for first, last in gaps))

    def _check_inplace(self, place: int, where: str, known: Mapping[str, int]) -> None:
        for name in self.inplace[place]:
            one = known.get(name, -1)
            if one < 0 or not self.lower[one] < self.lower[place] < self.upper[one] <= self.upper[place]:
                raise InputError(f"{where} inplace", "must be ids of buffers that begin before it and end in its life",
                                 name, "It may take the place of what lives until it is made")

    def __len__(self) -> int:
        return len(self.ids)

    def spans(self, place: int) -> list[Span]:
        """Return the times in which a buffer holds something."""
        times = [int(self.lower[place]), *(time for gap in self.gaps[place] for time in gap), int(self.upper[place])]
        return [(first, last) for first, last in zip(times[::2], times[1::2], strict=True) if first < last]

    @cached_property
    def live(self) -> tuple[Ints, Ints]:
        """Times at which what lives changes ``(t)``, and the sizes that live from each on ``(t)``."""
        spans = [(first, last, int(size)) for place, size in enumerate(self.size) for first, last in self.spans(place)]
        times = np.unique([time for first, last, _ in spans for time in (first, last)]).astype(np.int64)
        change = np.zeros(len(times), np.int64)
        for first, last, size in spans:
            change[np.searchsorted(times, first)] += size
            change[np.searchsorted(times, last)] -= size
        return times, np.cumsum(change)

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Whether each buffer lives from each of the times on at which what lives changes ``(n, t)``."""
        times = self.live[0]
        found = np.zeros((len(self), len(times)), np.bool_)
        for place in range(len(self)):
            for first, last in self.spans(place):
                found[place, np.searchsorted(times, first):np.searchsorted(times, last)] = True
        return found

    @property
    def live_peak(self) -> int:
        """The largest sum of sizes that live at one time: no placement is lower."""
        return int(self.live[1].max(initial=0))

    @cached_property
    def covers(self) -> NDArray[np.bool_]:
        """Sections that buffers live in, ``(n, s)``: two share an address at no time where they share no section.

        Sections are the times between two changes, without those whose buffers all live at the time before or after.
        """
        live, times = self.alive, self.live[0]
        before = np.pad(live, ((0, 0), (1, 0)))[:, :-1]
        begins, ended = (np.count_nonzero(one & ~other, axis=0) > 0 for one, other in ((live, before), (before, live)))
        kept, new = [], False
        for section in range(len(times)):
            new = new or begins[section]
            if new and section + 1 < len(times) and ended[section + 1]:
                kept.append(section)
                new = False
        return live[:, kept]


@dataclass(frozen=True, eq=False)
class Packing:
    """Where buffers are placed."""

    offsets: Ints | None
    """``(n)``: the first address of each; None where no placement was found."""
    height: int
    """The first address above all of them; of no placement, 0."""
    bound: int
    """No placement is lower."""
    proven: bool
    """Whether nothing better is there: the height is the bound or, of no placement, none fits the capacity."""
    method: str = "exact"
    """What found it."""
    nodes: int = 0
    """Nodes of the search."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def gap(self) -> float:
        """By which share the height is at most above the least."""
        return self.height / self.bound - 1 if self.bound and self.offsets is not None else 0.0


def verify_packing(buffers: Buffers, offsets: Ints, capacity: int | None = None, bank: int | None = None,
                   ) -> list[str]:
    """Return what is wrong with a placement, in words; nothing where it holds.

    It looks at every pair of buffers and shares nothing with what places them.
    """
    if np.shape(offsets) != (len(buffers),):
        return [f"{len(buffers)} buffers have {np.size(offsets)} offsets"]
    at = [int(offset) for offset in offsets]
    end = [offset + int(size) for offset, size in zip(at, buffers.size, strict=True)]
    spans = [buffers.spans(place) for place in range(len(buffers))]
    told = [line for place in range(len(buffers)) for line in _misplaced(
        buffers, place, at[place], end[place], capacity, bank)]
    for one in range(len(buffers)):
        for other in range(one):
            pair = buffers.ids[one] in buffers.inplace[other] or buffers.ids[other] in buffers.inplace[one]
            if at[one] >= end[other] or at[other] >= end[one] or (pair and at[one] == at[other]):
                continue
            shared = [max(first, begin) for first, last in spans[one] for begin, stop in spans[other]
                      if first < stop and begin < last]
            if shared:
                told.append(f"{buffers.ids[other]} and {buffers.ids[one]} share address "
                            f"{max(at[one], at[other])} at time {min(shared)}")
    return told


def _misplaced(buffers: Buffers, place: int, at: int, end: int, capacity: int | None,  # noqa: PLR0913, PLR0917
               bank: int | None) -> Iterator[str]:
    """Say what is wrong with one buffer by itself."""
    name, alignment = buffers.ids[place], int(buffers.alignment[place])
    if at < 0:
        yield f"{name} begins at {at}, below 0"
    if at % alignment:
        yield f"{name} begins at {at}, which is no multiple of {alignment}"
    if capacity is not None and end > capacity:
        yield f"{name} ends at {end}, above the capacity of {capacity}"
    if bank is not None and at // bank != (end - 1) // bank:
        yield f"{name} lies in two banks, from {at} to {end}"


def read_buffers(path: str | Path) -> Buffers:
    """Return the buffers of a CSV file.

    Its columns are ``id`` (or ``buffer``, ``buffer_id``), ``lower`` (``start``, ``begin``), ``upper``, the first time
    after the end (or ``end``, the last time before it), ``size`` and, where wanted, ``alignment`` and ``gaps``
    (``4-7 9-11``, whose ends are meant as those of lives) and ``inplace``: ids, with spaces between, of buffers whose
    place this one may take. Columns ``offset`` and ``hint`` are left alone.

    Raises an `InputError` with file and line, where something is wrong.
    """
    label = Path(path).name
    try:
        return _read(label, read_text(path))
    except csv.Error as error:
        raise InputError(label, "must be a table of cells with commas between", str(error)) from None


def _read(label: str, text: str) -> Buffers:
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    heads = [COLUMNS.get(str(head).strip().lower(), "") for head in rows.fieldnames or ()]
    wrong = [head for head, known in zip(rows.fieldnames or ("nothing",), heads or ("",), strict=True) if not known]
    ends = [head for head in heads if head in ("upper", "end")]
    if wrong or len(set(heads)) < len(heads) or len(ends) != 1 or not {"id", "lower", "size"} <= set(heads):
        raise InputError(f"{label}:1", "must have the columns id, lower, upper (or end) and size once, and no others "
                         "but alignment, gaps, inplace, hint and offset",
                         wrong[0] if wrong else ",".join(rows.fieldnames or ()))
    rows.fieldnames = heads
    read, lines = [], []
    for row in rows:
        if None in row or None in row.values():
            raise InputError(f"{label}:{rows.line_num}", f"must have {len(heads)} cells",
                             ",".join([*(cell for cell in row.values() if isinstance(cell, str)), *row.get(None, ())]))
        cells = {name: str(cell).strip() for name, cell in row.items()}
        if any(cells.values()):
            lines.append(f"{label}:{rows.line_num}")
            read.append((cells["id"], *_numbers(lines[-1], cells), _gaps(lines[-1], cells),
                         tuple(cells.get("inplace", "").split())))
    if not read:
        raise InputError(f"{label}:1", "must have at least one buffer below its head", "none")
    ids, lower, upper, size, alignment, gaps, inplace = zip(*read, strict=True)
    return Buffers(ids, np.array(lower), np.array(upper), np.array(size), np.array(alignment), gaps, inplace, lines)


def _whole(where: str, text: str, least: int = 0) -> int:
    found = whole_of(text, least, MOST)
    if found is None:
        raise InputError(where, f"must be a whole number from {least} on", text)
    return found


def _numbers(where: str, cells: Mapping[str, str]) -> tuple[int, int, int, int]:
    if not cells["id"]:
        raise InputError(f"{where} id", "must be given", None)
    end = "end" if "end" in cells else "upper"
    return (_whole(f"{where} lower", cells["lower"]), _whole(f"{where} {end}", cells[end]) + (end == "end"),
            _whole(f"{where} size", cells["size"], 1), _whole(f"{where} alignment", cells.get("alignment") or "1", 1))


def _gaps(where: str, cells: Mapping[str, str]) -> tuple[Span, ...]:
    found = []
    for text in cells.get("gaps", "").split():
        first, sign, last = text.partition("-")
        if not sign or "@" in last:
            raise InputError(f"{where} gaps", "must be times as 4-7, with spaces between", text,
                             "Windows of addresses within gaps are not known here" if "@" in last else "")
        found.append((_whole(f"{where} gaps", first), _whole(f"{where} gaps", last) + ("end" in cells)))
    return tuple(found)


def buffers_csv(buffers: Buffers, offsets: Ints | None = None) -> str:
    """Return buffers, and where they are placed, as such a file: with ``upper``, and columns that are needed alone."""
    columns: dict[str, Sequence[object]] = {
        "id": buffers.ids, "lower": buffers.lower.tolist(), "upper": buffers.upper.tolist(),
        "size": buffers.size.tolist()}
    if (buffers.alignment != 1).any():
        columns["alignment"] = buffers.alignment.tolist()
    if any(buffers.gaps):
        columns["gaps"] = [" ".join(f"{first}-{last}" for first, last in gaps) for gaps in buffers.gaps]
    if any(buffers.inplace):
        columns["inplace"] = [" ".join(names) for names in buffers.inplace]
    if offsets is not None:
        columns["offset"] = offsets.tolist()
    return csv_text([list(columns), *zip(*columns.values(), strict=True)])

"""Buffers as CSV files, in the format of minimalloc (google/minimalloc, README and converter)."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tilewright.base import InputError, csv_text, read_text, whole_of
from tilewright.packing.buffers import MOST, Buffers, Ints, Span

COLUMNS = {"id": "id", "buffer": "id", "buffer_id": "id", "lower": "lower", "start": "lower", "begin": "lower",
           "upper": "upper", "end": "end", "size": "size", "alignment": "alignment", "gaps": "gaps", "hint": "hint",
           "inplace": "inplace", "offset": "offset"}
"""Heads of columns and what they hold; ``end`` is the last time, ``upper`` the first after it."""


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

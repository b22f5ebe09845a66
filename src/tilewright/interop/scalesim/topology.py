"""SCALE-Sim's topologies: a row for each layer, convolutions or products M, N, K.

A row has the columns of `CONVOLUTION` or `PRODUCT`, and ends in a comma: SCALE-Sim drops what follows the last one. A
convolution may have a stride for columns of its own (version 2), either kind a ratio ``N:M`` of weights that are not
zero (version 3). A convolution with ``DP`` in its name runs for each of its channels alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.base import InputError, free_name, read_text, whole_of
from tilewright.interop.notes import Kind, Note, Notes
from tilewright.interop.signs import CONVOLUTION, PRODUCT, shape_of
from tilewright.workload import MacNode, Operator, convolution, matmul, with_densities

DEPTHWISE = "DP"
_RATIO = re.compile(r"([0-9]+)\s*:\s*([0-9]+)")
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class _Row:
    label: str
    line: int
    name: str
    cells: tuple[str, ...]
    columns: tuple[str, ...]

    def where(self, column: str) -> str:
        return f"{self.label}:{self.line} {self.name}.{column}"

    def sizes(self) -> list[int]:
        """Return the sizes of the columns that every row has, and the stride of columns where there is one."""
        found = []
        for column, cell in zip((*self.columns, "Stride Width"), self.cells, strict=False):
            number = whole_of(cell, 1, _LARGEST)
            if number is None:
                raise InputError(self.where(column), f"must be a whole number from 1 to {_LARGEST}", cell or "nothing")
            found.append(number)
        return found


def read_topology(path: Path, notes: Notes) -> list[MacNode]:
    """Return the layers of a topology in order; what could not be honoured in full goes to ``notes``.

    Raises an `InputError` with file, line and column, if something is missing or wrong.
    """
    text = read_text(path)
    shape = shape_of(text)
    if shape is None:
        raise InputError(f"{path.name}:1", "must be a head of columns, the first being Layer name",
                         next(iter(text.splitlines()), "") or "nothing",
                         f"Layer name, {', '.join(CONVOLUTION)}, or Layer, {', '.join(PRODUCT)},")
    columns = CONVOLUTION if shape == "convolutions" else PRODUCT
    nodes, names = [], set[str]()
    for row in _rows(path.name, text, columns, notes):
        operator = _convolution(row, notes) if shape == "convolutions" else _product(row)
        name = free_name(row.name, names)
        if name != row.name:
            _note(notes, row, "approximated", f"a name that another layer has; called {name}")
        names.add(name)
        nodes.append(MacNode(replace(operator, name=name)))
    if not nodes:
        raise InputError(f"{path.name}:1", "must have at least one layer below its head")
    return nodes


def _note(notes: Notes, row: _Row, kind: Kind, text: str) -> None:
    notes.append(Note(f"{row.label}:{row.line} {row.name}", kind, text))


def _rows(label: str, text: str, columns: tuple[str, ...], notes: Notes) -> list[_Row]:
    """Return the rows below the head; a remark behind the last comma is no cell."""
    found = []
    head = True
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        if not line.replace(",", "").strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if head:
            head = False
            _check_order(label, number, cells, columns, notes)
            continue
        last = cells.pop()
        row = _Row(label, number, cells[0] if cells else last, tuple(cells[1:]), columns)
        if last and not last.startswith("#"):
            row = replace(row, cells=(*row.cells, last))
            _note(notes, row, "approximated", "a row that ends without a comma: SCALE-Sim loses its last value")
        if not row.name:
            raise InputError(f"{label}:{number} Layer name", "must be given")
        least, most = len(columns), len(columns) + (2 if columns is CONVOLUTION else 1)
        if not least <= len(row.cells) <= most:
            raise InputError(f"{label}:{number} {row.name}",
                             f"must have the columns {', '.join(columns)}, and at most {most - least} more",
                             f"{len(row.cells)} values")
        found.append(row)
    return found


def _check_order(label: str, number: int, cells: Sequence[str], columns: tuple[str, ...], notes: Notes) -> None:
    """Tell where the head of products names another order than the one that SCALE-Sim reads."""
    named = tuple(cell.upper() for cell in cells[1:4])
    if columns is PRODUCT and set(named) == set(PRODUCT) and named != PRODUCT:
        notes.approximated(f"{label}:{number}",
                           f"the head says {', '.join(named)}; SCALE-Sim reads M, N, K by place, and so do we")


def _densities(row: _Row, operator: Operator, ratio: str | None) -> Operator:
    """Return the operator whose weights have the density of a ratio ``N:M``."""
    if ratio is None:
        return operator
    found = _RATIO.fullmatch(ratio)
    some, every = (whole_of(part, 1, _LARGEST) for part in found.groups()) if found else (None, None)
    if some is None or every is None or some > every:
        raise InputError(row.where("Sparsity"), "must be a ratio N:M, N of every M weights not zero, N from 1 to M",
                         ratio)
    return operator if some == every else with_densities(operator, {"weights": f"{some}:{every}"})


def _ratio(row: _Row) -> tuple[_Row, str | None]:
    if row.cells and ":" in row.cells[-1]:
        return replace(row, cells=row.cells[:-1]), row.cells[-1]
    return row, None


def _product(row: _Row) -> Operator:
    row, ratio = _ratio(row)
    if len(row.cells) != len(PRODUCT):
        raise InputError(row.where("Sparsity" if len(row.cells) > len(PRODUCT) else "K"),
                         "must be a ratio N:M" if len(row.cells) > len(PRODUCT) else "must be given",
                         row.cells[-1] if row.cells else None)
    m, n, k = row.sizes()
    return _densities(row, matmul(row.name, m=m, n=n, k=k), ratio)


def _convolution(row: _Row, notes: Notes) -> Operator:
    row, ratio = _ratio(row)
    if len(row.cells) not in (len(CONVOLUTION), len(CONVOLUTION) + 1):
        raise InputError(row.where("Sparsity"), "must be a ratio N:M, after the strides", ", ".join(row.cells[7:]))
    height, width, kernel_height, kernel_width, channels, filters, stride, *more = row.sizes()
    for column, size, kernel in (("Filter Height", height, kernel_height), ("Filter Width", width, kernel_width)):
        if kernel > size:
            raise InputError(row.where(column), f"must not be larger than the IFMAP, {size}", kernel)
    strides = stride, *(more or [stride])
    out = tuple(-(-(size - kernel) // step) + 1
                for size, kernel, step in zip((height, width), (kernel_height, kernel_width), strides, strict=True))
    groups = channels if DEPTHWISE in row.name else 1
    operator = convolution(row.name, in_channels=channels, out_channels=filters * groups, groups=groups,
                           kernel=(kernel_height, kernel_width), out_size=out, stride=strides)
    reach = [(size - 1) * step + kernel
             for size, step, kernel in zip(out, strides, (kernel_height, kernel_width), strict=True)]
    if reach != [height, width] and (reach[0] > height or reach[1] > width):
        _note(notes, row, "approximated", f"the last windows reach {max(0, reach[0] - height)} rows and "
              f"{max(0, reach[1] - width)} columns past the IFMAP; as in SCALE-Sim they are computed, and those words "
              "count as any others")
    known = dict(operator.attributes) | {"in_size": f"{height}x{width}"}
    return _densities(row, replace(operator, attributes=tuple(known.items())), ratio)

"""MAGMA's job lists, as they are released: rows of thread, layer, six sizes and a type, without a head.

Types and their sizes: 0, a fully connected layer of outputs and inputs; 1, a convolution of K, C, Y, X, R, S, where Y
and X are those of the input, without padding; 2, a depthwise one, K being the outputs of each channel; 3, a matrix
product of M, N, K. Source: github.com/maestro-project/magma, commit f25ef66.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.base import InputError, read_text, whole_of
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.workload import Graph, MacNode, Operator, convolution, linear, matmul

COLUMNS = ("thread", "layer", "K", "C", "Y", "X", "R", "S", "type")
_LARGEST = 2**31 - 1


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read one list as a network whose layers do not wait for one another.

    Raises an `InputError` with file, line and column, where something is wrong.
    """
    refuse_sizes(bind, "MAGMA's job lists")
    if len(paths) != 1:
        raise InputError(str(paths[1]), "must come alone: a job list belongs to no other file", str(paths[0]))
    label, nodes = paths[0].name, list[MacNode]()
    for number, line in enumerate(read_text(paths[0]).lstrip("\ufeff").splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if any(cells):
            nodes.append(MacNode(_operator(f"{label}:{number}", f"job{len(nodes)}", cells)))
    if not nodes:
        raise InputError(f"{label}:1", "must have at least one row", "none", ",".join(COLUMNS))
    return Foreign(Graph(paths[0].stem, tuple(nodes), str(paths[0])))


def _operator(where: str, name: str, cells: list[str]) -> Operator:
    if len(cells) != len(COLUMNS):
        raise InputError(where, f"must have the columns {','.join(COLUMNS)}", f"{len(cells)} columns")
    sizes = []
    for column, cell in zip(COLUMNS, cells, strict=True):
        least, most = (0, 3) if column == "type" else (0, _LARGEST) if column in COLUMNS[:2] else (1, _LARGEST)
        size = whole_of(cell, least, most)
        if size is None:
            raise InputError(f"{where} {column}", f"must be a whole number from {least} to {most}", cell or "nothing")
        sizes.append(size)
    *_, k, c, y, x, r, s, kind = sizes
    unused = {0: (y, x, r, s), 3: (x, r, s)}.get(kind, ())
    if any(size != 1 for size in unused):
        raise InputError(where, f"must have 1 for what a row of type {kind} has no use for", ",".join(cells))
    if kind == 0:
        return linear(name, rows=1, in_features=c, out_features=k)
    if kind == 3:
        return matmul(name, m=k, n=c, k=y)
    if r > y or s > x:
        raise InputError(where, "must have a kernel R by S no larger than the input Y by X", f"{r} x {s} on {y} x {x}")
    if kind == 1:
        return convolution(name, in_channels=c, out_channels=k, in_size=(y, x), kernel=(r, s))
    return convolution(name, in_channels=c, out_channels=k * c, groups=c, in_size=(y, x), kernel=(r, s))

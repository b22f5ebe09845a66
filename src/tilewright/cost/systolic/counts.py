"""Matrix products on systolic arrays: cycles and accesses, for many products, arrays and dataflows at once.

``O[M, N] += I[M, K] * W[K, N]`` runs on an array of R rows by C columns in folds, one after the other. What lies along
rows and columns, and what streams:

======================  ============  ============  =========  ==============================================
dataflow                along rows    along columns streamed   a fold of r by c takes
======================  ============  ============  =========  ==============================================
output-stationary (os)  M             N             K          ``K + r + c - 2``
weight-stationary (ws)  K             N             M          ``r`` to load, then ``M + R + c - 2``
input-stationary (is)   K             M             N          ``r`` to load, then ``N + R + c - 2``
======================  ============  ============  =========  ==============================================

Operands enter at the left and top edges, one row or column later than their neighbour; output-stationary columns hand
out each sum as it is finished; the others pass sums down all R rows. Folds do not overlap. A walk
that moves the words cycle by cycle counts the same (``tests/oracle/systolic_walk.py``).

Arrays broadcast by NumPy's rules; every size may be a number or an array. Machine and forms: Samajdar et al.,
"SCALE-Sim", arXiv 1811.02883; ISPASS 2020. What SCALE-Sim counts differently: `SystolicConventions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.base import InputError, unknown_name
from tilewright.cost.systolic.records import (
    SYSTOLIC_DATAFLOWS,
    SYSTOLIC_RULES,
    SystolicConventions,
    SystolicCounts,
    Whole,
)

Flags: TypeAlias = NDArray[np.bool_]
Dataflows: TypeAlias = str | Sequence[str] | NDArray[np.str_]

_CODES = {name: code for code, names in enumerate(SYSTOLIC_DATAFLOWS.items()) for name in names}
_LARGEST = 2.0**62


def systolic_runtime(m: ArrayLike, n: ArrayLike, k: ArrayLike,  # noqa: PLR0913, PLR0917  (sizes that broadcast)
                     rows: ArrayLike, columns: ArrayLike, dataflow: Dataflows,
                     conventions: SystolicConventions = SYSTOLIC_RULES) -> Whole:
    """Return the cycles of matrix products on systolic arrays, of the broadcast shape of all arguments.

    Parameters
    ----------
    m, n, k
        Sizes of the products.
    rows, columns
        Sides of the arrays.
    dataflow
        ``os``, ``ws`` or ``is`` (or their long names), one or an array of them.
    conventions
        `SCALE_SIM` gives the total cycles that SCALE-Sim reports, `SCALE_SIM_PAPER` those of its paper.

    Raises
    ------
    InputError
        If a size is no positive integer, a dataflow unknown, or a count would need more than 62 bits.

    Examples
    --------
    >>> systolic_runtime(256, 64, 256, [32, 128], [32, 128], "os").tolist()
    [5088, 892]
    """
    return _cycles(_Folds.of((m, n, k), (rows, columns), dataflow), conventions)


def systolic_counts(m: ArrayLike, n: ArrayLike, k: ArrayLike,  # noqa: PLR0913, PLR0917  (as above)
                    rows: ArrayLike, columns: ArrayLike, dataflow: Dataflows,
                    conventions: SystolicConventions = SYSTOLIC_RULES) -> SystolicCounts:
    """Return cycles, accesses and utilisation of matrix products; arguments as for `systolic_runtime`."""
    run = _Folds.of((m, n, k), (rows, columns), dataflow)
    cycles = _cycles(run, conventions)
    folds, elements = run.row_folds * run.column_folds, run.rows * run.columns
    macs = run.m * run.n * run.k
    outputs = run.m * run.n
    sums = np.where(run.is_os, outputs, outputs * run.row_folds)
    extra = np.where(run.is_os, folds * (run.rows + run.columns), 0) if conventions.side_writes else 0
    reads = np.zeros_like(sums) if conventions.unread_partial_sums else sums - outputs
    with np.errstate(divide="ignore", invalid="ignore"):
        utilization = macs / (cycles * elements)
    figures = np.broadcast_arrays(
        cycles, run.row_folds, run.column_folds, run.m * run.k * np.where(run.is_is, 1, run.column_folds),
        run.k * run.n * np.where(run.is_os, run.row_folds, np.where(run.is_ws, 1, run.column_folds)), sums + extra,
        reads, macs, run.down * run.across / (folds * elements), utilization)
    return SystolicCounts(*figures)


@dataclass(frozen=True)
class _Folds:
    """Products on arrays as they fold: what lies along rows and columns, what streams, and how many tiles there are."""

    m: Whole
    n: Whole
    k: Whole
    rows: Whole
    columns: Whole
    is_os: Flags
    is_ws: Flags
    is_is: Flags
    down: Whole
    across: Whole
    streamed: Whole

    @classmethod
    def of(cls, sizes: tuple[ArrayLike, ArrayLike, ArrayLike], sides: tuple[ArrayLike, ArrayLike],
           dataflow: Dataflows) -> "_Folds":
        """Check what was given."""
        code = dataflow_codes(dataflow)
        m, n, k = (_sizes(name, value) for name, value in zip("mnk", sizes, strict=True))
        rows, columns = (_sizes(name, value) for name, value in zip(("rows", "columns"), sides, strict=True))
        is_os, is_ws, is_is = (code == kind for kind in range(len(SYSTOLIC_DATAFLOWS)))
        found = cls(m, n, k, rows, columns, is_os, is_ws, is_is, np.where(is_os, m, k), np.where(is_is, m, n),
                    np.where(is_os, k, np.where(is_ws, m, n)))
        found.refuse_overflow()
        return found

    @cached_property
    def row_folds(self) -> Whole:
        """Tiles one below the other."""
        return -(-self.down // self.rows)

    @cached_property
    def column_folds(self) -> Whole:
        """Tiles side by side."""
        return -(-self.across // self.columns)

    def refuse_overflow(self) -> None:
        """Refuse what 64 bits cannot count exactly: first by the largest of all sizes, then each product by itself."""
        if self._most([float(values.max(initial=1)) for values in (self.m, self.n, self.k, self.rows, self.columns)]):
            return
        sizes = [values.astype(np.float64) for values in (self.m, self.n, self.k, self.rows, self.columns)]
        if not self._most(sizes):
            raise InputError("m, n, k", "must be small enough for counts of at most 62 bits",
                             f"{float(self.m.max())} x {float(self.n.max())} x {float(self.k.max())}",
                             "Split the product")

    @staticmethod
    def _most(sizes: Sequence[Any]) -> bool:
        """Whether all counts stay below 62 bits, by an upper limit: ragged folds waste less than a side each."""
        m, n, k, rows, columns = sizes
        return bool(np.all((m + rows) * (n + columns) * (k + rows + columns) < _LARGEST)
                    and np.all((k + rows) * (np.maximum(m, n) + columns) * (np.maximum(m, n) + 2 * rows + columns)
                               < _LARGEST))


def _cycles(run: _Folds, conventions: SystolicConventions) -> Whole:
    folds = run.row_folds * run.column_folds
    if conventions.whole_folds:
        used = folds * (run.rows + run.columns)
    else:
        used = run.column_folds * run.down + run.row_folds * run.across
    cycles = folds * (run.streamed - 2 + np.where(run.is_os, 0, run.rows)) + used
    if conventions.shifted_outputs:
        cycles = cycles + np.where(run.is_os, folds * run.rows, 0)
    return cycles - 1 if conventions.last_cycle_index else cycles


def dataflow_codes(dataflow: Dataflows) -> NDArray[np.int64]:
    """Return 0 for output-, 1 for weight-, 2 for input-stationary, in the shape of what was given.

    Raises an `InputError` if a name is none of `SYSTOLIC_DATAFLOWS`, short or long.
    """
    names = np.asarray(dataflow)
    found = np.empty(names.shape, dtype=np.int64)
    for index, name in np.ndenumerate(names):
        if str(name).lower() not in _CODES:
            raise unknown_name("dataflow of systolic arrays", str(name), list(SYSTOLIC_DATAFLOWS))
        found[index] = _CODES[str(name).lower()]
    return found


def _sizes(name: str, value: ArrayLike) -> Whole:
    found = np.asarray(value)
    if found.dtype.kind not in "iu" or (found < 1).any():
        raise InputError(name, "must be positive integers", value if found.ndim == 0 else found.tolist()[:5])
    return found.astype(np.int64)

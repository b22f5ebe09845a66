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
out each sum as it is finished; the others pass sums down all R rows. Folds do not overlap. The oracle,
`tilewright.cost.reference.walk_systolic`, moves the words cycle by cycle and counts the same.

Arrays broadcast by NumPy's rules; every size may be a number or an array. Machine and forms: Samajdar et al.,
"SCALE-Sim", arXiv 1811.02883; ISPASS 2020. What SCALE-Sim counts differently: `SystolicConventions`.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.base import InputError, unknown_name
from tilewright.cost.systolic_records import (
    SYSTOLIC_DATAFLOWS,
    SYSTOLIC_RULES,
    SystolicConventions,
    SystolicCounts,
    Whole,
)

Dataflows: TypeAlias = str | Sequence[str] | NDArray[np.str_]

_CODES = {name: code for code, names in enumerate(SYSTOLIC_DATAFLOWS.items()) for name in names}
_OS, _WS, _IS = range(3)
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
    return systolic_counts(m, n, k, rows, columns, dataflow, conventions).cycles


def systolic_counts(m: ArrayLike, n: ArrayLike, k: ArrayLike,  # noqa: PLR0913, PLR0917  (as above)
                    rows: ArrayLike, columns: ArrayLike, dataflow: Dataflows,
                    conventions: SystolicConventions = SYSTOLIC_RULES) -> SystolicCounts:
    """Return cycles, accesses and utilisation of matrix products; arguments as for `systolic_runtime`."""
    code = dataflow_codes(dataflow)
    whole = [_sizes(name, value) for name, value in zip("mnk", (m, n, k), strict=True)]
    sides = [_sizes(name, value) for name, value in (("rows", rows), ("columns", columns))]
    m_, n_, k_, r, c, code = np.broadcast_arrays(*whole, *sides, code)
    is_os, is_ws = code == _OS, code == _WS
    down = np.where(is_os, m_, k_)
    across = np.where(code == _IS, m_, n_)
    streamed = np.where(is_os, k_, np.where(is_ws, m_, n_))
    row_folds, column_folds = -(-down // r), -(-across // c)
    folds = row_folds * column_folds
    _refuse_overflow(folds, streamed, r, c, (m_, n_, k_))
    if conventions.whole_folds:
        used = folds * (r + c)
    else:
        used = column_folds * down + row_folds * across
    cycles = folds * (streamed - 2 + np.where(is_os, 0, r)) + used
    if conventions.shifted_outputs:
        cycles = cycles + np.where(is_os, folds * r, 0)
    if conventions.last_cycle_index:
        cycles = cycles - 1
    macs = m_ * n_ * k_
    sums = np.where(is_os, m_ * n_, m_ * n_ * row_folds)
    extra = np.where(is_os, folds * (r + c), 0) if conventions.side_writes else 0
    reads = np.zeros_like(sums) if conventions.unread_partial_sums else sums - m_ * n_
    with np.errstate(divide="ignore", invalid="ignore"):
        utilization = macs / (cycles * (r * c))
    return SystolicCounts(
        cycles=cycles, row_folds=row_folds, column_folds=column_folds,
        input_reads=m_ * k_ * np.where(code == _IS, 1, column_folds),
        weight_reads=k_ * n_ * np.where(is_os, row_folds, np.where(is_ws, 1, column_folds)),
        output_writes=sums + extra, output_reads=reads, macs=macs,
        mapping_efficiency=down * across / (folds * (r * c)), utilization=utilization)


def dataflow_codes(dataflow: Dataflows) -> NDArray[np.int64]:
    """Return 0 for output-, 1 for weight-, 2 for input-stationary, in the shape of what was given.

    Raises
    ------
    InputError
        If a name is none of `SYSTOLIC_DATAFLOWS`, short or long.
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


def _refuse_overflow(folds: Whole, streamed: Whole, rows: Whole, columns: Whole,
                     sizes: tuple[Whole, Whole, Whole]) -> None:
    """Refuse what 64 bits cannot count exactly."""
    m, n, k = (size.astype(np.float64) for size in sizes)
    most = np.maximum(m * n * k, folds.astype(np.float64) * (streamed + 2.0 * rows + columns))
    most = np.maximum(most, folds.astype(np.float64) * rows * columns)
    if (most >= _LARGEST).any():
        raise InputError("m, n, k", "must be small enough for counts of at most 62 bits", f"{float(most.max()):.3g}",
                         "Split the product")

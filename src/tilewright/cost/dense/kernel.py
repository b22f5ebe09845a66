"""The compiled engine: runs a program over blocks of mappings, each instruction one loop that LLVM vectorises.

What an instruction computes is written here; which instructions make the model, in `lowering`. All that the kernel
calls stands in this file, and its name is stamped with `program`, whose numbers it holds: so no cached kernel
outlives a change.

``w`` is the narrow bank, ``v`` the wide one; other capital and short names are indices of their rows. ``one``, ``half``
and ``zero`` come in the type of the narrow bank, so that single precision is never widened. For LLVM to vectorise,
indices are unsigned, and a choice between two rows is arithmetic rather than a choice of what to load.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from tilewright.base import kept, part_options, stamped
from tilewright.cost.dense import program
from tilewright.cost.dense.program import LANES, Op

_LANES = np.uint64(LANES)
_STEP = np.uint64(Op.STEP)
_STEP_EVEN = np.uint64(Op.STEP_EVEN)
_POSITION = np.uint64(Op.POSITION)
_MAX = np.uint64(Op.MAX)
_MIN = np.uint64(Op.MIN)
_MUL = np.uint64(Op.MUL)
_ADD = np.uint64(Op.ADD)
_SUB = np.uint64(Op.SUB)
_COPY = np.uint64(Op.COPY)
_MULADD = np.uint64(Op.MULADD)
_DOT2 = np.uint64(Op.DOT2)
_DOT3 = np.uint64(Op.DOT3)
_REAL = np.uint64(Op.REAL)
_CHOOSE = np.uint64(Op.CHOOSE)
_MERGE = np.uint64(Op.MERGE)
_DERIVE = np.uint64(Op.DERIVE)
_CUT1 = np.uint64(Op.CUT1)
_CUT2 = np.uint64(Op.CUT2)
_CUT_MORE = np.uint64(Op.CUT_MORE)
_DIVIDE_IF = np.uint64(Op.DIVIDE_IF)
_SPLIT_IF = np.uint64(Op.SPLIT_IF)
_REST_IF = np.uint64(Op.REST_IF)
_CUT_IF = np.uint64(Op.CUT_IF)
_PICK1 = np.uint64(Op.PICK1)
_PICK2 = np.uint64(Op.PICK2)
_PICK_MORE = np.uint64(Op.PICK_MORE)
_COUNT0 = np.uint64(Op.COUNT0)
_COUNT1 = np.uint64(Op.COUNT1)
_COUNT2 = np.uint64(Op.COUNT2)
_LAST_CUT = np.uint64(Op.LAST_CUT)
_CEIL_IF = np.uint64(Op.CEIL_IF)
_LAST_CUT_IF = np.uint64(Op.LAST_CUT_IF)
_PRESENT1 = np.uint64(Op.PRESENT1)
_PRESENT2 = np.uint64(Op.PRESENT2)
_LAST_PICK = np.uint64(Op.LAST_PICK)
_LAST_TILE = np.uint64(Op.LAST_TILE)
_HINGE1 = np.uint64(Op.HINGE1)
_HINGE2 = np.uint64(Op.HINGE2)
_HINGE3 = np.uint64(Op.HINGE3)
_HINGE4 = np.uint64(Op.HINGE4)
_HINGE5 = np.uint64(Op.HINGE5)
_HINGE_ADD = np.uint64(Op.HINGE_ADD)
_BETWEEN = np.uint64(Op.BETWEEN)
_BETWEEN1 = np.uint64(Op.BETWEEN1)
_BETWEEN2 = np.uint64(Op.BETWEEN2)
_AT = np.uint64(Op.AT)
_PAIR_WHOLE = np.uint64(Op.PAIR_WHOLE)
_PAIR_REST = np.uint64(Op.PAIR_REST)
_PAIR_CUT = np.uint64(Op.PAIR_CUT)
_PAIR_PICK = np.uint64(Op.PAIR_PICK)
_LAG = np.uint64(Op.LAG)
_LANE_OF = np.uint64(Op.LANE_OF)
_LAG_CLASS = np.uint64(Op.LAG_CLASS)
_LAG_LAST = np.uint64(Op.LAG_LAST)
_SLIDE = np.uint64(Op.SLIDE)
_CARRIED = np.uint64(Op.CARRIED)
_PRODUCT = np.uint64(Op.PRODUCT)
_CEILS = np.uint64(Op.CEILS)
_TIMES = np.uint64(Op.TIMES)
_FMA = np.uint64(Op.FMA)
_FMA3 = np.uint64(Op.FMA3)
_LINEAR = np.uint64(Op.LINEAR)
_KEEP_IF = np.uint64(Op.KEEP_IF)
_CEILDIV = np.uint64(Op.CEILDIV)
_PORT2 = np.uint64(Op.PORT2)
_PORT4 = np.uint64(Op.PORT4)
_WMAX = np.uint64(Op.WMAX)
_WADD = np.uint64(Op.WADD)
_WMUL = np.uint64(Op.WMUL)
_OVER = np.uint64(Op.OVER)
_BLOCKS = np.uint64(Op.BLOCKS)
_SCALED = np.uint64(Op.SCALED)
_PERIODS = np.uint64(Op.PERIODS)

# Without the interpreter lock, and without reference counts (so that nothing can be allocated).
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# Only `run` calls the others.
_PART: dict[str, Any] = _OPTIONS | part_options()
_inline = njit(fastmath={"contract", "nsz"}, forceinline=True, **_PART)
_scalar = njit(**_PART)


@_inline
def _step(w, S, Q, R, I, before, steps, slot, dim, first, half, one):
    row = steps[slot, dim]
    for i in range(_LANES):
        w[S, i] = row[first + i]
    for i in range(_LANES):
        s = w[S, i] if w[S, i] < w[before, i] else w[before, i]
        inverse = one / s
        whole = np.floor((w[before, i] + half) * inverse)
        w[S, i] = s
        w[Q, i] = whole
        w[R, i] = w[before, i] - whole * s
        w[I, i] = inverse


@_inline
def _step_even(w, S, Q, before, steps, slot, dim, first, half, one):
    row = steps[slot, dim]
    for i in range(_LANES):
        w[S, i] = row[first + i]
    for i in range(_LANES):
        s = w[S, i] if w[S, i] < w[before, i] else w[before, i]
        w[S, i] = s
        w[Q, i] = np.floor((w[before, i] + half) / s)


@_inline
def _position(w, P, S, before, ranks, slot, dim, first, base, zero, one):
    row = ranks[slot, dim]
    for i in range(_LANES):
        w[P, i] = row[first + i]
    for i in range(_LANES):
        real = one if w[S, i] < w[before, i] else zero
        w[P, i] = real * (base + w[P, i] + one) - one


@_inline
def _max(w, N, a, b):
    for i in range(_LANES):
        w[N, i] = w[a, i] if w[a, i] > w[b, i] else w[b, i]


@_inline
def _min(w, N, a, b):
    for i in range(_LANES):
        w[N, i] = w[a, i] if w[a, i] < w[b, i] else w[b, i]


@_inline
def _mul(w, N, a, b):
    for i in range(_LANES):
        w[N, i] = w[a, i] * w[b, i]


@_inline
def _add(w, N, a, b):
    for i in range(_LANES):
        w[N, i] = w[a, i] + w[b, i]


@_inline
def _sub(w, N, a, b):
    for i in range(_LANES):
        w[N, i] = w[a, i] - w[b, i]


@_inline
def _copy(w, N, a):
    for i in range(_LANES):
        w[N, i] = w[a, i]


@_inline
def _muladd(w, acc, a, b):
    for i in range(_LANES):
        w[acc, i] += w[a, i] * w[b, i]


@_inline
def _dot2(w, N, a, b, c, d):
    for i in range(_LANES):
        w[N, i] = w[a, i] * w[b, i] + w[c, i] * w[d, i]


@_inline
def _dot3(w, N, a, b, c, d, e, f):
    for i in range(_LANES):
        w[N, i] = w[a, i] * w[b, i] + w[c, i] * w[d, i] + w[e, i] * w[f, i]


@_inline
def _real(w, N, before, S, zero, one):
    for i in range(_LANES):
        w[N, i] = one if w[S, i] < w[before, i] else zero


@_inline
def _choose(w, N, x, a, b):
    for i in range(_LANES):
        w[N, i] = w[b, i] + w[x, i] * (w[a, i] - w[b, i])


@_inline
def _merge(w, acc, a, x):
    for i in range(_LANES):
        w[acc, i] += w[x, i] * (w[a, i] - w[acc, i])


@_inline
def _derive(w, Q, R, I, S, before, half, one):
    for i in range(_LANES):
        inverse = one / w[S, i]
        whole = np.floor((w[before, i] + half) * inverse)
        w[Q, i] = whole
        w[R, i] = w[before, i] - whole * w[S, i]
        w[I, i] = inverse


@_inline
def _cut1(w, N, A, m, Q, S, I, a, x, half):
    for i in range(_LANES):
        s = w[S, i]
        whole = np.floor((w[a, i] + half) * w[I, i])
        w[N, i] = w[m, i] * w[Q, i] + w[x, i] * whole
        w[A, i] = w[a, i] - whole * s


@_inline
def _cut2(w, N, A, B, m, Q, S, I, a, x, b, y, half):
    for i in range(_LANES):
        s = w[S, i]
        inverse = w[I, i]
        whole = np.floor((w[a, i] + half) * inverse)
        other = np.floor((w[b, i] + half) * inverse)
        w[N, i] = w[m, i] * w[Q, i] + w[x, i] * whole + w[y, i] * other
        w[A, i] = w[a, i] - whole * s
        w[B, i] = w[b, i] - other * s


@_inline
def _cut_more(w, N, acc, r, m, S, I, half):
    for i in range(_LANES):
        whole = np.floor((w[r, i] + half) * w[I, i])
        w[acc, i] += w[m, i] * whole
        w[N, i] = w[r, i] - whole * w[S, i]


@_inline
def _divide_if(w, N, A, m, Q, R, P, cut, zero, one):
    for i in range(_LANES):
        advances = one if w[P, i] < w[cut, i] else zero
        w[N, i] = w[m, i] * (one + advances * (w[Q, i] - one))
        w[A, i] = advances * w[R, i]


@_inline
def _split_if(w, N, m, Q, P, cut, one):
    for i in range(_LANES):
        w[N, i] = w[m, i] * (w[Q, i] if w[P, i] < w[cut, i] else one)


@_inline
def _rest_if(w, N, R, P, cut, zero):
    for i in range(_LANES):
        w[N, i] = w[R, i] if w[P, i] < w[cut, i] else zero


@_inline
def _cut_if(w, N, acc, r, m, S, I, P, cut, half, zero, one):
    for i in range(_LANES):
        rest = w[r, i]
        whole = np.floor((rest + half) * w[I, i])
        advances = w[P, i] < w[cut, i]
        once = one if whole >= one else zero
        kept = zero if whole >= one else rest
        w[acc, i] += w[m, i] * (whole if advances else once)
        w[N, i] = rest - whole * w[S, i] if advances else kept


@_inline
def _pick1(w, N, A, m, S, a, x, zero):
    for i in range(_LANES):
        whole = w[a, i] >= w[S, i]
        w[N, i] = w[m, i] + (w[x, i] if whole else zero)
        w[A, i] = zero if whole else w[a, i]


@_inline
def _pick2(w, N, A, B, m, S, a, x, b, y, zero):
    for i in range(_LANES):
        s = w[S, i]
        whole = w[a, i] >= s
        other = w[b, i] >= s
        w[N, i] = w[m, i] + (w[x, i] if whole else zero) + (w[y, i] if other else zero)
        w[A, i] = zero if whole else w[a, i]
        w[B, i] = zero if other else w[b, i]


@_inline
def _pick_more(w, N, acc, r, m, S, zero):
    for i in range(_LANES):
        whole = w[r, i] >= w[S, i]
        w[acc, i] += w[m, i] if whole else zero
        w[N, i] = zero if whole else w[r, i]


@_inline
def _count0(w, N, m, Q, R, zero, one):
    for i in range(_LANES):
        w[N, i] = w[m, i] * (w[Q, i] + (one if w[R, i] > zero else zero))


@_inline
def _count1(w, N, m, Q, R, S, I, a, x, half, zero, one):
    for i in range(_LANES):
        ceiled = w[Q, i] + (one if w[R, i] > zero else zero)
        whole = np.floor((w[a, i] + half) * w[I, i])
        whole += one if w[a, i] > whole * w[S, i] else zero
        w[N, i] = w[m, i] * ceiled + w[x, i] * whole


@_inline
def _count2(w, N, m, Q, R, S, I, a, x, b, y, half, zero, one):
    for i in range(_LANES):
        s = w[S, i]
        inverse = w[I, i]
        ceiled = w[Q, i] + (one if w[R, i] > zero else zero)
        whole = np.floor((w[a, i] + half) * inverse)
        whole += one if w[a, i] > whole * s else zero
        other = np.floor((w[b, i] + half) * inverse)
        other += one if w[b, i] > other * s else zero
        w[N, i] = w[m, i] * ceiled + w[x, i] * whole + w[y, i] * other


@_inline
def _last_cut(w, acc, r, m, S, I, half, zero, one):
    for i in range(_LANES):
        whole = np.floor((w[r, i] + half) * w[I, i])
        rest = w[r, i] - whole * w[S, i]
        w[acc, i] += w[m, i] * (whole + (one if rest > zero else zero))


@_inline
def _ceil_if(w, N, m, Q, R, P, cut, zero, one):
    for i in range(_LANES):
        times = w[Q, i] + (one if w[R, i] > zero else zero)
        w[N, i] = w[m, i] * (times if w[P, i] < w[cut, i] else one)


@_inline
def _last_cut_if(w, acc, r, m, S, I, P, cut, half, zero, one):
    for i in range(_LANES):
        whole = np.floor((w[r, i] + half) * w[I, i])
        rest = w[r, i] - whole * w[S, i]
        once = one if w[r, i] > zero else zero
        times = whole + (one if rest > zero else zero)
        w[acc, i] += w[m, i] * (times if w[P, i] < w[cut, i] else once)


@_inline
def _present1(w, N, m, a, x, zero):
    for i in range(_LANES):
        w[N, i] = w[m, i] + (w[x, i] if w[a, i] > zero else zero)


@_inline
def _present2(w, N, m, a, x, b, y, zero):
    for i in range(_LANES):
        w[N, i] = w[m, i] + (w[x, i] if w[a, i] > zero else zero) + (w[y, i] if w[b, i] > zero else zero)


@_inline
def _last_pick(w, acc, r, m, zero):
    for i in range(_LANES):
        w[acc, i] += w[m, i] if w[r, i] > zero else zero


@_inline
def _last_tile(w, N, r, S, I, half):
    for i in range(_LANES):
        w[N, i] = w[r, i] - w[S, i] * np.floor((w[r, i] - half) * w[I, i])


@_inline
def _hinge1(w, N, K, a, x, zero):
    for i in range(_LANES):
        p = w[a, i] - w[K, i]
        w[N, i] = w[x, i] * (p if p > zero else zero)


@_inline
def _hinge2(w, N, K, a, x, b, y, zero):
    for i in range(_LANES):
        k = w[K, i]
        p = w[a, i] - k
        q = w[b, i] - k
        w[N, i] = w[x, i] * (p if p > zero else zero) + w[y, i] * (q if q > zero else zero)


@_inline
def _hinge3(w, N, K, a, x, b, y, c, z, zero):
    for i in range(_LANES):
        k = w[K, i]
        p = w[a, i] - k
        q = w[b, i] - k
        r = w[c, i] - k
        total = w[x, i] * (p if p > zero else zero) + w[y, i] * (q if q > zero else zero)
        w[N, i] = total + w[z, i] * (r if r > zero else zero)


@_inline
def _hinge4(w, N, K, a, x, b, y, c, z, d, t, zero):
    for i in range(_LANES):
        k = w[K, i]
        p = w[a, i] - k
        q = w[b, i] - k
        r = w[c, i] - k
        s = w[d, i] - k
        total = w[x, i] * (p if p > zero else zero) + w[y, i] * (q if q > zero else zero)
        w[N, i] = total + w[z, i] * (r if r > zero else zero) + w[t, i] * (s if s > zero else zero)


@_inline
def _hinge5(w, N, K, a, x, b, y, c, z, d, t, e, u, zero):
    for i in range(_LANES):
        k = w[K, i]
        p = w[a, i] - k
        q = w[b, i] - k
        r = w[c, i] - k
        s = w[d, i] - k
        o = w[e, i] - k
        total = w[x, i] * (p if p > zero else zero) + w[y, i] * (q if q > zero else zero)
        total += w[z, i] * (r if r > zero else zero) + w[t, i] * (s if s > zero else zero)
        w[N, i] = total + w[u, i] * (o if o > zero else zero)


@_inline
def _hinge_add(w, acc, m, r, K, zero):
    for i in range(_LANES):
        over = w[r, i] - w[K, i]
        w[acc, i] += w[m, i] * (over if over > zero else zero)


@_inline
def _between(w, N, lane, near, far, a, x, zero):
    for i in range(_LANES):
        first = w[a, i] if w[a, i] < w[lane, i] else w[lane, i]
        p = first - w[near, i]
        q = first - w[far, i]
        w[N, i] = w[x, i] * ((p if p > zero else zero) - (q if q > zero else zero))


@_inline
def _between1(w, acc, lane, near, far, a, x, zero):
    for i in range(_LANES):
        first = w[a, i] if w[a, i] < w[lane, i] else w[lane, i]
        p = first - w[near, i]
        q = first - w[far, i]
        w[acc, i] += w[x, i] * ((p if p > zero else zero) - (q if q > zero else zero))


@_inline
def _between2(w, acc, lane, near, far, a, x, b, y, zero):
    for i in range(_LANES):
        limit = w[lane, i]
        first = w[a, i] if w[a, i] < limit else limit
        other = w[b, i] if w[b, i] < limit else limit
        p = first - w[near, i]
        q = first - w[far, i]
        r = other - w[near, i]
        s = other - w[far, i]
        w[acc, i] += w[x, i] * ((p if p > zero else zero) - (q if q > zero else zero))
        w[acc, i] += w[y, i] * ((r if r > zero else zero) - (s if s > zero else zero))


@_inline
def _at(w, N, P, cut, zero, one):
    for i in range(_LANES):
        here = one if w[P, i] == w[cut, i] else zero
        w[N, i] = here if w[P, i] >= zero else zero


@_inline
def _pair_whole(w, N, m, Q, x, one):
    for i in range(_LANES):
        w[N, i] = w[m, i] * (w[Q, i] - one) * w[x, i]


@_inline
def _pair_rest(w, N, acc, r, m, S, I, x, half, zero, one):
    for i in range(_LANES):
        whole = np.floor((w[r, i] + half) * w[I, i])
        rest = w[r, i] - whole * w[S, i]
        later = whole - one
        here = w[x, i]
        w[acc, i] += here * w[m, i] * (later if later > zero else zero)
        w[N, i] = here * rest if whole >= one else zero


@_inline
def _pair_cut(w, A, B, acc, a, b, m, S, I, half):
    for i in range(_LANES):
        s = w[S, i]
        whole = np.floor((w[b, i] + half) * w[I, i])
        used = whole * s
        left = w[a, i] - used
        rest = w[b, i] - used
        w[acc, i] += w[m, i] * whole
        w[A, i] = left if left < s else s
        w[B, i] = rest


@_inline
def _lag(w, N, step, a, b, lane, stride, zero, one, far):
    for i in range(_LANES):
        width = w[a, i] if w[a, i] < w[lane, i] else w[lane, i]
        offset = stride * (w[step, i] - width + one)
        w[N, i] = offset if w[b, i] > zero else far


@_inline
def _lane_of(w, A, B, start, width, step, residue, half):
    for i in range(_LANES):
        s = w[step, i]
        left = w[width, i]
        skipped = np.floor((residue - w[start, i] + half) / s) * s
        w[A, i] = w[start, i] + skipped
        left = left - skipped
        w[B, i] = left if left < s else s


@_inline
def _lag_class(w, N, step, start, width, b, stride, residue, dilation, half, zero, one, far):
    inverse = one / dilation
    for i in range(_LANES):
        end = w[start, i] + w[width, i] - one
        value = end - residue - w[step, i]
        last = end - (value - dilation * np.floor((value + half) * inverse))
        lag = np.floor((w[step, i] + residue - last + half) * inverse)
        offset = stride * lag if last >= w[start, i] else far
        w[N, i] = offset if residue < w[b, i] else far


@_inline
def _lag_last(w, N, K, b, stride, residue, dilation, half, one):
    inverse = one / dilation
    for i in range(_LANES):
        w[N, i] = w[K, i] + stride * np.floor((w[b, i] - residue - one + half) * inverse)


@_inline
def _slide(w, N, p, r, stride, dilation, zero):
    for i in range(_LANES):
        over = w[p, i] - dilation
        under = w[r, i] - stride
        w[N, i] = w[p, i] * w[r, i] - (over if over > zero else zero) * (under if under > zero else zero)


@_inline
def _product(w, v, W, a, b, c, constant):
    for i in range(_LANES):
        v[W, i] = constant * w[a, i] * w[b, i] * w[c, i]


@_inline
def _ceils(w, v, W, a, x, b, y, c, z, zero, one):
    for i in range(_LANES):
        p = w[a, i] + (one if w[x, i] > zero else zero)
        q = w[b, i] + (one if w[y, i] > zero else zero)
        r = w[c, i] + (one if w[z, i] > zero else zero)
        v[W, i] = 1.0 * p * q * r


@_inline
def _times(w, v, W, x, a, b, c):
    for i in range(_LANES):
        v[W, i] = v[x, i] * w[a, i] * w[b, i] * w[c, i]


@_inline
def _fma(v, W, a, b):
    for i in range(_LANES):
        v[W, i] += v[a, i] * v[b, i]


@_inline
def _fma3(v, W, a, x, b, y, c, z):
    for i in range(_LANES):
        v[W, i] += v[a, i] * v[x, i] + v[b, i] * v[y, i] + v[c, i] * v[z, i]


@_inline
def _linear(v, W, a, b, c):
    for i in range(_LANES):
        v[W, i] = v[a, i] - v[b, i] + v[c, i]


@_inline
def _keep_if(w, v, W, x, a, b):
    for i in range(_LANES):
        v[W, i] = v[b, i] + w[x, i] * (v[a, i] - v[b, i])


@_inline
def _ceildiv(v, W, a, b):
    for i in range(_LANES):
        v[W, i] = np.ceil(v[a, i] / v[b, i])


@_inline
def _port2(v, W, a, b, limit):
    for i in range(_LANES):
        v[W, i] = np.ceil((v[a, i] + v[b, i]) / v[limit, i])


@_inline
def _port4(v, W, a, b, c, d, limit):
    for i in range(_LANES):
        v[W, i] = np.ceil((v[a, i] + v[b, i] + v[c, i] + v[d, i]) / v[limit, i])


@_inline
def _over(v, W, a, b):
    for i in range(_LANES):
        over = v[a, i] / v[b, i] - 1.0
        v[W, i] += over if over > 0.0 else 0.0


@_inline
def _blocks(v, W, a, b):
    for i in range(_LANES):
        v[W, i] = np.ceil(v[a, i] / v[b, i]) * v[b, i]


@_inline
def _scaled(v, W, a, b, c, d, words, cycles):
    for i in range(_LANES):
        v[W, i] = np.ceil((v[a, i] + v[b, i] + v[c, i] + v[d, i]) * v[cycles, i] / v[words, i])


@_inline
def _periods(v, W, a, words, cycles):
    for i in range(_LANES):
        whole = np.floor(v[a, i] / v[words, i])
        left = v[a, i] - whole * v[words, i]
        v[W, i] = whole * v[cycles, i] + np.ceil(left * v[cycles, i] / v[words, i])


@_scalar
def _lane_at(position, extent, narrow, lists, offset, lanes, i):
    """Start and width of the finest lane of [0, extent) that holds ``position``."""
    start = 0
    for k in range(lanes):
        step = int(narrow[lists[offset + k], i])
        index = (position - start) // step
        start += index * step
        extent = min(step, extent - index * step)
    return start, extent


@_scalar
def _further_lanes(extent, lag, narrow, lists, offset, lanes, table, i):
    """Words past ``lag`` of all lanes that ``extent`` is split into, kept in ``table`` as extents and their counts."""
    extents, counts = table[0], table[1]
    extents[0], counts[0], size = extent, 1, 1
    for k in range(lanes):
        step = int(narrow[lists[offset + k], i])
        known = size
        whole = 0
        for e in range(known):
            whole += counts[e] * (extents[e] // step)
            extents[e] %= step
        extents[size], counts[size] = step, whole
        size += 1
    total = 0
    for e in range(size):
        total += counts[e] * max(0, extents[e] - lag)
    return total


@_scalar
def _carried_lane(window, narrow, lists, offset, lanes, stride, dilation, table, i):
    """Words carried over in one lane: `closed_form.carried`.

    ``lists`` from ``offset`` on: rows of the step, of whether to look, of the previous and the present extent; then the
    ``lanes[0]`` merged lanes that move and the ``lanes[1]`` others.
    """
    step = int(narrow[lists[offset], i])
    previous = int(narrow[lists[offset + 2], i])
    present = int(narrow[lists[offset + 3], i])
    mine = offset + 4
    others = mine + lanes[0]
    first = window
    for k in range(lanes[1]):
        first = min(first, int(narrow[lists[others + k], i]))
    total = 0
    for residue in range(min(dilation, present)):
        visits = -((residue - present) // dilation)
        start, width = _lane_at(residue, previous, narrow, lists, mine, lanes[0], i)
        end = start + width - 1
        last = end - (end - residue - step) % dilation
        if last < start:
            continue
        lag = (step + residue - last) // dilation
        corner = 0
        for index in range(1, min(visits, -(-first // stride))):
            position = residue + index * dilation
            start, width = _lane_at(position, previous, narrow, lists, mine, lanes[0], i)
            if (position - start + step) % dilation >= width:
                corner = index
                break
        near = max(0, first - stride * lag)
        if corner > 0:
            total += near - max(0, first - stride * (lag + corner))
            continue
        further = stride * (lag + visits - 1)
        total += near - max(0, first - further)
        total += _further_lanes(window, further, narrow, lists, others, lanes[1], table, i)
    return total


@_scalar
def _carried(words, narrow, lists, offset, lanes, windows, stride, dilation, table):
    """Correct the words carried over where dilation meets real merged lanes and the step is no multiple of it.

    Only there a later window can lie in a lane that held no word of its class. The windows of the other side follow the
    lanes in ``lists``, ``windows`` pairs of rows (extent, multiplicity).
    """
    for i in range(LANES):
        step = int(narrow[lists[offset], i])
        finest = int(narrow[lists[offset + 3 + lanes[0]], i])
        if narrow[lists[offset + 1], i] > 0 and narrow[lists[offset + 3], i] > 0 and step % dilation and finest < step:
            total = 0
            first = offset + 4 + lanes[0] + lanes[1]
            for k in range(windows):
                window = int(narrow[lists[first + 2 * k], i])
                found = _carried_lane(window, narrow, lists, offset, lanes, stride, dilation, table, i)
                total += int(narrow[lists[first + 2 * k + 1], i]) * found
            narrow[words, i] = total


@_inline
def _fetch(near, far, rows, first, count, room):
    """Copy ``rows`` (k, 2) of slot and dimension of ``count`` mappings, and repeat the last one up to ``room``."""
    for k in range(rows.shape[0]):
        source, target = far[rows[k, 0], rows[k, 1]], near[rows[k, 0], rows[k, 1]]
        for i in range(count):
            target[i] = source[first + i]
        for i in range(count, room):
            target[i] = source[first + count - np.uint64(1)]


@_inline
def _uneven(near, sizes, first, rows, half, zero):
    """Whether any loop of a block leaves a rest; ``rows`` (2, `LANES`) are scratch."""
    found = np.int32(0)
    for d in range(near.shape[1]):
        for i in range(_LANES):
            rows[0, i] = sizes[d]
        for s in range(near.shape[0] - 1):
            source = near[s, d]
            for i in range(_LANES):
                rows[1, i] = source[first + i]
            for i in range(_LANES):
                whole = np.floor((rows[0, i] + half) / rows[1, i])
                found |= np.int32(rows[0, i] - whole * rows[1, i] > zero)
                rows[0, i] = rows[1, i]
    return found


@_inline
def _set_parameters(v, figures):
    """Write the parameters that all mappings share into the first wide rows."""
    for p in range(figures.shape[0]):
        for i in range(_LANES):
            v[p, i] = figures[p]


@_inline
def _set_own(v, differing, table, first, count):
    """Write the parameters of the mappings of a block."""
    for k in range(differing.shape[0]):
        source, row = table[k], np.uint64(differing[k])
        for i in range(np.uint64(count)):
            v[row, i] = source[np.uint64(first) + i]
        for i in range(np.uint64(count), _LANES):
            v[row, i] = source[np.uint64(first)]


@_inline
def _store(out, v, outputs, first, count):
    """Hand out the results of a block."""
    for k in range(outputs.shape[0]):
        target, row = out[k], outputs[k]
        for i in range(np.uint64(count)):
            target[np.uint64(first) + i] = v[row, i]


@kept
@njit(**_OPTIONS)
@stamped([Path(program.__file__)])
def run(steps, ranks, begin, end, programs, parameters, scratch, out):  # noqa: C901, PLR0912, PLR0915
    """Score mappings ``begin`` to ``end`` of a batch.

    ``steps`` (s, d, b) int32 and ``ranks`` (s, d, b) int8; ``programs`` = the general and the even one, each (code,
    lists, constants, numbers, outputs) of a `Machine`, ``numbers`` being its constants in the narrow type;
    ``parameters`` = figures (p), which of them differ (k) and those (k, b); ``scratch`` = ((narrow, wide) of each
    program, near steps, near ranks, the rows of each that are looked at, sizes, rows, a table), narrow constants filled
    in; ``out`` (k, b) gets the rows ``outputs``.

    Rows of a large batch lie far apart, so several blocks of them are fetched together. Blocks in which every loop
    divides what it splits take the even program; after a ragged block, the next few are not even asked. The chain of
    tests at the end is one jump table to LLVM; it stands here, and not in a function, for the sake of compile time.
    """
    banks, even_banks, near_steps, near_ranks, step_rows, rank_rows, sizes, rows, table = scratch
    zero, half, one, far = programs[0][3][0], programs[0][3][1], programs[0][3][2], programs[0][3][3]
    figures, differing, own = parameters
    _set_parameters(banks[1], figures)
    _set_parameters(even_banks[1], figures)
    group = near_steps.shape[2]
    wait, patience = 0, 1
    for first in range(begin, end, LANES):
        start = first - (first - begin) % group
        if first == start:
            fetched = min(group, end - start)
            room = np.uint64((fetched + LANES - 1) // LANES * LANES)
            _fetch(near_steps, steps, step_rows, np.uint64(start), np.uint64(fetched), room)
            _fetch(near_ranks, ranks, rank_rows, np.uint64(start), np.uint64(fetched), room)
        lane = np.uint64(first - start)
        count = min(LANES, end - first)
        ragged = True
        if wait > 0:
            wait -= 1
        elif _uneven(near_steps, sizes, lane, rows, half, zero) > 0:
            wait, patience = patience, min(64, 2 * patience)
        else:
            ragged, patience = False, 1
        code, lists, constants, numbers, outputs = programs[0] if ragged else programs[1]
        n, wide = banks if ragged else even_banks
        _set_own(wide, differing, own, first, count)
        for at in range(code.shape[0]):
            op = np.uint64(code[at, 0])
            if op == _STEP:
                _step(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], near_steps, code[at, 6],
                      code[at, 7], lane, half, one)
            elif op == _STEP_EVEN:
                _step_even(n, code[at, 1], code[at, 2], code[at, 3], near_steps, code[at, 4], code[at, 5], lane, half,
                           one)
            elif op == _POSITION:
                _position(n, code[at, 1], code[at, 2], code[at, 3], near_ranks, code[at, 4], code[at, 5], lane,
                          numbers[code[at, 6]], zero, one)
            elif op == _MAX:
                _max(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _MIN:
                _min(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _MUL:
                _mul(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _ADD:
                _add(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _SUB:
                _sub(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _COPY:
                _copy(n, code[at, 1], code[at, 2])
            elif op == _MULADD:
                _muladd(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _DOT2:
                _dot2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5])
            elif op == _DOT3:
                _dot3(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7])
            elif op == _REAL:
                _real(n, code[at, 1], code[at, 2], code[at, 3], zero, one)
            elif op == _CHOOSE:
                _choose(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4])
            elif op == _MERGE:
                _merge(n, code[at, 1], code[at, 2], code[at, 3])
            elif op == _DERIVE:
                _derive(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], half, one)
            elif op == _CUT1:
                _cut1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7],
                      code[at, 8], half)
            elif op == _CUT2:
                _cut2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7],
                      code[at, 8], code[at, 9], code[at, 10], code[at, 11], half)
            elif op == _CUT_MORE:
                _cut_more(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], half)
            elif op == _DIVIDE_IF:
                _divide_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6],
                           code[at, 7], zero, one)
            elif op == _SPLIT_IF:
                _split_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], one)
            elif op == _REST_IF:
                _rest_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], zero)
            elif op == _CUT_IF:
                _cut_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                        7], code[at, 8], half, zero, one)
            elif op == _PICK1:
                _pick1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero)
            elif op == _PICK2:
                _pick2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7],
                       code[at, 8], code[at, 9], zero)
            elif op == _PICK_MORE:
                _pick_more(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], zero)
            elif op == _COUNT0:
                _count0(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], zero, one)
            elif op == _COUNT1:
                _count1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                        7], code[at, 8], half, zero, one)
            elif op == _COUNT2:
                _count2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                        7], code[at, 8], code[at, 9], code[at, 10], half, zero, one)
            elif op == _LAST_CUT:
                _last_cut(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], half, zero, one)
            elif op == _CEIL_IF:
                _ceil_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero, one)
            elif op == _LAST_CUT_IF:
                _last_cut_if(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6],
                             code[at, 7], half, zero, one)
            elif op == _PRESENT1:
                _present1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], zero)
            elif op == _PRESENT2:
                _present2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero)
            elif op == _LAST_PICK:
                _last_pick(n, code[at, 1], code[at, 2], code[at, 3], zero)
            elif op == _LAST_TILE:
                _last_tile(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], half)
            elif op == _HINGE1:
                _hinge1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], zero)
            elif op == _HINGE2:
                _hinge2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero)
            elif op == _HINGE3:
                _hinge3(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                        7], code[at, 8], zero)
            elif op == _HINGE4:
                _hinge4(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                        7], code[at, 8], code[at, 9], code[at, 10], zero)
            elif op == _HINGE5:
                _hinge5(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7],
                        code[at, 8], code[at, 9], code[at, 10], code[at, 11], code[at, 12], zero)
            elif op == _HINGE_ADD:
                _hinge_add(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], zero)
            elif op == _BETWEEN:
                _between(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero)
            elif op == _BETWEEN1:
                _between1(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], zero)
            elif op == _BETWEEN2:
                _between2(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                          7], code[at, 8], zero)
            elif op == _AT:
                _at(n, code[at, 1], code[at, 2], code[at, 3], zero, one)
            elif op == _PAIR_WHOLE:
                _pair_whole(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], one)
            elif op == _PAIR_REST:
                _pair_rest(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                           7], half, zero, one)
            elif op == _PAIR_CUT:
                _pair_cut(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at,
                          7], code[at, 8], half)
            elif op == _PAIR_PICK:
                _min(n, code[at, 1], code[at, 3], code[at, 5])
                _min(n, code[at, 2], code[at, 4], code[at, 5])
            elif op == _LAG:
                _lag(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], numbers[code[at, 6]], zero,
                     one, far)
            elif op == _LANE_OF:
                _lane_of(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], numbers[code[at, 6]], half)
            elif op == _LAG_CLASS:
                _lag_class(n, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], numbers[code[at, 6]],
                           numbers[code[at, 7]], numbers[code[at, 8]], half, zero, one, far)
            elif op == _LAG_LAST:
                _lag_last(n, code[at, 1], code[at, 2], code[at, 3], numbers[code[at, 4]], numbers[code[at, 5]],
                          numbers[code[at, 6]], half, one)
            elif op == _SLIDE:
                _slide(n, code[at, 1], code[at, 2], code[at, 3], numbers[code[at, 4]], numbers[code[at, 5]], zero)
            elif op == _CARRIED:
                _carried(code[at, 1], n, lists, int(code[at, 2]), (int(code[at, 4]), int(code[at, 5])),
                         int(code[at, 6]), int(code[at, 7]), int(code[at, 8]), table)
            elif op == _PRODUCT:
                _product(n, wide, code[at, 1], code[at, 3], code[at, 4], code[at, 5], constants[code[at, 2]])
            elif op == _CEILS:
                _ceils(n, wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6],
                       code[at, 7], zero, one)
            elif op == _TIMES:
                _times(n, wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5])
            elif op == _FMA:
                _fma(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _FMA3:
                _fma3(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6], code[at, 7])
            elif op == _LINEAR:
                _linear(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4])
            elif op == _KEEP_IF:
                _keep_if(n, wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4])
            elif op == _CEILDIV:
                _ceildiv(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _PORT2:
                _port2(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4])
            elif op == _PORT4:
                _port4(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6])
            elif op == _WMAX:
                _max(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _WADD:
                _add(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _WMUL:
                _mul(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _OVER:
                _over(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _BLOCKS:
                _blocks(wide, code[at, 1], code[at, 2], code[at, 3])
            elif op == _SCALED:
                _scaled(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5], code[at, 6],
                        code[at, 7])
            elif op == _PERIODS:
                _periods(wide, code[at, 1], code[at, 2], code[at, 3], code[at, 4])
        _store(out, wide, outputs, first, count)

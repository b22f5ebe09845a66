"""Compiled enumeration of a map space: every tiling in turn, and under each every order of its non-trivial loops."""

import numpy as np

from tilewright.mapping.space_arrays import KIND, ORDER_COUNT, ORDER_START, TEMPORAL
from tilewright.mapping.space_kernels import Compiled, arrays_fit, ceil_div, compiled, outer, store

FRESH, RUNNING, FINISHED = 0, 1, 2


@compiled
def lower_step(sp: Compiled, x: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Return the next smaller step that dimension ``d`` may have at slot ``s``; 0 if there is none."""
    present = np.int64(x[s, d])
    if sp.perfect[0] == 0:
        return present - 1
    whole = outer(sp, x, s, d)
    for i in range(sp.divisors[d, 0], 0, -1):
        f = np.int64(sp.divisors[d, i])
        if f < present and whole % f == 0:
            return f
    return np.int64(0)


@compiled
def reset_chain(sp: Compiled, x: Compiled, d: Compiled) -> Compiled:
    """Put all of dimension ``d`` into the innermost slot: its first chain."""
    for s in range(x.shape[0] - 1):
        x[s, d] = sp.sizes[d]
    x[x.shape[0] - 1, d] = 1


@compiled
def next_chain(sp: Compiled, x: Compiled, d: Compiled) -> Compiled:
    """Advance the steps of dimension ``d``; return False, reset, after the last."""
    last = x.shape[0] - 1
    for s in range(last - 1, -1, -1):
        if sp.free[s, d] != 0:
            step = lower_step(sp, x, s, d)
            if step > 0:
                for i in range(s, last):
                    x[i, d] = step
                return True
    reset_chain(sp, x, d)
    return False


@compiled
def chain_fits(sp: Compiled, x: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Whether dimension ``d`` loops only where free, and dimensions up to ``d`` together fit the arrays."""
    last = x.shape[0] - 1
    if outer(sp, x, last, d) > 1 and sp.free[last, d] == 0:
        return False
    for s in range(last + 1):
        used[s] = 1
        if sp.slots[s, KIND] != TEMPORAL:
            for e in range(d + 1):
                used[s] *= ceil_div(outer(sp, x, s, e), np.int64(x[s, e]))
    return arrays_fit(sp, used)


@compiled
def next_tiling(sp: Compiled, x: Compiled, used: Compiled, fresh: Compiled) -> Compiled:
    """Advance ``x`` to the next tiling that fits the arrays; return False after the last."""
    dims = x.shape[1]
    d = dims - 1
    opened = False
    if fresh:
        d, opened = 0, True
        reset_chain(sp, x, 0)
    while d >= 0:
        found = opened and chain_fits(sp, x, d, used)
        while not found and next_chain(sp, x, d):
            found = chain_fits(sp, x, d, used)
        if not found:
            d, opened = d - 1, False
            continue
        if d == dims - 1:
            return True
        d, opened = d + 1, True
        reset_chain(sp, x, d)
    return False


@compiled
def looping(sp: Compiled, x: Compiled, s: Compiled, dims: Compiled) -> Compiled:
    """Write the dimensions that loop at slot ``s`` to ``dims``, ascending, then -1; return how many."""
    count = 0
    for d in range(x.shape[1]):
        dims[d] = -1
    for d in range(x.shape[1]):
        if x[s, d] < outer(sp, x, s, d):
            dims[count] = d
            count += 1
    return count


@compiled
def order_total(sp: Compiled, s: Compiled, count: Compiled) -> Compiled:
    """Return how many orders slot ``s`` has for ``count`` loops, repetitions included."""
    if sp.slots[s, KIND] != TEMPORAL:
        return np.int64(1)
    if sp.slots[s, ORDER_COUNT] > 0:
        return np.int64(sp.slots[s, ORDER_COUNT])
    total = np.int64(1)
    for k in range(2, count + 1):
        total *= k
    return total


@compiled
def unrank(sp: Compiled, s: Compiled, digit: Compiled, dims: Compiled, rank: Compiled) -> Compiled:
    """Write order number ``digit`` of the loops ``dims`` (followed by -1) to ``rank`` ``(d)``."""
    if sp.slots[s, ORDER_COUNT] > 0:
        for d in range(rank.shape[0]):
            rank[d] = sp.orders[sp.slots[s, ORDER_START] + digit, d]
        return
    count = 0
    for d in range(rank.shape[0]):
        rank[d] = -1
        count += dims[d] >= 0
    total = order_total(sp, s, count)
    for position in range(count):
        total //= count - position
        rank[free_loop(dims, rank, digit // total)] = position
        digit %= total
    for d in range(rank.shape[0]):
        if rank[d] < 0:
            rank[d] = count
            count += 1


@compiled
def free_loop(dims: Compiled, rank: Compiled, skip: Compiled) -> Compiled:
    """Return the loop of ``dims`` that comes after ``skip`` others without a rank."""
    i = 0
    while skip > 0 or rank[dims[i]] >= 0:
        skip -= rank[dims[i]] < 0
        i += 1
    return dims[i]


@compiled
def repeats_order(sp: Compiled, s: Compiled, digit: Compiled, dims: Compiled, rank: Compiled) -> Compiled:
    """Whether an earlier row allowed at slot ``s`` puts the loops ``dims`` in the same order as ``rank``."""
    for row in range(sp.slots[s, ORDER_START], sp.slots[s, ORDER_START] + digit):
        same = True
        for i in dims:
            for j in dims:
                if i >= 0 and j >= 0 and (rank[i] < rank[j]) != (sp.orders[row, i] < sp.orders[row, j]):
                    same = False
        if same:
            return True
    return False


@compiled
def slides(sp: Compiled, t: Compiled, d: Compiled) -> Compiled:
    """Whether dimension ``d`` moves along a sliding axis of operand ``t``, where its order shows in the halo."""
    for a in range(sp.axes.shape[0]):
        if sp.axes[a, 0] == t and sp.axes[a, 3] >= 0 and (sp.axes[a, 1] == d or sp.axes[a, 3] == d):
            return t < sp.relevant.shape[0] - 1
    return False


@compiled
def swap_shows(sp: Compiled, inside: Compiled, a: Compiled, b: Compiled) -> Compiled:
    """Whether swapping the adjacent loops ``a`` and ``b`` can change a count (DESIGN rules 2 and 3).

    ``inside`` ``(d)`` marks the loops of the slot inside both.
    """
    for t in range(sp.relevant.shape[0]):
        reached = False
        for d in range(inside.shape[0]):
            reached = reached or (inside[d] and sp.relevant[t, d] != 0)
        if reached:
            continue
        if sp.relevant[t, a] != sp.relevant[t, b]:
            return True
        if sp.relevant[t, a] != 0 and (slides(sp, t, a) or slides(sp, t, b)):
            return True
    return False


@compiled
def not_first(sp: Compiled, count: Compiled, dims: Compiled, rank: Compiled) -> Compiled:
    """Whether an order of equal cost, and with smaller dimensions farther out, is enumerated elsewhere."""
    inside = np.zeros(rank.shape[0], np.bool_)
    at = np.empty(count, np.int64)
    for i in range(count):
        at[rank[dims[i]]] = dims[i]
    for i in range(count - 2, -1, -1):
        if i + 2 < count:
            inside[at[i + 2]] = True
        if at[i] > at[i + 1] and not swap_shows(sp, inside, at[i], at[i + 1]):
            return True
    return False


@compiled
def set_order(sp: Compiled, x: Compiled, rank: Compiled, place: Compiled, distinct: Compiled) -> Compiled:
    """Give slot ``place[0]`` the first order at or after number ``place[1]``; return its number or -1."""
    s, digit = place
    dims = np.empty(x.shape[1], np.int64)
    count = looping(sp, x, s, dims)
    total = order_total(sp, s, count)
    while digit < total:
        unrank(sp, s, digit, dims, rank)
        if sp.slots[s, ORDER_COUNT] > 0:
            skipped = repeats_order(sp, s, digit, dims, rank)
        else:
            skipped = distinct and not_first(sp, count, dims, rank)
        if not skipped:
            return digit
        digit += 1
    return np.int64(-1)


@compiled
def next_order(sp: Compiled, x: Compiled, r: Compiled, digits: Compiled, distinct: Compiled) -> Compiled:
    """Advance the orders ``r`` of one tiling, innermost slot first; return False after the last."""
    for s in range(x.shape[0] - 1, -1, -1):
        if sp.slots[s, KIND] != TEMPORAL:
            continue
        digits[s] = set_order(sp, x, r[s], (np.int64(s), digits[s] + 1), distinct)
        if digits[s] >= 0:
            return True
        digits[s] = set_order(sp, x, r[s], (np.int64(s), np.int64(0)), distinct)
    return False


@compiled
def first_orders(sp: Compiled, x: Compiled, r: Compiled, digits: Compiled, distinct: Compiled) -> Compiled:
    """Give every slot its first order."""
    for s in range(x.shape[0]):
        digits[s] = 0
        if sp.slots[s, KIND] == TEMPORAL:
            digits[s] = set_order(sp, x, r[s], (np.int64(s), np.int64(0)), distinct)
        else:
            for d in range(x.shape[1]):
                r[s, d] = d


@compiled
def enumerate_into(sp: Compiled, state: Compiled, steps: Compiled, ranks: Compiled, distinct: Compiled) -> Compiled:
    """Write the next mappings to ``steps`` and ``ranks`` ``(s, d, b)``; return how many there were.

    ``state`` is the mapping written last: ``x``, ``r``, the number of its order at every slot ``(s)``, and whether the
    enumeration is fresh, running or finished ``(1)``.
    """
    x, r, digits, phase = state
    used = np.empty(x.shape[0], np.int64)
    written = 0
    while written < steps.shape[2] and phase[0] != FINISHED:
        if phase[0] == FRESH or not next_order(sp, x, r, digits, distinct):
            if not next_tiling(sp, x, used, phase[0] == FRESH):
                phase[0] = FINISHED
                break
            phase[0] = RUNNING
            first_orders(sp, x, r, digits, distinct)
        store(x, r, steps, ranks, written)
        written += 1
    return written

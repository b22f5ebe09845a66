"""Compiled enumeration of a map space: every tiling in turn, and under each every order of its non-trivial loops.

The smallest tiles come first: all loops at the outermost memory, which fits wherever anything does.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from tilewright.mapping.spaces.kernels import (
    COUNTS,
    LANES,
    LEFT,
    ORDER,
    RANKS,
    ROWS,
    Compiled,
    arrays_fit,
    compiled,
    dims_of,
    entry,
    is_spatial,
    lanes,
    may_loop,
    perfect,
    slots_of,
    store,
)
from tilewright.mapping.spaces.repair.projection import allowed, floor_missed
from tilewright.mapping.spaces.rules import arrays as table

FRESH, RUNNING, FINISHED = 0, 1, 2


@compiled
def higher_step(sp: Compiled, e: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Return the next larger step that dimension ``d`` may have at slot ``s``; 0 if there is none."""
    whole, present = e[s, d], e[s + 1, d]
    if sp[table.META, table.RULES] != 0:
        row = sp[table.META, table.RULES] + table.BITS * slots_of(sp) + (slots_of(sp) + s + 2) * dims_of(sp) + d
        for step in range(present + 1, whole + 1):
            if (sp[row, step >> 6] >> (step & 63)) & 1 != 0 and allowed(sp, d, s, whole, step):
                return step
        return 0
    if not perfect(sp):
        return present + 1 if present < whole else 0
    for i in range(1, sp[table.DIVISORS + d, 0] + 1):
        f = sp[table.DIVISORS + d, i]
        if f > present and whole % f == 0:
            return f
    return 0


@compiled
def close_chain(sp: Compiled, e: Compiled, d: Compiled, first: Compiled) -> Compiled:
    """Let the slots from ``first`` inward take, in turn, all they may of dimension ``d``; return whether that ends."""
    left = e[first, d]
    for s in range(first, slots_of(sp)):
        if sp[table.META, table.RULES] != 0:
            e[s + 1, d] = 0
            left = higher_step(sp, e, s, d)
        elif may_loop(sp, s, d):
            left = 1
        e[s + 1, d] = left
    return left == 1


@compiled
def next_chain(sp: Compiled, e: Compiled, d: Compiled) -> Compiled:
    """Advance the steps of dimension ``d``; return False after the last."""
    # The last slot has no choice: it takes what is left.
    for s in range(slots_of(sp) - 2, -1, -1):
        if may_loop(sp, s, d):
            step = higher_step(sp, e, s, d)
            if step > 0:
                e[s + 1, d] = step
                if close_chain(sp, e, d, s + 1):
                    return True
    return False


@compiled
def chain_fits(sp: Compiled, e: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Whether dimensions up to ``d`` together fit the arrays."""
    lanes(sp, e, used, d)
    return arrays_fit(sp, used) and (d < dims_of(sp) - 1 or floor_missed(sp, used) < 0)


@compiled
def next_tiling(sp: Compiled, e: Compiled, used: Compiled, fresh: Compiled) -> Compiled:
    """Advance ``e`` to the next tiling that fits the arrays; return False after the last."""
    dims = dims_of(sp)
    d = dims - 1
    opened = False
    if fresh:
        for i in range(dims):
            e[0, i] = sp[table.SIZES, i]
        d, opened = 0, close_chain(sp, e, 0, 0)
    while d >= 0:
        found = opened and chain_fits(sp, e, d, used)
        while not found and next_chain(sp, e, d):
            found = chain_fits(sp, e, d, used)
        if not found:
            d, opened = d - 1, False
            continue
        if d == dims - 1:
            return True
        d += 1
        opened = close_chain(sp, e, d, 0)
    return False


@compiled
def looping(sp: Compiled, e: Compiled, s: Compiled, dims: Compiled) -> Compiled:
    """Write the dimensions that loop at slot ``s`` to ``dims``, ascending, then -1; return how many."""
    count = 0
    for d in range(dims_of(sp)):
        dims[d] = -1
    for d in range(dims_of(sp)):
        if e[s + 1, d] < e[s, d]:
            dims[count] = d
            count += 1
    return count


@compiled
def order_total(sp: Compiled, s: Compiled, count: Compiled) -> Compiled:
    """Return how many orders slot ``s`` has for ``count`` loops, repetitions included."""
    if is_spatial(sp, s):
        return 1
    if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
        return sp[table.SLOT + s, table.ORDER_COUNT]
    total = 1
    for k in range(2, count + 1):
        total *= k
    return total


@compiled
def unrank(sp: Compiled, s: Compiled, digit: Compiled, dims: Compiled, rank: Compiled) -> Compiled:
    """Write order number ``digit`` of the loops ``dims`` (followed by -1) to ``rank`` ``(d)``."""
    if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
        for d in range(dims_of(sp)):
            rank[d] = sp[sp[table.SLOT + s, table.ORDER_START] + digit, d]
        return
    count = 0
    for d in range(dims_of(sp)):
        rank[d] = -1
        count += dims[d] >= 0
    total = order_total(sp, s, count)
    for position in range(count):
        total //= count - position
        rank[free_loop(dims, rank, digit // total)] = position
        digit %= total
    for d in range(dims_of(sp)):
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
    for row in range(sp[table.SLOT + s, table.ORDER_START], sp[table.SLOT + s, table.ORDER_START] + digit):
        same = True
        for i in dims[:dims_of(sp)]:
            for j in dims[:dims_of(sp)]:
                if i >= 0 and j >= 0 and (rank[i] < rank[j]) != (sp[row, i] < sp[row, j]):
                    same = False
        if same:
            return True
    return False


@compiled
def slides(sp: Compiled, t: Compiled, d: Compiled) -> Compiled:
    """Whether dimension ``d`` moves along a sliding axis of operand ``t``, where its order shows in the halo."""
    for a in range(sp[table.SPANS, t], sp[table.SPANS, t + 1]):
        if sp[a, 3] >= 0 and (sp[a, 1] == d or sp[a, 3] == d):
            return t < sp[table.META, table.TENSORS] - 1
    return False


@compiled
def swap_shows(sp: Compiled, inside: Compiled, a: Compiled, b: Compiled) -> Compiled:
    """Whether swapping the adjacent loops ``a`` and ``b`` can change a count (counting rules 2 and 3).

    ``inside`` ``(d)`` marks the loops of the slot inside both.
    """
    for t in range(sp[table.META, table.TENSORS]):
        reached = False
        for d in range(dims_of(sp)):
            reached = reached or (inside[d] != 0 and sp[table.RELEVANT + t, d] != 0)
        if reached:
            continue
        if sp[table.RELEVANT + t, a] != sp[table.RELEVANT + t, b]:
            return True
        if sp[table.RELEVANT + t, a] != 0 and (slides(sp, t, a) or slides(sp, t, b)):
            return True
    return False


@compiled
def not_first(sp: Compiled, dims: Compiled, rank: Compiled, at: Compiled, inside: Compiled) -> Compiled:
    """Whether an order of equal cost, and with smaller dimensions farther out, is enumerated elsewhere."""
    count = 0
    for d in range(dims_of(sp)):
        inside[d] = 0
        if dims[d] >= 0:
            at[rank[dims[d]]] = dims[d]
            count += 1
    for i in range(count - 2, -1, -1):
        if i + 2 < count:
            inside[at[i + 2]] = 1
        if at[i] > at[i + 1] and not swap_shows(sp, inside, at[i], at[i + 1]):
            return True
    return False


@compiled
def set_order(sp: Compiled, e: Compiled, r: Compiled, s: Compiled, digit: Compiled, work: Compiled) -> Compiled:
    """Give slot ``s`` the first order at or after number ``digit``; return its number or -1.

    ``work[ROWS, LEFT, 0]`` says whether only one of the orders of equal cost is wanted.
    """
    dims, rank = work[ROWS, ORDER], r[s]
    total = order_total(sp, s, looping(sp, e, s, dims))
    while digit < total:
        unrank(sp, s, digit, dims, rank)
        if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
            skipped = repeats_order(sp, s, digit, dims, rank)
        else:
            skipped = work[ROWS, LEFT, 0] != 0 and not_first(sp, dims, rank, work[COUNTS, 0], work[RANKS, 0])
        if not skipped:
            return digit
        digit += 1
    return -1


@compiled
def next_order(sp: Compiled, e: Compiled, r: Compiled, digits: Compiled, work: Compiled) -> Compiled:
    """Advance the orders ``r`` of one tiling, innermost slot first; return False after the last."""
    for s in range(slots_of(sp) - 1, -1, -1):
        if not is_spatial(sp, s):
            digits[s] = set_order(sp, e, r, s, digits[s] + 1, work)
            if digits[s] >= 0:
                return True
            digits[s] = set_order(sp, e, r, s, 0, work)
    return False


@compiled
def first_orders(sp: Compiled, e: Compiled, r: Compiled, digits: Compiled, work: Compiled) -> Compiled:
    """Give every slot its first order."""
    for s in range(slots_of(sp)):
        digits[s] = 0
        if not is_spatial(sp, s):
            digits[s] = set_order(sp, e, r, s, 0, work)
        else:
            for d in range(dims_of(sp)):
                r[s, d] = d


@entry
def enumerate_into(sp: Compiled, e: Compiled, r: Compiled, digits: Compiled, work: Compiled, steps: Compiled,
                   ranks: Compiled) -> Compiled:
    """Write the next mappings to ``steps`` and ``ranks`` ``(s, d, b)``; return how many there were.

    ``e``, ``r`` and ``digits`` ``(s + 1)`` say where the enumeration stands: the mapping written last, the number of
    its order at every slot and, last, whether the enumeration is fresh, running or finished.
    """
    written, phase = 0, slots_of(sp)
    while written < steps.shape[2] and digits[phase] != FINISHED:
        if digits[phase] == FRESH or not next_order(sp, e, r, digits, work):
            if not next_tiling(sp, e, work[ROWS, LANES], digits[phase] == FRESH):
                digits[phase] = FINISHED
                break
            digits[phase] = RUNNING
            first_orders(sp, e, r, digits, work)
        store(sp, e, r, steps, ranks, written)
        written += 1
    return written

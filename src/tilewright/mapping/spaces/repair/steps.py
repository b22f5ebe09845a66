"""Compiled repair of steps in spaces without rules: monotone, inside the arrays, divisible where asked."""


from tilewright.mapping.spaces.kernels import (
    Compiled,
    ceil_div,
    compiled,
    dims_of,
    is_spatial,
    may_loop,
    perfect,
    room,
    slots_of,
)
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def near_divisor(sp: Compiled, d: Compiled, number: Compiled, target: Compiled, top: Compiled) -> Compiled:
    """Return the divisor of ``number`` (one of dimension ``d``) that is nearest ``target``, and at most ``top``."""
    best = 1
    for i in range(1, sp[table.DIVISORS + d, 0] + 1):
        f = sp[table.DIVISORS + d, i]
        if f > top or f > number:
            break
        if number % f == 0:
            if f > target:
                return f if f * best <= target * target else best
            best = f
    return best


@compiled
def nearest_count(sp: Compiled, d: Compiled, whole: Compiled, want: Compiled, top: Compiled) -> Compiled:
    """Return the count nearest ``want``, from 1 to ``top``, that splits the extent ``whole`` of dimension ``d``."""
    top = max(min(top, whole), 1)
    want = min(max(want, 1), top)
    if not perfect(sp) or whole % want == 0:
        return want
    return near_divisor(sp, d, whole, want, top)


@compiled
def repair_inside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` inside its anchor legal, innermost first; return the anchor's own step."""
    size = sp[table.SIZES, d]
    slots = slots_of(sp)
    current = 1
    e[slots, d] = 1
    for s in range(slots - 1, sp[table.ANCHOR, d], -1):
        want = e[s, d]
        if not may_loop(sp, s, d) or want <= current:
            want = current
        else:
            spatial = is_spatial(sp, s)
            top = min(size, current * room(sp, used, s)) if spatial else size
            want = min(want, top)
            if perfect(sp) and (want % current != 0 or size % want != 0):
                want = current * near_divisor(sp, d, size // current, max(want // current, 1), top // current)
            if spatial:
                used[s] *= ceil_div(want, current)
        e[s, d] = want
        current = want
    return current


@compiled
def repair_outside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled, inside: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` outside its anchor legal, outermost first."""
    extent = sp[table.SIZES, d]
    e[0, d] = extent
    for s in range(sp[table.ANCHOR, d]):
        want = extent
        if may_loop(sp, s, d) and e[s + 1, d] < extent:
            count = ceil_div(extent, max(e[s + 1, d], inside))
            whole = extent // inside if perfect(sp) else extent
            count = nearest_count(sp, d, whole, count, room(sp, used, s))
            want = max(ceil_div(extent, count), inside)
            used[s] *= ceil_div(extent, want)
        e[s + 1, d] = want
        extent = want


@compiled
def repair(sp: Compiled, e: Compiled, used: Compiled, first: Compiled) -> Compiled:
    """Make steps monotone, inside the arrays, and divisible where asked; dimension ``first`` is served first.

    Steps that are legal stay as they are. ``used`` ``(s)`` receives the lanes at every spatial slot.
    """
    dims = dims_of(sp)
    for s in range(slots_of(sp)):
        used[s] = 1
    for i in range(dims):
        d = first + i if first + i < dims else first + i - dims
        repair_outside(sp, e, d, used, repair_inside(sp, e, d, used))

"""Compiled placement: in a given order, by changes of that order, and by search of canonical placements.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Buffers ``n``,
sections ``s`` (times whose live buffers are all live together at no other time). Addresses are in the instance's units.
"""
# ruff: noqa: PLR0913, PLR0917, PLR0912, C901  (arrays as arguments compile fastest; a search has many parts)

from typing import NamedTuple

import numpy as np
from numba import njit

from tilewright.base import kept

OPEN, PLACED, IMPOSSIBLE = -1, 1, 0
"""What came of a search: not ended, a placement, or none there is."""
ROUNDS = 2
"""How often positions are raised by one another at a node: more saves nodes, but costs more than it saves."""


class Instance(NamedTuple):
    """Buffers in an order of preference, as compiled code takes them.

    Parameters
    ----------
    size, alignment
        ``(n)`` in units.
    starts, covers
        Sections of buffer ``i``: ``covers[starts[i]:starts[i + 1]]``.
    near_starts, near
        Buffers that share a section with it, likewise.
    twin
        ``(n)``: the buffer before it that is its like in size, alignment and sections; -1 where there is none.
    sections
        How many there are.
    """

    size: np.ndarray
    alignment: np.ndarray
    starts: np.ndarray
    covers: np.ndarray
    near_starts: np.ndarray
    near: np.ndarray
    twin: np.ndarray
    sections: int


class SearchState(NamedTuple):
    """Where a search stands, so that it can go on.

    Parameters
    ----------
    depth
        ``(1)``: how many buffers are placed.
    rest, least
        ``(n + 1, n)`` by depth: where a buffer would come to rest on those placed, and the least position it can have.
    chosen
        ``(n + 1)``: the buffer placed at each depth.
    placed
        ``(n)``.
    total
        ``(s)``: sizes of the buffers not yet placed.
    queue
        ``(n)``: buffers by their least positions, nearly.
    """

    depth: np.ndarray
    rest: np.ndarray
    least: np.ndarray
    chosen: np.ndarray
    placed: np.ndarray
    total: np.ndarray
    queue: np.ndarray


@njit(nogil=True, error_model="numpy")
def aligned(address, alignment):
    """Return the first multiple of ``alignment`` that is not below ``address``."""
    return -(-address // alignment) * alignment


@njit(nogil=True, error_model="numpy")
def raise_positions(instance, capacity, state, rest, least):
    """Raise ``least`` by what lies below; return False where a buffer cannot end within the capacity.

    No buffer lies below the lowest that can rest where it is. One that does not lie where it would rest lies on a
    buffer that shares a section with it; nor does it come first in a section where all the others then had no room.
    """
    n, s = len(instance.size), instance.sections
    level = capacity + 1
    for i in range(n):
        if not state.placed[i]:
            least[i] = max(least[i], rest[i])
            if least[i] == rest[i]:
                level = min(level, rest[i])
    for i in range(n):
        if not state.placed[i]:
            least[i] = aligned(max(least[i], level), instance.alignment[i])
    first, second, owner = np.empty(s, np.int64), np.empty(s, np.int64), np.empty(s, np.int64)
    for _ in range(ROUNDS):
        changed = False
        first[:], second[:], owner[:] = capacity + 1, capacity + 1, -1
        for i in range(n):
            if state.placed[i]:
                continue
            end = least[i] + instance.size[i]
            if end > capacity:
                return False
            for t in instance.covers[instance.starts[i]:instance.starts[i + 1]]:
                if end < first[t]:
                    first[t], second[t], owner[t] = end, first[t], i
                elif end < second[t]:
                    second[t] = end
        for i in range(n):
            if state.placed[i]:
                continue
            place, support = least[i], capacity + 1
            for t in instance.covers[instance.starts[i]:instance.starts[i + 1]]:
                other = second[t] if owner[t] == i else first[t]
                support = min(support, other)
                if place + state.total[t] > capacity and other > place:
                    place = other
            if least[i] > rest[i]:
                place = max(place, support)
            if place > least[i]:
                least[i] = aligned(place, instance.alignment[i])
                changed = True
        if not changed:
            break
    return True


@njit(nogil=True, error_model="numpy")
def sections_hold(instance, capacity, state, least):
    """Whether the buffers of each section have room above one another, none below its least position."""
    queue, placed = state.queue, state.placed
    for a in range(1, len(queue)):
        x = queue[a]
        key = -1 if placed[x] else least[x]
        b = a - 1
        while b >= 0 and (-1 if placed[queue[b]] else least[queue[b]]) > key:
            queue[b + 1] = queue[b]
            b -= 1
        queue[b + 1] = x
    height = np.zeros(instance.sections, np.int64)
    for x in queue:
        if placed[x]:
            continue
        for t in instance.covers[instance.starts[x]:instance.starts[x + 1]]:
            height[t] = max(height[t], least[x]) + instance.size[x]
            if height[t] > capacity:
                return False
    return True


@njit(nogil=True, error_model="numpy")
def is_dominated(instance, state, rest, least):
    """Whether a buffer that is not to lie where it would rest could, whatever comes: another branch holds that."""
    for i in range(len(rest)):
        if state.placed[i] or least[i] == rest[i]:
            continue
        end = rest[i] + instance.size[i]
        free = True
        for k in instance.near[instance.near_starts[i]:instance.near_starts[i + 1]]:
            if not state.placed[k] and least[k] < end:
                free = False
                break
        if free:
            return True
    return False


@njit(nogil=True, error_model="numpy")
def lowest(instance, state, rest, least):
    """Return the lowest buffer that may lie where it rests, the first of several; -1 where there is none."""
    found = -1
    for i in range(len(rest)):
        if not state.placed[i] and least[i] == rest[i] and (found < 0 or rest[i] < rest[found]):
            if instance.twin[i] < 0 or state.placed[instance.twin[i]]:
                found = i
    return found


@njit(nogil=True, error_model="numpy")
def put(instance, state, i, sign):
    """Place buffer ``i`` (``sign`` 1), or take it back (-1)."""
    state.placed[i] = sign > 0
    for t in instance.covers[instance.starts[i]:instance.starts[i + 1]]:
        state.total[t] -= sign * instance.size[i]


@kept
@njit(nogil=True, error_model="numpy")
def search(instance, capacity, state, nodes):
    """Go on for so many nodes at most; return what came of it, and the nodes.

    Canonical placements: each buffer rests at 0 or on another, and buffers are placed from the lowest up. At a node the
    lowest buffer is placed where it rests or, in the other branch, lies above that.
    """
    n = len(instance.size)
    for node in range(nodes):
        depth = state.depth[0]
        if depth == n:
            return PLACED, node
        rest, least = state.rest[depth], state.least[depth]
        chosen = -1
        if (raise_positions(instance, capacity, state, rest, least)
                and sections_hold(instance, capacity, state, least)
                and not is_dominated(instance, state, rest, least)):
            chosen = lowest(instance, state, rest, least)
        if chosen >= 0:
            put(instance, state, chosen, 1)
            state.chosen[depth] = chosen
            state.rest[depth + 1], state.least[depth + 1] = rest, least
            top = rest[chosen] + instance.size[chosen]
            for k in instance.near[instance.near_starts[chosen]:instance.near_starts[chosen + 1]]:
                if not state.placed[k] and rest[k] < top:
                    state.rest[depth + 1, k] = aligned(top, instance.alignment[k])
            state.depth[0] = depth + 1
            continue
        if depth == 0:
            return IMPOSSIBLE, node + 1
        state.depth[0] = depth - 1
        chosen = state.chosen[depth - 1]
        put(instance, state, chosen, -1)
        state.least[depth - 1, chosen] = state.rest[depth - 1, chosen] + 1
    return OPEN, nodes


@njit(nogil=True, error_model="numpy")
def fill(instance, apart, order, tightest, offsets, stack):
    """Place buffers in an order, each into its lowest gap, or the ``tightest``; return the height."""
    height = 0
    for count, i in enumerate(order):
        best, room, cursor = -1, np.iinfo(np.int64).max, 0
        for k in stack[:count]:
            if apart[i, k]:
                continue
            gap = offsets[k] - cursor
            if gap >= instance.size[i] and gap < room:
                best, room = cursor, gap
                if not tightest:
                    break
            cursor = max(cursor, aligned(offsets[k] + instance.size[k], instance.alignment[i]))
        offsets[i] = cursor if best < 0 else best
        height = max(height, offsets[i] + instance.size[i])
        b = count - 1
        while b >= 0 and offsets[stack[b]] > offsets[i]:
            stack[b + 1] = stack[b]
            b -= 1
        stack[b + 1] = i
    return height


@kept
@njit(nogil=True, error_model="numpy")
def place_in_order(instance, apart, order, tightest, draws, offsets):
    """Place buffers in an order (``n``), then in orders changed by ``draws`` ``(d, 2)`` in [0, 1); return the height.

    A change swaps a buffer that reaches the top with one that shares a section with it, and is kept where the height
    is no greater. ``offsets`` ``(n)`` are the best ones.
    """
    n = len(order)
    stack, trial = np.empty(n, np.int64), np.empty(n, np.int64)
    best = fill(instance, apart, order, tightest, offsets, stack)
    for d in range(len(draws)):
        tops = np.flatnonzero(offsets + instance.size == best)
        one = tops[int(draws[d, 0] * len(tops))]
        near = instance.near[instance.near_starts[one]:instance.near_starts[one + 1]]
        if not len(near):
            return best
        other = near[int(draws[d, 1] * len(near))]
        at, to = np.flatnonzero(order == one)[0], np.flatnonzero(order == other)[0]
        order[at], order[to] = other, one
        height = fill(instance, apart, order, tightest, trial, stack)
        if height <= best:
            best = height
            offsets[:] = trial
        else:
            order[at], order[to] = one, other
    return best

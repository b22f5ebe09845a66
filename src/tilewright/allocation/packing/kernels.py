"""Compiled placement: in a given order, by changes of that order, and by search of canonical placements.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Buffers ``n``,
sections ``s`` (times whose live buffers are all live together at no other time). Addresses are in the instance's units.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from typing import NamedTuple

import numpy as np
from numba import njit

from tilewright.base import kept

OPEN, PLACED, IMPOSSIBLE = -1, 1, 0
"""What came of a search: not ended, a placement, or none there is."""
ROUNDS, MOST_ROUNDS = 2, 60
"""How often positions are raised by one another at a node: more saves nodes, but costs more than it saves. Only while a
buffer seems to be lower than the lowest that may be placed it goes on, up to the second."""
WORD = 64
"""Depths in a word of a set of them."""


class Instance(NamedTuple):
    """Buffers in an order of preference, as compiled code takes them.

    Parameters
    ----------
    size, alignment
        ``(n)`` in units.
    starts, covers
        Sections of buffer ``i``: ``covers[starts[i]:starts[i + 1]]``.
    member_starts, members
        Buffers of a section, likewise.
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
    member_starts: np.ndarray
    members: np.ndarray
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
    why
        ``(n + 1, n, w)`` by depth: the depths whose placements these two come from, as bits.
    blame
        ``(w)``: those that a contradiction comes from.
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
    why: np.ndarray
    blame: np.ndarray
    chosen: np.ndarray
    placed: np.ndarray
    total: np.ndarray
    queue: np.ndarray


@njit(nogil=True, error_model="numpy")
def aligned(address, alignment):
    """Return the first multiple of ``alignment`` that is not below ``address``."""
    return -(-address // alignment) * alignment


@njit(nogil=True, error_model="numpy")
def near_of(instance, i):
    """Return the buffers that share a section with one."""
    return instance.near[instance.near_starts[i]:instance.near_starts[i + 1]]


@njit(nogil=True, error_model="numpy")
def sections_of(instance, i):
    """Return the sections that a buffer lives in."""
    return instance.covers[instance.starts[i]:instance.starts[i + 1]]


@njit(nogil=True, error_model="numpy")
def unite(into, other):
    """Add one set of depths to another."""
    for word in range(len(into)):
        into[word] |= other[word]


@njit(nogil=True, error_model="numpy")
def members_of(instance, section):
    """Return the buffers that live in a section."""
    return instance.members[instance.member_starts[section]:instance.member_starts[section + 1]]


@njit(nogil=True, error_model="numpy")
def add_why(state, why, buffers, into):
    """Add to a set why those of some buffers that are not placed lie as high as they do."""
    for k in buffers:
        if not state.placed[k]:
            unite(into, why[k])


@njit(nogil=True, error_model="numpy")
def first_ends(instance, capacity, state, least, ends, owner):
    """Fill ``ends`` ``(2, s)`` with the two least ends of each section, and ``owner`` with whose the first is.

    Return a buffer that cannot end within the capacity; -1 where there is none.
    """
    ends[:], owner[:] = capacity + 1, -1
    for i in range(len(least)):
        if state.placed[i]:
            continue
        end = least[i] + instance.size[i]
        if end > capacity:
            return i
        for t in sections_of(instance, i):
            if end < ends[0, t]:
                ends[0, t], ends[1, t], owner[t] = end, ends[0, t], i
            elif end < ends[1, t]:
                ends[1, t] = end
    return -1


@njit(nogil=True, error_model="numpy")
def raise_one(instance, capacity, state, depth, i, ends, owner):
    """Raise the least position of a buffer by what must lie below it; return whether it was.

    It does not come first in a section where all the others then had no room; it lies above its twin; and where it does
    not lie where it would rest, it lies on a buffer that shares a section with it.
    """
    rest, least, why = state.rest[depth, i], state.least[depth], state.why[depth]
    place, support = least[i], capacity + 1
    for t in sections_of(instance, i):
        other = ends[1, t] if owner[t] == i else ends[0, t]
        support = min(support, other)
        if place + state.total[t] > capacity and other > place:
            place = other
            add_why(state, why, members_of(instance, t), why[i])
    twin = instance.twin[i]
    if twin >= 0 and not state.placed[twin] and least[twin] + instance.size[twin] > place:
        place = least[twin] + instance.size[twin]
        unite(why[i], why[twin])
    if least[i] > rest and support > place:
        place = support
        add_why(state, why, near_of(instance, i), why[i])
    if place <= least[i]:
        return False
    least[i] = aligned(place, instance.alignment[i])
    return True


@njit(nogil=True, error_model="numpy")
def raise_positions(instance, capacity, state, depth, ends, owner):
    """Raise least positions by one another; return the lowest buffer that may lie where it rests.

    -1 where none may, -2 where one cannot end within the capacity, for which there is blame then.
    """
    rest, least = state.rest[depth], state.least[depth]
    lowest = -1
    for rounds in range(MOST_ROUNDS):
        over = first_ends(instance, capacity, state, least, ends, owner)
        if over >= 0:
            state.blame[:] = state.why[depth, over]
            return -2
        changed = False
        for i in range(len(rest)):
            if not state.placed[i] and raise_one(instance, capacity, state, depth, i, ends, owner):
                changed = True
        lowest, below = -1, False
        for i in range(len(rest)):
            if not state.placed[i] and least[i] == rest[i] and (lowest < 0 or rest[i] < rest[lowest]):
                lowest = i
        for i in range(len(rest)):
            below |= lowest >= 0 and not state.placed[i] and least[i] < rest[lowest]
        if not changed or (rounds + 1 >= ROUNDS and not below):
            break
    return lowest


@njit(nogil=True, error_model="numpy")
def sections_hold(instance, capacity, state, depth):
    """Whether the buffers of each section have room above one another, none below its least position; else blame."""
    queue, placed, least = state.queue, state.placed, state.least[depth]
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
        for t in sections_of(instance, x):
            height[t] = max(height[t], least[x]) + instance.size[x]
            if height[t] > capacity:
                blame_section(instance, state, depth, t, x)
                return False
    return True


@njit(nogil=True, error_model="numpy")
def blame_section(instance, state, depth, section, last):
    """Blame why the buffers of a section up to the ``last`` lie so high: those from the last one on with room below."""
    height = 0
    lives = np.zeros(len(state.queue), np.bool_)
    lives[members_of(instance, section)] = True
    for x in state.queue:
        if lives[x] and not state.placed[x]:
            if state.least[depth, x] > height:
                height = state.least[depth, x]
                state.blame[:] = 0
            height += instance.size[x]
            unite(state.blame, state.why[depth, x])
        if x == last:
            return


@njit(nogil=True, error_model="numpy")
def is_dominated(instance, state, depth):
    """Whether a buffer that is not to lie where it would rest could, whatever comes: another branch holds that."""
    rest, least = state.rest[depth], state.least[depth]
    for i in range(len(rest)):
        if state.placed[i] or least[i] == rest[i]:
            continue
        free = True
        for k in near_of(instance, i):
            if not state.placed[k] and least[k] < rest[i] + instance.size[i]:
                free = False
                break
        if free:
            state.blame[:] = state.why[depth, i]
            add_why(state, state.why[depth], near_of(instance, i), state.blame)
            return True
    return False


@njit(nogil=True, error_model="numpy")
def put(instance, state, i, sign):
    """Place buffer ``i`` (``sign`` 1), or take it back (-1)."""
    state.placed[i] = sign > 0
    for t in sections_of(instance, i):
        state.total[t] -= sign * instance.size[i]


@njit(nogil=True, error_model="numpy")
def descend(instance, state, i):
    """Place a buffer where it rests: what shares a section with it and is not placed lies above it."""
    depth = state.depth[0]
    put(instance, state, i, 1)
    state.chosen[depth] = i
    for array in (state.rest, state.least):
        array[depth + 1] = array[depth]
    state.why[depth + 1] = state.why[depth]
    top = state.rest[depth, i] + instance.size[i]
    for k in near_of(instance, i):
        if not state.placed[k]:
            state.rest[depth + 1, k] = max(state.rest[depth, k], aligned(top, instance.alignment[k]))
            state.least[depth + 1, k] = max(state.least[depth, k], state.rest[depth + 1, k])
            state.why[depth + 1, k, depth // WORD] |= np.uint64(1) << np.uint64(depth % WORD)
    state.depth[0] = depth + 1


@njit(nogil=True, error_model="numpy")
def go_back(instance, state):
    """Go back to the last placement that is to blame, and let its buffer lie higher; False where there is none."""
    word = len(state.blame) - 1
    while word >= 0 and state.blame[word] == 0:
        word -= 1
    if word < 0:
        return False
    bit = WORD - 1
    while not (state.blame[word] >> np.uint64(bit)) & np.uint64(1):
        bit -= 1
    state.blame[word] ^= np.uint64(1) << np.uint64(bit)
    target = word * WORD + bit
    for depth in range(state.depth[0] - 1, target - 1, -1):
        put(instance, state, state.chosen[depth], -1)
    state.depth[0] = target
    i = state.chosen[target]
    state.least[target, i] = state.rest[target, i] + 1
    unite(state.why[target, i], state.blame)
    return True


@kept
@njit(nogil=True, error_model="numpy")
def search(instance, capacity, state, nodes):
    """Go on for so many nodes at most; return what came of it, and the nodes.

    Canonical placements: each buffer rests at 0 or on another, and buffers are placed from the lowest up. At a node the
    lowest buffer is placed where it rests; where that comes to a contradiction, it lies above that, for the reasons
    that the contradiction has besides. Placements that are not to blame for one are taken back with it.
    """
    n = len(instance.size)
    ends, owner = np.empty((2, instance.sections), np.int64), np.empty(instance.sections, np.int64)
    for node in range(nodes):
        depth = state.depth[0]
        if depth == n:
            return PLACED, node
        lowest = raise_positions(instance, capacity, state, depth, ends, owner)
        if lowest == -1:
            state.blame[:] = 0
            for k in range(depth):
                state.blame[k // WORD] |= np.uint64(1) << np.uint64(k % WORD)
        if (lowest >= 0 and sections_hold(instance, capacity, state, depth)
                and not is_dominated(instance, state, depth)):
            descend(instance, state, lowest)
        elif not go_back(instance, state):
            return IMPOSSIBLE, node + 1
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

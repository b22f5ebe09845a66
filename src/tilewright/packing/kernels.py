"""Compiled placement: in a given order, by changes of that order, and by search of canonical placements.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Buffers ``n``,
sections ``s`` (times whose live buffers are all live together at no other time). Addresses are in the instance's units.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tilewright.base import kept, part_options

OPEN, PLACED, IMPOSSIBLE = -1, 1, 0
"""What came of a search: not ended, a placement, or none there is."""
ROUNDS, MOST_ROUNDS = 2, 60
"""How often positions are raised by one another at a node: more saves nodes, but costs more than it saves. Only while a
buffer seems to be lower than the lowest that may be placed it goes on, up to the second."""
WORD = 64
"""Depths in a word of a set of them."""
FIRST, SECOND, OWNER, FLOOR, COUNT = range(5)
"""Columns of the notes on sections."""
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only compiled functions call.
_part = njit(**_OPTIONS, **part_options())


class Instance(NamedTuple):
    """Buffers in an order of preference, as compiled code takes them."""

    size: np.ndarray
    alignment: np.ndarray
    """``size`` and ``alignment``: ``(n)`` in units."""
    starts: np.ndarray
    covers: np.ndarray
    """``starts`` and ``covers``: sections of buffer ``i``: ``covers[starts[i]:starts[i + 1]]``."""
    member_starts: np.ndarray
    members: np.ndarray
    """``member_starts`` and ``members``: buffers of a section, likewise."""
    near_starts: np.ndarray
    near: np.ndarray
    """``near_starts`` and ``near``: buffers that share a section with it, likewise."""
    twin: np.ndarray
    """``(n)``: the buffer before it that is its like in size, alignment and sections; -1 where there is none."""
    sections: int
    """How many there are."""
    bank: int
    """Units of a bank, across whose ends no buffer lies; 0 for no banks."""


class SearchState(NamedTuple):
    """Where a search stands, so that it can go on."""

    depth: np.ndarray
    """``(1)``: how many buffers are placed."""
    rest: np.ndarray
    least: np.ndarray
    """``rest`` and ``least``: ``(n + 1, n)`` by depth: where a buffer would come to rest on those placed, and the least
    position it can have."""
    why: np.ndarray
    """``(n + 1, n, w)`` by depth: the depths whose placements these two come from, as bits."""
    blame: np.ndarray
    """``(w)``: those that a contradiction comes from."""
    chosen: np.ndarray
    """``(n + 1)``: the buffer placed at each depth."""
    placed: np.ndarray
    """``(n)``."""
    total: np.ndarray
    """``(s)``: sizes of the buffers not yet placed."""
    notes: np.ndarray
    """``(n + 1, s, 5)`` by depth: of the buffers not yet placed in a section the two least ends, whose the first is,
    the least position, and how many may come next."""
    changed: np.ndarray
    touched: np.ndarray
    """``changed`` and ``touched``: ``(s)``: sections whose notes are old, and those that changed since they were last
    held against the capacity."""
    stale: np.ndarray
    """``(n)``: buffers whose positions may have to be raised."""
    blocker: np.ndarray
    """``(n)``: a buffer that kept each from where it would rest, when that was last looked at."""


def search_state(instance: Instance) -> SearchState:
    """Return where a search begins."""
    n, sections = len(instance.size), instance.sections
    rest, least = np.zeros((2, n + 1, n), np.int64)
    why = np.zeros((n + 2, n, -(-n // WORD)), np.uint64)
    total = np.zeros(sections, np.int64)
    np.add.at(total, instance.covers, np.repeat(instance.size, np.diff(instance.starts)))
    return SearchState(np.zeros(1, np.int64), rest, least, why[:-1], why[-1, 0], np.zeros(n + 1, np.int64),
                       np.zeros(n, np.bool_), total, np.zeros((n + 1, sections, 5), np.int64),
                       np.ones(sections, np.bool_), np.zeros(sections, np.bool_), np.zeros(n, np.bool_),
                       np.zeros(n, np.int64))


@_part
def aligned(instance, address, i):
    """Return the first address from ``address`` on that a buffer may have: aligned, and all of it in one bank."""
    alignment, bank = instance.alignment[i], instance.bank
    place = -(-address // alignment) * alignment
    while bank and place % bank + instance.size[i] > bank:
        place = -(-(place // bank + 1) * bank // alignment) * alignment
    return place


@_part
def near_of(instance, i):
    """Return the buffers that share a section with one."""
    return instance.near[instance.near_starts[i]:instance.near_starts[i + 1]]


@_part
def sections_of(instance, i):
    """Return the sections that a buffer lives in."""
    return instance.covers[instance.starts[i]:instance.starts[i + 1]]


@_part
def copy(row, into):
    """Copy a row to another: a slice would compile words on shapes that differ, in several times the time."""
    for k in range(len(row)):
        into[k] = row[k]


@_part
def clear(row):
    """Set a row to zero, or to False."""
    for k in range(len(row)):
        row[k] = 0


@_part
def mark(flags, places):
    """Set the flags of some places."""
    for place in places:
        flags[place] = True


@_part
def unite(into, other):
    """Add one set of depths to another."""
    for word in range(len(into)):
        into[word] |= other[word]


@_part
def members_of(instance, section):
    """Return the buffers that live in a section."""
    return instance.members[instance.member_starts[section]:instance.member_starts[section + 1]]


@_part
def add_why(state, why, buffers, into):
    """Add to a set why those of some buffers that are not placed lie as high as they do."""
    for k in buffers:
        if not state.placed[k]:
            unite(into, why[k])


@_part
def look_at(instance, capacity, state, depth, section):
    """Note of a section the two least ends and whose the first is, the floor, and what may come next there.

    These are buffers whose lying lowest leaves room for the others, and nothing where some room is left over. Buffers
    of the section are to be looked at again.
    """
    least, first, second, whose, floor = state.least[depth], capacity + 1, capacity + 1, -1, capacity + 1
    for i in members_of(instance, section):
        if state.placed[i]:
            continue
        state.stale[i] = True
        floor = min(floor, least[i])
        end = least[i] + instance.size[i]
        if end < first:
            first, second, whose = end, first, i
        elif end < second:
            second = end
    count = int(floor + state.total[section] < capacity)
    highest = max(floor, capacity - state.total[section])
    for i in members_of(instance, section):
        count += not state.placed[i] and least[i] <= highest
    state.notes[depth, section] = first, second, whose, floor, count
    state.changed[section], state.touched[section] = False, True


@_part
def raise_one(instance, capacity, state, depth, i):
    """Raise the least position of a buffer by what must lie below it; return whether it was.

    It does not come first in a section where all the others then had no room; it lies above its twin; and where it does
    not lie where it would rest, it lies on a buffer that shares a section with it.
    """
    rest, least, why, notes = state.rest[depth, i], state.least[depth], state.why[depth], state.notes[depth]
    place, support = least[i], capacity + 1
    for t in sections_of(instance, i):
        # The lowest top that it could lie on in this section: the least end of any other buffer there.
        other = notes[t, SECOND] if notes[t, OWNER] == i else notes[t, FIRST]
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
    least[i] = aligned(instance, place, i)
    mark(state.changed, sections_of(instance, i))
    return True


@_part
def raise_positions(instance, capacity, state, depth, lowest_first):
    """Raise least positions by one another; return the buffer to place where it rests.

    -1 where none may be, for which there is blame then.
    """
    least = state.least[depth]
    for rounds in range(MOST_ROUNDS):
        for t in np.flatnonzero(state.changed):
            look_at(instance, capacity, state, depth, t)
        again = False
        for i in range(len(state.stale)):
            if not state.stale[i]:
                continue
            state.stale[i] = False
            again |= not state.placed[i] and raise_one(instance, capacity, state, depth, i)
            if not state.placed[i] and least[i] + instance.size[i] > capacity:
                copy(state.why[depth, i], state.blame)
                return -1
        if not again or rounds + 1 >= ROUNDS:
            found = choose(instance, state, depth, lowest_first)
            if found >= 0 or not again:
                break
    # No single buffer is too high, yet none may come next: any placement may be the reason.
    if found < 0:
        clear(state.blame)
        for k in range(depth):
            state.blame[k // WORD] |= np.uint64(1) << np.uint64(k % WORD)
    return found


@_part
def choose(instance, state, depth, lowest_first):
    """Return the buffer to place where it rests; -1 where none may be.

    Nothing that is not placed may fit below it. The one is taken that lies on the floor of the section where fewest
    may, the lowest of these; or, where ``lowest_first``, that one of the lowest.
    """
    rest, least, notes = state.rest[depth], state.least[depth], state.notes[depth]
    best, best_keys = -1, (0, 0)
    for i in range(len(rest)):
        if state.placed[i] or least[i] > rest[i]:
            continue
        fewest = len(rest)
        for t in sections_of(instance, i):
            if notes[t, FLOOR] == least[i]:
                fewest = min(fewest, notes[t, COUNT])
        keys = (rest[i], fewest) if lowest_first else (fewest, rest[i])
        if best >= 0 and keys >= best_keys:
            continue
        for k in near_of(instance, i):
            if not state.placed[k] and least[k] + instance.size[k] <= rest[i]:
                break
        else:
            best, best_keys = i, keys
    return best


@_part
def sections_hold(instance, capacity, state, depth):
    """Whether the buffers of each section that changed have room above one another, none below its least position.

    Where they have not, blame those from the last one on that has room below.
    """
    placed, least = state.placed, state.least[depth]
    for t in range(len(state.touched)):
        if not state.touched[t]:
            continue
        state.touched[t] = False
        # Sorted in place: positions change little from node to node, so the next look finds it nearly sorted.
        queue = members_of(instance, t)
        for a in range(1, len(queue)):
            x, b = queue[a], a - 1
            while b >= 0 and least[queue[b]] > least[x]:
                queue[b + 1] = queue[b]
                b -= 1
            queue[b + 1] = x
        height, begin = 0, 0
        for a, x in enumerate(queue):
            if placed[x]:
                continue
            if least[x] > height:
                height, begin = least[x], a
            height += instance.size[x]
            if height > capacity:
                clear(state.blame)
                add_why(state, state.why[depth], queue[begin:a + 1], state.blame)
                return False
    return True


@_part
def is_dominated(instance, state, depth):
    """Whether a buffer that is not to lie where it would rest could, whatever comes: another branch holds that."""
    rest, least = state.rest[depth], state.least[depth]
    for i in range(len(rest)):
        if state.placed[i] or least[i] == rest[i]:
            continue
        top, k = rest[i] + instance.size[i], state.blocker[i]
        # Mostly the buffer that was in the way last time still is: then the others need no look.
        if not state.placed[k] and least[k] < top:
            continue
        for k in near_of(instance, i):
            if not state.placed[k] and least[k] < top:
                state.blocker[i] = k
                break
        else:
            copy(state.why[depth, i], state.blame)
            add_why(state, state.why[depth], near_of(instance, i), state.blame)
            return True
    return False


@_part
def put(instance, state, i, sign):
    """Place buffer ``i`` (``sign`` 1), or take it back (-1)."""
    state.placed[i] = sign > 0
    for t in sections_of(instance, i):
        state.total[t] -= sign * instance.size[i]


@_part
def descend(instance, state, i):
    """Place a buffer where it rests: what shares a section with it and is not placed lies above it."""
    depth = state.depth[0]
    put(instance, state, i, 1)
    state.chosen[depth] = i
    copy(state.rest[depth], state.rest[depth + 1])
    copy(state.least[depth], state.least[depth + 1])
    for k in range(len(state.placed)):
        copy(state.why[depth, k], state.why[depth + 1, k])
    for t in range(len(state.total)):
        copy(state.notes[depth, t], state.notes[depth + 1, t])
    mark(state.changed, sections_of(instance, i))
    top = state.rest[depth, i] + instance.size[i]
    for k in near_of(instance, i):
        if not state.placed[k]:
            state.rest[depth + 1, k] = max(state.rest[depth, k], aligned(instance, top, k))
            state.why[depth + 1, k, depth // WORD] |= np.uint64(1) << np.uint64(depth % WORD)
            if state.rest[depth + 1, k] > state.least[depth, k]:
                state.least[depth + 1, k] = state.rest[depth + 1, k]
                mark(state.changed, sections_of(instance, k))
    state.depth[0] = depth + 1


@_part
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
    clear(state.changed)
    clear(state.touched)
    clear(state.stale)
    mark(state.changed, sections_of(instance, i))
    # Resting there led to a contradiction: from now on it lies higher, for the reasons gathered.
    state.least[target, i] = state.rest[target, i] + 1
    unite(state.why[target, i], state.blame)
    return True


@kept
@njit(**_OPTIONS)
def search(instance, capacity, state, nodes, lowest_first):
    """Go on for so many nodes at most; return what came of it, and the nodes.

    Canonical placements: each buffer rests at 0 or on another, and is placed when nothing that is not placed fits below
    it. At a node one is placed where it rests; where that comes to a contradiction, it lies above that, for the reasons
    that the contradiction has besides. Placements that are not to blame for one are taken back with it.
    """
    n = len(instance.size)
    for node in range(nodes):
        depth = state.depth[0]
        if depth == n:
            return PLACED, node
        chosen = raise_positions(instance, capacity, state, depth, lowest_first)
        if (chosen >= 0 and sections_hold(instance, capacity, state, depth)
                and not is_dominated(instance, state, depth)):
            descend(instance, state, chosen)
        elif not go_back(instance, state):
            return IMPOSSIBLE, node + 1
    return OPEN, nodes


@_part
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
            cursor = max(cursor, aligned(instance, offsets[k] + instance.size[k], i))
        offsets[i] = cursor if best < 0 else best
        height = max(height, offsets[i] + instance.size[i])
        b = count - 1
        while b >= 0 and offsets[stack[b]] > offsets[i]:
            stack[b + 1] = stack[b]
            b -= 1
        stack[b + 1] = i
    return height


@kept
@njit(**_OPTIONS)
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
            copy(trial, offsets)
        else:
            order[at], order[to] = one, other
    return best

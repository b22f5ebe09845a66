"""Find the busiest instance of a memory where it need not be the first: each axis walked value by value, compiled.

The first instance of a memory is the busiest but for two cases: partial sums read back where lanes spread a sliding
axis of the output (they go to the lowest of the lanes that touch a word, so that one lane takes what another would),
and operands with holes carried over by lanes of unequal width (a narrow lane may hold less of its next tile than a wide
one). Only mappings of these kinds come here. `walks` writes down what the walk needs to know of a machine.

``nest`` is (steps (s, d, b), ranks (s, d, b), sizes (d)) of a batch, ``at`` the mapping looked at; ``memory`` is one
row of each table of `walks.Walks`; ``work`` are arrays to work in.
"""

# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)
# mypy: disable-error-code="assignment"

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.cost.dense import entries
from tilewright.cost.dense.entries import EVICT, FILL, HELD, LOWEST, PLAIN, READ, SLIDING, UPDATE, VIEWS
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry

# What a loop does: all pieces, only the first, one of each instance, or of the first instance only.
SPLIT, PICK, LANE, LONE = range(4)
READ_PORT, WRITE_PORT, SHARED_PORT, BLOCKING = range(len(VIEWS))
# Rows of the values of a dimension.
LANE_ROW, LOW, HIGH, GROUP_LOW, GROUP_HIGH, BEFORE_LOW, BEFORE_HIGH, KEY = range(8)
_named = stamped([Path(entries.__file__)])


@compiled
def place_of(nest, at, s, d):
    """Return the place of a temporal loop in the nest."""
    return s * nest[0].shape[1] + nest[1][s, d, at]


@compiled
def outside_of(nest, at, s, d):
    """Return the nominal extent of a dimension outside slot ``s``."""
    return np.int64(nest[2][d]) if s == 0 else np.int64(nest[0][s - 1, d, at])


@compiled
def count_of(nest, at, s, d):
    """Return the nominal iterations of a loop; one where there is none."""
    outside, step = outside_of(nest, at, s, d), np.int64(nest[0][s, d, at])
    return (outside + step - 1) // step


@compiled
def innermost_of(nest, at, slots, relevant, end):
    """Return the place of the innermost advancing loop outside slot ``end``; -1 if none advances."""
    for s in range(end - 1, -1, -1):
        if slots[s, 1] == 0:
            last = -1
            for d in range(len(relevant)):
                if relevant[d] > 0 and count_of(nest, at, s, d) > 1:
                    last = max(last, place_of(nest, at, s, d))
            if last >= 0:
                return last
    return -1


@compiled
def combines(nest, at, memory, span):
    """Whether the parent adds up partial sums of instances between it and its child, which do not merge (rule 5).

    ``kinds`` (d): what dimensions are to the output, `PLAIN`, `SLIDING` or `LACKING`; ``span``: slots between.
    """
    slots, output, kinds = memory[0], memory[1][3], memory[4]
    for d in range(len(kinds)):
        if kinds[d] == PLAIN:
            continue
        broken = False
        for s in range(span[1] - 1, span[0] - 1, -1):
            if count_of(nest, at, s, d) > 1:
                merges = slots[s, 1] > 0 and slots[s, 2 + output] > 0
                if slots[s, 1] > 0 and (not merges or (broken and kinds[d] == SLIDING)):
                    return True
                broken = broken or not merges
    return False


@compiled
def followed_from(nest, at, memory):
    """Return the keeper from which on partial sums are followed inward: the last whose sums all start from zero.

    It is the first keeper of all, 0, unless one combines what its child sends; -1 where this memory is given none.
    """
    head, ends = memory[1], memory[5]
    if head[3] < 0:
        return -1
    since = 0
    for i in range(1, head[4] + 1):
        if combines(nest, at, memory, (ends[i - 1], ends[i])):
            since = i
    return since if since < head[4] else -1


@compiled
def another_may_be(nest, at, memory, since):
    """Whether another instance than the first may be the busiest, ``since`` being `followed_from`."""
    slots, head, units = memory[0], memory[1], memory[3]
    for u in range(head[2]):
        first, second = units[u, 2], units[u, 4]
        if units[u, 1] == SLIDING and (spread(nest, at, slots, first, head[0])
                                       or spread(nest, at, slots, second, head[0])):
            if units[u, 0] == head[3]:
                if since >= 0:
                    return True
            elif max(units[u, 3], units[u, 5]) > 1 and (ragged(nest, at, slots, first)
                                                        or ragged(nest, at, slots, second)):
                return True
    return False


@compiled
def ragged(nest, at, slots, d):
    """Whether a loop over ``d`` leaves a rest."""
    for s in range(len(slots)):
        if outside_of(nest, at, s, d) % nest[0][s, d, at] > 0:
            return True
    return False


@compiled
def spread(nest, at, slots, d, end):
    """Whether lanes outside slot ``end`` spread dimension ``d``."""
    for s in range(end):
        if slots[s, 1] > 0 and count_of(nest, at, s, d) > 1:
            return True
    return False


@compiled
def role(nest, at, memory, row, inner, s, d):
    """Return what the loop of slot ``s`` over ``d``, which the tensor lacks, does to an entry."""
    slots, end = memory[0], memory[1][0]
    if slots[s, 1] == 0:
        advances = s < row[4] and (row[3] > 0 or place_of(nest, at, s, d) <= inner)
        return SPLIT if advances else PICK
    if s < end and slots[s, 1] == 1:
        return LONE if s >= row[5] else LANE
    if s < end and row[0] == FILL:
        return PICK
    return PICK if slots[s, 2 + row[1]] > 0 else SPLIT


@compiled
def pieces(nest, at, memory, row, inner, d, plain, work):
    """Return the pieces that the first instance has of a dimension, or, of a plain axis, their extents together."""
    slots, end = memory[0], memory[1][0]
    extents, counts = work[3][0], work[3][1]
    extents[0], counts[0], size = nest[2][d], 1, 1
    for s in range(end if plain else row[2]):
        step = np.int64(nest[0][s, d, at])
        if step >= outside_of(nest, at, s, d):
            continue
        does = SPLIT if slots[s, 1] == 0 else PICK
        if not plain:
            does = role(nest, at, memory, row, inner, s, d)
        # Whole tiles are alike, so each cut adds one kind of piece; what was known is left as its rest.
        whole = 0
        for j in range(size):
            if does == SPLIT:
                whole += counts[j] * (extents[j] // step)
                extents[j] %= step
            else:
                extents[j] = min(extents[j], step)
        if does == SPLIT:
            extents[size], counts[size] = step, whole
            size += 1
    total = 0
    for j in range(size):
        if extents[j] > 0:
            total += counts[j] * (extents[j] if plain else 1)
    return total


@compiled
def shared_from(nest, at, memory, row, d):
    """Return the slot from which on, down to the child, all loops over a sliding dimension are merged lanes."""
    slots, run = memory[0], row[2]
    for s in range(row[2] - 1, memory[1][0] - 1, -1):
        if count_of(nest, at, s, d) > 1:
            if slots[s, 1] == 0 or slots[s, 2 + row[1]] == 0:
                break
            run = s
    return run


@compiled
def axis_values(nest, at, memory, row, halo, d, values):
    """Write, for each value of a dimension of a sliding axis, its instance and the tiles that it lies in.

    ``values`` (8, n): the instance outside, the tile of the child, the box of the instances that share with it, and the
    tile before, which is empty where nothing carries over; ``halo`` is the slot that moves the tile, -1 if none does.
    """
    slots, end, child, size = memory[0], memory[1][0], row[2], nest[2][d]
    run = shared_from(nest, at, memory, row, d)
    for p in range(size):
        low, high, before, until, lane, near, far = 0, size, 0, 0, 0, 0, size
        for s in range(child):
            step, count = np.int64(nest[0][s, d, at]), count_of(nest, at, s, d)
            if count == 1:
                continue
            index = (p - low) // step
            # The visit before stands one tile back in the loop that moves, and in the same place of all inside it.
            if s == halo and index > 0:
                before, until = low + (index - 1) * step, low + index * step
            elif until > 0:
                before += index * step
                until = min(before + step, until)
            if slots[s, 1] == 1 and s < end:
                lane = lane * count + index
            low += index * step
            high = min(low + step, high)
            if s < run:
                near, far = low, high
        values[LANE_ROW, p], values[LOW, p], values[HIGH, p] = lane, low, high
        values[GROUP_LOW, p], values[GROUP_HIGH, p] = near, far
        values[BEFORE_LOW, p], values[BEFORE_HIGH, p] = before, until


@compiled
def held(first, second, p, r, a, b):
    """Whether the lane of (p, r) held its word a p + b r in the visit before; ``first`` is the dimension that moved."""
    until = first[BEFORE_HIGH, p]
    if until == 0:
        return False
    back = (p - until) // b + 1
    return p - b * back >= first[BEFORE_LOW, p] and r + a * back < second[HIGH, r]


@compiled
def moved_by(nest, at, slots, end, inner, d):
    """Return the slot whose loop over ``d`` stands at the place ``inner``, -1 if none does."""
    for s in range(end):
        if slots[s, 1] == 0 and count_of(nest, at, s, d) > 1 and place_of(nest, at, s, d) == inner:
            return s
    return -1


@compiled
def crossing(nest, at, memory, row, unit, inner, lanes, out, work):
    """Write the words along a sliding axis that each instance exchanges, over all visits, to ``out`` (instances)."""
    dims, factors = (unit[2], unit[4]), (unit[3], unit[5])
    moving, halo = 0, -1
    if row[0] <= READ and row[3] == 0 and inner >= 0:
        moving = 1 if moved_by(nest, at, memory[0], row[2], inner, dims[1]) >= 0 else 0
        halo = moved_by(nest, at, memory[0], row[2], inner, dims[moving])
    first, second = work[0][0], work[0][1]
    d, e, a, b = dims[moving], dims[1 - moving], factors[moving], factors[1 - moving]
    axis_values(nest, at, memory, row, halo, d, first)
    axis_values(nest, at, memory, row, -1, e, second)
    for p in range(nest[2][d]):
        for r in range(nest[2][e]):
            if p - b >= first[GROUP_LOW, p] and r + a < second[GROUP_HIGH, r]:
                continue  # The word was met at p - b.
            if first[LANE_ROW, p] >= lanes[d] or second[LANE_ROW, r] >= lanes[e]:
                continue
            # All pairs along this diagonal are one word: it comes in for the first lane that did not hold it.
            q, t = p, r
            while q < first[GROUP_HIGH, p] and t >= second[GROUP_LOW, r]:
                if not held(first, second, q, t, a, b):
                    place = first[LANE_ROW, p] * lanes[e] + second[LANE_ROW, r]
                    if moving == 1:
                        place = second[LANE_ROW, r] * lanes[d] + first[LANE_ROW, p]
                    out[place] += 1
                    break
                q, t = q + b, t - a


@compiled
def order_loops(nest, at, memory, unit, cuts, worth):
    """Order the loops of a sliding axis of the output as sums are delivered: keeper by keeper, time, then lanes.

    Lanes go by level and, at each, by dimension. Writes what one iteration of each loop is worth in a number that
    counts in that order, and, to ``cuts`` (keepers, 2), what lies inside the lanes, and the loops, before each keeper.
    """
    slots, ends, last = memory[0], memory[5], memory[1][4]
    pair = (min(unit[2], unit[4]), max(unit[2], unit[4]))
    total = 1
    for i in range(last, -1, -1):
        begin = ends[i - 1] if i > 0 else 0
        level = -1
        for s in range(ends[i] - 1, begin - 1, -1):
            if slots[s, 1] > 0 and slots[s, 0] != level:
                level = slots[s, 0]
                for k in range(1, -1, -1):
                    for t in range(s, begin - 1, -1):
                        if slots[t, 0] == level:
                            worth[t, k] = total
                            total *= count_of(nest, at, t, pair[k])
        cuts[i, 0] = total
        for s in range(ends[i] - 1, begin - 1, -1):
            if slots[s, 1] == 0:
                later = 1 if nest[1][s, pair[1], at] > nest[1][s, pair[0], at] else 0
                for k in (later, 1 - later):
                    worth[s, k] = total
                    total *= count_of(nest, at, s, pair[k])
        cuts[i, 1] = total


@compiled
def keys(nest, at, memory, d, worth, values):
    """Write for each value of a dimension its instance, and its place in the order of `order_loops`."""
    slots, end = memory[0], memory[1][0]
    for p in range(nest[2][d]):
        low, lane, key = 0, 0, 0
        for s in range(end):
            step, count = np.int64(nest[0][s, d, at]), count_of(nest, at, s, d)
            if count > 1:
                index = (p - low) // step
                low += index * step
                key += index * worth[s]
                if slots[s, 1] > 0:
                    lane = lane * count + index
        values[LANE_ROW, p], values[KEY, p] = lane, key


@compiled
def sort_both(keys, places, size):
    """Sort the first ``size`` keys, and what belongs to them."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            key, place, j = keys[i], places[i], i
            while j >= gap and keys[j - gap] > key:
                keys[j], places[j] = keys[j - gap], places[j - gap]
                j -= gap
            keys[j], places[j] = key, place
        gap //= 3


@compiled
def delivered(nest, at, memory, unit, since, lanes, out, work):
    """Write how often each instance is the lowest, and the first, to touch a word of the output, to ``out`` (e, i).

    Rows go from the memory outward, two for each keeper on the way: how often it is the lowest of the lanes in the
    keeper's visit (and the lowest and first inside it), and how often the first of all in that visit of the next one.
    """
    last = memory[1][4]
    cuts, worth = work[4], work[5]
    order_loops(nest, at, memory, unit, cuts, worth)
    d, e, a, b = unit[2], unit[4], unit[3], unit[5]
    first, second = work[0][0], work[0][1]
    keys(nest, at, memory, d, worth[:, 0 if d < e else 1], first)
    keys(nest, at, memory, e, worth[:, 1 if d < e else 0], second)
    chain, places = work[2][0], work[2][1]
    for p in range(nest[2][d]):
        for r in range(nest[2][e]):
            if p - b >= 0 and r + a < nest[2][e]:
                continue
            # The touches of one word, which lanes deliver in the order of their keys.
            size, q, t = 0, p, r
            while q < nest[2][d] and t >= 0:
                chain[size] = first[KEY, q] + second[KEY, t]
                inside = first[LANE_ROW, q] < lanes[d] and second[LANE_ROW, t] < lanes[e]
                places[size] = first[LANE_ROW, q] * lanes[e] + second[LANE_ROW, t] if inside else -1
                size, q, t = size + 1, q + b, t - a
            sort_both(chain, places, size)
            for i in range(since + 1, last + 1):
                for k in range(2):
                    for j in range(size):
                        leads = j == 0 or chain[j] // cuts[i, k] != chain[j - 1] // cuts[i, k]
                        if leads and places[j] >= 0:
                            out[2 * (last - i) + k, places[j]] += 1


@compiled
def own_values(nest, at, memory, row, inner, d, plain, lanes, out):
    """Write the words of a plain axis, or the pieces of a dimension that the tensor lacks, of each instance."""
    slots, end = memory[0], memory[1][0]
    for p in range(nest[2][d]):
        low, lane, counted = 0, 0, True
        for s in range(end if plain else row[2]):
            step, count = np.int64(nest[0][s, d, at]), count_of(nest, at, s, d)
            if count == 1:
                continue
            index = (p - low) // step
            low += index * step
            if slots[s, 1] == 1 and s < end:
                lane = lane * count + index
            if not plain and index > 0:
                does = role(nest, at, memory, row, inner, s, d)
                counted = counted and does not in (PICK, LONE)
        if lane < lanes[d] and counted and (plain or low == p):
            out[lane] += 1


@compiled
def instances(member, lanes, c):
    """Return how many instances the dimensions of a cluster tell apart."""
    size = 1
    for d in range(len(member)):
        size *= lanes[d] if member[d] == c else 1
    return size


@compiled
def tabulate(nest, at, memory, since, lanes, tables, work):
    """Write the factors of every entry to ``tables`` (cluster or rest, e, instances); ``rest`` comes last."""
    slots, head, entries, units, member, relevant = memory[0], memory[1], memory[2], memory[3], memory[6], memory[7]
    rest = len(tables) - 1
    for c in range(len(tables)):
        tables[c, :head[1], :instances(member, lanes, c)] = 1
    for e in range(head[1]):
        row = entries[e]
        inner = innermost_of(nest, at, slots, relevant[row[1]], row[4])
        for u in range(head[2]):
            unit = units[u]
            if unit[0] != row[1]:
                continue
            d = unit[2]
            if unit[1] != SLIDING and member[d] < 0:
                tables[rest, e, 0] *= pieces(nest, at, memory, row, inner, d, unit[1] == PLAIN, work)
                continue
            if row[0] >= LOWEST and unit[1] == SLIDING:
                if row[0] == LOWEST and row[6] == 0 and since >= 0:
                    rows = 2 * (head[4] - since)
                    one = lanes[d] * lanes[unit[4]]
                    work[1][:rows, :one] = 0
                    delivered(nest, at, memory, unit, since, lanes, work[1], work)
                    for k in range(rows):
                        spread_out(tables[member[d], e + k], work[1][k], unit, member, lanes)
                continue
            out = work[1][0]
            out[:lanes[d] * (lanes[unit[4]] if unit[1] == SLIDING else 1)] = 0
            if unit[1] == SLIDING:
                crossing(nest, at, memory, row, unit, inner, lanes, out, work)
            else:
                own_values(nest, at, memory, row, inner, d, unit[1] == PLAIN, lanes, out)
            spread_out(tables[member[d], e], out, unit, member, lanes)


@compiled
def spread_out(table, factors, unit, member, lanes):
    """Multiply the ``factors`` of a unit into the table of its cluster, whose instances count all its dimensions."""
    d, e = unit[2], unit[4] if unit[1] == SLIDING else -1
    for i in range(instances(member, lanes, member[d])):
        left, mine, other = i, 0, 0
        for k in range(len(member) - 1, -1, -1):
            if member[k] == member[d]:
                if k == d:
                    mine = left % lanes[k]
                if k == e:
                    other = left % lanes[k]
                left //= lanes[k]
        table[i] *= factors[mine * lanes[e] + other] if e >= 0 else factors[mine]


@compiled
def gather(memory, since, lanes, tables, index, words):
    """Write the words (tensor; reads, fills, updates, drains) of instance ``index`` of all."""
    head, entries, member = memory[1], memory[2], memory[6]
    rest = len(tables) - 1
    words[:head[5]] = 0
    for e in range(head[1]):
        kind, t = entries[e, 0], entries[e, 1]
        if kind >= LOWEST and (since < 0 or entries[e, 7] <= since):
            continue
        value, left = tables[rest, e, 0], index
        for c in range(rest):
            size = instances(member, lanes, c)
            value *= tables[c, e, left % size]
            left //= size
        if kind == FILL:
            words[t, 1] += value
        elif kind == READ:
            words[t, 0] += value
        elif kind == EVICT:
            words[t, 3] += value
            words[t, 0] -= value
        elif kind == UPDATE:
            words[t, 2] += value
            words[t, 0] += value
        elif kind == HELD:  # The home reads nothing of a word for its first update.
            words[t, 0] -= value
        else:
            words[t, 1] += value if kind == LOWEST else -value
            words[t, 0] += value if kind == LOWEST else -value


@compiled
def cycles_of(bits, rate):
    """Return whole cycles to move ``bits`` at a rate of (bits, cycles); none where it is unlimited, (0, 0)."""
    if rate[0] == 0:
        return 0
    whole, left = bits // rate[0], bits % rate[0]
    return whole * rate[1] + (left * rate[1] + rate[0] - 1) // rate[0]


@compiled
def busy(words, weights, rates, view):
    """Return bits through a port, or cycles blocked: what makes an instance the busiest in a view."""
    reads = fills = updates = drains = 0
    for t in range(len(weights)):
        reads += weights[t] * words[t, 0]
        fills += weights[t] * words[t, 1]
        updates += weights[t] * words[t, 2]
        drains += weights[t] * words[t, 3]
    if view == READ_PORT:
        return reads + drains
    if view == WRITE_PORT:
        return fills + updates
    if view == SHARED_PORT:
        return reads + drains + fills + updates
    return (max(cycles_of(drains, rates[0]), cycles_of(drains, rates[2]))
            + max(cycles_of(fills, rates[1]), cycles_of(fills, rates[2])))


@compiled
def count_instances(nest, at, memory, another, work):
    """Write the lanes outside a memory along each dimension of a sliding axis; return the instances that they make."""
    lanes, slots, head, member, most = work[6], memory[0], memory[1], memory[6], work[7].shape[2]
    for d in range(len(member)):
        lanes[d] = 1
        for s in range(head[0]):
            if another and member[d] >= 0 and slots[s, 1] == 1:
                lanes[d] *= count_of(nest, at, s, d)
    total = 1
    # More instances than the tables have room for: the first one alone is counted.
    for c in range(len(work[7])):
        if instances(member, lanes, c) > most:
            lanes[:] = 1
            return 1
        total *= instances(member, lanes, c)
    return total


@compiled
def walk(nest, at, memory, rates, every, work, out):
    """Write the words (view, tensor, kind) of the busiest instances of a memory to ``out``; return whether it did.

    Does nothing, unless for ``every``, where the first instance is the busiest for sure.
    """
    lanes, head, since = work[6], memory[1], followed_from(nest, at, memory)
    another = another_may_be(nest, at, memory, since)
    if not another and not every:
        return False
    total = count_instances(nest, at, memory, another, work)
    tables, words, weights = work[7], work[8], memory[8][:head[5]]
    tabulate(nest, at, memory, since, lanes, tables, work)
    for index in range(total):
        gather(memory, since, lanes, tables, index, words)
        for view in range(4):
            found = busy(words, weights, rates, view)
            if index == 0 or found > work[9][view]:
                work[9][view] = found
                for t in range(head[5]):
                    for kind in range(4):
                        out[view, t, kind] = words[t, kind]
    return True


@compiled
def memory_at(tables, m):
    """Return one memory's rows of the tables."""
    return (tables[0][m], tables[1][m], tables[2][m], tables[3][m], tables[4], tables[5][m], tables[6], tables[7],
            tables[8][m])


@compiled
def first_is_busiest(nest, at, tables):
    """Whether the first instance is the busiest of every memory."""
    for m in range(len(tables[1])):
        memory = memory_at(tables, m)
        if another_may_be(nest, at, memory, followed_from(nest, at, memory)):
            return False
    return True


@compiled
def slowest_port(memory, own, words, slowest):
    """Return the cycles of the busiest port of a memory, or ``slowest`` if that is more."""
    weights = memory[8][:memory[1][5]]
    for port in range(3):
        slowest = max(slowest, cycles_of(busy(words[port], weights, own, port), own[port]))
    return slowest


@compiled
def tell(words, tensors, told, at):
    """Write the words (view, tensor, kind) of so many tensors to ``told`` (view, tensor, kind, b)."""
    for view in range(len(words)):
        for t in range(tensors):
            for kind in range(4):
                told[view, t, kind, at] = words[view, t, kind]


@entry
@_named
def settle(steps: Compiled, ranks: Compiled, span: Compiled, sizes: Compiled, tables: Compiled, rates: Compiled,
           leakage: Compiled, work: Compiled, out: Compiled, told: Compiled) -> Compiled:
    """Put cycles right in ``out`` (rows of `model`, b) of mappings whose busiest instances are not the first ones.

    The last two rows are the steps with all that blocks them at other memories, and the cycles of the other ports.
    Where ``out`` has no rows, write the words of the busiest instances to ``told`` (m, view, tensor, kind, b) instead,
    where they are not the first: one function for both, as what they share takes long to compile.
    """
    nest = steps, ranks, sizes
    words, every = work[10], len(out) > 0
    for i in range(span[0], span[1]):
        if first_is_busiest(nest, i, tables):
            continue
        column = i if rates.shape[3] > 1 else 0
        blocked, slowest = np.int64(0), np.int64(0)
        for m in range(len(tables[1])):
            memory, own = memory_at(tables, m), rates[m, :, :, column]
            if walk(nest, i, memory, own, every, work, words):
                if every:
                    slowest = slowest_port(memory, own, words, slowest)
                    blocked += work[9][BLOCKING] if memory[1][6] > 0 else 0
                else:
                    tell(words, memory[1][5], told[m], i - span[0])
        if every:
            steady = max(slowest, np.int64(out[8, i]), blocked + np.int64(out[7, i]))
            later = steady - out[4, i]
            out[4, i] = steady
            out[0, i] += later
            out[1, i] += later * leakage[i if len(leakage) > 1 else 0]

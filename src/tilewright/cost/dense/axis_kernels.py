"""Walk the axes of a tensor value by value, compiled: the words of each instance of a memory along each of them.

A plain axis has one dimension; a sliding one has two, along which lanes and tiles overlap. The factors of instances are
made here, axis by axis; `busiest_kernels` multiplies them (`walk_records.WalkEntry`).
"""

# ruff: noqa: PLR0913, PLR0917  (one mapping of a batch and one entry of a memory are told apart by many)
# mypy: disable-error-code="assignment"


from tilewright.cost.dense.walk_records import FILL, LANES, LEVEL, MERGES, NO_LANES, OUTER_LANES, READ
from tilewright.mapping.spaces.kernels import compiled

# What a loop does: all pieces, only the first, one of each instance, or of the first instance only.
SPLIT, PICK, LANE, LONE = range(4)
# Rows of the values of a dimension.
LANE_ROW, LOW, HIGH, GROUP_LOW, GROUP_HIGH, BEFORE_LOW, BEFORE_HIGH, KEY = range(8)


@compiled
def place_of(nest, s, d):
    """Return the place of a temporal loop in the nest."""
    return s * nest.steps.shape[1] + nest.ranks[s, d]


@compiled
def innermost_of(nest, slots, relevant, end):
    """Return the place of the innermost advancing loop outside slot ``end``; -1 if none advances."""
    for s in range(end - 1, -1, -1):
        if slots[s, LANES] == NO_LANES:
            last = -1
            for d in range(len(relevant)):
                if relevant[d] > 0 and nest.counts[s, d] > 1:
                    last = max(last, place_of(nest, s, d))
            if last >= 0:
                return last
    return -1


@compiled
def role(nest, memory, entry, inner, s, d):
    """Return what the loop of slot ``s`` over ``d``, which the tensor lacks, does to an entry."""
    slots, end = memory.slots, memory.head.end
    if slots[s, LANES] == NO_LANES:
        advances = s < entry.advancing and (entry.computes > 0 or place_of(nest, s, d) <= inner)
        return SPLIT if advances else PICK
    if s < end and slots[s, LANES] == OUTER_LANES:
        return LONE if s >= entry.alone else LANE
    if s < end and entry.kind == FILL:
        return PICK
    return PICK if slots[s, MERGES + entry.tensor] > 0 else SPLIT


@compiled
def pieces(nest, memory, entry, inner, d, plain, work):
    """Return the pieces that the first instance has of a dimension, or, of a plain axis, their extents together."""
    slots, end = memory.slots, memory.head.end
    extents, counts = work.pieces[0], work.pieces[1]
    extents[0], counts[0], size = nest.sizes[d], 1, 1
    for s in range(end if plain else entry.child):
        step = nest.steps[s, d]
        if step >= nest.outside[s, d]:
            continue
        does = SPLIT if slots[s, LANES] == NO_LANES else PICK
        if not plain:
            does = role(nest, memory, entry, inner, s, d)
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
def shared_from(nest, memory, entry, d):
    """Return the slot from which on, down to the child, all loops over a sliding dimension are merged lanes."""
    slots, run = memory.slots, entry.child
    for s in range(entry.child - 1, memory.head.end - 1, -1):
        if nest.counts[s, d] > 1:
            if slots[s, LANES] == NO_LANES or slots[s, MERGES + entry.tensor] == 0:
                break
            run = s
    return run


@compiled
def axis_values(nest, memory, entry, halo, d, values):
    """Write, for each value of a dimension of a sliding axis, its instance and the tiles that it lies in.

    ``values`` (8, n): the instance outside, the tile of the child, the box of the instances that share with it, and the
    tile before, which is empty where nothing carries over; ``halo`` is the slot that moves the tile, -1 if none does.
    """
    slots, end, child, size = memory.slots, memory.head.end, entry.child, nest.sizes[d]
    run = shared_from(nest, memory, entry, d)
    for p in range(size):
        low, high, before, until, lane, near, far = 0, size, 0, 0, 0, 0, size
        for s in range(child):
            step, count = nest.steps[s, d], nest.counts[s, d]
            if count == 1:
                continue
            index = (p - low) // step
            # The visit before stands one tile back in the loop that moves, and in the same place of all inside it.
            if s == halo and index > 0:
                before, until = low + (index - 1) * step, low + index * step
            elif until > 0:
                before += index * step
                until = min(before + step, until)
            if slots[s, LANES] == OUTER_LANES and s < end:
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
def moved_by(nest, slots, end, inner, d):
    """Return the slot whose loop over ``d`` stands at the place ``inner``, -1 if none does."""
    for s in range(end):
        if slots[s, LANES] == NO_LANES and nest.counts[s, d] > 1 and place_of(nest, s, d) == inner:
            return s
    return -1


@compiled
def crossing(nest, memory, entry, unit, inner, lanes, out, work):
    """Write the words along a sliding axis that each instance exchanges, over all visits, to ``out`` (instances)."""
    dims, factors = (unit.first, unit.second), (unit.stride, unit.dilation)
    moving, halo = 0, -1
    if entry.kind <= READ and entry.computes == 0 and inner >= 0:
        moving = 1 if moved_by(nest, memory.slots, entry.child, inner, dims[1]) >= 0 else 0
        halo = moved_by(nest, memory.slots, entry.child, inner, dims[moving])
    first, second = work.values[0], work.values[1]
    d, e, a, b = dims[moving], dims[1 - moving], factors[moving], factors[1 - moving]
    axis_values(nest, memory, entry, halo, d, first)
    axis_values(nest, memory, entry, -1, e, second)
    for p in range(nest.sizes[d]):
        for r in range(nest.sizes[e]):
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
def order_loops(nest, memory, unit, cuts, worth):
    """Order the loops of a sliding axis of the output as sums are delivered: keeper by keeper, time, then lanes.

    Lanes go by level and, at each, by dimension. Writes what one iteration of each loop is worth in a number that
    counts in that order, and, to ``cuts`` (keepers, 2), what lies inside the lanes, and the loops, before each keeper.
    """
    slots, ends, last = memory.slots, memory.ends, memory.head.last
    pair = (min(unit.first, unit.second), max(unit.first, unit.second))
    total = 1
    for i in range(last, -1, -1):
        begin = ends[i - 1] if i > 0 else 0
        level = -1
        for s in range(ends[i] - 1, begin - 1, -1):
            if slots[s, LANES] != NO_LANES and slots[s, LEVEL] != level:
                level = slots[s, LEVEL]
                for k in range(1, -1, -1):
                    for t in range(s, begin - 1, -1):
                        if slots[t, LEVEL] == level:
                            worth[t, k] = total
                            total *= nest.counts[t, pair[k]]
        cuts[i, 0] = total
        for s in range(ends[i] - 1, begin - 1, -1):
            if slots[s, LANES] == NO_LANES:
                later = 1 if nest.ranks[s, pair[1]] > nest.ranks[s, pair[0]] else 0
                for k in (later, 1 - later):
                    worth[s, k] = total
                    total *= nest.counts[s, pair[k]]
        cuts[i, 1] = total


@compiled
def keys(nest, memory, d, worth, values):
    """Write for each value of a dimension its instance, and its place in the order of `order_loops`."""
    slots, end = memory.slots, memory.head.end
    for p in range(nest.sizes[d]):
        low, lane, key = 0, 0, 0
        for s in range(end):
            step, count = nest.steps[s, d], nest.counts[s, d]
            if count > 1:
                index = (p - low) // step
                low += index * step
                key += index * worth[s]
                if slots[s, LANES] != NO_LANES:
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
def delivered(nest, memory, unit, since, lanes, out, work):
    """Write how often each instance is the lowest, and the first, to touch a word of the output, to ``out`` (e, i).

    Rows go from the memory outward, two for each keeper on the way: how often it is the lowest of the lanes in the
    keeper's visit (and the lowest and first inside it), and how often the first of all in that visit of the next one.
    """
    last, cuts, worth = memory.head.last, work.cuts, work.worth
    order_loops(nest, memory, unit, cuts, worth)
    d, e, a, b = unit.first, unit.second, unit.stride, unit.dilation
    first, second = work.values[0], work.values[1]
    keys(nest, memory, d, worth[:, 0 if d < e else 1], first)
    keys(nest, memory, e, worth[:, 1 if d < e else 0], second)
    chain, places = work.touches[0], work.touches[1]
    for p in range(nest.sizes[d]):
        for r in range(nest.sizes[e]):
            if p - b >= 0 and r + a < nest.sizes[e]:
                continue
            # The touches of one word, which lanes deliver in the order of their keys.
            size, q, t = 0, p, r
            while q < nest.sizes[d] and t >= 0:
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
def own_values(nest, memory, entry, inner, d, plain, lanes, out):
    """Write the words of a plain axis, or the pieces of a dimension that the tensor lacks, of each instance."""
    slots, end = memory.slots, memory.head.end
    for p in range(nest.sizes[d]):
        low, lane, counted = 0, 0, True
        for s in range(end if plain else entry.child):
            step, count = nest.steps[s, d], nest.counts[s, d]
            if count == 1:
                continue
            index = (p - low) // step
            low += index * step
            if slots[s, LANES] == OUTER_LANES and s < end:
                lane = lane * count + index
            if not plain and index > 0:
                does = role(nest, memory, entry, inner, s, d)
                counted = counted and does not in (PICK, LONE)
        if lane < lanes[d] and counted and (plain or low == p):
            out[lane] += 1

"""Compiled operators of Gamma on whole populations (the genome and what each stands for: `gamma`)."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.drawing.sampling import draw_mapping, shuffle_order
from tilewright.mapping.spaces.kernels import (
    EXTENTS,
    FOUR,
    LANES,
    LEFT,
    NONE,
    ONE,
    RANKS,
    ROWS,
    THREE,
    TRIES,
    TWO,
    ZERO,
    Compiled,
    below,
    capacities_fit_between,
    ceil_div,
    chance,
    compiled,
    dims_of,
    entry,
    is_spatial,
    lanes,
    lanes_at,
    load,
    log_between,
    may_loop,
    perfect,
    remember,
    room,
    signature,
    slots_of,
    store,
)
from tilewright.mapping.spaces.repair.mappings import fit, holder, move_out, near_divisor, nearest_count, repair
from tilewright.mapping.spaces.rules import arrays as table

# Entries of the rates; the first are operators.
CROSSOVER, TILE, PARALLEL, REORDER, GROWTH, AGING, MOVE, FILL, NUDGE, EXPAND, REBUILD = range(11)
OPERATORS = 11
SINGLE, CHAIN, NEWCOMER, REPAIR, DISTINCT = range(11, 16)
RETRIES = 4


@compiled
def random_loop(sp: Compiled, e: Compiled, rng: Compiled, s: Compiled) -> Compiled:
    """Return a random dimension that loops at slot ``s``, or -1."""
    seen, found = 0, NONE
    for d in range(dims_of(sp)):
        if e[s + 1, d] < e[s, d]:
            # Each of those seen stays with the same chance, without a list of them (reservoir sampling).
            seen += 1
            if seen == 1 or below(rng, seen) == 0:
                found = d
    return found


@compiled
def random_slot(sp: Compiled, rng: Compiled, kind: Compiled) -> Compiled:
    """Return a random slot of the kind, or -1."""
    for _ in range(TRIES):
        s = below(rng, slots_of(sp))
        if sp[table.SLOT + s, table.KIND] == kind:
            return s
    return NONE


@compiled
def random_place(sp: Compiled, rng: Compiled, d: Compiled, most: Compiled) -> Compiled:
    """Return a random slot of kinds up to ``most`` where dimension ``d`` may loop, or -1."""
    for _ in range(TRIES):
        s = below(rng, slots_of(sp))
        if may_loop(sp, s, d) and sp[table.SLOT + s, table.KIND] <= most:
            return s
    return NONE


@compiled
def move(e: Compiled, d: Compiled, source: Compiled, target: Compiled, factor: Compiled) -> Compiled:
    """Move ``factor`` of dimension ``d`` from slot ``source`` to slot ``target``, outward or inward."""
    if target < source:
        move_out(e, d, target, source, factor)
        return
    whole = e[source, d]
    for s in range(source, target):
        e[s + 1, d] = min(e[s + 1, d] * factor, whole)


@compiled
def part_of(sp: Compiled, rng: Compiled, d: Compiled, count: Compiled, top: Compiled) -> Compiled:
    """Return a random factor of ``count``, above 1 and at most ``top``; 1 if there is none."""
    top = min(top, count)
    if top < 2:
        return 1
    if not perfect(sp):
        style = below(rng, THREE)
        if style == 0:
            return top
        return min(top, 2) if style == 1 else log_between(rng, TWO, top)
    seen, found = 0, 1
    for i in range(2, sp[table.DIVISORS + d, 0] + 1):
        f = sp[table.DIVISORS + d, i]
        if f > top:
            break
        if count % f == 0:
            seen += 1
            if seen == 1 or below(rng, seen) == 0:
                found = f
    return found


@compiled
def mutate_tile(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Give one dimension a new random step at one slot; steps inside and outside give way."""
    d = below(rng, dims_of(sp))
    slots = slots_of(sp)
    s = below(rng, max(1, slots - 1))
    style = below(rng, FOUR)
    whole = e[s, d] if style > 0 else sp[table.SIZES, d]
    if perfect(sp):
        step = near_divisor(sp, d, whole, log_between(rng, ONE, whole), whole)
    # Ragged loops may be best, but those that end evenly are so more often: any step, whole tiles of the loop
    # inside, or equal parts of the extent outside.
    elif style == 1:
        step = log_between(rng, ONE, whole)
    elif style == 2:
        inside = e[min(s + 2, slots), d]
        step = min(inside * log_between(rng, ONE, ceil_div(whole, inside)), whole)
    else:
        step = ceil_div(whole, log_between(rng, ONE, whole))
    for other in range(1, slots + 1):
        present = e[other, d]
        e[other, d] = max(present, step) if other <= s else min(present, step)
    e[s + 1, d] = step


@compiled
def nudge(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Change one step a little: by one, or to one that spreads its loop's iterations evenly."""
    d = below(rng, dims_of(sp))
    s = holder(sp, e, rng, ZERO, d)
    if perfect(sp) or s < 0:
        mutate_tile(sp, e, rng)
        return
    step = e[s + 1, d]
    style = below(rng, FOUR)
    if style == 0:
        step += 1
    elif style == 1:
        step -= 1
    elif style == 2:
        step = ceil_div(e[s, d], ceil_div(e[s, d], step))
    else:
        inside = e[min(s + 2, slots_of(sp)), d]
        step = ceil_div(step, inside) * inside
    e[s + 1, d] = min(max(step, e[min(s + 2, slots_of(sp)), d]), e[s, d])


@compiled
def mutate_move(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Move a random factor of one dimension from one slot to another."""
    d = below(rng, dims_of(sp))
    source = holder(sp, e, rng, below(rng, TWO) * below(rng, slots_of(sp)), d)
    target = random_place(sp, rng, d, table.SPATIAL)
    if source < 0 or source == target or target < 0:
        return
    factor = part_of(sp, rng, d, ceil_div(e[source, d], e[source + 1, d]), sp[table.SIZES, d])
    if factor > 1:
        move(e, d, source, target, factor)


@compiled
def spread(sp: Compiled, e: Compiled, rng: Compiled, s: Compiled, used: Compiled) -> Compiled:
    """Spread a random dimension along side ``s`` as far as there is room, or a random part of that."""
    dims = dims_of(sp)
    lanes(sp, e, used, dims - 1)
    space = room(sp, used, s)
    d = below(rng, dims)
    for _ in range(dims):
        if may_loop(sp, s, d) and e[s + 1, d] == e[s, d]:
            break
        d = d + 1 if d + 1 < dims else 0
    source = holder(sp, e, rng, ZERO, d)
    if space < 2 or not may_loop(sp, s, d) or source < 0 or is_spatial(sp, source):
        return
    count = ceil_div(e[source, d], e[source + 1, d])
    # Idle lanes cost latency: mostly all that there is room for, now and then fewer.
    if below(rng, FOUR) > 0:
        factor = nearest_count(sp, d, count, min(space, count), space)
    else:
        factor = part_of(sp, rng, d, count, space)
    if factor > 1:
        move(e, d, source, s, factor)


@compiled
def gather(sp: Compiled, e: Compiled, rng: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Take dimension ``d`` off side ``s``: its lanes become iterations at a random memory."""
    target = random_place(sp, rng, d, table.TEMPORAL)
    if target >= 0:
        move(e, d, s, target, ceil_div(e[s, d], e[s + 1, d]))


@compiled
def mutate_parallel(sp: Compiled, e: Compiled, rng: Compiled, used: Compiled) -> Compiled:
    """Spread another dimension along one side instead of one that is spread there."""
    s = random_slot(sp, rng, table.SPATIAL)
    if s < 0:
        return
    d = random_loop(sp, e, rng, s)
    if d >= 0:
        gather(sp, e, rng, s, d)
    spread(sp, e, rng, s, used)


@compiled
def grow(sp: Compiled, e: Compiled, rng: Compiled, used: Compiled) -> Compiled:
    """Add a level of parallelism: spread a random dimension along a side that has none."""
    lanes(sp, e, used, dims_of(sp) - 1)
    seen, chosen = 0, NONE
    for s in range(slots_of(sp)):
        if is_spatial(sp, s) and used[s] == 1:
            seen += 1
            if below(rng, seen) == 0:
                chosen = s
    if chosen >= 0:
        spread(sp, e, rng, chosen, used)


@compiled
def age(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Remove a level of parallelism: nothing is spread along one side any more."""
    s = random_slot(sp, rng, table.SPATIAL)
    if s < 0:
        return
    for d in range(dims_of(sp)):
        if e[s + 1, d] < e[s, d]:
            gather(sp, e, rng, s, d)


@compiled
def largest_part(sp: Compiled, e: Compiled, d: Compiled, source: Compiled, target: Compiled,
                 kept: Compiled) -> Compiled:
    """Return the largest factor of dimension ``d`` that fits when moved from ``source`` to ``target``, any number.

    Tiles grow with the factor, so it is found by halving. ``kept`` has the steps before, which stay.
    """
    low, high = 1, ceil_div(e[source, d], e[source + 1, d])
    while low < high:
        factor = (low + high + 1) // 2
        move(e, d, source, target, factor)
        if capacities_fit_between(sp, e, source + 1, target):
            low = factor
        else:
            high = factor - 1
        for s in range(source, target):
            e[s + 1, d] = kept[s]
    return low


@compiled
def expand(sp: Compiled, e: Compiled, rng: Compiled, d: Compiled, kept: Compiled) -> Compiled:
    """Move as much of dimension ``d`` from an outer memory to an inner one as fits there and between.

    ``kept`` is a row to keep the present steps in.
    """
    source, target = random_place(sp, rng, d, table.TEMPORAL), random_place(sp, rng, d, table.TEMPORAL)
    if target < source:
        source, target = target, source
    if source < 0 or source == target:
        return
    count = ceil_div(e[source, d], e[source + 1, d])
    for s in range(source, target):
        kept[s] = e[s + 1, d]
    if not perfect(sp):
        move(e, d, source, target, largest_part(sp, e, d, source, target, kept))
        return
    factor = count
    # Divisors have no middle to halve at: they are tried from the largest down.
    while factor > 1:
        move(e, d, source, target, factor)
        if capacities_fit_between(sp, e, source + 1, target):
            return
        for s in range(source, target):
            e[s + 1, d] = kept[s]
        factor = near_divisor(sp, d, count, factor - 1, factor - 1)


@compiled
def clear(sp: Compiled, e: Compiled, d: Compiled) -> Compiled:
    """Take dimension ``d`` off all slots but its anchor."""
    for s in range(slots_of(sp)):
        e[s + 1, d] = sp[table.SIZES, d] if s < sp[table.ANCHOR, d] else 1


@compiled
def place(sp: Compiled, e: Compiled, rng: Compiled, d: Compiled, used: Compiled, kept: Compiled) -> Compiled:
    """Give dimension ``d``, of which all is at its anchor, new places: random sides first, then inner memories."""
    slots, anchor = slots_of(sp), sp[table.ANCHOR, d]
    first = below(rng, slots)
    for i in range(slots):
        s = first + i if first + i < slots else first + i - slots
        if s > anchor and is_spatial(sp, s) and may_loop(sp, s, d) and below(rng, THREE) > 0:
            used[s] = lanes_at(sp, e, s, dims_of(sp) - 1)
            partner = sp[table.SLOT + s, table.PARTNER]
            if partner >= 0:
                used[partner] = lanes_at(sp, e, partner, dims_of(sp) - 1)
            space = room(sp, used, s)
            left = ceil_div(e[anchor, d], e[anchor + 1, d])
            if below(rng, TWO) == 0:
                space = min(space, log_between(rng, ONE, left))
            count = nearest_count(sp, d, left, min(space, left), space)
            if count > 1:
                move(e, d, anchor, s, count)
    expand(sp, e, rng, d, kept)
    expand(sp, e, rng, d, kept)


@compiled
def rebuild(sp: Compiled, e: Compiled, rng: Compiled, used: Compiled, kept: Compiled) -> Compiled:
    """Take one or two dimensions off all slots but their anchors, and give them new places."""
    dims = dims_of(sp)
    d = below(rng, dims)
    other = d
    clear(sp, e, d)
    if below(rng, TWO) == 0:
        other = below(rng, dims)
        clear(sp, e, other)
    if other != d:
        place(sp, e, rng, other, used, kept)
    place(sp, e, rng, d, used, kept)


@compiled
def reorder(sp: Compiled, e: Compiled, r: Compiled, rng: Compiled) -> Compiled:
    """Swap two loops of one memory, or choose another of its allowed orders."""
    s = random_slot(sp, rng, table.TEMPORAL)
    if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
        shuffle_order(sp, r, rng, s)
        return
    a, b = random_loop(sp, e, rng, s), random_loop(sp, e, rng, s)
    if a < 0 or a == b:
        a, b = below(rng, dims_of(sp)), below(rng, dims_of(sp))
    rank = r[s, a]
    r[s, a] = r[s, b]
    r[s, b] = rank


@compiled
def cross(sp: Compiled, rng: Compiled, e: Compiled, r: Compiled, steps: Compiled, ranks: Compiled,
          mate: Compiled) -> Compiled:
    """Take the steps of random dimensions, or the loop order of a random memory, from parent number ``mate``."""
    dims = dims_of(sp)
    if below(rng, FOUR) == 0:
        s = random_slot(sp, rng, table.TEMPORAL)
        for d in range(dims):
            r[s, d] = ranks[s, sp[table.ACTIVE, d], mate]
        return
    share = chance(rng)
    for d in range(dims):
        if chance(rng) < share:
            for s in range(slots_of(sp)):
                e[s + 1, d] = steps[s, sp[table.ACTIVE, d], mate]


@compiled
def mutate_sides(sp: Compiled, e: Compiled, rng: Compiled, used: Compiled, which: Compiled) -> Compiled:
    """Apply operator number ``which``, one of those that change the sides of arrays."""
    if which == PARALLEL:
        mutate_parallel(sp, e, rng, used)
    elif which == GROWTH:
        grow(sp, e, rng, used)
    elif which == AGING:
        age(sp, e, rng)
    else:
        s = random_slot(sp, rng, table.SPATIAL)
        if s >= 0:
            spread(sp, e, rng, s, used)


@compiled
def mutate(sp: Compiled, rng: Compiled, work: Compiled, which: Compiled) -> Compiled:
    """Apply operator number ``which``; steps stay monotone, but may not divide or fit any more."""
    e, rows = work[EXTENTS], work[ROWS]
    if which == REORDER:
        reorder(sp, e, work[RANKS], rng)
    elif which == TILE:
        mutate_tile(sp, e, rng)
    elif which == MOVE:
        mutate_move(sp, e, rng)
    elif which == NUDGE:
        nudge(sp, e, rng)
    elif which == EXPAND:
        fit(sp, e, rng)
        expand(sp, e, rng, below(rng, dims_of(sp)), rows[LEFT])
    elif which == REBUILD:
        fit(sp, e, rng)
        rebuild(sp, e, rng, rows[LANES], rows[LEFT])
    else:
        mutate_sides(sp, e, rng, rows[LANES], which)


@compiled
def draw_operator(rates: Compiled, rng: Compiled) -> Compiled:
    """Return a random operator other than crossover, by the rates."""
    total = 0.0
    for which in range(CROSSOVER + 1, OPERATORS):
        total += rates[which]
    left = chance(rng) * total
    for which in range(CROSSOVER + 1, OPERATORS):
        left -= rates[which]
        if left < 0.0:
            return which
    return REORDER


@compiled
def vary(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled) -> Compiled:
    """Change the mapping in ``work``: by one operator (and perhaps more), or by each with its own rate."""
    if chance(rng) < rates[SINGLE]:
        which = draw_operator(rates, rng)
        while which >= 0:
            mutate(sp, rng, work, which)
            which = draw_operator(rates, rng) if chance(rng) < rates[CHAIN] else -1
        return
    for which in range(CROSSOVER + 1, OPERATORS):
        if chance(rng) < rates[which]:
            mutate(sp, rng, work, which)


@compiled
def by_rank(rng: Compiled, count: Compiled) -> Compiled:
    """Return a random place among ``count``, the lower the likelier."""
    # The square of a uniform number: the best quarter is drawn half of the time.
    share = chance(rng)
    return np.int64(count * share * share)


@compiled
def make_child(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, steps: Compiled, ranks: Compiled,
             places: Compiled, count: Compiled) -> Compiled:
    """Make one child of the first ``count`` of a population into ``work``, or draw a newcomer."""
    e = work[EXTENTS]
    if count == 0 or chance(rng) < rates[NEWCOMER]:
        draw_mapping(sp, rng, work, below(rng, TWO) == 0)
    else:
        load(sp, steps, ranks, places[by_rank(rng, count)], e, work[RANKS])
        if chance(rng) < rates[CROSSOVER]:
            cross(sp, rng, e, work[RANKS], steps, ranks, places[by_rank(rng, count)])
        vary(sp, rng, rates, work)
        repair(sp, e, work[ROWS, LANES], below(rng, dims_of(sp)))


@entry
def breed(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, seen: Compiled, steps: Compiled,
          ranks: Compiled, places: Compiled, parents: Compiled, children: Compiled, child_ranks: Compiled,
          span: Compiled) -> Compiled:
    """Write the children of a population to places ``span[0]`` to ``span[1]`` of two arrays ``(s, d, b)``.

    The population is ``steps`` and ``ranks`` ``(s, d, p)``, of which the best ``parents`` have children; where they
    stand, best first, says ``places`` (no parents: draw the first population). ``seen`` holds the signatures of
    mappings that were children before; a child that is known is changed once more.
    """
    e, r = work[EXTENTS], work[RANKS]
    for b in range(span[0], span[1]):
        make_child(sp, rng, rates, work, steps, ranks, places, parents)
        for attempt in range(RETRIES):
            fits = rates[REPAIR] == 0.0 or fit(sp, e, rng)
            if attempt == RETRIES - 1 or (fits and (rates[DISTINCT] == 0.0 or remember(seen, signature(sp, e, r)))):
                break
            if not fits:
                # What does not fit after repair is given up for another child; a known one is only changed further.
                make_child(sp, rng, rates, work, steps, ranks, places, parents)
                continue
            mutate(sp, rng, work, draw_operator(rates, rng))
            repair(sp, e, work[ROWS, LANES], below(rng, dims_of(sp)))
        store(sp, e, r, children, child_ranks, b)


@entry
def survive(steps: Compiled, ranks: Compiled, places: Compiled, kept: Compiled, have: Compiled, children: Compiled,
            child_ranks: Compiled, scores: Compiled, first: Compiled) -> Compiled:
    """Let children that are better than the worst of a population take its place; return how many live.

    ``places`` and ``kept`` ``(p)`` are where the population's mappings stand in ``steps`` and ``ranks``, and their
    scores, best first; the first ``have`` count. Children start at ``first``; none lives whose score is infinite. Of
    equals the older stays ahead.
    """
    size = kept.shape[0]
    for child in range(first, min(first + size, scores.shape[0])):
        score = scores[child]
        if score == np.inf or (have == size and not score < kept[size - 1]):
            continue
        if have < size:
            places[have] = have
            have += 1
        at, place = have - 1, places[have - 1]
        while at > 0 and score < kept[at - 1]:
            kept[at], places[at] = kept[at - 1], places[at - 1]
            at -= 1
        kept[at], places[at] = score, place
        for s in range(steps.shape[0]):
            for d in range(steps.shape[1]):
                steps[s, d, place], ranks[s, d, place] = children[s, d, child], child_ranks[s, d, child]
    return have

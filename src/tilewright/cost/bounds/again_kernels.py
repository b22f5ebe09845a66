"""The least of sums over kept sets, tiles and spreads of lanes, compiled: see `again`.

``t`` is a tensor, ``o`` one of its chains of memories, ``m`` a memory by its place, ``g`` a group of dimensions, whose
cells `groups` tells. A chain that is kept at home alone has the number of memories as its child.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.kernels import Compiled, compiled, entry


@compiled
def _fits(words: Compiled, i: Compiled, j: Compiled, k: Compiled, rules: Compiled, count: Compiled) -> Compiled:
    """Whether tiles of a cell keep to all rules (q, t + 1): weighted sums of their words, and what these may be."""
    tensors = words.shape[0]
    for q in range(count):
        taken = 0.0
        for t in range(tensors):
            if rules[q, t] != 0.0:
                taken += rules[q, t] * words[t, i, j, k]
        if taken > rules[q, tensors]:
            return False
    return True


@compiled
def _least_cell(words: Compiled, cost: Compiled, counted: Compiled, rules: Compiled, count: Compiled,
                cap: Compiled) -> Compiled:
    """Return the least sum of costs (g, cell) over the groups counted (g) among cells that keep to rules, up to a cap.

    Costs fall from cell to cell, words rise: of a group not counted the first cell is best.
    """
    low = cap
    tops = words.shape
    first = tops[1] - 1 if counted[0] else 0
    second = tops[2] - 1 if counted[1] else 0
    third = tops[3] - 1 if counted[2] else 0
    for i in range(first, -1, -1):
        one = cost[0, i] if counted[0] else 0.0
        # Cells further on cost more: nothing there is below the best.
        if one >= low:
            break
        best = -1
        for j in range(second, -1, -1):
            two = one + (cost[1, j] if counted[1] else 0.0)
            if two >= low:
                break
            # As the second tile grows less, the third may only grow: its place never goes back.
            while best < third and _fits(words, i, j, best + 1, rules, count):
                best += 1
            if best >= 0:
                low = min(low, two + (cost[2, best] if counted[2] else 0.0))
    return low


@compiled
def _kept_rules(m: Compiled, homes: Compiled, child: Compiled, chain: Compiled, bits: Compiled, limit: Compiled,
                rules: Compiled) -> Compiled:
    """Write the rules by which memory ``m`` has room for what comes to it first; return how many there are."""
    tensors, count = len(homes), 0
    for q in range(limit.shape[1]):
        some = False
        for t in range(tensors):
            kept = homes[t] < m and child[t, chain[t]] == m
            rules[count, t] = bits[m, q, t] if kept else 0.0
            some = some or rules[count, t] != 0.0
        if some and limit[m, q] < np.inf:
            rules[count, tensors] = limit[m, q]
            count += 1
    return count


@compiled
def _moving(m: Compiled, rests: Compiled, homes: Compiled, child: Compiled, chain: Compiled,
            memories: Compiled) -> Compiled:
    """Return as bits the tensors that come again with each loop if some rest, and those at rest only if held inside."""
    moving, deep = np.int64(0), np.int64(0)
    for t in range(len(homes)):
        at = child[t, chain[t]]
        if homes[t] < m and at >= m:
            if rests[t] == 0 or at == memories:
                moving |= np.int64(1) << t
            elif at > m:
                deep |= np.int64(1) << t
    return moving, deep


@compiled
def _at_stage(m: Compiled, words: Compiled, own: Compiled, kinds: Compiled, homes: Compiled, child: Compiled,
              chain: Compiled, bits: Compiled, limit: Compiled, cost: Compiled, rules: Compiled, counted: Compiled,
              seen: Compiled, worst: Compiled, cap: Compiled) -> Compiled:
    """Return the least cost of fetching again across memory ``m``, at most ``cap``; soon where not above ``worst``.

    Over all innermost loops outside. Of the tensors that such a loop leaves in place, those that come further in may
    rest if what holds them there has room for the tile; compute holds nothing.
    """
    tensors = len(homes)
    every, low = np.int64(1) << tensors, cap
    fixed = _kept_rules(m, homes, child, chain, bits, limit, rules)
    seen[:] = 0
    for kind in range(kinds.shape[0]):
        moving, deep = _moving(m, kinds[kind], homes, child, chain, limit.shape[0])
        for resting in range(every):
            again = moving | (deep & ~resting)
            # Many kinds of innermost loops leave the same tensors moving: each such case is looked at once.
            if resting & ~deep or seen[again * every + resting]:
                continue
            seen[again * every + resting] = 1
            count = fixed
            for t in range(tensors):
                if own[t] >= 0:
                    counted[own[t]] = (again >> t) & 1
                if (resting >> t) & 1:
                    count = _resting_rules(t, child[t, chain[t]], bits, limit, rules, count)
            low = min(low, _least_cell(words, cost, counted, rules, count, low))
            if low <= worst:
                return low
    return low


@compiled
def _resting_rules(t: Compiled, m: Compiled, bits: Compiled, limit: Compiled, rules: Compiled,
                   count: Compiled) -> Compiled:
    """Add the rules by which memory ``m`` has room for the tile of a tensor; return how many rules there are then."""
    tensors = bits.shape[2]
    for q in range(limit.shape[1]):
        if bits[m, q, t] != 0.0 and limit[m, q] < np.inf:
            for other in range(tensors):
                rules[count, other] = bits[m, q, t] if other == t else 0.0
            rules[count, tensors] = limit[m, q]
            count += 1
    return count


@compiled
def _asked_together(shared: Compiled, first: Compiled, last: Compiled, asked: Compiled, each: Compiled,
                    total: Compiled, macs: Compiled, chain: Compiled, sole: Compiled) -> Compiled:
    """Return the least cost of what compute asks for, over all ways to spread lanes; soon where not above ``sole``."""
    found = np.inf
    for way in range(first, last):
        cost = 0.0
        for t in range(len(total)):
            o = chain[t]
            if asked[t, o] != 0.0:
                cost += asked[t, o] * max(total[t], macs / min(shared[way, t], each[t, o]))
        found = min(found, cost)
        if found <= sole:
            break
    return found


@compiled
def _lowest(sums: Compiled) -> Compiled:
    """Return the place of the least sum."""
    at = 0
    for n in range(1, len(sums)):
        if sums[n] < sums[at]:
            at = n
    return at


@compiled
def _noted(each_sum: Compiled, n: Compiled, found: Compiled, sums: Compiled) -> Compiled:
    """Write what was found of a choice to ``each_sum``, if that has room; return the next choice to look at."""
    if len(each_sum):
        each_sum[n] = found
    return _lowest(sums)


@compiled
def _costs_into(cost: Compiled, pieces: Compiled, words: Compiled, own: Compiled, child: Compiled, chain: Compiled,
                memories: Compiled, price: Compiled, asked: Compiled, alone: Compiled, total: Compiled) -> Compiled:
    """Write to ``cost`` (g, c) what fetching each tensor again costs by the cells of its group, beyond all else.

    What passes all memories is at least what compute asks for if no other tensor counts, ``alone``.
    """
    for t in range(len(own)):
        g, o = own[t], chain[t]
        if g >= 0:
            for i in range(words.shape[1 + g]):
                if child[t, o] == memories:
                    cost[g, i] = max(0.0, asked[t, o] * total[t] * pieces[g, i] - alone[t, o])
                else:
                    cost[g, i] = price[t, o] * (pieces[g, i] - 1.0)


@compiled
def _alone_into(alone: Compiled, asked: Compiled, each: Compiled, shared: Compiled, first: Compiled, last: Compiled,
                total: Compiled, macs: Compiled) -> Compiled:
    """Write to ``alone`` (t, o) what the words that compute asks for cost, if no other tensor counts."""
    for t in range(alone.shape[0]):
        most = 1.0
        for way in range(first, last):
            most = max(most, shared[way, t])
        for o in range(alone.shape[1]):
            alone[t, o] = asked[t, o] * max(total[t], macs / min(most, each[t, o]))


@entry
def least_sums(cells: Compiled, chains: Compiled, rows: Compiled, rooms: Compiled, spreads: Compiled,
               macs: Compiled, work: Compiled, floors: Compiled, out: Compiled, each_sum: Compiled) -> Compiled:
    """Write the least sums (s, r) to ``out``; where nothing fits those of all words once.

    Sums of ``floors`` (s, r) and less are told as those, which is sooner done. Where ``each_sum`` (n) has room, those
    of every choice go there, of the last sum and row.

    ``cells`` = words (t, c, c, c), pieces (g, c), the group of each tensor or -1, which tensors rest by kinds of
    innermost loops (k, t), all words (t), places of memories that are looked at; ``chains`` = the homes (t), children
    (t, o), the chains of each choice (n, t); ``rows`` = fixed costs, those of fetching all again and of each word that
    compute asks for (s, r, t, o), and how many lanes may share one (r, t, o); ``rooms`` = bits of a word by memory and
    room (m, q, t), limits (r, m, q); ``spreads`` = lanes that share words (c, t), their first and last for each row;
    ``work`` = sums (n), costs (g, c), rules (., t + 1), groups counted (g), what was seen, and accesses (t, o).

    Choices are looked at by what they cost at least, until none can be below the best.
    """
    words, pieces, own, kinds, total, stages = cells
    homes, child, choices = chains
    fixed, price, asked, each = rows
    bits, limits = rooms
    shared, span = spreads
    sums, cost, rules, counted, seen, alone = work
    memories = limits.shape[1]
    for r in range(out.shape[1]):
        for s in range(out.shape[0]):
            _alone_into(alone, asked[s, r], each[r], shared, span[r, 0], span[r, 1], total, macs)
            for n in range(len(choices)):
                sums[n] = 0.0
                for t in range(len(total)):
                    sums[n] += fixed[s, r, t, choices[n, t]] + alone[t, choices[n, t]]
            n = _lowest(sums)
            best, least, floor = np.inf, sums[n], floors[s, r]
            cut = np.inf
            while sums[n] < cut and best > floor:
                before, chain = sums[n], choices[n]
                sums[n], asking, sole = np.inf, 0, 0.0
                for t in range(len(total)):
                    asking += asked[s, r, t, chain[t]] != 0.0 and each[r, t, chain[t]] > 1.0
                    sole += alone[t, chain[t]]
                worst = max(0.0, floor - before)
                if asking > 1:
                    worst = max(worst, _asked_together(shared, span[r, 0], span[r, 1], asked[s, r], each[r], total,
                                                       macs, chain, sole + worst) - sole)
                _costs_into(cost, pieces, words, own, child, chain, memories, price[s, r], asked[s, r], alone, total)
                for m in stages:
                    if before + worst < cut:
                        worst = max(worst, _at_stage(m, words, own, kinds, homes, child, chain, bits, limits[r], cost,
                                                     rules, counted, seen, worst, cut - before))
                best, n = min(best, before + worst), _noted(each_sum, n, before + worst, sums)
                cut = np.inf if len(each_sum) else best
            out[s, r] = best if best < np.inf else least

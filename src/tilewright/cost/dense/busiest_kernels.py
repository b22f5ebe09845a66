"""Find the busiest instance of a memory where it need not be the first, compiled.

The first instance of a memory is the busiest but for two cases: partial sums read back where lanes spread a sliding
axis of the output (they go to the lowest of the lanes that touch a word, so that one lane takes what another would),
and operands with holes carried over by lanes of unequal width (a narrow lane may hold less of its next tile than a wide
one). Only mappings of these kinds come here. `walks` writes down what the walk needs to know of a machine.

``nest`` is the mapping looked at (`walk_records.UnpackedNest`).
"""

# ruff: noqa: PLR0913, PLR0917  (as in `axis_kernels`)
# mypy: disable-error-code="assignment"

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.cost.dense import axis_kernels, walk_records
from tilewright.cost.dense.axis_kernels import (
    crossing,
    delivered,
    innermost_of,
    own_values,
    pieces,
)
from tilewright.cost.dense.walk_records import (
    BLOCKED,
    BLOCKING,
    DRAINS,
    ENERGY,
    EVICT,
    FILL,
    FILLS,
    HELD,
    LANES,
    LATENCY,
    LOWEST,
    MERGES,
    NO_LANES,
    OTHERS,
    OUTER_LANES,
    PLAIN,
    READ,
    READ_PORT,
    READS,
    SHARED_PORT,
    SLIDING,
    STEADY,
    UPDATE,
    UPDATES,
    WRITE_PORT,
    WalkedMemory,
    WalkEntry,
    WalkHead,
    WalkUnit,
)
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry

_named = stamped([Path(axis_kernels.__file__), Path(walk_records.__file__)])


@compiled
def entry_of(memory, e):
    """Return what is counted at a memory as its number ``e``."""
    row = memory.entries[e]
    return WalkEntry(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7])


@compiled
def unit_of(memory, u):
    """Return number ``u`` of the units of a memory."""
    row = memory.units[u]
    return WalkUnit(row[0], row[1], row[2], row[3], row[4], row[5])


@compiled
def memory_at(tables, m):
    """Return one memory's rows of the tables."""
    row = tables.heads[m]
    return WalkedMemory(tables.slots[m], WalkHead(row[0], row[1], row[2], row[3], row[4], row[5]), tables.entries[m],
                        tables.units[m], tables.kinds, tables.ends[m], tables.clusters, tables.relevant,
                        tables.bits[m])


@compiled
def combines(nest, memory, span):
    """Whether the parent adds up partial sums of instances between it and its child, which do not merge (rule 5).

    ``span``: slots between.
    """
    slots, output, kinds = memory.slots, memory.head.output, memory.kinds
    for d in range(len(kinds)):
        if kinds[d] == PLAIN:
            continue
        broken = False
        for s in range(span[1] - 1, span[0] - 1, -1):
            if nest.counts[s, d] > 1:
                merges = slots[s, LANES] != NO_LANES and slots[s, MERGES + output] > 0
                if slots[s, LANES] != NO_LANES and (not merges or (broken and kinds[d] == SLIDING)):
                    return True
                broken = broken or not merges
    return False


@compiled
def followed_from(nest, memory):
    """Return the keeper from which on partial sums are followed inward: the last whose sums all start from zero.

    It is the first keeper of all, 0, unless one combines what its child sends; -1 where this memory is given none.
    """
    last, ends = memory.head.last, memory.ends
    if memory.head.output < 0:
        return -1
    since = 0
    for i in range(1, last + 1):
        if combines(nest, memory, (ends[i - 1], ends[i])):
            since = i
    return since if since < last else -1


@compiled
def another_may_be(nest, memory, since):
    """Whether another instance than the first may be the busiest, ``since`` being `followed_from`."""
    slots, head = memory.slots, memory.head
    for u in range(head.units):
        unit = unit_of(memory, u)
        if unit.kind == SLIDING and (spread(nest, slots, unit.first, head.end)
                                     or spread(nest, slots, unit.second, head.end)):
            if unit.tensor == head.output:
                if since >= 0:
                    return True
            elif max(unit.stride, unit.dilation) > 1 and (ragged(nest, slots, unit.first)
                                                          or ragged(nest, slots, unit.second)):
                return True
    return False


@compiled
def ragged(nest, slots, d):
    """Whether a loop over ``d`` leaves a rest."""
    for s in range(len(slots)):
        if nest.outside[s, d] % nest.steps[s, d] > 0:
            return True
    return False


@compiled
def spread(nest, slots, d, end):
    """Whether lanes outside slot ``end`` spread dimension ``d``."""
    for s in range(end):
        if slots[s, LANES] != NO_LANES and nest.counts[s, d] > 1:
            return True
    return False


@compiled
def instances(member, lanes, c):
    """Return how many instances the dimensions of a cluster tell apart."""
    size = 1
    for d in range(len(member)):
        size *= lanes[d] if member[d] == c else 1
    return size


@compiled
def tabulate(nest, memory, since, lanes, tables, work):
    """Write the factors of every entry to ``tables`` (cluster or rest, e, instances); ``rest`` comes last."""
    head, member = memory.head, memory.clusters
    rest = len(tables) - 1
    for c in range(len(tables)):
        tables[c, :head.entries, :instances(member, lanes, c)] = 1
    for e in range(head.entries):
        entry = entry_of(memory, e)
        inner = innermost_of(nest, memory.slots, memory.relevant[entry.tensor], entry.advancing)
        for u in range(head.units):
            unit = unit_of(memory, u)
            if unit.tensor != entry.tensor:
                continue
            d, slides, plain = unit.first, unit.kind == SLIDING, unit.kind == PLAIN
            if not slides and member[d] < 0:
                tables[rest, e, 0] *= pieces(nest, memory, entry, inner, d, plain, work)
                continue
            told = lanes[d] * (lanes[unit.second] if slides else 1)
            if entry.kind >= LOWEST and slides:
                if entry.kind == LOWEST and entry.number == 0 and since >= 0:
                    rows = 2 * (head.last - since)
                    work.factors[:rows, :told] = 0
                    delivered(nest, memory, unit, since, lanes, work.factors, work)
                    for k in range(rows):
                        spread_out(tables[member[d], e + k], work.factors[k], unit, member, lanes)
                continue
            out = work.factors[0]
            out[:told] = 0
            if slides:
                crossing(nest, memory, entry, unit, inner, lanes, out, work)
            else:
                own_values(nest, memory, entry, inner, d, plain, lanes, out)
            spread_out(tables[member[d], e], out, unit, member, lanes)


@compiled
def spread_out(table, factors, unit, member, lanes):
    """Multiply the ``factors`` of a unit into the table of its cluster, whose instances count all its dimensions."""
    d, e = unit.first, unit.second
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
    """Write the words (tensor, kind) of instance ``index`` of all."""
    member, rest = memory.clusters, len(tables) - 1
    words[:] = 0
    for e in range(memory.head.entries):
        entry = entry_of(memory, e)
        kind, t = entry.kind, entry.tensor
        if kind >= LOWEST and (since < 0 or entry.keeper <= since):
            continue
        value, left = tables[rest, e, 0], index
        for c in range(rest):
            size = instances(member, lanes, c)
            value *= tables[c, e, left % size]
            left //= size
        if kind == FILL:
            words[t, FILLS] += value
        elif kind == READ:
            words[t, READS] += value
        elif kind == EVICT:
            words[t, DRAINS] += value
            words[t, READS] -= value
        elif kind == UPDATE:
            words[t, UPDATES] += value
            words[t, READS] += value
        elif kind == HELD:  # The home reads nothing of a word for its first update.
            words[t, READS] -= value
        else:
            words[t, FILLS] += value if kind == LOWEST else -value
            words[t, READS] += value if kind == LOWEST else -value


@compiled
def cycles_of(bits, rate):
    """Return whole cycles to move ``bits`` at a rate of (bits, cycles); none where it is unlimited, (0, 0)."""
    if rate[0] == 0:
        return 0
    whole, left = bits // rate[0], bits % rate[0]
    return whole * rate[1] + (left * rate[1] + rate[0] - 1) // rate[0]


@compiled
def busy(words, bits, rates, view):
    """Return bits through a port, or cycles blocked: what makes an instance the busiest in a view."""
    reads = fills = updates = drains = 0
    for t in range(len(bits)):
        reads += bits[t] * words[t, READS]
        fills += bits[t] * words[t, FILLS]
        updates += bits[t] * words[t, UPDATES]
        drains += bits[t] * words[t, DRAINS]
    if view == READ_PORT:
        return reads + drains
    if view == WRITE_PORT:
        return fills + updates
    if view == SHARED_PORT:
        return reads + drains + fills + updates
    return (max(cycles_of(drains, rates[READ_PORT]), cycles_of(drains, rates[SHARED_PORT]))
            + max(cycles_of(fills, rates[WRITE_PORT]), cycles_of(fills, rates[SHARED_PORT])))


@compiled
def count_instances(nest, memory, another, work):
    """Write the lanes outside a memory along each dimension of a sliding axis; return the instances that they make."""
    lanes, slots, member, most = work.lanes, memory.slots, memory.clusters, work.tables.shape[2]
    for d in range(len(member)):
        lanes[d] = 1
        for s in range(memory.head.end):
            if another and member[d] >= 0 and slots[s, LANES] == OUTER_LANES:
                lanes[d] *= nest.counts[s, d]
    total = 1
    # More instances than the tables have room for: the first one alone is counted.
    for c in range(len(work.tables)):
        if instances(member, lanes, c) > most:
            lanes[:] = 1
            return 1
        total *= instances(member, lanes, c)
    return total


@compiled
def walk(nest, memory, rates, every, work):
    """Write the words of the busiest instances of a memory to ``work``; return whether it did.

    Does nothing, unless for ``every``, where the first instance is the busiest for sure.
    """
    since = followed_from(nest, memory)
    another = another_may_be(nest, memory, since)
    if not another and not every:
        return False
    total = count_instances(nest, memory, another, work)
    tabulate(nest, memory, since, work.lanes, work.tables, work)
    for index in range(total):
        gather(memory, since, work.lanes, work.tables, index, work.words)
        for view in range(len(work.most)):
            found = busy(work.words, memory.bits, rates, view)
            if index == 0 or found > work.most[view]:
                work.most[view] = found
                for t in range(len(work.words)):
                    for kind in range(work.words.shape[1]):
                        work.busiest[view, t, kind] = work.words[t, kind]
    return True


@compiled
def first_is_busiest(nest, tables):
    """Whether the first instance is the busiest of every memory."""
    for m in range(len(tables.heads)):
        memory = memory_at(tables, m)
        if another_may_be(nest, memory, followed_from(nest, memory)):
            return False
    return True


@compiled
def slowest_port(memory, rates, words, slowest):
    """Return the cycles of the busiest port of a memory, or ``slowest`` if that is more."""
    for port in range(BLOCKING):
        slowest = max(slowest, cycles_of(busy(words[port], memory.bits, rates, port), rates[port]))
    return slowest


@compiled
def tell(words, told, at):
    """Write the words (view, tensor, kind) to ``told`` (view, tensor, kind, b)."""
    for view in range(words.shape[0]):
        for t in range(words.shape[1]):
            for kind in range(words.shape[2]):
                told[view, t, kind, at] = words[view, t, kind]


@compiled
def unpack(batch, at, which, wanted, nest):
    """Write the dimensions ``(d)`` of a mapping that are ``wanted`` to ``nest``: its loops are looked at often."""
    for d in range(len(nest.sizes)):
        if which[d] != wanted:
            continue
        outside = nest.sizes[d]
        for s in range(len(nest.steps)):
            step = np.int64(batch.steps[s, d, at])
            nest.steps[s, d], nest.ranks[s, d], nest.outside[s, d] = step, batch.ranks[s, d, at], outside
            nest.counts[s, d] = (outside + step - 1) // step
            outside = step


@entry
@_named
def settle(batch: Compiled, span: Compiled, tables: Compiled, rates: Compiled, leakage: Compiled, work: Compiled,
           out: Compiled, told: Compiled) -> Compiled:
    """Put cycles right in ``out`` (rows of programs, b) of mappings whose busiest instances are not the first ones.

    Where ``out`` has no rows, write the words of the busiest instances to ``told`` (m, view, tensor, kind, b) instead,
    where they are not the first: one function for both, as what they share takes long to compile.
    """
    every, nest = len(out) > 0, work.nest
    for i in range(span[0], span[1]):
        unpack(batch, i, tables.telling, 1, nest)
        if first_is_busiest(nest, tables):
            continue
        unpack(batch, i, tables.telling, 0, nest)
        column = i if rates.shape[3] > 1 else 0
        blocked, slowest = np.int64(0), np.int64(0)
        for m in range(len(tables.heads)):
            memory, own = memory_at(tables, m), rates[m, :, :, column]
            if walk(nest, memory, own, every, work):
                if every:
                    slowest = slowest_port(memory, own, work.busiest, slowest)
                    blocked += work.most[BLOCKING] if memory.head.single > 0 else 0
                else:
                    tell(work.busiest, told[m], i - span[0])
        if every:
            steady = max(slowest, np.int64(out[OTHERS, i]), blocked + np.int64(out[BLOCKED, i]))
            later = steady - out[STEADY, i]
            out[STEADY, i] = steady
            out[LATENCY, i] += later
            out[ENERGY, i] += later * leakage[i if len(leakage) > 1 else 0]

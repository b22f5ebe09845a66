"""The compiled engine: runs a program over blocks of mappings, each instruction one loop that LLVM vectorises.

What an instruction computes is said in `operations`; which instructions make the model, in `lowering`. The loops, and
the function that runs one instruction after the other, are written from the table of operations. The name of the
kernel is stamped with all that ends up inside it: so no cached kernel outlives a change.

``n`` is the narrow bank, ``v`` the wide one; ``one``, ``half`` and ``zero`` come in the type of the narrow bank, so
that single precision is never widened. For LLVM to vectorise, indices are unsigned.
"""

import re
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from tilewright.base import kept, part_options, stamped
from tilewright.cost.dense import operations, program
from tilewright.cost.dense.operations import OPERATIONS
from tilewright.cost.dense.program import LANES

_LANES = np.uint64(LANES)

# Without the interpreter lock, and without reference counts (so that nothing can be allocated).
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# Only `run` calls the others.
_PART: dict[str, Any] = _OPTIONS | part_options()
_inline = njit(fastmath={"contract", "nsz"}, forceinline=True, **_PART)
_scalar = njit(**_PART)


@_scalar
def _lane_at(position, extent, narrow, lists, offset, lanes, i):
    """Start and width of the finest lane of [0, extent) that holds ``position``."""
    start = 0
    for k in range(lanes):
        step = int(narrow[lists[offset + k], i])
        index = (position - start) // step
        start += index * step
        extent = min(step, extent - index * step)
    return start, extent


@_scalar
def _further_lanes(extent, lag, narrow, lists, offset, lanes, table, i):
    """Words past ``lag`` of all lanes that ``extent`` is split into, kept in ``table`` as extents and their counts."""
    extents, counts = table[0], table[1]
    extents[0], counts[0], size = extent, 1, 1
    for k in range(lanes):
        step = int(narrow[lists[offset + k], i])
        known = size
        whole = 0
        for e in range(known):
            whole += counts[e] * (extents[e] // step)
            extents[e] %= step
        extents[size], counts[size] = step, whole
        size += 1
    total = 0
    for e in range(size):
        total += counts[e] * max(0, extents[e] - lag)
    return total


@_scalar
def _carried_lane(window, narrow, lists, offset, lanes, stride, dilation, table, i):
    """Words carried over in one lane: `closed_form.carried`.

    ``lists`` from ``offset`` on: rows of the step, of whether to look, of the previous and the present extent; then the
    ``lanes[0]`` merged lanes that move and the ``lanes[1]`` others.
    """
    step = int(narrow[lists[offset], i])
    previous = int(narrow[lists[offset + 2], i])
    present = int(narrow[lists[offset + 3], i])
    mine = offset + 4
    others = mine + lanes[0]
    first = window
    for k in range(lanes[1]):
        first = min(first, int(narrow[lists[others + k], i]))
    total = 0
    for residue in range(min(dilation, present)):
        visits = -((residue - present) // dilation)
        start, width = _lane_at(residue, previous, narrow, lists, mine, lanes[0], i)
        end = start + width - 1
        last = end - (end - residue - step) % dilation
        if last < start:
            continue
        lag = (step + residue - last) // dilation
        corner = 0
        for index in range(1, min(visits, -(-first // stride))):
            position = residue + index * dilation
            start, width = _lane_at(position, previous, narrow, lists, mine, lanes[0], i)
            # The first window whose lane held no word of the class at all.
            if (position - start + step) % dilation >= width:
                corner = index
                break
        near = max(0, first - stride * lag)
        if corner > 0:
            total += near - max(0, first - stride * (lag + corner))
            continue
        further = stride * (lag + visits - 1)
        total += near - max(0, first - further)
        total += _further_lanes(window, further, narrow, lists, others, lanes[1], table, i)
    return total


@_scalar
def _carried(row, narrow, lists, table):
    """Correct the words carried over where dilation meets real merged lanes and the step is no multiple of it.

    Only there a later window can lie in a lane that held no word of its class. ``row`` of the program: words, offset
    and length of the list, both numbers of lanes, pairs of rows (extent, multiplicity) with the windows of the other
    side, which follow the lanes in ``lists``, stride and dilation.
    """
    words, offset, lanes, windows = row[1], int(row[2]), (int(row[4]), int(row[5])), int(row[6])
    stride, dilation = int(row[7]), int(row[8])
    # Too many branches to vectorise, and few mappings get past the test.
    for i in range(LANES):
        step = int(narrow[lists[offset], i])
        finest = int(narrow[lists[offset + 3 + lanes[0]], i])
        if narrow[lists[offset + 1], i] > 0 and narrow[lists[offset + 3], i] > 0 and step % dilation and finest < step:
            total = 0
            first = offset + 4 + lanes[0] + lanes[1]
            for k in range(windows):
                window = int(narrow[lists[first + 2 * k], i])
                found = _carried_lane(window, narrow, lists, offset, lanes, stride, dilation, table, i)
                total += int(narrow[lists[first + 2 * k + 1], i]) * found
            narrow[words, i] = total


_PLACES = {"n": "n[o{}, i]", "w": "v[o{}, i]", "c": "numbers[o{}]", "C": "constants[o{}]", "s": "n[o0, i]",
           "r": "n[o0, i]"}
_GIVEN = "lists", "constants", "numbers", "n", "v", "steps", "ranks", "first", "zero", "half", "one", "far", "table"


def _made(source, **names):
    """Return the function ``made`` that a source defines, as if it stood here."""
    exec(compile(source, __file__, "exec"), names | {"__name__": __name__, "_LANES": _LANES}, names)
    return names["made"]


def _parameters(function, skipped=0):
    return list(signature(function).parameters)[skipped:]


def _sum_lane(operation):
    """Return what an operation of a `Sum` does to the numbers of one mapping."""
    what = operation.sum
    further = operation is what.further
    names = [f"{name}{k}" for k in range(operation.pairs) for name in "ax"]
    names = ["total", *names, *(what.ahead[at] for at in what.shared)] if further else [*what.ahead, *names]
    known, others = _parameters(what.first or (lambda: 0)), _parameters(what.term, 2)
    shared = [name for name in ("zero", "half", "one", "far") if name in known + others]
    terms = [f"term(a{k}, x{k}, {', '.join(others)})" for k in range(operation.pairs)]
    lines = [f"t{k}{f', r{k}' * what.rests} = {term}" for k, term in enumerate(terms)]
    start = ["total"] if further else [f"first({', '.join(known)})"] if what.first else []
    total = " + ".join([*start, *(f"t{k}" for k in range(operation.pairs))])
    returned = ", ".join([total, *(f"r{k}" for k in range(operation.pairs * what.rests))])
    source = [f"def made({', '.join(names + shared)}):", *lines, f"return {returned}"]
    return _made("\n    ".join(source), term=_inline(what.term), first=_inline(what.first or (lambda: 0)))


def _loop(operation):
    """Return the source of the call of, and the compiled, loop of an operation over the mappings of a block.

    Steps and ranks are put into the first row written, in the type of the bank, before it is computed.
    """
    letters = operation.signature
    lane = _sum_lane(operation) if operation.sum else operation.lane
    lines = [f"o{at} = code[at, {at + 1}]" for at in range(len(letters))]
    for at, letter in enumerate(letters):
        if letter in "sr":
            lines += [f"given = {'steps' if letter == 's' else 'ranks'}[o{at}, o{at + 1}]",
                      "for i in range(_LANES):", "    n[o0, i] = given[first + i]"]
    kinds = [letter.translate(str.maketrans("NAWV", "nnww")) for letter in letters]
    places = [_PLACES.get(kind, "").format(at) for at, kind in enumerate(kinds)]
    read = [place for letter, place in zip(letters, places, strict=True) if letter in "nwAVcCsr"]
    written = [place for letter, place in zip(letters, places, strict=True) if letter in "NWAV"]
    lines += ["for i in range(_LANES):",
              f"    {', '.join(written)} = lane({', '.join(read + _parameters(lane, len(read)))})"]
    used = [name for name in _GIVEN if re.search(rf"\b{name}\b", "\n".join(lines))]
    given = f"(code, at, {', '.join(used)})"
    loop = _made("\n    ".join([f"def made{given}:", *lines]), lane=_inline(lane))
    return f"loop_{operation.name}{given}", _inline(loop)


def _write_interpreter():
    """Write the function that runs a program: a chain of tests for each instruction, which LLVM makes a jump table.

    A hundred functions go into it, which nobody needs where `run` is on disk.
    """
    global _interpret  # noqa: PLW0603 - where compiled code finds it
    loops, lines = {"carried": _carried}, [f"def made(code, {', '.join(_GIVEN)}):", "for at in range(code.shape[0]):",
                                           "    op = np.int64(code[at, 0])"]
    for operation in OPERATIONS:
        call = "carried(code[at], n, lists, table)"
        if operation.lane or operation.sum:
            call, loops[f"loop_{operation.name}"] = _loop(operation)
        lines += [f"    {'el' * (operation.number > 0)}if op == {operation.number}:", f"        {call}"]
    _interpret = _scalar(_made("\n    ".join(lines), np=np, **loops))


_interpret: Any = None


@_inline
def _fetch(near, far, rows, first, count, room):
    """Copy ``rows`` (k, 2) of slot and dimension of ``count`` mappings, and repeat the last one up to ``room``."""
    for k in range(rows.shape[0]):
        source, target = far[rows[k, 0], rows[k, 1]], near[rows[k, 0], rows[k, 1]]
        for i in range(count):
            target[i] = source[first + i]
        for i in range(count, room):
            target[i] = source[first + count - np.uint64(1)]


@_inline
def _uneven(near, sizes, first, rows, half, zero):
    """Whether any loop of a block leaves a rest; ``rows`` (2, `LANES`) are scratch."""
    found = np.int32(0)
    for d in range(near.shape[1]):
        for i in range(_LANES):
            rows[0, i] = sizes[d]
        for s in range(near.shape[0] - 1):
            source = near[s, d]
            for i in range(_LANES):
                rows[1, i] = source[first + i]
            for i in range(_LANES):
                whole = np.floor((rows[0, i] + half) / rows[1, i])
                found |= np.int32(rows[0, i] - whole * rows[1, i] > zero)
                rows[0, i] = rows[1, i]
    return found


@_inline
def _set_parameters(v, figures):
    """Write the parameters that all mappings share into the first wide rows."""
    for p in range(figures.shape[0]):
        for i in range(_LANES):
            v[p, i] = figures[p]


@_inline
def _set_own(v, differing, table, first, count):
    """Write the parameters of the mappings of a block."""
    for k in range(differing.shape[0]):
        source, row = table[k], np.uint64(differing[k])
        for i in range(np.uint64(count)):
            v[row, i] = source[np.uint64(first) + i]
        for i in range(np.uint64(count), _LANES):
            v[row, i] = source[np.uint64(first)]


@_inline
def _store(out, v, outputs, first, count):
    """Hand out the results of a block."""
    for k in range(outputs.shape[0]):
        target, row = out[k], outputs[k]
        for i in range(np.uint64(count)):
            target[np.uint64(first) + i] = v[row, i]


@partial(kept, before=_write_interpreter, alone=True)
@njit(**_OPTIONS)
@stamped([Path(operations.__file__), Path(program.__file__)])
def run(steps, ranks, begin, end, programs, parameters, scratch, out):
    """Score mappings ``begin`` to ``end`` of a batch.

    ``steps`` (s, d, b) int32 and ``ranks`` (s, d, b) int8; ``programs`` = the general and the even one, each (code,
    lists, constants, numbers, outputs) of a `Machine`, ``numbers`` being its constants in the narrow type;
    ``parameters`` = figures (p), which of them differ (k) and those (k, b); ``scratch`` = ((narrow, wide) of each
    program, near steps, near ranks, the rows of each that are looked at, sizes, rows, a table), narrow constants filled
    in; ``out`` (k, b) gets the rows ``outputs``.

    Rows of a large batch lie far apart, so several blocks of them are fetched together. Blocks in which every loop
    divides what it splits take the even program; after a ragged block, the next few are not even asked.
    """
    banks, even_banks, near_steps, near_ranks, step_rows, rank_rows, sizes, rows, table = scratch
    figures, differing, own = parameters
    for _, wide in (banks, even_banks):
        _set_parameters(wide, figures)
    code, lists, constants, numbers, outputs = programs[0]
    zero, half, one, far = numbers[0], numbers[1], numbers[2], numbers[3]
    group = near_steps.shape[2]
    wait, patience = 0, 1
    for first in range(begin, end, LANES):
        start = first - (first - begin) % group
        if first == start:
            fetched = min(group, end - start)
            room = np.uint64((fetched + LANES - 1) // LANES * LANES)
            _fetch(near_steps, steps, step_rows, np.uint64(start), np.uint64(fetched), room)
            _fetch(near_ranks, ranks, rank_rows, np.uint64(start), np.uint64(fetched), room)
        lane = np.uint64(first - start)
        count = min(LANES, end - first)
        ragged = True
        if wait > 0:
            wait -= 1
        elif _uneven(near_steps, sizes, lane, rows, half, zero) > 0:
            wait, patience = patience, min(64, 2 * patience)
        else:
            ragged, patience = False, 1
        code, lists, constants, numbers, outputs = programs[0] if ragged else programs[1]
        n, wide = banks if ragged else even_banks
        _set_own(wide, differing, own, first, count)
        _interpret(code, lists, constants, numbers, n, wide, near_steps, near_ranks, lane, zero, half, one, far, table)
        _store(out, wide, outputs, first, count)


FOLDER: str = run.stats.cache_path
"""Where it is kept."""

"""A vector operator in a fused group: its turns, each reading and writing its tiles where they are held."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from tilewright.cost.fused.shares import FusedShare
from tilewright.cost.hardware import own_columns
from tilewright.cost.records import KINDS, Count
from tilewright.cost.vector import UNIT, accesses_pj, port_cycles, way
from tilewright.hardware import ACCESSES, Accelerator, Memory, exact_rate
from tilewright.mapping import FusedTree, Turns, operations_of, tensor_bits
from tilewright.workload import Operator, Tensor


def vector_share(tree: FusedTree, operator: Operator, accelerator: Accelerator) -> FusedShare:
    """Return what a vector operator takes: words of its tiles, turn by turn, operations of the words that it makes."""
    turns = tree.turns(operator.name, tree.around([operator.name]))
    if tree.runs_again(operator.name) is not None:
        turns = tree.runs(operator.name)
    homes = {link.operand: tree.home(link.producer, accelerator) for link in tree.group.sources(operator.name)}
    if tree.group.readers(operator.name):
        homes[operator.output.name] = tree.home(operator.name, accelerator)
    share, bits = FusedShare(made=0.0), defaultdict[str, Counter[str]](Counter)
    for tensor in operator.tensors:
        words = int(_words(tensor, turns).sum())
        for at, memory in enumerate(_way(tensor, homes.get(tensor.name), accelerator)):
            out = tensor.is_output
            count = Count(0 if out else words, words if at and not out else 0, words if out else 0,
                          words if at and out else 0)
            share.counts[memory.name, tensor.name] = count
            for kind in KINDS:
                bits[memory.name][kind[:-1]] += getattr(count, kind) * _bits(tensor, accelerator)
    charge(share, bits, accelerator)
    made = _words(operator.output, turns)
    each = Fraction(operations_of(operator) or 0, operator.output.words(operator.sizes))
    unit, rate = accelerator.vector_unit, exact_rate(accelerator.vector_unit.rate(operator.kind))
    done = each * int(made.sum())
    share.cycles[UNIT] = ceil(done / rate)
    share.first_turn = ceil(each * int(made[0]) / rate) if len(made) else 0
    share.energy[UNIT] = float(done) * (unit.energy_pj_per_operation or 0.0)
    share.made = float(Fraction(int(made.sum()), operator.output.words(operator.sizes)))
    return share


def _words(tensor: Tensor, turns: Turns) -> np.ndarray:
    """Words of a tensor's tile in each turn (rule 1)."""
    found = np.ones(len(turns), dtype=np.int64)
    for axis in tensor.axes:
        rows = np.stack([turns.extents(name) for name in axis.dimensions], axis=1)
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        words = [axis.words(dict(zip(axis.dimensions, row, strict=True))) for row in unique.tolist()]
        found *= np.array(words, dtype=np.int64)[inverse.ravel()]
    return found


def _way(tensor: Tensor, home: str | None, accelerator: Accelerator) -> list[Memory]:
    """Return the memories that words pass between their home and the unit, outermost first."""
    memories = accelerator.memories
    able = [memory for memory in memories if memory.can_keep(tensor.name, tensor.role)] or [*memories[:1]]
    start = [memory.name for memory in memories].index(home or able[0].name)
    return [memories[start], *way(accelerator, tensor.role, start + 1)]


def _bits(tensor: Tensor, accelerator: Accelerator) -> Fraction:
    return Fraction(tensor.word_bits or dict(accelerator.word_bits)["inputs"])


def leave(tree: FusedTree, operator: Operator, accelerator: Accelerator, share: FusedShare) -> None:
    """Add what it takes to bring a result out of the group as well: each word once, from where it is held."""
    output, home = operator.output, tree.home(operator.name, accelerator)
    out = _way(output, None, accelerator)[0].name
    if home == out:
        return
    words = output.words(operator.sizes)
    vector = operations_of(operator) is not None
    width = _bits(output, accelerator) if vector else Fraction(tensor_bits(output, accelerator))
    share.add({(home, output.name): Count(0, 0, 0, words), (out, output.name): Count(0, 0, words, 0)})
    charge(share, {home: {"drain": words * width}, out: {"update": words * width}}, accelerator)


def charge(share: FusedShare, bits: Mapping[str, dict[str, Any]], accelerator: Accelerator) -> None:
    """Add the cycles and energy of the bits that each memory moves, by kind of access."""
    rows = own_columns(accelerator)
    for memory in accelerator.memories:
        moved = dict.fromkeys(ACCESSES["shared"], Fraction(0)) | bits.get(memory.name, {})
        share.cycles[memory.name] += port_cycles(memory, moved, rows)
        share.energy[memory.name] += accesses_pj(memory, moved, rows)

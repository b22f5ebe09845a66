"""What no mapping can beat where zeros are made use of: far looser than the dense bounds, which do not hold there.

Every product that is not gated or skipped is performed; every word of every tensor that is not zero crosses the
outermost memory once, unless all that it is ever multiplied with is zero. (Read more than once, each time for fewer
products, a word is left out more often, but not so much more often that fewer reads remain: the chance that some of n
words are not zero grows slower than n.)
"""

import numpy as np

from tilewright.cost.bounds.layer import BoundRows
from tilewright.cost.bounds.rows import Floats, MachineRows, Whole, whole
from tilewright.cost.bounds.steps import compute_steps
from tilewright.cost.sparse.rates import Shares, all_zero
from tilewright.hardware import RATE, Sparsity
from tilewright.mapping import compression, lane_use, tensor_bits
from tilewright.workload import Operator

_ROUNDING = 1 - 1e-9


def sparse_rows(operator: Operator, rows: MachineRows, *, perfect: bool = False) -> BoundRows:
    """Return bounds that the expected cycles and energy of every legal mapping respect."""
    machine, name = rows.machine, rows.machine.memories[0].name
    shares = Shares(operator, machine, machine.sparsity or Sparsity())
    steps = compute_steps(operator, rows, perfect).astype(np.float64)
    lanes = lane_use(operator, machine)
    compute = _up(steps * shares.performed(time=True) * float(lanes.cycles))
    moved, spent = {"read": 0.0, "write": 0.0}, np.zeros(rows.count)
    for tensor in operator.tensors:
        words = _least_share(shares, tensor.name) * tensor.words(operator.sizes)
        words *= float(tensor_bits(tensor, machine)) / machine.memories[0].word_bits
        moved["write" if tensor.is_output else "read"] += words
        spent = spent + words * rows.numbers[name, f"{'update' if tensor.is_output else 'read'}_energy_pj_per_word"]
    data = rows.none
    for port, words in (*moved.items(), ("shared", sum(moved.values()))):
        if (name, RATE.format(port)) in rows.columns.numbers:
            data = np.maximum(data, _up(words / rows.numbers[name, RATE.format(port)]))
    latency = np.maximum(compute, data)
    macs = operator.macs * shares.performed(time=False) * lanes.energy
    parts = {name: spent * _ROUNDING,
             machine.compute.name: macs * rows.numbers[machine.compute.name, "energy_pj_per_mac"] * _ROUNDING}
    if rows.leakage.any():
        parts["leakage"] = rows.leakage * latency.astype(np.float64) * _ROUNDING
    none = np.zeros(rows.count)
    return BoundRows(compute, rows.none, {name: data}, latency, parts, none, none + sum(parts.values()))


def _up(cycles: Floats) -> Whole:
    return whole(np.ceil(cycles * _ROUNDING))


def _least_share(shares: Shares, name: str) -> float:
    """Return the least share of a tensor's words that cross the outermost memory."""
    operator, outermost = shares.operator, shares.accelerator.memories[0]
    tensor = operator.tensor(name)
    share = tensor.density if compression(shares.accelerator, outermost.name, tensor) else 1.0
    deciding = sorted({leader.name for elision in shares.sparsity.elisions
                       if elision.memory == outermost.name and elision.tensor in (tensor.name, tensor.role)
                       for leader in shares.named(elision.on) if leader is not tensor})
    products = np.array([operator.macs / tensor.words(operator.sizes)])
    if tensor.is_output and deciding:
        return float(share * (1.0 - all_zero(tuple(shares.zeros[leader] for leader in deciding), products)[0]))
    if len(deciding) == 1:
        words = operator.tensor(deciding[0]).words(operator.sizes)
        return float(share * (1.0 - shares.zeros[deciding[0]].empty(np.minimum(products, words))[0]))
    for leader in deciding:
        share *= shares.zeros[leader].density
    return share

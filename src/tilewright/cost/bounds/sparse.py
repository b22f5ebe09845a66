"""What no mapping can beat where zeros are made use of: far looser than the dense bounds, which do not hold there.

Every product that is not gated or skipped is performed; every word of every tensor that is not zero crosses the
outermost memory once, unless all that it is ever multiplied with is zero. (Read more than once, each time for fewer
products, a word is left out more often, but not so much more often that fewer reads remain: the chance that some of n
words are not zero grows slower than n.)
"""

from math import ceil

import numpy as np

from tilewright.cost.bounds.layer import LowerBounds, compute_bound, roofline
from tilewright.cost.sparse.rates import Shares, all_zero
from tilewright.hardware import Accelerator, Sparsity
from tilewright.mapping import compression, tensor_bits
from tilewright.workload import Operator

_ROUNDING = 1 - 1e-9


def sparse_bounds(operator: Operator, accelerator: Accelerator, *, perfect: bool = False) -> LowerBounds:
    """Return bounds that the expected cycles and energy of every legal mapping respect."""
    shares = Shares(operator, accelerator, accelerator.sparsity or Sparsity())
    steps = compute_bound(operator, accelerator, perfect)
    compute = ceil(steps * shares.performed(time=True) * _ROUNDING)
    outermost = accelerator.memories[0]
    ports, energy = outermost.bandwidth, outermost.energy
    moved = {"read": 0.0, "write": 0.0}
    spent = 0.0
    for tensor in operator.tensors:
        words = _least_share(shares, tensor.name) * tensor.words(operator.sizes)
        words *= tensor_bits(tensor, accelerator) / outermost.word_bits
        moved["write" if tensor.is_output else "read"] += words
        spent += words * (energy.update_pj if tensor.is_output else energy.read_pj)
    rates = ((ports.read, moved["read"]), (ports.write, moved["write"]), (ports.shared, sum(moved.values())))
    data = max([ceil(words / rate * _ROUNDING) for rate, words in rates if rate is not None], default=0)
    latency = max(compute, data)
    parts = {outermost.name: spent * _ROUNDING,
             accelerator.compute.name: operator.macs * shares.performed(time=False)
             * accelerator.compute.energy_pj_per_mac * _ROUNDING}
    leakage = accelerator.leakage_mw / accelerator.frequency_mhz * 1000 * latency
    if leakage:
        parts["leakage"] = leakage * _ROUNDING
    total = sum(parts.values())
    return LowerBounds(
        macs=operator.macs, compute_cycles=compute, blocked_cycles=0, data_cycles={outermost.name: data},
        latency_cycles=latency, latency_binding="compute" if compute >= data else outermost.name,
        energy_by_component_pj=parts, refetch_pj=0.0, energy_pj=total,
        energy_binding=max(parts, key=lambda name: parts[name]), edp=total * latency,
        roofline=roofline(operator, accelerator))


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

"""What no plan of an attention can beat: compute, compulsory words, and words that the capacity forces.

The last is an argument in the manner of Hong and Kung (I/O complexity: the red-blue pebble game, STOC 1981) for the
pair of products; that DRAM must move of the order of N^2 d^2 / S words is due to Saha and Ye (The I/O complexity of
attention, or how optimal is FlashAttention?, ICML 2024). Ours has its constants:

Cut a schedule into phases of X words moved. At most W = 2 S + X words take part in a phase: those that are there at its
begin or at its end, come in, or leave. Let u of them be logits, shares, or sums of logits. A pair of a row and a key
that is worked on in the phase either has all its work done in it, in L and in A; or it is among the u, as a part of it
is kept before or after the phase. Of the first kind, r rows and c keys have r c pairs at most, and need r whole queries
and outputs, c whole keys and values: (r + c) (d + v) <= W - u for features d and v, so that
r c <= ((W - u) / 2 (d + v))^2. A phase thus does no more pairs than ((W - u) / 2 (d + v))^2 + u, which is largest at an
end of u: max((W / 2 (d + v))^2, W). Pairs over that, less one for the last phase, times X is the bound; X is free.
It holds for plans that make each logit once, as all here do.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.costs import Softmax
from tilewright.fusion.flat.machines import FlatMachine


@dataclass(frozen=True)
class AttentionBound:
    """Bounds on any plan: cycles by what forces them, words of DRAM, energy."""

    compute_cycles: float
    vector_cycles: float
    compulsory_words: int
    forced_words: int
    buffer_words: float
    latency_cycles: float
    energy_pj: float

    @property
    def dram_words(self) -> int:
        """The larger of what is compulsory and what the capacity forces."""
        return max(self.compulsory_words, self.forced_words)

    def value(self, objective: str) -> float:
        """Return the bound on an objective."""
        return {"latency": self.latency_cycles, "energy": self.energy_pj, "dram": float(self.dram_words),
                "edp": self.energy_pj * self.latency_cycles}[objective]


def attention_bound(attention: Attention, machine: FlatMachine, softmax: Softmax = "free") -> AttentionBound:
    """Return what no plan of an attention on a machine can beat."""
    compute = attention.macs / machine.elements
    vector = attention.instances * attention.pairs / machine.softmax_rate if softmax == "vector" else 0.0
    forced = forced_words(attention, machine.capacity_words)
    words = max(attention.compulsory_words, forced)
    inner = words + _array_words(attention, machine)
    energy = attention.macs * machine.mac_pj + inner * machine.buffer_pj + words * machine.dram_pj
    latency = max(compute, vector, words / machine.dram_rate, inner / machine.buffer_rate)
    return AttentionBound(compute, vector, attention.compulsory_words, forced, inner, latency, energy)


def _array_words(attention: Attention, machine: FlatMachine) -> float:
    """Return the words that the array asks of the buffer at least, in every stationarity of both products.

    They are those of `fused_costs` for strips that are all full, and for the pairs that are not masked.
    """
    (a, b), depth, width = (machine.rows, machine.columns), attention.depth, attention.width
    pairs, first = attention.pairs, width * attention.rows
    scores = (depth * pairs * (1 / a + 1 / b) + pairs, depth * pairs / b + pairs * (2 * -(-depth // a) - 1),
              depth * pairs / a + pairs * (2 * -(-depth // b) - 1))
    mixed = (-(-width // b) * pairs + width * pairs / a + first,
             -(-width // a) * pairs + 2 * width * pairs / b - first,
             pairs + width * pairs / a + 2 * width * pairs / b - first)
    return attention.instances * (min(scores) + min(mixed))


def forced_words(attention: Attention, capacity: int) -> int:
    """Return the words that a buffer of so many words forces through DRAM, of all instances; 0 where none."""
    pairs, features = attention.instances * attention.pairs, attention.depth + attention.width
    best = 0.0
    for words in np.geomspace(max(1, capacity / 8), 32 * max(1, capacity), 41).tolist():
        taking_part = 2 * capacity + words
        best = max(best, words * (ceil(pairs / max((taking_part / (2 * features)) ** 2, taking_part)) - 1))
    return int(best)

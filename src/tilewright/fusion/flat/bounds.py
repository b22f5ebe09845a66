"""What no plan of an attention can beat: compute, compulsory words, and words that the capacity forces.

The last is an argument in the manner of Hong and Kung (I/O complexity: the red-blue pebble game, STOC 1981) for the
pair of products; that DRAM must move of the order of N^2 d^2 / S words is due to Saha and Ye (The I/O complexity of
attention, or how optimal is FlashAttention?, ICML 2024). Ours has its constants:

Cut a schedule into phases in which X words come in or are begun: words of queries, keys, values and partial outputs,
and logits, that DRAM gives, and outputs that begin at zero. What touches DRAM takes the buffer of S words twice (table
A.1), so at the begin of a phase there are a words of the first four, and u <= S - 2 a logits, shares, or sums of
logits. Let m logits come in. A pair of a row and a key that is worked on for the last time in the phase is either among
the u + m, or has all its work done in it, in L and in A. Of the second kind, r rows and c keys have r c pairs at most,
and need r whole queries and outputs, c whole keys and values: (r + c) (d + v) <= a + X - m for features d and v, so
that r c <= ((a + X - m) / 2 (d + v))^2. The sum of both is convex in a and m, so that it is largest at an end of each.
The first phase begins with nothing there, a = u = 0, and may have another length. So if all phases together do fewer
than all pairs, more words have to move: outputs that begin are no words moved, but each of them leaves at the end,
which is not counted otherwise. How long phases are is free, in whole words, as long as they make up all of them.
Instances share no words, so that each has as much. It holds for plans that make each logit once and add each output up
in one running sum, as all here do.
"""

from dataclasses import dataclass

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
    pairs, features = attention.pairs, 2 * (attention.depth + attention.width)
    first, length = np.meshgrid(np.floor(capacity * np.linspace(0, 2, 17)), capacity * np.geomspace(1 / 8, 32, 33))

    def most(words: int) -> float:
        """Return the pairs that so many words allow, by the lengths of phases that allow the fewest."""
        rest = np.maximum(0.0, words - first)
        phases = np.ceil(rest / length)
        each = np.ceil(rest / np.maximum(phases, 1.0))
        done = np.max([((held + each - come) / features) ** 2 + capacity - 2 * held + come
                       for held in (0.0, capacity / 2) for come in (0.0, each)], axis=0)
        begun = np.minimum(first, words)
        return float((np.maximum((begun / features) ** 2, begun) + phases * done).min())

    none, enough = 0, pairs
    while enough - none > max(1, pairs // 10**6):
        middle = (none + enough) // 2
        none, enough = (middle, enough) if most(middle) < pairs else (none, middle)
    return attention.instances * none

"""FLAT's own model, as it can be read off a run of it: one convention, to replay its plans and to search in.

FuseMax (Nayak et al., MICRO 2024) published a run of the authors' model on BERT, T5, Transformer-XL and XLM. A row
tells the plan (granularity, rows, which tensors are staged on the chip, which operand is stationary) and what it takes.
The rules here give its DRAM bytes within 0.1 % and its latency within 0.6 % on the rows for BERT and T5; they are read
off those figures, the authors' code was not at hand:

- Words of DRAM, in words of one tensor (batch x sequence x width): the outputs move once. With outputs stationary in an
  array of side a, queries come once where they are staged, else N / a times; keys and values once for each tile of
  rows where they are staged, else N / a times. With weights stationary, queries come once, keys and values once for
  each tile of rows.
- Logits that are not staged are written once, N / d, and read d / a times, at least once.
- The share of the live footprint beyond the buffer adds what the array asks of the buffer for queries, N / a times, for
  logits, and for partial sums. With outputs stationary logits are written once and read d / a times, at least once, and
  staged outputs are written once; with weights stationary logits are written and read d / a times as sums and read as
  often again, at least once each, and sums of outputs are written and read N / a times.
- Footprint: with outputs stationary, tiles of a x d of four tensors, twice, and staged logits once; with weights
  stationary, staged queries, tiles of a x a of three tensors, and outputs a wide, twice, with logits once where they
  are staged, else a tile of them, twice. Staged operands take their rows instead of a tile.
- Cycles: with outputs stationary L fills the array and A uses d of its columns; with weights stationary both use d of
  one side. Latency is the larger of that and of words over GiB/s; start and end of tiles, below 0.6 %, are left out.
- Energy is that of DRAM alone: 32 pJ a byte.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.machines import FlatMachine

DRAM_PJ_PER_BYTE = 32.0


@dataclass(frozen=True)
class RerunPlan:
    """A plan of the authors' model: rows of a tile (all of a head's where 0), what is staged, what is stationary."""

    rows: int = 0
    staged: frozenset[str] = frozenset()
    weights_stationary: bool = False

    @property
    def fused(self) -> bool:
        """Whether logits stay on the chip."""
        return "logits" in self.staged


@dataclass(frozen=True)
class RerunCost:
    """What the authors' model finds for a plan."""

    buffered: float
    dram_bytes: float
    ideal_seconds: float
    latency_seconds: float
    energy_pj: float

    @property
    def utilisation(self) -> float:
        """Ideal over actual runtime."""
        return self.ideal_seconds / self.latency_seconds


def rerun_cost(attention: Attention, machine: FlatMachine, plan: RerunPlan) -> RerunCost:
    """Return what the authors' model finds for a plan of plain attention on a square array."""
    side, keys, depth = machine.rows, attention.keys, attention.depth
    rows = min(plan.rows or attention.rows, attention.rows)
    buffered = min(1.0, machine.capacity_words / _footprint(attention, machine, plan))
    logits, passes = keys / depth, depth / side

    def comes(name: str) -> float:
        once = 1.0 if name == "Q" else attention.rows / rows
        return once if plan.weights_stationary or name in plan.staged else keys / side

    again = max(1.0, passes)
    tensors = 1.0 + sum(map(comes, "QKV")) + (0 if plan.fused else logits * (1 + again))
    spilled = keys / side + (logits * 3 * again + 2 * keys / side if plan.weights_stationary else
                             logits * (1 + again) + ("O" in plan.staged))
    moved = machine.word_bytes * attention.instances * attention.rows * depth * (tensors + (1 - buffered) * spilled)
    clock = machine.clock_mhz * 1e6
    ideal = attention.macs / machine.elements / clock
    idle = max(1.0, side / depth)
    compute = ideal * (idle if plan.weights_stationary else (1 + idle) / 2)
    latency = max(compute, moved / (machine.dram_rate * machine.word_bytes * clock))
    return RerunCost(buffered, moved, ideal, latency, DRAM_PJ_PER_BYTE * moved)


def rerun_best(attention: Attention, machine: FlatMachine, *, fused: bool) -> tuple[RerunPlan, RerunCost]:
    """Return the plan of the least latency, then of the fewest bytes; of those that stage no logits where not fused."""
    tried = ((plan, rerun_cost(attention, machine, plan)) for plan in _plans(attention, machine, fused=fused))
    return min(tried, key=lambda each: (each[1].latency_seconds, each[1].dram_bytes))


def _plans(attention: Attention, machine: FlatMachine, *, fused: bool) -> Iterator[RerunPlan]:
    rows = [0, *(2**power for power in range(11) if machine.rows <= 2**power < attention.rows)]
    for size, weights, *on in product(rows, (False, True), *[(False, True)] * (5 if fused else 4)):
        names = frozenset(name for name, kept in zip(("Q", "K", "V", "O", "logits"), on, strict=False) if kept)
        yield RerunPlan(size, names, weights)


def _footprint(attention: Attention, machine: FlatMachine, plan: RerunPlan) -> int:
    side, depth = machine.rows, attention.depth
    rows = min(plan.rows or attention.rows, attention.rows)
    staged = {"Q": rows, "K": attention.keys, "V": attention.keys, "O": rows}
    whole = {name: 2 * length * depth for name, length in staged.items() if name in plan.staged}
    narrow = min(side, depth)
    tiles = (dict.fromkeys("QKVO", 2 * side * narrow) if not plan.weights_stationary else
             {"Q": 2 * side * narrow, "K": 2 * side * narrow, "V": 2 * side * narrow, "O": 2 * rows * narrow})
    logits = 2 * rows * side + 2 * side * narrow if plan.weights_stationary else 0
    return sum((tiles | whole).values()) + (rows * attention.keys if plan.fused else logits)



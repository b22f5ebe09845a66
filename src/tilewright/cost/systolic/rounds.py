"""Latency of weight-stationary arrays that run a layer in rounds, one tile of the shared memory each, as Gemmini does.

A round is an iteration of the outermost memory's loops. It loads its tile of every operand anew (nothing is kept from
round to round but partial sums), computes, and the last one of a reduction stores its outputs. Loading the next round
overlaps computing this one. Inside a round the order of the mapping's loops does not count: a sequencer takes the tile
in blocks of the array's sides, and streams the rows of a block past weights that rest. That is what the model knows and
plain rooflines do not:

- weights of a block take as many cycles to enter as the array is high, behind the rows of the block before,
- fewer rows than the pipeline of the sequencer is long take as long as it is,
- each instruction takes a cycle more than its rows,
- the first load and the last store overlap nothing.

Gemmini: Genc et al., DAC 2021. Compared with RTL simulation in the tests: see `docs/accuracy.md`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory, exact_rate
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator, Tensor

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Sequencer:
    """What the array's control takes, in cycles, whatever the layer."""

    least_rows: int = 4
    """Rows that a block takes at least: the length of the control's pipeline. Gemmini: 4."""
    issue_cycles: float = 1.0
    """Cycles of an instruction beside its rows. Gemmini: 1."""
    store_cycles: float = 4.0
    """Cycles to scale and store one row of the array's width. Gemmini: 16 elements by 4 scale units."""


@dataclass(frozen=True)
class RoundLatency:
    """Cycles of a whole layer, and of its parts summed over all rounds."""

    cycles: float
    rounds: int
    compute_cycles: float
    load_cycles: float
    """``compute_cycles`` and ``load_cycles``: of all rounds, as if nothing overlapped."""
    first_cycles: float
    """The load or computation that overlaps nothing."""
    store_cycles: float
    """The last store."""

    @property
    def bottleneck(self) -> str:
        """Whether loading or computing takes longer."""
        return "load" if self.load_cycles > self.compute_cycles else "compute"


def round_latency(operator: Operator, accelerator: Accelerator, mapping: Nest,
                  sequencer: Sequencer | None = None) -> RoundLatency:
    """Return how long a mapping takes on a weight-stationary array that runs in rounds.

    Raises an `InputError` if the operator has no weights, or the machine no array of two sides (or one, for a square)
    to hold them.
    """
    layer = _Layer.of(operator, accelerator, mapping)
    sequencer = sequencer or Sequencer()
    rate = layer.outermost.bandwidth.shared or layer.outermost.bandwidth.read
    compute = load = steady = 0.0
    rounds, first, last = 0, None, 0.0
    for tile, count in layer.rounds():
        work = layer.compute_cycles(tile, sequencer)
        # What a strided window leaves comes along.
        words = sum(tensor.words(tile, box=True) for tensor in operator.operands)
        fetch = float(words / exact_rate(rate)) if rate else 0.0
        compute, load, rounds = compute + count * work, load + count * fetch, rounds + count
        steady += count * max(work, fetch)
        first = min(work, fetch) if first is None else first
        last = ceil(operator.output.words(tile) / layer.width) * sequencer.store_cycles
    assert first is not None
    return RoundLatency(steady + first + last, rounds, compute, load, first, last)


@dataclass(frozen=True)
class _Layer:
    """A layer on an array: which dimensions rest, which stream, and how the outermost loops cut it."""

    operator: Operator
    weights: Tensor
    outermost: Memory
    mapping: Nest
    across: str
    down: str
    """Dimensions of the weights along the array's columns (outputs) and rows (reduction)."""
    streamed: str | None
    """The dimension whose values follow one another in a block: the outputs' first that the weights lack."""
    width: int
    height: int

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, mapping: Nest) -> "_Layer":
        """Look at a mapping: dimensions of the weights that it spreads, else their largest; one side means a square."""
        weights = next((tensor for tensor in operator.operands if tensor.role == "weights"), None)
        if weights is None:
            raise InputError(operator.name, "must have weights to run on a weight-stationary array")
        outer, *_ = accelerator.memories
        sides = [side for fanout in accelerator.levels if isinstance(fanout, Fanout)
                 for side in fanout.shape if side > 1]
        if len(sides) not in (1, 2):
            raise InputError(f"{accelerator.name}.levels", "must have an array of two sides to run in rounds",
                             f"{len(sides)} sides")
        spread = [loop.dimension for entry in mapping.levels for loop in entry.loops if loop.axis]
        across = _chosen(operator, spread, weights, True)
        down = _chosen(operator, spread, weights, False)
        free = [name for axis in operator.output.axes for name in axis.dimensions if name not in weights.dimensions]
        sliding = [name for axis in operator.tensors[0].axes + operator.tensors[1].axes if len(axis.terms) > 1
                   for name in axis.dimensions if name in free]
        streamed = next(iter([*sliding, *sorted(free, key=lambda name: -operator.sizes[name])]), None)
        return cls(operator, weights, outer, mapping, across, down, streamed, sides[0], sides[-1])

    def rounds(self) -> Iterator[tuple[dict[str, int], int]]:
        """Yield the sizes of the tiles and how many rounds have them; ragged ones last."""
        cuts = {}
        for name, size in self.operator.dimensions:
            step = next((loop.step for loop in self.mapping.levels[0].loops if loop.dimension == name), size)
            whole, rest = divmod(size, min(step, size))
            cuts[name] = [(min(step, size), whole)] + ([(rest, 1)] if rest else [])
        for choice in product(*cuts.values()):
            yield dict(zip(cuts, (size for size, _ in choice), strict=True)), prod(count for _, count in choice)

    def compute_cycles(self, tile: Sizes, sequencer: Sequencer) -> float:
        """Return the cycles of one round: every block of weights enters once, all rows of the tile pass it."""
        weights = self.weights
        blocks = ceil(tile[self.across] / self.width) * ceil(tile[self.down] / self.height)
        blocks *= prod(tile[name] for name in weights.dimensions - {self.across, self.down})
        groups = prod(tile[name] for name in self.operator.output.dimensions
                      if name not in weights.dimensions and name != self.streamed)
        length = tile[self.streamed] if self.streamed else 1
        runs = [min(self.height, length - start) for start in range(0, length, self.height)]
        rows = sum(max(run, sequencer.least_rows) + sequencer.issue_cycles for run in runs) * groups
        entering = max(0, self.height - max(runs[0], sequencer.least_rows))
        return blocks * (rows + entering)


def _chosen(operator: Operator, spread: list[str], weights: Tensor, of_output: bool) -> str:
    """Return the weights' dimension along one side of the array: what the mapping spreads, else the largest."""
    windows = {name for tensor in operator.operands for axis in tensor.axes if len(axis.terms) > 1
               for name in axis.dimensions}
    able = [name for name in operator.sizes if name in weights.dimensions - windows
            and (name in operator.output.dimensions) == of_output]
    if not able:
        raise InputError(operator.name, "must have weights with a dimension of the output and one of the reduction",
                         ", ".join(sorted(weights.dimensions)))
    return next((name for name in spread if name in able), max(able, key=lambda name: operator.sizes[name]))

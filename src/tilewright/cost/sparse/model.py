"""The sparse cost model: what the zeros of tensors save on a machine that makes use of them (docs/sparsity.md).

In the manner of Sparseloop (Wu et al., MICRO 2022): the counts of the static schedule first, then what of them is left
in the mean, by format and by what is gated or skipped, then cycles and energy as ever. Data are words of the tensors;
metadata move beside them and are never left out, as they say what can be.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tilewright.base import InputError, share
from tilewright.cost.dense.nest import Nest
from tilewright.cost.dense.scoring import DenseModel
from tilewright.cost.dense.single import tallies_of
from tilewright.cost.hardware import Columns, HardwareBatch, own_columns
from tilewright.cost.records import Cost
from tilewright.cost.sparse.rates import Shares, check_leaders
from tilewright.cost.sparse.tiles import Floats, TilesKept, left_by
from tilewright.cost.sums import Plan, Sums
from tilewright.cost.tables import CostBatch, LayerCosts, Needs, TallyKey, need_keys, table_keys
from tilewright.hardware import Accelerator, Sparsity
from tilewright.mapping import Layout, Mapping, MappingBatch, held_bits, tensor_bits
from tilewright.workload import Operator

CHUNK = 8192
"""Mappings scored in one go: enough that NumPy's overhead is small, few enough to share among threads."""


class SparseModel:
    """Expected cycles and energy of mappings where operands have zeros.

    Scores batches of mappings like `DenseModel`, from the same counts; at density 1 without formats it gives the same.

    Parameters
    ----------
    operator, accelerator, layout
        As of `DenseModel`. A machine without a ``sparsity`` section makes no use of zeros.

    Raises
    ------
    InputError
        As `DenseModel`; and if a tensor cannot be left out by another's zeros, having dimensions in neither.
    """

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout | None = None) -> None:
        self.operator, self.accelerator = operator, accelerator
        self.dense = DenseModel(operator, accelerator, layout)
        self.layout = self.dense.layout
        self.sparsity = accelerator.sparsity or Sparsity()
        output = operator.output
        if held_bits(output, accelerator) != tensor_bits(output, accelerator):
            raise InputError(f"{accelerator.name}.sparsity", "must be left out where partial sums are wider",
                             float(held_bits(output, accelerator)), "Give outputs the width of partial sums")
        check_leaders(operator, self.sparsity)
        self.shares = Shares(operator, accelerator, self.sparsity)

    @cached_property
    def plan(self) -> Plan:
        """What batches of this layout have in common."""
        return Plan(self.operator, self.accelerator, self.layout.keeps)

    def score(self, batch: MappingBatch, hardware: HardwareBatch | None = None, threads: int = 1) -> CostBatch:
        """Score all mappings of ``batch``, each on its row of ``hardware``, on ``threads`` threads."""
        return self._scored_rows((), batch, hardware, threads)[0]

    def table(self, batch: MappingBatch, hardware: HardwareBatch | None = None, threads: int = 1) -> LayerCosts:
        """Return what `score` does with the words of the static schedule, and needs."""
        costs, rows = self._scored_rows(table_keys(self.accelerator, self.layout.keeps), batch, hardware, threads)
        return LayerCosts.of(costs, rows, self.operator, self.accelerator)

    def needs(self, batch: MappingBatch, threads: int = 1) -> Needs:
        """Return the bytes and lanes that mappings take, as `DenseModel.needs` does."""
        lanes, tiles = self.dense.needs(batch, threads), TilesKept(self.plan, batch.extents(self.operator.sizes))
        return replace(lanes, bytes=np.array([tiles.told(key) for key in need_keys(self.accelerator)
                                              if key[0] == "room"]))

    def _scored_rows(self, keys: Sequence[TallyKey], batch: MappingBatch, hardware: HardwareBatch | None,
                     threads: int) -> tuple[CostBatch, dict[TallyKey, Floats]]:
        """Return costs, and what else is asked for by ``keys``."""
        found, columns = np.empty((7 + len(keys), len(batch))), self.dense.columns(hardware, len(batch))

        def work(first: int) -> None:
            span = first, min(first + CHUNK, len(batch))
            own = columns.take(slice(*span))
            tiles = TilesKept(self.plan, batch.extents(self.operator.sizes, slice(*span)))
            tallies = self.dense.tallies(batch, span, own)
            sums = self._sums(tiles, tallies, own)
            told = (sums.latency, sums.energy, tiles.excess(tallies, own), sums.steps, sums.steady, sums.ramp,
                    sums.outermost_bytes, *(tallies[key] if key in tallies else tiles.told(key) for key in keys))
            for row, values in zip(found, told, strict=True):
                row[slice(*span)] = values

        if len(batch):
            share(work, range(0, len(batch), CHUNK), threads)
        return self.dense.costs(found, columns), dict(zip(keys, found[7:], strict=True))

    def cost(self, mapping: Mapping) -> Cost:
        """Return everything about one mapping, without waiting for the compiler."""
        nest = Nest(self.operator, self.accelerator, mapping)
        plan = self.plan if nest.keeps == self.layout.keeps else Plan(self.operator, self.accelerator, nest.keeps)
        tiles = TilesKept(plan, [{name: np.array([float(extent)]) for name, extent in nest.extents(level).items()}
                                 for level in range(len(self.accelerator.levels))])
        tallies = {key: np.array([float(words)]) for key, words in tallies_of(nest).items()}
        return self._sums(tiles, tallies, own_columns(self.accelerator)).cost()

    def _sums(self, tiles: TilesKept, tallies: dict[TallyKey, Floats], columns: Columns) -> Sums:
        return Sums(tiles.plan, tallies, columns, left_by(self.shares, tallies, tiles))


def cost_model(operator: Operator, accelerator: Accelerator, layout: Layout | None = None) -> DenseModel | SparseModel:
    """Return the model of a machine: sparse where it has a ``sparsity`` section, else dense.

    Raises an `InputError`, as of the models.
    """
    return (SparseModel if accelerator.sparsity is not None else DenseModel)(operator, accelerator, layout)



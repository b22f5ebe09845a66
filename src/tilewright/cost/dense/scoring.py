"""The dense cost model: many mappings in one compiled call, or one mapping with every count."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import prod
from pathlib import Path
from threading import local
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, KeptValues, share
from tilewright.cost.dense.engine import await_engine
from tilewright.cost.dense.model import Model, Rates, kind_of_rates, narrow_enough
from tilewright.cost.dense.operations import OPERATIONS
from tilewright.cost.dense.program import LANES, Machine
from tilewright.cost.dense.single import single_cost
from tilewright.cost.dense.walk_records import (
    ENERGY,
    EXCESS,
    LATENCY,
    RAMP,
    STEADY,
    STEPS,
    TRAFFIC,
    PackedNests,
    WalkWork,
)
from tilewright.cost.dense.walks import Walks
from tilewright.cost.hardware import Columns, HardwareBatch, own_columns
from tilewright.cost.records import Cost
from tilewright.cost.tables import CostBatch, LayerCosts, Needs, TallyKey
from tilewright.hardware import LEAKAGE, Accelerator, AccessEnergy, Bandwidth, Fanout, Memory, Number
from tilewright.mapping import Layout, Mapping, MappingBatch, check_homes, tensor_bits
from tilewright.workload import Operator, convolution

Floats = NDArray[np.float64]
Rows = Literal["costs", "timed", "table", "needs", "tallies"]
"""What a program tells: the seven rows of a `CostBatch`, these and `Needs` but no energy, these and all of a
`LayerCosts`, `Needs`, or what `DenseModel.tallies` returns."""


@dataclass(frozen=True)
class _Prepared:
    """The general program and the even one, or the general one in its place; with the arrays that the kernel takes."""

    machines: tuple[Machine, Machine]
    narrow_type: type[np.floating[Any]]
    sizes: NDArray[np.int32]
    names: tuple[TallyKey, ...]
    rows_read: tuple[NDArray[np.uint16], NDArray[np.uint16]]
    """Rows (slot, dimension) of the steps and of the ranks that the programs look at."""
    parameters: tuple[Number, ...]

    @cached_property
    def arrays(self) -> tuple[tuple[NDArray[Any], ...], ...]:
        """Arrays of each program, as `kernel.run` takes them."""
        return tuple(
            (m.code, m.lists, m.constants, m.constants.astype(self.narrow_type), m.outputs) for m in self.machines
        )

    def scratch(self, shape: tuple[int, int]) -> tuple[Any, ...]:
        """Rows of this thread to work in, for layouts of ``shape``; they are ready once they are `filled`."""
        banks = [(_ROOM.part(("narrow", other), (machine.narrow_rows, LANES), self.narrow_type),
                  _ROOM.part(("wide", other), (machine.wide_rows, LANES), np.float64))
                 for machine in self.machines for other in [machine is not self.machines[0]]]
        fetched = (*shape, BLOCKS_FETCHED * LANES)
        return (*banks, _ROOM.part("steps", fetched, np.int32), _ROOM.part("ranks", fetched, np.int8), *self.rows_read,
                self.sizes, _ROOM.part("rows", (2, LANES), self.narrow_type),
                _ROOM.part("table", (2, shape[0] + 2), np.int64))

    def filled(self, scratch: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the rows of `scratch` with the constants in them, which another program may have worked in."""
        if _ROOM.owner is not scratch:
            for machine, (narrow, _) in zip(self.machines, scratch, strict=False):
                narrow[:len(machine.fixed_narrow)] = machine.fixed_narrow[:, 1:]
            if self.machines[0] is not self.machines[1]:  # steps that are not read count among rests all the same
                scratch[2][:] = 1
            _ROOM.owner = scratch
        return scratch


class _Room(local):
    """Arrays of a thread that all programs work in, one after the other: each model's own would be a megabyte."""

    def __init__(self) -> None:
        self.owner: object = None
        """The rows whose constants are filled in."""
        self.parts: dict[Hashable, NDArray[np.uint8]] = {}

    def part(self, name: Hashable, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
        """Return an array that begins at a cache line: vectors that straddle two lines take twice as long to load."""
        size = prod(shape) * np.dtype(kind).itemsize
        if name not in self.parts or len(self.parts[name]) < size:
            raw = np.zeros(size + CACHE_LINE, dtype=np.uint8)
            start = -raw.ctypes.data % CACHE_LINE
            self.parts[name] = raw[start:start + size]
        return self.parts[name][:size].view(kind).reshape(shape)


_ROOM = _Room()


class DenseModel:
    """Exact counts, cycles and energy of dense mappings (docs/concepts.md).

    Parameters
    ----------
    operator, accelerator
        What runs on what.
    layout
        Layout of the batches to be scored; by default one slot per memory and per side of a fan-out.
    even_after
        Mappings scored after which even ones (no step leaves a rest) have a shorter program of their own; the costs are
        the same.

    Raises
    ------
    InputError
        If a memory moves blocks of words behind a fan-out (rounding per instance is not modelled there), or a tensor
        has no home, as `check_homes` tells.
    """

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout | None = None,
                 even_after: int = 100_000) -> None:
        self.operator = operator
        self.accelerator = accelerator
        self.layout = layout or Layout.of(operator, accelerator)
        self._own = own_columns(accelerator)
        self._scratch = local()
        self._scored, self._even_after = 0, even_after
        self._programs: dict[tuple[Rows, bool, Rates], _Prepared] = {}
        self.walks = Walks(operator, accelerator, self.layout)
        _check(operator, accelerator, self.layout)

    @property
    def program(self) -> _Prepared:
        """The program that scores; its outputs are those of a `CostBatch`."""
        return self._program("costs", self._kind)

    def _program(self, rows: Rows, kind: Rates) -> _Prepared:
        which = rows, self._scored >= self._even_after, kind
        if which not in self._programs:
            self._programs[which] = _prepared(self.operator, self.accelerator, self.layout, *which)
        return self._programs[which]

    def score(self, batch: MappingBatch, hardware: HardwareBatch | None = None, threads: int = 1) -> CostBatch:
        """Score all mappings of ``batch`` in compiled code, on ``threads`` threads."""
        return self._scored_rows("costs", batch, hardware, threads)[0]

    def table(self, batch: MappingBatch, hardware: HardwareBatch | None = None, threads: int = 1) -> LayerCosts:
        """Return what `score` does with words and needs, all told by one program."""
        costs, rows = self._scored_rows("table", batch, hardware, threads)
        return LayerCosts.of(costs, rows, self.operator, self.accelerator)

    def timed(self, batch: MappingBatch, hardware: HardwareBatch | None = None) -> tuple[CostBatch, Needs]:
        """Return what `score` and `needs` do, told by one program, with energies of 0, which are sooner found."""
        costs, rows = self._scored_rows("timed", batch, hardware, 1)
        costs.energy_pj[:] = 0.0
        return costs, Needs.of(rows, self.accelerator)

    def needs(self, batch: MappingBatch, threads: int = 1) -> Needs:
        """Return the bytes and lanes that mappings take on any machine of this structure; quicker than scoring."""
        self._check_layout(batch)
        program = self._program("needs", self._kind)
        out = np.empty((len(program.names), len(batch)))
        self._run(program, batch, self._own, out, threads)
        return Needs.of(dict(zip(program.names, out, strict=True)), self.accelerator)

    def _scored_rows(self, rows: Rows, batch: MappingBatch, hardware: HardwareBatch | None,
                     threads: int) -> tuple[CostBatch, dict[TallyKey, Floats]]:
        """Return costs, and what else a program tells."""
        self._check_layout(batch)
        self._scored += len(batch)
        columns = self.columns(hardware, len(batch))
        program = self._program(rows, self._kind if hardware is None else self._kind_of(columns))
        out = np.empty((len(program.machines[0].outputs), len(batch)))
        self._run(program, batch, columns, out, threads)
        others = out[len(out) - len(program.names):]
        return self.costs(out, columns), dict(zip(program.names, others, strict=True))

    def columns(self, hardware: HardwareBatch | None, count: int) -> Columns:
        """Return all numbers of the machines of ``count`` mappings; raises as `HardwareBatch.on` does."""
        if hardware is None:
            return self._own
        if hardware.values and len(hardware) != count:
            raise InputError("hardware", "must have one row for each mapping", f"{len(hardware)} for {count}")
        return hardware.on(self.accelerator)

    def costs(self, out: Floats, columns: Columns | None = None) -> CostBatch:
        """Name the rows of the program that scores."""
        return CostBatch(out[LATENCY], out[ENERGY], out[EXCESS], out[STEPS], out[STEADY], out[RAMP],
                         (columns or self._own).area_um2, out[TRAFFIC])

    def tallies(self, batch: MappingBatch, span: tuple[int, int],
                columns: Columns | None = None) -> dict[TallyKey, Floats]:
        """Return all that the sparse model starts from, of the mappings ``span``: arrays (b,); on this thread.

        ``columns`` are of those mappings alone.
        """
        columns = columns or self._own
        first, end = span
        self._scored += end - first
        # The kernel is compiled for arrays without gaps.
        part = MappingBatch(batch.layout, np.ascontiguousarray(batch.steps[:, :, first:end]),
                            np.ascontiguousarray(batch.ranks[:, :, first:end]))
        self._check_layout(part)
        program = self._program("tallies", self._kind)
        out = np.empty((len(program.names), len(part)))
        kernel_run(program, part.steps, part.ranks, (0, len(part)), columns, self.scratch(program), out)
        found = dict(zip(program.names, out, strict=True))
        return found | self.walks.busiest(part.steps, part.ranks, found, columns)

    def cost(self, mapping: Mapping) -> Cost:
        """Return everything about one mapping, without waiting for the compiler."""
        return single_cost(self.operator, self.accelerator, mapping)

    @cached_property
    def _kind(self) -> Rates:
        return self._kind_of(self._own)

    def _kind_of(self, columns: Columns) -> Rates:
        """Return how cycles are found at the bandwidths of some machines."""
        return kind_of_rates(self.operator, self.accelerator, columns.rates)

    def _check_layout(self, batch: MappingBatch) -> None:
        if batch.layout != self.layout:
            raise InputError("batch.layout", "must be the layout of the model", mend="Build the model with this layout")

    def _run(self, program: _Prepared, batch: MappingBatch, columns: Columns, out: Floats, threads: int) -> None:
        """Run a program over a batch on several threads; of costs, make the cycles those of the busiest instances."""
        count, settles = len(batch), self.walks.levels and len(out) > len(program.names)
        exact = self.walks.rates(columns) if settles else np.empty(0, dtype=np.int64)

        def work(first: int, last: int) -> None:
            span = first, min(last, count)
            kernel_run(program, batch.steps, batch.ranks, span, columns, self.scratch(program), out)
            if settles:
                self._settle(batch, span, columns, exact, out)

        if threads <= 1 or count <= LEAST_SHARED:
            work(0, count)
            return
        chunk = min(CHUNK, -(-count // (threads * LANES)) * LANES)
        share(lambda first: work(first, first + chunk), range(0, count, chunk), threads)

    def _settle(self, batch: MappingBatch, span: tuple[int, int], columns: Columns, rates: NDArray[np.int64],
                out: Floats) -> None:
        """Put cycles right where the first instance of a memory is not the busiest."""
        from tilewright.cost.dense.busiest_kernels import settle  # noqa: PLC0415 - compiled only where it is needed

        work: WalkWork | None = self._scratch.__dict__.get("walk")
        if work is None:
            work = self._scratch.__dict__["walk"] = self.walks.work()
        leakage = np.atleast_1d(np.asarray(columns.numbers[LEAKAGE], dtype=np.float64))
        settle(PackedNests(batch.steps, batch.ranks), span, self.walks.tables, rates, leakage, work, out,
               np.empty((0,) * 5))

    def scratch(self, program: _Prepared) -> tuple[Any, ...]:
        """Rows that the calling thread works in."""
        kept: dict[int, tuple[Any, ...]] = self._scratch.__dict__.setdefault("rows", {})
        # Programs live as long as the model, which holds them.
        rows = kept.get(id(program))
        if rows is None:
            rows = kept[id(program)] = program.scratch(self.layout.shape)
        return program.filled(rows)


def _prepared(operator: Operator, accelerator: Accelerator, layout: Layout, rows: Rows, even: bool,  # noqa: PLR0913, PLR0917
              kind: Rates) -> _Prepared:
    """Return the programs of a model: those of its kind, with its own sizes."""
    given, narrow = operator.sizes, narrow_enough(operator)
    found = _written(_alike(operator), accelerator.structure, layout, rows, narrow, even, kind)
    general = found.machines[0].of(given)
    short = found.machines[1].of(given) if even else general
    return replace(found, machines=(general, short), sizes=np.array([given[d] for d in layout.dimensions], np.int32))


@lru_cache(maxsize=1024)
def _alike(operator: Operator) -> Operator:
    """Return the least operator whose sizes are 1 where those of ``operator`` are."""
    return replace(operator, name="", attributes=(),
                   dimensions=tuple((name, min(size, 2)) for name, size in operator.sizes.items()))


@lru_cache(maxsize=1024)
def _written(operator: Operator, structure: Accelerator, layout: Layout, rows: Rows, narrow: bool,  # noqa: PLR0913, PLR0917
             even: bool, kind: Rates) -> _Prepared:
    """Write the programs of all layers whose sizes are 1 where those of ``operator`` are.

    Kept, as a network has few kinds of layers, and machines of one structure differ in numbers alone; a search over
    what memories keep takes hundreds. A program has 10 kB, and takes 10 ms to write and a fortieth of that to read.
    """
    plain = _written(operator, structure, layout, rows, narrow, False, kind) if even else None

    def write() -> _Prepared:
        model = Model(operator, structure, layout, narrow=narrow, even=even, rates=kind)
        machine, names = getattr(model, rows)()  # its methods have the names of rows
        general = machine if plain is None else plain.machines[0]
        return _Prepared((general, machine), np.float32 if narrow else np.float64, np.zeros(0, np.int32), names,
                         _rows_read(general, machine), tuple(model.parameters))

    return _programs().value(repr((operator, structure, layout, rows, narrow, even, kind, np.__version__)), write)


@cache
def _programs() -> KeptValues:
    """Where programs are kept: where the compiled engine is."""
    from tilewright.cost.dense.kernel import FOLDER  # noqa: PLC0415 - as below

    return KeptValues(Path(FOLDER), "program", MOST_PROGRAMS)


def _rows_read(*machines: Machine) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return the rows (slot, dimension) of the steps and of the ranks that programs look at."""
    code, found = np.concatenate([machine.code for machine in machines]), []
    for letter in "sr":
        first = np.array([operation.signature.find(letter) + 1 for operation in OPERATIONS])[code[:, 0]]
        lines = np.flatnonzero(first)
        rows = np.stack([code[lines, first[lines]], code[lines, first[lines] + 1]], axis=1)
        found.append(np.unique(rows, axis=0))
    return found[0], found[1]


MOST_PROGRAMS = 4_000
"""Kept on disk: 40 MB."""
CACHE_LINE = 64
BLOCKS_FETCHED = 4
CHUNK = 4 * BLOCKS_FETCHED * LANES
"""Mappings that a thread takes at a time, at most."""
LEAST_SHARED = 8 * LANES
"""Fewer are scored sooner than another thread wakes up."""


def kernel_run(  # noqa: PLR0913, PLR0917 - what the kernel takes
    program: _Prepared, steps: NDArray[np.int32], ranks: NDArray[np.int8], span: tuple[int, int],
    columns: Columns, scratch: tuple[Any, ...], out: Floats,
) -> None:
    """Run the compiled kernel, which is loaded at the first call."""
    from tilewright.cost.dense.kernel import run  # noqa: PLC0415 - Numba takes long to import, and single mappings need none

    await_engine()
    run(steps, ranks, *span, program.arrays, columns.rows(program.parameters), scratch, out)


def _check(operator: Operator, accelerator: Accelerator, layout: Layout) -> None:
    for tensor in operator.tensors:
        tensor_bits(tensor, accelerator)  # a width that is missing is told by the machine's own name
    check_homes(operator, accelerator, layout.keeps)
    for memory in accelerator.memories:
        if memory.block_words > 1 and accelerator.instances(memory.name) > 1:
            raise InputError(f"{accelerator.name}.{memory.name}.block_words", "must be 1 behind a fan-out",
                             memory.block_words, "Give the energy per word instead")


def compile_kernel() -> None:
    """Score one mapping, so that the kernel is compiled and kept on disk."""
    model = _smallest()
    model.score(_only_mapping(model))


def compile_walks() -> None:
    """Look for the busiest instances of one mapping, so that what does so is compiled and kept on disk."""
    array = Fanout("A", (2, 1))
    model = _smallest(array, replace(_KEEPS_ALL, name="I", bandwidth=Bandwidth(read=1.0)))
    batch = _only_mapping(model)
    model.walks.busiest(batch.steps, batch.ranks, {})


_KEEPS_ALL = Memory("M", ("inputs", "weights", "outputs"), AccessEnergy(0.0, 0.0, 0.0, 0.0))


def _smallest(*inner: Fanout | Memory) -> DenseModel:
    slides = convolution("one", in_channels=1, out_channels=1, kernel=(2,), stride=(2,), out_size=(2,))
    return DenseModel(slides, Accelerator("one", (_KEEPS_ALL, *inner)))


def _only_mapping(model: DenseModel) -> MappingBatch:
    shape = (*model.layout.shape, 1)
    return MappingBatch(model.layout, np.ones(shape, dtype=np.int32), np.zeros(shape, dtype=np.int8))

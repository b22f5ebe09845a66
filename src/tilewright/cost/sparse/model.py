"""The sparse cost model: what the zeros of tensors save on a machine that makes use of them (docs/sparsity.md).

In the manner of Sparseloop (Wu et al., MICRO 2022): the counts of the static schedule first, then what of them is left
in the mean, by format and by what is gated or skipped, then cycles and energy as ever. Data are words of the tensors;
metadata move beside them and are never left out, as they say what can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.base import InputError, share
from tilewright.cost.dense.nest import Boundary, Nest
from tilewright.cost.dense.scoring import DenseModel
from tilewright.cost.dense.single import tallies_of
from tilewright.cost.hardware import Columns, HardwareBatch, own_columns
from tilewright.cost.records import KINDS, Cost, Count, Expected, MemoryTraffic
from tilewright.cost.sparse.plan import Extents, Floats, KeptTensor, Plan, TilesKept
from tilewright.cost.sparse.rates import Share, Shares, check_leaders
from tilewright.cost.tables import CostBatch, LayerCosts, Needs, TallyKey, need_keys, table_keys
from tilewright.hardware import LEAKAGE, NETWORK, RATE, Accelerator, Bandwidth, Fanout, Memory, Sparsity
from tilewright.mapping import Layout, Mapping, MappingBatch, held_bits, lane_use, stored, tensor_bits
from tilewright.workload import Operator

Tallies = dict[TallyKey, Floats]
ACCESSES = ("read", "fill", "update", "drain")
"""Kinds of access in the order of `KINDS`, as energies are named."""
CHUNK = 8192
"""Mappings scored in one go: enough that NumPy's overhead is small, few enough to share among threads."""


@dataclass(frozen=True)
class _MovedShares:
    """What is moved for each word that the static schedule moves, by kind of access.

    ``data`` are words of the tensor that take energy, ``timed`` those that also take time; ``metadata`` are bits,
    whatever the access.
    """

    data: dict[str, Share]
    timed: dict[str, Share]
    metadata: Share


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
    def plan(self) -> "Plan":
        """What batches of this layout have in common."""
        return Plan(self.operator, self.accelerator, self.shares, self.layout.keeps)

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
                     threads: int) -> tuple[CostBatch, Tallies]:
        """Return costs, and what else is asked for by ``keys``."""
        found, columns = np.empty((7 + len(keys), len(batch))), self.dense.columns(hardware, len(batch))

        def work(first: int) -> None:
            span = first, min(first + CHUNK, len(batch))
            own = columns.take(slice(*span))
            extents = batch.extents(self.operator.sizes, slice(*span))
            sums = Sums(self.plan, self.dense.tallies(batch, span, own), extents, own)
            told = (sums.latency, sums.energy, sums.excess, sums.steps, sums.steady, sums.ramp,
                    sums.outermost_bytes, *map(sums.told, keys))
            for row, values in zip(found, told, strict=True):
                row[slice(*span)] = values

        if len(batch):
            share(work, range(0, len(batch), CHUNK), threads)
        return self.dense.costs(found, columns), dict(zip(keys, found[7:], strict=True))

    def cost(self, mapping: Mapping) -> Cost:
        """Return everything about one mapping, without waiting for the compiler."""
        nest = Nest(self.operator, self.accelerator, mapping)
        plan = self.plan if nest.keeps == self.layout.keeps else Plan(self.operator, self.accelerator, self.shares,
                                                                      nest.keeps)
        extents = [{name: np.array([float(extent)]) for name, extent in nest.extents(level).items()}
                   for level in range(len(self.accelerator.levels))]
        return Sums(plan, tallies_of(nest), extents, own_columns(self.accelerator)).cost()


class Sums:
    """The costs of mappings from their tallies, on machines with these numbers; arrays (b,)."""

    def __init__(self, plan: Plan, tallies: Tallies, extents: list[Extents], columns: Columns) -> None:
        self.plan, self.tallies, self.columns = plan, tallies, columns
        self.accelerator, self.operator = plan.accelerator, plan.operator
        self.lanes = lane_use(plan.operator, plan.accelerator)
        self._made: dict[tuple[str, int, bool], Share] = {}
        self.tiles = TilesKept(plan, extents)
        self.moved = {(kept.level, kept.tensor.name): self._moved(kept) for kept in plan.kept}

    def told(self, key: TallyKey) -> Floats:
        """Return words, needs or lanes (see `table_keys`)."""
        return self.tiles.told(key) if key[0] in ("tile", "room") else self.tallies[key]

    def made(self, at: Boundary, *, time: bool) -> Share:
        """Share of the crossings of a boundary that are made (or take time)."""
        key = at.tensor.name, at.parent, time
        if key not in self._made:
            kind = "updates" if at.tensor.is_output else "reads"

            def served(parent: int) -> Floats:
                return self.operator.macs / self.tallies["total", parent, at.tensor.name, kind]

            self._made[key] = self.plan.shares.made(at, self.plan.leading(at, time=time), served)
        return self._made[key]

    def _moved(self, kept: KeptTensor) -> _MovedShares:
        """Return what is moved for each word of the schedule."""
        zeros = self.plan.shares.zeros[kept.tensor.name]
        words: Share = 1.0
        metadata: Share = 0.0
        if kept.compressed is not None:
            found = stored(kept.compressed, zeros, self.tiles.sides(kept.level, kept.tensor))
            words, metadata = found.words, found.metadata_bits
        edges = {"reads": kept.inward, "updates": kept.inward, "fills": kept.outward, "drains": kept.outward}
        by_time = [{kind: words * self.made(edge, time=time) for kind, edge in edges.items() if edge is not None}
                   for time in (False, True)]
        return _MovedShares(by_time[0], by_time[1], metadata)

    def _words(self, view: str, kept: KeptTensor, kind: str, *, time: bool) -> Share:
        """Words of the memory's own width, metadata included."""
        count = self.tallies[view, kept.level, kept.tensor.name, kind]
        moved = self.moved[kept.level, kept.tensor.name]
        shares = moved.timed if time else moved.data
        if kind not in shares:
            return 0.0
        if not time and kept.memory.block_words > 1:
            block = kept.memory.block_words
            data: Share = np.ceil(count * shares[kind] / block) * block * kept.scale
        else:
            share = shares[kind] * kept.scale
            data = count if isinstance(share, float) and share == 1.0 else count * share
        if kept.compressed is None:
            return data
        return data + count * moved.metadata / kept.memory.word_bits

    def _port(self, level: int, view: str, kinds: tuple[str, ...]) -> Share:
        """Words through the ports of the instance that is busiest in a view (`walks.VIEWS`)."""
        kept = self.plan.of(level)
        view = view if any((view, level, k.tensor.name, kind) in self.tallies for k in kept for kind in kinds) else (
            "busiest")
        return sum((self._words(view, k, kind, time=True) for k in kept for kind in kinds), start=0.0)

    def _ports(self, level: int) -> tuple[Share, Share, Share]:
        """Words read, written, and both, each at the instance that is busiest there."""
        read, written = ("reads", "drains"), ("updates", "fills")
        return (self._port(level, "read", read), self._port(level, "write", written),
                self._port(level, "shared", read + written))

    @cached_property
    def steps(self) -> Floats:
        """Steps of compute that are not skipped, in the mean."""
        share = self.plan.shares.performed(time=True)
        steps = self.tallies["total", -1, "", "steps"]
        return steps if share == 1 else np.ceil(_whole(steps * share))

    @cached_property
    def paced(self) -> Floats:
        """Cycles of the steps."""
        pace = self.lanes.cycles
        return self.steps if pace == 1 else np.ceil(self.steps * pace.numerator / pace.denominator)

    def _cycles(self, words: Share, memory: Memory, port: str) -> Share:
        """Cycles to move words through a port, rounded up, but for the last digits of means; 0 where unlimited."""
        key = memory.name, RATE.format(port)
        if key not in self.columns.numbers:
            return 0.0
        moved, cycles = self.columns.exact(key)
        taken: Share = np.ceil(np.asarray(words) * cycles / moved * (1 - 2.0**-48))
        return taken

    def _slower(self, words: Share, memory: Memory, port: str) -> Share:
        """Cycles to move words through a port or the one that all accesses share, whichever takes longer."""
        return _most(self._cycles(words, memory, port), self._cycles(words, memory, "shared"))

    @cached_property
    def traffic(self) -> dict[int, tuple[Share, Share, Share]]:
        """Words read and written at the busiest instance of each memory with limited ports, and the cycles."""
        found: dict[int, tuple[Share, Share, Share]] = {}
        for level, memory in self.plan.memories():
            if memory.bandwidth == Bandwidth():
                continue
            read, written, both = self._ports(level)
            found[level] = read, written, _most(
                self._cycles(read, memory, "read"), self._cycles(written, memory, "write"),
                self._cycles(both, memory, "shared"))
        return found

    @cached_property
    def _blocked(self) -> Floats:
        """Steps, and the cycles for which single-buffered memories block them."""
        total = self.paced
        for level, memory in self.plan.memories():
            total = total + self._blocking(level, memory)
        return total

    def _blocking(self, level: int, memory: Memory) -> Share:
        """Cycles in which compute waits for the tiles of a single-buffered memory to come and go."""
        if not level or memory.buffering != "single" or level not in self.traffic:
            return 0.0
        return sum((self._slower(self._port(level, "blocking", (kind,)), memory, port)
                    for kind, port in (("drains", "read"), ("fills", "write"))), start=0.0)

    @cached_property
    def steady(self) -> Floats:
        """Steady cycles."""
        return np.asarray(_most(self._blocked, *(cycles for _, _, cycles in self.traffic.values())))

    @cached_property
    def ramp(self) -> Floats:
        """Cycles of the cold start and the tail."""
        total = np.zeros(len(self.steps))
        for level, memory in self.plan.memories():
            if level and memory.buffering != "single":
                total = total + self._cold_start(level, memory) + self._tail(level, memory)
        return total

    def _edge(self, kept: KeptTensor, child: int, side: str, kind: str) -> Share:
        """Words of one side of a boundary in one visit, in the memory's own width."""
        count = self.tallies.get(("edge", child, kept.tensor.name, side))
        if count is None:
            return 0.0
        moved = self.moved[kept.level, kept.tensor.name]
        return count * (moved.timed[kind] * kept.scale) + count * (moved.metadata / kept.memory.word_bits)

    def _cold_start(self, level: int, memory: Memory) -> Share:
        entering = [kept for kept in self.plan.of(level) if kept.outward is not None and not kept.tensor.is_output]
        own = sum((self._edge(kept, level, "own", "fills") for kept in entering), start=0.0)
        slowest = [self._slower(own, memory, "write")]
        for parent in {kept.outward.parent for kept in entering if kept.outward is not None}:
            above = {kept.tensor.name: kept for kept in self.plan.of(parent)}
            asked = sum((self._edge(above[kept.tensor.name], level, "parent", "reads") for kept in entering
                         if kept.outward is not None and kept.outward.parent == parent), start=0.0)
            slowest.append(self._slower(asked, next(iter(above.values())).memory, "read"))
        return _most(*slowest)

    def _tail(self, level: int, memory: Memory) -> Share:
        for kept in self.plan.of(level):
            if kept.tensor.is_output and kept.outward is not None:
                parent = next(k for k in self.plan.of(kept.outward.parent) if k.tensor is kept.tensor)
                own = self._edge(kept, level, "own", "drains")
                merged = self._edge(parent, level, "parent", "updates")
                return _most(self._slower(own, memory, "read"), self._slower(merged, parent.memory, "write"))
        return 0.0

    @cached_property
    def latency(self) -> Floats:
        """Cycles."""
        return self.steady + self.ramp

    @cached_property
    def energies(self) -> dict[str, Share]:
        """Picojoules by memory, compute unit, fan-out and leakage."""
        found: dict[str, Share] = {}
        numbers = self.columns.numbers
        for level, memory in self.plan.memories():
            found[memory.name] = sum((self._accesses_pj(kept) for kept in self.plan.of(level)), start=0.0)
        name = self.accelerator.compute.name
        performed = self.operator.macs * self.plan.shares.performed(time=False)
        found[name] = performed * numbers[name, "energy_pj_per_mac"] * self.lanes.energy
        for level, fanout in enumerate(self.accelerator.levels):
            if isinstance(fanout, Fanout):
                paid = fanout.network_energy_pj_per_word > 0
                found[fanout.name] = self._network_words(level) * numbers[fanout.name, NETWORK] if paid else 0.0
        if self.accelerator.leakage_mw:
            found["leakage"] = self.latency * numbers[LEAKAGE]
        return found

    def _network_words(self, level: int) -> Share:
        """Words across a fan-out, as the child counts them; metadata in words of the tensor."""
        total: Share = 0.0
        for at in self.plan.crossings:
            if not at.parent < level < at.child:
                continue
            kinds = ("fills", "drains") if at.tensor.is_output else ("fills",)
            for kind in kinds:
                count = self.tallies["total", at.child, at.tensor.name, kind]
                moved = self.moved.get((at.child, at.tensor.name))
                if moved is None:
                    total = total + count * self.made(at, time=False)
                else:
                    bits = float(tensor_bits(at.tensor, self.accelerator))
                    total = total + count * (moved.data[kind] + moved.metadata / bits)
        return total

    def _accesses_pj(self, kept: KeptTensor) -> Share:
        """Picojoules of what is moved of a tensor at a memory."""
        prices = [self.columns.numbers[kept.memory.name, f"{kind}_energy_pj_per_word"] for kind in ACCESSES]
        return sum((self._words("total", kept, kind, time=False) * price
                    for kind, price in zip(KINDS, prices, strict=True)), start=0.0)

    @cached_property
    def energy(self) -> Floats:
        """Picojoules."""
        return np.asarray(sum(self.energies.values(), start=np.zeros(len(self.steps))))

    @cached_property
    def excess(self) -> Floats:
        """How far over arrays and capacities, as of `DenseModel`."""
        total = self.tallies["total", -1, "", "arrays"].copy()
        for level, memory in self.plan.memories():
            for what, needed in self.tiles.rooms[level].items():
                capacity = self.columns.numbers.get((memory.name, what))
                if capacity is not None:
                    total += np.maximum(0.0, needed / capacity - 1.0)
        return total

    @property
    def outermost_bytes(self) -> Floats:
        """Bytes that are moved at the outermost memory, metadata included."""
        total = np.zeros(len(self.steps))
        for kept in self.plan.of(0):
            moved, bits = self.moved[0, kept.tensor.name], float(tensor_bits(kept.tensor, self.accelerator))
            for kind in KINDS:
                count = self.tallies["total", 0, kept.tensor.name, kind]
                total = total + count * ((moved.data.get(kind, 0.0) if kind in ("reads", "updates") else 0.0) * bits
                                         + moved.metadata) / 8
        return total

    def cost(self) -> Cost:
        """Return everything about the one mapping of a batch of one."""
        names = [level.name for level in self.accelerator.levels]
        energies = {name: _one(pj) for name, pj in self.energies.items()}
        traffic = {memory.name: self._memory_traffic(level, memory) for level, memory in self.plan.memories()}
        steady, ramp = int(_one(self.steady)), int(_one(self.ramp))
        timed = self.operator.macs * self.plan.shares.performed(time=True)
        counts = {(names[k.level], k.tensor.name): Count(**{
            kind: int(_one(self.tallies["total", k.level, k.tensor.name, kind])) for kind in KINDS})
            for k in self.plan.kept}
        return Cost(
            macs=self.operator.macs, steps=int(_one(self.steps)), steady_cycles=steady, ramp_cycles=ramp,
            energy_pj=sum(energies.values()), energy_by_component_pj=energies, counts=counts, traffic=traffic,
            bottleneck="compute" if _one(self._blocked) >= steady else max(traffic, key=lambda n: traffic[n].cycles),
            utilisation=timed * float(self.lanes.cycles) / (self.accelerator.compute_instances * max(1, steady + ramp)),
            expected={(names[k.level], k.tensor.name): self._expected(k) for k in self.plan.kept},
            performed_macs=self.operator.macs * self.plan.shares.performed(time=False),
            paced_cycles=None if self.lanes.cycles == 1 else int(_one(self.paced)),
            energy_by_tensor_pj={(k.memory.name, k.tensor.name): _one(self._accesses_pj(k)) for k in self.plan.kept},
        )

    def _memory_traffic(self, level: int, memory: Memory) -> MemoryTraffic:
        read, written, _ = self._ports(level)
        cycles = self.traffic[level][2] if level in self.traffic else 0.0
        return MemoryTraffic(_one(read), _one(written), int(_one(cycles)), int(_one(self._blocking(level, memory))))

    def _expected(self, kept: KeptTensor) -> Expected:
        moved = self.moved[kept.level, kept.tensor.name]
        counts = {kind: self.tallies["total", kept.level, kept.tensor.name, kind] for kind in KINDS}
        words = {kind: _one(count * moved.data.get(kind, 0.0)) for kind, count in counts.items()}
        return Expected(**words, metadata_bits=_one(sum(counts.values()) * moved.metadata))


def _whole(words: Share) -> Share:
    """Take the last digits off, so that what is whole but for rounding is not rounded up."""
    return np.asarray(words) * (1.0 - 1e-12)


def _most(*values: Share) -> Share:
    found = values[0]
    for value in values[1:]:
        found = np.maximum(found, value)
    return found


def _one(value: Share) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def cost_model(operator: Operator, accelerator: Accelerator, layout: Layout | None = None) -> DenseModel | SparseModel:
    """Return the model of a machine: sparse where it has a ``sparsity`` section, else dense.

    Raises an `InputError`, as of the models.
    """
    return (SparseModel if accelerator.sparsity is not None else DenseModel)(operator, accelerator, layout)



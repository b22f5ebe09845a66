"""The full cost of one mapping from the closed forms: counts, cycles, energy (counting rules 5 to 9)."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.entries import VIEWS
from tilewright.cost.dense.nest import Boundary, Nest, carries, memory_at
from tilewright.cost.dense.walks import Walks
from tilewright.cost.records import KINDS, Cost, Count, MemoryTraffic
from tilewright.cost.tables import TallyKey
from tilewright.hardware import Accelerator, Fanout, Memory, exact_rate
from tilewright.mapping import Layout, Mapping, Slot, compute_cycles, held_bits, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor

Counts = dict[tuple[int, str], Count]


@dataclass(frozen=True)
class NestParts:
    """What one nest moves and takes before it is put together: counts by (level, tensor), cycles, ramps by level."""

    counts: Counts
    traffic: dict[str, MemoryTraffic]
    steps: int
    compute_cycles: int
    cold_start: int
    tail: int

    @property
    def blocked_cycles(self) -> int:
        """Cycles of compute and of its waits for single-buffered memories."""
        return self.compute_cycles + sum(moved.blocking_cycles for moved in self.traffic.values())


def nest_parts(nest: Nest, there: frozenset[str] = frozenset()) -> NestParts:
    """Return what a nest moves and takes.

    Of operands that are ``there`` from a nest before, tiles that no loop advances are not brought in.
    """
    totals, busiest = counts(nest, busiest=False), counts(nest, busiest=True)
    others = busiest_counts(nest, busiest)
    for found in (totals, busiest, *(moved for views in others.values() for moved in views.values())):
        _leave_out(nest, there, found)
    ports = {level: PortWords(nest, others.get(level, {}), busiest, level) for level in memory_levels(nest)}
    steps = cf.steps(nest)
    overlapped = [level for level in ports if level and not _single(nest, level)]
    return NestParts(
        totals, {nest.mapping.levels[level].level: port.traffic() for level, port in ports.items()}, steps,
        compute_cycles(steps, nest.operator, nest.accelerator),
        sum(cold_start(nest, level) for level in overlapped), sum(tail(nest, level) for level in overlapped))


def _leave_out(nest: Nest, there: frozenset[str], found: Counts) -> None:
    for tensor in nest.operator.operands if there else ():
        for boundary in nest.boundaries(tensor) if tensor.name in there else ():
            if boundary.child < len(nest.mapping.levels) and cf.innermost_advancing(nest, boundary) < 0:
                for level, kind in ((boundary.parent, "reads"), (boundary.child, "fills")):
                    if (level, tensor.name) in found:
                        found[level, tensor.name] = replace(found[level, tensor.name], **{kind: 0})


def single_cost(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Cost:
    """Return the cost of ``mapping``, exact by the counting rules; legality is not looked at."""
    nest = Nest(operator, accelerator, mapping)
    parts = nest_parts(nest)
    traffic, blocked, use = parts.traffic, parts.blocked_cycles, lane_use(operator, accelerator)
    steady = max(blocked, *(moved.cycles for moved in traffic.values()))
    ramp = parts.cold_start + parts.tail
    by_tensor = energy_by_tensor(nest, parts.counts)
    energy = energy_by_component(nest, parts.counts, by_tensor, steady + ramp)
    names = [entry.level for entry in mapping.levels]
    return Cost(
        macs=operator.macs,
        steps=parts.steps,
        steady_cycles=steady,
        ramp_cycles=ramp,
        energy_pj=sum(energy.values()),
        energy_by_component_pj=energy,
        counts={(names[level], tensor): count for (level, tensor), count in parts.counts.items() if level < len(names)},
        traffic=traffic,
        bottleneck="compute" if blocked >= steady else max(traffic, key=lambda name: traffic[name].cycles),
        utilisation=float(operator.macs * use.cycles) / (accelerator.compute_instances * (steady + ramp)),
        energy_by_tensor_pj=by_tensor,
        paced_cycles=None if use.cycles == 1 else parts.compute_cycles,
    )


def memory_levels(nest: Nest) -> list[int]:
    """Level indices of the memories, outermost first."""
    return [index for index, level in enumerate(nest.accelerator.levels) if isinstance(level, Memory)]


def _single(nest: Nest, level: int) -> bool:
    return memory_at(nest.accelerator, level).buffering == "single"


def _scale(nest: Nest, level: int, tensor: Tensor) -> Fraction:
    """Words of the memory's own width per word of ``tensor``; of an output per partial sum."""
    return Fraction(held_bits(tensor, nest.accelerator), memory_at(nest.accelerator, level).word_bits)


def _final_scale(nest: Nest, level: int, tensor: Tensor) -> Fraction:
    """Words of the memory's own width per word of an output that comes to ``level`` for the last time."""
    if level != nest.keepers(tensor)[0]:
        return _scale(nest, level, tensor)
    return Fraction(tensor_bits(tensor, nest.accelerator), memory_at(nest.accelerator, level).word_bits)


def _spared(nest: Nest, level: int) -> Fraction:
    """Words of its own width that updates of a memory take less than partial sums would: at home the last are final."""
    output = nest.operator.output
    return output.words(nest.operator.sizes) * (_scale(nest, level, output) - _final_scale(nest, level, output))


def counts(nest: Nest, *, busiest: bool) -> Counts:
    """Count by (level, tensor); the compute unit stands at the level after the last.

    Summed over instances, or, for ``busiest``, of the first instance of each memory: no other is busier but where
    `busiest_counts` says so.
    """
    found: Counts = {}
    for tensor in nest.operator.tensors:
        outermost = nest.keepers(tensor)[0]
        reads, updates, fills, evicted = {}, {}, {outermost: 0}, {outermost: tensor.words(nest.operator.sizes)}
        for boundary in nest.boundaries(tensor):
            parent, child = boundary.parent, boundary.child
            moved = cf.words(nest, boundary, cf.View(merged=True, first_outside=parent if busiest else 0))
            received = cf.words(nest, boundary, cf.View(merged=False, first_outside=child if busiest else 0))
            if not tensor.is_output:
                reads[parent], updates[parent], fills[child], evicted[child] = moved, 0, received, 0
                continue
            read_back = moved - (evicted[parent] - fills[parent])
            reads[parent], updates[parent], evicted[child] = read_back, moved, received
            if cf.combines(nest, boundary):
                fills[child] = 0
            else:
                fills[child] = delivered_to_first(nest, boundary) if busiest else read_back
        for level, filled in fills.items():
            drained = evicted[level] if level != outermost else 0
            found[level, tensor.name] = Count(reads.get(level, 0), filled, updates.get(level, 0), drained)
    return found


def busiest_counts(nest: Nest, first: Counts) -> dict[int, dict[str, Counts]]:
    """Count by level, view (`walks.VIEWS`) and (level, tensor) where another instance than the first may be busier."""
    operator, loops = nest.operator, nest.loops
    layout = Layout(tuple(operator.sizes), tuple(level.name for level in nest.accelerator.levels),
                    tuple(Slot(loop.level, loop.side or "T") for loop in loops), nest.keeps)
    walks = Walks(operator, nest.accelerator, layout, unlimited=True)
    if not walks.levels:
        return {}
    steps = np.repeat(walks.sizes[None, :, None], len(loops) + 1, axis=0).astype(np.int32)
    for at, loop in enumerate(loops):
        steps[at:, layout.dimensions.index(loop.dimension)] = loop.step
    out = np.array([[[[getattr(first.get((at, t.name), Count(0, 0, 0, 0)), kind) for kind in KINDS]
                      for t in operator.tensors]] * len(VIEWS) for at in walks.levels], dtype=np.float64)[..., None]
    walks.write(steps, np.zeros(steps.shape, dtype=np.int8), (0, 1), out)
    return {at: {view: {(at, tensor.name): Count(*(int(words) for words in out[m, v, t, :, 0]))
                        for t, tensor in enumerate(operator.tensors)} for v, view in enumerate(VIEWS)}
            for m, at in enumerate(walks.levels)}


def delivered_to_first(nest: Nest, boundary: Boundary) -> int:
    """Partial sums read back into the first instance of the child: of merging instances it takes them all (rule 5).

    Only the words of that instance are followed, from the outermost memory inward: what it evicts, less what starts
    from zero in its parent's own visit. Where lanes spread a sliding axis of the output (transposed convolution), a
    word may come from another lane's earlier visit: `busiest_counts` follows it.
    """
    chain = [b for b in nest.boundaries(boundary.tensor) if b.child <= boundary.child]
    starts = _evicted_words_of_first(nest, chain[0].parent, boundary)
    for inner in chain[:-1]:
        if cf.combines(nest, inner):
            starts = _evicted_words_of_first(nest, inner.child, boundary)
    return _evicted_words_of_first(nest, boundary.child, boundary) - starts


def _evicted_words_of_first(nest: Nest, keeper: int, boundary: Boundary) -> int:
    """Words that the first instance of ``keeper`` evicts over all visits, of those that the child's first touches."""
    at_keeper = Boundary(boundary.tensor, boundary.parent, keeper)
    # The home of the tensor holds one tile from beginning to end.
    home = keeper == nest.keepers(boundary.tensor)[0]
    outside = [] if home else cf.roles(nest, at_keeper, cf.View(merged=False, first_outside=keeper))
    to_child = cf.first_lanes(loop for loop in nest.loops if loop.level < boundary.child)
    return prod(cf.factors_of(boundary.tensor, nest.operator.sizes, cf.by_dimension(nest, outside),
                              cf.by_dimension(nest, to_child)).values())


class PortWords:
    """Words through the ports of the busiest instance of one memory, in words of the memory's own width.

    ``views`` are the counts of the instance that is busiest at each port; those left out are of the ``first``.
    """

    def __init__(self, nest: Nest, views: dict[str, Counts], first: Counts, level: int) -> None:
        self.memory, self._spared = memory_at(nest.accelerator, level), _spared(nest, level)
        self._blocks = level > 0 and _single(nest, level)
        self._moved = {view: [(found[level, t.name], _scale(nest, level, t)) for t in nest.operator.tensors
                              if (level, t.name) in first]
                       for view, found in ((view, views.get(view, first)) for view in VIEWS)}

    def _words(self, view: str, *kinds: str) -> Fraction:
        less = self._spared if "updates" in kinds else Fraction(0)
        return sum((sum(getattr(count, kind) for kind in kinds) * scale for count, scale in self._moved[view]), -less)

    def traffic(self) -> MemoryTraffic:
        """Words read and written, and the cycles that the slowest port needs for them."""
        ports = self.memory.bandwidth
        read, written = self._words("read", "reads", "drains"), self._words("write", "fills", "updates")
        shared = self._words("shared", *KINDS)
        cycles = max(cycles_at(read, ports.read), cycles_at(written, ports.write), cycles_at(shared, ports.shared))
        return MemoryTraffic(float(read), float(written), cycles, self._blocking_cycles() if self._blocks else 0)

    def _blocking_cycles(self) -> int:
        ports = self.memory.bandwidth
        drained, filled = self._words("blocking", "drains"), self._words("blocking", "fills")
        return cycles_at(drained, ports.read, ports.shared) + cycles_at(filled, ports.write, ports.shared)


def cycles_at(words: Fraction | int, *bandwidths: float | None) -> int:
    """Cycles to move ``words`` at the slowest of some words per cycle, rounded up; None is unlimited."""
    return max((ceil(words / exact_rate(rate)) for rate in bandwidths if rate is not None), default=0)


def cold_start(nest: Nest, level: int) -> int:
    """Cycles in which the first operand tiles of a memory come in and nothing overlaps (rule 8)."""
    memory = memory_at(nest.accelerator, level)
    kept = [b for t in nest.operator.operands for b in nest.boundaries(t) if b.child == level]
    inside = sum(first_received(nest, b) * _scale(nest, level, b.tensor) for b in kept)
    cycles = [cycles_at(inside, memory.bandwidth.write, memory.bandwidth.shared)]
    for parent in {b.parent for b in kept}:
        asked = sum(first_read(nest, b) * _scale(nest, parent, b.tensor) for b in kept if b.parent == parent)
        ports = memory_at(nest.accelerator, parent).bandwidth
        cycles.append(cycles_at(asked, ports.read, ports.shared))
    return max(cycles)


def first_received(nest: Nest, boundary: Boundary) -> int:
    """Words that an instance of the child waits for at the cold start: the first tile, or what is first read of it."""
    tile = boundary.tensor.words(nest.extents(boundary.child))
    return min([tile, *(_one_visit(nest, inward, last=False) for inward in _forwarded(nest, boundary))])


def first_read(nest: Nest, boundary: Boundary) -> int:
    """Words that the parent's first instance reads for that."""
    return min([_one_visit(nest, boundary, last=False), *(
        _one_visit(nest, replace(inward, parent=boundary.parent), last=False)
        for inward in _forwarded(nest, boundary))])


def _forwarded(nest: Nest, boundary: Boundary) -> list[Boundary]:
    """Return the boundary inside this one, if the memory between forwards words."""
    forwards = memory_at(nest.accelerator, boundary.child).forwards == "words"
    return [b for b in nest.boundaries(boundary.tensor) if b.parent == boundary.child] if forwards else []


def last_written(nest: Nest, boundary: Boundary) -> int:
    """Words that the last visit of the children writes to the parent's first instance."""
    return _one_visit(nest, boundary, last=True)


def tail(nest: Nest, level: int) -> int:
    """Cycles in which the last output tile of a memory goes out and nothing overlaps (rule 8)."""
    for boundary in nest.boundaries(nest.operator.output):
        if boundary.child != level:
            continue
        scale = {at: _final_scale(nest, at, boundary.tensor) for at in (boundary.parent, level)}
        own = last_tile(nest, boundary) * scale[level]
        merged = last_written(nest, boundary) * scale[boundary.parent]
        read, write = (memory_at(nest.accelerator, at).bandwidth for at in (level, boundary.parent))
        return max(cycles_at(own, read.read, read.shared), cycles_at(merged, write.write, write.shared))
    return 0


def last_tile(nest: Nest, boundary: Boundary) -> int:
    """Words of the last tile of the child's first instance."""
    extents = dict(nest.operator.sizes)
    for loop in nest.loops:
        if loop.level < boundary.child:
            extent = extents[loop.dimension]
            extents[loop.dimension] = min(extent, loop.step) if loop.spatial else (extent - 1) % loop.step + 1
    return boundary.tensor.words(extents)


def _one_visit(nest: Nest, boundary: Boundary, *, last: bool) -> int:
    """Words between the parent's first instance and all its children in the first or last visit."""
    found = cf.roles(nest, boundary, cf.View(merged=True, first_outside=boundary.parent))
    if not last:
        found = [cf.RoledLoop(r.loop, cf.Role.FIRST) if r.role is cf.Role.TIME else r for r in found]
    loops = cf.by_dimension(nest, found)
    if last:
        loops = {name: cf.last_visit(own) for name, own in loops.items()}
    return prod(cf.factors_of(boundary.tensor, nest.operator.sizes, loops).values())


def energy_by_tensor(nest: Nest, totals: Counts) -> dict[tuple[str, str], float]:
    """Energy of the accesses by memory and tensor, in pJ (rule 9)."""
    memories = [(level, memory_at(nest.accelerator, level)) for level in memory_levels(nest)]
    found = {(memory.name, t.name): _access_energy(memory, totals[level, t.name]) * float(_scale(nest, level, t))
             for level, memory in memories for t in nest.operator.tensors if (level, t.name) in totals}
    output = nest.operator.output
    home = nest.keepers(output)[0]
    found[memory_at(nest.accelerator, home).name, output.name] -= _spared_energy(nest, totals, home)
    return found


def energy_by_component(nest: Nest, totals: Counts, by_tensor: dict[tuple[str, str], float], latency_cycles: int,
                        ) -> dict[str, float]:
    """Energy by memory, compute unit, fan-out network and leakage, in pJ (rule 9)."""
    accelerator, operator = nest.accelerator, nest.operator
    found = {memory.name: sum((pj for (name, _), pj in by_tensor.items() if name == memory.name), start=0.0)
             for memory in accelerator.memories}
    found[accelerator.compute.name] = operator.macs * accelerator.compute.energy_pj_per_mac * lane_use(
        operator, accelerator).energy
    for level, fanout in enumerate(accelerator.levels):
        if isinstance(fanout, Fanout):
            found[fanout.name] = network_words(nest, totals, level) * fanout.network_energy_pj_per_word
    leakage = accelerator.leakage_mw * latency_cycles / accelerator.frequency_mhz * 1000
    if leakage:
        found["leakage"] = leakage
    return found


def _access_energy(memory: Memory, count: Count) -> float:
    energy, block = memory.energy, memory.block_words
    kinds = ((count.reads, energy.read_pj), (count.fills, energy.fill_pj),
             (count.updates, energy.update_pj), (count.drains, energy.drain_pj))
    return sum(-(-words // block) * block * pj for words, pj in kinds)


def _spared_energy(nest: Nest, totals: Counts, level: int) -> float:
    """Energy that the last updates at an output's home take less than updates of partial sums would."""
    memory, output = memory_at(nest.accelerator, level), nest.operator.output
    if not _spared(nest, level):
        return 0.0
    words, block = output.words(nest.operator.sizes), memory.block_words
    updates = totals[level, output.name].updates
    whole, others, last = (-(-count // block) * block for count in (updates, updates - words, words))
    partial, final = _scale(nest, level, output), _final_scale(nest, level, output)
    return float((whole - others) * partial - last * final) * memory.energy.update_pj


def network_words(nest: Nest, totals: Counts, level: int) -> int:
    """Words that instances behind a fan-out receive from, or send to, the parent's side."""
    total = 0
    for tensor in nest.operator.tensors:
        for boundary in nest.boundaries(tensor):
            if carries(nest.accelerator, boundary, level):
                count = totals[boundary.child, tensor.name]
                total += count.fills + count.drains
    return total


def tallies_of(nest: Nest) -> dict[TallyKey, NDArray[np.float64]]:
    """Return the rows of `DenseModel.tallies` as arrays of one; whether the mapping fits is not looked at."""
    found: dict[TallyKey, int] = {("total", -1, "", "steps"): cf.steps(nest), ("total", -1, "", "arrays"): 0}
    first = counts(nest, busiest=True)
    views = {"total": counts(nest, busiest=False), "busiest": first}
    for walked in busiest_counts(nest, first).values():
        for view, moved in walked.items():
            views[view] = views.get(view, {}) | moved
    for view, moved in views.items():
        for (level, name), count in moved.items():
            found |= {(view, level, name, kind): getattr(count, kind) for kind in KINDS}
    for tensor in nest.operator.tensors:
        for edge in nest.boundaries(tensor):
            if edge.child == len(nest.mapping.levels):
                continue
            own = last_tile(nest, edge) if tensor.is_output else first_received(nest, edge)
            parent = last_written(nest, edge) if tensor.is_output else first_read(nest, edge)
            found["edge", edge.child, tensor.name, "own"] = own
            found["edge", edge.child, tensor.name, "parent"] = parent
    return {key: np.array([float(value)]) for key, value in found.items()}

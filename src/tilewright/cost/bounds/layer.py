"""What no legal mapping can beat: cycles, energy and their product for one operator on one accelerator.

Everything here follows from the counting rules (docs/concepts.md) without looking at a mapping:

- A dimension of size n spread over l lanes takes the longest-running instance at least ceil(n / l) steps, and the
  lanes of all dimensions together are at most the instances of the machine.
- Each word of each tensor crosses every memory on its way at least once (rules 1 to 5).
- At the memory that feeds the compute units, each multiply-accumulate reads its operands and updates its output
  (rule 6); only lanes that ask for the same word at the same step, behind fan-outs that multicast (or reduce), share
  an access.
- What a memory moves takes its busiest instance at least the average over the physical instances.
- What does not fit comes again: see `bounds_refetch`, `bounds_compute` and, for what follows from both,
  `bounds_traffic`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.traffic import ENERGY, Traffic
from tilewright.cost.records import Cost
from tilewright.hardware import Accelerator, Fanout, Memory, exact_rate
from tilewright.mapping import tensor_bits
from tilewright.workload import Operator, Tensor

_ROUNDING = 1 - 1e-12
"""Bounds on energy are lowered by this, as sums of floats may come out low by their last digits."""

_SLACK = 1e-9
"""Words that come from sums of floats are lowered by this share before they are rounded up to cycles."""

Keeps = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Roofline:
    """Where an operator stands if every word crosses the outermost memory once.

    ``bandwidth_bytes_per_cycle`` is of reads and writes together, None where one of them is unlimited; then the roof is
    flat.
    """

    compulsory_bytes: float
    intensity_macs_per_byte: float
    peak_macs_per_cycle: int
    bandwidth_bytes_per_cycle: float | None

    @property
    def ridge_macs_per_byte(self) -> float:
        """Intensity from which on compute limits."""
        return self.peak_macs_per_cycle / self.bandwidth_bytes_per_cycle if self.bandwidth_bytes_per_cycle else 0.0

    @property
    def attainable_macs_per_cycle(self) -> float:
        """Multiply-accumulates per cycle under the roof."""
        return self.attainable(self.intensity_macs_per_byte)

    def attainable(self, intensity_macs_per_byte: float) -> float:
        """Return the multiply-accumulates per cycle under the roof at some intensity."""
        if self.bandwidth_bytes_per_cycle is None:
            return float(self.peak_macs_per_cycle)
        return min(float(self.peak_macs_per_cycle), intensity_macs_per_byte * self.bandwidth_bytes_per_cycle)


@dataclass(frozen=True)
class LowerBounds:
    """Lower bounds for one operator on one accelerator.

    Parameters
    ----------
    compute_cycles
        Steps of compute that no spreading over the instances avoids.
    blocked_cycles
        Transfers of single-buffered memories, which compute waits for.
    data_cycles
        By memory, what its ports need for the words that must pass; 0 where bandwidth is unlimited.
    latency_cycles
        The largest of the compute (with what blocks it) and data-movement bounds.
    latency_binding
        ``"compute"`` or the name of the memory that sets it.
    energy_by_component_pj
        By memory, fan-out and compute name, and ``"leakage"`` over the bound on latency: what no mapping spends less on
        each by itself.
    refetch_pj
        What any mapping spends beyond their sum, on one component or another, as memories are too small to hold
        everything and no lane serves all tensors at once.
    energy_pj
        All of it.
    energy_binding
        The component that needs most of it.
    edp
        Product of both bounds, in picojoule-cycles.
    """

    macs: int
    compute_cycles: int
    blocked_cycles: int
    data_cycles: dict[str, int]
    latency_cycles: int
    latency_binding: str
    energy_by_component_pj: dict[str, float]
    refetch_pj: float
    energy_pj: float
    energy_binding: str
    edp: float
    roofline: Roofline

    @property
    def data_movement_cycles(self) -> int:
        """The largest of the memories' bounds."""
        return max(self.data_cycles.values(), default=0)


@dataclass(frozen=True)
class _Least:
    """Words of one tensor that must move at one memory, over all its instances, in words of the tensor.

    ``read_or_drained`` bounds the sum of reads and drains. ``energy_pj`` is of all of them, at the memory's energies.
    """

    read_or_drained: int
    filled: int
    updated: int
    drained: int
    energy_pj: float


def layer_bounds(operator: Operator, accelerator: Accelerator, keeps: Keeps | None = None, *,
                 bypass: bool = False, perfect: bool = False) -> LowerBounds:
    """Return bounds that every legal mapping respects.

    Memories keep all that they can, or what ``keeps`` says for some of them. With ``bypass`` any memory but the
    outermost may let any tensor pass, so the bounds are lower, each word counts once, and the split by component is
    only that of the least total. ``perfect`` is for mappings whose steps all divide the extents outside them.

    Raises
    ------
    InputError
        If a bandwidth is not positive.
    """
    chains = {t.name: _chain(t, accelerator, keeps or {}, bypass) for t in operator.tensors}
    least: dict[tuple[str, str], _Least] = {}
    for tensor in operator.tensors:
        for memory, found in _on_the_way(tensor, operator, accelerator, chains[tensor.name]).items():
            least[memory, tensor.name] = found
    sure = {(memory, tensor.name): found for tensor in operator.tensors
            for memory, found in _surely(tensor, operator, accelerator, chains[tensor.name]).items()}
    again = _Again(0.0, {}, {}) if bypass else _fetched_again(
        operator, accelerator, {name: chain[0] for name, chain in chains.items()}, perfect)
    compute = compute_bound(operator, accelerator, perfect)
    blocked = sum(max(_blocking(memory, sure, operator, accelerator), again.blocked_cycles.get(memory.name, 0))
                  for memory in accelerator.memories[1:] if memory.buffering == "single")
    data = {memory.name: max(_port_cycles(memory, sure, operator, accelerator), again.port_cycles.get(memory.name, 0))
            for memory in accelerator.memories}
    latency, binding = compute + blocked, "compute"
    for name, cycles in data.items():
        if cycles > latency:
            latency, binding = cycles, name
    energy = _energies(operator, accelerator, chains, least, latency)
    parts = sum(energy.values())
    moving = parts - energy[accelerator.compute.name] - energy.get("leakage", 0.0)
    refetch = max(0.0, again.energy_pj - moving)
    total = (parts + refetch) * _ROUNDING
    return LowerBounds(
        macs=operator.macs, compute_cycles=compute, blocked_cycles=blocked, data_cycles=data, latency_cycles=latency,
        latency_binding=binding, energy_by_component_pj=energy, refetch_pj=refetch, energy_pj=total,
        energy_binding=max(energy, key=lambda name: energy[name]), edp=total * latency,
        roofline=roofline(operator, accelerator))


@dataclass(frozen=True)
class _Again:
    """Energy of memories and networks, and cycles by memory, with what must be fetched again."""

    energy_pj: float
    port_cycles: dict[str, int]
    blocked_cycles: dict[str, int]


def _fetched_again(operator: Operator, accelerator: Accelerator, chains: dict[str, tuple[str, ...]],
                   perfect: bool) -> _Again:
    traffic = Traffic.of(operator, accelerator, chains, perfect)
    ports, blocking = ports_of(accelerator), _blocking_ports(accelerator)
    wanted = [*ports, *blocking]
    energy, *words = traffic.least([ENERGY, *((memory.name, kinds) for memory, kinds, _ in wanted)])
    cycles = [moved * (1 - _SLACK) / rate / accelerator.instances(memory.name)
              for (memory, _, rate), moved in zip(wanted, words, strict=True)]
    busiest: dict[str, int] = {}
    blocked: dict[str, float] = {}
    for (memory, _, _), found in zip(ports, cycles, strict=False):
        busiest[memory.name] = max(busiest.get(memory.name, 0), ceil(found))
    for (memory, _, _), found in zip(blocking, cycles[len(ports):], strict=True):
        blocked[memory.name] = blocked.get(memory.name, 0.0) + found
    return _Again(energy * (1 - _SLACK), busiest, {name: ceil(total) for name, total in blocked.items()})


Port = tuple[Memory, tuple[str, ...], float]
"""What accesses of some kinds share at a memory: its words a cycle."""


def ports_of(accelerator: Accelerator) -> list[Port]:
    """Return all ports with a limit."""
    found: list[Port] = []
    for memory in accelerator.memories:
        rates = memory.bandwidth
        for kinds, rate in ((("read", "drain"), rates.read), (("fill", "update"), rates.write),
                            (("read", "drain", "fill", "update"), rates.shared)):
            if rate is not None:
                found.append((memory, kinds, float(exact_rate(rate))))
    return found


def _blocking_ports(accelerator: Accelerator) -> list[Port]:
    """Return what compute waits for at single-buffered memories: drains and fills, at the slower of both rates."""
    found: list[Port] = []
    for memory in accelerator.memories[1:]:
        rates = memory.bandwidth
        for kind, own in (("drain", rates.read), ("fill", rates.write)):
            given = [float(exact_rate(rate)) for rate in (own, rates.shared) if rate is not None]
            if memory.buffering == "single" and given:
                found.append((memory, (kind,), min(given)))
    return found


def roofline(operator: Operator, accelerator: Accelerator) -> Roofline:
    """Return where ``operator`` stands under the roof of ``accelerator`` if each word crosses it once."""
    outermost = accelerator.memories[0]
    size = sum(t.words(operator.sizes) * tensor_bits(t, accelerator) for t in operator.tensors
               if outermost.can_keep(t.name, t.role)) / 8 or 1.0
    rates = outermost.bandwidth
    both = None if rates.read is None or rates.write is None else rates.read + rates.write
    words = min((rate for rate in (rates.shared, both) if rate is not None), default=None)
    return Roofline(size, operator.macs / size, accelerator.compute_instances,
                    None if words is None else words * outermost.word_bits / 8)


def outermost_bytes(cost: Cost, operator: Operator, accelerator: Accelerator) -> float:
    """Return the bytes that a costed mapping moves at the outermost memory; ``macs`` over them is its intensity.

    Where zeros are made use of, those moved in the mean, metadata included.
    """
    name = accelerator.levels[0].name
    if cost.expected is not None:
        mean = {t: cost.expected[name, t.name] for t in operator.tensors}
        return sum(((moved.reads + moved.updates) * tensor_bits(t, accelerator) + moved.metadata_bits) / 8
                   for t, moved in mean.items())
    moved = {t: cost.counts[name, t.name] for t in operator.tensors if (name, t.name) in cost.counts}
    return sum((count.reads + count.updates) * tensor_bits(t, accelerator) / 8 for t, count in moved.items())


def compute_bound(operator: Operator, accelerator: Accelerator, perfect: bool = False) -> int:
    """Return the fewest steps of compute: the least product of ceil(size / lanes) with few enough lanes in all.

    Where ``perfect``, the lanes of a dimension divide its size.
    """
    return _compute_bound(operator.dimensions, accelerator.compute_instances, perfect)


@lru_cache(maxsize=64)
def _compute_bound(dimensions: tuple[tuple[str, int], ...], instances: int, perfect: bool) -> int:
    lanes, steps = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for _, size in dimensions:
        own_lanes, own_steps = _divisors(size, instances) if perfect else _ways(size, instances)
        lanes, steps = np.multiply.outer(lanes, own_lanes).ravel(), np.multiply.outer(steps, own_steps).ravel()
        lanes, steps = _frontier(lanes, steps, instances)
    return int(steps.min())


def _ways(size: int, instances: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the fewest lanes for each number of steps that one dimension can take."""
    found = []
    lanes = 1
    while lanes <= instances:
        steps = -(-size // lanes)
        found.append((lanes, steps))
        if steps == 1:
            break
        lanes = -(-size // (steps - 1))
    table = np.array(found, dtype=np.int64)
    return table[:, 0], table[:, 1]


def _divisors(size: int, instances: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of lanes that divide one dimension, and the steps that it then takes."""
    lanes = np.arange(1, min(size, instances) + 1, dtype=np.int64)
    lanes = lanes[size % lanes == 0]
    return lanes, size // lanes


_FRONTIER = 2048


def _frontier(lanes: NDArray[np.int64], steps: NDArray[np.int64],
              instances: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the choices that no other beats in both; neighbours merge into their best where there are too many."""
    fits = lanes <= instances
    lanes, steps = lanes[fits], steps[fits]
    order = np.lexsort((steps, lanes))
    lanes, steps = lanes[order], steps[order]
    best = np.minimum.accumulate(steps)
    kept = np.concatenate(([True], steps[1:] < best[:-1]))
    lanes, steps = lanes[kept], steps[kept]
    while len(lanes) > _FRONTIER:
        even = len(lanes) // 2 * 2
        lanes = np.concatenate((lanes[:even:2], lanes[even:]))
        steps = np.concatenate((steps[1:even:2], steps[even:]))
    return lanes, steps


def _chain(tensor: Tensor, accelerator: Accelerator, keeps: Keeps, bypass: bool) -> tuple[tuple[str, ...], ...]:
    """Return the sets of memories, outermost first, that may keep a tensor: one set, or with bypass the least ones."""
    able = keepers(tensor, accelerator, keeps)
    if not bypass:
        return (able,)
    return able[:1], *((able[0], name) for name in able[1:])


def keepers(tensor: Tensor, accelerator: Accelerator, keeps: Keeps) -> tuple[str, ...]:
    """Return the memories that keep a tensor, outermost first: those that can, where ``keeps`` says nothing else."""
    return tuple(memory.name for memory in accelerator.memories
                 if (tensor.name in keeps[memory.name] if memory.name in keeps
                     else memory.can_keep(tensor.name, tensor.role)))


def _on_the_way(tensor: Tensor, operator: Operator, accelerator: Accelerator,
                chains: tuple[tuple[str, ...], ...]) -> dict[str, _Least]:
    """Return what must move at each memory of the chain that needs the least energy."""
    options = [_along(tensor, operator, accelerator, chain) for chain in chains]
    return min(options, key=lambda found: sum(least.energy_pj for least in found.values())
               + _network_total(tensor, operator, accelerator, tuple(found)))


def _surely(tensor: Tensor, operator: Operator, accelerator: Accelerator,
            chains: tuple[tuple[str, ...], ...]) -> dict[str, _Least]:
    """Return what must move whichever of ``chains`` is taken."""
    if len(chains) == 1:
        return _along(tensor, operator, accelerator, chains[0])
    outermost = chains[0][0]
    return {outermost: _along(tensor, operator, accelerator, chains[-1])[outermost]}


@lru_cache(maxsize=1024)
def _along(tensor: Tensor, operator: Operator, accelerator: Accelerator, chain: tuple[str, ...]) -> dict[str, _Least]:
    found = {}
    for index, name in enumerate(chain):
        memory = accelerator.level(name)
        assert isinstance(memory, Memory)
        asked = _asked(tensor, operator, accelerator, name) if index == len(chain) - 1 else None
        least = _output_least if tensor.is_output else _operand_least
        found[name] = least(tensor.words(operator.sizes), asked, memory, tensor_bits(tensor, accelerator), index == 0)
    return found


def _operand_least(words: int, asked: int | None, memory: Memory, bits: int, outermost: bool) -> _Least:
    reads, fills = max(words, asked or 0), 0 if outermost else words
    energy = (reads * memory.energy.read_pj + fills * memory.energy.fill_pj) * bits / memory.word_bits
    return _Least(reads, fills, 0, 0, energy)


def _output_least(words: int, asked: int | None, memory: Memory, bits: int, outermost: bool) -> _Least:
    """Return an output's least traffic; ``asked`` are the updates by compute, None at memories that others feed.

    By rule 6, reads = updates - (evictions - fills), and evictions lie between the words and the updates; so energy,
    linear in the evictions, is least at one of the two ends.
    """
    updates, each = max(words, asked or 0), memory.energy
    if outermost:
        again = updates - words
        energy = updates * each.update_pj + again * each.read_pj
        return _Least(again, 0, updates, 0, energy * bits / memory.word_bits)
    leaving = min((updates - words) * each.read_pj + words * each.drain_pj, updates * each.drain_pj)
    energy = updates * each.update_pj + leaving
    return _Least(updates, 0, updates, words, energy * bits / memory.word_bits)


def _asked(tensor: Tensor, operator: Operator, accelerator: Accelerator, name: str) -> int:
    """Return how often compute asks ``name``, the innermost keeper of a tensor, for its words, over all instances.

    The lanes that share an access are at most the instances of the fan-outs inside that multicast (outputs: reduce).
    """
    inner = accelerator.levels[[level.name for level in accelerator.levels].index(name) + 1:]
    sharing = prod(level.instances for level in inner if isinstance(level, Fanout)
                   and (level.reduce if tensor.is_output else level.multicast))
    return -(-operator.macs // sharing)


def _port_cycles(memory: Memory, least: dict[tuple[str, str], _Least], operator: Operator,
                 accelerator: Accelerator) -> int:
    reads, writes = Fraction(0), Fraction(0)
    for tensor in operator.tensors:
        found = least.get((memory.name, tensor.name))
        if found is not None:
            scale = Fraction(tensor_bits(tensor, accelerator), memory.word_bits) / accelerator.instances(memory.name)
            reads += found.read_or_drained * scale
            writes += (found.filled + found.updated) * scale
    rates = memory.bandwidth
    pairs = ((reads, rates.read), (writes, rates.write), (reads + writes, rates.shared))
    return max((ceil(words / exact_rate(rate)) for words, rate in pairs if rate is not None), default=0)


def _blocking(memory: Memory, least: dict[tuple[str, str], _Least], operator: Operator,
              accelerator: Accelerator) -> int:
    """Return the least cycles for which a single-buffered memory's fills and drains block compute."""
    rates, total = memory.bandwidth, Fraction(0)
    for tensor in operator.tensors:
        found = least.get((memory.name, tensor.name))
        if found is not None:
            scale = Fraction(tensor_bits(tensor, accelerator), memory.word_bits) / accelerator.instances(memory.name)
            for words, own in ((found.drained, rates.read), (found.filled, rates.write)):
                given = [exact_rate(rate) for rate in (own, rates.shared) if rate is not None]
                total += words * scale / min(given) if given else 0
    return ceil(total)


def _energies(operator: Operator, accelerator: Accelerator, chains: dict[str, tuple[tuple[str, ...], ...]],
              least: dict[tuple[str, str], _Least], latency_cycles: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for level in accelerator.levels:
        if isinstance(level, Memory):
            found[level.name] = sum(part.energy_pj for (name, _), part in least.items() if name == level.name)
        else:
            found[level.name] = sum(_network(tensor, operator, accelerator, tuple(
                name for name, other in least if other == tensor.name))[level.name] for tensor in operator.tensors)
    found[accelerator.compute.name] = operator.macs * accelerator.compute.energy_pj_per_mac
    if accelerator.leakage_mw:
        found["leakage"] = accelerator.leakage_mw * latency_cycles / accelerator.frequency_mhz * 1000
    return found


def _network(tensor: Tensor, operator: Operator, accelerator: Accelerator, chain: tuple[str, ...]) -> dict[str, float]:
    """Return the least energy of each fan-out for one tensor: its words once, or, next to compute, each use."""
    names = [level.name for level in accelerator.levels]
    home, feeding = names.index(chain[0]), names.index(chain[-1])
    found = {}
    for index, level in enumerate(accelerator.levels):
        if isinstance(level, Fanout):
            words = operator.macs if index > feeding else tensor.words(operator.sizes) if index > home else 0
            found[level.name] = words * level.network_energy_pj_per_word
    return found


def _network_total(tensor: Tensor, operator: Operator, accelerator: Accelerator, chain: tuple[str, ...]) -> float:
    return sum(_network(tensor, operator, accelerator, chain).values())

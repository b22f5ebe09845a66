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

import numpy as np

from tilewright.cost.bounds.again import ENERGY, Again
from tilewright.cost.bounds.groups import tiles_of
from tilewright.cost.bounds.passing import Bypass, Keeps, Passing
from tilewright.cost.bounds.rows import Floats, MachineRows, Whole, whole
from tilewright.cost.bounds.steps import compute_steps, paced
from tilewright.cost.bounds.traffic import Traffic, blocking_of, ports_of
from tilewright.cost.records import Cost
from tilewright.hardware import Accelerator
from tilewright.mapping import held_bits, lane_use, tensor_bits
from tilewright.workload import Operator

_ROUNDING = 1 - 1e-12
"""Bounds on energy are lowered by this, as sums of floats may come out low by their last digits."""

_SLACK = 1 - 1e-9
"""Words that come from sums of floats are lowered to this share before they are rounded up to cycles."""


@dataclass(frozen=True)
class Roofline:
    """Where an operator stands if every word crosses the outermost memory once.

    ``bandwidth_bytes_per_cycle`` is of reads and writes together, None where one of them is unlimited; then the roof is
    flat.
    """

    compulsory_bytes: float
    intensity_macs_per_byte: float
    peak_macs_per_cycle: float
    bandwidth_bytes_per_cycle: float | None

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
    """Lower bounds for one operator on one accelerator."""

    macs: int
    compute_cycles: int
    """Steps of compute that no spreading over the instances avoids."""
    blocked_cycles: int
    """Transfers of single-buffered memories, which compute waits for."""
    data_cycles: dict[str, int]
    """By memory, what its ports need for the words that must pass; 0 where bandwidth is unlimited."""
    latency_cycles: int
    """The largest of the compute (with what blocks it) and data-movement bounds."""
    latency_binding: str
    """``"compute"`` or the name of the memory that sets it."""
    energy_by_component_pj: dict[str, float]
    """By memory, fan-out and compute name, and ``"leakage"`` over the bound on latency: what no mapping spends less on
    each by itself."""
    refetch_pj: float
    """What any mapping spends beyond their sum, on one component or another, as memories are too small to hold
    everything and no lane serves all tensors at once."""
    energy_pj: float
    """All of it."""
    energy_binding: str
    """The component that needs most of it."""
    edp: float
    """Product of both bounds, in picojoule-cycles."""
    roofline: Roofline

    @property
    def data_movement_cycles(self) -> int:
        """The largest of the memories' bounds."""
        return max(self.data_cycles.values(), default=0)


@dataclass(frozen=True)
class BoundRows:
    """Lower bounds for one operator on machines of one structure: arrays (r), named as in `LowerBounds`."""

    compute_cycles: Whole
    blocked_cycles: Whole
    data_cycles: dict[str, Whole]
    latency_cycles: Whole
    energy_by_component_pj: dict[str, Floats]
    refetch_pj: Floats
    energy_pj: Floats

    @property
    def edp(self) -> Floats:
        """Product of both bounds, in picojoule-cycles."""
        found: Floats = self.energy_pj * self.latency_cycles.astype(np.float64)
        return found

    def first(self, operator: Operator, accelerator: Accelerator) -> LowerBounds:
        """Return those of the first machine, which is ``accelerator``."""
        energy = {name: float(parts[0]) for name, parts in self.energy_by_component_pj.items()}
        data = {name: cycles[0] for name, cycles in self.data_cycles.items()}
        latency = self.latency_cycles[0]
        binding = next((name for name, cycles in data.items() if cycles == latency), "")
        computing = self.compute_cycles[0] + self.blocked_cycles[0] == latency
        return LowerBounds(
            macs=operator.macs, compute_cycles=self.compute_cycles[0], blocked_cycles=self.blocked_cycles[0],
            data_cycles=data, latency_cycles=latency, latency_binding="compute" if computing else binding,
            energy_by_component_pj=energy, refetch_pj=float(self.refetch_pj[0]), energy_pj=float(self.energy_pj[0]),
            energy_binding=max(energy, key=lambda name: energy[name]), edp=float(self.edp[0]),
            roofline=roofline(operator, accelerator))


def bound_rows(operator: Operator, rows: MachineRows, keeps: Keeps | None = None, *,  # noqa: PLR0913
               bypass: Bypass = False, perfect: bool = False, energy: bool = True,
               compiled: bool = False) -> BoundRows:
    """Return bounds of rows that were parted (`MachineRows.parts`); see `layer_bounds`.

    Without ``energy`` that is bounded by 0, which is sooner done. If ``compiled``, what must come again where tensors
    may pass memories counts too (`again`); Numba takes long to load.
    """
    machine, passing = rows.machine, Passing(operator, rows, keeps or {}, bypass)
    blocking = {memory.name: passing.blocking_cycles(memory) for memory in machine.memories[1:]
                if memory.buffering == "single"}
    data = {memory.name: passing.port_cycles(memory) for memory in machine.memories}
    again = np.zeros(rows.count)
    if passing.sure:
        chains = {name: chain for name, (chain,) in passing.chains.items()}
        again = _fetched_again(Traffic.of(operator, rows, chains, perfect), data, blocking, energy)
    compute = rows.once((operator, "steps", perfect), lambda: paced(compute_steps(operator, rows, perfect), operator,
                                                                    machine))
    blocked = rows.none
    for cycles in blocking.values():
        blocked = blocked + cycles
    latency = compute + blocked
    for cycles in data.values():
        latency = np.maximum(latency, cycles)
    if compiled and not passing.sure:
        again, latency = _whatever_kept(Again(passing, tiles_of(operator, perfect)), data, latency, energy)
    if not energy:
        return BoundRows(compute, blocked, data, latency, {}, again, again)
    spent = passing.energies()
    refetch = np.maximum(0.0, again - sum(spent.values()))
    spent[machine.compute.name] = operator.macs * rows.numbers[machine.compute.name, "energy_pj_per_mac"] * lane_use(
        operator, machine).energy
    if rows.leakage.any():
        spent["leakage"] = rows.leakage * latency.astype(np.float64)
    total = (sum(spent.values()) + refetch) * _ROUNDING
    return BoundRows(compute, blocked, data, latency, spent, refetch, total)


def _fetched_again(traffic: Traffic, data: dict[str, Whole], blocking: dict[str, Whole], priced: bool) -> Floats:
    """Return (r) the energy of memories and networks with what must be fetched again; raise cycles by memory to it.

    The energy is 0 where it is not ``priced``.
    """
    ports, blocks = ports_of(traffic.rows), blocking_of(traffic.rows)
    energy, cycles = traffic.ports_least([*ports, *blocks], priced)
    for port, busy in zip(ports, cycles, strict=False):
        name = port.memory.name
        data[name] = np.maximum(data[name], whole(np.ceil(busy * _SLACK)))
    blocked: dict[str, Floats] = {}
    for port, busy in zip(blocks, cycles[len(ports):], strict=True):
        blocked[port.memory.name] = blocked.get(port.memory.name, 0.0) + busy
    for name, busy in blocked.items():
        blocking[name] = np.maximum(blocking[name], whole(np.ceil(busy * _SLACK)))
    return energy * _SLACK


def _whatever_kept(again: Again, data: dict[str, Whole], latency: Whole, priced: bool) -> tuple[Floats, Whole]:
    """Return (r) the energy of memories and networks, 0 where not ``priced``, and the latency with what comes again.

    The cycles of the outermost memory are raised where they then are above the ``latency`` of all else: up to there
    they are of no account.
    """
    rows = again.passing.rows
    outermost = rows.machine.memories[0].name
    ports = [port for memory, port in rows.rates if memory == outermost]
    wanted = [*ports, *([ENERGY] if priced else [])]
    if not wanted or not again.known:
        return np.zeros(rows.count), latency
    rates = [tuple(part.astype(np.float64) for part in rows.rates[outermost, port]) for port in ports]
    floors = [latency.astype(np.float64) * words / cycles for words, cycles in rates] + [np.zeros(rows.count)] * priced
    sums = again.least(wanted, np.array(floors)) * _SLACK
    for moved, (words, cycles) in zip(sums, rates, strict=False):
        data[outermost] = np.maximum(data[outermost], whole(np.ceil(moved * cycles / words * _SLACK)))
    return np.maximum(0.0, sums[-1]) if priced else np.zeros(rows.count), np.maximum(latency, data[outermost])


def roofline(operator: Operator, accelerator: Accelerator) -> Roofline:
    """Return where ``operator`` stands under the roof of ``accelerator`` if each word crosses it once."""
    outermost = accelerator.memories[0]
    size = sum(t.words(operator.sizes) * tensor_bits(t, accelerator) for t in operator.tensors
               if outermost.can_keep(t.name, t.role)) / 8 or 1.0
    size, peak = float(size), accelerator.compute_instances / lane_use(operator, accelerator).cycles
    rates = outermost.bandwidth
    both = None if rates.read is None or rates.write is None else rates.read + rates.write
    words = min((rate for rate in (rates.shared, both) if rate is not None), default=None)
    return Roofline(size, operator.macs / size, int(peak) if peak.denominator == 1 else float(peak),
                    None if words is None else words * outermost.word_bits / 8)


def outermost_bytes(cost: Cost, operator: Operator, accelerator: Accelerator) -> float:
    """Return the bytes that a costed mapping moves at the outermost memory; ``macs`` over them is its intensity.

    Where zeros are made use of, those moved in the mean, metadata included.
    """
    name = accelerator.levels[0].name
    if cost.expected is not None:
        mean = {t: cost.expected[name, t.name] for t in operator.tensors}
        return sum(((moved.reads + moved.updates) * float(tensor_bits(t, accelerator)) + moved.metadata_bits) / 8
                   for t, moved in mean.items())
    output = operator.output
    last = output.words(operator.sizes) * (held_bits(output, accelerator) - tensor_bits(output, accelerator))
    moved = {t: cost.counts[name, t.name] for t in operator.tensors if (name, t.name) in cost.counts}
    return float(sum((count.reads + count.updates) * held_bits(t, accelerator) for t, count in moved.items()) - (
        last if output in moved else 0)) / 8

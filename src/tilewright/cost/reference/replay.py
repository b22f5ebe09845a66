"""A mapping counted once more under another tool's conventions."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, prod

from tilewright.base import InputError
from tilewright.cost.records import KINDS
from tilewright.cost.reference.conventions import TILEWRIGHT, Conventions
from tilewright.cost.reference.latency import cycles
from tilewright.cost.reference.nest import WalkedLoop, WalkedNest, lockstep, write_out
from tilewright.cost.reference.visits import BoundaryWalk, Crossing
from tilewright.hardware import Accelerator, Memory, refuse_shared
from tilewright.mapping import Mapping, held_bits, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor


@dataclass(frozen=True)
class ReplayedCount:
    """Words of one tensor at one memory, for an instance on average; ``drains`` is 0 where a tool counts none."""

    reads: Fraction
    fills: Fraction
    updates: Fraction
    drains: Fraction
    instances: int
    """What the words are multiplied by for totals."""
    capacity_words: int
    """The tile that an instance holds."""

    def total(self, kind: str) -> Fraction:
        """Words of a kind at all instances."""
        words: Fraction = getattr(self, kind) * self.instances
        return words


@dataclass(frozen=True)
class Replay:
    """What a mapping costs under some conventions.

    Parameters
    ----------
    counts
        By ``(memory, tensor)``.
    cycles
        The largest of ``compute_cycles`` and what the ports need, by memory in ``port_cycles``; no ramp.
    """

    conventions: Conventions
    counts: dict[tuple[str, str], ReplayedCount]
    macs: int
    compute_cycles: int
    port_cycles: dict[str, int]
    energy_by_component_pj: dict[str, float]

    @property
    def cycles(self) -> int:
        """Cycles without start-up and tail."""
        return max(self.compute_cycles, *self.port_cycles.values())

    @property
    def energy_pj(self) -> float:
        """All energy: accesses and compute."""
        return sum(self.energy_by_component_pj.values())


def replay_size(operator: Operator, accelerator: Accelerator, mapping: Mapping, conventions: Conventions) -> int:
    """Return how many tiles (or words, where tiles are not boxes) a replay brings up.

    Raises an `InputError` if they are too many.
    """
    refuse_shared(accelerator, "a replay by conventions")
    nest = write_out(operator, accelerator, mapping)
    counting = _Counting(nest, conventions)
    return sum(walk.size for tensor in operator.tensors for walk in counting.walks(tensor))


def replay(operator: Operator, accelerator: Accelerator, mapping: Mapping,
           conventions: Conventions = TILEWRIGHT) -> Replay:
    """Count a mapping under ``conventions``; slow, for small nests (large ones where loops are extrapolated).

    Raises an `InputError` if the nest is too large to be walked, or the mapping does not describe a complete nest.
    """
    refuse_shared(accelerator, "a replay by conventions")
    if held_bits(operator.output, accelerator) != tensor_bits(operator.output, accelerator):
        raise InputError(f"{operator.name}.{operator.output.name}.partial_bits", "must be as its word_bits in a replay",
                         float(held_bits(operator.output, accelerator)), "Tools know one width of outputs alone")
    nest = write_out(operator, accelerator, mapping)
    counting = _Counting(nest, conventions)
    counts: dict[tuple[str, str], ReplayedCount] = {}
    for tensor in operator.tensors:
        counts |= counting.tensor(tensor)
    compute = counting.compute_cycles()
    ports = {memory.name: counting.port_cycles(memory, counts, compute) for memory in accelerator.memories}
    if conventions.stepwise_transfers:
        ports[accelerator.levels[nest.shared].name] = counting.stepwise_cycles()
    energies = {memory.name: counting.energy(memory, counts) for memory in accelerator.memories}
    macs = counting.macs()
    energies[accelerator.compute.name] = macs * accelerator.compute.energy_pj_per_mac
    energies[accelerator.compute.name] *= lane_use(operator, accelerator).energy
    if conventions.leakage_in_use:
        energies["leakage"] = max(compute, *ports.values()) * counting.leakage_pj_per_cycle()
    return Replay(conventions, counts, macs, compute, ports, energies)


class _Counting:
    """Counts of one nest under some conventions."""

    def __init__(self, nest: WalkedNest, conventions: Conventions) -> None:
        self.nest, self.on = nest, conventions
        self.each = Fraction(0)
        """Multiply-accumulates of a lane, on average."""

    def tensor(self, tensor: Tensor) -> dict[tuple[str, str], ReplayedCount]:
        """Return the counts of a tensor at every memory that keeps it."""
        levels = self.nest.accelerator.levels
        keepers = self._holders(tensor)
        sums, touched = self._boundaries(tensor, keepers), self._first_touches(tensor)
        counts = {}
        above, taken, asked_above = None, Fraction(0), Fraction(0)
        for at, below in zip(keepers, sums, strict=True):
            lanes, peers = self.nest.lanes(at), self._peers(above, at)
            taken_in = (above.sent - above.linked) / lanes + peers if above else Fraction(0)
            if tensor.is_output:
                reads, fills, updates = self._output(below, taken_in if above else None, taken, touched[at], lanes)
                if self.on.psum_read_every_mac and at == keepers[-1]:
                    reads = updates
                elif self.on.no_psum_reads and at >= self.nest.shared:
                    reads = Fraction(0)
                taken = Fraction(0) if below.combines else reads * lanes
            else:
                reads, updates = below.asked / lanes, Fraction(0)
                shared = self.on.one_fill_for_all_lanes and at > self.nest.shared
                fills = asked_above / lanes if shared else taken_in
            evicted = taken_in if tensor.is_output and not self.on.no_drain_reads else Fraction(0)
            reads += peers
            if tensor.name in self.nest.keeps[at]:
                asked_above = below.asked
                counts[levels[at].name, tensor.name] = self._count(tensor, at, (reads, fills, updates, evicted))
            above = below
        return counts

    def _peers(self, above: Crossing | None, at: int) -> Fraction:
        """Return the words that an instance gets from neighbours; as many are read at them."""
        if above is None or not above.linked:
            return Fraction(0)
        lanes = above.parents * self._instances(at) if self.on.averaged_lanes else self.nest.lanes(at)
        return above.linked / lanes

    def _holders(self, tensor: Tensor) -> list[int]:
        """Return the memories that keep a tensor, and the places inside arrays that count as if they did."""
        keepers = self.nest.keepers(tensor.name)
        if not self.on.cluster_buffers:
            return keepers
        places = [at for at in self._memories() if not self.nest.accelerator.levels[at].keeps  # type: ignore[union-attr]
                  and self.nest.shared < at < keepers[-1]]
        return sorted({*keepers, *places})

    def _count(self, tensor: Tensor, at: int, words: tuple[Fraction, Fraction, Fraction, Fraction]) -> ReplayedCount:
        """Return reads, fills, updates and drains of an instance as they are reported."""
        reads, fills, updates, evicted = words
        return ReplayedCount(
            self._round(reads), Fraction(floor(fills)) if self.on.averaged_lanes else fills, self._round(updates),
            self._round(evicted), self._instances(at), self._tile(tensor, at))

    def _output(self, below: Crossing, sent: Fraction | None, taken: Fraction, touched: int,
                lanes: int) -> tuple[Fraction, Fraction, Fraction]:
        """Return reads, fills and updates of an instance; what starts from zero need not be read.

        ``sent`` are the words that an instance sends to its parent, None without one, ``taken`` the partial sums that
        all instances were given, ``touched`` the words that one ever holds.
        """
        updates = self._round(below.asked / lanes)
        if self.on.psum_fill_every_lane:
            return updates - touched, Fraction(0) if sent is None else self._round(sent) - touched, updates
        fresh = Fraction(touched) if sent is None else sent * lanes - taken
        return updates - fresh / lanes, taken / lanes, updates

    def _boundaries(self, tensor: Tensor, keepers: list[int]) -> list[Crossing]:
        """Return what crosses inward of each memory that keeps the tensor."""
        found: dict[int, Crossing] = {}
        inner: Crossing | None = None
        for walk in reversed(self.walks(tensor)):
            own = walk.walk()
            if walk.at_compute:
                self.each = own.sent / len(walk.lanes)
            if inner is not None and walk.child not in keepers:
                asked = inner.asked * own.asked / (own.sent - own.linked)
                own = replace(inner, asked=asked, combines=inner.combines or own.combines)
            found[walk.parent] = inner = own
        return [found[at] for at in keepers]

    def walks(self, tensor: Tensor) -> list[BoundaryWalk]:
        """Return the walks of the tensor's boundaries, outermost first."""
        stops = self._stops() if self.on.bypass_scaling else self._holders(tensor)
        ends = [*stops[1:], len(self.nest.accelerator.levels)]
        return [BoundaryWalk(self.nest, tensor, parent, child, self.on)
                for parent, child in zip(stops, ends, strict=True)]

    def _stops(self) -> list[int]:
        """Return the memories, and the arrays, each of which stands between memories that hold nothing."""
        return [at for at, level in enumerate(self.nest.accelerator.levels)
                if isinstance(level, Memory) or level.instances > 1]

    def _memories(self) -> list[int]:
        return [at for at, level in enumerate(self.nest.accelerator.levels) if isinstance(level, Memory)]

    def _first_touches(self, tensor: Tensor) -> dict[int, int]:
        """Return the distinct words that an instance of each memory ever holds, handed inward as a share."""
        stops = self._stops()
        touched = {stops[0]: self._tile(tensor, stops[0])}
        for parent, child in pairwise(stops):
            array = not isinstance(self.nest.accelerator.levels[parent], Memory)
            together = self._tile(tensor, parent if array else child)
            mean = Fraction(sum(self._tiles(tensor, parent, child)), self.nest.lanes(child) // self.nest.lanes(parent))
            share = touched[parent] * (floor(mean) if self.on.ragged_first_touch_rounding else mean) / together
            touched[child] = floor(share)
        return touched

    def _tile(self, tensor: Tensor, level: int) -> int:
        """Return the words that the first lane of a level holds at its first visit."""
        return self._tiles(tensor, level, level)[0]

    def _tiles(self, tensor: Tensor, parent: int, child: int) -> list[int]:
        """Return the words that each lane behind one parent holds at its first visit."""
        walk = BoundaryWalk(self.nest, tensor, parent, child, self.on)
        lanes = walk.lanes_of_first_parent()
        if walk.copies:
            return [walk.tile_words(lanes[0])] * len(lanes)
        return [words for lane in lanes if (words := walk.tile_words(lane))]

    def _instances(self, level: int) -> int:
        """Return what averages are multiplied by: the nominal lanes, or the mean number of those that are busy."""
        if not self.on.averaged_lanes:
            return self.nest.lanes(level)
        busy = prod((self._occupancy(loop) for loop in self.nest.outside(level) if loop.side), start=Fraction(1))
        return floor(busy)

    def _occupancy(self, loop: WalkedLoop) -> Fraction:
        """Return the mean number of iterations that a spatial loop really has."""
        extents = [self.nest.operator.sizes[loop.dimension]]
        for other in self.nest.loops:
            if other is loop:
                break
            if other.dimension == loop.dimension:
                extents = [min(other.step, extent - start) for extent in extents
                           for start in range(0, extent, other.step)]
        return Fraction(sum(-(-extent // loop.step) for extent in extents), len(extents))

    def macs(self) -> int:
        """Return the multiply-accumulates: all of them, or the average lane's times the lanes in use."""
        if not self.on.averaged_lanes:
            return self.nest.operator.macs
        innermost = self._stops()[-1]
        behind = prod(loop.count for loop in self.nest.loops if loop.side and loop.level >= innermost)
        busy = prod((self._occupancy(loop) for loop in self.nest.outside(innermost) if loop.side), start=Fraction(1))
        return floor(self.each * floor(busy * behind))

    def compute_cycles(self) -> int:
        """Return the cycles of compute: of nominal steps, or of those of the lane that really works longest."""
        if self.on.nominal_cycles:
            steps = prod(loop.count for loop in self.nest.loops if loop.side is None)
        else:
            steps = lockstep(self.nest) if self.on.lockstep_steps else self.nest.steps()
        return ceil(steps * lane_use(self.nest.operator, self.nest.accelerator).cycles)

    def stepwise_cycles(self) -> int:
        """Return the cycles of steps that each wait for the longer of their compute and their transfers.

        The steps are those of the temporal loops outside the arrays, the transfers those of the memory outside them.
        """
        at = self.nest.shared
        memory = self.nest.accelerator.memory(at)
        inner = [place for place in self._memories() if place > at]
        outside = sum(loop.side is None for loop in self.nest.outside(inner[0] if inner else at))
        moved: dict[tuple[int, ...], list[Fraction]] = {}
        for tensor in self.nest.operator.tensors:
            holders = self._holders(tensor)
            if at not in holders:
                continue
            child = min((place for place in holders if place > at), default=len(self.nest.accelerator.levels))
            scale = Fraction(held_bits(tensor, self.nest.accelerator), memory.word_bits)
            for visit, words in BoundaryWalk(self.nest, tensor, at, child, self.on).by_step():
                moved.setdefault(visit[:outside], [Fraction(0), Fraction(0)])[tensor.is_output] += words * scale
        total = 0
        for number, (visit, (read, written)) in enumerate(moved.items()):
            rate, busy = memory.bandwidth, lockstep(self.nest, visit)
            ingress = cycles(read, rate.read, rate.shared)
            total += busy + ingress if number == 0 else max(
                busy, ingress, cycles(written, rate.write, rate.shared), cycles(read + written, rate.shared))
        return total

    def port_cycles(self, memory: Memory, counts: dict[tuple[str, str], ReplayedCount], compute: int) -> int:
        """Return the cycles that the ports of an average instance need; 0 where bandwidth is unlimited."""
        level, rate = self.nest.accelerator.levels.index(memory), memory.bandwidth
        lanes, mean = self.nest.lanes(level), self._instances(level)
        moved = [self._words(memory, counts, *kinds) for kinds in (("reads", "drains"), ("fills", "updates"))]
        if self.on.rates_in_doubles:
            demands = [sum((ceil(float(words / mean) / (lanes / mean)) / compute for words in port), start=0.0)
                       for port in moved]
            slowed = min((limit / demand for limit, demand in zip(
                (rate.read, rate.write, rate.shared), (*demands, sum(demands)), strict=True)
                if limit is not None and limit < demand), default=1.0)
            return ceil(compute / slowed) if slowed < 1 else 0
        read, write = (sum(port, start=Fraction(0)) / lanes for port in moved)
        return max(cycles(read, rate.read), cycles(write, rate.write), cycles(read + write, rate.shared))

    def energy(self, memory: Memory, counts: dict[tuple[str, str], ReplayedCount]) -> float:
        """Return the picojoules of all accesses at a memory, each of which moves a whole block."""
        level, block, used = self.nest.accelerator.levels.index(memory), memory.block_words, Fraction(1)
        if self.on.whole_blocks:
            gathered, cluster = memory.access_grain
            block, lanes = block * gathered, self.nest.lanes(level)
            clusters = max(1, self.nest.accelerator.instances(memory.name) // cluster)
            used = Fraction(lanes, cluster * min(lanes, clusters))
        total = Fraction(0)
        for tensor in self.nest.operator.tensors:
            count = counts.get((memory.name, tensor.name))
            if count is not None:
                scale = Fraction(held_bits(tensor, self.nest.accelerator), memory.word_bits)
                total += scale * count.instances * sum(
                    ceil(getattr(count, kind) / block) * block * Fraction(getattr(memory.energy, f"{kind[:-1]}_pj"))
                    for kind in KINDS)
        return float(total / used)

    def leakage_pj_per_cycle(self) -> float:
        """Return what the memories leak in a cycle, as far as they are used."""
        levels = self.nest.accelerator.levels
        used_mw = sum(memory.leakage_mw * self._instances(levels.index(memory))
                      for memory in self.nest.accelerator.memories)
        return used_mw / self.nest.accelerator.frequency_mhz * 1000

    def _words(self, memory: Memory, counts: dict[tuple[str, str], ReplayedCount], *kinds: str) -> list[Fraction]:
        """Return the words of each tensor, in the memory's own width, that all instances move."""
        return [Fraction(held_bits(tensor, self.nest.accelerator), memory.word_bits) * count.instances * sum(
            (Fraction(getattr(count, kind)) for kind in kinds), start=Fraction(0))
            for tensor in self.nest.operator.tensors
            if (count := counts.get((memory.name, tensor.name))) is not None]

    def _round(self, words: Fraction) -> Fraction:
        return Fraction(floor(words + Fraction(1, 2))) if self.on.averaged_lanes else words

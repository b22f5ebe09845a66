"""What no mapping can beat where zeros are made use of: looser than the dense bounds, which do not hold there.

Every product that is not gated or skipped is performed; every word of every tensor that is not zero crosses the
outermost memory once, unless all that it is ever multiplied with is zero. (Read more than once, each time for fewer
products, a word is left out more often, but not so much more often that fewer reads remain: the chance that some of n
words are not zero grows slower than n.) Further in, and of what must come again, the least share of what the static
schedule moves of each tensor alone counts.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from tilewright.cost.bounds.layer import BoundRows
from tilewright.cost.bounds.passing import Chain, keepers
from tilewright.cost.bounds.rows import Floats, MachineRows, Whole, whole
from tilewright.cost.bounds.steps import compute_steps
from tilewright.cost.bounds.traffic import TensorTraffic, least_alone, ports_of
from tilewright.cost.sparse.rates import Shares, all_zero
from tilewright.hardware import ACCESSES, NETWORK, RATE, Sparsity
from tilewright.mapping import compression, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor

_ROUNDING = 1 - 1e-9
MOST_PASSED = 5
"""Memories that a tensor may pass, at most, for more than the outermost to be looked at."""


def sparse_rows(operator: Operator, rows: MachineRows, *, perfect: bool = False) -> BoundRows:
    """Return bounds that the expected cycles and energy of every legal mapping respect."""
    machine, name = rows.machine, rows.machine.memories[0].name
    shares = Shares(operator, machine, machine.sparsity or Sparsity())
    steps = compute_steps(operator, rows, perfect).astype(np.float64)
    lanes = lane_use(operator, machine)
    compute = _up(steps * shares.performed(time=True) * float(lanes.cycles))
    ports = list(rows.rates)
    spent, inner, busy = np.zeros(rows.count), np.zeros(rows.count), np.zeros((len(ports), rows.count))
    for tensor in operator.tensors:
        way = "write" if tensor.is_output else "read"
        least = _Alone(shares, rows, tensor, perfect)
        words = least.crossing * tensor.words(operator.sizes)
        words *= float(tensor_bits(tensor, machine)) / machine.memories[0].word_bits
        once = words * rows.numbers[name, f"{'update' if tensor.is_output else 'read'}_energy_pj_per_word"]
        spent, inner = spent + once, inner + least.energy_beyond(once)
        mine = (name, way), (name, "shared")
        for place, at in enumerate(ports):
            passing = words / rows.numbers[at[0], RATE.format(at[1])] if at in mine else 0.0
            busy[place] += np.maximum(least.cycles[place], passing)
    data = {memory.name: rows.none for memory in machine.memories}
    for (memory, _), cycles in zip(ports, busy, strict=True):
        data[memory] = np.maximum(data[memory], _up(cycles))
    latency = np.maximum(compute, np.max(list(data.values()), axis=0))
    macs = operator.macs * shares.performed(time=False) * lanes.energy
    parts = {name: spent * _ROUNDING,
             machine.compute.name: macs * rows.numbers[machine.compute.name, "energy_pj_per_mac"] * _ROUNDING}
    if rows.leakage.any():
        parts["leakage"] = rows.leakage * latency.astype(np.float64) * _ROUNDING
    again = np.maximum(0.0, inner) * _ROUNDING
    return BoundRows(compute, rows.none, data, latency, parts, again, again + sum(parts.values()))


@dataclass(frozen=True)
class _Alone:
    """What one tensor takes at least, with all room to spare, whatever memories keep of it.

    A crossing that the static schedule makes is made with the chance that one word of each tensor that decides on it is
    not zero, or more: with more words it is likelier.
    """

    shares: Shares
    rows: MachineRows
    tensor: Tensor
    perfect: bool

    @cached_property
    def _chains(self) -> list[Chain]:
        """Every set of memories that may keep the tensor, outermost first; none where these are too many to look at."""
        first, *further = keepers(self.tensor, self.rows.machine, {})
        return [(first, *some) for number in range(len(further) + 1) for some in combinations(further, number)
                ] if len(further) <= MOST_PASSED else []

    @cached_property
    def crossing(self) -> float:
        """The least share of the tensor's words that cross the outermost memory."""
        operator, outermost = self.shares.operator, self.shares.accelerator.memories[0].name
        stored, deciding = self._stored(outermost), sorted(self._deciding(outermost, time=False))
        zeros, products = [self.shares.zeros[name] for name in deciding], np.array([
            operator.macs / self.tensor.words(operator.sizes)])
        if self.tensor.is_output and deciding:
            return float(stored * (1.0 - all_zero(tuple(zeros), products)[0]))
        if len(deciding) == 1:
            words = operator.tensor(deciding[0]).words(operator.sizes)
            return float(stored * (1.0 - zeros[0].empty(np.minimum(products, words))[0]))
        return prod((each.density for each in zeros), start=stored)

    def energy_beyond(self, once: Floats) -> Floats:
        """Return (r) the least energy of memories and networks beyond that of each word that must cross the outermost.

        A word that is read k times, for n / k products each, is read k (1 - empty(n / k)) times in the mean, which is
        concave in k: no less than on the chord from k = 1 to n. Where more than one tensor decides, either these words
        count or the least share of all that is read.
        """
        if not self._chains:
            return np.zeros(self.rows.count)
        outermost = self.rows.machine.memories[0].name
        least, deciding = self._share(outermost, time=False), self._deciding(outermost, time=False)
        if self.tensor.is_output or len(deciding) > 1:
            return np.maximum(self._energy(least) - once, self._energy(0.0))
        words = self.tensor.words(self.shares.operator.sizes)
        products = self.shares.operator.macs / words
        rise = (products * least - self.crossing) / (products - 1) if products > 1 else 0.0
        price = self.rows.numbers[outermost, "read_energy_pj_per_word"] * self.rows.scale(self.tensor, outermost)
        found: Floats = self._energy(rise) - rise * words * price
        return found

    def _energy(self, share: float) -> Floats:
        """Return (r) the least energy of memories and networks, where so much is moved at the outermost."""
        found: Floats = self._least(share)[0].min(axis=0)
        return found

    @cached_property
    def cycles(self) -> Floats:
        """The least cycles (p, r) of every port with a limit."""
        if not (self._chains and self.rows.rates):
            return np.zeros((len(self.rows.rates), self.rows.count))
        timed = [self._share(memory, time=True) for memory, _ in self.rows.rates]
        least: Floats = self._least(0.0)[1].min(axis=0) * np.array(timed).reshape(-1, 1)
        return least

    def _least(self, outermost: float) -> tuple[Floats, Floats]:
        """Return the energy (k, r) and cycles (k, p, r) of what is moved, for each set of memories that it may pass."""
        operator, machine = self.shares.operator, self.rows.machine
        homes = {other.name: keepers(other, machine, {})[0] for other in operator.tensors}
        numbers = dict(self.rows.numbers)
        least = min(self._share(memory.name, time=False) for memory in machine.memories)
        for memory in machine.memories:
            share = outermost if memory is machine.memories[0] else self._share(memory.name, time=False)
            for key in [(memory.name, f"{kind}_energy_pj_per_word") for kind in ACCESSES["shared"]]:
                numbers[key] = share * numbers[key]
        for key in [(array.name, NETWORK) for array in machine.fanouts]:
            numbers[key] = least * numbers[key]
        rows = MachineRows(replace(self.rows.columns, numbers=numbers), self.rows.count, self.rows.rules)
        memories = keepers(self.tensor, machine, {})
        kept = np.array([[name in chain for name in memories] for chain in self._chains])
        return least_alone(TensorTraffic(self.tensor, operator, rows, memories, kept), ports_of(rows), homes,
                           self.perfect)

    def _stored(self, memory: str) -> float:
        """Return the share of the tensor's words that a memory holds, metadata apart."""
        return self.shares.zeros[self.tensor.name].density if compression(
            self.shares.accelerator, memory, self.tensor) else 1.0

    def _share(self, memory: str, *, time: bool) -> float:
        """Return the share of the words that the static schedule moves at a memory which are moved, at least."""
        return self._stored(memory) * prod(self.shares.zeros[name].density
                                           for name in self._deciding(memory, time=time))

    def _deciding(self, memory: str, *, time: bool) -> set[str]:
        """Return the names of the tensors that may decide whether a word is moved at a memory."""
        names = [level.name for level in self.shares.accelerator.levels]
        return {leader.name for elision in self.shares.sparsity.elisions
                if names.index(elision.memory) <= names.index(memory) and (elision.action == "skip" or not time)
                and elision.tensor in (self.tensor.name, self.tensor.role)
                for leader in self.shares.named(elision.on) if leader is not self.tensor}


def _up(cycles: Floats) -> Whole:
    return whole(np.ceil(cycles * _ROUNDING))

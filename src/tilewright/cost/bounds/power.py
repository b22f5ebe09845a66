"""What no mapping takes less of in each cycle: the least ratio of energy and latency.

A mapping may be as slow as it likes, but what takes cycles takes energy. Latency is at most the cycles of what is
largest (compute with its waits, or a port), and of all first and last tiles, each in proportion to words that move or
to steps. So for a price of a cycle the least of *energy less the price of all cycles* is a sum of words and steps at
lower prices; while that is not below nothing, no mapping takes less energy than the price in each cycle:

- a step takes the energy of a multiply-accumulate at least, and compute asks for a word of each tensor, whoever else
  does (rule 6); there are as many steps as multiply-accumulates at most, then all on one lane;
- a word that an instance receives or hands on is another one further out, and takes energy there, too; if that is less
  than the price of all its cycles, it could come again and again, and nothing holds;
- a memory that tensors need not pass only adds to either, so that the chains of `Passing` are enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from tilewright.cost.bounds.passing import Bypass, Chain, Passing, keepers
from tilewright.cost.bounds.rows import MachineRows, Once
from tilewright.cost.bounds.rules import Leeway
from tilewright.cost.bounds.steps import compute_steps
from tilewright.hardware import ACCESSES, Accelerator, Memory
from tilewright.mapping import held_bits, lane_use
from tilewright.workload import Operator, Tensor

if TYPE_CHECKING:
    from tilewright.mapping import MapSpace

_SLACK, _HALVINGS = 1 - 1e-9, 40
Steady = tuple[str, str]
"""What sets the steady cycles: a port of a memory, or compute (two empty names)."""
_COMPUTE: Steady = ("", "")


def least_power(space: "MapSpace", bypass: Bypass = False) -> float:
    """Return picojoules that every legal mapping of a space takes in each cycle of its latency, at least.

    ``bypass`` is as of `layer_bounds`. Where zeros are made use of, or one memory serves many lanes, it is the leakage
    alone.
    """
    machine = space.accelerator
    rows = MachineRows.one(machine, Leeway.of(space))
    leakage = float(rows.leakage[0])
    if machine.sparsity is not None or machine.unshared is not machine:
        return leakage
    return leakage + _Power(Passing(space.operator, rows, dict(space.constraints.keeps), bypass)).least * _SLACK


@dataclass(frozen=True)
class _Power(Once):
    """Energy in each cycle, but for leakage."""

    passing: Passing

    @property
    def least(self) -> float:
        """The highest price of a cycle that no mapping is below, whatever sets its steady cycles."""
        price = self._spent(_COMPUTE, 0.0, self._steps[-1]) / (self._steps[-1] * self._pace)
        for steady in (_COMPUTE, *self.passing.rows.rates):
            price = min([price, *self._most(steady)])
            low, high = (price, price) if self._holds(steady, price) else (0.0, price)
            for _ in range(_HALVINGS if low < high else 0):
                middle = (low + high) / 2
                low, high = (middle, high) if self._holds(steady, middle) else (low, middle)
            price = low
        return price

    def _most(self, steady: Steady) -> Iterator[float]:
        """Yield the prices from which on words could come again and again."""
        for tensor, together in self._unlimited:
            spent = sum(self._prices[name, tensor.name][kind] for name, kind in together)
            cycles = sum(self._cycles(steady, (name, tensor), kind, False) for name, kind in together)
            if cycles > 0:
                yield spent / cycles

    def _holds(self, steady: Steady, price: float) -> bool:
        """Whether no mapping of which ``steady`` sets the cycles takes less energy than the price of all its cycles."""
        rounded = price * (2 * len(self._machine.memories) - 1)
        if steady != _COMPUTE:
            return self._spent(steady, price, float(self._steps[0])) >= rounded
        return all(self._spent(steady, price, steps) - price * self._pace * steps >= rounded for steps in self._steps)

    @property
    def _operator(self) -> Operator:
        return self.passing.operator

    @property
    def _machine(self) -> Accelerator:
        return self.passing.rows.machine

    @cached_property
    def _pace(self) -> float:
        """Cycles of a step."""
        return float(lane_use(self._operator, self._machine).cycles)

    @cached_property
    def _steps(self) -> list[float]:
        """The fewest steps, the most, and those between from which on a tensor is asked for more often."""
        fewest = float(compute_steps(self._operator, self.passing.rows)[0])
        asked = {self._asked(t, chain[-1]) for t in self._operator.tensors for chain in self.passing.chains[t.name]}
        return [fewest, *(each for each in sorted(asked) if each > fewest), float(self._operator.macs)]

    def _asked(self, tensor: Tensor, name: str) -> float:
        return self.passing.rows.once((self._operator, tensor.name, name, "asked"),
                                      lambda: float(self.passing.asked(tensor, name)[0]))

    @cached_property
    def _unlimited(self) -> list[tuple[Tensor, tuple[tuple[str, str], ...]]]:
        """Accesses of a tensor, by memory and kind, that go together for any number of words.

        What compute asks for is limited. Words cross from a memory to one further in together with what these do: of an
        instance each word is another one further out. Partial sums that come back may be read once more each.
        """
        found: list[tuple[Tensor, tuple[tuple[str, str], ...]]] = []
        for tensor in self._operator.tensors:
            for outer, inner in combinations(keepers(tensor, self._machine, self.passing.keeps), 2):
                found.append((tensor, ((outer, "read"), (inner, "fill"))))
                if tensor.is_output:
                    found += [(tensor, ((outer, "update"), (inner, "drain"))), (tensor, ((outer, "read"),)), (
                        tensor, ((outer, "read"), (inner, "fill"), (inner, "read")))]
        return found

    @cached_property
    def _memories(self) -> dict[str, Memory]:
        return {memory.name: memory for memory in self._machine.memories}

    @cached_property
    def _prices(self) -> dict[tuple[str, str], dict[str, float]]:
        """Picojoules of each kind of access for a word, by memory and tensor."""
        return {(name, tensor.name): {kind: float(spent[0]) for kind, spent in self.passing.prices(
            tensor, name).items()} for name in self._memories for tensor in self._operator.tensors}

    @cached_property
    def _networks(self) -> dict[tuple[str, Chain], float]:
        """Picojoules of all arrays by tensor and chain."""
        return {(name, chain): sum(float(spent[0]) for spent in self.passing.network(
            self._operator.tensor(name), chain).values()) for name, chains in self.passing.chains.items()
            for chain in chains}

    @cached_property
    def _slowest(self) -> dict[tuple[str, str], float]:
        """Cycles of a word of a memory's own width by memory and way, ``read`` or ``write``, of one instance."""
        return {(memory.name, way): max(self._a_word(memory.name, way), self._a_word(memory.name, "shared"))
                for memory in self._machine.memories for way in ("read", "write")}

    def _a_word(self, memory: str, port: str) -> float:
        words, cycles = self.passing.rows.rates.get((memory, port), ([1], [0]))
        return float(cycles[0]) / float(words[0])

    def _cycles(self, steady: Steady, at: tuple[str, Tensor], kind: str, feeding: bool) -> float:
        """Return the cycles that an access for a word may take, at compute's asking (``feeding``) or not."""
        return self.once((steady, at[0], at[1].name, kind, feeding), lambda: self._most_cycles(
            steady, at, kind, feeding))

    def _most_cycles(self, steady: Steady, at: tuple[str, Tensor], kind: str, feeding: bool) -> float:
        memory, tensor = self._memories[at[0]], at[1]
        slowest = self._slowest[memory.name, "read" if kind in ACCESSES["read"] else "write"]
        cycles = self._a_word(*steady) if steady[0] == memory.name and kind in ACCESSES[steady[1]] else 0.0
        inner = memory is not self._machine.memories[0] and kind in ("fill", "drain")
        if inner and memory.buffering == "single":
            cycles += slowest if steady == _COMPUTE else 0.0
        elif kind == ("drain" if tensor.is_output else "fill") or (
                not feeding and kind == ("update" if tensor.is_output else "read")):
            cycles += slowest
        return cycles * float(held_bits(tensor, self._machine)) / memory.word_bits

    def _spent(self, steady: Steady, price: float, steps: float) -> float:
        """Return the least energy, less the price of all cycles but those of so many steps."""
        computing = self.passing.rows.numbers[self._machine.compute.name, "energy_pj_per_mac"][0] * lane_use(
            self._operator, self._machine).energy
        return float(self._operator.macs * computing) + sum(
            min(min(self._along(steady, price, (tensor, chain), steps)) for chain in self.passing.chains[tensor.name])
            for tensor in self._operator.tensors)

    def _along(self, steady: Steady, price: float, way: tuple[Tensor, Chain], steps: float) -> Iterator[float]:
        """Yield the least that words of a tensor take along a chain if compute asks for the fewest, and the most."""
        tensor, chain = way
        words, last = float(tensor.words(self._operator.sizes)), chain[-1]

        def reduced(name: str, kind: str, *, feeding: bool = False) -> float:
            return self._prices[name, tensor.name][kind] - price * self._cycles(steady, (name, tensor), kind, feeding)

        out, into = ("update", "drain") if tensor.is_output else ("read", "fill")
        crossing = [reduced(outer, out) + reduced(inner, into) for outer, inner in pairwise(chain)]
        fixed, drained = words * sum(crossing) + self._networks[tensor.name, chain], 0.0
        if tensor.is_output and crossing:
            # Of all words that are drained an instance drains no more than come to its parent.
            drained = min(crossing[-1], self._prices[last, tensor.name]["drain"])
            fixed -= words * drained
        for asked in (max(self._asked(tensor, last), steps), float(self._operator.macs)):
            found = fixed + asked * reduced(last, out, feeding=True)
            if tensor.is_output:
                again = (asked - words) * reduced(last, "read")
                found += min(again + words * drained, asked * drained) if crossing else again
            yield found

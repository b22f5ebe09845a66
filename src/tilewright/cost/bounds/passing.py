"""What passes every memory on its way at least once: words, energy, and what they take of ports.

Compute asks the memory that feeds it for every operand of every multiply-accumulate; only lanes behind fan-outs that
multicast (or reduce) share an access.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.rows import Floats, MachineRows, Once, Whole, whole
from tilewright.hardware import ACCESSES, NETWORK, Accelerator, Fanout, Memory
from tilewright.workload import Operator, Tensor

Keeps = dict[str, tuple[str, ...]]
Chain = tuple[str, ...]
"""Memories that keep a tensor, outermost first."""
Bypass = bool | Collection[tuple[str, str]]
"""Whether tensors may pass memories: any but their home, or these pairs of a memory and a tensor."""


Moved = dict[str, Whole | int]
"""What must move of one tensor at one memory, over all its instances: words of the tensor by kind of access.

Reads and drains of outputs are those of the fewest drains: only their sum must be.
"""


@dataclass(frozen=True)
class Passage:
    """What must move of one tensor at each memory of a chain."""

    passing: "Passing"
    tensor: Tensor
    moved: dict[str, Moved]

    @cached_property
    def spent(self) -> dict[str, Floats]:
        """The energy (r) of these words at the memories, and of every fan-out.

        By rule 6, an output's reads = updates - (evictions - fills), and evictions lie between the words and the
        updates; so energy, linear in the evictions, is least at one of the two ends.
        """
        found = dict[str, Floats]()
        for name, moved in self.moved.items():
            prices = self.passing.prices(self.tensor, name)
            out, into = (sum((np.asarray(moved.get(kind, 0), dtype=np.float64) * prices[kind] for kind in kinds),
                             np.zeros(())) for kinds in (ACCESSES["read"], ACCESSES["write"]))
            if "drain" in moved:
                out = np.minimum(out, np.asarray(moved["update"], dtype=np.float64) * prices["drain"])
            found[name] = out + into
        return found | self.passing.network(self.tensor, tuple(self.moved))


def keepers(tensor: Tensor, accelerator: Accelerator, keeps: Keeps) -> Chain:
    """Return the memories that keep a tensor, outermost first: those that can, where ``keeps`` says nothing else."""
    return tuple(memory.name for memory in accelerator.memories
                 if (tensor.name in keeps[memory.name] if memory.name in keeps
                     else memory.can_keep(tensor.name, tensor.role)))


@dataclass(frozen=True)
class Passing:
    """What passes where memories keep what they can, or ``keeps`` says; by ``bypass`` wherever it costs least."""

    operator: Operator
    rows: MachineRows
    keeps: Keeps
    bypass: Bypass

    @cached_property
    def alike(self) -> Once:
        """What is known of these tensors on these machines, whatever the sizes of the operator."""
        bypass = self.bypass if isinstance(self.bypass, bool) else tuple(self.bypass)
        return self.rows.once((self.operator.tensors, *self.keeps.items(), bypass), Once)

    @property
    def chains(self) -> dict[str, tuple[Chain, ...]]:
        """By tensor the sets of memories that may keep it: all, or where some may let it pass the least ones.

        Of the latter that whose innermost memory is furthest in is the last.
        """
        return self.alike.once("chains", lambda: {
            t.name: self._least(t.name, keepers(t, self.rows.machine, self.keeps)) for t in self.operator.tensors})

    def _least(self, name: str, chain: Chain) -> tuple[Chain, ...]:
        """Return the chains of memories that must keep a tensor, and at most one other."""
        free = self._free(name, chain)
        wanted = [frozenset(), *(frozenset({memory}) for memory in chain if memory in free)]
        return tuple(tuple(memory for memory in chain if memory not in free - one) for one in wanted)

    def _free(self, name: str, chain: Chain) -> set[str]:
        """Return the memories of a chain that a tensor may pass."""
        return {memory for memory in chain[1:] if (
            self.bypass if isinstance(self.bypass, bool) else (memory, name) in self.bypass)}

    def pairs(self, name: str) -> tuple[Chain, ...]:
        """Return the chains of a tensor that differ by their first or last memory, and keep what they must beside."""
        chain = keepers(self.operator.tensor(name), self.rows.machine, self.keeps)
        free = self._free(name, chain)
        inside = [memory for memory in chain if memory in free]
        kept = [{*pair} for most in range(3) for pair in combinations(inside, most)]
        return tuple(tuple(memory for memory in chain if memory not in free - one) for one in kept)

    @property
    def sure(self) -> bool:
        """Whether every tensor has one chain."""
        return all(len(chains) == 1 for chains in self.chains.values())

    @cached_property
    def _passages(self) -> list[list[Passage]]:
        """Those of every chain, by tensor."""
        return [[self.passage(self.operator.tensor(name), chain) for chain in chains]
                for name, chains in self.chains.items()]

    @cached_property
    def _once(self) -> Once:
        """What is known of the operator on these machines."""
        return self.rows.once((self.operator, "passing"), Once)

    def passage(self, tensor: Tensor, chain: Chain) -> Passage:
        """Return what must move of a tensor along a chain; made once."""
        return self._once.once((tensor.name, chain), lambda: Passage(
            self, tensor, {name: self._moved(tensor, chain, name) for name in chain}))

    def _moved(self, tensor: Tensor, chain: Chain, name: str) -> Moved:
        words = tensor.words(self.operator.sizes)
        crossing, home = self.asked(tensor, name) if name == chain[-1] else words, name == chain[0]
        if not tensor.is_output:
            return {"read": crossing} | ({} if home else {"fill": words})
        return {"update": crossing, "read": crossing - words} | ({} if home else {"drain": words})

    def prices(self, tensor: Tensor, name: str) -> dict[str, Floats]:
        """Return the energy of each kind of access at a memory, (r)."""
        scale = self.rows.scale(tensor, name)
        return {kind: self.rows.numbers[name, f"{kind}_energy_pj_per_word"] * scale for kind in ACCESSES["shared"]}

    def asked(self, tensor: Tensor, name: str) -> Whole:
        """Return how often compute asks ``name``, the innermost keeper, for words, each at least once.

        Over all instances. The lanes that share an access are at most the instances of the fan-outs inside that
        multicast (outputs: reduce).
        """
        asked: Whole = np.maximum(tensor.words(self.operator.sizes),
                                  -(-self.operator.macs // whole(self.sharing(tensor, name))))
        return asked

    def sharing(self, tensor: Tensor, name: str) -> NDArray[np.int64]:
        """Return (r) the lanes that may share an access for a tensor at memory ``name``."""
        return self.rows.sharing(tensor, self.rows.inside[name])

    def network(self, tensor: Tensor, chain: Chain) -> dict[str, Floats]:
        """Return the least energy of each fan-out for one tensor: its words once, or, next to compute, each use."""
        names = [level.name for level in self.rows.machine.levels]
        home, feeding = names.index(chain[0]), names.index(chain[-1])
        found = {}
        for index, level in enumerate(self.rows.machine.levels):
            if isinstance(level, Fanout):
                words = self.operator.macs if index > feeding else (
                    tensor.words(self.operator.sizes) if index > home else 0)
                found[level.name] = words * self.rows.numbers[level.name, NETWORK]
        return found

    def _sure(self, memory: Memory, make: Callable[[Memory, Callable[[tuple[str, ...]], Any]], Whole]) -> Whole:
        """Return what is made of the bits that move at a memory whichever chain is taken; made once of the same.

        Where there are several chains, that is so at the outermost alone. Of a chain its first and its last memory and
        this one decide how much moves here.
        """
        sure = [(name, tuple(dict.fromkeys((chains[-1][0], memory.name, chains[-1][-1]))))
                for name, chains in self.chains.items()
                if memory.name in chains[-1] and (len(chains) == 1 or memory.name == chains[-1][0])]

        def made() -> Whole:
            moved = [(self.rows.bits(tensor, memory.name), self._moved(tensor, chain, memory.name))
                     for name, chain in sure for tensor in [self.operator.tensor(name)]]
            return make(memory, lambda kinds: sum(bits * words.get(kind, 0) for bits, words in moved for kind in kinds))

        return self._once.once((make.__name__, memory.name, *sure), made)

    def port_cycles(self, memory: Memory) -> Whole:
        """Return (r) the cycles that the ports of the average instance take."""
        return self._sure(memory, self._port_cycles)

    def _port_cycles(self, memory: Memory, bits: Callable[[tuple[str, ...]], Any]) -> Whole:
        found = self.rows.none
        for port, kinds in ACCESSES.items():
            if (memory.name, port) in self.rows.rates:
                words, cycles = self.rows.rates[memory.name, port]
                found = np.maximum(found, -(-bits(kinds) * cycles // (self.rows.widths[memory.name] * words)))
        return found

    def blocking_cycles(self, memory: Memory) -> Whole:
        """Return (r) the cycles for which a single-buffered memory's fills and drains block compute."""
        return self._sure(memory, self._blocking_cycles)

    def _blocking_cycles(self, memory: Memory, bits: Callable[[tuple[str, ...]], Any]) -> Whole:
        total, over = self.rows.none, whole(np.ones(self.rows.count))
        for port, kind in (("read", "drain"), ("write", "fill")):
            given = [self.rows.rates[memory.name, own] for own in (port, "shared")
                     if (memory.name, own) in self.rows.rates]
            for words, cycles in (_slower(given),) if given else ():
                total, over = total * words + bits((kind,)) * cycles * over, over * words
        blocked: Whole = -(-total // (self.rows.widths[memory.name] * over))
        return blocked

    def energies(self) -> dict[str, Floats]:
        """Return (r) picojoules by memory and fan-out, of the chains that need the least energy in all."""
        found = {level.name: np.zeros(self.rows.count) for level in self.rows.machine.levels}
        for passages in self._passages:
            best = np.argmin([np.asarray(sum(each.spent.values())) for each in passages], axis=0) if passages[1:] else 0
            for option, each in enumerate(passages):
                for name, energy in each.spent.items():
                    found[name] += energy if len(passages) == 1 else np.where(best == option, energy, 0.0)
        return found


def _slower(rates: list[tuple[Whole, Whole]]) -> tuple[Whole, Whole]:
    """Return the slowest of some rates, by row."""
    words, cycles = rates[0]
    for other, others in rates[1:]:
        slower = other * cycles < words * others
        words, cycles = np.where(slower, other, words), np.where(slower, others, cycles)
    return words, cycles

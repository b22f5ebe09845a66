"""A strategy carried out literally, run by run: the statement of the cost that the compiled model is held to.

It shares nothing with the model but the records of the problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.fusion.microbatch.problem import SYNC, MicroBatchProblem


@dataclass
class WalkedStrategy:
    """What was counted on the way: cycles, picojoules, the most bytes staged at a time, and bytes off chip."""

    latency_cycles: float = 0.0
    energy_pj: float = 0.0
    memory_bytes: float = 0.0
    offchip_bytes: float = 0.0


@dataclass
class _Tally:
    compute: float = 0.0
    read: float = 0.0
    written: float = 0.0
    passing: float = 0.0
    memory: float = 0.0


def walk_strategy(problem: MicroBatchProblem, strategy: Sequence[int]) -> WalkedStrategy:
    """Return what a strategy costs, by doing what `MicroBatchProblem` says, sample by sample of each layer."""
    whole, machine, group = WalkedStrategy(), problem.machine, list[int]()
    for place, size in enumerate(strategy):
        group.append(place)
        if size != SYNC and place < len(strategy) - 1:
            continue
        told = _Tally()
        for layer in group:
            _run(problem, strategy, group, layer, told)
        latency = max(told.compute, (told.read + told.written) / machine.offchip_bytes_per_cycle,
                      told.passing / machine.onchip_bytes_per_cycle)
        whole.latency_cycles += latency
        whole.energy_pj += (told.read * machine.read_pj_per_byte + told.written * machine.write_pj_per_byte
                            + told.passing * machine.onchip_pj_per_byte
                            + told.compute * machine.elements * machine.mac_pj + latency * machine.leakage_pj_per_cycle)
        whole.memory_bytes = max(whole.memory_bytes, told.memory)
        whole.offchip_bytes += told.read + told.written
        group = []
    return whole


def _run(problem: MicroBatchProblem, strategy: Sequence[int], group: Sequence[int], layer: int, told: _Tally) -> None:
    """Run a layer of a group for the whole batch, as many samples at a time as nothing that is held forbids."""
    entries, word = problem.entries, problem.word_bytes
    entry, size = entries[layer], strategy[layer]
    told.memory += max(size, 0) * entry.tile_words * word
    if layer == 0:
        loaded = problem.batch * entry.words * word if size != SYNC else 0.0
        told.read, told.passing = told.read + loaded, told.passing + loaded
        return
    held = [strategy[p] for p in group if p < layer and any(
        p in entries[reader].reads for reader in group if reader >= layer)]
    at_once = min([*held, problem.batch if size == SYNC else size])
    stay = word * sum(entries[q].weight_words for q in group) <= problem.weight_bytes
    kept_away = layer == group[-1] or entry.leaves or any(
        layer in other.reads for reader, other in enumerate(entries) if reader not in group)
    for begin in range(0, problem.batch, at_once):
        samples = min(at_once, problem.batch - begin)
        if begin == 0 or not stay:
            told.read += entry.weight_words * word
            told.passing += entry.weight_words * word
        for p in entry.reads:
            told.passing += samples * entries[p].words * word
            told.read += 0.0 if p in group else samples * entries[p].words * word
        told.passing += samples * entry.words * word
        told.written += samples * entry.words * word if kept_away else 0.0
        told.compute += samples * entry.macs / problem.machine.elements

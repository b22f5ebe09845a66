"""A strategy walked literally: layer by layer, run by run, byte by byte; it shares nothing with the model."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.fusion.microbatch import ChainEntry, FusedMachine, MicroBatchProblem

MACHINE = FusedMachine("toy", 4, 2.0, 20.0, 1e4, 100.0, 0.5, 3.0, 5.0, 0.25, 0.125)


@dataclass
class Walked:
    latency: float = 0.0
    energy: float = 0.0
    memory: float = 0.0
    off: float = 0.0


def walk(problem, strategy):
    """Return what a strategy costs, by doing what it says."""
    whole, machine, first = Walked(), problem.machine, 0
    groups = []
    for place, size in enumerate(strategy):
        if size == -1 or place == len(strategy) - 1:
            groups.append(list(range(first, place + 1)))
            first = place + 1
    for group in groups:
        one = _group(problem, strategy, group)
        compute, read, written, passing, memory = one
        off = (read + written) / machine.offchip_bytes_per_cycle
        latency = max(compute, off, passing / machine.onchip_bytes_per_cycle)
        whole.latency += latency
        whole.energy += (read * machine.read_pj_per_byte + written * machine.write_pj_per_byte
                         + passing * machine.onchip_pj_per_byte + compute * machine.elements * machine.mac_pj
                         + latency * machine.leakage_pj_per_cycle)
        whole.memory = max(whole.memory, memory)
        whole.off += read + written
    return whole


def _group(problem, strategy, group):  # noqa: C901
    word, batch = problem.word_bytes, problem.batch
    compute = read = written = passing = memory = 0.0
    together = sum(problem.entries[q].weight_words for q in group) * word
    for q in group:
        entry = problem.entries[q]
        if strategy[q] > 0:
            memory += strategy[q] * entry.tile_words * word
        if q == 0:
            if strategy[0] > 0:
                read += batch * entry.words * word
                passing += batch * entry.words * word
            continue
        # What of the group is not to be let go while this layer runs.
        at_once = batch if strategy[q] == -1 else strategy[q]
        for p in group:
            waiting = [r for r in group if r >= q and p in problem.entries[r].reads]
            if p < q and waiting:
                at_once = min(at_once, strategy[p])
        done, runs = 0, 0
        while done < batch:
            samples = min(at_once, batch - done)
            if runs == 0 or together > problem.weight_bytes:
                read += entry.weight_words * word
                passing += entry.weight_words * word
            for p in entry.reads:
                passing += samples * problem.entries[p].words * word
                if p not in group:
                    read += samples * problem.entries[p].words * word
            passing += samples * entry.words * word
            later = [r for r, other in enumerate(problem.entries) if q in other.reads and r not in group]
            if q == group[-1] or later or entry.leaves:
                written += samples * entry.words * word
            compute += samples * entry.macs / problem.machine.elements
            done, runs = done + samples, runs + 1
    return compute, read, written, passing, memory


def random_problem(rng, layers=4, batch=None, **more):
    """Return a network of a few layers with residuals, some fast and some slow off chip."""
    entries = [ChainEntry("input", 0, 0, *[int(rng.integers(1, 9))] * 2, (), False)]
    for q in range(1, layers + 1):
        reads = {q - 1} if rng.random() < 0.9 else set()
        reads |= {int(p) for p in rng.integers(0, q, rng.integers(0, 3))} or {0}
        words = int(rng.integers(1, 9))
        entries.append(ChainEntry(f"layer{q}", int(rng.integers(1, 200)), int(rng.integers(0, 60)),
                             words * int(rng.integers(1, 3)), words, tuple(sorted(reads)), False))
    read = {p for entry in entries for p in entry.reads}
    entries = [replace(entry, leaves=q > 0 and (q not in read or rng.random() < 0.1))
               for q, entry in enumerate(entries)]
    machine = replace(MACHINE, offchip_bytes_per_cycle=float(rng.choice([0.25, 1.0, 4.0])),
                      onchip_bytes_per_cycle=float(rng.choice([1.0, 40.0])),
                      leakage_pj_per_cycle=float(rng.choice([0.0, 5.0])))
    given = {"weight_bytes": float(rng.choice([0, 40, 90])), "word_bytes": float(rng.choice([1.0, 2.0])),
             "memory_bytes": float(rng.integers(20, 120)),
             "objective": str(rng.choice(["latency", "energy"]))} | more
    return MicroBatchProblem("toy", tuple(entries), machine, batch or int(rng.integers(2, 7)), **given)


def every_strategy(problem):
    """Return all strategies of a problem."""
    choices = [-1, *range(1, problem.batch + 1)]
    return np.array(np.meshgrid(*[choices] * problem.length)).reshape(problem.length, -1).T.copy()

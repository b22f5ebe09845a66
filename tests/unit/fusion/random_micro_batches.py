"""Random networks of a few layers, and all their strategies."""

from dataclasses import replace

import numpy as np

from tilewright.fusion.microbatch import ChainEntry, FusedMachine, MicroBatchProblem

MACHINE = FusedMachine("toy", 4, 2.0, 20.0, 1e4, 100.0, 0.5, 3.0, 5.0, 0.25, 0.125)


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

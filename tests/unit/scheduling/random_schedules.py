"""Random schedule problems."""

import numpy as np

from tilewright.scheduling import AnalysisTable, ScheduleProblem


def random_table(rng, rows=6, cores=3, options=3, whole=True):
    """Return a table of fronts: fewer bytes for more cycles; some jobs without traffic, some that do not fit."""
    count = rng.integers(0, options + 1, (rows, cores))
    count[np.arange(rows), rng.integers(cores, size=rows)] = rng.integers(1, options + 1, rows)
    cycles = np.sort(rng.integers(1, 60, (rows, cores, options)).astype(float), axis=2)
    traffic = -np.sort(-rng.integers(0, 400, (rows, cores, options)).astype(float), axis=2)
    traffic[rng.random((rows, cores, options)) < 0.15] = 0
    if not whole:
        cycles, traffic = cycles * rng.random(cycles.shape) + 0.01, traffic * rng.random(cycles.shape)
    beyond = np.arange(options) >= count[:, :, None]
    cycles[beyond] = traffic[beyond] = np.inf
    return AnalysisTable(cycles, traffic, np.where(beyond, np.inf, rng.random(cycles.shape) + 0.1), count)


def random_problem(rng, jobs=8, **given):
    """Return a problem of up to ``jobs`` jobs, with releases, deadlines and orders, each by chance."""
    table = random_table(rng, int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 4)),
                         bool(rng.random() < 0.7))
    jobs = int(rng.integers(1, jobs + 1))
    named = rng.permutation(jobs)
    dense = rng.choice([0.15, 0.6])
    pairs = [(named[i], named[j]) for i in range(jobs) for j in range(i + 1, jobs) if rng.random() < dense]
    chosen = {"before": np.array(pairs if rng.random() < 0.5 else [], dtype=np.int64).reshape(-1, 2),
              "release": rng.integers(0, 80, jobs) * float(rng.random() < 0.4),
              "deadline": rng.integers(10, 300, jobs).astype(float)} | given
    return ScheduleProblem(table, rng.integers(len(table.cycles), size=jobs), float(rng.integers(1, 30)), **chosen)

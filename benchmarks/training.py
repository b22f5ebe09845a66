"""Surrogates: how long it takes to draw mappings, to score them, and to train a network on them.

Usage: python benchmarks/training.py [SAMPLES [LAYERS [EPOCHS]]]     (1,000,000, 256 and 10 unless given)

Seconds by the clock and of processor time (what counts on a machine that others use too), on two threads; last, how the
network does on mappings held out. Needs the extra ``learn``.
"""

import sys
import time

import numpy as np

from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.learn import TrainingOptions
from tilewright.mapping import MapSpace
from tilewright.search.surrogate import draw_samples, random_convolutions, train_surrogate


def told(what: str, began: tuple[float, float]) -> None:
    print(f"{what:<34}{time.perf_counter() - began[0]:>10.2f} s{time.process_time() - began[1]:>12.2f} s of processor")


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def main(samples: int = 1_000_000, layers: int = 256, epochs: int = 10) -> None:
    machine, rng = preset("accel-a"), np.random.default_rng(0)
    operators = random_convolutions(layers, rng)
    space = MapSpace(operators[0], machine)
    batch, model = space.sample(rng, samples), DenseModel(operators[0], machine, space.layout)
    model.score(batch.take(slice(0, 1000)))
    began = now()
    model.score(batch, threads=2)
    told(f"score {samples:,} of one layer", began)
    draw_samples(operators[:1], machine, 1000, rng)
    began = now()
    drawn = draw_samples(operators, machine, samples, rng, threads=2)
    told(f"draw and score them of {layers} layers", began)
    began = now()
    _, trained = train_surrogate(drawn, TrainingOptions(epochs=epochs), threads=2)
    told(f"train for {epochs} epochs", began)
    print(f"rank correlations on mappings held out: latency {trained.ranks[0]:.3f}, energy {trained.ranks[1]:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

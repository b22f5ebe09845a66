"""Advice: processor time of exact advice for a product, and of a first guess for a layer beside what `auto` takes.

Usage: python benchmarks/advice.py [STORE [ARCH]]

In microseconds a product of a batch on SAGAR, by objective, stall-free and with every effect counted. With a store
whose library holds mappings (`tilewright map ... --store STORE`), in milliseconds a layer of MobileNet-V2 on ARCH
(edge-s2), memories free to let tensors pass: to find the like layers, to guess, and for 100,000 mappings of `auto`; and
EDP of the guess in that of `auto`.
"""

import sys
import time
from statistics import median

import numpy as np

from tilewright.api.warm import source_of
from tilewright.cost import SAGAR, PartitionEffects, best_configurations
from tilewright.hardware import preset
from tilewright.mapping import KeptSets, MapSpace
from tilewright.recommendation import LIKE, first_guess
from tilewright.search import Objective, search_spaces
from tilewright.store import Library
from tilewright.workload import unique_operators, zoo

ALL = PartitionEffects(bypass=True, summation="banks", ports=True, collation=True, dram="whole")
REPEATS, EVERY = 5, 5


def products(count: int = 2_000) -> None:
    sizes = np.random.default_rng(0).integers(1, 10_001, (count, 3))
    given = SAGAR.configurations("realisable")
    for objective in ("latency", "energy", "edp"):
        for name, effects in (("stall-free", PartitionEffects()), ("all effects", ALL)):
            taken = []
            for _ in range(REPEATS):
                began = time.process_time()
                best_configurations(sizes, given, SAGAR, effects, objective=objective)
                taken.append(time.process_time() - began)
            print(f"{objective:<10}{name:<14}{min(taken) / count * 1e6:>8.1f} us a product")


def layers(store: str, arch: str) -> None:
    machine, goal = preset(arch), Objective.parse("edp", ())
    operators = [one.operator for one in unique_operators(zoo.load("mobilenet-v2"))]
    spaces, rows = [MapSpace(one, machine) for one in operators], []
    with Library(store) as library:
        for at in range(0, len(operators), EVERY):
            found, guessed = [], []
            for _ in range(1 + REPEATS):  # the first compiles
                began = time.process_time()
                like = library.nearest(spaces, str(goal), LIKE)[at]
                found.append((time.process_time() - began) / len(spaces))
                began = time.process_time()
                lent = [source_of(entry, operators[at]) for entry in like]
                guess = first_guess(KeptSets(MapSpace(operators[at], machine)), lent, goal)
                guessed.append(time.process_time() - began)
            began = time.process_time()
            best = search_spaces(KeptSets(spaces[at]), objective=goal, budget=100_000)
            rows.append((1e3 * median(found), 1e3 * median(guessed), 1e3 * (time.process_time() - began),
                         guess.score / best.score))
            print(f"{operators[at].name:<30}{rows[-1][0]:>8.2f}{rows[-1][1]:>8.2f}{rows[-1][2]:>10.0f} ms"
                  f"{rows[-1][3]:>10.4f}", flush=True)
    looked, guessed_ms, searched, share = (median(column) for column in zip(*rows, strict=True))
    print(f"{'median':<30}{looked:>8.2f}{guessed_ms:>8.2f}{searched:>10.0f} ms{share:>10.4f}")


if __name__ == "__main__":
    products()
    if len(sys.argv) > 1:
        layers(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "edge-s2")

"""Mappings per second of the dense model beside the plain C loop: by stride, tiling and threads.

Usage: python benchmarks/dense.py [MAPPINGS [REPEATS]]
"""

import sys

from figures import cores, machine
from yardstick import measure_dense


def main(mappings: int = 100_000, repeats: int = 15) -> None:
    print(machine())
    print(f"{'':<34}{'dense model':>16}{'C loop':>16}{'ratio':>8}")
    for stride in (1, 2):
        rates = measure_dense(mappings, repeats, cores(), stride)
        for tiling in ("", "perfect_"):
            for threads, suffix in ((1, "_one_thread"), (cores(), "")):
                ours = rates.by_name[f"dense_{tiling}mappings_per_second{suffix}"]
                loop = rates.by_name[f"dense_c_loop_{tiling}mappings_per_second{suffix}"]
                name = f"stride {stride}, {tiling.rstrip('_') or 'ragged'}, {threads} thread{'s' * (threads > 1)}"
                beside = f"{loop:>14,.0f}/s{ours / loop:>8.1f}" if ours and loop else ""
                print(f"{name:<34}{ours:>14,.0f}/s{beside}")
        if rates.reason:
            print(f"The C loop was not measured: {rates.reason}.")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))

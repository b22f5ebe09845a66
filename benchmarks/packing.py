"""Packing: CPU seconds to place minimalloc's challenge instances at their capacity, one core.

Usage: python benchmarks/packing.py [METHOD [SECONDS [FOLDER]]]
       python benchmarks/packing.py inplace NETWORK ...

The six instances and the example that stand with the tests, or those of a folder (``NAME.CAPACITY.csv``): what a method
comes to within so many seconds each. The compiled search is loaded before it is timed. With ``inplace``: the heights
of networks' activations, words of 8 bits, where what element by element operators make may not, and may, take the place
of what they read last.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from tilewright.allocation import network_problem, read_pads
from tilewright.packing import Buffers, pack, read_buffers, verify_packing
from tilewright.workload import tensor_graph, zoo

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "unit" / "packing" / "minimalloc"


ELEMENTWISE = "relu", "add", "gelu", "norm", "scale", "softmax", "silu", "act"
"""What names of such operators hold in the zoo."""


def activations(network: str) -> Buffers:
    """Return what a network makes and reads, and whose place each may take."""
    problem = network_problem(tensor_graph(zoo.load(network)), read_pads("1x1GB"))
    tensors, touches = problem.tensors, problem.touches
    inside = [at for at, one in enumerate(tensors) if touches[at] and not one.weights]
    inplace: dict[int, tuple[str, ...]] = dict.fromkeys(inside, ())
    for at, step in enumerate(problem.steps):
        for made in step.writes if any(part in step.name for part in ELEMENTWISE) else ():
            inplace[made] = tuple(tensors[one].name for one in step.reads if one in inplace and touches[one][-1] == at
                                  and tensors[one].size_bytes == tensors[made].size_bytes)
    return Buffers(tuple(tensors[at].name for at in inside),
                   np.array([0 if tensors[at].outside else touches[at][0] for at in inside]),
                   np.array([touches[at][-1] + 1 for at in inside]),
                   np.array([tensors[at].size_bytes for at in inside]), inplace=tuple(inplace.values()))


def in_place(*networks: str) -> None:
    for network in networks:
        buffers = activations(network)
        found = [pack(one, seconds=20) for one in (replace(buffers, inplace=()), buffers)]
        told = "".join(f"{one.height:>12,}{' proven' if one.proven else f' gap {one.gap:.1%}'}" for one in found)
        print(f"{network:<14}{sum(map(bool, buffers.inplace)):>4}{told}", flush=True)


def main(method: str = "exact", seconds: str = "60", folder: str | Path = FOLDER) -> None:
    files = sorted(Path(folder).glob("*.*.csv"), key=lambda path: path.name)
    pack(read_buffers(FOLDER / "B.1048576.csv"), 1 << 20)
    print("instance  buffers  live peak    height  placed  nodes     CPU s")
    total, placed = 0.0, 0
    for path in files:
        buffers, capacity = read_buffers(path), int(path.name.split(".")[1])
        start = time.process_time()
        found = pack(buffers, capacity, method, seconds=float(seconds))
        took = time.process_time() - start
        holds = found.offsets is not None and not verify_packing(buffers, found.offsets, capacity)
        total, placed = total + took, placed + holds
        print(f"{path.name.split('.')[0]:<8}  {len(buffers):>7}  {buffers.live_peak:>9}  {found.height:>8}  "
              f"{'yes' if holds else 'no':>6}  {found.nodes:<8}  {took:.3f}")
    print(f"{placed} of {len(files)} placed in {total:.2f} CPU seconds")


if __name__ == "__main__":
    if sys.argv[1:2] == ["inplace"]:
        in_place(*sys.argv[2:])
    else:
        main(*sys.argv[1:])

"""Packing: CPU seconds to place minimalloc's challenge instances at their capacity, one core.

Usage: python benchmarks/packing.py [METHOD [SECONDS [FOLDER]]]

The six instances and the example that stand with the tests, or those of a folder (``NAME.CAPACITY.csv``): what a method
comes to within so many seconds each. The compiled search is loaded before it is timed.
"""

import sys
import time
from pathlib import Path

from tilewright.allocation.packing import pack, read_buffers, verify_packing

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "unit" / "allocation" / "minimalloc"


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
    main(*sys.argv[1:])

"""Buffers placed in a memory: what is asked for, and what came of it."""

from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.flags import command_line, takes
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.plan_options import PackOptions
from tilewright.api.sheets import OnSheet
from tilewright.base import InputError, write_whole
from tilewright.jobs import interruptible, present_stop
from tilewright.packing import Buffers, Packing, buffers_csv, read_buffers
from tilewright.packing import pack as pack_buffers


@dataclass(frozen=True, repr=False)
class PackingRun(OnSheet):
    """What came of placing buffers: all of it in ``packing``.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.packing import Buffers
    >>> run = tw.pack(Buffers(("a", "b", "c"), lower=[0, 2, 3], upper=[3, 9, 9], size=[4, 4, 4]))
    >>> run.packing.height, run.packing.bound, sorted(run.offsets.values())
    (8, 8, [0, 4, 4])
    """

    name: str
    buffers: Buffers
    packing: Packing
    capacity: int | None = None
    command: str = ""
    interrupted: bool = False

    @property
    def placed(self) -> bool:
        """Whether there is a placement, within the capacity where one was given."""
        return self.packing.offsets is not None

    @property
    def offsets(self) -> dict[str, int]:
        """The first address of each buffer; empty where there is no placement."""
        found = self.packing.offsets
        return {} if found is None else dict(zip(self.buffers.ids, found.tolist(), strict=True))

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.packing_sheet(self.name, self.buffers, self.packing, self.capacity, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        found, buffers = self.packing, self.buffers
        columns = {"id": list(buffers.ids), **{name: getattr(buffers, name).tolist() for name in (
            "lower", "upper", "size", "alignment")}, "gaps": list(buffers.gaps), "inplace": list(buffers.inplace),
            "offset": [None] * len(buffers) if found.offsets is None else found.offsets.tolist()}
        return {"name": self.name, "capacity": self.capacity, "placed": self.placed, "height": found.height,
                "bound": found.bound, "gap": found.gap, "proven": found.proven, "live_peak": buffers.live_peak,
                "method": found.method, "nodes": found.nodes, "seconds": round(found.seconds, 3),
                "command": self.command,
                "buffers": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]}

    def write_csv(self, path: str | Path) -> Path:
        """Write the buffers, with their addresses where they are placed, as CSV; folders are made."""
        return write_whole(ready_place(path), buffers_csv(self.buffers, self.packing.offsets))


@takes(PackOptions)
def pack(asked: PackOptions) -> PackingRun:
    """Place buffers in address and time so that none share an address while both live.

    Without a capacity the least height is looked for, and no placement is below the bound that comes with it. Ctrl-C
    ends it and returns what was found.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.packing import Buffers
    >>> buffers = Buffers(("a", "b", "c"), lower=[0, 2, 3], upper=[3, 9, 9], size=[4, 4, 4])
    >>> tw.pack(buffers, capacity=7).placed
    False
    """
    if asked.seconds is not None and not (isfinite(asked.seconds) and asked.seconds >= 0):
        raise InputError("seconds", "must be a number from 0 on", asked.seconds)
    given = isinstance(asked.buffers, Buffers)
    if not given and not isinstance(asked.buffers, str | PathLike):
        raise InputError("buffers", "must be a CSV file or buffers", asked.buffers)
    buffers = asked.buffers if isinstance(asked.buffers, Buffers) else read_buffers(Path(asked.buffers))
    name = "buffers" if given else Path(str(asked.buffers)).name
    if asked.out is not None:
        ready_place(asked.out)
    ready_cache()
    stop = present_stop()
    with interruptible(stop):
        found = pack_buffers(buffers, asked.capacity, asked.method, seconds=asked.seconds, stop=stop,
                             bank=asked.bank)
    command = command_line("pack", asked, buffers=name if given else str(asked.buffers))
    run = PackingRun(name, buffers, found, asked.capacity, command, stop.is_set())
    if asked.out is not None and run.placed:
        run.write_csv(Path(asked.out))
    return run

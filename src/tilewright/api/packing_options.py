"""What `pack` is asked for, each option once (see `tilewright.api.options`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from tilewright.api.flags import Flag, option

if TYPE_CHECKING:
    import os

    from tilewright.packing import Buffers


@dataclass(frozen=True)
class PackOptions:
    """What `pack` is asked for.

    Parameters
    ----------
    buffers
        A CSV file of buffers, or buffers.
    seconds
        None: as long as it takes.
    """

    buffers: str | os.PathLike[str] | Buffers = field(metadata={"flags": (Flag(
        ("buffers",), "Buffers, a CSV file: id, lower, upper (the first time after the end) and size of each; as of "
        "minimalloc.", "argument", "FILE.csv"),)})
    capacity: int | None = option(None, "--capacity", "-c", kind="whole", least=1, metavar="N", says=(
        "Addresses that there are, in the unit of the sizes. Default: the least height is looked for."))
    _: KW_ONLY
    bank: int | None = option(None, "--bank", kind="whole", least=1, metavar="N", says=(
        "Addresses of a bank, from 0 on: no buffer lies across two. Default: all is one bank."))
    method: str = option("exact", "--method", "-m", says="How to place; see: tilewright list packers.")
    seconds: float | None = option(60.0, "--seconds", kind="number", metavar="S", says=(
        "Ends the search; what was found until then is kept."))
    out: str | os.PathLike[str] | None = option(None, "--out", kind="path", metavar="FILE.csv", never=True, says=(
        "Write the buffers with their addresses, as a file of the same kind."))

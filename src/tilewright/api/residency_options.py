"""What `allocate` is asked for, each option once (see `tilewright.api.options`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import again, option
from tilewright.api.options import KeptOptions, OnMachine, SearchOptions, SpaceOptions

if TYPE_CHECKING:
    import os

    from tilewright.allocation import Pad
    from tilewright.api.inputs import Machine

Oversizes = Literal["refuse", "cut", "tile"]
"""The same as those of the room below, which loads late."""


@dataclass(frozen=True)
class ResidencyOptions(KeptOptions, OnMachine):
    """What `allocate` is asked for.

    Parameters
    ----------
    pads
        Scratchpads, as text or by themselves, which then have their own ways and words.
    """

    arch: Machine = option("nvdla-like", "--arch", "-a", metavar="ARCH", says=(
        "An accelerator, whose main memory and operations count: a preset (tilewright list accelerators), or a file."))
    _: KW_ONLY
    pads: str | Sequence[Pad] = option("3x128KB", "--pads", metavar="PADS", always=True, says=(
        "Scratchpads: 3x128KB, or by the roles that they may hold, in=256KB,weights=512KB,out=256KB."))
    word: int = option(1, "--word", kind="whole", least=1, metavar="BYTES",
                       says="Addresses and room on scratchpads are in words of so many bytes.")
    bandwidth: str | None = option(None, "--bandwidth", "-w", metavar="RATE", says=(
        "Of each scratchpad to the main memory: 16GB/s, or 16B/cycle. Default: that of the accelerator's main memory."))
    across: str | None = option(None, "--across", metavar="RATE", says=(
        "Between scratchpads: what moves does not pass the main memory then. Default: there is no such way."))
    channels: int = option(1, "--channels", kind="whole", least=1, says="DMA channels of the simulation.")
    objective: str = option("bytes", "--objective", "-o", always=True, metavar="NAME[,NAME...]", says=(
        "What to minimise: bytes, latency, energy, several one after the other (bytes,energy), edp, peak (the least "
        "capacity of each scratchpad that spills nothing), or thesis (transitions, as printed there)."))
    solver: str = option("exact", "--solver", "-m", always=True, says="How; see: tilewright list allocators.")
    solvers: str | Sequence[str] = option((), "--solvers", kind="names", metavar="NAME,...", says=(
        "Several, side by side; the best plan is taken."))
    seconds: float = option(60.0, "--seconds", kind="number", metavar="S", says=(
        "For each solver, less what cutting operations into tiles takes; it ends sooner where no plan can be better."))
    oversize: str = option("tile", "--oversize", choices=get_args(Oversizes), says=(
        "Operations whose tensors do not fit together: run them in tiles, refuse them, or cut tensors to what fits, as "
        "the thesis does."))
    tile: bool = option(False, "--tile", kind="yes", says="The same as --oversize tile.")
    tile_from: str | os.PathLike[str] | None = option(None, "--tile-from", metavar="RUN", says=(
        "Take the tiles of layers from their mappings in a run of tilewright map (a JSON file, its identity, or last): "
        "those inside its outermost loops, of as many memories as it takes until they fit."))
    split: int | str = option(1, "--split", metavar="PARTS", says=(
        "Split tensors into up to so many parts, each kept or not by itself, on a scratchpad of its own; as it is, a "
        "tensor is whole on one. Parts are of one size, as many as that fill the smallest scratchpad; auto takes as "
        "many as there is time for."))
    order: bool = option(False, "--order", kind="yes", says=(
        "Seek an order of the operations, too, in which less has to leave; the given one stays where none is better."))
    seed: int = again(SearchOptions, "seed", 0, "Of the search of orders: same seed, same order.")
    export_tflite: str | os.PathLike[str] | None = option(
        None, "--export-tflite", kind="path", metavar="FILE", never=True, says=(
            "Write the addresses as TensorFlow Lite Micro's offline plan: the buffer of the metadata "
            "OfflineMemoryAllocation, and beside it what it holds (.json)."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    precision: str = again(SpaceOptions, "precision", "auto")

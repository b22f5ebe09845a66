"""What `fuse` is asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from tilewright.api.flags import again, option
from tilewright.api.options import OnMachine, SpaceOptions

FuseGoals = Literal["latency", "energy", "edp", "dram"]
Softmaxes = Literal["free", "vector"]
Within = Literal["flex", "flat", "online"]
"""The same as those of `fusion`, which loads late."""


@dataclass(frozen=True)
class FuseOptions(OnMachine):
    """What `fuse` is asked for."""

    _: KW_ONLY
    space: str = option("flat", "--space", metavar="SPACE", always=True, says=(
        "Which plans there are to choose from. flat: attention, its tiles on the chip."))
    objective: FuseGoals = option("latency", "--objective", "-o", choices=get_args(FuseGoals), says=(
        "What is to be least; dram: the words to and from DRAM."))
    within: Within = option("online", "--within", choices=get_args(Within), says=(
        "Of attention: flex, plans that do not fuse; flat, FLAT's besides, whole rows of logits on the chip; online, "
        "tiles of keys with an online softmax besides, as FlashAttention has them."))
    softmax: Softmaxes = option("free", "--softmax", choices=get_args(Softmaxes), says=(
        "Whether a softmax takes no time, as FLAT counts, or that of the machine's vector unit."))
    causal: bool = option(False, "--causal", kind="yes", says=(
        "Positions attend to none after themselves; what is masked is left out tile by tile."))
    phase: str | None = option(None, "--phase", metavar="NAME", never=True, says=(
        "Phase of a language model: prefill or decode. The same as --bind phase=NAME."))
    memory: str | None = option(None, "--memory", metavar="SIZE", says=(
        "Room on the chip, as 512KiB or 20MB, instead of the machine's own."))
    clock: float | None = option(None, "--clock", kind="number", metavar="MHZ", says=(
        "Another clock of the machine; bytes a second of its memories stay."))
    word_bits: int | None = option(None, "--word-bits", kind="whole", least=1, metavar="BITS", says=(
        "Another width of all words; bytes of the buffer, and a second, stay."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)

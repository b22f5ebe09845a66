"""What `fuse` is asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import again, option
from tilewright.api.options import KeptOptions, NetworkOptions, OnMachine, SearchOptions, SpaceOptions
from tilewright.base import read_text

if TYPE_CHECKING:
    from tilewright.api.options import Scalar
    from tilewright.jobs import Observer, Stop
    from tilewright.search import Budget

FuseGoals = Literal["latency", "energy", "edp", "dram"]
Softmaxes = Literal["free", "vector"]
Within = Literal["flex", "flat", "online"]
"""The same as those of `fusion`, which loads late."""
PLAN_FIELDS = {"flat": "attentions:", "micro-batch": "strategy:"}
"""By the space of plans, what begins a line of those that `fuse` saved as YAML."""


@dataclass(frozen=True)
class FuseOptions(OnMachine):
    """What `fuse` is asked for.

    Parameters
    ----------
    plan
        A YAML file or text that holds one: it is looked at, and nothing is searched.
    told
        Told how far it is.
    stop
        Set to end early.
    """

    _: KW_ONLY
    space: str = option("flat", "--space", metavar="SPACE", always=True, says=(
        "Which plans there are to choose from. flat: attention, its tiles on the chip; micro-batch: how many samples "
        "of each layer's result stay on the chip (DNNFuser); trees: any operators, in loops that they share."))
    objective: FuseGoals = option("latency", "--objective", "-o", choices=get_args(FuseGoals), says=(
        "What is to be least; dram: the words to and from DRAM. Micro-batches know latency and energy."))
    within: Within = option("online", "--within", choices=get_args(Within), says=(
        "Of attention: flex, plans that do not fuse; flat, FLAT's besides, whole rows of logits on the chip; online, "
        "tiles of keys with an online softmax besides, as FlashAttention has them."))
    softmax: Softmaxes = option("free", "--softmax", choices=get_args(Softmaxes), says=(
        "Whether a softmax takes no time, as FLAT counts, or that of the machine's vector unit."))
    causal: bool = option(False, "--causal", kind="yes", says=(
        "Positions attend to none after themselves, in every attention of the network; what is masked is left out tile "
        "by tile."))
    phase: str | None = option(None, "--phase", metavar="NAME", never=True, says=(
        "Phase of a language model: prefill or decode. The same as --bind phase=NAME."))
    memory: str | None = option(None, "--memory", metavar="SIZE", says=(
        "Room on the chip, as 512KiB or 20MB, instead of the machine's own."))
    clock: float | None = option(None, "--clock", kind="number", metavar="MHZ", says=(
        "Of attention: another clock of the machine; bytes a second of its memories stay."))
    word_bits: int | None = option(None, "--word-bits", kind="whole", least=1, metavar="BITS", says=(
        "Another width of all words; bytes of the buffer, and a second, stay."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    batch: int = option(1, "--batch", kind="whole", says="Of micro-batches: samples that the network runs for.")
    weight_memory: str | None = option(None, "--weight-memory", metavar="SIZE", says=(
        "Of micro-batches: room besides for weights. Those of a group that fit it together come once, others for every "
        "micro-batch. Default: none."))
    mapper: str = option("exact", "--mapper", "-m", says=(
        "Of micro-batches: how to search; see: tilewright list fusers."))
    budget: str | int | Budget = again(SearchOptions, "budget", "2000", (
        "Of micro-batches: strategies scored (2000, 2k), time (10s), or both. Only a number of strategies repeats "
        "exactly; exact takes what it takes, or the time. Of trees: mappings scored of each layer alone; a quarter of "
        "that of each in a group."), always=False)
    seed: int = again(SearchOptions, "seed", 0, "Of micro-batches and trees: same seed, same plan.", always=False)
    options: Mapping[str, Scalar] | None = again(NetworkOptions, "options", None,
                                                 "Of micro-batches: an option of the mapper. Repeatable.")
    layers: int = option(3, "--layers", kind="whole", least=1, says="Of trees: layers that one group may have.")
    out: str | Path | None = again(KeptOptions, "out", None, (
        "Keep each attention and each group here as soon as it is planned, and a search of micro-batches every few "
        "seconds: another run goes on from there."), never=True)
    plan: str | Path | None = option(None, "--plan", kind="path", metavar="FILE.yaml", says=(
        "Look at this plan instead of searching one."))
    told: Observer | None = None
    stop: Stop | None = None


def bound_sizes(asked: FuseOptions) -> dict[str, int | str]:
    """Return the sizes of dynamic dimensions, and the phase where one is named."""
    return {**(asked.bind or {}), **({"phase": asked.phase} if asked.phase else {})}


def fused_space_of(plan: str | Path | None) -> str | None:
    """Return the space of a plan that `fuse` saved as YAML, a file or its text; None where it is none."""
    text = str(plan or "")
    if "\n" not in text:
        if Path(text).suffix not in (".yaml", ".yml") or not Path(text).is_file():
            return None
        text = read_text(Path(text))
    lines = text.splitlines()
    return next((space for space, field in PLAN_FIELDS.items() if any(line.startswith(field) for line in lines)), None)

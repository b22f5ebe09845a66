"""What `recommend` is asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.array_options import ArrayOptions
from tilewright.api.flags import again, flags, option
from tilewright.api.options import NetworkOptions, OnMachine, SpaceOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.api.inputs import Machine, Network

ArraySpaces = Literal["published", "realisable", "planar"]
ArrayObjectives = Literal["latency", "energy", "edp"]


@dataclass(frozen=True)
class RecommendOptions:
    """What `recommend` is asked for."""

    network: Network = field(metadata={"flags": flags(OnMachine)["network"]})
    arch: Machine = option("sagar", "--arch", "-a", metavar="ARCH", always=True, says=(
        "A reconfigurable array: sagar, or how many multiply-accumulate units one of cells of 4 x 4 has, as 4096; or "
        "an accelerator, as for tilewright map."))
    _: KW_ONLY
    objective: ArrayObjectives = option("latency", "--objective", "-o", choices=get_args(ArrayObjectives),
                                        says=(
        "What is to be least of each product or layer: cycles, energy, or their product. Networks know latency alone."))
    power: float | None = again(ArrayOptions, "power", None)
    space: ArraySpaces = option("realisable", "--space", choices=get_args(ArraySpaces), says=(
        "Which configurations there are: published, every sub-array whose sides are the cell's times powers of two; "
        "realisable, those no longer than the plane of cells; planar, those that tile it."))
    ties: str = option("", "--ties", metavar="WORD,WORD,...", says=(
        "What decides between configurations that are equally good, in this order: partitions (the fewest), os, ws or "
        "is (that dataflow), reads (the fewest words from memories). Default: partitions,os,ws,is,reads."))
    model: str | Path | None = option(None, "--model", kind="path", metavar="FILE", says=(
        "Ask this network instead of looking at every configuration: a file of tilewright train-recommender. For an "
        "accelerator: the store whose library of mappings is asked, as tilewright map --store fills it."))
    fallback: bool = option(False, "--fallback", kind="yes", says=(
        "Do not trust the network blindly: score its first guesses and take the best, or look at every configuration "
        "where these may be poor."))
    top: int = option(8, "--top", kind="whole", least=1, metavar="N", says="With --fallback: how many guesses.")
    within: float = option(0.01, "--within", kind="number", metavar="SHARE", says=(
        "With --fallback: by what share more than the best the advice may take; 0: not at all."))
    layers: str | None = again(NetworkOptions, "layers", None)
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)

"""What `array` and `recommend` are asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import Flag, again, flags, option
from tilewright.api.options import NetworkOptions, OnMachine, SpaceOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.api.inputs import Machine, Network


@dataclass(frozen=True)
class ArrayOptions:
    """What `array` is asked for.

    Parameters
    ----------
    products
        Texts ``MxNxK``, or triples.
    """

    array: str | int = field(metadata={"flags": (Flag(
        ("array",), "A reconfigurable array, sagar or the number of its multiply-accumulate units; or one that is as "
        "it is: monolithic, distributed-4x4 (8x8, 16x16, 32x32, 64x64).", "argument", "NAME|UNITS"),)})
    products: Sequence[str | tuple[int, int, int]] = option((), "--product", "-p", kind="texts", metavar="MxNxK", says=(
        "Sizes of a matrix product: rows, columns, reduction. Repeatable."))
    _: KW_ONLY
    objective: str = option("latency", "--objective", "-o", metavar="latency|energy|edp", says="What is to be least.")
    space: str | None = option(None, "--space", metavar="SPACE", says=(
        "Configurations: published (every power of two), realisable (sub-arrays no longer than the plane of cells), "
        "planar (their layout is the plane), units (single cells). Default: realisable; of distributed arrays units."))
    cell: int | None = option(None, "--cell", kind="whole", least=1, metavar="SIDE", says=(
        "Side of a cell. Default: the preset's, or 4."))
    power: float | None = option(None, "--power", kind="number", metavar="WATTS", says=(
        "Of the whole array where all units and banks work; energies follow. Default: the preset's."))
    bypass: bool = option(False, "--bypass", kind="yes", says="Count the stages of bypass links.")
    summation: str = option("free", "--summation", metavar="free|tree|banks", says=(
        "How partial sums of sub-arrays that share a reduction are added: free as published, in a tree of adders, or "
        "in the banks of the memory of outputs."))
    ports: bool = option(False, "--ports", kind="yes", says="A bank hands out or takes one word a cycle.")
    collate: bool = option(False, "--collate", kind="yes", says=(
        "Sub-arrays that want a word in the same cycle share one read."))
    dram: str = option("off", "--dram", metavar="off|whole|replicated", says=(
        "Count words of DRAM: with memories that all sub-arrays share, or a part of them for each."))
    top: int = option(5, "--top", kind="whole", least=1, metavar="N", says="Configurations shown of each product.")


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

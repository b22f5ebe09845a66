"""What `array` is asked for, each option once (see `tilewright.api.options`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from tilewright.api.flags import Flag, option


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

"""What compiled code reads of a problem of micro-batches, and what it tells of strategies and groups."""

from typing import Any, NamedTuple

GROUP_FIGURES = ("latency_cycles", "energy_pj", "memory_bytes", "compute_cycles", "offchip_cycles", "onchip_cycles",
                 "offchip_bytes", "weight_bytes", "onchip_bytes")
"""The figures in order. Memory is that of micro-batches; weights are those that come in."""
LATENCY, ENERGY, MEMORY, COMPUTE, OFFCHIP_CYCLES, ONCHIP_CYCLES, OFFCHIP, FETCHED, ONCHIP = range(len(GROUP_FIGURES))


class ByteRates(NamedTuple):
    """What a byte takes, and a cycle."""

    offchip_cycles: float
    onchip_cycles: float
    """``offchip_cycles`` and ``onchip_cycles``: of a byte."""
    read_pj: float
    write_pj: float
    onchip_pj: float
    """``read_pj``, ``write_pj`` and ``onchip_pj``: of a byte; the first two off chip."""
    compute_pj: float
    leakage_pj: float
    """``compute_pj`` and ``leakage_pj``: of a cycle, the first with all elements at work."""


class GroupTables(NamedTuple):
    """A problem's entries ``n``, of which the first is the input."""

    batch: int
    tiles: Any
    sizes: Any
    weights: Any
    """``tiles``, ``sizes`` and ``weights``: ``(n)`` bytes: staged for a sample, of all results, of the layer."""
    cycles: Any
    """``(n)``: of each layer's multiplications on all elements."""
    read_last: Any
    """``(n)``: who reads a result last; ``n`` where it leaves the network."""
    read_starts: Any
    reads: Any
    """``read_starts`` and ``reads``: (reader, read) by reader: those of ``q`` begin at ``read_starts[q]``."""
    held_starts: Any
    held: Any
    """``held_starts`` and ``held``: (result, next reader) of what is held while an entry runs, likewise."""
    weight_bytes: float
    """What a group's weights may take to stay on chip."""
    rates: ByteRates

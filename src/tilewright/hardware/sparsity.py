"""What a machine makes of zeros: how memories compress tensors, and what is gated or skipped where operands are zero.

The vocabulary is that of Sparseloop (Wu et al., MICRO 2022): representation formats, gating (no energy, but the cycle
passes) and skipping (neither). What each of them costs and saves is counted in `tilewright.cost`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from tilewright.base import Location
from tilewright.hardware.flexibility import Issue

Format = Literal["uncompressed", "bitmask", "run-length", "coordinates", "csr", "uop-cp"]
FORMATS: tuple[Format, ...] = ("uncompressed", "bitmask", "run-length", "coordinates", "csr", "uop-cp")
Action = Literal["gate", "skip"]
Capacity = Literal["expected", "worst", "dense"]
RUN_BITS = 5
"""Bits of a run of zeros where none are given: Eyeriss' run-length code has 5 (Chen et al., JSSC 2017, section V-C)."""
MOST_BITS = 32
ROLE_NAMES = ("inputs", "weights", "outputs")


@dataclass(frozen=True)
class Compression:
    """How one memory keeps one tensor."""

    memory: str
    tensor: str
    """A role or the name of a tensor."""
    format: Format
    """``uncompressed``: all words. ``bitmask``: the words that are not zero, and a bit for every word.
    ``run-length``: those words, each with the number of zeros before it; a run too long for its field is broken by
    a stored zero. ``coordinates``: those words, each with its place in the tile. ``csr``: those words, each with
    its place in its row (the last axis), and an offset for every row. ``uop-cp``: the same with a rank for every
    axis (UOP, ..., UOP, CP in Sparseloop): along every axis but the last, every fibre has an offset for each of
    its coordinates and one more."""
    bits: int | None = None
    """Of a run (5 if None) or a coordinate (as many as the tile asks for if None); with ``uop-cp`` of an offset too."""


@dataclass(frozen=True)
class Elision:
    """Accesses of a tensor at a memory, by what is inside, that are left out where other operands are zero.

    An access is left out where, of any one tensor in ``on``, all words that the access is made for are zero. ``gate``
    saves the energy, ``skip`` the time too.
    """

    memory: str
    action: Action
    tensor: str
    on: tuple[str, ...]


@dataclass(frozen=True)
class Sparsity:
    """What a machine makes of zeros."""

    formats: tuple[Compression, ...] = ()
    """What is not named is uncompressed."""
    elisions: tuple[Elision, ...] = ()
    """Reads of operands, and updates (with the partial sums read for them) of outputs, that are left out."""
    gated: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """``gated`` and ``skipped``: operands whose zeros the compute unit spends no energy on, or no time either."""
    capacity: Capacity = "expected"
    """Whether the ``expected`` tiles must fit their memories, or the ``worst``: every word other than zero, as far as
    structure does not forbid that. ``dense``: as if no word were zero, metadata being kept apart."""

    def compression(self, memory: str, name: str, role: str) -> Compression | None:
        """Return how ``memory`` compresses a tensor, found by its name or else by its role; None if it does not."""
        for key in (name, role):
            for given in self.formats:
                if given.memory == memory and given.tensor == key:
                    return None if given.format == "uncompressed" else given
        return None


def sparsity_issues(sparsity: Sparsity, memories: Mapping[str, tuple[str, ...]]) -> Iterator[Issue]:
    """Yield what is wrong with a statement about a machine with these memories and what they keep."""
    seen: set[tuple[str, str]] = set()
    for given in sparsity.formats:
        where = ("formats", given.memory, given.tensor)
        yield from _place_issues(where, given.memory, given.tensor, memories)
        if (given.memory, given.tensor) in seen:
            yield Issue(where, "must give each tensor one format", given.tensor)
        seen.add((given.memory, given.tensor))
        if given.bits is not None and given.format in ("uncompressed", "bitmask"):
            yield Issue(where, f"takes no bits: {given.format} has none", given.bits, "Remove bits")
        if given.bits is not None and not 1 <= given.bits <= MOST_BITS:
            yield Issue((*where, "bits"), f"must be from 1 to {MOST_BITS}", given.bits)
    yield from _elision_issues(sparsity, memories)
    for name, leaders in (("gate", sparsity.gated), ("skip", sparsity.skipped)):
        for leader in leaders:
            yield from name_issues(("compute", name), leader)
            if leader == "outputs":
                yield Issue(("compute", name), "must name operands", leader)
    both = set(sparsity.gated) & set(sparsity.skipped)
    if both:
        yield Issue(("compute", "gate"), "must not name what is skipped too", ", ".join(sorted(both)),
                    "Remove it: what is skipped costs no energy either")


def _elision_issues(sparsity: Sparsity, memories: Mapping[str, tuple[str, ...]]) -> Iterator[Issue]:
    seen: set[tuple[str, str, str]] = set()
    for given in sparsity.elisions:
        where = (given.action, given.memory, given.tensor)
        yield from _place_issues(where, given.memory, given.tensor, memories)
        if not given.on:
            yield Issue(where, "must name at least one operand", None, f"For example {given.tensor}: [inputs]")
        for leader in given.on:
            key = (given.memory, given.tensor, leader)
            yield from name_issues(where, leader)
            if leader == given.tensor:
                yield Issue(where, "must name other tensors: its own zeros are left out by a format", leader)
            elif leader == "outputs":
                yield Issue(where, "must name operands", leader)
            elif key in seen:
                yield Issue(where, "must be gated or skipped on each operand, once", leader)
            seen.add(key)


def name_issues(where: Location, name: str) -> Iterator[Issue]:
    """Yield what is wrong with the name of a tensor that is nearly a role."""
    near = get_close_matches(name.lower(), ROLE_NAMES, n=1, cutoff=0.75)
    if near and name not in ROLE_NAMES:
        yield Issue(where, f"must be a role ({', '.join(ROLE_NAMES)}) or a tensor name", name,
                    f"Did you mean {near[0]}?")


def _place_issues(where: tuple[str, ...], memory: str, tensor: str,
                  memories: Mapping[str, tuple[str, ...]]) -> Iterator[Issue]:
    yield from name_issues(where, tensor)
    if memory not in memories:
        yield Issue(where[:2], f"must be one of the memories {', '.join(memories)}", memory)
        return
    kept = memories[memory]
    if tensor not in kept and set(kept) <= set(ROLE_NAMES) and tensor in ROLE_NAMES:
        yield Issue(where, f"must be a tensor that {memory} keeps ({', '.join(kept)})", tensor)

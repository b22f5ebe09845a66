"""Tensors split over scratchpads: parts that are tensors of their own, each where it likes, and kept or not by itself.

Operations touch all parts of what they touch. Parts are equal but for the last one and end at whole words, so that a
plan of whole tensors is one of parts, too, which lie behind one another then; and parts of most tensors are of one
size, so that one takes the place of another and little room is lost between them.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, lcm

from tilewright.allocation.problem import OperationStep, Pad, ResidencyProblem, ResidentTensor
from tilewright.allocation.stays import Stay
from tilewright.base import InputError

PART, MOST_PARTS = " part ", 64
"""What stands between the name of a tensor and the number of a part; and parts of a tensor."""
Split = tuple[tuple[ResidentTensor, ...], tuple[OperationStep, ...]]


def split_tensors(tensors: Sequence[ResidentTensor], steps: Sequence[OperationStep], pads: Sequence[Pad], parts: int,
                  ) -> Split:
    """Return tensors in up to so many parts, and operations that touch all parts of what they touched.

    What takes less than the smallest scratchpad has fewer, each as large as that share of it: a quarter is one of four.

    Raises
    ------
    InputError
        If parts are too many.
    """
    if not 0 < parts <= MOST_PARTS:
        raise InputError("--split", f"must be from 1 to {MOST_PARTS}", parts)
    least, word = min(pad.capacity_bytes for pad in pads), lcm(*(max(1, pad.word_bytes) for pad in pads))
    found: list[ResidentTensor] = []
    places: list[tuple[int, ...]] = []
    for tensor in tensors:
        part = ceil(max(least, tensor.size_bytes) / parts / word) * word
        sizes = [min(part, tensor.size_bytes - begin) for begin in range(0, tensor.size_bytes, max(1, part))]
        places.append(tuple(range(len(found), len(found) + len(sizes))))
        found += [tensor] if len(sizes) < 2 else [
            replace(tensor, name=f"{tensor.name}{PART}{at}", size_bytes=size) for at, size in enumerate(sizes)]

    def each(touched: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(part for one in touched for part in places[one])

    return tuple(found), tuple(replace(step, reads=each(step.reads), writes=each(step.writes)) for step in steps)


def stays_of_parts(whole: ResidencyProblem, split: ResidencyProblem, stays: Sequence[Stay], addresses: Sequence[int],
                   ) -> tuple[tuple[Stay, ...], tuple[int, ...]]:
    """Return a plan of whole tensors as one of their parts."""
    parts: dict[str, list[int]] = {}
    for at, tensor in enumerate(split.tensors):
        parts.setdefault(tensor.name.rpartition(PART)[0] or tensor.name, []).append(at)
    found, places = [], []
    for stay, address in zip(stays, addresses, strict=True):
        for part in parts[whole.tensors[stay.tensor].name]:
            found.append(replace(stay, tensor=part))
            places.append(address)
            address += split.rooms[part][stay.pad]  # noqa: PLW2901  (the place of the next part)
    return tuple(found), tuple(places)

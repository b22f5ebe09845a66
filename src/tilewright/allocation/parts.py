"""Tensors split over scratchpads: parts that are tensors of their own, each where it likes, and kept or not by itself.

Operations touch all parts of what they touch. Parts are equal but for the last one and end at whole words, so that a
plan of whole tensors is one of parts, too, which lie behind one another then; and parts of most tensors are of one
size, so that one takes the place of another and little room is lost between them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, lcm
from typing import Literal

from tilewright.allocation.problem import OperationStep, Pad, ResidencyProblem, ResidentTensor
from tilewright.allocation.stays import Shares, Stay
from tilewright.base import InputError

PART, MOST_PARTS = " part ", 256
"""What stands between the name of a tensor and the number of a part; and parts of a tensor."""
MOST_TOUCHED = 400_000
"""Parts that operations touch, counted for each operation, up to which there are more of them unless told."""
Parts = int | Literal["auto"]


def split_problem(name: str, steps: Sequence[OperationStep], tensors: Sequence[ResidentTensor],  # noqa: PLR0913, PLR0917
                  pads: Sequence[Pad], parts: Parts, cut: tuple[tuple[str, int], ...] = ()) -> ResidencyProblem:
    """Return the problem of tensors in up to so many parts; operations touch all parts of what they touched.

    Parts are as large as that share of the smallest scratchpad: a quarter is one of four; those of larger tensors are
    that share of the tensor. With ``auto`` they are as many, a power of two, as keep what operations touch few.

    Raises an `InputError` if parts are too many, or an operation can never be resident.
    """
    if parts == "auto":
        parts = MOST_PARTS
        while parts > 1 and sum(len(_sizes(tensors[one], pads, parts)) for step in steps for one in step.touches
                                ) > MOST_TOUCHED:
            parts //= 2
    if not 0 < parts <= MOST_PARTS:
        raise InputError("--split", f"must be from 1 to {MOST_PARTS}, or auto", parts)
    found: list[ResidentTensor] = []
    places: list[tuple[int, ...]] = []
    for tensor in tensors:
        sizes = _sizes(tensor, pads, parts)
        places.append(tuple(range(len(found), len(found) + len(sizes))))
        found += [tensor] if len(sizes) < 2 else [
            replace(tensor, name=f"{tensor.name}{PART}{at}", size_bytes=size) for at, size in enumerate(sizes)]

    def each(touched: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(part for one in touched for part in places[one])

    whole = None
    with suppress(InputError):
        whole = ResidencyProblem(name, tuple(steps), tuple(tensors), tuple(pads), cut) if parts > 1 else None
    return ResidencyProblem(name, tuple(replace(step, reads=each(step.reads), writes=each(step.writes))
                                        for step in steps), tuple(found), tuple(pads), cut, whole)


def _sizes(tensor: ResidentTensor, pads: Sequence[Pad], parts: int) -> list[int]:
    least, word = min(pad.capacity_bytes for pad in pads), lcm(*(max(1, pad.word_bytes) for pad in pads))
    part = ceil(max(least, tensor.size_bytes) / parts / word) * word
    return [min(part, tensor.size_bytes - begin) for begin in range(0, tensor.size_bytes, max(1, part))]


def _parts_of(whole: ResidencyProblem, split: ResidencyProblem) -> list[list[int]]:
    """Return the parts of each tensor, in order."""
    at, found = {tensor.name: place for place, tensor in enumerate(whole.tensors)}, [list[int]() for _ in whole.tensors]
    for part, tensor in enumerate(split.tensors):
        found[at[tensor.name.rpartition(PART)[0] or tensor.name]].append(part)
    return found


def stays_of_parts(whole: ResidencyProblem, split: ResidencyProblem, stays: Sequence[Stay], addresses: Sequence[int],
                   ) -> tuple[tuple[Stay, ...], tuple[int, ...]]:
    """Return a plan of whole tensors as one of their parts."""
    parts = _parts_of(whole, split)
    found, places = [], []
    for stay, address in zip(stays, addresses, strict=True):
        for part in parts[stay.tensor]:
            found.append(replace(stay, tensor=part))
            places.append(address)
            address += split.rooms[part][stay.pad]  # noqa: PLW2901  (the place of the next part)
    return tuple(found), tuple(places)


def shares_of_parts(whole: ResidencyProblem, split: ResidencyProblem, shares: Shares) -> Shares:
    """Return how much of each part stays where so much of its tensor does: the first ones do, whole."""
    parts, found = _parts_of(whole, split), Shares()
    for (tensor, step), share in shares.items():
        left = share * whole.tensors[tensor].size_bytes
        for part in parts[tensor]:
            size = split.tensors[part].size_bytes
            found[part, step] = min(1.0, max(0.0, left / size))
            left -= size
    return found

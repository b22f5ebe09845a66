"""The problem that a network poses: its operations in order, and its tensors with their lives and their bytes.

Tensors may be split over scratchpads, in parts that are tensors of their own, each where it likes, and kept or not by
itself. Operations touch all parts of what they touch. Parts are equal but for the last one and end at whole words, so
that a plan of whole tensors is one of parts, too, which lie behind one another then; and parts of most tensors are of
one size, so that one takes the place of another and little room is lost between them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, lcm
from types import MappingProxyType
from typing import Literal

from tilewright.allocation.depth import interleaved
from tilewright.allocation.heuristics import belady
from tilewright.allocation.problem import OperationStep, Oversize, Pad, ResidencyProblem, ResidentTensor, cut_tensors
from tilewright.allocation.stays import Prices, Shares, Stay, transfers_of
from tilewright.allocation.tiles import Given, TensorSlices, sliced, tilings
from tilewright.base import InputError
from tilewright.workload import ROLES, NetworkTensor, TensorGraph

PART, MOST_PARTS = " part ", 256
"""What stands between the name of a tensor and the number of a part; and parts of a tensor."""
MOST_TOUCHED = 400_000
"""Parts that operations touch, counted for each operation, up to which there are more of them unless told."""
Parts = int | Literal["auto"]
Work = Mapping[str, tuple[int, float]]
"""By node, cycles and picojoules that it takes by itself."""


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


def stays_of_parts(whole: ResidencyProblem, split: ResidencyProblem, stays: Sequence[Stay]) -> tuple[Stay, ...]:
    """Return a plan of whole tensors as one of their parts."""
    parts = _parts_of(whole, split)
    found = []
    for stay in stays:
        address = stay.address
        for part in parts[stay.tensor]:
            found.append(replace(stay, tensor=part, address=address))
            address += split.rooms[part][stay.pad]
    return tuple(found)


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


def network_problem(network: TensorGraph, pads: Sequence[Pad], work: Work | None = None,  # noqa: PLR0913, PLR0917
                    bits: tuple[float, float] = (8, 8), oversize: Oversize = "refuse", parts: Parts = 1,
                    given: Given = MappingProxyType({})) -> ResidencyProblem:
    """Return the problem of a network (thesis, 5.1.2).

    Views share the bytes of what they show, and take no step; a recurrence is one step unless it is unrolled.

    Parameters
    ----------
    work
        Nothing where left out.
    bits
        Of a word of weights and of all others, where the network does not say.
    oversize
        ``cut`` leaves of tensors that are larger than the scratchpads what fits (thesis, 6.3); ``tile`` makes tiles of
        the operations that cannot be resident whole, alone or in runs of several.
    parts
        Into how many a tensor may be split, each of them on a scratchpad by itself; see `split_problem`.
    given
        Loops of mappings of some operators, which run in the tiles inside as many of them as it takes until they fit.

    Raises
    ------
    InputError
        If the size of a tensor is not known, or an operation can never be resident.
    """
    holders = _holders(network, bits)
    places = {tensor.name: at for at, tensor in enumerate(holders)}

    def held(tensors: Sequence[NetworkTensor]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[one.storage] for one in tensors))

    steps = []
    for node in network.graph.nodes:
        made = network.made_by(node.name)
        reads, writes = held([tensor for _, tensor in network.read_by(node.name)]), held(made)
        view = bool(made) and all(tensor.storage != tensor.name for tensor in made) and set(writes) <= set(reads) and (
            not getattr(node, "written_words", 1))
        if not view and (reads or writes):
            cycles, energy = (work or {}).get(node.name, (0, 0.0))
            steps.append(OperationStep(node.name, reads, writes, cycles, energy))
    tensors, cut = cut_tensors(holders, steps, pads) if oversize == "cut" else (tuple(holders), ())
    try:
        if oversize != "tile" or (parts != 1 and not given):
            return split_problem(network.name, steps, tensors, pads, parts, cut)
    except InputError:
        if oversize != "tile":
            raise
    tiled = _tiled(network, holders, steps, pads, given)
    return tiled if parts == 1 else split_problem(network.name, tiled.steps, tiled.tensors, pads, parts)


def _tiled(network: TensorGraph, holders: Sequence[ResidentTensor], steps: Sequence[OperationStep],
           pads: Sequence[Pad], given: Given) -> ResidencyProblem:
    """Return the better of two ways to run in tiles: operations one after the other, and in runs of several.

    Where tiles are given they run one after the other.
    """
    slices = TensorSlices(network, holders)
    operations = tilings(slices, steps, pads, given)
    found = [sliced(slices, [tile for one in operations for tile in one.tiles()])]
    if not given and len(found[0][1]) > len(steps) and all(set(pad.roles) == set(ROLES) for pad in pads):
        runs = interleaved(slices, operations, pads)
        found += [] if runs is None else [runs]
    problems = []
    for tensors, tiles in found:
        try:
            problems.append(ResidencyProblem(network.name, tiles, tensors, tuple(pads)))
        except InputError:
            if not problems:
                raise
    return min(problems, key=_moved) if len(problems) > 1 else problems[0]


def _moved(problem: ResidencyProblem) -> int:
    prices = Prices(problem, ("bytes",))
    return prices.score(transfers_of(problem, belady(problem, prices)))


def _holders(network: TensorGraph, bits: tuple[float, float]) -> list[ResidentTensor]:
    """Return the tensors that have bytes of their own; one leaves where a view of it does."""
    leaving = {tensor.storage for tensor in network.tensors.values() if tensor.is_output}
    found = []
    for tensor in network.tensors.values():
        if tensor.storage == tensor.name:
            width = tensor.word_bits or (bits[0] if tensor.kind == "weights" else bits[1])
            size = ceil(tensor.words * width / 8)
            if size < 1:
                raise InputError(f"{network.name}.{tensor.name}", "must have a size of at least one byte", size,
                                 "Bind the dimensions that it lacks")
            found.append(ResidentTensor(tensor.name, size, tensor.kind == "weights", tensor.kind != "activation",
                                    tensor.name in leaving and tensor.kind == "activation"))
    return found

"""The problem that a network poses: its operations in order, and its tensors with their lives and their bytes."""

from collections.abc import Mapping, Sequence
from math import ceil
from types import MappingProxyType

from tilewright.allocation.depth import interleaved
from tilewright.allocation.heuristics import belady
from tilewright.allocation.parts import Parts, split_problem
from tilewright.allocation.problem import OperationStep, Oversize, Pad, ResidencyProblem, ResidentTensor, cut_tensors
from tilewright.allocation.stays import Prices, transfers_of
from tilewright.allocation.tiles import Given, TensorSlices, sliced, tilings
from tilewright.base import InputError
from tilewright.workload import ROLES, NetworkTensor, TensorGraph

Work = Mapping[str, tuple[int, float]]
"""By node, cycles and picojoules that it takes by itself."""


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

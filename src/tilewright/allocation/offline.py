"""Plans as TensorFlow Lite Micro's offline plan of its arena: a list of 32-bit integers in the metadata of a model.

The layout is that of ``tensorflow/lite/micro/docs/memory_management.md`` (tflite-micro, commit 0009f77): version,
number of subgraphs, number of offsets, and the offset of each tensor from the start of the arena, or -1 for those that
the planner of the run places around these. The metadata's name is `METADATA`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from tilewright.allocation.network import PART
from tilewright.allocation.records import PlanRecord
from tilewright.allocation.stays import Stay
from tilewright.allocation.tiles import TILE
from tilewright.base import InputError

METADATA, VERSION, SUBGRAPHS, ONLINE = "OfflineMemoryAllocation", 1, 1, -1
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class OfflineTensor:
    """Where a tensor is in the arena for its whole life; ``why`` it is left to the run, if its offset is -1."""

    name: str
    offset: int
    size_bytes: int
    why: str = ""


def offline_plan(plan: PlanRecord) -> tuple[OfflineTensor, ...]:
    """Return where tensors of a plan are in an arena of all scratchpads, which lie behind one another in it.

    An arena holds each tensor at one place for its whole life: from the first operation for inputs, to the last for
    results. What the plan moves, stores and loads again, or holds there at first for another, is left to the run.

    Raises an `InputError` if operations run in tiles, whose slices are no tensors of a model, or an offset needs more
    than 31 bits.
    """
    if any(TILE in step.name for step in plan.steps) or any(PART in tensor.name for tensor in plan.tensors):
        raise InputError("--export-tflite", "must be of a plan without tiles and without parts", plan.network,
                         "Enlarge the scratchpads, or give --oversize cut or refuse")
    begins = [0, *accumulate(pad.capacity_bytes for pad in plan.pads)]
    stays: dict[int, list[Stay]] = {}
    for one in plan.residency:
        stays.setdefault(one.tensor, []).append(one)
    left = dict(_left(plan, stays))
    found = tuple(OfflineTensor(
        tensor.name, ONLINE if at in left else begins[stays[at][0].pad] + stays[at][0].address, tensor.size_bytes,
        left.get(at, "")) for at, tensor in enumerate(plan.tensors))
    if max((one.offset for one in found), default=0) > _LARGEST:
        raise InputError("--export-tflite", "must be of scratchpads of less than 2 GB together", begins[-1])
    return found


def _left(plan: PlanRecord, stays: dict[int, list[Stay]]) -> Iterator[tuple[int, str]]:
    """Yield tensors that are left to the run, and why."""
    cut = {name for name, _ in plan.cut}
    kept: list[Stay] = []
    outer: list[int] = []
    for at, tensor in enumerate(plan.tensors):
        mine = stays.get(at, [])
        if tensor.weights:
            yield at, "a constant"
        elif tensor.name in cut:
            yield at, "larger than a scratchpad"
        elif len(mine) != 1:
            yield at, "not at one place for its whole life"
        elif tensor.outside or tensor.leaves:
            outer.append(at)
        else:
            kept += mine
    for at in outer:  # in the arena before the first operation, or after the last one
        stay, tensor = stays[at][0], plan.tensors[at]
        whole = Stay(at, stay.pad, 0 if tensor.outside else stay.first,
                            len(plan.steps) - 1 if tensor.leaves else stay.last, stay.begins, stay.address)
        if any(_clash(plan, whole, other) for other in kept):
            yield at, "another is there before the network begins or after it ends with it"
        else:
            kept.append(whole)


def _clash(plan: PlanRecord, one: Stay, other: Stay) -> bool:
    """Whether two stays share an address at one time."""
    return (one.pad == other.pad and one.first <= other.last and other.first <= one.last
            and one.address < other.address + plan.tensors[other.tensor].size_bytes
            and other.address < one.address + plan.tensors[one.tensor].size_bytes)


def offline_words(tensors: tuple[OfflineTensor, ...]) -> tuple[int, ...]:
    """Return the integers of the metadata's buffer."""
    return VERSION, SUBGRAPHS, len(tensors), *(one.offset for one in tensors)

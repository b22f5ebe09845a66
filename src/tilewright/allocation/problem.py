"""What is to be kept where: a schedule of operations, the tensors they read and write, and scratchpads."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import ceil
from types import MappingProxyType
from typing import Literal

from tilewright.base import InputError, whole_of
from tilewright.hardware import read_bytes
from tilewright.workload import ROLES, Role

Oversize = Literal["refuse", "cut", "tile"]
_ROLE_NAMES: dict[str, tuple[Role, ...]] = {
    "in": ("inputs",), "inputs": ("inputs",), "weights": ("weights",), "out": ("outputs",), "outputs": ("outputs",),
    "any": ROLES}
_FORM = "For example 3x128KB, or in=256KB,weights=512KB,out=256KB"
MOST_PADS, MOST_SURE, MOST_PLACED = 16, 24, 500
"""Scratchpads; tensors in a step for which all places are tried where that is asked, and places tried otherwise."""
_NOWHERE: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True)
class Bus:
    """A way that bytes take, from or to a scratchpad."""

    bytes_per_cycle: float = 16.0
    pj_per_byte: float = 0.0

    def cycles(self, moved: int) -> int:
        """Cycles that so many bytes take in one transfer."""
        return ceil(moved / self.bytes_per_cycle)

    def energy_pj(self, moved: int) -> float:
        """Energy that so many bytes take."""
        return moved * self.pj_per_byte


@dataclass(frozen=True)
class Pad:
    """A scratchpad."""

    name: str
    capacity_bytes: int
    roles: tuple[Role, ...] = ROLES
    """What it may hold of an operation: its ``inputs``, ``weights`` or ``outputs``."""
    word_bytes: int = 1
    """Addresses and room are in whole words of so many bytes."""
    dram: Bus = Bus()
    """Its own way to the main memory."""
    across: Bus | None = None
    """Its way to the other scratchpads, of which the slower and the dearer of two sets the pace and the price of what
    moves between them; None where there is none, and what moves goes through the main memory."""

    def room(self, size_bytes: int) -> int:
        """Bytes that a tensor takes here, whole words."""
        return -(-size_bytes // self.word_bytes) * self.word_bytes

    @property
    def alike(self) -> tuple[object, ...]:
        """What two scratchpads that may stand for one another have in common."""
        return self.capacity_bytes, self.roles, self.word_bytes, self.dram, self.across


@dataclass(frozen=True)
class ResidentTensor:
    """A tensor that scratchpads may hold, with all views of it and all that is done to it in place.

    ``outside`` is the input of the network, a weight or a state: the main memory has it before the first operation.
    ``leaves`` is what the network returns: the main memory must have it after the last one.
    """

    name: str
    size_bytes: int
    weights: bool = False
    outside: bool = False
    leaves: bool = False


@dataclass(frozen=True)
class OperationStep:
    """An operation of the schedule: places of the tensors that it reads and writes, and what it takes by itself."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    cycles: int = 0
    energy_pj: float = 0.0

    @cached_property
    def touches(self) -> tuple[int, ...]:
        """All tensors that must be on scratchpads while it runs, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))


@dataclass(frozen=True)
class ResidencyProblem:
    """Which tensors are to be where, and when.

    Raises an `InputError` if there is no scratchpad or operation, a tensor has no size or is made after it is read, or
    an operation can never be resident.
    """

    name: str
    """Of the network."""
    steps: tuple[OperationStep, ...]
    """In the order in which they run."""
    tensors: tuple[ResidentTensor, ...]
    pads: tuple[Pad, ...]
    cut_bytes: tuple[tuple[str, int], ...] = ()
    """What was left of each tensor that is larger than every scratchpad it needs, by its name: its whole size."""
    whole: "ResidencyProblem | None" = field(default=None, compare=False, repr=False)
    """The problem whose tensors were split, each into parts; None where none were, or it cannot be solved."""

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def touches(self) -> tuple[tuple[int, ...], ...]:
        """Steps that read or write each tensor: its life is from the first to the last of them (5.1.2)."""
        found: list[list[int]] = [[] for _ in self.tensors]
        for at, step in enumerate(self.steps):
            for tensor in step.touches:
                found[tensor].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def gaps(self) -> tuple[tuple[int, int, int], ...]:
        """Tensor, and two steps one after the other that touch it: from one to the other it may stay."""
        return tuple((tensor, first, last) for tensor, steps in enumerate(self.touches)
                     for first, last in pairwise(steps))

    @cached_property
    def rooms(self) -> tuple[tuple[int, ...], ...]:
        """Bytes that each tensor takes on each scratchpad."""
        return tuple(tuple(pad.room(tensor.size_bytes) for pad in self.pads) for tensor in self.tensors)

    def role(self, tensor: int, step: int) -> Role:
        """Return what a tensor is to a step that touches it."""
        if self.tensors[tensor].weights:
            return "weights"
        return "inputs" if tensor in self.steps[step].reads else "outputs"

    @cached_property
    def idle_pads(self) -> tuple[tuple[int, ...], ...]:
        """Scratchpads on which each tensor may stay while no operation touches it: those of any role it ever has."""
        found = []
        for tensor, steps in enumerate(self.touches):
            roles = {self.role(tensor, at) for at in steps}
            found.append(tuple(at for at, pad in enumerate(self.pads) if roles & set(pad.roles)))
        return tuple(found)

    def pads_of(self, tensor: int, step: int) -> tuple[int, ...]:
        """Return the scratchpads on which a tensor may be during a step."""
        return self._touched_pads.get((tensor, step), self.idle_pads[tensor])

    @cached_property
    def _touched_pads(self) -> dict[tuple[int, int], tuple[int, ...]]:
        of = {role: tuple(at for at, pad in enumerate(self.pads) if role in pad.roles) for role in ROLES}
        return {(tensor, at): of[self.role(tensor, at)] for tensor, steps in enumerate(self.touches) for at in steps}

    @cached_property
    def written(self) -> tuple[tuple[int, ...], ...]:
        """Steps that write each tensor."""
        return tuple(tuple(at for at in steps if tensor in self.steps[at].writes)
                     for tensor, steps in enumerate(self.touches))

    def dirty(self, tensor: int, step: int) -> bool:
        """Whether after a step the main memory has not yet got what the tensor holds, unless it was stored since."""
        writes = self.written[tensor]
        return bool(writes) and writes[0] <= step and not (self.tensors[tensor].leaves and writes[-1] <= step)

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """For each scratchpad the first one that is like it."""
        first: dict[object, int] = {}
        return tuple(first.setdefault(pad.alike, at) for at, pad in enumerate(self.pads))

    def across(self, one: int, other: int) -> Bus | None:
        """Return the way between two scratchpads; None where there is none."""
        first, second = self.pads[one].across, self.pads[other].across
        if first is None or second is None:
            return None
        return Bus(min(first.bytes_per_cycle, second.bytes_per_cycle), max(first.pj_per_byte, second.pj_per_byte))

    @property
    def moving(self) -> bool:
        """Whether what is on a scratchpad can move to another without passing the main memory."""
        return sum(pad.across is not None for pad in self.pads) > 1


def _check(problem: ResidencyProblem) -> None:
    if not problem.steps:
        raise InputError(problem.name, "must have an operation that reads or writes tensors")
    if not 0 < len(problem.pads) <= MOST_PADS:
        raise InputError("--pads", f"must be from 1 to {MOST_PADS}", len(problem.pads), _FORM)
    for pad in problem.pads:
        if pad.capacity_bytes < 1 or pad.word_bytes < 1:
            raise InputError(f"--pads {pad.name}", "must hold at least one byte, in words of at least one",
                             min(pad.capacity_bytes, pad.word_bytes))
    if len({tensor.name for tensor in problem.tensors}) < len(problem.tensors):
        raise InputError(f"{problem.name}.tensors", "must have distinct names")
    for at, tensor in enumerate(problem.tensors):
        if tensor.size_bytes < 1:
            raise InputError(f"{problem.name}.{tensor.name}", "must have a size of at least one byte",
                             tensor.size_bytes, "Bind the dimensions that it lacks")
        if problem.touches[at] and not tensor.outside and at not in problem.steps[problem.touches[at][0]].writes:
            raise InputError(f"{problem.name}.{problem.steps[problem.touches[at][0]].name}",
                             "must come after the operation that makes what it reads", tensor.name,
                             "Operations must not wait for one another in a circle")
    for at, step in enumerate(problem.steps):
        _check_step(problem, at, step)


def _check_step(problem: ResidencyProblem, at: int, step: OperationStep) -> None:
    """Refuse an operation whose tensors do not fit on the scratchpads together."""
    for tensor in step.touches:
        if not problem.pads_of(tensor, at):
            raise InputError("--pads", f"must have one that may hold {problem.role(tensor, at)}",
                             ", ".join(pad.name for pad in problem.pads), f"{step.name} needs one")
    if packed(problem, at, step.touches, sure=True) is None:
        held = problem.tensors
        sizes = ", ".join(f"{held[one].name} {held[one].size_bytes:,}" for one in step.touches)
        raise InputError(
            f"{problem.name}.{step.name}", "must have all its tensors on scratchpads at one time",
            f"{sum(held[one].size_bytes for one in step.touches):,} bytes ({sizes})",
            f"There are {', '.join(f'{pad.capacity_bytes:,}' for pad in problem.pads)}; enlarge them, or leave "
            "--oversize to tile, which runs such operations in tiles")


def packed(problem: ResidencyProblem, step: int, tensors: Iterable[int], wish: Mapping[int, int] = _NOWHERE,  # noqa: PLR0913
           bound: Mapping[int, int] = _NOWHERE, *, sure: bool = False) -> dict[int, int] | None:
    """Return a scratchpad for each of some tensors during a step, so that all fit by size; None where none does.

    Depth first, the largest tensor first, each on the scratchpad that is wished for it before others; what is ``bound``
    to one may be on no other. None also where a short search finds none, unless it is to be ``sure`` of at most
    `MOST_SURE` tensors.
    """
    may = {one: problem.pads_of(one, step) for one in tensors}
    may |= {one: tuple(pad for pad in pads if pad == bound[one]) for one, pads in may.items() if one in bound}
    order = sorted(may, key=lambda one: (len(may[one]), -problem.tensors[one].size_bytes, one))
    left = [pad.capacity_bytes for pad in problem.pads]
    chosen: dict[int, int] = {}
    tries = MOST_PLACED + 4 * len(order)

    def twin(one: int, other: int) -> bool:
        return may[one] == may[other] and problem.rooms[one] == problem.rooms[other]

    def place(at: int) -> bool:
        nonlocal tries
        tries -= 1
        if at == len(order):
            return True
        if tries < 0 and not (sure and len(order) <= MOST_SURE):
            return False
        one, tried = order[at], set[tuple[int, int]]()
        first = chosen[order[at - 1]] if not wish and at and twin(order[at - 1], one) else 0
        pads = [pad for pad in may[one] if pad >= first]
        for pad in sorted(pads, key=lambda pad: (pad != wish[one], pad)) if one in wish else pads:
            same = problem.classes[pad], left[pad]
            if left[pad] >= problem.rooms[one][pad] and same not in tried:
                tried.add(same)
                left[pad] -= problem.rooms[one][pad]
                chosen[one] = pad
                if place(at + 1):
                    return True
                left[pad] += problem.rooms[one][pad]
        return False

    if not all(may.values()):
        return None
    rooms = [min(problem.rooms[one][pad] for pad in may[one]) for one in order]
    return chosen if sum(rooms) <= sum(left) and place(0) else None


def read_pads(text: str, word_bytes: int = 1, dram: Bus | None = None, across: Bus | None = None) -> tuple[Pad, ...]:
    """Return the scratchpads that a text tells: ``3x128KB``, or ``in=256KB,weights=512KB,out=256KB`` by their roles.

    Raises an `InputError` if a role or a size is none.
    """
    found: list[Pad] = []
    dram = dram or Bus()
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, size = part.rpartition("=")
        if sign and name not in _ROLE_NAMES:
            raise InputError("--pads", f"must have roles of {', '.join(_ROLE_NAMES)}", name, _FORM)
        times = re.fullmatch(r"(\d+)\s*x\s*(.+)", size)
        count = 1 if times is None else whole_of(times[1], 1, MOST_PADS)
        if count is None:
            raise InputError("--pads", f"must be from 1 to {MOST_PADS}", part, _FORM)
        held = int(read_bytes(size if times is None else times[2], f"--pads {part}"))
        for _ in range(count):
            own = name if name and name not in {pad.name for pad in found} and count == 1 else f"pad{len(found)}"
            found.append(Pad(own, held, _ROLE_NAMES[name or "any"], word_bytes, dram, across))
    if not 0 < len(found) <= MOST_PADS:
        raise InputError("--pads", f"must be from 1 to {MOST_PADS}", text, _FORM)
    return tuple(found)


def cut_tensors(tensors: Sequence[ResidentTensor], steps: Sequence[OperationStep], pads: Sequence[Pad],
                ) -> tuple[tuple[ResidentTensor, ...], tuple[tuple[str, int], ...]]:
    """Cut tensors to the largest size that fits where they must be (thesis, 6.3); also return what was cut.

    Where an operation has more of them than fit together, the largest is cut in half until they do. What is cut away of
    a tensor is not counted anywhere.
    """
    most = {role: max((pad.capacity_bytes // pad.word_bytes * pad.word_bytes for pad in pads if role in pad.roles),
                      default=1) for role in ROLES}
    word, found = max((pad.word_bytes for pad in pads), default=1), list(tensors)
    for step in steps:
        for one in step.touches:
            role: Role = "weights" if tensors[one].weights else "inputs" if one in step.reads else "outputs"
            found[one] = replace(found[one], size_bytes=min(found[one].size_bytes, most[role]))
    for step in steps:
        while not fits(step, found, pads):
            largest = max(step.touches, key=lambda one: found[one].size_bytes)
            if found[largest].size_bytes <= word:
                break  # what is wrong with that is told where the problem is posed
            found[largest] = replace(found[largest], size_bytes=-(-found[largest].size_bytes // 2 // word) * word)
    return tuple(found), tuple((whole.name, whole.size_bytes) for whole, left in zip(tensors, found, strict=True)
                               if left.size_bytes < whole.size_bytes)


def fits(step: OperationStep, tensors: Sequence[ResidentTensor], pads: Sequence[Pad]) -> bool:
    """Whether what an operation touches fits on scratchpads together; an `InputError` where none may hold a part."""
    places = {tensor: at for at, tensor in enumerate(step.touches)}
    reads, writes = (tuple(places[one] for one in touched) for touched in (step.reads, step.writes))
    try:
        ResidencyProblem(step.name, (OperationStep(step.name, reads, writes),),
                         tuple(replace(tensors[one], outside=True) for one in places), tuple(pads))
    except InputError as error:
        if error.field == "--pads":
            raise
        return False
    return True

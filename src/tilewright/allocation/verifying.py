"""A plan checked by carrying it out, word by word; shares no code with solvers and simulator, only the records.

Every word of every scratchpad holds which word of which version of which tensor was last written there. Each operation
must find all words of what it reads, each store all words of what it stores, and what stays must stay as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isclose

import numpy as np

from tilewright.allocation.problem import Bus
from tilewright.allocation.records import PlanRecord
from tilewright.allocation.stays import DmaTransfer, Stay
from tilewright.base import InputError

MAIN, MOST_FAULTS = -1, 50
MOST_WORDS = 2**30
"""Words of all scratchpads together that are carried out, of eight bytes each."""
_WORDS, _VERSIONS = 2**34, 2**10


@dataclass(frozen=True)
class PlanFault:
    """What is wrong with a plan: which rule is broken, and where."""

    rule: str
    where: str


def verify(plan: PlanRecord) -> tuple[PlanFault, ...]:
    """Return what is wrong with a plan, at most `MOST_FAULTS`; nothing where it does what it says.

    It tells nothing of whether the plan is the best one, but that its bound is not above it.
    """
    found = [*_impossible(plan), *_unknown(plan)][:MOST_FAULTS]
    if not found:
        for part in (_lives(plan), _Replay(plan).faults(), _sums(plan), _times(plan)):
            for fault in part:
                found.append(fault)
                if len(found) == MOST_FAULTS:
                    return tuple(found)
    return tuple(found)


def _impossible(plan: PlanRecord) -> Iterator[PlanFault]:
    """Give figures by which nothing can be carried out."""
    for pad in plan.pads:
        ways = [way for way in (pad.dram, pad.across) if way is not None]
        if min(pad.capacity_bytes, pad.word_bytes) < 1 or not all(0 < way.bytes_per_cycle < inf for way in ways):
            yield PlanFault("scratchpads have room, words and ways", pad.name)
    for tensor in plan.tensors:
        if tensor.size_bytes < 0:
            yield PlanFault("tensors have a size", tensor.name)
    if not plan.objective:
        yield PlanFault("plans have an objective", plan.network)


def _unknown(plan: PlanRecord) -> Iterator[PlanFault]:
    """Give what names something that is not there: nothing else can be checked then."""
    tensors, pads, steps = len(plan.tensors), len(plan.pads), len(plan.steps)
    for number, step in enumerate(plan.steps):
        if any(not 0 <= one < tensors for one in (*step.reads, *step.writes)):
            yield PlanFault("operations name tensors that there are", f"step {number}")
    for at, stay in enumerate(plan.residency):
        if not (0 <= stay.tensor < tensors and 0 <= stay.pad < pads and 0 <= stay.first <= stay.last < steps):
            yield PlanFault("stays name tensors, scratchpads and steps that there are", f"residency {at}")
    for at, one in enumerate(plan.transfers):
        ends = {"load": one.origin == MAIN and 0 <= one.target < pads,
                "store": 0 <= one.origin < pads and one.target == MAIN,
                "move": 0 <= one.origin < pads and 0 <= one.target < pads and one.origin != one.target}
        if not (ends[one.kind] and 0 <= one.tensor < tensors and 0 <= one.step < steps):
            yield PlanFault("transfers name tensors, ends and steps that there are", f"transfer {at}")


def _room(plan: PlanRecord, stay: Stay) -> int:
    """Return words that a stay takes."""
    return ceil(plan.tensors[stay.tensor].size_bytes / plan.pads[stay.pad].word_bytes)


def _lives(plan: PlanRecord) -> Iterator[PlanFault]:
    """Give stays outside the room of a scratchpad or the life of a tensor, and tensors in two places."""
    touched: list[list[int]] = [[] for _ in plan.tensors]
    for at, step in enumerate(plan.steps):
        for number in (*step.reads, *step.writes):
            touched[number].append(at)
    for stay in plan.residency:
        tensor, pad = plan.tensors[stay.tensor], plan.pads[stay.pad]
        where = f"{tensor.name} on {pad.name} from step {stay.first}"
        uses = touched[stay.tensor]
        if not uses or stay.last > uses[-1] or (not tensor.outside and stay.first < uses[0]):
            yield PlanFault("stays are within the life of a tensor", where)
        if stay.address < 0 or stay.address + _room(plan, stay) * pad.word_bytes > pad.capacity_bytes:
            yield PlanFault("stays are within their scratchpad", where)
        if stay.address % pad.word_bytes:
            yield PlanFault("addresses are those of words", where)
        first_made = bool(uses) and not tensor.outside and stay.first == uses[0]
        if (stay.begins == "made") != first_made:
            yield PlanFault("a tensor is made by the operation that first writes it, and loaded after", where)
    order = sorted(plan.residency, key=lambda stay: (stay.tensor, stay.first))
    for one, other in pairwise(order):
        if one.tensor == other.tensor and other.first <= one.last:
            yield PlanFault("a tensor is on one scratchpad at a time",
                            f"{plan.tensors[one.tensor].name} in step {other.first}")


class _Replay:
    """The words of all memories while a plan is carried out."""

    def __init__(self, plan: PlanRecord) -> None:
        self.plan = plan
        used = [max((stay.address // pad.word_bytes + _room(plan, stay) for stay in plan.residency if stay.pad == at),
                    default=0) for at, pad in enumerate(plan.pads)]
        rooms = [min(end, -(-pad.capacity_bytes // pad.word_bytes)) for end, pad in zip(used, plan.pads, strict=True)]
        if sum(rooms) > MOST_WORDS:
            raise InputError("residency", f"must end within {MOST_WORDS:,} words to be carried out", f"{sum(rooms):,}",
                             "Give larger words: tilewright allocate ... --word BYTES")
        self.words = [np.full(max(0, room), -1, dtype=np.int64) for room in rooms]
        self.versions = [0] * len(plan.tensors)
        self.main = [0 if tensor.outside else -1 for tensor in plan.tensors]
        """Version of each tensor that the main memory has; -1 for none."""
        self.left: dict[int, Stay] = {}
        """Stays that ended with the step before."""
        self.written: list[Stay] = []
        """Stays whose words were written in this step."""

    def _span(self, stay: Stay) -> slice:
        begin = max(0, stay.address) // self.plan.pads[stay.pad].word_bytes
        return slice(begin, begin + _room(self.plan, stay))

    def _tags(self, stay: Stay, version: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        words = len(self.words[stay.pad][self._span(stay)])
        return (stay.tensor * _VERSIONS + version) * _WORDS + np.arange(words, dtype=np.int64)

    def _write(self, stay: Stay, version: int) -> None:
        self.words[stay.pad][self._span(stay)] = self._tags(stay, version)
        self.written.append(stay)

    def _overwritten(self, here: dict[int, Stay]) -> Iterator[Stay]:
        """Give what was written in this step, or shares words with that."""
        spans = [(stay.pad, self._span(stay)) for stay in self.written]
        for stay in here.values():
            span = self._span(stay)
            if any(pad == stay.pad and other.start < span.stop and span.start < other.stop for pad, other in spans):
                yield stay

    def _holds(self, stay: Stay) -> bool:
        found = self.words[stay.pad][self._span(stay)]
        return len(found) == _room(self.plan, stay) and np.array_equal(
            found, self._tags(stay, self.versions[stay.tensor]))

    def faults(self) -> Iterator[PlanFault]:
        """Carry the plan out, and give what goes wrong."""
        plan = self.plan
        before: dict[int, list[DmaTransfer]] = {}
        after: dict[int, list[DmaTransfer]] = {}
        for one in plan.transfers:
            (after if one.kind == "store" else before).setdefault(one.step, []).append(one)
        coming: dict[int, list[Stay]] = {}
        for stay in plan.residency:
            coming.setdefault(stay.first, []).append(stay)
        here: dict[int, Stay] = {}
        for at in range(len(plan.steps)):
            self.left = {one: stay for one, stay in here.items() if stay.last == at - 1}
            for number in self.left:
                del here[number]
            here.update((stay.tensor, stay) for stay in coming.get(at, ()))
            self.written = []
            yield from self._arrive(at, here, before.get(at, []))
            yield from self._run(at, here)
            for one in after.get(at, []):
                held = here.get(one.tensor)
                if held is None or held.pad != one.origin or not self._holds(held):
                    yield PlanFault("stores begin where a tensor is", self._name(one.tensor, at))
                else:
                    self.main[one.tensor] = self.versions[one.tensor]
        for number, tensor in enumerate(plan.tensors):
            if tensor.leaves and self.main[number] != self.versions[number]:
                yield PlanFault("the main memory has what leaves the network", tensor.name)

    def _name(self, tensor: int, at: int) -> str:
        return f"{self.plan.tensors[tensor].name} at {self.plan.steps[at].name}"

    def _arrive(self, at: int, here: dict[int, Stay], coming: list[DmaTransfer]) -> Iterator[PlanFault]:
        """Move and load: all moves read before anything is written."""
        wanted = sorted((stay.tensor, stay.pad, stay.begins) for stay in here.values()
                        if stay.first == at and stay.begins != "made")
        if wanted != sorted((one.tensor, one.target, one.kind) for one in coming):
            yield PlanFault("stays begin with a transfer, and transfers begin a stay", self.plan.steps[at].name)
        coming = [one for one in coming if one.tensor in here]
        for one in coming:
            if one.kind == "move":
                left = self.left.get(one.tensor)
                ways = self.plan.pads[one.origin].across, self.plan.pads[one.target].across
                if left is None or left.pad != one.origin or None in ways or not self._holds(left):
                    yield PlanFault("moves begin where a tensor is, and have a way", self._name(one.tensor, at))
            elif self.main[one.tensor] != self.versions[one.tensor]:
                yield PlanFault("the main memory has what is loaded", self._name(one.tensor, at))
        for one in coming:
            self._write(here[one.tensor], self.versions[one.tensor])

    def _run(self, at: int, here: dict[int, Stay]) -> Iterator[PlanFault]:
        """Run an operation: what it reads and writes must be there, before and after, and all else that stays."""
        step = self.plan.steps[at]
        for one in (*step.reads, *step.writes):
            stay = here.get(one)
            role = ("weights" if self.plan.tensors[one].weights else "inputs" if one in step.reads else "outputs")
            if stay is None:
                yield PlanFault("operations find what they touch on scratchpads", self._name(one, at))
            elif role not in self.plan.pads[stay.pad].roles:
                yield PlanFault("scratchpads hold what they may", self._name(one, at))
        for one in step.reads:
            if one in here and not self._holds(here[one]):
                yield PlanFault("operations find every word of what they read", self._name(one, at))
        for one in step.writes:
            self.versions[one] += 1
            if one in here:
                self._write(here[one], self.versions[one])
        for stay in self._overwritten(here):
            if not self._holds(stay):
                yield PlanFault("what stays is not overwritten", self._name(stay.tensor, at))


def _ways(plan: PlanRecord, one: DmaTransfer) -> list[Bus]:
    ways = [plan.pads[end].across if one.kind == "move" else plan.pads[end].dram
            for end in (one.origin, one.target) if end != MAIN]
    return [way for way in ways if way is not None]


def _cycles(plan: PlanRecord, one: DmaTransfer) -> int:
    return max((ceil(one.bytes / way.bytes_per_cycle) for way in _ways(plan, one)), default=0)


def _times(plan: PlanRecord) -> Iterator[PlanFault]:
    """Give stalls and simulated cycles that transfers do not allow.

    All that came in up to an operation passed the channels before it began, and stores begin when what they store has
    ended; compute waits no longer than for all that moves, and nothing but stores is left after the last operation.
    """
    if len(plan.stalls) != len(plan.steps) or min(plan.stalls, default=0) < 0 or plan.channels < 1:
        yield PlanFault("each operation has a stall, and there is a channel", f"{len(plan.stalls)}, {plan.channels}")
        return
    coming, stores = [0] * len(plan.steps), [list[int]() for _ in plan.steps]
    for one in plan.transfers:
        if one.kind == "store":
            stores[one.step].append(_cycles(plan, one))
        else:
            coming[one.step] += _cycles(plan, one)
    now = come = end = 0
    for step, stall, cycles, stored in zip(plan.steps, plan.stalls, coming, stores, strict=True):
        now, come = now + stall, come + cycles
        if now * plan.channels < come:
            yield PlanFault("operations begin when what they need has come", step.name)
        now += step.cycles
        end = max(end, now, *(now + one for one in stored))
    if not end <= plan.simulated_cycles <= now + sum(map(sum, stores)) or sum(plan.stalls) > plan.tally.dma_cycles:
        yield PlanFault("simulated cycles are those of operations, stalls and last stores", f"{plan.simulated_cycles}")


def _sums(plan: PlanRecord) -> Iterator[PlanFault]:
    """Give figures that do not follow from the transfers."""
    moved = {"load": 0, "store": 0, "move": 0}
    cycles, energy = 0, sum(step.energy_pj for step in plan.steps)
    for one in plan.transfers:
        if one.bytes != plan.tensors[one.tensor].size_bytes:
            yield PlanFault("transfers move whole tensors", plan.tensors[one.tensor].name)
        moved[one.kind] += one.bytes
        cycles += _cycles(plan, one)
        energy += max((one.bytes * way.pj_per_byte for way in _ways(plan, one)), default=0.0)
    told = plan.tally
    compute = sum(step.cycles for step in plan.steps)
    if (told.loaded_bytes, told.stored_bytes, told.moved_bytes) != tuple(moved.values()):
        yield PlanFault("bytes are those of the transfers", f"{told.loaded_bytes}, {told.stored_bytes}")
    if (told.compute_cycles, told.dma_cycles) != (compute, cycles):
        yield PlanFault("cycles are those of operations and transfers", f"{told.compute_cycles}, {told.dma_cycles}")
    if not isclose(told.energy_pj, energy, rel_tol=1e-9):
        yield PlanFault("energy is that of operations and transfers", f"{told.energy_pj}")
    score = {"bytes": moved["load"] + moved["store"], "latency": compute + cycles, "energy": energy,
             "edp": (compute + cycles) * energy}.get(plan.objective[0])
    if score is not None and not isclose(plan.score, score, rel_tol=1e-6, abs_tol=1e-2):
        yield PlanFault("the score is that of the objective", f"{plan.score}")
    if plan.bound > plan.score * (1 + 1e-9) or (plan.proven and plan.gap > 1e-6):
        yield PlanFault("no bound is above the plan, and a proof leaves no gap", f"{plan.bound}")
    used = {one for step in plan.steps for one in (*step.reads, *step.writes)}
    least = sum(tensor.size_bytes * (tensor.outside + tensor.leaves) for at, tensor in enumerate(plan.tensors)
                if at in used)
    if sum((moved["load"], moved["store"])) < least:
        yield PlanFault("no plan moves less than what must come and go", f"{least}")

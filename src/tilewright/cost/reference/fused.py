"""The oracle for fused groups: runs the tree turn by turn, and walks every run of every operator literally.

The rules are those of docs/concepts.md, "Fused groups". Slow on purpose, for small groups only.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, product
from math import ceil, prod

import numpy as np

from tilewright.cost.records import COMPUTE, KINDS, Count, FusedCost
from tilewright.cost.reference.boundary import Moved, WalkedBoundary, cross_all
from tilewright.cost.reference.energy import energies, leaked
from tilewright.cost.reference.latency import Transfers, ramps, traffic
from tilewright.cost.reference.nest import write_out
from tilewright.cost.reference.walker import tallies
from tilewright.hardware import Accelerator, Memory, exact_rate
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedLink,
    FusedMapping,
    FusedNode,
    LevelLoops,
    Loop,
    Mapping,
    lane_use,
    operations_of,
    tensor_bits,
)
from tilewright.workload import Operator, Tensor

Box = dict[str, range]
UNIT = "vector unit"


@dataclass
class _Taken:
    """What one operator takes, all its runs together."""

    cycles: Counter[str] = field(default_factory=Counter)
    energy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    done: Fraction = Fraction(0)
    starts: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Walker:
    group: FusedGroup
    accelerator: Accelerator
    mapping: FusedMapping

    def path(self, name: str) -> list[FusedNode]:
        """Return the nodes around an operator, outermost first."""
        path, node = [], self.mapping.root
        while True:
            path.append(node)
            inner = [part for part in node.parts if isinstance(part, FusedNode) and name in part.names]
            if not inner:
                return path
            node = inner[0]

    def anew(self, name: str) -> FusedNode | None:
        """Return the node in each of whose turns an operator runs anew."""
        inner = self.path(name)[-1]
        return inner if inner.again and name != inner.last else None

    def carried(self, node: FusedNode, at: int, name: str) -> tuple[str, int] | None:
        """Return what the node's loop number ``at`` is in an operator, following results to their readers."""
        if name == node.last:
            return node.loops[at].dimension, node.loops[at].step
        for link in self.group.links:
            if link.producer == name and link.reader in node.names:
                inside = self.carried(node, at, link.reader)
                for dimension, axis in link.axes if inside else ():
                    for digit in axis.digits:
                        if inside and digit.axis == inside[0] and 0 < inside[1] // digit.divisor < digit.extent:
                            return dimension, abs(digit.stride) * ceil(inside[1] / digit.divisor)
        return None

    def shared(self, name: str, until: FusedNode) -> list[tuple[str, Loop]]:
        """Return levels and loops that an operator shares, down to a node."""
        if self.anew(name):
            return []
        found, kept = [], 0
        for node in self.path(name):
            for at, loop in enumerate(node.loops):
                inside = self.carried(node, at, name)
                if inside:
                    found.append((loop.level, Loop(*inside)))
            if node is until:
                kept = len(found)
        leaf = next(leaf for leaf in self.mapping.root.leaves if leaf.operator == name)
        for dimension, step in leaf.steps:
            over = [at for at, (_, loop) in enumerate(found) if loop.dimension == dimension]
            if over:
                found[over[-1]] = found[over[-1]][0], Loop(dimension, step)
        return found[:kept]

    def home(self, producer: str) -> str:
        """Return the memory that holds a result."""
        stated = [held.memory for held in self.mapping.held if held.producer == producer]
        output = self.group.operator(producer).output
        able = [memory.name for memory in self.accelerator.memories if memory.can_keep(output.name, output.role)]
        return [*stated, *able, self.accelerator.memories[0].name][0]

    def homes(self, operator: Operator) -> dict[str, str]:
        """Return the homes of the intermediate tensors at an operator."""
        found = {link.operand: self.home(link.producer) for link in self.group.links if link.reader == operator.name}
        if any(link.producer == operator.name for link in self.group.links):
            found[operator.output.name] = self.home(operator.name)
        return found

    def nest(self, operator: Operator) -> Mapping:
        """Return the mapping of an operator with the shared loops outside, and no memory outside a tensor's home."""
        shared, homes = self.shared(operator.name, self.path(operator.name)[-1]), self.homes(operator)
        leaf = next(leaf for leaf in self.mapping.root.leaves if leaf.operator == operator.name)
        given = {entry.level: entry for entry in leaf.mapping.levels}
        reached, levels = set[str](), []
        for level in self.accelerator.levels:
            entry = given.get(level.name, LevelLoops(level.name))
            loops = [loop for name, loop in shared if name == level.name]
            keeps = None
            if isinstance(level, Memory):
                keeps = tuple(t.name for t in operator.tensors if (
                    level.can_keep(t.name, t.role) if entry.keeps is None else t.name in entry.keeps))
                reached |= {name for name, home in homes.items() if home == level.name}
                at_home = [name for name, home in homes.items() if home == level.name]
                keeps = tuple(t.name for t in operator.tensors if t.name in at_home or (
                    t.name in keeps and (t.name not in homes or t.name in reached)))
            levels.append(LevelLoops(level.name, (*loops, *entry.loops), keeps))
        return Mapping(tuple(levels))

    def tiles(self, name: str, node: FusedNode) -> list[Box]:
        """Return the tiles of an operator in the order of its loops down to a node."""
        def inside(box: Box, loops: list[Loop]) -> Iterator[Box]:
            if not loops:
                yield box
                return
            whole = box[loops[0].dimension]
            for start in range(whole.start, whole.stop, loops[0].step):
                part = range(start, min(start + loops[0].step, whole.stop))
                yield from inside(box | {loops[0].dimension: part}, loops[1:])
        full = {dimension: range(size) for dimension, size in self.group.operator(name).dimensions}
        return list(inside(full, [loop for _, loop in self.shared(name, node)]))

    def asked(self, link: FusedLink, reader: Box) -> Box | None:
        """Return the box of a result that a box of the reader needs; None if that is nothing."""
        box = {name: range(size) for name, size in self.group.operator(link.producer).dimensions}
        for dimension, axis in link.axes:
            first = last = axis.offset
            for digit in axis.digits:
                values = {digit.stride * (place // digit.divisor % digit.extent) for place in reader[str(digit.axis)]}
                first, last = first + min(values), last + max(values)
            box[dimension] = range(max(first, 0), min(last + 1, len(box[dimension])))
        return box if all(len(part) for part in box.values()) else None

    def replay(self, node: FusedNode) -> list[tuple[int, str, Box]]:
        """Run the turns of all operators of a node; return the node's iteration, the operator and the box of each."""
        return _Replay(self, node).events()

    def runs(self, name: str) -> list[Box]:
        """Return the boxes of an operator's runs."""
        node = self.anew(name)
        if node is None:
            return [{dimension: range(size) for dimension, size in self.group.operator(name).dimensions}]
        return [box for _, runs, box in self.replay(node) if runs == name]

    def held(self, name: str) -> tuple[int, int]:
        """Return the most words held of an operator's result at one time, and that stay between two iterations."""
        axes = self.group.operator(name).output.dimensions
        if self.anew(name) is not None:
            return max((prod(len(box[d]) for d in axes) for box in self.runs(name)), default=0), 0
        links = [link for link in self.group.links if link.producer == name]
        node = [node for node in self.path(name) if all(link.reader in node.names for link in links)][-1]
        events, lives = self.replay(node), []
        for born, runs, tile in events:
            if runs == name:
                dies = born
                for at, reader, box in events:
                    for link in links:
                        wanted = self.asked(link, box) if link.reader == reader else None
                        if wanted and _meet(tile, wanted):
                            dies = at
                lives.append((born, dies, prod(len(tile[d]) for d in axes)))
        iterations = range(max(dies for _, dies, _ in lives) + 1)
        return (max(sum(words for born, dies, words in lives if born <= at <= dies) for at in iterations),
                max(sum(words for born, dies, words in lives if born <= at < dies) for at in iterations))


def _meet(one: Box, other: Box) -> bool:
    return all(max(one[d].start, other[d].start) < min(one[d].stop, other[d].stop) for d in one)


class _Replay:
    """The turns of a node, each run just before the first turn that needs what it makes."""

    def __init__(self, walker: _Walker, node: FusedNode) -> None:
        self.walker, self.node = walker, node
        self.waiting = {name: walker.tiles(name, node) for name in node.names if walker.anew(name) is None}
        self.found: list[tuple[int, str, Box]] = []

    def events(self) -> list[tuple[int, str, Box]]:
        count = len(self.waiting[self.node.last])
        for at in range(count):
            if at == count - 1:
                for name in self.node.names[:-1]:
                    while self.waiting.get(name):
                        self.turn(name, at)
            self.turn(self.node.last, at)
        return self.found

    def turn(self, name: str, at: int) -> None:
        """Run the next turn of an operator, and before it what it needs."""
        box = self.waiting[name].pop(0)
        boxes: dict[str, list[Box]] = defaultdict(list, {name: [box]})
        inner = self.walker.path(name)[-1]
        order = reversed(inner.names) if inner.again and inner.last == name else [name]
        for reader in list(order):
            if not boxes[reader]:
                continue
            own = {d: range(min(part[d].start for part in boxes[reader]), max(part[d].stop for part in boxes[reader]))
                   for d in boxes[reader][0]}
            for link in self.walker.group.links:
                wanted = self.walker.asked(link, own) if link.reader == reader else None
                if wanted is None or link.producer not in self.node.names:
                    continue
                if self.walker.anew(link.producer) is not None:
                    boxes[link.producer].append(wanted)
                while any(_meet(tile, wanted) for tile in self.waiting.get(link.producer, [])):
                    self.turn(link.producer, at)
            self.found.append((at, reader, own))


def walk_fused(group: FusedGroup, accelerator: Accelerator, mapping: FusedMapping) -> FusedCost:
    """Return what a fused group costs, by running its tree literally."""
    walker = _Walker(group, accelerator, mapping)
    taken = {op.name: _layer(walker, op) if operations_of(op) is None else _vector(walker, op)
             for op in group.operators}
    for op in group.operators:
        if op.name in group.leaving and any(link.producer == op.name for link in group.links):
            _leave(walker, op, taken[op.name])
    steady, ramp, bottleneck = _time(walker, taken, mapping.root, 1)
    energy = defaultdict[str, float](float)
    cycles = Counter[str]()
    for each in taken.values():
        cycles.update(each.cycles)
        for name, pj in each.energy.items():
            energy[name] += pj
    energy |= leaked(accelerator, steady + ramp)
    layers = [op for op in group.operators if operations_of(op) is None]
    busy = sum(taken[op.name].done * lane_use(op, accelerator).cycles for op in layers)
    return FusedCost(
        macs=int(sum(taken[op.name].done for op in layers)), steady_cycles=steady, ramp_cycles=ramp,
        energy_pj=sum(energy.values()), energy_by_component_pj=dict(energy),
        counts={(name, *place): Count(*(count[kind] for kind in KINDS))
                for name, each in taken.items() for place, count in each.counts.items()},
        cycles=dict(cycles), bottleneck=bottleneck,
        utilisation=float(busy) / (accelerator.compute_instances * (steady + ramp)) if steady + ramp else 0.0,
        held={op.name: walker.held(op.name) for op in group.operators
              if any(link.producer == op.name for link in group.links)},
        made={op.name: float(taken[op.name].done / (operations_of(op) or op.macs)) for op in group.operators},
    )


def _layer(walker: _Walker, operator: Operator) -> _Taken:
    """Walk every run of an operator as a nest of its own, but for operands' tiles that are there already."""
    found, mapping, machine = _Taken(), walker.nest(operator), walker.accelerator
    before: Box | None = None
    for box in walker.runs(operator.name):
        sized = replace(operator, dimensions=tuple((d, len(box[d])) for d in operator.sizes))
        nest = write_out(sized, machine, mapping)
        crossings = {}
        for tensor in sized.tensors:
            same = before is not None and all(box[d] == before[d] for d in tensor.dimensions)
            crossings[tensor.name] = [(b, _stayed(m) if same and _stands(b) else m) for b, m in cross_all(nest, tensor)]
        transfers = Transfers(nest, crossings, tallies(crossings))
        moved = traffic(machine.memories, transfers.port)
        found.cycles[COMPUTE] += ceil(nest.steps() * lane_use(sized, machine).cycles) + sum(
            each.blocking_cycles for each in moved.values())
        for name, each in moved.items():
            found.cycles[name] += each.cycles
        for name, pj in energies(transfers, 0).items():
            if name != "leakage":
                found.energy[name] += pj
        for (level, name), tally in transfers.tallies.items():
            found.counts[machine.levels[level].name, name].update({k: int(words.sum()) for k, words in tally.items()})
        start, tail = ramps(transfers)
        found.starts.append(start)
        found.tails.append(tail)
        found.done += sized.macs
        before = box
    return found


def _stands(boundary: WalkedBoundary) -> bool:
    return not (boundary.tensor.is_output or boundary.feeds_compute or boundary.advancing)


def _stayed(moved: Moved) -> Moved:
    """Return a crossing of which nothing is brought in."""
    return replace(moved, received=np.zeros_like(moved.received), read=np.zeros_like(moved.read))


def _vector(walker: _Walker, operator: Operator) -> _Taken:
    """Read and write the tiles of a vector operator, turn by turn."""
    found, machine, unit = _Taken(), walker.accelerator, walker.accelerator.vector_unit
    turns = walker.runs(operator.name) if walker.anew(operator.name) else (
        walker.tiles(operator.name, walker.path(operator.name)[-1]))
    homes, bits = walker.homes(operator), defaultdict[str, Counter[str]](Counter)
    for tensor in operator.tensors:
        words = sum(len(_words(tensor, box)) for box in turns)
        kinds = ("updates", "drains") if tensor.is_output else ("reads", "fills")
        width = Fraction(tensor.word_bits or dict(machine.word_bits)["inputs"])
        for at, memory in enumerate(_passed(machine, tensor, homes.get(tensor.name))):
            for kind in kinds[:1] if at == 0 else kinds:
                found.counts[memory.name, tensor.name][kind] += words
                bits[memory.name][kind] += words * width  # type: ignore[assignment]
    _move(found, bits, machine)
    every = Fraction(operations_of(operator) or 0) / len(_words(operator.output, _whole(operator)))
    done = [every * len(_words(operator.output, box)) for box in turns]
    pace = exact_rate(unit.rate(operator.kind))
    found.turns = [ceil(each / pace) for each in done]
    found.done = sum(done, start=Fraction(0))
    found.cycles[UNIT] = ceil(found.done / pace)
    found.energy[UNIT] = float(found.done) * (unit.energy_pj_per_operation or 0)
    return found


def _move(found: _Taken, bits: dict[str, Counter[str]], machine: Accelerator) -> None:
    """Charge memories for the bits that they move, by kind."""
    reading, writing = ("reads", "drains"), ("fills", "updates")
    for memory in machine.memories:
        moved, rate, slowest = bits[memory.name], memory.bandwidth, 0
        for ports, speed in ((reading, rate.read), (writing, rate.write), (KINDS, rate.shared)):
            if speed is not None:
                through = Fraction(sum(moved[kind] for kind in ports)) / memory.word_bits
                slowest = max(slowest, ceil(through / machine.instances(memory.name) / exact_rate(speed)))
        found.cycles[memory.name] += slowest
        for kind in KINDS:
            blocks = ceil(Fraction(moved[kind]) / (memory.block_words * memory.word_bits))
            found.energy[memory.name] += blocks * memory.block_words * getattr(memory.energy, f"{kind[:-1]}_pj")


def _leave(walker: _Walker, operator: Operator, found: _Taken) -> None:
    """Bring each word of a result out, from the memory that holds it to the outermost that can keep it."""
    machine, output = walker.accelerator, operator.output
    inside, outside = walker.home(operator.name), _passed(machine, output, None)[0].name
    if inside == outside:
        return
    words, bits = len(_words(output, _whole(operator))), defaultdict[str, Counter[str]](Counter)
    width = Fraction(tensor_bits(output, machine))
    if operations_of(operator) is not None:
        width = Fraction(output.word_bits or dict(machine.word_bits)["inputs"])
    for memory, kind in ((inside, "drains"), (outside, "updates")):
        found.counts[memory, output.name][kind] += words
        bits[memory][kind] += words * width  # type: ignore[assignment]
    _move(found, bits, machine)


def _whole(operator: Operator) -> Box:
    return {name: range(size) for name, size in operator.dimensions}


def _words(tensor: Tensor, box: Box) -> set[tuple[int, ...]]:
    """Return the words of a tensor that a box touches (rule 1)."""
    return set(product(*({sum(times * at for (_, times), at in zip(axis.terms, place, strict=True))
                          for place in product(*(box[name] for name in axis.dimensions))} for axis in tensor.axes)))


def _passed(machine: Accelerator, tensor: Tensor, home: str | None) -> list[Memory]:
    """Return the memories between a tensor's home and the vector unit, the home first."""
    unit = machine.vector_unit.memory or machine.memories[0].name
    first = home or next((memory.name for memory in machine.memories if memory.can_keep(tensor.name, tensor.role)),
                         machine.memories[0].name)
    found, inside, past = [], False, False
    for memory in machine.memories:
        if memory.name == first:
            found, inside = [memory], True
        elif inside and not past and (memory.name == unit or memory.can_keep(tensor.role, tensor.role)):
            found.append(memory)
        past = past or memory.name == unit
    return found


def _time(walker: _Walker, taken: dict[str, _Taken], part: FusedLeaf | FusedNode, around: int) -> tuple[int, int, str]:
    """Return steady and ramp cycles of a part of the tree, and what sets the former."""
    if isinstance(part, FusedLeaf):
        own = taken[part.operator]
        return *_slowest(walker, own.cycles, sum(own.starts[:1]) + sum(own.tails[-1:])),
    turns = len(walker.tiles(part.last, part))
    if turns == around:
        found = [_time(walker, taken, inner, turns) for inner in part.parts]
        return sum(each[0] for each in found), sum(each[1] for each in found), max(found, key=lambda each: each[0])[2]
    cycles, ramp = Counter[str](), sum(taken[part.names[0]].starts[:1]) + sum(taken[part.last].tails[-1:])
    for name in part.names:
        ends = {link.producer for link in walker.group.links if name in (link.producer, link.reader)}
        twice = {held.producer for held in walker.mapping.held if held.copies == 2}
        for resource, needs in taken[name].cycles.items():
            waits = resource == UNIT and not ends <= twice
            cycles[COMPUTE if waits else resource] += needs
        if ends <= twice:
            ramp += sum(taken[name].turns[:1])
    return _slowest(walker, cycles, ramp)


def _slowest(walker: _Walker, cycles: Counter[str], ramp: int) -> tuple[int, int, str]:
    slowest, what = cycles[COMPUTE], COMPUTE
    for name in chain((memory.name for memory in walker.accelerator.memories), [UNIT]):
        if cycles[name] > slowest:
            slowest, what = cycles[name], name
    return slowest, ramp, what

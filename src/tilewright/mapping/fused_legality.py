"""What is wrong with a fused mapping, by name, and what a group takes of each memory (docs/concepts.md)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.hardware import Accelerator, Memory, refuse_shared
from tilewright.mapping.fit import Room, extents_at, held_bits, kept_tensors, partition_of, tile_bytes
from tilewright.mapping.fused import FusedGroup, FusedLeaf, FusedMapping, FusedNode, operations_of
from tilewright.mapping.fused_turns import FusedTree, HeldWords
from tilewright.mapping.legality import violations
from tilewright.mapping.mapping import Mapping
from tilewright.workload import Operator, Tensor

FusedKind = Literal["level", "shared", "own", "again", "held", "nest", "capacity"]


@dataclass(frozen=True)
class FusedViolation:
    """One rule that a fused mapping breaks."""

    kind: FusedKind
    """``level`` (a shared loop at no memory, or outside one around it), ``shared`` (a shared loop over a dimension
    that is summed up, of an operator whose result is read in the group), ``own`` (an operator's loop outside a
    shared one), ``again`` (read outside the node in which it is made again), ``held`` (a memory that cannot hold
    it), ``nest`` (anything else about the nest of one operator), ``capacity`` (what lives at one time does not
    fit)."""
    subject: str
    """The operator or memory concerned."""
    message: str
    mend: str
    cure: FusedMapping | None = None
    """The mapping with the change that ``mend`` tells; None where that is no single change."""

    def __str__(self) -> str:
        return f"{self.message}; {self.mend}"


def fused_violations(group: FusedGroup, accelerator: Accelerator, mapping: FusedMapping) -> tuple[FusedViolation, ...]:
    """Return all that is wrong with a fused mapping; empty if it is legal.

    Raises an `InputError` if the tree is none of this group (`FusedTree`).
    """
    return tree_violations(FusedTree(group, mapping), accelerator)


def tree_violations(tree: FusedTree, accelerator: Accelerator) -> tuple[FusedViolation, ...]:
    """Return what `fused_violations` does of a tree that stands."""
    refuse_shared(accelerator, "fused groups")
    found = [*_level_violations(tree, accelerator)]
    if found:
        return tuple(found)
    found += [*_held_violations(tree, accelerator)]
    for operator in tree.group.operators:
        found += _operator_violations(tree, operator, accelerator)
    return tuple([*found, *_capacity_violations(tree, accelerator)])


def _level_violations(tree: FusedTree, accelerator: Accelerator) -> Iterator[FusedViolation]:
    memories = [memory.name for memory in accelerator.memories]

    def inside(node: FusedNode, outer: int) -> Iterator[FusedViolation]:
        for loop in node.loops:
            at = memories.index(loop.level) if loop.level in memories else -1
            if at < outer:
                rule = "is outside a loop around it" if at >= 0 else f"is no memory of {accelerator.name}"
                yield FusedViolation("level", node.last, f"{node.last}.{loop.dimension}: {loop.level} {rule}",
                                     f"put the loop at {memories[max(outer, 0)]}")
            outer = max(outer, at)
        for part in node.parts:
            if isinstance(part, FusedNode):
                yield from inside(part, outer)

    yield from inside(tree.mapping.root, 0)


def _held_violations(tree: FusedTree, accelerator: Accelerator) -> Iterator[FusedViolation]:
    lone = [memory for memory in accelerator.memories if accelerator.instances(memory.name) == 1]
    for operator in tree.group.operators:
        name, links = operator.name, tree.group.readers(operator.name)
        again = tree.runs_again(name)
        outside = [link.reader for link in links if again is not None and link.reader not in again.names]
        if outside:
            yield FusedViolation("again", name, f"{name} is made again in a node, and read outside it, by {outside[0]}",
                                 f"put {outside[0]} into that node, or let it make nothing again")
        if not links:
            continue
        memory = accelerator.level(tree.home(name, accelerator))
        assert isinstance(memory, Memory)
        able = [other.name for other in lone if other.can_keep(operator.output.name, operator.output.role)]
        if memory.name not in able:
            why = "is an array of memories" if memory not in lone else "cannot keep it"
            yield FusedViolation("held", name, f"{name}: {memory.name} {why}",
                                 f"hold it in {able[-1]}" if able else "no memory of this machine can hold it")
        for link in links:
            others = {tree.home(other.producer, accelerator) for other in tree.group.sources(link.reader)
                      if other.operand == link.operand}
            if len(others) > 1:
                places = " and ".join(sorted(others))
                yield FusedViolation("held", name, f"{link.reader}.{link.operand} comes from {places}",
                                     "hold all of it in one memory")


def _operator_violations(tree: FusedTree, operator: Operator, accelerator: Accelerator) -> Iterator[FusedViolation]:
    name, levels = operator.name, [level.name for level in accelerator.levels]
    shared = tree.shared(name)
    axes = operator.output.dimensions
    if tree.group.readers(name) or operations_of(operator) is not None:
        for loop in shared:
            if loop.dimension not in axes:
                yield FusedViolation("shared", name, f"{name}.{loop.dimension}: a turn would leave sums unfinished "
                                     "that others read", f"put the loop into the nest of {name} alone")
    if operations_of(operator) is not None:
        if any(entry.loops for entry in tree.leaf(name).mapping.levels):
            yield FusedViolation("own", name, f"{name}: a vector operator has no loops of its own", "take them out")
        return
    innermost = max((levels.index(loop.level) for loop in shared), default=0)
    for entry in tree.leaf(name).mapping.levels:
        if entry.loops and entry.level in levels[:innermost]:
            yield FusedViolation("own", name, f"{name}: its loops at {entry.level} are outside the shared ones at "
                                 f"{levels[innermost]}", f"put them at {levels[innermost]} or further in")
    nest, between = tree.nest(name, accelerator), _between(tree, operator)
    for wrong in violations(_known(nest, tree.leaf(name), levels), operator, accelerator):
        if wrong.kind != "capacity" and not (wrong.kind == "outermost" and wrong.subject in between):
            yield FusedViolation("nest", name, f"{name}: {wrong.message}", wrong.mend)


def _between(tree: FusedTree, operator: Operator) -> set[str]:
    """Return the tensors of an operator that come from others of the group, or that others read."""
    made = {operator.output.name} if tree.group.readers(operator.name) else set()
    return made | {link.operand for link in tree.group.sources(operator.name)}


def _known(nest: Mapping, leaf: FusedLeaf, levels: list[str]) -> Mapping:
    """Return the nest with the levels of the leaf that the machine has not, which are then told."""
    return Mapping((*nest.levels, *(entry for entry in leaf.mapping.levels if entry.level not in levels)))


def fused_rooms(tree: FusedTree, accelerator: Accelerator) -> dict[tuple[str, str], tuple[Room, ...]]:
    """Return what lives in each memory during the turns of each operator, by (memory, operator).

    Tiles are named ``operator.tensor``, intermediate tensors after who makes them; bytes count all copies.
    """
    found: dict[tuple[str, str], tuple[Room, ...]] = {}
    names = tree.mapping.root.names
    for memory in accelerator.memories:
        tiles = {name: list(_tiles(tree, tree.group.operator(name), memory, accelerator)) for name in names}
        for at, turn in enumerate(names):
            inside: dict[str | None, list[tuple[str, float]]] = {}
            for name in names:
                for tensor, size, stays in tiles[name]:
                    if name == turn or stays:
                        inside.setdefault(partition_of(memory, tensor), []).append((f"{name}.{tensor.name}", size))
            for producer, words in tree.held_words.items():
                tensor = tree.group.operator(producer).output
                if tree.home(producer, accelerator) == memory.name:
                    held = tree.held(producer)
                    size = held_bytes(tree, producer, words, accelerator)[at] * (held.copies if held else 1)
                    inside.setdefault(partition_of(memory, tensor), []).append((producer, size))
            found[memory.name, turn] = tuple(
                Room(owner, tuple((name, size) for name, size in sizes if size), 1, memory.rooms[owner])
                for owner, sizes in inside.items())
    return found


def held_bytes(tree: FusedTree, producer: str, words: HeldWords, accelerator: Accelerator) -> list[float]:
    """Return the bytes that one copy of an intermediate tensor takes during the turns of each operator, in order."""
    names, each = tree.mapping.root.names, float(_word_bits(tree, producer, accelerator)) / 8
    last = max(names.index(link.reader) for link in tree.group.readers(producer))
    return [each * (words.most if names.index(producer) <= at <= last else words.staying) for at in range(len(names))]


def _word_bits(tree: FusedTree, producer: str, accelerator: Accelerator) -> float:
    operator = tree.group.operator(producer)
    if operations_of(operator) is not None:
        return float(operator.output.word_bits or dict(accelerator.word_bits)["inputs"])
    return float(held_bits(operator.output, accelerator))


def _tiles(tree: FusedTree, operator: Operator, memory: Memory,
           accelerator: Accelerator) -> Iterator[tuple[Tensor, float, bool]]:
    """Yield each tile of an operator in a memory: bytes, and whether later turns find it where it is."""
    if operations_of(operator) is not None:
        return
    nest, runs = tree.nest(operator.name, accelerator), tree.runs(operator.name)
    level = [entry.level for entry in nest.levels].index(memory.name)
    sizes = {name: int(runs.extents(name).max(initial=1)) for name in operator.sizes}
    extents = extents_at(nest, sizes)[level]
    between = _between(tree, operator)
    for tensor in kept_tensors(nest.levels[level], memory, operator):
        home = next(entry.level for entry in nest.levels if tensor.name in (entry.keeps or ()))
        if home == memory.name and tensor.name in between:
            continue
        whole = operator.sizes if home == memory.name else extents
        stays = home == memory.name or _stays(tree, operator, tensor, level, nest)
        yield tensor, memory.copies * tile_bytes(tensor, whole, accelerator, memory.name), stays


def _stays(tree: FusedTree, operator: Operator, tensor: Tensor, level: int, nest: Mapping) -> bool:
    """Whether a turn leaves in a memory what a later one finds (rule 5 of fused groups)."""
    leaf, extents, shared = tree.leaf(operator.name), dict(operator.sizes), list(tree.shared(operator.name))
    steps = [(loop.dimension, loop.step) for loop in shared]
    moving: list[str] = []
    for name, step in steps:
        if step < extents[name]:
            moving.append(name)
            extents[name] = step
    for entry in leaf.mapping.levels:
        for loop in entry.loops:
            outside = [other.level for other in nest.levels].index(entry.level) < level
            if loop.step < extents[loop.dimension]:
                extents[loop.dimension] = loop.step
                if outside and loop.axis is None and loop.dimension in tensor.dimensions:
                    return False
    if tree.runs_again(operator.name) is not None:
        runs = tree.runs(operator.name)
        same = [(np.diff(runs.low[d]) == 0) & (np.diff(runs.end[d]) == 0) for d in tensor.dimensions]
        return not tensor.is_output and len(runs) > 1 and bool(np.any(np.all(same, axis=0)))
    if not moving:
        return False
    sliding = {name for axis in tensor.axes if len(axis.terms) > 1 for name in axis.dimensions}
    return moving[-1] not in tensor.dimensions or (not tensor.is_output and moving[-1] in sliding)


def _capacity_violations(tree: FusedTree, accelerator: Accelerator) -> Iterator[FusedViolation]:
    worst: dict[tuple[str, str | None], tuple[str, Room]] = {}
    for (memory, turn), rooms in fused_rooms(tree, accelerator).items():
        for room in rooms:
            known = worst.get((memory, room.partition))
            if not room.fits and (known is None or room.needed_bytes > known[1].needed_bytes):
                worst[memory, room.partition] = turn, room
    for (memory, partition), (turn, room) in worst.items():
        place = memory if partition is None else f"{memory}.{partition}"
        parts = "+".join(name for name, _ in room.bytes_by_tensor)
        mend, cure = _smaller(tree, accelerator, (memory, partition))
        yield FusedViolation("capacity", memory, f"{place} holds {room.needed_bytes:.10g} B of "
                             f"{room.capacity_bytes:.10g} B for {parts} while {turn} runs",
                             mend or f"give {place} of {accelerator.name} at least {room.needed_bytes:.10g} B", cure)


def _smaller(tree: FusedTree, accelerator: Accelerator,
             place: tuple[str, str | None]) -> tuple[str, FusedMapping | None]:
    """Return the largest smaller step of one shared loop, of halves, with which a memory has room for all."""
    def changed(node: FusedNode, path: tuple[int, ...], step: int) -> FusedNode:
        if len(path) == 1:
            loops = list(node.loops)
            loops[path[0]] = replace(loops[path[0]], step=step)
            return replace(node, loops=tuple(loops))
        parts = list(node.parts)
        inner = parts[path[0]]
        assert isinstance(inner, FusedNode)
        parts[path[0]] = changed(inner, path[1:], step)
        return replace(node, parts=tuple(parts))

    def loops(node: FusedNode, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str, int]]:
        for at, part in enumerate(node.parts):
            if isinstance(part, FusedNode):
                yield from loops(part, (*path, at))
        for at in reversed(range(len(node.loops))):
            yield (*path, at), f"{node.last}.{node.loops[at].dimension}", node.loops[at].step

    for path, name, step in loops(tree.mapping.root, ()):
        smaller = step
        while smaller > 1:
            smaller //= 2
            cure = replace(tree.mapping, root=changed(tree.mapping.root, path, smaller))
            rooms = fused_rooms(FusedTree(tree.group, cure), accelerator)
            if all(room.fits for (memory, _), found in rooms.items() for room in found
                   if (memory, room.partition) == place):
                return f"let the shared loop over {name} have a step of {smaller}", cure
    return "", None

"""AccelForge's mappings (LoopTrees) of einsums that run one after the other, made ours.

There every tensor may stand in a memory at a depth of its own; here all that a memory keeps stands at one. What is the
same either way, as the loops between do not touch the tensor, is read; all else is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.interop.accelforge.workload import Einsums
from tilewright.interop.sections import Node, Section, Side
from tilewright.mapping import LevelLoops, Loop
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

_LOOPS = ("!Temporal", "!Spatial")
_FUSED = "einsums are mapped one at a time here, and all tensors go through the outermost memory"


def read_mappings(section: Section, einsums: Einsums, machine: Accelerator) -> dict[str, Nest]:
    """Return the mapping of each einsum that is multiply-accumulates, by its name.

    Raises an `InputError` if einsums share loops, or something is wrong or cannot be said here.
    """
    section.root.fields()
    operators = {node.name: node.operator for node in einsums.graph.mac_nodes}
    found: dict[str, Nest] = {}
    for path in _paths(section.root, ()):
        last = path[-1]
        name = str(last["einsum"].value)
        if name not in operators:
            if name not in {node.name for node in einsums.graph.nodes}:
                raise last["einsum"].fail("must name an einsum of the workload", name, ", ".join(operators))
            last.dropped(f"how {name} runs, which is vector work")
            continue
        if name in found:
            raise last["einsum"].fail("must be mapped once", name)
        found[name] = _Tree.of(path, operators[name], machine).nest()
    return found


def _paths(node: Node, above: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """Return what stands on the way to each compute node, outermost first."""
    found = []
    path = above
    for entry in node["nodes"].items():
        kind = entry.fields().get("!")
        if kind in ("!Sequential", "!Pipeline"):
            shared = next((one for one in path if one.value["!"] in _LOOPS), None)
            if kind == "!Pipeline" or shared is not None:
                raise (shared or entry).fail("must not be shared by several einsums", kind, _FUSED)
            for child in entry["nodes"].items():
                found += _paths(child, path)
        elif kind == "!Nested":
            found += _paths(entry, path)
        elif kind in (*_LOOPS, "!Storage", "!Compute"):
            path = (*path, entry)
            if kind == "!Compute":
                found.append(path)
        elif kind == "!Toll":
            entry.dropped("what passes through it costs nothing here")
        else:
            raise entry.fail("must be a !Storage, !Temporal, !Spatial, !Compute, !Sequential or !Nested", kind)
    if not found:
        raise node["nodes"].fail("must end in a !Compute")
    return found


@dataclass
class _Tree:
    """The loops of one einsum, outermost first, and at which of them each tensor stands in each memory."""

    operator: Operator
    machine: Accelerator
    root: Node
    loops: list[tuple[Node, str, int]] = field(default_factory=list)
    depths: dict[str, dict[str, int]] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Sequence[Node], operator: Operator, machine: Accelerator) -> "_Tree":
        """Read a path; tensors of other einsums, which share its beginning, are passed over."""
        made = cls(operator, machine, path[-1])
        known = {tensor.name: tensor.role for tensor in operator.tensors}
        for node in path:
            kind = node.value["!"]
            if kind in _LOOPS:
                name = str(node["rank_variable"].value)
                if name not in operator.sizes:
                    raise node["rank_variable"].fail(f"must be a rank variable of {operator.name} ("
                                                     f"{', '.join(operator.sizes)})", name)
                made.loops.append((node, name, node["tile_shape"].whole()))
            elif kind == "!Storage":
                made._store(node, known)
            elif node["component"].value not in (None, machine.compute.name):
                raise node["component"].fail(f"must be the compute unit, {machine.compute.name}",
                                             node["component"].value)
        return made

    def _store(self, node: Node, known: Mapping[str, str]) -> None:
        name = str(node["component"].value)
        memories = {memory.name: memory for memory in self.machine.memories}
        if name not in memories:
            raise node["component"].fail(f"must be a memory ({', '.join(memories)})", name)
        self.nodes[name] = node
        for tensor in node["tensors"].texts():
            if tensor in known:
                if not memories[name].can_keep(tensor, known[tensor]):
                    raise node["tensors"].fail(f"must be kept in {name}", tensor, "Its tensors field leaves it out")
                if tensor in self.depths.setdefault(name, {}):
                    raise node["tensors"].fail(f"must stand in {name} once", tensor)
                self.depths[name][tensor] = len(self.loops)
                over = next((loop[1] for loop in reversed(self.loops) if loop[0].value["!"] == "!Temporal"), tensor)
                if over != tensor and over not in self.operator.tensor(tensor).dimensions:
                    node.approximated(f"{tensor} below a loop over {over}, which does not touch it: there it is "
                                      "fetched anew each time, here it stays")

    def nest(self) -> Nest:
        """Return the mapping."""
        outermost = self.machine.levels[0].name
        missing = [tensor.name for tensor in self.operator.tensors if tensor.name not in self.depths.get(outermost, {})]
        if missing:
            raise self.root.fail(f"must have every tensor of {self.operator.name} in {outermost}", ", ".join(missing),
                                 f"{_FUSED[0].upper()}{_FUSED[1:]}")
        used = [level.name for level in self.machine.levels if level.name in self.depths]
        starts: list[int] = []
        for name in used:
            starts.append(self._start(name, starts[-1] if starts else 0))
        if starts[0] > 0:
            raise self.nodes[outermost].fail(f"must stand outside all loops, as {outermost} holds everything")
        made: dict[str, list[Loop]] = {}
        for name, start, end in zip(used, starts, [*starts[1:], len(self.loops)], strict=True):
            self._place(name, self.loops[start:end], made)
        levels = [LevelLoops(level.name, tuple(made.get(level.name, ())), self._kept(level))
                  for level in self.machine.levels]
        return Nest(tuple(levels))

    def _kept(self, level: Memory | Fanout) -> tuple[str, ...] | None:
        if not isinstance(level, Memory):
            return None
        kept = self.depths.get(level.name, {})
        able = [tensor.name for tensor in self.operator.tensors if level.can_keep(tensor.name, tensor.role)]
        return None if set(kept) == set(able) else tuple(name for name in able if name in kept)

    def _start(self, name: str, least: int) -> int:
        """Return the depth at which all tensors may stand in a memory without a difference."""
        depths = self.depths[name]
        for start in range(max(least, min(depths.values())), max(least, *depths.values()) + 1):
            if not any(self.operator.tensor(tensor).dimensions & {loop[1] for loop in self.loops[
                    min(start, depth):max(start, depth)]} for tensor, depth in depths.items()):
                return start
        given = ", ".join(f"{tensor} below {depth} loops" for tensor, depth in depths.items())
        raise self.nodes[name].fail(f"must have all tensors of {name} at one depth, below those of memories outside of "
                                    "it, but for loops that do not touch them", given)

    def _place(self, memory: str, loops: Sequence[tuple[Node, str, int]], made: dict[str, list[Loop]]) -> None:
        """Put the loops between a memory and the next one that is used to it, and to the arrays between."""
        spread = False
        for node, dimension, step in loops:
            if node.value["!"] == "!Spatial":
                spread = True
                fanout, side = self._lanes(node)
                made.setdefault(fanout, []).append(Loop(dimension, step, side))
            elif spread:
                raise node.fail("must stand above the spatial loops, or below a memory inside of them",
                                f"{dimension} below lanes of {memory}")
            else:
                made.setdefault(memory, []).append(Loop(dimension, step))

    def _lanes(self, node: Node) -> tuple[str, Side]:
        """Return the array, and its side, that a spatial loop names by component and fan-out."""
        component, name = str(node["component"].value), str(node["name"].value)
        for fanout in self.machine.fanouts:
            if fanout.name == f"{component}_{name}" or fanout.name.startswith(f"{component}_{name}_by_"):
                return fanout.name, "X"
            if fanout.name.startswith(f"{component}_") and fanout.name.endswith(f"_by_{name}"):
                return fanout.name, "Y"
        raise node.fail("must name a component and one of its spatial fan-outs", f"{component} {name}",
                        f"Arrays: {', '.join(fanout.name for fanout in self.machine.fanouts) or 'none'}")

"""Fused groups of a network as a file tells them: what is wrong with them, what they cost."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.api.inputs import Machine, Network, load_network, load_target
from tilewright.base import InputError, Table
from tilewright.cost import KINDS, Explanation, FusedCost, explain, fused_cost
from tilewright.hardware import Accelerator
from tilewright.mapping import (
    FusedGroup,
    FusedMapping,
    FusedTree,
    FusedViolation,
    asked_of_trees,
    fused_group,
    fused_rooms,
    fused_violations,
    numbered_groups,
    operations_of,
    precise_graph,
)
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator, tensor_graph


@dataclass(frozen=True)
class FusedEvaluation:
    """A fused group, what is wrong with it, and what it costs.

    ``cost`` is None where the violations leave it without a meaning; where it only exceeds a memory, the cost is that
    on a machine which is large enough.
    """

    group: FusedGroup
    accelerator: Accelerator
    mapping: FusedMapping
    violations: tuple[FusedViolation, ...]
    cost: FusedCost | None

    @property
    def legal(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.violations

    def tables(self) -> tuple[Table, ...]:
        """Return its tables: cycles by resource, words by operator, memory and tensor, what lives in memories."""
        if self.cost is None:
            return ()
        cycles = tuple((name, count) for name, count in self.cost.cycles.items() if count)
        words = tuple((*place, count.reads, count.fills, count.updates, count.drains)
                      for place, count in self.cost.counts.items())
        rooms = []
        for (memory, turn), found in fused_rooms(FusedTree(self.group, self.mapping), self.accelerator).items():
            for room in found:
                if room.bytes_by_tensor and room.capacity_bytes is not None:
                    rooms.append((memory, turn, room.partition or "", room.needed_bytes, room.capacity_bytes,
                                  " ".join(name for name, _ in room.bytes_by_tensor)))
        kinds = ("Reads", "Fills", "Updates", "Drains")
        return (Table("cycles", "Cycles by what takes them", ("Resource", "Cycles"), cycles),
                Table("words", "Words moved", ("Operator", "Memory", "Tensor", *kinds), words),
                Table("rooms", "What lives in memories while an operator runs",
                      ("Memory", "Operator", "Partition", "Needed (B)", "Capacity (B)", "Tensors"), tuple(rooms)))

    def plain(self) -> dict[str, Any]:
        """Return the evaluation as JSON writes it."""
        found: dict[str, Any] = {
            "operators": [operator.name for operator in self.group.operators], "legal": self.legal,
            "violations": [{name: getattr(wrong, name) for name in ("kind", "subject", "message", "mend")}
                           for wrong in self.violations]}
        if self.cost is not None:
            told = asdict(self.cost) | {"latency_cycles": self.cost.latency_cycles, "edp": self.cost.edp}
            told["counts"] = [dict(zip(("operator", "memory", "tensor"), place, strict=True)) | asdict(count)
                              for place, count in self.cost.counts.items()]
            found["cost"] = told
        return found


def evaluate_fused(plan: str | Path, network: Network, arch: Machine, *, bind: Mapping[str, int | str] | None = None,
                   precision: str = "auto") -> tuple[FusedEvaluation, ...]:
    """Check the fused groups of a plan and cost them, exactly; the groups run one after the other.

    Parameters
    ----------
    plan
        A YAML file, or its text (docs/how-to.md).
    network, arch, bind, precision
        As of `evaluate`.

    Raises
    ------
    InputError
        If something cannot be read, or the plan is one of another network. A plan that is illegal is no error.
    """
    accelerator, groups = _planned(plan, (network, arch), bind, precision)
    found = []
    for group, mapping in groups.values():
        wrong = fused_violations(group, accelerator, mapping)
        cost = None if any(each.kind != "capacity" for each in wrong) else fused_cost(group, accelerator, mapping)
        found.append(FusedEvaluation(group, accelerator, mapping, wrong, cost))
    return tuple(found)


def fused_nest(plan: str | Path, what: tuple[Network, str | None, Machine], *,
               bind: Mapping[str, int | str] | None = None,
               precision: str = "auto") -> tuple[Operator, Accelerator, Nest]:
    """Return an operator of a plan with its machine and its whole nest, shared loops and homes of tensors included.

    Parameters
    ----------
    what
        The network, the operator's name, the machine.
    plan, bind, precision
        As of `evaluate_fused`.

    Raises
    ------
    InputError
        As of `evaluate_fused`; or if the plan has no such operator, or it has no nest, or several runs.
    """
    network, layer, arch = what
    accelerator, groups = _planned(plan, (network, arch), bind, precision)
    names = [operator.name for group, _ in groups.values() for operator in group.operators]
    for group, mapping in groups.values():
        tree = FusedTree(group, mapping)
        for operator in group.operators:
            if operator.name == layer:
                if not _has_nest(tree, operator):
                    raise InputError("layer", "must have one nest: vector operators have none, what is made again has "
                                     "several", layer, "tilewright evaluate shows its words")
                return operator, accelerator, tree.nest(layer, accelerator)
    raise InputError("layer", "must be an operator of the plan", layer, f"It has {', '.join(names[:10])}")


@dataclass(frozen=True)
class GroupCount:
    """A count of a tensor in a fused group, added up over the operators that make or read it."""

    count: str
    """As it was asked for, ``GLB.logits.fills``."""
    words: dict[tuple[str, str], int]
    """By operator and its own name of the tensor; those of the fused model."""
    derivations: dict[tuple[str, str], Explanation]
    """Why, for each operator with one nest; the others, vector operators and what is made again, have none."""

    @property
    def value(self) -> int:
        """Words of all operators."""
        return sum(self.words.values())

    def text(self) -> str:
        """Return the count and its derivations for a terminal."""
        parts = [f"{self.count} = {self.value:,} words, of {len(self.words)} operator{'s' * (len(self.words) > 1)}"]
        for (name, tensor), words in self.words.items():
            found = self.derivations.get((name, tensor))
            head = f"{name}, its tensor {tensor}: {words:,} words"
            parts.append(f"{head}\n\n{found.text()}" if found is not None else
                         f"{head}; it has no nest of its own" if words else head)
        return "\n\n".join(parts)


@dataclass(frozen=True)
class PlannedCounts:
    """The counts of one group of a plan; see `fused_counts`."""

    accelerator: Accelerator
    tree: FusedTree
    cost: FusedCost

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """Yield operator, count and words of all there are."""
        for (name, memory, tensor), count in self.cost.counts.items():
            for kind in KINDS:
                yield name, f"{memory}.{tensor}.{kind}", getattr(count, kind)

    def explain(self, count: str) -> GroupCount:
        """Derive a count, ``MEMORY.TENSOR.KIND``.

        The tensor is what an operator of the group makes, by the operator's name or the end of it behind a dot; or any
        other, as ``OPERATOR.TENSOR``.

        Raises an `InputError` if the group has no such count.
        """
        given = count.strip().split(".")
        memory, wanted, kind = given[0].lower(), ".".join(given[1:-1]), given[-1].lower()
        memories = {name.lower(): name for _, name, _ in self.cost.counts}
        places = self._places(wanted)
        kept = [(name, tensor) for name, tensor in places
                if (name, memories.get(memory, ""), tensor) in self.cost.counts]
        if len(given) < 3 or kind not in KINDS or not kept:
            made = ", ".join(operator.name for operator in self.tree.group.operators)
            raise InputError("count", "must be MEMORY.TENSOR.KIND of a tensor of the group that the memory keeps",
                             count, f"Memories: {', '.join(memories.values())}. Tensors: what is made by {made}; or "
                             f"OPERATOR.TENSOR. Kinds: {', '.join(KINDS)}")
        words, derived = dict[tuple[str, str], int](), dict[tuple[str, str], Explanation]()
        for name, tensor in kept:
            words[name, tensor] = getattr(self.cost.counts[name, memories[memory], tensor], kind)
            operator = self.tree.group.operator(name)
            if _has_nest(self.tree, operator):
                found = explain(operator, self.accelerator, self.tree.nest(name, self.accelerator),
                                f"{memories[memory]}.{tensor}.{kind}")
                assert isinstance(found, Explanation)
                derived[name, tensor] = found
        return GroupCount(count, words, derived)

    def _places(self, wanted: str) -> list[tuple[str, str]]:
        """Return operators and their names of the tensor that is asked for."""
        group = self.tree.group
        made = [one.name for one in group.operators if f".{one.name}".lower().endswith(f".{wanted}".lower())]
        exact = [name for name in made if name.lower() == wanted.lower()]
        producers = exact or made
        if len(producers) > 1:
            raise InputError("count", "must name one tensor", wanted, f"Several end so: {', '.join(producers)}")
        if producers:
            return [(producers[0], group.operator(producers[0]).output.name),
                    *dict.fromkeys((link.reader, link.operand) for link in group.readers(producers[0]))]
        return [(one.name, tensor.name) for one in group.operators for tensor in one.tensors
                if wanted.lower() in (f"{one.name}.{tensor.name}".lower(),
                                      *([tensor.name.lower()] if len(group.operators) == 1 else []))]


def fused_counts(plan: str | Path, group: int, target: tuple[Network | None, Machine | None] = (None, None), *,
                 bind: Mapping[str, int | str] | None = None, precision: str = "auto") -> PlannedCounts:
    """Return the counts of one group of a plan, each with its derivation where it is asked for.

    Parameters
    ----------
    plan
        What `fuse` wrote in the space of trees, as JSON or YAML; or any file of fused groups.
    group
        Its number as the plan's page shows it, from 0; in YAML its place in the file.
    target, bind
        Network and machine; not needed with JSON, which names them.
    precision
        As of `evaluate`.

    Raises
    ------
    InputError
        If something cannot be read, the plan is one of another network, or there is no such group.
    """
    asked = asked_of_trees(Path(plan))
    accelerator, groups = _planned(plan, plan_target(plan, target, asked), bind or asked.get("bind"), precision)
    if group not in groups:
        raise InputError("--group", "must be one of the plan that has loops", group,
                         f"There are {', '.join(map(str, groups))}")
    for wrong in fused_violations(groups[group][0], accelerator, groups[group][1]):
        if wrong.kind != "capacity":
            raise InputError(f"plan.groups[{group}]", "must be legal", wrong.message, wrong.mend)
    return PlannedCounts(accelerator, FusedTree(*groups[group]), fused_cost(groups[group][0], accelerator,
                                                                           groups[group][1]))


def plan_target(plan: str | Path, target: tuple[Network | None, Machine | None], asked: Mapping[str, Any],
                ) -> tuple[Network, Machine]:
    """Return the network and the machine of a plan: those given, or those that it was ``asked`` for."""
    network, arch = target[0] or asked.get("network"), target[1] or asked.get("arch")
    if network is None or arch is None:
        raise InputError("--network" if network is None else "--arch", "must be given with this plan", str(plan))
    return network, arch


def _has_nest(tree: FusedTree, operator: Operator) -> bool:
    """Whether an operator has one nest: vector operators have none, what is made again has several."""
    return operations_of(operator) is None and tree.runs_again(operator.name) is None


def _planned(plan: str | Path, target: tuple[Network, Machine], bind: Mapping[str, int | str] | None,
             precision: str) -> tuple[Accelerator, dict[int, tuple[FusedGroup, FusedMapping]]]:
    network, arch = target
    accelerator, _ = load_target(arch, network)
    mappings = numbered_groups(plan, accelerator)
    tensors = tensor_graph(precise_graph(load_network(network, bind), accelerator, precision))
    seen, found = list[str](), dict[int, tuple[FusedGroup, FusedMapping]]()
    for number, mapping in mappings.items():
        seen += mapping.root.names
        twice = [name for name in mapping.root.names if seen.count(name) > 1]
        if twice:
            raise InputError("plan.groups", "must have each operator once", twice[0])
        found[number] = fused_group(tensors, mapping.root.names, accelerator.vector_unit.folds), mapping
    return accelerator, found

"""Fused groups of a network as a file tells them: what is wrong with them, what they cost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.api.inputs import Machine, Network, load_network, load_target
from tilewright.base import InputError, Table
from tilewright.cost import FusedCost, fused_cost
from tilewright.hardware import Accelerator
from tilewright.mapping import (
    FusedGroup,
    FusedMapping,
    FusedTree,
    FusedViolation,
    fused_group,
    fused_rooms,
    fused_violations,
    load_fused,
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
    for group, mapping in groups:
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
    names = [operator.name for group, _ in groups for operator in group.operators]
    for group, mapping in groups:
        tree = FusedTree(group, mapping)
        for operator in group.operators:
            if operator.name == layer:
                if operations_of(operator) is not None or tree.runs_again(layer) is not None:
                    raise InputError("layer", "must have one nest: vector operators have none, what is made again has "
                                     "several", layer, "tilewright evaluate shows its words")
                return operator, accelerator, tree.nest(layer, accelerator)
    raise InputError("layer", "must be an operator of the plan", layer, f"It has {', '.join(names[:10])}")


def _planned(plan: str | Path, target: tuple[Network, Machine], bind: Mapping[str, int | str] | None,
             precision: str) -> tuple[Accelerator, list[tuple[FusedGroup, FusedMapping]]]:
    network, arch = target
    accelerator, _ = load_target(arch, network)
    mappings = load_fused(plan, accelerator)
    tensors = tensor_graph(precise_graph(load_network(network, bind), accelerator, precision))
    seen, found = list[str](), []
    for mapping in mappings:
        seen += mapping.root.names
        twice = [name for name in mapping.root.names if seen.count(name) > 1]
        if twice:
            raise InputError("plan.groups", "must have each operator once", twice[0])
        found.append((fused_group(tensors, mapping.root.names, accelerator.vector_unit.folds), mapping))
    return accelerator, found

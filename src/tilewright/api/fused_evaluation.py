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
    precise_graph,
)
from tilewright.workload import tensor_graph


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
    accelerator, _ = load_target(arch, network)
    mappings = load_fused(plan, accelerator)
    graph = precise_graph(load_network(network, bind), accelerator, precision)
    tensors, seen, found = tensor_graph(graph), set[str](), []
    for mapping in mappings:
        names = mapping.root.names
        twice = [name for at, name in enumerate(names) if name in seen or name in names[:at]]
        if twice:
            raise InputError("plan.groups", "must have each operator once", twice[0])
        seen.update(names)
        group = fused_group(tensors, names, accelerator.vector_unit.folds)
        wrong = fused_violations(group, accelerator, mapping)
        cost = None if any(each.kind != "capacity" for each in wrong) else fused_cost(group, accelerator, mapping)
        found.append(FusedEvaluation(group, accelerator, mapping, wrong, cost))
    return tuple(found)

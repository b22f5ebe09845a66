"""The vector unit: what runs operators that are no multiply-accumulate loops, and which of them cost it nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.base import unknown_name
from tilewright.hardware.flexibility import Issue

VECTOR_KINDS = (
    "bias", "add", "scale", "multiply", "elementwise", "convert",
    "relu", "leaky_relu", "clip", "sigmoid", "tanh", "gelu", "silu", "elu", "softplus", "hard_sigmoid", "hard_swish",
    "softmax", "layer_norm", "rms_norm", "batch_norm", "group_norm", "local_response_norm",
    "max_pool", "average_pool", "reduce", "resize", "sort", "cell", "gather", "copy",
)
"""Kinds of vector work by which a machine states what it does; `workload` says which operator is of which."""


@dataclass(frozen=True)
class VectorUnit:
    """What a machine does with operators that are no multiply-accumulate loops."""

    lanes: float
    """Scalar operations that all lanes together begin in a cycle."""
    memory: str | None = None
    """What the unit reads and writes. If None, the outermost memory on the chip that can keep inputs and outputs, or
    the outermost memory where there is none."""
    energy_pj_per_operation: float | None = None
    """Of one scalar operation; that of a multiply-accumulate if None."""
    operations_per_cycle: tuple[tuple[str, float], ...] = ()
    """``(kind, rate)`` of kinds that go slower or faster than one operation a lane and cycle."""
    folds: tuple[str, ...] = ()
    """Kinds that the output path does on the way, behind the operator whose result they take: they then read and write
    nothing of their own, and behind a layer take no time."""

    def rate(self, kind: str) -> float:
        """Return the operations of a kind that begin in a cycle."""
        return dict(self.operations_per_cycle).get(kind, self.lanes)


def vector_issues(unit: VectorUnit, memories: tuple[str, ...], least: float, most: float) -> Iterator[Issue]:
    """Yield what is wrong with the unit of a machine with these memories, where rates go from ``least`` to ``most``."""
    rates = (("lanes", unit.lanes), *(("operations_per_cycle", rate) for _, rate in unit.operations_per_cycle))
    for field, rate in rates:
        if not least <= rate <= most:
            yield Issue((field,), f"must be from {least:g} to {most:g}", rate)
    if unit.energy_pj_per_operation is not None and not 0 <= unit.energy_pj_per_operation <= most:
        yield Issue(("energy_pj_per_operation",), f"must be from 0 to {most:g}", unit.energy_pj_per_operation)
    if unit.memory is not None and unit.memory not in memories:
        yield Issue(("memory",), f"must be one of the memories {', '.join(memories)}", unit.memory)
    for field, kinds in (("operations_per_cycle", tuple(kind for kind, _ in unit.operations_per_cycle)),
                         ("folds", unit.folds)):
        for kind in kinds:
            if kind not in VECTOR_KINDS:
                yield Issue((field,), "must name kinds of vector work", kind,
                            unknown_name("kind", kind, list(VECTOR_KINDS)).mend)
        if len(set(kinds)) < len(kinds):
            yield Issue((field,), "must name each kind once", ", ".join(kinds))

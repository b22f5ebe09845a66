"""Plans of fused groups: what people read of a strategy, and its YAML, both ways.

.. code-block:: yaml

    network: resnet18
    signature: 4ecd1f6d2ad5d4b3
    batch: 64
    memory_bytes: 20000000
    strategy: {input: -1, conv1: 4, layer1.0.conv1: 16}

The signature, which may be left out, is that of the network's layers; ``weight_bytes`` (0), ``word_bytes`` (1) and
``objective`` (latency) may be given besides.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from tilewright.base import Fields, FieldsDocument, digest
from tilewright.fusion.microbatch.costs import GROUP_FIGURES, figures, of_groups
from tilewright.fusion.microbatch.problem import SYNC, Floats, FusionObjective, Ints, MicroBatchProblem


@dataclass(frozen=True)
class MicroBatchCost:
    """What a group takes, or all groups one after the other."""

    latency_cycles: float
    energy_pj: float
    memory_bytes: float
    """Of micro-batches at a time."""
    compute_cycles: float
    offchip_cycles: float
    onchip_cycles: float
    """``compute_cycles``, ``offchip_cycles`` and ``onchip_cycles``: of multiplications and words; the longest is the
    group's latency."""
    offchip_bytes: float
    weight_bytes: float
    """Bytes of weights that come in, each time that they do; ``offchip_bytes`` has them too."""
    onchip_bytes: float

    @property
    def limit(self) -> str:
        """What the latency is of."""
        told = {"compute": self.compute_cycles, "off chip": self.offchip_cycles, "on chip": self.onchip_cycles}
        return max(told, key=lambda name: told[name])


@dataclass(frozen=True)
class MicroBatchGroup:
    """Layers that run together: their names, the micro-batch of each (-1 where its result goes off chip), and cost."""

    layers: tuple[str, ...]
    micro_batches: tuple[int, ...]
    cost: MicroBatchCost


@dataclass(frozen=True)
class MicroBatchPlan:
    """A strategy ``(N + 1)`` of a problem."""

    problem: MicroBatchProblem
    strategy: tuple[int, ...]

    @classmethod
    def of(cls, problem: MicroBatchProblem, strategy: Ints) -> "MicroBatchPlan":
        """Return the plan of a strategy; an `InputError` where it is of another network."""
        return cls(problem, tuple(problem.check(strategy)[0].tolist()))

    @cached_property
    def array(self) -> Ints:
        """The strategy as an array."""
        found: Ints = np.array(self.strategy, dtype=np.int64)
        return found

    @cached_property
    def groups(self) -> tuple[MicroBatchGroup, ...]:
        """The groups, in order; the input alone is none."""
        names = [entry.name for entry in self.problem.entries]
        return tuple(MicroBatchGroup(tuple(names[first:last + 1]), self.strategy[first:last + 1], _cost(row))
                     for first, last, row in of_groups(self.problem, self.array) if last > 0)

    @cached_property
    def cost(self) -> MicroBatchCost:
        """What the whole takes."""
        return _cost(figures(self.problem, self.array)[0])

    @property
    def fits(self) -> bool:
        """Whether no group takes more than the memory."""
        return self.cost.memory_bytes <= self.problem.memory_bytes

    def yaml(self) -> str:
        """Return the plan as YAML."""
        rows = (f"  {json.dumps(entry.name)}: {size}"
                for entry, size in zip(self.problem.entries, self.strategy, strict=True))
        problem = self.problem
        return "\n".join((f"network: {json.dumps(problem.name)}", f'signature: "{digest(problem.entries)}"',
                          f"batch: {problem.batch}", f"memory_bytes: {problem.memory_bytes:.12g}",
                          f"weight_bytes: {problem.weight_bytes:.12g}", f"word_bytes: {problem.word_bytes:.12g}",
                          f"objective: {problem.objective}", "strategy:", *rows, ""))

    def __str__(self) -> str:
        return "\n".join("[" + ", ".join(f"{name} {'out' if size == SYNC else size}" for name, size in zip(
            group.layers, group.micro_batches, strict=True)) + "]" for group in self.groups)


class _PlanFields(Fields):
    """What a file of a plan says."""

    network: Annotated[str, Field(min_length=1)]
    batch: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    signature: str = ""
    weight_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    word_bytes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    objective: FusionObjective = "latency"
    strategy: Annotated[dict[str, int], Field(min_length=1)]


def _read(source: str | Path) -> tuple[FieldsDocument, _PlanFields]:
    document = FieldsDocument.of(source, "plan", "network:, batch:, memory_bytes:, strategy:")
    return document, document.validated(_PlanFields, document.plain())


def micro_batch_terms(source: str | Path) -> dict[str, Any]:
    """Return what a plan was made for: ``batch``, ``memory_bytes``, ``weight_bytes``, ``word_bytes``, ``objective``.

    Raises an `InputError` if the file says something wrong.
    """
    return _read(source)[1].model_dump(exclude={"network", "signature", "strategy"})


def read_micro_batches(source: str | Path, problem: MicroBatchProblem) -> MicroBatchPlan:
    """Return the plan in a file, or in YAML text, for a problem of its network; batch and memory are the problem's.

    Raises an `InputError` if the file says something wrong, is of another network, has a micro-batch that is larger
    than the batch, or a group takes more than the memory.
    """
    document, fields = _read(source)
    names = [entry.name for entry in problem.entries]
    if list(fields.strategy) != names:
        wrong = [name for name in fields.strategy if name not in names] or [
            name for name in names if name not in fields.strategy] or list(fields.strategy)
        raise document.fail(("strategy",), f"must name the input and the layers of {problem.name}, in order",
                            ", ".join(wrong[:3]), f"The plan is of {fields.network}")
    if fields.signature not in ("", digest(problem.entries)):
        raise document.fail(("signature",), f"must be that of {problem.name}: layers have the same names, but other "
                            "sizes", fields.signature, f"The plan is of {fields.network}")
    sizes = list(fields.strategy.values())
    unfit = next((name for name, size in fields.strategy.items()
                  if size != SYNC and not 1 <= size <= problem.batch), None)
    if unfit is not None:
        raise document.fail(("strategy", unfit), f"must be -1 or from 1 to the batch, {problem.batch}",
                            fields.strategy[unfit])
    plan = MicroBatchPlan(problem, tuple(sizes))
    if not plan.fits:
        most = max(plan.groups, key=lambda group: group.cost.memory_bytes)
        raise document.fail(("strategy",), f"must fit the memory, {problem.memory_bytes:,.0f} bytes",
                            f"{most.cost.memory_bytes:,.0f} bytes from {most.layers[0]} to {most.layers[-1]}",
                            "Take smaller micro-batches, more groups, or a larger --memory")
    return plan


def _cost(row: Floats) -> MicroBatchCost:
    return MicroBatchCost(**dict(zip(GROUP_FIGURES, map(float, row), strict=True)))

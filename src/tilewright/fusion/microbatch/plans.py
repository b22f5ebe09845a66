"""Plans of fused groups: what people read of a strategy, and its YAML, both ways.

.. code-block:: yaml

    network: resnet18
    signature: 4ecd1f6d2ad5d4b3
    batch: 64
    memory_bytes: 20000000
    strategy: {input: -1, conv1: 4, layer1.0.conv1: 16}

The signature, which may be left out, is that of the network's layers; ``weight_bytes`` (0), ``word_bytes`` (1) and
``objective`` (latency) may be given besides.

Why the bytes of a group are what they are is derived layer by layer, and held against what it costs.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from tilewright.base import Fields, FieldsDocument, InputError, digest
from tilewright.fusion.microbatch.costs import figures, of_groups
from tilewright.fusion.microbatch.problem import SYNC, Floats, FusionObjective, Ints, MicroBatchProblem
from tilewright.fusion.microbatch.records import GROUP_FIGURES

Line = tuple[str, int, float]
"""Why, how often, and bytes each time."""


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


@dataclass(frozen=True)
class MicroBatchCounts:
    """Bytes of a group by memory, tensor and kind: across the edge of the chip, and staged on it at a time.

    Tensors are what layers make, by their names, and ``NAME.weights``. Off chip there are ``reads`` and ``updates``; of
    the memory on chip ``fills`` and ``drains``, which are the same bytes, and ``held``.
    """

    plan: MicroBatchPlan
    number: int
    unit: ClassVar[str] = "Bytes"

    @property
    def group(self) -> MicroBatchGroup:
        """The group."""
        return self.plan.groups[self.number]

    def rows(self) -> Iterator[tuple[str, str, float]]:
        """Yield the layers, the count and the bytes of all that are not zero."""
        layers = f"{self.group.layers[0]} to {self.group.layers[-1]}"
        for name, lines in self.lines.items():
            yield layers, name, _sum(lines)

    def explain(self, count: str) -> str:
        """Derive a count, ``MEMORY.TENSOR.KIND``; an `InputError` if there is no such, or it is zero."""
        known = {name.lower(): name for name in self.lines}
        if count.strip().lower() not in known:
            raise InputError("count", "must be MEMORY.TENSOR.KIND of the group, and not zero", count,
                             f"There are {', '.join(known.values())}")
        name, (outer, _) = known[count.strip().lower()], self.plan.problem.machine.memories
        told = [f"{name} = {_sum(self.lines[name]):,.12g} bytes", *(
            f"  {often:,} x {each:,.12g} bytes = {often * each:,.12g}: {why}" for why, often, each in self.lines[name])]
        if name.endswith(".held"):
            does, cost = "stages at a time", self.group.cost.memory_bytes
        else:
            does, cost = "moves in and out of the chip", self.group.cost.offchip_bytes
        whole = sum(_sum(lines) for key, lines in self.lines.items() if (
            key.endswith(".held") if name.endswith(".held") else key.startswith(f"{outer}.")))
        told.append(f"All that the group {does} is {whole:,.12g} bytes; the cost of the plan has {cost:,.12g}.")
        return "\n".join(told)

    @cached_property
    def lines(self) -> dict[str, list[Line]]:
        """What each count is made of; counts that are zero have none."""
        problem, (outer, inner) = self.plan.problem, self.plan.problem.machine.memories
        found, names = dict[str, list[Line]](), [entry.name for entry in problem.entries]
        first = names.index(self.group.layers[0])
        last = first + len(self.group.layers) - 1
        for q in range(first, last + 1):
            name, entry, size = names[q], problem.entries[q], self.plan.strategy[q]
            if q and problem.weights[q]:
                found[f"{outer}.{name}.weights.reads"] = [self._weights(q, range(first, last + 1))]
            for p in ([0] if q == 0 and size != SYNC else [p for p in entry.reads if p < first]):
                why = f"samples that {name} reads of what was made before" if q else "samples of the network's input"
                found.setdefault(f"{outer}.{names[p]}.reads", []).append((why, problem.batch, self._sample(p)))
            if q and (q == last or entry.leaves or problem.readers[q][-1] > last):
                why = "ends the group" if q == last else "leaves the network" if entry.leaves else "is read later too"
                found[f"{outer}.{name}.updates"] = [(f"samples of a result that {why}", problem.batch, self._sample(q))]
        crossing = {inner + key.removeprefix(outer).removesuffix(out) + into: lines for key, lines in found.items()
                    for out, into in ((".reads", ".fills"), (".updates", ".drains")) if key.endswith(out)}
        staged = [q for q in range(first, last + 1) if self.plan.strategy[q] != SYNC]
        return {**found, **crossing, **{f"{inner}.{names[q]}.held": [
            ("samples at a time", self.plan.strategy[q], float(problem.tiles[q]))] for q in staged}}

    def _sample(self, place: int) -> float:
        return float(self.plan.problem.sizes[place]) / self.plan.problem.batch

    def _weights(self, layer: int, group: range) -> Line:
        """Return how often the weights of a layer come, and what makes it so often."""
        problem, strategy = self.plan.problem, self.plan.strategy
        each = float(problem.weights[layer])
        if problem.weights[list(group)].sum() <= problem.weight_bytes:
            return "once, as all weights of the group stay", 1, each
        limits = {problem.entries[p].name: strategy[p] for p in group if strategy[p] != SYNC and (
            p == layer or p < layer <= max((q for q in problem.readers[p] if q in group), default=p))}
        least = min(limits.values(), default=problem.batch)
        by = next((f", as {name} stages no more" for name, size in limits.items() if size == least), "")
        runs = -(-problem.batch // least)
        return f"runs of {least} of {problem.batch} samples at a time{by}", runs, each


def _sum(lines: list[Line]) -> float:
    return sum(often * each for _, often, each in lines)

"""Why the bytes of a group of micro-batches are what they are: derived layer by layer, held against what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tilewright.base import InputError
from tilewright.fusion.microbatch.plans import MicroBatchGroup, MicroBatchPlan
from tilewright.fusion.microbatch.problem import SYNC

Line = tuple[str, int, float]
"""Why, how often, and bytes each time."""


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

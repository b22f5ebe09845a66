"""The space of micro-batches of `fuse`: what is asked for, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.flags import command_line
from tilewright.api.inputs import load_accelerator, name_of
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.plan_options import FuseOptions, bound_sizes
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import budget_text, check_seed, cores, read_budget
from tilewright.base import digest, write_whole
from tilewright.fusion import microbatch
from tilewright.fusion.microbatch import Fused, MicroBatchBounds, MicroBatchCost, MicroBatchPlan, MicroBatchProblem
from tilewright.hardware import read_bytes
from tilewright.jobs import interruptible, present_stop
from tilewright.workload import Graph


@dataclass(frozen=True, repr=False)
class MicroBatchRun(OnSheet):
    """What came of fusing: the plan, what it takes, and how far it is from the best.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.fuse("alexnet", "dnnfuser:DRAM.bandwidth=4GB/s", space="micro-batch", batch=16, memory="2MB")
    >>> run.gap, run.cost.latency_cycles < run.unfused.latency_cycles, run.plan.groups[0].layers
    (0.0, True, ('conv1', 'conv2', 'conv3', 'conv4', 'conv5'))
    """

    plan: MicroBatchPlan
    search: Fused | None
    """How it was found; None where the plan was given."""
    command: str
    named: Mapping[str, Any]
    """The network, machine and sizes that were asked for."""

    @cached_property
    def cost(self) -> MicroBatchCost:
        """What the plan takes."""
        return self.plan.cost

    @cached_property
    def unfused(self) -> MicroBatchCost:
        """What layer by layer takes."""
        return MicroBatchPlan.of(self.plan.problem, self.plan.problem.unfused).cost

    @cached_property
    def bounds(self) -> MicroBatchBounds:
        """What no plan is below."""
        return microbatch.bounds(self.plan.problem)

    @property
    def score(self) -> float:
        """The objective of the plan."""
        return self.cost.energy_pj if self.plan.problem.objective == "energy" else self.cost.latency_cycles

    @property
    def speedup(self) -> float:
        """Cycles of layer by layer over those of the plan."""
        return self.unfused.latency_cycles / self.cost.latency_cycles

    @property
    def gap(self) -> float:
        """By which share the objective is at most above the best there is."""
        bound = microbatch.bound_of(self.plan.problem)
        bound = bound if self.search is None else max(bound, self.search.bound)
        return max(0.0, self.score / bound - 1.0) if bound > 0 else inf

    @property
    def interrupted(self) -> bool:
        """Whether the search was stopped early."""
        return self.search is not None and self.search.interrupted

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.fusion_sheet(self.plan, self.search, self.gap, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        problem = self.plan.problem
        asked = {name: getattr(problem, name) for name in (
            "batch", "memory_bytes", "weight_bytes", "word_bytes", "objective")}
        found = None if self.search is None else {
            "mapper": self.search.mapper, "seed": self.search.seed, "samples": self.search.samples,
            "seconds": self.search.seconds, "found": self.search.found, "interrupted": self.interrupted,
            "trace": self.search.trace.tolist()}
        groups = [{"layers": list(group.layers), "micro_batches": list(group.micro_batches), **vars(group.cost)}
                  for group in self.plan.groups]
        return {"kind": "tilewright micro-batches 1", "command": self.command, "network": problem.name,
                "accelerator": problem.machine.name, **asked, "speedup": self.speedup, "gap": self.gap,
                "fits": self.plan.fits, "strategy": list(self.plan.strategy), "cost": vars(self.cost),
                "unfused": vars(self.unfused), "bounds": vars(self.bounds), "groups": groups, "search": found,
                "asked": dict(self.named), "yaml": self.plan.yaml()}

    def write_plan(self, path: str | Path) -> Path:
        """Write the plan as YAML, which ``plan`` of `fuse` reads; folders are made."""
        return write_whole(ready_place(path), self.plan.yaml())


def fuse_micro_batches(asked: FuseOptions, graph: Graph) -> MicroBatchRun:
    """Return how many samples of each layer's result are best kept on chip, and which go off chip (DNNFuser)."""
    check_seed(asked.seed)
    budget = read_budget(asked.budget)
    microbatch.FUSION_MAPPERS.get(asked.mapper)
    problem = MicroBatchProblem.of(
        graph, load_accelerator(asked.arch), asked.batch, None if asked.memory is None else read_bytes(
            asked.memory, "memory"), word_bytes=(asked.word_bits or 8) / 8, objective=asked.objective,
        weight_bytes=0.0 if asked.weight_memory is None else read_bytes(asked.weight_memory, "weight_memory"))
    ready_cache()
    named = {"network": name_of(asked.network), "arch": name_of(asked.arch), "bind": bound_sizes(asked)}
    command = command_line("fuse", asked, **named, budget=budget_text(budget))
    if asked.plan is not None:
        return MicroBatchRun(microbatch.read_micro_batches(asked.plan, problem), None, command, named)
    stop, file = asked.stop or present_stop(), None
    if asked.out is not None and "model" not in (asked.options or {}):  # what a model plans takes no time
        terms = digest((problem, asked.mapper, budget, asked.seed, sorted((asked.options or {}).items())))
        file = ready_place(Path(asked.out) / f"micro-batches-{terms}.npz")
    with interruptible(stop):
        found = microbatch.fuse(problem, asked.mapper, samples=budget.samples, seconds=budget.seconds, seed=asked.seed,
                                options=asked.options, threads=cores(), checkpoint=file, told=asked.told, stop=stop)
    return MicroBatchRun(MicroBatchPlan.of(problem, found.strategy), found, command, named)

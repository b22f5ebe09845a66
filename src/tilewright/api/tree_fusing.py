"""The space of trees of `fuse`: what is asked for, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.flags import command_line
from tilewright.api.inputs import load_target, name_of
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.plan_options import FuseOptions, bound_sizes
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import check_seed, read_budget
from tilewright.base import InputError, write_whole
from tilewright.fusion.trees import (
    FusionPlan,
    GroupLimits,
    NestEffort,
    TreeBounds,
    TreeCost,
    TreeProblem,
    TreeSearch,
    fuse_trees,
)
from tilewright.jobs import present_stop
from tilewright.mapping import precise_graph
from tilewright.workload import Graph, tensor_graph

IN_GROUPS = 4
"""Of mappings scored of a layer alone one in so many is scored of each nest in a group, of which there are many."""


@dataclass(frozen=True, repr=False)
class TreeRun(OnSheet):
    """What came of fusing in trees: the plan, what it costs, and how far it can be from the best."""

    plan: FusionPlan
    command: str
    asked: Mapping[str, Any]

    @property
    def cost(self) -> TreeCost:
        """What the plan takes."""
        return self.plan.cost

    @property
    def unfused(self) -> TreeCost:
        """What layer by layer takes."""
        return self.plan.unfused

    @property
    def bounds(self) -> TreeBounds:
        """What no plan is below."""
        return self.plan.bounds

    @property
    def gap(self) -> float:
        """By which share the objective is at most above the best there is."""
        return self.plan.gap

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before all groups were planned."""
        return self.plan.unplanned > 0

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.tree_sheet(self.plan, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**tilewright.report.tree_plan(self.plan, self.command), "asked": dict(self.asked)}

    def write_plan(self, path: str | Path) -> Path:
        """Write the groups as YAML, which `evaluate_fused` costs; folders are made."""
        return write_whole(ready_place(path), self.plan.yaml())


def fuse_in_trees(asked: FuseOptions, graph: Graph) -> TreeRun:
    """Return which operators are best run together in loops that they share, and what that saves."""
    for flag, given in (("--memory", asked.memory), ("--word-bits", asked.word_bits), ("--plan", asked.plan)):
        if given is not None:
            mend = "tilewright evaluate PLAN --network N --arch A" if flag == "--plan" else "Change it in --arch"
            raise InputError(flag, "must be left out with --space trees", given, mend)
    check_seed(asked.seed)
    budget = read_budget(asked.budget)
    if budget.samples is None or budget.seconds is not None:
        raise InputError("--budget", "must be a number of mappings with --space trees", str(asked.budget),
                         "2000, or 2k")
    accelerator, _ = load_target(asked.arch, asked.network)
    problem = TreeProblem(tensor_graph(precise_graph(graph, accelerator, "auto")), accelerator, asked.objective)
    search = TreeSearch(NestEffort(max(1, budget.samples // IN_GROUPS), asked.seed),
                        GroupLimits(asked.layers, 2 * asked.layers + 1), budget.samples)
    ready_cache()
    from tilewright.store import kept_in  # noqa: PLC0415 - loads SQLAlchemy

    with kept_in(asked.out, "fuse-trees") as kept:
        plan = fuse_trees(problem, search, keeper=kept, told=asked.told, stop=asked.stop or present_stop())
    named = {"network": name_of(asked.network), "arch": name_of(asked.arch), "bind": bound_sizes(asked)}
    return TreeRun(plan, command_line("fuse", asked, **named), named)

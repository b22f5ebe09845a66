"""Which operators of a network run together: spaces of fused plans by name, and what came of them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.flags import command_line, flags, takes
from tilewright.api.fused_evaluation import plan_target
from tilewright.api.inputs import Machine, Network, load_accelerator, load_network, load_target, name_of
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.plan_options import PLAN_FIELDS, FuseOptions, bound_sizes, fused_space_of
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import budget_text, check_seed, cores, read_budget
from tilewright.base import InputError, Registry, digest, read_text, write_whole
from tilewright.fusion import microbatch
from tilewright.fusion.flat import (
    AttentionBound,
    AttentionCost,
    AttentionCounts,
    AttentionFusion,
    FusionGoal,
    attention_terms,
    attention_yaml,
    flat_machine,
    fuse_attention,
)
from tilewright.fusion.microbatch import (
    Fused,
    MicroBatchBounds,
    MicroBatchCost,
    MicroBatchCounts,
    MicroBatchPlan,
    MicroBatchProblem,
)
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
from tilewright.hardware import read_bytes
from tilewright.jobs import Runner, interruptible, present_stop
from tilewright.mapping import precise_graph
from tilewright.workload import Graph, tensor_graph


@dataclass(frozen=True, repr=False)
class MicroBatchRun(OnSheet):
    """What came of fusing: the plan, what it takes, and how far it is from the best.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.fuse("alexnet", "dnnfuser:DRAM.bandwidth=4GB/s", space="micro-batch", batch=16, memory="2MB")
    >>> run.gap, run.cost.latency_cycles < run.unfused.latency_cycles, run.plan.groups[0].layers
    (0.0, True, ('input', 'conv1'))
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


FUSION_SPACES: Registry[Callable[[FuseOptions, Graph], OnSheet]] = Registry("space of fused plans")
"""By name, what plans a network in a space: from what is asked for, and the network."""
FUSION_SPACES.register("micro-batch")(fuse_micro_batches)
FUSION_SPACES.register("trees")(fuse_in_trees)
OWN_OPTIONS = {"flat": ("within", "softmax", "causal", "clock"),
               "micro-batch": ("batch", "weight_memory", "mapper", "budget", "seed", "options"),
               "trees": ("budget", "seed", "layers")}
"""Options that not every space knows, by those that do."""
SAVED = {"tilewright attention 1": PLAN_FIELDS["flat"], "tilewright micro-batches 1": PLAN_FIELDS["micro-batch"]}
"""Kinds of JSON that plans are saved in, and what their YAML has."""


@dataclass(frozen=True, repr=False)
class FusedAttention(OnSheet):
    """The attentions of a network, planned.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.fuse("bert-base:sequence=1024", "flat-edge")
    >>> len(run.plan.groups), run.cost.latency_cycles < run.unfused.latency_cycles, run.gap < 0.01
    (1, True, True)
    """

    found: AttentionFusion
    network: str
    command: str
    asked: Mapping[str, Any]

    @property
    def plan(self) -> AttentionFusion:
        """The plans of all attentions."""
        return self.found

    @property
    def cost(self) -> AttentionCost:
        """What they take, one after the other."""
        return self.found.cost

    @property
    def unfused(self) -> AttentionCost:
        """What the best plans take that do not fuse."""
        return self.found.unfused_cost

    @property
    def bounds(self) -> AttentionBound:
        """What no plans are below."""
        return self.found.bounds

    @property
    def gap(self) -> float:
        """By which share the objective is at most above the best there is."""
        return self.found.gap

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.attention_sheet(self.found, self.network, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**tilewright.report.attention_tree(self.found, self.network, self.command), "asked": dict(self.asked),
                "yaml": self._yaml}

    def write_plan(self, path: str | Path) -> Path:
        """Write the plans as YAML, which ``plan`` of `fuse` reads; folders are made."""
        return write_whole(ready_place(path), self._yaml)

    @property
    def _yaml(self) -> str:
        found = self.found
        return attention_yaml(self.network, found.plans, found.machine, found.goal.softmax)


@takes(FuseOptions, raises=", or no plan fits the machine")
def fuse(asked: FuseOptions) -> OnSheet:
    """Return which operators of a network are best run together, in what tiles, and what that saves.

    Examples
    --------
    >>> run = fuse("bert-base:sequence=4096", "flat-edge")
    >>> run.found.plans[0].online, run.found.gap < 0.01
    (True, True)
    """
    plan = FUSION_SPACES.get(asked.space)
    _check_own(asked)
    return plan(asked, load_network(asked.network, bound_sizes(asked) or None))


def evaluate_saved(plan: str | Path, network: Network, arch: Machine, bind: Mapping[str, int | str] | None = None,
                   ) -> OnSheet:
    """Return what a plan that `fuse` saved takes, for what it was made for.

    Raises an `InputError` if something cannot be read, the plan is one of another network, or it does not fit.
    """
    space = fused_space_of(plan)
    terms = microbatch.micro_batch_terms(plan) if space == "micro-batch" else attention_terms(plan)
    more = {"word_bits": terms.get("word_bits"), "objective": terms["objective"],
            "memory": None if terms["memory_bytes"] is None else f"{terms['memory_bytes']:.12g}B"}
    if space == "micro-batch":
        room = f"{terms['weight_bytes']:.12g}B" if terms["weight_bytes"] else None
        more |= {"word_bits": round(8 * terms["word_bytes"]), "batch": terms["batch"], "weight_memory": room}
    else:
        more |= {"softmax": terms["softmax"], "causal": terms["causal"], "clock": terms["clock_mhz"]}
    return fuse(network, arch, bind=bind, plan=plan, space=space or "", **more)


def plan_counts(plan: str | Path, group: int, target: tuple[Network | None, Machine | None] = (None, None),
                bind: Mapping[str, int | str] | None = None) -> AttentionCounts | MicroBatchCounts | None:
    """Return the counts of one attention, or group of micro-batches, of a plan that `fuse` saved, as YAML or JSON.

    None where a file is no such.

    JSON names its network and machine, which ``target`` and ``bind`` then need not.

    Raises an `InputError` if something cannot be read, the plan is one of another network, or it has no such group.
    """
    asked: Mapping[str, Any] = {}
    text: str | Path = plan
    if Path(plan).suffix == ".json" and Path(plan).is_file():
        try:
            saved = json.loads(read_text(Path(plan)))
        except ValueError:
            return None
        if not isinstance(saved, dict) or saved.get("kind") not in SAVED:
            return None
        text, asked = saved.get("yaml", ""), saved.get("asked", {})
        if not isinstance(text, str) or SAVED[saved["kind"]] not in text or not isinstance(asked, dict):
            raise InputError(str(plan), "must have the plan as YAML, and what was asked for", None,
                             "Write it again with tilewright fuse --json")
    elif fused_space_of(plan) is None:
        return None
    run = evaluate_saved(text, *plan_target(plan, target, asked), bind or asked.get("bind") or None)
    assert isinstance(run, FusedAttention | MicroBatchRun)
    names = [one.attention.name for one in run.found.plans] if isinstance(run, FusedAttention) else [
        one.layers[-1] for one in run.plan.groups]
    if not 0 <= group < len(names):
        raise InputError("--group", "must be one of the plan", group, ", ".join(
            f"{at}: {name}" for at, name in enumerate(names)))
    if isinstance(run, FusedAttention):
        return AttentionCounts(run.found.plans[group], run.found.machine)
    return MicroBatchCounts(run.plan, group)


@FUSION_SPACES.register("flat")
def _attention(asked: FuseOptions, graph: Graph) -> OnSheet:
    room = None if asked.memory is None else read_bytes(asked.memory, "memory")
    machine = flat_machine(load_accelerator(asked.arch), capacity_bytes=room, clock_mhz=asked.clock,
                           word_bits=asked.word_bits)
    goal = FusionGoal(asked.within, asked.objective, asked.softmax, asked.causal)
    from tilewright.store import kept_in  # noqa: PLC0415 - loads SQLAlchemy

    with kept_in(asked.out, "fuse-flat") as kept:
        found = fuse_attention(graph, machine, goal, asked.plan, Runner(
            f"fuse {graph.name}", workers=1, keeper=kept, observer=asked.told, stop=asked.stop))
    named = {"network": name_of(asked.network), "arch": name_of(asked.arch), "bind": bound_sizes(asked)}
    return FusedAttention(found, graph.name, command_line("fuse", asked, **named), named)


def _check_own(asked: FuseOptions) -> None:
    """Raise an `InputError` where an option is given that the space would leave alone."""
    for one in fields(asked):
        given = getattr(asked, one.name)
        spaces = [space for space, names in OWN_OPTIONS.items() if one.name in names] or [asked.space]
        if asked.space not in spaces and asked.space in OWN_OPTIONS and given not in (one.default, {}):
            flag = flags(FuseOptions)[one.name][-1].names[0]
            mend = "Leave it out" + (", or --set clock=1GHz" if one.name == "clock" else "")
            raise InputError(flag, f"must be given with --space {' or '.join(spaces)} alone", given, mend)

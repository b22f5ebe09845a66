"""Which operators of a network run together: spaces of fused plans by name."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.api.flags import command_line, flags, takes
from tilewright.api.fused_evaluation import plan_target
from tilewright.api.inputs import Machine, Network, load_accelerator, load_network, name_of
from tilewright.api.micro_batching import MicroBatchRun, fuse_micro_batches
from tilewright.api.places import ready_place
from tilewright.api.plan_options import PLAN_FIELDS, FuseOptions, bound_sizes, fused_space_of
from tilewright.api.sheets import OnSheet
from tilewright.api.tree_fusing import fuse_in_trees
from tilewright.base import InputError, Registry, read_text, write_whole
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
from tilewright.fusion.microbatch import MicroBatchCounts
from tilewright.hardware import read_bytes
from tilewright.jobs import Runner
from tilewright.workload import Graph

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

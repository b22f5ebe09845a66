"""What a run is asked for, and what is made of it: network, machine, objective, spaces and budget, all checked."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

from tilewright.api.flags import command_line
from tilewright.api.inputs import Limits, load_layers, load_target, name_of, refuse_density
from tilewright.api.options import RunOptions, VectorWays
from tilewright.api.spaces import SpaceChoice, choose_space, is_space
from tilewright.api.warm import OFF, Warmth
from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping import Constraints, KeptSets, MapSpace, flexible_machine, flexible_within
from tilewright.search import MAPPERS, Budget, Constraint, Objective, Start, read_front, search
from tilewright.store import RequestRecord
from tilewright.workload import Density, Graph, Operator, graph_with_densities, unique_operators

WARM_UP_SAMPLES = 500
LARGEST_NUMBER = 2**63 - 1
"""Largest integer that every database keeps."""
SUMMED = ("latency", "energy")
"""Metrics of which networks have fronts: others are no sums over layers."""


@dataclass(frozen=True)
class NetworkTask:
    """A network, a machine and what is asked of them, all checked.

    ``budget`` is that of the whole run, and `allotted` makes it that of one layer.
    """

    graph: Graph
    accelerator: Accelerator
    objective: Objective
    request: RequestRecord
    budget: Budget
    workers: int
    choice: SpaceChoice
    asked: RunOptions
    warmth: Warmth = OFF

    @cached_property
    def operators(self) -> list[Operator]:
        """The distinct ones of the network."""
        return [unique.operator for unique in unique_operators(self.graph)]

    def space(self, operator: Operator) -> MapSpace:
        """Return the mappings to choose from, as far as they were restricted."""
        return self.choice.space(operator, self.accelerator)

    def spaces(self, operator: Operator) -> tuple[MapSpace, ...] | KeptSets:
        """Return the mappings to choose from as a union: by what memories may keep, or what flexibility allows."""
        space = self.space(operator)
        return flexible_within(space) if self.accelerator.flexibility is not None else KeptSets(space)

    def allotted(self, share: Budget, **more: Any) -> "NetworkTask":
        """Return the task with the budget of one layer, and ``more`` in its request, which now holds the command."""
        request = replace(self.request, budget_samples=share.samples, budget_seconds=share.seconds, **more)
        return replace(self, budget=share, request=replace(request, command=self.command("map", self.asked, request)))

    def command(self, verb: str, asked: object, request: RequestRecord) -> str:
        """Return the command that repeats a run of a verb, of what it was asked for and what was made of that."""
        return command_line(verb, asked, **vars(request) | {
            "network": name_of(self.asked.network), "arch": name_of(self.asked.arch), "then": request.objective,
            "budget": budget_text(self.budget), "constraints": self.choice.file_name,
            "constraint": request.constraints})


def prepare(asked: RunOptions) -> NetworkTask:
    """Load and check what was asked for; what is wrong with it is an `InputError`."""
    accelerator, own = load_target(asked.arch, asked.network, asked.footprint)
    accelerator = flexible_machine(accelerator)
    density = asked.density or {}
    layers = load_layers(asked.network, asked.bind, asked.layers, arch=accelerator, precision=asked.precision)
    graph = graph_with_densities(layers, density)
    budget = read_budget(asked.budget)
    MAPPERS.get(asked.mapper)
    limits, spaces = split_limits(asked.constraints)
    goal = Objective.parse(asked.objective, limits)
    swept = goal.over(asked.densities)
    refuse_unused(accelerator, density, swept, graph)
    if swept.densities is not None:
        graph = graph_with_densities(graph, dict.fromkeys(swept.densities.tensors, swept.densities.largest))
    operators = [unique.operator for unique in unique_operators(graph)]
    choice = replace(choose_space(asked.tiling, spaces, asked.dataflow, operators, asked.pad), own=own)
    choice.refuse_empty(operators, accelerator)
    check_seed(asked.seed)
    counts_vector(asked.vector)
    workers = cores() if asked.workers is None else asked.workers
    if workers < 1:
        raise InputError("workers", "must be a positive integer", workers)
    told = {one.name: getattr(asked, one.name) for one in fields(RequestRecord) if hasattr(asked, one.name)}
    request = RequestRecord(**{
        **told, "objective": str(goal), "tiling": choice.tiling, "constraints": tuple(map(str, goal.constraints)),
        "options": dict(asked.options or {}), "budget_samples": budget.samples, "budget_seconds": budget.seconds,
        "dataflow": choice.dataflow, "space": choice.text(operators, accelerator),
        "density": {name: str(given) for name, given in density.items()}, "densities": str(swept.densities or ""),
        "front": read_front(asked.front or (SUMMED if asked.within else ()))})
    if asked.within:
        read_within(asked.within, accelerator.frequency_mhz)
    return NetworkTask(graph, accelerator, swept, request, budget, workers, choice, asked)


def split_limits(constraints: Iterable[str | Limits] | Limits) -> tuple[list[str], Limits | None]:
    """Return the limits on layers, and the constraints of map spaces."""
    given: list[Any] = [constraints]
    if isinstance(constraints, Iterable) and not isinstance(constraints, str | bytes):
        given = list(constraints)
    for one in given:
        if not isinstance(one, str | Path | Constraint | Constraints):
            raise InputError("constraints", "must be limits on layers, or constraints of map spaces", repr(one),
                             "For example latency<=1e6")
    spaces = [one for one in given if is_space(one)]
    if len(spaces) > 1:
        raise InputError("constraints", "must hold one set of constraints of map spaces at most", len(spaces),
                         "Write them into one file")
    return [str(one) for one in given if not is_space(one)], spaces[0] if spaces else None


def check_seed(seed: int) -> None:
    """Raise an `InputError` unless a seed is one that every generator and database takes."""
    if not (isinstance(seed, Integral) and 0 <= seed <= LARGEST_NUMBER):
        raise InputError("seed", f"must be a whole number from 0 to {LARGEST_NUMBER}", seed)


def counts_vector(vector: str) -> bool:
    """Return whether totals have vector work in them; an `InputError` where it is no way to treat that."""
    if vector not in get_args(VectorWays):
        raise InputError("vector", f"must be one of {', '.join(get_args(VectorWays))}", vector)
    return vector == "included"


def read_within(text: str, clock_mhz: float) -> tuple[str, float]:
    """Return what is limited, and the most of it in cycles or picojoules, of ``latency=10ms`` or ``energy=5mJ``.

    Raises an `InputError` if it is none of these.
    """
    found = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+\.?\d*(?:[eE][+-]?\d+)?)\s*([a-zA-Z]+)\s*", text, re.ASCII)
    units = {} if found is None else {
        "latency": {"cycles": 1.0, **{f"{sign}s": clock_mhz * scale * 1e-6 for sign, scale in _PICO.items()}},
        "energy": {f"{sign}J": scale for sign, scale in _PICO.items()}}.get(found[1], {})
    if found is None or found[3] not in units:
        raise InputError("within", "must be latency=TIME or energy=JOULES", text,
                         "For example latency=10ms or energy=5mJ")
    return found[1], float(found[2]) * units[found[3]]


def read_budget(budget: str | int | Budget) -> Budget:
    """Read a budget as `Budget.parse` does, and thousands and millions of samples besides: ``10k``, ``1M``."""
    text = budget
    if isinstance(text, str):
        text = re.sub(r"(?<=[\d.])\s*([kKM])\b", lambda found: _MULTIPLES[found.group(1)], text)
    try:
        found = Budget.parse(text)
    except OverflowError:
        found = None
    if found is None or (found.samples or 0) > LARGEST_NUMBER:
        raise InputError("budget.samples", f"must be at most {LARGEST_NUMBER}", str(budget))
    return found


def refuse_unused(accelerator: Accelerator, density: Mapping[str, Density] | None, goal: Objective,
                  graph: Graph) -> None:
    """Refuse densities where the machine makes no use of zeros, and two of one tensor: an `InputError`."""
    if density or goal.densities is not None:
        refuse_density(accelerator, "density" if density else "densities")
    fixed = {name.lower() for name in density or {}}
    several = {name.lower() for name in goal.densities.tensors} if goal.densities is not None else set()
    for tensor in (tensor for node in graph.mac_nodes for tensor in node.operator.tensors):
        names = {tensor.name.lower(), tensor.role}
        if names & fixed and names & several:
            raise InputError("densities", "must not be of a tensor that density names too", tensor.name,
                             "Leave one of the two out")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PICO = {"": 1e12, "m": 1e9, "u": 1e6, "n": 1e3, "p": 1.0}
"""How many pico-units a unit with this sign before it is."""
_MULTIPLES = {"k": "e3", "K": "e3", "M": "e6"}


def budget_text(budget: Budget) -> str:
    """Return a budget as the command line takes it."""
    parts = [str(budget.samples) if budget.samples is not None else "",
             f"{budget.seconds:g}s" if budget.seconds is not None else ""]
    return ",".join(filter(None, parts))


_WARM: set[tuple[Accelerator, str, str, str, str]] = set()
"""For what machines, and ways to search them, the engine is loaded."""


def warm_up(task: NetworkTask) -> None:
    """Load (at first use: compile) the engine, so that no search loses time to it; raise if interrupted meanwhile.

    Where the smallest layer has no mapping, that is refused here, at first use or not.
    """
    asked = task.request
    smallest = min(task.operators, key=lambda operator: operator.macs)
    space = task.spaces(smallest)[0]
    _ = space.table
    known = task.accelerator, asked.objective, asked.mapper, task.warmth.kind, repr(asked.options)
    if known in _WARM:
        return
    tries = partial(search, smallest, task.accelerator, objective=task.objective, mapper=asked.mapper, space=space,
                    options=asked.options)
    tried = tries(budget=Budget(samples=min(task.budget.samples or WARM_UP_SAMPLES, WARM_UP_SAMPLES)))
    if tried.mapping is not None and task.warmth.kind != "off":
        # Beginning from mappings has compiled parts of its own.
        tried = tries(budget=WARM_UP_SAMPLES, start=Start.of(tried.mapping, tried.operator))
    if tried.stopped == "interrupted":
        raise KeyboardInterrupt
    _WARM.add(known)


def texts_of(given: str | Iterable[object] | None) -> tuple[str, ...]:
    """Return texts that were given one by one, or in one with commas."""
    parts = given.split(",") if isinstance(given, str) else list(given or ())
    return tuple(str(part).strip() for part in parts)

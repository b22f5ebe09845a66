"""Jobs: layers with their mini-batches, of networks, of the tasks of M3E (Kao 2022, 7.1.2), or of a list."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np

from tilewright.base import InputError, unknown_name
from tilewright.cost import VectorShare, vector_shares
from tilewright.scheduling.problem import circle
from tilewright.scheduling.system import System
from tilewright.workload import Graph, MacNode, Operator, zoo

TASKS: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "vision": {name: {"batch": 4} for name in (
        "alexnet", "densenet121", "googlenet", "mnasnet", "mobilenet-v2", "resnet50", "resnext50", "shufflenet",
        "squeezenet", "vgg16")},
    "lang": {name: {"batch": 4, "sequence": 20} for name in (
        "albert", "distilbert", "flaubert", "gpt2", "mobilebert", "t5-small", "xlm")} | {
        "transformer-xl": {"batch": 4, "sequence": 20, "memory": 20}},
    "recom": {name: {"batch": 16} for name in ("din", "dlrm", "ncf", "wide-deep")},
}
"""Networks of each task with their options. Which ones is the text's; batches and sequences are our assumption: it has
none. The released lists have language layers of 20 rows, and layers of one row else."""
MIX = "mix"
GROUP = 100
"""Jobs of a group (Kao 2022, 7.3.1)."""
MOST_JOBS = 20_000
_TIME = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(s|ms|us|ns|cycles)\s*", re.ASCII)
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class LayerJob:
    """A layer with its mini-batch, which one core runs from its beginning to its end."""

    name: str
    """As people see it; its own in its group."""
    operator: Operator
    network: str = ""
    """The network it is of; empty where it is of none."""
    count: int = 1
    """Times that it runs, one after the other."""
    after: tuple[int, ...] = ()
    """Places in its group of the jobs that must have ended."""
    release_cycles: float = 0.0
    deadline_cycles: float = inf
    """``release_cycles`` and ``deadline_cycles``: when it comes, and when it must have ended."""
    vector: tuple[VectorShare, ...] = ()
    """By kind of core: what the vector work takes that belongs to the layer, which its job does besides; empty where
    there is none, or it is free."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all its runs."""
        return self.operator.macs * self.count


def task_names() -> tuple[str, ...]:
    """Return the tasks that jobs can be drawn of."""
    return (*TASKS, MIX)


def task_groups(task: str, groups: int = 1, seed: int = 0, size: int = GROUP, system: System | None = None,
                ) -> tuple[tuple[LayerJob, ...], ...]:
    """Return groups of jobs of a task: of each job first the network is drawn, then one of its layers, all alike.

    Of a mix, the task is drawn before that. Same seed, same groups; the first ones do not depend on how many there are.
    Where there is a ``system``, jobs do the vector work besides that belongs to their layers (`vector_shares`).

    Raises an `InputError` if the task is unknown, or a number is not positive or too large.
    """
    if task not in task_names():
        raise unknown_name("task", task, list(task_names()))
    for name, given in (("groups", groups), ("size", size)):
        if not 1 <= given <= MOST_JOBS:
            raise InputError(name, f"must be from 1 to {MOST_JOBS}", given)
    tasks = list(TASKS) if task == MIX else [task]
    networks = {name: zoo.load(name, **options) for one in tasks for name, options in TASKS[one].items()}
    vector = {name: _vector(network, system) for name, network in networks.items()}
    return tuple(tuple(_drawn(tasks, networks, np.random.default_rng([seed, number]), size, vector))
                 for number in range(groups))


def _vector(graph: Graph, system: System | None) -> dict[str, tuple[VectorShare, ...]]:
    """Return by layer and kind of core what the vector work takes that belongs to it; nothing without a system."""
    shares = [] if system is None else [vector_shares(graph, core.accelerator) for core in system.kinds]
    return {name: tuple(share.get(name, VectorShare()) for share in shares)
            for name in {name for share in shares for name in share}}


def _drawn(tasks: Sequence[str], networks: Mapping[str, Graph], rng: np.random.Generator, size: int,
           vector: Mapping[str, Mapping[str, tuple[VectorShare, ...]]]) -> Iterator[LayerJob]:
    for place in range(size):
        names = list(TASKS[tasks[int(rng.integers(len(tasks)))]])
        name = names[int(rng.integers(len(names)))]
        network = networks[name]
        node = network.mac_nodes[int(rng.integers(len(network.mac_nodes)))]
        yield LayerJob(f"{network.name}/{node.name}#{place}", node.operator, network.name, node.count,
                       vector=vector[name].get(node.name, ()))


def network_jobs(graphs: Sequence[tuple[Graph, int]], *, keep_order: bool = False,
                 release: Mapping[str, float] | None = None,
                 deadline: Mapping[str, float] | None = None, system: System | None = None) -> tuple[LayerJob, ...]:
    """Return the layers of networks as jobs, each network as many times as is asked for.

    Where ``keep_order``, a layer waits for those whose results it reads, within one run of its network. ``release`` and
    ``deadline`` are cycles by the network's name; a network that keeps its order must have ended by its deadline, and
    else each of its jobs. Where there is a ``system``, jobs do the vector work besides that belongs to their layers.

    Raises an `InputError` if there are no jobs or too many, or a time is of no network.
    """
    names = [graph.name for graph, _ in graphs]
    for what, times in (("arrival", release or {}), ("deadline", deadline or {})):
        for name in times:
            if name not in names:
                raise unknown_name("network", name, names, what)
    jobs: list[LayerJob] = []
    for graph, count in graphs:
        vector = _vector(graph, system)
        if (len(jobs) + count * len(graph.mac_nodes)) > MOST_JOBS:
            raise InputError("networks", f"must have at most {MOST_JOBS} jobs in all", f"{graph.name} x {count}")
        for turn in range(count):
            label = graph.name + (f"#{turn + 1}" if count > 1 else "")
            run = _run_of(graph, label, len(jobs) if keep_order else None, (release or {}).get(graph.name, 0.0),
                          (deadline or {}).get(graph.name, inf))
            jobs += [replace(job, vector=vector.get(job.operator.name, ())) for job in run]
    if not jobs:
        raise InputError("networks", "must have at least one layer of multiply-accumulates", ", ".join(names))
    return tuple(jobs)


def _run_of(graph: Graph, label: str, first: int | None, release: float, deadline: float) -> Iterator[LayerJob]:
    """Yield the jobs of one run of a network; ``first`` is the place of the first where they keep their order."""
    reads: dict[str, tuple[str, ...]] = {}
    places: dict[str, int] = {}
    for node in graph.nodes:  # what a node waits for: multiply-accumulates, through whatever lies between
        reads[node.name] = tuple(dict.fromkeys(
            name for before in node.inputs for name in ((before,) if before in places else reads[before])))
        if isinstance(node, MacNode):
            places[node.name] = len(places)
            after = () if first is None else tuple(first + places[name] for name in reads[node.name])
            yield LayerJob(f"{label}/{node.name}", node.operator, label, node.count, after, release, deadline)


def read_time(text: str | float, clock_mhz: float, where: str) -> float:
    """Return the cycles of ``5ms``, ``300us`` or ``1000cycles``.

    Raises an `InputError` if it is no time with a unit, or not finite.
    """
    match = _TIME.fullmatch(str(text))
    found = inf if match is None else float(match[1]) * (_SECONDS[match[2]] * clock_mhz * 1e6
                                                         if match[2] in _SECONDS else 1.0)
    if not found < inf:
        raise InputError(where, "must be a time with a unit: s, ms, us, ns or cycles", text, "For example 5ms")
    return found


def chopped(jobs: Sequence[LayerJob], size: int | None) -> tuple[tuple[LayerJob, ...], ...]:
    """Return jobs in groups of at most ``size``, one after the other; where None, as one group.

    Raises an `InputError` if the size is not positive, or a job would wait for one of another group, which ends before
    it begins anyway.
    """
    if size is None:
        return (tuple(jobs),)
    if size < 1:
        raise InputError("group_size", "must be a positive integer", size)
    bounds = [*range(0, len(jobs), size), len(jobs)]
    return tuple(tuple(replace(job, after=tuple(place - first for place in job.after if place >= first))
                       for job in jobs[first:last]) for first, last in pairwise(bounds))


def check_order(jobs: Sequence[LayerJob]) -> None:
    """Raise an `InputError` that names the jobs of a circle, where jobs wait for one another."""
    if way := circle([job.after for job in jobs]):
        raise InputError("after", "must not form a circle", " before ".join(jobs[place].name for place in way),
                         "Take one of these out of the column after")

"""What `schedule` is asked for, each option once (see `tilewright.api.options`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import Flag, again, option
from tilewright.api.options import KeptOptions, NetworkOptions, SearchOptions, SpaceOptions, VectorOptions

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tilewright.api.inputs import Network
    from tilewright.api.options import Scalar
    from tilewright.scheduling import System
    from tilewright.search import Budget

Tasks = Literal["vision", "lang", "recom", "mix"]
Objectives = Literal["makespan", "energy", "edp", "slowdown", "deadlines"]
Sharings = Literal["proportional", "max-min", "critical-first"]
"""The same as those of the room below, which loads late."""


@dataclass(frozen=True)
class ScheduleOptions(KeptOptions):
    """What `schedule` is asked for.

    Parameters
    ----------
    networks
        One, or several (see `load_network`), each as many times as the number says that it names behind an asterisk
        (``bert-base:sequence=20*4``) or that a mapping gives it; or one CSV file of jobs (docs/scheduling.md).
    system
        A preset (``s1`` to ``s6``, ``s1-flex``, ``s3-flex``), a YAML file, its text, or a system.
    store
        True keeps the analysis of jobs, plans to begin from, and the schedule in the default store, False nowhere; or a
        file or database URL.
    """

    networks: Network | Sequence[Network] | Mapping[Network, int] = field(default=(), metadata={"flags": (Flag(
        ("networks",), "Networks, as for tilewright map, each as many times as its number says: resnet50, "
        "bert-base:sequence=20*4; a CSV file of jobs, or one of MAGMA's lists; or a schedule in JSON, with --explain.",
        "arguments", "[NETWORK[*TIMES]...]"),)})
    system: str | Path | System | None = option(None, "--system", "-s", metavar="SYSTEM", says=(
        "Accelerators that share one memory: s1 to s6, s1-flex, s3-flex (see: tilewright list systems), or a YAML "
        "file."))
    _: KW_ONLY
    task: str | None = option(None, "--task", choices=get_args(Tasks), says=(
        "Instead of networks: groups of jobs drawn from those of a task."))
    bandwidth: str | None = option(None, "--bandwidth", "-w", metavar="RATE", says=(
        "Of the shared memory: 16GB/s, or 16B/cycle. Default: the system's own."))
    groups: int = option(1, "--groups", kind="whole", least=1, says="With --task: how many groups.")
    group_size: int | None = option(None, "--group-size", kind="whole", least=1, metavar="N", says=(
        "Jobs of a group; the next begins when one has ended. Default: 100 with --task, else all in one."))
    keep_order: bool = option(False, "--keep-order", kind="yes", says=(
        "Layers wait for those whose results they read. Default: jobs wait for nothing."))
    arrival: Mapping[str, str] | None = option(None, "--arrival", kind="shares", metavar="NETWORK=TIME", says=(
        "When a network comes: resnet50=1ms, or 1000cycles. Repeatable."))
    deadline: Mapping[str, str] | None = option(None, "--deadline", kind="shares", metavar="NETWORK=TIME", says=(
        "When a network must have ended. Repeatable."))
    objective: str = option("makespan", "--objective", "-o", choices=get_args(Objectives), says=(
        "What to minimise: the time of a group, its energy, their product, the worst slowdown of a job, or missed "
        "deadlines."))
    sharing: str = option("proportional", "--sharing", choices=get_args(Sharings), says=(
        "How jobs share a bandwidth that is too small: each the same part of what it asks for (as in the paper), all "
        "the same but none more than it asks for, or first the job that most waits for."))
    fastest: bool = option(False, "--fastest", kind="yes", says=(
        "Take the fastest mapping of every job; else the plan chooses among those of its front."))
    method: str = option("auto", "--method", "-m", always=True,
                         says="How to search; see: tilewright list schedulers.")
    budget: str | int | Budget = again(SearchOptions, "budget", 10_000, (
        "Plans simulated for each group (10000, 10k), time for each (10s), or both. Only a number of plans repeats "
        "exactly."))
    mappings: int = option(2_000, "--mappings", kind="whole", least=3, metavar="N", says=(
        "Mappings scored for each distinct job on each kind of core; what the store knows is not scored again."))
    seed: int = again(SearchOptions, "seed", 0, "Same seed, same jobs and same schedule, on any number of workers.")
    options: Mapping[str, Scalar] | None = again(NetworkOptions, "options", None,
                                                 "An option of the method. Repeatable.")
    warm_start: bool = option(False, "--warm-start", kind="yes", says=(
        "Begin from the plan of a group of the same task on the same system: the one before, or one in the store."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    vector: str = again(VectorOptions, "vector", "included", (
        "Softmax, normalisation, pooling, additions, copies and the like: included in the job of the layer whose "
        "results they take; or free, as in papers that leave them out."))
    workers: int | None = again(NetworkOptions, "workers", None, "Jobs analysed side by side. Default: one a core.")
    on: str = again(NetworkOptions, "on", "auto", "Where jobs are analysed: threads (auto), processes, ray, "
                    "ray://HOST:PORT.")
    store: str | os.PathLike[str] | bool = again(NetworkOptions, "store", True,
                                                 "Keep nothing in the store, and take nothing from it.")

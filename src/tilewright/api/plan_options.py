"""What `schedule`, `allocate`, `pack` and `fuse` are asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import Flag, again, option
from tilewright.api.options import KeptOptions, NetworkOptions, OnMachine, SearchOptions, SpaceOptions, VectorOptions
from tilewright.base import read_text

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tilewright.allocation import Pad
    from tilewright.api.inputs import Machine, Network
    from tilewright.api.options import Scalar
    from tilewright.jobs import Observer, Stop
    from tilewright.packing import Buffers
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
        "When a network arrives: resnet50=1ms, or 1000cycles. Repeatable."))
    deadline: Mapping[str, str] | None = option(None, "--deadline", kind="shares", metavar="NETWORK=TIME", says=(
        "When a network must have finished. Repeatable."))
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


Oversizes = Literal["refuse", "cut", "tile"]
"""The same as those of the room below, which loads late."""


@dataclass(frozen=True)
class ResidencyOptions(KeptOptions, OnMachine):
    """What `allocate` is asked for.

    Parameters
    ----------
    pads
        Scratchpads, as text or by themselves, which then have their own ways and words.
    """

    arch: Machine = option("nvdla-like", "--arch", "-a", metavar="ARCH", says=(
        "An accelerator, whose main memory and operations count: a preset (tilewright list accelerators), or a file."))
    _: KW_ONLY
    pads: str | Sequence[Pad] = option("3x128KB", "--pads", metavar="PADS", always=True, says=(
        "Scratchpads: 3x128KB, or by the roles that they may hold, in=1MB,weights=2MB,out=1MB."))
    word: int = option(1, "--word", kind="whole", least=1, metavar="BYTES",
                       says="Addresses and room on scratchpads are in words of so many bytes.")
    bandwidth: str | None = option(None, "--bandwidth", "-w", metavar="RATE", says=(
        "Of each scratchpad to the main memory: 16GB/s, or 16B/cycle. Default: that of the accelerator's main memory."))
    across: str | None = option(None, "--across", metavar="RATE", says=(
        "Between scratchpads: what moves does not pass the main memory then. Default: there is no such way."))
    channels: int = option(1, "--channels", kind="whole", least=1, says="DMA channels of the simulation.")
    objective: str = option("bytes", "--objective", "-o", always=True, metavar="NAME[,NAME...]", says=(
        "What to minimise: bytes, latency, energy, several one after the other (bytes,energy), edp, peak (the least "
        "capacity of each scratchpad that spills nothing), or thesis (transitions, as printed there)."))
    solver: str = option("exact", "--solver", "-m", always=True, says="How to plan; see: tilewright list allocators.")
    solvers: str | Sequence[str] = option((), "--solvers", kind="names", metavar="NAME,...", says=(
        "Several solvers, side by side; the best plan is taken."))
    seconds: float = option(60.0, "--seconds", kind="number", metavar="S", says=(
        "Time limit of each solver, less what cutting operations into tiles takes; it ends sooner where no plan can be "
        "better."))
    oversize: str = option("tile", "--oversize", choices=get_args(Oversizes), says=(
        "Operations whose tensors do not fit together: run them in tiles, refuse them, or cut tensors to what fits, as "
        "the thesis does."))
    tile: bool = option(False, "--tile", kind="yes", says="The same as --oversize tile.")
    tile_from: str | os.PathLike[str] | None = option(None, "--tile-from", metavar="RUN", says=(
        "Take the tiles of layers from their mappings in a run of tilewright map (a JSON file, its identity, or last): "
        "those inside its outermost loops, of as many memories as it takes until they fit."))
    split: int | str = option(1, "--split", metavar="PARTS", says=(
        "Split tensors into at most so many parts, each kept or not by itself, on a scratchpad of its own; by default "
        "a tensor is whole, on one. Parts have one size, of which as many fill the smallest scratchpad; auto takes as "
        "many as there is time for."))
    order: bool = option(False, "--order", kind="yes", says=(
        "Seek an order of the operations, too, in which less has to leave; the given one stays where none is better."))
    seed: int = again(SearchOptions, "seed", 0, "Of the search of orders: same seed, same order.")
    export_tflite: str | os.PathLike[str] | None = option(
        None, "--export-tflite", kind="path", metavar="FILE", never=True, says=(
            "Write the addresses as TensorFlow Lite Micro's offline plan: the buffer of the metadata "
            "OfflineMemoryAllocation, and beside it what it holds (.json)."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    precision: str = again(SpaceOptions, "precision", "auto")


@dataclass(frozen=True)
class PackOptions:
    """What `pack` is asked for.

    Parameters
    ----------
    buffers
        A CSV file of buffers, or buffers.
    seconds
        None: as long as it takes.
    """

    buffers: str | os.PathLike[str] | Buffers = field(metadata={"flags": (Flag(
        ("buffers",), "Buffers, a CSV file: id, lower, upper (the first time after the end) and size of each; as of "
        "minimalloc.", "argument", "FILE.csv"),)})
    capacity: int | None = option(None, "--capacity", "-c", kind="whole", least=1, metavar="N", says=(
        "Addresses that there are, in the unit of the sizes. Default: the least height is looked for."))
    _: KW_ONLY
    bank: int | None = option(None, "--bank", kind="whole", least=1, metavar="N", says=(
        "Addresses of a bank, from 0 on: no buffer lies across two. Default: all is one bank."))
    method: str = option("exact", "--method", "-m", says="How to place; see: tilewright list packers.")
    seconds: float | None = option(60.0, "--seconds", kind="number", metavar="S", says=(
        "Time limit of the search; what was found by then is kept."))
    out: str | os.PathLike[str] | None = option(None, "--out", kind="path", metavar="FILE.csv", never=True, says=(
        "Write the buffers with their addresses, as a file of the same kind."))


FuseGoals = Literal["latency", "energy", "edp", "dram"]
Softmaxes = Literal["free", "vector"]
Within = Literal["flex", "flat", "online"]
"""The same as those of `fusion`, which loads late."""
PLAN_FIELDS = {"flat": "attentions:", "micro-batch": "strategy:"}
"""By the space of plans, what begins a line of those that `fuse` saved as YAML."""


@dataclass(frozen=True)
class FuseOptions(OnMachine):
    """What `fuse` is asked for.

    Parameters
    ----------
    plan
        A YAML file or text that holds one: it is looked at, and nothing is searched.
    told
        Told how far it is.
    stop
        Set to end early.
    """

    _: KW_ONLY
    space: str = option("flat", "--space", metavar="SPACE", always=True, says=(
        "Which plans there are to choose from. flat: attention, its tiles on the chip; micro-batch: how many samples "
        "of each layer's result stay on the chip (DNNFuser); trees: any operators, in loops that they share."))
    objective: FuseGoals = option("latency", "--objective", "-o", choices=get_args(FuseGoals), says=(
        "What is to be least; dram: the words to and from DRAM. Micro-batches know latency and energy."))
    within: Within = option("online", "--within", choices=get_args(Within), says=(
        "Of attention: flex, plans that do not fuse; flat, FLAT's besides, whole rows of logits on the chip; online, "
        "tiles of keys with an online softmax besides, as FlashAttention has them."))
    softmax: Softmaxes = option("free", "--softmax", choices=get_args(Softmaxes), says=(
        "Whether a softmax takes no time, as FLAT counts, or that of the machine's vector unit."))
    causal: bool = option(False, "--causal", kind="yes", says=(
        "Positions attend to none after themselves, in every attention of the network; what is masked is left out tile "
        "by tile."))
    phase: str | None = option(None, "--phase", metavar="NAME", never=True, says=(
        "Phase of a language model: prefill or decode. The same as --bind phase=NAME."))
    memory: str | None = option(None, "--memory", metavar="SIZE", says=(
        "Room on the chip, as 512KiB or 20MB, instead of the machine's own."))
    clock: float | None = option(None, "--clock", kind="number", metavar="MHZ", says=(
        "Of attention: another clock of the machine; bytes a second of its memories stay."))
    word_bits: int | None = option(None, "--word-bits", kind="whole", least=1, metavar="BITS", says=(
        "Another width of all words; bytes of the buffer, and a second, stay."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    batch: int = option(1, "--batch", kind="whole", says="Of micro-batches: samples that the network runs for.")
    weight_memory: str | None = option(None, "--weight-memory", metavar="SIZE", says=(
        "Of micro-batches: room besides for weights. Those of a group that fit it together come once, others for every "
        "micro-batch. Default: none."))
    mapper: str = option("exact", "--mapper", "-m", says=(
        "Of micro-batches: how to search; see: tilewright list fusers."))
    budget: str | int | Budget = again(SearchOptions, "budget", "2000", (
        "Of micro-batches: strategies scored (2000, 2k), time (10s), or both. Only a number of strategies repeats "
        "exactly; exact is limited by time alone. Of trees: mappings scored of each layer alone; a quarter of "
        "that of each in a group."), always=False)
    seed: int = again(SearchOptions, "seed", 0, "Of micro-batches and trees: same seed, same plan.", always=False)
    options: Mapping[str, Scalar] | None = again(NetworkOptions, "options", None,
                                                 "Of micro-batches: an option of the mapper. Repeatable.")
    layers: int = option(3, "--layers", kind="whole", least=1, says="Of trees: layers that one group may have.")
    out: str | Path | None = again(KeptOptions, "out", None, (
        "Keep each attention and each group here as soon as it is planned, and a search of micro-batches every few "
        "seconds: another run goes on from there."), never=True)
    plan: str | Path | None = option(None, "--plan", kind="path", metavar="FILE.yaml", says=(
        "Look at this plan instead of searching one."))
    told: Observer | None = None
    stop: Stop | None = None


def bound_sizes(asked: FuseOptions) -> dict[str, int | str]:
    """Return the sizes of dynamic dimensions, and the phase where one is named."""
    return {**(asked.bind or {}), **({"phase": asked.phase} if asked.phase else {})}


def fused_space_of(plan: str | Path | None) -> str | None:
    """Return the space of a plan that `fuse` saved as YAML, a file or its text; None where it is none."""
    text = str(plan or "")
    if "\n" not in text:
        if Path(text).suffix not in (".yaml", ".yml") or not Path(text).is_file():
            return None
        text = read_text(Path(text))
    lines = text.splitlines()
    return next((space for space, field in PLAN_FIELDS.items() if any(line.startswith(field) for line in lines)), None)

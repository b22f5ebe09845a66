"""What the verbs that search are asked for, each option once.

A field says what Python takes; its flag what the command line calls it. The keywords of a verb in Python, its options
on the command line, and the command that repeats a run are made of the fields: see `takes`, `cli.options.verb` and
`command_line`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tilewright.api.flags import Flag, again, flags, option, several
from tilewright.base import InputError

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tilewright.api.inputs import Limits, Machine, Network
    from tilewright.api.text import Watcher
    from tilewright.jobs import Observer, Stop
    from tilewright.mapping import Mapping as Nest
    from tilewright.search import Budget, Densities
    from tilewright.search.studies import Contender
    from tilewright.workload import Density

Scalar = str | int | float | bool
Tilings = Literal["perfect", "imperfect", "ruby", "ruby-s", "ruby-t"]
Footprints = Literal["exact", "box"]
WarmStarts = Literal["off", "previous", "similar", "library"]
VectorWays = Literal["included", "free"]
"""The same as those of the rooms below, which load late."""


def _machines(named: Sequence[str], settings: Sequence[str] | None) -> str | tuple[str, ...]:
    """Return the machines named, each with the numbers that were set."""
    wrong = next((one for one in settings or () if "=" not in one), None)
    if wrong is not None:
        raise InputError("--set", "must be LEVEL.NUMBER=VALUE", wrong, "For example GLB.capacity=64KiB")
    found = [f"{one}{',' if '=' in one.rpartition(':')[2] else ':'}{','.join(settings)}" if settings else one
             for one in named]
    return found[0] if len(found) == 1 else tuple(found)


MACHINE = {"join": _machines, "flags": (
    Flag(("--arch", "-a"), "An accelerator: the name of a preset (tilewright list accelerators), or a YAML file.",
         "texts", "ARCH"),
    Flag(("--set",), "Change a number of it, as GLB.capacity=256KB, PEs.shape=16x16, DRAM.bandwidth=16GB/s, "
         "clock=1GHz; energy and area follow by its technology. Repeatable.", "texts", "LEVEL.NUMBER=VALUE"))}


@dataclass(frozen=True)
class OnMachine:
    """A network on a machine.

    Parameters
    ----------
    network
        See `load_network`.
    arch
        A preset, a YAML file, or an accelerator; see `load_accelerator`.
    """

    network: Network = field(metadata={"flags": (Flag(("network",), (
        "A name of the zoo (resnet50, bert-base:sequence=128; all: tilewright list networks), a file (ONNX, PyTorch's "
        ".pt2, a config.json of Hugging Face, a layer table), or one operator: conv:K=64,C=64,P=56,Q=56,R=3,S=3,stride="
        "1 · matmul:M=512,N=512,K=64 · einsum:bik,bkj->bij:b=8,i=64,j=64,k=32."), "argument", "NETWORK"),)})
    arch: Machine = field(metadata=MACHINE)


@dataclass(frozen=True)
class OnLayer(OnMachine):
    """A layer of a network on a machine."""

    layer: str | None = option(None, "--layer", "-l",
                               says="One of its layers; may be left out where there is only one.")


@dataclass(frozen=True, kw_only=True)
class SpaceOptions:
    """Which mappings there are to choose from."""

    tiling: str | None = option(None, "--tiling", choices=get_args(Tilings), says=(
        "imperfect (unless the constraints say otherwise): any tile; perfect: tiles divide; ruby: full tiles divide, "
        "the last one may be smaller; ruby-s, ruby-t: that of loops in space, in time alone."))
    dataflow: str | None = option(None, "--dataflow", says=(
        "Only mappings that follow this dataflow; see: tilewright list dataflows."))
    precision: str = option("auto", "--precision", metavar="WORDS", says=(
        "Which words tensors have: auto, the model's types that lanes take whole (not fp32 alone, which files hold "
        "where nobody chose); model, all its types; machine, as wide as the machine's; a type (int8, fp16, mxfp4) or "
        "some by role, with commas between (weights=int4)."))
    bind: Mapping[str, int | str] | None = option(None, "--bind", kind="sizes", metavar="NAME=SIZE", says=(
        "Size of a dynamic dimension of a network (batch=4), or an option of one of the zoo. Repeatable."))


CONSTRAINTS = Flag(("--constraints",), (
    "What the map spaces leave out: loops, orders, factors, tiles, ... (docs/how-to.md). What it says of dimensions "
    "that a layer lacks means nothing to that layer."), "path", "FILE.yaml")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How every layer of a network is searched."""

    mapper: str = option("auto", "--mapper", "-m", always=True, says="How to search; see: tilewright list mappers.")
    budget: str | int | Budget = option(10_000, "--budget", "-b", metavar="N|TIME", always=True, says=(
        "Mappings scored for every distinct layer (10000, 10k, 1M), or the time of the whole run (10s, 5min), which "
        "the distinct layers share evenly. Only a number of mappings repeats exactly."))
    seed: int = option(0, "--seed", kind="whole", always=True,
                       says="Same seed, same result, on any number of workers.")


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(SpaceOptions, SearchOptions):
    """What the layers of a network have in common when all are searched.

    Parameters
    ----------
    constraints
        Limits on each layer, such as ``latency<=1e6``; and, one at most, constraints of the map spaces: `Constraints`,
        a YAML file, or its text. What they say of dimensions that a layer lacks means nothing to that layer.
    on
        Where: on ``threads``, in ``processes``, on a ``ray`` cluster of this machine (or of ``RAY_ADDRESS``), or on
        ``ray://HOST:PORT``. Results of a budget of mappings do not depend on it.
    progress
        Shown how far the run is.
    store
        True appends the run to the default store, and its best mappings to the library there, False to none; or a file
        or database URL.
    """

    constraints: Iterable[str | Limits] | Limits = several(
        (), lambda file, limits: [*(limits or ()), *([file] if file is not None else ())], CONSTRAINTS, Flag(
            ("--constraint", "-c"), "A limit on every layer, for example 'latency<=1e6' or 'power<=300' (mW). "
            "Repeatable.", "texts", "METRIC<=NUMBER"))
    options: Mapping[str, Scalar] | None = option(None, "--option", kind="values", metavar="NAME=VALUE",
                                                  says="An option of the mapper. Repeatable.")
    layers: str | None = option(None, "--layers", metavar="GLOB",
                                says="Only layers with such names, e.g. 'layer1.*'.")
    workers: int | None = option(None, "--workers", kind="whole", least=1, never=True,
                                 says="Layers searched side by side. Default: one a core.")
    on: str = option("auto", "--on", metavar="WHERE", never=True, says=(
        "Where searches run: threads, processes, ray (a cluster on this machine), ray://HOST:PORT; or auto: threads, "
        "but processes for hundreds of layers with a budget of mappings."))
    progress: Watcher | None = None
    store: str | os.PathLike[str] | bool = several(
        True, lambda place, none: False if none else place or True,
        Flag(("--store",), "The store of runs: a SQLite file or a database URL. Default: $TILEWRIGHT_STORE, or the "
             "platform's data directory.", metavar="PATH", never=True),
        Flag(("--no-store",), "Do not append the run to the store.", "yes", never=True))


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is to be minimised."""

    objective: str = option("edp", "--objective", "-o", always=True, says=(
        "What to minimise: latency, energy, edp, power, traffic, latency-area, ... or a weighted sum such as "
        "'0.7*latency + 0.3*energy', each part then in multiples of its lower bound."))


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """What totals make of vector work."""

    vector: str = option("included", "--vector", choices=get_args(VectorWays), says=(
        "Softmax, normalisation, pooling, additions, copies and the like: included in all totals and bounds; or free, "
        "as in papers that leave them out."))


@dataclass(frozen=True, kw_only=True)
class RunOptions(VectorOptions, NetworkOptions, Goal, OnMachine):
    """What `map` is asked for.

    Parameters
    ----------
    density
        Of tensors, by name or role: ``{"weights": 0.5}``, ``{"W": "2:4"}``.
    densities
        Score each mapping over these densities of the inputs (``"1,0.8,0.5,0.2,0.1"``) or of other tensors
        (``"weights=1,0.5"``; see `Sweep.parse`). Costs are told at the largest.
    checkpoint
        A folder in which searches are kept at once and every few seconds, and from which they are taken up again,
        perhaps with a larger budget; a budget of time counts all legs.
    """

    pad: bool = option(False, "--pad", kind="yes", says=(
        "Round sizes up so that whole tiles fill the arrays; work on padding is paid for. Tiling is then perfect "
        "unless given."))
    footprint: str | None = option(None, "--footprint", choices=get_args(Footprints), says=(
        "What tiles take of a memory's capacity: exact, the words that they touch; box, all of the smallest box around "
        "them, as Timeloop counts. Default: as the machine says (box where it is read from Timeloop's files)."))
    density: Mapping[str, Density] | None = option(None, "--density", kind="shares", metavar="TENSOR=SHARE", says=(
        "Share of a tensor's words that are not zero, by role or name: weights=0.5, W=2:4 (two of every four), "
        "I=even:0.5 (spread evenly). For machines with a sparsity section. Repeatable."))
    densities: Densities | None = option(None, "--densities", metavar="[TENSORS=]LIST", says=(
        "Score each mapping over several densities of the inputs, '1,0.8,0.5,0.2,0.1', or of other tensors, "
        "'inputs+weights=1,0.5'; weights after colons, '1:1,0.5:3', else one over the density; 'geomean:1,0.5' for the "
        "geometric mean, 'even:1,0.5' for zeros spread evenly."))
    front: str | Iterable[str] = option((), "--front", metavar="METRICS", says=(
        "Keep the Pareto front of these metrics, e.g. latency,energy: all mappings that no other beats in all of "
        "them."))
    within: str | None = option(None, "--within", metavar="latency=TIME|energy=JOULES", says=(
        "Of the network's front of latency and energy, which is then kept, the least energy within a latency (10ms, "
        "or 1e6cycles), or the least latency within an energy (5mJ)."))
    warm_start: str = option("off", "--warm-start", choices=get_args(WarmStarts), says=(
        "What each layer begins from: off; previous, the best mapping of the layer before it; similar, those of the "
        "most similar layers before it; library, those and what the store knows (then results depend on it)."))
    again: bool = option(False, "--again", kind="yes", never=True,
                         says="Search again where the store has the result of an equal search.")
    checkpoint: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = option(
        None, "--certificate", kind="path", metavar="FILE", never=True, says=(
            "Write the run as a certificate, whose bounds tilewright verify checks by an independent program. With "
            "perfect or imperfect tiling, and no limits."))


@dataclass(frozen=True, kw_only=True)
class PaceOptions:
    """How fast a pipeline is to be, and what counts at that pace."""

    then: str = option("energy", "--then", always=True, says=(
        "What to minimise at that pace: energy, power, or another objective as for tilewright map."))
    accelerators: int | None = option(None, "--accelerators", kind="whole", metavar="N", says=(
        "How many accelerators there are. Default: one for each layer; fewer take consecutive layers each."))
    latency_limit: float | None = option(None, "--latency-limit", kind="number", metavar="CYCLES", says=(
        "Cycles from one input to the next. Default: those of the slowest layer at its fastest."))
    throughput: float | None = option(None, "--throughput", kind="number", metavar="N",
                                      says="Inputs a second, instead of --latency-limit.")
    slack: float | None = option(None, "--slack", kind="number", metavar="SHARE", says=(
        "By which share the pipeline may be slower than the fastest, for example 0.01, instead of a limit."))


@dataclass(frozen=True, kw_only=True)
class PipelineOptions(VectorOptions, NetworkOptions, PaceOptions, OnMachine):
    """What `pipeline` is asked for; its ``budget`` is that of each of its two searches, or the time of both."""

    budget: str | int | Budget = again(SearchOptions, "budget", 10_000, (
        "Mappings scored for every distinct layer in each search (10000, 10k, 1M), or the time of both (10s, 5min)."))
    constraints: Iterable[str | Limits] | Limits = again(NetworkOptions, "constraints", (), (
        "A limit on every layer in the second search, for example 'power<=300' (mW). Repeatable."))
    store: str | os.PathLike[str] | bool = again(NetworkOptions, "store", True,
                                                 "Do not append the two runs to the store.")


@dataclass(frozen=True, kw_only=True)
class LayerSpaceOptions(SpaceOptions):
    """Which mappings of one layer there are to choose from.

    Parameters
    ----------
    constraints
        Constraints of the map space: a YAML file, its text, or `Constraints`.
    """

    constraints: Limits | None = field(default=None, metadata={"flags": (CONSTRAINTS,)})


@dataclass(frozen=True, kw_only=True)
class MapSpaceOptions(LayerSpaceOptions, OnLayer):
    """What `map_space` is asked for."""

    pad: bool = again(RunOptions, "pad", False)


@dataclass(frozen=True, kw_only=True)
class LookOptions(LayerSpaceOptions, OnLayer):
    """What a study of one layer is asked for."""

    objective: str = option("edp", "--objective", "-o", says="What to minimise, as for tilewright map.")
    budget: str | int | Budget = option(10_000, "--budget", "-b", metavar="N|TIME", says=(
        "Of each search: mappings (10000, 10k), a time (2s), or both (10k,2s)."))
    seed: int = option(0, "--seed", kind="whole", least=0, says="The first seed. Same seeds, same scores.")


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """How the searches of a study are kept, watched and ended.

    Parameters
    ----------
    out
        A folder where searches are kept as they end, to be taken over by a later call.
    told
        Told how far it is.
    stop
        Set to end early.
    """

    out: str | Path | None = option(None, "--out", kind="path", metavar="DIR", says=(
        "Keep searches there as they end, to go on where a run was stopped, and write JSON, CSV and a page."))
    told: Observer | None = None
    stop: Stop | None = None


@dataclass(frozen=True, kw_only=True)
class StudyOptions(KeptOptions, LookOptions):
    """What a study of many searches is asked for.

    Parameters
    ----------
    seeds
        Searches of each kind, of seeds ``seed`` and up.
    """

    seeds: int = option(10, "--seeds", kind="whole", says="Repetitions.")
    workers: int = option(1, "--workers", kind="whole", least=1, says=(
        "Searches side by side. Scores do not depend on it; seconds are only fair with one."))
    on: str = again(NetworkOptions, "on", "auto")


@dataclass(frozen=True)
class CompareOptions(StudyOptions):
    """What `compare` is asked for."""

    mappers: str | Iterable[str | Contender] = option(
        "auto,gamma,random-pruned", "--mappers", "-m", metavar="NAME[:OPTION=VALUE,...],...", says=(
            "Mappers to compare, as gamma,gamma:crossover=0,tile=1,random; see: tilewright list mappers."))


@dataclass(frozen=True)
class AxesOptions(StudyOptions):
    """What `study_axes` is asked for.

    Parameters
    ----------
    mapper
        Any, with options after a colon; what is fixed is left out of its map space.
    mapping
        What the others are fixed at: a YAML file, its text, or a mapping; by default a random one for each seed.
    """

    mapper: str | Contender = option("gamma", "--mapper", "-m", metavar="NAME[:OPTION=VALUE,...]",
                                     says="How to search; see: tilewright list mappers.")
    _: KW_ONLY
    mapping: str | Path | Nest | None = option(None, "--mapping", kind="path", metavar="FILE.yaml", says=(
        "What the other axes are fixed at. Default: a random mapping for each seed."))


@dataclass(frozen=True)
class OrdersOptions(LookOptions):
    """What `study_orders` is asked for.

    Parameters
    ----------
    mapping
        A YAML file, its text, or a mapping; by default the best that ``mapper`` finds within ``budget``.
    """

    mapping: str | Path | Nest | None = option(None, "--mapping", kind="path", metavar="FILE.yaml", says=(
        "The mapping. Default: the best that --mapper finds within --budget."))
    _: KW_ONLY
    memories: Iterable[str] | None = option(None, "--memories", kind="names", metavar="NAME,...", says=(
        "Where loops change their order, the same at all of them. Default: everywhere."))
    mapper: str = again(SearchOptions, "mapper", "auto", "What finds the mapping.")


@dataclass(frozen=True)
class LandscapeOptions(LookOptions):
    """What `study_landscape` is asked for."""

    mappers: str | Iterable[str | Contender] = again(CompareOptions, "mappers", "gamma,random-pruned", (
        "Mappers whose samples are shown; see: tilewright list mappers."))
    _: KW_ONLY
    points: int = option(20_000, "--points", kind="whole", says="Random mappings that fit.")
    uniform: bool = option(False, "--uniform", kind="yes", says=(
        "Draw every mapping of the space with the same chance, instead of spreading the draws over all scales of "
        "tiles."))
    budget: str | int | Budget = again(LookOptions, "budget", 5_000)


@dataclass(frozen=True)
class SystolicOptions:
    """What `systolic` is asked for."""

    network: Network = field(metadata={"flags": flags(OnMachine)["network"]})
    arch: Machine | None = option(None, "--config", "-c", "--arch", "-a", metavar="FILE|ARCH", says=(
        "A configuration of SCALE-Sim (.cfg), or an accelerator with one array: X its columns, Y its rows."))
    _: KW_ONLY
    array: str | tuple[int, int] | None = option(None, "--array", metavar="ROWSxCOLUMNS", says=(
        "The sides of the array, instead of a machine."))
    dataflow: str | None = option(None, "--dataflow", says=(
        "os, ws or is: what rests is outputs, weights or inputs. Default: the machine's own; with --array, os."))
    sram_kb: Sequence[int] | None = option(None, "--sram", kind="kilobytes", metavar="KB,KB,KB", says=(
        "With --array: KiB of the memories of inputs, weights and outputs. Default: they hold all."))
    bandwidth: int | None = option(None, "--bandwidth", kind="whole", least=1, says=(
        "With --array: words a cycle that DRAM moves for each memory. Default: any number."))
    conventions: Sequence[str] = option(("tilewright", "scale-sim"), "--as", kind="texts", metavar="NAME", says=(
        "Whose conventions: tilewright, scale-sim, scale-sim-paper. Repeatable. Default: the first two."))
    layers: str | None = again(NetworkOptions, "layers", None)
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)


FLAGS = {flag.word: flag for kind in (OnMachine, KeptOptions, RunOptions) for found in flags(kind).values()
         for flag in found}
"""Flags that other verbs have too."""

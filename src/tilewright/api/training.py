"""Train networks: surrogates of the cost model (``mind-mappings``), and models that fuse layers (``dnnfuser``)."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.api.flags import takes
from tilewright.api.inputs import load_accelerator, load_layers, load_network
from tilewright.api.places import ready_place
from tilewright.api.tasks import check_seed, cores
from tilewright.api.training_options import FuserOptions, SurrogateOptions, read_count
from tilewright.base import InputError, require_extra
from tilewright.hardware import read_bytes
from tilewright.mapping import MapSpace
from tilewright.workload import Operator, unique_operators

if TYPE_CHECKING:
    from tilewright.learn import Epoch
    from tilewright.search.surrogate import Tested

TEST_LAYERS = 24


@dataclass(frozen=True)
class TrainedSurrogate:
    """What `train_surrogate` made: where, of what, how training went, and how the network does."""

    file: Path
    machine: str
    layers: int
    samples: int
    drawing_seconds: float
    training_seconds: float
    curve: tuple["Epoch", ...]
    """Losses by epoch."""
    held_out: dict[str, tuple[float, float]]
    """Errors and rank correlations on mappings held out, of the layers it was trained on, by output."""
    tests: "tuple[Tested, ...]"
    """On layers it was not trained on, of the machine itself, then of every other machine asked for."""

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "file": str(self.file)}


@takes(SurrogateOptions, raises=", PyTorch is missing, or layers are of different kinds")
def train_surrogate(asked: SurrogateOptions) -> TrainedSurrogate:
    """Train a network on mappings drawn on a machine, test it on other layers and machines, and write it to a file."""
    require_extra("learn", "train-surrogate", "PyTorch")
    from tilewright.learn import TrainingOptions  # noqa: PLC0415  (PyTorch loads late)
    from tilewright.search.surrogate import assess, draw_samples, random_convolutions  # noqa: PLC0415
    from tilewright.search.surrogate import train_surrogate as train  # noqa: PLC0415

    machine, place = load_accelerator(asked.arch), ready_place(Path(asked.file))
    others = [load_accelerator(other) for other in asked.test_archs]
    options = TrainingOptions(hidden=_widths(asked.hidden), epochs=asked.epochs, seed=asked.seed)
    threads, samples = asked.threads or cores(), read_count(asked.samples)
    rng = np.random.default_rng(asked.seed)
    operators = (_operators(asked.networks) if asked.networks
                 else random_convolutions(_positive("layers", asked.layers), rng))
    unseen = random_convolutions(TEST_LAYERS, np.random.default_rng((asked.seed, 1)))
    began = time.perf_counter()
    drawn = draw_samples(operators, machine, samples, rng, tiling=asked.tiling, threads=threads)
    drawing = time.perf_counter() - began
    surrogate, trained = train(drawn, options, threads=threads, progress=asked.progress, stop=asked.stop)
    training = time.perf_counter() - began - drawing
    try:
        MapSpace(unseen[0], machine)
        surrogate.family.check(MapSpace(unseen[0], machine))
    except InputError:  # layers of another kind than convolutions: nothing unseen is at hand
        unseen = []
    tests = tuple(assess(surrogate, unseen, each, asked.seed) for each in (machine, *others)) if unseen else ()
    done = TrainedSurrogate(
        place, machine.name, len(operators), len(drawn.features), drawing, training, trained.curve,
        dict(zip(("latency", "energy"), zip(trained.errors, trained.ranks, strict=True), strict=True)), tests)
    surrogate.save(place, {name: value for name, value in done.plain.items() if name not in ("file", "curve")})
    return done


def _operators(networks: Sequence[str | Path]) -> list[Operator]:
    found = {unique.operator.signature: unique.operator for network in networks
             for unique in unique_operators(load_layers(network))}
    kinds: dict[tuple[str, ...], list[Operator]] = {}
    for operator in found.values():
        kinds.setdefault(tuple(operator.sizes), []).append(operator)
    # A network's layers of another kind (its classifier, depthwise ones) are left to networks of their own.
    return max(kinds.values(), key=len)


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise InputError(name, "must be a positive integer", value)
    return value


def _widths(given: str | Sequence[int]) -> tuple[int, ...]:
    """Return the widths of layers."""
    if not isinstance(given, str):
        return tuple(given)
    parts = given.split(",")
    if not all(part.isascii() and part.strip().isdecimal() for part in parts):
        raise InputError("--hidden", "must be widths with commas between them", given, "For example 256,256,128")
    return tuple(int(part) for part in parts)


@dataclass(frozen=True)
class FuserTest:
    """What a model writes for a network and a memory: speedups over layer by layer, its own and the best proven one."""

    network: str
    memory_bytes: float
    seen: bool
    speedup: float
    best_speedup: float

    @property
    def share(self) -> float:
        """Its speedup in the best one."""
        return self.speedup / self.best_speedup


@dataclass(frozen=True)
class TrainedFuser:
    """What `train_fuser` made: where, of what, and how the model does."""

    file: Path
    machine: str
    networks: tuple[str, ...]
    teacher: str
    demonstrations: int
    showing_seconds: float
    training_seconds: float
    losses: tuple[float, ...]
    """Squared errors, step by step."""
    tests: tuple[FuserTest, ...]
    """At every memory size that it was shown, and at those asked for besides."""

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "file": str(self.file)}


@takes(FuserOptions, raises=", PyTorch is missing, or a network does not fit")
def train_fuser(asked: FuserOptions) -> TrainedFuser:
    """Train a model to write micro-batch strategies (DNNFuser), test it, and write it to a file."""
    require_extra("learn", "train-fuser", "PyTorch")
    from tilewright.fusion import microbatch  # noqa: PLC0415  (PyTorch loads late)
    from tilewright.learn import SequenceOptions  # noqa: PLC0415

    machine, place = load_accelerator(asked.arch), ready_place(Path(asked.file))
    check_seed(asked.seed)
    options = SequenceOptions(kind=asked.kind, steps=asked.steps, seed=asked.seed)  # type: ignore[arg-type]
    first = None
    if asked.begin is not None:
        first = microbatch.load_fuser(Path(asked.begin), asked.kind, "train-fuser", "begin")[0]
    graphs = [load_network(network) for network in asked.networks]
    memories = _sizes(asked.memories)
    if not memories:
        raise InputError("memory", "must be one size or more", None, "For example 16MB,32MB")
    if not graphs:
        raise InputError("networks", "must be one or more", None, "For example vgg16 resnet18")
    shown, tried = ({(graph.name, size): microbatch.MicroBatchProblem.of(graph, machine, asked.batch, size)
                     for graph in graphs for size in sizes}
                    for sizes in (memories, (*memories, *_sizes(asked.test_memories))))
    began, losses = time.perf_counter(), list[float]()
    seeds = 1 if asked.teacher == "exact" else _positive("demonstrations", asked.demonstrations)
    found = microbatch.demonstrations(list(shown.values()), asked.teacher, seeds, asked.seed)
    showing = time.perf_counter() - began

    def going(step: int, loss: float) -> bool:
        losses.append(loss)
        if asked.progress is not None:
            asked.progress(step, loss)
        return asked.stop is None or not asked.stop.is_set()

    model = microbatch.train_fuser(found, options, first, asked.threads or cores(), going)
    training = time.perf_counter() - began - showing
    tests = tuple(FuserTest(name, size, (name, size) in shown, *microbatch.speedups(model, problem))
                  for (name, size), problem in tried.items())
    done = TrainedFuser(place, machine.name, tuple(graph.name for graph in graphs), asked.teacher, len(found), showing,
                        training, tuple(losses), tests)
    model.save(place, {name: value for name, value in done.plain.items() if name not in ("file", "losses")})
    return done


def _sizes(given: str | Sequence[str | float]) -> list[float]:
    """Return sizes in bytes, given as numbers, as texts, or in one text with commas."""
    parts = [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given
    return [read_bytes(part.strip(), "memory") if isinstance(part, str) else float(part) for part in parts]

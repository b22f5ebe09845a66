"""Train networks: surrogates of the cost model (``mind-mappings``), and models that fuse layers (``dnnfuser``)."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.api.inputs import load_accelerator, load_layers, load_network
from tilewright.api.places import ready_place
from tilewright.api.tasks import check_seed
from tilewright.base import InputError, require_extra
from tilewright.hardware import Accelerator, read_bytes
from tilewright.mapping import MapSpace, Tiling
from tilewright.workload import Operator, unique_operators

if TYPE_CHECKING:
    from tilewright.learn import Epoch
    from tilewright.search.surrogate import Tested

TEST_LAYERS = 24
RANDOM_LAYERS = 256


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


def train_surrogate(  # noqa: PLR0913  (keywords of the one entry point)
    arch: str | Path | Accelerator,
    file: str | Path,
    *,
    networks: Sequence[str | Path] = (),
    samples: int = 1_000_000,
    tiling: Tiling = "imperfect",
    layers: int = RANDOM_LAYERS,
    test_archs: Sequence[str | Path | Accelerator] = (),
    hidden: tuple[int, ...] = (256, 256, 128),
    epochs: int = 10,
    seed: int = 0,
    threads: int | None = None,
    progress: "Callable[[Epoch], None] | None" = None,
    stop: threading.Event | None = None,
) -> TrainedSurrogate:
    """Train a network on drawn mappings of one machine, test it on other layers and machines, and write it to a file.

    Parameters
    ----------
    networks
        Their distinct convolutions of one kind are the layers; without any, ``layers`` random ones are.
    samples, tiling
        Mappings drawn and scored, as many of each layer, and how their tiles may divide.
    test_archs
        Machines that it has not seen, to tell how it does there.
    threads
        The network does not depend on them.

    Raises
    ------
    InputError
        If PyTorch is missing, a name or number is wrong, layers are of different kinds, or the file cannot be written.
    """
    require_extra("learn", "train-surrogate", "PyTorch")
    from tilewright.learn import TrainingOptions  # noqa: PLC0415  (PyTorch loads late)
    from tilewright.search.surrogate import assess, draw_samples, random_convolutions  # noqa: PLC0415
    from tilewright.search.surrogate import train_surrogate as train  # noqa: PLC0415

    machine, place = load_accelerator(arch), ready_place(Path(file))
    others = [load_accelerator(other) for other in test_archs]
    options = TrainingOptions(hidden=hidden, epochs=epochs, seed=seed)
    threads = threads or len(os.sched_getaffinity(0))
    rng = np.random.default_rng(seed)
    operators = _operators(networks) if networks else random_convolutions(_positive("layers", layers), rng)
    unseen = random_convolutions(TEST_LAYERS, np.random.default_rng((seed, 1)))
    began = time.perf_counter()
    drawn = draw_samples(operators, machine, _positive("samples", samples), rng, tiling=tiling,
                         threads=threads)
    drawing = time.perf_counter() - began
    surrogate, trained = train(drawn, options, threads=threads, progress=progress, stop=stop)
    training = time.perf_counter() - began - drawing
    try:
        MapSpace(unseen[0], machine)
        surrogate.family.check(MapSpace(unseen[0], machine))
    except InputError:  # layers of another kind than convolutions: nothing unseen is at hand
        unseen = []
    tests = tuple(assess(surrogate, unseen, each, seed) for each in (machine, *others)) if unseen else ()
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


TEACHER = "exact"
MEMORIES = ("16MB", "32MB", "48MB", "64MB")
"""What DNNFuser was trained with."""


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


def train_fuser(  # noqa: PLR0913  (keywords of the one entry point)
    networks: Sequence[str | Path], arch: str | Path | Accelerator, file: str | Path, *,
    memories: Sequence[str | float] = MEMORIES, test_memories: Sequence[str | float] = (), batch: int = 64,
    teacher: str = TEACHER, demonstrations: int = 8, kind: str = "transformer", steps: int = 300,
    begin: str | Path | None = None, seed: int = 0, threads: int | None = None,
    progress: Callable[[int, float], None] | None = None, stop: threading.Event | None = None,
) -> TrainedFuser:
    """Train a model to write micro-batch strategies (DNNFuser), test it, and write it to a file.

    Parameters
    ----------
    memories, test_memories
        Sizes that it is shown, and further ones that it is tested at.
    teacher, demonstrations
        The mapper that is imitated, and with how many seeds it searches at each size (``exact`` with one).
    kind
        ``transformer`` (for ``dnnfuser``) or ``lstm`` (for ``seq2seq``).
    begin
        A model to go on from: fine-tuning.
    threads
        The model does not depend on them.
    stop
        Ends training after the present step.

    Raises
    ------
    InputError
        If PyTorch is missing, a name or number is wrong, a network does not fit, or the file cannot be written.
    """
    require_extra("learn", "train-fuser", "PyTorch")
    from tilewright.fusion import microbatch  # noqa: PLC0415  (PyTorch loads late)
    from tilewright.learn import SequenceOptions  # noqa: PLC0415

    machine, place = load_accelerator(arch), ready_place(Path(file))
    check_seed(seed)
    options = SequenceOptions(kind=kind, steps=steps, seed=seed)  # type: ignore[arg-type]
    first = None if begin is None else microbatch.load_fuser(Path(begin), kind, "train-fuser", "begin")[0]
    graphs = [load_network(network) for network in networks]
    if not memories:
        raise InputError("memory", "must be one size or more", None, "For example 16MB,32MB")
    if not graphs:
        raise InputError("networks", "must be one or more", None, "For example vgg16 resnet18")
    shown, tried = ({(graph.name, size): microbatch.MicroBatchProblem.of(graph, machine, batch, size)
                     for graph in graphs for size in (_bytes(given) for given in sizes)}
                    for sizes in (memories, (*memories, *test_memories)))
    began, losses = time.perf_counter(), list[float]()
    found = microbatch.demonstrations(
        list(shown.values()), teacher, 1 if teacher == "exact" else _positive("demonstrations", demonstrations), seed)
    showing = time.perf_counter() - began

    def going(step: int, loss: float) -> bool:
        losses.append(loss)
        if progress is not None:
            progress(step, loss)
        return stop is None or not stop.is_set()

    model = microbatch.train_fuser(found, options, first, threads or len(os.sched_getaffinity(0)), going)
    training = time.perf_counter() - began - showing
    tests = tuple(FuserTest(name, size, (name, size) in shown, *microbatch.speedups(model, problem))
                  for (name, size), problem in tried.items())
    done = TrainedFuser(place, machine.name, tuple(graph.name for graph in graphs), teacher, len(found), showing,
                        training, tuple(losses), tests)
    model.save(place, {name: value for name, value in done.plain.items() if name not in ("file", "losses")})
    return done


def _bytes(given: str | float) -> float:
    return read_bytes(given, "memory") if isinstance(given, str) else float(given)

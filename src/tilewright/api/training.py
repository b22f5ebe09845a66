"""Train surrogates: networks that stand for the cost model, for the mapper ``mind-mappings``."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.api.inputs import load_accelerator, load_layers
from tilewright.api.places import ready_place
from tilewright.base import InputError, require_extra
from tilewright.hardware import Accelerator
from tilewright.mapping import MapSpace, Tiling
from tilewright.workload import Operator, unique_operators

if TYPE_CHECKING:
    from tilewright.learn import Epoch
    from tilewright.search.surrogate import Tested

TEST_LAYERS = 24
RANDOM_LAYERS = 256


@dataclass(frozen=True)
class TrainedSurrogate:
    """What `train_surrogate` made: where, of what, how training went, and how the network does.

    Parameters
    ----------
    curve
        Losses by epoch.
    held_out
        Errors and rank correlations on mappings held out, of the layers it was trained on, by output.
    tests
        On layers it was not trained on: of the machine itself, then of every other machine asked for.
    """

    file: Path
    machine: str
    layers: int
    samples: int
    drawing_seconds: float
    training_seconds: float
    curve: tuple["Epoch", ...]
    held_out: dict[str, tuple[float, float]]
    tests: "tuple[Tested, ...]"

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

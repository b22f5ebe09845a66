"""What `train-surrogate`, `-fuser` and `-recommender` are asked for, each option once; see `tilewright.api.options`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from tilewright.api.flags import Flag, again, option
from tilewright.api.options import FLAGS, Tilings
from tilewright.base import InputError

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from tilewright.api.inputs import Machine
    from tilewright.learn import Epoch

MEMORIES = "16MB,32MB,48MB,64MB"
"""What DNNFuser was trained with."""
_MULTIPLES = {"k": 1000, "M": 1_000_000}
_ARCH = replace(FLAGS["arch"], kind="text")


def _written(what: str) -> Any:
    """Return the field of the file that a network or a model goes into."""
    return field(metadata={"flags": (Flag(("--out",), f"Where the {what} goes.", "path", "FILE"),)})


@dataclass(frozen=True)
class SurrogateOptions:
    """What `train_surrogate` is asked for.

    Parameters
    ----------
    networks
        Their distinct convolutions of one kind are the layers; without any, ``layers`` random ones are.
    threads
        The network does not depend on them. By default one a core.
    progress
        Shown every epoch.
    stop
        Ends training after the present epoch.
    """

    arch: Machine = field(metadata={"flags": (_ARCH,)})
    file: str | Path = _written("network")
    _: KW_ONLY
    networks: Sequence[str | Path] = option((), "--network", kind="texts", metavar="NETWORK", says=(
        "Learn from the layers of this network instead of random convolutions. Repeatable."))
    layers: int = option(256, "--layers", kind="whole", least=1, says="How many random convolutions to learn from.")
    samples: int | str = option("1M", "--samples", metavar="N", says="Mappings drawn and scored: 100000, 100k, 1M.")
    tiling: Tilings = option("imperfect", "--tiling", choices=get_args(Tilings),
                             says="How tiles of these mappings divide.")
    test_archs: Sequence[Machine] = option((), "--test-arch", kind="texts", metavar="ARCH", says=(
        "Also tell how the network does on this machine, which it has not seen. Repeatable."))
    hidden: str | Sequence[int] = option("256,256,128", "--hidden", metavar="N,N,...", says="Widths of the layers.")
    epochs: int = option(10, "--epochs", kind="whole", least=1, says="Passes over the samples.")
    seed: int = option(0, "--seed", kind="whole", says="Same seed, same network.")
    threads: int | None = None
    progress: Callable[[Epoch], None] | None = None
    stop: threading.Event | None = None


@dataclass(frozen=True)
class FuserOptions:
    """What `train_fuser` is asked for.

    Parameters
    ----------
    threads
        The model does not depend on them. By default one a core.
    progress
        Shown every step, and its loss.
    stop
        Ends training after the present step.
    """

    networks: Sequence[str | Path] = field(metadata={"flags": (Flag(
        ("network",), "Learn how the layers of these are fused.", "arguments", "NETWORK..."),)})
    arch: Machine = field(metadata={"flags": (_ARCH,)})
    file: str | Path = _written("model")
    _: KW_ONLY
    memories: str | Sequence[str | float] = option(MEMORIES, "--memory", metavar="SIZE,SIZE,...",
                                                   says="Memory sizes that it is shown.")
    test_memories: str | Sequence[str | float] = option("", "--test-memory", metavar="SIZE,SIZE,...", says=(
        "Also tell how it does at these sizes, which it has not seen."))
    batch: int = option(64, "--batch", kind="whole", says="Samples that networks run for.")
    teacher: str = option("exact", "--teacher", metavar="MAPPER", says=(
        "The mapper that it imitates; see: tilewright list fusers."))
    demonstrations: int = option(8, "--demonstrations", kind="whole", says=(
        "Seeds of the teacher at each size; exact has one."))
    kind: str = option("transformer", "--kind", says="transformer (for the mapper dnnfuser) or lstm (for seq2seq).")
    steps: int = option(300, "--steps", kind="whole", says="Of training.")
    begin: str | Path | None = option(None, "--begin", kind="path", metavar="FILE", says=(
        "Go on from this model: fine-tuning."))
    seed: int = again(SurrogateOptions, "seed", 0, "Same seed, same model.")
    threads: int | None = None
    progress: Callable[[int, float], None] | None = None
    stop: threading.Event | None = None


@dataclass(frozen=True)
class RecommenderOptions:
    """What `train_recommender` is asked for.

    Parameters
    ----------
    labelled
        Shown how many products have their labels.
    progress
        Shown every epoch.
    stop
        Ends training after the present epoch.
    """

    arch: str = field(metadata={"usual": "sagar", "flags": (Flag(
        ("--arch", "-a"), "A reconfigurable array, as for tilewright recommend.", metavar="ARRAY"),)})
    file: str | Path = _written("network")
    _: KW_ONLY
    samples: int | str = again(SurrogateOptions, "samples", "2M", (
        "Products that are labelled: 200000, 200k, 2M; a tenth of them tests."))
    sampler: str = option("uniform", "--sampler", says="uniform (as published), log-uniform or zoo.")
    network: str = option("terms", "--network", metavar="NAME", says=(
        "terms (ours), adaptnet, mlp-a, mlp-b, mlp-c or mlp-d."))
    space: str = option("realisable", "--space", says=(
        "Which configurations there are: published, realisable or planar."))
    ties: str = option("", "--ties", metavar="WORD,WORD,...", says=(
        "Which of equally good configurations is the label, as for tilewright recommend."))
    epochs: int = again(SurrogateOptions, "epochs", 20, "Passes over the products; for terms, the most fresh starts.")
    batch: int = option(1024, "--batch", kind="whole", least=1, says="Products between two steps; published: 32.")
    seed: int = again(SurrogateOptions, "seed", 0)
    labels: str | Path | None = option(None, "--labels", kind="path", metavar="FILE.parquet", says=(
        "Read labels from here, or write them there; labelling that was stopped goes on."))
    checkpoint: str | Path | None = option(None, "--checkpoint", kind="path", metavar="FILE", says=(
        "Keep training here after each epoch, and go on from there."))
    threads: int = option(1, "--threads", kind="whole", least=1, says=(
        "Threads that learn; the network does not depend on them."))
    device: str = option("cpu", "--device", says=(
        "Where AdaptNet and perceptrons learn, as PyTorch names it: cpu, cuda."))
    labelled: Callable[[int], None] | None = None
    progress: Callable[[Epoch], None] | None = None
    stop: threading.Event | None = None


def read_count(given: int | str) -> int:
    """Return a number of samples: 100000, ``100k``, ``1M``."""
    text = str(given)
    try:
        count = int(float(text[:-1]) * _MULTIPLES[text[-1]]) if text[-1:] in _MULTIPLES else int(text)
    except (ValueError, OverflowError):
        count = 0
    if count < 1 or not text.isascii():
        raise InputError("--samples", "must be a positive number", text, "For example 100000, 100k or 1M")
    return count

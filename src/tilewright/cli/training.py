"""``tilewright train-surrogate``, ``-fuser``, ``-recommender``: networks that stand for the cost model, or a search."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.api.options import Tilings
from tilewright.base import InputError
from tilewright.cli.compare import deliver
from tilewright.cli.options import INTERRUPTED, Arch, Json, Page, console, ready, say, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.api import TrainedSurrogate
    from tilewright.learn import Epoch

SUFFIXES = {"k": 1000, "M": 1_000_000}


def train_surrogate(
    arch: Arch,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", show_default=False, help="Where the network goes.")],
    network: Annotated[list[str] | None, typer.Option(
        "--network", metavar="NETWORK", show_default=False,
        help="Learn from the layers of this network instead of random convolutions. Repeatable.")] = None,
    layers: Annotated[int, typer.Option("--layers", min=1, help="How many random convolutions to learn from.")] = 256,
    samples: Annotated[str, typer.Option(
        "--samples", metavar="N", help="Mappings drawn and scored: 100000, 100k, 1M.")] = "1M",
    tiling: Annotated[Tilings, typer.Option("--tiling", help="How tiles of these mappings divide.")] = "imperfect",
    test_arch: Annotated[list[str] | None, typer.Option(
        "--test-arch", metavar="ARCH", show_default=False,
        help="Also tell how the network does on this machine, which it has not seen. Repeatable.")] = None,
    hidden: Annotated[str, typer.Option("--hidden", metavar="N,N,...", help="Widths of the layers.")] = "256,256,128",
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the samples.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same network.")] = 0,
    json_file: Json = None,
) -> None:
    """Train a network to tell what mappings cost on one machine, for the mapper mind-mappings.

    Needs the extra learn (PyTorch). Shows the losses of every epoch, then errors (in powers of 2) and rank correlations
    on mappings it was not trained on. Use it by: tilewright map ... --mapper mind-mappings --option surrogate=FILE.
    """
    from tilewright.api import train_surrogate as train

    screen = console(json_file)

    def show(epoch: "Epoch") -> None:
        screen.print(f"epoch {epoch.epoch:>3}  loss {epoch.loss:.5f}  held out {epoch.held_out_loss:.5f}  "
                     f"{epoch.seconds:.1f} s", markup=False)

    done = train(arch, out, networks=network or (), samples=_count(samples), layers=layers, tiling=tiling,
                 test_archs=test_arch or (),
                 hidden=_widths(hidden), epochs=epochs, seed=seed, progress=show)
    _show(done, screen)
    write_json(json_file, done.plain)
    say(screen, f"Written to {done.file}")


def train_fuser(
    network: Annotated[list[str], typer.Argument(metavar="NETWORK...", show_default=False,
                                                 help="Learn how the layers of these are fused.")],
    arch: Arch,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", show_default=False, help="Where the model goes.")],
    memory: Annotated[str, typer.Option(
        "--memory", metavar="SIZE,SIZE,...", help="Memory sizes that it is shown.")] = "16MB,32MB,48MB,64MB",
    test_memory: Annotated[str, typer.Option(
        "--test-memory", metavar="SIZE,SIZE,...", show_default=False,
        help="Also tell how it does at these sizes, which it has not seen.")] = "",
    batch: Annotated[int, typer.Option("--batch", help="Samples that networks run for.")] = 64,
    teacher: Annotated[str, typer.Option(
        "--teacher", metavar="MAPPER", help="The mapper that it imitates; see: tilewright list fusers.")] = "exact",
    demonstrations: Annotated[int, typer.Option(
        "--demonstrations", help="Seeds of the teacher at each size; exact has one.")] = 8,
    kind: Annotated[str, typer.Option(
        "--kind", help="transformer (for the mapper dnnfuser) or lstm (for seq2seq).")] = "transformer",
    steps: Annotated[int, typer.Option("--steps", help="Of training.")] = 300,
    begin: Annotated[Path | None, typer.Option(
        "--begin", metavar="FILE", show_default=False, help="Go on from this model: fine-tuning.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same model.")] = 0,
    json_file: Json = None,
) -> None:
    """Train a model to fuse layers by micro-batches without a search, for the mapper dnnfuser.

    Needs the extra learn (PyTorch). Ends with a table: the speedup of what the model writes at every memory size, and
    the best proven one. Use it by: tilewright fuse ... --mapper dnnfuser --option model=FILE. Ctrl-C ends training
    after the present step, and keeps the model.
    """
    from tilewright.api import train_fuser as train
    from tilewright.jobs import interruptible
    from tilewright.report import Bar, print_listing

    screen, stop = console(json_file), threading.Event()
    with interruptible(stop), Bar("Searching for demonstrations") as bar:
        done = train(network, arch, out, memories=_sizes(memory), test_memories=_sizes(test_memory), batch=batch,
                     teacher=teacher, demonstrations=demonstrations, kind=kind, steps=steps, begin=begin, seed=seed,
                     progress=lambda step, loss: bar.show("steps", step, steps, f"loss {loss:.5f}"), stop=stop)
    screen.print(f"{done.demonstrations} strategies of {done.teacher} on {done.machine}: found in "
                 f"{done.showing_seconds:.1f} s, learnt in {done.training_seconds:.1f} s "
                 f"({len(done.losses)} steps, last loss {done.losses[-1]:.5f})", markup=False)
    print_listing(("Network", "Memory", "Shown", "Speedup", "Best\nproven", "Share"), [
        (test.network, f"{test.memory_bytes / 1e6:g} MB", "yes" if test.seen else "no", f"{test.speedup:.3f}",
         f"{test.best_speedup:.3f}", f"{100 * test.share:.1f} %") for test in done.tests], (1, 3, 4, 5), screen)
    write_json(json_file, done.plain)
    say(screen, f"Written to {done.file}")
    if stop.is_set():
        raise typer.Exit(INTERRUPTED)


def train_recommender(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", show_default=False, help="Where the network goes.")],
    arch: Annotated[str, typer.Option(
        "--arch", "-a", metavar="ARRAY", help="A reconfigurable array, as for tilewright recommend.")] = "sagar",
    samples: Annotated[str, typer.Option(
        "--samples", metavar="N", help="Products that are labelled: 200000, 200k, 2M; a tenth of them tests.")] = "2M",
    sampler: Annotated[str, typer.Option(
        "--sampler", help="uniform (as published), log-uniform or zoo.")] = "uniform",
    network: Annotated[str, typer.Option(
        "--network", metavar="NAME", help="terms (ours), adaptnet, mlp-a, mlp-b, mlp-c or mlp-d.")] = "terms",
    space: Annotated[str, typer.Option(
        "--space", help="Which configurations there are: published, realisable or planar.")] = "realisable",
    ties: Annotated[str, typer.Option(
        "--ties", metavar="WORD,WORD,...", help="Which of equally good configurations is the label, as of recommend.")
    ] = "",
    epochs: Annotated[int, typer.Option(
        "--epochs", min=1, help="Passes over the products; of terms: fresh starts at most.")] = 20,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Products between two steps; published: 32.")] = 1024,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same network.")] = 0,
    labels: Annotated[Path | None, typer.Option(
        "--labels", metavar="FILE.parquet", show_default=False,
        help="Read labels from here, or write them there; labelling that was stopped goes on.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(
        "--checkpoint", metavar="FILE", show_default=False,
        help="Keep training here after each epoch, and go on from there.")] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="The network does not depend on them.")] = 1,
    device: Annotated[str, typer.Option(
        "--device", help="Where AdaptNet and perceptrons learn, as PyTorch names it: cpu, cuda.")] = "cpu",
    report: Page = None,
    json_file: Json = None,
) -> None:
    """Train a network to tell the best configuration of a reconfigurable array, for tilewright recommend --model.

    Needs the extra learn (PyTorch); --labels needs recommend (Polars). Ends with a table on products that the network
    has not seen, beside the one configuration that is best for all. Ctrl-C ends training after the present epoch, and
    keeps the network.
    """
    from tilewright.api import train_recommender as train
    from tilewright.jobs import interruptible
    from tilewright.report import Bar

    ready(report, json_file)
    screen, stop, count = console(json_file), threading.Event(), _count(samples)
    with interruptible(stop), Bar("Looking at every configuration") as bar:
        done = train(arch, out, samples=count, sampler=sampler, network=network, space=space, ties=ties,
                     epochs=epochs, batch=batch, seed=seed, labels=labels, checkpoint=checkpoint,
                     threads=threads, device=device,
                     labelled=lambda ready: bar.show("products", ready, count, ""),
                     progress=lambda epoch: bar.show("epochs", epoch.epoch, epochs,
                                                     f"held out {epoch.held_out_loss:.4f}"), stop=stop)
    deliver("train-recommender", done.sheet, done.plain, (report, json_file, None))
    say(screen, f"Written to {done.file}")
    if stop.is_set():
        raise typer.Exit(INTERRUPTED)


def _sizes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _show(done: "TrainedSurrogate", screen: "Console") -> None:
    from tilewright.report import print_listing

    screen.print(f"{done.samples:,} mappings of {done.layers} layers on {done.machine}: drawn in "
                 f"{done.drawing_seconds:.1f} s, learnt in {done.training_seconds:.1f} s", markup=False)
    held = done.held_out
    rows = [(f"{done.machine}, layers learnt from", *(f"{figure:.3f}" for figure in (
        held["latency"][0], held["energy"][0], held["latency"][1], held["energy"][1])), "")]
    rows += [(f"{test.machine}, other layers", *(f"{figure:.3f}" for figure in (
        test.latency_error, test.energy_error, test.latency_rank, test.energy_rank, test.layer_rank)))
        for test in done.tests]
    print_listing(("Mappings held out", "Latency\nerror", "Energy\nerror", "Latency\nrank", "Energy\nrank",
                   "EDP rank\nin a layer"), rows, (1, 2, 3, 4, 5), screen)


def _count(text: str) -> int:
    try:
        count = int(float(text[:-1]) * SUFFIXES[text[-1]]) if text[-1:] in SUFFIXES else int(text)
    except (ValueError, OverflowError):
        count = 0
    if count < 1 or not text.isascii():
        raise InputError("--samples", "must be a positive number", text, "For example 100000, 100k or 1M")
    return count


def _widths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.strip().isdecimal() for part in parts):
        raise InputError("--hidden", "must be widths with commas between them", text, "For example 256,256,128")
    return tuple(int(part) for part in parts)

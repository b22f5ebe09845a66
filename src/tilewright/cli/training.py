"""``tilewright train-surrogate``: networks that stand for the cost model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.api.options import Tilings
from tilewright.base import InputError
from tilewright.cli.options import Arch, Json, console, say, write_json

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

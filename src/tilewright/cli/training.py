"""``tilewright train-surrogate``, ``-fuser``, ``-recommender``: networks that stand for the cost model, or a search."""

import threading
from typing import TYPE_CHECKING

import typer

import tilewright.api
from tilewright.api.training_options import FuserOptions, RecommenderOptions, SurrogateOptions, read_count
from tilewright.cli.conduct import deliver
from tilewright.cli.options import INTERRUPTED, Asked, Json, Page, console, ready, say, verb, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.api import TrainedSurrogate
    from tilewright.learn import Epoch


@verb(SurrogateOptions)
def train_surrogate(asked: Asked, json: Json = None) -> None:
    """Train a network to tell what mappings cost on one machine, for the mapper mind-mappings.

    Needs the extra learn (PyTorch). Shows the losses of every epoch, then errors (in powers of 2) and rank correlations
    on mappings it was not trained on. Use it by: tilewright map ... --mapper mind-mappings --option surrogate=FILE.
    """
    screen = console(json)

    def show(epoch: "Epoch") -> None:
        screen.print(f"epoch {epoch.epoch:>3}  loss {epoch.loss:.5f}  held out {epoch.held_out_loss:.5f}  "
                     f"{epoch.seconds:.1f} s", markup=False)

    done = tilewright.api.train_surrogate(**asked, progress=show)
    _show(done, screen)
    write_json(json, done.plain)
    say(screen, f"Written to {done.file}")


@verb(FuserOptions)
def train_fuser(asked: Asked, json: Json = None) -> None:
    """Train a model to fuse layers by micro-batches without a search, for the mapper dnnfuser.

    Needs the extra learn (PyTorch). Ends with a table: the speedup of what the model writes at every memory size, and
    the best proven one. Use it by: tilewright fuse ... --mapper dnnfuser --option model=FILE. Ctrl-C ends training
    after the present step, and keeps the model.
    """
    from tilewright.jobs import interruptible
    from tilewright.report import Bar, print_listing

    screen, stop, steps = console(json), threading.Event(), asked["steps"]
    with interruptible(stop), Bar("Searching for demonstrations") as bar:
        done = tilewright.api.train_fuser(
            **asked, progress=lambda step, loss: bar.show("steps", step, steps, f"loss {loss:.5f}"), stop=stop)
    screen.print(f"{done.demonstrations} strategies of {done.teacher} on {done.machine}: found in "
                 f"{done.showing_seconds:.1f} s, learnt in {done.training_seconds:.1f} s "
                 f"({len(done.losses)} steps, last loss {done.losses[-1]:.5f})", markup=False)
    print_listing(("Network", "Memory", "Shown", "Speedup", "Best\nproven", "Share"), [
        (test.network, f"{test.memory_bytes / 1e6:g} MB", "yes" if test.seen else "no", f"{test.speedup:.3f}",
         f"{test.best_speedup:.3f}", f"{100 * test.share:.1f} %") for test in done.tests], (1, 3, 4, 5), screen)
    write_json(json, done.plain)
    say(screen, f"Written to {done.file}")
    if stop.is_set():
        raise typer.Exit(INTERRUPTED)


@verb(RecommenderOptions)
def train_recommender(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Train a network to tell the best configuration of a reconfigurable array, for tilewright recommend --model.

    Needs the extra learn (PyTorch); --labels needs recommend (Polars). Ends with a table on products that the network
    has not seen, beside the one configuration that is best for all. Ctrl-C ends training after the present epoch, and
    keeps the network.
    """
    from tilewright.jobs import interruptible
    from tilewright.report import Bar

    ready(report, json)
    stop, count, epochs = threading.Event(), read_count(asked["samples"]), asked["epochs"]
    with interruptible(stop), Bar("Looking at every configuration") as bar:
        done = tilewright.api.train_recommender(
            **asked, labelled=lambda ready: bar.show("products", ready, count, ""), stop=stop,
            progress=lambda epoch: bar.show("epochs", epoch.epoch, epochs, f"held out {epoch.held_out_loss:.4f}"))
    deliver("train-recommender", done.sheet, done.plain, (report, json, None))
    say(console(json), f"Written to {done.file}")
    if stop.is_set():
        raise typer.Exit(INTERRUPTED)


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

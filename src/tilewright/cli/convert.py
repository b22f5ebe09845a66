"""``tilewright convert``: foreign files to ours, and ours to foreign ones."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tilewright.api
import tilewright.interop
import tilewright.mapping
from tilewright.base import InputError
from tilewright.cli.options import Bind, StorePlace, console, say, sizes
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped

if TYPE_CHECKING:
    from tilewright.interop import Foreign
    from tilewright.workload import Coverage

OURS = "tilewright"


def convert(
    sources: Annotated[list[str] | None, typer.Argument(
        metavar="[FILE...|RUN]", show_default=False,
        help="Foreign files that belong together (tilewright list formats); or, with --to, a run or a mapping file "
             "with --network and --arch. Nothing where --network or --arch alone is converted.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", show_default=False,
                                      help="Where the files are written.")] = Path("converted"),
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="What to make.")] = OURS,
    form: Annotated[str | None, typer.Option(
        "--from", metavar="FORMAT", show_default=False, help="What the files are; found by themselves.")] = None,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Refuse what cannot be honoured in full, instead of noting it (exit code 1 where nodes of a "
                         "network are not modelled).")] = False,
    layer: Layer = None,
    network: FileNetwork = None,
    arch: FileArch = None,
    bind: Bind = None,
    constraints: Annotated[str | None, typer.Option(
        "--constraints", metavar="FILE.yaml", show_default=False,
        help="A space file whose constraints are written too, where the format has them.")] = None,
    store: StorePlace = None,
) -> None:
    """Turn foreign files into ours, and networks, machines and mappings into foreign ones.

    What is dropped or approximated is told, with file and line.
    """
    what: Foreign
    if not sources or (form is None and to != OURS and _is_ours(sources)):
        what = _constrained(_given(sources, (network, layer, arch), bind, store), constraints)
    elif any(given is not None for given in (layer, network, arch, constraints)):
        raise InputError("--layer, --network, --arch, --constraints",
                         "must be left out with foreign files; these hold their own")
    else:
        what = tilewright.api.read_foreign(sources, form=form, bind=sizes(bind, "--bind"))
    if strict:
        _refuse_lost(what)
    made = tilewright.api.convert(what, to, strict=strict)
    screen = console(None)
    for path in made.write(out):
        say(screen, f"Wrote {path}")
    for note in (*what.notes, *made.notes):
        say(screen, note, style="yellow")
    known = _coverage(what)
    if known is not None:
        say(screen, f"Coverage: {known.figures}.")


def _coverage(what: "Foreign") -> "Coverage | None":
    from tilewright.workload import coverage

    return None if what.graph is None else coverage(what.graph)


def _refuse_lost(what: "Foreign") -> None:
    """Refuse what is not honoured in full; where nodes of a network are not modelled, say how much and end with 1."""
    known = _coverage(what)
    if known is None or known.complete:
        tilewright.interop.refuse_notes(what.notes)
        return
    screen = console(None)
    for note in what.notes:
        say(screen, note, style="yellow")
    say(screen, f"Coverage: {known.figures}. Nothing was written (--strict).")
    raise typer.Exit(1)


def _is_ours(sources: list[str]) -> bool:
    """Whether what is to be converted is a run or a mapping of ours."""
    if len(sources) > 1:
        return False
    return tilewright.interop.format_of(sources[0]) is None


def _given(sources: list[str] | None, what: tuple[str | None, str | None, str | None], bind: list[str] | None,
           store: str | None) -> "Foreign":
    from tilewright.interop import Foreign
    from tilewright.workload import Graph, MacNode

    network, layer, arch = what
    if sources:
        operator, accelerator, mapping = mapped(sources[0], what, bind, store)
        return Foreign(Graph(operator.name, (MacNode(operator),)), accelerator, {operator.name: mapping})
    if network is None and arch is None:
        raise InputError("FILE", "must be given, or --network or --arch")
    graph = None
    if network is not None and layer is not None:
        operator = tilewright.api.pick_operator(network, layer, sizes(bind, "--bind"))
        graph = Graph(operator.name, (MacNode(operator),))
    elif network is not None:
        graph = tilewright.api.load_network(network, sizes(bind, "--bind"))
    return Foreign(graph, tilewright.api.load_accelerator(arch) if arch is not None else None)


def _constrained(what: "Foreign", constraints: str | None) -> "Foreign":
    """Return what is converted with the constraints of a space file."""
    if constraints is None:
        return what
    operator, accelerator = what.operator, what.accelerator
    if operator is None or accelerator is None:
        raise InputError("--constraints", "must come with a layer and a machine",
                         "no layer" if operator is None else "no machine")
    return replace(what, constraints=tilewright.mapping.load_constraints(Path(constraints), operator, accelerator))

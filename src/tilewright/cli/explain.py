"""``tilewright explain``: why a count is what it is."""

from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
import tilewright.mapping
import tilewright.report
from tilewright.base import InputError
from tilewright.cli.options import Bind, Density, Precision, StorePlace, console, sizes
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped


def explain(
    source: Annotated[str, typer.Argument(
        metavar="RUN|MAPPING.yaml", show_default=False,
        help="A run (its JSON file, its identity, last), or a mapping file with --network and --arch, or a plan of "
             "fused groups and --group, or --layer.")],
    layer: Layer = None,
    group: Annotated[int | None, typer.Option(
        "--group", "-g", metavar="NUMBER", show_default=False,
        help="With a plan of fused groups, JSON or YAML: which group, as its page numbers them (in YAML its place, "
             "from 0). Its counts name what an operator makes by the operator: GLB.conv1.fills.")] = None,
    count: Annotated[str | None, typer.Option(
        "--count", "-c", metavar="MEMORY.TENSOR.KIND|latency|energy", show_default=False,
        help="Which count: GLB.I.reads, or by role, GLB.inputs.reads; kinds are reads, fills, updates, drains. "
             "latency: which port or loop sets the cycles, what stands next, and what twice the bandwidth or the lanes "
             "would give. energy: which memory and tensor. Without it, all counts are listed.")] = None,
    network: FileNetwork = None,
    arch: FileArch = None,
    bind: Bind = None,
    precision: Precision = "auto",
    density: Density = None,
    store: StorePlace = None,
) -> None:
    """Show why a memory moves as many words as it does, loop by loop; or what sets the latency, or the energy.

    What can be is checked by the oracle, if small.

    Where the machine makes use of zeros, also how many of the words are moved in the mean.
    """
    from tilewright.cost import DenseModel, FigureExplanation, left_of, sparse_cost
    from tilewright.cost import explain as derive
    from tilewright.report import print_listing

    if group is not None:
        _explain_group(source, group, (layer, density, store), (network, arch), bind, precision, count)
        return
    operator, accelerator, mapping = mapped(source, (network, layer, arch), bind, store, density, precision)
    sparse = sparse_cost(operator, accelerator, mapping)
    if count is not None:
        found = derive(operator, accelerator, mapping, count)
        left = "" if sparse is None or isinstance(found, FigureExplanation) else left_of(operator, sparse, found.count)
        print(f"{found.text()}\n\n{left}" if left else found.text())
        return
    counts = (sparse or DenseModel(operator, accelerator).cost(mapping)).counts
    means = {} if sparse is None else sparse.expected or {}
    rows = [(f"{memory}.{tensor}.{kind}", f"{getattr(number, kind):,}", *(
        [f"{getattr(means[memory, tensor], kind):,.6g}"] if means else []))
        for (memory, tensor), number in counts.items() for kind in ("reads", "fills", "updates", "drains")]
    heads = ("Count", "Words", *(["Moved in\nthe mean"] if means else []))
    print_listing(heads, rows, tuple(range(1, len(heads))), console())


def _explain_group(source: str, group: int, others: tuple[object, ...], target: tuple[str | None, str | None],
                   bind: list[str] | None, precision: str, count: str | None) -> None:
    """Show all counts of a group of a plan, or why one of them is what it is; the ``others`` must not be given."""
    for name, given in zip(("--layer", "--density", "--store"), others, strict=True):
        if given is not None:
            raise InputError(name, "must be left out with --group", str(given))
    planned = tilewright.api.plan_counts(source, group, target, sizes(bind, "--bind"))
    if planned is not None:
        if count is not None:
            print(planned.explain(count))
            return
        tilewright.report.print_listing(("Operators", "Count", planned.unit), [
            (name, words, f"{number:,.12g}") for name, words, number in planned.rows()], (2,), console())
        return
    if not tilewright.mapping.is_fused_file(Path(source)):
        raise InputError("--group", "must come with a plan of fused groups: what fuse wrote, or a file "
                         "with groups", source, "Write one with tilewright fuse --json")
    found = tilewright.api.fused_counts(source, group, target, bind=sizes(bind, "--bind"), precision=precision)
    if count is not None:
        print(found.explain(count).text())
        return
    rows = [(name, words, f"{number:,}") for name, words, number in found.rows()]
    tilewright.report.print_listing(("Operator", "Count", "Words"), rows, (2,), console())

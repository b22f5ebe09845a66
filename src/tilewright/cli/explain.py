"""``tilewright explain``: why a count is what it is."""

from typing import Annotated

import typer

from tilewright.cli.options import Bind, Density, Precision, StorePlace, console
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped


def explain(
    source: Annotated[str, typer.Argument(
        metavar="RUN|MAPPING.yaml", show_default=False,
        help="A run (its JSON file, its identity, last), or a mapping file, or one of fused groups and --layer, with "
             "--network and --arch.")],
    layer: Layer = None,
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

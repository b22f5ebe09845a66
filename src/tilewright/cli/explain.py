"""``tilewright explain``: why a count is what it is."""

from typing import Annotated

import typer

from tilewright.cli.options import Bind, StorePlace, console
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped


def explain(
    source: Annotated[str, typer.Argument(
        metavar="RUN|MAPPING.yaml", show_default=False,
        help="A run (its JSON file, its identity, last), or a mapping file with --network and --arch.")],
    layer: Layer = None,
    count: Annotated[str | None, typer.Option(
        "--count", "-c", metavar="MEMORY.TENSOR.KIND", show_default=False,
        help="Which count: GLB.I.reads, or by role, GLB.inputs.reads; kinds are reads, fills, updates, drains. "
             "Without it, all counts are listed.")] = None,
    network: FileNetwork = None,
    arch: FileArch = None,
    bind: Bind = None,
    store: StorePlace = None,
) -> None:
    """Show why a memory moves as many words as it does: the derivation loop by loop, checked by the oracle if small."""
    from tilewright.cost import DenseModel
    from tilewright.cost import explain as derive
    from tilewright.report import print_listing

    operator, accelerator, mapping = mapped(source, (network, layer, arch), bind, store)
    if count is not None:
        print(derive(operator, accelerator, mapping, count).text())
        return
    counts = DenseModel(operator, accelerator).cost(mapping).counts
    rows = [(f"{memory}.{tensor}.{kind}", f"{getattr(found, kind):,}") for (memory, tensor), found in counts.items()
            for kind in ("reads", "fills", "updates", "drains")]
    print_listing(("Count", "Words"), rows, (1,), console())

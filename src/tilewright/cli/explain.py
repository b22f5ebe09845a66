"""``tilewright explain``: why a count is what it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError, unknown_name
from tilewright.cli.options import Bind, StorePlace, console, sizes

if TYPE_CHECKING:
    from tilewright.hardware import Accelerator
    from tilewright.mapping import Mapping
    from tilewright.workload import Operator

    Mapped = tuple[Operator, Accelerator, Mapping]


def explain(
    source: Annotated[str, typer.Argument(
        metavar="RUN|MAPPING.yaml", show_default=False,
        help="A run (its JSON file, its identity, last), or a mapping file with --network and --arch.")],
    layer: Annotated[str | None, typer.Option(
        "--layer", "-l", show_default=False, help="The layer; may be left out where there is only one.")] = None,
    count: Annotated[str | None, typer.Option(
        "--count", "-c", metavar="MEMORY.TENSOR.KIND", show_default=False,
        help="Which count: GLB.I.reads, or by role, GLB.inputs.reads; kinds are reads, fills, updates, drains. "
             "Without it, all counts are listed.")] = None,
    network: Annotated[str | None, typer.Option(
        "--network", "-n", show_default=False, help="With a mapping file: the network or operator.")] = None,
    arch: Annotated[str | None, typer.Option(
        "--arch", "-a", show_default=False, help="With a mapping file: the accelerator.")] = None,
    bind: Bind = None,
    store: StorePlace = None,
) -> None:
    """Show why a memory moves as many words as it does: the derivation loop by loop, checked by the oracle if small."""
    from tilewright.cost import DenseModel
    from tilewright.cost import explain as derive
    from tilewright.report import print_listing

    if source.endswith((".yaml", ".yml")):
        operator, accelerator, mapping = _from_file(source, (network, layer, arch), sizes(bind, "--bind"))
    elif network is not None or arch is not None:
        raise InputError("--network, --arch", "must come with a mapping file; a run knows its own", source)
    else:
        operator, accelerator, mapping = _from_run(source, layer, store)
    if count is not None:
        print(derive(operator, accelerator, mapping, count).text())
        return
    counts = DenseModel(operator, accelerator).cost(mapping).counts
    rows = [(f"{memory}.{tensor}.{kind}", f"{getattr(found, kind):,}") for (memory, tensor), found in counts.items()
            for kind in ("reads", "fills", "updates", "drains")]
    print_listing(("Count", "Words"), rows, (1,), console())


def _from_file(path: str, what: tuple[str | None, str | None, str | None], bind: dict[str, int]) -> "Mapped":
    from tilewright.api import load_accelerator, load_mapping, pick_operator

    network, layer, arch = what
    if network is None or arch is None:
        raise InputError("--network" if network is None else "--arch", "must be given with a mapping file")
    operator, accelerator = pick_operator(network, layer, bind), load_accelerator(arch)
    return operator, accelerator, load_mapping(Path(path), operator, accelerator)


def _from_run(place: str, layer: str | None, store: str | None) -> "Mapped":
    from tilewright.api import open_run
    from tilewright.store import accelerator_of, mapping_of, operator_of

    run = open_run(place, store)
    names = [one.name for one in run.record.layers]
    if layer is None and len(names) == 1:
        layer = names[0]
    if layer is None:
        raise InputError("--layer", f"must be given, as the run has {len(names)} layers", None,
                         f"For example {', '.join(names[:3])}")
    if layer not in run.layers:
        raise unknown_name("layer of this run", layer, list(run.layers))
    found = run.layers[layer]
    return operator_of(found), accelerator_of(run.record.accelerator), mapping_of(found)

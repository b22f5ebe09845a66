"""Mappings that a verb is given: a layer of a run, a mapping file with its network and accelerator, or many cases."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tilewright.api
import tilewright.interop
import tilewright.mapping
from tilewright.base import InputError
from tilewright.cli.options import shares, sizes

if TYPE_CHECKING:
    from tilewright.hardware import Accelerator
    from tilewright.interop import Case
    from tilewright.mapping import Mapping
    from tilewright.workload import Operator

    Mapped = tuple[Operator, Accelerator, Mapping]

AUTO, MACHINE = "auto", "machine"
Layer = Annotated[str | None, typer.Option(
    "--layer", "-l", show_default=False, help="The layer; may be left out where there is only one.")]
FileNetwork = Annotated[str | None, typer.Option(
    "--network", "-n", show_default=False, help="With a mapping file: the network or operator.")]
FileArch = Annotated[str | None, typer.Option(
    "--arch", "-a", show_default=False, help="With a mapping file: the accelerator.")]


def mapped(source: str, what: tuple[str | None, str | None, str | None], bind: list[str] | None,
           store: str | None, density: list[str] | None = None, precision: str = MACHINE) -> "Mapped":
    """Return what ``source`` maps: a mapping file goes with ``what``, its network, layer and accelerator.

    ``density`` are densities of its tensors, ``precision`` which words they have. What cannot be found or read, or does
    not go together, is an `InputError`.
    """
    network, layer, arch = what
    if source.endswith((".yaml", ".yml")) or tilewright.mapping.is_fused_file(Path(source)):
        return _from_file(source, what, sizes(bind, "--bind"), shares(density), precision)
    if precision not in (AUTO, MACHINE):
        raise InputError("--precision", "must come with a mapping file; a run knows its own", source)
    if density:
        raise InputError("--density", "must come with a mapping file; a run knows its own", source)
    if network is not None or arch is not None:
        raise InputError("--network, --arch", "must come with a mapping file; a run knows its own", source)
    return _from_run(source, layer, store)


def _from_file(path: str, what: tuple[str | None, str | None, str | None], bind: dict[str, int | str],
               density: dict[str, str | float], precision: str) -> "Mapped":
    from tilewright.workload import with_given

    network, layer, arch = what
    if network is None or arch is None:
        raise InputError("--network" if network is None else "--arch", "must be given with a mapping file")
    if tilewright.mapping.is_fused_file(Path(path)):
        return tilewright.api.fused_nest(path, (network, layer, arch), bind=bind, precision=precision)
    accelerator = tilewright.api.load_accelerator(arch)
    operator = tilewright.api.pick_operator(network, layer, bind, arch=accelerator, precision=precision)
    if density:
        tilewright.api.refuse_density(accelerator, "--density")
    operator = with_given(operator, density)
    return operator, accelerator, tilewright.api.load_mapping(Path(path), operator, accelerator)


def _from_run(place: str, layer: str | None, store: str | None) -> "Mapped":
    from tilewright.store import accelerator_of, mapping_of, operator_of

    run = tilewright.api.open_run(place, store)
    names = [one.name for one in run.record.layers]
    if layer is None and len(names) == 1:
        layer = names[0]
    if layer is None:
        raise InputError("--layer", f"must be given, as the run has {len(names)} layers", None,
                         f"For example {', '.join(names[:3])}")
    found = run.layer(layer)
    return operator_of(found), accelerator_of(run.record.accelerator), mapping_of(found)


def run_cases(place: str, result: "Callable[[Case], dict[str, object]]") -> None:
    """Print one line of JSON for each case of a file (- is standard input), as soon as its result is known."""
    for where, line in tilewright.interop.case_lines(sys.stdin.buffer if place == "-" else Path(place)):
        case = tilewright.interop.parse_case(line, where)
        try:
            found = result(case)
        except InputError as error:
            raise InputError(f"{where}: {error.field}", error.rule, error.given, error.mend) from None
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

"""``tilewright evaluate``: one mapping of one's own, or a file of cases."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tilewright.api
import tilewright.cost
import tilewright.mapping
import tilewright.report
import tilewright.store
from tilewright.base import InputError
from tilewright.cli.conduct import deliver
from tilewright.cli.options import (
    Bind,
    Density,
    FootprintOption,
    Json,
    Precision,
    console,
    shares,
    sizes,
    tell_lost,
    write_json,
    write_text,
)
from tilewright.cli.sources import run_cases

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.api import Evaluation, FusedEvaluation
    from tilewright.hardware import Accelerator
    from tilewright.interop import Case
    from tilewright.mapping import Mapping
    from tilewright.workload import Operator

ILLEGAL = 1


def evaluate(
    mapping: Annotated[Path | None, typer.Argument(
        metavar="[MAPPING.yaml]", show_default=False,
        help="A mapping file, or one of fused groups; see docs/how-to.md. One of another tool goes with files of that "
             "tool as --arch.")] = None,
    network: Annotated[str | None, typer.Option(
        "--network", "-n", show_default=False, help="A network or an operator, as for tilewright map.")] = None,
    layer: Annotated[str | None, typer.Option(
        "--layer", "-l", show_default=False, help="Its layer; may be left out where there is only one.")] = None,
    arch: Annotated[str | None, typer.Option(
        "--arch", "-a", show_default=False, help="An accelerator: the name of a preset or a YAML file.")] = None,
    dataflow: Annotated[str | None, typer.Option(
        "--dataflow", show_default=False,
        help="Evaluate this fixed dataflow in place of a file; see: tilewright list dataflows.")] = None,
    repair: Annotated[bool, typer.Option(
        "--repair", help="Where the mapping is illegal, evaluate the nearest legal one in its place.")] = False,
    write: Annotated[str | None, typer.Option(
        "--write", metavar="FILE.yaml", show_default=False, help="Write the evaluated mapping; - is stdout.")] = None,
    footprint: FootprintOption = None,
    bind: Bind = None,
    precision: Precision = "auto",
    density: Density = None,
    json_file: Json = None,
    cases: Annotated[str | None, typer.Option(
        "--cases", metavar="FILE.jsonl", show_default=False,
        help="Instead of one mapping: operators, machines and mappings, one JSON object a line; prints one line of "
             "counts, cycles and energy for each. - is standard input.")] = None,
    reference: Annotated[bool, typer.Option(
        "--reference", help="With --cases: by the oracle, which walks the loops literally (small cases).")] = False,
    rounds: Annotated[bool, typer.Option(
        "--rounds", help="With --cases: cycles of a weight-stationary array that runs in rounds, as Gemmini "
                         "(docs/accuracy.md).")] = False,
) -> None:
    """Check a mapping and show what it costs, exactly: counts of every memory and tensor, cycles, energy.

    Exit code 1: the mapping is illegal; what is wrong is shown with the smallest change that would mend it.
    """
    from tilewright.workload import with_given

    if cases is not None:
        _run_cases(cases, (mapping, network, layer, arch, dataflow, write, json_file), reference, rounds)
        return
    if reference or rounds:
        raise InputError("--reference" if reference else "--rounds", "must come with --cases")
    saved = tilewright.api.fused_space_of(mapping) is not None
    if saved or tilewright.mapping.is_fused_file(mapping):
        assert mapping is not None
        others = {"--layer": layer, "--dataflow": dataflow, "--repair": repair or None, "--write": write,
                  "--footprint": footprint, "--density": density}
        raise typer.Exit(_fused(mapping, network, arch, others, {
            "bind": bind, "precision": precision, "json_file": json_file, "saved": saved}))
    together = None if dataflow is not None or mapping is None else tilewright.api.load_together(
        mapping, network, arch, layer)
    if together is not None:
        operator, accelerator, nest = together
        accelerator = tilewright.api.load_accelerator(accelerator, footprint)
    elif network is None or arch is None:
        raise InputError("--network" if network is None else "--arch", "must be given", None,
                         "For example --network resnet50 --layer conv1 --arch eyeriss")
    else:
        accelerator, nest = tilewright.api.load_target(arch, network, footprint)[0], None
        operator = tilewright.api.pick_operator(network, layer, sizes(bind, "--bind"), arch=accelerator,
                                                precision=precision)
    if density:
        tilewright.api.refuse_density(accelerator, "--density")
    found = _evaluated(nest or mapping, dataflow, with_given(operator, shares(density)), accelerator)
    screen = console("-" if "-" in (json_file, write) else None)
    if repair and not found.legal:
        found = _repaired(found, screen)
    if write is not None:
        write_text(write, tilewright.mapping.dump_mapping(found.mapping, found.operator, found.accelerator))
    if json_file is not None:
        write_text(json_file, _as_json(found))
    _print(found, screen)
    tell_lost(accelerator, screen)
    raise typer.Exit(0 if found.legal else ILLEGAL)


def _fused(plan: Path, network: str | None, arch: str | None, others: dict[str, Any], asked: dict[str, Any]) -> int:
    """Show what the fused groups of a plan cost; return the exit code. None of the ``others`` may be given."""
    for name, value in others.items():
        if value is not None:
            raise InputError(name, "must be left out with fused groups", str(value))
    if network is None or arch is None:
        raise InputError("--network" if network is None else "--arch", "must be given", None,
                         "A plan says what runs together, not on what: for example --network resnet18 --arch dnnfuser")
    if asked["saved"]:
        run = tilewright.api.evaluate_saved(plan, network, arch, sizes(asked["bind"], "--bind"))
        deliver("evaluate", run.sheet, run.plain, (None, asked["json_file"], None))
        return 0
    found = tilewright.api.evaluate_fused(plan, network, arch, bind=sizes(asked["bind"], "--bind"),
                                          precision=asked["precision"])
    screen = console(asked["json_file"])
    for each in found:
        _print_fused(each, screen)
    if asked["json_file"] is not None:
        costs = [each.cost for each in found if each.cost is not None]
        total = tilewright.cost.Totals.of((1, cost) for cost in costs)
        totals = {"latency_cycles": total.latency_cycles,
                  "energy_pj": total.energy_pj} if len(costs) == len(found) else None
        write_json(asked["json_file"], {"groups": [each.plain() for each in found], "totals": totals})
    return 0 if all(each.legal for each in found) else ILLEGAL


def _print_fused(found: "FusedEvaluation", screen: "Console") -> None:
    screen.print(str(found.mapping), markup=False, soft_wrap=True)
    for violation in found.violations:
        screen.print(f"Illegal: {violation}.", style="bold red", markup=False, soft_wrap=True)
    if found.cost is None:
        return
    for table in found.tables():
        screen.print(f"\n{table.title}", markup=False)
        numbers = [at for at in range(len(table.columns)) if any(not isinstance(row[at], str) for row in table.rows)]
        rows = [[cell if isinstance(cell, str) else f"{cell:,.10g}" for cell in row] for row in table.rows]
        tilewright.report.print_listing(table.columns, rows, numbers, screen)
    cost, energy = found.cost, tilewright.report.measured(found.cost.energy_pj, "pJ")
    screen.print(f"\n{cost.latency_cycles:,} cycles ({cost.steady_cycles:,} steady, {cost.ramp_cycles:,} ramp), "
                 f"{energy}, limited by {cost.bottleneck}; {100 * cost.utilisation:.1f} % of the compute units at work."
                 "\n", markup=False, soft_wrap=True)


def _evaluated(mapping: "Path | Mapping | None", dataflow: str | None, operator: "Operator",
               accelerator: "Accelerator") -> "Evaluation":
    if (mapping is None) == (dataflow is None):
        raise InputError("MAPPING", "must be given, or --dataflow in its place", None if mapping is None else "both",
                         "For example tilewright evaluate mine.yaml --network resnet50 --layer conv1 --arch eyeriss")
    source = tilewright.mapping.dataflow(dataflow, operator, accelerator) if dataflow is not None else mapping
    assert source is not None
    return tilewright.api.evaluate(source, operator, accelerator)


def _repaired(found: "Evaluation", screen: "Console") -> "Evaluation":
    cured = tilewright.mapping.repair(found.mapping, found.operator, found.accelerator)
    if cured is None:
        return found
    for violation in found.violations:
        screen.print(f"Repaired: {violation.message}.", style="yellow", markup=False, soft_wrap=True)
    return tilewright.api.evaluate(cured, found.operator, found.accelerator)


def _print(found: "Evaluation", screen: "Console") -> None:
    for violation in found.violations:
        screen.print(f"Illegal: {violation}.", style="bold red", markup=False, soft_wrap=True)
    if found.cost is None:
        return
    if not found.legal:
        screen.print("\nOn a machine that is large enough for it, it would be:\n", markup=False)
    tilewright.report.print_layer(found.record, screen, found.accelerator.frequency_mhz)


def _as_json(found: "Evaluation") -> str:
    wrong = [{name: getattr(violation, name) for name in ("kind", "level", "subject", "message", "mend")}
             for violation in found.violations]
    told = {"legal": found.legal, "violations": wrong,
            "layer": json.loads(tilewright.store.record_to_json(found.record))}
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def _run_cases(place: str, others: tuple[object, ...], reference: bool, rounds: bool) -> None:
    from dataclasses import asdict

    from tilewright.api import case_cost
    from tilewright.interop import case_result

    if any(given is not None for given in others):
        raise InputError("--cases", "must stand alone (or with --reference or --rounds)")
    if reference and rounds:
        raise InputError("--rounds", "must come without --reference, which has no such machine")

    def result(case: "Case") -> dict[str, object]:
        if rounds:
            found = tilewright.cost.round_latency(case.operator, case.accelerator, case.mapping)
            return {"id": case.id, **asdict(found), "bottleneck": found.bottleneck}
        return case_result(case.id, case_cost(case.operator, case.accelerator, case.mapping, reference=reference))

    run_cases(place, result)

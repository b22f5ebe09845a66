"""Figure 5.7 of the map-space study: every loop order of a mapping that Gamma found."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.mapping import dump_mapping, load_mapping
from tilewright.report import orders_plot
from tilewright.reproduce.claims import Judgement, judge, part_of
from tilewright.reproduce.mse_study import SearchSetup, bound, oracle_words, published, searches, space_of
from tilewright.reproduce.searching import oracle_cell, said
from tilewright.reproduce.study import Cell, Findings, Setting, Table, claims, reproduction
from tilewright.search.studies import OrderStudy, study_orders

MACHINE, NAME = "accel-b", "Resnet Conv_4"
VALUES, RATIO, ALL = 16, 14.4, 5_040
GAMMA, OURS = "Gamma", "our Gamma"

FEW, APART, OWN, BUCKETS = CLAIMS = claims("mse-fig5.7", FEW=VALUES / ALL, APART=RATIO, BUCKETS=ALL / VALUES)


@reproduction("mse-fig5.7", Setting("quick", 5, {"samples": 5_000}), Setting("full", 20, {"samples": 5_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search a mapping with every seed and try all orders of each."""
    space = space_of(NAME, MACHINE)
    found = searches(runner, [SearchSetup(NAME, title, "gamma", options, MACHINE)
                                for title, options in ((GAMMA, published()), (OURS, {}))], setting)
    runs = [(title, seed, value["mapping"]) for (_, title), tried in found.items()
            for seed, value in enumerate(tried.runs) if value["edp"] is not None]
    told = runner.run([_cell(title, seed, text) for title, seed, text in runs])
    checks = runner.run([oracle_cell({"workload": NAME, "orders of": seed}, space.operator, space.accelerator,
                                    each["mapping"]) for (_, seed, _), each in zip(runs, told, strict=True)])
    published_runs = [each for (title, _, _), each in zip(runs, told, strict=True) if title == GAMMA]
    rows = tuple((title, seed, each["groups"], each["latencies"], each["ratio"], each["own"] / each["best"],
                  100 * each["largest"] / ALL, each["best"], int(each["cycles"]), said(check))
                 for (title, seed, _), each, check in zip(runs, told, checks, strict=True))
    limits = bound(NAME, space.accelerator)
    table = Table("orders", f"All {ALL:,} orders of mappings of {NAME} on Accel-B", (
        "Found by", "Seed", "Different EDPs", "Different cycles", "Worst over best", "As found over best",
        "Largest group (%)", "EDP of the best order", "Its cycles", "Oracle"), rows, (
        f"No mapping has an EDP below {limits['edp']:.3g} pJ x cycles, or takes less than "
        f"{limits['compute_cycles']:,.0f} cycles. Oracle: on the best order.",
        f"The oracle confirms {sum(bool(check['agrees']) for check in checks)} of {len(checks)} mappings with the best "
        f"order, and {oracle_words(found).removeprefix('The oracle confirms ')}"))
    plots = tuple(orders_plot(_study(text), (f"orders-{place}", f"EDP of all {ALL:,} orders of a mapping by {title}"))
                  for place, (title, seed, text) in enumerate(runs) if seed == 0)
    return Findings((table, _groups(_study(runs[0][2]))), _judge(published_runs, [
        each for (title, _, _), each in zip(runs, told, strict=True) if title == OURS]), plots)


def _study(text: str) -> OrderStudy:
    space = space_of(NAME, MACHINE)
    return study_orders(space.operator, space.accelerator, load_mapping(text, space.operator, space.accelerator))


def _cell(title: str, seed: int, text: str) -> Cell:
    def compute() -> dict[str, Any]:
        space, found = space_of(NAME, MACHINE), _study(text)
        best = found.groups[0]
        return {"groups": len(found.groups), "latencies": found.latencies, "ratio": found.ratio, "own": found.own,
                "best": best.score, "cycles": best.latency_cycles, "largest": max(g.count for g in found.groups),
                "orders": found.orders, "mapping": dump_mapping(found.best_mapping, space.operator, space.accelerator)}

    return Cell({"orders of": title, "seed": seed, "mapping": text}, compute, ALL)


def _groups(found: OrderStudy) -> Table:
    rows = tuple((place + 1, group.score, group.score / found.groups[0].score, group.count, int(group.latency_cycles),
                  group.pattern) for place, group in enumerate(found.groups))
    return Table("groups", "Orders of equal EDP, first mapping", (
        "Group", "EDP", "Over best", "Orders", "Cycles", "Innermost loops, by memory"), rows, (
        "Innermost loops: of those that run more than once at the memory, the ones that some order of the group has "
        "innermost.",))


def _judge(runs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> tuple[Judgement, ...]:
    def told(name: str, end: str = "") -> str:
        values, own = ([each[name] for each in some] for some in (runs, ours))
        return (f"{median(values):.3g}{end} (from {min(values):.3g} to {max(values):.3g})"
                + (f"; ours {median(own):.3g}{end}" if own else ""))

    places = [1 - part_of(each["own"] / each["best"], each["ratio"]) for each in runs]
    return (
        judge(FEW, [each["groups"] / ALL for each in runs], told("groups")),
        judge(APART, [each["ratio"] for each in runs], told("ratio", "x")),
        judge(OWN, places, f"{median(places):.2f} (from {min(places):.2f})"),
        judge(BUCKETS, [each["largest"] for each in runs], told("largest")))

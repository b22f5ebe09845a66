"""Figure 2.6: how far random mappings of one layer, VGG16's second, are apart."""

from statistics import median
from typing import Any

import numpy as np

from tilewright.cost import DenseModel
from tilewright.jobs import Runner
from tilewright.mapping import MapSpace, dump_mapping
from tilewright.reproduce.claims import judge
from tilewright.reproduce.gamma_contest import PLATFORMS, convolutions, machine
from tilewright.reproduce.searching import bound_figures, oracle_cell
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction

LAYER = convolutions("vgg16")[1]
METRICS = {"latency": "cycles", "energy": "pJ", "power": "pJ / cycle"}
SPREAD = dict(zip(METRICS, claims("mse-fig2.6"), strict=True))
_SHOWN = 1_000


def _cell(platform: str, points: int, seed: int) -> Cell:
    accelerator = machine(platform, "s2")

    def compute() -> dict[str, Any]:
        space = MapSpace(LAYER.operator, accelerator)
        batch = space.fitting(np.random.default_rng(seed), points)
        costs = DenseModel(LAYER.operator, accelerator, batch.layout).score(batch)
        legal = costs.legal
        found = {"latency": costs.latency_cycles[legal], "energy": costs.energy_pj[legal]}
        found["power"] = found["energy"] / found["latency"]
        best = batch.mapping(int(np.flatnonzero(legal)[found["latency"].argmin()]), LAYER.operator.sizes)
        return {"range": {name: [float(values.min()), float(values.max())] for name, values in found.items()},
                "shown": {name: values[:_SHOWN].tolist() for name, values in found.items()} if seed == 0 else {},
                "legal_samples": int(legal.sum()), "mapping": dump_mapping(best, LAYER.operator, accelerator)}

    return Cell({"layer": LAYER.name, "machine": accelerator.name, "points": points, "seed": seed}, compute, points)


@reproduction("mse-fig2.6", Setting("quick", 3, {"points": 2_000}), Setting("full", 10, {"points": 20_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Draw mappings on both platforms with every seed."""
    found = {platform: runner.run([_cell(platform, setting["points"], seed) for seed in range(setting.seeds)])
             for platform in PLATFORMS}
    checks = runner.run([oracle_cell({"platform": platform}, LAYER.operator, machine(platform, "s2"),
                                    values[0]["mapping"]) for platform, values in found.items()])

    def ratios(platform: str, name: str) -> list[float]:
        return [value["range"][name][1] / value["range"][name][0] for value in found[platform]]

    judged = tuple(judge(claim, [max(each) for each in zip(*(ratios(platform, name) for platform in PLATFORMS),
                                                           strict=True)],
                         ", ".join(f"{platform} {median(ratios(platform, name)):.3g}x" for platform in PLATFORMS))
                   for name, claim in SPREAD.items())
    rows = tuple((platform, name, unit, *(median(value["range"][name][end] for value in found[platform])
                                          for end in (0, 1)), median(ratios(platform, name)),
                  bound_figures(LAYER.operator, machine(platform, "s2"))["compute_cycles"]
                  if name == "latency" else None, "agrees" if check["agrees"] else "disagrees")
                 for platform, check in zip(PLATFORMS, checks, strict=True) for name, unit in METRICS.items())
    table = Table("spread", f"Random mappings of VGG16 {LAYER.name} that fit, systems S2", (
        "Platform", "Metric", "Unit", "Best", "Worst", "Worst over best", "Bound", "Oracle"), rows, (
        "Medians over seeds. The figure names no machine. Its panel of areas is left out: a machine's area does not "
        "depend on the mapping here.",))
    plots = tuple(Plot(platform, f"{platform}: energy and latency of random mappings (figure 2.6 a)", [{
        "type": "scatter", "mode": "markers", "x": values[0]["shown"]["latency"], "y": values[0]["shown"]["energy"],
        "marker": {"size": 4, "color": "@curve-0"}}], {
            "xaxis": {"type": "log", "title": {"text": "cycles"}}, "yaxis": {"type": "log", "title": {"text": "pJ"}}})
        for platform, values in found.items())
    return Findings((table,), judged, plots)

"""What every reproduction must do: judge its claims by the one rule, so that each verdict can come out otherwise."""

import csv
import json
import math
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from statistics import NormalDist

import numpy as np
import pytest
from invented_cells import fixed_design, invented

from tilewright.base import has_extra
from tilewright.jobs import Runner
from tilewright.reproduce import REPRODUCTIONS, Setting, run_study
from tilewright.reproduce.flexion_isolation import Isolation
from tilewright.reproduce.ruby_table1 import KINDS, SIZES
from tilewright.store import results_in

NETWORK = {"learnt": 600, "layers": 3, "hidden": (16,), "epochs": 2}
SPARSE = {"samples": 300}
FEW_JOBS = {"samples": 40, "mappings": 12, "jobs": 5}
TAUGHT = {"steps": 3, "width": 8, "seconds": 0.1, "samples": 100, "lessons": 1}
TINY = {
    "confuciux-fig8.4": {"epochs": 16, "traffic": ("free",)},
    "confuciux-fig8.5": {"points": (400,), "traffic": ("free", "dram")},
    "confuciux-fig8.6": {"epochs": 40, "budgets": ("area=cloud",), "traffic": ("free",)},
    "confuciux-fig8.7": {"epochs": 40, "traffic": ("free",)},
    "confuciux-fig8.8": {"epochs": 3_600, "traffic": ("free",)},
    "confuciux-fig8.9": {"epochs": 16, "traffic": ("free",)},
    "confuciux-table8.3": {"epochs": 60, "networks": ("ncf",), "traffic": ("free",)},
    "confuciux-table8.4": {"epochs": 40, "budgets": ("area=cloud", "area=iot", "power=iotx"),
                           "traffic": ("free", "dram")},
    "confuciux-table8.5": {"epochs": 16, "networks": ("mobilenet-v2",), "budgets": ("area=iot",), "traffic": ("free",),
                           "methods": ("A2C", "A2C min", "Con'X", "Con'X min")},
    "confuciux-table8.6": {"epochs": 60, "networks": ("ncf",), "traffic": ("free",)},
    "confuciux-table8.7": {"epochs": 900, "networks": ("ncf",), "traffic": ("free",)},
    "confuciux-table8.8": {"epochs": 60, "networks": ("mobilenet-v2",), "traffic": ("free",)},
    "confuciux-table8.9": {"epochs": 40, "budgets": ("area=cloud",), "traffic": ("free",)},
    "digamma-fig6.6": {"samples": 40, "networks": ("ncf",), "traffic": ("free",), "rounds": 0},
    "digamma-fig6.7": {"samples": 40, "networks": ("ncf",), "traffic": ("free",), "rounds": 0},
    "digamma-fig6.8": {"samples": 34, "networks": ("mnasnet",), "traffic": ("free",), "rounds": 0},
    "dnnfuser-fig4": {"samples": 200},
    "dnnfuser-table1": {"samples": 60, "methods": ("DE", "G-Sampler")},
    "dnnfuser-table2": {**TAUGHT, "networks": ("vgg16",), "memories": (20, 25), "taught": ("vgg16",)},
    "dnnfuser-table3": {**TAUGHT, "networks": ("mnasnet",), "memories": (45, 55), "taught": ("mnasnet",)},
    "flat-tableA1": {"models": ("BERT", "T5"), "sequence": 512},
    "flat-figA2": {"models": ("TrXL",), "sequences": (512,)},
    "flat-figA3": {"models": ("BERT", "XLM"), "sequences": (512,)},
    "flat-figA7": {"buffers": (20e3,)},
    "flat-figA8": {"sequences": (512, 4096), "buffers": (20e3,)},
    "flat-figA9": {"sequences": (4096, 16384), "buffers": (20e6,)},
    "flat-figA10": {"sequences": (512,), "buffers": (512e3,)},
    "flat-figA11": {"sequences": (4096,), "buffers": (32e6,)},
    "flat-figA12": {"rooms": 4},
    "flat-figA13": {"sequences": (512, 65536)},
    "flat-figA14": {"models": ("BERT",), "sequences": (512, 65536)},
    "flat-figA15": {"sequences": (512, 4096, 65536)},
    "flexion-tile": {"samples": 64, "every": 12, "buffers": (1000, 6400, 25600)},
    "flexion-order": {"samples": 64, "every": 12},
    "flexion-parallelism": {"samples": 64, "every": 12},
    "flexion-shape": {"samples": 64, "every": 12, "sides": (8, 16, 32)},
    "flexion-future": {"samples": 64, "every": 20, "designs": 300, "rivals": 2, "dram": (32,)},
    "gamma-fig4.4": {"samples": 40, "every": 11},
    "gamma-fig4.5": {"samples": 40, "every": 11},
    "gamma-fig4.6": {"samples": 200},
    "gamma-table4.5": {"samples": 400, "every": 12, "networks": ("shufflenet-v2", "resnet50")},
    "gamma-fig4.7": {"samples": 10_000, "every": 25, "networks": ("shufflenet-v2",)},
    "gamma-table4.6": {"samples": 200, "every": 1, "platforms": ("cloud",)},
    "magma-fig7.6": {"samples": 12, "every": 30},
    "magma-fig7.7": {**FEW_JOBS, "tasks": ("recom",)},
    "magma-fig7.8": {**FEW_JOBS, "tasks": ("mix",)},
    "magma-fig7.9": {**FEW_JOBS, "systems": ("s2",)},
    "magma-fig7.10": FEW_JOBS,
    "magma-fig7.11": {**FEW_JOBS, "tasks": ("recom",)},
    "magma-fig7.12": FEW_JOBS,
    "magma-fig7.13": {**FEW_JOBS, "sizes": (1, 2, 5)},
    "magma-table7.4": {**FEW_JOBS, "tasks": ("recom",), "systems": ("s2",)},
    "mse-fig2.6": {"points": 200},
    "mse-fig5.3": {"samples": 200, "seconds": 0.02, "ours": 1, "descent": {"starts": 8, "steps": 4}, **NETWORK},
    "mse-fig5.4": {"samples": 300, "points": 200, **NETWORK},
    "mse-fig5.5": {"samples": 100, "workloads": 1},
    "mse-fig5.6": {"samples": 100, "workloads": 1},
    "mse-fig5.7": {"samples": 300},
    "mse-fig5.9": {"samples": 60, "networks": ("vgg16", "mnasnet")},
    "mse-fig5.11": {"samples": 60, "networks": ("vgg16", "mnasnet")},
    "mse-table5.2": {"layers": ("conv4",), **SPARSE},
    "mse-table5.3": {"layers": ("attn",), **SPARSE},
    "mse-table5.4": {"layers": ("conv3",), **SPARSE},
    "ruby-fig4": {"samples": 10_000},
    "ruby-fig7": {"samples": 200, "panels": ("a", "b", "b1", "c", "d")},
    "ruby-fig8": {"step": 100, "last": 100},
    "ruby-fig9": {"mappers": ("gamma",), "samples": 2_000},
    "spm-table7.1": {"sizes": (32,)},
    **{f"spm-fig7.{at}": {"sizes": (32, 128)} for at in (1, 2, 3, 4)},
    **{f"spm-fig4.{at}": {"graphs": 6} for at in (2, 3)},
    "spm-fig5.4": {"kilobytes": 32, "networks": ("LeNet5", "Minerva")},
    "spm-fig5.5": {"sizes": (32,), "networks": ("LeNet5", "Minerva")},
    "onsram-static": {"networks": ("lenet5",)},
    "sagar-fig3": {},
    "sagar-fig7": {},
    "sagar-fig11": {},
    "sagar-fig12": {},
    "sagar-fig13": {},
    "sagar-fig14": {},
    "ruby-fig10": {"mappers": ("gamma",), "samples": 500, "every": 7},
    "ruby-fig11": {"mappers": ("gamma",), "samples": 500, "every": 17},
    "ruby-fig12": {"mappers": ("gamma",), "samples": 500, "every": 23},
    "ruby-fig13": {"mappers": ("gamma",), "samples": 300, "every": 9, "arrays": ((2, 7), (14, 12))},
    "ruby-fig14": {"mappers": ("gamma",), "samples": 300, "every": 9, "arrays": ((2, 7), (14, 12))},
    "sagar-fig7e": {"samples": 1_500, "epochs": 1, "other_samples": 1_500, "other_epochs": 1,
                    "learners": ("fixed", "xgboost", "mlp-a", "adaptnet")},
    "sagar-fig8": {"samples": 1_500, "epochs": 1, "arrays": (2**8,)},
    "sagar-fig9": {"multipliers": (256, 512, 1024)},
    "sagar-table2": {"size": 2048},
    "ruby-table1": {"sizes": (3, 64, 100, 1000, 4096)},
}
SMALLER = {
    "confuciux-fig8.8": {"epochs": 1_800},
    "flat-figA8": {"sequences": (512, 1024)},
    "flat-figA9": {"sequences": (4096, 8192)},
    "flat-figA15": {"sequences": (512, 4096)},
    "flexion-tile": {"samples": 16, "every": 52},
    "flexion-order": {"samples": 16, "every": 52},
    "flexion-parallelism": {"samples": 16, "every": 52},
    "flexion-shape": {"samples": 16, "every": 52},
    "gamma-fig4.4": {"every": 25},
    "gamma-fig4.5": {"every": 25},
    "gamma-table4.5": {"every": 25},
    "gamma-table4.6": {"samples": 60, "every": 6},
    "mse-fig5.4": {"samples": 100, "points": 60, "learnt": 200},
    "mse-fig5.9": {"samples": 20},
    "mse-fig5.11": {"samples": 20},
    "mse-table5.4": {"samples": 30},
    "ruby-fig13": {"every": 20},
    "ruby-fig14": {"every": 20},
    "sagar-fig8": {"samples": 500},
    "sagar-fig7e": {"learners": ("fixed", "mlp-a", "adaptnet")},
}
"""What a run needs less of, where verdicts need not turn."""
COUNTED = {
    "flexion-tile": (["holds", "holds", "does not hold"], "+3.67 %"),
    "flexion-order": (["holds", "does not hold"], ""),
    "flexion-parallelism": (["holds", "does not hold"], "MnasNet FullFlex1111 0.0004"),
    "flexion-shape": (["holds", "holds in direction"], "48x16 folds layer 15 1.00 times"),
}
"""Verdicts and a figure that do not depend on searches: those of the first claims, and what the notes tell."""
SLOW = {"confuciux-table8.5", "digamma-fig6.8", "dnnfuser-table3", "flat-figA9", "flexion-future", "gamma-fig4.5",
        "gamma-table4.5", "mse-fig5.3", "mse-table5.3", "magma-fig7.8", "magma-fig7.9", "magma-fig7.10",
        "magma-fig7.11", "ruby-fig11", "ruby-fig12", "ruby-fig14"}
"""What takes long, and, of the figures whose cells one function makes, those that differ in their data alone or whose
verdicts are turned by default."""
EVERY = pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
                                         for name in TINY])
QUICK = {"ruby-table1", "ruby-fig4", "ruby-fig8", "ruby-fig9", "ruby-fig10", "gamma-fig4.6", "gamma-fig4.7",
         "mse-fig2.6", "onsram-static", *(name for name in TINY if name.startswith("spm-"))}
INVENTED = [name for name in TINY if name.split("-")[0] in ("flexion", "gamma", "mse", "ruby") and name not in QUICK]
"""Their results are made up (`invented_cells`), so that nothing is searched to turn their verdicts."""
TURNED = pytest.mark.parametrize("name", [name if name in {*QUICK, *INVENTED} - {"flexion-future"} else pytest.param(
    name, marks=pytest.mark.slow) for name in TINY])
"""All studies are turned in the long run; these take part of a second or few."""
FEW_DENSITIES = 1.0, 0.5, 0.1, 0.05
"""Those that claims of table 5.4 are judged at, of eleven."""
LEFT_OUT = "standard GA", "portfolio", "TBPSA", "DE", "(1+1)-ES"
"""Baselines that a tiny run does without: they are run as the others are."""
NEEDS_LEARN = {"mse-fig5.3", "dnnfuser-table2", "dnnfuser-table3", "sagar-fig7e", "sagar-fig8",
               *(name for name in TINY if name.startswith("confuciux"))}
NEEDS_RL = {"confuciux-table8.3", "confuciux-table8.5"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all tests keep their cells, so that none is computed twice."""
    return tmp_path_factory.mktemp("studies")


def tiny(name, seeds=1):
    return Setting("tiny", seeds, TINY[name])


def few_densities(monkeypatch):
    """Let table 5.4 be of four densities."""
    from tilewright.reproduce import mse_sparse

    places = [mse_sparse.TESTED.index(density) for density in FEW_DENSITIES]
    monkeypatch.setattr(mse_sparse, "PUBLISHED", {
        layer: tuple(tuple(column[place] for place in places) for column in columns)
        for layer, columns in mse_sparse.PUBLISHED.items()})
    for name in ("TESTED", "OURS"):
        monkeypatch.setattr(mse_sparse, name, FEW_DENSITIES)


def require_extras(name):
    if name in NEEDS_LEARN:
        pytest.importorskip("torch")
    if name in NEEDS_RL:
        pytest.importorskip("sb3_contrib")


def test_every_study_has_a_tiny_run_here():
    assert set(TINY) == set(REPRODUCTIONS)


@EVERY
def test_a_tiny_run_judges_every_claim_and_writes_what_parses(name, folder, monkeypatch):
    from tilewright.reproduce import gamma_contest, mse_sparse, sagar_advice, write_reproduction

    require_extras(name)
    for label in LEFT_OUT:
        monkeypatch.delitem(gamma_contest.BASELINES, label)
    monkeypatch.setattr(mse_sparse, "LARGEST_TWIN", 500)
    monkeypatch.setattr(mse_sparse, "SAMPLES", 4)
    monkeypatch.setattr(sagar_advice, "STARTS", 2)
    few_densities(monkeypatch)
    setting = Setting("tiny", 1, TINY[name] | SMALLER.get(name, {}))
    outcome = run_study(name, setting, out=folder)
    study, found = outcome.study, outcome.findings
    assert [judged.claim for judged in found.judgements] == list(study.claims)
    assert all(judged.reached is not None or judged.verdict in ("not judged", "impossible as published")
               for judged in found.judgements)
    if name in COUNTED:
        verdicts, figure = COUNTED[name]
        assert [judged.verdict for judged in found.judgements][:len(verdicts)] == verdicts
        assert figure in json.dumps([found.notes, *(table.notes for table in found.tables)])
    if name in ("flexion-order", "flexion-parallelism"):
        assert found.judgements[-1].verdict == "impossible as published"
    data = json.loads(outcome.file("json").read_text(), parse_constant=pytest.fail)
    assert data["reproduction"] == name
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        with outcome.file(f"{table.name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) == len(table.rows) + 1
    told = json.dumps([data["tables"], data["notes"]])
    assert "agree" in told or "oracle confirms" in told.lower()
    assert "disagrees" not in told
    assert write_reproduction(outcome).stat().st_size > 500_000  # the plots, with what draws them
    again = run_study(name, setting, out=folder)
    assert again.computed_cells == 0
    assert json.dumps(again.plain["judgements"]) == json.dumps(outcome.plain["judgements"])


KEPT = {"samples", "legal_samples", "complete", "agrees", "macs", "scale", "features", "explained", "orders", "network",
        "seconds", "cpu_seconds", "ranks", "loss", "layer_rank", "shown", "mapping", "from", "lenders", "machine"}
"""Entries of cells that are no results."""
SHARES = {"near", "first", "last", "utilisation"}
NORMAL = NormalDist()


class Altered(Runner):
    """Gives back the cells of a real run, or invented ones, with other results: what parts of a key are worth is drawn.

    Seeds differ little from one another.
    """

    def __init__(self, study, kept, folder, real, scenario):
        super().__init__(study, folder=folder)
        self.kept = kept
        self.real, self.scenario = real, scenario
        self.scale = (0.0, 0.02, 0.1, 0.5, 2.0, 8.0)[scenario % 6]
        self.failing = study in ("gamma-fig4.4", "gamma-fig4.5") and scenario % 3 == 1

    def worth(self, *part):
        drawn = blake2b(repr((self.scenario, *part)).encode(), digest_size=4).digest()
        return NORMAL.inv_cdf((int.from_bytes(drawn) + 0.5) / 2**32)  # a generator each would take most of the time

    def run(self, cells):
        return [self.altered(cell) for cell in cells]

    def altered(self, cell):
        if "oracle" in cell.key:
            return {"agrees": True, "macs": 1, "scale": 1.0}
        if "oracles" in cell.key:
            return {"dense": True, "ratio": 1.0, "agrees": True, "macs": 1}
        cell = replace(cell, key={**cell.key, "seed": 0}) if "seed" in cell.key else cell
        key = json.dumps(cell.key, sort_keys=True)
        if key not in self.real:
            found = invented(cell.key) if self.kept is None else self.kept.take([cell.key])[0]
            self.real[key] = found or json.loads(json.dumps(cell.function()))
        if "space" in cell.key and self.scenario % 4 == 1:  # sizes of spaces as they were published
            kind = next(kind for kind in KINDS if kind.name == cell.key["space"])
            return dict.fromkeys(self.real[key], kind.published[SIZES.index(cell.key["size"])])
        whole = sum(self.worth(name, value) for name, value in cell.key.items() if name not in ("seed", "samples"))
        whole += (0.05, 1.0)[self.scenario // 6 % 2] * self.worth(str(cell.key))
        if self.failing and "flow" not in cell.key and "mapping" in self.real[key] and whole > 1.0:
            return {"edp": None, "latency_cycles": None, "samples": 40, "legal_samples": 0}
        return self.change(self.real[key], (), whole)

    def change(self, value, path, whole):
        if isinstance(value, dict):
            kept = KEPT if self.kept else KEPT - {"seconds"}
            return {name: each if name in kept else self.change(each, (*path, name), whole)
                    for name, each in value.items()}
        if isinstance(value, list):
            if path and path[-1] in ("history", "times"):
                steep, late = self.scale * abs(self.worth("steep")), (0.1, 1.0, 10.0)[self.scenario % 3]
                last = value[-1][0]
                stretch = 9_999 / last if self.scenario % 3 == 2 else 1.0  # found late instead of early
                return [[at * stretch, self.change(score, (*path[:-1], "edp"), whole)
                         * math.exp(steep * (1 - (at / last) ** late))] for at, score in value]
            fixed = len(path) == 2 and path[0] == "layers"  # an allocation's style, before elements and filters
            return [each if fixed and not place else self.change(each, (*path, place), whole)
                    for place, each in enumerate(value)]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        if path[-1] in SHARES:
            return min(1.0, max(0.0, abs(whole + self.worth(*path))))
        little = path[0] == "layers" and path[1] % 3 == 1 and self.scenario % 4 == 2  # depthwise, of MobileNet-V2
        shift = self.scale * (whole + sum(self.worth(part) for part in path))
        if path[0] == "gflops":  # of MAGMA's studies, which judge ratios of methods within a cell
            shift += 0.3 * self.scale * self.worth(whole, *path)
        return value * 1e-3 if little else value * math.exp(min(200.0, max(-200.0, shift)))


def patched(monkeypatch, watch):
    """Let what is counted and not searched for come out otherwise too: bounds, spaces, folds."""
    from tilewright.reproduce import (
        confuciux_figures,
        flexion_axes,
        flexion_future,
        flexion_isolation,
        flexion_tile,
        gamma_contest,
        gamma_fig4_4,
        gamma_table4_6,
        mse_operators,
        mse_sparse,
    )

    turn = watch.scenario % 4
    factor = (1.0, 1e-9, 1e9, 1.0)[turn]
    monkeypatch.setattr(gamma_contest, "bound_figures", lambda *_: {"compute_cycles": factor, "energy_pj": factor})
    monkeypatch.setattr(gamma_table4_6, "layer_bound", lambda *_: factor)
    monkeypatch.setattr(mse_sparse, "bound_edp", lambda *_: factor * 1e4)
    monkeypatch.setattr(gamma_fig4_4, "spread", lambda _: set("PQKC" if turn == 1 else ""))
    found, styles = confuciux_figures.contours, confuciux_figures.styles_of
    rng = np.random.default_rng(watch.scenario)
    monkeypatch.setattr(confuciux_figures, "contours", lambda *given: {
        one: np.full_like(rows, rows.min()) if turn == 1 else rows * np.exp(turn * rng.standard_normal(rows.shape))
        for one, rows in found(*given).items()})
    last = confuciux_figures.last
    monkeypatch.setattr(confuciux_figures, "last", lambda run: 1.0 if turn == 3 else last(run))
    early = ["eyeriss"] * 26 + ["nvdla"] * 26
    monkeypatch.setattr(confuciux_figures, "styles_of", lambda run: (styles(run), early, early[::-1])[min(turn, 2)])
    real = Isolation.bound
    monkeypatch.setattr(Isolation, "bound", lambda *given: real(*given) * factor)
    flexions, folds = Isolation.flexions, flexion_axes.folds

    def printed(self, target, name="MnasNet"):
        row = next((row for row in self.published if (row.layer, row.target) == (name, target)), None)
        ours = flexions(self, target, name)
        return (row.hardware or ours[0], row.workload or ours[1]) if row and turn == 1 else tuple(
            value * (1 + abs(watch.worth(target, name)) * (turn == 2)) for value in ours)

    monkeypatch.setattr(Isolation, "flexions", printed)
    monkeypatch.setattr(flexion_axes, "folds", lambda *given: folds(*given) * (
        1 if turn < 2 else 1 + abs(watch.worth(*given))))
    if turn == 1:
        runtimes = {(row.layer, row.target): row.runtime for row in flexion_isolation.printed_rows("S")}
        monkeypatch.setattr(flexion_axes, "_least", lambda layer, target: (
            runtimes[layer, target] * folds(flexion_axes._parallel(layer), (32, 32)), (32, 32)))
    if watch.kept is None:  # invented mappings are none, and what is counted of them is only shown
        monkeypatch.setattr(flexion_axes, "_unusual", lambda *_: Counter())
        monkeypatch.setattr(flexion_future, "load_accelerator", fixed_design)
        for module, names in ((flexion_isolation, ("_chosen",)), (flexion_tile, ("_formal_table",)),
                              (mse_operators, ("_order_study", "_groups", "orders_plot"))):
            for name in names:
                monkeypatch.setattr(module, name, lambda *_: None)


SCENARIOS = 240
DETERMINED = {
    "A layer's tiles are all combinations of extents from 1 to its sizes",
    "The averages are those of the printed table", "The ranges of the text are those of the printed table",
    "The range of the text is that of the printed table", "A looser budget gives no worse figures",
    "Tables 8.3, 8.4, 8.6 and 8.7 print the same figure for the same search", "Geometric means of the printed rows",
    "Gains of the text follow from the printed rows", "The gains of the text are those of the printed designs",
    "Printed shares of area are those of the printed elements",
    "No printed latency is below what so many elements allow",
    "Every job moves the weights of its layer", "Recommendations run at 194 GFLOP/s on 16 GB/s",
    "60 jobs on 4 cores have O(1e81) plans", "Factors of the text follow from the table",
    "16,384 units at 1 GHz make 32.768 TOPS", "SAGAR takes 3.5 times less power than distributed arrays",
    "SAGAR takes 3.2 times less area than distributed arrays", "SIGMA of SAGAR's area has 2,734 units",
    "Every machine has a megabyte a buffer and 16,384 units",
    "So does what one epoch gives", "Speedups without DMA follow from its shares",
    "Mean speedups over sizes agree with those of single sizes",
    "Speedups without DMA follow from boundness as section 6.2 prints it, (total - DMA) / total",
    "LSTM gains more than VGG over all sizes", "All networks gain at least 40 % with 32 KB",
    "AdaptNetX with 512 multipliers runs AdaptNet in 576 cycles",
    "1,024 multipliers of systolic cells take 1,134 cycles", "512 multipliers are best",
    "How much of each operand a dataflow moves", "What bypass links carry",
    "XLM at 64 K tokens on cloud gains what the text says", "Energy ratios fall with the sequence in every printed row",
}
"""Counted from the definition, or from what is printed (`test_printed_figures`), alone: no result of a run enters."""


@TURNED
def test_results_can_turn_every_verdict(name, request, tmp_path, monkeypatch):
    require_extras(name)
    monkeypatch.setattr("tilewright.reproduce.mse_fig5_3.ENOUGH", 1)
    few_densities(monkeypatch)
    study, setting = REPRODUCTIONS.get(name), tiny(name, 2)
    owner = REPRODUCTIONS.get(study.cells) if study.cells else study
    if name in INVENTED:
        folder, cells = tmp_path, nullcontext()
        setting = replace(setting, values=TINY[name] | SMALLER.get(name, {}))
    else:
        folder = request.getfixturevalue("folder") / owner.name
        run_study(name, tiny(name), out=folder.parent)
        cells = results_in(folder, owner.name, owner.version)
    seen = {claim: set() for claim in study.claims if claim.text not in DETERMINED}
    with cells as kept:
        real = {}
        for scenario in count():
            watch = Altered(name, kept, folder, real, scenario)
            with monkeypatch.context() as patch:
                patched(patch, watch)
                for judged in study.run(setting, watch).judgements:
                    if judged.claim in seen:
                        seen[judged.claim].add(judged.verdict)
            left = {claim.text: sorted(verdicts) for claim, verdicts in seen.items() if not turned(verdicts)}
            if not left or scenario == SCENARIOS:
                break
    assert not left


def turned(verdicts):
    """Whether a claim came out so and otherwise."""
    no = {"does not hold", "impossible as published"} & verdicts
    unable = verdicts == {"not judged"} and not (has_extra("learn") and has_extra("optimizers"))
    return unable or bool("holds" in verdicts and no)

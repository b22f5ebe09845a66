"""Figure 5.3 of the map-space study: three kinds of mapper at equal samples and at equal time, seen machine and not."""

import base64
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tilewright.base import has_extra
from tilewright.hardware import preset
from tilewright.jobs import Runner
from tilewright.mapping import MapSpace, dump_mapping
from tilewright.report import finite
from tilewright.reproduce.claims import Judgement, judge, lower, part_of
from tilewright.reproduce.mse_study import bound, space_of, workload
from tilewright.reproduce.searching import (
    SeededSearch,
    Tried,
    confirmed,
    mapping_counted,
    median_curve,
    play,
    said,
)
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction
from tilewright.search import Budget, Watch, search

WORKLOADS = ("Resnet Conv_4", "Inception Conv_2")
"""Of table 5.1. The text names the first alone."""
SEEN, UNSEEN = "accel-a", "accel-b"
RANDOM, GAMMA, MIND, OURS, RETRAINED = (
    "random-pruned", "gamma", "mind-mappings", "gradient (ours)", "mind-mappings, trained on accel-b")
PUBLISHED = (RANDOM, GAMMA, MIND)
EARLY = 200
"""Samples of Gamma's first generation."""
FEW = 100
ENOUGH = 1_000_000
QUICK_NETWORK = {"learnt": 20_000, "layers": 20, "hidden": (128, 64), "epochs": 5}
FULL_NETWORK = {"learnt": ENOUGH, "layers": 256, "hidden": (256, 256, 128), "epochs": 10}
PANELS = tuple((machine, name) for machine in (SEEN, UNSEEN) for name in WORKLOADS)

SLOWEST, FASTER, OVERTAKEN, NO_EDGE, SLOWER, TIED_TO, RECOVERS = CLAIMS = claims("mse-fig5.3")


@dataclass(frozen=True)
class Network:
    """A surrogate: the machine it was trained on, how (as plain data), and the file that it is in."""

    machine: str
    terms: Mapping[str, Any]
    file: Path
    told: Mapping[str, Any]


def trained(runner: Runner, setting: Setting, machine: str) -> Network:
    """Train a network on a machine, and put it into a file."""
    terms = {"train": machine, "samples": setting["learnt"], "layers": setting["layers"],
             "hidden": list(setting["hidden"]), "epochs": setting["epochs"], "tiling": "perfect"}
    (value,) = runner.run([Cell(terms, lambda: _train(terms), setting["learnt"])])
    file = runner.folder / f"{setting.name}-{machine}.pt"
    file.write_bytes(base64.b64decode(value["network"]))
    return Network(machine, terms, file, value)


def _train(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Train one network; its file as text, its errors, and how it does on layers and machines it has not seen."""
    from tilewright.learn import TrainingOptions  # noqa: PLC0415  (PyTorch loads late)
    from tilewright.search.surrogate import assess, draw_samples, random_convolutions, train_surrogate  # noqa: PLC0415

    began, machine = time.process_time(), preset(terms["train"])
    rng = np.random.default_rng(0)
    samples = draw_samples(random_convolutions(terms["layers"], rng), machine, terms["samples"], rng,
                           tiling=terms["tiling"], threads=2)
    options = TrainingOptions(tuple(terms["hidden"]), terms["epochs"])
    surrogate, result = train_surrogate(samples, options, threads=2)
    seconds = time.process_time() - began
    unseen = random_convolutions(4, np.random.default_rng(1))
    tests = {name: assess(surrogate, unseen, preset(name), 0) for name in (SEEN, UNSEEN)}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "network.pt"
        surrogate.save(file, {"machine": machine.name, **terms})
        text = base64.b64encode(file.read_bytes()).decode()
    return {"network": text, "cpu_seconds": seconds,
            "ranks": list(result.ranks), "loss": result.curve[-1].held_out_loss,
            "layer_rank": {name: test.layer_rank for name, test in tests.items()}}


@dataclass(frozen=True)
class _Method:
    """A mapper by the name that it has here; ``chosen`` are options of it."""

    label: str
    mapper: str
    network: Network | None = None
    chosen: Mapping[str, object] = field(default_factory=dict)

    def options(self, *, timed: bool) -> dict[str, object]:
        """Return its options; where samples count, random search draws few at a time, to be seen between."""
        if self.network is not None:
            return {"surrogate": str(self.network.file)}
        return {"batch": FEW} if self.mapper == "random-pruned" and not timed else dict(self.chosen)


def methods_of(networks: Mapping[str, Network], machine: str, setting: Setting) -> list[_Method]:
    """Return the mappers of one panel: the three, ours, and on the unseen machine that with a network of its own."""
    found = [_Method(RANDOM, "random-pruned"), _Method(GAMMA, "gamma"), _Method(MIND, "mind-mappings", networks[SEEN]),
             _Method(OURS, "gradient", chosen=setting.values.get("descent", {}))]
    return [*found, _Method(RETRAINED, "mind-mappings", networks[UNSEEN])] if machine == UNSEEN else found


def _search(space: MapSpace, method: _Method, budget: Budget, seed: int) -> dict[str, Any]:
    found = search(space.operator, space.accelerator, mapper=method.mapper, budget=budget, seed=seed, space=space,
                   options=method.options(timed=budget.samples is None), watch=Watch(threads=1))
    known = {"samples": found.samples, "seconds": found.seconds, "edp": None, "latency_cycles": None,
             "history": [[step.samples, step.score] for step in found.history],
             "times": [[step.seconds, step.score] for step in found.history]}
    if found.mapping is None or found.cost is None:
        return known
    return {**known, "edp": found.cost.edp, "latency_cycles": found.cost.latency_cycles,
            "mapping": dump_mapping(found.mapping, space.operator, space.accelerator)}


_Sought = tuple[tuple[str, str], _Method]
"""A panel, by its machine and its workload, and a mapper."""


@dataclass(frozen=True)
class Panel:
    """What one panel of the figure shows: for each method the searches at equal samples, and at equal time."""

    machine: str
    workload: str
    sampled: Mapping[str, Tried[_Sought]]
    timed: Mapping[str, Tried[_Sought]]

    def at(self, seed: int) -> "Panel":
        """Return the panel of one seed alone."""
        one, timed = ({label: tried.at(seed) for label, tried in of.items()} for of in (self.sampled, self.timed))
        return replace(self, sampled=one, timed=timed)

    def edp(self, label: str, at: int | None = None) -> float:
        """Median EDP at equal samples, or that after ``at`` samples."""
        if at is None:
            return float(median(self.sampled[label].scores))
        found = median_curve([run["history"] for run in self.sampled[label].runs], [at])[0]
        return math.inf if found is None else found

    def edp_in_time(self, label: str) -> float:
        """Median EDP at equal time."""
        return float(median(self.timed[label].scores))

    def pace(self, label: str) -> float:
        """Median seconds per sample at equal time."""
        return float(median(run["seconds"] / max(1, run["samples"]) for run in self.timed[label].runs))


def measure(runner: Runner, setting: Setting, networks: Mapping[str, Network]) -> list[Panel]:
    """Search all panels at equal samples side by side, then at equal time one after the other."""
    def cells(budget: int | float, asked: _Sought) -> list[Cell]:
        (machine, name), method = asked
        return [_cell(budget, machine, name, method, seed)
                for seed in range(setting["ours"] if method.label == OURS else setting.seeds)]

    def case(asked: _Sought) -> SeededSearch:
        (machine, name), _ = asked
        key = {"workload": name, "machine": machine}
        return SeededSearch(cells(setting["samples"], asked), mapping_counted(key, workload(name), preset(machine)))

    every = [(panel, method) for panel in PANELS for method in methods_of(networks, panel[0], setting)]
    sampled = play(runner, every, case)
    # Alone on the machine, so that the clock is fair.
    timed = [Tried(asked, [runner.run([cell])[0] for cell in cells(float(setting["seconds"]), asked)], None)
             for asked in every if asked[1].label != RETRAINED]
    return [Panel(*panel, *({tried.of[1].label: tried for tried in found if tried.of[0] == panel}
                            for found in (sampled, timed))) for panel in PANELS]


def _cell(budget: int | float, machine: str, name: str, method: _Method, seed: int) -> Cell:
    space = space_of(name, machine)
    timed = isinstance(budget, float)
    spent = Budget(seconds=budget) if timed else Budget(samples=int(budget))
    key = {"machine": machine, "workload": name, "method": method.label, "seed": seed,
           "seconds" if timed else "samples": budget, "options": dict(method.chosen),
           "network": dict(method.network.terms) if method.network else None}
    return Cell(key, lambda: _search(space, method, spent, seed), 0 if timed else int(budget))


@reproduction("mse-fig5.3", Setting("quick", 3, {"samples": 5_000, "seconds": 0.2, "ours": 1, **QUICK_NETWORK}),
              Setting("full", 10, {"samples": 5_000, "seconds": 1.0, "ours": 10, **FULL_NETWORK}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Train, search and judge."""
    if not has_extra("learn"):
        note = "Not measured: the extra learn (PyTorch) is not installed."
        judged = tuple(Judgement(claim, "not measured", "not judged", note) for claim in CLAIMS)
        return Findings((Table("scores", "Figure 5.3", ("Panel",), (), (note,)),), judged)
    networks = {machine: trained(runner, setting, machine) for machine in (SEEN, UNSEEN)}
    panels = measure(runner, setting, networks)
    tables = (_scores(panels), _times(panels, setting), _networks(networks))
    plots = tuple(plot for panel in panels for plot in _plots(panel, setting))
    notes = ("The paper gives no figures, only curves; its search took 20 s for what takes ours well under one, as our "
             "cost model scores tens of millions of mappings a second: equal time is "
             f"{setting['seconds']:g} s here.",
             "Only Resnet Conv_4 is named in the text; Inception Conv_2 of table 5.1 is taken as the second workload.",
             "Steps on networks and on relaxed models are not counted as samples, as in the paper; training is not "
             "counted either.")
    return Findings(tables, _judged(panels, setting["learnt"]), plots, notes)


def _judged(panels: Sequence[Panel], learnt: int) -> tuple[Judgement, ...]:
    seeds = [[panel.at(seed) for panel in panels] for seed in range(len(panels[0].sampled[RANDOM].runs))]
    return (
        judge(SLOWEST, [lower((p.edp(other), p.edp(RANDOM)) for p in _on(one, SEEN) for other in (GAMMA, MIND))
                        for one in seeds], _ratios(_on(panels, SEEN), lambda p, label: p.edp(label))),
        judge(FASTER, [lower((p.edp(MIND, EARLY), p.edp(other, EARLY)) for p in _on(one, SEEN)
                             for other in (GAMMA, RANDOM)) for one in seeds],
              _ratios(_on(panels, SEEN), lambda p, label: p.edp(label, EARLY))),
        judge(OVERTAKEN, [lower((p.edp(GAMMA), p.edp(MIND)) for p in _on(one, SEEN)) for one in seeds],
              ", ".join(f"{p.workload} {p.edp(MIND) / p.edp(GAMMA):.2f}x Gamma's" for p in _on(panels, SEEN))),
        judge(NO_EDGE, [lower((p.edp_in_time(RANDOM), p.edp_in_time(other)) for p in one for other in (GAMMA, MIND))
                        for one in seeds], _ratios(panels, lambda p, label: p.edp_in_time(label))),
        judge(SLOWER, [min(_paces(one).values()) for one in seeds],
              ", ".join(f"{label} {pace:.1f}x" for label, pace in _paces(panels).items())),
        judge(TIED_TO, [lower(zip(_apart(one, SEEN), _apart(one, UNSEEN), strict=True)) for one in seeds],
              ", ".join(f"{name} {a:.2f}x Gamma's on Accel-A, {b:.2f}x on Accel-B" for name, a, b in zip(
                  WORKLOADS, _apart(panels, SEEN), _apart(panels, UNSEEN), strict=True))),
        _recovers(panels, seeds, learnt))


def _on(panels: Sequence[Panel], machine: str) -> list[Panel]:
    return [panel for panel in panels if panel.machine == machine]


def _paces(panels: Sequence[Panel]) -> dict[str, float]:
    return {label: median(panel.pace(label) / panel.pace(RANDOM) for panel in panels) for label in (GAMMA, MIND)}


def _apart(panels: Sequence[Panel], machine: str, label: str = MIND) -> list[float]:
    """Return a surrogate's EDP over Gamma's, by workload."""
    return [panel.edp(label) / panel.edp(GAMMA) for panel in _on(panels, machine)]


def _recovers(panels: Sequence[Panel], seeds: Sequence[Sequence[Panel]], learnt: int) -> Judgement:
    if learnt < ENOUGH:
        return Judgement(RECOVERS, "not measured", "not judged", f"the networks learnt from {learnt:,} mappings")

    def part(one: Sequence[Panel]) -> float:
        seen, unseen, again = (geometric_mean(_apart(one, *where)) for where in (
            (SEEN,), (UNSEEN,), (UNSEEN, RETRAINED)))
        return part_of(again / unseen, seen / unseen)

    told = ", ".join(f"{p.workload} {p.edp(RETRAINED) / p.edp(MIND):.2f}x" for p in _on(panels, UNSEEN))
    return judge(RECOVERS, [part(one) for one in seeds], told)


def _ratios(panels: Sequence[Panel], score: Callable[[Panel, str], float]) -> str:
    parts = []
    for panel in panels:
        scores = {label: score(panel, label) for label in PUBLISHED}
        least = min(scores.values())
        told = ", ".join(f"{label} {each / least:.2f}" if each < math.inf else f"{label} none"
                         for label, each in scores.items())
        parts.append(f"{panel.workload} on {panel.machine}: {told}")
    return "; ".join(parts)


def _scores(panels: Sequence[Panel]) -> Table:
    found = [(panel, label, tried) for panel in panels for label, tried in panel.sampled.items() if tried.median]
    rows = []
    for panel, label, tried in found:
        limits = bound(panel.workload, preset(panel.machine))
        at = [finite(panel.edp(label, count)) for count in (EARLY, 1000)]
        rows.append((panel.workload, panel.machine, label, limits["edp"], *at, panel.edp(label),
                     panel.edp(label) / panel.edp(GAMMA), int(tried["latency_cycles"]), int(limits["compute_cycles"]),
                     said(tried.oracle)))
    agreed, asked, _ = confirmed(tried for _, _, tried in found)
    return Table("samples", "EDP at equal samples (figure 5.3, top; the paper prints no figures)", (
        "Workload", "Machine", "Mapper", "EDP bound", f"EDP after {EARLY}", "after 1000", "after all", "over Gamma",
        "Cycles", "Compute bound (cycles)", "Oracle"), tuple(rows), (
        "Medians over seeds, in pJ x cycles.", f"The oracle confirms {agreed} of {asked} mappings."))


def _times(panels: Sequence[Panel], setting: Setting) -> Table:
    rows = tuple((panel.workload, panel.machine, label, finite(panel.edp_in_time(label)),
                  finite(panel.edp_in_time(label) / min(map(panel.edp_in_time, PUBLISHED))),
                  int(median(run["samples"] for run in tried.runs)), panel.pace(label) * 1e6)
                 for panel in panels for label, tried in panel.timed.items())
    return Table("time", f"EDP at equal time, {setting['seconds']:g} s (figure 5.3, bottom)", (
        "Workload", "Machine", "Mapper", "EDP", "over the best of the three", "Samples", "us per sample"), rows,
        ("One search at a time, on one thread; the clock of this machine.",))


def _networks(networks: Mapping[str, Network]) -> Table:
    rows = tuple((machine, network.terms["samples"], network.terms["layers"], network.told["cpu_seconds"],
                  *network.told["ranks"], network.told["layer_rank"][SEEN], network.told["layer_rank"][UNSEEN])
                 for machine, network in networks.items())
    return Table("networks", "The networks", (
        "Trained on", "Samples", "Layers", "CPU seconds", "Rank of latency", "Rank of energy",
        "Rank of EDP in a layer, Accel-A", "on Accel-B"), rows, (
        "Rank correlations on mappings held out; the last two on layers that were not in training.",))


def _plots(panel: Panel, setting: Setting) -> list[Plot]:
    base = f"{panel.workload} on {panel.machine}".lower().replace(" ", "-").replace("_", "")
    limit = bound(panel.workload, preset(panel.machine))["edp"]
    samples = np.unique(np.geomspace(10, setting["samples"], 60).astype(int)).tolist()
    seconds = np.geomspace(setting["seconds"] / 100, setting["seconds"], 60).tolist()
    kinds = (("samples", "Mappings scored", samples, panel.sampled, "history"),
             ("seconds", "Seconds", seconds, panel.timed, "times"))
    found = []
    for kind, title, at, searches, curve in kinds:
        data: list[dict[str, Any]] = [
            {"type": "scatter", "mode": "lines", "name": label, "x": at, "line": {"color": f"@curve-{place}"},
             "y": median_curve([run[curve] for run in tried.runs], at)}
            for place, (label, tried) in enumerate(searches.items())]
        data.append({"type": "scatter", "mode": "lines", "name": "bound", "x": [at[0], at[-1]], "y": [limit, limit],
                     "line": {"color": "@muted", "dash": "dot"}})
        layout = {"xaxis": {"title": {"text": title}, "type": "log"},
                  "yaxis": {"title": {"text": "EDP (pJ x cycles)"}, "type": "log"}}
        found.append(Plot(f"{base}-{kind}", f"{panel.workload} on {panel.machine}, by {kind}", data, layout))
    return found

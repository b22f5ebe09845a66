"""Searches for the same layers in several map spaces at equal samples, and what came of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from tilewright.cost import network_sum
from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import Constraints, MapSpace, dataflow_constraints, padded
from tilewright.reproduce.searching import bound_figures, median_run, oracle_cell, search_cell
from tilewright.reproduce.study import Cell, Plot, Table, Value
from tilewright.workload import Operator, unique_operators, zoo

Restrict = Callable[[Operator, Accelerator], Constraints]

TILINGS = {"perfect": "perfect", "padding": "perfect", "ruby-s": "ruby-s", "ruby-t": "ruby-t", "ruby": "ruby"}
"""By strategy: the tiling of its space. ``padding`` is perfect tiling of a padded operator."""
RANDOM = "random-pruned"
PUBLISHED: dict[str, Any] = {"dividing": 0.0, "stall": 3_000, "walkers": 24, "batch": 240}
"""How the paper's mapper searches (section IV): at random, without a leaning to whole factors, until 3,000 valid
mappings in a row do not improve EDP, on 24 threads, each of which ends so, as Timeloop's do."""
LONGEST = 3_000_000
"""Mappings at which such a search is broken off; few come near."""


@dataclass(frozen=True)
class Layer:
    """A distinct layer of a network, and how often it occurs."""

    network: str
    name: str
    count: int
    operator: Operator


@dataclass(frozen=True)
class Match:
    """One strategy on one layer: its space, who searches it, and for how long."""

    layer: Layer
    machine: Accelerator
    strategy: str
    flow: str
    mapper: str
    samples: int
    objective: str = "edp"

    @property
    def space(self) -> MapSpace:
        """The space that is searched."""
        operator = self.layer.operator
        if self.strategy == "padding":
            operator = padded(operator, self.machine, FLOWS[self.flow](operator, self.machine), to="side")
        return MapSpace(operator, self.machine, TILINGS[self.strategy],  # type: ignore[arg-type]
                        FLOWS[self.flow](operator, self.machine))

    @property
    def key(self) -> dict[str, object]:
        """What tells its cells apart."""
        return {"network": self.layer.network, "layer": self.layer.name, "machine": self.machine.name,
                "strategy": self.strategy, "flow": self.flow}


@dataclass(frozen=True)
class Entry:
    """What came of a match: the median run over seeds (None where most found nothing), checked by the oracle."""

    match: Match
    median: Mapping[str, Any] | None
    oracle: Mapping[str, Any] | None
    runs: tuple[Mapping[str, Any], ...] = ()

    def __getitem__(self, name: str) -> float:
        return math.inf if self.median is None else float(self.median[name])

    def at(self, seed: int) -> "Entry":
        """Return what came of one seed (of the one there is, for what is not searched)."""
        run = self.runs[seed % len(self.runs)]
        return replace(self, median=run if run["edp"] is not None else None)


def network_layers(*networks: str, every: int = 1) -> list[Layer]:
    """Return the distinct layers of zoo networks, or every so manieth."""
    found = [Layer(network, unique.operator.name, unique.count, unique.operator)
             for network in networks for unique in unique_operators(zoo.load(network))]
    return found[::every]


def play(runner: Runner, matches: Sequence[Match], seeds: int, figure: str = "edp") -> list[Entry]:
    """Search every match with every seed, take the runs of median ``figure``, and have the oracle count each."""
    spaces = [match.space for match in matches]
    cells = [search_cell(match.key, space, mapper=match.mapper, seed=seed, objective=match.objective,
                         **({"samples": LONGEST, "options": PUBLISHED} if match.mapper == RANDOM else
                            {"samples": match.samples}))
             for match, space in zip(matches, spaces, strict=True) for seed in range(seeds)]
    values = runner.run(cells)
    medians = [median_run(values[at:at + seeds], figure) for at in range(0, len(values), seeds)]
    checks: dict[int, Cell] = {
        index: oracle_cell(matches[index].key, spaces[index].operator, spaces[index].accelerator, median["mapping"])
        for index, median in enumerate(medians) if median is not None}
    told = dict(zip(checks, runner.run(list(checks.values())), strict=True))
    return [Entry(match, median, told.get(index), tuple(values[index * seeds:(index + 1) * seeds]))
            for index, (match, median) in enumerate(zip(matches, medians, strict=True))]


Rows = list[tuple[Entry, Entry]]
"""Perfect tiling and Ruby-S, layer by layer."""


def by_seed(rows: Rows) -> list[Rows]:
    """Return the same for every seed alone."""
    return [[(perfect.at(seed), ruby.at(seed)) for perfect, ruby in rows] for seed in range(len(rows[0][0].runs))]


def free(operator: Operator, machine: Accelerator) -> Constraints:
    """Leave everything open."""
    return Constraints()


def row_stationary(operator: Operator, machine: Accelerator) -> Constraints:
    """Keep to row-stationary data flow, as the paper's Eyeriss-like baseline (section IV.A)."""
    return dataflow_constraints("row-stationary", operator, machine)


def channels_across(operator: Operator, machine: Accelerator) -> Constraints:
    """Spread only output channels (M) and input channels (C) over arrays, as figures 7 c, d and Simba do.

    In arrays inside elements, units along X hold different outputs, and lanes along Y sum up inputs.
    """
    outputs, inputs = _channels(operator)
    loops = {f"{machine.fanouts[0].name}.X": (*outputs, *inputs)}
    for fanout in machine.fanouts[1:]:
        loops |= {f"{fanout.name}.X": outputs, f"{fanout.name}.Y": inputs}
    return Constraints(loops=loops)


def _channels(operator: Operator) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the dimensions of outputs and weights alone, and of inputs and weights alone that do not slide."""
    inputs, weights = operator.operands
    sliding = {d for tensor in operator.tensors for axis in tensor.axes if len(axis.terms) > 1 for d in axis.dimensions}
    out = tuple(d for d in operator.sizes if d in operator.output.dimensions and d in weights.dimensions
                and d not in inputs.dimensions)
    into = tuple(d for d in operator.sizes if d not in operator.output.dimensions and d not in sliding)
    return out, into


def one_across(operator: Operator, machine: Accelerator) -> Constraints:
    """Spread one dimension only, the largest (of equals the first)."""
    largest = max(operator.sizes, key=lambda d: operator.sizes[d])
    return Constraints(loops={f"{machine.fanouts[0].name}.X": (largest,)})


FLOWS: dict[str, Restrict] = {
    "free": free, "one": one_across, "row-stationary": row_stationary, "channels": channels_across}


def oracle_word(entries: Iterable[Entry]) -> str:
    """Return what the oracle said about a number of entries, for a note below a table."""
    told = [entry.oracle for entry in entries if entry.oracle is not None]
    whole = sum(check["scale"] == 1 for check in told)
    agree = sum(bool(check["agrees"]) for check in told)
    return (f"The oracle confirms {agree} of the {len(told)} mappings behind these medians, {whole} walked whole and "
            f"{len(told) - whole} as scaled-down twins.")


def layer_table(name: str, title: str, rows: Sequence[tuple[Entry, Entry]], notes: tuple[str, ...] = ()) -> Table:
    """Return the table of a contest: perfect tiling against Ruby-S by layer, with what nothing can beat."""
    columns = ("Layer", "Times", "EDP bound", "EDP perfect", "EDP Ruby-S", "Ruby-S / perfect: EDP", "energy", "cycles",
               "Compute bound (cycles)", "Data bound (cycles)", "Cycles Ruby-S", "Use perfect (%)", "Use Ruby-S (%)",
               "Oracle")
    lines: list[tuple[Value, ...]] = []
    for perfect, ruby in rows:
        layer, machine = perfect.match.layer, perfect.match.machine
        bound = bound_figures(layer.operator, machine, perfect.match.space.constraints.keeps)
        lines.append((
            layer.name, layer.count, bound["edp"], perfect["edp"], ruby["edp"], ruby["edp"] / perfect["edp"],
            ruby["energy_pj"] / perfect["energy_pj"], ruby["latency_cycles"] / perfect["latency_cycles"],
            int(bound["compute_cycles"]), int(bound["data_cycles"]), _whole(ruby["latency_cycles"]),
            100 * perfect["utilisation"], 100 * ruby["utilisation"], _agreed(perfect, ruby)))
    entries = [entry for pair in rows for entry in pair]
    return Table(name, title, columns, tuple(lines), (
        *notes, "EDP in pJ x cycles; figures are those of the median run. " + oracle_word(entries)))


def _whole(value: float) -> Value:
    return int(value) if math.isfinite(value) else None


def _agreed(*entries: Entry) -> str:
    told = [entry.oracle for entry in entries]
    if any(check is None for check in told):
        return "nothing found"
    if not all(check["agrees"] for check in told if check):
        return "disagrees"
    return "agrees" if all(check["scale"] == 1 for check in told if check) else "agrees (twin)"


def total(entries: Iterable[Entry], name: str) -> float:
    """Return a figure of the whole network: energy or cycles added up, or for EDP the product of both sums."""
    entries = list(entries)
    if name == "edp":
        return total(entries, "energy_pj") * total(entries, "latency_cycles")
    found: float = network_sum((entry.match.layer.count, entry[name]) for entry in entries)
    return found


def ratio(rows: Sequence[tuple[Entry, Entry]], name: str) -> float:
    """Return Ruby-S over perfect for the whole network."""
    return total((ruby for _, ruby in rows), name) / total((perfect for perfect, _ in rows), name)


def mean_ratio(rows: Sequence[tuple[Entry, Entry]], name: str = "edp") -> float:
    """Return the geometric mean over layers of Ruby-S over perfect."""
    return geometric_mean(ruby[name] / perfect[name] for perfect, ruby in rows)


def worse(rows: Sequence[tuple[Entry, Entry]], name: str = "edp") -> list[str]:
    """Return the layers where the median of Ruby-S is above that of perfect tiling, the worst first."""
    lost = [(ruby[name] / perfect[name], perfect.match.layer.name) for perfect, ruby in rows
            if ruby[name] > perfect[name] * (1 + 1e-9)]
    return [f"{layer} {change(times)}" for times, layer in sorted(lost, reverse=True)]


def change(value: float) -> str:
    """Return a ratio as a change in percent, for example ``-14.2 %``."""
    return f"{100 * (value - 1):+.1f} %"


def best_ratio(rows: Sequence[tuple[Entry, Entry]], name: str = "edp") -> float:
    """Return the least of all layers' Ruby-S over perfect."""
    return min(ruby[name] / perfect[name] for perfect, ruby in rows)


def not_worse(rows: Sequence[tuple[Entry, Entry]], name: str = "edp") -> float:
    """Return the share of layers where Ruby-S is not above perfect tiling."""
    return 1 - len(worse(rows, name)) / len(rows)


def ratio_plot(name: str, title: str, rows: Sequence[tuple[Entry, Entry]], note: str = "") -> Plot:
    """Return bars of Ruby-S over perfect tiling by layer: EDP, energy and cycles."""
    labels = [perfect.match.layer.name for perfect, _ in rows]
    parts = (("EDP", "edp", "@curve-0"), ("energy", "energy_pj", "@curve-1"), ("cycles", "latency_cycles", "@curve-2"))
    data = [{"type": "bar", "name": text, "x": list(range(len(rows))), "marker": {"color": colour},
             "y": [ruby[figure] / perfect[figure] for perfect, ruby in rows], "customdata": labels,
             "hovertemplate": "%{customdata}: %{y:.3f}<extra>" + text + "</extra>"} for text, figure, colour in parts]
    data.append({"type": "scatter", "mode": "lines", "name": "perfect tiling", "x": [-0.5, len(rows) - 0.5],
                 "y": [1, 1], "line": {"color": "@strong", "dash": "dash"}, "hoverinfo": "skip"})
    return Plot(name, title, data, {
        "barmode": "group", "yaxis": {"title": {"text": "Ruby-S / perfect"}, "rangemode": "tozero"},
        "xaxis": {"tickvals": list(range(len(rows))), "ticktext": labels, "tickangle": -50}}, note)

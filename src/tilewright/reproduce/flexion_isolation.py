"""What the studies of single axes have in common: machines, searches at equal samples, tables of figures 3.7 on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from tilewright.base import digest
from tilewright.codesign import with_flexibility
from tilewright.cost import network_sum
from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import dump_mapping, extents_at, flexible_machine, flexion, load_mapping
from tilewright.report import venn, venn_plot
from tilewright.reproduce.claims import Claim, Judgement, judge
from tilewright.reproduce.searching import (
    Layer,
    SeededSearch,
    Tried,
    bound_figures,
    by_seed,
    confirmed,
    costs,
    mapping_counted,
    network_layers,
    play,
)
from tilewright.reproduce.study import Cell, Plot, Setting, Table, Value, published_cells
from tilewright.search import Watch, search_flexible
from tilewright.workload import Operator, convolution, depthwise

MODEL = "MnasNet"
ALONE = {"T": ("tile", "1000"), "O": ("order", "0100"), "P": ("parallelism", "0010"), "S": ("shape", "0001")}
"""By letter of an axis its field of a machine's flexibility, and the class of machines flexible on it alone."""


@dataclass(frozen=True)
class Target:
    """A machine under study, by the name that the paper gives it."""

    name: str
    machine: Accelerator


def axis_targets(base: Accelerator, axis: str, full: object, **partial: object) -> tuple[Target, ...]:
    """Return the machines of a study of one axis, from ``base``, which is inflexible.

    Each has another flexibility on that axis: ``partial`` ones by what their name ends in (``_`` for nothing), then
    ``full``; the last one is flexible on all axes.
    """
    field, bits = ALONE[axis]
    assert base.flexibility is not None
    return (Target(f"InFlex{bits}", base),
            *(Target(f"PartFlex{bits}{end.strip('_')}", with_flexibility(base, None, **{field: choice}))
              for end, choice in partial.items()),
            Target(f"FullFlex{bits}", with_flexibility(base, None, **{field: full})),
            Target("FullFlex1111", with_flexibility(base, base.flexibility.of_class("1111"))))


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table in the paper: runtime, energy and EDP relative to InFlex, the Flexions, and what was chosen."""

    layer: str
    target: str
    runtime: float
    energy: float
    edp: float
    hardware: float | None
    workload: float | None
    chosen: str


def printed_rows(axis: str) -> tuple[PublishedRow, ...]:
    """Return the rows of the paper's table of an axis."""
    return tuple(PublishedRow(layer, target, float(runtime), float(energy), float(edp),
                              float(hardware) if hardware else None, float(workload) if workload else None, chosen)
                 for layer, target, runtime, energy, edp, hardware, workload, chosen
                 in published_cells(f"flexion-{ALONE[axis][0]}")[1:])


@dataclass(frozen=True)
class OnTarget:
    """A layer to be searched on a machine."""

    target: Target
    layer: Layer


# Layers of MnasNet as the tables write them: K, C, Y, X, R, S. Layer 29 is depthwise: K = 1.
WRITTEN = {1: (32, 3, 224, 224, 3, 3), 10: (72, 24, 56, 56, 1, 1), 15: (40, 72, 28, 28, 1, 1),
           16: (120, 40, 28, 28, 1, 1), 21: (40, 120, 28, 28, 1, 1), 25: (480, 80, 14, 14, 1, 1),
           29: (1, 480, 14, 14, 5, 5)}
Results = dict[tuple[str, str], Tried[OnTarget]]
"""By machine and layer."""


def conv(k: int, c: int, y: int, x: int, r: int, s: int) -> Operator:  # noqa: PLR0913, PLR0917  (the paper's six)
    """Return the layer that the paper writes as (K, C, Y, X, R, S), of stride 1; Y and X are of the output."""
    return convolution(f"({k},{c},{y},{x},{r},{s})", in_channels=c, out_channels=k, in_size=(y + r - 1, x + s - 1),
                       kernel=(r, s))


def shown_layers(*numbers: int) -> tuple[tuple[Layer, ...], dict[str, Operator]]:
    """Return layers of the tables as they are searched (depthwise ones as such), and as they are written."""
    layers, written = [], {}
    for number in numbers:
        name, sizes = f"Layer {number}", WRITTEN[number]
        written[name] = conv(*sizes)
        k, c, y, x, r, s = sizes
        window = {"in_size": (y + r - 1, x + s - 1), "kernel": (r, s)}
        operator = depthwise(name, channels=c, **window) if k == 1 else written[name]  # type: ignore[arg-type]
        layers.append(Layer(MODEL, name, 1, operator))
    return tuple(layers), written


@dataclass(frozen=True)
class Isolation:
    """A study of one axis, and what was found.

    Parameters
    ----------
    targets
        The machines, the base that others are compared with first.
    layers, model
        Those that the paper shows one by one (``written``: as it writes them, for the Flexions), and the network.
    published
        The rows of its table.
    chosen
        Shows what a mapping chose on this axis.
    results
        The searches of all layers on all machines, once they are `searched`.
    """

    axis: str
    targets: tuple[Target, ...]
    layers: tuple[Layer, ...]
    written: Mapping[str, Operator]
    model: tuple[Layer, ...]
    published: tuple[PublishedRow, ...]
    chosen: Callable[[Nest, Operator], str]
    results: Results = field(default_factory=dict)

    @classmethod
    def of(cls, axis: str, targets: tuple[Target, ...], numbers: tuple[int, ...], every: int,
           chosen: Callable[[Nest, Operator], str]) -> "Isolation":
        """Return the study of machines on the layers of these numbers, and on every so manieth of the network."""
        layers, written = shown_layers(*numbers)
        return cls(axis, targets, layers, written, tuple(network_layers("mnasnet", every=every)),
                   printed_rows(axis), chosen)

    @property
    def base(self) -> str:
        """Name of the machine that others are compared with."""
        return self.targets[0].name

    @property
    def isolated(self) -> tuple[Target, ...]:
        """The machines that are flexible on this axis alone."""
        return tuple(target for target in self.targets if target.name != "FullFlex1111")

    def machine(self, name: str) -> Accelerator:
        """Return the machine of a target."""
        return next(target.machine for target in self.targets if target.name == name)

    def members(self, name: str) -> tuple[Layer, ...]:
        """Return the layers of a group of rows: one layer, or the network."""
        return self.model if name == MODEL else tuple(layer for layer in self.layers if layer.name == name)

    def searched(self, runner: Runner, setting: Setting) -> "Isolation":
        """Search all layers on all machines."""
        names = {layer.name for layer in self.layers}
        return replace(self, results=search_all(
            runner, self.targets, (*self.layers, *(one for one in self.model if one.name not in names)),
            setting["samples"], setting.seeds))

    @property
    def seeds(self) -> "list[Isolation]":
        """The same of each seed."""
        return [replace(self, results=one) for one in by_seed(self.results)]

    def over_base(self, target: str, name: str = MODEL) -> tuple[float, float, float]:
        """Return runtime, energy and EDP of a machine over those of the base, on a layer or the network."""
        runtime, energy = (total(self.results, target, self.members(name), figure) /
                           total(self.results, self.base, self.members(name), figure)
                           for figure in ("latency_cycles", "energy_pj"))
        return runtime, energy, runtime * energy

    def runtimes(self, target: str, name: str = MODEL) -> list[float]:
        """Return the runtime over the base's by seed."""
        return [one.over_base(target, name)[0] for one in self.seeds]

    def judged(self, claim: Claim, target: str, because: str = "") -> Judgement:
        """Judge the runtime of a machine on the network; one published below the compute bound is impossible."""
        return judge(claim, self.runtimes(target), f"runtime {self.over_base(target)[0]:.3g}", because,
                     impossible=claim.figure < self.bound())

    def bound(self, name: str = MODEL) -> float:
        """Return the compute bound over the runtime of the base: no machine with as many elements can be below it."""
        members, machine = self.members(name), self.machine(self.base)
        cycles: float = network_sum((layer.count, bound_figures(layer.operator, machine)["compute_cycles"])
                             for layer in members)
        return cycles / total(self.results, self.base, members)

    def below_bound(self, target: str) -> list[tuple[str, float, float]]:
        """Return the layers (or the network) for which the paper's runtime is below the bound: name, runtime, bound."""
        found = [(row.layer, row.runtime, self.bound(row.layer)) for row in self.published
                 if row.target == target]
        return [row for row in found if row[1] < row[2]]

    def flexions(self, target: str, name: str = MODEL) -> tuple[float, float]:
        """Return H-F and W-F, those of the network averaged over its layers (each once)."""
        operators = [layer.operator for layer in self.model] if name == MODEL else [self.written[name]]
        each = [flexion(operator, self.machine(target), self.axis) for operator in operators]
        return sum(one.hardware for one in each) / len(each), sum(one.workload for one in each) / len(each)

    def printed(self, *layers: str, hardware: bool = True) -> list[tuple[float, float]]:
        """Return our W-F (and H-F) of the layers shown, or of some, each beside the printed one."""
        rows = [row for row in self.published if row.workload is not None and row.layer != MODEL
                and row.layer in (layers or (row.layer,))]
        return [(ours, theirs or 0.0) for row in rows for ours, theirs in zip(
            self.flexions(row.target, row.layer)[not hardware:], (row.hardware, row.workload)[not hardware:],
            strict=True)]

    def spaces(self, target: Target) -> dict[str, float]:
        """Return the sizes of a machine's spaces (W, C, A, and of W what C and A have), averaged over the network."""
        each = [flexion(layer.operator, target.machine, self.axis) for layer in self.model]
        names = {"W": "workload_space", "C": "class_space", "A": "target_space", "CW": "class_on_workload",
                 "AW": "target_on_workload"}
        return {short: fmean(getattr(one, name).value for one in each) for short, name in names.items()}


def flexible_cell(key: Mapping[str, object], operator: Operator, machine: Accelerator, *,
                  samples: int, seed: int) -> Cell:
    """Return the cell of one search for the least latency among all that ``machine`` can run."""
    def compute() -> dict[str, Any]:
        found = search_flexible(operator, machine, objective="latency", budget=max(samples, 64), seed=seed,
                                watch=Watch(threads=1))
        counted = {"samples": found.samples, "complete": found.complete}
        if found.mapping is None or found.cost is None:
            return {"latency_cycles": None, **counted}
        return {**costs(found.cost), **counted,
                "mapping": dump_mapping(found.mapping, operator, flexible_machine(machine))}

    whole = {**key, "operator": operator.name, "machine": digest(machine), "samples": samples, "seed": seed}
    return Cell(whole, compute, samples)


def search_all(runner: Runner, targets: Sequence[Target], layers: Sequence[Layer], samples: int, seeds: int) -> Results:
    """Search every layer on every machine with every seed, and have the oracle count the median run of each."""
    def case(asked: OnTarget) -> SeededSearch:
        key: dict[str, object] = {"layer": asked.layer.name, "target": asked.target.name}
        operator, machine = asked.layer.operator, asked.target.machine
        cells = [flexible_cell(key, operator, machine, samples=samples, seed=seed) for seed in range(seeds)]
        return SeededSearch(cells, mapping_counted(key, operator, flexible_machine(machine)))

    found = play(runner, [OnTarget(target, layer) for target in targets for layer in layers], case, "latency_cycles")
    return {(tried.of.target.name, tried.of.layer.name): tried for tried in found}


@dataclass(frozen=True)
class SweepPoint:
    """Two machines of one size: their cycles on the network, also by seed, and their W-F averaged over its layers."""

    size: int
    cycles: tuple[float, float]
    workload: tuple[float, float]
    seeds: tuple[tuple[float, float], ...]


def sweep(runner: Runner, setting: Setting, study: Isolation,
          machines: Mapping[int, tuple[Target, ...]]) -> list[SweepPoint]:
    """Search the network on two machines of every size."""
    found = []
    for size, targets in machines.items():
        results = search_all(runner, targets, study.model, setting["samples"], setting.seeds)
        each = [[flexion(layer.operator, target.machine, study.axis).workload for layer in study.model]
                for target in targets]

        def cycles(one: Results, pair: tuple[Target, ...] = targets) -> tuple[float, float]:
            return total(one, pair[0].name, study.model), total(one, pair[1].name, study.model)

        found.append(SweepPoint(size, cycles(results), (fmean(each[0]), fmean(each[1])),
                                tuple(cycles(one) for one in by_seed(results))))
    return found


def sweep_plot(name: str, title: str, swept: Sequence[SweepPoint], names: tuple[str, str], shares: Mapping[int, str],  # noqa: PLR0913, PLR0917
               axes: Mapping[str, Any], top: float) -> Plot:
    """Return cycles of both machines, and W-F of some, by name (drawn up to ``top``), by size."""
    lines = [*((f"{name}, cycles", at, False) for at, name in enumerate(names)),
             *((f"{name}, W-F", at, True) for at, name in shares.items())]
    data = [{"type": "scatter", "mode": "lines+markers", "name": text, "x": [one.size for one in swept],
             "y": [(one.workload if share else one.cycles)[at] for one in swept], "yaxis": "y2" if share else "y",
             "line": {"color": f"@curve-{1 - at}", "dash": "dot" if share else "solid"}} for text, at, share in lines]
    return Plot(name, title, data, {
        **axes, "yaxis2": {"title": {"text": "W-F"}, "overlaying": "y", "side": "right", "range": [0, top]}})


def total(results: Results, target: str, layers: Sequence[Layer], figure: str = "latency_cycles") -> float:
    """Return a figure summed over the layers of a network, each as often as it occurs."""
    found: float = network_sum((layer.count, results[target, layer.name][figure]) for layer in layers)
    return found


def study_table(study: Isolation, title: str) -> Table:
    """Return the table of a figure: the paper's columns beside ours, the compute bound, and the oracle's word."""
    rows: list[tuple[Value, ...]] = []
    for row in study.published:
        members, told = study.members(row.layer), row.target != "FullFlex1111"
        runtime, energy, edp = study.over_base(row.target, row.layer)
        hardware, workload = study.flexions(row.target, row.layer) if told else (None, None)
        bound = study.bound(row.layer)
        single = row.layer != MODEL
        nest = _chosen(study, study.results[row.target, row.layer]) if single else ""
        agree = confirmed(study.results[row.target, layer.name] for layer in members)[0]
        name = f"{row.layer} {study.written[row.layer].name}" if single else f"{MODEL} ({len(members)} layers)"
        rows.append((name, row.target, row.runtime, runtime, row.energy, energy, row.edp, edp, row.hardware, hardware,
                     row.workload, workload, row.chosen, nest, bound,
                     "agrees" if agree == len(members) else f"agrees on {agree} of {len(members)}"))
    below = [f"{name} {target.name} {runtime:g}" for target in study.targets
             for name, runtime, _ in study.below_bound(target.name)]
    impossible = [f"Published runtimes below the compute bound: {', '.join(below)}."] if below else []
    return Table("layers", title, (
        "Layer", "Machine", "Runtime paper", "Runtime ours", "Energy paper", "Energy ours", "EDP paper", "EDP ours",
        "H-F paper", "H-F ours", "W-F paper", "W-F ours", "Chosen, paper", "Chosen, ours", "Compute bound", "Oracle"),
        tuple(rows), (f"Runtime, energy, EDP and compute bound over those of {study.base}; median runs by latency, "
                      "equal samples for all.", *impossible, oracle_note(study.results.values())))


def _chosen(study: Isolation, tried: Tried[OnTarget]) -> str:
    if tried.median is None:
        return "none"
    operator = tried.of.layer.operator
    return study.chosen(load_mapping(tried.median["mapping"], operator, flexible_machine(tried.of.target.machine)),
                        operator)


def oracle_note(results: Iterable[Tried[OnTarget]]) -> str:
    """Return a sentence on how many of the reported mappings the oracle confirmed."""
    agree, count, whole = confirmed(results)
    return f"The oracle confirms {agree} of {count} mappings: {whole} walked whole, the others as scaled-down twins."


def average_venn(study: Isolation, title: str) -> Plot:
    """Return the diagrams of W, C and A of every machine, with counts averaged over the layers of the network."""
    panels = []
    for target in study.isolated:
        w, c, a, cw, aw = study.spaces(target).values()
        labels = (f"W {w:,.4g}", f"C {c:,.4g}, of W {cw:,.4g}", f"A {a:,.4g}, of W {aw:,.4g}")
        panels.append((target.name, venn(w, c, a, cw, aw), labels))
    worst = max(diagram.error for _, diagram, _ in panels)
    return venn_plot("venn", title, panels, "Counts are averages over the layers. Areas are to scale; overlaps err by "
                     f"at most {worst:.2%} of the largest set.")


def tile_of(nest: Nest, operator: Operator) -> str:
    """Return the tile that the buffer holds, as K C P Q R S (G is told as C where it stands for it)."""
    index = [entry.level for entry in nest.levels].index("GLB")
    extents = extents_at(nest, dict(operator.sizes))[index]
    return " ".join(f"{d}{extent}" for d, extent in extents.items() if operator.sizes[d] > 1)


def order_of(nest: Nest, operator: Operator) -> str:
    """Return the order of the loops over tiles, at the outermost memory; those that run once are left out."""
    return "".join(loop.dimension for loop in nest.levels[0].loops) or "one tile"


def lanes_of(nest: Nest, operator: Operator) -> dict[str, tuple[str, int]]:
    """Return by side of the array the dimension along it and its lanes."""
    extents, found = extents_at(nest, dict(operator.sizes)), {}
    for index, entry in enumerate(nest.levels):
        for loop in entry.loops:
            if loop.axis is not None:
                count = -(-extents[index][loop.dimension] // loop.step)
                if count > 1:
                    found[str(loop.axis)] = (loop.dimension, count)
    return found


def pair_of(nest: Nest, operator: Operator) -> str:
    """Return the dimensions along X and Y."""
    lanes = lanes_of(nest, operator)
    return "-".join(lanes[side][0] if side in lanes else "none" for side in "XY")


def shape_of(nest: Nest, operator: Operator) -> str:
    """Return the lanes along X by those along Y."""
    lanes = lanes_of(nest, operator)
    return "x".join(str(lanes[side][1]) if side in lanes else "1" for side in "XY")

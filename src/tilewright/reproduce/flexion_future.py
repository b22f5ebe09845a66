"""Flexion, figure 3.13: a machine tuned for AlexNet, run on later networks with each class of flexibility."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from tilewright.base import digest
from tilewright.codesign import class_choices, tune, with_flexibility
from tilewright.cost import network_sum
from tilewright.hardware import (
    CLASSES,
    Accelerator,
    Bandwidth,
    Flexibility,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    describe,
    dump_accelerator,
    flexibility_overhead,
    load_accelerator,
    preset,
)
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, judge, lower, part_of
from tilewright.reproduce.flexion_axes import INPUT, KC, OUTPUT, WEIGHT, YX
from tilewright.reproduce.flexion_isolation import Results, Target, oracle_note, search_all, total
from tilewright.reproduce.flexion_tile import THIRDS
from tilewright.reproduce.searching import Layer, bound_figures, by_seed, network_layers
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, published, reproduction
from tilewright.workload import UniqueOperator

NETWORKS = ("alexnet", "mnasnet", "resnet50", "mobilenet-v2", "bert-base", "dlrm", "ncf")
CNNS, LATER = NETWORKS[1:4], NETWORKS[4:]
PUBLISHED = published("flexion-future", 1)
def _mean(row: Mapping[str, float], networks: Sequence[str]) -> float:
    return geometric_mean(row[network] for network in networks)


Rows = Mapping[str, Mapping[str, float]]
PAPER: Rows = {name: dict(zip(NETWORKS, row, strict=True)) for (name,), row in PUBLISHED.items()}
FOUR, AFTER = (*CNNS, "bert-base"), (*CNNS, *LATER)
AXES = tuple(f"FullFlex-{bits}" for bits in ("1000", "0100", "0010", "0001"))
TILES, ORDERS, PAIRS, SHAPES = AXES


def _optimum(at: Rows, networks: Sequence[str]) -> float:
    return _mean(at["InFlex-X-Opt"], networks)


def _either(at: Rows) -> float:
    """Return pairs and shapes together over the better of both, on later networks."""
    return geometric_mean(at["FullFlex-0011"][n] / min(at[PAIRS][n], at[SHAPES][n]) for n in AFTER)


def _ratio(at: Rows, one: str, other: str, networks: Sequence[str]) -> float:
    return _mean(at[one], networks) / _mean(at[other], networks)


def _part(at: Rows, part: str, networks: Sequence[str]) -> float:
    return part_of(_mean(at[part], networks), _mean(at["FullFlex-1111"], networks))


TUNED, SEVERAL, FIRST, BOTH, NONE, TOGETHER, NEARLY, WORSE, BEATS, ITSELF, PARTIAL, NEVER = claims(
    "flexion-future", TUNED=_optimum(PAPER, LATER), SEVERAL=_optimum(PAPER, LATER),
    NONE=_mean(PAPER[TILES], NETWORKS), TOGETHER=_either(PAPER),
    NEARLY=_part(PAPER, "FullFlex-1010", AFTER),
    WORSE=_ratio(PAPER, "FullFlex-1100", "FullFlex-1010", AFTER),
    BEATS=_ratio(PAPER, "FullFlex-1111", "InFlex-X-Opt", NETWORKS),
    PARTIAL=_part(PAPER, "PartFlex-1111", NETWORKS))


def base_machine(dram_words: float) -> Accelerator:
    """Return the base machine with a DRAM of another bandwidth."""
    machine = preset("flexion")
    dram = replace(machine.memories[0], bandwidth=Bandwidth(shared=float(dram_words)))
    return replace(machine, levels=(dram, *machine.levels[1:]))


def partial(flexibility: Flexibility) -> Flexibility:
    """Return the partly flexible machine of section 3.5: the choices of section 3.4 (variant A) beside its own."""
    own, order = flexibility.parallelism.choices[0], flexibility.order.choices[0]
    return replace(
        flexibility, tile=THIRDS, shape=ShapeFlexibility(blocks=(16, 16)),
        order=OrderFlexibility(tuple(dict.fromkeys((order, OUTPUT, INPUT, WEIGHT)))),
        parallelism=ParallelismFlexibility(tuple(dict.fromkeys((own, KC, YX)))))


@dataclass(frozen=True)
class Tuned:
    """A fixed design tuned for a network: the flexibility, and the cycles of the network on it."""

    flexibility: Flexibility
    latency_cycles: float


def _tune_cell(machine: Accelerator, network: str, layers: list[Layer], samples: int, seed: int) -> Cell:
    unique = [UniqueOperator(layer.operator, layer.count, (layer.name,)) for layer in layers]

    def compute() -> dict[str, Any]:
        flexibility, latency, energy = tune(unique, machine, samples=samples, seed=seed)
        return {"machine": dump_accelerator(with_flexibility(machine, flexibility)), "latency_cycles": latency,
                "energy_pj": energy}

    return Cell({"tune": network, "layers": len(layers), "machine": digest(machine), "samples": samples, "seed": seed},
                compute, samples)


@dataclass(frozen=True)
class Measured:
    """What was measured with one DRAM: runtimes over InFlex by class and network, their bounds, searches, designs."""

    machine: Accelerator
    dram: float
    rows: Rows
    bounds: Mapping[str, tuple[float, float]]
    results: Mapping[str, Results]
    targets: tuple[Target, ...]
    tuned: Mapping[str, Tuned]
    rivals: Table
    seeds: tuple[Rows, ...]


@reproduction("flexion-future",
              Setting("quick", 2, {"samples": 300, "every": 8, "designs": 3_000, "rivals": 3, "dram": (32,)}),
              Setting("full", 3, {"samples": 10_000, "every": 1, "designs": 20_000, "rivals": 10, "dram": (32, 4096)}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Tune a fixed design for every network, then run every network on AlexNet's with every class."""
    found = [_measure(setting, runner, dram) for dram in setting["dram"]]
    tables = [table for one in found for table in (_table(one), _designs(one), one.rivals)]
    return Findings(tuple(tables), _judge(found[0]), tuple(_plot(one) for one in found),
                    (f"Claims are judged with the DRAM of {found[0].dram:g} words per cycle. Runtimes over those of "
                     "InFlex-0000 as tuned for AlexNet; medians over seeds, equal samples for all.",))


def _measure(setting: Setting, runner: Runner, dram: float) -> Measured:
    layers = {name: network_layers(name, every=setting["every"] if name in CNNS else 1) for name in NETWORKS}
    machine = base_machine(dram)
    tuned, others = _tuned(runner, setting, machine, layers)
    own = with_flexibility(machine, tuned["alexnet"].flexibility)
    choices = {**class_choices(own), "PartFlex-1111": partial(tuned["alexnet"].flexibility)}
    targets = tuple(Target(name, with_flexibility(machine, flexibility)) for name, flexibility in choices.items())
    results = {name: search_all(runner, targets, layers[name], setting["samples"], setting.seeds) for name in NETWORKS}

    def rows(of: Mapping[str, Results]) -> Rows:
        base = {name: total(of[name], "InFlex-0000", layers[name]) for name in NETWORKS}
        found = {target.name: {name: total(of[name], target.name, layers[name]) / base[name] for name in NETWORKS}
                 for target in targets}
        return {**found, "InFlex-X-Opt": {name: tuned[name].latency_cycles / base[name] for name in NETWORKS}}

    bounds = {name: _bounds(layers[name], machine, total(results[name], "InFlex-0000", layers[name]))
              for name in NETWORKS}
    return Measured(machine, dram, rows(results), bounds, results, targets, tuned,
                    _rivals(runner, setting, machine, layers, tuned, others), tuple(map(rows, by_seed(results))))


def _rivals(runner: Runner, setting: Setting, machine: Accelerator, layers: Mapping[str, list[Layer]],  # noqa: PLR0913, PLR0917
            tuned: Mapping[str, Tuned], others: list[Tuned]) -> Table:
    """Return what every network makes of each design that was tuned for AlexNet: how much hangs on the one chosen."""
    targets = [Target(f"design {index}", with_flexibility(machine, design.flexibility))
               for index, design in enumerate(others)]
    results = {name: search_all(runner, targets, layers[name], setting["samples"], 1) for name in NETWORKS}
    rows: tuple[tuple[Value, ...], ...] = tuple((target.name, "-".join(design.flexibility.parallelism.choices[0]),
                  "x".join(map(str, design.flexibility.shape.fixed or ())),
                  *(total(results[name], target.name, layers[name]) / tuned[name].latency_cycles for name in NETWORKS))
                 for target, design in zip(targets, others, strict=True))
    return Table(f"rivals-{machine.memories[0].bandwidth.shared:g}",
                 "Designs tuned for AlexNet by different seeds: runtimes over the design tuned for each network",
                 ("Design", "X-Y", "Shape", *NETWORKS), rows, (
                     "Designs that are nearly equal on AlexNet may differ widely on later networks: the table above "
                     "depends on which one is taken.",))


def _tuned(runner: Runner, setting: Setting, machine: Accelerator,
           layers: Mapping[str, list[Layer]]) -> tuple[dict[str, Tuned], list[Tuned]]:
    """Return for each network the best design of all seeds, and all of those for AlexNet."""
    asked = [(name, seed) for name in NETWORKS
             for seed in range(setting["rivals"] if name == NETWORKS[0] else setting.seeds)]
    values = runner.run([_tune_cell(machine, name, layers[name], setting["designs"], seed) for name, seed in asked])
    found: dict[str, list[Tuned]] = {name: [] for name in NETWORKS}
    for (name, _), value in zip(asked, values, strict=True):
        flexibility = load_accelerator(value["machine"]).flexibility
        assert flexibility is not None
        found[name].append(Tuned(flexibility, value["latency_cycles"]))
    return {name: min(some, key=lambda one: one.latency_cycles) for name, some in found.items()}, found[NETWORKS[0]]


def _bounds(layers: list[Layer], machine: Accelerator, base: float) -> tuple[float, float]:
    """Return the bounds of compute, and of compute and data movement, over the runtime of the base."""
    figures = [(layer.count, bound_figures(layer.operator, machine)) for layer in layers]
    compute = network_sum((count, bound["compute_cycles"]) for count, bound in figures)
    both = network_sum((count, max(bound["compute_cycles"], bound["data_cycles"])) for count, bound in figures)
    return compute / base, both / base


def _table(found: Measured) -> Table:
    bounds = found.bounds
    added = {target.name: flexibility_overhead(target.machine) for target in found.targets}
    rows: list[tuple[Value, ...]] = []
    for (name,), printed in PUBLISHED.items():
        cells = [value for pair in zip(printed, found.rows[name].values(), strict=True) for value in pair]
        share = added[name].area_share * 100 if name in added else None
        rows.append((name, *cells, share))
    for place, label in enumerate(("bound: compute", "bound: compute and data")):
        rows.append((label, *[value for name in NETWORKS for value in (None, bounds[name][place])], None))
    heads = [head for name in NETWORKS for head in (f"{name} paper", f"{name} ours")]
    every = {(network, *key): result for network, some in found.results.items() for key, result in some.items()}
    return Table(f"classes-{found.dram:g}", "Runtime of the machine tuned for AlexNet, by class of flexibility (figure "
                 f"3.13); DRAM of {found.dram:g} words per cycle",
                 ("Class", *heads, "Added area (%)"), tuple(rows), (
                     "InFlex-X-Opt is a fixed machine tuned for each network. " + oracle_note(every.values()),))


def _designs(found: Measured) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name, design in found.tuned.items():
        told = describe(with_flexibility(found.machine, design.flexibility)).splitlines()
        parts = {line.split(":")[0].strip(): line.split(":", 1)[1].strip() for line in told if line.startswith("  ")
                 and line.split(":")[0].strip() in ("tile", "order", "parallelism (X-Y)", "shape")}
        rows.append((name, *parts.values(), design.latency_cycles))
    return Table(f"designs-{found.dram:g}", f"Fixed designs as tuned, DRAM of {found.dram:g} words per cycle",
                 ("Network", "Tile", "Order", "X-Y", "Shape", "Cycles"), tuple(rows))


def _judge(found: Measured) -> tuple[Judgement, ...]:
    at, seeds, bounds = found.rows, found.seeds, found.bounds
    compute, least = bounds["alexnet"]

    def said(name: str, networks: Sequence[str]) -> str:
        return " ".join(f"{at[name][network]:.2f}" for network in networks)

    def of(claim: Claim, measure: Callable[[Rows], float], told: str, because: str = "") -> Judgement:
        return judge(claim, [measure(one) for one in seeds], told, because,
                     impossible=claim is ITSELF and claim.figure < compute)

    worse = [at["FullFlex-1100"][n] / at["FullFlex-1010"][n] for n in AFTER]
    wins = sum(at["FullFlex-1111"][n] < at["InFlex-X-Opt"][n] for n in NETWORKS)
    return (
        of(TUNED, lambda one: apart(_optimum(one, CNNS), 1.0), said("InFlex-X-Opt", CNNS)),
        of(SEVERAL, lambda one: _optimum(one, LATER), said("InFlex-X-Opt", LATER),
           f"no machine can be below {' '.join(f'{bounds[n][1]:.2f}' for n in LATER)}: weights that are used once must "
           "come from the DRAM"),
        of(FIRST, lambda one: lower((one[TILES][n], one[axis][n]) for n in FOUR for axis in AXES[1:]),
           said(TILES, FOUR)),
        of(BOTH, lambda one: lower((one[axis][n], one[TILES][n]) for n in LATER[1:] for axis in (PAIRS, SHAPES)),
           f"{said(TILES, LATER[1:])} against {said(PAIRS, LATER[1:])} and {said(SHAPES, LATER[1:])}"),
        of(NONE, lambda one: apart(_mean(one[ORDERS], NETWORKS), 1.0), said(ORDERS, NETWORKS)),
        of(TOGETHER, _either, said("FullFlex-0011", AFTER)),
        of(NEARLY, lambda one: _part(one, "FullFlex-1010", AFTER), said("FullFlex-1010", AFTER)),
        of(WORSE, lambda one: _ratio(one, "FullFlex-1100", "FullFlex-1010", AFTER),
           " ".join(f"{ratio:.2f}" for ratio in worse) + " times"),
        of(BEATS, lambda one: _ratio(one, "FullFlex-1111", "InFlex-X-Opt", NETWORKS), f"on {wins} of {len(NETWORKS)}"),
        of(ITSELF, lambda one: one["FullFlex-1111"]["alexnet"], f"{at['FullFlex-1111']['alexnet']:.2f}",
           f"the compute bound is {compute:.2f} of the tuned machine's runtime, with data movement {least:.2f}"),
        of(PARTIAL, lambda one: _part(one, "PartFlex-1111", NETWORKS), said("PartFlex-1111", NETWORKS)),
        of(NEVER, lambda one: sum(more <= less for less, more in _contained(one)) / len(_contained(one)),
           f"at most {max(more / less for less, more in _contained(at)) - 1:.1%} slower",
           f"the paper's figures: up to {max(more / less for less, more in _contained(PAPER)) - 1:.0%}"),
    )


def _contained(at: Rows) -> list[tuple[float, float]]:
    """Return the runtimes of every class and of every other that contains it, by network."""
    names = {bits: ("InFlex-" if bits == "0000" else "FullFlex-") + bits for bits in CLASSES}
    return [(at[names[less]][network], at[names[more]][network]) for more in CLASSES for less in CLASSES
            if more != less and all(m >= n for m, n in zip(more, less, strict=True)) for network in NETWORKS]


def _plot(found: Measured) -> Plot:
    names = [target.name for target in found.targets]
    data = [{"type": "scatter", "mode": "markers+text", "name": "classes",
             "x": [flexibility_overhead(target.machine).total_um2 for target in found.targets],
             "y": [_mean(found.rows[name], NETWORKS) for name in names],
             "text": [name.removeprefix("InFlex-").removeprefix("FullFlex-") for name in names],
             "textposition": "top center", "textfont": {"size": 10}, "marker": {"color": "@curve-0", "size": 8}}]
    return Plot(f"area-{found.dram:g}", "Runtime on all networks (geometric mean) against the area that flexibility "
                f"adds; DRAM of {found.dram:g} words per cycle", data, {
        "xaxis": {"title": {"text": "Added area (um2, table 3.2 scaled to 16 nm)"}},
        "yaxis": {"title": {"text": "Runtime over InFlex-0000"}}})

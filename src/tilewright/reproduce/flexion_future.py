"""Flexion, figure 3.13: a machine tuned for AlexNet, run on later networks with each class of flexibility."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any

from tilewright.codesign import class_choices, tune, with_flexibility
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
from tilewright.reproduce.flexion_isolation import Results, Target, digest, gain_verdict, oracle_note, play, total
from tilewright.reproduce.flexion_order import INPUT, OUTPUT, WEIGHT
from tilewright.reproduce.flexion_parallelism import KC, YX
from tilewright.reproduce.flexion_tile import THIRDS
from tilewright.reproduce.ruby_contest import Layer, network_layers
from tilewright.reproduce.running import Cell, Watch
from tilewright.reproduce.searching import bound_figures
from tilewright.reproduce.study import (
    LEAST_SHARE,
    QUARTER,
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Plot,
    Setting,
    Study,
    Table,
    Value,
    Verdict,
    reaches,
)
from tilewright.workload import UniqueOperator

NETWORKS = ("alexnet", "mnasnet", "resnet50", "mobilenet-v2", "bert-base", "dlrm", "ncf")
CNNS, LATER = NETWORKS[1:4], NETWORKS[4:]
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "InFlex-0000": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00),
    "InFlex-X-Opt": (1.00, 0.96, 0.92, 0.96, 0.25, 0.14, 0.07),
    "FullFlex-1000": (0.14, 0.57, 0.07, 0.48, 0.25, 0.99, 0.99),
    "FullFlex-0100": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00),
    "FullFlex-0010": (1.00, 0.92, 1.00, 0.88, 1.00, 0.25, 0.57),
    "FullFlex-0001": (1.00, 0.82, 0.91, 0.88, 1.00, 0.58, 0.63),
    "FullFlex-0011": (1.00, 0.51, 0.60, 0.53, 0.90, 0.10, 0.12),
    "FullFlex-0101": (1.00, 0.60, 0.65, 0.61, 0.90, 0.16, 0.40),
    "FullFlex-1001": (0.08, 0.57, 0.07, 0.37, 0.22, 0.32, 0.18),
    "FullFlex-0110": (1.00, 0.60, 0.65, 0.61, 0.90, 0.16, 0.40),
    "FullFlex-1010": (0.06, 0.17, 0.07, 0.15, 0.22, 0.04, 0.04),
    "FullFlex-1100": (0.14, 0.33, 0.07, 0.30, 0.22, 0.66, 0.60),
    "FullFlex-1110": (0.06, 0.17, 0.09, 0.15, 0.22, 0.04, 0.04),
    "FullFlex-1011": (0.06, 0.15, 0.09, 0.14, 0.22, 0.04, 0.04),
    "FullFlex-0111": (1.00, 0.51, 0.60, 0.53, 0.90, 0.10, 0.12),
    "FullFlex-1101": (0.08, 0.33, 0.12, 0.30, 0.22, 0.16, 0.18),
    "FullFlex-1111": (0.06, 0.15, 0.07, 0.14, 0.22, 0.04, 0.04),
    "PartFlex-1111": (0.52, 0.42, 0.20, 0.39, 0.26, 0.07, 0.07),
}
CLAIMS = (
    Claim("The machine tuned for AlexNet runs other convolutional networks about as fast as one tuned for them",
          "0.96 0.92 0.96", "holds where tuning for each gains at most 20 %, in direction where less than for others"),
    Claim("On networks of fully-connected layers it is several times slower", "0.25 0.14 0.07",
          f"holds where tuning for each runs at most 0.5, {QUARTER}, on each"),
    Claim("Of the single axes, tiles matter most for the three CNNs and BERT", "0.57 0.07 0.48 0.25",
          "holds where on all four no other axis alone is faster and tiles have a quarter of the published gain, in "
          "logarithms; in direction where on two or more"),
    Claim("For DLRM and NCF the pair and the shape matter, tiles do not", "0.99 0.99 against 0.25 0.57 and 0.58 0.63",
          "holds where both axes beat tiles on both by at least a quarter of what is published, in logarithms; in "
          "direction where in two of the four cases"),
    Claim("Orders alone gain nothing", "1.00 on all", "holds where at most 2 % on any network"),
    Claim("Pairs and shapes together beat either alone", "0.51 0.60 0.53 0.90 0.10 0.12 on later networks",
          "holds where on every later network by at least a quarter of what is published, in logarithms; in direction "
          "where on most"),
    Claim("Tiles and pairs come near all four axes", "0.17 0.07 0.15 0.22 0.04 0.04",
          "holds within 15 % on every later network, in direction within 50 %"),
    Claim("Tiles and orders work much worse than tiles and pairs", "0.33 against 0.17",
          "holds where slower by half on most later networks, in direction where slower by at least a quarter of what "
          "is published, in logarithms over all of them"),
    Claim("Fully flexible, the machine beats those tuned for each network", "on all seven",
          f"holds where on all by a quarter of the published gain, in logarithms; {QUARTER} over all"),
    Claim("Full flexibility makes AlexNet itself 16.7 times as fast", "0.06",
          f"impossible where the published runtime is below the compute bound, holds within 25 %, {QUARTER}"),
    Claim("Partial flexibility gets most of it", "0.52 0.42 0.20 0.39 0.26 0.07 0.07",
          "holds where it gains at least half of what full flexibility gains, in direction a quarter, in logarithms"),
    Claim("More axes are never slower (that is so for the optimum; the figure shows searches)", "broken in the figure",
          "holds where no class is more than 2 % slower than one it contains, in direction where 10 %"),
)


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
    runtimes: Mapping[str, tuple[float, ...]]
    bounds: Mapping[str, tuple[float, float]]
    results: Mapping[str, Results]
    targets: tuple[Target, ...]
    tuned: Mapping[str, Tuned]
    rivals: Table


def run(setting: Setting, watch: Watch) -> Findings:
    """Tune a fixed design for every network, then run every network on AlexNet's with every class."""
    found = [_measure(setting, watch, dram) for dram in setting["dram"]]
    tables = [table for one in found for table in (_table(one), _designs(one), one.rivals)]
    return Findings(tuple(tables), _judge(found[0].runtimes, found[0].bounds), tuple(_plot(one) for one in found),
                    (f"Claims are judged with the DRAM of {found[0].dram:g} words per cycle. Runtimes over those of "
                     "InFlex-0000 as tuned for AlexNet; medians over seeds, equal samples for all.",))


def _measure(setting: Setting, watch: Watch, dram: float) -> Measured:
    layers = {name: network_layers(name, every=setting["every"] if name in CNNS else 1) for name in NETWORKS}
    machine = base_machine(dram)
    tuned, others = _tuned(watch, setting, machine, layers)
    own = with_flexibility(machine, tuned["alexnet"].flexibility)
    choices = {**class_choices(own), "PartFlex-1111": partial(tuned["alexnet"].flexibility)}
    targets = tuple(Target(name, with_flexibility(machine, flexibility)) for name, flexibility in choices.items())
    results = {name: play(watch, targets, layers[name], setting["samples"], setting.seeds) for name in NETWORKS}
    base = {name: total(results[name], "InFlex-0000", layers[name]) for name in NETWORKS}
    runtimes = {target.name: tuple(total(results[name], target.name, layers[name]) / base[name] for name in NETWORKS)
                for target in targets}
    runtimes["InFlex-X-Opt"] = tuple(tuned[name].latency_cycles / base[name] for name in NETWORKS)
    bounds = {name: _bounds(layers[name], machine, base[name]) for name in NETWORKS}
    return Measured(machine, dram, runtimes, bounds, results, targets, tuned,
                    _rivals(watch, setting, machine, layers, tuned, others))


def _rivals(watch: Watch, setting: Setting, machine: Accelerator, layers: Mapping[str, list[Layer]],  # noqa: PLR0913, PLR0917
            tuned: Mapping[str, Tuned], others: list[Tuned]) -> Table:
    """Return what every network makes of each design that was tuned for AlexNet: how much hangs on the one chosen."""
    targets = [Target(f"design {index}", with_flexibility(machine, design.flexibility))
               for index, design in enumerate(others)]
    results = {name: play(watch, targets, layers[name], setting["samples"], 1) for name in NETWORKS}
    rows: tuple[tuple[Value, ...], ...] = tuple((target.name, "-".join(design.flexibility.parallelism.choices[0]),
                  "x".join(map(str, design.flexibility.shape.fixed or ())),
                  *(total(results[name], target.name, layers[name]) / tuned[name].latency_cycles for name in NETWORKS))
                 for target, design in zip(targets, others, strict=True))
    return Table(f"rivals-{machine.memories[0].bandwidth.shared:g}",
                 "Designs tuned for AlexNet by different seeds: runtimes over the design tuned for each network",
                 ("Design", "X-Y", "Shape", *NETWORKS), rows, (
                     "Designs that are nearly equal on AlexNet may differ widely on later networks: the table above "
                     "depends on which one is taken.",))


def _tuned(watch: Watch, setting: Setting, machine: Accelerator,
           layers: Mapping[str, list[Layer]]) -> tuple[dict[str, Tuned], list[Tuned]]:
    """Return for each network the best design of all seeds, and all of those for AlexNet."""
    asked = [(name, seed) for name in NETWORKS
             for seed in range(setting["rivals"] if name == NETWORKS[0] else setting.seeds)]
    values = watch.run([_tune_cell(machine, name, layers[name], setting["designs"], seed) for name, seed in asked])
    found: dict[str, list[Tuned]] = {name: [] for name in NETWORKS}
    for (name, _), value in zip(asked, values, strict=True):
        flexibility = load_accelerator(value["machine"]).flexibility
        assert flexibility is not None
        found[name].append(Tuned(flexibility, value["latency_cycles"]))
    return {name: min(some, key=lambda one: one.latency_cycles) for name, some in found.items()}, found[NETWORKS[0]]


def _bounds(layers: list[Layer], machine: Accelerator, base: float) -> tuple[float, float]:
    """Return the bounds of compute, and of compute and data movement, over the runtime of the base."""
    figures = [(layer.count, bound_figures(layer.operator, machine)) for layer in layers]
    compute = sum(count * bound["compute_cycles"] for count, bound in figures)
    both = sum(count * max(bound["compute_cycles"], bound["data_cycles"]) for count, bound in figures)
    return compute / base, both / base


def _table(found: Measured) -> Table:
    runtimes, bounds = found.runtimes, found.bounds
    added = {target.name: flexibility_overhead(target.machine) for target in found.targets}
    rows: list[tuple[Value, ...]] = []
    for name, published in PUBLISHED.items():
        cells = [value for pair in zip(published, runtimes[name], strict=True) for value in pair]
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


def _judge(runtimes: Mapping[str, tuple[float, ...]],
           bounds: Mapping[str, tuple[float, float]]) -> tuple[Judgement, ...]:
    at = {name: dict(zip(NETWORKS, values, strict=True)) for name, values in runtimes.items()}

    def said(name: str, networks: tuple[str, ...]) -> str:
        return " ".join(f"{at[name][network]:.2f}" for network in networks)

    optimum, everything = at["InFlex-X-Opt"], at["FullFlex-1111"]
    tiles, orders, pairs, shapes = (at[f"FullFlex-{bits}"] for bits in ("1000", "0100", "0010", "0001"))
    four, later = (*CNNS, "bert-base"), (*CNNS, *LATER)
    paper = {name: dict(zip(NETWORKS, row, strict=True)) for name, row in PUBLISHED.items()}
    first = sum(tiles[n] <= min(orders[n], pairs[n], shapes[n]) * 1.005 and reaches(
        tiles[n], paper["FullFlex-1000"][n]) for n in four)
    both = sum(_ahead(name, ("FullFlex-1000",), n, at, paper) for n in LATER[1:]
               for name in ("FullFlex-0010", "FullFlex-0001"))
    together = sum(_ahead("FullFlex-0011", ("FullFlex-0010", "FullFlex-0001"), n, at, paper) for n in later)
    near = max(at["FullFlex-1010"][n] / everything[n] for n in later)
    worse = [at["FullFlex-1100"][n] / at["FullFlex-1010"][n] for n in later]
    theirs = [paper["FullFlex-1100"][n] / paper["FullFlex-1010"][n] for n in later]
    wins = sum(everything[n] < optimum[n] for n in NETWORKS)
    clear = sum(_ahead("FullFlex-1111", ("InFlex-X-Opt",), n, at, paper) for n in NETWORKS)
    won = [prod(of["FullFlex-1111"][n] / of["InFlex-X-Opt"][n] for n in NETWORKS) for of in (at, paper)]
    gained = _log_share(at["PartFlex-1111"], everything)
    slower, broken = _breaks(at), _breaks(paper)
    compute, least = bounds["alexnet"]
    return (
        Judgement(CLAIMS[0], said("InFlex-X-Opt", CNNS), _graded(
            min(optimum[n] for n in CNNS) >= 0.8, min(optimum[n] for n in CNNS) > max(optimum[n] for n in LATER))),
        Judgement(CLAIMS[1], said("InFlex-X-Opt", LATER), _graded(
            max(optimum[n] for n in LATER) <= 0.5, all(reaches(optimum[n], paper["InFlex-X-Opt"][n]) for n in LATER)),
            f"no machine can be below {' '.join(f'{bounds[n][1]:.2f}' for n in LATER)}: weights that are used once "
            "must come from the DRAM"),
        Judgement(CLAIMS[2], said("FullFlex-1000", four), _graded(first == len(four), first >= 2),
                  f"first on {first} of {len(four)}"),
        Judgement(CLAIMS[3], f"{said('FullFlex-1000', LATER[1:])} against {said('FullFlex-0010', LATER[1:])} and "
                  f"{said('FullFlex-0001', LATER[1:])}", _graded(both == 4, both >= 2),
                  f"in {both} of 4 cases"),
        Judgement(CLAIMS[4], said("FullFlex-0100", NETWORKS), _graded(
            min(orders.values()) >= 0.98, min(orders.values()) >= 0.9)),
        Judgement(CLAIMS[5], said("FullFlex-0011", later), _graded(together == len(later), together > len(later) / 2),
                  f"on {together} of {len(later)}"),
        Judgement(CLAIMS[6], f"at most {near:.2f} times slower", _graded(near <= 1.15, near <= 1.5)),
        Judgement(CLAIMS[7], " ".join(f"{ratio:.2f}" for ratio in worse) + " times", _graded(
            sum(ratio >= 1.5 for ratio in worse) > len(worse) / 2, reaches(prod(worse), prod(theirs)))),
        Judgement(CLAIMS[8], f"on {wins} of {len(NETWORKS)}", _graded(
            clear == len(NETWORKS), reaches(won[0], won[1])),
            f"by a quarter of the published gain on {clear}; {log(won[0]) / log(won[1]):.0%} of the gain on all"),
        Judgement(CLAIMS[9], f"{everything['alexnet']:.2f}", gain_verdict(everything["alexnet"], 0.06, 0.25, compute),
            f"the compute bound is {compute:.2f} of the tuned machine's runtime, with data movement {least:.2f}"),
        Judgement(CLAIMS[10], f"{said('PartFlex-1111', NETWORKS)}; {gained:.0%} of the gain", _graded(
            gained >= 0.5, gained >= LEAST_SHARE)),
        Judgement(CLAIMS[11], f"at most {slower - 1:.1%} slower", _graded(slower <= 1.02, slower <= 1.10),
                  f"the paper's figures: up to {broken - 1:.0%}"),
    )


def _graded(holds: bool, direction: bool) -> Verdict:
    return "holds" if holds else "holds in direction" if direction else "does not hold"


def _ahead(name: str, others: tuple[str, ...], network: str,
           at: Mapping[str, Mapping[str, float]], paper: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether a class is ahead of the best of others by as much as asked for of what the paper has."""
    ours, theirs = (of[name][network] / min(of[other][network] for other in others) for of in (at, paper))
    return reaches(ours, theirs)


def _log_share(part: Mapping[str, float], full: Mapping[str, float]) -> float:
    """Return which part of what ``full`` gains ``part`` gains, in logarithms over all networks."""
    whole = log(prod(full.values()))
    return log(prod(part.values())) / whole if whole < 0 else 0.0


def _breaks(at: Mapping[str, Mapping[str, float]]) -> float:
    """Return the largest runtime of a class over that of one it contains."""
    names = {bits: ("InFlex-" if bits == "0000" else "FullFlex-") + bits for bits in CLASSES}
    return max(at[names[more]][network] / at[names[less]][network] for more in CLASSES for less in CLASSES
               if all(m >= n for m, n in zip(more, less, strict=True)) for network in NETWORKS)


def _plot(found: Measured) -> Plot:
    runtimes, targets = found.runtimes, found.targets
    data: list[dict[str, Any]] = []
    points = [(flexibility_overhead(target.machine).total_um2, prod(runtimes[target.name]) ** (1 / len(NETWORKS)),
               target.name) for target in targets]
    data.append({"type": "scatter", "mode": "markers+text", "name": "classes", "x": [x for x, _, _ in points],
                 "y": [y for _, y, _ in points],
                 "text": [name.removeprefix("InFlex-").removeprefix("FullFlex-") for _, _, name in points],
                 "textposition": "top center", "textfont": {"size": 10}, "marker": {"color": "@curve-0", "size": 8}})
    return Plot(f"area-{found.dram:g}", "Runtime on all networks (geometric mean) against the area that flexibility "
                f"adds; DRAM of {found.dram:g} words per cycle", data, {
        "xaxis": {"title": {"text": "Added area (um2, table 3.2 scaled to 16 nm)"}},
        "yaxis": {"title": {"text": "Runtime over InFlex-0000"}}})


REPRODUCTIONS.register("flexion-future")(Study(
    "flexion-future", "A machine tuned for AlexNet on later networks, with each of the 16 classes of flexibility",
    "Kao, dissertation, Georgia Tech 2022, figure 3.13", CLAIMS,
    Setting("quick", 1, {"samples": 300, "every": 8, "designs": 3_000, "rivals": 3, "dram": (32,)}),
    Setting("full", 3, {"samples": 10_000, "every": 1, "designs": 20_000, "rivals": 10, "dram": (32, 4096)}), run))

"""What figures 5.9 to 5.11 measure: layers searched cold, and warm from layers before them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, preset
from tilewright.jobs import Runner, present_stop
from tilewright.mapping import MappingBatch, MapSpace, Tiling
from tilewright.reproduce.oracle import check
from tilewright.reproduce.searching import bound_figures
from tilewright.reproduce.study import Cell, Setting
from tilewright.search import LayerResult, Source, Start, WarmStart, beginnings, search_network
from tilewright.workload import Operator, unique_operators, zoo

NETWORKS = {"vgg16": "VGG16", "resnet50": "ResNet-50", "mobilenet-v2": "MobileNet-V2", "mnasnet": "MnasNet"}
MACHINE = "accel-b"
TILING: Tiling = "perfect"
MAPPER = "gamma"
GENERATION = 200
DRAWS = 2000
SHARE = 0.995
KINDS: tuple[WarmStart, ...] = ("previous", "similar")


@dataclass(frozen=True)
class Layer:
    """One layer of a network, and what was measured with every seed.

    Of a run: ``cold`` and ``warm`` searches, the EDP of a ``random`` mapping (the median of the legal ones drawn), and
    those of the mappings that were ``previous`` and ``similar`` starts: ``published``, scaled by the outermost loops (a
    loop that is new innermost and outermost), and ``all`` that Tilewright makes of the lent one.
    """

    network: str
    name: str
    operator: Operator
    runs: tuple[Mapping[str, Any], ...]

    def at(self, seed: int) -> "Layer":
        """Return what was measured with one seed."""
        return replace(self, runs=(self.runs[seed],))

    @property
    def warm(self) -> bool:
        """Whether there was a layer before it to begin from."""
        return bool(self.runs[0]["warm"]["from"])

    def final(self, kind: str) -> float:
        """Return the median final EDP of ``cold`` or ``warm`` searches."""
        return float(median(run[kind]["edp"] for run in self.runs))

    def start(self, kind: str, whole: bool = False) -> float:
        """Return the median EDP of the mapping begun from, over the final one (the better of cold and warm).

        With ``whole`` the best of all mappings that are made of the lent one, else of those scaled as published.
        """
        return float(median(min(run[kind]["all" if whole else "published"]) / _best(run) for run in self.runs))

    @property
    def random(self) -> float:
        """The median EDP of a random mapping over the final one."""
        return float(median(run["random"] / _best(run) for run in self.runs))

    @property
    def first_generation(self) -> float:
        """The median of the best EDP of the cold search's first generation over the final one."""
        return median(_first(run) / _best(run) for run in self.runs)

    def samples(self, kind: str, strict: bool = False) -> float:
        """Return the median number of samples to 99.5 % of the improvement of the cold search; infinite if never.

        The improvement is that from a random mapping, which is what the paper's searches are initialised with, to the
        final one; where ``strict``, that from the best of the first generation.
        """
        return median(_reached(run, kind, strict) for run in self.runs)

    def speedup(self, strict: bool = False, generations: bool = False) -> float:
        """Return how many times sooner the warm search gets there, by samples or by generations; 0 if never."""
        cold, warm = (self.samples(kind, strict) for kind in ("cold", "warm"))
        if generations:
            cold, warm = (_generations(samples) for samples in (cold, warm))
        return cold / warm


def _generations(samples: float) -> float:
    return float(math.ceil(samples / GENERATION)) if samples < math.inf else math.inf


def _best(run: Mapping[str, Any]) -> float:
    return float(min(run["cold"]["edp"], run["warm"]["edp"]))


def _first(run: Mapping[str, Any]) -> float:
    history = run["cold"]["history"]
    return float(min([score for samples, score in history if samples <= GENERATION], default=history[0][1]))


def _reached(run: Mapping[str, Any], kind: str, strict: bool) -> float:
    begin = _first(run) if strict else run["random"]
    target = begin - SHARE * (begin - run["cold"]["edp"])
    return float(next((samples for samples, score in run[kind]["history"] if score <= target * (1 + 1e-12)), math.inf))


def measure(runner: Runner, setting: Setting, networks: Sequence[str]) -> dict[str, list[Layer]]:
    """Search all distinct layers of networks cold and warm, with every seed."""
    cells = [_cell(network, setting["samples"], seed) for network in networks for seed in range(setting.seeds)]
    values = runner.run(cells)
    found = {}
    for place, network in enumerate(networks):
        runs = values[place * setting.seeds:(place + 1) * setting.seeds]
        found[network] = [Layer(network, operator.name, operator, tuple(run["layers"][index] for run in runs))
                          for index, operator in enumerate(operators(network))]
    return found


def operators(network: str) -> list[Operator]:
    """Return the distinct layers of a network, in the order of their first use."""
    return [unique.operator for unique in unique_operators(zoo.load(network))]


def space(operator: Operator) -> MapSpace:
    """Return the mappings to choose from: whole factors, as in the paper's cost model."""
    return MapSpace(operator, preset(MACHINE), TILING)


def _cell(network: str, samples: int, seed: int) -> Cell:
    """Return the cell of one network and seed: its layers one after another, cold, then warm by similarity."""
    def compute() -> dict[str, Any]:
        layers = operators(network)
        cold, warm = (search_network(
            layers, preset(MACHINE), mapper=MAPPER, budget=samples, seed=seed, space=space, warm_start=kind,
            workers=1).layers for kind in ("off", "similar"))
        if present_stop().is_set():
            return {}
        begin = {kind: beginnings(layers, kind) for kind in KINDS}
        rng = np.random.default_rng(seed)
        found = []
        for index, operator in enumerate(layers):
            lent = [(str(kind), warm[begin[kind][index].lenders[0].place])
                    for kind in KINDS if begin[kind][index].lenders]
            found.append({
                "cold": _told(cold[index]), "warm": _told(warm[index]), "random": _random(operator, rng),
                "lenders": {kind: one.names[0] for kind, one in lent},
                **{kind: _lent(one, operator) for kind, one in lent}})
        return {"layers": found}

    key = {"network": network, "machine": MACHINE, "tiling": TILING, "mapper": MAPPER, "samples": samples, "seed": seed}
    return Cell(key, compute, 2 * samples * len(operators(network)))


def _told(layer: LayerResult) -> dict[str, Any]:
    result = layer.result
    assert result.mapping is not None and result.cost is not None
    return {"edp": result.score, "latency_cycles": result.cost.latency_cycles,
            "history": [[step.samples, step.score] for step in result.history],
            "from": [origin.layer for origin in result.start],
            "oracle": check(result.operator, preset(MACHINE), result.mapping).agrees}


def _lent(lender: LayerResult, operator: Operator) -> dict[str, list[float]]:
    result = lender.result
    assert result.mapping is not None
    start = Start((Source(result.mapping, result.operator.sizes),))
    return {"published": _scores(start.batch(space(operator), ways=1), operator),
            "all": _scores(start.batch(space(operator)), operator)}


def _scores(batch: MappingBatch, operator: Operator) -> list[float]:
    costs = DenseModel(operator, preset(MACHINE), batch.layout).score(batch)
    return [float(edp) for edp in np.where(costs.legal, costs.latency_cycles * costs.energy_pj, np.inf)]


def _random(operator: Operator, rng: np.random.Generator) -> float:
    scores = _scores(space(operator).sample(rng, DRAWS), operator)
    return float(np.median([score for score in scores if math.isfinite(score)]))


def machine() -> Accelerator:
    """Return the machine of the study."""
    return preset(MACHINE)


def above_bound(layer: Layer) -> float:
    """Return the warm search's final EDP over what no mapping can beat."""
    return layer.final("warm") / bound_figures(layer.operator, machine())["edp"]


def oracle_words(found: Mapping[str, Sequence[Layer]]) -> str:
    """Say how many best mappings the oracle confirmed."""
    said = [run[kind]["oracle"] for layers in found.values() for layer in layers for run in layer.runs
            for kind in ("cold", "warm")]
    return (f"The oracle confirms {sum(said):,} of the {len(said):,} best mappings (those too large to be walked as "
            "twins of the same structure).")


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(math.log(value) for value in values) / len(values))

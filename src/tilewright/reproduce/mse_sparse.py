"""What the sparse studies of map-space exploration share: layers, machine, searches and checks (Kao 2022, chapter 5).

The machine is that of the authors' release (`accel-b-sparse` says what is from it), as are densities: what is not zero
is spread evenly (fixed-structured). Layers are those of table 5.1, Y and X taken as output sizes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf
from typing import Any

import numpy as np

from tilewright.cost import SparseModel, layer_bounds
from tilewright.cost.reference import SparseNest
from tilewright.hardware import Accelerator, Memory, preset
from tilewright.jobs import Runner
from tilewright.mapping import MappingBatch, MapSpace, dataflow_constraints, dump_mapping, is_legal, load_mapping
from tilewright.reproduce.oracle import check, twin
from tilewright.reproduce.searching import Tried
from tilewright.reproduce.study import Cell, Setting
from tilewright.search import Sweep, Watch, search
from tilewright.workload import EVEN, Operator, convolution, linear, matmul, with_densities

PJ = 1e6
"""Picojoules in the microjoule of the published EDP."""
LARGEST_TWIN, SAMPLES = 12_000, 8
NEAR = 0.07
"""Share by which the expected energy of a twin with uneven tiles may differ from that of sampled tensors."""
ROUNDED = 1.1
"""What two figures printed with two digits may be off by, as a ratio."""

LAYERS: Mapping[str, Operator] = {
    "conv3": convolution("Resnet Conv_3", in_channels=128, out_channels=128, kernel=3, out_size=28, batch=16),
    "conv4": convolution("Resnet Conv_4", in_channels=256, out_channels=256, kernel=3, out_size=14, batch=16),
    "inception": convolution("Inception Conv_2", in_channels=192, out_channels=192, kernel=5, out_size=27, batch=16),
    "kqv": linear("Bert-large KQV", rows=16 * 512, in_features=1024, out_features=1024),
    "attn": matmul("Bert-large Attn", m=512, n=512, k=1024, batch=16),
    "fc": linear("Bert-large FC", rows=16 * 512, in_features=1024, out_features=4096),
}


@cache
def machine() -> Accelerator:
    """Return the machine of all three studies."""
    return preset("accel-b-sparse")


@dataclass(frozen=True)
class Asked:
    """One search: the densities that it scores mappings over, and those that its best mapping is tested at."""

    layer: str
    tensors: tuple[str, ...]
    """The sparse operands, by role, all of one density."""
    over: tuple[float, ...]
    """Densities of the search: one, or several with the paper's weights."""
    tested: tuple[float, ...]
    dataflow: str = ""
    geometric: bool = False
    """Whether several are scored by their geometric mean instead."""

    def operator(self, density: float) -> Operator:
        """Return the layer at a density."""
        return with_densities(LAYERS[self.layer], dict.fromkeys(self.tensors, f"{EVEN}{density!r}"))

    @property
    def space(self) -> MapSpace:
        """The mappings to choose from, at the largest density searched."""
        operator = self.operator(max(self.over))
        if not self.dataflow:
            return MapSpace(operator, machine())
        return MapSpace(operator, machine(), constraints=dataflow_constraints(self.dataflow, operator, machine()))

    @property
    def sweep(self) -> Sweep | None:
        """The densities of the search with their weights; None for one."""
        points = tuple((d, 1.0 if self.geometric else d ** -len(self.tensors)) for d in self.over)
        return Sweep(self.tensors, points, even=True, geometric=self.geometric) if len(points) > 1 else None

    def cell(self, samples: int, seed: int, begin: Sequence[str] = ()) -> Cell:
        """Return the cell of the search: the mapping, and its EDP where it fits at each density tested.

        ``begin`` are mappings to begin from, as files.
        """
        def compute() -> dict[str, Any]:
            space = self.space
            first = [load_mapping(text, space.operator, machine()) for text in begin]
            start = MappingBatch.from_mappings(first, space.operator, machine()) if first else None
            found = search(space.operator, machine(), mapper="gamma", budget=samples, seed=seed, space=space,
                           start=start, densities=self.sweep, watch=Watch(threads=1))
            if found.mapping is None:
                return {"mapping": None, "edp": {}}
            figures: dict[str, Any] = {}
            for density in self.tested:
                operator = self.operator(density)
                cost = SparseModel(operator, machine()).cost(found.mapping)
                fits = is_legal(found.mapping, operator, machine())
                figures[f"{density:g}"] = cost.edp / PJ if fits else None
            return {"mapping": dump_mapping(found.mapping, space.operator, machine()), "edp": figures}

        key = {"layer": self.layer, "tensors": list(self.tensors), "over": list(self.over),
               "tested": list(self.tested), "dataflow": self.dataflow, "mapper": "gamma", "samples": samples,
               "seed": seed, "even": True}
        if self.geometric:
            key |= {"geometric": True, "begin": list(begin)}
        return Cell(key, compute, samples * len(self.over))


Sought = Tried[Asked]


def searches(runner: Runner, asked: Sequence[Asked], setting: Setting,
               begin: Callable[[Asked, int], Sequence[str]] = lambda one, seed: ()) -> list[Sought]:
    """Make searches with every seed; of each the run that is best at its least density, counted by both oracles."""
    seeds = range(setting.seeds)
    values = iter(runner.run([one.cell(setting["samples"], seed, begin(one, seed)) for one in asked for seed in seeds]))
    runs = [[next(values) for _ in seeds] for _ in asked]
    best = [min(some, key=partial(edp_at, density=min(one.over))) for one, some in zip(asked, runs, strict=True)]
    checks = runner.run([check_cell(one, value, min(one.over)) for one, value in zip(asked, best, strict=True)])
    return [Tried(one, some, middle, [told], "mapping")
            for one, some, middle, told in zip(asked, runs, best, checks, strict=True)]


def edp_at(value: Mapping[str, Any] | None, density: float) -> float:
    """Return a found mapping's EDP at a density, in cycles x uJ; infinite where it does not fit or none was found."""
    return (value or {"edp": {}})["edp"].get(f"{density:g}") or inf


def bound_edp(layer: str, density: float, tensors: tuple[str, ...] = ("weights",)) -> float:
    """Return what no mapping can beat where some operands have a density, in cycles x uJ."""
    return layer_bounds(Asked(layer, tensors, (density,), ()).operator(density), machine()).edp / PJ


def check_cell(asked: Asked, value: Mapping[str, Any], density: float) -> Cell:
    """Return the cell in which both oracles count a mapping: all words of its schedule, and sampled tensors.

    The first is exact; the second compares the expected energy with the mean over tensors drawn at the density, on a
    twin whose loops run less often, word by word instead of in blocks, and agrees within 7 % and four standard errors:
    where tiles are ragged or slide, accesses serve different numbers of products, and the model goes by their mean.
    Tensors are drawn with their zeros anywhere, and counted so here too: none is even in all directions.
    """
    operator = with_densities(LAYERS[asked.layer], dict.fromkeys(asked.tensors, density))
    text = value["mapping"]

    def compute() -> dict[str, Any]:
        mapping = load_mapping(text, operator, machine())
        plain = replace(machine(), sparsity=None)
        dense = check(LAYERS[asked.layer], plain, mapping)
        small, nest = operator, mapping
        for most in (5, 4, 3, 2):
            small, nest = twin(operator, mapping, most)
            if small.macs <= LARGEST_TWIN:
                break
        if small.macs > 16 * LARGEST_TWIN:
            return {"dense": dense.agrees, "ratio": None, "agrees": dense.agrees, "macs": small.macs}
        whole = replace(machine(), levels=tuple(replace(level, block_words=1) if isinstance(level, Memory) else level
                                                for level in machine().levels))
        walker = SparseNest(small, whole, nest)
        energies = [walker.walk(masks).energy_pj for masks in walker.samples(np.random.default_rng(0), SAMPLES)]
        mean, error = float(np.mean(energies)), float(np.std(energies, ddof=1) / SAMPLES**0.5)
        mine = SparseModel(small, whole).cost(nest).energy_pj
        return {"dense": dense.agrees, "ratio": mine / mean, "macs": small.macs,
                "agrees": dense.agrees and abs(mine - mean) <= 4 * error + NEAR * mean}

    return Cell({"layer": asked.layer, "tensors": list(asked.tensors), "density": density, "oracles": text}, compute)


def checked_note(found: Iterable[Sought]) -> str:
    """Return what the oracles said, in a sentence."""
    checks = [tried.oracle or {} for tried in found]
    agreeing = sum(one["agrees"] for one in checks)
    ratios = [one["ratio"] for one in checks if one["ratio"] is not None]
    sampled = (f"; expected energy of {len(ratios)} twins {min(ratios):.3f} to {max(ratios):.3f} times the mean over "
               f"{SAMPLES} sampled tensors" if ratios else "")
    said = "agrees with" if agreeing == len(checks) else "disagrees with some of"
    return f"The oracle {said} {len(checks)} mappings ({agreeing} confirmed: every word of the schedule{sampled})"


def steep_note(published: Sequence[tuple[Mapping[float, float], float]], ours: Sequence[float] = ()) -> str:
    """Say how many published falls from density 1 (EDP by density, the density it falls to) nothing can have.

    Cycles and words fall with one tensor's density at most in proportion, each: what is left of any of them is at
    least that share, so that EDP falls by its square at most. ``ours`` are falls times that square.
    """
    wrong = sum(edp[1.0] / edp[density] > ROUNDED / density**2 for edp, density in published)
    return (f"{wrong} of {len(published)} published falls of EDP are steeper than the square of the one sparse "
            "tensor's density, which no mapping's can be" + (f"; ours at most {max(ours):.2f} of it." if ours else "."))

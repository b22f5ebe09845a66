"""Products with their best configurations: drawn, labelled by looking at all, kept as Parquet, and used to judge."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, Registry, require_extra
from tilewright.cost import SystolicProduct
from tilewright.recommendation.choices import Choices, Real, Whole
from tilewright.workload import zoo

LARGEST = 10_000
"""Sizes of published products are from 1 to this (section III-B)."""
PIECE = 100_000
"""Products that are drawn and labelled together; an interrupted labelling loses one piece at most."""
TESTED = 0.1
"""Share of products that is not learnt from, as published."""
Sampler = Callable[[int, Generator], Whole]
SAMPLERS: Registry[Sampler] = Registry("sampler of products")
COLUMNS = ("m", "n", "k", "class", "cycles", "equals")


@SAMPLERS.register("uniform")
def _uniform(count: int, rng: Generator) -> Whole:
    """Every size the same chance, as published."""
    return rng.integers(1, LARGEST + 1, (count, 3))


@SAMPLERS.register("log-uniform")
def _log_uniform(count: int, rng: Generator) -> Whole:
    """Every scale the same chance: small products too."""
    sizes = np.floor(np.exp(rng.random((count, 3)) * np.log(LARGEST + 1))).astype(np.int64)
    found: Whole = np.clip(sizes, 1, LARGEST)
    return found


@SAMPLERS.register("zoo")
def _zoo(count: int, rng: Generator) -> Whole:
    """Products of the zoo's networks, as large as 10,000."""
    known = zoo_products()
    return known[rng.integers(0, len(known), count)]


def zoo_products() -> Whole:
    """Return the different products ``(p, 3)`` of all networks of the zoo that are at most `LARGEST` a side."""
    found = set()
    for name in zoo.names():
        for node in zoo.load(name).mac_nodes:
            try:
                one = SystolicProduct.of(node.operator)
            except InputError:
                continue
            found.add((one.m, one.n, one.k))
    return np.array(sorted(each for each in found if max(each) <= LARGEST), dtype=np.int64)


@dataclass(frozen=True)
class ProductSample:
    """Products by a sampler of `SAMPLERS`, so many, with a seed."""

    sampler: str = "uniform"
    samples: int = 200_000
    seed: int = 0

    def about(self, choices: Choices) -> dict[str, Any]:
        """Return what repeats their labels."""
        return {**asdict(self), "largest": LARGEST, "choices": choices.mark}


@dataclass(frozen=True)
class LabelledProducts:
    """Products ``(p, 3)`` and the best of each."""

    products: Whole
    classes: Whole
    cycles: Whole
    equals: Whole
    about: dict[str, Any]
    """What repeats them: sampler, seed, count, and the mark of the `Choices`."""

    @property
    def parts(self) -> "tuple[LabelledProducts, LabelledProducts]":
        """Those to learn from, and the last tenth to be tested on."""
        at = len(self.products) - max(1, int(len(self.products) * TESTED))
        return self.rows(slice(None, at)), self.rows(slice(at, None))

    def rows(self, which: slice) -> "LabelledProducts":
        """Return some of them."""
        return LabelledProducts(self.products[which], self.classes[which], self.cycles[which], self.equals[which],
                                self.about)

    @property
    def live(self) -> Whole:
        """Classes that are the best of any."""
        return np.unique(self.classes)

    @property
    def mark(self) -> str:
        """A hash of what repeats them."""
        return hashlib.sha256(json.dumps(self.about, sort_keys=True).encode()).hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write Parquet (extra ``recommend``), with all that repeats it as metadata."""
        require_extra("recommend", "labels", "Polars")
        import polars  # noqa: PLC0415  (an extra)

        values = (*self.products.T, self.classes, self.cycles, self.equals)
        polars.DataFrame(dict(zip(COLUMNS, values, strict=True))).write_parquet(
            path, metadata={"tilewright": json.dumps(self.about)})

    @classmethod
    def load(cls, path: Path) -> "LabelledProducts":
        """Return what `save` wrote; an `InputError` if it is something else."""
        require_extra("recommend", "labels", "Polars")
        import polars  # noqa: PLC0415  (an extra)

        try:
            about = json.loads(polars.read_parquet_metadata(path)["tilewright"])
            values = polars.read_parquet(path).select(COLUMNS).to_numpy().astype(np.int64)
        except Exception as error:
            raise InputError("labels", "must be a file of labels that train-recommender wrote", str(path),
                             str(error)[:80]) from None
        return cls(np.ascontiguousarray(values[:, :3]), values[:, 3], values[:, 4], values[:, 5], about)


def label(choices: Choices, drawn: ProductSample, keep: Path | None = None,
          told: Callable[[int], None] | None = None) -> LabelledProducts:
    """Draw products and find the best of each among all configurations.

    ``keep`` is a folder of pieces that are done: labelling that was stopped goes on there, and ends the same.

    Raises an `InputError` if the sampler is unknown, a number is wrong, or the folder is of other labels.
    """
    draw, count, about = SAMPLERS.get(drawn.sampler), drawn.samples, drawn.about(choices)
    if count < 1:
        raise InputError("samples", "must be at least 1", count)
    parts = []
    for piece in range(-(-count // PIECE)):
        size = min(PIECE, count - piece * PIECE)
        here = about | {"samples": size, "piece": piece}
        file = keep / f"{piece:05}.parquet" if keep is not None else None
        part = LabelledProducts.load(file) if file is not None and file.exists() else None
        if part is not None and part.about != here:
            raise InputError("labels", "must be pieces of the same labels", str(file), "Delete the folder")
        if part is None:
            products = draw(size, np.random.default_rng((drawn.seed, piece)))
            found = choices.best(products, os.cpu_count() or 1)
            part = LabelledProducts(products, found.classes, found.cycles, found.equals, here)
            if file is not None:
                _replaced(part, file)
        parts.append(part)
        if told is not None:
            told(min(count, (piece + 1) * PIECE))
    products, classes, cycles, equals = (np.concatenate([getattr(part, name) for part in parts]) for name in (
        "products", "classes", "cycles", "equals"))
    return LabelledProducts(products, classes, cycles, equals, about)


def _replaced(part: LabelledProducts, file: Path) -> None:
    """Write a piece so that it is whole or not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    part.save(half)
    half.replace(file)


@dataclass(frozen=True)
class Score:
    """How an adviser does on labelled products."""

    adviser: str
    same_class: float
    same_cycles: float
    """``same_class`` and ``same_cycles``: shares of products whose advice is the label, and of those that take as few
    cycles."""
    mean_share: float
    worst_share: float
    """``mean_share`` and ``worst_share``: the best cycles in those of the advice: the geometric mean, and the least."""
    live: int
    """Different classes among the advice."""
    searched: float = 0.0
    """Share of products for which all configurations were looked at."""
    microseconds: float = field(default=0.0, compare=False)
    """Processor time of the advice, for each product."""


def score(adviser: str, choices: Choices, known: LabelledProducts, classes: Whole) -> Score:
    """Judge advice ``(p)`` by the labels."""
    share: NDArray[np.float64] = known.cycles / choices.cycles(known.products, classes[:, None])[:, 0]
    return Score(adviser, float((classes == known.classes).mean()), float((share == 1.0).mean()),
                 float(np.exp(np.log(share).mean())), float(share.min()), len(np.unique(classes)))


@dataclass(frozen=True)
class Confusion:
    """Products whose best configuration is ``label`` and that are told ``told``, which takes longer.

    ``share`` of all products; ``extra`` is by what part more these take, in the mean.
    """

    label: str
    told: str
    share: float
    extra: float


def regrets(choices: Choices, known: LabelledProducts, classes: Whole) -> Real:
    """Return ``(p)``: by what part more than the best products take as advised, ``classes`` ``(p)``."""
    taken: Real = choices.cycles(known.products, classes[:, None])[:, 0] / known.cycles - 1
    return taken


def confusions(choices: Choices, known: LabelledProducts, classes: Whole, extra: Real) -> tuple[Confusion, ...]:
    """Return where advice takes longer than the best by ``extra`` (`regrets`), what adds most cycles first."""
    wrong = np.flatnonzero(extra > 0)
    pairs, places = np.unique(np.stack([known.classes[wrong], classes[wrong]], axis=1), axis=0, return_inverse=True)
    sums, counts = np.bincount(places.ravel(), extra[wrong], len(pairs)), np.bincount(places.ravel(), None, len(pairs))
    names = [[str(choices.configurations[one]) for one in pair] for pair in pairs]
    return tuple(Confusion(names[at][0], names[at][1], float(counts[at] / len(extra)), float(sums[at] / counts[at]))
                 for at in np.argsort(-sums, kind="stable"))


def best_fixed(choices: Choices, known: LabelledProducts) -> int:
    """Return the one class that does best for all of the first products, by the geometric mean: the least to beat."""
    first = known.rows(slice(None, 2_000))
    logs = np.log(choices.all_cycles(first.products, known.live.tolist())).mean(axis=0)
    return int(known.live[logs.argmin()])

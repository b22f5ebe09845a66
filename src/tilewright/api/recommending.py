"""What to set a reconfigurable array to for each layer, exactly or by a network; what the library knows instead."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tilewright.report
import tilewright.store
from tilewright.api.array_options import RecommendOptions
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import load_layers
from tilewright.api.network_runs import Seconds, run_record
from tilewright.api.options import RunOptions
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.runs import Run
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import NetworkTask, check_seed, prepare, texts_of
from tilewright.api.training_options import RecommenderOptions, read_count
from tilewright.api.warm import source_of
from tilewright.base import InputError, require_extra, unknown_name
from tilewright.cost import (
    RECONFIGURABLE_ARRAYS,
    TIE_RULE,
    ReconfigurableArray,
    SystolicProduct,
    array_energy,
    network_sum,
    reconfigurable_array,
)
from tilewright.hardware import preset_names
from tilewright.recommendation import (
    GUESSES,
    LIKE,
    NEAREST,
    Advice,
    Choices,
    Confusion,
    Fallback,
    LabelledProducts,
    ProductSample,
    Score,
    advise,
    best_fixed,
    confusions,
    first_guess,
    label,
    load_recommender,
    regrets,
    score,
    training_options,
)
from tilewright.recommendation import train_recommender as train
from tilewright.search import SearchResult, Source, search_spaces
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators

OF_ARRAYS = ("power", "space", "ties", "fallback", "top", "within")
"""Options that mean something for reconfigurable arrays alone."""
UNKNOWN = 1_000
"""Mappings that are searched for a layer of which none is known that is like it."""


def advise_mappings(asked: RecommendOptions) -> Run:
    """Return the run of a network whose layers have the best of what the most similar known ones suggest."""
    began = time.perf_counter()
    for name in OF_ARRAYS:
        if getattr(asked, name) != getattr(RecommendOptions, name):
            raise InputError(name, "must be left out for an accelerator", getattr(asked, name),
                             "It is an option of reconfigurable arrays")
    ready_cache()
    task = prepare(RunOptions(asked.network, asked.arch, objective=asked.objective, bind=asked.bind,
                              layers=asked.layers, budget=UNKNOWN))
    spaces = [task.space(operator) for operator in task.operators]
    with tilewright.store.Library(asked.model).there() as library:
        known = library.nearest(spaces, str(task.objective), LIKE)
    setup = time.perf_counter() - began
    found = [(one, _guess(task, one.operator, tuple(source_of(entry, one.operator) for entry in like)))
             for one, like in zip(unique_operators(task.graph), known, strict=True)]
    request = replace(task.request, mapper=NEAREST, warm_start="library", budget_samples=GUESSES,
                      command=command_line("recommend", asked))
    return Run(run_record(replace(task, request=request), found, (), Seconds(time.perf_counter() - began, setup)))


def _guess(task: NetworkTask, operator: Operator, known: tuple[Source, ...]) -> SearchResult:
    """Return the best guess of a layer; a short search where no layer is like it."""
    spaces = task.spaces(operator)
    if known:
        return first_guess(spaces, known, task.objective)
    return search_spaces(spaces, objective=task.objective, budget=UNKNOWN)


if TYPE_CHECKING:
    from tilewright.learn import Epoch

TRAIN = "train-recommender"


@dataclass(frozen=True)
class LayerAdvice:
    """Advice for the equal layers called ``names``: ``products`` equal products in each of ``times`` runs of them."""

    names: tuple[str, ...]
    times: int
    products: int
    advice: Advice

    @property
    def runs(self) -> int:
        """Products in all."""
        return self.times * self.products


@dataclass(frozen=True, repr=False)
class Recommendation(OnSheet):
    """Advice for every layer of a network.

    Parameters
    ----------
    layers
        Those that differ, by the name of the first of equals.
    skipped
        Layers that are no matrix products, with the reason.
    fixed_cost, fixed
        By the objective, what the network takes on the one configuration that is best for all of it, and which.
    whole_cost
        What it takes on the whole plane as one array, outputs resting.

    Examples
    --------
    >>> import tilewright as tw
    >>> advice = tw.recommend("matmul:M=256,N=256,K=64", arch="sagar")
    >>> advice.cost, advice.best, advice.regret, advice.source
    (266, 266, 0.0, 'exact')
    >>> str(advice.configuration["matmul"])
    '16x64 of 4x4 ws'
    """

    network: str
    array: ReconfigurableArray
    objective: str
    space: str
    layers: dict[str, LayerAdvice]
    skipped: tuple[tuple[str, str], ...]
    fixed: str
    fixed_cost: float
    whole_cost: float
    seconds: float
    command: str = ""

    @property
    def configuration(self) -> dict[str, Any]:
        """What is advised, by the name of the layer."""
        return {name: layer.advice.configuration for layer in self.layers.values() for name in layer.names}

    def _sum(self, figure: str) -> float:
        found: float = network_sum((layer.runs, getattr(layer.advice, figure)) for layer in self.layers.values())
        return found

    @property
    def cost(self) -> float:
        """Of the network as advised, by the objective: cycles, picojoules, or each product's product of both, added."""
        return self._sum("cost")

    @property
    def best(self) -> float:
        """The same where each layer has its best configuration."""
        return self._sum("best_cost")

    @property
    def bound(self) -> float:
        """What nothing can do with less of."""
        return self._sum("bound")

    @property
    def cycles(self) -> int:
        """Of the network as advised."""
        return int(self._sum("cycles"))

    @property
    def energy_pj(self) -> float | None:
        """Of the network as advised, DRAM apart; None where the power of the array is not known."""
        if self.array.power_w is None:
            return None
        return self._sum("energy_pj")

    @property
    def regret(self) -> float:
        """By what part the network takes more than it could."""
        return self.cost / self.best - 1.0

    @property
    def confidence(self) -> float:
        """How sure the advice for the layer is that it is least sure of."""
        return min(layer.advice.confidence for layer in self.layers.values())

    @property
    def source(self) -> str:
        """Who says so."""
        return "; ".join(dict.fromkeys(layer.advice.source for layer in self.layers.values()))

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.recommendation_sheet(self.plain)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        rows = [{"name": name, "names": layer.names, "times": layer.times, "products": layer.products,
                 **asdict(layer.advice), "configuration": str(layer.advice.configuration),
                 "best": str(layer.advice.best), "regret": layer.advice.regret} for name, layer in self.layers.items()]
        told = {name: getattr(self, name) for name in (
            "network", "objective", "space", "cost", "best", "bound", "cycles", "energy_pj", "regret", "confidence",
            "source", "fixed", "fixed_cost", "whole_cost", "seconds", "command")}
        return {**told, "array": self.array.record(), "layers": rows,
                "skipped": [{"name": name, "why": why} for name, why in self.skipped]}


@takes(RecommendOptions, raises=", no layer is a matrix product, the model is of another array, or energy is asked for "
                              "where the power of the array is not known")
def recommend(asked: RecommendOptions) -> Recommendation | Run:
    """Return the configuration of a reconfigurable array that each layer of a network wants, or its mappings.

    Convolutions are products of their windows; groups and batches are products one after the other. Without a model
    every configuration is looked at, which is exact; with one, products beyond its sizes still are. On an accelerator
    each layer gets the best of what the mappings of the most similar layers in the library suggest, as a `Run`.
    """
    if not isinstance(asked.arch, str) or not (asked.arch.isdecimal() or asked.arch in RECONFIGURABLE_ARRAYS):
        try:
            return advise_mappings(asked)
        except InputError as error:
            if error.field != "accelerator":
                raise
            known = [*RECONFIGURABLE_ARRAYS, *preset_names()]
            raise unknown_name("accelerator or reconfigurable array", str(asked.arch), known, "arch") from None
    began = time.perf_counter()
    if asked.fallback and asked.model is None:
        raise InputError("fallback", "needs a model to fall back from", asked.fallback, "Give --model FILE")
    array = find_array(asked.arch)
    array = array if asked.power is None else replace(array, power_w=asked.power)
    choices = Choices(array, asked.space, objective=asked.objective, ties=texts_of(asked.ties or TIE_RULE))
    fallback = Fallback(asked.top, asked.within)
    if array.power_w is not None or asked.objective != "latency":
        array_energy(array)
    model = None if asked.model is None else load_recommender(Path(asked.model), choices)
    graph = load_layers(asked.network, asked.bind, asked.layers)
    found, skipped = _products(graph)
    ready_cache()
    products = np.array([(one.m, one.n, one.k) for _, one in found], dtype=np.int64)
    told = advise(products, choices, model, fallback if asked.fallback else None)
    layers = {unique.names[0]: LayerAdvice(unique.names, unique.count, one.count, advice)
              for (unique, one), advice in zip(found, told, strict=True)}
    runs = np.array([layer.runs for layer in layers.values()])
    totals = (choices.all_figures(products, range(len(choices.configurations))) * runs[:, None]).sum(axis=0)
    rows, columns = choices.array.plane
    whole = next(at for at, one in enumerate(choices.configurations)
                 if (one.rows, one.columns, one.dataflow) == (rows, columns, "os"))
    return Recommendation(graph.name, array, asked.objective, asked.space, layers, skipped,
                          str(choices.configurations[totals.argmin()]), totals.min().item(), totals[whole].item(),
                          time.perf_counter() - began, command_line("recommend", asked))


def find_array(name: str) -> ReconfigurableArray:
    """Return a preset, or an array of so many units; an `InputError` if it is neither."""
    if name.isascii() and name.isdecimal() and name not in RECONFIGURABLE_ARRAYS:
        return ReconfigurableArray(int(name), name=name)
    return reconfigurable_array(name)


def _products(graph: Graph) -> tuple[list[tuple[UniqueOperator, SystolicProduct]], tuple[tuple[str, str], ...]]:
    """Return the distinct layers that are products, with these, and the others (by name) with what they lack."""
    found, skipped = [], []
    for unique in unique_operators(graph):
        try:
            found.append((unique, SystolicProduct.of(unique.operator)))
        except InputError as error:
            skipped.append((unique.names[0], error.rule))
    if not found:
        why = "; ".join(f"{name} {rule}" for name, rule in skipped[:3])
        raise InputError(graph.name, "must have a layer that is a matrix product or a convolution", None, why)
    return found, tuple(skipped)


@dataclass(frozen=True, repr=False)
class RecommenderTraining(OnSheet):
    """What `train_recommender` made: where, of what, and how it does on products that it has not seen."""

    file: Path
    array: str
    space: str
    network: str
    sampler: str
    samples: int
    live: int
    """Configurations that are the best of any product, of ``configurations``."""
    configurations: int
    ties: float
    """Share of products with several best configurations."""
    labelling_seconds: float
    training_seconds: float
    curve: "tuple[Epoch, ...]"
    scores: tuple[Score, ...]
    """Of the one best configuration for all, of the network alone, and of its first guesses scored."""
    calibration_error: float
    """Mean distance of its confidence from the share of right answers (expected calibration error)."""
    weights: int
    """Numbers that the network holds."""
    confusions: tuple[Confusion, ...]
    """Where the network alone tells what takes longer than the best."""
    beyond: tuple[tuple[float, float], ...]
    """By what part more than the best, and the share of products that take at least so much more as it tells."""

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.training_sheet(self.plain)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "file": str(self.file)}


@takes(RecommenderOptions, raises=", PyTorch is missing, or a file is of other labels or another training")
def train_recommender(asked: RecommenderOptions) -> RecommenderTraining:
    """Label products with their best configurations, train a network on nine tenths of them, test it on the last one.

    Training that is kept in ``checkpoint`` goes on there, to the same network bit for bit.
    """
    require_extra("learn", TRAIN, "PyTorch")
    from tilewright.learn import TrainingWatch  # noqa: PLC0415  (PyTorch loads late)

    choices = Choices(find_array(asked.arch), asked.space, ties=texts_of(asked.ties or TIE_RULE))
    place, kept = ready_place(Path(asked.file)), None if asked.checkpoint is None else Path(asked.checkpoint)
    watch = TrainingWatch(asked.progress, asked.stop, kept, threads=asked.threads, device=asked.device)
    check_seed(asked.seed)
    options = training_options(asked.network, asked.epochs, asked.batch, asked.seed)
    began = time.perf_counter()
    ready_cache()
    known = _labels(choices, ProductSample(asked.sampler, read_count(asked.samples), asked.seed),
                    None if asked.labels is None else Path(asked.labels), asked.labelled)
    learnt, unseen = known.parts
    labelling = time.perf_counter() - began
    done = train(choices, learnt, asked.network, options, watch)
    training = time.perf_counter() - began - labelling
    told = done.recommender
    fixed = best_fixed(choices, learnt)
    alone, judged = told.tried(unseen)
    scores = (score(f"always {choices.configurations[fixed]}", choices, unseen, np.full(len(unseen.products), fixed)),
              judged, told.judged(unseen, Fallback()))
    told.save(place)
    more = regrets(choices, unseen, alone.classes)
    beyond = tuple((10.0**power, float((more >= 10.0**power).mean())) for power in np.linspace(-6, 1, 57).tolist())
    return RecommenderTraining(
        place, choices.array.name, asked.space, asked.network, asked.sampler, len(known.products), len(known.live),
        len(choices.configurations), float((known.equals > 1).mean()), labelling, training, done.curve, scores,
        done.calibration_error, told.classifier.size, confusions(choices, unseen, alone.classes, more), beyond)


def _labels(choices: Choices, drawn: ProductSample, place: Path | None,
            told: Callable[[int], None] | None) -> LabelledProducts:
    """Return labels, from their file where there is one."""
    if drawn.samples < 20:
        raise InputError("samples", "must be at least 20, to learn from some and be tested on others", drawn.samples)
    if place is not None and place.exists():
        known = LabelledProducts.load(place)
        if known.about != drawn.about(choices):
            raise InputError("labels", "must be of the same array, space, rules, sampler, samples and seed", str(place),
                             "Name another file, which will be written")
        return known
    if place is None:
        return label(choices, drawn, told=told)
    require_extra("recommend", "labels", str(place))
    pieces = ready_place(place).with_suffix(".pieces")
    known = label(choices, drawn, pieces, told)
    known.save(place)
    for piece in pieces.iterdir():
        piece.unlink()
    pieces.rmdir()
    return known

"""Mappings of the layers of a network on an accelerator, without a search: from those that the library knows."""

import time
from dataclasses import replace

import tilewright.store
from tilewright.api.array_options import RecommendOptions
from tilewright.api.flags import command_line
from tilewright.api.options import RunOptions
from tilewright.api.places import ready_cache
from tilewright.api.runs import Run, Seconds, run_record
from tilewright.api.tasks import NetworkTask, prepare
from tilewright.api.warm import source_of
from tilewright.base import InputError
from tilewright.recommendation import GUESSES, LIKE, NEAREST, first_guess
from tilewright.search import SearchResult, Source, search_spaces
from tilewright.workload import Operator, unique_operators

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

"""Mappings without a search: those known of the layers most like a new one, made to fit it, scored, the best taken.

What learns here is the library of best mappings: a memory of examples, asked for the nearest. All guesses are scored by
the cost model, so that what advice costs is known, and a layer that is known itself gets a mapping as good.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.base import InputError
from tilewright.cost import cost_model
from tilewright.mapping import KeptSets, MapSpace
from tilewright.search import Bounding, KeptBounding, Objective, Scorer, SearchResult, Source, Start, search

NEAREST = "nearest"
"""What stands for the mapper where none searched."""
LIKE = 8
"""Layers that lend their mappings."""
GUESSES = 8 * LIKE
"""Mappings that are scored at most: each layer gives up to eight."""


def first_guess(spaces: Sequence[MapSpace] | KeptSets, sources: Sequence[Source], goal: Objective) -> SearchResult:
    """Return the best of the guesses that mappings of like layers give for a union of spaces, all scored.

    Where memories may keep less than they can, a guess keeps what its source does.

    Raises an `InputError` if there is no source.
    """
    if not sources:
        raise InputError("sources", "must be one or more")
    began = time.perf_counter()
    if isinstance(spaces, KeptSets):
        keep = [spaces.number_of(source.mapping) for source in sources]
        members = [(spaces[number], tuple(source for source, kept in zip(sources, keep, strict=True) if kept == number))
                   for number in dict.fromkeys(keep)]
    else:
        members = [(space, tuple(sources)) for space in spaces]
    tried = []
    for space, own in members:
        batch = Start(own).batch(space)
        costs = cost_model(space.operator, space.accelerator, space.layout).score(batch)
        tried.append((space, batch, Scorer(goal, space.operator, space.accelerator).scores(costs), costs.legal))
    space, batch, scores, _ = min(tried, key=lambda one: float(one[2].min()))
    best = search(space.operator, space.accelerator, objective=goal, mapper="random", budget=1, space=space,
                  start=batch.take(np.argsort(scores)[:1]))
    bounding = KeptBounding(spaces, goal) if isinstance(spaces, KeptSets) else Bounding(tuple(spaces), goal)
    return replace(best, mapper=NEAREST, samples=sum(len(one[1]) for one in tried),
                   legal_samples=sum(int(one[3].sum()) for one in tried), seconds=time.perf_counter() - began,
                   history=(), bounding=bounding, start=tuple(source.origin for source in sources))

"""Mappings without a search: those known of the layers most like a new one, made to fit it, scored, the best taken.

What learns here is the library of best mappings: a memory of examples, asked for the nearest. All guesses are scored by
the cost model, so that what advice costs is known, and a layer that is known itself gets a mapping as good.
"""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.base import InputError
from tilewright.mapping import KeptSets, MapSpace
from tilewright.search import Bounding, KeptBounding, Objective, SearchResult, Source, Start, search

NEAREST = "nearest"
"""What stands for the mapper where none searched."""
LIKE = 8
"""Layers that lend their mappings; each gives at most eight guesses, and `Start` takes 64."""


def first_guess(spaces: Sequence[MapSpace] | KeptSets, sources: Sequence[Source], goal: Objective) -> SearchResult:
    """Return the best of the guesses that mappings of like layers give for a union of spaces, all scored.

    Where memories may keep less than they can, a guess keeps what its source does.

    Raises
    ------
    InputError
        If there is no source.
    """
    if not sources:
        raise InputError("sources", "must be one or more")
    if isinstance(spaces, KeptSets):
        keep = [spaces.number_of(source.mapping) for source in sources]
        members = [(spaces[number], tuple(source for source, kept in zip(sources, keep, strict=True) if kept == number))
                   for number in dict.fromkeys(keep)]
    else:
        members = [(space, tuple(sources)) for space in spaces]
    tried = []
    for space, own in members:
        batch = Start(own).batch(space)
        tried.append(search(space.operator, space.accelerator, objective=goal, mapper="random", budget=len(batch),
                            space=space, start=batch))
    bounding = KeptBounding(spaces, goal) if isinstance(spaces, KeptSets) else Bounding(tuple(spaces), goal)
    return replace(min(tried, key=lambda one: one.score), mapper=NEAREST, samples=sum(one.samples for one in tried),
                   legal_samples=sum(one.legal_samples for one in tried), seconds=sum(one.seconds for one in tried),
                   history=(), bounding=bounding, start=tuple(source.origin for source in sources))

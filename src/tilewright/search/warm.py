"""Which layers of a network begin from which others (Kao, dissertation, section 5.3.1)."""

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tilewright.base import InputError
from tilewright.search.records import SearchResult
from tilewright.search.start import Origin, Source, Start
from tilewright.workload import Operator, edit_distance, form

WarmStart = Literal["off", "previous", "similar", "library"]
WARM_STARTS: tuple[WarmStart, ...] = get_args(WarmStart)
NEIGHBOURS = 5
"""Layers or entries that a search begins from, the most similar ones."""


@dataclass(frozen=True)
class Lender:
    """An earlier layer, by its place in the network, and in how many sizes it differs."""

    place: int
    distance: int


@dataclass(frozen=True)
class Beginning:
    """What one layer begins from: entries of the library, and the bests of earlier layers, once they are known."""

    known: tuple[Source, ...] = ()
    lenders: tuple[Lender, ...] = ()

    def start(self, kind: WarmStart, results: Dictionary[int, SearchResult]) -> Start | None:
        """Return the start, the least distant first; None where no earlier search found a mapping."""
        sources = list(self.known)
        for lender in self.lenders:
            result = results.get(lender.place)
            if result is not None and result.mapping is not None:
                origin = Origin("previous" if kind == "previous" else "similar", result.operator.name, lender.distance)
                sources.append(Source(result.mapping, result.operator.sizes, origin))
        sources.sort(key=lambda source: source.origin.distance)
        return Start(tuple(sources[:NEIGHBOURS])) if sources else None


def beginnings(operators: Sequence[Operator], kind: WarmStart,
               known: Dictionary[str, Sequence[Source]] | None = None) -> list[Beginning]:
    """Return what each operator begins from, decided by their sizes alone, so that results cannot depend on timing.

    ``previous``: the layer of its `form` before it; ``similar``: the layers before it of which the fewest sizes differ
    (of equals those of nearer sizes, then the later); ``library``: ``known`` by the operator's name, and similar
    layers, whichever are less distant.

    Raises an `InputError` if the kind is unknown.
    """
    if kind not in WARM_STARTS:
        raise InputError("warm_start", f"must be one of {', '.join(WARM_STARTS)}", kind)
    found = []
    forms = [form(operator) for operator in operators]
    for place, operator in enumerate(operators):
        if kind == "off":
            found.append(Beginning())
            continue
        ranks = sorted((*edit_distance(operator.sizes, operators[other].sizes), -other)
                       for other in range(place) if forms[other] == forms[place])
        if kind == "previous":
            ranks = [rank for rank in ranks if rank[2] == min(other[2] for other in ranks)]
        lenders = tuple(Lender(-other, distance) for distance, _, other in ranks[:NEIGHBOURS])
        entries = tuple((known or {}).get(operator.name, ())) if kind == "library" else ()
        nearest = sorted([(source.origin.distance, 0) for source in entries] + [
            (lender.distance, 1) for lender in lenders])[:NEIGHBOURS]
        lent = sum(side for _, side in nearest)
        found.append(Beginning(entries[:len(nearest) - lent], lenders[:lent]))
    return found


def rounds(beginning: Sequence[Beginning], order: Sequence[int], workers: int) -> int:
    """Return how many searches follow one another where all take equally long.

    ``workers`` are run side by side, of those that may begin the first in ``order``.
    """
    done: set[int] = set()
    count = 0
    while len(done) < len(order):
        ready = [place for place in order
                 if place not in done and all(lender.place in done for lender in beginning[place].lenders)]
        done |= set(ready[:workers])
        count += 1
    return count

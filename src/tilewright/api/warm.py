"""What the layers of a run begin from, and how their best mappings get into the library."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tilewright.store
from tilewright.api.places import ready_place
from tilewright.base import InputError, write_whole
from tilewright.cost import Cost
from tilewright.mapping import Mapping, MapSpace
from tilewright.search import (
    NEIGHBOURS,
    WARM_STARTS,
    Beginning,
    Budget,
    Objective,
    Origin,
    SearchResult,
    Source,
    WarmStart,
    beginnings,
    largest_first,
    rounds,
)
from tilewright.workload import Operator, edit_distance

STARTS = "starts.json"
"""File of a checkpoint's folder that holds what was read from the library."""


@dataclass(frozen=True)
class LibraryUse:
    """What became of the library in a run.

    ``added`` counts the mappings that were better than what it held; ``warning`` is empty when all went well.
    """

    added: int = 0
    warning: str = ""


UNUSED = LibraryUse()


@dataclass(frozen=True)
class Warmth:
    """What layers begin from (`WarmStart`), by name the known mappings to begin from, and the library, if any.

    Best mappings go to the library where it ``keeps`` them.
    """

    kind: WarmStart
    shelf: "tilewright.store.RunLibrary | None"
    keeps: bool
    known: dict[str, tuple[Source, ...]]

    def beginnings(self, operators: Sequence[Operator]) -> list[Beginning]:
        """Return what each operator begins from."""
        return beginnings(operators, self.kind, self.known)

    def keep(self, space: MapSpace, result: SearchResult, network: str, run_id: str) -> None:
        """Put the best mapping of a search into the library, where it is to be kept and meets the constraints."""
        if self.shelf is None or result.mapping is None or not result.feasible:
            return
        assert result.cost is not None
        self.put(space, result.objective, (result.mapping, result.cost, result.score), tilewright.store.Provenance(
            network, run_id, result.mapper, str(result.seed), result.samples))

    def put(self, space: MapSpace, objective: str, found: tuple[Mapping, Cost, float],
            provenance: "tilewright.store.Provenance") -> None:
        """Put the best mapping of a space, its cost and its score into the library, where it is to be kept."""
        if self.shelf is not None and self.keeps:
            mapping, cost, score = found
            self.shelf.add(tilewright.store.entry(space, objective, mapping, (
                score, int(cost.latency_cycles), float(cost.energy_pj)), provenance))

    def end(self) -> LibraryUse:
        """Let go of the library; say what became of it."""
        if self.shelf is None:
            return UNUSED
        self.shelf.close()
        return LibraryUse(self.shelf.added, self.shelf.warning)


OFF = Warmth("off", None, False, {})


def warmth(kind: str, store: str | os.PathLike[str] | bool, spaces: dict[str, MapSpace], goal: Objective,
           checkpoint: str | os.PathLike[str] | None = None) -> Warmth:
    """Return what layers begin from; the library is read once, before the first search, so that timing decides nothing.

    ``spaces`` are those of the layers by name. Without a store (False) nothing is kept, and the default one is read.
    What was read is kept in the folder ``checkpoint``, for the run that takes it up: the library goes on meanwhile.

    Raises an `InputError` if the kind is unknown.
    """
    chosen = next((name for name in WARM_STARTS if name == kind), None)
    if chosen is None:
        raise InputError("warm_start", f"must be one of {', '.join(WARM_STARTS)}", kind)
    keeps = store is not False
    if not keeps and chosen != "library":
        return Warmth(chosen, None, False, {})
    shelf = tilewright.store.RunLibrary(None if isinstance(store, bool) else store)
    if not keeps and shelf.library.missing:
        return Warmth(chosen, None, False, {})
    if chosen != "library":
        return Warmth(chosen, shelf, keeps, {})
    file = None if checkpoint is None else Path(checkpoint) / STARTS
    nearest = _kept(file) if file is not None and file.exists() else None
    if nearest is None:
        objective = "; ".join([str(goal), *map(str, goal.constraints)])
        found = shelf.nearest(list(spaces.values()), objective, NEIGHBOURS)
        nearest = dict(zip(spaces, found, strict=True))
        if file is not None:
            plain = {name: [asdict(one) for one in entries] for name, entries in nearest.items()}
            write_whole(ready_place(file), json.dumps(plain) + "\n")
    known = {name: tuple(source_of(one, space.operator) for one in nearest.get(name, ()))
             for name, space in spaces.items()}
    return Warmth(chosen, shelf, keeps, known)


def _kept(file: Path) -> "dict[str, tuple[tilewright.store.Entry, ...]]":
    try:
        return {name: tuple(tilewright.store.Entry(**one) for one in entries)
                for name, entries in json.loads(file.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(str(file), "must be the file that the run wrote", str(error),
                         "Delete the folder to start afresh") from None


def source_of(found: "tilewright.store.Entry", operator: Operator) -> Source:
    """Return what an entry of the library lends an operator of its form."""
    distance, _ = edit_distance(operator.sizes, found.sizes)
    origin = Origin("library", f"{found.network}/{found.layer}", distance, found.run_id)
    return Source(found.loops(), found.sizes, origin)


def warm_budget(budget: Budget, operators: Sequence[Operator], begin: Sequence[Beginning], workers: int) -> Budget:
    """Return the budget of one layer: all of the samples, and an even share of the seconds of the whole run.

    Layers that wait for others cannot all be searched side by side, which makes the share smaller.
    """
    if budget.seconds is None:
        return budget
    return Budget(budget.samples, budget.seconds / max(1, rounds(begin, largest_first(operators), workers)))

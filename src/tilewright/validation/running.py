"""Runs sets of reference figures and judges what comes out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, get_args

from tilewright.base import InputError
from tilewright.validation.accepting import SetOutcome, judge, read_accepted
from tilewright.validation.records import SETS, Kind, ReferenceSet, ValidationWatch

CaseObserver = Callable[[str, int, int], None]
"""Called with the set's name, cases done and cases in all."""


@dataclass(frozen=True)
class Scoreboard:
    """All sets that were run."""

    outcomes: tuple[SetOutcome, ...]
    full: bool = False

    @property
    def holds(self) -> bool:
        """Whether no error has grown."""
        return all(outcome.holds for outcome in self.outcomes)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data; an error against a reference of 0 is None."""
        return {"full": self.full, "holds": self.holds, "sets": [_plain(outcome) for outcome in self.outcomes]}


def validate(sets: Sequence[str] = (), *, full: bool = False, observer: CaseObserver | None = None) -> Scoreboard:
    """Run sets of reference figures (all where none is named) and judge our errors against those accepted.

    Parameters
    ----------
    full
        Minutes instead of seconds: more random nests beside the oracle.
    observer
        Called with a set's name, cases done and cases in all.

    Raises
    ------
    InputError
        If there is no set of such a name, or one is named twice.

    Examples
    --------
    >>> import tilewright as tw
    >>> board = tw.validate(["gemmini"])
    >>> board.holds, board.outcomes[0].judged[0].quantity
    (True, 'cycles in rounds')
    """
    asked = [SETS.get(name).name for name in sets]
    if len(set(asked)) < len(asked):
        raise InputError("SET", "must be named once", next(name for name in asked if asked.count(name) > 1),
                         "Leave all but one out")
    accepted = read_accepted()
    chosen = [found for found in reference_sets() if not asked or found.name in asked]
    figures = ((found, found.run(ValidationWatch(full, _told(found.name, observer)))) for found in chosen)
    return Scoreboard(tuple(judge(found, each, accepted, full=full) for found, each in figures), full)


def reference_sets() -> tuple[ReferenceSet, ...]:
    """Return all sets: the oracle first, then models, then simulations of hardware, then chips."""
    kinds = get_args(Kind)
    return tuple(sorted((SETS.get(name) for name in SETS), key=lambda found: (kinds.index(found.kind), found.name)))


def _told(name: str, observer: CaseObserver | None) -> Callable[[int, int], None]:
    return lambda done, total: observer(name, done, total) if observer is not None else None


def _plain(outcome: SetOutcome) -> dict[str, Any]:
    found = outcome.set
    return {
        "name": found.name, "title": found.title, "kind": found.kind, "source": found.source, "about": found.about,
        "why": found.why, "holds": outcome.holds, "notes": list(outcome.findings.notes),
        "quantities": [{
            "name": each.quantity, "unit": each.unit, "verdict": each.verdict,
            "found": _finite(asdict(each.found)),
            "accepted": None if each.accepted is None else _finite(asdict(each.accepted)),
        } for each in outcome.judged],
        "cases": [{"case": figure.case, "quantity": figure.quantity, "ours": figure.ours,
                   "reference": figure.reference, "error": figure.error if isfinite(figure.error) else None}
                  for figure in outcome.findings.figures],
    }


def _finite(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in tree.items()}

"""The errors that are accepted, and whether a run kept within them."""

import json
from dataclasses import dataclass
from math import ceil, floor, inf
from pathlib import Path
from typing import Any, Literal

from tilewright.base import InputError
from tilewright.validation.records import DATA, ReferenceSet, SetFigures, Summary, summary

ACCEPTED = DATA / "accepted.json"
DIGITS = 4
"""Decimals to which accepted errors are rounded, so that another machine's last bits do not decide."""

Verdict = Literal["as accepted", "better", "grown", "not accepted yet"]


@dataclass(frozen=True)
class Judged:
    """One quantity of a set: its errors, those accepted (None: none yet), and the verdict."""

    quantity: str
    unit: str
    found: Summary
    accepted: Summary | None

    @property
    def verdict(self) -> Verdict:
        """``grown`` where any error is above the accepted one, or fewer cases are compared than were."""
        if self.accepted is None:
            return "not accepted yet"
        now, then = rounded(self.found), self.accepted
        if (now.cases < then.cases or now.median_error > then.median_error or now.worst_error > then.worst_error
                or (now.order or 0) < (then.order or 0)):
            return "grown"
        return "as accepted" if _errors(now) == _errors(then) else "better"

    @property
    def holds(self) -> bool:
        """Whether no error has grown."""
        return self.verdict in ("as accepted", "better")


@dataclass(frozen=True)
class SetOutcome:
    """A set that was run; ``key`` names its accepted errors."""

    set: ReferenceSet
    findings: SetFigures
    judged: tuple[Judged, ...]
    key: str

    @property
    def holds(self) -> bool:
        """Whether no error has grown."""
        return all(each.holds for each in self.judged)


def accepted_key(found: ReferenceSet, full: bool = False) -> str:
    """Return the name under which the errors of a set are accepted: those of a full run apart, where it is another."""
    return f"{found.name} --full" if full and found.deeper else found.name


def judge(found: ReferenceSet, findings: SetFigures, accepted: dict[str, dict[str, Summary]], *,
          full: bool = False) -> SetOutcome:
    """Set the errors of a run beside the accepted ones."""
    key = accepted_key(found, full)
    then = accepted.get(key, {})
    judged = tuple(Judged(each.name, each.unit, summary(each, findings.figures), then.get(each.name))
                   for each in found.quantities)
    strays = {figure.quantity for figure in findings.figures} - {each.name for each in found.quantities}
    if strays:
        raise ValueError(f"{found.name} has figures of {', '.join(sorted(strays))}, which it does not name")
    return SetOutcome(found, findings, judged, key)


def rounded(errors: Summary) -> Summary:
    """Return errors as they are accepted: up to the next unit of the last digit kept, the order down."""
    order = None if errors.order is None else floor(errors.order * 10**DIGITS + 1e-6) / 10**DIGITS
    return Summary(errors.cases, _up(errors.median_error), _up(errors.worst_error), order)


def read_accepted(path: Path = ACCEPTED) -> dict[str, dict[str, Summary]]:
    """Return the accepted errors by set and quantity.

    Raises an `InputError` if the file cannot be read or says something else.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return {name: {quantity: Summary(int(of["cases"]), _number(of["median_error"]), _number(of["worst_error"]),
                                         None if of.get("order") is None else float(of["order"]))
                       for quantity, of in quantities.items()} for name, quantities in tree.items()}
    except OSError as error:
        raise InputError(str(path), "must be a readable file of accepted errors", error.strerror) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(str(path), "must hold accepted errors by set and quantity", str(error)) from None


def accepted_text(outcomes: tuple[SetOutcome, ...], kept: dict[str, dict[str, Summary]]) -> str:
    """Return the file that accepts the errors of a run; sets that were not run keep what they have."""
    tree: dict[str, Any] = {name: {quantity: _plain(of) for quantity, of in quantities.items()}
                            for name, quantities in kept.items()}
    for outcome in outcomes:
        tree[outcome.key] = {each.quantity: _plain(rounded(each.found)) for each in outcome.judged}
    return json.dumps(tree, indent=1, sort_keys=True) + "\n"


def _errors(errors: Summary) -> tuple[float, float, float | None]:
    return errors.median_error, errors.worst_error, errors.order


def _plain(errors: Summary) -> dict[str, Any]:
    plain: dict[str, Any] = {"cases": errors.cases, "median_error": _text(errors.median_error),
                             "worst_error": _text(errors.worst_error)}
    return plain if errors.order is None else plain | {"order": errors.order}


def _up(error: float) -> float:
    return error if error == inf else ceil(error * 10**DIGITS - 1e-6) / 10**DIGITS


def _text(error: float) -> float | str:
    return "unbounded" if error == inf else error


def _number(error: float | str) -> float:
    return inf if error == "unbounded" else float(error)

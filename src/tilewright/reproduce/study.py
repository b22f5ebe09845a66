"""What a reproduction is: a paper's claims, the two settings to measure them at, and the code that does."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from tilewright.base import Plot as Plot
from tilewright.base import Registry
from tilewright.base import Table as Table
from tilewright.base import Value as Value
from tilewright.jobs import Job, Runner
from tilewright.reproduce.claims import KINDS, Claim, Judgement

Cell = Job[dict[str, Any]]
"""One part of a study: computed once, then kept. Its value is plain data."""


@dataclass(frozen=True)
class Findings:
    """What a study found: the first table is the paper's beside ours."""

    tables: tuple[Table, ...]
    judgements: tuple[Judgement, ...]
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """How much a study spends: ``seeds`` repetitions, and its own numbers (``samples``, ``layers`` ...) by name."""

    name: str
    seeds: int
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def free(self) -> tuple[bool, ...]:
        """Whether traffic is ``free``, for each kind of it (or ``dram``) that is asked for."""
        return tuple(kind == "free" for kind in self["traffic"])

    def __str__(self) -> str:
        parts = [f"{name} {_brief(value)}" for name, value in self.values.items()]
        return ", ".join([f"{self.name}: {self.seeds} seed{'s' if self.seeds > 1 else ''}", *parts])


Run = Callable[[Setting, Runner], Findings]
Figures = tuple[float, ...]


@cache
def published_cells(name: str) -> list[list[str]]:
    """Return the lines of a published table, its head first, as they stand in ``data/<name>.csv``."""
    with (files(__package__) / "data" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.reader(file))


def published(name: str, labels: int = 2) -> dict[tuple[str, ...], Figures]:
    """Return the figures of a published table by the ``labels`` that its rows begin with; NaN where none is printed."""
    return {tuple(row[:labels]): tuple(float(each or "nan") for each in row[labels:])
            for row in published_cells(name)[1:]}


def published_groups(name: str) -> dict[str, dict[str, Figures]]:
    """Return the rows of a published table that has two labels, by the first and then by the second."""
    found: dict[str, dict[str, Figures]] = {}
    for (group, label), row in published(name).items():
        found.setdefault(group, {})[label] = row
    return found


@dataclass(frozen=True)
class Study:
    """The reproduction of one published table or figure."""

    name: str
    """What people type: ``ruby-table1``."""
    title: str
    """What it shows, in one line."""
    source: str
    """Paper, section, table or figure."""
    claims: tuple[Claim, ...]
    """What `run` must judge, all of them."""
    quick: Setting
    full: Setting
    """``quick`` and ``full``: what each setting spends; quick ends in under a minute on two cores."""
    run: Run
    """Measures. All that takes time goes through ``runner.run`` as cells, so that it is kept and taken up again."""
    version: int = 1
    """Raised when a cell of the same description would come out otherwise."""
    cells: str = ""
    """The study whose cells it shares (their folder and version), itself by default."""


REPRODUCTIONS: Registry[Study] = Registry("reproduction")
"""All studies by name."""


_CLAIMS: dict[str, tuple[Claim, ...]] = {}


def claims(study: str, *first: float, **figures: float) -> tuple[Claim, ...]:
    """Return the claims of a study, which ``data/claims.csv`` holds in the order in which they are judged.

    Figures that follow from others, or from a published table, are given: those of the ``first`` claims in a row, and
    others by the names of their claims.
    """
    head, *rows = published_cells("claims")
    own = [row[1:] for row in rows if row[0] == study]
    known = figures | {name: figure for (name, *_), figure in zip(own, first, strict=False)}
    made = []
    for name, kind, *cells in own:
        said: dict[str, Any] = {column: cell for column, cell in zip(head[3:], cells, strict=True) if cell}
        numbers = {column: _quotient(said[column]) for column in ("figure", "none") if column in said}
        made.append(KINDS[kind](**said | numbers | ({"figure": known[name]} if name in known else {})))
    _CLAIMS[study] = tuple(made)
    return _CLAIMS[study]


def reproduction(name: str, quick: Setting, full: Setting, *, also: tuple[str, ...] = (),
                 **more: Any) -> Callable[[Run], Run]:
    """Register the function below as what measures a `Study`, which is found by the names in ``also``, too.

    Title and source stand in ``data/studies.csv``, and its claims are those that `claims` made, unless they are given.
    """
    def register(run: Run) -> Run:
        told: dict[str, Any] = {"claims": _CLAIMS.get(name, ())}
        for of, *texts in published_cells("studies"):
            if of == name:
                told |= dict(zip(("title", "source"), texts, strict=True))
        study = Study(name, quick=quick, full=full, run=run, **told | more)
        REPRODUCTIONS.register(name, also=also)(study)
        return run

    return register


def _quotient(text: str) -> float:
    """Return a number, which may be written as one over another."""
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


def _brief(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)}" if len(value) > 6 else " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

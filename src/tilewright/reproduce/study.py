"""What a reproduction is: a paper's claims, how they are judged, and the code that measures them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, Literal

from tilewright.base import Registry

if TYPE_CHECKING:
    from tilewright.reproduce.running import Watch

Verdict = Literal["holds", "holds in direction", "does not hold", "impossible as published", "not judged"]
"""``impossible as published``: what the paper states contradicts itself, can't be counted the way it says, or is below
the bound that no machine of its size can beat.

``not judged``: this run did not measure enough to say (a sweep cut short, too few seeds).
"""

Value = str | int | float | None

LEAST_SHARE = 0.25
"""What part of a published effect, in logarithms, must be found for a claim to hold in direction."""
QUARTER = "in direction for at least a quarter of the published gain, in logarithms (less does not hold)"
"""The same in words, for ``judged``."""


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be right or wrong.

    Parameters
    ----------
    text
        What is claimed, in our words.
    published
        The paper's figure.
    judged
        When it holds, and when only in direction.
    """

    text: str
    published: str
    judged: str


@dataclass(frozen=True)
class Judgement:
    """What became of a claim: our figure, the verdict, and why where that is not plain."""

    claim: Claim
    ours: str
    verdict: Verdict
    because: str = ""


@dataclass(frozen=True)
class Table:
    """A table as it is printed and written as CSV.

    Parameters
    ----------
    name
        Ends the name of the CSV file.
    columns
        Heads, with units; cells are texts, numbers or None.
    notes
        Printed below.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """A Plotly figure in plain data; colours are names such as ``@curve-0`` (see `tilewright.report`)."""

    name: str
    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    note: str = ""


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

    def __str__(self) -> str:
        parts = [f"{name} {_brief(value)}" for name, value in self.values.items()]
        return ", ".join([f"{self.name}: {self.seeds} seed{'s' if self.seeds > 1 else ''}", *parts])


@dataclass(frozen=True)
class Study:
    """The reproduction of one published table or figure.

    Parameters
    ----------
    name
        What people type: ``ruby-table1``.
    title
        What it shows, in one line.
    source
        Paper, section, table or figure.
    claims
        What `run` must judge, all of them.
    quick, full
        What each setting spends; quick ends in under a minute on two cores.
    run
        Measures. All that takes time goes through ``watch.run`` as cells, so that it is kept and can be taken up again.
    version
        Raised when a cell of the same description would come out otherwise.
    cells
        The study whose cells it shares (their folder and version), itself by default.
    """

    name: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    quick: Setting
    full: Setting
    run: "Callable[[Setting, Watch], Findings]"
    version: int = 1
    cells: str = ""


REPRODUCTIONS: Registry[Study] = Registry("reproduction")
"""All studies by name. One module and one line ``REPRODUCTIONS.register(name)(Study(...))`` add one."""


def reaches(ours: float, published: float) -> bool:
    """Whether a ratio shows at least `LEAST_SHARE` of the published one's effect: on its side of 1, in logarithms."""
    least = LEAST_SHARE * log(published)
    return log(ours) <= least if published <= 1 else log(ours) >= least


def _brief(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)}" if len(value) > 6 else " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

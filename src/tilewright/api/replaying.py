"""One mapping under the conventions of several tools, and why their figures differ."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.api.inputs import refuse_sparse
from tilewright.base import InputError
from tilewright.cost import Cost, DenseModel
from tilewright.cost.reference import ASSUMPTIONS, CONVENTIONS, KINDS, Replay, partings, replay_size
from tilewright.cost.reference import replay as walk_as
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping
from tilewright.workload import Operator

OURS = "tilewright"
NO_NETWORK = "no_network_energy"
TEXTS = ASSUMPTIONS | {
    NO_NETWORK: "energy is that of accesses and compute, with leakage where an assumption says so (ours: also of "
                "networks and of all leakage, where stated)",
}
Number = int | float
MOST_EXPLAINED_MACS = 50_000
"""Multiply-accumulates of the largest nest whose differences are explained: more would take many minutes."""
QUICK, A_SECOND = 40_000, 20_000
"""Tiles of replays that are walked without notice, and that are walked in about a second."""


@dataclass(frozen=True)
class ReplayedFigure:
    """One figure under each convention, in words of all instances, cycles or pJ.

    ``because`` names the assumptions that it depends on, where it differs and the nest is small enough to find out.
    """

    name: str
    figures: tuple[Number, ...]
    because: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the conventions disagree."""
        return len(set(self.figures)) > 1


@dataclass(frozen=True)
class Replayed:
    """A mapping counted under ``conventions``, in their order."""

    conventions: tuple[str, ...]
    lines: tuple[ReplayedFigure, ...]
    cost: Cost
    replays: dict[str, Replay]
    """What each convention but our own counts, by its name."""
    unexplained: str = ""
    """Why no reasons are given; empty where they are."""

    @property
    def assumptions(self) -> dict[str, str]:
        """What the assumptions say that the lines name."""
        named = {name for line in self.lines for name in line.because}
        return {name: text for name, text in TEXTS.items() if name in named}

    def record(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {
            "conventions": list(self.conventions),
            "lines": [{"name": line.name, "figures": list(line.figures), "because": list(line.because)}
                      for line in self.lines],
            "assumptions": self.assumptions,
            "replays": {name: _plain(made) for name, made in self.replays.items()},
        }


def replay(operator: Operator, accelerator: Accelerator, mapping: Mapping,
           conventions: Sequence[str] = (OURS, "timeloop"), *, reasons: bool = True) -> Replayed:
    """Count one mapping under the conventions of several tools, and name what parts them, figure by figure.

    Our own figures come from the exact model, those of others from a literal walk under their assumptions. Ramp cycles
    are left out, as other tools know none.

    Parameters
    ----------
    reasons
        Find out which assumptions every differing figure hangs on: some thirty walks (seconds for small nests); larger
        ones than `MOST_EXPLAINED_MACS` are not walked for it.

    Raises
    ------
    InputError
        If a convention is unknown, or the nest is too large to be walked.

    Examples
    --------
    >>> import tilewright as tw
    >>> operator, machine = tw.matmul("scores", m=8, n=8, k=8), tw.load_accelerator("tpu-like")
    >>> mapping = tw.dataflow("weight-stationary", operator, machine)
    >>> sorted({name for line in tw.replay(operator, machine, mapping).lines for name in line.because})
    ['no_drain_reads', 'no_network_energy']
    """
    names = tuple(dict.fromkeys(conventions))
    for name in names:
        if name not in CONVENTIONS:
            raise InputError("--as", f"must be one of {', '.join(CONVENTIONS)}", name)
    if not names:
        raise InputError("--as", f"must name at least one of {', '.join(CONVENTIONS)}")
    refuse_sparse(accelerator, "to be counted by other rules")
    cost = DenseModel(operator, accelerator).cost(mapping)
    replays = {name: walk_as(operator, accelerator, mapping, CONVENTIONS[name]) for name in names if name != OURS}
    columns = [_ours(cost) if name == OURS else _theirs(replays[name]) for name in names]
    because: dict[str, set[str]] = {}
    unexplained = ""
    reasons = reasons and len(names) > 1
    if reasons and operator.macs > MOST_EXPLAINED_MACS:
        unexplained = (f"too large to tell why: it must have at most {MOST_EXPLAINED_MACS:,} multiply-accumulates, not "
                       f"{operator.macs:,}. Replay a smaller layer of its kind")
    elif reasons:
        try:
            because = _reasons(operator, accelerator, mapping, tuple(replays))
        except InputError as error:
            unexplained = f"too large to tell why: it {error.rule}, {error.given:,}. {error.mend}"
    if because and len({column["energy_pj"] for column in columns}) > 1 and _has_more_energy(cost, accelerator):
        because["energy_pj"].add(NO_NETWORK)
    lines = tuple(ReplayedFigure(place, figures, tuple(name for name in TEXTS if name in because.get(place, ()))
                                 if len(set(figures)) > 1 else ())
                  for place in columns[0] for figures in [tuple(column[place] for column in columns)])
    return Replayed(names, lines, cost, replays, unexplained)


def replay_effort(operator: Operator, accelerator: Accelerator, mapping: Mapping, conventions: Sequence[str],
                  reasons: bool = True) -> Iterator[str]:
    """Yield, for each convention whose walks take more than a moment, how much is walked and about how long.

    A nest that is too large to be walked is an `InputError`.
    """
    for name in dict.fromkeys(conventions):
        if name == OURS or name not in CONVENTIONS:
            continue
        rules = CONVENTIONS[name]
        size = replay_size(operator, accelerator, mapping, rules)
        if reasons and operator.macs <= MOST_EXPLAINED_MACS:
            with suppress(InputError):  # then no reasons are given
                in_full = replay_size(operator, accelerator, mapping, rules.having("extrapolation", False))
                size += (2 + len(rules.made)) * (size + in_full)
        if size > QUICK:
            yield f"Walking {size:,} tiles as {name} does: some {size / A_SECOND:,.0f} s."


def _reasons(operator: Operator, accelerator: Accelerator, mapping: Mapping,
             names: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the assumptions behind every figure; energy, and cycles that ports decide, hang on all counts."""
    because: dict[str, set[str]] = {"cycles": set(), "energy_pj": set()}
    for name in names:
        for parting in partings(operator, accelerator, mapping, CONVENTIONS[name]):
            if parting.differs:
                place = ".".join(part for part in parting.place if part)
                because.setdefault(place, set()).update(parting.assumptions)
                if place not in ("cycles", "energy_pj"):
                    for total in ("cycles",) if place == "compute_cycles" else ("cycles", "energy_pj"):
                        because[total].update(parting.assumptions)
    return because


def _has_more_energy(cost: Cost, accelerator: Accelerator) -> bool:
    """Whether some energy is neither of accesses nor of compute."""
    usual = {accelerator.compute.name, *(memory.name for memory in accelerator.memories)}
    return any(pj > 0 for name, pj in cost.energy_by_component_pj.items() if name not in usual)


def _ours(cost: Cost) -> dict[str, Number]:
    counts: dict[str, Number] = {f"{memory}.{tensor}.{kind}": getattr(count, kind)
                                 for (memory, tensor), count in cost.counts.items() for kind in KINDS}
    return counts | {"compute_cycles": cost.steps, "cycles": cost.steady_cycles, "energy_pj": cost.energy_pj}


def _theirs(made: Replay) -> dict[str, Number]:
    counts: dict[str, Number] = {f"{memory}.{tensor}.{kind}": _number(count.total(kind))
                                 for (memory, tensor), count in made.counts.items() for kind in KINDS}
    return counts | {"compute_cycles": made.compute_cycles, "cycles": made.cycles, "energy_pj": made.energy_pj}


def _number(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else float(value)


def _plain(made: Replay) -> dict[str, Any]:
    """Return a replay as plain data: words per instance, as the tools report them."""
    return {
        "cycles": made.cycles, "compute_cycles": made.compute_cycles, "macs": made.macs, "energy_pj": made.energy_pj,
        "counts": {f"{memory}.{tensor}": {
            **{kind: _number(getattr(count, kind)) for kind in KINDS},
            "instances": count.instances, "capacity_words": count.capacity_words,
        } for (memory, tensor), count in made.counts.items()},
    }

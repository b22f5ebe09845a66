"""Flexibility-aware exploration: which flexibility pays on given networks, and at what area."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import geometric_mean
from typing import Any

import numpy as np

from tilewright.base import InputError, digest
from tilewright.codesign.variants import stated, with_flexibility
from tilewright.cost import NOTHING, Totals, network_sum
from tilewright.hardware import Accelerator, Flexibility
from tilewright.jobs import Job, Runner
from tilewright.search import MAPPERS, Objective, Watch, first_of_front, search_flexible
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators

FIGURES = {"latency": "latency_cycles", "energy": "energy_pj", "edp": "edp"}
"""The figure of an outcome that stands for an objective."""


@dataclass(frozen=True)
class Outcome:
    """What one machine makes of one network: cycles and picojoules of all layers (infinite where one has no mapping).

    Of several seeds it is the median by the objective (the lower of two). ``added_um2`` is what its flexibility adds,
    ``area_um2`` all of its area.
    """

    network: str
    choice: str
    flexibility: Flexibility
    latency_cycles: float
    energy_pj: float
    area_um2: float
    added_um2: float
    samples: int

    @property
    def edp(self) -> float:
        """Energy times delay, in pJ x cycles."""
        return self.latency_cycles * self.energy_pj


@dataclass(frozen=True)
class Exploration:
    """The outcomes of every choice on every network; ``base`` is the choice that others are compared with."""

    outcomes: tuple[Outcome, ...]
    base: str
    objective: str

    def of(self, network: str, choice: str) -> Outcome:
        """Return one outcome; an `InputError` if there is none."""
        for outcome in self.outcomes:
            if (outcome.network, outcome.choice) == (network, choice):
                return outcome
        raise InputError("exploration", f"must have been asked for {choice} on {network}", f"{network}, {choice}")

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks, in their order."""
        return tuple(dict.fromkeys(outcome.network for outcome in self.outcomes))

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, in their order."""
        return tuple(dict.fromkeys(outcome.choice for outcome in self.outcomes))

    def relative(self, network: str, choice: str, figure: str = "latency_cycles") -> float:
        """Return a figure of an outcome over that of the base choice on the same network."""
        return float(getattr(self.of(network, choice), figure) / getattr(self.of(network, self.base), figure))

    def worth(self, choice: str, figure: str = "latency_cycles") -> float:
        """Return the geometric mean of `relative` over all networks."""
        return geometric_mean(self.relative(network, choice, figure) for network in self.networks)


def explore(  # noqa: PLR0913  (keywords of the one entry point)
    networks: Mapping[str, Graph | Sequence[UniqueOperator]],
    accelerator: Accelerator,
    choices: Mapping[str, Flexibility],
    *,
    objective: str = "latency",
    mapper: str = "auto",
    samples: int = 10_000,
    seed: int = 0,
    seeds: int = 1,
    runner: Runner | None = None,
    vector: bool = False,
) -> Exploration:
    """Search every network on every choice of flexibility, each layer at equal samples.

    Equal choices of layer and machine give equal results with any ``runner``. The first choice is the base. Ctrl-C ends
    it early: there are then outcomes of the networks that were searched on all choices, or, if there is none, of the
    choices on which the first network was searched; maybe none.

    Parameters
    ----------
    choices
        Flexibilities by name, the one to compare with first: `class_choices`, or any.
    samples
        Of each layer on each machine.
    seeds
        Repetitions, of seeds ``seed`` and up.
    runner
        Runs the searches.
    vector
        Whether networks that are graphs take their vector work besides; searches leave it out.

    Raises
    ------
    InputError
        If there is no network or choice, or the machine states no flexibility.
    """
    layers = {name: list(unique_operators(network) if isinstance(network, Graph) else network)
              for name, network in networks.items()}
    _check(layers, accelerator, choices, objective, mapper)
    if seeds < 1:
        raise InputError("seeds", "must be a positive integer", seeds)
    machines = {name: with_flexibility(accelerator, flexibility) for name, flexibility in choices.items()}
    known = {name: digest(machine) for name, machine in machines.items()}
    work = [(network, choice, turn, index) for network, members in layers.items() for choice in choices
            for turn in range(seed, seed + seeds) for index in range(len(members))]
    jobs = [_job((turn, index), layers[network][index].operator, machines[choice],
                 {"machine": known[choice], "objective": objective, "mapper": mapper, "samples": samples})
            for network, choice, turn, index in work]
    values = (runner or Runner()).part(jobs)
    results = dict(zip(work, values, strict=True))
    outcomes = []
    beside = {(name, choice): Totals.beside(network, machine) if vector and isinstance(network, Graph) else NOTHING
              for name, network in networks.items() for choice, machine in machines.items()}
    for network, choice in product(layers, choices):
        turns = [_outcome(network, choice, machines[choice], [
            (layer.count, results[network, choice, turn, index]) for index, layer in enumerate(layers[network])],
            beside[network, choice]) for turn in range(seed, seed + seeds)]
        whole = [turn for turn in turns if turn is not None]
        if len(whole) == seeds:
            ordered = sorted(whole, key=lambda turn: float(getattr(turn, FIGURES.get(objective, "edp"))))
            outcomes.append(replace(ordered[(seeds - 1) // 2], samples=sum(turn.samples for turn in whole)))
    base = next(iter(choices))
    return Exploration(_complete(outcomes, base, len(choices)), base, objective)


def _check(layers: Mapping[str, Sequence[UniqueOperator]], accelerator: Accelerator, choices: Mapping[str, Flexibility],
           objective: str, mapper: str) -> None:
    stated(accelerator)
    Objective.parse(objective)
    MAPPERS.get(mapper)
    if not layers or not choices:
        raise InputError("explore", "must be given networks and choices", f"{len(layers)}, {len(choices)}")
    for name, members in layers.items():
        if not members:
            raise InputError(name, "must have layers of multiply-accumulates", "none")


def _job(seed: tuple[int, int], operator: Operator, machine: Accelerator,
         asked: dict[str, Any]) -> Job[dict[str, Any]]:
    key = {"operator": digest(operator.signature), **asked, "seed": [*seed]}
    return Job(key, _searched, samples=lambda value: int(value["samples"]),
               inputs=(operator, machine, asked["objective"], asked["mapper"], asked["samples"], seed))


def _searched(operator: Operator, machine: Accelerator, objective: str, mapper: str,  # noqa: PLR0913, PLR0917
              samples: int, seed: tuple[int, int]) -> dict[str, Any]:
    found = search_flexible(operator, machine, objective=objective, mapper=mapper, budget=samples, seed=seed,
                            watch=Watch(threads=1))
    cost = found.cost
    return {"latency_cycles": float(cost.latency_cycles) if cost is not None else None,
            "energy_pj": cost.energy_pj if cost is not None else None, "samples": found.samples}


def _outcome(network: str, choice: str, machine: Accelerator,
             layers: Sequence[tuple[int, dict[str, Any] | None]], beside: Totals) -> Outcome | None:
    """Return what a machine makes of a network; None where a layer was not searched."""
    searched = [layer for _, layer in layers if layer is not None]
    if len(searched) < len(layers):
        return None
    latency, energy = (network_sum([*((count, layer and layer[figure]) for count, layer in layers),
                                    (1, getattr(beside, figure))]) for figure in ("latency_cycles", "energy_pj"))
    plain = replace(machine, flexibility=None).area_um2
    return Outcome(network, choice, stated(machine), latency, energy, machine.area_um2, machine.area_um2 - plain,
                   sum(layer["samples"] for layer in searched))


def _complete(outcomes: Sequence[Outcome], base: str, choices: int) -> tuple[Outcome, ...]:
    names = [outcome.network for outcome in outcomes]
    whole = tuple(outcome for outcome in outcomes if names.count(outcome.network) == choices)
    found = whole or tuple(outcome for outcome in outcomes if outcome.network == names[0])
    return found if any(outcome.choice == base for outcome in found) else ()


def pareto(exploration: Exploration, figure: str = "latency_cycles") -> tuple[str, ...]:
    """Return the choices that pay: no other adds as little area and is as good on all networks together.

    Ordered by the area that they add.
    """
    added = {outcome.choice: outcome.added_um2 for outcome in exploration.outcomes}
    values = np.array([[added[choice], exploration.worth(choice, figure)] for choice in exploration.choices])
    return tuple(exploration.choices[at] for at in first_of_front(values))

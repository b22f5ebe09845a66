"""Flexibility-aware exploration: which flexibility pays on given networks, and at what area."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tilewright.base import InputError
from tilewright.codesign.variants import stated, with_flexibility
from tilewright.hardware import Accelerator, Flexibility
from tilewright.search import Objective, ProgressObserver, SearchResult, Watch, interruptible, search_flexible
from tilewright.workload import Graph, UniqueOperator, unique_operators


@dataclass(frozen=True)
class Outcome:
    """What one machine makes of one network: cycles and picojoules of all layers (infinite where one has no mapping).

    ``added_um2`` is what its flexibility adds, ``area_um2`` all of its area.
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
        product = 1.0
        for network in self.networks:
            product *= self.relative(network, choice, figure)
        return float(product ** (1 / len(self.networks)))


def explore(  # noqa: PLR0913  (keywords of the one entry point)
    networks: Mapping[str, Graph | Sequence[UniqueOperator]],
    accelerator: Accelerator,
    choices: Mapping[str, Flexibility],
    *,
    objective: str = "latency",
    mapper: str = "gamma",
    samples: int = 10_000,
    seed: int = 0,
    workers: int | None = None,
    progress: ProgressObserver | None = None,
    done: Callable[[str, str, SearchResult], None] | None = None,
    stop: threading.Event | None = None,
) -> Exploration:
    """Search every network on every choice of flexibility, each layer at equal samples.

    Equal choices of layer and machine give equal results on any number of ``workers``. The first choice is the base.

    Parameters
    ----------
    choices
        Flexibilities by name, the one to compare with first: `class_choices`, or any.
    samples
        Of each layer on each machine.
    done
        Told each search as it ends: network, choice, result.

    Raises
    ------
    InputError
        If there is no network or choice, or the machine states no flexibility.
    """
    stated(accelerator)
    Objective.parse(objective)
    if not networks or not choices:
        raise InputError("explore", "must be given networks and choices", f"{len(networks)}, {len(choices)}")
    stop = stop or threading.Event()
    layers = {name: list(unique_operators(network) if isinstance(network, Graph) else network)
              for name, network in networks.items()}
    machines = {name: with_flexibility(accelerator, flexibility) for name, flexibility in choices.items()}
    work = [(network, index, choice)
            for network, members in layers.items() for index in range(len(members)) for choice in choices]
    workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(work)))

    def run(item: tuple[str, int, str]) -> SearchResult | None:
        network, index, choice = item
        if stop.is_set():
            return None
        found = search_flexible(
            layers[network][index].operator, machines[choice], objective=objective, mapper=mapper, budget=samples,
            seed=(seed, index), watch=Watch(progress=progress, stop=stop, threads=1))
        if done is not None:
            done(network, choice, found)
        return found

    with interruptible(stop), ThreadPoolExecutor(workers) as pool:
        results = dict(zip(work, pool.map(run, work), strict=True))
    outcomes = tuple(_outcome(network, choice, machines[choice],
                              [(layer.count, results[network, index, choice]) for index, layer in enumerate(members)])
                     for network, members in layers.items() for choice in choices)
    return Exploration(outcomes, next(iter(choices)), objective)


def _outcome(network: str, choice: str, machine: Accelerator,
             results: Sequence[tuple[int, SearchResult | None]]) -> Outcome:
    latency = energy = 0.0
    for count, result in results:
        cost = result.cost if result is not None else None
        latency += count * (float(cost.latency_cycles) if cost is not None else float("inf"))
        energy += count * (cost.energy_pj if cost is not None else float("inf"))
    plain = replace(machine, flexibility=None).area_um2
    return Outcome(network, choice, stated(machine), latency, energy, machine.area_um2, machine.area_um2 - plain,
                   sum(result.samples for _, result in results if result is not None))


def pareto(exploration: Exploration, figure: str = "latency_cycles") -> tuple[str, ...]:
    """Return the choices that pay: no other adds as little area and is as good on all networks together.

    Ordered by the area that they add.
    """
    added = {outcome.choice: outcome.added_um2 for outcome in exploration.outcomes}
    ordered = sorted(exploration.choices, key=lambda choice: (added[choice], exploration.worth(choice, figure)))
    front: list[str] = []
    for choice in ordered:
        if not front or exploration.worth(choice, figure) < exploration.worth(front[-1], figure):
            front.append(choice)
    return tuple(front)

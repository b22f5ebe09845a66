"""Which flexibility pays on networks: explorations as a user asks for them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.api.flags import takes
from tilewright.api.flexions import of_class
from tilewright.api.inputs import Network, is_torch, load_accelerator, load_layers, refuse_sparse
from tilewright.api.options import ExploreOptions
from tilewright.api.studying import study_runner
from tilewright.base import InputError
from tilewright.codesign import FIGURES, Exploration, assumed, tune, with_flexibility
from tilewright.codesign import explore as explore_choices
from tilewright.hardware import CLASSES, Accelerator, Flexibility
from tilewright.workload import unique_operators

STATED = "stated"
TUNING_SAMPLES = 10_000


@takes(ExploreOptions)
def explore(asked: ExploreOptions) -> Exploration:
    """Return what each choice of flexibility is worth on networks, and the area that it adds."""
    networks, objective = asked.networks, asked.objective
    if objective not in FIGURES:
        raise InputError("objective", f"must be one of {', '.join(FIGURES)}", objective)
    if asked.budget < 1:
        raise InputError("budget", "must be a positive integer", asked.budget)
    graphs = [load_layers(one) for one in ([networks] if isinstance(networks, str | Path) or is_torch(
        networks) or not isinstance(networks, Sequence) else networks)]
    named = {graph.name: graph for graph in graphs}
    if len(named) < len(graphs):
        raise InputError("networks", "must differ in name", ", ".join(graph.name for graph in graphs))
    given = load_accelerator(asked.arch)
    refuse_sparse(given, "to be explored")
    machine = _fixed(given, asked.tuned_for, objective, asked.seed)
    with study_runner(asked, "explore") as runner:
        return explore_choices(named, machine, _choices(machine, asked.choices), objective=objective,
                               mapper=asked.mapper, samples=asked.budget, seed=asked.seed, seeds=asked.seeds,
                               runner=runner)


def _fixed(machine: Accelerator, tuned_for: Network | None, objective: str, seed: int) -> Accelerator:
    """Return the machine with the axes fixed that its choices do not loosen."""
    if tuned_for is not None:
        loose = replace(machine, flexibility=machine.flexibility or assumed(machine))
        layers = list(unique_operators(load_layers(tuned_for)))
        design, _, _ = tune(layers, loose, samples=TUNING_SAMPLES, seed=seed, objective=objective)
        return with_flexibility(loose, design)
    if machine.flexibility is None:
        raise InputError(
            f"{machine.name}.flexibility", "must be stated", None,
            "Say in its file what is fixed (docs/flexibility.md), or let a network choose that: --tune NETWORK")
    return machine


def _choices(machine: Accelerator, choices: str | Iterable[str]) -> dict[str, Flexibility]:
    names = [part.strip() for part in choices.split(",")] if isinstance(choices, str) else list(choices)
    if names == ["all"]:
        names = list(CLASSES)
    found: dict[str, Flexibility] = {}
    for name in names:
        flexibility = machine.flexibility if name == STATED else of_class(machine, name)
        assert flexibility is not None
        label = STATED if name == STATED else flexibility.class_bits
        if label in found:
            raise InputError("choices", "must differ", name)
        found[label] = flexibility
    return found

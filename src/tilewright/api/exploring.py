"""Flexible machines as a user names them, what is measured of them, and which flexibility pays on networks."""

import re
from collections.abc import Iterable
from dataclasses import replace

from tilewright.api.flags import takes
from tilewright.api.inputs import (
    Machine,
    Network,
    each_network,
    load_accelerator,
    load_layers,
    load_network,
    pick_operator,
    refuse_sparse,
    several_networks,
)
from tilewright.api.machine_options import ExploreOptions, FlexibilityOptions
from tilewright.api.study_runs import study_runner
from tilewright.api.tasks import counts_vector
from tilewright.base import InputError
from tilewright.codesign import FIGURES, Exploration, NetworkFlexion, assumed, measure_flexion, tune, with_flexibility
from tilewright.codesign import explore as explore_choices
from tilewright.hardware import CLASSES, Accelerator, Flexibility
from tilewright.mapping import precise_graph
from tilewright.workload import unique_operators

STATED = "stated"
TUNING_SAMPLES = 10_000


@takes(ExploreOptions)
def explore(asked: ExploreOptions) -> Exploration:
    """Return what each choice of flexibility is worth on networks, and the area that it adds."""
    objective = asked.objective
    if objective not in FIGURES:
        raise InputError("objective", f"must be one of {', '.join(FIGURES)}", objective)
    vector = counts_vector(asked.vector)
    if asked.budget < 1:
        raise InputError("budget", "must be a positive integer", asked.budget)
    given = load_accelerator(asked.arch)
    named = {graph.name: precise_graph(graph, given) for graph in several_networks(each_network(asked.networks))}
    refuse_sparse(given, "to be explored")
    machine = _fixed(given, asked.tuned_for, objective, asked.seed)
    with study_runner(asked, "explore") as runner:
        return explore_choices(named, machine, _choices(machine, asked.choices), objective=objective,
                               mapper=asked.mapper, samples=asked.budget, seed=asked.seed, seeds=asked.seeds,
                               runner=runner, vector=vector)


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


def flexible_accelerator(arch: Machine, klass: str | None = None) -> Accelerator:
    """Return a machine that states its flexibility, or as one of a class; else it is an `InputError`.

    ``klass`` has digits for T, O, P, S, as ``1010`` or ``FullFlex-1010``: axes of 1 are fully flexible, axes of 0 as
    the machine fixes them, or as `tilewright.codesign.assumed` says where it states nothing.
    """
    accelerator = load_accelerator(arch)
    if klass is None:
        if accelerator.flexibility is None:
            raise InputError(
                f"{accelerator.name}.flexibility", "must be stated", None,
                "Add to its file, for example, flexibility: {tile: any, order: any, parallelism: any, shape: any} "
                "(docs/flexibility.md), or try a class with --class 1010")
        return accelerator
    return with_flexibility(accelerator, of_class(accelerator, klass))


def of_class(accelerator: Accelerator, klass: str) -> Flexibility:
    """Return the flexibility of a class over what the machine states; an `InputError` where there is none such."""
    found = re.fullmatch(r"(InFlex-(?=0000)|FullFlex-(?!0000))?([01]{4})", klass)
    if found is None:
        raise InputError(
            "class", f"must be one of {CLASSES[0]}, {CLASSES[1]}, ... {CLASSES[-1]} (digits for T, O, P, S)", klass,
            "Partial flexibility must be stated in the machine's file" if klass.startswith("PartFlex")
            else "For example 1010 or FullFlex-1010")
    return (accelerator.flexibility or assumed(accelerator)).of_class(found.group(2))


@takes(FlexibilityOptions)
def flexibility(asked: FlexibilityOptions) -> NetworkFlexion:
    """Return how flexible a machine is on a network, or on one layer of it.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.flexibility("conv:K=72,C=24,P=56,Q=56,R=1,S=1", arch="flexion", axes="P")
    >>> round(found.average["P"].hardware, 3), round(found.average["P"].workload, 3)
    (0.033, 0.083)
    """
    accelerator = flexible_accelerator(asked.arch, asked.klass)
    graph = load_layers(asked.network, asked.bind)
    if asked.layer is not None:
        graph = load_network(replace(pick_operator(graph, asked.layer), name=asked.layer))
    return measure_flexion(graph, accelerator, asked.axes.upper(), seed=asked.seed)

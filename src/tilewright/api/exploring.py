"""Which flexibility pays on networks: explorations as a user asks for them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.api.flexions import of_class
from tilewright.api.inputs import Machine, Network, is_torch, load_accelerator, load_layers, refuse_sparse
from tilewright.base import InputError
from tilewright.codesign import FIGURES, Exploration, assumed, tune, with_flexibility
from tilewright.codesign import explore as explore_choices
from tilewright.hardware import CLASSES, Accelerator, Flexibility
from tilewright.jobs import Observer, Runner, Stop
from tilewright.store import kept_in
from tilewright.workload import unique_operators

STATED = "stated"
TUNING_SAMPLES = 10_000


def explore(  # noqa: PLR0913  (keywords of an entry point)
    networks: Network | Sequence[Network],
    arch: Machine,
    choices: str | Iterable[str] = "all",
    *,
    tuned_for: Network | None = None,
    objective: str = "latency",
    mapper: str = "auto",
    budget: int = 10_000,
    seed: int = 0,
    seeds: int = 1,
    out: str | Path | None = None,
    told: Observer | None = None,
    workers: int | None = None,
    on: str = "threads",
    stop: Stop | None = None,
) -> Exploration:
    """Return what each choice of flexibility is worth on networks, and the area that it adds.

    Parameters
    ----------
    networks
        One, or several (see `load_network`); each is searched layer by layer.
    arch
        The machine, whose file states what is fixed where an axis is not flexible.
    choices
        Classes such as ``0000,1010`` (or ``FullFlex-1010``), ``stated`` for what the machine's file says, or ``all`` 16
        classes. Others are compared with the first.
    tuned_for
        Fix axes not as the file says but as suits this network best: the best of `TUNING_SAMPLES` fixed designs.
    objective
        ``latency``, ``energy`` or ``edp``.
    budget
        Samples of each layer on each choice.
    seeds
        Repetitions; figures are those of the median.
    out
        A folder where searches are kept as they end, to be taken over by a later call.
    told
        Told how far it is.
    workers, on
        Searches side by side, and where: ``threads``, ``processes``, ``ray``, ``ray://HOST:PORT``.

    Raises
    ------
    InputError
        If something that was given is wrong.
    """
    if objective not in FIGURES:
        raise InputError("objective", f"must be one of {', '.join(FIGURES)}", objective)
    if budget < 1:
        raise InputError("budget", "must be a positive integer", budget)
    graphs = [load_layers(one) for one in ([networks] if isinstance(networks, str | Path) or is_torch(
        networks) or not isinstance(networks, Sequence) else networks)]
    named = {graph.name: graph for graph in graphs}
    if len(named) < len(graphs):
        raise InputError("networks", "must differ in name", ", ".join(graph.name for graph in graphs))
    refuse_sparse(load_accelerator(arch), "to be explored")
    machine = _fixed(load_accelerator(arch), tuned_for, objective, seed)
    flexibilities = _choices(machine, choices)
    with kept_in(out, "explore") as kept:
        return explore_choices(named, machine, flexibilities, objective=objective, mapper=mapper, samples=budget,
                               seed=seed, seeds=seeds,
                               runner=Runner(workers=workers, on=on, keeper=kept, observer=told, stop=stop))


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

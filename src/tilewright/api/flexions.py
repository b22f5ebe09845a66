"""Flexible machines as a user names them, and what is measured of them."""

import re
from collections.abc import Mapping
from dataclasses import replace

from tilewright.api.inputs import Machine, Network, load_accelerator, load_layers, load_network, pick_operator
from tilewright.base import InputError
from tilewright.codesign import NetworkFlexion, assumed, measure_flexion, with_flexibility
from tilewright.hardware import AXES, CLASSES, Accelerator, Flexibility


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


def flexibility(  # noqa: PLR0913  (keywords of an entry point)
    network: Network,
    arch: Machine,
    layer: str | None = None,
    *,
    klass: str | None = None,
    axes: str = AXES,
    bind: Mapping[str, int] | None = None,
    seed: int = 0,
) -> NetworkFlexion:
    """Return how flexible a machine is on a network, or on one layer of it.

    Parameters
    ----------
    network, layer
        See `load_network`; without ``layer`` all distinct ones are measured.
    arch, klass
        See `flexible_accelerator`.
    axes
        Letters of TOPS.
    seed
        Of the draws behind counts that are estimated.

    Raises
    ------
    InputError
        If something that was given is wrong.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.flexibility("conv:K=72,C=24,P=56,Q=56,R=1,S=1", arch="flexion", axes="P")
    >>> round(found.average["P"].hardware, 3), round(found.average["P"].workload, 3)
    (0.033, 0.083)
    """
    accelerator = flexible_accelerator(arch, klass)
    graph = load_layers(network, bind)
    if layer is not None:
        graph = load_network(replace(pick_operator(graph, layer), name=layer))
    return measure_flexion(graph, accelerator, axes.upper(), seed=seed)

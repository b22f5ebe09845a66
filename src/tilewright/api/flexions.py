"""Flexible machines as a user names them, and what is measured of them."""

import re
from dataclasses import replace

from tilewright.api.flags import takes
from tilewright.api.inputs import Machine, load_accelerator, load_layers, load_network, pick_operator
from tilewright.api.options import FlexibilityOptions
from tilewright.base import InputError
from tilewright.codesign import NetworkFlexion, assumed, measure_flexion, with_flexibility
from tilewright.hardware import CLASSES, Accelerator, Flexibility


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

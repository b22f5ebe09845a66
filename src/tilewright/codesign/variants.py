"""Variants of a machine: another flexibility, buffer or array, all else as it was."""

from dataclasses import replace

from tilewright.base import InputError
from tilewright.hardware import CLASSES, Accelerator, Fanout, Flexibility, Memory


def stated(accelerator: Accelerator) -> Flexibility:
    """Return the machine's flexibility; it is an `InputError` if none is stated."""
    if accelerator.flexibility is None:
        raise InputError(f"{accelerator.name}.flexibility", "must be stated to be varied", None,
                         "Add a flexibility: section")
    return accelerator.flexibility


def with_flexibility(accelerator: Accelerator, flexibility: Flexibility | None = None, **axes: object) -> Accelerator:
    """Return the machine with another flexibility, or with some of its axes (``tile=``, ``order=`` ...) replaced."""
    return replace(accelerator, flexibility=replace(
        flexibility or stated(accelerator), **axes))  # type: ignore[arg-type]


def with_buffer(accelerator: Accelerator, capacity_bytes: float) -> Accelerator:
    """Return the machine with another capacity of the memory that its flexibility is about.

    Its area and energies stay as they are: a sweep with them needs a machine file for each point.
    """
    name = stated(accelerator).memory
    return replace(accelerator, levels=tuple(
        replace(level, capacity_bytes=float(capacity_bytes)) if isinstance(level, Memory) and level.name == name
        else level for level in accelerator.levels))


def with_array(accelerator: Accelerator, shape: tuple[int, int]) -> Accelerator:
    """Return the machine with an array of other sides; where its shape was fixed, it is fixed to these."""
    flexibility = stated(accelerator)
    levels = tuple(replace(level, shape=shape) if isinstance(level, Fanout) and level.name == flexibility.array
                   else level for level in accelerator.levels)
    if flexibility.shape.fixed:
        flexibility = replace(flexibility, shape=replace(flexibility.shape, fixed=shape))
    return replace(accelerator, levels=levels, flexibility=flexibility)


def class_choices(accelerator: Accelerator) -> dict[str, Flexibility]:
    """Return the 16 classes over an inflexible machine by name: ``InFlex-0000``, ``FullFlex-0001`` ..."""
    base = stated(accelerator)
    found = [base.of_class(bits) for bits in CLASSES]
    return {flexibility.name: flexibility for flexibility in found}

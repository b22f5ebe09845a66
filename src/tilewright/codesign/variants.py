"""Variants of a machine: another flexibility, buffer or array, all else as it was."""

from contextlib import suppress
from dataclasses import replace

from tilewright.base import InputError
from tilewright.hardware import (
    CLASSES,
    CONVOLUTION,
    Accelerator,
    Fanout,
    Flexibility,
    FlexibilityCosts,
    Memory,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
    technology,
    technology_names,
    with_numbers,
)


def stated(accelerator: Accelerator) -> Flexibility:
    """Return the machine's flexibility; it is an `InputError` if none is stated."""
    if accelerator.flexibility is None:
        raise InputError(f"{accelerator.name}.flexibility", "must be stated", None,
                         "Add a flexibility: section to its file (docs/flexibility.md)")
    return accelerator.flexibility


def assumed(accelerator: Accelerator) -> Flexibility:
    """Return an inflexible design for a machine that states none.

    Its order K C P Q R S and pair C-K are those of the paper's base machine (table 3.1), its shape its own, its tile
    one of every extent for each element, in the outermost memory of limited capacity. What flexibility would cost is
    scaled to its technology's node where that is known.

    Raises an `InputError` if the machine has no such memory, or not exactly one array.
    """
    memories = [level.name for level in accelerator.levels
                if isinstance(level, Memory) and (level.capacity_bytes or level.partitions_bytes)]
    arrays = [level for level in accelerator.levels if isinstance(level, Fanout)]
    if not memories or len(arrays) != 1:
        raise InputError(f"{accelerator.name}.flexibility", "must be stated, as it is not plain what it is about",
                         f"{len(arrays)} arrays, {len(memories)} limited memories",
                         "Add a flexibility: section with memory: and array: (docs/flexibility.md)")
    return Flexibility(
        memories[0], arrays[0].name, TileFlexibility(per_element=((memories[0], tuple((d, 1) for d in CONVOLUTION)),)),
        OrderFlexibility((CONVOLUTION,)), ParallelismFlexibility((("C", "K"),)), ShapeFlexibility(arrays[0].shape),
        costs=_costs(accelerator))


def _costs(accelerator: Accelerator) -> FlexibilityCosts:
    if accelerator.technology not in technology_names():
        return FlexibilityCosts()
    return FlexibilityCosts().at_node(technology(accelerator.technology).node_nm)


def with_flexibility(accelerator: Accelerator, flexibility: Flexibility | None = None, **axes: object) -> Accelerator:
    """Return the machine with another flexibility, or with some of its axes (``tile=``, ``order=`` ...) replaced."""
    return replace(accelerator, flexibility=replace(
        flexibility or stated(accelerator), **axes))  # type: ignore[arg-type]


def with_buffer(accelerator: Accelerator, capacity_bytes: float) -> Accelerator:
    """Return the machine with another capacity of the memory that its flexibility is about.

    Energies, area and leakage follow by the curves that its technology has; those that its file states, and all where
    the technology knows no memory of this size, stay.
    """
    name = stated(accelerator).memory
    with suppress(InputError):
        return with_numbers(accelerator, {(name, "capacity_bytes"): capacity_bytes})
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

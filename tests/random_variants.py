"""What tests make of random nests: words of any type, homes further in, words handed on, lanes served."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewright.hardware import Accelerator, Fanout, Memory, Precision
from tilewright.mapping import Mapping, full_keeps
from tilewright.workload import Operator

TYPES = ("", "", "int8", "int4", "fp16", "fp8", "int33", "bf16")
WIDTHS = (1, 3, 4, 8, 4.25, 4.5, 12, 24, 4 + 5 / 32)


def random_words(rng: np.random.Generator, operator: Operator,
                 accelerator: Accelerator) -> tuple[Operator, Accelerator]:
    """Return a layer with words of random types and widths, and a machine that takes some of them as it states.

    Partial sums are often wider than outputs: where the layer says so, or the machine.
    """
    tensors = [replace(tensor, type="" if tensor.is_output else str(rng.choice(TYPES)),
                       word_bits=None if rng.random() < 0.2 else float(rng.choice(WIDTHS)))
               for tensor in operator.tensors]
    own = {"inputs": int(rng.choice([4, 8, 16])), "weights": int(rng.choice([4, 8, 16])), "outputs": 8}
    if rng.random() < 0.7:
        tensors[-1] = replace(tensors[-1], partial_bits=float((tensors[-1].word_bits or 8) + rng.choice([0, 3.5, 16])))
    elif rng.random() < 0.7:
        own["partial_sums"] = int(rng.choice([8, 20, 32]))
    stated = [Precision(a, b, float(rng.choice([0.25, 0.7, 1, 2, 3])), float(rng.choice([0.1, 1, 2.5])))
              for a in ("int4", "fp16", "int8") for b in ("int4", "fp16", "int8") if rng.random() < 0.3]
    return (replace(operator, tensors=tuple(tensors)),
            replace(accelerator, word_bits=tuple(own.items()), precisions=tuple(stated)))


def forwarding(accelerator: Accelerator) -> Accelerator:
    """Return a machine whose memories hand words on as they come, but for single buffers."""
    return replace(accelerator, levels=tuple(
        replace(level, forwards="words") if isinstance(level, Memory) and level.buffering != "single" else level
        for level in accelerator.levels))


def with_homes(rng: np.random.Generator, operator: Operator, accelerator: Accelerator,
               mapping: Mapping) -> tuple[Operator, Accelerator, Mapping]:
    """Return a nest whose outermost memory keeps few tensors: most live further in that can."""
    outermost, *inside = mapping.levels
    housed = []
    for tensor in operator.tensors:
        inner = [level.name for level, entry in zip(accelerator.levels[1:], inside, strict=True)
                 if isinstance(level, Memory) and level.can_keep(tensor.name, tensor.role)
                 and (entry.keeps is None or tensor.name in entry.keeps)]
        able = inner and not (tensor.is_output and accelerator.instances(inner[0]) > 1)
        if not able or rng.random() < 0.2:
            housed.append(tensor.name)
    return operator, accelerator, Mapping((replace(outermost, keeps=tuple(housed)), *inside))


def with_shared(rng: np.random.Generator, operator: Operator, accelerator: Accelerator,
                mapping: Mapping) -> tuple[Operator, Accelerator, Mapping]:
    """Return a nest with memories that serve lanes together, where these spread nothing that the memories keep."""
    kept, sizes, spread = full_keeps(mapping, operator, accelerator), dict(operator.sizes), dict[str, set[str]]()
    for level, entry in zip(accelerator.levels, mapping.levels, strict=True):
        for loop in entry.loops:
            if isinstance(level, Fanout) and loop.step < sizes[loop.dimension]:
                spread.setdefault(f"{level.name}.{(loop.axis or 'X').lower()}", set()).add(loop.dimension)
            sizes[loop.dimension] = loop.step

    def able(side: str, names: tuple[str, ...]) -> bool:
        return not any(spread.get(side, set()) & {*operator.tensor(name).dimensions} for name in names)

    levels = tuple(replace(level, keeps=kept[level.name]) if isinstance(level, Memory) else level
                   for level in accelerator.levels)
    machine = shared_lanes(rng, replace(accelerator, levels=levels), operator.output.name, able)
    entries = (replace(entry, keeps=level.keeps) if isinstance(level, Memory) else entry
               for level, entry in zip(machine.levels, mapping.levels, strict=True))
    return operator, machine, Mapping(tuple(entries))


def shared_lanes(rng: np.random.Generator, accelerator: Accelerator, output: str,
                 able: Callable[[str, tuple[str, ...]], bool] = lambda side, names: True) -> Accelerator:
    """Return a machine some of whose memories serve all lanes along sides of arrays where ``able`` allows it.

    Memories name the tensors that they keep; those that serve lanes together keep none of the ``output``.
    """
    levels = list(accelerator.levels)
    for at, level in enumerate(levels):
        mine = tuple(name for name in level.keeps if name != output) if isinstance(level, Memory) else ()
        found = []
        for place, array in enumerate(levels[:at] if mine else ()):
            if not isinstance(array, Fanout) or array.flexible or array.blocks:
                continue
            between = [other for other in levels[place:at] if isinstance(other, Memory) and {*other.keeps} & {*mine}]
            found += [side for side in (f"{array.name}.x", f"{array.name}.y") if able(side, mine) and rng.random() < 0.6
                      and all(side in other.shared for other in between)]
        if found and isinstance(level, Memory):
            own = tuple((name, size) for name, size in level.partitions_bytes if name in mine)
            levels[at] = replace(level, keeps=mine, shared=tuple(found), partitions_bytes=own)
    return replace(accelerator, levels=tuple(levels))

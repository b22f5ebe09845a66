"""An accelerator as text: a tree of its levels with capacities, bandwidths and energies."""

from typing import TYPE_CHECKING

from tilewright.hardware.flexibility import Flexibility
from tilewright.hardware.levels import Fanout, Memory, Merging

if TYPE_CHECKING:
    from tilewright.hardware.accelerator import Accelerator


def describe(accelerator: "Accelerator") -> str:
    """Return a readable tree of the levels, outermost first; energies in pJ per word, bandwidths in words per cycle.

    Example
    -------
    >>> from tilewright.hardware import preset
    >>> print(describe(preset("eyeriss")).splitlines()[0])
    eyeriss: 168 multiply-accumulate units at 200 MHz, technology eyeriss-65nm
    """
    lines = [
        f"{accelerator.name}: {accelerator.compute_instances:,} multiply-accumulate units at "
        f"{accelerator.frequency_mhz:g} MHz, technology {accelerator.technology}",
        "words: " + ", ".join(f"{role.replace('_', ' ')} {bits} bit" for role, bits in accelerator.word_bits)
        + f"; memories and units {accelerator.area_um2 / 1e6:.3g} mm2",
    ]
    if accelerator.footprint == "box":
        lines.append("capacities: tiles take the smallest box around their words")
    depth = 0
    for level in accelerator.levels:
        indent = "  " * depth + ("└─ " if depth else "")
        gap = " " * (len(indent) + 2)
        if isinstance(level, Memory):
            lines.append(indent + _title(level, accelerator.instances(level.name)))
            lines += [gap + line for line in _memory_lines(level)]
        else:
            lines.append(indent + _fanout_line(level))
        depth += 1
    compute = accelerator.compute
    lines.append("  " * depth + f"└─ {compute.name}  x{accelerator.compute_instances:,}  "
                 f"{compute.energy_pj_per_mac:.3g} pJ per multiply-accumulate, {compute.area_um2:,.0f} um2")
    lines += [" " * (2 * depth + 3) + f"{one.name}: {one.macs_per_cycle:g} a cycle, "
              f"{one.energy * compute.energy_pj_per_mac:.3g} pJ" for one in accelerator.precisions]
    lines += _vector_lines(accelerator)
    if accelerator.flexibility is not None:
        lines += _flexibility_lines(accelerator, accelerator.flexibility)
    lines += [f"assumed: {text}" for text in accelerator.assumptions]
    return "\n".join(lines)


def format_bytes(count: float | None) -> str:
    """Return bytes in binary units where they fit exactly, else in bytes; None is ``unlimited``."""
    if count is None:
        return "unlimited"
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size and (count / size * 4).is_integer():
            return f"{count / size:g} {unit}"
    return f"{count:,.0f} B" if float(count).is_integer() else f"{count:,.2f} B"


def _title(memory: Memory, instances: int) -> str:
    times = f"  x{instances:,}" if instances > 1 else ""
    parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in memory.partitions_bytes)
    shared = [name for name in memory.keeps if name not in dict(memory.partitions_bytes)]
    rest = f"{', '.join(shared)} in {format_bytes(memory.capacity_bytes)}" if shared else ""
    held = "; ".join(text for text in (parts, rest) if text)
    buffering = "buffet" if memory.buffering == "buffet" else f"{memory.buffering}-buffered"
    buffering += ", forwards words" if memory.forwards == "words" else ""
    buffering += f", one for all along {' and '.join(memory.shared)}" if memory.shared else ""
    limited = memory.capacity_bytes is not None or memory.partitions_bytes
    return f"{memory.name}{times}  {held}" + (f", {buffering}" if limited else "")


def _memory_lines(memory: Memory) -> list[str]:
    energy = memory.energy
    rates = ", ".join(f"{port} {rate:g}" for port, rate in vars(memory.bandwidth).items() if rate is not None)
    words = f"{memory.word_bits}-bit words" + (f" in blocks of {memory.block_words}" if memory.block_words > 1 else "")
    lines = [
        f"{words}; words per cycle: {rates or 'unlimited'}",
        f"pJ per word: read {energy.read_pj:.3g}, fill {energy.fill_pj:.3g}, update {energy.update_pj:.3g}, "
        f"drain {energy.drain_pj:.3g}",
    ]
    if memory.area_um2:
        lines.append(f"{memory.area_um2:,.0f} um2 each")
    if memory.leakage_mw:
        lines.append(f"leaks {memory.leakage_mw:.3g} mW each")
    return lines


def _fanout_line(fanout: Fanout) -> str:
    x, y = fanout.shape
    shape = f"{x} x {y}" if y > 1 else f"{x}"
    form = ", any shape" if fanout.flexible else ""
    form += f", in blocks of {fanout.blocks[0]} x {fanout.blocks[1]}" if fanout.blocks else ""
    does = [name + _along(given) for name, given in (("multicasts", fanout.multicast), ("reduces", fanout.reduce))
            if given]
    return f"{fanout.name}  [{shape}{form}]  {' and '.join(does) or 'no multicast, no reduction'}, " \
           f"{fanout.network_energy_pj_per_word:.3g} pJ per delivered word"


def _along(given: Merging) -> str:
    """Tell along which side words merge, where not along both."""
    if isinstance(given, tuple):
        told = (f"{name} not at all" if along is False else f"{name}{_along(along)}" for name, along in given)
        return f" ({', '.join(told)})"
    return "" if isinstance(given, bool) else f" along {given.upper()}"


def _vector_lines(accelerator: "Accelerator") -> list[str]:
    """Tell of the vector unit where the machine states one."""
    unit = accelerator.vector_unit
    if accelerator.vector is None:
        return []
    rates = "".join(f", {kind} {rate:g}" for kind, rate in unit.operations_per_cycle)
    folds = f"; folds {', '.join(unit.folds)}" if unit.folds else ""
    return [f"vector unit at {unit.memory}: {unit.lanes:g} operations per cycle{rates}, "
            f"{unit.energy_pj_per_operation:.3g} pJ each{folds}"]


def axis_texts(accelerator: "Accelerator") -> dict[str, str]:
    """Return what each axis (T, O, P, S) of the machine's flexibility allows, in words; empty where it states none."""
    flexibility = accelerator.flexibility
    if flexibility is None:
        return {}
    tile, shape, parallel = flexibility.tile, flexibility.shape, flexibility.parallelism
    tiles = [f"{name} " + " ".join(f"{d}{extent}" for d, extent in extents) for name, extents in tile.fixed]
    tiles += [f"{name} " + " ".join(f"{d}{extent}" for d, extent in extents) + " per element"
              for name, extents in tile.per_element]
    tiles += [f"{name} in hard partitions " + ", ".join(f"{role} {share:g}" for role, share in ratio)
              for name, ratio in tile.partitions]
    pairs = "any pair" if parallel.dimensions_per_side else "any dimensions"
    any_shape = f"any of up to {accelerator.level(flexibility.array).instances}"  # type: ignore[union-attr]
    sides = shape.fixed or shape.blocks
    return {
        "T": "; ".join(tiles) or f"any that fits {flexibility.memory}",
        "O": " or ".join("".join(order) for order in flexibility.order.choices) or "any",
        "P": " or ".join("-".join(pair) for pair in parallel.choices) or pairs,
        "S": f"{'blocks of ' if shape.blocks else ''}{f'{sides[0]} x {sides[1]}' if sides else any_shape}",
    }


def _flexibility_lines(accelerator: "Accelerator", flexibility: Flexibility) -> list[str]:
    overhead, texts = accelerator.overhead, axis_texts(accelerator)
    known = (f" ({overhead.area_share:+.3%}), about {overhead.power_share:+.3%} of power"
             if overhead.base_area_um2 > 0 else "")
    return [
        f"flexibility: {flexibility.name}",
        f"  tile: {texts['T']}",
        f"  order: {texts['O']}",
        f"  parallelism (X-Y): {texts['P']}",
        f"  shape: {texts['S']}",
        f"  adds {overhead.total_um2:,.0f} um2{known}",
    ]

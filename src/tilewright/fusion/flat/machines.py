"""What a plan of attention sees of a machine: one array over one buffer over DRAM."""

from dataclasses import dataclass
from math import inf

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.workload import OPERATIONS_PER_ELEMENT


@dataclass(frozen=True)
class FlatMachine:
    """An array, the buffer that software fills, and DRAM."""

    name: str
    rows: int
    columns: int
    """``rows`` and ``columns``: of the array, one multiply-accumulate an element and cycle."""
    capacity_words: int
    """Of the buffer."""
    dram_rate: float
    buffer_rate: float
    """``dram_rate`` and ``buffer_rate``: words a cycle, both ways together."""
    mac_pj: float
    buffer_pj: float
    dram_pj: float
    """``mac_pj``, ``buffer_pj`` and ``dram_pj``: of a multiply-accumulate, and of a word read or written."""
    softmax_rate: float
    scale_rate: float
    """``softmax_rate`` and ``scale_rate``: elements of a softmax, and multiplications, that the vector unit begins in a
    cycle."""
    word_bits: int
    clock_mhz: float
    memories: tuple[str, str] = ("DRAM", "GLB")
    """Names of DRAM and of the buffer."""

    @property
    def elements(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.rows * self.columns

    @property
    def word_bytes(self) -> float:
        """Bytes of a word."""
        return self.word_bits / 8


def flat_machine(accelerator: Accelerator, *, capacity_bytes: float | None = None, clock_mhz: float | None = None,
                 word_bits: int | None = None) -> FlatMachine:
    """Return what plans of attention see of an accelerator: its outermost memory, a buffer, its array.

    The buffer is the next memory that keeps all, or else inputs and outputs: keys and values are no weights.

    Another clock leaves bytes a second as they are, another width of words leaves bytes, and energy a bit.

    Raises an `InputError` if no memory of a capacity on the chip keeps inputs and outputs, or a figure is not positive.

    Examples
    --------
    >>> from tilewright.hardware import preset
    >>> machine = flat_machine(preset("flat-edge"))
    >>> machine.elements, machine.capacity_words, round(machine.dram_rate, 2)
    (1024, 262144, 28.56)
    """
    dram, *inner = accelerator.memories
    able = [[memory for memory in inner if memory.capacity_bytes is not None and all(
        memory.can_keep(role, role) for role in roles)] for roles in (
            ("inputs", "weights", "outputs"), ("inputs", "outputs"))]
    buffer = next(iter(able[0] or able[1]), None)
    if buffer is None or not accelerator.fanouts:
        raise InputError(f"{accelerator.name}.levels", "must have an array, and a memory on the chip with a capacity "
                         "that keeps inputs and outputs", [level.name for level in accelerator.levels],
                         "Take flat-edge or flat-cloud, or give such a memory")
    bits = dict(accelerator.word_bits)["inputs"] if word_bits is None else word_bits
    clock = accelerator.frequency_mhz if clock_mhz is None else clock_mhz
    room = buffer.capacity_bytes if capacity_bytes is None else capacity_bytes
    assert room is not None
    for field, value in (("clock_mhz", clock), ("word_bits", bits), ("capacity_bytes", room)):
        if not 0 < value < inf:
            raise InputError(field, "must be positive and finite", value)
    slower = accelerator.frequency_mhz / clock

    def rate(port: float | None, own_bits: int) -> float:
        return inf if port is None else port * own_bits / bits * slower

    unit, energy = accelerator.vector_unit, buffer.energy
    return FlatMachine(
        accelerator.name, *accelerator.fanouts[0].shape, int(room * 8 // bits),
        rate(dram.bandwidth.shared or dram.bandwidth.read, dram.word_bits),
        rate(buffer.bandwidth.shared or buffer.bandwidth.read, buffer.word_bits),
        accelerator.compute.energy_pj_per_mac, (energy.read_pj + energy.fill_pj) / 2 * bits / buffer.word_bits,
        (dram.energy.read_pj + dram.energy.update_pj) / 2 * bits / dram.word_bits,
        unit.rate("softmax") / OPERATIONS_PER_ELEMENT["softmax"], unit.rate("scale"), bits, clock,
        (dram.name, buffer.name))

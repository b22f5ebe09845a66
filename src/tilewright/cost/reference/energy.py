"""Energy (counting rule 9): accesses, compute, network, leakage."""

import numpy as np

from tilewright.cost.reference.boundary import WalkedBoundary
from tilewright.cost.reference.latency import Transfers
from tilewright.cost.reference.nest import Indices
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping import lane_use


def energies(transfers: Transfers, latency_cycles: int) -> dict[str, float]:
    """Return picojoules by memory, fan-out and compute name, and ``"leakage"`` where there is any."""
    accelerator = transfers.nest.accelerator
    found: dict[str, float] = {}
    for level, part in enumerate(accelerator.levels):
        if isinstance(part, Memory):
            found[part.name] = _memory_energy(transfers, level, part)
        else:
            found[part.name] = part.network_energy_pj_per_word * _carried(transfers, level)
    found[accelerator.compute.name] = transfers.nest.operator.macs * accelerator.compute.energy_pj_per_mac * lane_use(
        transfers.nest.operator, accelerator).energy
    return found | leaked(accelerator, latency_cycles)


def leaked(accelerator: Accelerator, latency_cycles: int) -> dict[str, float]:
    """Return the picojoules of ``"leakage"`` of all instances; nothing where there is none."""
    leakage_mw = sum(memory.leakage_mw * accelerator.instances(memory.name) for memory in accelerator.memories)
    leakage_mw += accelerator.compute.leakage_mw * accelerator.compute_instances
    return {"leakage": leakage_mw * latency_cycles / accelerator.frequency_mhz * 1000} if leakage_mw else {}


def _memory_energy(transfers: Transfers, level: int, memory: Memory) -> float:
    total = 0.0
    for tensor in transfers.nest.keeps[level]:
        tally, energy = transfers.tallies[level, tensor], memory.energy
        pj = sum(_block_words(words, memory.block_words) * getattr(energy, f"{kind[:-1]}_pj")
                 for kind, words in tally.items())
        total += pj * float(transfers.scale(tensor, memory))
        last = transfers.last_updates(memory) if tensor == transfers.nest.operator.output.name else 0
        if last and transfers.narrower(memory):
            scale, block = transfers.scale(tensor, memory), memory.block_words
            partial, final = (_block_words(words, block) for words in (tally["updates"] - last, np.array([last])))
            apart = partial * scale + final * (scale - transfers.narrower(memory))
            total += energy.update_pj * float(apart - _block_words(tally["updates"], block) * scale)
    return total


def _block_words(words: Indices, block: int) -> int:
    """Words that the accesses move: whole blocks at each instance."""
    return int(np.sum(-(-words // block) * block))


def _carried(transfers: Transfers, level: int) -> int:
    """Words delivered to, or evicted from, instances of the children of all boundaries that span x."""
    return sum(int(moved.received.sum() + moved.evicted.sum())
               for crossed in transfers.crossings.values() for boundary, moved in crossed
               if _through(boundary, level))


def _through(boundary: WalkedBoundary, level: int) -> bool:
    """Whether words of a boundary pass an array: between both memories, or of which a side lies inside the parent."""
    levels = boundary.nest.accelerator.levels
    ends = [levels[at] if at < len(levels) else None for at in (boundary.parent, boundary.child)]
    parent, child = (isinstance(end, Memory) and any(
        side.rsplit(".", 1)[0] == levels[level].name for side in end.shared) for end in ends)
    return not child and (parent or boundary.parent < level < boundary.child)

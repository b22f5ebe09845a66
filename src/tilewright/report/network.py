"""Where the energy of a whole network goes: by component and tensor, vector work beside it."""

from collections import defaultdict

from tilewright.report.figures import VECTOR
from tilewright.report.quantities import over, percent
from tilewright.store import RunRecord

PARTS = ("inputs", "weights", "outputs")
"""Roles of tensors, the columns of the table; what is spent on none of them stands in the last."""
OTHER = "other"
Parts = dict[str, dict[str, float]]


def energy_parts(record: RunRecord) -> Parts:
    """Return picojoules by component, largest first, and by role: layers times counts, and vector work."""
    found: Parts = defaultdict(lambda: defaultdict(float))
    for layer in record.layers:
        if layer.cost is None:
            continue
        roles = {tensor.name: tensor.role for tensor in layer.operator.tensors}
        left = dict(layer.cost.energy_by_component_pj)
        for count in layer.cost.counts:
            if count.energy_pj:
                found[count.memory][roles[count.tensor]] += layer.count * count.energy_pj
                left[count.memory] -= count.energy_pj
        for name, energy in left.items():
            if energy > 1e-9 * layer.cost.energy_pj:
                found[name][OTHER] += layer.count * energy
    if record.totals.vector_energy_pj:
        found[VECTOR][OTHER] += record.totals.vector_energy_pj
    return {name: dict(parts) for name, parts in sorted(found.items(), key=lambda item: -sum(item[1].values()))}


def energy_sentence(record: RunRecord) -> str:
    """Say in which component most of the energy goes, and on which tensors there; empty where nothing is spent."""
    parts = energy_parts(record)
    if not parts:
        return ""
    name, spent = next(iter(parts.items()))
    role = max(spent, key=lambda each: spent[each])
    total = record.totals.energy_pj
    there = "" if role == OTHER else f" ({percent(over(spent[role], total))} for {role})"
    return f"{percent(over(sum(spent.values()), total))} of the energy goes into {name}{there}."

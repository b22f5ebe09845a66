"""The cost of a fused group (docs/concepts.md, "Fused groups"): each run of each operator by its closed forms, joined.

Runs of an operator that have the same size, and find the same tiles where they are, cost the same: each such class is
counted once.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.nest import Nest
from tilewright.cost.dense.single import sums_of, tallies_of
from tilewright.cost.fused.shares import FusedShare, pace, summed
from tilewright.cost.fused.vector import leave, vector_share
from tilewright.cost.records import COMPUTE, FusedCost
from tilewright.cost.tables import TallyKey
from tilewright.hardware import Accelerator
from tilewright.mapping import FusedGroup, FusedMapping, FusedTree, Turns, lane_use, operations_of
from tilewright.workload import Operator


def fused_cost(group: FusedGroup, accelerator: Accelerator, mapping: FusedMapping) -> FusedCost:
    """Return what a fused group costs, exact by the counting rules; legality is not looked at.

    Raises an `InputError` if the tree is none of this group (`FusedTree`), or names levels that the machine has not.
    """
    tree = FusedTree(group, mapping)
    return joined_cost(tree, accelerator, fused_shares(tree, accelerator))


def fused_shares(tree: FusedTree, accelerator: Accelerator) -> dict[str, FusedShare]:
    """Return what each operator of a group takes.

    It follows from its own nest, the shared loops and what holds the tensors: nests of the others change nothing.
    """
    group = tree.group
    shares = {operator.name: _share(tree, operator, accelerator) for operator in group.operators}
    for operator in group.operators:
        if group.leaves(operator.name):
            leave(tree, operator, accelerator, shares[operator.name])
    return shares


def joined_cost(tree: FusedTree, accelerator: Accelerator, shares: dict[str, FusedShare]) -> FusedCost:
    """Return what a group costs whose operators take these shares, perhaps of trees with other nests."""
    group = tree.group
    found = pace(tree, shares, accelerator, tree.mapping.root)
    latency = found.steady_cycles + found.ramp_cycles
    energy = dict.fromkeys((name for share in shares.values() for name in share.energy), 0.0)
    for name in energy:
        energy[name] = sum(share.energy.get(name, 0.0) for share in shares.values())
    leakage = accelerator.leakage_mw * latency / accelerator.frequency_mhz * 1000
    if leakage:
        energy["leakage"] = leakage
    busy = sum((share.macs * lane_use(group.operator(name), accelerator).cycles
                for name, share in shares.items() if share.macs), start=Fraction(0))
    return FusedCost(
        macs=sum(share.macs for share in shares.values()), steady_cycles=found.steady_cycles,
        ramp_cycles=found.ramp_cycles, energy_pj=sum(energy.values()), energy_by_component_pj=energy,
        counts={(name, *key): count for name, share in shares.items() for key, count in share.counts.items()},
        cycles=dict(summed(share.cycles for share in shares.values())), bottleneck=found.bottleneck,
        utilisation=float(busy) / (accelerator.compute_instances * latency) if latency else 0.0,
        held={name: (words.most, words.staying) for name, words in tree.held_words.items()},
        made={name: share.made for name, share in shares.items()},
    )


def _share(tree: FusedTree, operator: Operator, accelerator: Accelerator) -> FusedShare:
    if operations_of(operator) is not None:
        return vector_share(tree, operator, accelerator)
    share, nest = FusedShare(), tree.nest(operator.name, accelerator)
    names = [level.name for level in accelerator.levels]
    for kind in _kinds(operator, tree.runs(operator.name)):
        times, there = kind.times, kind.there
        run = Nest(replace(operator, dimensions=kind.dimensions), accelerator, nest)
        sums = sums_of(run, _left_out(run, there))
        share.macs += times * run.operator.macs
        share.cycles[COMPUTE] += times * sums.blocked
        for level, (_, _, cycles) in sums.traffic.items():
            share.cycles[names[level]] += times * cycles
        for name, pj in sums.spent.items():
            share.energy[name] += times * pj
        share.add(sums.counts, times)
        share.cold_start = sums.ramps[0] if kind.first else share.cold_start
        share.tail = sums.ramps[1] if kind.last else share.tail
    share.made = share.macs / operator.macs
    return share


def _left_out(nest: Nest, there: frozenset[str]) -> dict[TallyKey, int]:
    """Return what a nest moves; of operands that are ``there`` tiles that no loop advances are not brought in."""
    found = tallies_of(nest)
    for tensor in nest.operator.operands:
        for at in nest.boundaries(tensor) if tensor.name in there else ():
            if at.child < len(nest.keeps) and cf.innermost_advancing(nest, at) < 0:
                stay = (at.parent, tensor.name, "reads"), (at.child, tensor.name, "fills")
                found |= {key: 0 for key in found if key[1:] in stay}
    return found


@dataclass(frozen=True)
class _RunKind:
    """Runs that cost the same: their sizes, and the operands that are where they were in the run before."""

    dimensions: tuple[tuple[str, int], ...]
    there: frozenset[str]
    times: int
    first: bool
    last: bool


def _kinds(operator: Operator, runs: Turns) -> list[_RunKind]:
    names = list(operator.sizes)
    if len(runs) == 0:
        return []
    moved = np.stack([np.append(True, (np.diff(runs.low[d]) != 0) | (np.diff(runs.end[d]) != 0)) for d in names])
    there = [~np.any(moved[[d in tensor.dimensions for d in names]], axis=0) for tensor in operator.operands]
    for same in there:
        same[0] = False
    rows = np.stack([*(runs.extents(d) for d in names), *there], axis=1)
    unique, inverse, times = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    place = inverse.ravel()
    return [_RunKind(tuple(zip(names, row[:len(names)], strict=True)),
                     frozenset(t.name for t, same in zip(operator.operands, row[len(names):], strict=True) if same),
                     int(times[at]), at == place[0], at == place[-1]) for at, row in enumerate(unique.tolist())]

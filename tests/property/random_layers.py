"""Seeded random layers with their machines: tiny ones, so that every mapping can be tried, and larger ones.

What a machine charges for is often a single kind of access or port, so that bounds on single counts of words are met
and no slack elsewhere hides one that is too high.
"""

from dataclasses import replace
from math import exp, log
from typing import TypeVar

import numpy as np

from random_variants import shared_lanes
from tilewright.base import InputError
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Compression,
    Compute,
    Elision,
    Fanout,
    Memory,
    Sparsity,
)
from tilewright.mapping import ANY, Bounds, Constraints, MapSpace
from tilewright.validation.random_nests import random_operator, with_networks
from tilewright.workload import ROLES, Operator, einsum, with_densities

T = TypeVar("T")
EINSUMS = ("ab,bc,cd->ad", "ab,bc,c->a", "abc,cd->abd", "ab,ab->ab", "a,b->ab", "abc,acd->abd")


def pick(rng: np.random.Generator, *options: T) -> T:
    return options[rng.integers(len(options))]


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw evenly in the logarithm."""
    return float(exp(rng.uniform(log(low), log(high))))


def random_space(rng: np.random.Generator) -> MapSpace:
    """Return the space of a layer, most often with imperfect tiling, sometimes where memories keep less than they may.

    Machines are of three kinds: anything; one memory that feeds some arrays, where lanes share words or do not; and a
    memory too small for the layer behind arrays, where tensors have to be fetched again. Every access counts alike in
    many of the latter two, so that what is spared of one tensor cannot hide what another needs.
    """
    kind = pick(rng, "any", "any", "lanes", "room")
    operator = _operator(rng, tiny=rng.random() < 0.67)
    accelerator = _machine(rng, operator, kind)
    keeps = {memory.name: tuple(t.name for t in operator.tensors
                                if memory.can_keep(t.name, t.role) and rng.random() < 0.6)
             for memory in accelerator.memories[1:]} if kind == "any" and rng.random() < 0.4 else {}
    return MapSpace(operator, accelerator, pick(rng, "perfect", "imperfect", "imperfect"), Constraints(keeps=keeps))


def ruled(rng: np.random.Generator, space: MapSpace) -> MapSpace:
    """Return the same layer in a space that leaves out more: where dimensions loop, how often, in which order."""
    dims, machine = list(space.operator.sizes), space.accelerator
    memories, places = [memory.name for memory in machine.memories], space.layout.places
    some = {place: tuple(d for d in dims if rng.random() < 0.5) for place in places
            if rng.random() < (0.6 if "." in place else 0.2)}
    loops = some | ({memories[0]: tuple(dims)} if memories[0] in some else {})
    factors = {place: {pick(rng, *dims): _range(rng, 4)} for place in places if rng.random() < 0.25}
    tiles = {place: {pick(rng, *dims): _range(rng, 6)} for place in memories[1:] if rng.random() < 0.25}
    orders = {place: [[*head, ANY] if rng.random() < 0.3 else [ANY, *head] for head in (
        rng.permutation(dims)[:int(rng.integers(1, len(dims) + 1))].tolist() for _ in range(2))]
        for place in memories if rng.random() < 0.4}
    try:
        return replace(space, constraints=replace(space.constraints, loops=loops, factors=factors, tiles=tiles,
                                                  orders=orders))
    except InputError:  # a factor of more than an array has room for, or of a dimension that may not loop
        return ruled(rng, space)


def _range(rng: np.random.Generator, most: int) -> Bounds:
    least = int(rng.integers(1, most))
    return pick(rng, Bounds(least, least), Bounds(1, least), Bounds(min(least, 2)))


def sparse(rng: np.random.Generator, space: MapSpace) -> MapSpace:
    """Return the same layer with zeros among its operands, on a machine that makes use of them."""
    operator = with_densities(space.operator, {t.name: pick(rng, 0.1, 0.3, 0.6, 1.0) for t in space.operator.operands})
    kept = [(memory.name, t) for memory in space.accelerator.memories for t in operator.tensors
            if memory.can_keep(t.name, t.role) and rng.random() < 0.4]
    formats = tuple(Compression(memory, t.name, pick(rng, "bitmask", "coordinates", "csr", "uncompressed"))
                    for memory, t in kept)
    leaders = {t.name: tuple(o.name for o in operator.operands if o is not t and set(o.dimensions) & set(t.dimensions))
               for t in operator.tensors} if len(operator.tensors) == 3 else {}
    elisions = tuple(Elision(memory, pick(rng, "gate", "skip"), t.name, leaders[t.name])
                     for memory, t in kept if leaders.get(t.name) and rng.random() < 0.6)
    names = [t.name for t in operator.operands]
    gated = tuple(name for name in names if rng.random() < 0.3)
    made = Sparsity(formats, elisions, gated, tuple(n for n in names if n not in gated and rng.random() < 0.3))
    return MapSpace(operator, replace(space.accelerator.unshared, sparsity=made), space.tiling, space.constraints)


def _operator(rng: np.random.Generator, *, tiny: bool) -> Operator:
    if rng.random() < 0.12:
        return einsum(pick(rng, *EINSUMS), {name: int(rng.integers(1, 4 if tiny else 9)) for name in "abcd"})
    return random_operator(rng, int(between(rng, 8, 60 if tiny else 1500)))


def _machine(rng: np.random.Generator, operator: Operator, kind: str) -> Accelerator:
    if kind == "any":
        inner = ["memory"] * pick(rng, 0, 0, 1, 1, 1, 2, 2, 3, 4) + ["fanout"] * pick(rng, 0, 1, 1, 1, 2, 2, 3, 4)
        places = ["memory", *(inner[i] for i in rng.permutation(len(inner)))]
    else:
        places = ["memory", *["fanout"] * pick(rng, 1, 2, 2, 3, 4), *["memory"] * (kind == "room")]
    levels: list[Memory | Fanout] = []
    for at, place in enumerate(places):
        levels.append(_fanout(rng, f"F{at}", operator) if place == "fanout" else _memory(rng, at, operator, kind))
        if place == "memory" and "fanout" not in places[:at]:
            levels[at] = replace(levels[at], block_words=pick(rng, 1, 1, 1, 4))
    if kind != "any" and rng.random() < 0.7:
        levels[0] = replace(levels[0], energy=AccessEnergy(1.0, 1.0, 1.0, 1.0), block_words=1, word_bits=8,
                            bandwidth=Bandwidth(shared=pick(rng, None, 0.25, 1.0)))
    machine = Accelerator("random", tuple(levels),
                          Compute("MAC", pick(rng, 0.0, 0.0, 0.3), leakage_mw=pick(rng, 0.0, 0.0, 0.0, 0.01)),
                          frequency_mhz=pick(rng, 200.0, 1000.0),
                          word_bits=tuple((role, pick(rng, 8, 8, 16, 32) if kind == "any" else 8) for role in ROLES))
    own = rng.spawn(1)[0]
    return shared_lanes(own, machine, operator.output.name) if own.random() < 0.3 else machine


def _fanout(rng: np.random.Generator, name: str, operator: Operator) -> Fanout:
    """Return an array, often just large enough for some dimensions."""
    sizes = [size for size in operator.sizes.values() if size > 1] or [1]
    wide = pick(rng, *sizes) if rng.random() < 0.5 else int(rng.integers(1, 7))
    shape = min(wide, 12), pick(rng, 1, 1, 2, 3)
    blocks = (1, shape[1]) if rng.random() < 0.05 else None
    return with_networks(rng, Fanout(
        name, shape, multicast=bool(rng.random() < 0.6), reduce=bool(rng.random() < 0.6),
        flexible=blocks is None and bool(rng.random() < 0.1), blocks=blocks,
        network_energy_pj_per_word=pick(rng, 0.0, 0.0, 0.5, 3.0)))


def _memory(rng: np.random.Generator, at: int, operator: Operator, kind: str) -> Memory:
    words, small = {t.name: t.words(operator.sizes) for t in operator.tensors}, kind == "room"
    keeps = tuple(name for name in words if at == 0 or rng.random() < (0.95 if small else 0.75))
    limited = at > 0 and (small or rng.random() < 0.75)
    size = between(rng, 3, max(8, (0.8 if small else 2.5) * sum(words.values())))
    apart = limited and not small and rng.random() < 0.3
    return Memory(
        f"M{at}", keeps, _energy(rng), word_bits=pick(rng, 8, 8, 16, 32),
        bandwidth=Bandwidth() if small else _bandwidth(rng),
        capacity_bytes=size if limited and not (apart and rng.random() < 0.5) else None,
        partitions_bytes=tuple((n, between(rng, 2, 4 + 2 * words[n])) for n in keeps if rng.random() < 0.8)
        if apart else (),
        buffering=pick(rng, "single", "double", "buffet"),
        leakage_mw=pick(rng, 0.0, 0.0, 0.0, 0.01))


def _energy(rng: np.random.Generator) -> AccessEnergy:
    kind = rng.random()
    if kind < 0.3:
        return AccessEnergy(*np.eye(4)[rng.integers(4)].tolist())
    return AccessEnergy(*(0.0 if kind < 0.6 else pick(rng, 0.0, 0.5, 1.0, 2.0, 10.0) for _ in range(4)))


def _bandwidth(rng: np.random.Generator) -> Bandwidth:
    kind, rates = rng.random(), [pick(rng, 0.25, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 8.0) for _ in range(3)]
    kept = [kind < 0.15 or kind > 0.8, 0.15 < kind < 0.3 or kind > 0.85, 0.3 < kind < 0.45 or kind > 0.9]
    return Bandwidth(*(rate if own else None for rate, own in zip(rates, kept, strict=True)))

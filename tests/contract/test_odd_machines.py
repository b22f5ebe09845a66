"""Every registered mapper on machines and layers as odd as can be: a legal mapping is found, or plainly none."""

from itertools import product

import pytest
from test_mappers import EVERY, INSTALLED

from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compression, Compute, Fanout, Memory, Sparsity
from tilewright.mapping import MapSpace, is_legal
from tilewright.search import search
from tilewright.workload import ROLES, convolution, depthwise, einsum, matmul, transposed_convolution

COST = AccessEnergy(2.0, 1.5, 1.0, 0.5)
FREE = AccessEnergy(0.0, 0.0, 0.0, 0.0)


def machine(*inner: Memory | Fanout, bandwidth: Bandwidth = Bandwidth(), **more: object) -> Accelerator:  # noqa: B008
    main = Memory("DRAM", ROLES, AccessEnergy(100.0, 100.0, 100.0, 100.0), bandwidth=bandwidth)
    widths = {"word_bits": tuple((role, 8) for role in ROLES), **more}
    return Accelerator("odd", (main, *inner), **widths)  # type: ignore[arg-type]


def store(name: str = "L1", keeps: tuple[str, ...] = ROLES, size: float | None = 64.0, **more: object) -> Memory:
    return Memory(name, keeps, COST, capacity_bytes=size, **more)  # type: ignore[arg-type]


def lanes(name: str = "PEs", x: int = 4, y: int = 2, **more: object) -> Fanout:
    return Fanout(name, (x, y), **more)  # type: ignore[arg-type]


MACHINES = {
    "one memory": machine(),
    "one memory and an array": machine(lanes()),
    "one memory and four arrays": machine(*(lanes(f"F{n}", 2, 1, multicast=n % 2 == 0) for n in range(4))),
    "array of one": machine(lanes(x=1, y=1), store()),
    "array innermost": machine(store(), lanes()),
    "array outermost": machine(lanes(), store(), store("L0", size=12)),
    "three arrays in a row": machine(lanes("A", 2, 1), lanes("B", 2, 2), lanes("C", 3, 1), store()),
    "arrays at both ends": machine(lanes("A", 2, 1), store(), lanes("B", 2, 2)),
    "memory that keeps nothing": machine(store(keeps=()), lanes(), store("L0")),
    "nothing but memories that keep nothing": machine(store("L2", ()), store("L1", ())),
    "memory of outputs": machine(lanes(), store(keeps=("outputs",), size=4)),
    "memory of operands": machine(store(keeps=("inputs", "weights")), lanes()),
    "partitions by tensor": machine(store(size=None, partitions_bytes=tuple((role, 16.0) for role in ROLES))),
    "one partition, the rest shared": machine(lanes(), store(partitions_bytes=(("weights", 3.0),), buffering="buffet")),
    "room for one word of each": machine(lanes(), store(size=4, buffering="buffet")),
    "room for one word of each, twice": machine(store(size=8, buffering="double"), lanes()),
    "no room for that": machine(store(size=7, keeps=("weights", "outputs", "inputs"), buffering="double"),
                                word_bits=tuple((role, 16) for role in ROLES)),
    "less room than a word": machine(lanes(), store(size=0.5)),
    "no limits": machine(store(size=None), lanes(x=512, y=512)),
    "huge bandwidth": machine(store(bandwidth=Bandwidth(1e15, 1e15)), bandwidth=Bandwidth(shared=1e15)),
    "tiny bandwidth": machine(store(bandwidth=Bandwidth(1e-3, 0.3)), bandwidth=Bandwidth(shared=1e-3)),
    "double buffered": machine(lanes(), store(buffering="double", bandwidth=Bandwidth(1.0, 0.5))),
    "single buffered": machine(store(buffering="single", bandwidth=Bandwidth(shared=0.7)), lanes()),
    "no multicast, no reduction": machine(lanes(multicast=False, reduce=False), store()),
    "flexible shape": machine(lanes(x=12, y=1, flexible=True), store()),
    "blocks": machine(lanes(x=4, y=4, blocks=(2, 1)), store()),
    "one row": machine(lanes(x=64, y=1), store()),
    "one column": machine(lanes(x=1, y=64), store()),
    "prime sides": machine(lanes(x=7, y=13), store()),
    "five memories": machine(*(store(f"L{n}", size=n * 40.0) for n in (4, 3, 2, 1))),
    "wide words": machine(store(block_words=4, word_bits=32),
                          word_bits=(("inputs", 4), ("weights", 64), ("outputs", 32))),
    "all for free": Accelerator("free", (Memory("M", ROLES, FREE), Memory("L", ROLES, FREE, capacity_bytes=9)),
                                Compute("MAC", 0.0)),
    "leakage only": Accelerator("leaky", (Memory("M", ROLES, FREE, leakage_mw=1.0), lanes())),
    "zeros": machine(store(), lanes(), sparsity=Sparsity((Compression("L1", "weights", "bitmask"),),
                                                         skipped=("inputs",))),
}
LAYERS = {
    "one": matmul("one", m=1, n=1, k=1),
    "primes": matmul("primes", m=7, n=5, k=3),
    "vector": matmul("vector", m=1, n=61, k=1),
    "holes": convolution("holes", in_channels=2, out_channels=3, in_size=(13, 1), kernel=(2, 1), stride=(3, 1)),
    "depthwise": depthwise("depthwise", 5, in_size=6, kernel=3),
    "transposed": transposed_convolution("transposed", in_channels=2, out_channels=3, in_size=(4,), kernel=3, stride=2),
    "chain": einsum("ab,bc,cd->ad", {"a": 3, "b": 4, "c": 2, "d": 3}),
    "long": matmul("long", m=1, n=100_003, k=2),
    "batch": matmul("batch", m=2, n=2, k=2, batch=6),
    "grouped": convolution("grouped", in_channels=6, out_channels=4, in_size=7, kernel=3, groups=2, dilation=2),
}
UNMAPPABLE = {"no room for that", "less room than a word"}
TIGHT = {"room for one word of each", "room for one word of each, twice"}
DRAWN = {"random", "random-pruned", "exhaustive"}
"""Mappers that propose what does not fit as often as what does."""
FAST = {"exact": {"nodes": 20_000}, "gradient": {"starts": 3, "steps": 2, "corrections": 16},
        "mind-mappings": {"epochs": 2}}


def check(mapper: str, machine: str, layer: str, tiling: str) -> None:
    operator, accelerator = LAYERS[layer], MACHINES[machine]
    space = MapSpace(operator, accelerator, tiling)  # type: ignore[arg-type]
    result = search(operator, accelerator, space=space, mapper=mapper, budget=40, seed=1, options=FAST.get(mapper))
    if result.mapping is not None:
        assert machine not in UNMAPPABLE and is_legal(result.mapping, operator, accelerator)
        assert result.feasible and result.score >= 0
    elif machine not in UNMAPPABLE:
        assert mapper in DRAWN or (machine in TIGHT and mapper not in ("auto", "gamma", "exact"))
    else:
        assert result.cost is None and not result.feasible


@pytest.mark.sample(100)
@EVERY
@pytest.mark.parametrize("machine", MACHINES)
def test_a_legal_mapping_is_found_or_there_is_none(mapper, machine):
    at = 3 * list(MACHINES).index(machine) + INSTALLED.index(mapper)
    check(mapper, machine, list(LAYERS)[at % len(LAYERS)], ("perfect", "imperfect")[at // len(LAYERS) % 2])


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("layer", LAYERS)
def test_a_legal_mapping_is_found_or_there_is_none_of_every_layer(mapper, layer):
    for machine, tiling in product(MACHINES, ("perfect", "imperfect")):
        check(mapper, machine, layer, tiling)

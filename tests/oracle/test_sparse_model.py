"""The sparse model against the dense one at density 1, and against tensors whose zeros are written out.

What is exact is compared exactly: means over all tensors of so many words other than zero (tiny nests), or over all
rotations of one tensor (what one tensor's zeros decide alone, by linearity). What is an approximation is compared with
samples, and by how much it may differ is said there.
"""

from dataclasses import replace
from itertools import product
from math import comb, prod

import numpy as np
import pytest

from random_variants import forwarding
from tilewright.cost import DenseModel, SparseModel
from tilewright.cost.reference import SparseNest, run_length_words, walk
from tilewright.cost.sparse.rates import all_zero
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compression, Compute, Elision, Fanout, Memory
from tilewright.hardware import Sparsity as S
from tilewright.mapping import LevelLoops, Loop, Mapping, MappingBatch, Zeros, padding_words, stored
from tilewright.validation import random_case
from tilewright.workload import convolution, matmul, with_densities

KINDS = ("reads", "fills", "updates", "drains")
ALL = ("inputs", "weights", "outputs")
EXACT = ("latency_cycles", "steady_cycles", "ramp_cycles", "steps", "excess")


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_at_density_one_without_formats_it_is_the_dense_model_word_for_word(seed):
    rng = np.random.default_rng(9000 + seed)
    everything = tuple(Elision("Mem0", action, follower, leaders) for action, follower, leaders in (
        ("skip", "weights", ("inputs",)), ("gate", "inputs", ("weights",)), ("skip", "outputs", ("inputs", "weights"))))
    for number in range(15):
        operator, accelerator, mapping = random_case(rng)
        accelerator = forwarding(accelerator) if number % 2 else accelerator
        batch = MappingBatch.from_mappings([mapping], operator, accelerator)
        able = [e for e in everything if not {"A", "B", "D", "E"} & set(operator.sizes)]
        sparse = SparseModel(operator, replace(accelerator, sparsity=S(elisions=tuple(able), skipped=("inputs",))),
                             batch.layout)
        dense = DenseModel(operator, accelerator, batch.layout)
        found, wanted = sparse.score(batch), dense.score(batch)
        for name in EXACT:
            assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
        assert np.allclose(found.energy_pj, wanted.energy_pj, rtol=1e-12)
        one, other = sparse.cost(mapping), dense.cost(mapping)
        assert (one.counts, one.traffic, one.latency_cycles, one.bottleneck, one.utilisation) == (
            other.counts, other.traffic, other.latency_cycles, other.bottleneck, other.utilisation)
        assert one.energy_by_component_pj == pytest.approx(other.energy_by_component_pj, rel=1e-12)
        assert {key: tuple(getattr(e, kind) for kind in KINDS) for key, e in one.expected.items()} == {
            key: tuple(getattr(c, kind) for kind in KINDS) for key, c in other.counts.items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_the_reference_with_full_tensors_is_the_dense_oracle(seed):
    rng = np.random.default_rng(7000 + seed)
    for _ in range(12):
        operator, accelerator, mapping = random_case(rng, most_macs=2000)
        full = next(SparseNest(operator, accelerator, mapping).samples(rng, 1))
        found, wanted = SparseNest(operator, accelerator, mapping).walk(full), walk(operator, accelerator, mapping)
        for (memory, tensor), count in wanted.counts.items():
            assert [found.words(memory, tensor, kind) for kind in KINDS] == [getattr(count, kind) for kind in KINDS]
        assert (found.steps, found.steady_cycles) == (wanted.steps, wanted.steady_cycles)
        if all(memory.block_words == 1 for memory in accelerator.memories):
            leakage = wanted.energy_by_component_pj.get("leakage", 0.0)
            assert found.energy_pj == pytest.approx(wanted.energy_pj - leakage, rel=1e-12)


def machine(sparsity, multicast=True, reduce=True):
    energy = AccessEnergy(2.0, 3.0, 5.0, 7.0)
    return Accelerator("tiny", (
        Memory("Main", ALL, energy, bandwidth=Bandwidth(read=1.0, write=1.0)),
        Memory("Mid", ALL, energy, bandwidth=Bandwidth(read=2.0, write=2.0)),
        Fanout("Lanes", (4, 1), multicast=multicast, reduce=reduce, network_energy_pj_per_word=0.5),
        Memory("Pad", ALL, energy, bandwidth=Bandwidth(shared=3.0))), Compute("MAC", 1.5), sparsity=sparsity)


SPARSITIES = {
    "formats": S((Compression("Main", "weights", "bitmask"), Compression("Mid", "inputs", "coordinates"),
                  Compression("Pad", "weights", "csr"), Compression("Mid", "outputs", "coordinates", 3),
                  Compression("Mid", "weights", "uop-cp"), Compression("Pad", "inputs", "uop-cp", 4)),
                 skipped=("inputs",), gated=("weights",)),
    "one operand, innermost": S(elisions=(Elision("Pad", "skip", "weights", ("inputs",)),)),
    "intersection": S((Compression("Pad", "weights", "csr"),), (
        Elision("Pad", "skip", "weights", ("inputs",)), Elision("Pad", "gate", "inputs", ("weights",)))),
    "further out": S(elisions=(Elision("Main", "skip", "weights", ("inputs",)),
                               Elision("Mid", "gate", "inputs", ("weights",)))),
    "twice": S(elisions=(Elision("Main", "gate", "weights", ("inputs",)),
                         Elision("Pad", "skip", "weights", ("inputs",)))),
    "outputs": S(elisions=(Elision("Pad", "skip", "outputs", ("inputs", "weights")),
                           Elision("Mid", "gate", "outputs", ("inputs",)))),
}
TINY = {
    "2 2 2": (matmul("t", m=2, n=2, k=2), (("M", 1),), "N"),
    "2 3 2": (matmul("t", m=2, n=3, k=2), (("K", 1),), "N"),
    "reduced": (matmul("t", m=2, n=2, k=2), (("N", 1),), "K"),
    "still": (matmul("t", m=4, n=1, k=2), (("K", 1), ("M", 2)), "M"),
}


def tiny_mapping(operator, outer, lane):
    extents = dict(operator.sizes) | dict(outer)
    inner = tuple(Loop(name, 1) for name in reversed(list(operator.sizes)) if name != lane and extents[name] > 1)
    spread = (Loop(lane, 1, "X"),) if extents[lane] > 1 else ()
    return Mapping((LevelLoops("Main", tuple(Loop(*loop) for loop in outer)), LevelLoops("Mid"),
                    LevelLoops("Lanes", spread), LevelLoops("Pad", inner)))


@pytest.mark.sample(15)
@pytest.mark.parametrize("densities", [{"inputs": 0.5}, {"inputs": 0.5, "weights": 0.5},
                                       {"inputs": 0.25, "weights": 0.5, "outputs": 0.5}])
@pytest.mark.parametrize(("name", "case"), list(product(SPARSITIES, TINY)))
@pytest.mark.parametrize("most", [80, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_mean_over_all_tensors_is_exact(name, case, densities, most):
    operator, outer, lane = TINY[case]
    operator = with_densities(operator, densities)
    words = {t: t.words(operator.sizes) for t in operator.tensors}
    if any(t.density * n % 1 for t, n in words.items()) or prod(
            comb(n, round(t.density * n)) for t, n in words.items()) > most:
        pytest.skip("no whole number of words, or too many tensors")
    for merges in (True, False):
        accelerator = machine(SPARSITIES[name], merges, merges)
        mapping = tiny_mapping(operator, outer, lane)
        nest = SparseNest(operator, accelerator, mapping)
        walks = [nest.walk(masks) for masks in nest.every()]
        found = SparseModel(operator, accelerator).cost(mapping)
        for (memory, tensor), expected in found.expected.items():
            for kind in KINDS:
                mean = np.mean([w.words(memory, tensor, kind) for w in walks])
                assert getattr(expected, kind) == pytest.approx(mean, rel=1e-9, abs=1e-12), (memory, tensor, kind)
            bits = np.mean([sum(w.flows[memory, tensor, kind].bits.sum() for kind in KINDS) for w in walks])
            assert expected.metadata_bits == pytest.approx(bits, rel=1e-9, abs=1e-12)
        assert found.performed_macs == pytest.approx(np.mean([w.performed_macs for w in walks]))
        assert found.energy_pj == pytest.approx(np.mean([w.energy_pj for w in walks]), rel=1e-9)
        # Latency is the largest of means, rounded up: what is rounded up and then averaged is never less by a cycle.
        assert found.steady_cycles < np.mean([w.steady_cycles for w in walks]) + 1


IN_A_ROW = {
    "columns": (matmul("t", m=6, n=4, k=1), (("M", 3),), "N", {"inputs": 1 / 3, "weights": 0.5}),
    "ragged": (matmul("t", m=6, n=3, k=1), (("M", 2), ("N", 2)), "M", {"inputs": 0.5, "weights": 1 / 3}),
    "sums": (matmul("t", m=1, n=1, k=4), (), "K", {"inputs": 0.25}),
    "sums of both": (matmul("t", m=1, n=1, k=4), (), "K", {"inputs": 0.25, "weights": 0.5}),
    "lone words": (matmul("t", m=1, n=2, k=6), (("K", 3), ("N", 1)), "N", {"inputs": 1 / 6, "outputs": 0.5}),
}
"""Nests in which all that is looked at together lies in a row, so that it can be spread evenly."""


@pytest.mark.sample(15)
@pytest.mark.parametrize("case", IN_A_ROW)
@pytest.mark.parametrize("name", SPARSITIES)
def test_the_mean_over_all_even_tensors_is_exact(name, case):
    operator, outer, lane, densities = IN_A_ROW[case]
    operator = with_densities(operator, {tensor: f"even:{density!r}" for tensor, density in densities.items()})
    if name == "outputs" and case == "ragged":
        pytest.skip("ragged tiles serve different numbers of products")
    for merges in (True, False):
        accelerator = machine(SPARSITIES[name], merges, merges)
        mapping = tiny_mapping(operator, outer, lane)
        nest = SparseNest(operator, accelerator, mapping)
        walks = [nest.walk(masks) for masks in nest.every()]
        found = SparseModel(operator, accelerator).cost(mapping)
        for (memory, tensor), expected in found.expected.items():
            for kind in KINDS:
                mean = np.mean([w.words(memory, tensor, kind) for w in walks])
                assert getattr(expected, kind) == pytest.approx(mean, rel=1e-9, abs=1e-9), (memory, tensor, kind)
        assert found.energy_pj == pytest.approx(np.mean([w.energy_pj for w in walks]), rel=1e-9)
        assert found.performed_macs == pytest.approx(np.mean([w.performed_macs for w in walks]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_what_formats_move_is_exact_on_ragged_sliding_nests(seed):
    rng = np.random.default_rng(4000 + seed)
    for _ in range(3):
        operator, accelerator, mapping = random_case(rng, most_macs=400)
        operator = with_densities(operator, {t.name: rng.integers(1, t.words(operator.sizes) + 1)
                                             / t.words(operator.sizes) for t in operator.tensors})
        kept = {m.name: [t for t in operator.tensors if m.can_keep(t.name, t.role)] for m in accelerator.memories}
        formats = tuple(
            Compression(name, t.name, str(rng.choice(["bitmask", "coordinates", "csr", "uop-cp", "uncompressed"])))
                        for name, tensors in kept.items() for t in tensors)
        accelerator = replace(accelerator, sparsity=S(formats))
        nest = SparseNest(operator, accelerator, mapping)
        found = SparseModel(operator, accelerator).cost(mapping)
        full = next(nest.samples(rng, 1))
        for tensor in operator.tensors:
            walks = [nest.walk(full | {tensor.name: mask}) for mask in rotations(nest, tensor, full[tensor.name])]
            for (memory, name), expected in found.expected.items():
                if name != tensor.name:
                    continue
                for kind in KINDS:
                    mean = np.mean([w.words(memory, name, kind) for w in walks])
                    assert getattr(expected, kind) == pytest.approx(mean, rel=1e-9, abs=1e-9), (memory, name, kind)
                bits = np.mean([sum(w.flows[memory, name, kind].bits.sum() for kind in KINDS) for w in walks])
                assert expected.metadata_bits == pytest.approx(bits, rel=1e-9, abs=1e-9)


def rotations(nest, tensor, mask):
    """Yield the mask with its flags handed on from word to word: each word is other than zero equally often."""
    known = nest.touched[tensor.name]
    for shift in range(len(known)):
        turned = np.zeros_like(mask)
        turned[known] = np.roll(mask[known], shift)
        yield turned


@pytest.mark.parametrize("densities", [(0.3, 0.45), (0.3, 0.45, 0.4), (0.5, 0.7, 0.95)])
def test_products_of_words_that_are_spread_evenly_are_all_zero_as_counted(densities, count=4):
    """Of so many words of a tensor the mean, rounded down or up, are other than zero, wherever they lie."""
    chances = dict[int, float]({(1 << count) - 1: 1.0})
    for density in densities:
        few, more = divmod(density * count, 1)
        ways = {mask: ((1 - more) if mask.bit_count() == few else more) / comb(count, mask.bit_count())
                for mask in range(1 << count) if mask.bit_count() in (few, few + 1)}
        both = [(one & other, p * q) for one, p in chances.items() for other, q in ways.items()]
        chances = {mask: sum(p for each, p in both if each == mask) for mask in range(1 << count)}
    found = all_zero(tuple(Zeros(64, density, even=True) for density in densities), np.array([float(count)]))
    assert found[0] == pytest.approx(chances[0], abs=1e-12)


@pytest.mark.parametrize(("words", "few", "bits"), [(8, 2, 1), (9, 3, 2), (12, 2, 2), (7, 1, 1)])
def test_run_length_words_are_exact_for_whole_tiles(words, few, bits):
    masks = [m for m in product((False, True), repeat=words) if sum(m) == few]
    mean = np.mean([run_length_words(np.array(mask), bits) for mask in masks])
    zeros = Zeros(words, few / words)
    assert few + padding_words(zeros, np.array([float(words)]), bits)[0] == pytest.approx(mean, rel=1e-9)
    found = stored(Compression("M", "W", "run-length", bits), zeros, [np.array([float(words)])])
    assert found.words[0] * words == pytest.approx(mean, rel=1e-9)
    assert found.metadata_bits[0] == pytest.approx(found.words[0] * bits)


def test_outputs_are_left_out_where_that_is_stated_and_not_further_in():
    """Of 16 updates inside none, of four merged ones outside those of four products with a zero each."""
    costs = AccessEnergy(1, 1, 1, 1)
    machine = Accelerator("two", (Memory("DRAM", ALL, costs), Memory("Buffer", ALL, costs)), sparsity=S(
        elisions=(Elision("DRAM", "skip", "outputs", ("inputs", "weights")),)))
    layer = with_densities(matmul("p", m=2, n=2, k=4), {"I": 0.5, "W": 0.5})
    mapping = Mapping((LevelLoops("DRAM", (Loop("M", 1),)), LevelLoops("Buffer", (Loop("K", 1), Loop("N", 1)))))
    found = SparseModel(layer, machine).cost(mapping)
    assert found.expected["Buffer", "O"].updates == found.counts["Buffer", "O"].updates == 16
    assert 0 < found.expected["DRAM", "O"].updates < found.counts["DRAM", "O"].updates == 4


def test_run_length_words_of_part_of_a_tensor_are_exact():
    words, few, part = 10, 3, 6
    masks = [m[:part] for m in product((False, True), repeat=words) if sum(m) == few]
    mean = np.mean([run_length_words(np.array(mask), 1) for mask in masks])
    found = padding_words(Zeros(words, few / words), np.array([float(part)]), 1)[0] + part * few / words
    assert found == pytest.approx(mean, rel=1e-9)


def approximations(rng, count, samples):
    """Yield (ours, mean of samples) of energy and steady cycles where elisions meet ragged and sliding nests."""
    for _ in range(count):
        operator = convolution("c", in_channels=int(rng.integers(2, 6)), out_channels=int(rng.integers(2, 7)),
                               kernel=int(rng.integers(1, 4)), out_size=int(rng.integers(3, 8)))
        operator = with_densities(operator, {"inputs": float(rng.choice([0.1, 0.3, 0.6])),
                                             "weights": float(rng.choice([0.1, 0.3, 0.6, 1.0]))})
        names = list(SPARSITIES)
        accelerator = machine(SPARSITIES[names[rng.integers(len(names))]])
        batch = _space(operator, accelerator).sample(rng, 1)
        mapping = batch.mapping(0, operator.sizes)
        nest = SparseNest(operator, accelerator, mapping)
        walks = [nest.walk(masks) for masks in nest.samples(rng, samples)]
        found = SparseModel(operator, accelerator).cost(mapping)
        yield (found.energy_pj, np.mean([w.energy_pj for w in walks]), found.steady_cycles,
               np.mean([w.steady_cycles for w in walks]))


def _space(operator, accelerator):
    from tilewright.mapping import MapSpace

    return MapSpace(operator, accelerator)


def test_approximations_are_close_to_samples():
    found = np.array(list(approximations(np.random.default_rng(3), 5, 12)))
    energy, cycles = found[:, 0] / found[:, 1], found[:, 2] / found[:, 3]
    assert np.all((energy > 0.93) & (energy < 1.07))
    assert np.all((cycles > 0.85) & (cycles < 1.1))

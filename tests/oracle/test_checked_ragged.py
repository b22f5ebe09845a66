"""The checker of proofs with imperfect tiling: what it counts is what the oracle walks, and what it bounds is below."""

import json
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from test_checked_optimum import LAYERS, OBJECTIVES, checked_claim, drawn_machine, least_of_all, space_of

import tilewright as tw
from tilewright.api.proving import LayerRules
from tilewright.cost.reference import GivenUp, walk
from tilewright.cost.reference.proof_mappings import orders
from tilewright.cost.reference.proofs import _together
from tilewright.cost.reference.ragged import LeftChains, RaggedProof
from tilewright.cost.reference.ragged_bounds import STEEPEST, PricedScore, RegionBounds
from tilewright.cost.reference.ragged_counts import ChainCounts, may_part
from tilewright.cost.reference.ragged_parts import RegionParts, WayToPart
from tilewright.cost.reference.ragged_regions import PartOf, finer
from tilewright.cost.reference.ragged_space import NO_LOOP, Case, RaggedSpace, Rest
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory
from tilewright.mapping import KeptSets, LevelLoops, Loop, Mapping, MappingBatch, MapSpace, full_keeps, is_legal
from tilewright.workload import ROLES, convolution, einsum, matmul

SMALL = (
    matmul("g", m=3, n=2, k=5), matmul("h", m=7, n=1, k=3), matmul("b", m=2, n=3, k=2, batch=2), convolution(
        "c", in_channels=1, out_channels=2, in_size=(7,), kernel=3), convolution(
        "s", in_channels=1, out_channels=2, in_size=(9,), kernel=3, stride=2, dilation=2), convolution(
        "t", in_channels=1, out_channels=2, in_size=4, kernel=2), convolution(
        "u", in_channels=2, out_channels=1, in_size=(8,), kernel=3, stride=2))
WIDER = (*LAYERS, matmul("w", m=13, n=9, k=11), convolution("x", in_channels=5, out_channels=3, in_size=11, kernel=3),
         convolution("y", in_channels=3, out_channels=7, in_size=(13, 9), kernel=(5, 2), stride=2, dilation=(2, 1)))


def chains_of(space, mapping):
    """Return extents ``(d, v)`` of a mapping at nodes, and whether dimensions (d) part otherwise between two sides."""
    extents, parted = dict(space.space.operator.sizes), set()
    nodes = [dict(extents)]
    for (array, m), level in zip(space.passages, mapping.levels, strict=True):
        before = dict(extents)
        between = dict[str, int]()
        for loop in level.loops:
            if array and loop.dimension in between:
                parted |= {loop.dimension} if between[loop.dimension] % loop.step else set()
            between[loop.dimension] = extents[loop.dimension] = loop.step
        assert all(before[name] >= extents[name] for name in extents), m
        nodes.append(dict(extents))
    names = [group[0] for group in space.space.groups]
    return np.array([[node[name] for node in nodes] for name in names]), [name in parted for name in names]


def case_of(space, mapping):
    """Return what runs innermost at each memory but the last."""
    found, names = [], [group[0] for group in space.space.groups]
    slides = len({window.tensor for window in space.windows}) == 1 < len(space.windows)
    levels = [level for (array, _), level in zip(space.passages, mapping.levels, strict=True) if not array]
    extents, runs = dict(space.space.operator.sizes), []
    for level in mapping.levels:
        own = []
        for loop in level.loops:
            own += [loop.dimension] if loop.step < extents[loop.dimension] else []
            extents[loop.dimension] = loop.step
        runs.append(own)
    of = {level.level: own for level, own in zip(mapping.levels, runs, strict=True)}
    for level in levels[:-1]:
        dims = [names.index(name) for name in of[level.level]]
        if not dims:
            found.append(NO_LOOP)
            continue
        kinds = [tuple(space.unused[d].tolist()) for d in dims]
        known, kind = kinds[-1] in space.classes, space.kind(dims[-1])
        slid = [k for k, window in enumerate(space.windows) if dims[-1] in {window.first, window.second}]
        slide = -1
        if slides and not space.classes[kind][space.windows[0].tensor]:
            slide = slid[0] if slid else 0
        found.append(Rest(kind, not known or len(set(kinds)) > 1, slide))
    return tuple(found)


def drawn(seed):
    """Yield a few legal mappings with their spaces as the checker sees them, and the oracle's counts."""
    rng = np.random.default_rng([45, seed])
    operator, machine = WIDER[seed % len(WIDER)], drawn_machine(rng)
    union = KeptSets(MapSpace(operator, machine, "imperfect"))
    batch = union[int(rng.integers(len(union)))].sample(rng, 6)
    for at in range(len(batch)):
        mapping = batch.mapping(at, operator.sizes)
        if not is_legal(mapping, operator, machine):
            continue
        kept = full_keeps(mapping, operator, machine)
        space = RaggedSpace(space_of(operator, machine, OBJECTIVES[seed % len(OBJECTIVES)], True)[0], kept)
        yield space, case_of(space, mapping), mapping, walk(operator, machine, mapping)


def numbers_of(space, case, mapping):
    """Return what is listed of the chains of a mapping, and what they come to."""
    extents, parted = chains_of(space, mapping)
    listed = []
    for group in space.groups:
        own = extents[list(group)].T[None]
        counts = ChainCounts(space, case, group, own, any(parted[d] for d in group))
        lanes = np.array([[np.log(np.prod([lanes[0] for lanes in counts.lanes[m]])) for m in space.spread]])
        listed.append(LeftChains(np.zeros(1), counts.numbers, lanes.reshape(1, -1), own, np.zeros(1, dtype=bool)))
    return listed, space.always + sum(own.numbers[0] for own in listed)


def around(space, whole, case, mapping, rng):
    """Return a region of few extents and lanes, which a mapping is in."""
    extents, _ = chains_of(space, mapping)
    ranges = [[np.array([[[max(1, e - rng.integers(3)), min(space.sizes[d], e + rng.integers(4))]
                          for d, e in zip(group, node, strict=True)]]) for node in extents[list(group)].T]
              for group in space.groups]
    for row in ranges:
        row[0], row[-1] = row[0][..., 1:].repeat(2, 2), row[-1][..., :1].repeat(2, 2) * 0 + 1
    lanes = {}
    for v, (array, m) in enumerate(space.passages):
        for d in range(len(space.sizes)) if array else ():
            own = -(-int(extents[d, v]) // int(extents[d, v + 1]))
            lanes[d, m] = max(1, own - int(rng.integers(2))), min(own + int(rng.integers(2)), space.sizes[d],
                                                                  space.array(m).instances)
    return replace(whole, case=case, ranges=ranges, lanes=lanes)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(60))
def test_what_holds_and_what_does_not_is_what_enumeration_finds_with_imperfect_tiling(seed):
    rng = np.random.default_rng([47, seed])
    operator, machine = SMALL[seed % len(SMALL)], drawn_machine(rng)
    objective = OBJECTIVES[seed // len(SMALL) % len(OBJECTIVES)]
    least = least_of_all(operator, machine, "imperfect", 3000)
    if least is None or not 0 < least[objective] < np.inf:
        return
    space, score, _ = space_of(operator, machine, objective, True)
    best = least[objective]
    assert checked_claim(space, best, score).holds
    beaten = checked_claim(space, best * 1.001, score)
    assert beaten.holds is False and best * (1 - 1e-9) <= beaten.score == score(beaten.better) < best * 1.001


def held_against_the_oracle(found):
    """Assert that nothing of spaces, cases and mappings is counted that the oracle does not walk."""
    for space, case, mapping, cost in found:
        machine, tensors = space.space.accelerator, space.space.operator.tensors
        names = [*(memory.name for memory in machine.memories), None]
        numbers = numbers_of(space, case, mapping)[1]
        even = all(len(set(array.merges(tensor.name, tensor.role))) == 1
                   for array in machine.fanouts for tensor in tensors)
        exact = even and not (any(rest.mixed for rest in case) or any(chains_of(space, mapping)[1]) or space.windows)
        for e, edge in enumerate(space.edges):
            tensor = tensors[edge.tensor]
            out, into = (("updates", "drains") if tensor.is_output else ("reads", "fills"))
            for what, name, kind in (("out", names[edge.parent], out), ("in", names[edge.child], into)):
                if (what, e, 0) in space.number and name is not None:
                    walked = getattr(cost.counts[name, tensor.name], kind)
                    counted = np.exp(numbers[space.number[what, e, 0]])
                    assert counted <= walked * (1 + 1e-9), (what, edge, case)
                    assert not exact or counted == pytest.approx(walked)
        assert np.exp(numbers[1]) <= cost.steps * (1 + 1e-9)


@pytest.mark.sample(60)
@pytest.mark.parametrize("seed", range(600))
def test_nothing_is_counted_that_the_oracle_does_not_walk(seed):
    held_against_the_oracle(drawn(seed))


@pytest.mark.parametrize("flexible", [False, True])
def test_a_dimension_along_both_sides_of_an_array_may_be_cut_into_fewer_pieces_further_in(flexible):
    """Lanes of 3, 2 and 2 values fall into 4 pieces of 2 at most, of 3, 3 and 1 into 5, on flexible arrays as well."""
    operator, energy = matmul("m", m=7, n=1, k=2), AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("folded", (
        Memory("D", ROLES, energy, always=True), Fanout("F", (2, 2), flexible=flexible),
        Memory("L", ROLES, energy, always=True), Memory("R", ROLES, energy, always=True)))
    mapping = Mapping((LevelLoops("D"), LevelLoops("F", (Loop("M", 5, "X"), Loop("M", 3, "Y"))), LevelLoops(
        "L", (Loop("M", 2), Loop("K", 1))), LevelLoops("R", (Loop("M", 1),))))
    space = RaggedSpace(space_of(operator, machine, "edp", True)[0], full_keeps(mapping, operator, machine))
    held_against_the_oracle([(space, case_of(space, mapping), mapping, walk(operator, machine, mapping))])
    proof, extents = RaggedProof(space, 1.0), np.array([[[7], [7], [3], [2], [1]]])
    assert may_part(space, extents).all()
    parts = ((5, "X"), (3, "Y"))
    assert (parts,) in proof._laid(0, [(7, 3, True)]) and (parts,) not in proof._laid(0, [(7, 3, False)])
    assert (((5, "X"), (2, "Y")),) not in proof._laid(0, [(7, 2, True)])


@pytest.mark.sample(60)
@pytest.mark.parametrize("seed", range(600))
def test_no_score_is_below_what_chains_and_regions_are_bound_to(seed):
    for space, case, mapping, _ in drawn(seed):
        operator, machine = space.space.operator, space.space.accelerator
        score = space_of(operator, machine, OBJECTIVES[seed % len(OBJECTIVES)])[1](mapping)
        proof, (listed, numbers) = RaggedProof(space, max(score, 1e-300)), numbers_of(space, case, mapping)
        whole = RegionBounds(space).whole()
        lanes = sum(own.lanes for own in listed)
        told = whole.__class__(case, whole.ranges, whole.sides)
        known = np.array([proof._known(told) and not any(chains_of(space, mapping)[1])])
        assert proof._scores(numbers[None], lanes, known)[0] <= score * (1 + 1e-9)
        assert proof._least(numbers[None])[0] <= score * (1 + 1e-9)
        for region in (whole, told, around(space, whole, case, mapping, np.random.default_rng(seed))):
            bound = proof.bounds.made(region).bound(np.inf, 6)
            assert bound.value <= np.log(max(score, 1e-300)) + 1e-9, region.case


def is_in(space, region, extents):
    """Whether extents ``(d, v)`` are in ranges and lanes of a region, and in its sides for some way to lay lanes."""
    for group, row in zip(space.groups, region.ranges, strict=True):
        for node, ranges in zip(extents[list(group)].T, row, strict=True):
            if not ((ranges[..., 0] <= node) & (node <= ranges[..., 1])).all(axis=1).any():
                return False
    for v, (array, m) in enumerate(space.passages):
        if not array:
            continue
        lanes, ways = -(-extents[:, v] // extents[:, v + 1]), [(1,) * len(space.sides[m])]
        for d, own in enumerate(lanes.tolist()):
            few, many = region.lanes.get((d, m), (1, own))
            if not few <= own <= many:
                return False
            each = {(n, -(-own // n))[:len(space.sides[m])] for n in ([own] if len(space.sides[m]) == 1 else {
                -(-own // n) for n in range(1, own + 1)})}
            ways = {tuple(np.multiply(way, more).tolist()) for way in ways for more in each}
        told = [region.sides[m, k] for k in range(len(space.sides[m]))]
        if not any(all(n == most if full else n <= most for n, (most, full) in zip(way, told, strict=True))
                   for way in ways):
            return False
    return True


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(600))
def test_parts_of_a_region_leave_no_mapping_out(seed):
    for space, case, mapping, _ in drawn(seed):
        proof, (extents, _) = RaggedProof(space, 1.0), chains_of(space, mapping)
        region = replace(proof.bounds.whole(), case=case)
        for _ in range(6):
            assert is_in(space, region, extents)
            bound = proof.bounds.made(region).bound(np.inf, 4)
            parts = proof.parts.of(region, bound, [], 1.0)
            fine = finer(region)
            assert fine is None or is_in(space, fine, extents)
            region = next((part for part in parts if is_in(space, part, extents)), None)
            assert region is not None
            if region.single:
                break


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(200))
def test_what_runs_innermost_where_it_does_not_tell_what_is_brought_in_changes_no_number(seed):
    for space in {id(space): space for space, *_ in drawn(seed)}.values():
        left: list[Case] = [(None,) * (len(space.memories) - 1)]
        while left:
            some = left.pop()
            left += space.parted(some)
            for m in (m for m, rest in enumerate(some) if rest is None and m not in space._asked(some)):
                for rest in (NO_LOOP, *map(Rest, range(len(space.classes)))):
                    assert space.contents((*some[:m], rest, *some[m + 1:])) == space.contents(some)
        while cases := space.parted(some, any_memory=True):
            some = cases[0]
        assert None not in some


def test_chains_that_add_the_same_are_one_and_none_is_lost():
    rng = np.random.default_rng(3)
    numbers, lanes, parted = rng.integers(0, 3, (200, 2)) / 3, rng.integers(0, 2, (200, 1)) / 7, rng.random(200) < 0.5
    chains = LeftChains(rng.random(200), numbers, lanes, rng.integers(1, 9, (200, 3, 1)), parted)
    alike, members = chains.alike()
    assert sorted(np.concatenate(members).tolist()) == list(range(200)) and len(members) == len(alike.costs) < 40
    for at, own in enumerate(members):
        for all_of, first in zip(chains[1:3] + chains[4:], alike[1:3] + alike[4:], strict=True):
            assert (all_of[own] == first[at]).all()
        assert chains.costs[own].min() == alike.costs[at]


def test_regions_are_parted_where_parting_has_raised_bounds_more():
    parts = RegionParts(RegionBounds(next(drawn(0))[0]))
    good, bad = (WayToPart(("extent", g, 1, 0), 0.5) for g in (0, 1))
    whole = parts.bounds.whole()
    for way, rises in ((good, (0.2, 0.3)), (bad, (0.0, 0.9))):
        for part, rise in enumerate(rises):
            parts.learn(replace(whole, part_of=PartOf(way.key, part, way.spread)), rise)
    assert parts._growth(good, 1.0) < parts._growth(bad, 1.0)
    # Where each of two parts gains a half of what is missing, four parts close it.
    for part in range(2):
        parts.learn(replace(whole, part_of=PartOf(("lanes", 0, 1, 0), part, 1.0)), 0.5)
    assert parts._growth(WayToPart(("lanes", 0, 1, 0), 1.0), 1.0) == pytest.approx(np.log(4))


@pytest.mark.parametrize("seed", [1802, 2024])
def test_lanes_of_two_arrays_share_the_words_of_a_window_together(seed):
    test_no_score_is_below_what_chains_and_regions_are_bound_to(seed)


def test_what_takes_no_energy_is_bound_by_its_cycles():
    free = Accelerator("free", (Memory("DRAM", ROLES, AccessEnergy(0.0, 0.0, 0.0, 0.0)), Fanout("PEs", (2, 2))),
                       Compute("MAC", 0.0))
    space, score, _ = space_of(matmul("m", m=5, n=3, k=2), free, "latency", True)
    assert checked_claim(space, 9.0, score).holds and checked_claim(space, 9.1, score).holds is False
    space, score, _ = space_of(matmul("m", m=5, n=3, k=2), free, "energy", True)
    assert checked_claim(space, 0.0, score).holds and checked_claim(space, 1e-6, score).holds is False


@pytest.mark.parametrize("capacity", [6, 7, 9])
def test_rooms_that_tensors_are_at_home_in_hold_all_of_their_words(capacity):
    """Results are made and stay in the inner memory, 4 words wherever they are cut; the rest is for tiles of others."""
    machine = Accelerator("homes", (
        Memory("D", ROLES[:2], AccessEnergy(9.0, 9.0, 9.0, 9.0)),
        Memory("L", ROLES, AccessEnergy(1.0, 2.0, 1.0, 1.0), capacity_bytes=capacity, buffering="buffet"),
        Fanout("F", (2, 1)), Memory("R", ROLES[:2], AccessEnergy(0.1, 0.3, 0.1, 0.1), capacity_bytes=3)))
    operator = matmul("m", m=2, n=2, k=3)
    least = least_of_all(operator, machine, "imperfect", 20_000)
    for objective in ("edp", "energy"):
        space, score, _ = space_of(operator, machine, objective, True)
        assert checked_claim(space, least[objective], score).holds
        assert checked_claim(space, least[objective] * 1.0001, score).holds is False


def tight(around, dram, local):
    """Return a machine whose last two memories have room for 3 and 2 rows of inputs and outputs, and what is around."""
    return Accelerator("tight", (
        Memory("D", ROLES, AccessEnergy(*dram), always=True), around,
        Memory("L", ROLES, AccessEnergy(*local), partitions_bytes=(("inputs", 6.0), ("weights", 2.0), (
            "outputs", 3.0)), buffering="buffet", always=True),
        Memory("R", ROLES, AccessEnergy(0.0, 1.0, 0.0, 0.0), partitions_bytes=(("inputs", 2.0), ("weights", 1.0), (
            "outputs", 2.0)), buffering="buffet", always=True)))


def only_what_beats_it_is_refuted(machine, operator, best):
    """Assert that the energy of a mapping, which is the best, holds as the least, and a little more does not."""
    space, score, _ = space_of(operator, machine, "energy", True)
    assert checked_claim(space, score(best), score).holds
    assert checked_claim(space, score(best) * 1.0001, score).holds is False


def test_loops_at_a_memory_that_keeps_nothing_cut_tiles_otherwise_than_those_around_them():
    """Steps of 5 and 3 cut 7 into 3, 2 and 2, for which weights fill the last memory 4 times; 3 alone needs 5."""
    costly = Memory("X", ("weights",), AccessEnergy(500.0, 500.0, 500.0, 500.0), capacity_bytes=1)
    only_what_beats_it_is_refuted(
        tight(costly, (10.0, 0.0, 100.0, 0.0), (1.0, 1.0, 1.0, 0.0)), matmul("m", m=7, n=1, k=4), Mapping((
            LevelLoops("D", (Loop("M", 5),)), LevelLoops("X", (Loop("M", 3), Loop("K", 2)), ()),
            LevelLoops("L", (Loop("M", 2), Loop("K", 1))), LevelLoops("R", (Loop("M", 1),)))))


@pytest.mark.parametrize("flexible", [False, True])
def test_lanes_along_both_sides_that_divide_nothing_are_tried(flexible):
    """As above; as lanes they share what is read, and 4 lanes of 2 would fill one more."""
    only_what_beats_it_is_refuted(
        tight(Fanout("F", (2, 2), flexible=flexible, reduce=False), (10.0, 0.0, 100.0, 0.0), (1.0, 10.0, 1.0, 0.0)),
        matmul("m", m=7, n=1, k=4), Mapping((
            LevelLoops("D", (Loop("K", 2),)), LevelLoops("F", (Loop("M", 5, "X"), Loop("M", 3, "Y"))),
            LevelLoops("L", (Loop("M", 2), Loop("K", 1))), LevelLoops("R", (Loop("M", 1),)))))


@pytest.mark.parametrize("order", ["KM", "MK"])
def test_every_order_of_loops_is_tried(order):
    """What is dear to move is to stay: weights, or outputs."""
    dear = AccessEnergy(*((0.0, 9.0, 1.0, 0.0) if order == "KM" else (0.0, 1.0, 0.0, 9.0)))
    only_what_beats_it_is_refuted(Accelerator("single", (
        Memory("D", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0), always=True), Memory("L", ROLES, dear, partitions_bytes=(
            ("inputs", 1.0), ("weights", 1.0), ("outputs", 1.0)), buffering="buffet", always=True))),
        matmul("m", m=5, n=1, k=2), Mapping((
            LevelLoops("D", tuple(Loop(name, 1) for name in order)), LevelLoops("L"))))


def test_orders_of_more_loops_than_can_be_tried_are_not_left_out():
    """Where a dimension is unused by two tensors, others that these do not use may stand inside or outside it."""
    names = "abcdefgh"
    operator = einsum("abcdefgh,a->abcdef", dict.fromkeys(names, 2))
    space = space_of(operator, Accelerator("one", (Memory("D", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0)),)), "edp")[0]
    assert len(orders(space, dict.fromkeys(names[:7], 2))) == 5040
    with pytest.raises(GivenUp, match="any order"):
        orders(space, dict.fromkeys(names, 2))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A proof of a layer whose sizes have few divisors, on a machine without a choice of what to keep."""
    place = tmp_path_factory.mktemp("proofs") / "run.json"
    energy = AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("small", (Memory("DRAM", ROLES, replace(energy, read_pj=60.0), always=True), Fanout(
        "PEs", (2, 2)), Memory("L1", ROLES, energy, capacity_bytes=24, buffering="buffet", always=True)))
    tw.map(matmul("odd", m=7, n=5, k=11), machine, budget="4s", store=False, certificate=place)
    return json.loads(place.read_text())


@pytest.mark.parametrize("fault", ["none", "bound", "mapping", "a figure that is not claimed"])
def test_certificates_of_imperfect_tiling_hold_as_they_are(certificate, fault, tmp_path):
    record, place = deepcopy(certificate), tmp_path / "run.json"
    layer = record["layers"][0]
    assert layer["search"]["score"] == pytest.approx(layer["bounds"]["score"])
    if fault == "bound":
        layer["bounds"]["score"] = layer["search"]["score"] = 1.001 * layer["search"]["score"]
    elif fault == "mapping":
        layer["mapping"]["levels"][0]["loops"] = layer["mapping"]["levels"][0]["loops"][:-1]
    elif fault != "none":
        layer["cost"]["ramp_cycles"] += 1
    place.write_text(json.dumps(record))
    found = tw.verify(place)[0]
    assert found.holds is (fault not in {"bound", "mapping"})
    assert fault != "none" or "the optimum: holds (1 kept sets, " in str(found)


def test_mappings_that_are_scored_at_once_score_what_each_does_by_itself():
    operator, machine = matmul("m", m=500, n=768, k=2048), tw.load_accelerator("edge-s2")
    space, _, scorer = space_of(operator, machine, "latency+2*energy", True)
    rules = LayerRules(space, scorer)
    whole, rng = MapSpace(operator, machine, "imperfect"), np.random.default_rng(7)
    drawn = MappingBatch.joined([whole.draw(rng, 20), whole.fitting(rng, 100)])
    mappings = [drawn.mapping(index, operator.sizes) for index in range(len(drawn))]
    scores = rules.some(mappings)
    assert scores == pytest.approx([rules.one(mapping) for mapping in mappings], rel=1e-9)
    assert 0 < np.isinf(scores).sum() < len(scores)


def test_lanes_lie_in_every_way_that_fits_and_in_no_other():
    operator = matmul("m", m=6, n=4, k=3)
    for flexible in (False, True):
        machine = Accelerator("laid", (Memory("D", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0)), Fanout(
            "F", (4, 4), flexible=flexible), Memory("L", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0))))
        proof = RaggedProof(RaggedSpace(space_of(operator, machine, "edp", True)[0], full_keeps(
            Mapping((LevelLoops("D"), LevelLoops("F"), LevelLoops("L"))), operator, machine)), 1.0)
        chains, expected = [(6, 2, True), (4, 2, flexible), (3, 2, True)], set()
        ways = [{step for step in range(inside, outside + 1) if parted or step % inside == 0 or step == outside}
                for outside, inside, parted in chains]
        for steps in product(*ways):
            across = np.prod([-(-outside // step) for step, (outside, _, _) in zip(steps, chains, strict=True)])
            down = np.prod([-(-step // inside) for step, (_, inside, _) in zip(steps, chains, strict=True)])
            if across * down <= 16 and (flexible or (across <= 4 and down <= 4)):
                expected.add(tuple((*(((step, "X"),) if step < outside else ()), *(((inside, "Y"),) if inside < step
                                                                                   else ()))
                                   for step, (outside, inside, _) in zip(steps, chains, strict=True)))
        found = list(proof._laid(0, chains))
        assert set(found) == expected and len(found) == len(expected) > 1


def test_chains_are_written_once_for_what_runs_innermost_and_whether_their_sides_divide():
    operator, machine = matmul("m", m=2, n=2, k=2), tw.load_accelerator("edge-s2")
    space = RaggedSpace(space_of(operator, machine, "edp", True)[0], full_keeps(
        Mapping(tuple(LevelLoops(level.name) for level in machine.levels)), operator, machine))
    proof, own = RaggedProof(space, 1.0), np.ones((1, 6, 1), dtype=np.int64)
    for parted, kinds, new in ((False, [0, -1], True), (True, [0, -1], True), (False, [-1, 0], True),
                               (True, [0, -1], False), (False, [0, -1], False)):
        chain = LeftChains(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), own, np.array([parted]))
        assert proof._new([chain], np.array([0]), kinds) is new


@pytest.mark.parametrize("kind", [-1, 0, 1, 2])
def test_mappings_of_a_region_run_innermost_what_it_says(kind):
    operator, energy = matmul("m", m=4, n=4, k=4), AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("two", (Memory("D", ROLES, energy), Memory("L", ROLES, energy)))
    space = RaggedSpace(space_of(operator, machine, "edp", True)[0], {"D": ("I", "W", "O"), "L": ("I", "W", "O")})
    proof = RaggedProof(space, 1.0)
    names = [group[0] for group in space.space.groups]
    for first in (2, 4):
        chains = [LeftChains(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 0)), np.array([[[4], [first], [1]]]), np.array(
            [False])) for _ in space.groups]
        found = [[loop.dimension for loop in mapping.levels[0].loops]
                 for mapping in proof._mappings(chains, np.zeros(3, dtype=np.int64), [kind])]
        innermost = [space.kind(names.index(own[-1])) if own else -1 for own in found]
        assert len(found) == (2 if first == 2 and kind >= 0 else first == 4 and kind < 0) and set(innermost) <= {kind}


@pytest.mark.parametrize("objective", ["edp", "latency", "latency+2*energy"])
def test_slopes_of_scores_bound_them(objective):
    operator, machine = convolution("x", in_channels=5, out_channels=3, in_size=11, kernel=3), tw.load_accelerator(
        "simba-like")
    space = RaggedSpace(space_of(operator, machine, objective, True)[0], full_keeps(
        Mapping(tuple(LevelLoops(level.name) for level in machine.levels)), operator, machine))
    bounds, rng, n = RegionBounds(space), np.random.default_rng(8), space.terms
    sides = np.log([most for most, _ in bounds.whole().sides.values()])

    def score(y):
        terms, rooms = np.exp(y[:n]), [sum(share * np.exp(y[space.number["room", q, t]]) for t, share in shares)
                                       for q, (_, shares) in enumerate(space.rooms)]
        over = np.concatenate([np.log([room for room in rooms if room]), y[len(y) - len(sides):] - sides])
        value = sum(weight * (terms @ space.cycles.T).max() ** a * (terms @ space.energy) ** b
                    for weight, a, b in space.space.weights)
        return np.log(value) + STEEPEST * np.maximum(over, 0.0).sum()

    for _ in range(200):
        y = space.always + rng.uniform(0.0, 4.0, len(space.always))
        value, slope = PricedScore(bounds, y, 4096.0, sides).tangent
        for step in (1e-6, 1e-2, 1.0):
            other = y + step * rng.normal(size=len(y))
            assert value + slope @ (other - y) <= score(other) + 1e-9
        assert value >= score(y) - 0.01


def test_what_comes_before_too_much_is_scored():
    def mappings():
        yield from range(3)
        raise GivenUp("too much")

    some = _together(mappings())
    assert next(some) == [0, 1, 2]
    with pytest.raises(GivenUp):
        next(some)

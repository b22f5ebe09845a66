"""What memories keep is searched: as good as enumeration, better than keeping all, and the same every time."""

import pickle
import sys
import threading
from dataclasses import replace
from itertools import pairwise
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.cost import DenseModel, HardwareBatch, KeptBounds, kept_bounds, kept_least, layer_bounds
from tilewright.cost.bounds.rows import MachineRows
from tilewright.cost.bounds.traffic import TensorTraffic, port_sums, ports_of
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.jobs import finished
from tilewright.mapping import Constraints, KeptSets, MapSpace, is_legal
from tilewright.search import MAPPERS, Budget, Objective, Start, race, search, search_network, search_spaces
from tilewright.search.bounding import KeptBounding
from tilewright.search.objective import BREAKS_CONSTRAINT
from tilewright.search.race import racing
from tilewright.search.records import Improvement
from tilewright.search.run import FEWEST, Request, Watch
from tilewright.workload import ROLES, convolution, matmul

LAYER = convolution("c", in_channels=64, out_channels=64, kernel=3, in_size=14, padding=1)
BITS = (("inputs", 8), ("weights", 8), ("outputs", 8))


def energies(rng):
    return AccessEnergy(*(float(x) for x in rng.choice([0.25, 0.5, 1.0, 2.0, 6.0], size=4)))


def small_case(seed):
    """Return a union of small spaces: few words, one or two inner memories, a small array."""
    rng = np.random.default_rng([7, seed])
    inner = [Memory(f"Mem{at}", ROLES if rng.random() < 0.5 else ("inputs", "outputs"), energies(rng),
                    capacity_bytes=int(rng.choice([4, 8, 16, 64])), bandwidth=Bandwidth(read=float(rng.choice([1, 4]))),
                    buffering=("single", "double", "buffet")[rng.integers(3)]) for at in range(rng.integers(1, 3))]
    levels = [Memory("DRAM", ROLES, AccessEnergy(20.0, 20.0, 20.0, 20.0), bandwidth=Bandwidth(shared=2.0)), *inner]
    levels.insert(int(rng.integers(1, len(levels) + 1)), Fanout("PEs", (2, 1), multicast=bool(rng.random() < 0.5)))
    machine = Accelerator("small", tuple(levels), Compute("MAC", 0.5), word_bits=BITS)
    operator = matmul("m", m=int(rng.integers(1, 5)), n=int(rng.integers(1, 4)), k=2) if rng.random() < 0.7 else (
        convolution("c", in_channels=1, out_channels=2, kernel=(2,), out_size=(int(rng.integers(2, 4)),)))
    return KeptSets(MapSpace(operator, machine, "perfect"))


def least(kept, objective):
    """Return the best legal score of all members, each scored by its own model."""
    found = np.inf
    for member in kept:
        model = DenseModel(member.operator, member.accelerator, member.layout)
        for batch in member.enumerate(distinct=True):
            costs = model.score(batch)
            value = costs.energy_pj if objective == "energy" else costs.energy_pj * costs.latency_cycles
            found = min(found, float(value[costs.legal].min(initial=np.inf)))
    return found


def test_members_that_cannot_meet_a_limit_come_last():
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    free = KeptBounding(kept, Objective.parse("energy")).scores
    limit = 1.1 * next(iter(free.values()))
    limited = KeptBounding(kept, Objective.parse("latency", [f"energy<={limit!r}"]))
    able = [score < BREAKS_CONSTRAINT for score in limited.scores.values()]
    assert able == sorted(able, reverse=True) and 0 < sum(able) < len(able) == len(kept)
    found = search_spaces(kept, objective="latency", constraints=[f"energy<={limit!r}"], budget=1000)
    assert found.feasible and not found.impossible and found.cost.energy_pj <= limit
    most = 0.99 * min(free.values())
    without = search_spaces(kept, objective="latency", constraints=[f"energy<={most!r}"], budget=300)
    assert without.impossible and without.bound is None


def check_against_enumeration(seed):
    kept = small_case(seed)
    objective = ("edp", "energy")[seed % 2]
    best = least(kept, objective)
    found = search_spaces(kept, objective=objective, budget=kept.size().mappings)
    assert found.complete and found.score == pytest.approx(best, rel=1e-12)
    assert found.score == found.bound == found.proven and found.space_size == kept.size()
    assert KeptBounds(kept).least(Objective_of[objective]) <= best * (1 + 1e-12)
    raced = search_spaces(kept, objective=objective, budget=max(300, kept.space.size().mappings // 2), seed=seed)
    assert raced.score >= best * (1 - 1e-12) and raced.bound <= best * (1 + 1e-9)


Objective_of = {"edp": lambda cycles, energy: cycles * energy, "energy": lambda _, energy: energy}


# In the last one every member must be enumerated, and the budget just covers them.
@pytest.mark.parametrize("seed", [*range(3), 482])
def test_the_best_of_small_unions_is_that_of_enumeration(seed):
    check_against_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 506))
def test_the_best_of_many_small_unions_is_that_of_enumeration(seed):
    check_against_enumeration(seed)


@pytest.mark.parametrize("seed", [5, 20, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (22, 36))])
def test_the_best_of_all_kept_sets_is_proved_and_what_is_proved_on_the_way_holds(seed):
    """Those whose bounds are below the best are all gone through, held against it."""
    kept, objective = small_case(seed), ("edp", "energy")[seed % 2]
    best = least(kept, objective)

    def prove(budget, mapper="exact", **options):
        return search_spaces(kept, objective=objective, mapper=mapper, budget=budget, options=options)

    # One mapping more for each, and all would be enumerated.
    most = len(kept) * (kept.space.size().mappings - 1)
    whole = prove(most, start=1, nodes=10)
    assert whole.complete and whole.score == whole.proven == pytest.approx(best, rel=1e-12)
    for samples in {1, 2, whole.samples // 2, whole.samples - 2}:
        part = prove(samples, start=1, nodes=10)
        assert part.proven <= best * (1 + 1e-12) and (part.score == whole.score or not part.complete)
    bred = prove(most, "auto", prove=1, enumerate=False)
    assert bred.proven <= best * (1 + 1e-12) and (bred.complete or seed == 36)
    assert prove(most, start=1, nodes=10).mapping == whole.mapping


def test_what_memories_keep_is_proved_on_a_preset_and_taken_up_where_it_was_left(tmp_path):
    """The optimum keeps less than memories may, and more than one set has bounds below it."""
    kept, options = KeptSets(MapSpace(matmul("m", m=8, n=16, k=16), preset("edge-s2"), "perfect")), {"start": 400}

    def prove(budget, **watched):
        return search_spaces(kept, mapper="exact", budget=budget, options=options, watch=Watch(**watched))

    whole = prove(10**6)
    assert whole.complete and whole.gap == 0 and kept.number_of(whole.mapping) > 0
    assert whole.bounding.score < whole.score
    file = tmp_path / "0000.npz"
    part = prove(int(whole.samples * 0.3), checkpoint=file)
    assert not part.complete and part.proven <= whole.score
    again = prove(10**6, checkpoint=file)
    assert again.complete and again.score == whole.score

    class Killed(Exception):
        """Ends a search as a kill does: nothing more is kept."""

    class Killing:
        def update(self, progress):
            # Sets that are proved are past their first 400 mappings.
            if progress.samples > 0.8 * whole.samples:
                raise Killed

    ticks, killed = iter(range(10**9)), tmp_path / "1111.npz"
    with pytest.raises(Killed):
        prove(10**6, checkpoint=killed, checkpoint_seconds=2.0, progress=Killing(), clock=lambda: float(next(ticks)))
    held = [dict(np.load(file)) for file in tmp_path.glob("1111-*.npz")]
    assert any(len(state["mapper.at"]) and not state["mapper.ended"] for state in held)
    late = prove(10**6, checkpoint=killed)
    assert (late.mapping, late.score, late.samples) == (whole.mapping, whole.score, whole.samples) and late.complete
    threaded = prove(10**6, threads=2)
    assert (threaded.mapping, threaded.samples) == (whole.mapping, whole.samples)


def test_what_may_pass_follows_from_machine_and_constraints():
    machine, space = preset("edge-s2"), MapSpace(LAYER, preset("edge-s2"))
    outer, inner = machine.memories[1:]
    kept = KeptSets(space)
    assert kept.open == tuple((memory.name, t.name) for memory in (outer, inner) for t in LAYER.tensors)
    assert len(kept) == 64 and kept[0] is space and kept.size().mappings == 64 * space.size().mappings
    assert len({member.layout for member in kept}) == 64
    assert kept[9].constraints.keeps == {outer.name: ("I", "O") if LAYER.tensors[0].name == "W" else ("O", "W"),
                                         inner.name: kept[8].constraints.keeps[inner.name]}
    fixed = replace(machine, levels=tuple(replace(level, always=True) if level is inner else level
                                          for level in machine.levels))
    assert KeptSets(MapSpace(LAYER, fixed)).open == kept.open[:3]
    held = KeptSets(MapSpace(LAYER, machine, constraints=Constraints(keeps={outer.name: ("I",)})))
    assert held.open == kept.open[3:]
    further = Constraints(keeps={machine.memories[0].name: ("I", "W")})
    assert KeptSets(MapSpace(LAYER, machine, constraints=further)).open == tuple(
        pair for pair in kept.open if pair != (outer.name, "O"))
    assert len(KeptSets(MapSpace(LAYER, preset("flexion")))) == 1


def test_bounds_of_the_union_are_the_least_of_its_members():
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    bounds, every = KeptBounds(kept), [layer_bounds(LAYER, kept.space.accelerator, dict(member.constraints.keeps))
                                       for member in kept]
    scores = bounds.scores(lambda cycles, energy: cycles * energy, 3)
    assert list(scores.values()) == sorted(scores.values()) and set(scores) == set(range(64))
    products = [found.latency_cycles * found.energy_pj for found in every]
    assert all(scores[number] <= product * (1 + 1e-12) for number, product in enumerate(products))
    assert [scores[n] for n in list(scores)[:3]] == pytest.approx(sorted(products)[:3], rel=1e-12)
    assert bounds.union.energy_pj == pytest.approx(min(found.energy_pj for found in every), rel=1e-12)
    assert bounds.union.latency_cycles <= min(found.latency_cycles for found in every)


@pytest.mark.parametrize("seed", range(6))
def test_what_tensors_take_alone_adds_up_to_the_bounds_of_sets_where_all_have_room(seed):
    """Elsewhere it is no more: tiles that do not fit come again."""
    kept, rng = small_case(seed), np.random.default_rng(seed)
    rows = KeptBounds(kept)._rows
    own = [rows.bounds(number) for number in rows.sums.numbers.tolist()]
    assert sorted(rows.sums.numbers.tolist()) == list(range(len(kept)))
    assert (rows.sums.energy_pj[:, 0] <= np.array([one.energy_pj[0] for one in own]) * (1 + 1e-12)).all()
    assert (rows.sums.cycles[:, 0] <= [one.latency_cycles[0] for one in own]).all()
    inner = [Memory(f"M{at}", ROLES, energies(rng), bandwidth=Bandwidth(read=0.5, write=0.25)) for at in range(2)]
    machine = Accelerator("roomy", (kept.space.accelerator.memories[0], inner[0],
                                    Fanout("PEs", (2, 2), multicast=False, reduce=False), inner[1]), word_bits=BITS)
    roomy = KeptBounds(KeptSets(MapSpace(kept.space.operator, machine)))._rows
    own = [roomy.bounds(number) for number in roomy.sums.numbers.tolist()]
    assert roomy.sums.energy_pj[:, 0] == pytest.approx([one.energy_pj[0] for one in own], rel=1e-8)
    assert roomy.sums.cycles[:, 0].tolist() == [one.latency_cycles[0] for one in own]


@pytest.mark.parametrize("seed", [0, 2, 4, 11])
def test_chains_that_are_weighed_together_weigh_what_each_does(seed):
    rng = np.random.default_rng(seed)
    levels = [Memory(f"M{at}", ROLES, energies(rng), bandwidth=Bandwidth(shared=1.0)) for at in range(4)]
    for at in (3, 2, 1):
        networks = {name: bool(rng.random() < 0.5) for name in ("multicast", "reduce")}
        levels.insert(at, Fanout(f"F{at}", (int(rng.integers(1, 3)), 1), network_energy_pj_per_word=0.5, **networks))
    rows = MachineRows.one(Accelerator("deep", tuple(levels), word_bits=BITS), None)
    operator = matmul("m", m=4, n=3, k=2) if seed else LAYER
    memories, sums = tuple(f"M{at}" for at in range(4)), port_sums(ports_of(rows), True)
    kept = np.array([(True, *(bool(number >> bit & 1) for bit in range(3))) for number in range(8)])
    for tensor in operator.tensors:
        together = TensorTraffic(tensor, operator, rows, memories, kept)
        together.settled(sums)
        for place in range(8):
            one = together.take(place)
            alone = TensorTraffic(tensor, operator, rows, one.chain, one.kept)
            for wanted in (sums[:2], sums):
                for known, found in zip(one.settled(wanted), alone.settled(wanted), strict=True):
                    assert np.array_equal(known, found)


def test_sums_that_another_thread_adds_meanwhile_end_no_look_at_those_that_are_known():
    class Adding:
        """What lets another thread come in between where it is compared."""

        def __hash__(self):
            return 0

        def __eq__(self, other):
            flow._known[f"other {len(flow._known)}",] = ()
            return self is other

    rows = MachineRows.one(preset("eyeriss"), None)
    flow = TensorTraffic(LAYER.tensors[0], LAYER, rows, ("DRAM",), np.ones((1, 1), dtype=np.bool_))
    flow._known[Adding(),] = ()
    weights, right = flow.settled(port_sums(ports_of(rows), True))
    assert len(flow._known) == 3 and len(weights) == len(right) == 1


def test_letting_tensors_pass_beats_keeping_all_at_equal_samples():
    machine = preset("edge-s2")
    plain = search(LAYER, machine, budget=1500)
    found = search_spaces(KeptSets(MapSpace(LAYER, machine)), budget=1500, seed=0)
    assert found.samples == plain.samples == 1500
    assert found.score < 0.85 * plain.score and found.bound <= found.score
    assert is_legal(found.mapping, LAYER, machine)
    assert any(entry.keeps is not None and len(entry.keeps) < 3 for entry in found.mapping.levels[1:])
    steps = [(step.samples, step.score) for step in found.history]
    assert steps == sorted(steps, key=lambda step: (step[0], -step[1])) and steps[-1][1] == found.score


@pytest.mark.parametrize("mapper", ["auto", "gamma", "random"])
def test_the_same_seed_finds_the_same(mapper):
    kept = KeptSets(MapSpace(LAYER, preset("eyeriss")))
    one, two = (search_spaces(kept, mapper=mapper, budget=900, seed=3, watch=Watch(threads=threads))
                for threads in (1, 2))
    assert (one.score, one.mapping, one.samples) == (two.score, two.mapping, two.samples)
    assert mapper in MAPPERS


def test_where_time_is_over_only_one_member_has_a_batch():
    """Three race; the others would take as long again once the time of all layers is over."""
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    request = Request(kept.space, Objective.parse("edp"), "random", Budget(None, 1.0), 0, {})
    found = finished(racing(kept, request, Watch(left=lambda: 0.0)))
    assert found.samples == FEWEST and found.stopped == "seconds"


@pytest.mark.parametrize(("budget", "most"), [
    (Budget(None, 10.0), 3), (Budget(None, 0.16), 3), (Budget(None, 0.14), 2), (Budget(None, 0.001), 2),
    (Budget(199), 1), (Budget(299), 2), (Budget(300), 3), (Budget(300, 0.01), 2), (Budget(199, 10.0), 1)])
def test_as_many_kept_sets_race_as_the_budget_pays_for(budget, most):
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    entrants = race._Rules.of_kept(kept, Request(kept.space, Objective.parse("edp"), "random", budget, 0, {})).entrants
    assert len(entrants) == most and 0 in entrants


@pytest.mark.parametrize(("budget", "legs"), [
    (Budget(None, 0.05), (0.5,)), (Budget(None, 0.2), (0.25, 0.25)), (Budget(240), (0.25, 0.25))])
def test_two_that_race_for_time_have_a_quarter_each_before_the_better_gets_the_rest(budget, legs):
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    request = Request(kept.space, Objective.parse("edp"), "random", budget, 0, {})
    assert race._Rules.of_kept(kept, request).legs == legs


def test_results_of_other_processes_bring_their_bounds_along_without_what_these_are_made_of():
    """That would be the tables of all layers that the process has bounded: half a megabyte a result."""
    found = search_spaces(KeptSets(MapSpace(LAYER, preset("eyeriss"))), budget=200)
    there = pickle.loads(pickle.dumps(found)).bounding
    assert (there.score, there.bounds.union) == (found.bounding.score, found.bounding.bounds.union)
    assert not {"_rows"} & {*vars(there), *vars(there.bounds)} and "_rows" in vars(found.bounding.bounds)
    assert there.scores == found.bounding.scores and there.sure == found.bounding.sure == 2


def test_a_race_is_taken_up_where_it_was_left(tmp_path):
    kept, goal = KeptSets(MapSpace(LAYER, preset("edge-s2"))), Objective.parse("edp")
    request = Request(kept.space, goal, "auto", Budget(1200), 5, {})
    whole = finished(racing(kept, request, Watch()))
    for steps in (2, 4, 5):
        file = tmp_path / f"{steps}" / "0000.npz"
        watch = Watch(checkpoint=file, checkpoint_seconds=0.0)
        cut = racing(kept, request, watch)
        for _ in range(steps):
            next(cut)
        watch.stop.set()
        assert finished(cut).stopped == "interrupted"
        again = finished(racing(kept, request, Watch(checkpoint=file)))
        assert (again.score, again.mapping, again.samples) == (whole.score, whole.mapping, whole.samples)
        assert [step.score for step in again.history] == [step.score for step in whole.history]


def test_a_search_begins_in_the_kept_set_of_the_mapping_it_is_given():
    kept = KeptSets(MapSpace(LAYER, preset("edge-s2")))
    found = search_spaces(kept, budget=1200)
    number = kept.number_of(found.mapping)
    assert number > 0 and kept[number].layout.keeps[1] == found.mapping.levels[1].keeps
    again = search_spaces(kept, budget=20, start=Start.of(found.mapping, LAYER))
    assert again.score <= found.score and again.samples == 20


def test_of_very_many_kept_sets_any_may_be_searched():
    """Six memories leave 32,768 sets: those of the least sums are listed, and that in which all is kept is not."""
    machine = Accelerator("chain", tuple(
        Memory(f"M{at}", ROLES, AccessEnergy(*[10.0 / (at + 1)] * 4), None if at == 0 else 1 << (14 - at))
        for at in range(6)), Compute("MAC", 0.1), word_bits=BITS)
    operator = matmul("m", m=8, n=8, k=8)
    kept = KeptSets(MapSpace(operator, machine))
    listed = KeptBounds(kept).scores(lambda cycles, energy: energy, 3)
    assert len(kept) == 1 << 15 and 0 not in listed
    assert search_spaces(kept, budget=60).proven is None  # nothing is told of those that are not listed
    found = search_spaces(kept, budget=60, mapper="gamma")
    assert is_legal(found.mapping, operator, machine) and found.bound <= found.score
    number = next(number for number in range(1, len(kept)) if number not in listed)
    mapping = kept[number].sample(np.random.default_rng(0), 1).mapping(0, operator.sizes)
    again = search_spaces(kept, budget=20, mapper="gamma", start=Start.of(mapping, operator))
    assert again.samples == 20


def test_tpu_v4i_needs_no_telling():
    """AccelForge's TPUv4i example (Accelergy-Project/accelforge, MIT): its own mapper finds 405.5 uJ."""
    def memory(name, keeps, energy, capacity=None, **rates):
        return Memory(name, keeps, AccessEnergy(*energy), capacity, bandwidth=Bandwidth(**rates), buffering="buffet")

    machine = Accelerator("tpuv4i", (
        memory("MainMemory", ROLES, [56.24] * 4, shared=584.7619047619047),
        memory("GlobalBuffer", ROLES, (15.04, 18.88, 18.88, 15.04), 1 << 27,
               read=1950.4761904761904, write=975.2380952380952),
        Fanout("Z", (4, 1), multicast=False, reduce=False),
        memory("LocalBuffer", ("inputs", "outputs"), (1.992, 2.344, 2.344, 1.992), 1 << 22),
        Fanout("PEs", (128, 128)),
        memory("Register", ("weights",), [0.0] * 4, 1)), Compute("MAC", 0.084), frequency_mhz=1050.0, word_bits=BITS)
    operator = matmul("m", m=1024, n=1024, k=1024)
    network = search_network([operator], machine, objective="energy", budget=3000,
                             space=lambda operator: KeptSets(MapSpace(operator, machine)))
    assert network.layers[0].result.score <= 405.5e6 < search(operator, machine, objective="energy", budget=3000).score


def test_a_race_ends_when_it_is_told_to():
    stop = threading.Event()
    stop.set()
    found = search_spaces(KeptSets(MapSpace(LAYER, preset("edge-s2"))), budget=5000, watch=Watch(stop=stop))
    assert found.stopped == "interrupted" and found.samples == 0


@pytest.mark.parametrize("score", [lambda _, energy: energy, lambda cycles, energy: cycles * energy])
def test_machines_are_bounded_together_as_each_by_itself(score):
    machine = preset("edge-s2")
    sizes = {("SG", "capacity_bytes"): [65536.0, 131072.0, 1048576.0], ("SL", "capacity_bytes"): [128.0, 512.0, 1024.0],
             ("PEs", "x"): [8.0, 16.0, 1.0], ("PEs", "y"): [8.0, 16.0, 1.0]}
    hardware = HardwareBatch({key: np.array(column) for key, column in sizes.items()})
    found = kept_least(KeptSets(MapSpace(LAYER, machine)), hardware, score)
    alone = [KeptBounds(KeptSets(MapSpace(LAYER, hardware.machine(row, machine)))).least(score) for row in range(3)]
    assert found.tolist() == pytest.approx(alone, rel=1e-12) and len(set(alone)) == 3


def test_a_race_goes_on_with_the_better_half_of_those_that_can_still_win():
    """The second score is the better one of the last two, but its bound is not below the best."""
    alive = [SimpleNamespace(best=best, limit=limit) for best, limit in ((3.0, 0.9), (1.0, 0.5), (2.0, 1.0))]
    assert race._Race.better(None, alive) == [alive[1], alive[0]]
    assert race._Race.better(None, alive[:2]) == [alive[1]]


def test_an_entrant_is_as_good_as_what_it_found_within_what_it_was_granted():
    history = [Improvement(50, 0.1, 3.0), Improvement(400, 0.2, 1.0)]
    run = SimpleNamespace(samples=500, best=1.0, history=history)
    assert race._Entrant(run, 0.0, 0, samples=100).best == 3.0
    assert race._Entrant(run, 0.0, 0, samples=500).best == 1.0


@pytest.mark.parametrize(("covers", "floor"), [(True, 2.0), (False, 1.5)])
def test_a_member_that_ended_is_known_to_its_best_only_where_its_mapper_covers_its_space(covers, floor):
    run = SimpleNamespace(mapper=SimpleNamespace(covers_space=covers), best=2.0, proven=1.5, stopped="exhausted")
    entrant = race._Entrant(run, 1.0, 0)
    assert race._Race._floor(SimpleNamespace(entered={0: entrant}), 0) == floor


def test_improvements_of_a_race_count_the_samples_of_all_that_race():
    found = search_spaces(KeptSets(MapSpace(LAYER, preset("edge-s2"))), budget=1200, mapper="random")
    counts = [step.samples for step in found.history]
    assert counts == sorted(counts) and any(step.samples > 600 for step in found.history)


@pytest.mark.parametrize("score", [lambda cycles, _: cycles, lambda _, energy: energy,
                                   lambda cycles, energy: cycles * energy])
def test_where_few_sets_are_listed_the_bound_holds_for_the_others_too(monkeypatch, score):
    cases = [small_case(seed) for seed in range(8)]
    least = [KeptBounds(kept).least(score) for kept in cases]
    monkeypatch.setattr(sys.modules[KeptBounds.__module__], "MOST_LISTED", 2)
    few = [KeptBounds(kept).least(score) for kept in cases]
    assert all(0 < one <= other * (1 + 1e-12) for one, other in zip(few, least, strict=True))
    assert any(one < other for one, other in zip(few, least, strict=True))


def test_the_bounds_of_a_union_are_those_of_its_best_member_in_edp_and_what_comes_again_is_told():
    union = kept_bounds(LAYER, preset("accel-a"))
    edp = KeptBounds(KeptSets(MapSpace(LAYER, preset("accel-a")))).least(lambda cycles, energy: cycles * energy)
    assert union.edp == edp > 1.1 * union.energy_pj * union.latency_cycles
    assert union.energy_pj == pytest.approx(union.refetch_pj + sum(union.energy_by_component_pj.values()))
    assert union.refetch_pj > 0


def test_leakage_counts_in_what_sums_over_tensors_bound():
    machine = preset("edge-s2")
    leaky = replace(machine, compute=replace(machine.compute, leakage_mw=3.0))
    still, more = (KeptBounds(KeptSets(MapSpace(LAYER, one)))._rows.sums for one in (machine, leaky))
    by_number = [sums.numbers.argsort() for sums in (still, more)]
    leaked = leaky.leakage_mw / leaky.frequency_mhz * 1000 * more.cycles[by_number[1], 0]
    added = more.energy_pj[by_number[1], 0] - still.energy_pj[by_number[0], 0]
    assert added.tolist() == pytest.approx(leaked.tolist())


def test_the_best_of_kept_sets_breeds_between_others_but_not_where_a_look_at_a_bound_closes_them(monkeypatch):
    turns, give = [], race._Race.give

    def told(self, entrant, ahead=inf, most=inf):
        before = entrant.run.samples
        yield from give(self, entrant, ahead, most)
        turns.append((entrant, entrant.run.samples - before, entrant.ended, most))

    monkeypatch.setattr(race._Race, "give", told)
    layer = convolution("c", in_channels=3, out_channels=32, kernel=(3, 3), in_size=(28, 28))
    search_spaces(KeptSets(MapSpace(layer, preset("simba-like"), "imperfect")), budget=8_000, options={"prove": 200})
    after = [(then[3] < inf and then[0] is not now[0], now[1] == 0 and now[2])
             for now, then in pairwise(turns)]
    assert (True, False) in after
    assert (False, True) in after
    assert (True, True) not in after

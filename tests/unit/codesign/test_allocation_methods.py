"""Every method of allocation: counted alike, repeatable, resumable, never below the optimum; ConfuciuX's parts."""

import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.codesign.allocation import METHODS, AllocationProblem, allocate, observations
from tilewright.codesign.allocation.agents import rewards
from tilewright.codesign.allocation.methods import FineTuning, FrontTuning, Trial
from tilewright.hardware import preset
from tilewright.jobs import stopped_by

ASK_TELL = tuple(name for name in METHODS if name not in ("a2c", "ppo", "trpo", "ddpg", "sac", "td3"))
EVERY = pytest.mark.parametrize("method", [
    pytest.param(name, marks=pytest.mark.slow) if name in ("reinforce-mlp", "confuciux-published") else name
    for name in ASK_TELL])
"""Those are `reinforce-published` with another network, and before a second stage."""


def problem(within="area=iot", objective="latency", styles=("nvdla",), **given):
    return AllocationProblem.of(tw.load_network("mobilenet-v2"), preset("confuciux"), within, objective=objective,
                                convolutions=True, styles=styles, **given)


@pytest.fixture(scope="module")
def iot():
    return problem()


@pytest.fixture(scope="module")
def mix():
    return problem("power=cloud", "energy", ("nvdla", "eyeriss", "shidiannao"))


@EVERY
def test_epochs_are_counted_and_results_repeat(mix, method):
    one, other = (allocate(mix, method, epochs=157, seed=3) for _ in range(2))
    assert len(one.curve) == (1 if method == "exact" else 157)
    assert (one.curve == other.curve).all() and one.value == other.value
    assert (np.diff(one.curve) <= 0).all() and one.curve[-1] == one.value
    if one.cells is not None:
        value, over = mix.score(one.cells[None])
        assert (value[0], over[0]) == (one.value, 0)
    assert one.gap >= -1e-12


@EVERY
def test_what_is_taken_up_ends_as_what_was_not(iot, method, tmp_path):
    whole, stop = allocate(iot, method, epochs=120, seed=1), threading.Event()

    def end(standing):
        if standing.samples >= 60:
            stop.set()

    with stopped_by(stop):
        part = allocate(iot, method, epochs=120, seed=1, told=end, folder=tmp_path)
    assert part.interrupted == (len(part.curve) < 120 and method != "exact") == (method != "exact")
    counted = []
    rest = allocate(iot, method, epochs=120, seed=1, folder=tmp_path, told=counted.append)
    assert not counted or counted[0].samples > len(part.curve)
    assert rest.value == whole.value and (rest.curve == whole.curve).all()
    assert np.array_equal(rest.closest, whole.closest)
    other = allocate(iot, method, epochs=120, seed=2)
    same = np.array_equal(other.closest, whole.closest)
    assert same == (method in ("exact", "grid"))


@pytest.fixture(scope="module")
def shared():
    return AllocationProblem.of(tw.load_network("ncf"), preset("confuciux"), "area=iot", deployment="sequential",
                                styles=("nvdla", "eyeriss"))


@EVERY
def test_layers_in_turn_have_one_pair_and_every_method_finds_some_within_the_budget(shared, method):
    found = allocate(shared, method, epochs=300, seed=1)
    assert found.cells is not None
    assert len({place[1:] for place in shared.places(found.cells)}) == 1
    assert found.gap >= -1e-12
    assert shared.score(found.cells[None]) == (pytest.approx(found.value), 0)


def test_a_grid_of_layers_in_turn_tries_pairs_before_styles(shared):
    scored = []
    trial = Trial(shared, 16)
    trial.score = scored.append
    METHODS.get("grid")(trial, {}).step()
    places = [shared.places(cells) for cells in scored[0]]
    assert len({each[0][1:] for each in places}) == 16  # all that there are, three levels apart


def test_the_optimum_is_proven_and_no_method_beats_it(iot):
    best = allocate(iot, "exact")
    assert best.gap == 0
    assert best.value == iot.score(best.cells[None])[0][0]


def test_the_agent_is_feasible_where_draws_are_not(iot):
    agent, drawn = (allocate(iot, method, epochs=500) for method in ("reinforce", "random"))
    assert np.isfinite(agent.value) and agent.gap < 2
    assert drawn.cells is None and not np.isfinite(drawn.curve).any() and np.isinf(drawn.gap)


def test_methods_choose_among_all_of_a_few_numbers_and_of_many_among_those_of_table_8_1():
    few = problem("unlimited", elements=(3, 8, 100))
    assert few.axes == (1, 3, 12)
    assert few.cells(np.array([[[0, 2, 5]] * 52])).tolist() == [[2 * 12 + 5] * 52]
    assert problem("unlimited", elements=tuple(range(1, 129))).axes == (1, 12, 12)


def test_a_policy_of_plain_layers_forgets_what_was_chosen_two_steps_before(iot):
    for method, forgets in (("reinforce", False), ("reinforce-mlp", True)):
        policy = METHODS.get(method)(Trial(iot, 1), {}).policy
        last, hidden = policy.hidden(np.zeros((1, 52, 3), dtype=np.int64)), None
        chosen = np.zeros((1, 52, 3), dtype=np.int64)
        chosen[0, 20] = (0, 11, 11)
        hidden = policy.hidden(chosen)
        assert (last[0, :21] == hidden[0, :21]).all() and (last[0, 21] != hidden[0, 21]).any()
        assert bool((last[0, 22:] == hidden[0, 22:]).all()) == forgets


def test_choices_are_drawn_as_often_as_the_policy_says(iot):
    import torch

    policy = METHODS.get("reinforce")(Trial(iot, 1), {}).policy
    with torch.no_grad():
        for name in ("out", "out_bias"):
            policy.weights[name].zero_()
        policy.weights["out_bias"][1:13] = torch.arange(12) * 0.2
        policy.weights["out_bias"][24] = -torch.inf
    drawn, values = policy.draw(1_000)
    assert values is None
    drawn = drawn.reshape(-1, 3)
    shares = np.bincount(drawn[:, 1], minlength=12) / len(drawn)
    wanted = np.exp(np.arange(12) * 0.2)
    assert shares == pytest.approx(wanted / wanted.sum(), abs=0.01)
    assert not drawn[:, 0].any() and drawn[:, 2].max() == 10


def test_a_trial_keeps_the_best_it_has_seen_and_not_the_last(iot):
    shape, trial = iot.table.stages.shape[1:], Trial(iot, 8)
    levels = [np.full((1, 52), np.ravel_multi_index((0, at, at), shape)) for at in range(min(shape[1:]))]
    over = [at for at, cells in enumerate(levels) if iot.score(cells)[1][0] > 0]
    less, more = over[0], over[-1]
    for at in (more, less, more):
        trial.score(levels[at])
    assert trial.loss == trial.score(levels[less])[0] < trial.score(levels[more])[0]
    assert (trial.closest == levels[less][0]).all() and not np.isfinite(trial.value)
    within = sorted((at for at in range(len(levels)) if at not in over), key=lambda at: iot.score(levels[at])[0][0])
    trial.score(levels[within[0]])
    trial.score(levels[within[-1]])
    assert iot.score(levels[within[-1]])[0][0] > trial.value == trial.loss == iot.score(levels[within[0]])[0][0]
    assert (trial.best == trial.closest).all() and (trial.best == levels[within[0]][0]).all()


def test_fine_tuning_moves_by_no_more_than_four_and_swaps_layers_of_one_parent(iot):
    trial = Trial(iot, 40)
    start = np.ravel_multi_index((0, 5, 6), iot.table.stages.shape[1:]) * np.ones((1, 52), dtype=np.int64)
    trial.score(start)
    tuner = FineTuning(trial, {})
    tuner.step()
    assert (np.abs(tuner.population - [0, 5, 6]) <= 4).all()
    assert tuner.losses.min() <= trial.curve[0]


@pytest.mark.parametrize(("within", "objective"), [("area=iot", "latency"), ("area=iot,power=cloud", "energy"),
                                                   ("unlimited", "edp")])
def test_tuning_along_fronts_tries_no_cell_that_another_beats_and_begins_no_worse(within, objective):
    of = problem(within, objective, elements=range(1, 129))
    start, trial = of.costs.sum(axis=0).argmin(axis=1), Trial(of, 41)
    trial.score(start[None])
    tuner = FrontTuning(trial, {})
    for layer, own in enumerate(tuner.fronts):
        every = np.concatenate([of.figures[:, layer], of.costs[:, layer]])
        beaten = [(every <= every[:, [cell]]).all(axis=0) & (every < every[:, [cell]]).any(axis=0) for cell in own]
        assert not np.any(beaten)
    begun = np.array([own[tuner._place(layer, start[layer])] for layer, own in enumerate(tuner.fronts)])
    (old, new), (_, over) = of.score(np.stack([start, begun]))
    assert new <= old and over == 0
    tuner.step()
    born = np.array([tuner._place(layer, begun[layer]) for layer in range(52)])
    assert (np.abs(tuner.population - born) <= 4).all()


def test_tuning_along_fronts_keeps_the_best_where_all_children_are_worse():
    of = problem(blind=True)
    trial, best = Trial(of, 21, seed=1), allocate(of)
    trial.score(best.cells[None])
    tuner = FrontTuning(trial, {})
    tuner.MOVED = 52
    tuner.step()
    assert tuner.losses[0] == best.value < tuner.losses[1]


def test_tuning_along_fronts_ends_nearer_to_the_optimum_than_among_all_cells():
    of, gaps = problem("fpga-cloud", elements=range(1, 129)), []
    for kind in (FineTuning, FrontTuning):
        trial = Trial(of, 12_000)
        trial.score(of.costs.sum(axis=0).argmin(axis=1)[None])
        tuner = kind(trial, {})
        while trial.left:
            tuner.step()
        gaps.append(trial.value / allocate(of).value - 1)
    assert gaps[1] < gaps[0] / 3


@pytest.mark.parametrize("kind", ["", "-published"])
def test_two_stages_end_below_the_first(kind):
    of = problem("area=cloud")
    found = allocate(of, f"confuciux{kind}", epochs=1080)
    first = allocate(of, f"reinforce{kind}", epochs=120)
    assert (found.curve[:120] == first.curve).all()  # a ninth
    assert found.curve[-1] < found.curve[119] < np.inf


@pytest.mark.parametrize(("within", "given"), [
    ("power=iotx", {}), ("area=iotx", {"styles": ("nvdla", "eyeriss")}), ("fpga-edge", {"elements": range(1, 129)}),
    ("elements=128", {"deployment": "sequential", "styles": ("nvdla", "eyeriss")}),
    ("unlimited", {"deployment": "sequential"}), ("unlimited", {})])
def test_an_agent_that_has_learnt_nothing_is_within_any_budget(within, given):
    tight = problem(within, **given)
    agent = METHODS.get("reinforce")(Trial(tight, 1), {})
    actions, values = agent.policy.draw(200, agent.open)
    cells = tight.cells(actions)
    assert (tight.score(cells)[1] == 0).all()
    reward, made, _ = rewards(tight, cells, np.inf)
    assert made.all() and (reward >= 0).all()  # nobody was punished
    for axis, part in enumerate(np.split(values, np.cumsum(tight.axes)[:-1], axis=2)):
        assert np.take_along_axis(part, actions[:, :, axis:axis + 1], axis=2).all()
    if within == "unlimited" and not given:
        assert values.all()


def test_only_choices_that_leave_no_room_are_closed(iot):
    agent = METHODS.get("reinforce")(Trial(iot, 1), {})
    drawn, _ = agent.policy.draw(3, agent.open)
    cells = iot.cells(drawn)
    costs, shape = iot.costs[0], iot.table.stages.shape[1:]
    for layer in range(52):
        open_ = np.broadcast_to(agent.open(layer, drawn[:, layer - 1] if layer else None), (3, *shape)).reshape(3, -1)
        before = costs[np.arange(layer), cells[:, :layer]].sum(axis=1)[:, None]
        after = costs[layer + 1:].min(axis=1).sum()
        assert (open_ == (before + costs[layer] + after <= iot.limits[0])).all()


def test_an_episode_is_measured_by_the_others_of_its_batch(iot):
    agent = METHODS.get("reinforce")(Trial(iot, 1), {})
    reward, made = np.tile(np.arange(1.0, 53), (4, 1)), np.ones((4, 52), dtype=np.bool_)
    assert not agent.returns(reward, made).any()  # how much a layer costs all of them says nothing
    reward[0, 30] += 7
    found = agent.returns(reward, made)
    assert found[:, 31:] == pytest.approx(0) and found[1:, :31] == pytest.approx(found[1, 0]) and found[1, 0] < 0
    assert found[0, :31] == pytest.approx(-3 * found[1, 0])
    assert (found**2).mean() == pytest.approx(1)
    made[1, 20:] = False
    assert not agent.returns(reward * made, made)[1, 20:].any()


def test_the_bonus_for_entropy_falls_to_nothing_as_epochs_end(iot):
    trial, given = Trial(iot, 64), []
    agent = METHODS.get("reinforce")(trial, {})
    agent.policy.learn = lambda *told: given.append(told[-1])
    while trial.left:
        agent.step()
    assert given == pytest.approx([agent.entropy * share for share in (1, 0.75, 0.5, 0.25)])


def test_entropy_alone_evens_choices_out():
    free = problem("unlimited")
    shares = []
    for entropy in (0.0, 1.0):
        policy = METHODS.get("reinforce")(Trial(free, 1), {}).policy
        policy.weights["out_bias"].data[1] += 3
        actions, _ = policy.draw(8)
        for _ in range(10):
            policy.learn(actions, np.zeros((8, 52)), np.ones((8, 52), dtype=np.bool_), None, entropy)
        shares.append((policy.draw(50)[0][..., 1] == 0).mean())
    assert shares[0] > 0.6 and shares[1] < shares[0] - 0.05


def test_observations_are_those_of_equation_8_1(iot):
    seen = observations(iot)
    assert seen.shape == (52, 8)  # and the two actions before
    assert seen.min() == -1 and seen.max() == 1
    kinds = np.array([operator.kind == "depthwise" for operator in iot.table.stages.operators])
    assert (seen[:, 6] == np.where(kinds, 1, -1)).all()
    assert (np.diff(seen[:, 7]) > 0).all()


def test_rewards_are_those_of_equation_8_2(iot):
    rng = np.random.default_rng(0)
    cells = rng.integers(20, size=(6, 52))
    cells[3:] = 143
    reward, made, lowest = rewards(iot, cells, np.inf)
    for row in range(6):
        total, spent = 0.0, 0.0
        for layer in range(52):
            spent += iot.costs[0, layer, cells[row, layer]]
            latency = iot.figures[0, layer, cells[row, layer]]
            if spent > iot.limits[0]:
                assert reward[row, layer] == pytest.approx(-total)
                assert not made[row, layer + 1:].any() and (reward[row, layer + 1:] == 0).all()
                break
            assert made[row, layer] and reward[row, layer] == pytest.approx(-latency - lowest)
            total += reward[row, layer]
    assert made[:3].all() and not made[3:].all(axis=1).any()
    assert reward[made].min() == pytest.approx(-max(0.0, -reward[made].min()))
    assert rewards(iot, cells[:1], lowest)[2] == lowest


def test_blind_methods_learn_nothing_from_what_is_over():
    seeing, blind = (allocate(problem(blind=blind), "ga", epochs=2000).value for blind in (False, True))
    assert np.isfinite(seeing) and not np.isfinite(blind)


@pytest.mark.parametrize(("given", "message"), [
    ({"method": "gradient"}, "known allocation method"), ({"epochs": 0}, "epochs: must be positive")])
def test_what_is_wrong_is_told(iot, given, message):
    with pytest.raises(InputError, match=message):
        allocate(iot, **given)

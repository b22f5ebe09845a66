"""The design method ``gradient``: what points need, what follows from it, and what descending gains."""

import numpy as np
import pytest

from tilewright.codesign import DESIGNERS, DesignProblem, Session, read_limits
from tilewright.hardware import DesignSpace, NumberRange, preset
from tilewright.jobs import Runner
from tilewright.mapping import MapSpace
from tilewright.workload import UniqueOperator, convolution, matmul

torch = pytest.importorskip("torch")

from tilewright.search.descent import NetworkDescent  # noqa: E402
from tilewright.search.points import to_points  # noqa: E402
from tilewright.search.relaxed import RelaxedModel  # noqa: E402

LAYERS = [UniqueOperator(matmul("product", 64, 32, 48), 2, ("product",)),
          UniqueOperator(matmul("larger", 96, 64, 48), 1, ("larger",)),
          UniqueOperator(convolution("window", in_channels=8, out_channels=16, kernel=3, out_size=14), 1, ("window",))]
VARYING = {("GLB", "capacity_bytes"): NumberRange(256.0, 65536.0, 256.0), ("PEs", "x"): NumberRange(2, 14, 1),
           ("PEs", "y"): NumberRange(2, 12, 1)}


def asked(objective="edp", within="elements=168"):
    return DesignProblem.of([(LAYERS, 1.0)], DesignSpace(preset("eyeriss"), VARYING), read_limits(within),
                            objective=objective)


def designer(problem):
    return DESIGNERS.get("gradient")(Session(problem, 600, None, 0, Runner(workers=1)), {})


def test_points_need_what_the_mappings_do_that_they_stand_for():
    problem = asked()
    for layer, model in ((one, problem.model(at, problem.layouts[at])) for at, one in enumerate(problem.layers)):
        space = MapSpace(layer, problem.space.accelerator, "perfect")
        batch = space.sample(np.random.default_rng(0), 40, 0.5)
        points = torch.from_numpy(to_points(batch, space)[0])
        needs = model.needs(batch.relaid(model.layout)).numbers(problem.space.accelerator)
        for key, taken, _ in RelaxedModel(space).taken(points):
            found = np.exp(taken.numpy()) / (1 if key[0] == "PEs" else 8)
            assert found == pytest.approx(needs[key], rel=1e-9), key


def test_energies_follow_from_capacities_with_their_slopes():
    problem = asked()
    made = designer(problem)
    numbers = made._numbers()
    descent = NetworkDescent(made.designs.spaces, problem.weights, numbers, "edp")
    logs = {key: torch.tensor(np.log([4096.0, 20000.0]) if key[0] == "GLB" else np.log([5.0, 11.0])).requires_grad_()
            for key in numbers.low}
    price = descent._followed(logs)["GLB", "read_energy_pj_per_word"]
    price.sum().backward()
    slope = logs["GLB", "capacity_bytes"].grad.numpy()
    assert (slope > 0).all()

    def at(factor):
        return problem.budget.completed({key: np.exp(value.detach().numpy()) * (factor if key[0] == "GLB" else 1)
                                         for key, value in logs.items()})["GLB", "read_energy_pj_per_word"]

    assert price.detach().numpy() == pytest.approx(at(1.0), rel=1e-12)
    assert slope == pytest.approx((at(1.01) - at(0.99)) / (np.log(1.01) - np.log(0.99)), rel=0.05)


def test_layers_that_differ_in_sizes_alone_are_modelled_together_and_score_as_by_themselves():
    problem = asked()
    made = designer(problem)
    descent = NetworkDescent(made.designs.spaces, problem.weights, made._numbers(), "edp")
    assert [own for own, _, _ in descent.alike] == [[0, 1], [2]]
    points = made._starts(4, [])

    def scores(split):
        descent.alike = [(own, RelaxedModel(made.designs.spaces[own[0]]), free) for own, free in split]
        parts = [tuple(torch.from_numpy(np.concatenate([points[at][kind] for at in own])) for kind in (0, 1))
                 for own, _ in split]
        return descent.scores(parts, 4, 0.5).numpy()

    free = [own[2] for own in descent.alike]
    together, alone = scores([([0, 1], free[0]), ([2], free[1])]), scores([([0], free[0]), ([1], free[0]),
                                                                         ([2], free[1])])
    assert together == pytest.approx(alone, rel=1e-12)


def test_descending_gains_much_on_what_it_begins_with():
    def best(rate):
        session = Session(asked(), 120, None, 0, Runner(workers=1))
        for _ in DESIGNERS.get("gradient")(session, {"rate": rate}).steps():
            pass
        assert session.spent == 120
        return session.score_so_far

    assert best(0.15) < 0.5 * best(0.0)

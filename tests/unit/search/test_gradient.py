"""The gradient mapper: what its descent gains, what it keeps, what it refuses."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import Constraints, MapSpace
from tilewright.search import MAPPERS, Objective, Scorer, Task, search
from tilewright.workload import convolution

torch = pytest.importorskip("torch")

from tilewright.search.descent import Descent  # noqa: E402
from tilewright.search.points import fitted, to_mappings, to_points  # noqa: E402

CONV = convolution("c", in_channels=64, out_channels=128, in_size=(28, 28), kernel=3, padding=1)
MACHINE = preset("accel-b")
QUICK = {"starts": 8, "steps": 5}
SPACE = MapSpace(CONV, MACHINE)
SCORER = Scorer(Objective.parse("edp"), CONV, MACHINE)


def test_descent_and_rounding_alone_gain_much_on_random_mappings():
    from tilewright.cost import DenseModel

    rng = np.random.default_rng(0)
    model = DenseModel(CONV, MACHINE, SPACE.layout)
    drawn = fitted(SPACE.sample(rng, 32, 0.5), SPACE)
    descent = Descent(SPACE, SCORER)
    low = descent.settle(descent.run(to_points(drawn, SPACE), 30, 0.15), rng, 5, 0.08)
    before, after = (SCORER.scores(model.score(batch)) for batch in (drawn, to_mappings(low, SPACE)))
    assert np.median(after) < 0.25 * np.median(before)
    assert after.min() < before.min()


def test_it_beats_random_search_at_equal_samples():
    found = [search(CONV, MACHINE, mapper=mapper, budget=600, seed=1).score for mapper in ("gradient", "random-pruned")]
    assert found[0] < 0.7 * found[1]


def test_constraints_hold():
    space = MapSpace(CONV, MACHINE, constraints=Constraints(
        loops={"PEs.X": ("K",), "PEs.Y": ("C",)}, orders={"Shared": (("N", "K", "C", "P", "Q", "R", "S"),)}))
    made = MAPPERS.get("gradient")(Task(space, np.random.default_rng(0), options=QUICK))
    for _ in range(3):
        batch = made.ask(100)
        assert space.contains(batch).all()
        made.tell(batch, np.random.default_rng(1).random(len(batch)))


def test_pytorch_has_its_threads_back_afterwards():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        search(CONV, MACHINE, mapper="gradient", budget=50, options=QUICK)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("options", [{"starts": 0}, {"rate": -1.0}, {"newcomers": 2.0}, {"elite": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        search(CONV, MACHINE, mapper="gradient", budget=10, options=options)

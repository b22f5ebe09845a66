"""The study of map-space exploration: tiny runs, workloads of table 5.1, Gamma's operators, verdicts by hand."""

import json

import pytest

from tilewright.report.search_plots import log_axis
from tilewright.reproduce import Setting, run_study
from tilewright.reproduce.mse_operators import ALL, CLAIMS, _judge_orders
from tilewright.reproduce.mse_study import published, space_of, workload
from tilewright.search import search
from tilewright.search.mapper import read_options
from tilewright.search.mappers.gamma import GammaOptions

PICTURE = Setting("tiny", 2, {"samples": 300, "points": 200, "learnt": 600, "layers": 3, "hidden": (16,), "epochs": 2})


def test_the_picture_shows_mind_mappings_where_there_is_pytorch(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    whole = run_study("mse-fig5.4", PICTURE, out=tmp_path).findings
    assert whole.judgements[-1].verdict != "not judged"
    assert "Mind Mappings" in [row[0] for row in whole.tables[0].rows]
    assert "Mind Mappings" in json.dumps([[plot.name, plot.title, plot.data] for plot in whole.plots])
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    without = run_study("mse-fig5.4", PICTURE, out=tmp_path / "without").findings
    assert without.judgements[-1].verdict == "not judged"
    assert "Mind Mappings" not in [row[0] for row in without.tables[0].rows]


def test_workloads_are_those_of_table_5_1():
    sizes = {name: workload(name).sizes for name in ("Resnet Conv_3", "Resnet Conv_4", "Inception Conv_2")}
    assert [tuple(each[dim] for dim in "NKCPQRS") for each in sizes.values()] == [
        (16, 128, 128, 28, 28, 3, 3), (16, 256, 256, 14, 14, 3, 3), (16, 192, 192, 27, 27, 5, 5)]
    assert workload("Resnet Conv_4").macs == 16 * 256 * 256 * 14 * 14 * 9


def test_published_operators_can_be_left_out_one_by_one():
    whole, tile = (read_options(GammaOptions, options, "gamma") for options in (
        published(), published(["tile"], crossover=False)))
    assert {whole.crossover, whole.tile, whole.parallel, whole.reorder, whole.growth, whole.aging} == {0.5}
    assert (tile.tile, tile.crossover, tile.parallel, tile.reorder) == (0.5, 0, 0, 0)
    for options in (whole, tile):
        assert {options.move, options.fill, options.nudge, options.expand, options.rebuild, options.newcomer} == {0}
        assert not (options.repair or options.distinct or options.patience)


def test_mutating_orders_alone_leaves_tiles_as_they_were_drawn():
    space = space_of("Resnet Conv_4", "accel-a")
    seen = []

    class Watching:
        def __init__(self, model):
            self.model, self.cost = model, model.cost

        def score(self, batch, *, threads=1):
            seen.append(batch)
            return self.model.score(batch, threads=threads)

    from tilewright.cost import DenseModel

    model = DenseModel(space.operator, space.accelerator, space.layout)
    search(space.operator, space.accelerator, mapper="gamma", space=space, budget=600,
           options=published(["order"], crossover=False), model=Watching(model))
    first, *later = [{batch.steps[:, :, b].tobytes() for b in range(len(batch))} for batch in seen]
    assert later and all(steps <= first for steps in later)


def test_verdicts_on_orders():
    def run(groups, ratio, own=1.0, largest=ALL):
        return {"groups": groups, "ratio": ratio, "own": own, "best": 1.0, "largest": largest}

    def verdicts(*runs):
        return [judged.verdict for judged in _judge_orders(runs, [])]

    assert verdicts(run(16, 14.4), run(16, 14.4)) == ["holds"] * 4
    assert verdicts(run(300, 3.0, 1.2, 40), run(300, 3.0, 1.2, 40)) == ["holds in direction"] * 4
    # 1.5 times the best is no place of its own where the spread's median is 1.99
    none = _judge_orders([run(3000, 1.5, 1.4, 2), run(3000, 1.5, 1.4, 2)], [run(3, 2.0)])
    assert [judged.verdict for judged in none] == ["does not hold"] * 4
    assert none[0].ours == "3e+03 (from 3e+03 to 3e+03); ours 3"
    assert [judged.claim for judged in none] == list(CLAIMS)


@pytest.mark.parametrize(("values", "kind", "dtick"), [
    ([1.0, 1.5], None, None), ([1.1, 4.5], "log", "D1"), ([1.0, 50.0], "log", "D2"), ([1.0, 1e6], "log", 1),
    ([], None, None),
])
def test_axes_have_ticks_that_suit_their_range(values, kind, dtick):
    axis = log_axis("Score", values)
    assert (axis.get("type"), axis.get("dtick")) == (kind, dtick)

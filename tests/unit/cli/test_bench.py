"""``tilewright bench``: every figure is there, and the C loop computes what the model does."""

import json
import re
from functools import cache

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli.bench import bench, measuring
from tilewright.cost import DenseModel

bench_dense, bench_figures = measuring("yardstick"), measuring("figures")

app = typer.Typer()
app.command()(bench)
runner = CliRunner()


@pytest.fixture(scope="module")
def quick():
    """All figures: one part is measured in a process of its own, the others here, as to begin one takes seconds."""
    begin = bench_figures._python

    def python(code, *arguments, **environment):
        if part := re.fullmatch(r"from figures import child; child\('(dense|resnet50|starts)', True\)", code):
            return json.dumps(bench_figures.PARTS[part[1]](bench_figures.QUICK) | {"peak_memory_mb": 0.0})
        return begin(code, *arguments, **environment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_figures, "_python", python)
        result = runner.invoke(app, ["--quick", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_figure_is_told(quick):
    assert set(bench_figures.LABELS) | {"machine", "dense_c_loop_missing_because"} == set(quick)
    assert set(quick["machine"]) == {"cpu", "cores", "system", "python", "versions"}
    for name in bench_figures.LABELS:
        figure = quick[name]
        if "c_loop" in name and quick["dense_c_loop_missing_because"]:
            assert figure is None
        elif "compile" in name:
            assert figure is None, "takes long, so that --quick leaves it out"
        else:
            assert figure > 0, name
    assert 0.01 < quick["help_seconds"] < 60
    assert 20 < quick["peak_memory_mb"] < 4000
    assert quick["resnet50_layers"] == bench_figures.QUICK.layers


@pytest.mark.sample(1)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("perfect", [False, True], ids=["ragged", "perfect"])
def test_the_c_loop_computes_what_the_model_does(stride, perfect):
    operator, accelerator = bench_dense.benchmark_layer(stride), bench_dense.benchmark_machine()
    yardstick = yardstick_or_skip(operator, accelerator)
    batch = bench_dense.random_mappings(operator, accelerator, 3000, perfect=perfect, seed=stride)
    yardstick.check(DenseModel(operator, accelerator), batch)
    np.testing.assert_array_equal(yardstick.score(batch, threads=2), yardstick.score(batch))


def test_the_check_of_the_c_loop_can_fail():
    operator, accelerator = bench_dense.benchmark_layer(), bench_dense.benchmark_machine()
    yardstick = yardstick_or_skip(operator, accelerator)
    batch = bench_dense.random_mappings(operator, accelerator, 200)
    right = yardstick._machine.sizes[0]
    yardstick._machine.sizes[0] = 2
    with pytest.raises(AssertionError):
        yardstick.check(DenseModel(operator, accelerator), batch)
    yardstick._machine.sizes[0] = right


@cache  # a C compiler takes part of a second
def yardstick_or_skip(operator, accelerator):
    try:
        return bench_dense.Yardstick(operator, accelerator)
    except bench_dense.YardstickError as error:
        if "no C compiler" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.slow
def test_the_first_use_compiles():
    found = bench_figures.starts(bench_figures.Sizes(starts=1))
    assert 1 < found["first_compile_seconds"] < 300
    assert 1 < found["first_search_compile_seconds"] < 300


def test_random_mappings_are_what_they_say():
    operator, accelerator = bench_dense.benchmark_layer(), bench_dense.benchmark_machine()
    for perfect in (False, True):
        batch = bench_dense.random_mappings(operator, accelerator, 500, perfect=perfect)
        outside = np.array([operator.sizes[name] for name in batch.layout.dimensions])[:, None].repeat(500, axis=1)
        whole = True
        for steps in batch.steps:
            assert ((steps >= 1) & (steps <= outside)).all()
            whole &= bool((outside % steps == 0).all())
            outside = steps
        assert (outside == 1).all()
        assert whole == perfect
        assert (np.sort(batch.ranks, axis=1) == np.arange(7, dtype=np.int8)[None, :, None]).all()


def test_without_a_source_the_reason_is_told(tmp_path):
    operator, accelerator = bench_dense.benchmark_layer(), bench_dense.benchmark_machine()
    with pytest.raises(bench_dense.YardstickError, match=r"no missing\.c beside this installation"):
        bench_dense.Yardstick(operator, accelerator, tmp_path / "missing.c")


def test_without_a_compiler_the_reason_is_told(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    rates = bench_dense.measure_dense(count=300, repeats=1)
    assert rates.reason == "no C compiler (cc, gcc or clang) was found"
    assert rates.by_name["dense_c_loop_mappings_per_second"] is None
    assert (rates.by_name["dense_mappings_per_second"] or 0) > 0


def test_a_source_that_does_not_compile_is_told(tmp_path):
    source = tmp_path / "broken.c"
    source.write_text("int broken(")
    operator, accelerator = bench_dense.benchmark_layer(), bench_dense.benchmark_machine()
    with pytest.raises(bench_dense.YardstickError, match=r"failed: |no C compiler"):
        bench_dense.Yardstick(operator, accelerator, source)


def test_a_part_that_fails_leaves_the_others(monkeypatch):
    def ends(code, *arguments, **environment):
        if "gamma" in code:
            raise RuntimeError("a measured process ended with 1: out of luck")
        return 'noise\n{"figure": 1.0, "peak_memory_mb": 5.0}\n'

    monkeypatch.setattr(bench_figures, "_python", ends)
    result = runner.invoke(app, ["--quick"])
    assert result.exit_code == 1
    assert "Not measured: gamma, as a measured process ended with 1: out of luck" in result.stdout
    assert "Peak memory: MB" in result.stdout
    assert "4 of 4" in result.stderr

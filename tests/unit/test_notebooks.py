"""What notebooks show: short representations, HTML, data frames and Plotly figures."""

import sys
from types import SimpleNamespace

import pytest

import tilewright as tw
from tilewright.base import InputError


@pytest.fixture(scope="module")
def run() -> tw.Run:
    return tw.map("alexnet", "edge-s2", budget=60, store=False, front="latency,energy", layers="conv*")


def test_representations_are_short_and_html_keeps_lines(run: tw.Run) -> None:
    layer, machine = run.layers["conv1"], tw.load_accelerator("edge-s2")
    found = tw.sweep("matmul:M=16,N=16,K=16", "edge-s1", "SG.capacity=8KiB,16KiB", budget=20)
    assert repr(run).startswith("Run(alexnet on edge-s2: 5 layers, ")
    assert repr(layer).startswith("LayerRecord(conv1: ")
    assert repr(run.front("conv1")).startswith("Front(latency, energy: ")
    assert repr(found).startswith("MachineSweep(matmul on machines side by side: Best EDP")
    for thing, said in ((run, "alexnet on edge-s2"), (layer, "LayerRecord(conv1"), (machine, "168 multiply-accumulate"),
                        (run.front("conv1"), "latency (cycles)"), (found, "SG.capacity"),
                        (tw.load_mapping(layer.mapping.yaml, tw.pick_operator("alexnet", "conv1"), machine), "DRAM")):
        shown = thing._repr_html_()
        assert len(repr(thing)) < 400 or thing is machine or said == "DRAM"
        assert said in shown
        assert shown.startswith("<pre")


def test_runs_are_data_frames(run: tw.Run) -> None:
    pandas = pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["layer"]) == ["conv1", "conv2", "conv3", "conv4", "conv5"]
    assert (frame["latency_cycles"] * frame["count"]).sum() == run.latency_cycles - run.record.totals.vector_cycles
    table = tw.sweep("matmul:M=16,N=16,K=16", "edge-s1", "SG.capacity=8KiB,16KiB", budget=20).to_pandas("machines")
    assert list(table["SG.capacity"]) == ["8KiB", "16KiB"]


def test_without_pandas_it_says_so(run: tw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        run.to_pandas()


@pytest.mark.parametrize("name", ["latency", "energy", "roofline", "convergence", "front-0"])
def test_plots_are_figures_of_plotly_in_real_colours(run: tw.Run, name: str) -> None:
    figure = run.plot(name)
    assert len(figure.data) > 0
    text = figure.to_json()
    assert '"@' not in text
    assert name not in ("latency", "energy", "roofline", "convergence") or getattr(run, f"plot_{name}")() == figure


def test_unknown_plots_are_named(run: tw.Run) -> None:
    with pytest.raises(InputError, match="latency"):
        run.plot("latencies")
    found = tw.sweep("matmul:M=16,N=16,K=16", "edge-s1", ["SG.capacity=8KiB,16KiB", "PEs.x=2,4"], budget=20)
    assert '"@' not in found.plot("heat").to_json()
    with pytest.raises(InputError, match="heat"):
        found.plot("heats")


def test_the_version_is_told() -> None:
    assert tw.__version__[0].isdigit()


def test_a_bar_stands_below_the_cell_while_networks_are_mapped_and_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a notebook is shown, by a display that takes notes; the bar goes at the end, and elsewhere there is none."""
    notes: list[str] = []

    class Handle:
        def update(self, shown: str) -> None:
            notes.append(shown)

    def display(shown: str, *, display_id: bool) -> Handle:
        assert display_id
        notes.append(shown)
        return Handle()

    told = SimpleNamespace(display=display, HTML=str)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=told))
    monkeypatch.setitem(sys.modules, "IPython.display", told)
    tw.map("matmul:M=16,N=16,K=16", "edge-s1", budget=20, store=False)
    assert notes == []  # IPython alone is no notebook
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    tw.map("matmul:M=16,N=16,K=16", "edge-s1", budget=20, store=False)
    assert notes[0] == notes[-1] == ""
    assert any("/1 layers <progress value='" in one and "best " in one and "J·cycles" in one for one in notes)
    notes.clear()
    tw.sweep("matmul:M=16,N=16,K=16", "edge-s1", "SG.capacity=8KiB,16KiB", budget=20)
    assert notes[0] == notes[-1] == ""
    assert any("searches <progress value=" in one for one in notes), notes

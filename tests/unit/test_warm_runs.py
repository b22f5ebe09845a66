"""Runs that begin from what was found before, and keep what they find: through Python and on the command line."""

import json
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright.api import tasks
from tilewright.api.warm import warm_budget
from tilewright.base import InputError
from tilewright.cli import main
from tilewright.search import Budget, beginnings
from tilewright.search import search as search_one
from tilewright.store import Library, RunLibrary, Store, read_run
from tilewright.workload import Graph, MacNode, matmul

LAYERS = [matmul(name, m=m, n=32, k=k) for name, m, k in (("a", 32, 16), ("b", 32, 32), ("c", 64, 32), ("d", 96, 32))]
NETWORK = Graph("four", tuple(MacNode(layer) for layer in LAYERS))


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)  # where runs go that cannot be stored
    return tmp_path / "runs.sqlite"


def mapped(**changes):
    """Map the network by a mapper that is quick."""
    return tw.map(NETWORK, **{"arch": "eyeriss", "mapper": "gamma", "budget": 300, "seed": 1, **changes})


def found(run):
    return [(layer.mapping.levels, layer.search.score, layer.search.start) for layer in run.record.layers]


def begun(run):
    return [[(start.kind, start.layer) for start in layer.search.start] for layer in run.record.layers]


def cli(*arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tilewright", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as error:
        code = error.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err


def test_every_best_mapping_goes_to_the_library_and_only_better_ones_later(place):
    run = mapped()
    assert run.library.added == 4
    with Library(place) as library:
        entries = {one.layer: one for one in library.entries()}
    assert {name: one.score for name, one in entries.items()} == {
        layer.name: layer.search.score for layer in run.record.layers}
    assert {one.run_id for one in entries.values()} == {run.record.id}
    assert {one.network for one in entries.values()} == {"four"}
    assert mapped(again=True).library.added == 0
    better = mapped(budget=1500, seed=2)
    improved = sum(new.search.score < old.search.score
                   for new, old in zip(better.record.layers, run.record.layers, strict=True))
    assert better.library.added == improved


def test_without_a_store_nothing_is_kept(place):
    run = mapped(store=False)
    assert (run.library.added, run.kept) == (0, None)
    assert found(mapped(store=False, warm_start="library")) == found(mapped(store=False, warm_start="similar"))
    assert not place.exists()
    mapped()
    assert {start.kind for start in mapped(store=False, warm_start="library").record.layers[0].search.start} == {
        "library"}
    with Library(place) as library, Store(place) as store:
        assert (len(library.entries()), len(store.runs())) == (4, 1)


def designed(**changes):
    two = Graph("two", NETWORK.nodes[:2])
    return tw.design(two, "edge-s2", "area=0.03mm2", **{"budget": 80, "store": False, **changes})


def test_designs_begin_from_what_earlier_ones_put_into_the_library(place):
    plain = designed()
    assert designed(warm_start="library").result.history[0].score == plain.result.history[0].score  # there is none yet
    better = designed(budget=500, seed=5, store=True)
    with Library(place) as library:
        assert {(one.layer, one.mapper, one.run_id) for one in library.entries()} == {
            (layer.name, "design auto", better.runs[0].record.id) for layer in LAYERS[:2]}
    assert better.score < plain.score
    assert designed().score == plain.score  # the library is begun from only where that is asked for
    begun_from = designed(warm_start="library")
    assert begun_from.score <= better.score
    assert begun_from.result.history[0].score < plain.result.history[0].score
    assert begun_from.runs[0].record.request.warm_start == "library"


def test_designs_go_on_from_what_they_began_from_whatever_the_library_holds_by_then(place, tmp_path):
    designed(budget=150, seed=5, store=True)
    first = designed(warm_start="library", out=tmp_path / "out")
    designed(budget=500, seed=6, store=True)
    again = designed(warm_start="library", out=tmp_path / "out")
    assert (again.score, again.result.history[0].score) == (first.score, first.result.history[0].score)


@pytest.mark.parametrize(("changes", "message"), [
    ({"warm_start": "similar"}, "warm_start: must be off or library"),
    ({"warm_start": "library", "method": "grid"}, "must be off unless the method is auto"),
    ({"warm_start": "library", "deployment": "pipelined"}, "must be left out with --deployment"),
])
def test_designs_refuse_other_beginnings(changes, message):
    with pytest.raises(InputError, match=message):
        designed(**changes)


def test_by_default_the_library_decides_nothing():
    first = mapped()
    assert found(mapped(again=True)) == found(first) == found(mapped(store=False))
    assert begun(first) == [[]] * 4


def test_layers_begin_from_others_of_the_run_whatever_the_library_holds():
    for kind in ("previous", "similar"):
        alone = mapped(warm_start=kind, store=False)
        mapped(budget=1500, seed=9)
        assert found(mapped(warm_start=kind, workers=1)) == found(alone)
    assert begun(alone) == [[], [("similar", "a")], [("similar", "b"), ("similar", "a")],
                            [("similar", "c"), ("similar", "b"), ("similar", "a")]]


def test_the_library_is_begun_from_across_networks_and_recorded(tmp_path):
    first = mapped(budget=1500)
    other = Graph("other", (MacNode(matmul("x", m=96, n=32, k=32)), MacNode(matmul("y", m=48, n=32, k=16))))
    run = tw.map(other, arch="eyeriss", budget=20, warm_start="library")
    start = run.layers["x"].search.start
    assert (start[0].kind, start[0].layer, start[0].distance, start[0].run) == ("library", "four/d", 0, first.record.id)
    assert run.layers["x"].search.score <= first.layers["d"].search.score
    assert [one.layer for one in run.layers["y"].search.start][:2] == ["four/a", "four/c"]
    assert run.record.request.warm_start == "library"
    assert "--warm-start library" in run.record.request.command
    assert "Warm start: 2 of 2 layers" in str(run)
    assert "2 of them with some of the library" in str(run)
    page = run.write_report(tmp_path / "page.html").read_text()
    assert "four/d (library, same sizes, run" in page
    assert "warm start: <b>library</b>" in page
    assert read_run(run.write_json(tmp_path / "run.json")) == run.record
    assert tw.open_run("last").record == run.record


def test_a_library_that_cannot_be_reached_costs_nothing_but_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    run = mapped(warm_start="library", store=tmp_path / "file" / "store.sqlite")
    assert run.library.warning.startswith("The library of mappings is left out: store sqlite")
    assert "\n" not in run.library.warning
    assert found(run) == found(mapped(warm_start="similar", store=False))
    assert not run.kept.stored and read_run(run.kept.place) == run.record
    other = designed(warm_start="library", store=tmp_path / "file" / "store.sqlite")
    assert other.runs[0].library.warning == run.library.warning and other.score == designed().score


def test_a_run_that_is_taken_up_again_begins_from_what_it_began_from(tmp_path):
    class StopLate:
        left = 2

        def begin(self, layers, budget):
            pass

        def update(self, progress):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    mapped(budget=200)
    whole = mapped(budget=1000, seed=3, warm_start="library", store=False)
    with pytest.raises(KeyboardInterrupt):
        mapped(budget=1000, seed=3, warm_start="library", checkpoint=tmp_path / "kept", progress=StopLate(), workers=1)
    mapped(budget=1500, seed=4)
    again = mapped(budget=1000, seed=3, warm_start="library", checkpoint=tmp_path / "kept")
    assert found(again) == found(whole)
    (tmp_path / "kept" / "starts.json").write_text("[]")
    with pytest.raises(InputError, match=r"starts\.json: must be the file that the run wrote"):
        mapped(budget=1000, seed=3, warm_start="library", checkpoint=tmp_path / "kept")


def test_a_server_that_goes_mid_run_costs_nothing_but_a_warning(postgres, postgres_url, monkeypatch):
    add = RunLibrary.add
    done = []

    def stopping(self, entry):
        add(self, entry)
        done.append(entry.layer)
        if len(done) == 2:
            postgres.stop()

    monkeypatch.setattr(RunLibrary, "add", stopping)
    monkeypatch.setattr("tilewright.store.library.WRITE_SECONDS", 0.0)
    try:
        run = mapped(store=postgres_url, workers=1)
    finally:
        postgres.start()
    assert len(done) == 4
    assert run.library.added == 2
    assert "The library of mappings is left out" in run.library.warning
    assert found(run) == found(mapped(store=False))
    assert not run.kept.stored and read_run(run.kept.place) == run.record
    with Library(postgres_url) as library:
        assert {one.layer for one in library.entries()} == set(done[:2])


def test_a_team_shares_a_server(postgres_url):
    first = mapped(store=postgres_url)
    with Store(postgres_url) as store:
        assert store.get("last") == first.record
    again = mapped(store=postgres_url, warm_start="library", budget=30)
    assert [layer.search.start[0].run for layer in again.record.layers] == [first.record.id] * 4
    assert all(new.search.score <= old.search.score
               for new, old in zip(again.record.layers, first.record.layers, strict=True))


@pytest.mark.slow
def test_runs_in_many_processes_share_a_library_without_doubling_an_entry(place):
    program = ("import sys, tilewright as tw; "
               "print(tw.map('matmul:M=64,N=64,K=32', arch='eyeriss', budget=300, seed=int(sys.argv[1])).library)")
    runs = [subprocess.Popen([sys.executable, "-c", program, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for seed in range(3)]
    said = [run.communicate(timeout=120) for run in runs]
    assert all("warning=''" in out and not err for out, err in said), said
    with Library(place) as library, Store(place) as store:
        best = min(store.get(run.id).layers[0].search.score for run in store.runs())
        assert [one.score for one in library.entries()] == [best]


def test_time_is_shared_by_layers_that_wait_for_one_another():
    chain = beginnings(LAYERS, "previous")
    assert warm_budget(Budget(seconds=12.0), LAYERS, chain, 2).seconds == 3.0
    assert warm_budget(Budget(seconds=12.0), LAYERS, beginnings(LAYERS, "off"), 2).seconds == 6.0
    assert warm_budget(Budget(samples=5), LAYERS, chain, 2) == Budget(samples=5)


def test_what_searches_and_beginning_from_mappings_compile_is_compiled_once_before_the_clock_runs(monkeypatch):
    tried = []

    def search(*given, **options):
        tried.append(options.get("start") is not None)
        return search_one(*given, **options)

    monkeypatch.setattr(tasks, "search", search)
    monkeypatch.setattr(tasks, "_WARM", set())
    for kind, more in (("off", [False]), ("off", []), ("similar", [False, True]), ("similar", [])):
        before = len(tried)
        mapped(warm_start=kind, budget=20, again=True)
        assert tried[before:] == more
    before = len(tried)
    mapped(arch="edge-s2", budget=20)
    assert tried[before:] == [False]


def test_an_unknown_kind_is_named():
    with pytest.raises(InputError, match=r"warm_start: must be one of off, previous, similar, library"):
        mapped(warm_start="yes")


def test_the_command_line_begins_warm_lists_exports_and_prunes(monkeypatch, capsys, tmp_path):
    def run(*arguments):
        return cli(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    network = "matmul:M=32,N=32,K=32"
    with Store(store := tmp_path / "empty.sqlite") as made:
        made.runs()
    assert "No mappings in" in run("list", "library", "--store", str(store))[1]
    assert run("map", network, "-a", "eyeriss", "-b", "300")[0] == 0
    code, out, _ = run("map", network, "-a", "eyeriss", "-b", "30", "--warm-start", "library")
    assert code == 0 and "warm start: library" in out and "1 of 1 layers began" in out.replace("\n", " ")
    code, out, _ = run("list", "library")
    assert code == 0 and "M32 N32 K32" in out
    identity = next(word for line in out.splitlines() if "M32" in line for word in line.split()[:1])
    code, out, _ = run("list", "library", identity[:6])
    assert code == 0 and "Found by" in out and "DRAM" in out
    assert run("export", "--library", tmp_path / "lib.json")[0] == 0
    assert json.loads((tmp_path / "lib.json").read_text())[0]["id"] == identity
    assert run("prune")[0] == 2
    assert run("prune", "--older-than", "-1")[0] == 2
    assert "0 mappings removed" in run("prune", "--older-than", "1")[1]
    assert "0 mappings removed" in run("prune", "--arch", "nowhere")[1]
    assert "1 mappings removed" in run("prune", "--all")[1]
    code, _, err = run("list", "library", "abc")
    assert code == 2 and "tilewright list library" in err
    assert run("map", network, "-a", "eyeriss", "--warm-start", "yes")[0] == 2


def test_the_command_line_says_once_that_the_library_is_left_out(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = cli("map", "matmul:M=32,N=32,K=32", "-a", "eyeriss", "-b", "300", "--store",
                       tmp_path / "file" / "x.sqlite", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    assert err.count("library") == 1

import contextlib
import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.base import Plot, Table
from tilewright.reproduce import Cell, Claim, Findings, Judgement, Setting, Study, run_study

CLAIM = Claim("squares grow", "yes", "holds where each is larger than the one before")


def study_of(counted, broken=(), version=1):
    """Return a study of squares that counts what it computes and fails where told to."""

    def cell(number):
        def compute():
            if number in broken:
                raise RuntimeError(f"{number} is broken")
            counted.append(number)
            return {"square": number * number}
        return Cell({"number": number}, compute, samples=10)

    def run(setting, runner):
        values = [cell["square"] for cell in runner.run([cell(n) for n in range(setting["numbers"])])]
        table = Table("squares", "Squares", ("n", "square", "note"), tuple(
            (n, square, None) for n, square in enumerate(values)))
        plot = Plot("squares", "Squares", [{"type": "scatter", "y": values, "line": {"color": "@curve-0"}}],
                    {"yaxis": {"title": {"text": "square"}}})
        grows = values == sorted(values)
        return Findings((table,), (Judgement(CLAIM, "yes", "holds" if grows else "does not hold"),), (plot,), ("End.",))

    return Study("squares", "The first squares", "nowhere", (CLAIM,), Setting("quick", 1, {"numbers": 4}),
                 Setting("full", 2, {"numbers": 6}), run, version)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    counted = []
    with pytest.raises(RuntimeError, match="3 is broken"):
        run_study(study_of(counted, broken={3}), out=tmp_path, workers=1)
    assert counted == [0, 1, 2]
    outcome = run_study(study_of(counted), out=tmp_path, workers=1)
    assert counted == [0, 1, 2, 3]
    assert (outcome.computed_cells, outcome.reused_cells, outcome.older_cells) == (1, 3, 0)
    assert [row[1] for row in outcome.findings.tables[0].rows] == [0, 1, 4, 9]


def test_ctrl_c_ends_the_run_and_keeps_what_had_ended(tmp_path):
    counted = []

    def stop(standing):
        if standing.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study_of(counted), "full", out=tmp_path, workers=1, observer=stop)
    assert 2 <= len(counted) < 6
    before = len(counted)
    outcome = run_study(study_of(counted), "full", out=tmp_path, workers=1)
    assert outcome.computed_cells == len(counted) - before <= 4
    assert sorted(set(counted)) == list(range(6))


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path):
    script = f"""
import os
from tilewright.reproduce import Cell, Findings, Setting, Study, run_study

def run(setting, runner):
    compute = lambda n: (lambda: os._exit(7) if n == 2 else {{"square": n * n}})
    runner.run([Cell({{"number": n}}, compute(n)) for n in range(4)])
    return Findings((), ())

study = Study("squares", "", "", (), Setting("quick", 1), Setting("full", 1), run)
run_study(study, out={str(tmp_path)!r}, workers=1)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 7
    counted = []
    # Somebody may edit the sources between the two processes, which is not what this is about.
    run_study(study_of(counted), out=tmp_path, keep_outdated=True)
    assert sorted(counted) == [2, 3]


def test_cells_belong_to_a_version_of_the_study_and_fresh_forgets_them(tmp_path):
    counted = []
    run_study(study_of(counted), out=tmp_path)
    assert run_study(study_of(counted, version=2), out=tmp_path).computed_cells == 4
    assert run_study(study_of(counted), out=tmp_path).computed_cells == 0
    assert run_study(study_of(counted), out=tmp_path, fresh=True).computed_cells == 4


def counts(outcome):
    return outcome.computed_cells, outcome.reused_cells, outcome.older_cells


def test_cells_of_other_sources_are_computed_again_but_where_they_are_to_be_kept(tmp_path, capsys):
    from tilewright.reproduce import print_reproduction

    run_study(study_of([]), out=tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "squares" / "results.sqlite")) as kept, kept:
        kept.execute("""update results set sources = 'others', value = '{"square": -7}' where job = '{"number": 0}'""")
    kept = run_study(study_of([]), out=tmp_path, keep_outdated=True)
    assert counts(kept) == (0, 4, 1)
    assert kept.findings.tables[0].rows[0][1] == -7
    print_reproduction(kept)
    assert "1 cells were computed by other sources" in capsys.readouterr().out
    counted = []
    outcome = run_study(study_of(counted), out=tmp_path)
    assert (counted, counts(outcome)) == ([0], (1, 3, 0))
    assert outcome.findings.tables[0].rows[0][1] == 0
    # What the present sources computed goes before.
    assert counts(run_study(study_of([]), out=tmp_path, keep_outdated=True)) == (0, 4, 0)


def test_cells_are_computed_again_where_a_room_they_may_run_has_changed(tmp_path, monkeypatch):
    from tilewright.base import keeping

    shutil.copytree(Path(keeping.__file__).parents[1], tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(keeping, "__file__", str(tmp_path / "copy" / "base" / "keeping.py"))
    monkeypatch.setattr("tilewright.store.results.model_sources", keeping.model_sources.__wrapped__)
    run_study(study_of([]), out=tmp_path)
    for file in ("codesign/allocation/agents.py", "learn/policy.py", "scheduling/__init__.py", "fusion/__init__.py",
                 "allocation/__init__.py", "recommendation/__init__.py"):
        (tmp_path / "copy" / file).write_text("changed")
        assert run_study(study_of([]), out=tmp_path).computed_cells == 4
    assert run_study(study_of([]), out=tmp_path).computed_cells == 0


def test_what_a_run_asks_for_twice_is_not_taken_over(tmp_path):
    def run(setting, runner):
        cells = [Cell({"number": n}, lambda n=n: {"square": n * n}) for n in range(3)]
        assert runner.run(cells) == runner.run(cells)
        return Findings((), ())

    study = Study("squares", "", "", (), Setting("quick", 1), Setting("full", 1), run)
    assert counts(run_study(study, out=tmp_path)) == (3, 0, 0)
    assert counts(run_study(study, out=tmp_path)) == (0, 3, 0)


def test_tables_data_and_page_are_written(tmp_path):
    from tilewright.reproduce import write_reproduction

    outcome = run_study(study_of([]), out=tmp_path, seeds=3)
    with (tmp_path / "squares" / "quick.squares.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["n", "square", "note"], ["0", "0", ""], ["1", "1", ""], ["2", "4", ""],
                                          ["3", "9", ""]]
    data = json.loads((tmp_path / "squares" / "quick.json").read_text())
    assert data["setting"] == {"name": "quick", "seeds": 3, "numbers": 4}
    assert data["judgements"][0]["verdict"] == "holds"
    with (tmp_path / "squares" / "quick.claims.csv").open(newline="") as file:
        assert list(csv.reader(file))[1][:4] == ["holds", "squares grow", "yes", "yes"]
    page = write_reproduction(outcome)
    text = page.read_text()
    assert page == tmp_path / "squares" / "quick.html"
    assert "squares grow" in text and 'data-figure="squares"' in text and "src=" not in text.split("<script>")[0]
    figures = text.split('<script id="figures" type="application/json">')[1].split("</script>")[0]
    assert json.loads(figures)["squares"]["data"][0]["y"] == [0, 1, 4, 9]


def test_two_runs_at_once_share_what_they_compute(tmp_path):
    """The second begins when the first has done half, and takes over what that has."""
    counted, outcomes = [], []

    def second(standing):
        if standing.done == 2 and not outcomes:
            outcomes.append(None)
            outcomes[0] = run_study(study_of(counted), out=tmp_path, workers=1)

    first = run_study(study_of(counted), out=tmp_path, workers=1, observer=second)
    assert counted == [0, 1, 2, 3]
    assert (counts(outcomes[0]), counts(first)) == ((2, 2, 0), (2, 2, 0))
    assert outcomes[0].findings == first.findings


@pytest.mark.parametrize(("words", "told"), [
    (("ruby-tabel1",), "Did you mean"),
    ((), "must be given"),
    (("ruby-table1", "--seeds", "0"), "--seeds: must be a positive integer"),
    (("ruby-table1", "--out", "/dev/null"), "--out: must be a folder"),
    (("--write-page", "nowhere.md"), "--write-page: must be a page"),
])
def test_bad_words_end_with_code_2(words, told, tmp_path, monkeypatch, capsys):
    from tilewright.cli import main

    monkeypatch.setattr("sys.argv", ["tilewright", "reproduce", *words])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    from tilewright import reproduce
    from tilewright.cli import main

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run_study", interrupted)
    monkeypatch.setattr("sys.argv", ["tilewright", "reproduce", "ruby-table1", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "goes on from there" in capsys.readouterr().err


def test_the_list_names_every_reproduction(monkeypatch, capsys):
    from tilewright.cli import main
    from tilewright.reproduce import REPRODUCTIONS

    monkeypatch.setattr("sys.argv", ["tilewright", "reproduce", "--list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in REPRODUCTIONS)
    numbered = [f"ruby-fig{number}" for number in range(7, 15)]
    assert [told.index(f"{name} ") for name in numbered] == sorted(told.index(f"{name} ") for name in numbered)
    assert told.index("flexion-tile") < told.index("ruby-fig7")


def test_tables_that_a_figure_draws_are_found_by_their_own_names_and_not_listed():
    from tilewright.reproduce import REPRODUCTIONS

    for table, figure in (("sagar-table3", "sagar-fig13"), ("sagar-table4", "sagar-fig12")):
        assert REPRODUCTIONS.get(table) is REPRODUCTIONS.get(figure)
        assert table not in list(REPRODUCTIONS)

"""The library of best mappings: one entry for each problem, the better one stays, the nearest is found."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tilewright.base import InputError
from tilewright.hardware import VectorUnit, preset
from tilewright.mapping import Constraints, LevelLoops, Loop, Mapping, MapSpace
from tilewright.store import Library, Provenance, RunLibrary, entry
from tilewright.workload import convolution, depthwise

MACHINE = preset("eyeriss")
MAPPING = Mapping((LevelLoops("DRAM", (Loop("K", 1),), ("I", "W", "O")), LevelLoops("GLB", (Loop("P", 1),), ("I", "O")),
                   LevelLoops("PEs", (Loop("C", 1, "X"),)), LevelLoops("Spads", (), ("I", "W", "O"))))


def space(name="layer", machine=MACHINE, tiling="imperfect", constraints=None, **sizes):
    found = {"in_channels": 8, "out_channels": 16, "out_size": (4, 4), "kernel": (3, 3), **sizes}
    return MapSpace(convolution(name, **found), machine, tiling, constraints or Constraints())


def made(where=None, score=10.0, objective="edp", run="run-1", found=None, network="net"):
    return entry(where or space(), objective, MAPPING, (score, 7, 3.5),
                 Provenance(network, run, "gamma", "0", 100, found))


@pytest.fixture(params=["sqlite", "postgresql"])
def library(request, tmp_path):
    place = tmp_path / "store.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Library(place) as opened:
        yield opened


def test_an_entry_comes_back_equal_and_its_mapping_too(library):
    assert library.add([made()]) == 1
    assert library.entries() == (made(found=datetime.fromisoformat(library.entries()[0].found)),)
    assert library.entries()[0].loops() == MAPPING
    assert library.get(made().id[:5]).score == 10.0


def test_only_a_better_mapping_takes_the_place_of_another(library):
    assert library.add([made(score=10.0, run="first")]) == 1
    assert library.add([made(score=10.0, run="equal")]) == 0
    assert library.add([made(score=11.0, run="worse")]) == 0
    assert [one.run_id for one in library.entries()] == ["first"]
    other = Mapping((MAPPING.levels[0], replace(MAPPING.levels[1], loops=(Loop("P", 2),)), *MAPPING.levels[2:]))
    better = entry(space(), "edp", other, (9.0, 6, 3.0), Provenance("net", "better", "auto", "1", 5, datetime.now(UTC)))
    assert library.add([better]) == 1
    assert library.entries() == (better,)


def test_what_decides_the_cost_tells_entries_apart_and_names_do_not(library):
    bigger = replace(MACHINE, levels=(MACHINE.levels[0], replace(MACHINE.levels[1], capacity_bytes=1e6),
                                      *MACHINE.levels[2:]))
    different = [
        made(), made(space(out_channels=32)), made(space(stride=2)), made(space(machine=bigger)),
        made(objective="latency"), made(objective="edp; latency<=1e6"), made(space(tiling="perfect")),
        made(space(constraints=Constraints(loops={"GLB": ("K",)}))),
        made(space(machine=replace(MACHINE, footprint="box"))),
    ]
    assert library.add(different) == len({one.id for one in different}) == len(different)
    assert library.add([made(space("other")), made(space(machine=replace(MACHINE, name="mine")), network="x")]) == 0
    assert library.add([made(space(machine=replace(MACHINE, vector=VectorUnit(4.0))))]) == 0


def test_the_nearest_entry_differs_in_the_fewest_sizes(library):
    library.add([made(space("two", in_channels=4, out_channels=32)), made(space("far", out_channels=512)),
                 made(space("near", out_channels=32)), made(space("three", out_size=(8, 8), in_channels=4))])
    assert library.nearest([space()], "edp", 1)[0][0].layer == "near"
    assert [one.layer for one in library.nearest([space()], "edp", 3)[0]] == ["near", "far", "two"]
    assert library.nearest([space(in_channels=4, out_channels=33)], "edp", 1)[0][0].layer == "two"


def test_of_equally_distant_entries_the_same_machine_objective_and_space_come_first_then_the_newest(library):
    bigger = replace(MACHINE, levels=(MACHINE.levels[0], replace(MACHINE.levels[1], capacity_bytes=1e6),
                                      *MACHINE.levels[2:]))
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    rising = [made(space("machine", bigger), found=new), made(space("objective"), objective="energy", found=new),
              made(space("tiling", tiling="perfect"), found=old), made(space("strided", stride=2), found=new),
              made(space("same"), found=old)]
    for count, one in enumerate(rising):
        library.add([one])
        expected = "tiling" if one.layer == "strided" else one.layer
        assert library.nearest([space()], "edp", 1)[0][0].layer == expected, count


def test_other_forms_and_structures_lend_nothing(library):
    flat = preset("accel-b")
    library.add([made(space(machine=flat)), made(MapSpace(depthwise(
        "dw", channels=8, kernel=(3, 3), out_size=(4, 4)), MACHINE))])
    assert library.nearest([space()], "edp", 3) == [()]


def test_pruning_removes_what_was_named_and_nothing_else(library):
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    library.add([made(found=old), made(space(out_channels=32), found=new),
                 made(space(machine=replace(preset("accel-b"), name="b")), found=old)])
    assert library.prune(before=datetime(2026, 1, 15, tzinfo=UTC), accelerator="b") == 1
    assert library.prune(before=datetime(2026, 1, 15, tzinfo=UTC)) == 1
    assert len(library.entries()) == 1
    assert library.prune(accelerator=MACHINE.name) == 1
    with pytest.raises(InputError, match="which entries"):
        library.prune()


def test_an_export_holds_every_entry(library, tmp_path):
    library.add([made(), made(space(out_channels=32))])
    assert library.export_json(tmp_path / "library.json") == 2
    plain = json.loads((tmp_path / "library.json").read_text())
    assert {one["layer"] for one in plain} == {"layer"}
    assert plain[0]["mapping"][0] == ["DRAM", [["K", 1, None]], ["I", "W", "O"]]


def test_an_unknown_entry_is_one_clear_error(library):
    library.add([made(), made(space(out_channels=32))])
    with pytest.raises(InputError, match=r"entry: must be in the library.*tilewright list library"):
        library.get("zzz")
    with pytest.raises(InputError, match="unambiguous"):
        library.get("")


def score(number, turn, kind):
    return 100.0 - (turn * 7 + number * 3 + kind) % 50


WRITER = """
import sys
from dataclasses import replace
from tilewright.store import Library
sys.path.insert(0, sys.argv[3])
from test_library import made, score, space
number = int(sys.argv[2])
library = Library(sys.argv[1], 30.0)
for turn in range(10):
    library.add([made(space(out_channels=8 + kind), score(number, turn, kind), run=f"w{number}-{turn}")
                 for kind in range(5)])
library.close()
"""


def test_writers_in_many_processes_neither_double_nor_lose_the_best(library, request):
    here = str(request.path.parent)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, library.url, str(number), here], stderr=subprocess.PIPE)
               for number in range(2)]
    assert [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers] == [(b"", 0)] * 2
    found = library.entries()
    assert len(found) == 5
    for kind in range(5):
        best = min(score(number, turn, kind) for turn in range(10) for number in range(2))
        kept = next(one for one in found if one.sizes["K"] == 8 + kind)
        assert kept.score == best
        number, turn = (int(part) for part in kept.run_id[1:].split("-"))
        assert score(number, turn, kind) == best


def test_a_shelf_says_once_that_the_library_cannot_be_reached(tmp_path):
    (tmp_path / "file").write_text("")
    shelf = RunLibrary(tmp_path / "file" / "store.sqlite")
    assert shelf.nearest([space()], "edp", 3) == [()]
    first = shelf.warning
    assert "The library of mappings is left out" in first
    assert "\n" not in first
    shelf.add(made())
    assert (shelf.warning, shelf.added) == (first, 0)


def test_a_shelf_waits_before_it_writes_more_and_writes_the_rest_at_the_end(tmp_path, monkeypatch):
    calls, add = [], Library.add
    monkeypatch.setattr(Library, "add", lambda self, found: calls.append(len(found)) or add(self, found))
    monkeypatch.setattr("tilewright.store.library.WRITE_SECONDS", 1e9)
    shelf = RunLibrary(tmp_path / "store.sqlite")
    for score in (5.0, 4.0, 6.0):
        shelf.add(made(score=score))
    assert (calls, shelf.added) == ([1], 1)
    shelf.close()
    assert (calls, shelf.added) == ([1, 2], 2)
    with Library(tmp_path / "store.sqlite") as library:
        assert [one.score for one in library.entries()] == [4.0]


def test_a_shelf_goes_on_when_the_server_goes(postgres, postgres_url, monkeypatch):
    monkeypatch.setattr("tilewright.store.library.WRITE_SECONDS", 0.0)
    shelf = RunLibrary(postgres_url, busy_seconds=2)
    shelf.add(made())
    assert (shelf.added, shelf.warning) == (1, "")
    postgres.stop()
    try:
        shelf.add(made(score=1.0))
        shelf.add(made(score=0.5))
        assert shelf.added == 1
        assert "left out" in shelf.warning
    finally:
        postgres.start()
    with Library(postgres_url) as library:
        assert [one.score for one in library.entries()] == [10.0]


def test_a_shelf_does_not_wait_for_a_locked_store_twice(tmp_path):
    import sqlite3

    place = tmp_path / "store.sqlite"
    Library(place).entries()
    with sqlite3.connect(place, isolation_level=None) as holder:
        holder.execute("begin immediate")
        shelf = RunLibrary(place, busy_seconds=0.2)
        shelf.add(made())
        shelf.add(made())
        assert "locked" in shelf.warning
    holder.close()


def test_a_library_is_missing_until_something_is_written(tmp_path):
    with Library(tmp_path / "runs.sqlite") as library:
        assert library.missing and library.add([made()]) == 1 and not library.missing


def test_without_a_library_of_another_database_one_is_told(tmp_path):
    with pytest.raises(InputError, match="Install the database's driver"):
        Library("nosuch://somewhere").entries()

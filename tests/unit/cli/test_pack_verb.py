"""``tilewright pack`` and `tw.pack`: what they tell, write and refuse."""

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.packing import Buffers, read_buffers, verify_packing

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
BUFFERS = Buffers(("a", "<b>", "c"), np.array([0, 2, 3]), np.array([3, 9, 9]), np.array([4, 4, 4]),
                  gaps=((), ((4, 6),), ()))


@pytest.fixture
def here(tilewright, tmp_path):
    (tmp_path / "b.csv").write_text(EXAMPLE)
    return tilewright


def test_buffers_are_placed_with_page_json_and_csv(here, tmp_path):
    found = here("pack", "b.csv", "--capacity", "12", "--out", "o/placed.csv", "--json", "o.json", "--report", "o.html")
    assert found.code == 0 and "Placed. Height 12: no placement is lower." in found.out
    told = json.loads((tmp_path / "o.json").read_text())
    assert (told["placed"], told["height"], told["bound"], told["proven"], told["capacity"]) == (True, 12, 12, True, 12)
    buffers = read_buffers(tmp_path / "o/placed.csv")
    offsets = [row["offset"] for row in told["buffers"]]
    assert verify_packing(buffers, np.array(offsets), 12) == []
    written = [line.rpartition(",") for line in (tmp_path / "o/placed.csv").read_text().splitlines()[1:]]
    assert [int(offset) for _, _, offset in written] == offsets
    assert "\n".join(["id,lower,upper,size", *(row for row, _, _ in written), ""]) == EXAMPLE
    assert "Addresses over time" in (tmp_path / "o.html").read_text()
    assert told["command"] == "tilewright pack b.csv --capacity 12"


@pytest.mark.parametrize("capacity", ["29", "1000000", "9" * 30])
def test_room_to_spare_is_enough(here, capacity):
    found = here("pack", "b.csv", "--capacity", capacity, "--json", "-")
    assert found.code == 0 and json.loads(found.out)["height"] == 12


def test_no_placement_is_told_apart_from_none_in_time(here, tmp_path):
    none = here("pack", "b.csv", "--capacity", "11", "--out", "o.csv")
    assert none.code == 1 and "there is no placement within 11" in none.out
    assert not (tmp_path / "o.csv").exists()
    late = here("pack", "b.csv", "--capacity", "12", "--seconds", "0", "--method", "cp-sat")
    assert late.code in (0, 1)  # with no time to speak of it may end either way, but never as impossible
    assert "there is no placement" not in late.out


def test_without_a_capacity_the_least_height_is_found(here):
    found = here("pack", "b.csv", "--json", "-")
    assert found.code == 0 and json.loads(found.out)["height"] == 12
    banked = json.loads(here("pack", "b.csv", "--bank", "6", "--json", "-").out)
    assert (banked["height"], banked["proven"]) == (16, True) and banked["command"].endswith(" --bank 6")


@pytest.mark.parametrize(("words", "told"), [
    (("none.csv",), "none.csv"), (("b.csv", "--capacity", "0"), "--capacity"),
    (("b.csv", "--capacity", "3"), "size of b1"), (("b.csv", "--bank", "3"), "within the bank, 3"),
    (("b.csv", "--bank", "0"), "--bank"),
    (("b.csv", "--method", "exat"), "Did you mean exact"), (("b.csv", "--seconds", "-1"), "seconds"),
    (("b.csv", "--seconds", "nan"), "seconds")])
def test_what_is_asked_wrongly_is_one_error(here, words, told):
    found = here("pack", *words)
    assert found.code == 2 and told in found.err and "Traceback" not in found.err


@pytest.mark.parametrize(("row", "told"), [("a" * 200_000 + ",0,3,4", "cells"), ("a,0,3,4,5", "Got 'a,0,3,4,5'")])
def test_a_row_that_is_none_is_one_error(here, tmp_path, row, told):
    (tmp_path / "row.csv").write_text(f"id,lower,upper,size\n{row}\n")
    found = here("pack", "row.csv")
    assert found.code == 2 and told in found.err and found.err.startswith("Error: row.csv")


def test_from_python_with_a_drawing():
    run = tw.pack(BUFFERS)
    assert run.placed and run.packing.height == 8 and run.offsets.keys() == {"a", "<b>", "c"}
    figure = run.plot()
    boxes = [trace for trace in figure.data if trace.type == "bar"]
    assert sorted(width for trace in boxes for width in trace.width) == [2, 3, 3, 6]  # <b> in two
    assert {name[0] for trace in boxes for name in trace.customdata} == {"a", "&lt;b&gt;", "c"}
    assert run.to_pandas("buffers").shape == (3, 6)
    with pytest.raises(InputError, match="seconds"):
        tw.pack(BUFFERS, seconds=float("inf"))
    none = tw.pack(BUFFERS, 7)
    assert not none.placed and none.offsets == {} and none.plain["buffers"][0]["offset"] is None
    assert [trace.type for trace in none.plot().data] == ["scatter", "scatter"]


def test_results_in_the_place_of_their_inputs_are_told_and_written(here, tmp_path):
    (tmp_path / "b.csv").write_text("id,lower,upper,size,inplace\nx,0,2,4,\nsum,1,3,4,x\ny,0,2,4,\n")
    found = here("pack", "b.csv", "--out", "o.csv", "--json", "o.json")
    assert "Height 8: no placement is lower" in found.out
    assert "1 of 1 buffers that may be in the place of another are" in found.out
    assert "Live peak 12 at time 1: the most that lives at one time, each buffer at a place of its own." in found.out
    tree = json.loads((tmp_path / "o.json").read_text())
    assert tree["buffers"][1]["inplace"] == ["x"] and tree["live_peak"] == 12
    assert verify_packing(read_buffers(tmp_path / "o.csv"), np.array([row["offset"] for row in tree["buffers"]])) == []


def test_packers_are_listed(tilewright):
    assert {"exact", "hill-climb", "cp-sat"} <= set(tilewright("list", "packers").out.split())

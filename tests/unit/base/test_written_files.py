import csv
import io
import os
from pathlib import Path

import pytest

import tilewright
from tilewright.api import ready_place
from tilewright.base import InputError, csv_text, write_whole


def _full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, call):
    place = tmp_path / "run.json"
    write_whole(place, "old\n")
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), _full)
        with pytest.raises(InputError, match="No space left on device"):
            write_whole(place, "new\n")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert place.read_text() == "old\n"
    write_whole(place, "new µ\r\n")
    assert place.read_bytes() == "new µ\r\n".encode()


def test_links_and_modes_stay(tmp_path):
    place, link = tmp_path / "run.json", tmp_path / "last.json"
    place.write_text("old")
    place.chmod(0o640)
    link.symlink_to(place)
    write_whole(link, "new")
    assert link.is_symlink() and place.read_text() == "new"
    assert place.stat().st_mode & 0o777 == 0o640


def test_devices_are_written_and_not_replaced():
    write_whole(Path("/dev/null"), "text")
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(Path("/dev/full"), "text")
    assert not Path("/dev/null").is_file() and not Path("/dev/full").is_file()


@pytest.mark.parametrize("place", ["/proc/none/run.json", "/proc/run.json", "/dev/null/run.json", "/proc"])
def test_places_that_cannot_be_written_are_refused_beforehand(place):
    with pytest.raises(InputError, match="can be written"):
        ready_place(place)


def test_folders_are_made_and_nothing_is_left_in_them(tmp_path):
    assert ready_place(tmp_path / "a" / "b" / "run.json").parent.is_dir()
    assert not list((tmp_path / "a" / "b").iterdir())


def test_no_cell_is_taken_for_a_formula():
    cells = ["=1+1", "+SUM(A1)", "-a", "@x", "\t=1", "\r=1", "-1.5", "+2e3", "a=b", "", -3, None, 0.5]
    read = next(csv.reader(io.StringIO(csv_text([cells]), newline="")))
    assert read == ["'=1+1", "'+SUM(A1)", "'-a", "'@x", "'\t=1", "'\n=1", "-1.5", "+2e3", "a=b", "", "-3", "", "0.5"]


def test_all_files_of_results_are_written_in_one_place():
    straight = ("write_text(", "write_bytes(", 'open("w', "csv.writer(", ".savez(")
    # Foreign tables, scratch files of a process, bytes that the one place writes, and files that are but locks.
    allowed = {"base/caching.py", "base/files.py", "benchmarks/figures.py", "benchmarks/foreign_tools.py",
               "interop/maestro/writing.py", "interop/scalesim/writing.py", "reproduce/mse_fig5_3.py",
               "search/checkpoint.py", "search/layers.py"}
    root = Path(tilewright.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") for line in path.read_text().splitlines()
             if any(word in line.replace(" write_text(", "").replace("def write_text(", "") for word in straight)}
    assert found <= allowed

"""What every foreign format keeps to."""

import subprocess
import sys

import pytest

from tilewright.base import InputError
from tilewright.interop import FORMATS, Foreign, format_of

WRONG = ["", "\n", "{", "a: [1, 2", "\x00\x01", "1e400", "name: x\nlevels: []\n", "[]", "a,b,c\n1,2\n"]


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_format_says_what_it_is(name):
    form = FORMATS.get(name)
    assert form.name == name
    assert form.summary


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("file", ["none.yaml", "none.onnx", "none.csv", "none.m", "none.cfg", "none.json", "none"])
def test_missing_files_are_no_error_until_they_are_read(name, file, tmp_path):
    form = FORMATS.get(name)
    assert isinstance(form.holds(tmp_path / file), frozenset)
    with pytest.raises(InputError):
        form.read([tmp_path / file], {})


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("text", WRONG)
def test_what_is_nothing_is_refused_in_one_error(name, text, tmp_path):
    form = FORMATS.get(name)
    for suffix in (".yaml", ".onnx", ".csv", ".m", ".cfg", ".json"):
        path = tmp_path / f"file{suffix}"
        path.write_text(text)
        assert isinstance(form.holds(path), frozenset)
        with pytest.raises(InputError):
            form.read([path], {})


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS.get(name).write])
def test_nothing_cannot_be_written(name):
    with pytest.raises(InputError):
        FORMATS.get(name).write(Foreign())


def test_our_own_files_are_of_no_foreign_format(tmp_path):
    for text in ("name: x\nlevels: []\n", "name: x\nlayers: []\n", "name: x\noperators: []\n"):
        path = tmp_path / "ours.yaml"
        path.write_text(text)
        assert format_of(path) is None


def test_a_file_of_ours_loads_no_code_of_a_format(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("operator: x\nlevels: []\n")
    code = ("import sys; from tilewright.interop import format_of; assert format_of(sys.argv[1]) is None; "
            "print(*[name for name in sys.modules if name.startswith('tilewright.interop.')])")
    told = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    assert set(told.split()) == {f"tilewright.interop.{name}" for name in ("formats", "notes", "signs")}

"""What one process works out and the next one reads: whole or not at all, of the present sources, and not too many."""

import os

import pytest

from tilewright.base import KeptValues, keeping


def never():
    pytest.fail("what is kept was made again")


def test_what_is_kept_is_read_by_the_next_process(tmp_path):
    value = KeptValues(tmp_path / "folder", "kind", 9).value("key", lambda: {"of": [1, 2]})
    again = KeptValues(tmp_path / "folder", "kind", 9).value("key", never)
    assert value == again == {"of": [1, 2]}
    assert KeptValues(tmp_path / "folder", "kind", 9).value("other", lambda: 5) == 5
    assert KeptValues(tmp_path / "folder", "other", 9).value("key", lambda: 6) == 6


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"",
                                    lambda content: content[:40] + b"?", lambda content: b"more" + content])
def test_what_is_damaged_is_made_again(tmp_path, damage):
    values = KeptValues(tmp_path, "kind", 9)
    values.value("key", lambda: 1)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert values.value("key", lambda: 2) == 2
    assert values.value("key", never) == 2


def test_values_of_other_sources_are_not_used_and_go(tmp_path, monkeypatch):
    (tmp_path / "engine").write_text("stays")
    KeptValues(tmp_path, "kind", 9).value("key", lambda: 1)
    monkeypatch.setattr(keeping, "model_sources", lambda: "others")
    assert KeptValues(tmp_path, "kind", 9).value("key", lambda: 2) == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 2 and "engine" in names and any(name.startswith("kind-others-") for name in names)


def test_where_there_are_many_the_older_half_goes(tmp_path):
    values = KeptValues(tmp_path, "kind", 4)
    for at in range(4):
        before = {*tmp_path.iterdir()}
        values.value(str(at), lambda at=at: at)
        (path,) = {*tmp_path.iterdir()} - before
        os.utime(path, (at, at))
    values.value("4", lambda: 4)
    assert len([*tmp_path.iterdir()]) == 3
    assert [values.value(key, never) for key in "234"] == [2, 3, 4]
    assert values.value("0", lambda: "made") == "made"


def test_where_nothing_can_be_written_values_are_made(tmp_path):
    (tmp_path / "file").write_text("")
    values = KeptValues(tmp_path / "file", "kind", 4)
    assert [values.value("key", lambda: 1), values.value("key", lambda: 2)] == [1, 2]

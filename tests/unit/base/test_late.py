"""Modules that load when something of them is first asked for."""

import sys

import pytest

from tilewright.base import late_module


def test_a_late_module_loads_when_something_of_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "asked_for_late.py").write_text("VALUE = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    late = late_module("asked_for_late")
    assert not hasattr(late, "__wrapped__")
    assert "asked_for_late" not in sys.modules
    assert late.VALUE == 3
    assert "asked_for_late" in sys.modules
    monkeypatch.setattr(sys.modules["asked_for_late"], "VALUE", 4)
    assert late.VALUE == 4
    with pytest.raises(AttributeError, match="NONE"):
        _ = late.NONE

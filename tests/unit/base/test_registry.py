"""Registries whose members load when they are asked for."""

import sys

import pytest

from tilewright.base import InputError, Registry

REGISTRY = Registry("toy", "toys_of_wood", "toys_of_tin")


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Two modules that register members of a registry, neither of them loaded."""
    registry = Registry("toy", "toys_of_wood", "toys_of_tin")
    monkeypatch.setattr(sys.modules[__name__], "REGISTRY", registry)
    for name, members in (("wood", ("horse", "train")), ("tin", ("soldier",))):
        lines = [f"REGISTRY.register({member!r}, also=({member[0]!r},))({member!r})" for member in members]
        (tmp_path / f"toys_of_{name}.py").write_text("\n".join((f"from {__name__} import REGISTRY", *lines)))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield registry
    for home in ("toys_of_wood", "toys_of_tin"):
        sys.modules.pop(home, None)


def test_homes_load_in_turn_until_one_has_what_is_asked_for(toys):
    assert "toys_of_wood" not in sys.modules
    assert "train" in toys and toys.get("h") == "horse"
    assert "toys_of_wood" in sys.modules and "toys_of_tin" not in sys.modules
    assert toys.get("soldier") == "soldier"
    assert [*toys] == ["horse", "train", "soldier"]


@pytest.mark.parametrize("ask", [list, len, lambda toys: "soldier" in toys])
def test_all_homes_load_for_what_needs_all(toys, ask):
    ask(toys)
    assert "toys_of_tin" in sys.modules and [*toys] == ["horse", "train", "soldier"]


def test_an_unknown_name_is_held_against_the_members_of_all_homes(toys):
    with pytest.raises(InputError, match="soldier"):
        toys.get("soldiers")


def test_what_comes_from_elsewhere_stands_after_the_members_of_homes_and_takes_no_name_of_theirs(toys):
    toys.register("kite")("kite")
    assert [*toys] == ["horse", "train", "soldier", "kite"]
    with pytest.raises(ValueError, match="registered twice"):
        toys.register("soldier")("another")

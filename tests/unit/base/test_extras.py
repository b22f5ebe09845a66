"""Optional libraries: known without loading them, and missed with the command that brings them."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tilewright.base import EXTRAS, InputError, has_extra, require_extra

SETTINGS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))


def test_no_extra_is_always_there():
    assert has_extra("")


@pytest.mark.parametrize("extra", list(EXTRAS))
def test_extras_are_those_that_the_package_offers(extra):
    assert extra in SETTINGS["project"]["optional-dependencies"]
    assert f"tilewright[{extra}]" in EXTRAS[extra][1]


def test_a_missing_extra_is_an_error_with_the_command_that_mends_it(monkeypatch):
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        require_extra("learn", "mapper", "gradient")
    assert (caught.value.field, caught.value.given) == ("mapper", "gradient")
    assert "pip install torch==" in caught.value.mend


def test_looking_for_an_extra_loads_nothing():
    code = "from tilewright.base import has_extra; has_extra('learn'); import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

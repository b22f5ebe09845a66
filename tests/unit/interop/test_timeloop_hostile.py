"""Files of Timeloop's that are made to be endless, unreadable or misleading: one clear error each, and soon."""

import pytest

from tilewright.base import InputError
from tilewright.interop import format_of, load_timeloop

PROBLEM = """problem:
  shape:
    name: small
    dimensions: [K, P]
    data_spaces:
    - {name: Weights, projection: [[[K]]]}
    - {name: Inputs, projection: [[[P]]]}
    - {name: Outputs, projection: [[[K]], [[P]]], read_write: true}
  instance: {K: 4, P: 8}
"""
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
HOSTILE = {
    "aliases of aliases": (BOMB + "problem:\n  shape: *a11\n", "must have fewer than 1,000,000 values"),
    "a deep nest": ("problem: " + "[" * 600 + "]" * 600, "must nest at most 100 deep"),
    "thousands of digits": (PROBLEM.replace("K: 4", "K: " + "9" * 5000), "must be YAML"),
    "hundreds of digits": (PROBLEM.replace("K: 4", "K: " + "9" * 400), "must be a finite number"),
    "a code page": (PROBLEM.replace("small", "sm\udce4ll"), "must be a readable text file in UTF-8"),
    "a long name": ("{{include_text('" + "a" * 5000 + "')}}\n", "must include files that exist"),
    "a folder": ("{{include_text('.')}}\n", "must include files that exist"),
    "an endless macro": ("{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}\n", "must be a Jinja2 template"),
    "attributes of attributes": ("{{ ''.__class__.__mro__ }}\n", "must be a Jinja2 template"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_in_one_short_error(name, tmp_path):
    text, message = HOSTILE[name]
    path = tmp_path / "hostile.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as error:
        load_timeloop([path])
    assert message in str(error.value)
    assert len(str(error.value)) < 6000


@pytest.mark.parametrize("text", ["{{include_text('none.yaml')}}\n", "{% if %}\n"])
def test_broken_templates_are_timeloops_all_the_same(text, tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    assert format_of(path).name == "timeloop"


def test_a_mark_of_byte_order_is_passed_over(tmp_path):
    path = tmp_path / "marked.yaml"
    path.write_text("\ufeff" + PROBLEM.replace("\n", "\r\n"))
    assert format_of(path, "network").name == "timeloop"
    assert load_timeloop([path]).operator.sizes == {"K": 4, "P": 8}

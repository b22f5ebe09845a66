import pytest
from ruamel.yaml import YAML

from tilewright.base import line_of, path_text

TEXT = """a:
  - b: 1
    c: &shared {d: 2}
  - <<: *shared
    e: 3
"""


@pytest.mark.parametrize(("where", "line"), [
    ((), 1), (("a",), 1), (("a", 0, "b"), 2), (("a", 0, "c", "d"), 3), (("a", 1), 4), (("a", 1, "e"), 5),
    (("a", 0, "missing"), 2), (("a", 9), 1), (("a", 1, "d"), 4),
])
def test_lines_are_those_of_the_deepest_part_in_the_file(where, line):
    assert line_of(YAML(typ="rt", pure=True).load(TEXT), where) == line


def test_paths_read_as_people_write_them():
    assert path_text(("levels", 1, "keeps", 0)) == ".levels[1].keeps[0]"
    assert path_text(()) == ""

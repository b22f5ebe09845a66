"""MAGMA's job lists: rows as the release has them, and what is wrong with others."""

import pytest

from tilewright.api import load_network
from tilewright.base import InputError
from tilewright.interop import format_of

ROWS = """1,1,1024,4096,1,1,1,1,0
1,2,48,192,56,56,3,3,1
1,3,1,116,14,14,3,3,2

1,4,20,3072,768,1,1,1,3
"""


def test_rows_are_read_as_they_are(tmp_path):
    file = tmp_path / "insts0.csv"
    file.write_text(ROWS)
    assert format_of(file).name == "magma"
    dense, conv, depthwise, product = (node.operator for node in load_network(str(file)).mac_nodes)
    assert dense.macs == 1024 * 4096 and dense.sizes["M"] == 1
    assert conv.sizes == {"N": 1, "K": 48, "C": 192, "P": 54, "Q": 54, "R": 3, "S": 3}
    assert depthwise.kind == "depthwise" and depthwise.macs == 116 * 12 * 12 * 9
    assert product.sizes["M"] == 20 and product.macs == 20 * 3072 * 768
    assert [node.inputs for node in load_network(str(file)).mac_nodes] == [()] * 4


MALFORMED = [
    ("1,1,64,64,1,1,1,1", "must have the columns"), ("1,1,64,64,1,1,1,1,4", "type: must be a whole number from 0 to 3"),
    ("1,1,0,64,1,1,1,1,0", "K: must be a whole number from 1"), ("1,1,64,x,1,1,1,1,0", "C: must be a whole number"),
    ("1,1,64,64,2,1,1,1,0", "must have 1 for what a row of type 0"), ("1,1,8,8,8,1,3,1,3", "row of type 3"),
    ("1,1,8,8,2,2,3,3,1", "a kernel R by S no larger"), ("1,1,8,99999999999,2,2,1,1,1", "must be a whole number"),
    ("1,1,64,64,1,1,1,1,0,0", "must have the columns"), ("-1,1,64,64,1,1,1,1,0", "thread: must be a whole number"),
    ("1,one,64,64,1,1,1,1,0", "layer: must be a whole number"), ("1,1,64,64,1,1,1,1,", "type: .*nothing"),
    ("1,1,8,8,4,-4,3,3,1", "X: must be a whole number from 1"), ("1,1,8,8,4.5,4,3,3,1", "Y: must be a whole number"),
    ("1,1,8,8,9,2,3,3,2", "a kernel R by S no larger"), ("1;1;64;64;1;1;1;1;0", "must have the columns"),
    ("1,1,\uff16,64,1,1,1,1,0", "K: must be a whole number"),
]


@pytest.mark.parametrize(("row", "says"), MALFORMED)
def test_wrong_rows_are_told_with_their_line(row, says, tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text(ROWS + row + "\n")
    with pytest.raises(InputError, match=says) as told:
        load_network(str(file))
    assert str(told.value).startswith("jobs.csv:6")

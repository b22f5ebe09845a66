from pathlib import Path

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.packing import PACKERS, Buffers, buffers_csv, pack, read_buffers, verify_packing

INSTANCES = Path(__file__).parent / "minimalloc"
CAPACITY = 1_048_576


def some(*rows, alignment=(), gaps=(), inplace=()):
    """Return buffers called a, b, c ... of ``(lower, upper, size)``."""
    lower, upper, size = np.array(rows).T
    return Buffers(tuple("abcdefgh"[:len(rows)]), lower, upper, size, np.array(alignment), gaps, inplace)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "peak"), [
    ("A", CAPACITY), ("B", CAPACITY), ("C", 1_039_360), ("F", CAPACITY), ("H", CAPACITY), ("K", CAPACITY)])
def test_challenge_instances_are_placed_at_their_live_peaks(name, peak):
    buffers = read_buffers(INSTANCES / f"{name}.1048576.csv")
    found = pack(buffers, peak, seconds=None)
    assert verify_packing(buffers, found.offsets, peak) == []
    assert found.bound == found.height == peak == buffers.live_peak and found.proven
    assert found.nodes < 30_000


def test_that_a_quick_method_finds_nothing_proves_nothing():
    found = pack(read_buffers(INSTANCES / "C.1048576.csv"), 1_039_360, "greedy-by-size")
    assert found.offsets is None and not found.proven and found.bound == 1_039_360


def test_of_two_in_one_place_the_smaller_is_spared():
    found = pack(some((0, 2, 8), (1, 3, 4), (1, 2, 5), inplace=((), ("a",), ())))
    assert (found.height, found.bound, found.proven) == (13, 13, True)


def test_the_example_is_placed_at_12_and_shown_impossible_at_11():
    buffers = read_buffers(INSTANCES / "input.12.csv")
    assert buffers.ids == ("b1", "b2", "b3", "b4", "b5") and buffers.live_peak == 12
    found = pack(buffers)
    assert (found.height, found.bound, found.proven) == (12, 12, True)
    none = pack(buffers, 11)
    assert none.offsets is None and none.proven and none.height == 0



@pytest.mark.parametrize("method", ["exact", "cp-sat"])
def test_what_the_live_peak_does_not_show_is_proven(method):
    if method == "cp-sat":
        pytest.importorskip("ortools")
    # At 4, a and f would lie at opposite ends, and c, which lives with both, between them, beside a for d and f for e.
    buffers = some((0, 3, 1), (0, 1, 3), (1, 4, 1), (1, 2, 2), (3, 4, 2), (2, 5, 1), (4, 5, 3))
    least = pack(buffers, method=method)
    assert buffers.live_peak == 4 and least.height == least.bound == 5 and least.proven
    assert verify_packing(buffers, least.offsets, least.height) == []
    none = pack(buffers, 4, method)
    assert none.offsets is None and none.proven


def test_parts_that_share_no_time_do_not_raise_one_another():
    buffers = some((0, 3, 4), (1, 3, 5), (3, 5, 6), (4, 9, 2))
    found = pack(buffers)
    assert found.height == 9 and found.proven


@pytest.mark.parametrize("method", list(PACKERS))
def test_every_method_keeps_to_alignments_and_gaps(method):
    if method == "cp-sat":
        pytest.importorskip("ortools")
    buffers = some((0, 6, 3), (0, 2, 5), (2, 4, 5), (1, 6, 2), (4, 6, 3), alignment=(1, 4, 2, 3, 1),
                   gaps=((), (), (), ((2, 4),), ()))
    found = pack(buffers, method=method)
    assert verify_packing(buffers, found.offsets, found.height) == []
    assert found.bound <= found.height


@pytest.mark.parametrize("method", list(PACKERS))
def test_no_buffer_lies_in_two_banks(method):
    if method == "cp-sat":
        pytest.importorskip("ortools")
    # At most 8 live at one time, but two of 3 and one of 2 need three banks of 4.
    buffers = some((0, 4, 3), (0, 4, 3), (1, 4, 2), (5, 7, 2), (5, 7, 2), alignment=(1, 1, 1, 2, 3))
    found = pack(buffers, method=method, bank=4)
    assert verify_packing(buffers, found.offsets, found.height, bank=4) == [] and found.bound <= found.height
    if method in {"exact", "cp-sat"}:
        assert (found.height, found.proven, pack(buffers, method=method).height) == (10, True, 8)
        none = pack(buffers, 9, method, bank=4)
        assert none.offsets is None and none.proven
    # All sizes are multiples of the alignment, but ends of banks are not.
    even = some((0, 2, 2), (0, 2, 2), alignment=(1, 2))
    assert verify_packing(even, pack(even, method=method, bank=3).offsets, bank=3) == []


def test_a_gap_is_used():
    buffers = some((0, 9, 4), (3, 5, 4), gaps=(((3, 5),), ()))
    assert pack(buffers).height == 4 and pack(some((0, 9, 4), (3, 5, 4))).height == 8


def test_one_place_suits_the_alignments_of_all_that_share_it():
    """Multiples of 4 and of 6: the second place begins at 12, not at 6."""
    buffers = some((0, 3, 5), (2, 5, 5), (0, 3, 5), (2, 5, 5), alignment=(4, 6, 4, 6), inplace=((), ("a",), (), ("c",)))
    found = pack(buffers)
    assert not verify_packing(buffers, found.offsets) and (found.height, sorted(found.offsets)) == (17, [0, 0, 12, 12])


def test_a_result_takes_the_place_of_what_it_is_made_of():
    buffers = some((0, 3, 4), (2, 5, 4), (4, 7, 4), (2, 4, 4), inplace=((), ("a",), ("b",), ()))
    found = pack(buffers)
    assert (found.height, found.proven) == (8, True) and len(set(found.offsets[:3].tolist())) == 1
    many = some(*((at, at + 2, 4) for at in range(8)), inplace=((), *((one,) for one in "abcdefg")))
    assert (pack(many).height, pack(many).proven) == (4, True)  # of more choices than are tried
    assert verify_packing(buffers, np.array([0, 1, 0, 8])) and not verify_packing(buffers, np.array([0, 0, 4, 4]))


FAULTS = {"overlap": ([0, 3, 8], "a and b share address 3 at time 1"), "below": ([-1, 4, 8], "a begins at -1, below 0"),
          "above": ([0, 4, 9], "c ends at 13, above the capacity of 12"), "unaligned": ([0, 5, 9], "no multiple of 2"),
          "count": ([0, 4], "3 buffers have 2 offsets"), "banks": ([0, 7, 11], "c lies in two banks, from 11 to 15")}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_verifier_rejects(fault):
    buffers = some((0, 3, 4), (1, 5, 4), (2, 9, 4), alignment=(1, 2, 1))
    assert verify_packing(buffers, np.array([0, 4, 8]), 12) == []
    offsets, told = FAULTS[fault]
    assert any(told in line for line in verify_packing(buffers, np.array(offsets), 12, bank=12))


def test_the_verifier_knows_gaps_and_that_ends_are_not_included():
    buffers = some((0, 6, 4), (2, 4, 4), (6, 8, 4), gaps=(((2, 4),), (), ()))
    assert verify_packing(buffers, np.zeros(3, int)) == []
    assert verify_packing(some((0, 6, 4), (2, 5, 4), gaps=(((2, 4),), ())), np.zeros(2, int))


def test_the_same_placement_every_time_and_from_orders_of_rows(tmp_path):
    text = (INSTANCES / "B.1048576.csv").read_text()
    buffers = read_buffers(INSTANCES / "B.1048576.csv")
    assert (pack(buffers, CAPACITY).offsets == pack(buffers, CAPACITY).offsets).all()
    head, *rows = text.splitlines()
    (tmp_path / "b.csv").write_text("\n".join([head, *reversed(rows)]))
    turned = read_buffers(tmp_path / "b.csv")
    assert verify_packing(turned, pack(turned, CAPACITY).offsets, CAPACITY) == []


def test_time_ends_it_with_the_best_there_is():
    buffers = read_buffers(INSTANCES / "A.1048576.csv")
    found = pack(buffers, seconds=0.0)
    assert not found.proven and found.height > found.bound and 0 < found.gap < 1
    assert verify_packing(buffers, found.offsets) == []
    assert pack(buffers, CAPACITY, seconds=0.0).offsets is None


def test_files_come_back_as_they_were(tmp_path):
    buffers = some((0, 9, 4), (3, 5, 4), (2, 9, 3), (4, 10, 9), alignment=(1, 8, 1, 1),
                   gaps=(((3, 5), (6, 7)), (), (), ()), inplace=((), (), (), ("a", "c")))
    (tmp_path / "b.csv").write_text(buffers_csv(buffers, np.array([0, 8, 0, 0])))
    assert (tmp_path / "b.csv").read_text().splitlines()[1::3] == ["a,0,9,4,1,3-5 6-7,,0", "d,4,10,9,1,,a c,0"]
    again = read_buffers(tmp_path / "b.csv")
    assert again.gaps == buffers.gaps and again.inplace == buffers.inplace
    assert (again.alignment == [1, 8, 1, 1]).all() and (again.upper == [9, 5, 9, 10]).all()


def test_an_end_is_the_last_time(tmp_path):
    (tmp_path / "b.csv").write_text("buffer_id,start,end,size,gaps\nx,0,2,5,1-1\n")
    found = read_buffers(tmp_path / "b.csv")
    assert found.upper.tolist() == [3] and found.gaps == (((1, 2),),)


WRONG = {
    "ends-before": ("id,lower,upper,size\na,0,3,4\nb,5,4,4\n", "b.csv:3 upper"),
    "ends-at-once": ("id,lower,upper,size\na,3,3,4\n", "b.csv:2 upper"),
    "shared-id": ("id,lower,upper,size\na,0,3,4\na,1,2,4\n", "b.csv:3 id"),
    "no-id": ("id,lower,upper,size\n,0,3,4\n", "b.csv:2 id"),
    "negative-size": ("id,lower,upper,size\na,0,3,-4\n", "b.csv:2 size"),
    "no-size": ("id,lower,upper,size\na,0,3,\n", "b.csv:2 size"),
    "zero-size": ("id,lower,upper,size\na,0,3,0\n", "b.csv:2 size"),
    "fraction": ("id,lower,upper,size\na,0,3,1.5\n", "b.csv:2 size"),
    "negative-time": ("id,lower,upper,size\na,-1,3,1\n", "b.csv:2 lower"),
    "huge": ("id,lower,upper,size\na,0,3,9999999999999999999\n", "b.csv:2 size"),
    "too-much": (f"id,lower,upper,size\na,0,3,{2**61}\nb,0,3,{2**61}\n", "size"),
    "few-cells": ("id,lower,upper,size\na,0,3\n", "b.csv:2"),
    "many-cells": ("id,lower,upper,size\na,0,3,4,5\n", "b.csv:2"),
    "no-column": ("id,lower,size\na,0,3\n", "b.csv:1"),
    "both-ends": ("id,lower,upper,end,size\na,0,3,2,1\n", "b.csv:1"),
    "twice": ("id,buffer,lower,upper,size\na,a,0,3,1\n", "b.csv:1"),
    "unknown-column": ("id,lower,upper,size,colour\na,0,3,1,red\n", "b.csv:1"),
    "nothing": ("", "b.csv:1"),
    "no-rows": ("id,lower,upper,size\n", "b.csv:1"),
    "zero-alignment": ("id,lower,upper,size,alignment\na,0,3,1,0\n", "b.csv:2 alignment"),
    "gap-outside": ("id,lower,upper,size,gaps\na,0,3,1,2-4\n", "b.csv:2 gaps"),
    "gap-backwards": ("id,lower,upper,size,gaps\na,0,9,1,4-2\n", "b.csv:2 gaps"),
    "gap-of-all": ("id,lower,upper,size,gaps\na,0,3,1,0-3\n", "b.csv:2 gaps"),
    "gap-window": ("id,lower,upper,size,gaps\na,0,9,1,2-3@0:1\n", "b.csv:2 gaps"),
    "place-of-none": ("id,lower,upper,size,inplace\na,0,3,1,\nb,2,4,1,c\n", "b.csv:3 inplace"),
    "place-of-what-lives-on": ("id,lower,upper,size,inplace\na,0,9,1,\nb,2,4,1,a\n", "b.csv:3 inplace"),
    "place-of-what-begins-with-it": ("id,lower,upper,size,inplace\na,0,3,1,\nb,0,4,1,a\n", "b.csv:3 inplace"),
    "place-of-what-is-gone": ("id,lower,upper,size,inplace\na,0,2,1,\nb,2,4,1,a\n", "b.csv:3 inplace"),
    "gap-text": ("id,lower,upper,size,gaps\na,0,9,1,2\n", "b.csv:2 gaps"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_in_a_file_is_told_with_its_line(fault, tmp_path):
    text, where = WRONG[fault]
    (tmp_path / "b.csv").write_text(text)
    with pytest.raises(InputError) as told:
        read_buffers(tmp_path / "b.csv")
    assert told.value.field == where


def test_what_is_asked_wrongly_is_told():
    buffers = some((0, 3, 4), (1, 5, 9))
    for capacity, method, field in ((8, "exact", "size of b"), (0, "exact", "capacity"), (20, "exat", "packer")):
        with pytest.raises(InputError) as told:
            pack(buffers, capacity, method)
        assert told.value.field == field
    with pytest.raises(InputError, match="a number for each of the 2"):
        Buffers(("a", "b"), np.array([0]), np.array([1, 1]), np.array([1, 1]))

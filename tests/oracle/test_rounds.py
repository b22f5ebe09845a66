"""Latency of arrays that run in rounds, against RTL simulation of Gemmini (`tilewright.validation.gemmini`)."""

import json
from itertools import combinations
from statistics import median

import pytest

from tilewright.base import InputError
from tilewright.cost import Sequencer, round_latency
from tilewright.hardware import preset
from tilewright.mapping import dataflow
from tilewright.validation import gemmini_cases
from tilewright.validation.gemmini import FILE
from tilewright.workload import matmul

CASES = list(gemmini_cases())


@pytest.fixture(scope="module")
def ours():
    return [round_latency(case.operator, case.accelerator, case.mapping) for case, _, _ in CASES]


def error(predicted):
    return median(abs(cycles / rtl - 1) for cycles, (_, rtl, _) in zip(predicted, CASES, strict=True))


def agreement(predicted):
    """Share of pairs of cases that are in the order of their RTL cycles."""
    pairs = list(combinations(zip(predicted, (rtl for _, rtl, _ in CASES), strict=True), 2))
    signs = [((a > b) - (a < b)) == ((x > y) - (x < y)) for (a, x), (b, y) in pairs]
    return sum(signs) / len(signs)


def test_cycles_are_nearer_to_rtl_than_timeloops(ours):
    cycles, theirs = [found.cycles for found in ours], [timeloop for _, _, timeloop in CASES]
    assert error(cycles) < 0.09
    assert error(theirs) > 0.25
    assert agreement(cycles) > 0.96 > agreement(theirs)


def test_no_latency_is_below_its_parts(ours):
    for found in ours:
        assert found.cycles >= max(found.compute_cycles, found.load_cycles)
        assert found.cycles <= found.compute_cycles + found.load_cycles + found.store_cycles


def test_weights_enter_behind_the_rows_of_the_block_before():
    """One block of 16 by 16 weights, 64 rows in four runs: 64 rows, four issues; 5 rows: the block enters for 16."""
    machine = preset("accel-a")  # 16 x 16
    for rows, cycles in ((64, 64 + 4), (5, 16 + 1), (2, 16 + 1), (20, 16 + 4 + 2)):
        operator = matmul("product", m=rows, n=16, k=16)
        found = round_latency(operator, machine, dataflow("weight-stationary", operator, machine), Sequencer())
        assert (found.compute_cycles, found.rounds) == (cycles, 1)


def test_the_first_load_and_the_last_store_overlap_nothing():
    """One round on 16 x 16 units: rows of the outputs that are begun are stored whole, four cycles each."""
    machine = preset("accel-a")
    rate = machine.memories[0].bandwidth.shared
    for m, n, stored in ((5, 3, 4), (17, 1, 8), (16, 16, 64), (33, 1, 12)):
        operator = matmul("product", m=m, n=n, k=16)
        found = round_latency(operator, machine, dataflow("weight-stationary", operator, machine), Sequencer())
        assert (found.rounds, found.store_cycles) == (1, stored)
        assert found.load_cycles == pytest.approx((m + n) * 16 / rate)
        assert found.first_cycles == min(found.load_cycles, found.compute_cycles)
        assert found.cycles == found.load_cycles + found.compute_cycles + stored


def test_rounds_can_be_asked_for_from_the_command_line(capsys, monkeypatch, tmp_path, ours):
    from tilewright.cli import main

    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(FILE.read_text().splitlines()[:3]) + "\n")
    monkeypatch.setattr("sys.argv", ["tilewright", "evaluate", "--cases", str(file), "--rounds"])
    with pytest.raises(SystemExit) as end:
        main()
        raise SystemExit(0)
    assert not end.value.code
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["cycles"] for line in printed] == [found.cycles for found in ours[:3]]


def test_machines_without_an_array_of_two_sides_are_refused():
    operator, machine = matmul("product", m=4, n=4, k=4), preset("simba-like")
    with pytest.raises(InputError, match="an array of two sides"):
        round_latency(operator, machine, dataflow("weight-stationary", operator, machine))

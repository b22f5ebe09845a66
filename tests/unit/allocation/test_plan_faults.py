"""What `verify` finds: each kind of planted fault."""

from dataclasses import replace
from functools import cache

import pytest

import tilewright as tw
from tilewright.allocation import (
    SOLVERS,
    Bus,
    PlanSearch,
    Prices,
    ResidencyProblem,
    plan_record,
    read_pads,
    verify,
)
from tilewright.allocation import (
    OperationStep as Op,
)
from tilewright.allocation import (
    ResidentTensor as Held,
)

TOLD = {"command": "", "machine": "", "assumptions": (), "solver": "exact", "objective": ("bytes",)}


@cache
def plan():
    """Return a plan in which tensors stay, leave, come again, move, and are written in place."""
    tensors = (Held("x", 8, outside=True), Held("w", 4, weights=True, outside=True), Held("a", 8),
               Held("b", 8), Held("c", 8), Held("y", 8, leaves=True))
    steps = (Op("f", (0, 1), (2,), 9, 2.0), Op("g", (2,), (3,), 9), Op("h", (3, 0), (3,), 9),
             Op("i", (3,), (4,), 9), Op("j", (4, 2), (5,), 9))
    pads = read_pads("in=16B,weights=16B,out=16B", 4, Bus(4.0, 1.0), Bus(8.0, 0.5))
    search = PlanSearch(ResidencyProblem("planted", steps, tensors, pads), Prices(ResidencyProblem(
        "planted", steps, tensors, pads), ("bytes",)))
    SOLVERS.get("exact")(search)
    found = plan_record(search, TOLD, (), 1)
    assert {one.kind for one in found.transfers} == {"load", "store", "move"}
    return found


def changed(what, at, **how):
    """Return the plan with one entry of a list changed."""
    entries = getattr(plan(), what)
    return replace(plan(), **{what: (*entries[:at], replace(entries[at], **how), *entries[at + 1:])})


def without(what, at):
    entries = getattr(plan(), what)
    return replace(plan(), **{what: (*entries[:at], *entries[at + 1:])})


def stay(name, place=0, **how):
    return [at for at, one in enumerate(plan().residency) if plan().tensors[one.tensor].name == name and all(
        getattr(one, key) == value for key, value in how.items())][place]


def transfer(kind, place=0):
    return [at for at, one in enumerate(plan().transfers) if one.kind == kind][place]


def leaving():
    return next(at for at, one in enumerate(plan().transfers)
                if one.kind == "store" and plan().tensors[one.tensor].name == "y")


def crowded():
    """Return a place on a scratchpad where another tensor lies at the same time."""
    for at, one in enumerate(plan().residency):
        for other in plan().residency:
            together = one.first <= other.last and other.first <= one.last
            if one.pad == other.pad and one.tensor != other.tensor and together:
                return at, other.address
    raise AssertionError


FAULTS = {
    "beyond the end": (lambda: changed("residency", stay("a"), address=12), "within their scratchpad"),
    "before the beginning": (lambda: changed("residency", stay("a"), address=-4), "within their scratchpad"),
    "between words": (lambda: changed("residency", stay("w"), address=2), "addresses are those of words"),
    "on top of another": (lambda: changed("residency", crowded()[0], address=crowded()[1]), "overwritten|every word"),
    "not there": (lambda: without("residency", stay("w")), "find what they touch"),
    "in the wrong role": (lambda: changed("residency", stay("w"), pad=0), "hold what they may"),
    "after its life": (lambda: changed("residency", stay("w"), last=3), "within the life"),
    "before its life": (lambda: changed("residency", stay("b"), first=0), "within the life"),
    "twice at a time": (lambda: replace(plan(), residency=(*plan().residency, plan().residency[0])), "one scratchpad"),
    "loaded where it is made": (lambda: changed("residency", stay("b", begins="made"), begins="load"), "is made by"),
    "made where it is loaded": (lambda: changed("residency", stay("x"), begins="made"), "is made by"),
    "no such scratchpad": (lambda: changed("residency", 0, pad=9), "that there are"),
    "no such tensor": (lambda: changed("transfers", 0, tensor=99), "that there are"),
    "a load left out": (lambda: without("transfers", transfer("load")), "begin with a transfer"),
    "a load too many": (lambda: replace(plan(), transfers=(*plan().transfers, plan().transfers[0])), "begin a stay"),
    "a move left out": (lambda: without("transfers", transfer("move")), "begin with a transfer"),
    "a move from elsewhere": (lambda: changed("transfers", transfer("move"), origin=1),
                              "moves begin where|that there are"),
    "a move without a way": (lambda: replace(plan(), pads=tuple(replace(pad, across=None) for pad in plan().pads)),
                             "have a way"),
    "a result not stored": (lambda: without("transfers", leaving()), "leaves the network"),
    "a store from elsewhere": (lambda: changed("transfers", leaving(), origin=1), "stores begin where"),
    "a store too early": (lambda: changed("transfers", leaving(), step=2), "stores begin where"),
    "part of a tensor": (lambda: changed("transfers", 0, bytes=4), "whole tensors"),
    "bytes left out": (lambda: replace(plan(), tally=replace(plan().tally, loaded_bytes=3)), "bytes are those"),
    "cycles left out": (lambda: replace(plan(), tally=replace(plan().tally, dma_cycles=3)), "cycles are those"),
    "energy left out": (lambda: replace(plan(), tally=replace(plan().tally, energy_pj=3.0)), "energy is that"),
    "a better score": (lambda: replace(plan(), score=plan().score - 1), "score is that"),
    "a bound above": (lambda: replace(plan(), bound=plan().score + 1), "no bound is above"),
    "a proof with a gap": (lambda: replace(plan(), bound=plan().score - 8, proven=True), "leaves no gap"),
    "no stall": (lambda: replace(plan(), stalls=plan().stalls[1:]), "has a stall"),
    "waits backwards": (lambda: replace(plan(), stalls=(-1, *plan().stalls[1:])), "has a stall"),
    "begins too soon": (lambda: replace(plan(), stalls=(plan().stalls[0] - 1, *plan().stalls[1:])), "what they need"),
    "ends too soon": (lambda: replace(plan(), simulated_cycles=plan().simulated_cycles - 1), "simulated cycles"),
    "ends too late": (lambda: replace(plan(), simulated_cycles=plan().simulated_cycles + 9), "simulated cycles"),
    "waits too long": (lambda: replace(plan(), stalls=(*plan().stalls[:-1], 999), simulated_cycles=(
        plan().simulated_cycles + 999 - plan().stalls[-1])), "simulated cycles"),
    "no word": (lambda: changed("pads", 0, word_bytes=0), "room, words and ways"),
    "no room": (lambda: changed("pads", 0, capacity_bytes=-4), "room, words and ways"),
    "no rate": (lambda: changed("pads", 0, dram=Bus(0.0)), "room, words and ways"),
    "a rate that is no number": (lambda: changed("pads", 0, across=Bus(float("nan"))), "room, words and ways"),
    "less than nothing": (lambda: changed("tensors", 0, size_bytes=-8), "tensors have a size"),
    "larger than all": (lambda: changed("tensors", 0, size_bytes=10**30), "within their scratchpad"),
    "for nothing": (lambda: replace(plan(), objective=()), "have an objective"),
    "operations in another order": (
        lambda: replace(plan(), steps=(*plan().steps[1:], plan().steps[0])), "within the life"),
}


def test_the_plan_itself_holds():
    assert verify(plan()) == ()


def test_what_is_never_used_of_a_scratchpad_takes_no_memory():
    assert verify(changed("pads", 0, capacity_bytes=4 * 10**18)) == ()
    far = changed("pads", 0, capacity_bytes=4 * 10**18)
    where = next(at for at, one in enumerate(far.residency) if one.pad == 0)
    moved = replace(far.residency[where], address=10**18)
    with pytest.raises(tw.InputError, match="Give larger words"):
        verify(replace(far, residency=(*far.residency[:where], moved, *far.residency[where + 1:])))


@pytest.mark.parametrize("kind", FAULTS)
def test_every_planted_fault_is_found(kind):
    import re

    made, rule = FAULTS[kind]
    faults = verify(made())
    assert any(re.search(rule, fault.rule) for fault in faults), faults


def test_what_was_stored_before_it_was_written_again_is_found():
    """A tensor that is stored, written in place, and loaded again without another store is out of date."""
    tensors = (Held("x", 8, outside=True), Held("a", 8), Held("b", 8),
               Held("y", 8, leaves=True))
    steps = (Op("f", (0,), (1,)), Op("g", (1,), (1,)), Op("h", (0,), (2,)), Op("i", (1, 2), (3,)))
    problem = ResidencyProblem("stale", steps, tensors, read_pads("24B"))
    search = PlanSearch(problem, Prices(problem, ("bytes",)))
    SOLVERS.get("naive")(search)
    found = plan_record(search, TOLD, (), 1)
    assert verify(found) == ()
    store = next(at for at, one in enumerate(found.transfers) if (one.kind, one.tensor, one.step) == ("store", 1, 1))
    stale = replace(found, transfers=(*found.transfers[:store], *found.transfers[store + 1:]))
    assert any("is loaded" in fault.rule for fault in verify(stale))


def test_a_file_tells_the_gap_of_its_score_and_bound(tmp_path):
    file = _written(tmp_path, replace(plan(), bound=plan().score / 2, proven=False))
    assert tw.open_plan(file).gap == 1.0
    for gap in ("0.5", '"none"'):
        (tmp_path / "other.json").write_text(file.read_text().replace('"gap": 1.0', f'"gap": {gap}'))
        with pytest.raises(tw.InputError, match="gap"):
            tw.open_plan(tmp_path / "other.json")


def test_the_verb_tells_what_does_not_hold(tmp_path, capsys, monkeypatch):
    import sys

    from tilewright.cli import main

    for record, code in ((plan(), 0), (FAULTS["not there"][0](), 1)):
        place = tw.open_plan(_written(tmp_path, record)).place
        monkeypatch.setattr(sys, "argv", ["tilewright", "verify", place])
        with pytest.raises(SystemExit) as end:
            main()
            sys.exit(0)
        assert int(end.value.code or 0) == code
    assert "Not so: operations find what they touch" in capsys.readouterr().out


def _written(folder, record):
    from tilewright.api.residing import ScratchpadPlan

    return ScratchpadPlan(record).write(folder / "plan.json")

"""The exercises are legal mappings in files that anybody can evaluate, and their figures are those printed."""

import pytest

from tilewright.api import evaluate
from tilewright.validation import validate
from tilewright.validation.timeloop_tutorial import FOLDER, exercises

EXERCISES = {exercise.name: exercise for exercise in exercises()}


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_a_legal_mapping_in_a_file(name):
    exercise = EXERCISES[name]
    machine = FOLDER / f"{exercise.theirs['machine']}.yaml"
    found = evaluate(FOLDER / f"{name}.yaml", exercise.operator, machine)
    assert found.legal
    assert found.cost.macs == exercise.theirs["macs"]


@pytest.mark.parametrize("name", EXERCISES)
def test_what_was_printed_adds_up(name):
    printed = EXERCISES[name].theirs["fj_per_mac"]
    assert sum(value for part, value in printed.items() if part != "Total") == pytest.approx(printed["Total"], abs=0.02)


def test_designs_agree_but_for_windows():
    (outcome,) = validate(["timeloop-designs"]).outcomes
    counts = [figure for figure in outcome.findings.figures if figure.quantity == "counts"]
    assert len(counts) == 3 * (8 + 9)
    assert {figure.case.rpartition(" ")[2] for figure in counts if figure.error} == {
        "shared_glb.I.reads", "shared_glb.I.fills", "DRAM.I.reads"}
    assert all(figure.error <= 0 for figure in counts)


def test_counts_and_cycles_agree_and_only_drains_part_energies():
    (outcome,) = validate(["timeloop-tutorial"]).outcomes
    found = {each.quantity: each.found for each in outcome.judged}
    assert found["counts"].worst_error == found["cycles"].worst_error == 0
    assert found["energy without drains"].median_error < 1e-6
    above = [figure for figure in outcome.findings.figures if figure.quantity == "energy"]
    assert all(figure.error > 0.003 for figure in above if figure.case != "00")

"""What may vary of a machine, and its section in accelerator files."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import DesignSpace, NumberRange, load_accelerator, load_design_space, preset, with_numbers

FILE = """\
name: mine
technology: 45nm
frequency_mhz: 200
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - memory: DRAM
    keeps: [inputs, weights, outputs]
    kind: dram
    dram_type: LPDDR4
  - memory: SG
    keeps: [inputs, weights, outputs]
    kind: sram
    capacity_bytes: 108 kB
    bandwidth_words_per_cycle: {read: 32, write: 32}
  - fanout: PEs
    shape: [14, 12]
  - memory: SL
    keeps: [inputs, weights, outputs]
    kind: sram
    capacity_bytes: 512
compute: {name: MAC, type: int, width_bits: 8}
design:
  vary:
    PEs.x: {from: 1, to: 64}
    PEs.y: [1, 2, 4, 8, 16]
    SG.capacity_bytes: {from: 1 KiB, to: 1 MiB, step: 1 KiB}
  follow:
    SG.bandwidth_words_per_cycle.read: {of: PEs.x, times: 2}
  optional: [SL]
"""


def test_a_section_says_what_varies_and_what_follows(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(FILE)
    space = load_design_space(tmp_path / "mine.yaml")
    assert space.accelerator == load_accelerator(FILE)
    assert [len(one) for one in space.ranges.values()] == [64, 5, 1024]
    chosen = {("PEs", "x"): 7.0, ("PEs", "y"): 4.0, ("SG", "capacity_bytes"): 2048.0}
    machine = with_numbers(space.accelerator, space.numbers(chosen))
    assert machine.level("PEs").shape == (7, 4)
    assert machine.level("SG").bandwidth.read == 14
    assert [[level.name for level in one.accelerator.levels] for one in space.structures()] == [
        ["DRAM", "SG", "PEs", "SL"], ["DRAM", "SG", "PEs"]]


@pytest.mark.parametrize(("old", "new", "told"), [
    ("PEs.x: {", "PEz.x: {", ":24 .*must name one of the levels DRAM, SG, PEs, SL"),
    ("PEs.x: {", "PEs.instances: {", ":24 .*a number that a design may choose.*Of PEs: x, y"),
    ("PEs.x: {", "SL.energy: {", "capacity_bytes"),
    ("to: 64", "to: 0.5", "must not end"),
    ("from: 1, to: 64", "from: 1", "give from and to"),
    ("from: 1, to: 64", "from: 1.5, to: 64", "whole numbers"),
    ("[1, 2, 4", "[1, 4, 2", "ascending"),
    ("[1, 2, 4, 8, 16]", "[]", "vary.PEs.y"),
    ("of: PEs.x", "of: SL.x", "must follow a number that varies"),
    ("optional: [SL]", "optional: [DRAM]", "outermost"),
    ("optional: [SL]", "optional: [XX]", "must be one of DRAM"),
    ("step: 1 KiB", "step: -1", "greater than 0"),
    ("1 MiB", "1 Mib", "units"),
    ("vary:", "varyy:", "Did you mean vary"),
    ("times: 2", "times: 0", "greater than 0"),
    ("SG.bandwidth_words_per_cycle.read:", "PEs.y:", "must not be among"),
])
def test_a_section_that_is_wrong_names_line_field_and_rule(old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(InputError, match=told):
        load_design_space(FILE.replace(old, new))


def test_without_a_section_arrays_and_limited_memories_vary() -> None:
    space = DesignSpace.of(preset("edge-s2"))
    assert list(space.ranges) == [("SG", "capacity_bytes"), ("PEs", "instances"), ("SL", "capacity_bytes")]
    assert space.numbers({("PEs", "instances"): 6.0}) == {
        ("PEs", "instances"): 6.0, ("PEs", "x"): 6.0, ("PEs", "y"): 1.0}


def test_a_range_ends_with_what_is_enough() -> None:
    assert NumberRange(1, 100, 3).up_to(8) == NumberRange(1, 10, 3)
    assert NumberRange(1, 100, 3).up_to(10) == NumberRange(1, 10, 3)
    assert NumberRange(1, 100, 3).up_to(1e9) == NumberRange(1, 100, 3)
    assert NumberRange.listed((2, 4, 9)).up_to(5) == NumberRange.listed((2, 4, 9))
    assert NumberRange.listed((2, 4, 9)).up_to(1) == NumberRange.listed((2,))


def test_places_and_values_of_a_range() -> None:
    steps, some = NumberRange(2.0, 11.0, 4.0), NumberRange.listed((1.0, 5.0, 25.0))
    assert (len(steps), steps.value(2), steps.place(9.9), steps.place(0.0), steps.place(99.0)) == (3, 10.0, 1, 0, 2)
    assert (len(some), some.value(2), some.place(24.0), some.place(0.1), some.place(99.0)) == (3, 25.0, 1, 0, 2)


@pytest.mark.parametrize("one", [NumberRange(2.0, 11.0, 4.0), NumberRange(0.1, 7.0, 0.1), NumberRange(5.0, 5.0, 1.0),
                                 NumberRange.listed((1.0, 5.0, 25.0))])
def test_the_first_place_from_a_value_on_is_that_of_the_smallest_value_no_less(one: NumberRange) -> None:
    every = np.array([one.value(place) for place in range(len(one))])
    wanted = np.concatenate([every, np.nextafter(every, 99.0), np.nextafter(every, 0.0), [0.0, 99.0, np.inf]])
    expected = [next((place for place, value in enumerate(every) if value >= least), len(one) - 1) for least in wanted]
    assert one.first_places(wanted).tolist() == expected
    assert one.places(every).tolist() == [*range(len(one))]

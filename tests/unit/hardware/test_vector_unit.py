"""The ``vector:`` section of an accelerator file: read, written back, assumed where it is missing, and refused."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import VectorUnit, describe, dump_accelerator, load_accelerator, preset, preset_names

BASE = """
name: small
technology: given
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - {memory: DRAM, keeps: [inputs, weights, outputs], energy_pj_per_word: {read: 8, fill: 8, update: 8, drain: 8}}
  - {memory: Weights, keeps: [weights], capacity_bytes: 64, energy_pj_per_word: {read: 2, fill: 2, update: 2, drain: 2}}
  - {memory: Buffer, keeps: [inputs, outputs], capacity_bytes: 640,
     energy_pj_per_word: {read: 2, fill: 2, update: 2, drain: 2}}
  - {fanout: PEs, shape: [16, 12]}
compute: {energy_pj_per_mac: 0.5}
"""


def test_what_is_stated_is_read_and_written_back():
    machine = load_accelerator(BASE + "vector: {lanes: 32, memory: DRAM, energy_pj_per_operation: 0.25, "
                                      "operations_per_cycle: {softmax: 6.5, relu: 64}, folds: [bias, relu]}\n")
    assert machine.vector == VectorUnit(32, "DRAM", 0.25, (("softmax", 6.5), ("relu", 64)), ("bias", "relu"))
    assert machine.vector_unit == machine.vector and machine.vector_assumption == ""
    assert [machine.vector.rate(kind) for kind in ("softmax", "relu", "add")] == [6.5, 64, 32]
    assert load_accelerator(dump_accelerator(machine)) == machine
    assert ("vector unit at DRAM: 32 operations per cycle, softmax 6.5, relu 64, 0.25 pJ each; folds bias, relu"
            in describe(machine).splitlines())


def test_what_is_left_out_follows_from_the_machine():
    """The outermost memory on the chip that keeps inputs and outputs; the energy of a multiply-accumulate."""
    assert load_accelerator(BASE + "vector: {lanes: 3}\n").vector_unit == VectorUnit(3, "Buffer", 0.5)
    alone = load_accelerator(BASE.replace("keeps: [inputs, outputs]", "keeps: [inputs]") + "vector: {lanes: 3}\n")
    assert alone.vector_unit.memory == "DRAM"


def test_a_machine_that_says_nothing_has_a_row_of_lanes_and_says_so():
    machine = load_accelerator(BASE)
    assert machine.vector is None
    assert machine.vector_unit == VectorUnit(13, "Buffer", 0.5)  # 13 * 13 <= 16 * 12 < 14 * 14
    assert machine.vector_assumption.startswith("Vector unit (the machine states none): 13 lanes, the square root of ")
    assert "vector" not in dump_accelerator(machine) and "vector unit" not in describe(machine)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_states_its_unit_and_whose_figures_they_are(name):
    machine = preset(name)
    assert machine.vector is not None
    told = [line for line in machine.sources if "our assumption" in line and ("ector unit" in line or "lanes" in line)]
    assert told or name == "nvdla-like"
    assert load_accelerator(dump_accelerator(machine)).vector == machine.vector


MALFORMED = [
    ("{}", "arch.vector.lanes", "is required"),
    ("[32]", "arch.vector", "must be"),
    ("{lanes: 0}", "arch.vector.lanes", "must be greater than or equal to 0.000001"),
    ("{lanes: -4}", "arch.vector.lanes", "must be greater than or equal to 0.000001"),
    ("{lanes: many}", "arch.vector.lanes", "must be a valid number"),
    ("{lanes: .inf}", "arch.vector.lanes", "must be"),
    ("{lanes: .nan}", "arch.vector.lanes", "must be"),
    ("{lanes: 4, lane: 5}", "arch.vector.lane", "is not a known field; Did you mean lanes?"),
    ("{lanes: 4, memory: Bufer}", "arch.vector.memory", "must be one of the memories DRAM, Weights, Buffer"),
    ("{lanes: 4, memory: PEs}", "arch.vector.memory", "must be one of the memories DRAM, Weights, Buffer"),
    ("{lanes: 4, memory: [DRAM]}", "arch.vector.memory", "must be a valid string"),
    ("{lanes: 4, energy_pj_per_operation: -1}", "arch.vector.energy_pj_per_operation", "must be greater than or equal"),
    ("{lanes: 4, energy_pj_per_operation: low}", "arch.vector.energy_pj_per_operation", "must be a valid number"),
    ("{lanes: 4, operations_per_cycle: {softmx: 2}}", "arch.vector.operations_per_cycle", "Did you mean soft"),
    ("{lanes: 4, operations_per_cycle: {softmax: 0}}", "arch.vector.operations_per_cycle.softmax", "must be greater"),
    ("{lanes: 4, operations_per_cycle: 8}", "arch.vector.operations_per_cycle", "must be a valid dictionary"),
    ("{lanes: 4, folds: [Relu]}", "arch.vector.folds", "must name kinds of vector work; Got 'Relu'; Did you mean relu"),
    ("{lanes: 4, folds: [relu, bias, relu]}", "arch.vector.folds", "must name each kind once"),
    ("{lanes: 4, folds: relu}", "arch.vector.folds", "must be a valid list"),
]


@pytest.mark.parametrize(("section", "field", "rule"), MALFORMED)
def test_what_is_wrong_is_one_clear_error_with_its_line(section, field, rule):
    with pytest.raises(InputError) as error:
        load_accelerator(f"{BASE}vector: {section}\n")
    assert error.value.field.endswith(field) and ":13 " in error.value.field
    assert rule in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("unit", "field"), [
    (VectorUnit(0), "lanes"), (VectorUnit(4, "L3"), "memory"), (VectorUnit(4, None, -1), "energy_pj_per_operation"),
    (VectorUnit(4, operations_per_cycle=(("add", 1.0), ("add", 2.0))), "operations_per_cycle"),
    (VectorUnit(4, folds=("everything",)), "folds")])
def test_machines_made_in_python_are_checked_too(unit, field):
    with pytest.raises(InputError, match=rf"small\.vector\.{field}"):
        replace(load_accelerator(BASE), vector=unit)

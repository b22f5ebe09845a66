"""The ``sparsity:`` section: read, written back, and refused with the line where it is wrong."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import Compression, Elision, Sparsity, dump_accelerator, load_accelerator, preset

BASE = """\
name: small
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - memory: DRAM
    keeps: [inputs, weights, outputs]
    energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}
  - memory: Buffer
    keeps: [inputs, weights]
    capacity_bytes: 1 KiB
    energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}
compute: {energy_pj_per_mac: 1}
"""
SECTION = """\
sparsity:
  capacity: worst
  formats:
    DRAM: {weights: csr, inputs: {format: run-length, bits: 4}}
  skip:
    Buffer: {weights: [inputs]}
  gate:
    DRAM: {outputs: [inputs, weights]}
  compute: {skip: [inputs], gate: [weights]}
"""


def test_a_section_is_read_and_written_back():
    machine = load_accelerator(BASE + SECTION)
    assert machine.sparsity == Sparsity(
        (Compression("DRAM", "weights", "csr"), Compression("DRAM", "inputs", "run-length", 4)),
        (Elision("Buffer", "skip", "weights", ("inputs",)), Elision("DRAM", "gate", "outputs", ("inputs", "weights"))),
        ("weights",), ("inputs",), "worst")
    again = load_accelerator(dump_accelerator(machine))
    assert again.sparsity == machine.sparsity


def test_ranks_of_axes_and_dense_tiles_are_read_and_written_back():
    text = "sparsity: {capacity: dense, formats: {DRAM: {weights: uop-cp, outputs: {format: uop-cp, bits: 4}}}}\n"
    machine = load_accelerator(BASE + text)
    assert machine.sparsity == Sparsity(
        (Compression("DRAM", "weights", "uop-cp"), Compression("DRAM", "outputs", "uop-cp", 4)), capacity="dense")
    assert load_accelerator(dump_accelerator(machine)).sparsity == machine.sparsity


def test_an_empty_section_is_a_statement_and_none_is_none():
    assert load_accelerator(BASE + "sparsity: {}\n").sparsity == Sparsity()
    assert preset("accel-b").sparsity is None


@pytest.mark.parametrize(("line", "where", "rule"), [
    ("  formats: {DRAM: {weights: zip}}", "arch.sparsity.formats.DRAM.weights", "must be one of uncompressed"),
    ("  formats: {Dram: {weights: csr}}", "arch.sparsity.formats.Dram", "must be one of the memories DRAM, Buffer"),
    ("  formats: {Buffer: {outputs: csr}}", "arch.sparsity.formats.Buffer.outputs", "must be a tensor that Buffer"),
    ("  formats: {DRAM: {weight: csr}}", "arch.sparsity.formats.DRAM.weight", "Did you mean weights?"),
    ("  formats: {DRAM: {weights: {format: bitmask, bits: 3}}}", "arch.sparsity.formats.DRAM.weights", "takes no bits"),
    ("  formats: {DRAM: {weights: {format: csr, bits: 99}}}", "arch.sparsity.formats.DRAM.weights.bits", "1 to 32"),
    ("  skip: {DRAM: {weights: [weights]}}", "arch.sparsity.skip.DRAM.weights", "must name other tensors"),
    ("  skip: {DRAM: {weights: [outputs]}}", "arch.sparsity.skip.DRAM.weights", "must name operands"),
    ("  skip: {DRAM: {weights: []}}", "arch.sparsity.skip.DRAM.weights", "at least one operand"),
    ("  compute: {skip: [input]}", "arch.sparsity.compute.skip", "Did you mean inputs?"),
    ("  compute: {skip: [inputs], gate: [inputs]}", "arch.sparsity.compute.gate", "skipped too"),
    ("  skipp: {}", "arch.sparsity.skipp", "Did you mean skip?"),
])
def test_what_is_wrong_is_told_with_its_line(line, where, rule):
    with pytest.raises(InputError) as error:
        load_accelerator(f"{BASE}sparsity:\n{line}\n")
    assert str(error.value).startswith("<text>:14 ") and where in str(error.value) and rule in str(error.value)


def test_gating_and_skipping_the_same_zeros_is_refused():
    twice = "sparsity:\n  skip: {DRAM: {weights: [inputs]}}\n  gate: {DRAM: {weights: [inputs]}}\n"
    with pytest.raises(InputError, match="gated or skipped on each operand, once"):
        load_accelerator(BASE + twice)
    machine = load_accelerator(BASE)
    with pytest.raises(InputError, match=r"small\.sparsity\.formats\.Nowhere"):
        replace(machine, sparsity=Sparsity((Compression("Nowhere", "weights", "csr"),)))

"""The machines of Ruby's evaluation: Eyeriss-like, Simba-like, and the toy array of section III.

The paper takes its designs from the Timeloop and Accelergy exercises: 45 nm, LPDDR4, no limit on the DRAM's bandwidth
(delay is counted in multiply-accumulates). Our energies are those of the table ``45nm`` (each row with its source).
"""

from functools import cache

from tilewright.hardware import Accelerator, load_accelerator
from tilewright.workload import Operator, matmul

EXERCISES = ("Accelergy-Project/timeloop-accelergy-exercises, baseline_designs/example_designs, the designs that Ruby "
             "says it uses (section IV.A)")


@cache
def eyeriss_like(across: int = 14, down: int = 12) -> Accelerator:
    """Return the Eyeriss-like baseline (section II.B), with an array of another size where asked."""
    return load_accelerator(f"""\
name: eyeriss-like-{across}x{down}
technology: 45nm
frequency_mhz: 1000
word_bits: {{inputs: 16, weights: 16, outputs: 16}}
leakage: omitted
sources:
  - "Scratchpads of 12 inputs, 224 weights, 16 sums of 16 bits; buffer of 128 KiB, not for weights: Ruby, section II.B"
  - "Ports of buffers (16 words a cycle each way; 2 for each scratchpad), no limit at DRAM: {EXERCISES}"
levels:
  - {{memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4}}
  - memory: GLB
    keeps: [inputs, outputs]
    kind: sram
    capacity_bytes: 128 KiB
    bandwidth_words_per_cycle: {{read: 16, write: 16}}
    buffering: buffet
  - {{fanout: PEs, shape: [{across}, {down}], multicast: true, reduce: true}}
  - memory: Spads
    keeps: [inputs, weights, outputs]
    kind: registers
    partitions_bytes: {{inputs: 24, weights: 448, outputs: 32}}
    bandwidth_words_per_cycle: {{read: 6, write: 6}}
    buffering: buffet
compute: {{name: MAC, type: int, width_bits: 16}}
""")


@cache
def simba_like(elements: int, vectors: int, width: int) -> Accelerator:
    """Return the Simba-like machine (section IV.C): elements with so many vector units, each so wide."""
    return load_accelerator(f"""\
name: simba-like-{elements}x{vectors}x{width}
technology: 45nm
frequency_mhz: 1000
word_bits: {{inputs: 8, weights: 8, outputs: 24}}
leakage: omitted
sources:
  - "Buffer of 64 KiB, not for weights; elements of 64 KiB inputs, 32 KiB weights, 1.5 KiB sums: {EXERCISES}"
levels:
  - {{memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4}}
  - memory: GlobalBuffer
    keeps: [inputs, outputs]
    kind: sram
    capacity_bytes: 64 KiB
    buffering: buffet
  - {{fanout: PEs, shape: [{elements}, 1], multicast: true, reduce: true}}
  - memory: PEBuffers
    keeps: [inputs, weights, outputs]
    kind: sram
    partitions_bytes: {{inputs: 64 KiB, weights: 32 KiB, outputs: 1.5 KiB}}
    buffering: buffet
  - {{fanout: Lanes, shape: [{vectors}, {width}], multicast: true, reduce: true}}
compute: {{name: MAC, type: int, width_bits: 8}}
""")


@cache
def toy(elements: int) -> Accelerator:
    """Return the toy of section III.A: a line of elements with 1 KiB of scratchpad each, words of a byte."""
    return load_accelerator(f"""\
name: toy-{elements}
technology: 45nm
frequency_mhz: 1000
word_bits: {{inputs: 8, weights: 8, outputs: 8}}
leakage: omitted
sources:
  - "Two levels of memory, a line of elements, a scratchpad of 1 KiB in each: Ruby, section III.A"
levels:
  - {{memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4}}
  - {{fanout: PEs, shape: [{elements}, 1], multicast: true, reduce: true}}
  - memory: Spad
    keeps: [inputs, weights, outputs]
    kind: registers
    capacity_bytes: 1 KiB
    buffering: buffet
compute: {{name: MAC, type: int, width_bits: 8}}
""")


def vector(size: int) -> Operator:
    """Return the scaling of a vector, the smallest operator with one dimension."""
    return matmul(f"vector-{size}", m=size, n=1, k=1)

"""The machines of Ruby's evaluation: Eyeriss-like, Simba-like, and the toys of sections II.D and III.

The paper takes its designs from the Timeloop and Accelergy exercises: 45 nm, LPDDR4, no limit on the DRAM's bandwidth
(delay is counted in multiply-accumulates). Our energies are those of the table ``45nm`` (each row with its source).
"""

from functools import cache
from importlib.resources import files
from string import Template

from tilewright.hardware import Accelerator, load_accelerator
from tilewright.workload import Operator, matmul


def eyeriss_like(across: int = 14, down: int = 12) -> Accelerator:
    """Return the Eyeriss-like baseline (section II.B), with an array of another size where asked."""
    return _machine("eyeriss", across=across, down=down)


def simba_like(elements: int, vectors: int, width: int) -> Accelerator:
    """Return the Simba-like machine (section IV.C): elements with so many vector units, each so wide."""
    return _machine("simba", elements=elements, vectors=vectors, width=width)


def toy(elements: int) -> Accelerator:
    """Return the toy of section III.A: a line of elements with 1 KiB of scratchpad each, words of a byte."""
    return _machine("toy", elements=elements)


def grid(elements: int) -> Accelerator:
    """Return the toy of section II.D: a buffer of 1 KiB and a line of elements without storage, words of a byte."""
    return _machine("grid", elements=elements)


@cache
def _machine(design: str, **sizes: int) -> Accelerator:
    """Return a machine of ``data/ruby-<design>.yaml`` with an array of these sizes."""
    text = (files(__package__) / "data" / f"ruby-{design}.yaml").read_text(encoding="utf-8")
    return load_accelerator(Template(text).substitute(sizes))


def vector(size: int) -> Operator:
    """Return the scaling of a vector, the smallest operator with one dimension."""
    return matmul(f"vector-{size}", m=size, n=1, k=1)

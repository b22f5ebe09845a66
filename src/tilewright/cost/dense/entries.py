"""Kinds of what `walks` writes down of an operator on a machine, and `busiest_kernels` reads."""

from tilewright.hardware import PORTS

FILL, READ, EVICT, UPDATE, HELD, LOWEST, FIRST = range(7)
"""Kinds of entries: what crosses a boundary, what stays at home, and the instances from which sums are counted."""
PLAIN, SLIDING, LACKING = range(3)
"""Kinds of units, and of dimensions to the output."""
VIEWS = (*PORTS, "blocking")
"""The instance that is busiest at each port, and the one that blocks longest."""

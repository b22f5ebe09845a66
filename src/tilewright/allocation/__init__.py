"""Which tensor stays on which scratchpad, when, and at which address? So far: the address."""

from tilewright.allocation import packing

__all__ = ["packing"]

"""Which layers together? What stays on the chip between operators, and what that saves."""

from tilewright.fusion import flat, microbatch, trees

__all__ = ["flat", "microbatch", "trees"]

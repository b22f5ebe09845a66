"""Design methods, one module each (members of `DESIGNERS`)."""

from tilewright.codesign.methods import boxes, digamma, gradient, grid, two_loop

__all__ = ["boxes", "digamma", "gradient", "grid", "two_loop"]

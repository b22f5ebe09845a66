"""Design methods, one module each (members of `DESIGNERS`)."""

from tilewright.codesign.methods import boxes, digamma, grid, two_loop

__all__ = ["boxes", "digamma", "grid", "two_loop"]

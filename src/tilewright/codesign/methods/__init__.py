"""Design methods, one module each (members of `DESIGNERS`)."""

from tilewright.codesign.methods import boxes, digamma

__all__ = ["boxes", "digamma"]

"""Number types, and what the lanes of a machine do with words of each."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from tilewright.base import InputError

Kind = Literal["int", "fp"]

_ALIASES = {"float": "fp32", "double": "fp64", "half": "fp16", "bfloat16": "bf16", "bool": "int8", "mxfp4": "fp4+8/32",
            "mxfp6": "fp6+8/32", "mxfp8": "fp8+8/32", "mxint8": "int8+8/32", "nvfp4": "fp4+8/16"}
_NAMED = {"bf16": 16, "tf32": 32}
_TYPE = re.compile(r"(?:u?(int)|(fp|float))([1-9][0-9]?)(?:_?e[0-9]m[0-9][a-z0-9]*)?")
_SCALES = re.compile(r"([1-9][0-9]?)/([1-9][0-9]*)")
_WIDEST = 64
TYPES = "int8, int4, fp32, tf32, fp16, bf16, fp8, mxfp4, int4+16/32 (scales of 16 bits for blocks of 32 words)"
"""What types are called, for messages."""


@dataclass(frozen=True)
class NumberType:
    """A type of numbers: integers or floating point of some bits, alone or in blocks with a scale."""

    name: str
    """As lanes are stated for: ``int8``, ``fp16``, ``bf16``; signed or not is all one, and scales do not belong to
    it."""
    kind: Kind
    bits: int
    scale_bits: int = 0
    block: int = 1
    """``scale_bits`` and ``block``: bits of the scale (and zero point) that so many words share; none where
    ``scale_bits`` is 0."""

    @property
    def word_bits(self) -> int | float:
        """Bits that a word takes of memories and their ports, its share of the scale included."""
        whole = self.bits + Fraction(self.scale_bits, self.block)
        return int(whole) if whole.denominator == 1 else float(whole)

    def __str__(self) -> str:
        return self.name + (f"+{self.scale_bits}/{self.block}" if self.scale_bits else "")


@lru_cache(maxsize=256)
def number_type(text: str) -> NumberType | None:
    """Return the type of this name, as ONNX, PyTorch, Hugging Face or people call it; None where it is no type known.

    Blocks have a power of two of words.

    >>> number_type("uint8"), number_type("mxfp4").word_bits
    (NumberType(name='int8', kind='int', bits=8, scale_bits=0, block=1), 4.25)
    """
    plain = text.strip().lower().removeprefix("torch.")
    base, plus, scales = _ALIASES.get(plain, plain).partition("+")
    base = _ALIASES.get(base, base)
    given = _SCALES.fullmatch(scales)
    if plus and (given is None or int(given[2]) & (int(given[2]) - 1)):
        return None
    scale, block = (int(given[1]), int(given[2])) if given else (0, 1)
    if base in _NAMED:
        return NumberType(base, "fp", _NAMED[base], scale, block)
    found = _TYPE.fullmatch(base)
    if found is None or int(found[3]) > _WIDEST:
        return None
    kind: Kind = "int" if found[1] else "fp"
    return NumberType(f"{kind}{found[3]}", kind, int(found[3]), scale, block)


def read_type(field: str, text: str) -> NumberType:
    """Return the type of this name; an unknown one is an `InputError` of ``field``."""
    found = number_type(text)
    if found is None:
        raise InputError(field, "must be a type of numbers", text, f"For example {TYPES}")
    return found


@dataclass(frozen=True)
class Precision:
    """What a lane does with operands of two types."""

    inputs: str
    weights: str
    """``inputs`` and ``weights``: names of the types (`NumberType.name`)."""
    macs_per_cycle: float = 1.0
    """Multiply-accumulates of one lane and cycle; below 1 they take several cycles."""
    energy: float = 1.0
    """Of one of them, in those that the compute unit states (of its own width)."""
    partial_bits: int | None = None
    """Width of partial sums; None where it is that of the machine's outputs."""

    @property
    def name(self) -> str:
        """What files call it: ``int4``, or ``fp16*int4`` where the operands differ."""
        return self.inputs if self.inputs == self.weights else f"{self.inputs}*{self.weights}"

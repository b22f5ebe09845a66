"""Operations of the compiled engine: what an instruction does to the numbers of one mapping, each said once, here.

A row holds one number for each mapping of a block. *Narrow* rows hold extents, numbers of pieces and words of one axis:
integers that single precision carries exactly. *Wide* rows hold words, cycles and energies in double precision.

A signature has a letter for each operand: N W rows written, n w rows read, A V rows read and written (narrow, wide), c
C constants (narrow, wide), s r a row of steps or ranks by slot and dimension (two numbers), * the offset of a list of
narrow rows that are read (its length follows as a number), . a number. The function below it takes the operands but
those that are only written, then by name any of half, zero, one and far, which come in the type of the narrow bank so
that single precision is never widened; it returns what is written. `kernel` makes a loop over the mappings of a block
from it, which LLVM vectorises: for that, a choice between two rows is arithmetic rather than a choice of what to load.

Names of operands: step S, whole tiles Q, rest R, reciprocal I of the step, place P in the nest, multiplicity m.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Operation:
    """What an instruction does."""

    number: int
    """What stands for it in programs."""
    name: str
    signature: str
    lane: Callable[..., Any] | None = None
    """The function over the numbers of one mapping; None where `kernel` has one for the whole block."""
    sum: "Sum | None" = None
    pairs: int = 0
    """How many pairs a `Sum` takes in it."""


OPERATIONS: list[Operation] = []


def _declared(name: str, letters: str, *what: Any) -> Operation:
    OPERATIONS.append(Operation(len(OPERATIONS), name, letters, *what))
    return OPERATIONS[-1]


def operation(letters: str) -> Callable[[Callable[..., Any]], Operation]:
    """Declare an operation."""
    return lambda lane: _declared(lane.__name__, letters, lane)


def widened(narrow: Operation) -> Operation:
    """Declare the same operation on wide rows."""
    return _declared(f"wide_{narrow.name}", narrow.signature.translate(str.maketrans("Nn", "Ww")), narrow.lane)


class Sum:
    """Operations that add a term for each of some pairs of narrow rows, most often of pieces (extent, multiplicity).

    Parameters
    ----------
    ahead
        Names of the operands before the pairs.
    term
        Takes a pair and any operands by name; returns the term, and for ``rests`` what it leaves of the extent.
    least, most
        Pairs that one instruction takes; ``further`` adds another one to a sum that is there.
    first
        Takes any operands by name, and returns what is there without pairs; nothing by default.
    """

    def __init__(self, ahead: str, term: Callable[..., Any], least: int, most: int,
                 first: Callable[..., Any] | None = None, rests: bool = False) -> None:
        self.ahead, self.term, self.most, self.first, self.rests = ahead.split(), term, most, first, rests
        name, left = term.__name__, "N" * rests
        self.at_once = {
            pairs: _declared(f"{name}{pairs}", "N" + left * pairs + "n" * (len(self.ahead) + 2 * pairs), None, self,
                             pairs) for pairs in range(least, most + 1)}
        self.shared = [place for place, operand in enumerate(self.ahead) if operand in signature(term).parameters]
        self.further = _declared(f"{name}_further", f"A{left}nn" + "n" * len(self.shared), None, self, 1)


@operation("NNNNns.")
def step(before, given, half, one):
    s = given if given < before else before
    inverse = one / s
    whole = np.floor((before + half) * inverse)
    return s, whole, before - whole * s, inverse


@operation("NNns.")
def step_even(before, given, half):
    s = given if given < before else before
    return s, np.floor((before + half) / s)


@operation("Nnnr.c")
def position(S, before, rank, base, zero, one):
    real = one if S < before else zero
    return real * (base + rank + one) - one


@operation("Nnn")
def larger(a, b):
    return a if a > b else b


@operation("Nnn")
def smaller(a, b):
    return a if a < b else b


@operation("Nnn")
def multiply(a, b):
    return a * b


@operation("Nnn")
def add(a, b):
    return a + b


@operation("Nnn")
def subtract(a, b):
    return a - b


@operation("Nn")
def copy(a):
    return a


@operation("Nnn")
def real(before, S, zero, one):
    return one if S < before else zero


@operation("Nnnn")
def choose(x, a, b):
    return b + x * (a - b)


@operation("Ann")
def merge(now, a, x):
    return now + x * (a - now)


@operation("NNNnn")
def derive(S, before, half, one):
    inverse = one / S
    whole = np.floor((before + half) * inverse)
    return whole, before - whole * S, inverse


def _tiles(m, Q):
    return m * Q


def _cut(a, x, S, I, half):
    whole = np.floor((a + half) * I)
    return x * whole, a - whole * S


cut = Sum("m Q S I", _cut, 1, 2, _tiles, rests=True)


@operation("NNnnnnn")
def divide_if(m, Q, R, P, innermost, zero, one):
    advances = one if P < innermost else zero
    return m * (one + advances * (Q - one)), advances * R


@operation("Nnnnn")
def split_if(m, Q, P, innermost, one):
    return m * (Q if P < innermost else one)


@operation("Nnnn")
def rest_if(R, P, innermost, zero):
    return R if P < innermost else zero


@operation("NAnnnnnn")
def cut_if(total, rest, m, S, I, P, innermost, half, zero, one):
    whole = np.floor((rest + half) * I)
    advances = P < innermost
    once = one if whole >= one else zero
    kept = zero if whole >= one else rest
    return rest - whole * S if advances else kept, total + m * (whole if advances else once)


def _many(m):
    return m


def _pick(a, x, S, zero):
    whole = a >= S
    return x if whole else zero, zero if whole else a


pick = Sum("m S", _pick, 1, 2, _many, rests=True)


def _all_tiles(m, Q, R, zero, one):
    return m * (Q + (one if R > zero else zero))


def _count(a, x, S, I, half, zero, one):
    whole = np.floor((a + half) * I)
    return x * (whole + (one if a > whole * S else zero))


count = Sum("m Q R S I", _count, 0, 2, _all_tiles)


@operation("Nnnnnn")
def ceil_if(m, Q, R, P, innermost, zero, one):
    times = Q + (one if R > zero else zero)
    return m * (times if P < innermost else one)


@operation("Annnnnn")
def count_if(total, rest, m, S, I, P, innermost, half, zero, one):
    whole = np.floor((rest + half) * I)
    once = one if rest > zero else zero
    times = whole + (one if rest - whole * S > zero else zero)
    return total + m * (times if P < innermost else once)


def _present(a, x, zero):
    return x if a > zero else zero


present = Sum("m", _present, 1, 2, _many)


@operation("Nnnn")
def last_tile(extent, S, I, half):
    return extent - S * np.floor((extent - half) * I)


def _dot(a, x):
    return a * x


dot = Sum("", _dot, 2, 3)


def _hinge(a, x, K, zero):
    over = a - K
    return x * (over if over > zero else zero)


hinge = Sum("K", _hinge, 1, 5)


def _between(a, x, lane, near, beyond, zero):
    first = a if a < lane else lane
    p, q = first - near, first - beyond
    return x * ((p if p > zero else zero) - (q if q > zero else zero))


between = Sum("lane near beyond", _between, 1, 3)


@operation("Nnn")
def at(P, innermost, zero, one):
    here = one if P == innermost else zero
    return here if P >= zero else zero


@operation("Nnnn")
def pair_whole(m, Q, x, one):
    return m * (Q - one) * x


@operation("NAnnnnn")
def pair_rest(total, rest, m, S, I, here, half, zero, one):
    whole = np.floor((rest + half) * I)
    later = whole - one
    left = here * (rest - whole * S) if whole >= one else zero
    return left, total + here * m * (later if later > zero else zero)


@operation("NNAnnnnn")
def pair_cut(total, previous, present, m, S, I, half):
    whole = np.floor((present + half) * I)
    left = previous - whole * S
    return left if left < S else S, present - whole * S, total + m * whole


@operation("NNnnn")
def pair_pick(previous, present, S):
    return previous if previous < S else S, present if present < S else S


@operation("Nnnnnc")
def lag(step, a, b, lane, stride, zero, one, far):
    width = a if a < lane else lane
    return stride * (step - width + one) if b > zero else far


@operation("NNnnnc")
def lane_of(start, width, step, residue, half):
    skipped = np.floor((residue - start + half) / step) * step
    left = width - skipped
    return start + skipped, left if left < step else step


@operation("Nnnnnccc")
def lag_class(step, start, width, b, stride, residue, dilation, half, zero, one, far):
    inverse = one / dilation
    end = start + width - one
    value = end - residue - step
    last = end - (value - dilation * np.floor((value + half) * inverse))
    offset = stride * np.floor((step + residue - last + half) * inverse)
    return (offset if last >= start else far) if residue < b else far


@operation("Nnnccc")
def lag_last(K, b, stride, residue, dilation, half, one):
    inverse = one / dilation
    return K + stride * np.floor((b - residue - one + half) * inverse)


@operation("Nnncc")
def slide(p, r, stride, dilation, zero):
    over, under = p - dilation, r - stride
    return p * r - (over if over > zero else zero) * (under if under > zero else zero)


carried = _declared("carried", "A*......")


@operation("WCnnn")
def product(constant, a, b, c):
    return constant * a * b * c


@operation("Wnnnnnn")
def ceils(a, x, b, y, c, z, zero, one):
    p, q, r = (a + (one if x > zero else zero)), (b + (one if y > zero else zero)), (c + (one if z > zero else zero))
    return 1.0 * p * q * r


@operation("Wwnnn")
def times(x, a, b, c):
    return x * a * b * c


@operation("Vww")
def fma(total, a, b):
    return total + a * b


@operation("Vwwwwww")
def fma3(total, a, x, b, y, c, z):
    return total + (a * x + b * y + c * z)


@operation("Wwww")
def linear(a, b, c):
    return a - b + c


@operation("Wnww")
def keep_if(x, a, b):
    return b + x * (a - b)


@operation("Www")
def ceildiv(a, b):
    return np.ceil(a / b)


@operation("Wwww")
def port2(a, b, limit):
    return np.ceil((a + b) / limit)


@operation("Wwwwww")
def port4(a, b, c, d, limit):
    return np.ceil((a + b + c + d) / limit)


wide_larger, wide_add, wide_multiply = widened(larger), widened(add), widened(multiply)
wide_smaller = widened(smaller)


@operation("Vww")
def over(total, taken, limit):
    share = taken / limit - 1.0
    return total + (share if share > 0.0 else 0.0)


@operation("Www")
def blocks(a, b):
    return np.ceil(a / b) * b


@operation("Wwwwwww")
def scaled(a, b, c, d, words, cycles):
    return np.ceil((a + b + c + d) * cycles / words)


@operation("Wwww")
def periods(a, words, cycles):
    whole = np.floor(a / words)
    left = a - whole * words
    return whole * cycles + np.ceil(left * cycles / words)

"""Tensors that need not be made: which repeated or turned ones products read in the place of others."""

import pytest

from tilewright.interop.pytorch.arranged import APPEND, arrangements
from tilewright.interop.pytorch.program import Call, Ref

SHAPES = {"q": (2, 6, 7, 4), "scores": (2, 6, 7, 5), "one": (2, 6, 4, 1)}


def found(*steps, outputs=()):
    """Return how often words stand in what is not made; ``steps`` are (kind, input, output, shape, arguments)."""
    shapes, calls = dict(SHAPES), []
    for kind, source, name, shape, more in steps:
        shapes.setdefault(source, (2, 2, 5, 4))
        shapes[name] = shape
        target = kind if kind == APPEND else f"aten.{kind}"
        calls.append(Call(target, (("self", Ref(source)), *more), (name,)))
    arranged = arrangements(calls, lambda call: call.target.removeprefix("aten."), shapes, outputs)
    return {name: one.times for name, one in arranged.items()}


def product(left, right, shape=(2, 6, 7, 5)):
    return ("matmul", left, "product", shape, (("other", Ref(right)),))


WIDE = ("expand", "u", "e", (2, 2, 3, 5, 4), ())
UNSQUEEZED = ("unsqueeze", "k", "u", (2, 2, 1, 5, 4), ())
MERGED = ("reshape", "e", "r", (2, 6, 5, 4), ())
TURNED = ("transpose", "r", "t", (2, 6, 4, 5), (("dim0", 2), ("dim1", -1)))
REPEATED = (UNSQUEEZED, WIDE, MERGED, TURNED)


def test_what_products_alone_read_is_not_made():
    assert found(*REPEATED, product("q", "t")) == {"e": 3, "r": 3, "t": 3}
    turned = ("permute", "r", "t", (2, 6, 4, 5), (("dims", [0, 1, 3, 2]),))
    assert found(UNSQUEEZED, WIDE, MERGED, turned, product("q", "t")) == {"e": 3, "r": 3, "t": 3}
    interleaved = ("repeat_interleave", "k", "r", (2, 6, 5, 4), (("repeats", 3), ("dim", 1)))
    assert found(interleaved, product("scores", "r", (2, 6, 7, 4))) == {"r": 3}


def test_attention_reads_keys_and_values_in_place():
    keys = ("repeat_interleave", "k", "r", (2, 6, 5, 4), (("repeats", 3), ("dim", 1)))
    values = ("repeat_interleave", "v", "w", (2, 6, 5, 4), (("repeats", 3), ("dim", 1)))

    def attention(key, value):
        named = (("query", Ref("q")), ("key", Ref(key)), ("value", Ref(value)))
        return ("scaled_dot_product_attention", "q", "mixed", (2, 6, 7, 4), named)

    assert found(keys, values, attention("r", "w")) == {"r": 3, "w": 3}
    assert found(keys, attention("r", "v6")) == {}


def test_what_others_read_is_made():
    assert found(*REPEATED, product("q", "t"), ("relu", "t", "other", (2, 6, 4, 5), ())) == {}
    assert found(*REPEATED, product("q", "t"), outputs=["t"]) == {}
    assert found(*REPEATED, product("q", "t"), outputs=["r"]) == {"t": 3}


@pytest.mark.parametrize("steps", [
    [("expand", "one", "e", (2, 6, 4, 5), ()), product("q", "e")],  # words repeat within the matrices
    [*REPEATED, product("t", "q", (2, 6, 4, 4))],  # the left side
    [UNSQUEEZED, WIDE, ("reshape", "e", "r", (2, 2, 5, 3, 4), ()), product("q", "r")],  # sizes that cut elsewhere
    [("transpose", "k", "t", (2, 2, 4, 5), (("dim0", 2), ("dim1", 3))), product("q", "t")],  # nothing is repeated
])
def test_what_is_no_repetition_of_whole_matrices_is_made(steps):
    assert found(*steps) == {}


def test_a_cache_is_read_however_it_is_turned():
    append = (APPEND, "k", "c", (2, 2, 8, 4), ())
    turned = ("transpose", "c", "t", (2, 2, 4, 8), (("dim0", 2), ("dim1", 3)))
    assert found(append, turned, product("q", "t", (2, 2, 7, 8))) == {"c": 1, "t": 1}
    assert found(append, turned, ("relu", "t", "other", (2, 2, 4, 8), ())) == {"c": 1}

"""Builders of operators, against nests walked by hand and against NumPy."""

from itertools import product

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.workload import Operator, convolution, depthwise, einsum, linear, matmul, transposed_convolution


def touched(operator: Operator) -> dict[str, set[tuple[int, ...]]]:
    """Walk the whole nest and collect the coordinates that each tensor is touched at."""
    names = [name for name, _ in operator.dimensions]
    words: dict[str, set[tuple[int, ...]]] = {t.name: set() for t in operator.tensors}
    for index in product(*(range(size) for _, size in operator.dimensions)):
        at = dict(zip(names, index, strict=True))
        for t in operator.tensors:
            words[t.name].add(tuple(sum(c * at[d] for d, c in axis.terms) for axis in t.axes))
    return words


SMALL = [
    convolution("c1", in_channels=2, out_channels=3, in_size=9, kernel=(3,), stride=2, padding=1),
    convolution("c2", in_channels=2, out_channels=2, in_size=(7, 6), kernel=(3, 2), stride=(2, 1), dilation=(1, 2)),
    convolution("holes", in_channels=1, out_channels=1, in_size=(9, 9), kernel=2, stride=4),
    convolution("grouped", batch=2, in_channels=4, out_channels=6, in_size=(5, 5), kernel=3, groups=2),
    convolution("c3", in_channels=2, out_channels=1, in_size=(4, 5, 4), kernel=(2, 3, 2), padding=(1, 0, 0)),
    depthwise("dw", 3, in_size=(6, 6), kernel=3, stride=2, padding=1),
    transposed_convolution("up", in_channels=2, out_channels=3, in_size=(3, 4), kernel=3, stride=2, padding=1),
    transposed_convolution("up1", in_channels=2, out_channels=2, in_size=(5,), kernel=(2,), stride=3),
    matmul("mm", m=3, n=4, k=5, batch=2),
    linear("fc", rows=3, in_features=4, out_features=5),
    einsum("abc,cd,da->b", {"a": 2, "b": 3, "c": 4, "d": 2}),
]


@pytest.mark.parametrize("operator", SMALL, ids=lambda o: o.name)
def test_words_are_those_that_the_nest_touches(operator: Operator) -> None:
    for name, words in touched(operator).items():
        assert operator.tensor(name).words(operator.sizes) == len(words)


def test_dimensions_are_named_as_documented() -> None:
    conv = convolution("c", in_channels=3, out_channels=64, in_size=(224, 224), kernel=7, stride=2, padding=3)
    assert conv.dimensions == (("N", 1), ("K", 64), ("C", 3), ("P", 112), ("Q", 112), ("R", 7), ("S", 7))
    assert [(t.name, t.role) for t in conv.tensors] == [("I", "inputs"), ("W", "weights"), ("O", "outputs")]
    assert conv.tensor("I").axes[2].terms == (("P", 2), ("R", 1))
    one = convolution("c", in_channels=1, out_channels=1, in_size=(8,), kernel=3)
    assert [d for d, _ in one.dimensions] == ["N", "K", "C", "P", "R"]
    three = convolution("c", in_channels=1, out_channels=1, in_size=(8, 8, 8), kernel=3)
    assert [d for d, _ in three.dimensions] == ["N", "K", "C", "D", "P", "Q", "T", "R", "S"]


def test_depthwise_is_one_channel_in_each_group() -> None:
    operator = depthwise("dw", 32, in_size=(16, 16), kernel=3, padding=1)
    assert operator.kind == "depthwise"
    assert (operator.sizes["G"], operator.sizes["K"], operator.sizes["C"]) == (32, 1, 1)
    assert operator.macs == 32 * 16 * 16 * 9
    assert depthwise("dw", 8, multiplier=2, in_size=(4, 4), kernel=1).sizes["K"] == 2


def test_word_width_is_left_to_the_accelerator() -> None:
    assert all(t.word_bits is None for operator in SMALL for t in operator.tensors)


def test_transposed_convolution_slides_on_the_output() -> None:
    operator = transposed_convolution("up", in_channels=2, out_channels=3, in_size=(3, 4), kernel=3, stride=2,
                                      padding=1, output_padding=1)
    assert operator.macs == 3 * 4 * 9 * 2 * 3  # input positions times kernel times channels
    assert operator.output.axes[2].terms == (("P", 2), ("R", 1))
    assert operator.tensor("I").axes[2].terms == (("P", 1),)
    assert dict(operator.attributes)["out_size"] == "6x8"


@pytest.mark.parametrize(("shape", "out"), [
    ({"in_size": (13, 9), "kernel": (3, 5), "stride": 2, "dilation": 2, "padding": (2, 3)}, (7, 4)),
    ({"in_size": 10, "kernel": 3, "padding": [(0, 1), (2, 0)]}, (9, 10)),
    ({"out_size": (5, 6), "kernel": 3}, (5, 6)),
    ({"in_size": (8, 8), "out_size": (6, 6), "kernel": 3}, (6, 6)),
])
def test_output_size(shape: dict, out: tuple[int, int]) -> None:
    operator = convolution("c", in_channels=1, out_channels=1, **shape)
    assert (operator.sizes["P"], operator.sizes["Q"]) == out


@pytest.mark.parametrize("expression", ["bik,bkj->bij", "ij,jk->ik", "ij,jk", "bhqd,bhkd->bhqk", "a,b,c->abc", "i,i->",
                                        "ijk->ik", " i j , j k -> k i ", "b,ca"])
def test_einsum_has_the_shape_that_numpy_gives(expression: str) -> None:
    sizes = {letter: 2 + index for index, letter in enumerate("abcdhijkq")}
    operands = "".join(expression.split()).split("->")[0].split(",")
    expected = np.einsum(expression, *(np.ones([sizes[c] for c in term]) for term in operands))
    operator = einsum(expression, sizes)
    assert tuple(operator.sizes[a.terms[0][0]] for a in operator.output.axes) == expected.shape
    assert operator.macs == int(expected.sum())  # all ones: every step of the nest adds one


def test_einsum_names_operands_by_position() -> None:
    operator = einsum("ab,bc,cd->ad", dict.fromkeys("abcd", 2), "chain")
    assert [(t.name, t.role) for t in operator.tensors] == [
        ("I", "inputs"), ("W1", "weights"), ("W2", "weights"), ("O", "outputs")]


def test_batched_weights_only_where_there_is_a_batch() -> None:
    assert "B" not in matmul("m", 2, 3, 4).tensor("W").dimensions
    assert "B" in matmul("m", 2, 3, 4, batch=5).tensor("W").dimensions
    assert matmul("x", 2, 3, 4).signature == linear("y", rows=2, in_features=4, out_features=3).signature


CONV = {"in_channels": 4, "out_channels": 4, "kernel": 3, "in_size": (8, 8)}
WRONG = [
    (lambda: convolution("c", in_channels=1, out_channels=1, kernel=3), "c.in_size: must be given (or out_size)"),
    (lambda: convolution("c", **{**CONV, "kernel": 9}), "c.kernel: must fit in the padded input of 8; Got 9"),
    (lambda: convolution("c", **CONV, groups=3), "c.in_channels: must be divisible by the 3 groups; Got 4"),
    (lambda: convolution("c", **{**CONV, "out_channels": 6}, groups=4), "c.out_channels: must be divisible by the 4"),
    (lambda: convolution("c", **CONV, stride=0), "c.stride: must be one positive integer or 2 of them; Got 0"),
    (lambda: convolution("c", **CONV, padding=-1), "c.padding: must be a non-negative integer, 2 of them, or 2"),
    (lambda: convolution("c", **CONV, padding=(1, 1, 1)), "c.padding: must be a non-negative integer, 2 of them"),
    (lambda: convolution("c", **{**CONV, "kernel": (3, 3, 3)}), "c.kernel: must have as many axes as the sizes"),
    (lambda: convolution("c", **{**CONV, "in_size": (4,) * 4, "kernel": 1}), "must have one to three spatial axes"),
    (lambda: convolution("c", **CONV, out_size=(8, 8)), "c.out_size: must be 6x6 for this in_size, kernel and padding"),
    (lambda: convolution("c", **{**CONV, "in_channels": 0}), "c.in_channels: must be a positive integer; Got 0"),
    (lambda: convolution("c", **CONV, batch=0), "c.batch: must be a positive integer; Got 0"),
    (lambda: transposed_convolution("t", in_channels=1, out_channels=1, out_size=4, kernel=2), "t.in_size: must be"),
    (lambda: transposed_convolution("t", in_channels=1, out_channels=1, in_size=1, kernel=2, padding=2), "t.padding: "),
    (lambda: matmul("m", m=0, n=1, k=1), "m.dimensions.M: must be a positive integer; Got 0"),
    (lambda: einsum("ii->i", {"i": 2}), "must not repeat a letter within a term"),
    (lambda: einsum("ij,jk->iik", dict.fromkeys("ijk", 2)), "must not repeat a letter within a term"),
    (lambda: einsum("...ij,jk->...ik", dict.fromkeys("ijk", 2)), "Write letters in place of the ellipsis"),
    (lambda: einsum("ij,jk->iz", dict.fromkeys("ijkz", 2)), "must have output letter 'z' in an operand"),
    (lambda: einsum("ij,jk->ik", {"i": 2}), "einsum.sizes: must give a size for every letter; Got ['i']; Add j, k."),
    (lambda: einsum("ij;jk->ik", dict.fromkeys("ijk", 2)), "must consist of letters, commas and one arrow"),
    (lambda: einsum("ij->jk->i", dict.fromkeys("ijk", 2)), "must have at most one arrow `->`"),
    (lambda: einsum(",->", {}), "must have at least one letter"),
    (lambda: einsum("ij->i", {"i": 2, "j": 0}), "einsum.dimensions.j: must be a positive integer; Got 0"),
]


@pytest.mark.parametrize(("build", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_wrong_shapes_say_what_is_wrong(build, message: str) -> None:
    with pytest.raises(InputError) as error:
        build()
    assert message in str(error.value)

"""Views of tensors seen through one another are what NumPy reads of arrays reshaped, turned, cut and padded."""

import itertools
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.workload.links import composed, permuted, reshaped, same, shifted, spread

NOTHING = -1


def read(array, view, shape):
    """Return the words of an array that a view sees; nothing outside it."""
    found = np.full(shape, NOTHING)
    for place in itertools.product(*map(range, shape)):
        at = tuple(link.at(dict(enumerate(place))) for link in view)
        if all(0 <= one < size for one, size in zip(at, array.shape, strict=True)):
            found[place] = array[at]
    return found


@st.composite
def steps(draw):
    """Return an array, and what becomes of it step by step with the view of each step."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3)))
    now, found = np.arange(prod(shape)).reshape(shape), []
    for kind in draw(st.lists(st.sampled_from(["reshape", "permute", "slice", "pad", "expand"]), max_size=4)):
        old, axis = now.shape, draw(st.integers(0, now.ndim - 1))
        if kind == "reshape":
            cut = draw(st.sampled_from([size for size in range(1, now.size + 1) if now.size % size == 0]))
            now = now.reshape(draw(st.sampled_from([(cut, now.size // cut), (now.size,), (1, cut, now.size // cut)])))
            view = reshaped(old, now.shape)
        elif kind == "permute":
            order = draw(st.permutations(range(now.ndim)))
            now, view = now.transpose(order), permuted(old, order)
        elif kind == "slice":
            start, step = draw(st.integers(0, old[axis] - 1)), draw(st.integers(1, 2))
            now = now.take(range(start, old[axis], step), axis)
            view = shifted(old, axis, start, step, extent=now.shape[axis])
        elif kind == "pad":
            before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 2))
            sides = [(before, behind) if one == axis else (0, 0) for one in range(now.ndim)]
            now = np.pad(now, sides, constant_values=NOTHING)
            view = shifted(old, axis, -before, extent=now.shape[axis])
        else:
            now = np.broadcast_to(now, (2, *old))
            view = spread(old, now.shape)
        found.append((now, view))
    return np.arange(prod(shape)).reshape(shape), found


@settings(max_examples=150, deadline=None)
@given(steps())
def test_composed_views_read_what_numpy_reads(case):
    array, changes = case
    before, view = array.shape, same(array.shape)
    for now, one in changes:
        if now.size > 300:
            return
        view = composed(one, view, dict(enumerate(now.shape)), before, array.shape)
        if view is None:  # not affine
            return
        assert (read(array, view, now.shape) == now).all()
        before = now.shape


def test_heads_and_slices_stay_affine():
    shape, cut, turned = (4, 12), (4, 3, 4), (3, 4, 4)
    heads = composed(permuted(cut, (1, 0, 2)), reshaped(shape, cut), dict(enumerate(turned)), cut, shape)
    array = np.arange(48).reshape(shape)
    assert (read(array, heads, (3, 4, 4)) == array.reshape(4, 3, 4).transpose(1, 0, 2)).all()


def test_padding_that_would_reach_into_neighbours_is_no_view():
    cut = shifted((9,), 0, 3, extent=3)
    assert composed(shifted((3,), 0, -1, extent=5), cut, {0: 5}, (3,), (9,)) is None
    assert composed(shifted((3,), 0, -1, extent=5), same((3,)), {0: 5}, (3,), (3,)) is not None

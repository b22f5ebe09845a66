import threading
import time

import pytest

from tilewright.base import share


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_item_is_worked_on_once_and_done_at_the_end(threads):
    done = []
    share(lambda item: done.append((item, threading.current_thread().name)), range(200), threads)
    assert sorted(item for item, _ in done) == list(range(200))
    assert threads > 1 or {name for _, name in done} == {threading.current_thread().name}


def test_the_caller_waits_for_what_helpers_took():
    done = []

    def work(item):
        time.sleep(0.01)
        done.append(item)

    share(work, range(4), 2)
    assert sorted(done) == [0, 1, 2, 3]


def test_helpers_that_share_work_do_not_wait_for_one_another():
    done = []
    share(lambda outer: share(lambda inner: done.append((outer, inner)), range(3), 2), range(4), 2)
    assert sorted(done) == [(outer, inner) for outer in range(4) for inner in range(3)]


def test_errors_of_helpers_and_callers_are_raised():
    def work(item):
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"[01]"):
        share(work, range(2), 2)

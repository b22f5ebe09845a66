import numpy as np
from numba import njit

import tilewright.base.caching  # noqa: F401  (which tells the clock what Numba compiles)
from tilewright.base import part_options, stamped, standing_still, working_seconds
from tilewright.base.standstill import COMPILING


def test_parts_are_called_by_what_python_calls_and_are_not_native_themselves():
    @njit(nogil=True, error_model="numpy", **part_options())
    def twice(number):
        return 2 * number

    @njit(nogil=True, error_model="numpy", **part_options())
    def fill(row, number):
        for i in range(row.shape[0]):
            row[i] = twice(number) + i

    @njit(nogil=True, error_model="numpy")
    def outer(row):
        fill(row, 4)
        return twice(row[1])

    row, stood = np.zeros(5, dtype=np.int64), COMPILING.stood
    assert outer(row) == 18
    assert COMPILING.stood > stood and COMPILING.under_way == 0
    assert row.tolist() == [8, 9, 10, 11, 12]
    for part in (twice, fill):
        for compiled in part.overloads.values():
            assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


def test_the_clock_of_budgets_stands_still_while_anything_compiles(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tilewright.base.standstill.perf_counter", lambda: now[0])
    begun = working_seconds()
    for wait, more in ((5.0, 1), (3.0, 1), (2.0, -1), (4.0, -1)):
        now[0] += wait
        COMPILING.seconds(more)
    now[0] += 1.0
    assert working_seconds() - begun == 6.0
    with standing_still():
        now[0] += 7.0
    assert working_seconds() - begun == 6.0


def test_a_name_changes_with_the_sources(tmp_path):
    source = tmp_path / "source.py"
    names = []
    for text in ("one", "two", "one"):
        source.write_text(text)

        @stamped([source])
        def function():
            return None

        names.append(function.__qualname__)
    assert names[0] == names[2] != names[1]

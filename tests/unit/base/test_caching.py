import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import tilewright

# What is compiled is a function of a file: Numba keeps nothing of others.
SOURCE = """
import sys, warnings
from contextlib import ExitStack
from pathlib import Path
from numba import njit
from tilewright.base import kept

def twice(number):
    return 2 * number

def loads(place):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function = kept(njit(twice))
        assert function(21) == 42 and function(1.5) == 3.0
    lines = {str(one.message).replace(place, "PLACE") for one in told}
    return sum(function.stats.cache_hits.values()), sorted(lines)

def damages(whole):
    yield b""
    yield whole[:1]
    yield whole[:len(whole) // 2]
    yield whole[:-1]
    yield bytes(len(whole))
    yield b"garbage" * 1000
    # Whole, but for one byte of the object code.
    middle = len(whole) // 2
    yield whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:]

if __name__ == "__main__":
    place = str(Path(sys.argv[1]))
    print(loads(place), loads(place))
    for kind in sys.argv[2:]:
        for file in sorted(Path(place).rglob(f"*.{kind}")):
            whole = file.read_bytes()
            for damaged in damages(whole):
                file.write_bytes(damaged)
                print(kind, loads(place), loads(place))
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    (tmp_path / "sources.py").write_text(SOURCE)
    return folder


def _run(place: Path, *damaged: str) -> list[str]:
    done = subprocess.run([sys.executable, place.parent / "sources.py", place, *damaged], capture_output=True,
                          text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_damaged_files_are_told_in_one_line_and_compiled_anew(place):
    first, *others = _run(place, "nbi", "nbc")
    assert first == "(0, []) (2, [])"
    folder = next(place.rglob("*.nbi")).parent.name
    told = f"['The compiled engine kept in PLACE/{folder} is damaged: it is thrown away and compiled anew']"
    # Of a damaged index, both forms; of a damaged form that one alone.
    assert others == [f"nbi (0, {told}) (2, [])"] * 7 + [f"nbc (1, {told}) (2, [])"] * 14


def test_a_form_that_another_process_put_in_place_of_ours_is_not_taken_for_it(place):
    _run(place)
    one, other = sorted(place.rglob("*.nbc"))
    one.write_bytes(other.read_bytes())
    assert _run(place)[0] == "(1, []) (2, [])"


def test_what_took_a_record_that_has_another_name_since_is_compiled_anew(place):
    records = place.parent / "records.py"
    records.write_text("from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    one: int\n")
    (place.parent / "sources.py").write_text("""
import records
from numba import njit
from tilewright.base import kept

def first(pair):
    return pair[0]

function = kept(njit(first))
print(function(records.__dict__[[name for name in vars(records) if name[0] == "P"][0]](7)),
      sum(function.stats.cache_hits.values()))
""")
    assert _run(place) == ["7 0"]
    records.write_text(records.read_text().replace("Pair", "Place"))
    assert _run(place) == ["7 0"]
    assert _run(place) == ["7 1"]


def test_what_several_processes_want_at_once_one_of_them_compiles(place):
    words = [sys.executable, place.parent / "sources.py", place]
    at_once = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    first = [process.communicate()[0].splitlines()[0] for process in at_once]
    assert sum(int(line[1]) for line in first) == 2 * 3 - 2, first


def test_what_another_process_does_not_finish_is_compiled_all_the_same(place):
    fcntl = pytest.importorskip("fcntl")
    (place.parent / "sources.py").write_text(SOURCE.replace("from tilewright.base import kept", """
from tilewright.base import caching, kept
caching.PATIENCE_SECONDS = 0.1"""))
    _run(place)
    for path in place.rglob("*.nb?"):
        path.unlink()
    with ExitStack() as held:
        for path in place.rglob("*.lock"):
            fcntl.lockf(held.enter_context(path.open("wb")), fcntl.LOCK_EX)
        assert _run(place)[0] == "(0, []) (2, [])"


def test_a_full_disk_keeps_nothing_but_ends_nothing(place):
    full = SOURCE.replace("from tilewright.base import kept", """
from tilewright.base import kept
from numba.core.caching import IndexDataCacheFile
def full(*_):
    raise OSError(28, "No space left on device")
IndexDataCacheFile._save_data = full""")
    (place.parent / "sources.py").write_text(full)
    (line,) = _run(place)
    assert line.count("cannot be kept in") == 2 and "No space left on device" in line
    assert line.startswith("(0, [")


def test_what_is_kept_loads_without_what_only_compiling_needs(place):
    """Numba's registries and SciPy take half a second; they load once something is compiled."""
    more = SOURCE + """
    import numpy as np
    print("numba.np.linalg" in sys.modules)
    print(njit(lambda values: values[1])(np.arange(3)), "numba.np.linalg" in sys.modules)
"""
    (place.parent / "sources.py").write_text(more)
    assert _run(place) == ["(0, []) (2, [])", "True", "1 True"]
    assert _run(place) == ["(2, []) (2, [])", "False", "1 True"]


def test_no_compiled_function_of_ours_is_kept_unchecked():
    root = Path(tilewright.__file__).parent
    assert not [str(path) for path in root.rglob("*.py") if path.name != "compiling.py"
                and re.search(r"\bcache=True", path.read_text().replace("``", ""))]

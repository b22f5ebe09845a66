import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.base import caching

# What is compiled is a function of a file: Numba keeps nothing of others.
SOURCE = """
import sys, warnings
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

HOLDER = """
import fcntl, sys
held = [open(place, "wb") for place in sys.argv[1:]]
for one in held:
    fcntl.lockf(one, fcntl.LOCK_EX)
print("held", len(held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    (tmp_path / "sources.py").write_text(SOURCE)
    return folder


@pytest.fixture
def here(place, monkeypatch):
    """What the sources define once they ran in this process: they load all that they want anew, as in another one."""
    from numba.core import config

    monkeypatch.syspath_prepend(place.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    config.reload_config()  # which knows the folder

    def run():
        for name in ("sources", "records"):
            sys.modules.pop(name, None)
        return vars(importlib.import_module("sources"))

    yield run
    monkeypatch.undo()
    config.reload_config()


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


def test_a_form_that_another_process_put_in_place_of_ours_is_not_taken_for_it(place, here):
    loads = here()["loads"]
    assert loads(str(place)) == (0, [])
    one, other = sorted(place.rglob("*.nbc"))
    one.write_bytes(other.read_bytes())
    assert [loads(str(place)) for _ in range(2)] == [(1, []), (2, [])]


def test_of_what_python_alone_calls_nothing_is_kept_to_link(place):
    (place.parent / "sources.py").write_text("""
from numba import njit
from tilewright.base import kept

def any(number):
    if number < 0:
        raise ValueError("below 0")
    return number * 3

def own(number):
    if number < 0:
        raise ValueError("below 0")
    return number * 3

found = []
for function in (kept(njit(any)), kept(njit(own), alone=True)):
    try:
        found.append(function(14))
        function(-1)
    except ValueError as error:
        found += [str(error), sum(function.stats.cache_hits.values())]
print(found)
""")
    assert [_run(place) for _ in range(2)] == [[str([42, "below 0", hits] * 2)] for hits in (0, 1)]
    sizes = [next(place.rglob(f"sources.{name}-*.nbc")).stat().st_size for name in ("any", "own")]
    assert sizes[1] < 0.8 * sizes[0]


def test_no_compiled_function_calls_what_is_kept_for_python_alone():
    """It would be linked, and there is nothing to link."""
    from numba.core.dispatcher import Dispatcher

    root, seen = Path(tilewright.__file__).parent, 0
    for path in root.rglob("*.py"):
        if not re.search(r"^from numba import|^@(compiled|entry)$", path.read_text(), re.MULTILINE):
            continue
        module = importlib.import_module(".".join(("tilewright", *path.relative_to(root).with_suffix("").parts)))
        for function in [each for each in vars(module).values() if isinstance(each, Dispatcher)]:
            seen += 1
            for name in function.py_func.__code__.co_names:
                other = function.py_func.__globals__.get(name)
                assert not (isinstance(other, Dispatcher) and isinstance(other._cache, caching.CheckedCache)
                            and other._cache._cache_file.alone), (function, name)
    assert seen > 300


def test_what_took_a_record_that_has_another_name_since_is_compiled_anew(place, here):
    records = place.parent / "records.py"
    records.write_text("from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    one: int\n")
    (place.parent / "sources.py").write_text("""
import records
from numba import njit
from tilewright.base import kept

def first(pair):
    return pair[0]

function = kept(njit(first))
found = (function(records.__dict__[[name for name in vars(records) if name[0] == "P"][0]](7)),
         sum(function.stats.cache_hits.values()))
""")
    assert [here()["found"] for _ in range(2)] == [(7, 0), (7, 1)]
    records.write_text(records.read_text().replace("Pair", "Place"))
    assert [here()["found"] for _ in range(2)] == [(7, 0), (7, 1)]


def test_what_several_processes_want_at_once_one_of_them_compiles(place):
    words = [sys.executable, place.parent / "sources.py", place]
    at_once = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    first = [process.communicate()[0].splitlines()[0] for process in at_once]
    assert sum(int(line[1]) for line in first) == 2 * 3 - 2, first


def test_what_another_process_does_not_finish_is_compiled_all_the_same(place, here, monkeypatch):
    pytest.importorskip("fcntl")
    loads = here()["loads"]
    assert loads(str(place)) == (0, [])
    for path in place.rglob("*.nb?"):
        path.unlink()
    monkeypatch.setattr(caching, "PATIENCE_SECONDS", 0.1)
    words = [sys.executable, "-c", HOLDER, *map(str, place.rglob("*.lock"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held 1\n"
        assert loads(str(place)) == (0, [])
    assert loads(str(place)) == (2, [])


def test_a_full_disk_keeps_nothing_but_ends_nothing(place, here, monkeypatch):
    from numba.core.caching import IndexDataCacheFile

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    loads = here()["loads"]
    for _ in range(2):
        hits, (told,) = loads(str(place))
        assert hits == 0 and "cannot be kept in" in told and "No space left on device" in told


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

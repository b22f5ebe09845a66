"""Text, YAML and JSON are read within limits, by one reader."""

import ast
import os
import time
from pathlib import Path

import pytest

import tilewright
from tilewright.api import load_accelerator, load_mapping, load_network
from tilewright.base import MOST_BYTES, InputError, read_json, read_text, read_yaml
from tilewright.hardware import preset
from tilewright.interop import load_timeloop
from tilewright.mapping import read_space
from tilewright.workload import matmul

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
TOO_MANY, TOO_DEEP = "must have fewer than 1,000,000 values, aliases written out", "must nest at most 100 deep"
HOSTILE = {
    "aliases of aliases": (BOMB, TOO_MANY),
    "merges of merges": ("a0: &a0 {x: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], y{i}: 1}}\n" for i in range(1, 40)), TOO_MANY),
    "deep by aliases": ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300)), TOO_DEEP),
    "deep": ("a: " + "[" * 10**5, TOO_DEEP),
    "deep blocks": ("".join("  " * i + "a:\n" for i in range(300)), TOO_DEEP),
    "holds itself": ("a: &a [*a]\n", "must not hold itself"),
}
READERS = {
    "accelerator": load_accelerator,
    "network": load_network,
    "constraints": read_space,
    "mapping": lambda path: load_mapping(path, matmul("m", m=4, n=4, k=4), preset("eyeriss")),
    "timeloop": lambda path: load_timeloop([path]),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_yaml_that_would_take_the_day_is_refused_by_all_readers(tmp_path, reader, name):
    text, message = HOSTILE[name]
    path = tmp_path / "hostile.yaml"
    path.write_text(text)
    begun = time.process_time()
    with pytest.raises(InputError, match=message):
        READERS[reader](path)
    assert time.process_time() - begun < 5


def test_yaml_within_the_limits_is_read():
    assert read_yaml("a: &a [1, 2]\nb: {c: *a}\n", "f") == {"a": [1, 2], "b": {"c": [1, 2]}}
    for depth in (97, 99):
        assert read_yaml("a: " + "[" * depth + "]" * depth, "f", "lines")
    with pytest.raises(InputError, match=TOO_DEEP):
        read_yaml("a: " + "[" * 100 + "]" * 100, "f")


@pytest.mark.parametrize("text", ["a: !!int x", "a: !!bool x", "a: 2020-99-99", "!!omap [a]", "a: " + "9" * 5000,
                                  "? {a: b}\n: 1", "a: \x07"])
def test_whatever_the_parser_says_is_one_error(text):
    with pytest.raises(InputError, match=r"^f(:1)?: must be YAML; The parser says: "):
        read_yaml(text, "f")


def test_json_is_read_within_limits():
    assert read_json('{"a": [1]}', "f") == {"a": [1]}
    for text, message in (("[" * 10**5, "f: must be JSON whose brackets nest less deep"), ("9" * 5000, "f: must be"),
                          ("{\n]", "f:2: must be JSON"), (b"\xff{}", "f: must be JSON in UTF-8")):
        with pytest.raises(InputError, match=message):
            read_json(text, "f")
    with pytest.raises(InputError, match=r"f:3: must be JSON; Got '.* at column 1'"):
        read_json("]", "f:3", one_line=True)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "large").write_bytes(b" " * (MOST_BYTES + 1))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name, message in (("large", "must have at most 16 MiB"), ("pipe", "an empty pipe"), ("", "readable text file"),
                          ("bytes", "in UTF-8"), ("none", "must be an existing file"),
                          ("tiling: perfect", "existing file; YAML that is no file must have more than one line"),
                          ("a\0b", "readable text file")):
        with pytest.raises(InputError, match=message):
            read_text(f"{tmp_path}/{name}")
    with pytest.raises(InputError, match="must have at most 16 MiB"):
        read_text("/dev/zero")
    assert len(read_text(tmp_path / "large", 2 * MOST_BYTES)) == MOST_BYTES + 1
    held = len(os.listdir("/dev/fd"))
    with pytest.raises(InputError, match=f"Is a directory: '{tmp_path}'"):
        read_text(tmp_path)
    assert len(os.listdir("/dev/fd")) == held  # and nothing stays open
    with pytest.raises(InputError, match=r"large: must have at most 1 MiB"):
        read_text(tmp_path / "large", 2**20)


def test_yaml_is_parsed_nowhere_else():
    found = []
    for path in Path(tilewright.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "yaml" not in text.lower():
            continue
        given = [node.func.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
                 and isinstance(node.func, ast.Attribute) and node.func.attr in ("load", "compose", "parse")]
        if any(ast.unparse(one).startswith(("YAML(", "yaml")) for one in given):
            found.append(path.name)
    assert found == ["composing.py"]

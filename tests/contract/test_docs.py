"""What the documents show works: every block is run, in the order of the page."""

import ast
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.api import mappers_page
from tilewright.cli import main
from tilewright.interop import FORMATS, load_onnx
from tilewright.reproduce import REPRODUCTIONS
from tilewright.search import MAPPERS
from tilewright.search.mappers.auto import AutoOptions
from tilewright.validation import SETS

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
BLOCK = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [match.groups() for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


def write_network(path):
    from onnx import TensorProto, helper, save

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, ["batch", 8, 16, 16])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 3, 3, 3], [0.0] * 216)
    nodes = [helper.make_node("Conv", ["image", "w"], ["c"], "features.0", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["result"], "features.1")]
    save(helper.make_model(helper.make_graph(nodes, "network", [image], [result], [weights]),
                           opset_imports=[helper.make_opsetid("", 17)]), path)
    assert load_onnx(path, bind={"batch": 1}).macs


ELSEWHERE = {"$ tilewright validate"}
"""What another test runs as it stands (the scoreboard of all sets: `test_accuracy`)."""


def run_commands(text, expected, monkeypatch):
    for line in text.strip().splitlines():
        if line in ELSEWHERE:
            continue
        words = shlex.split(line)
        assert words[:2] == ["$", "tilewright"], line
        monkeypatch.setattr(sys, "argv", words[1:])
        with pytest.raises(SystemExit) as end:
            main()
            sys.exit(0)
        assert int(end.value.code or 0) == expected, line


def run_python(text, page):
    """Run a block by itself: those of the README in a new process, as a newcomer does."""
    if page == "README.md":
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONWARNINGS": "error"})
        assert done.returncode == 0, done.stderr
    else:
        exec(compile(text, page, "exec"), {"__name__": "__main__"})


@pytest.mark.documents
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))
    for registry in (FORMATS, MAPPERS, REPRODUCTIONS, SETS):  # what a page registers is forgotten after it
        monkeypatch.setattr(registry, "_members", dict(registry._members))
    write_network(tmp_path / "network.onnx")
    for language, info, text in blocks(page):
        if info.startswith("file="):
            Path(info.removeprefix("file=")).write_text(text)
        elif language == "console":
            run_commands(text, int(info or 0), monkeypatch)
        elif language == "python":
            run_python(text, page)


def test_the_page_on_mappers_is_that_of_the_registry():
    assert (ROOT / "docs/mappers.md").read_text(encoding="utf-8") == mappers_page(), (
        "python -c \"from tilewright.api import mappers_page; print(mappers_page(), end='')\" > docs/mappers.md")


@pytest.mark.parametrize("name", list(MAPPERS))
def test_every_mapper_and_option_says_what_it_does(name):
    page = mappers_page()
    section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    assert section.strip()
    assert all(row.split("|")[3].strip() for row in rows), rows


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target
    for paper_room in re.findall(r"`((?:search|hardware|mapping|cost)/[\w/-]+)`", text):
        assert list((ROOT / "src/tilewright").glob(f"{paper_room}*")), paper_room


def test_the_readme_gives_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for mark in ("job", "tests"):
        assert re.search(rf"^<!-- {mark} -->\n```sh\npython3 -m venv [^\n]+\n```$", text, re.MULTILINE)


def test_what_is_left_out_by_default_is_a_step_of_its_own():
    steps = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.search(r"^\S+/pytest .*-m documents tests/contract/test_docs.py$", steps, re.MULTILINE)


def test_numbers_of_the_readme_are_so():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = {6: "six", 19: "nineteen", 20: "twenty", 21: "twenty-one"}
    assert f"bounds up to {words[AutoOptions().candidates]} candidates" in text
    assert f"[{words[len(MAPPERS)].capitalize()} mappers]" in text


def test_pictures_are_small():
    pictures = list((ROOT / "docs/images").glob("*"))
    assert pictures
    for picture in pictures:
        assert picture.suffix in (".png", ".svg") and picture.stat().st_size < 300_000, picture


def test_the_picture_of_the_rooms_is_drawn_from_the_imports():
    picture = runpy.run_path(str(ROOT / "docs/picture.py"))
    assert picture["PICTURE"].read_text(encoding="utf-8") == picture["draw"](), "python docs/picture.py"


def test_the_fast_lane_names_what_there_is():
    for line in (ROOT / "tests/fast.txt").read_text(encoding="utf-8").splitlines():
        place = line.split("=")[-1].split("::")[0]
        assert line == "-n=2" or list(ROOT.glob(place.replace("*/", "tests/", 1))), line


def test_what_is_compiled_beside_all_tests_is_named_by_tests_that_there_are():
    options, *lines = (ROOT / "tests/compiling.txt").read_text(encoding="utf-8").split("\ntests/")
    assert options.split() == ["-n=0", "-p=no:cacheprovider"] and lines
    for line in lines:
        file, name, _ = re.split(r"::|\[|$", line, maxsplit=2)
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), line


@pytest.mark.parametrize(("given", "kept", "begun"), [
    ({}, (), True), ({"keyword": "map"}, (), False), ({"collectonly": True}, (), False),
    ({"numprocesses": None}, (), False), ({"args_source": pytest.Config.ArgsSource.ARGS}, (), False),
    ({}, ("kernel.run_1.nbi",), False),
])
def test_a_third_process_compiles_beside_all_tests_alone(request, monkeypatch, tmp_path, given, kept, begun):
    shared, calls = request.config.pluginmanager.get_plugin(str(ROOT / "tests/conftest.py")), []
    monkeypatch.setattr(shared.subprocess, "Popen", lambda words, **_: calls.append(words))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for name in kept:
        (tmp_path / name).touch()
    values = {"numprocesses": 2, "keyword": "", "collectonly": False} | given
    source = values.pop("args_source", pytest.Config.ArgsSource.TESTPATHS)
    config = SimpleNamespace(getoption=lambda name, _: values[name], option=SimpleNamespace(**values),
                             args_source=source, ArgsSource=pytest.Config.ArgsSource)
    shared.pytest_sessionstart(SimpleNamespace(config=config))
    assert bool(calls) is begun


@pytest.mark.parametrize("path", sorted((ROOT / "docs/notebooks").glob("*.md")), ids=lambda path: path.stem)
def test_notebooks_are_on_the_site_and_hold_code(path):
    assert f"notebooks/{path.stem}\n" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(cells) > 2
    for cell in cells:
        ast.parse(cell)


def test_every_field_of_the_files_that_people_write_is_on_the_page_with_its_meaning(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = runpy.run_path(str(ROOT / "docs/file_fields.py"))
    page = made["files_page"]()
    models = {name: inner for several in made["SECTIONS"].values() for model in several
              for name, inner in made["within"](model).items()}
    assert {"AcceleratorFields", "MemoryFields", "SpaceFields", "CoreFields", "StorageRow"} <= set(models)
    for name, model in models.items():
        section = page.split(f"({name.lower()})=\n")[1].split("\n###")[0]
        said = made["meanings"](model)
        for field, info in model.model_fields.items():
            row = next(line for line in section.splitlines() if line.startswith(f"| `{info.alias or field}` |"))
            assert said[field].replace("``", "`") in row, f"{name}.{field} must say what it means, below it"
            assert ("| required |" in row) is info.is_required()
    for kind, record in made["LAYERS"].items():
        section = page.split(f"\n### `{kind}`\n")[1].split("\n###")[0]
        assert all(f"| `{field}` |" in section for field in record.__dataclass_fields__)
    assert "`K@X: 1`" in page and "| `phases` |" in page

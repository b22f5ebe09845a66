"""What imports cost, and which way they go."""

import ast
import os
import resource
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tilewright"
MODULES = sorted(SOURCE.rglob("*.py"))
HEAVY = ("numba", "onnx", "plotly", "sqlalchemy", "scipy", "torch")

# Outermost last; what stands on one line never imports one another.
ROOMS = (
    {"base"}, {"learn"}, {"hardware"}, {"workload"}, {"mapping"}, {"cost"}, {"store"}, {"interop"}, {"jobs"},
    {"search"},
    {"codesign", "scheduling", "fusion", "recommendation", "allocation"}, {"validation"}, {"report"}, {"api"},
    {"reproduce"}, {"cli"}, {"__main__"},
)
HEIGHT = {room: height for height, line in enumerate(ROOMS) for room in line}
# Compiled code is imported by module: a room that named it would load Numba for everybody.
COMPILED = {f"tilewright.mapping.spaces.{name}"
            for name in ("kernels", "rules", "drawing.sampling", "drawing.signature", "repair.mappings")}
SUBROOMS = {"tilewright.allocation.packing", "tilewright.codesign.allocation", "tilewright.cost.reference",
            "tilewright.fusion.flat", "tilewright.fusion.microbatch", "tilewright.fusion.trees",
            "tilewright.search.studies", "tilewright.search.descent", "tilewright.search.points",
            "tilewright.search.surrogate"}
# What verbs are asked for: their fields and flags, which the command line is made of before anything else loads.
SUBROOMS |= {"tilewright.api.flags", "tilewright.api.fuse_options", "tilewright.api.machine_options",
             "tilewright.api.array_options", "tilewright.api.options",
             "tilewright.api.packing_options", "tilewright.api.recommend_options",
             "tilewright.api.residency_options", "tilewright.api.schedule_options"}
# The algorithms that learn, or descend: the only others that load PyTorch.
LEARNED = {SOURCE / "search" / f"{name}.py" for name in ("descent", "relaxed")}
BANNED = {"utils", "util", "core", "common", "helpers", "misc"}


def cpu_seconds(*words, enough=0.0):
    """Return the least processor time of a few fresh processes: what else runs here does not count.

    No more are run once one is below ``enough``. The first one may compile modules to byte code, which is kept, as
    where the package is installed.
    """
    found = []
    while len(found) < 4 and not (found and found[-1] < enough):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def loaded(code):
    """Return which heavy libraries a fresh process has loaded after ``code``."""
    told = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], check=True,
                          capture_output=True, text=True, cwd=os.environ.get("PYTEST_TMP", "/"))
    return {name for name in HEAVY if name in told.stdout.split("\n")[-2].split()}


def test_import_takes_less_than_half_a_second():
    assert cpu_seconds("-c", "import tilewright", enough=0.5) < 0.5
    assert cpu_seconds("-c", "import tilewright; tilewright.evaluate, tilewright.map", enough=1.5) < 1.5


def test_help_takes_less_than_three_tenths_of_a_second():
    took = cpu_seconds("-m", "tilewright", "--help", enough=0.3)
    # Most of it is the libraries', which take longer than that where others run: what is ours is then looked at.
    bare = "import typer; typer.run(lambda: None)"
    assert took < 0.3 or took - cpu_seconds("-c", bare, "--help") < 0.15


def test_evaluate_takes_less_than_one_and_a_half_seconds():
    """0.85 s on an idle machine; more where other tests run beside this one."""
    assert cpu_seconds("-m", "tilewright", "evaluate", "--dataflow", "eyeriss", "--network", "resnet50", "--layer",
                       "layer1.0.conv2", "--arch", "eyeriss", enough=1.5) < 1.5


def test_nothing_heavy_is_loaded_before_it_is_used():
    """In one process, which loads nothing of what none of these loads: a store may not be wanted by ``map`` either."""
    verbs = ("list accelerators", "evaluate --dataflow nvdla --network alexnet --layer conv2 --arch nvdla-like")
    assert loaded("import sys, tilewright, tilewright.cli; tilewright.map\n" + "\n".join(
        f"sys.argv = ['tilewright', *{verb.split()}]; tilewright.cli.app(standalone_mode=False)"
        for verb in verbs)) == set()


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path):
    """Return ``(module, names)`` of every import of ours in a file, those inside functions included."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module and node.module.split(".")[0] == "tilewright":
                found.append((node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names if alias.name.split(".")[0] == "tilewright"]
    return found


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", [path for path in MODULES if path.parent != SOURCE or path.name == "__main__.py"],
                         ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_rooms_below_it_by_their_names(path):
    here = room_of(path)
    for module, _ in imports(path):
        parts = module.split(".")
        assert len(parts) > 1, f"{path.name}: import of the whole package"
        there = parts[1]
        if there == here:
            continue
        assert HEIGHT[there] < HEIGHT[here], f"{here} imports {module}"
        assert len(parts) == 2 or module in COMPILED | SUBROOMS, f"{path.name} imports {module}: import the room"


def test_every_room_stands_on_a_line():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(HEIGHT)


def test_every_room_lists_what_it_offers():
    rooms = list(SOURCE.glob("*/__init__.py"))
    assert len(rooms) > 10
    for path in rooms:
        if room_of(path) != "learn":
            assert "__all__" in path.read_text(encoding="utf-8"), path


def test_no_name_that_loads_late_is_a_module():
    """Whoever imports the module by its own name would put it in place of what the name stands for."""
    for path in SOURCE.rglob("__init__.py"):
        text = path.read_text(encoding="utf-8")
        if "late_names(" in text:
            offered = {alias.asname or alias.name for node in ast.walk(ast.parse(text))
                       if isinstance(node, ast.ImportFrom) for alias in node.names}
            assert not offered & {other.stem for other in path.parent.iterdir()}, path


RECORDS = {"tilewright.cost.records"}


def test_the_oracle_shares_only_records_with_the_model():
    oracle = list(SOURCE.glob("cost/reference/*.py"))
    assert len(oracle) > 5
    for path in oracle:
        for module, names in imports(path):
            if module.startswith("tilewright.cost") and not module.startswith("tilewright.cost.reference"):
                assert module in RECORDS, f"{path.name} imports {names} of {module}"


def test_pytorch_stays_in_its_rooms():
    for path in MODULES:
        if room_of(path) == "learn" or path.name == "torch.py" or path in LEARNED:
            continue
        nodes = list(ast.walk(tree(path)))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        froms = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not any(name.split(".")[0] == "torch" for name in names + froms), path


def test_modules_stay_small_and_have_names():
    for path in MODULES:
        assert path.stem not in BANNED, path
        lines = len(path.read_text(encoding="utf-8").splitlines())
        # A cached kernel does not notice changes in another file: what one calls stands beside it.
        assert lines < 500 or "kernel" in path.stem, f"{path} has {lines} lines"


def doubled_classes(trees):
    """Return the names of public classes that more than one of ``trees`` (by path) holds, with those paths."""
    found = defaultdict(list)
    for path, module in trees.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_no_public_class_has_the_name_of_another():
    trees = {path: tree(path) for path in MODULES}
    assert doubled_classes(trees) == {}
    other = SOURCE / "search" / "other.py"
    doubled = doubled_classes(trees | {other: ast.parse("class MapSpace:\n    ...\nclass _Layer:\n    ...")})
    assert [*doubled] == ["MapSpace"] and other in doubled["MapSpace"]


def test_the_contract_on_the_oracle_names_every_module_of_the_model():
    settings = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [found for found in settings["contracts"]
                   if found.get("source_modules") == ["tilewright.cost.reference"]]
    forbidden = set(contract["forbidden_modules"])
    for path in SOURCE.glob("cost/**/*.py"):
        parts = ("tilewright", *path.relative_to(SOURCE).with_suffix("").parts)
        if parts[2] != "reference" and parts[-1] != "__init__" and ".".join(parts) not in RECORDS:
            assert {".".join(parts), ".".join(parts[:3])} & forbidden, f"{path} must be forbidden to the oracle"
    assert not forbidden & RECORDS

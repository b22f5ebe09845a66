"""What imports cost, and which way they go."""

import ast
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tilewright"
MODULES = sorted(SOURCE.rglob("*.py"))
HEAVY = ("numba", "onnx", "plotly", "sqlalchemy", "scipy", "torch")

# Outermost last; what stands on one line never imports one another.
ROOMS = (
    {"base"}, {"learn"}, {"hardware"}, {"workload"}, {"mapping"}, {"cost"}, {"store"}, {"interop"}, {"jobs"},
    {"search", "packing"},
    {"codesign", "scheduling", "fusion", "recommendation", "allocation"}, {"validation"}, {"report"}, {"api"},
    {"reproduce"}, {"cli"}, {"__main__"},
)
HEIGHT = {room: height for height, line in enumerate(ROOMS) for room in line}
# Compiled code is imported by module: a room that named it would load Numba for everybody.
COMPILED = {f"tilewright.mapping.spaces.{name}"
            for name in ("kernels", "rules", "drawing.sampling", "repair.mappings")}
SUBROOMS = {"tilewright.codesign.allocation", "tilewright.cost.reference",
            "tilewright.fusion.flat", "tilewright.fusion.microbatch", "tilewright.fusion.trees",
            "tilewright.search.studies", "tilewright.search.descent", "tilewright.search.points",
            "tilewright.search.surrogate"}
# What verbs are asked for: their fields and flags, which the command line is made of before anything else loads.
SUBROOMS |= {"tilewright.api.flags", "tilewright.api.options", "tilewright.api.machine_options",
             "tilewright.api.plan_options", "tilewright.api.array_options", "tilewright.api.training_options"}
# The algorithms that learn, or descend: the only others that load PyTorch.
LEARNED = {SOURCE / "search" / f"{name}.py" for name in ("descent", "relaxed")}
BANNED = {"utils", "util", "core", "common", "helpers", "misc"}


def loaded(code):
    """Return the modules that a fresh process has loaded after ``code``."""
    told = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], check=True,
                          capture_output=True, text=True, cwd=os.environ.get("PYTEST_TMP", "/"))
    return told.stdout.split("\n")[-2].split()


def test_help_loads_no_room_that_only_verbs_need():
    """What they have to say is resolved when first used: most of the time of --help is the libraries'."""
    modules = loaded("import sys; sys.argv = ['tilewright', '--help']\n"
                     "from tilewright.cli import app; app(standalone_mode=False)")
    inside = {name.split(".")[1] for name in modules if name.startswith("tilewright.") and name.count(".") > 1}
    assert inside == {"api", "base", "cli"}
    assert not {"numpy", *HEAVY}.intersection(modules)


def test_a_verb_loads_no_module_of_others():
    modules = loaded("import sys; sys.argv = ['tilewright', 'map', '--help']\nfrom tilewright.cli import main\n"
                     "try: main()\nexcept SystemExit: pass")
    inside = {name.split(".")[2] for name in modules if name.startswith("tilewright.cli.")}
    assert "mapping" in inside and not inside & {"bounds", "machines", "plans", "listing", "study", "all_verbs"}


def test_what_a_design_does_not_ask_for_is_not_loaded():
    """Mappers and methods load when they are asked for, and so do rooms within rooms."""
    modules = set(loaded("import tilewright as tw; from tilewright.codesign import DESIGNERS\n"
                         "tw.design, DESIGNERS.get('auto')"))
    assert {"tilewright.api.designing", "tilewright.codesign.auto", "tilewright.search.offspring"} <= modules
    assert not modules & {"tilewright.codesign.methods.boxes", "tilewright.codesign.exploration",
                          "tilewright.codesign.allocation", "tilewright.search.mappers.bayes",
                          "tilewright.search.pipeline", "tilewright.search.studies", "numba"}


def test_nothing_heavy_is_loaded_before_it_is_used():
    """In one process, which loads nothing of what none of these loads: a store may not be wanted by ``map`` either."""
    verbs = ("evaluate --dataflow nvdla --network alexnet --layer conv2 --arch nvdla-like", "list accelerators")
    run = [f"sys.argv = ['tilewright', *{verb.split()}]; tilewright.cli.app(standalone_mode=False)" for verb in verbs]
    # To look at one mapping takes no search, and no plan of fused groups.
    run.insert(1, "assert not {'tilewright.search', 'tilewright.fusion', 'tilewright.jobs'} & {*sys.modules}")
    assert set(HEAVY).intersection(loaded("\n".join(
        ["import sys, tilewright, tilewright.cli", *run, "tilewright.map"]))) == set()


@cache
def nodes_of(path):
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


def imports(path, run=False):
    """Return ``(module, names)`` of every import of ours in a file, those inside functions included.

    Those by which types alone are checked are left out of what is ``run``.
    """
    found, typed = [], {inner for node in nodes_of(path) if run and isinstance(node, ast.If)
                        and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
                        for inner in ast.walk(node)}
    for node in nodes_of(path):
        if node in typed:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module and node.module.split(".")[0] == "tilewright":
                found.append((node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names if alias.name.split(".")[0] == "tilewright"]
    return found


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def strange_imports(path):
    """Return what is wrong with the imports of a module."""
    here = room_of(path)
    for module, _ in imports(path):
        parts = module.split(".")
        if len(parts) < 2:
            yield f"{path}: import of the whole package"
        elif parts[1] != here and HEIGHT[parts[1]] >= HEIGHT[here]:
            yield f"{path}: {here} imports {module}"
        elif parts[1] != here and len(parts) > 2 and module not in COMPILED | SUBROOMS:
            yield f"{path} imports {module}: import the room"


def test_rooms_import_rooms_below_them_by_their_names():
    assert [fault for path in MODULES if path.parent != SOURCE or path.name == "__main__.py"
            for fault in strange_imports(path)] == []


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
        nodes = nodes_of(path)
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        froms = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not any(name.split(".")[0] == "torch" for name in names + froms), path


def test_modules_stay_small_and_have_names():
    for path in MODULES:
        assert path.stem not in BANNED, path
        lines = len(path.read_text(encoding="utf-8").splitlines())
        # A cached kernel does not notice changes in another file: what one calls stands beside it.
        assert lines < 500 or "kernel" in path.stem, f"{path} has {lines} lines"


def name_of(path):
    """Return the name of a module."""
    return ".".join(("tilewright", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def circles(modules):
    """Return the sets of modules that import one another, at their top or inside functions, by what each imports."""
    reached = {}
    for name in modules:
        reached[name], left = set(), [name]
        while left:
            new = modules[left.pop()] - reached[name]
            reached[name] |= new
            left += new
    return {frozenset(other for other in reached if other in reached[name] and name in reached[other])
            for name in reached} - {frozenset()}


def test_no_module_imports_what_imports_it():
    known = {name_of(path) for path in MODULES}
    modules = {name_of(path): {
        one for module, names in imports(path, run=True)
        for one in [f"{module}.{name}" if f"{module}.{name}" in known else module for name in names] or [module]
        if one in known} for path in MODULES}
    assert circles(modules) == set()
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == {frozenset("abc")}


def doubled_classes(modules):
    """Return the names of public classes that more than one of ``modules`` (nodes by path) holds, with those paths."""
    found = defaultdict(list)
    for path, nodes in modules.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_no_public_class_has_the_name_of_another():
    modules = {path: nodes_of(path) for path in MODULES}
    assert doubled_classes(modules) == {}
    other = SOURCE / "search" / "other.py"
    doubled = doubled_classes(modules | {other: ast.parse("class MapSpace:\n    ...\nclass _Layer:\n    ...").body})
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

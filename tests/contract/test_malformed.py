"""How many malformed files are tried: each format has its tables of them, more than a hundred in all."""

import ast
from pathlib import Path

import pytest

from tilewright.interop import FORMATS

TESTS = Path(__file__).parents[1] / "unit" / "interop"
TABLES = {
    "maestro": {"test_maestro_malformed": ("NETWORKS", "HARDWARE")},
    "gamma": {"test_maestro_malformed": ("TABLES", "GENOMES")},
    "magma": {"test_magma": ("MALFORMED",)},
    "onnx": {"test_onnx_malformed": ("MALFORMED",)},
    "pytorch": {"test_pytorch_malformed": ("FILES",)},
    "huggingface": {"test_huggingface": ("WRONG",)},
    "scale-sim": {"test_scalesim": ("MALFORMED_CONFIGS", "MALFORMED_TOPOLOGIES")},
    "accelforge": {"test_accelforge": ("MALFORMED",)},
    "zigzag": {"test_zigzag": ("MALFORMED",)},
    "timeloop": {"test_timeloop": ("EDITS",), "test_timeloop_designs": ("WRONG", "SPARSE_WRONG")},
}
"""By format: where its malformed files stand, a list or dictionary with one entry for each."""
LEAST, LEAST_OF_ALL = 15, 100
READ_AS = {"timeloop-model": "timeloop"}


def count(form):
    """Return the malformed files of a format; a table that no test runs over counts nothing."""
    found = 0
    for module, names in TABLES[form].items():
        tree = ast.parse((TESTS / f"{module}.py").read_text(encoding="utf-8"))
        tables = {}
        for node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and isinstance(node.value, ast.List | ast.Dict):
                tables[target.id] = len(node.value.keys if isinstance(node.value, ast.Dict) else node.value.elts)
        run = {name.id for function in tree.body if isinstance(function, ast.FunctionDef)
               for mark in function.decorator_list for name in ast.walk(mark) if isinstance(name, ast.Name)}
        found += sum(tables[name] for name in names if name in run)
    return found


@pytest.mark.parametrize("form", [name for name in FORMATS if name not in READ_AS])
def test_every_format_has_its_malformed_files(form):
    assert count(form) >= LEAST, f"{form} has {count(form)} malformed files in tests/unit/interop"


def test_there_are_more_than_a_hundred():
    assert sum(map(count, TABLES)) >= LEAST_OF_ALL

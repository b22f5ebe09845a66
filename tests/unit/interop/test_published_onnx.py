"""ONNX files as people publish them: 39 in 12 packages of PyPI, whose multiply-accumulates were counted as they ran.

``published_onnx.json`` records package and version, file, size, nodes, the sizes that were bound, and ``macs``: what
onnxruntime 1.32.0 executed of convolutions, products and recurrent layers, without optimisation, by the shapes in its
profile (``benchmarks/onnx_files.py`` counts them anew, and compares). Nothing is fetched here: files are looked at
where their package is installed in this version, or where ``TILEWRIGHT_ONNX`` names a folder that has them.
"""

import hashlib
import json
import os
from importlib import metadata
from pathlib import Path

import onnx
import pytest

from tilewright.interop import load_onnx
from tilewright.workload import coverage

FILES = json.loads((Path(__file__).parent / "published_onnx.json").read_text())


def at_hand(entry) -> Path | None:
    """Where the very file of an entry is; None where it is not on this machine."""
    name, _ = entry["package"].split()
    try:
        places = [Path(str(found.locate())) for found in metadata.files(name) or () if found.suffix == ".onnx"]
    except metadata.PackageNotFoundError:
        places = []
    if folder := os.environ.get("TILEWRIGHT_ONNX"):
        places += sorted(Path(folder).rglob("*.onnx"))
    return next((place for place in places if place.stat().st_size == entry["bytes"] and hashlib.sha256(
        place.read_bytes()).hexdigest().startswith(entry["sha256"])), None)


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: f"{entry['package'].split()[0]}/{entry['file']}")
def test_a_published_file_has_the_multiply_accumulates_that_run(entry):
    path = at_hand(entry)
    if path is None:
        pytest.skip(f"{entry['package']} is not on this machine")
    assert len(onnx.load(path, load_external_data=False).graph.node) == entry["nodes"]
    graph = load_onnx(path, bind=entry["bind"])
    assert graph.macs == pytest.approx(entry["macs"], rel=1e-3)
    assert coverage(graph).complete, coverage(graph).sentence


def test_the_files_are_many_and_some_are_at_hand():
    """The onnx package, which the reader needs, has nine of them."""
    assert len({entry["sha256"] for entry in FILES}) == len(FILES) >= 30
    assert len({entry["package"] for entry in FILES}) >= 12
    version = metadata.version("onnx")
    assert sum(at_hand(entry) is not None for entry in FILES) >= 9 or version != "1.23.2"

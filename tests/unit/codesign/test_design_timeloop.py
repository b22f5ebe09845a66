"""Designs that are written to Timeloop's files, read from them and counted by its rules keep their order."""

import numpy as np
import pytest

from tilewright.api import replay
from tilewright.codesign import DesignProblem, design, read_limits
from tilewright.hardware import find_design_space
from tilewright.interop import dump_timeloop, load_timeloop
from tilewright.jobs import Runner
from tilewright.workload import UniqueOperator, convolution, matmul

LAYERS = [UniqueOperator(matmul("product", 12, 16, 10), 2, ("product",)),
          UniqueOperator(convolution("window", in_channels=4, out_channels=6, kernel=3, out_size=6), 1, ("window",))]
BUDGETS = "area=0.008mm2", "area=0.012mm2", "area=0.03mm2"


def counted(found, folder):
    """Return energy times cycles of a design as its files are counted by the rules of Timeloop."""
    cycles = energy = 0.0
    for name, layer in found.layers.items():
        operator = next(one for one in found.problem.layers if one.name == name)
        texts, place = dump_timeloop(operator, found.machine, layer.mapping).files, folder / name
        place.mkdir(parents=True)
        for file, text in texts.items():
            (place / file).write_text(text)
        read = load_timeloop([place / file for file in texts])
        (mapping,) = read.mappings.values()
        made = replay(read.operator, read.accelerator, mapping, ("timeloop",), reasons=False).replays["timeloop"]
        cycles, energy = cycles + layer.weight * made.cycles, energy + layer.weight * made.energy_pj
    return cycles * energy


def test_designs_keep_their_order_by_timeloops_rules(tmp_path):
    space = find_design_space("edge-s2")
    designs = [design(DesignProblem.of([(LAYERS, 1.0)], space, read_limits(within), objective="edp"),
                      samples=200, runner=Runner(workers=1), proof=0) for within in BUDGETS]
    ours = [found.score for found in designs]
    theirs = [counted(found, tmp_path / str(at)) for at, found in enumerate(designs)]
    assert len({*ours}) == len(ours)
    assert (np.argsort(ours) == np.argsort(theirs)).all()
    assert theirs == pytest.approx(ours, rel=0.5)

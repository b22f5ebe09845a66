"""Sample runs for the whole room, made once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sample_run import RESNET50, sample_run

HOSTILE = "<img src=x onerror=alert(1)></script><b id='injected'>%{x}"


@pytest.fixture(scope="session")
def run():
    """Return a run of ResNet-50 with every layer mapped."""
    return sample_run()


@pytest.fixture(scope="session")
def gappy():
    """Return a run with two layers that have no mapping."""
    return sample_run(without=(3, 9))


@pytest.fixture(scope="session")
def hostile():
    """Return a run of 36 layers whose names are long and full of markup."""
    shapes = [(f"encoder.block.{index}.attention.self.query_projection {HOSTILE}", 1 + index % 3, 64, 64, 7, 1, 1)
              for index in range(36)]
    return sample_run(shapes, name=HOSTILE)


@pytest.fixture(scope="session")
def lonely():
    """Return a run of one layer without a mapping."""
    return sample_run(RESNET50[:1], without=(0,))

"""What tests of foreign formats share."""

import pytest

from tilewright.interop import load_timeloop


@pytest.fixture
def read(tmp_path):
    """Return what the given texts of Timeloop hold, as files of their section's name."""
    def reader(*texts, **options):
        paths = []
        for text in texts:
            path = tmp_path / f"{text.split(':')[0]}.yaml"
            path.write_text(text)
            paths.append(path)
        return load_timeloop(paths, **options)
    return reader

"""What all tests share: how garbage is collected."""

import gc


def pytest_collection_finish():
    """Leave out of every later collection what was imported until now, some millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)

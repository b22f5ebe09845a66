"""Networks and training loops; knows nothing of accelerators. Loads PyTorch (extra ``learn``)."""

from tilewright.learn.threads import one_thread

__all__ = ["one_thread"]

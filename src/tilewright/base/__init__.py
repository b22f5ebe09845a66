"""Units, errors, seeds, registry: what every room stands on."""

from tilewright.base.errors import InputError
from tilewright.base.registry import Registry, unknown_name
from tilewright.base.stamp import stamped

__all__ = ["InputError", "Registry", "stamped", "unknown_name"]

"""Units, errors, seeds, registry: what every room stands on."""

from tilewright.base.errors import InputError
from tilewright.base.registry import Registry, unknown_name

__all__ = ["InputError", "Registry", "unknown_name"]

"""Units, errors, seeds, registry: what every room stands on."""

from tilewright.base.compiling import part_options, stamped
from tilewright.base.errors import InputError
from tilewright.base.registry import Registry, unknown_name
from tilewright.base.threads import share

__all__ = ["InputError", "Registry", "part_options", "share", "stamped", "unknown_name"]

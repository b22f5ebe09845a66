"""Units, errors, seeds, registry: what every room stands on."""

from tilewright.base.compiling import part_options, stamped
from tilewright.base.errors import InputError
from tilewright.base.located import Location, line_of, path_text
from tilewright.base.registry import Registry, unknown_name
from tilewright.base.threads import share

__all__ = [
    "InputError",
    "Location",
    "Registry",
    "line_of",
    "part_options",
    "path_text",
    "share",
    "stamped",
    "unknown_name",
]

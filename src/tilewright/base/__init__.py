"""Units, errors, seeds, registry: what every room stands on."""

from tilewright.base.compiling import kept, part_options, stamped
from tilewright.base.errors import InputError
from tilewright.base.extras import EXTRAS, has_extra, require_extra
from tilewright.base.located import Location, line_of, path_text
from tilewright.base.registry import Registry, unknown_name
from tilewright.base.threads import share
from tilewright.base.words import free_name, value_of, whole_of

__all__ = [
    "EXTRAS",
    "InputError",
    "Location",
    "Registry",
    "free_name",
    "has_extra",
    "kept",
    "line_of",
    "part_options",
    "path_text",
    "require_extra",
    "share",
    "stamped",
    "unknown_name",
    "value_of",
    "whole_of",
]

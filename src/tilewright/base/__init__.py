"""Units, errors, seeds, registry: what every room stands on."""

from typing import TYPE_CHECKING

from tilewright.base.late import late_names

if TYPE_CHECKING:
    from tilewright.base.compiling import kept, part_options, stamped
    from tilewright.base.documents import (
        MOST_BYTES,
        MOST_VALUES,
        RecordFormat,
        open_binary,
        read_json,
        read_record,
        read_text,
        read_yaml,
    )
    from tilewright.base.errors import InputError
    from tilewright.base.extras import EXTRAS, has_extra, require_extra
    from tilewright.base.fields import FieldsDocument
    from tilewright.base.files import csv_text, replace_file, write_whole
    from tilewright.base.located import Location, line_of, path_text
    from tilewright.base.registry import Registry, unknown_name
    from tilewright.base.sheets import Plot, Table, Value
    from tilewright.base.threads import share
    from tilewright.base.words import digest, free_name, text_html, value_of, whole_of

__all__ = [
    "EXTRAS",
    "MOST_BYTES",
    "MOST_VALUES",
    "FieldsDocument",
    "InputError",
    "Location",
    "Plot",
    "RecordFormat",
    "Registry",
    "Table",
    "Value",
    "csv_text",
    "digest",
    "free_name",
    "has_extra",
    "kept",
    "late_names",
    "line_of",
    "open_binary",
    "part_options",
    "path_text",
    "read_json",
    "read_record",
    "read_text",
    "read_yaml",
    "replace_file",
    "require_extra",
    "share",
    "stamped",
    "text_html",
    "unknown_name",
    "value_of",
    "whole_of",
    "write_whole",
]

__getattr__ = late_names(__name__)

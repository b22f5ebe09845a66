"""Units, errors, seeds, registry: what every room stands on."""

from typing import TYPE_CHECKING

from tilewright.base.late import late_module as late_module
from tilewright.base.late import late_names as late_names
from tilewright.base.late import offered as offered

if TYPE_CHECKING:
    from tilewright.base.compiling import kept as kept
    from tilewright.base.compiling import part_options as part_options
    from tilewright.base.compiling import stamped as stamped
    from tilewright.base.composing import yaml_flow as yaml_flow
    from tilewright.base.composing import yaml_text as yaml_text
    from tilewright.base.documents import MOST_BYTES as MOST_BYTES
    from tilewright.base.documents import MOST_VALUES as MOST_VALUES
    from tilewright.base.documents import RecordFormat as RecordFormat
    from tilewright.base.documents import open_binary as open_binary
    from tilewright.base.documents import read_json as read_json
    from tilewright.base.documents import read_record as read_record
    from tilewright.base.documents import read_text as read_text
    from tilewright.base.documents import read_yaml as read_yaml
    from tilewright.base.documents import shown as shown
    from tilewright.base.errors import InputError as InputError
    from tilewright.base.extras import EXTRAS as EXTRAS
    from tilewright.base.extras import has_extra as has_extra
    from tilewright.base.extras import require_extra as require_extra
    from tilewright.base.fields import Fields as Fields
    from tilewright.base.fields import FieldsDocument as FieldsDocument
    from tilewright.base.fields import wrong as wrong
    from tilewright.base.files import csv_text as csv_text
    from tilewright.base.files import replace_file as replace_file
    from tilewright.base.files import write_whole as write_whole
    from tilewright.base.garbage import collect_seldom as collect_seldom
    from tilewright.base.given import offered_as as offered_as
    from tilewright.base.keeping import KeptValues as KeptValues
    from tilewright.base.keeping import model_sources as model_sources
    from tilewright.base.located import Location as Location
    from tilewright.base.located import line_of as line_of
    from tilewright.base.located import path_text as path_text
    from tilewright.base.registry import Registry as Registry
    from tilewright.base.registry import unknown_name as unknown_name
    from tilewright.base.rows import Rows as Rows
    from tilewright.base.sheets import Plot as Plot
    from tilewright.base.sheets import Table as Table
    from tilewright.base.sheets import Value as Value
    from tilewright.base.standstill import standing_still as standing_still
    from tilewright.base.standstill import working_seconds as working_seconds
    from tilewright.base.threads import share as share
    from tilewright.base.words import digest as digest
    from tilewright.base.words import free_name as free_name
    from tilewright.base.words import renamed_note as renamed_note
    from tilewright.base.words import sizes_text as sizes_text
    from tilewright.base.words import text_html as text_html
    from tilewright.base.words import together as together
    from tilewright.base.words import value_of as value_of
    from tilewright.base.words import whole_of as whole_of

__getattr__, __all__ = late_names(__name__)

"""``tilewright array``: matrix products on a reconfigurable systolic array."""

import tilewright.api
from tilewright.api.array_options import ArrayOptions
from tilewright.cli.compare import deliver
from tilewright.cli.options import Asked, Json, Page, ready, verb


@verb(ArrayOptions)
def array(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Rank the configurations of a reconfigurable systolic array for matrix products.

    A configuration is a layout of sub-arrays, their sides and a dataflow. All are counted exactly, ragged edges
    included; without switches nothing waits, as published for SAGAR.
    """
    ready(report, json)
    run = tilewright.api.array(**asked)
    deliver("array", run.sheet, run.plain, (report, json, None))

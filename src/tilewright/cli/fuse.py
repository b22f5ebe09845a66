"""``tilewright fuse``: which operators run together."""

import tilewright.api
from tilewright.api.fuse_options import FuseOptions
from tilewright.cli.compare import deliver
from tilewright.cli.options import Asked, Json, Page, ready, verb


@verb(FuseOptions)
def fuse(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Find which operators of a network are best run together, in what tiles, and what stays on the chip meanwhile.

    Beside the plan stand the best one that fuses nothing, and what no plan can beat.
    """
    ready(report, json)
    run = tilewright.api.fuse(**asked)
    deliver("fuse", run.sheet, run.plain, (report, json, None))

"""``tilewright recommend``: what to set a reconfigurable array to, or an accelerator."""

import tilewright.api
from tilewright.api.recommend_options import RecommendOptions
from tilewright.cli.compare import deliver
from tilewright.cli.mapping import deliver_run
from tilewright.cli.options import Asked, Json, Page, ready, verb


@verb(RecommendOptions)
def recommend(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Say which partitions, shape and dataflow of a reconfigurable array each layer of a network wants.

    Exact, as every configuration is looked at; with --model a network answers instead, and its regret is told. For an
    accelerator (--arch edge-s2): which mappings, from those of like layers that the library knows, without a search.
    """
    ready(report, json)
    run = tilewright.api.recommend(**asked)
    if isinstance(run, tilewright.api.Run):
        deliver_run(run, report, json)
    else:
        deliver("recommend", run.sheet, run.plain, (report, json, None))

"""``tilewright allocate``: which tensor stays on which scratchpad."""

import tilewright.api
from tilewright.api.residency_options import ResidencyOptions
from tilewright.cli.compare import conducted, deliver, end_early
from tilewright.cli.options import Asked, Json, Page, ready, verb


@verb(ResidencyOptions)
def allocate(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Plan which tensors of a network stay on which scratchpad, when, and at which address; with a bound on all plans.

    What is loaded, stored and moved is counted; the plan is checked word by word before it is shown. Ctrl-C keeps the
    best plan with its gap (exit code 130).
    """
    ready(report, json)
    plan = conducted(tilewright.api.allocate, asked, "s")
    faults = plan.verify()
    assert not faults, faults
    deliver("plan", plan.sheet, plan.plain, (report, json, asked["out"]))
    if plan.interrupted:
        end_early("", asked["out"])

"""``tilewright prune``: take mappings out of the library."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

import tilewright.store
from tilewright.base import InputError
from tilewright.cli.options import StorePlace, console, say

MOST_DAYS = 100_000


def prune(
    older_than: Annotated[int | None, typer.Option(
        "--older-than", metavar="DAYS", show_default=False, help="Those found more than so many days ago.")] = None,
    arch: Annotated[str | None, typer.Option(
        "--arch", "-a", metavar="NAME", show_default=False, help="Those for the accelerator of this name.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    store: StorePlace = None,
) -> None:
    """Remove best mappings from the library; runs stay in the store. With both options, what both name."""
    if everything == (older_than is not None or arch is not None):
        raise InputError("prune", "must be told which mappings", None, "Give --older-than DAYS, --arch NAME, or --all")
    if older_than is not None and not 0 <= older_than <= MOST_DAYS:
        raise InputError("--older-than", f"must be from 0 to {MOST_DAYS} days", older_than)
    now = datetime.now(UTC)
    before = now + timedelta(days=1) if everything else None
    if older_than is not None:
        before = now - timedelta(days=older_than)
    with tilewright.store.Library(store).there() as found:
        count = found.prune(before, arch)
    say(console(), f"{count} mappings removed from {found.shown}")

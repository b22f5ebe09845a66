"""``tilewright explore``: which flexibility pays."""

import threading

from tilewright.api.options import ExploreOptions
from tilewright.cli.compare import command, deliver, end_early, times
from tilewright.cli.options import Asked, Json, ready, verb


@verb(ExploreOptions)
def explore(asked: Asked, json_file: Json = None) -> None:
    """Find which flexibility pays: what each choice is worth on networks, and the area that it adds.

    Every layer is searched on every choice at equal samples. Ctrl-C shows what is complete (exit code 130).
    """
    from tilewright.api import explore as explore_all
    from tilewright.cli.progress import SearchBar
    from tilewright.report import exploration_sheet, exploration_tree

    ready(None, json_file)
    stop, out, tuned_for = threading.Event(), asked["out"], asked["tuned_for"]
    with SearchBar() as bar:
        found = explore_all(**asked, told=bar.update, stop=stop)
    if found.outcomes:
        says = (f"{asked['budget']:,} samples a layer and choice, mapper {asked['mapper']}, {times(asked['seeds'])}"
                + (f", fixed as suits {tuned_for}" if tuned_for else ""))
        deliver(exploration_sheet(found, says, command()), exploration_tree(found, says), (None, json_file, out),
                "explore")
    end_early(stop, bool(found.outcomes), out is not None)

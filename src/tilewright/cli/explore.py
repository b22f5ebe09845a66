"""``tilewright explore``: which flexibility pays."""

from typing import Any

import tilewright.api
from tilewright.api.machine_options import ExploreOptions
from tilewright.cli.compare import conduct, times
from tilewright.cli.options import Asked, Json, verb


@verb(ExploreOptions)
def explore(asked: Asked, json_file: Json = None) -> None:
    """Find which flexibility pays: what each choice is worth on networks, and the area that it adds.

    Every layer is searched on every choice at equal samples. Ctrl-C shows what is complete (exit code 130).
    """
    def says(found: Any) -> str:
        fixed = f", fixed as suits {asked['tuned_for']}" if asked["tuned_for"] else ""
        return (f"{asked['budget']:,} samples a layer and choice, mapper {asked['mapper']}, "
                f"{times(range(asked['seeds']))}{fixed}, vector work {asked['vector']}") if found.outcomes else ""

    conduct("explore", tilewright.api.explore, asked, says, (None, json_file, asked["out"]), "exploration")

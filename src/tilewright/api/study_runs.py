"""What runs the searches of a study, and keeps them: loaded without the studies, and with the store."""

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.api.machine_options import DesignOptions, ExploreOptions, SweepOptions
from tilewright.api.options import StudyOptions
from tilewright.jobs import Runner
from tilewright.store import kept_in


@contextmanager
def study_runner(asked: StudyOptions | ExploreOptions | DesignOptions | SweepOptions, study: str) -> Iterator[Runner]:
    """Give what runs the searches of a study, and keeps them where that is asked for."""
    with kept_in(asked.out, study) as kept:
        yield Runner(workers=asked.workers, on=asked.on, keeper=kept, observer=asked.told, stop=asked.stop)

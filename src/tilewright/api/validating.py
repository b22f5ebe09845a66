"""Our figures beside those of others: what is measured, and the page about it."""

from collections.abc import Sequence

from tilewright.validation import CaseObserver, Scoreboard
from tilewright.validation import validate as run_sets


def validate(sets: Sequence[str] = (), *, full: bool = False, observer: CaseObserver | None = None) -> Scoreboard:
    """Run sets of reference figures (all where none is named) and judge our errors against those accepted.

    Parameters
    ----------
    full
        Minutes instead of seconds: more random nests beside the oracle.
    observer
        Called with a set's name, cases done and cases in all.

    Raises
    ------
    InputError
        If there is no set of such a name.

    Examples
    --------
    >>> import tilewright as tw
    >>> board = tw.validate(["gemmini"])
    >>> board.holds, board.outcomes[0].judged[0].quantity
    (True, 'cycles in rounds')
    """
    return run_sets(sets, full=full, observer=observer)


def accuracy_page(board: Scoreboard | None = None) -> str:
    """Return the page of the documentation on accuracy, of a quick run of all sets where none is given."""
    from tilewright.report import accuracy_page as written  # noqa: PLC0415  (rich loads late)

    return written(board if board is not None else validate())

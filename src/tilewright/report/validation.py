"""The scoreboard of accuracy as a person sees it: a table on the terminal, and the page of the documents."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from tilewright.report.quantities import MISSING
from tilewright.report.terminal import print_listing
from tilewright.validation import Judged, Scoreboard, SetOutcome, Summary

_COLOURS = {"as accepted": "green", "better": "green", "grown": "red", "not accepted yet": "red"}
COMMAND = "tilewright validate --page docs/accuracy.md"
WIDTH = 128


def print_scoreboard(board: Scoreboard, console: Console, *, cases: bool = False) -> None:
    """Print one row for each set and quantity, and every case besides where ``cases`` asks for them."""
    rows = [(outcome.set.name, outcome.set.kind, each.quantity, str(each.found.cases), *_errors(each.found),
             _accepted(each), Text(each.verdict, style=_COLOURS[each.verdict]))
            for outcome in board.outcomes for each in outcome.judged]
    print_listing(("Set", "Reference", "Quantity", "Cases", "Median\nerror", "Worst\nerror", "Pairs in\norder",
                   "Accepted\nworst", "Verdict"), rows, (3, 4, 5, 6, 7), console)
    for outcome in board.outcomes:
        if cases:
            console.print(f"\n{outcome.set.name}", style="bold", markup=False)
            print_listing(("Case", "Quantity", "Ours", "Reference", "Error"),
                          [(figure.case, figure.quantity, number(figure.ours), number(figure.reference),
                            error_text(figure.error)) for figure in outcome.findings.figures], (2, 3, 4), console)
        for note in outcome.findings.notes:
            console.print(f"{outcome.set.name}: {note}", style="dim", markup=False, soft_wrap=True)
    grown = [f"{outcome.set.name} ({each.quantity})" for outcome in board.outcomes for each in outcome.judged
             if not each.holds]
    if grown:
        console.print(f"Errors that have grown: {'; '.join(grown)}.", style="bold red", markup=False,
                      soft_wrap=True)


def accuracy_page(board: Scoreboard) -> str:
    """Return the page of the documents on accuracy; a test keeps ``docs/accuracy.md`` equal to it."""
    lines = [
        "# Accuracy", "",
        *_wrapped(
            f"How near our figures are to those of others. This page is written by `{COMMAND}`; the tests fail when an "
            "error grows beyond the one that is accepted, or when this page is not what the command writes. An error "
            "is ours over theirs, less one; *in order* is the share of all pairs of cases that stand in the same order "
            "on both sides. References are our own oracle, other models, simulations of hardware (RTL) and chips "
            "(silicon)."),
        "", *_rows(("set", "reference", "compared", "cases", "median error", "worst error", "in order"), (
            (f"[{outcome.set.name}](#{outcome.set.name})", outcome.set.kind, each.quantity, f"{each.found.cases:,}",
             *_errors(each.found, where=True)) for outcome in board.outcomes for each in outcome.judged))]
    for outcome in board.outcomes:
        lines += ["", *_section(outcome)]
    return "\n".join(lines) + "\n"


def _section(outcome: SetOutcome) -> Iterator[str]:
    """Yield the part of the page on one set."""
    found = outcome.set
    yield from (f"## {found.name}", "", *_wrapped(f"{found.title} ({found.kind}). Source: {found.source}."), "",
                *_wrapped(found.about))
    told = [(each.name, each.unit, each.about) for each in found.quantities]
    yield from ("", *_rows(("compared", "unit", "ours"), told))
    if found.each_case:
        yield from ("", *_rows(("compared", "case", "ours", "reference", "error"), (
            (each.quantity, figure.case, number(figure.ours), number(figure.reference), error_text(figure.error))
            for each in outcome.judged for figure in outcome.findings.figures if figure.quantity == each.quantity)))
    for note in (*outcome.findings.notes, found.why):
        if note:
            yield from ("", *_wrapped(note))


def _wrapped(text: str) -> list[str]:
    """Return paragraphs, and lists of lines that begin with a dash, in lines of a page."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        items = block.removeprefix("- ").split("\n- ") if block.startswith("- ") else [block]
        for item in items:
            dash = "- " if block.startswith("- ") else ""
            lines += wrap(" ".join(item.split()), WIDTH, initial_indent=dash, subsequent_indent=" " * len(dash),
                          break_long_words=False, break_on_hyphens=False)
        lines.append("")
    return lines[:-1]


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield from (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    yield from (f"| {' | '.join(row)} |" for row in rows)


def number(value: float) -> str:
    """Return a figure with all digits of whole numbers, five of others."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def error_text(error: float) -> str:
    """Return a signed error in per cent; what is beyond the digits of most references is told as such."""
    if not isfinite(error):
        return "unbounded"
    share = 100 * error
    if abs(share) < 0.001:
        return "< 0.001 %" if share else "0 %"
    return f"{share:+.1f} %" if abs(share) >= 0.1 else f"{share:+.2g} %"


def _errors(found: Summary, *, where: bool = False) -> tuple[str, str, str]:
    case = f" ({found.worst_case})" if where and found.worst_case else ""
    return (error_text(found.median_error).lstrip("+"), error_text(found.worst_error).lstrip("+") + case,
            MISSING if found.order is None else f"{100 * found.order:.1f} %")


def _accepted(each: Judged) -> str:
    return MISSING if each.accepted is None else error_text(each.accepted.worst_error).lstrip("+")

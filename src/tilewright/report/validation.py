"""The scoreboard of accuracy as a person sees it: a table on the terminal, and the page of the documents."""

from collections.abc import Iterator
from math import isfinite
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from tilewright.report.quantities import MISSING
from tilewright.report.terminal import print_listing
from tilewright.validation import Figure, Judged, Outcome, Scoreboard, Summary

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
        "", "| set | reference | compared | cases | median error | worst error | in order |",
        "|---|---|---|---|---|---|---|"]
    lines += [f"| [{outcome.set.name}](#{outcome.set.name}) | {outcome.set.kind} | {each.quantity} | "
              f"{each.found.cases:,} | {' | '.join(_errors(each.found, where=True))} |"
              for outcome in board.outcomes for each in outcome.judged]
    for outcome in board.outcomes:
        lines += ["", *_section(outcome)]
    return "\n".join(lines) + "\n"


def _section(outcome: Outcome) -> Iterator[str]:
    """Yield the part of the page on one set."""
    found = outcome.set
    yield from (f"## {found.name}", "", *_wrapped(f"{found.title} ({found.kind}). Source: {found.source}."), "",
                *_wrapped(found.about))
    told = [(each.name, each.unit, each.about) for each in found.quantities]
    yield from ("", "| compared | unit | ours |", "|---|---|---|")
    yield from (f"| {name} | {unit} | {about} |" for name, unit, about in told)
    if found.each_case:
        yield from ("", *_cases(outcome))
    for note in (*outcome.findings.notes, found.why):
        if note:
            yield from ("", *_wrapped(note))


def _wrapped(text: str) -> list[str]:
    """Return a paragraph in lines of a page; text of several lines is taken as it stands."""
    if "\n" in text:
        return text.splitlines()
    return wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _cases(outcome: Outcome) -> Iterator[str]:
    """Yield a table of all cases: one row a case, ours, theirs and the error of each quantity."""
    names = [each.quantity for each in outcome.judged]
    cases = list(dict.fromkeys(figure.case for figure in outcome.findings.figures))
    figures = {(figure.case, figure.quantity): figure for figure in outcome.findings.figures}
    yield "| case | " + " | ".join(f"{name}: ours, reference, error" for name in names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for case in cases:
        yield f"| {case} | " + " | ".join(_cell(figures.get((case, name))) for name in names) + " |"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return MISSING
    return f"{number(figure.ours)}, {number(figure.reference)}, {error_text(figure.error)}"


def number(value: float) -> str:
    """Return a figure with all digits of whole numbers, five of others."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def error_text(error: float) -> str:
    """Return a signed error in per cent, with two digits where it is small."""
    if not isfinite(error):
        return "unbounded"
    share = 100 * error
    return "0 %" if share == 0 else f"{share:+.1f} %" if abs(share) >= 0.1 else f"{share:+.2g} %"


def _errors(found: Summary, *, where: bool = False) -> tuple[str, str, str]:
    case = f" ({found.worst_case})" if where and found.worst_case else ""
    return (error_text(found.median_error).lstrip("+"), error_text(found.worst_error).lstrip("+") + case,
            MISSING if found.order is None else f"{100 * found.order:.1f} %")


def _accepted(each: Judged) -> str:
    return MISSING if each.accepted is None else error_text(each.accepted.worst_error).lstrip("+")

"""An explanation as lines of plain text."""

from collections.abc import Iterable, Iterator
from itertools import chain

from tilewright.cost.derivations import Derivation, Explanation, Factor

_INDENT = "  "


def explanation_text(explanation: Explanation) -> str:
    """Return the count, each derivation, the arithmetic and the oracle's verdict as text."""
    parts = [f"{explanation.count} = {explanation.value:,} words, over all instances and the whole run"]
    parts += ["\n".join(_derivation(derivation)) for derivation in explanation.derivations]
    rows = [(line.name, "=", f"{line.formula} = {line.value:,}" if line.formula != f"{line.value:,}" else line.formula)
            for line in explanation.lines]
    reasons = [line.sentence for line in explanation.lines]
    arithmetic = chain.from_iterable(
        (text, f"{_INDENT * 2}{reason}") for text, reason in zip(_columns(rows), reasons, strict=True))
    parts.append("\n".join(["So", *arithmetic]))
    parts.append(explanation.check)
    return "\n\n".join(parts)


def _derivation(derivation: Derivation) -> Iterator[str]:
    yield f"{derivation.title}: {derivation.sentence}."
    yield "Loops outside, outermost first:" if derivation.loops else "No loop lies outside."
    yield from _columns(
        (loop.level, loop.dimension, f"{loop.outer:,} -> {loop.step:,}",
         f"{loop.count:,} {'lanes' if loop.spatial else 'times'}", loop.action, loop.why) for loop in derivation.loops)
    yield "Factors:"
    for factor in derivation.factors:
        yield from _factor(factor)


def _factor(factor: Factor) -> Iterator[str]:
    cut = [(name, lines) for name, lines in factor.tables if len(lines) > 1]
    yield f"{_INDENT}{factor.name}: {factor.formula} -> {factor.value:,}"
    if not cut and not factor.windows:
        return
    yield f"{_INDENT * 2}{factor.sentence}"
    for name, lines in cut:
        steps = (f"{' + '.join(f'{count:,} of {extent:,}' for extent, count in line.pieces)} ({line.after})"
                 for line in lines)
        yield f"{_INDENT * 2}pieces of {name}: {'; '.join(steps)}"
    if factor.windows:
        moving, still = (name for name, _ in factor.tables)
        header = "tiles", f"{moving} before", f"{moving} now", still, "words", "carried over"
        yield from _columns(chain([header], (
            (f"{w.times:,}", "-" if w.previous is None else f"{w.previous:,}", f"{w.present:,}", f"{w.extent:,}",
             f"{w.words:,}", f"{w.carried:,}") for w in factor.windows)), indent=2)


def _columns(rows: Iterable[tuple[str, ...]], indent: int = 1) -> list[str]:
    """Align the columns of rows: those of numbers, under a heading or not, at their right."""
    table = list(rows)
    columns = []
    for column in zip(*table, strict=True):
        width = max(map(len, column))
        numbers = all(cell == "-" or cell.replace(",", "").isdigit() for cell in column[1:]) and len(column) > 1
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return [(_INDENT * indent + _INDENT.join(row)).rstrip() for row in zip(*columns, strict=True)]

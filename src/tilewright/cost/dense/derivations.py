"""Why a count is what it is: its derivation loop by loop, from the closed forms, checked against the oracle.

Nothing is computed here that `closed_form` does not compute; its tables and factors are named and put in order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import prod

from tilewright.base import InputError
from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.nest import Boundary, Nest, NestLoop, standing
from tilewright.cost.records import KINDS, Cost
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import Mapping, violations
from tilewright.workload import Axis, Operator, Tensor

_DESCRIBED = ("levels", "dimension", "step", "coverage", "axis", "keeps", "outermost")
"""Violations that leave a mapping without a meaning; tiles and arrays that do not fit can still be counted."""
_INDENT = "  "


@dataclass(frozen=True)
class LoopLine:
    """One loop outside the child, and what it does to the child's tile.

    ``action`` is ``advances``, ``slides`` (advances, and words carry over), ``stands still``, ``lanes merge`` or
    ``lanes apart``.
    """

    level: str
    dimension: str
    outer: int
    step: int
    count: int
    spatial: bool
    action: str
    why: str


@dataclass(frozen=True)
class PieceLine:
    """Pieces of a dimension once a loop has cut it: ``(extent, how many)`` pairs, ``after`` saying which loop."""

    after: str
    pieces: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ProductFactor:
    """One factor of the product: along an axis of the tensor, or of a dimension that it does not use."""

    name: str
    """Dimensions of the axis joined by ``+``, or the dimension."""
    sentence: str
    formula: str
    """What is counted, in words and in numbers."""
    value: int
    tables: tuple[tuple[str, tuple[PieceLine, ...]], ...]
    """Pieces of each dimension, loop by loop."""
    windows: tuple[cf.TileGroup, ...] = ()
    """Of a sliding axis: the tiles that are alike, of which the value is the sum of times x (words - carried)."""


@dataclass(frozen=True)
class Derivation:
    """Words moved across one boundary: the loops outside the child, the factors, and their product."""

    title: str
    sentence: str
    loops: tuple[LoopLine, ...]
    factors: tuple[ProductFactor, ...]

    @property
    def value(self) -> int:
        """Product of the factors."""
        return prod(factor.value for factor in self.factors)


@dataclass(frozen=True)
class ArithmeticLine:
    """A step of arithmetic: ``formula`` = ``value``, and the reason."""

    name: str
    formula: str
    value: int
    sentence: str


@dataclass(frozen=True)
class Explanation:
    """A count with all that leads to it, summed over instances."""

    count: str
    """``memory.tensor.kind``."""
    value: int
    derivations: tuple[Derivation, ...]
    """Products that enter the count; their own words are in ``title``."""
    lines: tuple[ArithmeticLine, ...]
    """The arithmetic from these products to the count, in order; the last line is the count."""
    oracle: int | None
    """The count by the oracle, None where the nest is too large to be walked."""
    check: str
    """What the comparison found, in words."""

    @property
    def agrees(self) -> bool | None:
        """Whether the oracle finds the same; None where it was not asked."""
        return None if self.oracle is None else self.oracle == self.value

    def text(self) -> str:
        """Return the explanation for a terminal."""
        return _text(self)


def explain(operator: Operator, accelerator: Accelerator, mapping: Mapping, count: str, *,
            check: bool = True) -> Explanation:
    """Derive one count of a mapping, such as ``GLB.I.reads``.

    The tensor may be named by its role (``GLB.inputs.reads``, ``glb.input.reads``); capital letters do not matter.
    With ``check`` the oracle walks the nest too, if it is small enough.

    Raises an `InputError` if there is no such count, or the mapping does not describe a complete nest.
    """
    nest = described(operator, accelerator, mapping)
    level, tensor, kind = _find(nest, count)
    told = _Story(nest, tensor)
    value = told.count(kind, level)
    name = f"{accelerator.levels[level].name}.{tensor.name}.{kind}"
    place = accelerator.levels[level].name, tensor.name
    oracle, verdict = checked(nest, value, lambda cost: int(getattr(cost.counts[place], kind))) if check else (
        None, "Not compared with the oracle.")
    return Explanation(name, value, tuple(told.derivations), tuple(told.lines), oracle, verdict)


def described(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Nest:
    """Return the nest of a mapping; one that describes no complete nest is an `InputError`."""
    for violation in violations(mapping, operator, accelerator):
        if violation.kind in _DESCRIBED:
            raise InputError("mapping", violation.message, mend=violation.mend)
    return Nest(operator, accelerator, mapping)


def checked(nest: Nest, value: int, figure: Callable[[Cost], int]) -> tuple[int | None, str]:
    """Return a figure by the oracle, None where the nest is too large to be walked, and what was found in words."""
    try:
        found = figure(walk(nest.operator, nest.accelerator, nest.mapping))
    except InputError as error:
        given = f"{error.given:,}" if isinstance(error.given, int) else str(error.given)
        return None, f"Not checked: the oracle did not walk this nest, which {error.rule} and has {given}."
    if found == value:
        return found, f"The oracle, which walks the nest literally, counts {found:,} too."
    return found, f"The oracle, which walks the nest literally, counts {found:,}: one is wrong, please report it."


def _find(nest: Nest, count: str) -> tuple[int, Tensor, str]:
    """Return level, tensor and kind of access that ``count`` names."""
    kept = {(level, tensor.name): tensor for tensor in nest.operator.tensors for level in nest.keepers(tensor)}
    names = [level.name for level in nest.accelerator.levels]
    known = ", ".join(f"{names[level]}.{tensor}" for level, tensor in sorted(kept))
    rule = "must be MEMORY.TENSOR.KIND of a tensor that the memory keeps"
    mend = f"Known: {known}; each with .reads, .fills, .updates, .drains; and latency, and energy"
    parts = count.rsplit(".", 2)
    if len(parts) < 3:
        raise InputError("count", rule, count, mend)
    memory, wanted, kind = (part.strip().lower() for part in parts)
    tensors = [tensor for tensor in nest.operator.tensors if wanted == tensor.name.lower()]
    tensors = tensors or [tensor for tensor in nest.operator.tensors if wanted in (tensor.role, tensor.role[:-1])]
    levels = [level for level, name in enumerate(names) if name.lower() == memory]
    kinds = [name for name in KINDS if kind in (name, name[:-1])]
    if len(tensors) > 1:
        several = ", ".join(tensor.name for tensor in tensors)
        raise InputError("count", f"must name one tensor, {wanted} are {several}", count, mend)
    if not (levels and tensors and kinds) or (levels[0], tensors[0].name) not in kept:
        raise InputError("count", rule, count, mend)
    return levels[0], tensors[0], kinds[0]


class _Story:
    """Gathers the derivations and lines that lead to a count of one tensor."""

    def __init__(self, nest: Nest, tensor: Tensor) -> None:
        self.nest = nest
        self.tensor = tensor
        self.inward = {boundary.parent: boundary for boundary in nest.boundaries(tensor)}
        self.outward = {boundary.child: boundary for boundary in nest.boundaries(tensor)}
        self.outermost = nest.keepers(tensor)[0]
        self.derivations: list[Derivation] = []
        self.lines: list[ArithmeticLine] = []

    def name(self, level: int) -> str:
        """Name of a level, or of the compute unit after the last."""
        levels = self.nest.accelerator.levels
        return levels[level].name if level < len(levels) else self.nest.accelerator.compute.name

    def count(self, kind: str, level: int) -> int:
        """Derive a count; what it rests on comes first."""
        if self.tensor.is_output:
            return {"reads": self.reads_back, "fills": self.given_back, "updates": self.updates,
                    "drains": self.drains}[kind](level)
        if kind in ("updates", "drains"):
            return self.line(kind, level, "0", 0, f"{self.tensor.name} is an operand: nothing writes it on its way in")
        if kind == "fills" and level == self.outermost:
            return self.line(kind, level, "0", 0, "the outermost memory begins with all words and is never filled")
        if kind == "fills":
            boundary, view = self.outward[level], cf.View(merged=False)
            sentence = (f"in every visit every instance of {self.name(level)} at work takes its own tile from "
                        f"{self.name(boundary.parent)}")
        else:
            boundary, view = self.inward[level], cf.View(merged=True)
            sentence = (f"in every visit {self.name(level)} reads each word that {self.name(boundary.child)} needs, "
                        "once for all lanes that share it")
        return self.product(kind, level, boundary, view, sentence)

    def line(self, kind: str, level: int, formula: str, value: int, sentence: str) -> int:
        """Add a step of arithmetic."""
        self.lines.append(ArithmeticLine(f"{self.name(level)}.{self.tensor.name}.{kind}", formula, value, sentence))
        return value

    def product(self, kind: str, level: int, boundary: Boundary, view: cf.View, sentence: str) -> int:
        """Add a derivation and the line that multiplies its factors."""
        title = f"{self.name(level)}.{self.tensor.name}.{kind}"
        derivation = Derivation(title, sentence, tuple(loop_lines(self.nest, boundary, view)),
                                tuple(_factors(self.nest, boundary, view)))
        self.derivations.append(derivation)
        formula = " x ".join(f"{factor.value:,} ({factor.name})" for factor in derivation.factors)
        return self.line(kind, level, formula, derivation.value, sentence)

    def updates(self, level: int) -> int:
        """Partial sums that arrive from inside."""
        child = self.name(self.inward[level].child)
        return self.product("updates", level, self.inward[level], cf.View(merged=True),
                            f"when a visit of {child} ends, {self.name(level)} is written once for each word, after "
                            "lanes that reduce have added theirs")

    def drains(self, level: int) -> int:
        """Partial sums that leave for the parent."""
        if level == self.outermost:
            return self.line("drains", level, "0", 0, "the outermost memory keeps its words")
        return self.product("drains", level, self.outward[level], cf.View(merged=False),
                            f"when a visit ends, every instance of {self.name(level)} at work gives up its tile")

    def given_back(self, level: int) -> int:
        """Partial sums that come back from the parent."""
        if level == self.outermost:
            return self.line("fills", level, "0", 0, "nothing lies outside that could hold partial sums")
        boundary = self.outward[level]
        parent = self.name(boundary.parent)
        if cf.combines(self.nest, boundary):
            return self.line("fills", level, "0", 0,
                             f"lanes that do not add up their partial sums share words: {parent} combines them, so all "
                             "start from zero (rule 5)")
        value = self.reads_back(boundary.parent)
        return self.line("fills", level, f"{value:,}", value,
                         f"what {parent} reads is delivered, each word to one of the instances that merge")

    def reads_back(self, level: int) -> int:
        """Partial sums read: all updates but those of words that start from zero."""
        updates = self.updates(level)
        if level == self.outermost:
            starts = self.tensor.words(self.nest.operator.sizes)
            leaving = f"{starts:,} words in all"
        else:
            filled, left = self.given_back(level), self.drains(level)
            starts = left - filled
            leaving = f"{left:,} drained - {filled:,} given back"
        self.line("starts from zero", level, leaving, starts,
                  f"words that {self.name(level)} does not hold yet when they are first updated in a visit of its own")
        return self.line("reads", level, f"{updates:,} updates - {starts:,} starts from zero", updates - starts,
                         "every update adds to a word that is read, except where it starts from zero")


def loop_lines(nest: Nest, boundary: Boundary, view: cf.View) -> list[LoopLine]:
    """Return the loops outside the child of a boundary, and what each does to its tile."""
    last = cf.innermost_advancing(nest, boundary)
    innermost = nest.loops[last] if last >= 0 else None
    found = []
    for roled in cf.roles(nest, boundary, view):
        loop = roled.loop
        if loop.spatial:
            action, why = _in_space(nest, boundary, view, roled)
        else:
            action, why = _in_time(nest, boundary, roled, loop is innermost)
        level = nest.accelerator.levels[loop.level].name
        found.append(LoopLine(level, loop.dimension, loop.outer, loop.step, loop.count, loop.spatial, action, why))
    return found


def _in_time(nest: Nest, boundary: Boundary, roled: cf.RoledLoop, innermost: bool) -> tuple[str, str]:
    name, tensor = roled.loop.dimension, boundary.tensor
    if roled.role is cf.Role.STILL:
        return "stands still", f"{name} does not concern {tensor.name}, and no loop inside moves its tile"
    if boundary.child == len(nest.mapping.levels):
        return "advances", "the compute unit keeps nothing: every step asks anew"
    if roled.halo:
        return "slides", f"innermost loop that moves {tensor.name}'s tile: words it still holds are not brought again"
    if name in tensor.dimensions:
        return "advances", f"{'innermost loop that' if innermost else 'it'} moves {tensor.name}'s tile"
    return "advances", f"{name} does not concern {tensor.name}, but a loop inside moves its tile: it comes anew"


def _in_space(nest: Nest, boundary: Boundary, view: cf.View, roled: cf.RoledLoop) -> tuple[str, str]:
    loop, tensor = roled.loop, boundary.tensor
    fanout = nest.accelerator.levels[loop.level]
    assert isinstance(fanout, Fanout)
    plain = any(axis.dimensions == (loop.dimension,) for axis in tensor.axes)
    if plain:
        return "lanes apart", f"lanes hold different words of {tensor.name}"
    if roled.role is cf.Role.MERGED:
        return "lanes merge", _why_merged(tensor, loop)
    place = standing(nest.accelerator, boundary, loop.level, loop.side)
    if place is None or place < boundary.parent:
        parent, child = (nest.mapping.levels[at].level if at < len(nest.mapping.levels) else ""
                         for at in (boundary.parent, boundary.child))
        return ("lanes apart", f"instances of {parent} count each for itself") if place is not None else (
            "lanes are one", f"one instance of {child} serves all lanes along {loop.side}")
    if not view.merged:
        return "lanes apart", f"every instance {'drains' if tensor.is_output else 'fills'} its own tile"
    merges = fanout.merges(tensor.name, tensor.role)
    if not merges[loop.side == "Y"]:
        return "lanes apart", f"{fanout.name} does not {'reduce' if tensor.is_output else 'multicast'}" + (
            f" {tensor.name} along {loop.side}" if any(merges) else "")
    return "lanes apart", (f"another loop over {loop.dimension} runs between these lanes and the child: their tiles do "
                           "not abut (rule 4)")


def _why_merged(tensor: Tensor, loop: NestLoop) -> str:
    if loop.dimension in tensor.dimensions:
        return ("lanes overlap: their sums of a word are added on the way" if tensor.is_output
                else "lanes overlap: one read serves all that want a word")
    return ("lanes work on the same words: their sums are added on the way" if tensor.is_output
            else "lanes want the same words: one read serves all")


def _factors(nest: Nest, boundary: Boundary, view: cf.View) -> list[ProductFactor]:
    loops = cf.by_dimension(nest, cf.roles(nest, boundary, view))
    values = cf.factors(nest, boundary, view)
    axes = {"+".join(axis.dimensions): axis for axis in boundary.tensor.axes}
    return [_sliding(nest, axes[name], loops, value) if "+" in name else _single(nest, name, loops[name], value,
                                                                                 name in axes)
            for name, value in values.items()]


def _table(nest: Nest, name: str, size: int, loops: list[cf.RoledLoop]) -> tuple[str, tuple[PieceLine, ...]]:
    """Pieces of a dimension after each of its loops."""
    lines = [PieceLine("at first", ((size, 1),))]
    for index, roled in enumerate(loops):
        level = nest.accelerator.levels[roled.loop.level].name
        cut = roled.role in (cf.Role.TIME, cf.Role.LANE)
        after = f"{level} {name}: {roled.loop.step}" + ("" if cut else ", first one only")
        lines.append(PieceLine(after, tuple(cf.pieces(size, loops[:index + 1]).items())))
    return name, tuple(lines)


def _single(nest: Nest, name: str, loops: list[cf.RoledLoop], value: int, plain: bool) -> ProductFactor:
    """Return the factor of a plain axis, or of a dimension that the tensor does not use."""
    if plain:
        loops = [cf.RoledLoop(r.loop, cf.Role.LANE) if r.role is cf.Role.MERGED else r for r in loops]
    table = _table(nest, name, nest.operator.sizes[name], loops)
    sentence = (f"{name} is a plain axis: each index lies in one piece" if plain else
                f"{name} is no dimension of the tensor: the pieces say how often the tile comes")
    formula = " + ".join(f"{count:,} {'x' if plain else 'of'} {extent:,}" for extent, count in table[1][-1].pieces)
    return ProductFactor(name, sentence, formula, value, (table,))


def _sliding(nest: Nest, axis: Axis, loops: dict[str, list[cf.RoledLoop]], value: int) -> ProductFactor:
    moving, still = cf.sides(axis, nest.operator.sizes, loops)
    windows = tuple(cf.windows(moving, still))
    position = " + ".join(f"{coefficient} {name}" if coefficient > 1 else name for name, coefficient in axis.terms)
    sentence = (f"the axis {position} slides: {moving.name} by {still.name} touch {moving.name} x {still.name} - "
                f"({moving.name} - {still.coefficient})+ x ({still.name} - {moving.coefficient})+ words, less those "
                "carried over")
    lanes = [f"{side.name} lanes of {', '.join(map(str, side.lanes))}" for side in (moving, still) if side.lanes]
    if lanes:
        sentence += f", shared by {' and '.join(lanes)}"
    formula = " + ".join(f"{w.times:,} x ({w.words:,} - {w.carried:,})" if w.carried else f"{w.times:,} x {w.words:,}"
                         for w in windows)
    tables = tuple(_table(nest, side.name, side.size, list(side.outer)) for side in (moving, still))
    return ProductFactor("+".join(axis.dimensions), sentence, formula, value, tables, windows)


__all__ = ["ArithmeticLine", "Derivation", "Explanation", "LoopLine", "PieceLine", "ProductFactor", "aligned_columns",
           "checked", "described", "explain", "loop_lines"]


def _text(explanation: Explanation) -> str:
    """Return the count, each derivation, the arithmetic and the oracle's verdict as text."""
    parts = [f"{explanation.count} = {explanation.value:,} words, over all instances and the whole run"]
    parts += ["\n".join(_derivation_text(derivation)) for derivation in explanation.derivations]
    rows = [(line.name, "=", f"{line.formula} = {line.value:,}" if line.formula != f"{line.value:,}" else line.formula)
            for line in explanation.lines]
    reasons = [line.sentence for line in explanation.lines]
    arithmetic = chain.from_iterable(
        (text, f"{_INDENT * 2}{reason}") for text, reason in zip(aligned_columns(rows), reasons, strict=True))
    parts.append("\n".join(["So", *arithmetic]))
    parts.append(explanation.check)
    return "\n\n".join(parts)


def _derivation_text(derivation: Derivation) -> Iterator[str]:
    yield f"{derivation.title}: {derivation.sentence}."
    yield "Loops outside, outermost first:" if derivation.loops else "No loop lies outside."
    yield from aligned_columns(
        (loop.level, loop.dimension, f"{loop.outer:,} -> {loop.step:,}",
         f"{loop.count:,} {'lanes' if loop.spatial else 'times'}", loop.action, loop.why) for loop in derivation.loops)
    yield "Factors:"
    for factor in derivation.factors:
        yield from _factor_text(factor)


def _factor_text(factor: ProductFactor) -> Iterator[str]:
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
        yield from aligned_columns(chain([header], (
            (f"{w.times:,}", "-" if w.previous is None else f"{w.previous:,}", f"{w.present:,}", f"{w.extent:,}",
             f"{w.words:,}", f"{w.carried:,}") for w in factor.windows)), indent=2)


def aligned_columns(rows: Iterable[tuple[str, ...]], indent: int = 1) -> list[str]:
    """Align the columns of rows: those of numbers, under a heading or not, at their right."""
    table = list(rows)
    columns = []
    for column in zip(*table, strict=True):
        width = max(map(len, column))
        numbers = all(cell == "-" or cell.replace(",", "").isdigit() for cell in column[1:]) and len(column) > 1
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return [(_INDENT * indent + _INDENT.join(row)).rstrip() for row in zip(*columns, strict=True)]

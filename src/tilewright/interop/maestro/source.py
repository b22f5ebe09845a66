"""MAESTRO's text as tokens that know their lines, and arithmetic over them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tilewright.base import InputError

_TOKEN = re.compile(r"(?P<skip>\s+|//[^\n]*)|(?P<word>[A-Za-z0-9_.]+'?)|(?P<mark>.)")
_DEEPEST = 50
_LARGEST = 2**53


@dataclass(frozen=True)
class Token:
    """A word or a mark, its line, and where it stands in the text."""

    text: str
    line: int
    start: int
    end: int


class Reader:
    """Reads the tokens of one text, one after the other; ``//`` begins a comment.

    ``label`` is what errors call the text, usually the name of its file.
    """

    def __init__(self, label: str, text: str) -> None:
        self.label, self.text = label, text
        self.tokens = list(_tokens(text))
        self.at = 0
        self.constants: dict[str, int] = {}

    @property
    def next(self) -> Token | None:
        """The token that is not read yet, None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def line(self) -> int:
        """Line of the next token, or of the last one at the end."""
        if not self.tokens:
            return 1
        return self.tokens[min(self.at, len(self.tokens) - 1)].line

    def fail(self, rule: str, given: object = None, mend: str = "", line: int | None = None) -> InputError:
        """Return the error for the place that is read, or for a ``line``."""
        return InputError(f"{self.label}:{line or self.line}", rule, given, mend)

    def take(self, what: str) -> Token:
        """Return the next token and go on; ``what`` says what must stand there."""
        token = self.next
        if token is None:
            raise self.fail(f"must go on with {what}", "the end of the file")
        self.at += 1
        return token

    def word(self, what: str) -> Token:
        """Return the next token, which must be a word."""
        token = self.take(what)
        if not re.fullmatch(r"[A-Za-z0-9_.]+'?", token.text):
            self.at -= 1
            raise self.fail(f"must be {what}", token.text)
        return token

    def expect(self, mark: str, what: str) -> None:
        """Go past a mark, which must stand next."""
        token = self.take(f"{mark!r} {what}")
        if token.text != mark:
            self.at -= 1
            raise self.fail(f"must be {mark!r} {what}", token.text)

    def skip(self, *marks: str) -> bool:
        """Go past any of these marks; return whether one was there."""
        found = False
        while self.next is not None and self.next.text in marks:
            self.at += 1
            found = True
        return found

    def closes(self) -> bool:
        """Go past one closing brace, if one stands next; return whether it did."""
        closing = self.next is not None and self.next.text == "}"
        self.at += closing
        return closing

    def name_before_brace(self, what: str) -> str:
        """Return all that stands before an opening brace, and go past the brace."""
        first = last = None
        while self.next is not None and self.next.text != "{":
            if self.next.text in "};":
                raise self.fail(f"must be {what} and an opening brace", self.next.text)
            last = self.take(what)
            first = first or last
        self.expect("{", f"after {what}")
        return "" if first is None or last is None else " ".join(self.text[first.start:last.end].split())

    def skip_block(self) -> None:
        """Go past a block in braces, whatever it holds."""
        self.expect("{", "to open the block")
        depth = 1
        while depth:
            token = self.take("a closing brace")
            depth += (token.text == "{") - (token.text == "}")

    def whole(self, what: str, size_of: Callable[[str, int], int] | None = None) -> int:
        """Return the value of an expression of numbers, constants and ``Sz(dimension)``: a positive whole number.

        Raises an `InputError` if there is no such expression, or its value is none.
        """
        line = self.line
        value = _Expression(self, what, size_of).sum(0)
        if value.denominator != 1 or not 1 <= value <= _LARGEST:
            raise self.fail(f"{what} must be a positive whole number", str(value), line=line)
        return int(value)


@dataclass
class _Expression:
    """Sums of products of factors."""

    reader: Reader
    what: str
    size_of: Callable[[str, int], int] | None

    def sum(self, depth: int) -> Fraction:
        """Read a sum."""
        value = self.product(depth)
        while self.reader.next is not None and self.reader.next.text in "+-":
            sign = 1 if self.reader.take("").text == "+" else -1
            value += sign * self.product(depth)
        return value

    def product(self, depth: int) -> Fraction:
        """Read a product."""
        value = self.factor(depth)
        while self.reader.next is not None and self.reader.next.text in "*/":
            if self.reader.take("").text == "*":
                value *= self.factor(depth)
                continue
            divisor = self.factor(depth)
            if divisor == 0:
                raise self.reader.fail(f"{self.what} must not divide by 0")
            value /= divisor
        return value

    def factor(self, depth: int) -> Fraction:
        """Read a number, a constant, ``Sz(dimension)`` or a sum in brackets."""
        if depth > _DEEPEST:
            raise self.reader.fail(f"{self.what} must have at most {_DEEPEST} brackets within one another")
        token = self.reader.take(self.what)
        if token.text == "(":
            value = self.sum(depth + 1)
            self.reader.expect(")", "to close the bracket")
            return value
        if token.text.isascii() and token.text.isdecimal() and len(token.text) <= len(str(_LARGEST)):
            return Fraction(int(token.text))
        if token.text == "Sz" and self.size_of is not None:
            self.reader.expect("(", "after Sz")
            named = self.reader.word("a dimension")
            self.reader.expect(")", "after the dimension")
            return Fraction(self.size_of(named.text, named.line))
        if token.text in self.reader.constants:
            return Fraction(self.reader.constants[token.text])
        known = ", ".join(self.reader.constants) or "none"
        sizes = ", Sz(dimension)" if self.size_of is not None else ""
        raise self.reader.fail(f"{self.what} must be a number, a Constant ({known}){sizes} or arithmetic on them",
                               token.text, line=token.line)


def _tokens(text: str) -> list[Token]:
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            found.append(Token(match.group(), line, match.start(), match.end()))
        line += match.group().count("\n")
    return found

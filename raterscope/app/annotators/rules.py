"""Rules that select rows of a table, such as ``accuracy < .6 and votes >= 50``; parsed, never run as code.

A rule consists of comparisons, joined by `and`, `or` and `not`, with parentheses. The left side names a
column; the end of a column's name is enough where it is unique. The right side is a number, or a text, in
quotes if it has spaces. Text without a comparison selects rows that contain all its words.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[Any]]

DEEPEST = 50
"""Nested parentheses and negations, at most."""

_UNITS = ("", "_mm", "_px")

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_TOKEN = re.compile(
    r"""\s*(?:(?P<compare><=|>=|==|!=|<|>|=)|(?P<bracket>[()])|"(?P<quoted>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<word>[^\s()<>=!"']+))"""
)


class RuleError(ValueError):
    """A rule that cannot be read; the message says what was expected."""


class _Token(NamedTuple):
    kind: str
    text: str


def select_rows(text: str, columns: Columns, searched: NDArray[Any]) -> Mask:
    """Return which of N rows a filter selects.

    `text`: a rule or words; empty for all rows.
    `columns`: numbers, or texts as objects, by name.
    `searched`: (N,), text of each row in which words are searched, in lower case.
    Raises `RuleError` if a rule cannot be read.

    Examples
    --------
    >>> columns = {"labels_accuracy": np.array([0.5, 0.9, np.nan]), "labels_votes": np.array([80, 90, 10])}
    >>> names = np.array(["kim", "lee", "max"], dtype=object)
    >>> select_rows("accuracy < .6 and votes >= 50", columns, names).tolist()
    [True, False, False]
    >>> select_rows("le", columns, names).tolist()
    [False, True, False]
    """
    if not is_rule(text):
        words = text.casefold().split()
        return np.array([all(word in row for word in words) for row in searched], dtype=bool)
    parser = _Parser(list(_tokens(text)), columns, len(searched))
    return parser.rule()


def is_rule(text: str) -> bool:
    """Return whether a text has a comparison outside of quotes."""
    return bool(re.search(r"[<>=]", re.sub(r""""[^"]*"|'[^']*'""", "", text)))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(f"{text[at:].strip()[:1]} is not understood.")
        kind = str(match.lastgroup)
        yield _Token("text" if kind in ("quoted", "single") else kind, match[kind])
        at = match.end()


class _Parser:
    """Recursive descent over the tokens of a rule."""

    def __init__(self, tokens: list[_Token], columns: Columns, rows: int) -> None:
        self._tokens, self._columns, self._rows = tokens, columns, rows
        self._at = self._depth = 0

    def rule(self) -> Mask:
        mask = self._any()
        if self._at < len(self._tokens):
            raise RuleError(f"Expected and, or, or the end before {self._tokens[self._at].text}.")
        return mask

    def _any(self) -> Mask:
        mask = self._all()
        while self._took("or"):
            mask = mask | self._all()
        return mask

    def _all(self) -> Mask:
        mask = self._term()
        while self._took("and"):
            mask = mask & self._term()
        return mask

    def _term(self) -> Mask:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RuleError("Too many parentheses.")
        try:
            if self._took("not"):
                return ~self._term()
            if self._took("("):
                mask = self._any()
                if not self._took(")"):
                    raise RuleError("A parenthesis is not closed.")
                return mask
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Mask:
        name = self._next("a column", ("word",)).text
        sign = self._next("a comparison such as < or =", ("compare",)).text
        value = self._next(f"a value after {sign}", ("word", "text"))
        column = self._columns[self._column(name)]
        compare = _COMPARE[sign]
        if column.dtype == object:
            if sign not in ("=", "==", "!="):
                raise RuleError(f"{name} is a text: compare it with = or !=.")
            wanted = value.text.casefold()
            same = np.array([str(text).casefold() == wanted for text in column], dtype=bool)
            return same if compare is operator.eq else ~same
        number = self._number(name, value)
        with np.errstate(invalid="ignore"):
            holds = np.asarray(compare(column.astype(np.float64), number), dtype=bool)
        return holds & np.isfinite(column)  # an unknown value is in no relation to a number

    def _column(self, name: str) -> str:
        """Return the column of a name, or the one whose name ends with it, without the unit too."""
        wanted = name.casefold()
        if wanted in self._columns:
            return wanted
        ends = tuple(f"_{wanted}{unit}" for unit in _UNITS)
        ending = [column for column in self._columns if column.casefold().endswith(ends)]
        if len(ending) == 1:
            return ending[0]
        if len(ending) > 1:
            raise RuleError(f"{name} is {' or '.join(ending[:4])}: write one of them.")
        near = [column for column in self._columns if wanted in column.casefold()][:4]
        known = ", ".join(near or list(self._columns)[:6])
        raise RuleError(f"There is no column {name}. Columns: {known}.")

    def _number(self, name: str, token: _Token) -> float:
        text = token.text.casefold()
        if text in ("yes", "true"):
            return 1.0
        if text in ("no", "false"):
            return 0.0
        try:
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise RuleError(f"{name} is a number: compare it with a number, not with {token.text}.")
        return number

    def _next(self, expected: str, kinds: tuple[str, ...]) -> _Token:
        if self._at >= len(self._tokens):
            raise RuleError(f"Expected {expected} at the end.")
        token = self._tokens[self._at]
        if token.kind not in kinds or (
            token.kind == "word" and token.text.casefold() in ("and", "or", "not")
        ):
            raise RuleError(f"Expected {expected} before {token.text}.")
        self._at += 1
        return token

    def _took(self, text: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        if token.kind == "text" or token.text.casefold() != text:
            return False
        self._at += 1
        return True

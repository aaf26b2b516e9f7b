"""The expression of ``-k``: texts joined by ``and``, ``or``, ``not`` and parentheses, as in pytest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from llpbench.contracts.errors import UsageError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_TOKEN = re.compile(r"[()]|[^\s()]+")
_OPERATORS = ("and", "or", "not", "(", ")")


class Keywords:
    """A condition on texts. Neighbouring words are one text (``bag 8``); case and repeated spaces do not matter."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._texts: list[str] = []
        try:
            self._code = compile(self._python(), "-k", "eval")
        except SyntaxError:
            raise UsageError(
                f"-k {expression!r} cannot be read. Join texts by and, or, not and parentheses, "
                "e.g. 'bp and not bag 512'."
            ) from None

    def _python(self) -> str:
        """The expression with ``has(i)`` in place of its texts."""
        found: list[str] = []
        for token in _TOKEN.findall(self.expression.lower()):
            if token == "(" and found and found[-1].endswith(")"):
                raise SyntaxError  # Python would read a call
            if token in _OPERATORS:
                found.append(token)
            elif found and found[-1].startswith("has"):
                self._texts[-1] += f" {token}"
            else:
                self._texts.append(token)
                found.append(f"has({len(self._texts) - 1})")
        return " ".join(found) or "True"

    def match(self, text: str) -> bool:
        """Whether the condition holds for a text."""
        words = " ".join(text.lower().split())
        return bool(eval(self._code, {"has": lambda i: self._texts[i] in words}))  # only has(), numbers and operators


class _Type(click.ParamType[Keywords]):
    name = "expr"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Keywords:
        """Read the expression, or say what one looks like."""
        try:
            return value if isinstance(value, Keywords) else Keywords(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


def chosen(items: list[T], text: Callable[[T], str], wanted: Keywords, what: str) -> list[T]:
    """The items whose text matches.

    Raises:
        UsageError: there are items, and none matches.
    """
    found = [item for item in items if wanted.match(text(item))]
    if items and not found:
        texts = [text(item) for item in items]
        words = {word for each in texts for word in re.findall(r"[\w.-]+", each)}
        near = difflib.get_close_matches(wanted.expression, words, 1) or [texts[0]]
        raise UsageError(f"-k {wanted.expression!r} matches none of {len(items)} {what}. Try {near[0]!r}.")
    return found


def keyword_option(what: str) -> Callable[[F], F]:
    """``-k EXPR``: only ``what``, e.g. ``cells``, that match it."""
    text = f"Only {what} that match, e.g. 'bp and not bag 512'."
    return click.option("-k", "matching", type=_Type(), default="", show_default=False, metavar="EXPR", help=text)

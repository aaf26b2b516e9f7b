"""The code blocks of documentation pages, and the HTML comments that say how tests run them.

``tests/project/test_docs.py`` runs every page from top to bottom in its own folder, at cheap settings. A block that
starts with ``# name.py`` or ``# name.toml`` is written to that file. Blocks of ``text`` are output. A comment above a
block changes how it is run:

- ``<!-- not run: REASON -->``: skip it, for one of `REASONS`. With ``: TEXT`` after the reason, skip only the lines
  that contain the text.
- ``<!-- cheap: OLD => NEW -->``: run it with NEW in place of OLD.
- ``<!-- quoted: FILE -->``: do not run it, but check that the file contains it.

A hidden block that prepares the next one is a comment that begins with ``<!-- run python`` or ``<!-- run sh``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

REASONS = (
    "installs packages",
    "needs a cluster",
    "needs a released package",
    "needs published results",
    "takes too long",
    "does not end by itself",
    "is a check of its own",
)
"""Valid reasons not to run a block."""

LANGUAGES = ("python", "sh", "text", "json", "toml", "bibtex", "dockerfile")
"""Languages of blocks. Python and shell are run; JSON and TOML must be valid."""

_ITEM = re.compile(
    r"^<!-- run (?P<hidden>\w+)\n(?P<setup>.*?)^-->$"
    r"|^<!-- (?P<note>(?:not run|cheap|quoted): .*?) -->$"
    r"|^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)


class PageError(Exception):
    """A comment is invalid or does not match its block."""


@dataclass(frozen=True)
class Block:
    """A block of code with its language, line and comments."""

    language: str
    code: str
    line: int
    notes: tuple[str, ...] = ()
    shown: bool = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise PageError(
                f"line {self.line}: unknown language {self.language!r}; expected one of {', '.join(LANGUAGES)}"
            )
        for reason, text in self._not_run():
            if reason not in REASONS:
                raise PageError(f"line {self.line}: unknown reason {reason!r}; expected one of {', '.join(REASONS)}")
            if text and text not in self.code:
                raise PageError(f"line {self.line}: no line contains {text!r}")
        for old, _ in self._cheap():
            if old not in self.code:
                raise PageError(f"line {self.line}: {old!r} is not in the block")

    @property
    def file(self) -> str | None:
        """The file to which the block is written."""
        ending = {"python": "py", "toml": "toml"}.get(self.language)
        name = re.match(rf"# ([\w.-]+\.{ending})\b", self.code) if ending else None
        return name[1] if name else None

    @property
    def quoted(self) -> str | None:
        """The file that must contain the block."""
        return next(iter(self._said("quoted")), None)

    @property
    def runs(self) -> bool:
        """Whether any of it is run."""
        refused = any(not text for _, text in self._not_run())
        return self.language in ("python", "sh") and not refused and not self.quoted

    @property
    def cheap(self) -> str:
        """The code as the tests run it."""
        code = reduce(lambda text, change: text.replace(*change), self._cheap(), self.code)
        left_out = [text for _, text in self._not_run() if text]
        return "".join(line for line in code.splitlines(True) if not any(text in line for text in left_out))

    def _said(self, what: str) -> list[str]:
        return [note.partition(": ")[2] for note in self.notes if note.startswith(f"{what}: ")]

    def _not_run(self) -> list[tuple[str, str]]:
        return [(reason, text) for reason, _, text in (said.partition(": ") for said in self._said("not run"))]

    def _cheap(self) -> list[tuple[str, str]]:
        changes = [f"{said} ".partition(" => ") for said in self._said("cheap")]
        if bad := [old for old, arrow, _ in changes if not arrow]:
            raise PageError(f"line {self.line}: `cheap: {bad[0]}` lacks ` => `")
        return [(old, new.strip()) for old, _, new in changes]


def blocks(page: str) -> list[Block]:
    """All blocks of a page in order, including hidden ones."""
    found, notes = list[Block](), list[str]()
    for item in _ITEM.finditer(page):
        line = page.count("\n", 0, item.start()) + 1
        if item["note"]:
            notes.append(item["note"])
        elif item["hidden"]:
            found.append(Block(item["hidden"], item["setup"], line, shown=False))
        else:
            found.append(Block(item["language"], item["code"], line, tuple(notes)))
            notes = []
    if notes:
        raise PageError(f"no block follows the comment `{notes[-1]}`")
    return found


def without_comments(page: str) -> str:
    """The page without the comments about blocks."""
    return re.sub(r"^<!-- (run|not run|cheap|quoted)\b.*?-->\n+", "", page, flags=re.DOTALL | re.MULTILINE)


def rewritten(page: str, change: Callable[[Block], str | None]) -> str:
    """The page with the code of its visible blocks replaced, and without the comments about them.

    Blocks for which ``change`` returns None are unchanged.
    """
    ahead = iter([block for block in blocks(page) if block.shown])
    parts, notes, end = list[str](), list[str](), 0
    for item in _ITEM.finditer(page):
        parts.append(page[end : item.start()])
        end = item.end()
        if item["note"]:
            notes.append(item[0] + "\n")
        elif item["hidden"]:
            parts.append(item[0])
        else:
            code = change(next(ahead))
            parts += [*notes, item[0]] if code is None else [f"```{item['language']}\n{code}```"]
            notes = []
    return "".join([*parts, page[end:]])

"""The code blocks of the pages, and what the pages say of them in comments that no reader sees.

Every page runs from top to bottom in a folder of its own: Python and shell blocks as they are printed, but cheap. The
test ``tests/project/test_docs.py`` does so. A block that starts with ``# name.py`` or ``# name.toml`` is written to
that file. Blocks of ``text`` are what something printed. A comment above a block says how it differs:

- ``<!-- not run: REASON -->``: it is not run, for one of `REASONS`. With ``: TEXT`` behind the reason, only its lines
  with that text are not.
- ``<!-- cheap: OLD => NEW -->``: it runs with NEW in place of OLD.
- ``<!-- quoted: FILE -->``: it is not run, since it stands in that file, which the tests know.

A block that prepares what a page supposes, and that readers need not see, is a comment itself: it begins with
``<!-- run python`` or ``<!-- run sh``.
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
"""Why a block may not run. Nothing else is a reason."""

LANGUAGES = ("python", "sh", "text", "json", "toml", "bibtex", "dockerfile")
"""What a block may be in. Python and shell run, JSON and TOML must be what they claim to be."""

_ITEM = re.compile(
    r"^<!-- run (?P<hidden>\w+)\n(?P<setup>.*?)^-->$"
    r"|^<!-- (?P<note>(?:not run|cheap|quoted): .*?) -->$"
    r"|^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)


class PageError(Exception):
    """A comment of a page that means nothing, or no longer fits its block."""


@dataclass(frozen=True)
class Block:
    """A block of code: where it stands, what it is, and what the page says of it."""

    language: str
    code: str
    line: int
    notes: tuple[str, ...] = ()
    shown: bool = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise PageError(f"line {self.line}: a block in {self.language or 'no language'}")
        for reason, text in self._not_run():
            if reason not in REASONS:
                raise PageError(f"line {self.line}: {reason!r} is none of the reasons: {', '.join(REASONS)}")
            if text and text not in self.code:
                raise PageError(f"line {self.line}: no line has {text!r}")
        for old, _ in self._cheap():
            if old not in self.code:
                raise PageError(f"line {self.line}: {old!r} is not in the block")

    @property
    def file(self) -> str | None:
        """The file that the block is written to."""
        ending = {"python": "py", "toml": "toml"}.get(self.language)
        name = re.match(rf"# ([\w.-]+\.{ending})\b", self.code) if ending else None
        return name[1] if name else None

    @property
    def quoted(self) -> str | None:
        """The file that the block was taken from."""
        return next(iter(self._said("quoted")), None)

    @property
    def runs(self) -> bool:
        """Whether anything of it is run."""
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
            raise PageError(f"line {self.line}: `cheap: {bad[0]}` has no ` => `")
        return [(old, new.strip()) for old, _, new in changes]


def blocks(page: str) -> list[Block]:
    """All blocks of a page, those in comments too, in their order."""
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
    """The page as readers see it."""
    return re.sub(r"^<!-- (run|not run|cheap|quoted)\b.*?-->\n+", "", page, flags=re.DOTALL | re.MULTILINE)


def rewritten(page: str, change: Callable[[Block], str | None]) -> str:
    """The page with other code in its visible blocks, and without what it said of the code before.

    A block for which ``change`` gives None stays as it is.
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

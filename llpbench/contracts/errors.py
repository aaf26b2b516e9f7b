"""The errors of llpbench, and functions to print errors of others."""

from __future__ import annotations

import difflib
import re
import sys
import sysconfig
import traceback
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path


class LLPBenchError(Exception):
    """Something the user can act on; printed without a traceback."""


class UsageError(LLPBenchError):
    """The request is invalid (exit code 2)."""


class LLPWarning(UserWarning):
    """A valid result with a problem: uninformative bags, or a model that learned nothing."""


_MOST_LISTED = 40
"""The most names that are listed besides a suggestion."""


class UnknownNameError(UsageError):
    """An unknown name; the message lists the known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        self.kind, self.name, self.known = kind, name, names
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        guess = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
        listing = f" Available: {', '.join(names) or 'none'}."
        if close and len(names) > _MOST_LISTED:
            listing = f" {len(names)} are available."
        super().__init__(f"unknown {kind} {name!r}.{guess}{listing}{hint}")


class PluginError(LLPBenchError):
    """A plugin cannot be registered (misspelled hook, duplicate name, wrong type)."""


class DataUnavailableError(LLPBenchError):
    """A file of a dataset is not available from any source."""


class ChecksumError(DataUnavailableError):
    """A file does not have the expected checksum."""


class DatasetError(LLPBenchError):
    """A dataset breaks its contract (shapes, NaN, labels)."""


class MethodError(LLPBenchError):
    """A method breaks its contract (shape, NaN scores)."""


class StoreError(LLPBenchError):
    """A results folder cannot be read or written."""


class ExecutorError(LLPBenchError):
    """The executor (a cluster) is gone; finished cells are kept and the run can be resumed."""


class Skip(Exception):  # noqa: N818 - not an error: a method declines a setting
    """Raised by a method to decline a setting; the sentence is shown to the user.

    Example:
        ``raise Skip("needs at least two bags per class")``
    """


_DUMPED = re.compile(r'File "([^"]+)", line (\d+) in (.+)')
MOST_TEXT = 2000
"""Characters of a reason that are kept and shown."""


def printable(text: str, *, lines: bool = False) -> str:
    """Text without the control characters that a terminal would interpret; ``lines`` keeps line breaks."""
    if text.isprintable():
        return text
    if lines:
        return "\n".join(printable(line.replace("\t", "    ")) for line in text.splitlines())
    return "".join(c if c.isprintable() else " " if unicodedata.category(c) == "Zs" else "?" for c in text)


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """The beginning of a text, and how many characters were cut."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def describe(error: BaseException) -> str:
    """One printable line of bounded length with the type and message of an error."""
    name = printable(type(error).__name__)
    try:
        said = str(error)
    except Exception:  # an error whose text fails
        return f"{name} (its message cannot be read)"
    text = printable(" ".join(said[: 10 * MOST_TEXT].split()))
    return f"{name}: {shortened(text)}" if text else name


def where_it_failed(error: BaseException) -> str:
    """The last line of a user's own code in a traceback: ``my.py:17: return X @ self.w``; empty if there is none.

    Code of llpbench, installed packages and the standard library does not count.
    """
    frames = list(_frames(error))
    last = next((frame for frame in reversed(frames) if _is_users(frame.filename)), None)
    if last is None:
        return ""
    code = f": {last.line.strip()}" if last.line else ""
    return shortened(printable(f"{Path(last.filename).name}:{last.lineno}{code}"), 300)


def where_it_was(stacks: str) -> str:
    """The innermost line of a user's own code in stacks that ``faulthandler`` printed: ``my.py:17 in fit``."""
    frames = _DUMPED.findall(stacks.rpartition("Current thread")[2])
    found = next((frame for frame in frames if _is_users(frame[0])), None)
    return "" if found is None else shortened(printable(f"{Path(found[0]).name}:{found[1]} in {found[2]}"), 300)


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    """The frames of an error, those of its causes first."""
    chain: list[traceback.TracebackException] = []
    at: traceback.TracebackException | None = traceback.TracebackException.from_exception(error)
    while at is not None:
        chain.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    for one in reversed(chain):
        yield from one.stack


def _is_users(file: str) -> bool:
    path = Path(file)
    if not file or file.startswith("<") or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    own = (getattr(sys.modules.get(name), "__file__", None) for name in _OWN)
    roots = {*(Path(file).parent for file in own if file), *_python_folders()}
    return not any(path.is_relative_to(root) for root in roots)


_OWN = ("llpbench", "llpbench_methods", "llpbench_datasets")


def _python_folders() -> set[Path]:
    paths = sysconfig.get_paths()
    return {Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(name)}

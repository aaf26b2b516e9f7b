"""One tree of errors: each says what was asked, what is wrong, and what to do."""

from __future__ import annotations

import difflib
import sys
import sysconfig
import traceback
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path


class LLPBenchError(Exception):
    """Something the user can act on; printed without a traceback."""


class UsageError(LLPBenchError):
    """The request itself is wrong (exit code 2)."""


class LLPWarning(UserWarning):
    """What a user should know of a result that stands: bags that tell little, a model that learned nothing."""


_MOST_LISTED = 40
"""Names that are listed beside a guess; more of them would hide it."""


class UnknownNameError(UsageError):
    """A name that nothing registered answers to, with the names that exist."""

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
    """A plugin broke a rule of registration (misspelt hook, duplicate name, wrong type)."""


class DataUnavailableError(LLPBenchError):
    """A dataset's file could not be had from any source."""


class ChecksumError(DataUnavailableError):
    """A file is not the file that was asked for."""


class DatasetError(LLPBenchError):
    """A dataset handed over something that breaks its contract (shapes, NaN, labels)."""


class MethodError(LLPBenchError):
    """A method handed over something that breaks its contract (shape, NaN scores)."""


class StoreError(LLPBenchError):
    """A results folder cannot be read or written."""


class ExecutorError(LLPBenchError):
    """What cells run on went away (a cluster); finished cells are kept and the run can go on later."""


class Skip(Exception):  # noqa: N818 - a method *declines* a setting; nothing went wrong
    """Raised by a method to decline a setting; the sentence is shown to the user.

    Example:
        ``raise Skip("needs at least two bags per class")``
    """


MOST_TEXT = 2000
"""Characters of a reason that are kept and shown."""


def printable(text: str, *, lines: bool = False) -> str:
    """Text from elsewhere without the control characters that a terminal would act on.

    Args:
        text: what somebody else wrote: a name, a reason, a log.
        lines: keep the ends of lines (for texts of several lines); tabs become spaces.
    """
    if text.isprintable():
        return text
    if lines:
        return "\n".join(printable(line.replace("\t", "    ")) for line in text.splitlines())
    return "".join(c if c.isprintable() else " " if unicodedata.category(c) == "Zs" else "?" for c in text)


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """A text of bounded length: its beginning, and how much more there was."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def describe(error: BaseException) -> str:
    """One printable line of bounded length that names the kind of an error and what it says."""
    name = printable(type(error).__name__)
    try:
        said = str(error)
    except Exception:  # an error whose own text fails must not hide what happened
        return f"{name} (its message cannot be read)"
    text = printable(" ".join(said[: 10 * MOST_TEXT].split()))
    return f"{name}: {shortened(text)}" if text else name


def where_it_failed(error: BaseException) -> str:
    """The last line of a user's own code that an error came through: ``my.py:17: return X @ self.w``.

    That is the last frame outside llpbench, its built-in packages, installed packages and the standard library; empty
    when there is none.
    """
    frames = list(_frames(error))
    last = next((frame for frame in reversed(frames) if _is_users(frame.filename)), None)
    if last is None:
        return ""
    code = f": {last.line.strip()}" if last.line else ""
    return shortened(printable(f"{Path(last.filename).name}:{last.lineno}{code}"), 300)


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    """The frames of an error, those of what caused it first (it may have been wrapped on the way)."""
    seen: set[int] = set()
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        chain.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    for one in reversed(chain):
        yield from traceback.extract_tb(one.__traceback__)


def _is_users(file: str) -> bool:
    """Whether a file is the user's own: no part of Python, of an installed package or of llpbench."""
    path = Path(file)
    if not file or file.startswith("<") or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    if {"llpbench", "llpbench_methods", "llpbench_datasets"} & set(path.parts[-6:-1]) and _is_own(path):
        return False
    return not any(path.is_relative_to(root) for root in _python_folders())


def _is_own(path: Path) -> bool:
    """Whether a file belongs to the packages of llpbench itself (and not to a folder that is called like them)."""
    names = ("llpbench", "llpbench_methods", "llpbench_datasets")
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    return any(path.is_relative_to(Path(file).parent) for file in files if file)


def _python_folders() -> set[Path]:
    paths = sysconfig.get_paths()
    return {Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(name)}

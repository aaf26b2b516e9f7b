"""One tree of errors: each says what was asked, what is wrong, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LLPBenchError(Exception):
    """Something the user can act on; printed without a traceback."""


class UsageError(LLPBenchError):
    """The request itself is wrong (exit code 2)."""


class UnknownNameError(UsageError):
    """A name that nothing registered answers to, with the names that exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        self.kind, self.name, self.known = kind, name, names
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        guess = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
        listing = ", ".join(names) if names else "none"
        super().__init__(f"unknown {kind} {name!r}.{guess} Available: {listing}.{hint}")


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


def printable(text: str) -> str:
    """Text from elsewhere without the control characters that a terminal would act on."""
    return "".join(c if c.isprintable() else "?" for c in text)


def describe(error: BaseException) -> str:
    """One line that names the kind of an error and what it says."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

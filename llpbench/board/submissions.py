"""Submissions: an entry file names the package whose methods are to be run for the leaderboard.

::

    # leaderboards/entries/my-llp.toml
    package = "my-llp==1.2.0"          # what pip installs: a name and an exact version
    methods = ["my-method"]            # names that the package registers
    paper = "https://arxiv.org/abs/..."
    code = "https://github.com/..."
    contact = "name@example.org"
    title = "My method in one line"    # optional

Results are never submitted: the workflow installs the package and runs it (``.github/workflows/submission.yml``).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from llpbench.board.validate import Unsound, check_name, check_values, clip, read_plain
from llpbench.contracts.errors import StoreError
from llpbench.plugins.fingerprint import OWN
from llpbench.plugins.registry import Registry

FOLDER = "entries"
"""The folder of a leaderboard that holds entry files."""
_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*\])?"
    r"==[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?"
)
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[^\s<>\"'`\\]*)?")
_FILE_BYTES = 1 << 16


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of an entry file."""

    package: str
    methods: list[str]
    paper: str
    code: str
    contact: str
    title: str = ""


def read_submission(path: Path) -> Submission:
    """Read an entry file; raise ``StoreError`` if it is invalid."""
    try:
        if path.suffix != ".toml":
            raise Unsound("expected a file NAME.toml")
        check_name(path.stem, "file")
        content = tomllib.loads(read_plain(path, _FILE_BYTES).decode())
        keys = Submission.__struct_fields__
        if unknown := sorted(set(content) - set(keys)):
            raise Unsound(f"unknown key {clip(unknown[0])}; the keys are {', '.join(keys)}")
        found = msgspec.convert(content, Submission)
        _check(found)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise StoreError(f"{path}: invalid TOML: {problem}.") from None
    except (Unsound, msgspec.ValidationError) as problem:
        raise StoreError(f"{path}: {problem}.") from None
    return found


def entry_files(board: Path) -> list[Path]:
    """Return the entry files of a leaderboard."""
    return sorted((board / FOLDER).glob("*"))


def check_unclaimed(submission: Submission, registry: Registry) -> None:
    """Raise ``StoreError`` if llpbench itself provides a method of a submission."""
    for name in submission.methods:
        entry = registry.methods.entries.get(name)
        if entry is not None and entry.plugin.builtin:
            raise StoreError(f"method {name!r} is part of llpbench; a submission needs a name of its own.")


def _check(submission: Submission) -> None:
    check_values(msgspec.to_builtins(submission))
    package = _PACKAGE.fullmatch(submission.package)
    if package is None:
        raise Unsound(
            f"package must be a name with an exact version, such as 'my-llp==1.2.0', got {clip(submission.package)}"
        )
    if re.sub(r"[-_.]+", "-", package["name"]).lower() == OWN:
        raise Unsound(f"package must not be {OWN} itself")
    if not submission.methods:
        raise Unsound("methods must name at least one method")
    for name in submission.methods:
        check_name(name, "method")
    if len(set(submission.methods)) < len(submission.methods):
        raise Unsound("methods must not name a method twice")
    for key in ("paper", "code"):
        if not _ADDRESS.fullmatch(getattr(submission, key)):
            raise Unsound(f"{key} must be an https:// address, got {clip(getattr(submission, key))}")
    if not submission.contact.strip():
        raise Unsound("contact must not be empty")

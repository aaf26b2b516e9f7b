"""Which code made a result: reading what ``result.code`` says of each part (``method``, ``dataset``, ``harness``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from llpbench.board.validate import Unsound, clip
from llpbench.contracts.result import CellResult

PARTS = ("harness", "method", "dataset")
Kind = Literal["release", "editable", "file"]
_WORDS: Mapping[str, Kind] = {
    "release": "release",
    "package": "release",
    "editable": "editable",
    "checkout": "editable",
    "unreleased": "editable",
    "file": "file",
}
_LINE = re.compile(r"(?P<word>[a-z]+) (?P<name>\S+)(?: (?P<version>(?!sha256:)\S+))? sha256:(?P<digest>[0-9a-f]+)")


@dataclass(frozen=True)
class Origin:
    """Where code came from: a release of a distribution, an editable install of one, or a single file."""

    kind: Kind
    name: str
    version: str = ""
    digest: str = ""


def read_origin(line: str) -> Origin | None:
    """What a fingerprint says, e.g. ``release my-plugins 1.2.0 sha256:77b0``; None when it cannot be read.

    This is the only place that knows how fingerprints are written.
    """
    found = _LINE.fullmatch(line.strip())
    kind = _WORDS.get(found["word"]) if found else None
    if found is None or kind is None:
        return None
    return Origin(kind, found["name"], found["version"] or "", found["digest"])


def check_code(result: CellResult, distributions: Mapping[str, str]) -> None:
    """Refuse a result whose code nobody else has, or whose name stands for other code.

    Args:
        result: of the current protocol.
        distributions: for each part, the installed distribution that brings it; parts that are not known here are
            left out.
    """
    for part in PARTS if not result.predictions_only else ("harness", "dataset"):  # what scored them
        if part not in result.code:
            raise Unsound(f"it does not say which code its {part} was")
    for part, line in result.code.items():  # rules, metrics and schemes of plugins are parts too
        origin = read_origin(line)
        if origin is None:
            raise Unsound(f"the code of its {part} is {clip(line)}, which says nothing")
        if origin.kind == "file":
            raise Unsound(f"its {part} was a single file ({clip(origin.name)}); make it a package (llpbench new)")
        wanted = distributions.get(part, origin.name)
        if _plain(origin.name) != _plain(wanted):
            raise Unsound(f"its {part} came from {clip(origin.name)}, but the name belongs to {wanted}")
        stated = result.versions.get(origin.name)
        if origin.kind == "release" and origin.version != stated:
            raise Unsound(f"the code of its {part} is release {origin.version} of {origin.name}, its version {stated}")


def is_unreleased(result: CellResult) -> bool:
    """Whether a part of its code was an editable install: one version number, many states.

    What was handed in as predictions was made by code that nobody here knows, and has a mark of its own.
    """
    if result.predictions_only:
        return False
    origins = [read_origin(line) for line in result.code.values()]
    return any(origin is not None and origin.kind == "editable" for origin in origins)


def _plain(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()

"""The file behind a typed path, and the checksum that pins its content."""

from __future__ import annotations

import re
from pathlib import Path

from llpbench import DatasetError, DataUnavailableError, UsageError
from llpbench_datasets.keys import SHORT, short_digest

_PINNED = re.compile(rf"(.+)#([0-9a-f]{{{SHORT}}})\Z", re.DOTALL)


def pinned(text: str) -> str:
    """The typed path with the checksum of what the file holds now; one that has a checksum stays as it is."""
    if _PINNED.match(text):
        return text
    try:
        return f"{text}#{short_digest(Path(text).expanduser().read_bytes())}"
    except OSError as error:
        raise UsageError(f"cannot read {text}: {error.strerror or error}.") from None


def read(path: str) -> tuple[str, bytes, str]:
    """The file's name, its content and the content's checksum, which must be the pinned one if the path has any."""
    if not path:
        raise DataUnavailableError("the path of the file is missing: csv[path=data.csv;label=y]")
    match = _PINNED.match(path)
    name, wanted = (match[1], match[2]) if match else (path, "")
    try:
        content = Path(name).expanduser().read_bytes()
    except OSError as error:
        raise DatasetError(f"cannot read {name}: {error.strerror or error}.") from None
    found = short_digest(content)
    if wanted and wanted != found:
        raise DatasetError(
            f"{name} has changed since the cell was planned: its checksum is #{found}, expected #{wanted}."
        )
    return name, content, found

"""The file behind a typed path, and the checksum that pins its content."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from llpbench import DatasetError, DataUnavailableError, UnknownNameError, UsageError
from llpbench_datasets.keys import SHORT, short_digest

_PINNED = re.compile(rf"(.+)#([0-9a-f]{{{SHORT}}})\Z", re.DOTALL)


def pinned(text: str) -> str:
    """The typed path with the checksum of what the file holds now; one that has a checksum stays as it is."""
    if _PINNED.match(text):
        return text
    try:
        return f"{text}#{short_digest(Path(text).expanduser().read_bytes())}"
    except (OSError, ValueError) as error:  # a NUL character is a ValueError
        raise UsageError(f"cannot read {text}: {getattr(error, 'strerror', None) or error}.") from None


def check_columns(*, path: str, label: str, bag: str, separator: str, **others: object) -> None:
    """Raise ``UsageError`` if the file has no such columns; the loader reports a file that cannot be read."""
    del others
    from llpbench_datasets.csv_table.text import delimiter_of

    match = _PINNED.match(path)
    name = match[1] if match else path
    if not name:
        return
    try:
        with Path(name).expanduser().open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter_of(first, separator), strict=True, skipinitialspace=True)
            names = [field.strip() for field in next(reader)]
    except (OSError, ValueError, csv.Error, StopIteration):
        return
    if not label:
        raise UsageError(f"csv: the label column is missing: set label=NAME. Columns of {name}: {', '.join(names)}.")
    for column in filter(None, (label, bag)):
        if column not in names:
            raise UnknownNameError(f"column of {name}:", column, names)


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

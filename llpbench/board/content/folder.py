"""The leaderboards folder: what lies where. It is read with every check and written in one fixed form.

::

    cells/<dataset>.jsonl       published cells, one on a line, sorted by id
    bootstrap/<dataset>.jsonl   replicates of their AUROC over test rows (for cells that came with predictions)
    searches/<dataset>.jsonl    searches that chose the parameters of tuned rows, with every trial
    verified/<dataset>.jsonl    marks of cells that were made again by a reviewer
    machines/<id>.json          the machines that made them
    facts.json                  what methods, datasets, metrics and rules say of themselves; numbers from publications

Everything else in it is built from these and from nothing else, so building needs no plugin and no data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from llpbench.board.content.bootstrap import Replicates, decode_replicates
from llpbench.board.content.facts import Facts, MachineFacts, check_facts
from llpbench.board.content.lines import Line, decode_line, encode_line
from llpbench.board.content.marks import Mark, decode_mark
from llpbench.board.content.searches import decode_history
from llpbench.board.validate import Unsound, check_machine, check_name, check_values, plain_folder, read_plain
from llpbench.contracts.errors import StoreError
from llpbench.experiment.tuned import History
from llpbench.system.files import write_atomically

BY_DATASET = ("cells", "bootstrap", "searches", "verified")
"""The folders of published data that have a file for each dataset."""
MACHINES = "machines"
"""The folder of published data that has a file for each machine."""
TABLES = "tables"
"""The folder of built files that has files for each dataset."""
_ENDINGS = (".jsonl", ".json", ".md", ".tex")


@dataclass
class Content:
    """A leaderboards folder in memory."""

    lines: dict[str, Line] = field(default_factory=dict)
    replicates: dict[str, Replicates] = field(default_factory=dict)
    machines: dict[str, MachineFacts] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    searches: dict[str, History] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)


def read_folder(root: Path) -> Content:
    """Everything published in a folder; the first thing that is not sound is an error that names its file."""
    if not root.is_dir():
        raise StoreError(f"{root} is not a leaderboards folder: it does not exist. Name one with --board.")
    content = Content()
    for path in _files(root / "cells", ".jsonl"):
        for line in _lines(path, decode_line):
            if line.result.cell.dataset != path.stem:
                raise StoreError(f"{path}: cell {line.result.id} is of dataset {line.result.cell.dataset!r}.")
            _once(content.lines, line.result.id, line, path)
    for path in _files(root / "bootstrap", ".jsonl"):
        for replicates in _lines(path, decode_replicates):
            _once(content.replicates, replicates.id, replicates, path)
    for path in _files(root / "searches", ".jsonl"):
        for history in _lines(path, decode_history):
            _once(content.searches, history.study, history, path)
    for path in _files(root / "verified", ".jsonl"):
        for mark in _lines(path, decode_mark):
            _once(content.marks, mark.id, mark, path)
    for path in _files(root / "machines", ".json"):
        content.machines[_guarded(path, lambda p: check_machine(p.stem))] = _guarded(path, read_machine)
    if (root / "facts.json").exists():
        content.facts = _guarded(root / "facts.json", _read_facts)
    lacking = sorted({line.result.machine for line in content.lines.values()} - set(content.machines))
    if lacking:
        raise StoreError(f"{root / 'machines'}: there is no {lacking[0]}.json, which results name.")
    return content


def read_machine(path: Path) -> MachineFacts:
    """The record of a machine."""
    machine: MachineFacts = _decode(read_plain(path, 1 << 16), MachineFacts)
    return machine


def _read_facts(path: Path) -> Facts:
    facts: Facts = _decode(read_plain(path), Facts)
    check_facts(facts)
    return facts


def raw_files(content: Content) -> dict[str, bytes]:
    """The files that hold a content, by their path in the folder: the same bytes for the same content.

    They are in the order in which they are to be written. Cells are last, after the machines that they name, so that
    the folder can be read whenever the writing stops. What stands beside a cell (its replicates, a mark that it lost)
    is there before the cell itself: a cell that is published already is not added once more, so nothing would mend it.
    """
    files = {f"machines/{name}.json": _pretty(machine) for name, machine in content.machines.items()}
    files["facts.json"] = _pretty(content.facts)
    for dataset in sorted({history.setting.cell.dataset for history in content.searches.values()}):
        of_dataset = [h for _, h in sorted(content.searches.items()) if h.setting.cell.dataset == dataset]
        files[f"searches/{dataset}.jsonl"] = _joined(msgspec.json.encode(h, order="deterministic") for h in of_dataset)
    by_dataset: dict[str, list[Line]] = {}
    for _, line in sorted(content.lines.items()):
        by_dataset.setdefault(line.result.cell.dataset, []).append(line)
    beside: tuple[tuple[str, dict[str, Any]], ...] = (("bootstrap", content.replicates), ("verified", content.marks))
    for folder, known in beside:
        for dataset, lines in by_dataset.items():
            kept = [known[line.result.id] for line in lines if line.result.id in known]
            if kept:
                encoded = (msgspec.json.encode(one, order="deterministic") for one in kept)
                files[f"{folder}/{dataset}.jsonl"] = _joined(encoded)
    for dataset, lines in by_dataset.items():
        files[f"cells/{dataset}.jsonl"] = _joined(encode_line(line.result, line.source) for line in lines)
    return files


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Write files below a folder, in the order given; none is ever written through a symbolic link."""
    try:
        for name, data in files.items():
            path = root / name
            for part in (path, *path.parents):
                if part == root.parent:
                    break
                if part.is_symlink():
                    raise StoreError(f"{part} is a symbolic link; leaderboards hold plain files.")
            if not path.is_file() or path.read_bytes() != data:
                write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write to {root}: {error}.") from None


def remove_stale(root: Path, files: Iterable[str], folders: Iterable[str]) -> None:
    """Remove from folders what was written of datasets and machines that are no longer published.

    These are files that are none of ``files``; a folder that has nothing left goes too.
    """
    wanted = set(files)
    try:
        for folder in folders:
            found = [] if (root / folder).is_symlink() else sorted((root / folder).glob("*"))
            for path in found:
                if path.suffix in _ENDINGS and f"{folder}/{path.name}" not in wanted:
                    path.unlink()
            if found and not any((root / folder).iterdir()):
                (root / folder).rmdir()
    except OSError as error:
        raise StoreError(f"cannot write to {root}: {error}.") from None


def _files(folder: Path, ending: str) -> list[Path]:
    if not folder.exists() and not folder.is_symlink():
        return []
    plain = _guarded(folder, plain_folder)
    found = sorted(path for path in plain.iterdir() if not path.name.startswith("."))
    for path in found:
        if path.suffix != ending:
            raise StoreError(f"{path}: only *{ending} files belong here.")
        _guarded(path, lambda p: check_name(p.stem, "file"))
    return found


def _lines(path: Path, decode: Any) -> list[Any]:
    data = _guarded(path, read_plain)
    return [_guarded(path, lambda _, text=text: decode(text)) for text in data.splitlines() if text.strip()]


def _guarded(path: Path, read: Any) -> Any:
    try:
        return read(path)
    except Unsound as problem:
        raise StoreError(f"{path}: {problem}.") from None


def _once(table: dict[str, Any], name: str, value: Any, path: Path) -> None:
    if name in table:
        raise StoreError(f"{path}: {name} is there twice.")
    table[name] = value


def _decode(data: bytes, kind: Any) -> Any:
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not a {kind.__name__} file ({str(error)[:200]})") from None
    check_values(msgspec.to_builtins(found))
    return found


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _pretty(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=1) + b"\n"

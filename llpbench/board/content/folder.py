"""Read and write a leaderboards folder.

::

    cells/METHOD.jsonl       published cells, one per line, sorted by id
    bootstrap/METHOD.jsonl   bootstrap replicates of their AUROC over test rows
    searches/METHOD.jsonl    searches that chose the parameters of tuned rows, with every trial
    verified/METHOD.jsonl    marks of cells that were reproduced
    methods/METHOD.json      description of the method
    datasets/DATASET.json    description of the dataset
    machines/ID.json         machines that ran the cells
    facts.json               metrics, selection rules, suites; numbers from publications

Everything else in the folder is built from these files alone, so building needs neither plugins nor data. Adding cells
of one method changes no file of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from llpbench.board.content.bootstrap import Replicates, decode_replicates
from llpbench.board.content.facts import DatasetAbout, Facts, MachineFacts, MethodAbout, check_facts
from llpbench.board.content.lines import Line, decode_line, encode_line
from llpbench.board.content.marks import Mark, decode_mark
from llpbench.board.content.searches import decode_history
from llpbench.board.validate import Unsound, check_machine, check_name, check_values, plain_folder, read_plain
from llpbench.contracts.errors import StoreError
from llpbench.experiment.tuned import History
from llpbench.system.files import write_atomically

CONTENT = ("cells", "bootstrap", "searches", "verified", "methods", "datasets", "machines")
"""Folders of published files."""
TABLES = "tables"
"""The folder of built tables."""
_ENDINGS = (".jsonl", ".json", ".md")


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
    """Read everything published in a folder; raise ``StoreError`` with the name of the first invalid file."""
    if not root.is_dir():
        raise StoreError(f"{root} is not a leaderboards folder: it does not exist.")
    if (root / "manifest.json").is_file():
        raise StoreError(f"{root} is a results folder, expected a leaderboards folder (llpbench leaderboard add).")
    content = Content()
    for path in _files(root / "cells", ".jsonl"):
        for line in _lines(path, decode_line):
            if line.result.cell.method != path.stem:
                raise StoreError(f"{path}: cell {line.result.id} belongs to method {line.result.cell.method!r}.")
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
        content.facts = _guarded(root / "facts.json", lambda p: _decode(read_plain(p), Facts))
    for path in _files(root / "methods", ".json"):
        content.facts.methods[path.stem] = _guarded(path, lambda p: _decode(read_plain(p), MethodAbout))
    for path in _files(root / "datasets", ".json"):
        content.facts.datasets[path.stem] = _guarded(path, lambda p: _decode(read_plain(p), DatasetAbout))
    _guarded(root / "facts.json", lambda _: check_facts(content.facts))
    missing = sorted({line.result.machine for line in content.lines.values()} - set(content.machines))
    if missing:
        raise StoreError(f"{root / 'machines'}: {missing[0]}.json is missing, but results name this machine.")
    return content


def read_machine(path: Path) -> MachineFacts:
    """Read the record of a machine."""
    machine: MachineFacts = _decode(read_plain(path, 1 << 16), MachineFacts)
    return machine


def raw_files(content: Content) -> dict[str, bytes]:
    """The files that hold a content, by path in the folder: the same bytes for the same content.

    They are in the order in which they must be written, so that the folder stays readable if writing is interrupted:
    cells are last, after the machines, replicates and marks that belong to them.
    """
    facts, by_method = content.facts, _by_method(content)
    shared = {name: getattr(facts, name) for name in facts.__struct_fields__ if name not in ("methods", "datasets")}
    files = {f"machines/{name}.json": _pretty(machine) for name, machine in content.machines.items()}
    files["facts.json"] = _pretty(shared)
    files |= {f"methods/{name}.json": _pretty(about) for name, about in facts.methods.items()}
    files |= {f"datasets/{name}.json": _pretty(about) for name, about in facts.datasets.items()}
    for method in sorted({history.setting.cell.method for history in content.searches.values()}):
        own = [h for _, h in sorted(content.searches.items()) if h.setting.cell.method == method]
        files[f"searches/{method}.jsonl"] = _encoded(own)
    attached: tuple[tuple[str, dict[str, Any]], ...] = (("bootstrap", content.replicates), ("verified", content.marks))
    for folder, known in attached:
        for method, lines in by_method.items():
            if own := [known[line.result.id] for line in lines if line.result.id in known]:
                files[f"{folder}/{method}.jsonl"] = _encoded(own)
    for method, lines in by_method.items():
        files[f"cells/{method}.jsonl"] = _joined(encode_line(line.result, line.source) for line in lines)
    return files


def _by_method(content: Content) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for _, line in sorted(content.lines.items()):
        found.setdefault(line.result.cell.method, []).append(line)
    return dict(sorted(found.items()))


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Write files below a folder in the given order, never through a symbolic link; equal files are left alone."""
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
    """Remove files from these folders that are not in ``files``, and folders that are then empty."""
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
        raise StoreError(f"{path}: {name} is published twice.")
    table[name] = value


def _decode(data: bytes, kind: Any) -> Any:
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not a {kind.__name__} file ({str(error)[:200]})") from None
    check_values(msgspec.to_builtins(found))
    return found


def _encoded(items: Iterable[msgspec.Struct]) -> bytes:
    return _joined(msgspec.json.encode(item, order="deterministic") for item in items)


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _pretty(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=1) + b"\n"

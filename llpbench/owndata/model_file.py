"""Model files: one file in safetensors format, which contains no code.

The arrays of the method's state are the file's tensors. Everything else (``Header``) is JSON under ``llpbench`` in the
file's metadata. Files may come from untrusted sources, so anything that is not exactly of this form is rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.specs import Scalar
from llpbench.contracts.state import ARRAY_KINDS, State, plain_state
from llpbench.owndata.judging.facts import FitFacts
from llpbench.owndata.judging.predictor import Calibration
from llpbench.owndata.judging.shrinkage import Shrinkage
from llpbench.owndata.reading.frames import FrameEncoder
from llpbench.system.files import write_atomically

FORMAT = "llpbench-model"
VERSION = 3
READABLE = (2, 3)
"""Supported versions. Version 2 had neither ``shrinkage`` nor ``facts``."""
KEY = "llpbench"
"""Key of the header in the file's metadata."""
_READS = f"this version of llpbench reads versions {' and '.join(map(str, READABLE))}."


class ModelFileError(LLPBenchError):
    """A model file is invalid, or cannot be used here."""


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The content of a model file except its arrays.

    Attributes:
        format: always ``llpbench-model``.
        version: version of the format.
        method: the method's registered name.
        params: all its parameters.
        backend: backend of its networks; empty if it has none.
        seed: seed of the fit.
        classes: names of the classes, texts or numbers.
        score_kind: what the method's scores are: ``probability`` or ``logit``.
        encoder: from table to features.
        calibration: from scores to probabilities; None if scores are probabilities.
        shrinkage: how far the probabilities are shrunk towards the constant; None for version 2.
        facts: bags, score on held-out bags, warnings; None for version 2.
        selected: the report that the rule ``bags`` selected, and its value.
        versions: versions of the software that made it.
        arrays: memory order of each array, C or F (written transposed), so that sums run in the same order and a
            restored model is bit-equal.
        scalars: numbers and texts of the state.
    """

    format: str
    version: int
    method: str
    params: dict[str, Scalar]
    backend: str
    seed: int
    classes: tuple[bool | int | float | str, ...]
    score_kind: str
    encoder: FrameEncoder
    calibration: Calibration | None
    selected: dict[str, int | float | str | None]
    versions: dict[str, str]
    shrinkage: Shrinkage | None = None
    facts: FitFacts | None = None
    arrays: dict[str, Literal["C", "F"]] = {}
    scalars: dict[str, bool | int | float | str] = {}


def write_model(path: Path, header: Header, state: State) -> None:
    """Write a model file atomically.

    Raises:
        MethodError: the method's state contains values that cannot be saved.
        ModelFileError: the file cannot be written.
    """
    from safetensors.numpy import save

    arrays, header.scalars = plain_state(header.method, state)
    header.arrays = {name: "F" if array.flags.fnc else "C" for name, array in arrays.items()}
    by_rows = {
        name: np.array(array.T if array.flags.fnc else array, array.dtype.newbyteorder("="), order="C")
        for name, array in arrays.items()
    }
    content = save(by_rows, {KEY: msgspec.json.encode(header).decode()})
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ModelFileError(f"cannot write the model to {path}: {error.strerror or error}.") from None


def read_model(path: Path) -> tuple[Header, State]:
    """Read the header and the method's state from a model file; raises ``ModelFileError`` if it is invalid."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}.") from None
    try:
        return _read(content)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is invalid: {error}") from None


def _read(content: bytes) -> tuple[Header, State]:
    if content.startswith(b"PK\x03\x04"):
        raise ModelFileError(f"it has version 1 of the format (a zip file); {_READS} Fit and save the model again.")
    text, arrays = _read_tensors(content)
    header = _decode_header(text)
    odd = sorted(set(arrays) ^ set(header.arrays))
    if odd:
        raise ModelFileError(f"its arrays do not match its header ({', '.join(map(repr, odd[:3]))}).")
    twice = sorted(set(arrays) & set(header.scalars))
    if twice:
        raise ModelFileError(f"its state contains {twice[0]!r} twice.")
    ordered = {name: array.T if header.arrays[name] == "F" else array for name, array in arrays.items()}
    return header, {**header.scalars, **ordered}


def _read_tensors(content: bytes) -> tuple[str, dict[str, np.ndarray[Any, Any]]]:
    """The text of the header, and the arrays; safetensors checks names, types, shapes and sizes."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = {name: np.array(array) for name, array in load(content).items()}
        length = int.from_bytes(content[:8], "little")
        text = msgspec.json.decode(content[8 : 8 + length]).get("__metadata__", {}).get(KEY)
    except KeyError as error:  # a type that numpy has no name for
        raise ModelFileError(f"an array has the type {error.args[0]}; expected real numbers.") from None
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"it is not a model file ({error}).") from None
    if text is None:
        raise ModelFileError("it is not a model file of llpbench.")
    for name, array in arrays.items():
        if array.dtype.kind not in ARRAY_KINDS:
            raise ModelFileError(f"its array {name!r} has the type {array.dtype}; expected real numbers.")
    return text, arrays


def _decode_header(text: str) -> Header:
    try:
        head = msgspec.json.decode(text, type=dict[str, Any])
        if head.get("format") != FORMAT:
            raise ModelFileError("it is not a model file of llpbench.")
        if head.get("version") not in READABLE:
            raise ModelFileError(f"it has version {head.get('version')!r} of the format; {_READS}")
        return msgspec.json.decode(text, type=Header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ModelFileError(f"its header cannot be read ({error}).") from None

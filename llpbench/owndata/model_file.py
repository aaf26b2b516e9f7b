"""Saved models: one file in the format safetensors. Nothing in it can run, nothing is unpacked to disk.

The arrays of the method's state are the file's tensors. All else (``Header``: what the model is, how its table is
encoded) is JSON under ``llpbench`` in the file's metadata. A file may come from anywhere: whatever is not exactly of
this form is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.specs import Scalar
from llpbench.contracts.state import ARRAY_KINDS, State, plain_state
from llpbench.data.encoding.frames import FrameEncoder
from llpbench.owndata.judging.calibration import Calibration
from llpbench.owndata.judging.facts import FitFacts
from llpbench.owndata.judging.shrinkage import Shrinkage
from llpbench.system.files import write_atomically

FORMAT = "llpbench-model"
VERSION = 3
READABLE = (2, 3)
"""Versions that are read. Version 2 had neither ``shrinkage`` nor ``facts``; its models predict as they did."""
KEY = "llpbench"
"""Where the file's metadata has the header."""
_READS = f"this llpbench reads versions {' and '.join(map(str, READABLE))}."


class ModelFileError(LLPBenchError):
    """A file is not a saved model, or not one that can be used here."""


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a model file says of itself.

    Attributes:
        format: always ``llpbench-model``.
        version: version of the format.
        method: the method's registered name.
        params: all its parameters.
        backend: the backend of its networks, empty when it has none.
        seed: seed of the fit.
        classes: the classes' names, texts or numbers.
        score_kind: how the method's scores are read: ``probability`` or ``logit``.
        encoder: from table to features.
        calibration: from scores to probabilities, where scores are no probabilities.
        shrinkage: how far the probabilities are drawn towards the constant; None: not at all.
        facts: what is known of the fit: its bags, its score on held-back ones, warnings.
        selected: the report that the rule ``bags`` chose, and its value.
        versions: versions of the software that made it.
        arrays: for each array whether it lies in memory by rows (C) or by columns (F, written transposed), so that
            sums run in the same order and a restored model gives the same bits.
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
    """Write a model file, whole or not at all.

    Raises:
        MethodError: the method's state holds values that cannot be saved.
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
    """Read a model file: its header, and the state of its method.

    Raises:
        ModelFileError: with what is wrong with the file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}.") from None
    try:
        return _read(content)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is refused: {error}") from None


def _read(content: bytes) -> tuple[Header, State]:
    if content.startswith(b"PK\x03\x04"):
        raise ModelFileError(f"it has version 1 of the format (a zip file); {_READS} Fit and save the model again.")
    text, arrays = _read_tensors(content)
    header = _decode_header(text)
    odd = sorted(set(arrays) ^ set(header.arrays))
    if odd:
        raise ModelFileError(f"its arrays are not those its header names ({', '.join(map(repr, odd[:3]))}).")
    twice = sorted(set(arrays) & set(header.scalars))
    if twice:
        raise ModelFileError(f"its state names {twice[0]!r} twice.")
    ordered = {name: array.T if header.arrays[name] == "F" else array for name, array in arrays.items()}
    return header, {**header.scalars, **ordered}


def _read_tensors(content: bytes) -> tuple[str, dict[str, np.ndarray[Any, Any]]]:
    """The text of the header and the arrays; safetensors checks that names, types, shapes and bytes fit together."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = {name: np.array(array) for name, array in load(content).items()}
        length = int.from_bytes(content[:8], "little")
        text = msgspec.json.decode(content[8 : 8 + length]).get("__metadata__", {}).get(KEY)
    except KeyError as error:  # a type that numpy has no name for
        raise ModelFileError(f"an array holds {error.args[0]}, not numbers.") from None
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"it is not a saved model ({error}).") from None
    if text is None:
        raise ModelFileError("it is not a saved model of llpbench.")
    for name, array in arrays.items():
        if array.dtype.kind not in ARRAY_KINDS:
            raise ModelFileError(f"its array {name!r} holds {array.dtype}, not numbers.")
    return text, arrays


def _decode_header(text: str) -> Header:
    try:
        head = msgspec.json.decode(text, type=dict[str, Any])
        if head.get("format") != FORMAT:
            raise ModelFileError("it is not a saved model of llpbench.")
        if head.get("version") not in READABLE:
            raise ModelFileError(f"it has version {head.get('version')!r} of the format; {_READS}")
        return msgspec.json.decode(text, type=Header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ModelFileError(f"its header cannot be read ({error}).") from None

"""Saved models: one zip file of a JSON header and plain arrays. Nothing in it can run, nothing is unpacked to disk.

``header.json`` says what the model is; ``arrays/0.npy``, ``arrays/1.npy``, ... are arrays of numbers in numpy's own
format. Members are stored without compression, so that a file never holds more than its size. A file is hostile
until checked: whatever is not exactly this form is refused.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from llpbench.contracts.errors import LLPBenchError, MethodError
from llpbench.contracts.specs import Scalar
from llpbench.contracts.state import State
from llpbench.estimator.calibration import Calibration
from llpbench.estimator.frames import FrameEncoder
from llpbench.system.files import write_atomically

FORMAT = "llpbench-model"
VERSION = 1
HEADER = "header.json"
_MOST_HEADER = 64 * 2**20
_KINDS = "biuf"
_STAMP = (1980, 1, 1, 0, 0, 0)


class ModelFileError(LLPBenchError):
    """A file is not a saved model, or not one that can be used here."""


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a model file says of itself.

    Attributes:
        format: always ``llpbench-model``.
        version: of the format.
        method: the method's registered name.
        params: all its parameters.
        backend: the network engine it was fitted with, empty when none.
        seed: of the fit.
        classes: the classes' names, texts or numbers.
        score_kind: how the method's scores are read: ``probability`` or ``logit``.
        encoder: from table to features.
        calibration: from scores to probabilities, where scores are none.
        selected: the report that the rule ``bags`` chose, and its value.
        versions: of the software that made it.
        arrays: name of each array, by number.
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
    arrays: tuple[str, ...] = ()
    scalars: dict[str, bool | int | float | str] = {}


def write_model(path: Path, header: Header, state: State) -> None:
    """Write a model file, whole or not at all.

    Raises:
        MethodError: the method's state holds what cannot be written down.
        ModelFileError: the file cannot be written.
    """
    arrays, header.scalars = plain_state(header.method, state)
    header.arrays = tuple(arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, _STAMP), msgspec.json.format(msgspec.json.encode(header), indent=1))
        for number, array in enumerate(arrays.values()):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(_member(number), _STAMP), content.getvalue())
    try:
        write_atomically(path, buffer.getvalue())
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
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise ModelFileError(f"{path} is not a saved model ({error}).") from None


def _read(content: bytes) -> tuple[Header, State]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = _checked_members(archive, len(content))
        header = _decode(archive.read(HEADER))
        wanted = [HEADER, *(_member(i) for i in range(len(header.arrays)))]
        if sorted(members) != sorted(wanted):
            odd = sorted(set(members) ^ set(wanted))
            raise ModelFileError(f"its members are not those its header names ({', '.join(map(repr, odd[:3]))}).")
        state: dict[str, Any] = dict(header.scalars)
        for number, name in enumerate(header.arrays):
            if name in state:
                raise ModelFileError(f"its state names {name!r} twice.")
            state[name] = _array(archive.read(_member(number)), name)
    return header, state


def _checked_members(archive: zipfile.ZipFile, size: int) -> list[str]:
    """Names of the members, all stored as they are and together no larger than the file."""
    names = []
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ModelFileError(f"its member {member.filename!r} is compressed; a saved model is not.")
        if member.flag_bits & 1:
            raise ModelFileError(f"its member {member.filename!r} is encrypted.")
        names.append(member.filename)
    if sum(member.file_size for member in archive.infolist()) > size or len(set(names)) < len(names):
        raise ModelFileError("its members overlap or repeat.")
    if HEADER not in names:
        raise ModelFileError(f"it has no {HEADER}.")
    if archive.getinfo(HEADER).file_size > _MOST_HEADER:
        raise ModelFileError(f"its {HEADER} is larger than {_MOST_HEADER // 2**20} MiB.")
    return names


def _decode(text: bytes) -> Header:
    try:
        head = msgspec.json.decode(text, type=dict[str, Any])
        if head.get("format") != FORMAT:
            raise ModelFileError("it is not a saved model of llpbench.")
        if head.get("version") != VERSION:
            raise ModelFileError(
                f"it has version {head.get('version')!r} of the format; this llpbench reads version {VERSION}."
            )
        return msgspec.json.decode(text, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFileError(f"its header cannot be read ({error}).") from None


def _array(content: bytes, name: str) -> np.ndarray[Any, Any]:
    """An array of numbers in numpy's format; its size is checked before anything is made of it."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError(f"its array {name!r} has another version of numpy's format.")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in _KINDS or dtype.hasobject or dtype.fields is not None:
        raise ModelFileError(f"its array {name!r} holds {dtype}, not numbers (pickled objects are never read).")
    data = content[stream.tell() :]
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ModelFileError(f"its array {name!r} of shape {shape} does not fit its {len(data):,} bytes.")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return np.array(array, dtype=dtype.newbyteorder("="), order="K")


def plain_state(method: str, state: State) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Arrays and scalars of a method's state apart, each of a kind that can be written down.

    Raises:
        MethodError: with the value that is not.
    """
    if not isinstance(state, Mapping):
        raise MethodError(f"{method}: state() must return a mapping, not {type(state).__name__}.")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    scalars: dict[str, Any] = {}
    for name, value in state.items():
        wrong = f"{method}: state() gives {name!r} as {type(value).__name__}"
        if not isinstance(name, str):
            raise MethodError(f"{method}: state() must name its values by texts, not {name!r}.")
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            if array.dtype.kind not in _KINDS:
                raise MethodError(f"{wrong} of {array.dtype}; arrays must hold numbers or booleans.")
            arrays[name] = array
        elif isinstance(value, bool | str) or (isinstance(value, int | float) and _fits(value)):
            scalars[name] = value
        else:
            raise MethodError(f"{wrong}; give arrays, finite numbers (whole ones below 2^63), or texts.")
    return arrays, scalars


def _fits(value: float) -> bool:
    return -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)


def _member(number: int) -> str:
    return f"arrays/{number}.npy"

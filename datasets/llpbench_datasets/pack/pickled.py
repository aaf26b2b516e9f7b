"""Read a table from a pickle of a pandas DataFrame without executing anything in it.

A pickle names the functions that rebuild its objects, so reading one with ``pickle.load`` can run any code. Here every
name is looked up in a fixed table of stand-ins. They keep the blocks of the table (two-dimensional arrays) and the
places of their rows among the columns, from which the columns are taken. Any other name raises an error, and neither
pandas nor any other module is imported for it.
"""

from __future__ import annotations

import io
import lzma
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llpbench import DatasetError

AnyArray = NDArray[Any]
_KINDS = "biufO"
"""Kinds of arrays that a table may hold: truth values, integers, floats, and text as objects."""


def read_pickled(contents: bytes) -> dict[str, AnyArray]:
    """The columns of a DataFrame in a pickle, which may be compressed with xz.

    Numbers are arrays of their own type; text is an array of objects, with None or NaN where it is missing.

    Raises:
        DatasetError: the pickle is damaged, is not a DataFrame, or names anything that a plain table does not need.
    """
    try:
        raw = lzma.decompress(contents) if contents.startswith(b"\xfd7zXZ\0") else contents
        frame = _Unpickler(io.BytesIO(raw)).load()
        return _columns(frame)
    except DatasetError:
        raise
    except Exception as error:  # a damaged pickle raises errors of nearly every type
        raise DatasetError(f"the pickle cannot be read as a table ({type(error).__name__}: {error}).") from None


class _StandIn:
    """An object of a pickle: what it was made from, and its state."""

    def __new__(cls, *args: Any) -> _StandIn:
        made = super().__new__(cls)
        made.args = args
        made.state = None
        return made

    args: tuple[Any, ...]
    state: Any

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Frame(_StandIn):
    """``DataFrame``: its state holds the manager."""


class _Manager(_StandIn):
    """``BlockManager(blocks, axes)``."""


class _Block(_StandIn):
    """``_unpickle_block(values, places, ndim)``."""


class _Index(_StandIn):
    """``Index`` and ``RangeIndex``, as a class and as ``_new_Index(class, fields)``."""


class _Type(_StandIn):
    """``numpy.dtype(code, align, copy)``."""

    def resolved(self) -> np.dtype[Any]:
        """The type, in the byte order of the state."""
        order: Any = self.state[1] if self.state else "|"
        found = np.dtype(str(self.args[0]))
        if found.kind not in _KINDS:
            raise DatasetError(f"the pickle holds an array of type {found}; expected numbers or text.")
        return found if order == "|" else found.newbyteorder(order)


class _Array(_StandIn):
    """``numpy.ndarray``: rebuilt from a buffer (``_frombuffer``) or from a state (``_reconstruct``)."""

    def resolved(self) -> AnyArray:
        """The array itself."""
        if self.state is None:  # _frombuffer(buffer, dtype, shape, order)
            buffer, dtype, shape, order = self.args
            kind = dtype.resolved()
            if kind.kind == "O":
                raise DatasetError("the pickle holds an array of objects as raw memory.")
            return np.frombuffer(buffer, kind).reshape(shape, order=order)
        _, shape, dtype, fortran, values = self.state
        kind = dtype.resolved()
        if kind.kind == "O":
            flat = np.empty(len(values), object)
            flat[:] = values
        else:
            flat = np.frombuffer(values, kind)
        return flat.reshape(shape, order="F" if fortran else "C")


class _Unpickler(pickle.Unpickler):
    """Unpickler that resolves names to the stand-ins only and imports no module."""

    known: ClassVar[Mapping[str, Any]] = {
        "pandas.core.frame.DataFrame": _Frame,
        "pandas.DataFrame": _Frame,  # names of pandas 3
        "pandas.Index": _Index,
        "pandas.RangeIndex": _Index,
        "pandas.core.internals.managers.BlockManager": _Manager,
        "pandas._libs.internals._unpickle_block": _Block,
        "pandas.core.indexes.base._new_Index": _Index,
        "pandas.core.indexes.base.Index": _Index,
        "pandas.core.indexes.range.RangeIndex": _Index,
        "numpy.core.multiarray._reconstruct": _Array,
        "numpy._core.multiarray._reconstruct": _Array,
        "numpy.core.numeric._frombuffer": _Array,
        "numpy._core.numeric._frombuffer": _Array,
        "numpy.ndarray": _Array,
        "numpy.dtype": _Type,
        "builtins.slice": slice,
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a global name."""
        try:
            return self.known[f"{module}.{name}"]
        except KeyError:
            raise DatasetError(f"the pickle names {module}.{name}, which a plain table does not need.") from None


def _columns(frame: Any) -> dict[str, AnyArray]:
    if not isinstance(frame, _Frame):
        raise DatasetError("the pickle must hold a pandas DataFrame.")
    blocks, axes = frame.state["_mgr"].args
    names = [str(name) for name in axes[0].args[1]["data"].resolved()]
    found: dict[int, AnyArray] = {}
    for block in blocks:
        values, places, _ = block.args
        rows = range(len(names))[places] if isinstance(places, slice) else places.resolved().tolist()
        found |= zip(rows, values.resolved(), strict=True)
    if sorted(found) != list(range(len(names))) or len(set(names)) < len(names):
        raise DatasetError("the pickle's columns are incomplete, or two have the same name.")
    return {name: found[place] for place, name in enumerate(names)}

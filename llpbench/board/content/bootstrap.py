"""Bootstrap replicates of a cell's AUROC over its test rows, small enough to publish.

Predictions are too big to keep in a repository; what paired statistics need of them is how a cell's AUROC moves when
test rows are resampled. All cells of a dataset and seed have the same test rows and are resampled alike, so the
difference of any two of them, also of cells published years apart, is the difference of their replicates.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from llpbench.board.maths.bootstrap import REPLICATES, auroc_replicates, resampling_seed
from llpbench.board.validate import PREDICTION_BYTES, Unsound, check_id, clip, read_plain
from llpbench.contracts.result import CellResult

BAG_OF = "bag_of"
"""The array of predictions that has the bag of each test row."""


class Packed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replicates as 16-bit steps of ``scale`` around ``centre``, in base64."""

    centre: float
    scale: float
    steps: str


class Replicates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replicates of one cell.

    Attributes:
        test: digest of the labels of the test rows; only equal ones may be paired.
        rules: by selection rule. A rule that chose the same scores as an earlier one is not repeated: ``same``.
    """

    id: str
    test: str
    rules: dict[str, Packed] = {}
    same: dict[str, str] = {}

    def values(self, rule: str) -> NDArray[np.float64] | None:
        """The replicates under a rule."""
        packed = self.rules.get(self.same.get(rule, rule))
        return None if packed is None else unpack(packed)


def read_predictions(path: Path, rules: Iterable[str]) -> dict[str, NDArray[np.generic]]:
    """Read labels, scores under each rule and (if there are any) bags of rows; raise ``Unsound`` if they are invalid.

    Pickled objects are rejected, and so are files that would unpack to more than ``PREDICTION_BYTES``.
    """
    rules, data = list(rules), read_plain(path, PREDICTION_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > PREDICTION_BYTES:
            raise Unsound(f"{path.name}: would unpack to {size / 2**20:.0f} MB")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            there = [BAG_OF] if BAG_OF in arrays.files else []
            found = {name: np.asarray(arrays[name]) for name in ("labels", *rules, *there)}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError, MemoryError) as error:
        raise Unsound(f"{path.name}: not a predictions file ({clip(str(error), 120)})") from None
    labels = found["labels"]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer) or len(labels) == 0:
        raise Unsound(f"{path.name}: labels must be integers, one for each row")
    if BAG_OF in found and (found[BAG_OF].shape != labels.shape or found[BAG_OF].dtype.kind != "i"):
        raise Unsound(f"{path.name}: bags of rows must be integers, one for each row")
    for rule in rules:
        scores = found[rule]
        if scores.ndim not in (1, 2) or len(scores) != len(labels) or not np.issubdtype(scores.dtype, np.floating):
            raise Unsound(f"{path.name}: scores under {rule!r} must be floats, one or one line for each of its rows")
        if not np.isfinite(scores).all():
            raise Unsound(f"{path.name}: scores under {rule!r} must be finite")
    return found


def replicate(result: CellResult, arrays: Mapping[str, NDArray[np.generic]]) -> Replicates:
    """Replicates of a cell from its predictions (whose metrics were compared: ``recompute.check_metrics``)."""
    labels = arrays["labels"].astype(np.int64)
    rules: dict[str, Packed] = {}
    same: dict[str, str] = {}
    for rule in result.selected:
        twin = next((r for r in rules if np.array_equal(arrays[r], arrays[rule])), None)
        if twin is not None:
            same[rule] = twin
        else:
            scores = arrays[rule].astype(np.float64)
            rules[rule] = pack(auroc_replicates(labels, scores, resampling_seed(result)))
    return Replicates(id=result.id, test=short_digest(labels), rules=rules, same=same)


def short_digest(labels: NDArray[np.int64]) -> str:
    """The digest of test labels that replicates carry."""
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()[:16]


def pack(values: NDArray[np.float64]) -> Packed:
    """Replicates in 16 bits each; NaN (a resample without a class) is the lowest step."""
    finite = values[np.isfinite(values)]
    centre = round(float(finite.mean()), 6) if len(finite) else 0.0
    reach = float(np.abs(finite - centre).max()) if len(finite) else 0.0
    scale = float(f"{max(reach, 1e-9) / 32000:.3g}")
    steps = np.where(np.isfinite(values), np.rint((values - centre) / scale), -32768)
    coded = base64.b64encode(np.clip(steps, -32768, 32767).astype("<i2").tobytes()).decode()
    return Packed(centre=centre, scale=scale, steps=coded)


def unpack(packed: Packed) -> NDArray[np.float64]:
    """The replicates again, to about four digits of their spread."""
    steps = np.frombuffer(base64.b64decode(packed.steps, validate=True), dtype="<i2").astype(np.float64)
    return np.where(steps == -32768, np.nan, packed.centre + packed.scale * steps)


def decode_replicates(data: bytes) -> Replicates:
    """Read one line of published replicates, or raise ``Unsound``."""
    try:
        found = msgspec.json.decode(data, type=Replicates)
        check_id(found.id)
        check_id(found.test, "digest of test labels")
        for packed in found.rules.values():
            values = unpack(packed)
            if len(values) != REPLICATES or not (-1 <= packed.centre <= 2 and 0 < packed.scale < 1):
                raise Unsound(f"cell {found.id}: its replicates are out of range")
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError) as error:
        raise Unsound(f"not published replicates ({clip(str(error), 120)})") from None
    if set(found.same.values()) - set(found.rules):
        raise Unsound(f"cell {found.id}: replicates under an unknown rule")
    return found

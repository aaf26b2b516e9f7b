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
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.result import CellResult
from llpbench.leaderboard.statistics import REPLICATES, auroc_replicates
from llpbench.leaderboard.validate import PREDICTION_BYTES, Unsound, check_id, check_rules, clip, read_plain

METRIC = "auroc"
"""The metric whose replicates are kept: only for this one the board says which methods are separated."""

TOLERANCE = 1e-4


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
    """Labels, and scores under each rule, of a predictions file, or ``Unsound``. Nothing in it is ever executed."""
    data = read_plain(path, PREDICTION_BYTES)
    rules = list(rules)
    wanted = ("labels", *rules)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
        if sum(sizes.values()) > PREDICTION_BYTES:
            raise Unsound(f"{path.name}: would unpack to {sum(sizes.values()) / 2**20:.0f} MB")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name]) for name in wanted}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError, MemoryError) as error:
        raise Unsound(f"{path.name}: not a predictions file ({clip(str(error), 120)})") from None
    labels = found["labels"]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer) or len(labels) == 0:
        raise Unsound(f"{path.name}: labels are not whole numbers, one for each row")
    for rule in rules:
        scores = found[rule]
        if scores.ndim not in (1, 2) or len(scores) != len(labels) or not np.issubdtype(scores.dtype, np.floating):
            raise Unsound(f"{path.name}: scores under {rule!r} do not fit its {len(labels)} labels")
        if not np.isfinite(scores).all():
            raise Unsound(f"{path.name}: scores under {rule!r} are not all finite")
    return found


def replicate(result: CellResult, path: Path) -> Replicates | None:
    """Replicates of a cell from its predictions, which must give the AUROC that the result states.

    Predictions are kept in single precision, which may turn scores that differ into ties, but never turns them
    around: the stated AUROC must lie between what the ties give when all are lost and when all are won. Where ties
    moved it by more than ``TOLERANCE`` the predictions are too coarse to say anything: None.
    """
    from llpbench.experiment.metrics import auroc

    arrays = read_predictions(path, result.selected)
    labels = arrays["labels"].astype(np.int64)
    if result.rows.get("test") != len(labels):
        raise Unsound(f"{path.name}: {len(labels)} rows, the result says {result.rows.get('test')}")
    test = hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()[:16]
    rules: dict[str, Packed] = {}
    same: dict[str, str] = {}
    for rule, chosen in result.selected.items():
        scores = arrays[rule].astype(np.float64)
        stated = chosen.metrics.get(METRIC)
        found = auroc(labels, scores)
        if stated is None or not abs(found - stated) <= TOLERANCE + tied_share(labels, scores) / 2:
            raise Unsound(f"its predictions give AUROC {found:.4f} under {rule!r}, the result says {stated}")
        if abs(found - stated) > TOLERANCE:
            return None
        twin = next((r for r in rules if np.array_equal(arrays[r], arrays[rule])), None)
        if twin is not None:
            same[rule] = twin
        else:
            rules[rule] = pack(auroc_replicates(labels, scores, resampling_seed(result)))
    return Replicates(id=result.id, test=test, rules=rules, same=same)


def tied_share(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Share of pairs of a positive and a negative with equal scores (mean over classes where there are several)."""
    if scores.ndim == 2:
        return float(np.mean([tied_share((labels == c).astype(np.int64), s) for c, s in enumerate(scores.T)]))
    _, place = np.unique(scores, return_inverse=True)
    positives, negatives = np.bincount(place, labels == 1), np.bincount(place, labels != 1)
    pairs = positives.sum() * negatives.sum()
    return float((positives * negatives).sum() / pairs) if pairs else 0.0


def resampling_seed(result: CellResult) -> int:
    """The seed of the resamples: that of the split, which fixes the test rows."""
    return result.seeds["split"]


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
    steps = np.frombuffer(base64.b64decode(packed.steps), dtype="<i2").astype(np.float64)
    return np.where(steps == -32768, np.nan, packed.centre + packed.scale * steps)


def decode_replicates(data: bytes) -> Replicates:
    """Read one line of published replicates, or raise ``Unsound``."""
    try:
        found = msgspec.json.decode(data, type=Replicates)
        check_id(found.id)
        for packed in found.rules.values():
            values = unpack(packed)
            if len(values) != REPLICATES or not (-1 <= packed.centre <= 2 and 0 < packed.scale < 1):
                raise Unsound(f"cell {found.id}: its replicates are out of range")
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError) as error:
        raise Unsound(f"not published replicates ({clip(str(error), 120)})") from None
    check_rules([*found.rules, *found.same])
    if set(found.same.values()) - set(found.rules):
        raise Unsound(f"cell {found.id}: replicates under an unknown rule")
    return found

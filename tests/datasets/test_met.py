"""The masked encoder: what is masked is not seen, what is learned is the table, engines and runs agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llpbench.data.store import DataStore
from llpbench_datasets.components import principal_directions
from llpbench_datasets.criteo import CRITEO
from llpbench_datasets.criteo.encode import Encoded, encode
from llpbench_datasets.criteo.load import load
from llpbench_datasets.criteo.sample import draw
from llpbench_datasets.criteo.synthetic import write_synthetic

pytestmark = pytest.mark.slow

met = pytest.importorskip("llpbench_datasets.criteo.met")

SIZE = 8
SMALL = met.MetSettings(width=8, heads=2, layers=1, mask=0.7, steps=3, batch=16)


def some_rows(n: int = 12, seed: int = 0) -> Encoded:
    rng = np.random.default_rng(seed)
    absent = (rng.random((n, 13)) < 0.3).astype(np.float32)
    numbers = rng.standard_normal((n, 13)).astype(np.float32) * (1 - absent)
    return Encoded(numbers, absent, rng.integers(SIZE, size=(n, 26)).astype(np.int32), SIZE)


@pytest.fixture(scope="module")
def model() -> object:
    """A network with all its weights drawn, none of them trained."""
    network = met.Met(SIZE, SMALL)
    rng = np.random.default_rng(1)
    for variable in network.trainable_variables:
        variable.assign(0.3 * rng.standard_normal(tuple(variable.shape)).astype(np.float32))
    return network


def array(tensor: object) -> np.ndarray:
    import keras

    return np.asarray(keras.ops.convert_to_numpy(tensor))


def encoded_by(model: object, rows: Encoded, visible: np.ndarray) -> np.ndarray:
    return array(model.encode(*met.inputs(rows, slice(None)), visible))  # type: ignore[attr-defined]


def changed(rows: Encoded, where: np.ndarray) -> Encoded:
    """Other values in the columns that ``where`` (rows, 39) marks."""
    number, bucket = where[:, :13], where[:, 13:]
    absent = np.where(number, 1 - rows.absent, rows.absent)
    numbers = np.where(number, rows.numbers + 3.0, rows.numbers) * (1 - absent)
    buckets = np.where(bucket, (rows.buckets + 1) % SIZE, rows.buckets).astype(np.int32)
    return Encoded(numbers.astype(np.float32), absent.astype(np.float32), buckets, SIZE)


def test_masked_columns_do_not_reach_the_encoder(model: object) -> None:
    rows = some_rows()
    visible = met.draw_visible(np.random.default_rng(0), len(rows), 0.7)
    masked = np.ones((len(rows), 39), bool)
    np.put_along_axis(masked, visible, False, axis=1)
    before = encoded_by(model, rows, visible)
    np.testing.assert_array_equal(before, encoded_by(model, changed(rows, masked), visible))
    guess = model.reconstruct(before, visible)  # type: ignore[attr-defined]
    assert [array(part).shape for part in guess] == [(12, 13), (26, 12, SIZE)]


def test_every_visible_column_reaches_the_encoder(model: object) -> None:
    """One column at a time is changed in one row each: exactly the rows that show it come out differently."""
    rows = some_rows(39)
    visible = met.draw_visible(np.random.default_rng(3), 39, 0.5)
    after = encoded_by(model, changed(rows, np.eye(39, dtype=bool)), visible)
    differs = np.abs(after - encoded_by(model, rows, visible)).max(axis=(1, 2)) > 1e-6
    shows = np.array([row in visible[row] for row in range(39)])
    assert 0 < shows.sum() < 39
    np.testing.assert_array_equal(differs, shows)


def test_rows_do_not_reach_each_other(model: object) -> None:
    rows = some_rows()
    visible = np.tile(np.arange(39, dtype=np.int32), (12, 1))
    other = changed(rows, np.arange(12)[:, None] == np.full(39, 5))
    same = np.arange(12) != 5
    np.testing.assert_allclose(
        encoded_by(model, rows, visible)[same], encoded_by(model, other, visible)[same], rtol=1e-5, atol=1e-6
    )


def test_loss_by_hand(model: object) -> None:
    rows = some_rows()
    visible = met.draw_visible(np.random.default_rng(2), len(rows), 0.7)
    inputs = (*met.inputs(rows, slice(None)), visible)
    numbers, logits = map(array, model.reconstruct(model.encode(*inputs), visible))  # type: ignore[attr-defined]
    wanted = []
    for i in range(len(rows)):
        total = sum((numbers[i, c] - rows.numbers[i, c]) ** 2 for c in range(13) if not rows.absent[i, c])
        for c in range(26):
            total += np.log(np.exp(logits[c, i].astype(float)).sum()) - logits[c, i, rows.buckets[i, c]]
        wanted.append(total / 39)
    np.testing.assert_allclose(array(model(inputs)), wanted, rtol=1e-4)  # type: ignore[operator]


@pytest.mark.parametrize(("mask", "shown"), [(0.0, 39), (0.5, 20), (0.7, 12), (0.95, 2)])
def test_masks_are_of_one_size_and_fair(mask: float, shown: int) -> None:
    visible = met.draw_visible(np.random.default_rng(0), 4000, mask)
    assert visible.shape == (4000, shown)
    assert (np.diff(visible, axis=1) > 0).all()
    share = np.bincount(visible.ravel(), minlength=39) / 4000
    assert np.abs(share - shown / 39).max() < 5 * np.sqrt(0.25 / 4000)


def test_batches_go_through_all_rows() -> None:
    rows = Encoded(
        np.arange(40, dtype=np.float32)[:, None] * np.ones((1, 13), np.float32),
        np.zeros((40, 13), np.float32),
        np.zeros((40, 26), np.int32),
        SIZE,
    )
    batches = met.MaskedBatches(rows, met.MetSettings(batch=10, steps=8, mask=0.7), seed=0)
    seen = [batches[step][0][0][:, 0].astype(int).tolist() for step in range(len(batches))]
    assert sorted(row for batch in seen[:4] for row in batch) == list(range(40))
    assert sorted(row for batch in seen[4:] for row in batch) == list(range(40))
    assert seen[:4] != seen[4:]


def test_batch_depends_on_its_step_alone() -> None:
    """TensorFlow looks at the first batches before it trains on them."""
    settings = met.MetSettings(batch=5, steps=8, mask=0.7)
    inputs = [met.MaskedBatches(some_rows(), settings, seed=0)[step][0] for step in range(8)]
    batches = met.MaskedBatches(some_rows(), settings, seed=0)
    for step in (3, 0, 7, 0, 1, 2, 5, 6, 4, 3):
        for one, again in zip(inputs[step], batches[step][0], strict=True):
            np.testing.assert_array_equal(one, again)
    assert not np.array_equal(inputs[0][3], inputs[1][3])


def test_principal_directions() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6)) * np.array([5, 1, 3, 0.1, 2, 0.5])
    found = principal_directions(np.cov(X.T), 3)
    assert np.abs(found).argmax(axis=0).tolist() == [0, 2, 4]
    assert (found[[0, 2, 4], [0, 1, 2]] > 0).all()
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-12)


def synthetic(tmp_path: Path, rows: int) -> np.ndarray:
    write_synthetic(tmp_path / "criteo" / "train.txt", rows)
    return draw(tmp_path / "criteo" / "train.txt", rows, 0)


def small_features(rows: np.ndarray, train: int) -> np.ndarray:
    encoded = encode(rows, train, SIZE)
    model, _ = met.train(encoded.head(train), SMALL, seed=0)
    return np.asarray(met.represent(model, encoded, train, 4))


def test_training_learns_the_table(tmp_path: Path) -> None:
    """Half of the way from guessing blindly to the entropy of each column taken alone, or better."""
    encoded = encode(synthetic(tmp_path, 300), 300, SIZE)
    settings = met.MetSettings(width=8, heads=2, layers=1, mask=0.5, steps=300, batch=32, rate=0.01)
    _, history = met.train(encoded, settings, seed=0)
    assert len(history) == 300
    shares = [np.bincount(column, minlength=SIZE) / 300 for column in encoded.buckets.T]
    entropy = sum(-float((p[p > 0] * np.log(p[p > 0])).sum()) for p in shares)
    alone = (entropy + float((encoded.numbers**2).mean(axis=0).sum())) / 39
    assert np.mean(history[-30:]) < (alone + np.mean(history[:5])) / 2


def test_features_see_no_label_and_no_held_out_row(tmp_path: Path) -> None:
    rows = synthetic(tmp_path, 120)
    first = small_features(rows, 80)
    assert first.shape == (120, 4)
    assert np.isfinite(first).all()
    other = rows.copy()
    other[:, 0] = 1 - other[:, 0]
    other[80:] = rows[80:][::-1]
    second = small_features(other, 80)
    np.testing.assert_array_equal(first[:80], second[:80])
    np.testing.assert_allclose(first[80:], second[80:][::-1], rtol=1e-4, atol=1e-5)


def test_features_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    synthetic(tmp_path, 60)
    asked: list[tuple[int, met.MetSettings, int]] = []

    def train(encoded: Encoded, settings: met.MetSettings, seed: int) -> tuple[None, list[float]]:
        asked.append((len(encoded), settings, seed))
        return None, []

    monkeypatch.setattr(met, "train", train)
    monkeypatch.setattr(met, "represent", lambda _, rows, __, dim: np.full((len(rows), dim), len(asked), np.float32))
    store = DataStore(CRITEO, tmp_path)
    for options in ({}, {}, {"dim": 8}, {"mask": 0.5}, {"steps": 7}, {"buckets": 16}, {}):
        load(store, seed=5, **options)  # type: ignore[arg-type]
    load(store, seed=6)
    assert [(n, settings.mask, settings.steps, seed) for n, settings, seed in asked] == [
        (42, 0.7, 50, 5),
        (42, 0.7, 50, 5),
        (42, 0.5, 50, 5),
        (42, 0.7, 7, 5),
        (42, 0.7, 50, 5),
        (42, 0.7, 50, 6),
    ]

"""Patch dictionaries against a naive implementation, and what they must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tiny_cifar import draw

from llpbench_datasets import components, patches
from llpbench_datasets.components import principal_components
from llpbench_datasets.patches import (
    Dictionary,
    Options,
    encode,
    folded,
    kmeans,
    learn_dictionary,
    normalised,
    patch_features,
    quadrant_of,
    random_patches,
)

SMALL = Options(centroids=7, samples=600, rounds=3, dims=9)


def naive_encode(image: np.ndarray, dictionary: Dictionary) -> np.ndarray:
    """One image, patch after patch, in double precision."""
    side, count = dictionary.patch, len(dictionary.centroids)
    places = image.shape[1] - side + 1
    sums, sizes = np.zeros((2, 2, count)), np.zeros((2, 2))
    for row in range(places):
        for column in range(places):
            x = image[:, row : row + side, column : column + side].astype(float).ravel()
            x = (x - x.mean()) / np.sqrt(x.var(ddof=1) + 10.0)
            x = (x - dictionary.mean) @ dictionary.whiten
            z = np.array([np.linalg.norm(x - c) for c in dictionary.centroids.astype(float)])
            where = int(2 * row >= places), int(2 * column >= places)
            sums[where] += np.maximum(0.0, z.mean() - z)
            sizes[where] += 1
    return (sums / sizes[:, :, None]).reshape(-1)


def test_encoding_equals_a_naive_one() -> None:
    images, _ = draw(n=5)
    dictionary = learn_dictionary(images, SMALL)
    found = np.concatenate([block for _, block in encode(images, dictionary)])
    assert found.shape == (5, 28)
    assert_allclose(found, [naive_encode(image, dictionary) for image in images], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_blocks_do_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images, _ = draw(n=5)
    dictionary = learn_dictionary(images, SMALL)
    whole = np.concatenate([block for _, block in encode(images, dictionary)])
    monkeypatch.setattr(patches, "_BLOCK", size)
    starts, blocks = zip(*encode(images, dictionary), strict=True)
    assert list(starts) == list(range(0, 5, size))
    assert_allclose(np.concatenate(blocks), whole, rtol=1e-4, atol=1e-6)


def test_patches_are_cut_from_the_images() -> None:
    """Pixels that name their own place tell where a patch comes from."""
    place = (np.arange(10)[:, None] * 10 + np.arange(10)).astype(np.uint8)
    images = np.stack([np.stack([place, place + 100, np.full_like(place, i)]) for i in range(4)])
    found = random_patches(images, 200, 3, np.random.default_rng(0)).reshape(200, 3, 3, 3).astype(int)
    corner = found[:, 0, 0, 0]
    for row in range(3):
        for column in range(3):
            assert_array_equal(found[:, 0, row, column], corner + 10 * row + column)
            assert_array_equal(found[:, 1, row, column], corner + 100 + 10 * row + column)
    assert set(found[:, 2].ravel()) == {0, 1, 2, 3}
    assert corner.min() == 0
    assert corner.max() == 77  # the last place a patch of 3 fits


def test_whitened_patches() -> None:
    images, _ = draw(n=20)
    options = Options(centroids=2, samples=4000, rounds=1)
    dictionary = learn_dictionary(images, options)
    sample = normalised(random_patches(images, 4000, 6, np.random.default_rng([0, 1]))) - dictionary.mean
    before = np.linalg.eigvalsh(np.cov(sample.T, bias=True))
    after = np.linalg.eigvalsh(np.cov((sample @ dictionary.whiten).T, bias=True))
    assert_allclose(after, before / (before + 0.1), rtol=1e-3, atol=1e-4)


@quick
@given(st.integers(1, 6), st.integers(6, 40), st.integers(0, 2**32 - 1))
def test_kmeans_rounds_equal_plain_loops(count: int, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    start, found = (kmeans(rows, count, rounds, np.random.default_rng(seed)) for rounds in (0, 1))
    assert {tuple(c) for c in start.tolist()} <= {tuple(r) for r in rows.tolist()}
    nearest = np.array([np.argmin([((r - c) ** 2).sum() for c in start]) for r in rows])
    for k in range(count):  # every start is a row, so that none is empty
        assert_allclose(found[k], rows[nearest == k].mean(axis=0), rtol=1e-4, atol=1e-5)

    def cost(centroids: np.ndarray) -> float:
        return float(((rows[:, None] - centroids) ** 2).sum(axis=2).min(axis=1).sum())

    later = kmeans(rows, count, 5, np.random.default_rng(seed))
    assert cost(later) <= cost(found) + 1e-4 <= cost(start) + 2e-4


def test_kmeans_refills_empty_clusters() -> None:
    rows = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]], np.float32), 10, axis=0)
    found = kmeans(rows, 6, 3, np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert {tuple(c) for c in found.tolist()} == {(0.0, 0.0), (5.0, 5.0)}
    assert len(kmeans(rows, 50, 1, np.random.default_rng(0))) == 20


@pytest.mark.parametrize(("rows", "columns"), [(27, 27), (4, 5), (1, 2)])
def test_quadrants(rows: int, columns: int) -> None:
    found = quadrant_of(rows, columns).reshape(rows, columns)
    for r in range(rows):
        for c in range(columns):
            assert found[r, c] == 2 * (2 * r >= rows) + (2 * c >= columns)


def test_folding() -> None:
    values = np.arange(24.0).reshape(2, 12) ** 2
    mirrored = values.reshape(2, 2, 2, 3)[:, :, ::-1].reshape(2, 12)
    there, back = folded(values), folded(mirrored)
    assert_array_equal(there[:, :6], back[:, :6])
    assert_array_equal(there[:, 6:], -back[:, 6:])
    assert_array_equal(there[0, :3], values[0, :3] + values[0, 3:6])
    assert_array_equal(there[0, 9:], 0.5 * (values[0, 6:9] - values[0, 9:]))


@pytest.mark.parametrize(("dims", "exact"), [(3, 1500), (3, 0), (10, 0), (40, 1500)])
def test_components_equal_a_full_decomposition(dims: int, exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_EXACT", exact)
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(60, 12)) * np.linspace(3, 0.5, 12) + 2).astype(np.float16)
    found = principal_components(rows, 50, dims, seed=0)
    kept = min(dims, 12)
    centred = rows.astype(float) - rows[:50].astype(float).mean(axis=0)
    _, singular, basis = np.linalg.svd(centred[:50], full_matrices=False)
    variances = singular[:kept] ** 2 / 50
    expected = centred @ basis[:kept].T / np.sqrt(variances.mean())
    signs = np.sign((expected * found).sum(axis=0))
    assert found.dtype == np.float32
    assert_allclose(found, expected * signs, rtol=1e-3, atol=1e-3)
    assert_allclose(found[:50].var(axis=0).mean(), 1.0, rtol=1e-3)
    assert np.ptp(found[:50].var(axis=0)) > 0.2  # natural scales, not whitened


def test_same_seed_same_features() -> None:
    images, _ = draw(n=24)
    one, same = (patch_features(images, 20, SMALL) for _ in range(2))
    assert one.shape == (24, 9)
    assert_array_equal(one, same)
    other = patch_features(images, 20, Options(centroids=7, samples=600, rounds=3, dims=9, seed=1))
    assert not np.allclose(np.abs(one), np.abs(other), atol=1e-3)


def test_later_images_are_encoded_but_not_learned_from() -> None:
    images, _ = draw(n=24)
    changed = images.copy()
    changed[20:] = 255 - changed[20:]
    one, two = (patch_features(rows, 20, SMALL) for rows in (images, changed))
    assert_array_equal(one[:20], two[:20])
    assert not np.allclose(one[20:], two[20:])


@pytest.mark.parametrize("exact", [1500, 0])
def test_flat_images_are_finite(exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_EXACT", exact)
    images = np.zeros((12, 3, 32, 32), np.uint8)
    images[6:] = 255
    assert np.isfinite(patch_features(images, 8, SMALL)).all()


@pytest.mark.slow
def test_real_images_are_better_than_chance() -> None:
    """Two hundred real images, a small dictionary: the features tell machines from animals."""
    from llpbench.contracts.errors import DataUnavailableError
    from llpbench.data.store import DataStore
    from llpbench.experiment.metrics import auroc
    from llpbench_datasets.cifar import CIFAR10, FILES
    from llpbench_datasets.cifar.batches import read_batch

    try:
        images, labels = read_batch(DataStore(CIFAR10).path(FILES[0].path))
    except DataUnavailableError as error:
        pytest.skip(str(error))
    X = patch_features(images[:400], 200, Options(centroids=40, samples=5000, rounds=4, dims=20))
    y = np.isin(labels[:400], (0, 1, 8, 9)).astype(int)
    w = np.linalg.solve(X[:200].T @ X[:200] + 20 * np.eye(20), X[:200].T @ (y[:200] - y[:200].mean()))
    assert auroc(y[200:], X[200:] @ w) > 0.75

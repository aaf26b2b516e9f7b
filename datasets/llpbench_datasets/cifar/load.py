"""Load CIFAR-10 as one of three tasks, with one of three kinds of features.

Features are made once and kept (60,000 x 256 numbers), the same for all seeds and all three tasks: the dictionary
of patches, the SimCLR encoder and the principal components are fitted on the 50,000 standard training images,
**without any label**. That includes the images that a seed holds out for validation, whose labels are equally
unknown to the fit; it never includes a test image. Raw images are standardised by the training rows of the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from llpbench import Files, Part, Split, UnknownNameError, UsageError, random_split
from llpbench_datasets import cifar
from llpbench_datasets.cifar.batches import CLASSES, read_batch
from llpbench_datasets.feature_cache import Array, cached_array
from llpbench_datasets.keys import KeyPart, settings_text
from llpbench_datasets.simclr.settings import SimclrSettings

MACHINES = (0, 1, 8, 9)
SHIP = (8,)
VALIDATION = 0.1
Say = Callable[[str], None]


def load_cifar_b(
    files: Files, *, seed: int, features: str = "patches", centroids: int = 1600, encoder: str = "small"
) -> Split:
    """Machines (airplane, automobile, ship, truck) against animals. See ``load``."""
    return load(files, MACHINES, seed=seed, features=features, centroids=centroids, encoder=encoder)


def load_cifar_s(
    files: Files, *, seed: int, features: str = "patches", centroids: int = 1600, encoder: str = "small"
) -> Split:
    """Ships against the rest. See ``load``."""
    return load(files, SHIP, seed=seed, features=features, centroids=centroids, encoder=encoder)


def load_cifar10(
    files: Files, *, seed: int, features: str = "patches", centroids: int = 1600, encoder: str = "small"
) -> Split:
    """All ten classes. See ``load``."""
    return load(files, (), seed=seed, features=features, centroids=centroids, encoder=encoder)


def load(files: Files, positive: Collection[int], *, seed: int, features: str, centroids: int, encoder: str) -> Split:
    """The standard split; a tenth of the training images, drawn by the seed, for validation.

    Args:
        files: the dataset's files.
        positive: classes that become class 1 of a binary task; none keeps the ten classes.
        seed: seed of the validation rows.
        features: ``"patches"``, ``"simclr"`` or ``"raw"``.
        centroids: size of the patch dictionary.
        encoder: network of the SimCLR embedding.
    """
    labels, n_train = labels_of(files)
    if features == "raw":
        X = images_of(files)
    else:
        X = features_of(files, features, centroids=centroids, settings=SimclrSettings.of(encoder))
    y = np.isin(labels, list(positive)).astype(np.int64) if positive else labels.astype(np.int64)
    train, valid = random_split(n_train, (1.0 - VALIDATION, VALIDATION), seed)
    rows = (train, valid, np.arange(n_train, len(y)))
    take = _standardiser(X, train) if features == "raw" else (lambda chosen: X[chosen])
    first, second, third = (Part(take(chosen), y[chosen]) for chosen in rows)
    return Split(first, second, third, classes=2 if positive else CLASSES)


def labels_of(files: Files) -> tuple[Array, int]:
    """Class (0 to 9) of every image, training images first, and how many those are."""

    def read() -> Array:
        batches = [read_batch(files.path(file.path))[1] for file in cifar.FILES]
        marks = [np.full(len(batch), i == len(batches) - 1, np.uint8) for i, batch in enumerate(batches)]
        return np.stack([np.concatenate(batches), np.concatenate(marks)])

    labels, is_test = cached_array(["cifar labels", 1, *_checksums()], read)
    return labels, int((is_test == 0).sum())


def images_of(files: Files) -> Array:
    """All images, uint8 (n, 3, 32, 32), training images first."""

    def read() -> Array:
        return np.concatenate([read_batch(files.path(file.path))[0] for file in cifar.FILES])

    return cached_array(["cifar images", 1, *_checksums()], read)


def features_of(
    files: Files,
    features: str,
    *,
    centroids: int = 1600,
    settings: SimclrSettings | None = None,
    say: Say = lambda _: None,
) -> Array:
    """Features of all images, training images first; from the cache if they were made before."""
    key: list[KeyPart] = ["cifar", features, *_checksums()]
    if features == "patches":
        from llpbench_datasets.patches import VERSION, Options, patch_features

        options = Options(centroids=centroids)
        key += [VERSION, settings_text(options)]
        return cached_array(key, lambda: patch_features(images_of(files), labels_of(files)[1], options, say))
    if features == "simclr":
        from llpbench_datasets.simclr import embed, weights

        settings = settings or SimclrSettings()
        trained = weights.find(settings)
        if trained is None:
            raise UsageError(
                f"no trained weights of the encoder {settings.network!r} are here. To train it, type: "
                f"llpbench data embed cifar10 --encoder simclr --set network={settings.network}"
            )
        contents = trained.read_bytes()
        key += [embed.VERSION, settings.network, contents]
        return cached_array(
            key, lambda: embed.features(images_of(files), labels_of(files)[1], settings.network, contents, say)
        )
    raise UnknownNameError("features", features, cifar.FEATURES)


def _standardiser(images: Array, train: Array) -> Callable[[Array], Array]:
    """Rows as (n, height, width, 3) float32, each colour less its mean and divided by its deviation in training."""
    total, squares = np.zeros(3), np.zeros(3)
    for start in range(0, len(train), 2000):
        block = images[np.sort(train[start : start + 2000])].astype(np.float64)
        total += block.sum(axis=(0, 2, 3))
        squares += (block * block).sum(axis=(0, 2, 3))
    count = len(train) * images.shape[2] * images.shape[3]
    variance = np.maximum(squares / count - (total / count) ** 2, 1e-12)
    mean, scale = (total / count).astype(np.float32), (1.0 / np.sqrt(variance)).astype(np.float32)

    def take(chosen: Array) -> Array:
        out = np.empty((len(chosen), *images.shape[2:], 3), np.float32)
        for start in range(0, len(chosen), 2000):
            block = images[chosen[start : start + 2000]].transpose(0, 2, 3, 1)
            out[start : start + 2000] = (block - mean) * scale
        return out

    return take


def _checksums() -> list[str]:
    return [file.sha256 for file in cifar.FILES]

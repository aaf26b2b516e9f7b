"""SimCLR: views, loss, encoders, training that goes on where it stopped, weights, and the verb that runs it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tiny_cifar import draw, make_tiny

from llpbench import UnknownNameError, UsageError
from llpbench.cli import cli
from llpbench_datasets.keras_backend import arrays_of, keras, ops
from llpbench_datasets.simclr import embed, weights
from llpbench_datasets.simclr.augment import GRAY, Views, colour_maps, crop_boxes, random_views, resampling
from llpbench_datasets.simclr.encoder import draw_weights, encoder, pooled, with_head
from llpbench_datasets.simclr.loss import nt_xent
from llpbench_datasets.simclr.settings import SimclrSettings
from llpbench_datasets.simclr.train import train

pytestmark = pytest.mark.slow

TINY = SimclrSettings(epochs=2, batch=8, view=16)


def brute_force(z: np.ndarray, temperature: float) -> list[float]:
    """NT-Xent, pair by pair."""
    n = len(z) // 2

    def similarity(i: int, j: int) -> float:
        return float(z[i] @ z[j] / (np.linalg.norm(z[i]) * np.linalg.norm(z[j])) / temperature)

    losses = []
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        total = sum(np.exp(similarity(i, k)) for k in range(2 * n) if k != i)
        losses.append(-np.log(np.exp(similarity(i, partner)) / total))
    return losses


@quick
@given(st.sampled_from([1, 4]), st.sampled_from([0.1, 0.2, 0.5, 1.0]), st.integers(0, 2**32 - 1))
def test_nt_xent_equals_a_plain_loop(n: int, temperature: float, seed: int) -> None:
    z = np.random.default_rng(seed).normal(size=(2 * n, 3)).astype(np.float32) + 0.1
    found = np.asarray(nt_xent(ops.convert_to_tensor(z), temperature))
    assert_allclose(found, brute_force(z.astype(float), temperature), rtol=1e-4, atol=1e-4)


# -- views -------------------------------------------------------------------------------------------------------------


def test_view_without_change_is_the_image() -> None:
    images, _ = draw(n=12)
    still = Views(size=32, area=1.0, ratio=1.0, jitter=0.0, gray=0.0)
    views = random_views(images, np.random.default_rng(0), still)
    plain = images.transpose(0, 2, 3, 1) / 255.0
    mirrored = [np.allclose(v, p[:, ::-1], atol=1e-5) for v, p in zip(views, plain, strict=True)]
    same = [np.allclose(v, p, atol=1e-5) for v, p in zip(views, plain, strict=True)]
    assert all(a != b for a, b in zip(mirrored, same, strict=True))
    assert 0 < sum(mirrored) < 12


@quick
@given(st.integers(0, 2**32 - 1), st.sampled_from([8, 24, 32]))
def test_crops_stay_inside_and_interpolate(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    views = Views(size=size)
    top, left, tall, wide = crop_boxes(rng, 20, 32, 32, views)
    for start, length in ((top, tall), (left, wide)):
        assert (start >= 0).all()
        assert (start + length <= 32 + 1e-9).all()
    assert (tall * wide <= 32 * 32 + 1e-6).all()
    assert (tall * wide >= 0.2 * 32 * 32 / views.ratio).all()
    matrices = resampling(top, tall, 32, size)
    assert_allclose(matrices.sum(axis=2), 1.0, rtol=1e-5)
    assert ((matrices > 0).sum(axis=2) <= 2).all()
    centres = np.clip(top[:, None] + tall[:, None] * (np.arange(size) + 0.5) / size - 0.5, 0, 31)
    assert_allclose(matrices @ np.arange(32.0), centres, atol=1e-3)  # a ramp is interpolated exactly


def test_colours() -> None:
    rng = np.random.default_rng(0)
    rgb = rng.random(3)
    none = colour_maps(rng, 50, Views(jitter=0.0, gray=0.0))
    assert_allclose(none[0], np.broadcast_to(np.eye(3), (50, 3, 3)), atol=1e-5)
    assert_array_equal(none[1], 0.0)
    matrix, _ = colour_maps(rng, 50, Views(jitter=1.0, gray=1.0))
    assert_allclose(np.ptp(matrix @ rgb, axis=1), 0.0, atol=1e-5)
    matrix, offset = colour_maps(rng, 500, Views(jitter=1.0, gray=0.0, strength=0.5))
    total = matrix @ np.ones(3) + offset[:, None]  # white in a white image: brightness alone changes it
    assert_allclose(np.ptp(total, axis=1), 0.0, atol=1e-4)
    assert 0.6 <= total.min() < 0.65
    assert 1.35 < total.max() <= 1.4001
    assert_allclose(GRAY.sum(), 1.0)


def test_views_are_bounded_and_follow_their_seed() -> None:
    images, _ = draw(n=30)
    one, same, other = (random_views(images, np.random.default_rng(s), Views(size=24)) for s in (1, 1, 2))
    assert one.shape == (30, 24, 24, 3)
    assert one.dtype == np.float32
    assert one.min() >= 0.0
    assert one.max() <= 1.0
    assert_array_equal(one, same)
    assert not np.allclose(one, other)


# -- networks ----------------------------------------------------------------------------------------------------------


def test_resnet18_is_the_known_network() -> None:
    network = encoder("resnet18")
    assert sum(int(np.prod(v.shape)) for v in network.trainable_variables) == 11_168_832
    shapes = network.compute_output_shape((1, 32, 32, 3))
    assert [tuple(shape)[1:] for shape in shapes] == [(8, 8, 256), (4, 4, 512)]


def test_small_encoder_and_its_start() -> None:
    network = encoder("small")
    assert [tuple(shape)[1:] for shape in network.compute_output_shape((1, 32, 32, 3))] == [(8, 8, 96), (4, 4, 192)]
    model = with_head(network)
    draw_weights(model, 0)
    first = arrays_of(model.weights)
    draw_weights(model, 0)
    for one, two in zip(first, arrays_of(model.weights), strict=True):
        assert_array_equal(one, two)
    kernel = first[5]
    assert kernel.shape == (3, 3, 48, 96)
    assert_allclose(kernel.std(), np.sqrt(2 / (9 * 48)), rtol=0.02)
    with pytest.raises(UnknownNameError, match="Available: resnet18, small"):
        encoder("resnet")


def test_pooling_over_quadrants() -> None:
    x = np.random.default_rng(0).random((2, 4, 4, 3))
    y = np.random.default_rng(1).random((2, 5, 5, 2))
    found = pooled([x, y])
    assert found.shape == (2, 4 * 3 + 4 * 2)
    assert_allclose(found[:, :3], x[:, :2, :2].mean(axis=(1, 2)))
    assert_allclose(found[:, 9:12], x[:, 2:, 2:].mean(axis=(1, 2)))
    assert_allclose(found[:, 12:14], y[:, :3, :3].mean(axis=(1, 2)))


# -- training ----------------------------------------------------------------------------------------------------------


def test_interrupted_training_resumes_to_the_same_weights(tmp_path: Path) -> None:
    """Checkpoints that are damaged or of other settings are ignored."""
    images, _ = draw(n=16)
    heard: list[str] = []
    (tmp_path / "a.npz").write_bytes(b"not a checkpoint")
    whole = train(images, TINY, tmp_path / "a.npz", heard.append)
    assert len(heard) == 2
    heard.clear()

    def interrupt(text: str) -> None:
        heard.append(text)
        raise KeyboardInterrupt

    for settings in (replace(TINY, seed=5), TINY):
        with pytest.raises(KeyboardInterrupt):
            train(images, settings, tmp_path / "b.npz", interrupt)
    assert (tmp_path / "b.npz").is_file()
    resumed = train(images, TINY, tmp_path / "b.npz", heard.append)
    assert [text.split(":")[0] for text in heard] == ["epoch 1/2", "epoch 1/2", "epoch 2/2"]
    for one, two in zip(whole, resumed, strict=True):
        assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_training_lowers_the_loss_and_moves_the_encoder(tmp_path: Path) -> None:
    images, _ = draw(n=32)
    heard: list[str] = []
    settings = SimclrSettings(epochs=6, batch=16, view=16, rate=5e-3)
    trained = train(images, settings, tmp_path / "c.npz", heard.append)
    losses = [float(text.split("loss ")[1].split(",")[0]) for text in heard]
    assert losses[-1] < losses[0] - 0.1
    start = with_head(encoder("small"))
    draw_weights(start, 0)
    assert not np.allclose(trained[0], arrays_of(start.weights)[0], atol=1e-3)


def test_too_few_images(tmp_path: Path) -> None:
    images, _ = draw(n=4)
    with pytest.raises(UsageError, match="batch of 8"):
        train(images, TINY, tmp_path / "c.npz")


# -- weights and features ----------------------------------------------------------------------------------------------


def test_weights_in_a_file() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 3, 2, 4)), rng.normal(size=4) * 1e-6, *(rng.normal(size=2) for _ in range(12))]
    found = weights.unpack(weights.pack([a.astype(np.float32) for a in arrays], TINY))
    assert all(a.dtype == np.float32 for a in found)
    assert_allclose(found[0], arrays[0], rtol=1e-3)
    for one, two in zip(found[1:], arrays[1:], strict=True):
        assert_allclose(one, two, rtol=1e-6)


def test_settings_have_names_of_their_own() -> None:
    keys = {
        SimclrSettings().key,
        SimclrSettings(seed=1).key,
        SimclrSettings(epochs=7).key,
        SimclrSettings(network="resnet18").key,
    }
    assert len(keys) == 4
    assert SimclrSettings().key == SimclrSettings(seed=0).key == SimclrSettings.of("small").key
    assert SimclrSettings.of("resnet18").network == "resnet18"


@pytest.mark.parametrize("path", sorted(weights.SHIPPED.glob("*.npz")), ids=lambda path: path.stem)
def test_shipped_weights_fit_their_encoder(path: Path) -> None:
    with np.load(path, allow_pickle=False) as stored:
        settings = SimclrSettings(**json.loads(stored["settings"].tobytes()))
    assert settings == SimclrSettings.of(settings.network)
    assert path.name == weights._name(settings)
    assert path.stat().st_size < 1.5e6
    network = encoder(settings.network)
    shipped = weights.unpack(path.read_bytes())
    assert [a.shape for a in shipped] == [tuple(v.shape) for v in network.weights]
    assert all(np.isfinite(a).all() for a in shipped)
    draw_weights(network, settings.seed)
    assert not np.allclose(shipped[0], arrays_of(network.weights)[0], atol=1e-2)


def test_weights_of_the_cache_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "SHIPPED", tmp_path / "shipped")
    assert weights.find(TINY) is None
    for folder in (tmp_path / "shipped", tmp_path / "cache" / "made" / "simclr"):
        folder.mkdir(parents=True)
        (folder / weights._name(TINY)).write_bytes(b"")
        assert weights.find(TINY) == folder / weights._name(TINY)
    assert weights.find(SimclrSettings(epochs=3)) is None


def test_features_of_images() -> None:
    images, _ = draw(n=40)
    network = encoder("small")
    draw_weights(network, 1)
    contents = weights.pack(arrays_of(network.weights), TINY)
    one = embed.features(images, 30, "small", contents, lambda _: None)
    assert one.shape == (40, 29)  # thirty images have no more components
    assert one.dtype == np.float32
    assert_allclose(one[:30].var(axis=0).mean(), 1.0, rtol=0.05)
    changed = images.copy()
    changed[30:] = 255 - changed[30:]
    assert_allclose(embed.features(changed, 30, "small", contents, lambda _: None)[:30], one[:30], atol=1e-4)


# -- the verb ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    tiny = make_tiny(tmp_path / "data", monkeypatch)
    monkeypatch.setenv("LLPBENCH_DATA", str(tiny.python))

    def call(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["data", "embed", *arguments])
        return done.exit_code, done.output + ("" if done.exception is None else str(done.exception))

    return call


def test_embed_trains_once_and_reuses_the_weights(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    small = ["--set", "epochs=1", "--set", "batch=16", "--set", "view=16"]
    code, text = run("cifar10", "--encoder", "simclr", *small)
    assert code == 0, text
    assert "epoch 1/1" in text
    (kept,) = (tmp_path / "cache" / "made" / "simclr").iterdir()
    assert str(kept) in text
    code, text = run("cifar-b", "--encoder", "simclr", *small)
    assert (code, "epoch" in text) == (0, False)
    code, text = run("cifar-b", "--encoder", "simclr", "--retrain", *small)
    assert (code, "epoch 1/1" in text) == (0, True)


def test_embed_makes_patches(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, text = run("cifar-s", "--set", "centroids=3")
    assert code == 0, text
    shapes = [np.load(p, mmap_mode="r").shape for p in (tmp_path / "cache" / "made" / "features").glob("*.npy")]
    assert (60, 12) in shapes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adult"], "adult has no features to compute. Datasets that have: cifar-b, cifar-s, cifar10"),
        (["cifar10", "--encoder", "simclar"], "unknown encoder 'simclar'. Did you mean 'simclr'?"),
        (["cifar10", "--set", "centroids"], "--set takes KEY=VALUE, not 'centroids'"),
        (["cifar10", "--set", "centroid=3"], "unknown option 'centroid'. Did you mean 'centroids'?"),
        (["cifar10", "--set", "centroids=many"], "parameter 'centroids' takes an integer from 2 to 100000, not 'many'"),
        (["cifar10", "--encoder", "simclr", "--set", "network=vgg", "--retrain"], "unknown network 'vgg'"),
        (["cifar10", "--encoder", "simclr", "--set", "epochs=0"], "'epochs' takes an integer of at least 1, not 0"),
    ],
)
def test_embed_explains_invalid_arguments(run, arguments: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    code, text = run(*arguments)
    assert code != 0
    assert message in " ".join(text.split())


def test_keras_runs_on_the_chosen_engine() -> None:
    assert keras.backend.backend() == os.environ["KERAS_BACKEND"]

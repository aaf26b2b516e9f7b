"""WideResNet and its augmentation."""

from __future__ import annotations

import numpy as np
import pytest
from backends import each_backend, figures

from llpbench import Bags
from llpbench_methods.nets.backend import keras
from llpbench_methods.nets.network import trainer_for
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.wrn import shifted_products, wide_resnet


@pytest.mark.slow
@each_backend
def test_augmentation_is_a_crop_of_the_padded_image_and_a_flip(backend):
    got = figures(backend)["losses.images"]
    assert got["matches"] == [1] * 40
    assert got["moves"] == [5, 5, 2]


@pytest.mark.slow
@each_backend
def test_wrn_learns_from_bags_of_images(backend):
    assert figures(backend)["losses.images"]["auc"] > 0.9


def test_wide_residual_network_is_the_published_one():
    net = wide_resnet((32, 32, 3), 10)
    assert sum(int(np.prod(v.shape)) for v in net.trainable_variables) == 2_748_890
    assert net.output_shape == (None, 10)
    assert sum(len(v.shape) == 4 and v.shape[0] == 3 for v in net.trainable_variables) == 13
    with pytest.raises(ValueError, match="6 n"):
        wide_resnet((32, 32, 3), 10, depth=17)


@pytest.mark.parametrize(("classes", "shape"), [(2, (None,)), (3, (None, 3))])
def test_kind_of_input_chooses_the_network(classes, shape):
    offsets, counts = np.array([0, 2, 4]), np.ones((2, 1 if classes == 2 else classes))
    size = NetworkSettings().mlp
    table = trainer_for(Bags(np.zeros((4, 3), np.float32), offsets, counts, classes), size, lambda net, batch: 0)
    images = trainer_for(
        Bags(np.zeros((4, 16, 16, 3), np.float32), offsets, counts, classes), size, lambda net, batch: 0
    )
    assert (table.net.name, images.net.name) == ("mlp", "wrn")
    assert table.net.output_shape == images.net.output_shape == shape


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("shape", [(8, 8), (7, 10)])
def test_sum_of_products_is_the_convolution(shape, kernel, stride):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, *shape, 5)).astype(np.float32)
    weights = rng.normal(size=(kernel, kernel, 5, 4)).astype(np.float32)
    direct = keras.ops.conv(images, weights, strides=stride, padding="same")
    np.testing.assert_allclose(shifted_products(images, weights, stride), direct, rtol=1e-4, atol=1e-4)

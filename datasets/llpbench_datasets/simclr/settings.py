"""Settings that a trained encoder depends on."""

from __future__ import annotations

from dataclasses import dataclass

from llpbench import UnknownNameError
from llpbench_datasets.keys import content_key, settings_text

ENCODERS = ("small", "resnet18")
VERSION = 1
"""Raise it when equal settings would give other weights."""


@dataclass(frozen=True)
class SimclrSettings:
    """All that trained weights depend on, beside the images and the backend's rounding.

    Attributes:
        network: name of the encoder.
        epochs: passes over the images.
        batch: images in a step (twice as many views).
        view: side of a training view in pixels. Crops magnify: smaller views than the images bring objects back
            to the size they have in whole images, and cost less.
        rate: peak learning rate of Adam, reached after one epoch and lowered along a half cosine.
        decay: weight decay.
        temperature: temperature of NT-Xent.
        seed: seed of the first weights, the order of images and their views.
    """

    network: str = "small"
    epochs: int = 6
    batch: int = 128
    view: int = 24
    rate: float = 1.5e-3
    decay: float = 1e-4
    temperature: float = 0.2
    seed: int = 0

    @classmethod
    def of(cls, network: str) -> SimclrSettings:
        """The settings that features of cells come from: minutes of a CPU, or hours of a GPU."""
        if network not in ENCODERS:
            raise UnknownNameError("network", network, ENCODERS)
        return cls() if network == "small" else cls(network, epochs=200, batch=512, view=32, rate=1e-3)

    @property
    def key(self) -> str:
        """A name for the settings."""
        return content_key([VERSION, settings_text(self)])[:16]

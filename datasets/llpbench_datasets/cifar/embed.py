"""``llpbench data embed``: make features now instead of in the first cell that asks, and train an encoder for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llpbench import Files, Param, UnknownNameError
from llpbench_datasets.cifar import PARAMS
from llpbench_datasets.cifar.load import features_of, images_of, labels_of
from llpbench_datasets.simclr.settings import ENCODERS, SimclrSettings

KINDS = ("patches", "simclr")


def embed(
    files: Files, *, encoder: str, options: Mapping[str, str], retrain: bool, say: Callable[[str], None]
) -> list[Path]:
    """Make the features of all images by the named encoder.

    Args:
        files: the dataset's files.
        encoder: ``"patches"`` or ``"simclr"``; the first when empty.
        options: options of the encoder, as typed.
        retrain: train even where weights for these settings are here.
        say: is told how far the work is.

    Returns:
        the weights that were trained, if any.
    """
    encoder = encoder or KINDS[0]
    if encoder not in KINDS:
        raise UnknownNameError("encoder", encoder, KINDS)
    if encoder == "patches":
        chosen = _parsed(options, [param for param in PARAMS if param.name == "centroids"])
        features_of(files, "patches", centroids=chosen["centroids"], say=say)
        return []
    from llpbench_datasets.simclr import weights

    settings = _settings(options)
    made = []
    if retrain or weights.find(settings) is None:
        say("training: " + ", ".join(f"{name} {value}" for name, value in asdict(settings).items()))
        made.append(weights.make(images_of(files)[: labels_of(files)[1]], settings, say))
    features_of(files, "simclr", settings=settings, say=say)
    return made


def _settings(options: Mapping[str, str]) -> SimclrSettings:
    """The settings of the chosen network, with what was typed in their place."""
    usual = SimclrSettings.of(options.get("network", "small"))
    least = {"epochs": 1, "batch": 2, "view": 8, "rate": 0.0, "decay": 0.0, "temperature": 0.01, "seed": 0}
    numbers = [Param(name, getattr(usual, name), low=low) for name, low in least.items()]
    return SimclrSettings(**_parsed(options, [Param("network", usual.network, choices=ENCODERS), *numbers]))


def _parsed(options: Mapping[str, str], params: Sequence[Param]) -> dict[str, Any]:
    """Options in the types of their parameters, or an error that names the wrong one."""
    for name in options:
        if name not in {param.name for param in params}:
            raise UnknownNameError("option", name, (param.name for param in params))
    return {p.name: p.parse(options[p.name]) if p.name in options else p.default for p in params}

"""MixBag: new bags mixed of two, with a loss that leaves alone what sampling explains."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=3e-4)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

MIXBAG = network_spec(
    "mixbag",
    "llpbench_methods.mixbag.method:MixBag",
    "bag cross-entropy on mixtures of two bags, with a tolerance for sampling error",
    params=(
        Param("share", 0.5, low=0.0, high=1.0, doc="share of bags that are mixed in each epoch"),
        Param(
            "tolerance",
            2.576,
            low=0.0,
            high=10.0,
            doc="standard errors by which a mixed bag's mean prediction may differ from its target without loss "
            "(2.576: 99 per cent)",
        ),
    ),
    settings=NETWORK,
    family="bag loss",
    citation="Asanomi, Matsuo, Suehiro, Bise 2023, MixBag: bag-level data augmentation for learning from label "
    "proportions",
    paper="https://arxiv.org/abs/2308.08822",
    code="https://github.com/asanomitakanori/Mixbag",
    presets=(("authors", "llpbench_methods.mixbag:authors"),),
)


def authors(dataset: str, bag_size: int) -> dict[str, bool | int | float | str | None]:  # noqa: ARG001
    """``--preset authors``: the published code's values; its batches hold 32 bags."""
    return {"share": 0.5, "tolerance": 2.576, "lr": 3e-4, "batch_rows": min(max(32 * bag_size, 2), 8192)}


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``mixbag``."""
    return [MIXBAG]

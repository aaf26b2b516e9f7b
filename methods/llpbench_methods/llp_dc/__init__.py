"""LLP-DC: the bag cross-entropy, and hard labels that fit the counts, made by the network itself."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=1e-3)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

LLP_DC = network_spec(
    "llp-dc",
    "llpbench_methods.llp_dc.method:LLPDC",
    "bag cross-entropy, later combined with the network's own hard labels that match the counts",
    params=(
        Param(
            "weight",
            0.67,
            low=0.0,
            high=100.0,
            doc="weight of the cross-entropy of hard labels relative to that of bags (publication: 0.5)",
        ),
        Param(
            "threshold",
            0.0,
            low=0.0,
            high=1.0,
            doc="use a hard label only if the network gives it at least this probability (publication: 0.6)",
        ),
        Param(
            "warmup",
            0.5,
            low=0.0,
            high=0.9,
            doc="maximum share of the epochs that use the bag loss alone; it ends earlier when held-out bags stop "
            "improving. An addition to the publication, as is the temperature of the second stage",
        ),
    ),
    settings=NETWORK,
    family="pseudo-labels",
    citation="Ma, Li, Li, Guan 2026, Learning from label proportions with dual-proportion constraints",
    paper="https://arxiv.org/abs/2603.21153",
    code="https://github.com/TianhaoMa5/CVPR2026_Findings_LLP_DC",
    presets=(("authors", "llpbench_methods.llp_dc:authors"),),
)


def authors(dataset: str, bag_size: int) -> dict[str, bool | int | float | str | None]:  # noqa: ARG001
    """``--preset authors``: the published code's values (found on images, with a weak and a strong view of each).

    The temperature stays; it does not change the order of scores.
    """
    return {"weight": 0.5, "threshold": 0.6, "warmup": 0.0}


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-dc``."""
    return [LLP_DC]

"""LLP-MM: factorial moments, the composition of every few rows of a bag."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import network_spec

LLP_MM = network_spec(
    "llp-mm",
    "llpbench_methods.llp_mm.method:LLPMM",
    "cross-entropy of the label composition of 1, 2, … s rows of a bag (factorial moments of the count)",
    params=(
        Param(
            "orders",
            "auto",
            low=1,
            high=10,
            kind="int",
            choices=("auto",),
            doc="maximum number of rows taken jointly (at most the bag size); order 1 is dllp, all rows is count-nll; "
            "auto is 8 for two classes and 3 for more (orders above 3 use each class against the rest)",
        ),
        Param(
            "smoothing", 1e-4, low=0.0, high=0.5, doc="share of the uniform distribution mixed into the predicted one"
        ),
    ),
    family="bag loss",
    citation="Anonymous authors 2026, Learning from label proportions via moment matching "
    "(LLP-MM; known from its code)",
    code="https://github.com/TianhaoMa5/LLP-MM",
    presets=(("authors", "llpbench_methods.llp_mm:authors"),),
)


def authors(dataset: str, bag_size: int) -> dict[str, bool | int | float | str | None]:  # noqa: ARG001
    """``--preset authors``: eight orders for two classes, three for more; a share of 1e-4 of the uniform law."""
    return {"orders": "auto", "smoothing": 1e-4}


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-mm``."""
    return [LLP_MM]

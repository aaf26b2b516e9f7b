"""Generated data with a known signal: for tests, for scale, and for a machine without any file."""

from __future__ import annotations

from llpbench import DatasetSpec, Param, hookimpl

SYNTHETIC = DatasetSpec(
    name="synthetic",
    factory="llpbench_datasets.synthetic.load:load",
    summary="generated: one Gaussian cloud for each class, all pairs of centres equally far apart",
    params=(
        Param("rows", 10_000, low=10, high=1e9, log=True, doc="rows in all"),
        Param("dim", 20, low=1, high=1e6, log=True, doc="features; at least one less than classes"),
        Param("classes", 2, low=2, high=1000, doc="classes; two make a binary task"),
        Param(
            "separation",
            2.0,
            low=0.0,
            high=100.0,
            doc="distance of any two class centres in standard deviations; 0 leaves nothing to learn",
        ),
        Param(
            "positive_rate",
            None,
            low=0.001,
            high=0.999,
            kind="float",
            doc="share of class 1, the others sharing the rest; equal shares when not given",
        ),
    ),
    split="random 80 / 10 / 10 %",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """Bring the generated dataset."""
    return [SYNTHETIC]

"""A dataset: what ``list`` needs is here, the loader is imported only where a cell runs."""

from llpbench import DatasetSpec, Param, hookimpl


@hookimpl
def llpbench_datasets():
    """Bring the dataset ``two-clouds``."""
    return [
        DatasetSpec(
            name="two-clouds",
            factory="llp_good_dataset.load:load",
            summary="two Gaussian clouds and a category that leans towards class 1",
            params=(Param("rows", 600, low=30, high=1e6, doc="rows in all"),),
            split="random 80 / 10 / 10 %",
        )
    ]

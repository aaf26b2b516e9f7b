"""Published bags and results on Adult: the 52 bag sets of "The Complex Landscape of LLP Evaluation".

The bags, the seeds of the splits and the means of the published results lie in ``published/`` (CC0); the rows are
Adult's.
"""

from __future__ import annotations

from llpbench import DatasetSpec, Param, Reference, hookimpl
from llpbench_datasets.adult import ADULT
from llpbench_datasets.landscape.names import NAMES, USUAL
from llpbench_datasets.options import encoding_param

LANDSCAPE = DatasetSpec(
    name="landscape",
    factory="llpbench_datasets.landscape.load:load",
    summary="Adult in 52 published bag sets of 5 to 30 large bags that depend on labels, features, both or neither",
    params=(
        Param("set", USUAL, choices=NAMES, doc="name of the bag set, as published"),
        Param(
            "validation",
            0.2,
            low=0.01,
            high=0.5,
            doc="share of the training rows of each bag that is held out for validation",
        ),
        encoding_param("14 columns"),
    ),
    rows=ADULT.rows,
    columns=ADULT.columns,
    balance=ADULT.balance,
    split="seed e is published run e (0 to 29): 75 / 25 % inside bags, a fifth of the training rows of each bag "
    "for validation",
    files=ADULT.files,
    licence="CC0 1.0 (bags and results), CC BY 4.0 (Adult)",
    homepage=ADULT.homepage,
    citation="The Complex Landscape of Learning from Label Proportions Evaluation: bag sets, split seeds and results",
    own_bags="set",
    source=ADULT.source,
    published_runs=True,
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``landscape``."""
    return [LANDSCAPE]


@hookimpl
def llpbench_references() -> list[Reference]:
    """The published F1 and accuracy of eight methods on every set, under each of three selections."""
    from llpbench_datasets.landscape.results import references

    return references()

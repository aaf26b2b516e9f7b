"""What bounds reach with as many labelled rows as there are training bags, beside a bag card."""

from __future__ import annotations

from contextlib import suppress

from threadpoolctl import threadpool_limits

from llpbench.contracts.cell import Cell
from llpbench.contracts.errors import Skip
from llpbench.contracts.protocols import QuietMonitor
from llpbench.contracts.specs import LABELS
from llpbench.experiment.fit_cell import method_seed
from llpbench.experiment.forming import Formed
from llpbench.experiment.metrics import auroc
from llpbench.plugins.registry import Registry, unmet_needs


def as_many_labels(formed: Formed, cell: Cell, registry: Registry) -> dict[str, float]:
    """The test AUROC of every bound with a number of labelled rows, where this is the number of training bags.

    Bounds are fitted in this process. Those that are not installed or do not support the data are left out.
    """
    task = "binary" if formed.bags.classes == 2 else "multiclass"
    kind = "images" if formed.bags.X.ndim > 2 else "features"
    found = {}
    for entry in registry.methods:
        spec = entry.spec
        if not spec.counts_labels or task not in spec.tasks or kind not in spec.inputs or unmet_needs(entry):
            continue
        bound = spec.load()(**spec.resolve({LABELS: len(formed.bags)}))
        seed = method_seed(cell, spec.seed_name or spec.name)
        with threadpool_limits(1), suppress(Skip):  # one thread as in a cell: on a busy machine more are far slower
            bound.fit(formed.bags, monitor=QuietMonitor(), seed=seed, labels=formed.train_labels)
            found[spec.name] = auroc(formed.split.test.y, bound.predict_scores(formed.split.test.X))
    return found

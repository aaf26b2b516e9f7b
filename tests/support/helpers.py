"""Small things that several test files need."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from typing import Any, TypeVar

import numpy as np
from hypothesis import settings

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, IntArray, Part, Split
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.bags import gather
from llpbench.experiment.forming import form_bags
from llpbench.experiment.plan import Planned
from llpbench.experiment.schemes import random_bags
from llpbench.plugins.registry import Registry

PATIENCE = 1800.0
"""Seconds that end only what would never end: a busy machine is no failure."""

quick = settings(deadline=None, max_examples=50)
"""For properties: a busy machine is no failure."""


S = TypeVar("S", bound=BaseServer)


class QuietHandler(BaseHTTPRequestHandler):
    """Answers requests without a line in the log for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def serving(server: S) -> Iterator[S]:
    """A server that answers in a thread of its own until the end of the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def make_cell(**changes: Any) -> Cell:
    """A cell that nothing else is like."""
    facts: dict[str, Any] = {"dataset": "toy", "method": "guess", "bag_size": 8, "seed": 0}
    return Cell(**{**facts, **changes})


def make_plan(cell: Cell | None = None, *, method_name: str = "", dataset: str = "", oracle: bool = False) -> Planned:
    """A planned cell under the names it suggests."""
    cell = cell or make_cell()
    return Planned(
        cell=cell, method_name=method_name or cell.method, dataset_name=dataset or cell.dataset, oracle=oracle
    )


def make_result(cell: Cell | None = None, value: float | None = 0.5, **facts: Any) -> CellResult:
    """A finished cell whose AUROC is ``value`` under ``bags`` and a tenth more under ``instances``."""
    cell = cell or make_cell()
    higher = None if value is None else value + 0.1
    selected = {
        "bags": Selected(report=3, value=0.4, metrics={"auroc": value}),
        "instances": Selected(report=5, value=0.7, metrics={"auroc": higher}),
    }
    known: dict[str, Any] = {"id": cell.id, "cell": cell, "status": "ok", "method_name": cell.method}
    if facts.get("status", "ok") == "ok":
        known["selected"] = selected
    return CellResult(**{**known, **facts})


def make_part(n: int, classes: int = 2, seed: int = 0, dim: int = 3) -> Part:
    """Rows with labels; column 0 is the row's own number, so that rows can be told apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim)).astype(np.float32)
    X[:, 0] = np.arange(n)
    return Part(X, rng.integers(0, classes, n))


def bags_of(part: Part, bag_size: int, classes: int = 2, seed: int = 0) -> tuple[Bags, IntArray]:
    """Random bags of a part, and the labels in the bags' row order."""
    rng = np.random.default_rng(seed)
    return gather(part, random_bags(part.X, bag_size, columns=(), rng=rng), classes=classes, columns=(), rng=rng)


def bags_and_labels(job: Job, split: Split, registry: Registry) -> tuple[Bags, IntArray, IntArray]:
    """The training bags of a cell with its validation bags inside, and the labels of both in bag order."""
    formed = form_bags(job, split, registry)
    return formed.bags, formed.train_labels, formed.valid_labels

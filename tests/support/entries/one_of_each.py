"""One of each in a single file: a metric, a selection rule, an executor and an engine of belief propagation."""

import os
from pathlib import Path

import numpy as np

from llpbench import ExecutorSpec, MetricSpec, Outcome, Param, RuleSpec, hookimpl
from llpbench_methods.inference import EngineSpec, add_engine
from llpbench_methods.inference.engines.count import start

add_engine(EngineSpec("my-engine", "one_of_each:start_engine", "counts, by a plugin", counting=True, multiclass=True))


@hookimpl
def llpbench_metrics():
    return [
        MetricSpec(
            name="my_brier",
            factory="one_of_each:brier",
            title="Brier",
            summary="mean squared error of probabilities",
            needs="probabilities",
            higher_is_better=False,
            percent=False,
            tasks=("binary",),
        )
    ]


@hookimpl
def llpbench_selection_rules():
    worst = "largest error of a held-back bag's proportion"
    return [
        RuleSpec(
            name="worst-bag", factory="one_of_each:worst_bag", summary=worst, title="error", higher_is_better=False
        )
    ]


@hookimpl
def llpbench_executors():
    marker = Param("marker", "", doc="a file that gets a line for each cell")
    return [ExecutorSpec(name="here", factory="one_of_each:Here", params=(marker,))]


def start_engine(model, *, mode):
    return start(model, mode=mode)


def brier(labels, probabilities):
    return float(np.mean((probabilities - labels) ** 2))


def worst_bag(held):
    means = np.add.reduceat(held.probabilities, held.bags.offsets[:-1]) / held.bags.sizes
    return float(np.abs(means - held.bags.proportions[:, 0]).max())


class Here:
    """Cells one after the other, each in a process of its own."""

    def __init__(self, settings, marker=""):
        self.marker, self.done = marker, []

    @property
    def slots(self):
        return 0 if self.done else 1

    def submit(self, job):
        import subprocess
        import sys

        import msgspec

        with Path(self.marker).open("a") as file:
            file.write(f"{job.cell.method} {job.cell.params.get('engine', '')}\n")
        environment = {**os.environ, "KERAS_BACKEND": job.cell.backend or "jax"}
        worker = [sys.executable, "-m", "llpbench.execution.worker"]
        subprocess.run(worker, input=msgspec.json.encode(job), env=environment, check=True)
        self.done.append(Outcome(job, "finished"))

    def wait(self, seconds):
        done, self.done = self.done, []
        return done

    def close(self):
        pass

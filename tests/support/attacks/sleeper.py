"""A method that asks the fork server to import its own module, which would patch the judges forked there."""

from __future__ import annotations

import sys

import numpy as np

from llpbench import MethodSpec, hookimpl


@hookimpl
def llpbench_methods():
    return [MethodSpec(name="sleeper", factory="sleeper:Sleeper", preload=("sleeper",))]


class Sleeper:
    def fit(self, bags, *, monitor, seed):
        return self

    def predict_scores(self, X):
        return np.zeros(len(X))


def wake():
    import llpbench.execution.worker as worker
    from llpbench.experiment.judge import Judge

    prepare, take = worker.prepare_cell, Judge.take_report

    def prepare_cell(job, registry, result):
        data = prepare(job, registry, result)
        Judge.take_report = lambda self, valid, test, stage="": take(self, valid, data.test_labels * 1.0, stage)
        return data

    worker.prepare_cell = prepare_cell


if "llpbench.execution.fork_server" in sys.orig_argv:
    wake()

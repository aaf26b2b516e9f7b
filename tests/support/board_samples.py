"""Results that could have been published, for tests of leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from helpers import make_cell, make_plan, make_result

from llpbench.board.checks import derived_seeds
from llpbench.board.content.facts import EVERY_RESULT, DatasetAbout, Facts, MachineFacts, MethodAbout, MetricFacts
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import Line, compact, encode_line
from llpbench.contracts.cell import Cell
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.contracts.specs import NO_BAG, Reference
from llpbench.experiment.judge import finite
from llpbench.experiment.scoring import Answers, digest_of_bags, digest_of_labels
from llpbench.plugins.registry import Registry, load_registry
from llpbench.results.store import Store

MACHINE = "0123456789"
MACHINE_FACTS = {
    "cpu": "Test CPU",
    "cores": 4,
    "memory_gb": 16.0,
    "system": "Linux 6",
    "architecture": "x86_64",
    "python": "3.12.0",
}
VERSIONS = {"llpbench": "0.1.0", "python": "3.12.0", "numpy": "2.0.0", "scipy": "1.14.0", "scikit-learn": "1.5.0"}
CODE = dict.fromkeys(("harness", "method", "dataset"), "release llpbench 0.1.0 sha256:" + "0" * 32)
CURVE = [{"bags": 0.5 - 0.01 * min(i, 1), "instances": 0.6 + 0.01 * i} for i in range(6)]
CURVE[3]["bags"], CURVE[5]["instances"] = 0.4, 0.7  # what make_result says was chosen


def published(value: float | None = 0.8, cell: Cell | None = None, **facts: Any) -> CellResult:
    """A result with everything that is asked of a published one."""
    cell = cell or make_cell()
    known: dict[str, Any] = {
        "dataset_name": cell.dataset,
        "machine": MACHINE,
        "started": "2025-03-04T05:06:07Z",
        "versions": dict(VERSIONS),
        "rows": {"train": 100, "valid": 20, "test": 30},
        "bags": {"train": -(-100 // cell.bag_size), "valid": -(-20 // cell.bag_size)},
        "seeds": {"split": 1 + cell.seed, "bags": 2, "method": 3},
        "limits": {"timeout": 3600.0, "memory_mb": 8192.0, "threads": 1.0},
        "fit_seconds": 1.5,
        "phases": {"fit": 1.25, "other": 0.25},
        "wall_seconds": facts.get("fit_seconds", 1.5) + 0.5,
        "peak_memory_mb": 100.0,
    }
    return make_result(cell, value, **{**known, **facts})


def grid(values: dict[str, list[float]], bag_size: int = 8, **changes: Any) -> list[CellResult]:
    """Results of methods over seeds."""
    return [
        published(value, make_cell(method=method, seed=seed, bag_size=bag_size, **changes))
        for method, row in values.items()
        for seed, value in enumerate(row)
    ]


def content_of(results: list[CellResult], references: list[Reference] | None = None) -> Content:
    """A leaderboard of these results."""
    content = Content(machines={MACHINE: msgspec.convert(MACHINE_FACTS, MachineFacts)})
    for result in results:
        content.lines[result.id] = as_line(result)
    methods = {r.cell.method: MethodAbout(summary=f"the method {r.cell.method}", oracle=r.oracle) for r in results}
    content.facts = Facts(
        methods=methods,
        datasets={r.cell.dataset: DatasetAbout(summary="a toy") for r in results},
        metrics={"auroc": MetricFacts()},
        references=references or [],
    )
    return content


def as_line(result: CellResult) -> Line:
    """A result as it lies in a leaderboard."""
    small = compact(result)
    return msgspec.json.decode(encode_line(small, "0" * 32), type=Line)


def real_cell(method: str = "mean-ridge", seed: int = 0, **changes: Any) -> Cell:
    """A cell of a method and a dataset that are installed, every setting stated."""
    registry = shared()
    facts: dict[str, Any] = {
        "dataset": "synthetic",
        "dataset_options": registry.datasets["synthetic"].resolve({}),
        "method": method,
        "params": registry.methods[method].resolve({}),
        "bag_size": 8,
        "seed": seed,
    }
    return Cell(**{**facts, **changes})


def write_run(
    folder: Path, results: list[CellResult], command: str = "llpbench run", predictions: bool = True
) -> Store:
    """A results folder with these results; the metrics of each are made to be those of its predictions."""
    store = Store(folder)
    store.plan([make_plan(r.cell, oracle=r.oracle) for r in results], command, "0.1.0")
    store.write_machine(MACHINE, dict(MACHINE_FACTS))
    for result in results:
        if predictions and result.status == "ok":
            _predict(store, result)
        store.write(result)
    return store


def traced(cell: Cell, value: float = 0.8, **facts: Any) -> CellResult:
    """A result of an installed method as a run of the current protocol writes it."""
    known: dict[str, Any] = {
        "seeds": derived_seeds(cell),
        "protocol": PROTOCOL,
        "rules": {rule: rule_version(rule) for rule in EVERY_RESULT},
        "code": dict(CODE),
        "digests": {"test_labels": "", "features": "0" * 64},
        "rate": [0.5],
        "history": [dict(report) for report in CURVE],
    }
    result = published(value, cell, **{**known, **facts})
    for chosen in result.selected.values():
        chosen.metrics = {"bag_error": 0.1, **chosen.metrics}
    return result


def rule_version(rule: str) -> int:
    """The version of a rule as installed."""
    entry = shared().rules.entries.get(rule)
    return int(getattr(entry.spec, "version", 1)) if entry is not None else 1


def _predict(store: Store, result: CellResult) -> None:
    rng = np.random.default_rng(result.cell.seed)
    labels = rng.integers(0, 2, result.rows.get("test", 30)).astype(np.int16)
    rng = np.random.default_rng(int(result.id[:8], 16))
    arrays = {rule: _shares(labels + rng.normal(size=len(labels))) for rule in result.selected}
    set_metrics(result, labels, arrays)
    np.savez_compressed(store.predictions_path(result.id), labels=labels, **arrays)


def _shares(scores: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-scores))).astype(np.float32)


def set_metrics(result: CellResult, labels: np.ndarray, scores: dict[str, np.ndarray]) -> None:
    """State what predictions give: every metric, and the digest of the labels."""
    entry = shared().methods.entries.get(result.cell.method)
    kind = "auto" if entry is None else entry.spec.scores
    bag_of = scores.get("bag_of")
    answers = Answers(labels.astype(int), np.array(result.rate), bag_of)
    if bag_of is not None:
        result.digests = {**result.digests, "test_bags": digest_of_bags(bag_of)}
        result.bags = {**result.bags, "test": len(np.unique(bag_of[bag_of != NO_BAG]))}
    for rule, chosen in result.selected.items():
        values = {spec.name: finite(answers.score(spec, scores[rule], kind)) for spec in shared().metrics.specs}
        chosen.metrics = {**chosen.metrics, **values}
    if "test_labels" in result.digests:
        result.digests = {**result.digests, "test_labels": digest_of_labels(labels)}


_REGISTRY: list[Registry] = []


def shared() -> Registry:
    """The registry, loaded once."""
    if not _REGISTRY:
        _REGISTRY.append(load_registry())
    return _REGISTRY[0]

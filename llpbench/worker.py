"""One cell, from data to result file, in a process of its own: ``python -m llpbench.worker < job.json``.

Labels stay on this side: the method is given bags and a monitor, and hands back scores.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.bags import make_bags, read_only
from llpbench.cells import CellResult, Job, Selected
from llpbench.data import Bags, FloatArray, IntArray, Part, Split
from llpbench.errors import DatasetError, MethodError, Skip
from llpbench.files import write_atomically
from llpbench.metrics import to_probabilities
from llpbench.monitor import Best, HarnessMonitor, MethodView, Pruned, finite
from llpbench.plugins import describe
from llpbench.privacy import add_count_noise, count_noise_sd, count_sensitivity, epsilon_of
from llpbench.protocols import Method
from llpbench.provenance import recorded_versions
from llpbench.registry import Entry, Registry, load_registry, unmet_needs
from llpbench.seeds import derive_seed
from llpbench.selection import make_rules
from llpbench.specs import DatasetSpec, MethodSpec
from llpbench.store import Store
from llpbench.sysinfo import machine, machine_id


def run_job(job: Job) -> CellResult:
    """Run a cell and write its result; whatever the method does, there is a result that says what happened."""
    store = Store(Path(job.out))
    result = blank_result(job, "failed")
    started = time.perf_counter()
    try:
        _run(job, result, store)
    except Skip as skip:
        result.status, result.reason = "skipped", str(skip) or "the method declined this setting"
    except MemoryError:
        result.status, result.reason = "memory", "an allocation failed inside the cell (MemoryError)"
    except Exception as error:
        result.status, result.reason = "failed", describe(error)
        result.traceback = traceback.format_exc(limit=-12)
    result.wall_seconds = time.perf_counter() - started
    result.peak_memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.write(result)
    store.write_machine(machine_id(), machine())
    return result


@lru_cache(maxsize=4)
def shared_registry(plugins: tuple[str, ...], override: tuple[str, ...]) -> Registry:
    """The registry of a run, loaded once for each process (the fork server loads it for all its children)."""
    return load_registry([Path(p) for p in plugins], override)


def blank_result(job: Job, status: Any, reason: str = "") -> CellResult:
    """A result that holds what is known before anything ran."""
    return CellResult(
        id=job.cell.id,
        cell=job.cell,
        status=status,
        reason=reason,
        label=job.label,
        dataset_label=job.dataset_label,
        limits={"timeout": job.timeout, "memory_mb": job.memory_mb, "threads": job.threads},
        tuning_seconds=job.tuning_seconds,
        machine=machine_id(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _run(job: Job, result: CellResult, store: Store) -> None:
    cell = job.cell
    registry = shared_registry(job.plugins, job.override)
    method_entry, dataset_entry = registry.methods.entry(cell.method), registry.datasets.entry(cell.dataset)
    method_spec, dataset_spec = method_entry.spec, dataset_entry.spec
    result.oracle = method_spec.oracle
    result.versions = recorded_versions(method_entry, dataset_entry, cell.backend)
    _require(method_entry, cell.backend)
    _require(dataset_entry)

    began = time.perf_counter()
    split = load_split(job, dataset_spec)
    train, train_labels, valid_labels = bag_split(job, split, registry)
    result.data_seconds = time.perf_counter() - began
    assert train.validation is not None
    result.rows = {"train": len(split.train), "valid": len(split.valid), "test": len(split.test)}
    result.count_sd = train.count_sd
    result.bags = {"train": len(train), "valid": len(train.validation)}
    _decline_mismatch(method_spec, dataset_spec, split)

    seed = derive_seed("method", seed=cell.seed, dataset=cell.dataset, bag_size=cell.bag_size, method=cell.method)
    result.seeds = {"split": split_seed(job), "bags": bags_seed(job), "method": seed}
    factory = method_spec.load()
    monitor = HarnessMonitor(
        rules=make_rules(train.validation, valid_labels),
        valid=train.validation,
        test_rows=None if cell.tuning else split.test.X,
        train_labels=train_labels,
        classes=split.classes,
        score_kind=method_spec.scores,
        patience=int(cell.params.get("patience") or 20),
        prune=job.prune,
    )
    oracle = {"labels": train_labels} if method_spec.oracle else {}
    status, reason = "ok", ""
    try:
        fit_method(factory(**cell.params), train, monitor, seed, **oracle)
    except Pruned as pruned:
        status, reason = "pruned", str(pruned)
        monitor.note("pruned_by", pruned.rule)
    _fill(result, monitor, split, registry)
    if job.predictions and not cell.tuning:
        _write_predictions(store.predictions_path(cell.id), monitor, split.test.y)
    result.status, result.reason = status, reason  # type: ignore[assignment]


def fit_method(method: Method, bags: Bags, monitor: HarnessMonitor, seed: int, **oracle: IntArray) -> None:
    """Fit, and score the fitted model once if the method never reported."""
    fitted = method.fit(bags, monitor=MethodView(monitor), seed=seed, **oracle)
    if fitted is None:
        raise MethodError("fit returned None; it must return the fitted method (return self)")
    if not monitor.history:
        monitor.report(fitted.predict_scores)


def load_split(job: Job, spec: DatasetSpec) -> Split:
    """Load a dataset, hold it to its contract, and add feature noise (to all parts) if the cell asks for it.

    The test part of a tuning cell is dropped as it arrives: nothing after this line can read it.
    """
    from llpbench.download import DataStore

    files = DataStore(spec, data_dir=Path(job.data) if job.data else None, offline=job.offline)
    split: Split = spec.load()(files, seed=split_seed(job), **job.cell.dataset_options)
    if job.cell.tuning and isinstance(split, Split):
        split = replace(split, test=Part(split.train.X[:0], split.train.y[:0]))
    check_split(split, spec, ("train", "valid") if job.cell.tuning else ("train", "valid", "test"))
    if job.cell.feature_noise:
        rng = np.random.default_rng(derive_seed("feature-noise", seed=job.cell.seed, dataset=job.cell.dataset))
        noisy = [_noisy(part, job.cell.feature_noise, rng) for part in (split.train, split.valid, split.test)]
        split = replace(split, train=noisy[0], valid=noisy[1], test=noisy[2])
    return split


def split_seed(job: Job) -> int:
    """Seed of the split: the same for every method, bag size, noise and option of a dataset."""
    return derive_seed("split", seed=job.cell.seed, dataset=job.cell.dataset)


def bags_seed(job: Job) -> int:
    """Seed of the bags: the same for every method and noise level."""
    cell = job.cell
    return derive_seed("bags", seed=cell.seed, dataset=cell.dataset, bag_size=cell.bag_size, scheme=cell.scheme)


def bag_split(job: Job, split: Split, registry: Registry) -> tuple[Bags, IntArray, IntArray]:
    """Training bags with validation bags inside, and the labels of both in bag order (for the harness alone)."""
    cell = job.cell
    entry = registry.schemes[cell.scheme]
    if cell.bag_size > len(split.train) and not entry.own:
        raise DatasetError(
            f"bag size {cell.bag_size} is larger than the {len(split.train):,} training rows of {cell.dataset}"
        )
    scheme = entry.load()
    rng = np.random.default_rng(bags_seed(job))

    def assign(X: FloatArray, size: int, **context: Any) -> IntArray:
        return np.asarray(scheme(X, size, **context, **cell.scheme_options))

    shape: dict[str, Any] = {"classes": split.classes, "columns": split.columns, "rng": rng, "own": entry.own}
    train, train_labels = make_bags(split.train, assign, cell.bag_size, **shape)
    valid, valid_labels = make_bags(split.valid, assign, cell.bag_size, **shape)
    sd = count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, count_sensitivity(split.classes))
    noise_rng = np.random.default_rng(derive_seed("noise", bags=bags_seed(job), noise=cell.noise, delta=cell.delta))
    valid = replace(valid, counts=read_only(add_count_noise(valid.counts, sd, noise_rng)), count_sd=sd)
    counts = read_only(add_count_noise(train.counts, sd, noise_rng))
    return replace(train, counts=counts, count_sd=sd, validation=valid), train_labels, valid_labels


def check_split(split: Split, spec: DatasetSpec, parts: tuple[str, ...] = ("train", "valid", "test")) -> None:
    """Refuse a dataset that breaks its contract, naming the part and what is wrong."""
    if not isinstance(split, Split):
        raise DatasetError(f"{spec.name}: load must return a Split, not {type(split).__name__}")
    for name in parts:
        part: Part = getattr(split, name)
        where = f"{spec.name}: the {name} part"
        if len(part.X) != len(part.y) or len(part) == 0:
            raise DatasetError(f"{where} has {len(part.X)} rows and {len(part.y)} labels")
        if part.X.shape[1:] != split.train.X.shape[1:]:
            raise DatasetError(f"{where} has rows of shape {part.X.shape[1:]}, training {split.train.X.shape[1:]}")
        if not np.issubdtype(part.y.dtype, np.integer) or part.y.min() < 0 or part.y.max() >= split.classes:
            raise DatasetError(f"{where} has labels that are not integers from 0 to {split.classes - 1}")
        if np.issubdtype(part.X.dtype, np.floating):
            bad = int((~np.isfinite(part.X)).sum())
            if bad:
                raise DatasetError(f"{where} has {bad:,} values that are NaN or infinite")
        read_only(part.X)
    width = sum(c.width for c in split.columns)
    if split.columns and width != split.train.X.shape[1]:
        raise DatasetError(
            f"{spec.name}: its columns describe {width} features, but rows have {split.train.X.shape[1]}"
        )


def _require(entry: Entry[Any], backend: str = "") -> None:
    needs = unmet_needs(entry, backend)
    if needs:
        raise Skip(needs)


def _decline_mismatch(method: MethodSpec, dataset: DatasetSpec, split: Split) -> None:
    task = "binary" if split.classes == 2 else "multiclass"
    if task not in method.tasks:
        raise Skip(f"{method.name} is for {' and '.join(method.tasks)} tasks; {dataset.name} is {task}")
    kind = "images" if split.train.X.ndim > 2 else "features"
    if kind not in method.inputs:
        raise Skip(f"{method.name} takes {' and '.join(method.inputs)}; {dataset.name} gives {kind}")


def _noisy(part: Part, sd: float, rng: np.random.Generator) -> Part:
    return replace(part, X=read_only((part.X + rng.normal(0.0, sd, part.X.shape)).astype(np.float32)))


def _fill(result: CellResult, monitor: HarnessMonitor, split: Split, registry: Registry) -> None:
    seconds = monitor.clock.stop()
    result.report_seconds = seconds.pop("report", 0.0)
    result.phases, result.fit_seconds = seconds, sum(seconds.values())
    result.history, result.pseudo_labels, result.notes = monitor.history, monitor.pseudo, monitor.notes
    task = "binary" if split.classes == 2 else "multiclass"
    metrics = [e.spec for e in registry.metrics if task in e.spec.tasks]

    def selected(best: Best) -> Selected:
        values: dict[str, float | None] = {}
        if best.scores is not None:
            probabilities = to_probabilities(best.scores, monitor.score_kind)
            values = {
                m.name: finite(m.load()(split.test.y, best.scores if m.needs == "scores" else probabilities))
                for m in metrics
            }
        values["bag_error"] = finite(best.bag_error)
        value = None if best.value is None else finite(best.value)
        return Selected(report=best.report, stage=best.stage, value=value, metrics=values)

    for rule in monitor.rules:
        result.selected[rule.name] = selected(monitor.winner(rule))
        if len(monitor.best) > 1:
            for stage, tracks in monitor.best.items():
                result.stages.setdefault(stage, {})[rule.name] = selected(tracks[rule.name])


def _write_predictions(path: Path, monitor: HarnessMonitor, labels: IntArray) -> None:
    import io

    buffer = io.BytesIO()
    scores = {rule.name: np.asarray(monitor.winner(rule).scores) for rule in monitor.rules}
    np.savez_compressed(buffer, allow_pickle=False, labels=labels.astype(np.int16), **scores)
    write_atomically(path, buffer.getvalue())


def main() -> int:
    """Read a job from standard input, run it."""
    import msgspec

    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    enter_cell(job)
    run_job(job)
    return 0


def enter_cell(job: Job) -> None:
    """Set what engines read when they start: the backend and the number of threads."""
    if job.cell.backend:
        os.environ["KERAS_BACKEND"] = job.cell.backend


if __name__ == "__main__":
    sys.exit(main())

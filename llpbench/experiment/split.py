"""The data of a cell: its split, its bags with noisy counts, and the seeds both are drawn with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, FloatArray, IntArray, Part, Split, read_only
from llpbench.contracts.errors import DatasetError
from llpbench.contracts.job import Job
from llpbench.contracts.specs import DatasetSpec
from llpbench.experiment.bags import make_bags
from llpbench.experiment.privacy import add_count_noise, count_noise_sd, count_sensitivity, epsilon_of
from llpbench.experiment.seeds import derive_seed
from llpbench.plugins.registry import Registry


def split_seed(cell: Cell) -> int:
    """Seed of the split: the same for every method, bag size, noise and option of a dataset."""
    return derive_seed("split", seed=cell.seed, dataset=cell.dataset)


def bags_seed(cell: Cell) -> int:
    """Seed of the bags: the same for every method and noise level."""
    return derive_seed("bags", seed=cell.seed, dataset=cell.dataset, bag_size=cell.bag_size, scheme=cell.scheme)


def loader_seeds(spec: DatasetSpec, seed: int, run: int) -> dict[str, int]:
    """What a loader is told of seeds: the one of the split, and which run a user asked for if runs are published."""
    return {"seed": seed, "run": run} if spec.published_runs else {"seed": seed}


def load_split(job: Job, spec: DatasetSpec) -> Split:
    """Load a dataset, hold it to its contract, and add feature noise (to all parts) if the cell asks for it.

    The test part of a tuning cell is dropped as it arrives: nothing after this line can read it.
    """
    from llpbench.datafiles.store import DataStore

    files = DataStore(spec, data_dir=Path(job.data) if job.data else None, offline=job.offline)
    seeds = loader_seeds(spec, split_seed(job.cell), job.cell.seed)
    split: Split = spec.load()(files, **seeds, **job.cell.dataset_options)
    if job.cell.tuning and isinstance(split, Split):
        split = replace(split, test=Part(split.train.X[:0], split.train.y[:0]))
    check_split(split, spec, ("train", "valid") if job.cell.tuning else ("train", "valid", "test"))
    if job.cell.feature_noise:
        rng = np.random.default_rng(derive_seed("feature-noise", seed=job.cell.seed, dataset=job.cell.dataset))
        noisy = [_noisy(part, job.cell.feature_noise, rng) for part in (split.train, split.valid, split.test)]
        split = replace(split, train=noisy[0], valid=noisy[1], test=noisy[2])
    return split


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


def bag_split(job: Job, split: Split, registry: Registry) -> tuple[Bags, IntArray, IntArray]:
    """Training bags with validation bags inside, and the labels of both in bag order (for the harness alone)."""
    cell = job.cell
    entry = registry.schemes[cell.scheme]
    if cell.bag_size > len(split.train) and not entry.own:
        raise DatasetError(
            f"bag size {cell.bag_size} is larger than the {len(split.train):,} training rows of {cell.dataset}"
        )
    scheme = entry.load()
    rng = np.random.default_rng(bags_seed(cell))

    def assign(X: FloatArray, size: int, **context: Any) -> IntArray:
        return np.asarray(scheme(X, size, **context, **cell.scheme_options))

    shape: dict[str, Any] = {"classes": split.classes, "columns": split.columns, "rng": rng, "own": entry.own}
    train, train_labels = make_bags(split.train, assign, cell.bag_size, **shape)
    valid, valid_labels = make_bags(split.valid, assign, cell.bag_size, **shape)
    sd = count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, count_sensitivity(split.classes))
    noise_rng = np.random.default_rng(derive_seed("noise", bags=bags_seed(cell), noise=cell.noise, delta=cell.delta))
    valid = replace(valid, counts=read_only(add_count_noise(valid.counts, sd, noise_rng)), count_sd=sd)
    counts = read_only(add_count_noise(train.counts, sd, noise_rng))
    return replace(train, counts=counts, count_sd=sd, validation=valid), train_labels, valid_labels


def _noisy(part: Part, sd: float, rng: np.random.Generator) -> Part:
    return replace(part, X=read_only((part.X + rng.normal(0.0, sd, part.X.shape)).astype(np.float32)))

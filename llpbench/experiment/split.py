"""The data of a cell as its dataset splits it, and the seeds that split and bags are drawn with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Part, Split, read_only
from llpbench.contracts.errors import DatasetError
from llpbench.contracts.job import Job
from llpbench.contracts.specs import DatasetSpec
from llpbench.experiment.seeds import derive_seed, secret_rng


def split_seed(cell: Cell) -> int:
    """Seed of the split: the same for every method, bag size, noise and option of a dataset."""
    return derive_seed("split", seed=cell.seed, dataset=cell.dataset)


def bags_seed(cell: Cell) -> int:
    """Seed of the bags: the same for every method and noise level."""
    return derive_seed("bags", seed=cell.seed, dataset=cell.dataset, bag_size=cell.bag_size, scheme=cell.scheme_name)


def loader_seeds(spec: DatasetSpec, seed: int, run: int) -> dict[str, int]:
    """The seed arguments of a loader: the seed of the split, and the run number if the dataset has published runs."""
    return {"seed": seed, "run": run} if spec.published_runs else {"seed": seed}


def load_split(job: Job, spec: DatasetSpec) -> Split:
    """Load a dataset, check its contract, and add the feature noise of the cell to all parts.

    The test part of a tuning cell is dropped at once, so that nothing can use it. With ``split=bags`` the test rows are
    known only after the bags are formed, and ``forming.form_bags`` drops them.
    """
    from llpbench.data.store import DataStore

    files = DataStore(spec, data_dir=Path(job.data) if job.data else None, offline=job.offline)
    seeds = loader_seeds(spec, split_seed(job.cell), job.cell.seed)
    split: Split = spec.load()(files, **seeds, **job.cell.dataset_options)
    dropped = job.cell.tuning and job.cell.split == "rows"
    if dropped and isinstance(split, Split):
        split = without_test(split)
    check_split(split, spec, ("train", "valid") if dropped else ("train", "valid", "test"))
    if job.cell.feature_noise:
        labels = (split.train.y, split.valid.y)
        rng = secret_rng("feature-noise", labels, seed=job.cell.seed, dataset=job.cell.dataset)
        noisy = [_noisy(part, job.cell.feature_noise, rng) for part in (split.train, split.valid, split.test)]
        split = replace(split, train=noisy[0], valid=noisy[1], test=noisy[2])
    return split


def check_split(split: Split, spec: DatasetSpec, parts: tuple[str, ...] = ("train", "valid", "test")) -> None:
    """Raise an error for a dataset that breaks its contract, naming the part and what is wrong."""
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
            raise DatasetError(f"{where}: labels must be integers from 0 to {split.classes - 1}")
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


def without_test(split: Split) -> Split:
    """The split without test rows."""
    return replace(split, test=Part(split.train.X[:0], split.train.y[:0]))


def _noisy(part: Part, sd: float, rng: np.random.Generator) -> Part:
    return replace(part, X=read_only((part.X + rng.normal(0.0, sd, part.X.shape)).astype(np.float32)))

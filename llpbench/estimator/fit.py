"""``llpbench.fit``: learn from a table of one's own, with bags and their counts but without any label of a row.

Some of the bags are held back. The method is watched on them by the rule ``bags``, as in a benchmark run, and the
model of its best report is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.data import Bags, Column, FloatArray, read_only
from llpbench.contracts.errors import UsageError
from llpbench.contracts.specs import Scalar
from llpbench.estimator.bag_counts import BagIds
from llpbench.estimator.bagged_table import read_bagged_table
from llpbench.estimator.calibration import calibrate
from llpbench.estimator.frames import fit_encoder
from llpbench.estimator.method import choose_backend, find_method
from llpbench.estimator.model import LLPModel
from llpbench.estimator.model_file import FORMAT, VERSION, Header
from llpbench.estimator.training import fit_and_choose
from llpbench.experiment.bags import bag_order
from llpbench.experiment.seeds import derive_seed
from llpbench.plugins.registry import load_registry
from llpbench.system.machine import versions


def fit(
    X: Any,
    bag_of: Any,
    counts: Any = None,
    *,
    proportions: Any = None,
    method: str = "bp-count",
    params: Mapping[str, Scalar] | None = None,
    classes: Sequence[Any] | None = None,
    count_sd: float = 0.0,
    validation: float = 0.1,
    seed: int = 0,
    backend: str = "",
    encoding: str = "table",
    plugins: Iterable[str | Path] = (),
) -> LLPModel:
    """Learn from bags and their counts.

    Args:
        X: the table: a DataFrame (pandas, polars), an array or a sparse matrix. Numbers are standardised, dates become
            numbers, texts and categories 0/1 columns; missing values are allowed.
        bag_of: the bag of each row: any hashable ids, or the name of a column of X (which is then no feature).
        counts: for each bag the number of rows of class 1, or (bags x classes) one number for each class. A mapping
            from bag ids, a Series or DataFrame indexed by them, or an array in the order of the sorted ids. Also: one
            value for each row that is the same throughout a bag, or the name(s) of such columns of X; a table with the
            bags as a column, wide (a column for each class) or long (columns bag, class, count). A count may be known
            within bounds ("<5") or not at all (NaN): such a bag is not learned from.
        proportions: shares of the bag's rows instead of counts, in the same forms.
        method: a registered method.
        params: its parameters, as ``llpbench show METHOD`` lists them.
        classes: names of the classes; 0, 1, ... (or the DataFrame's columns) when not given.
        count_sd: standard deviation of the noise that was added to the counts, for example for privacy.
        validation: share of the bags that is held back to choose the model; at least one bag is.
        seed: seed of everything random.
        backend: backend of the networks (jax, tensorflow, torch); when not given, the one Keras runs on, or jax.
        encoding: ``table``, or ``none`` for features of one space (embeddings) that keep their scales.
        plugins: single-file plugins to load first, as ``--plugin``.

    Returns:
        The fitted model, as it was at its best report under the rule ``bags``.

    Raises:
        UsageError: the request cannot be served, with what is wrong.
        MethodError: the method broke its contract.
    """
    table = read_bagged_table(X, bag_of, counts, proportions, classes=classes, count_sd=count_sd)
    bags, numbers, names, count_sd = table.bags, table.counts, table.classes, table.count_sd
    table.warn()
    entry = find_method(load_registry([Path(p) for p in plugins]), method)
    spec = entry.spec
    settings = spec.resolve(dict(params or {}))
    task = "binary" if len(names) == 2 else "multiclass"
    if task not in spec.tasks:
        raise UsageError(f"{method} is for {' and '.join(spec.tasks)} tasks; {len(names)} classes are given.")
    backend = choose_backend(entry, backend)

    train_bags, held_bags = hold_back(len(bags.ids), validation, seed)
    encoder = fit_encoder(table.features, np.flatnonzero(np.isin(bags.numbers, train_bags)), encoding)
    features = encoder.transform(table.features)
    rng = np.random.default_rng(derive_seed("rows", seed=seed))
    shape: dict[str, Any] = {
        "classes": len(names),
        "count_sd": float(count_sd),
        "columns": encoder.described(),
        "rng": rng,
    }
    held = chosen_bags(features, bags, held_bags, numbers, **shape)
    train = replace(chosen_bags(features, bags, train_bags, numbers, **shape), validation=held)

    fitted, monitor = fit_and_choose(spec, settings, train, derive_seed("fit", seed=seed, method=method))
    kind = "probability" if monitor.score_kind == "auto" else monitor.score_kind
    calibration = None
    if kind != "probability":
        calibration = calibrate(fitted.predict_scores(train.X), train, fitted.predict_scores(held.X), held)
    best = monitor.winner(monitor.rules[0])
    header = Header(
        format=FORMAT,
        version=VERSION,
        method=method,
        params=settings,
        backend=backend,
        seed=seed,
        classes=tuple(_plain_name(name) for name in names),
        score_kind=kind,
        encoder=encoder,
        calibration=calibration,
        selected={"report": best.report, "stage": best.stage, "value": best.value, "bag_error": best.bag_error},
        versions=dict(versions(*(("keras", backend) if backend else ()))),
    )
    return LLPModel(header, fitted)


def hold_back(n: int, share: float, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Draw the bags that are held back: numbers of the bags to learn from, and of those held back.

    Args:
        n: number of bags.
        share: share of the bags to hold back.
        seed: seed of the draw.
    """
    if not 0.0 < share < 1.0:
        raise UsageError(
            f"validation must be a share of the bags between 0 and 1, not {share!r}: they choose the model."
        )
    if n < 2:
        raise UsageError(f"there is {n} bag; at least two are needed, one of them to choose the model.")
    held = min(max(round(share * n), 1), n - 1)
    order = np.random.default_rng(derive_seed("validation", seed=seed)).permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])


def chosen_bags(
    features: FloatArray,
    ids: BagIds,
    chosen: np.ndarray[Any, Any],
    counts: FloatArray,
    *,
    classes: int,
    count_sd: float,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
) -> Bags:
    """The chosen bags in the form in which a method gets them."""
    rows = np.flatnonzero(np.isin(ids.numbers, chosen))
    order, offsets = bag_order(ids.numbers[rows], len(rows), rng)
    return Bags(
        X=read_only(features[rows[order]]),
        offsets=read_only(offsets),
        counts=read_only(np.array(counts[chosen], np.float64)),
        classes=classes,
        count_sd=count_sd,
        columns=columns,
    )


def _plain_name(value: Any) -> bool | int | float | str:
    """A class's name as JSON can hold it."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | int | float | str) else str(plain)

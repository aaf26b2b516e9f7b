"""``llpbench.fit``: learn from a table of one's own, with bags and their counts but without any label of a row.

Some of the bags are held back. The method is watched on them by the rule ``bags``, as in a benchmark run, and the
model of its best report is returned. On bags that it did not learn from it is compared with a constant: its
probabilities are as sure as these bags allow, and the user is warned where it learned nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.contracts.specs import Scalar
from llpbench.data.encoding.frames import fit_encoder
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.fitting.memory import Memory
from llpbench.owndata.fitting.method import choose_backend, find_method
from llpbench.owndata.fitting.trainer import Trainer, hold_back
from llpbench.owndata.judging.assessment import UnseenBags, assess
from llpbench.owndata.judging.shrinkage import make_shrinkage
from llpbench.owndata.judging.spread import class_shares
from llpbench.owndata.model import LLPModel
from llpbench.owndata.model_file import FORMAT, VERSION, Header
from llpbench.owndata.reading.arguments import as_python, read_whole
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table
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
    halvings: int | None = None,
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
            within bounds ("<5"): it is filled in by its mean within them; or not at all (NaN): such a bag is left out.
        proportions: shares of the bag's rows instead of counts, in the same forms.
        method: a registered method.
        params: its parameters, as ``llpbench show METHOD`` lists them.
        classes: names of the classes; 0, 1, ... (or the DataFrame's columns) when not given.
        count_sd: standard deviation of the noise that was added to the counts, for example for privacy; in rows, also
            where ``proportions`` are given.
        validation: share of the bags that is held back to choose the model; at least one bag is.
        halvings: the model is compared with a constant on bags that it did not learn from. Where the held-back ones
            do not tell enough, the others are cut into two halves and the method is fitted on each: once, or three
            times where bags are few or the halves disagree, or as often as you say. 0: only the held-back bags are
            looked at, which costs no further fit.
        seed: seed of everything random.
        backend: backend of the networks (jax, tensorflow, torch); when not given, the one Keras runs on, or jax.
        encoding: ``table``, or ``none`` for features of one space (embeddings) that keep their scales.
        plugins: single-file plugins to load first, as ``--plugin``.

    Returns:
        The fitted model, as it was at its best report under the rule ``bags``; its probabilities are as sure as bags
        that it did not learn from allow (``owndata/judging/shrinkage.py``).

    Warns:
        LLPWarning: the model is not clearly better than a constant; bags are few, all alike, or far more spread than
            binomial; a column holds the counts themselves. ``LLPModel.report`` says more.

    Raises:
        UsageError: the request cannot be served, with what is wrong.
        MethodError: the method broke its contract.
    """
    seed = read_whole(seed, "seed")
    halvings = None if halvings is None else read_whole(halvings, "halvings", least=0)
    table = read_bagged_table(X, bag_of, counts, proportions, classes=classes, count_sd=count_sd)
    table.warn()
    return fit_table(
        table,
        method=method,
        params=params,
        validation=validation,
        halvings=halvings,
        seed=seed,
        backend=backend,
        encoding=encoding,
        plugins=plugins,
    )


def fit_table(
    table: BaggedTable,
    *,
    method: str,
    params: Mapping[str, Scalar] | None,
    validation: float,
    halvings: int | None,
    seed: int,
    backend: str,
    encoding: str,
    plugins: Iterable[str | Path],
) -> LLPModel:
    """Learn from a table that has been read; arguments as those of ``fit``, whose caller is the one to be warned."""
    bags, numbers, names, count_sd = table.bags, table.counts, table.classes, table.count_sd
    entry = find_method(load_registry([Path(p) for p in plugins]), method)
    spec = entry.spec
    settings = spec.resolve(dict(params or {}))
    task = "binary" if len(names) == 2 else "multiclass"
    if task not in spec.tasks:
        raise UsageError(f"{method} is for {' and '.join(spec.tasks)} tasks; {len(names)} classes are given.")
    backend = choose_backend(entry, backend)

    train, held = hold_back(len(bags.ids), validation, seed)
    encoder = fit_encoder(table.features, np.flatnonzero(np.isin(bags.numbers, train)), encoding)
    trainer = Trainer(
        spec=spec,
        settings=settings,
        features=encoder.transform(table.features),
        bags=bags,
        counts=numbers,
        classes=len(names),
        count_sd=float(count_sd),
        columns=encoder.described(),
        seed=seed,
    )
    trained = trainer.fit(train, held, derive_seed("fit", seed=seed, method=method))
    everything = trainer.take(np.arange(len(bags.ids)), np.random.default_rng(0))
    main = UnseenBags.of(trained.predictor, trained.train, trained.held)
    found = assess(
        main,
        everything,
        lambda number: trainer.halve(train, held, number),
        halvings,
        derive_seed("intervals", seed=seed),
    )
    facts = found.facts
    for sentence in facts.warnings:
        warnings.warn(f"{method}: {sentence}", LLPWarning, stacklevel=3)
    logits = trained.predictor.logits(everything.X)
    best = trained.monitor.winner(trained.monitor.rules[0])
    calibration = trained.predictor.calibration
    header = Header(
        format=FORMAT,
        version=VERSION,
        method=method,
        params=settings,
        backend=backend,
        seed=seed,
        classes=tuple(_plain_name(name) for name in names),
        score_kind="probability" if calibration is None else "logit",
        encoder=encoder,
        calibration=calibration,
        shrinkage=make_shrinkage(facts.score.slope, logits, class_shares(everything)),
        facts=facts,
        selected={"report": best.report, "stage": best.stage, "value": best.value, "bag_error": best.bag_error},
        versions=dict(versions(*(("keras", backend) if backend else ()))),
    )
    memory = Memory(trainer, table.whole, table.rows, table.given, train, held, main, found.halves)
    return LLPModel(header, trained.predictor.method, memory)


def _plain_name(value: Any) -> bool | int | float | str:
    """A class's name as JSON can hold it: there is no NaN in it."""
    plain = as_python(value)
    if isinstance(plain, float) and not np.isfinite(plain):
        return str(plain)
    return plain if isinstance(plain, bool | int | float | str) else str(plain)

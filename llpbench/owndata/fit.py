"""``llpbench.fit``: fit a method to your own table, with bags and their counts but no labels of rows.

Some bags are held out. The rule ``bags`` selects a report of the method on them, as in a benchmark run. (Several tables
of counts: some bags of each. The method is then fitted again to all bags, since a few dozen counts are all there is.)
The model is
compared with a constant on bags that it was not fitted on: its probabilities are shrunk as far as these bags require,
and the user is warned if it learned nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.contracts.specs import Scalar
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.fitting import BagTrainer, FitRecord, choose_backend, find_method, hold_out
from llpbench.owndata.judging.assessment import UnseenBags, assess
from llpbench.owndata.judging.shrinkage import make_shrinkage
from llpbench.owndata.judging.spread import class_shares
from llpbench.owndata.model import LLPModel
from llpbench.owndata.model_file import FORMAT, VERSION, Header
from llpbench.owndata.progress import MANY_ROWS, say_nothing, speaker
from llpbench.owndata.reading.arguments import Arguments, check_width
from llpbench.owndata.reading.bagged_table import BaggedTable, as_python, read_bagged_table, read_whole
from llpbench.owndata.reading.frames import fit_encoder
from llpbench.plugins.options import expand, parse_options
from llpbench.plugins.registry import load_registry
from llpbench.system.machine import versions

DEFAULT_METHOD = "average"
DEFAULT_PARAMS: Mapping[str, Scalar] = {"members": "quick"}
SEVERAL_TABLES_METHOD = "bag-logistic"
"""The default for several tables of counts, which it takes as they are: members of ``average`` get repeated rows."""


def fit(
    X: Any,
    bag_of: Any = None,
    counts: Any = None,
    *,
    proportions: Any = None,
    method: str | None = None,
    params: Mapping[str, Scalar] | None = None,
    classes: Sequence[Any] | None = None,
    count_sd: Any = 0.0,
    validation: float = 0.1,
    halvings: int | None = None,
    seed: int = 0,
    backend: str = "",
    encoding: str = "table",
    plugins: str | Path | Sequence[str | Path] = (),
    progress: bool | Callable[[str], None] | None = None,
) -> LLPModel:
    """Fit a method to bags and their counts.

    Args:
        X: the table: a DataFrame (pandas, polars), an array or a sparse matrix. Numbers are standardised, dates become
            numbers, texts and categories 0/1 columns; missing values are allowed.
        bag_of: the bag of each row: any hashable ids, or the name of a column of X (which is then not a feature). None
            if ``counts`` is a list of tables.
        counts: the number of rows of class 1 in each bag, or (bags x classes) one number per class. A mapping from bag
            ids, a Series or DataFrame indexed by them, or an array in the order of the sorted ids. Also: one value per
            row that is the same for all rows of a bag, or the name(s) of such columns of X; a table with the bags as a
            column, wide (a column per class) or long (columns bag, class, count). A count may be known within bounds
            ("<5"), and is replaced by its expected value; bags with unknown counts (NaN) are left out. Without
            ``bag_of``, a list of tables about the same rows: each a Series or DataFrame whose index names are columns
            of X, which stay features, or a pair (bag_of, counts).
        proportions: shares of the bag's rows instead of counts, in the same forms.
        method: a registered method, or one with options (``"dllp[lr=0.01]"``, as ``compare`` recommends it); by
            default ``average[members=quick]``, for several tables of counts ``bag-logistic``.
        params: its parameters, as listed by ``llpbench show METHOD``.
        classes: names of the classes; by default the DataFrame's columns, or 0, 1, ...
        count_sd: standard deviation of noise added to the counts, for example for privacy, or one for each bag in the
            forms of ``counts`` by bag; in rows, even if ``proportions`` are given. For several tables one number, or a
            list with an entry for each table.
        validation: share of the bags to hold out for selecting the model; at least one bag.
        halvings: how often the training bags are split into two halves to fit the method on each, in order to compare
            the model with a constant. By default as often as needed: 0 if the held-out bags tell enough, otherwise 3,
            or 1 above 50,000 rows. 0 costs no further fit.
        seed: seed of everything random.
        backend: backend of the networks (jax, tensorflow, torch); by default the one Keras runs on, or jax.
        encoding: ``table``, or ``none`` for features of one space (embeddings) that keep their scales.
        plugins: single-file plugins to load first, as ``--plugin``.
        progress: True for lines on standard error about each fit, False for none, or a function that gets each line;
            by default True above 100,000 rows.

    Returns:
        The model of the best report under the rule ``bags``; its probabilities are shrunk as far as held-out bags
        require (``owndata/judging/shrinkage.py``).

    Warns:
        LLPWarning: the model is not clearly better than a constant; there are few bags, or they hardly differ, or
            their spread is far more than binomial; a column contains the counts. See ``LLPModel.report``.

    Raises:
        UsageError: an argument is invalid.
        MethodError: the method violates its contract.
    """
    seed = read_whole(seed, "seed")
    halvings = None if halvings is None else read_whole(halvings, "halvings", least=0)
    method = None if method is None else Arguments.method.read(method)
    params, files = Arguments.params.read(params or {}), Arguments.plugins.read(plugins)
    table = read_bagged_table(X, bag_of, counts, proportions, classes=classes, count_sd=count_sd)
    table.warn()
    if method is None and table.bags.overlap is not None:
        method = SEVERAL_TABLES_METHOD
    elif method is None:
        method, params = DEFAULT_METHOD, {**DEFAULT_PARAMS, **(params or {})}
    return fit_table(
        table,
        method=method,
        params=params,
        say=speaker(len(table.rows) > MANY_ROWS if progress is None else progress),
        validation=validation,
        halvings=halvings,
        seed=seed,
        backend=backend,
        encoding=encoding,
        plugins=files,
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
    say: Callable[[str], None] = say_nothing,
) -> LLPModel:
    """Fit a method to a table that has been read; arguments as those of ``fit``, whose caller gets the warnings."""
    bags, numbers, names, count_sd = table.bags, table.counts, table.classes, table.count_sd
    method, given = parse_options(method)
    entry = find_method(load_registry([Path(p) for p in plugins]), method)
    spec = entry.spec
    options = expand(spec, given)
    if len(options) != 1:
        raise UsageError(f"fit needs one value for each parameter of {method}; compare takes several.")
    settings = spec.resolve({**options[0], **(params or {})})
    task = "binary" if len(names) == 2 else "multiclass"
    if task not in spec.tasks:
        raise UsageError(f"{method} supports {' and '.join(spec.tasks)} tasks, got {len(names)} classes.")
    backend = choose_backend(entry, backend)

    train, held_out = hold_out(len(bags.ids), validation, seed, bags.grouping_of)
    encoder = fit_encoder(table.features, bags.rows_of(train), encoding)
    check_width(encoder.width, "features")
    trainer = BagTrainer(
        spec=spec,
        settings=settings,
        features=encoder.transform(table.features),
        bags=bags,
        counts=numbers,
        classes=len(names),
        count_sd=float(count_sd),
        columns=encoder.described(),
        seed=seed,
        say=say,
    )
    trained = trainer.fit(train, held_out, derive_seed("fit", seed=seed, method=method))
    everything = trainer.take(np.arange(len(bags.ids)), np.random.default_rng(0))
    main = UnseenBags.of(trained.predictor, trained.train, trained.held_out)
    facts, halves = assess(
        main,
        everything,
        lambda number: trainer.halve(train, held_out, number),
        halvings,
        derive_seed("intervals", seed=seed),
        bags.marginal,
    )
    if bags.overlap is not None:  # held-out bags have judged the method; their counts are too few to do without
        trained = trainer.fit(np.arange(len(bags.ids)), held_out, derive_seed("fit", seed=seed, method=method))
    for sentence in facts.warnings:
        warnings.warn(f"{method}: {sentence}", LLPWarning, stacklevel=3)
    logits = trained.predictor.logits(everything.X)
    best = trained.monitor.best
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
    memory = FitRecord(trainer, table.whole, table.rows, table.every_row, table.known, train, held_out, main, halves)
    return LLPModel(header, trained.predictor.method, memory)


def _plain_name(value: Any) -> bool | int | float | str:
    """A class's name as a JSON value; NaN and other types become texts."""
    plain = as_python(value)
    if isinstance(plain, float) and not np.isfinite(plain):
        return str(plain)
    return plain if isinstance(plain, bool | int | float | str) else str(plain)

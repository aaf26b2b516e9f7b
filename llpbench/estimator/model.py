"""A method on a table of one's own: rows in bags, a count for each bag, no label of any row.

``fit`` holds back some of the bags, watches the method by the rule ``bags`` as a benchmark run does, and hands back
the model of the best report. ``LLPModel`` predicts, saves and is loaded again.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.data import FloatArray, read_only
from llpbench.contracts.errors import LLPBenchError, MethodError, UnknownNameError, UsageError, describe
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.contracts.state import HOW_TO, is_restorable
from llpbench.estimator.bag_counts import read_bag_ids, read_counts
from llpbench.estimator.calibration import calibrate
from llpbench.estimator.encoder import as_frame, fit_encoder
from llpbench.estimator.fitting import chosen_bags, fit_and_choose, hold_back, separate
from llpbench.estimator.model_file import FORMAT, VERSION, Header, ModelFileError, read_model, write_model
from llpbench.experiment.seeds import derive_seed
from llpbench.plugins.registry import Entry, Registry, load_registry, unmet_needs
from llpbench.system.machine import versions

_TINY = 1e-16


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
        X: the table: a DataFrame, or an array of rows and columns. Numbers are standardised, texts and categories
            become 0/1 columns, missing values are allowed.
        bag_of: the bag of each row: any hashable ids, or the name of a column of X (which is then no feature).
        counts: for each bag the number of rows of class 1, or (bags x classes) one number for each class. A mapping
            from bag ids, a Series or DataFrame indexed by them, or an array in the order of the sorted ids. Also: one
            value for each row that is the same throughout a bag, or the name(s) of such columns of X.
        proportions: shares of the bag's rows instead of counts, in the same forms.
        method: a registered method.
        params: its parameters, as ``llpbench show METHOD`` lists them.
        classes: names of the classes; 0, 1, ... (or the DataFrame's columns) when not given.
        count_sd: standard deviation of the noise that was added to the counts, for privacy say.
        validation: share of the bags that is held back: they choose the model, at least one.
        seed: of all that is random.
        backend: engine of the networks (jax, tensorflow, torch); the running one, or jax, when not given.
        encoding: ``table``, or ``none`` for features of one space (embeddings) that keep their scales.
        plugins: single-file plugins to load first, as ``--plugin``.

    Returns:
        The fitted model: what it predicts with is the best report under the rule ``bags``.

    Raises:
        UsageError: the request cannot be served, with what is wrong.
        MethodError: the method broke its contract.
    """
    table = separate(as_frame(X), bag_of, counts, proportions)
    bags = read_bag_ids(table.bag_of, len(table.features))
    if not (0.0 <= count_sd < np.inf):
        raise UsageError(f"count_sd must be a standard deviation, not {count_sd!r}.")
    numbers, names = read_counts(table.values, bags, proportions=table.proportions, count_sd=count_sd, classes=classes)
    entry = _method(load_registry([Path(p) for p in plugins]), method)
    spec = entry.spec
    settings = spec.resolve(dict(params or {}))
    task = "binary" if len(names) == 2 else "multiclass"
    if task not in spec.tasks:
        raise UsageError(f"{method} is for {' and '.join(spec.tasks)} tasks; {len(names)} classes are given.")
    engine = _start_engine(entry, backend)

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
        backend=engine,
        seed=seed,
        classes=tuple(_plain(name) for name in names),
        score_kind=kind,
        encoder=encoder,
        calibration=calibration,
        selected={"report": best.report, "stage": best.stage, "value": best.value, "bag_error": best.bag_error},
        versions=dict(versions(*(("keras", engine) if engine else ()))),
    )
    return LLPModel(header, fitted)


def load(path: str | Path, *, backend: str = "", plugins: Iterable[str | Path] = ()) -> LLPModel:
    """Read a model that ``LLPModel.save`` wrote. Nothing in the file can run; whatever is odd about it is refused.

    Args:
        path: the file.
        backend: engine of the networks; the running one, or that of the fit, when not given.
        plugins: single-file plugins to load first, if one of them brings the method.

    Raises:
        ModelFileError: the file is not a saved model, or does not fit its method.
    """
    path = Path(path)
    header, state = read_model(path)
    registry = load_registry([Path(p) for p in plugins])
    if header.method not in registry.methods.entries:
        hint = " Install the package that brings it, or name its file in plugins=."
        raise UnknownNameError(f"method in {path}:", header.method, registry.methods.entries, hint)
    entry = _method(registry, header.method)
    _check_header(path, header)
    _start_engine(entry, backend, header.backend)
    try:
        made = entry.spec.load()(**entry.spec.resolve(header.params))
        if not is_restorable(made):
            raise MethodError(f"{header.method} cannot be loaded: {HOW_TO}.")
        restored: Any = made.restore(state)
        model = LLPModel(header, restored)
        model._scores(np.zeros((1, header.encoder.width), np.float32))
    except MethodError as error:
        raise ModelFileError(f"{path} is refused: {error}") from None
    except LLPBenchError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} is refused: its state does not fit {header.method} ({describe(error)})."
        ) from None
    return model


class LLPModel:
    """A fitted method with the encoder of its table: rows in, classes and probabilities out.

    Made by ``fit`` and ``load``.

    Attributes:
        classes_: the classes, in the order of ``predict_proba``'s columns.
        n_features_in_: columns of the table.
        feature_names_in_: their names, when the table had any.
        method_: the fitted method.
        selected_: number (``report``), ``stage`` and ``value`` of the report that the rule ``bags`` chose, and its
            ``bag_error``, the mean absolute error of the proportions of held-back bags.
    """

    def __init__(self, header: Header, method: Any) -> None:
        self._header = header
        self.method_ = method
        self.classes_ = np.array(header.classes)
        self.n_features_in_ = len(header.encoder.columns)
        if header.encoder.named:
            self.feature_names_in_ = np.array(header.encoder.names, dtype=object)
        self.selected_ = dict(header.selected)

    @property
    def method(self) -> str:
        """The method's name."""
        return self._header.method

    @property
    def params(self) -> dict[str, Scalar]:
        """All parameters of the method."""
        return dict(self._header.params)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probability of each class.

        A method's probabilities are taken as they are; other scores go through a logistic map that was fitted to
        the proportions of bags (``llpbench/calibration.py``).
        """
        from scipy.special import softmax

        scores = self._scores(self._header.encoder.transform(X))
        if self._header.calibration is not None:
            return np.asarray(softmax(self._header.calibration.logits(scores), axis=1))
        p = np.clip(scores.astype(np.float64), 0.0, 1.0)
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), _TINY))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row."""
        chosen: np.ndarray[Any, Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return chosen

    def decision_function(self, X: Any) -> FloatArray:
        """(n,) log-odds of the second of two classes, or (n, C) log-probabilities of more."""
        scores = self._scores(self._header.encoder.transform(X)).astype(np.float64)
        if self._header.calibration is not None:
            logits = self._header.calibration.logits(scores)
            if scores.ndim == 1:
                return np.asarray(logits[:, 1] - logits[:, 0])
            return np.asarray(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        p = np.clip(scores, 0.0, 1.0)
        if p.ndim == 1:
            return np.asarray(np.log(np.maximum(p, _TINY)) - np.log(np.maximum(1.0 - p, _TINY)))
        return np.asarray(np.log(np.maximum(p / np.maximum(p.sum(axis=1, keepdims=True), _TINY), _TINY)))

    def save(self, path: str | Path) -> Path:
        """Write the model to one file of plain numbers and texts (no pickle); ``llpbench.load`` reads it.

        Raises:
            MethodError: the method does not say how to write its state down.
        """
        if not is_restorable(self.method_):
            raise MethodError(f"{self.method} cannot be saved: {HOW_TO}.")
        write_model(Path(path), copy.copy(self._header), self.method_.state())
        return Path(path)

    def __repr__(self) -> str:
        facts = f"{self.n_features_in_} columns, classes {', '.join(map(str, self._header.classes))}"
        return f"<LLPModel {self.method}: {facts}>"

    def _scores(self, features: FloatArray) -> FloatArray:
        """The method's scores, of the right shape and finite."""
        scores = np.asarray(self.method_.predict_scores(read_only(features)))
        n, classes = len(features), len(self._header.classes)
        wanted = (n,) if classes == 2 else (n, classes)
        if scores.shape != wanted:
            raise MethodError(f"{self.method} gave scores of shape {scores.shape} for {n} rows; expected {wanted}.")
        if not np.isfinite(scores).all():
            raise MethodError(f"{self.method} gave scores that are NaN or infinite.")
        return scores


def _method(registry: Registry, name: str) -> Entry[MethodSpec]:
    entry = registry.methods.entry(name)
    if entry.spec.oracle:
        raise UsageError(f"{name} learns from the label of every row: it is a bound for benchmarks, not for bags.")
    return entry


def _start_engine(entry: Entry[MethodSpec], backend: str, preferred: str = "") -> str:
    """Make sure that the method can run here; the engine it runs on, empty when it needs none."""
    spec = entry.spec
    engine = ""
    if spec.backends:
        keras = sys.modules.get("keras")
        running = str(keras.backend.backend()) if keras is not None else ""
        engine = backend or running or preferred or os.environ.get("KERAS_BACKEND", "") or spec.backends[0]
        if engine not in spec.backends:
            raise UnknownNameError(f"backend of {spec.name}:", engine, spec.backends)
        if running and running != engine:
            raise UsageError(f"Keras runs on {running} in this process; start another one for {engine}.")
    elif backend:
        raise UsageError(f"{spec.name} uses no network engine, so backend={backend!r} has no meaning.")
    needs = unmet_needs(entry, engine)
    if needs:
        raise UsageError(needs)
    if engine:
        os.environ["KERAS_BACKEND"] = engine
    return engine


def _check_header(path: Path, header: Header) -> None:
    """What a sound file cannot say."""
    classes = len(header.classes)
    shift = header.calibration.shift if header.calibration is not None else ()
    sound = (
        classes >= 2
        and len(set(header.classes)) == classes
        and header.score_kind in ("probability", "logit")
        and (header.score_kind == "logit") == (header.calibration is not None)
        and (header.calibration is None or (len(shift) == classes and header.calibration.scale > 0))
        and header.encoder.columns
        and all(getattr(column, "sd", 1.0) > 0 for column in header.encoder.columns)
    )
    if not sound:
        raise ModelFileError(f"{path} is refused: its classes, columns and calibration do not fit together.")


def _plain(value: Any) -> bool | int | float | str:
    """A class's name as JSON can hold it."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | int | float | str) else str(plain)

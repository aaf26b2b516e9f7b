"""A fitted model, and ``llpbench.load``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import LLPBenchError, MethodError, UnknownNameError, describe
from llpbench.contracts.specs import Scalar
from llpbench.contracts.state import HOW_TO, is_restorable
from llpbench.owndata.fitting import FitRecord, choose_backend, find_method
from llpbench.owndata.judging.assessment import agreement
from llpbench.owndata.judging.facts import PERCENTILES, FitFacts, is_random
from llpbench.owndata.judging.predictor import Predictor, softmax
from llpbench.owndata.known_bags import label_rows, row_logits
from llpbench.owndata.model_file import Header, ModelFileError, read_model, write_model
from llpbench.owndata.reading.arguments import Arguments
from llpbench.owndata.report import Report, make_report
from llpbench.owndata.subgroups import subgroup_table
from llpbench.plugins.registry import load_registry

if TYPE_CHECKING:
    import pandas as pd

_ROWS_COMPARED = 5_000


def load(path: str | Path, *, backend: str = "", plugins: str | Path | Sequence[str | Path] = ()) -> LLPModel:
    """Load a model that ``LLPModel.save`` wrote. Loading executes no code from the file.

    Args:
        path: the file.
        backend: backend of the networks; by default the one Keras runs on, or that of the fit.
        plugins: single-file plugins to load first, if one of them provides the method.

    Raises:
        ModelFileError: the file is invalid, or does not match its method.
    """
    path, files = Path(Arguments.path.read(path)), Arguments.plugins.read(plugins)
    header, state = read_model(path)
    registry = load_registry(map(Path, files))
    if header.method not in registry.methods.entries:
        hint = " Install the package that provides it, or pass its file in plugins=."
        raise UnknownNameError(f"method in {path}:", header.method, registry.methods.entries, hint)
    entry = find_method(registry, header.method)
    _check_header(path, header)
    choose_backend(entry, backend, header.backend)
    try:
        made = entry.spec.load()(**entry.spec.resolve(header.params))
        if not is_restorable(made):
            raise MethodError(f"{header.method} cannot be loaded: {HOW_TO}.")
        restored: Any = made.restore(state)
        model = LLPModel(header, restored)
        model._predictor.scores(np.zeros((1, header.encoder.width), np.float32))
    except MethodError as error:
        raise ModelFileError(f"{path} is invalid: {error}") from None
    except LLPBenchError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} is invalid: its state does not match {header.method} ({describe(error)})."
        ) from None
    return model


class LLPModel:
    """A fitted model: predicts classes and probabilities for the rows of a table.

    Returned by ``fit`` and ``load``.

    Attributes:
        classes_: the classes, in the order of the columns of ``predict_proba``.
        n_features_in_: number of columns of the table.
        feature_names_in_: their names, if the table has any.
        method_: the fitted method.
        selected_: number (``report``), ``stage`` and ``value`` of the report that the rule ``bags`` selected, and its
            ``bag_error``, the mean absolute error of the proportions of held-out bags.
    """

    def __init__(self, header: Header, method: Any, memory: FitRecord | None = None) -> None:
        self._header = header
        self._memory = memory
        self._report: Report | None = None
        self._predictor = Predictor(header.method, method, len(header.classes), header.calibration)
        self.method_ = method
        texts = {isinstance(name, str) for name in header.classes}
        self.classes_ = np.array(header.classes, dtype=object if len(texts) > 1 else None)  # 1 and "1" stay apart
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

    @property
    def labels_(self) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row of the fit, given the counts of the bags."""
        return self.predict()

    def predict_proba(
        self, X: Any = None, *, bag_of: Any = None, counts: Any = None, proportions: Any = None, count_sd: Any = 0.0
    ) -> FloatArray:
        """(n, C) probability of each class.

        Scores that are not probabilities are calibrated by the proportions of bags (``owndata/judging/predictor.py``).
        Probabilities are shrunk towards the overall shares as far as held-out bags require
        (``owndata/judging/shrinkage.py``). If the counts of the bags are known, the probabilities are those given the
        counts (``owndata/judging/posterior.py``): in every bag they add up to its count.

        Args:
            X: a table; None for the table of the fit, with its bags and counts.
            bag_of: the bag of each row, or the name of a column, if counts are known.
            counts: counts of the bags, in the forms of ``fit``; rows of bags without one are predicted without.
            proportions: proportions instead of counts.
            count_sd: standard deviation of noise in the counts, or one for each bag.
        """
        if X is None or not (bag_of is None and counts is None and proportions is None):
            return label_rows(
                self._header,
                self._predictor,
                self._memory,
                X,
                bag_of=bag_of,
                counts=counts,
                proportions=proportions,
                count_sd=count_sd,
            )
        if self._header.shrinkage is None:
            return self._predictor.probabilities(self._header.encoder.transform(X))
        return softmax(self._logits(X))

    def predict(
        self, X: Any = None, *, bag_of: Any = None, counts: Any = None, proportions: Any = None, count_sd: Any = 0.0
    ) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row; arguments as those of ``predict_proba``."""
        p = self.predict_proba(X, bag_of=bag_of, counts=counts, proportions=proportions, count_sd=count_sd)
        chosen: np.ndarray[Any, Any] = self.classes_[p.argmax(axis=1)]
        return chosen

    def decision_function(self, X: Any) -> FloatArray:
        """(n,) log-odds of the second of two classes, or (n, C) log-probabilities of more."""
        logits = self._logits(X)
        if logits.shape[1] == 2:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return np.asarray(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))

    def report(self) -> Report:
        """How good the model is: ``print`` the report, or write it as a page with ``to_html``.

        A model file contains the score on held-out bags, the bag card, the calibration and the warnings, but no rows,
        so the report of a loaded model has no column importances.
        """
        if self._report is None:
            self._report = make_report(self._header, self._memory)
        return self._report

    def subgroup_totals(
        self,
        X: Any = None,
        by: Any = None,
        *,
        bag_of: Any = None,
        counts: Any = None,
        proportions: Any = None,
        count_sd: Any = 0.0,
        level: float = 0.9,
        halvings: int = 5,
    ) -> pd.DataFrame:
        """Expected number of rows of each class in subgroups, with intervals.

        Without ``X`` the table of the fit is used: the totals of the subgroups add up to the known counts of its bags.
        For another table pass ``bag_of`` and ``counts`` (or ``proportions``) as in ``fit`` if they are known.

        Args:
            X: a table; None for the table of the fit.
            by: the subgroup of each row, or the name of a column of the table.
            bag_of: the bag of each row, or the name of a column.
            counts: known counts of the bags, in the forms of ``fit``.
            proportions: known proportions instead.
            count_sd: standard deviation of the noise in the counts, or one for each bag.
            level: level of the interval.
            halvings: how often the bags of the fit are split into halves and fitted again, to estimate how far totals
                depend on the sample of bags. The fits are kept for the next call. 0: intervals cover chance only.

        Returns:
            A DataFrame indexed by the subgroups (and the classes, if there are more than two; for two classes the
            totals are those of ``classes_[1]``): ``rows``; ``total``, the expected number; ``low`` and ``high``, the
            interval, which covers chance, bag effects (if counts are unknown), the sample of bags, and errors of the
            usual size that all fits have in common; ``least`` and ``most``, bounds that follow from the known counts
            alone.

        Warns:
            LLPWarning: rows in bags with unknown counts are not included; the intervals cover chance only; or the model
                is not better than a constant, or does not explain bags with more rows of a subgroup, so that only
                ``least`` and ``most`` are certain.

        Raises:
            UsageError: an argument is invalid.
        """
        table, self._memory = subgroup_table(
            self._header,
            self._predictor,
            self._memory,
            X,
            by,
            bag_of=bag_of,
            counts=counts,
            proportions=proportions,
            count_sd=count_sd,
            level=level,
            halvings=halvings,
        )
        return table

    def save(self, path: str | Path) -> Path:
        """Write the model to one file of numbers and texts (no pickle); ``llpbench.load`` reads it.

        Raises:
            MethodError: the method has no ``state`` and ``restore``.
        """
        if not is_restorable(self.method_):
            raise MethodError(f"{self.method} cannot be saved: {HOW_TO}.")
        path = Path(Arguments.path.read(path))
        write_model(path, copy.copy(self._header), self.method_.state())
        return path

    def __repr__(self) -> str:
        facts = f"{self.n_features_in_} columns, classes {', '.join(map(str, self._header.classes))}"
        return f"<LLPModel {self.method}: {facts}>"

    def _repr_html_(self) -> str:
        from llpbench.owndata.report_page import make_note

        header = self._header
        found = make_report(header, None)
        warned = header.facts.warnings if header.facts is not None else ()
        return make_note(self.method, self.n_features_in_, found.classes, found.verdict(), warned)

    def _logits(self, X: Any) -> FloatArray:
        """(n, C) logits of the rows of a table, shrunk."""
        return row_logits(self._header, self._predictor, self._header.encoder.transform(X))


def unshrunk(model: LLPModel, X: Any) -> FloatArray:
    """(n, C) probabilities of the rows of a table, calibrated but not shrunk."""
    return model._predictor.probabilities(model._header.encoder.transform(X))


def agreement_of_halves(model: LLPModel) -> float | None:
    """Agreement on single rows of fits on two halves of the training bags; None for random bags, 0 without halves."""
    memory, facts = model._memory, model._header.facts
    assert memory is not None
    assert facts is not None
    if memory.trainer.bags.marginal or is_random(facts.card):
        return None
    halves = memory.trainer.halve(memory.train, memory.held_out, 0)
    features = memory.trainer.features
    return 0.0 if halves is None else agreement([halves], features[:: -(-len(features) // _ROWS_COMPARED)])


def _check_header(path: Path, header: Header) -> None:
    """Reject a header whose values are inconsistent."""
    classes = len(header.classes)
    shift = header.calibration.shift if header.calibration is not None else ()
    sound = (
        classes >= 2
        and len(set(header.classes)) == classes
        and header.score_kind in ("probability", "logit")
        and (header.score_kind == "logit") == (header.calibration is not None)
        and (header.calibration is None or (len(shift) == classes and header.calibration.scale > 0))
        and (header.shrinkage is None or len(header.shrinkage.shift) == classes)
        and (header.shrinkage is None or 0.0 <= header.shrinkage.slope <= 1.0)
        and (header.facts is None or _describes(header.facts, classes))
        and header.encoder.columns
        and all(getattr(column, "sd", 1.0) > 0 for column in header.encoder.columns)
    )
    if not sound:
        raise ModelFileError(f"{path} is invalid: its classes, columns and calibration are inconsistent.")


def _describes(facts: FitFacts, classes: int) -> bool:
    card = facts.card
    complete = len(card.sizes) == len(PERCENTILES) and len(card.shares) == len(card.proportion_sd) == classes
    points = all(0 <= point.label < classes and point.bags > 0 for point in facts.points)
    return complete and card.bags > 0 and bool(facts.points) and points

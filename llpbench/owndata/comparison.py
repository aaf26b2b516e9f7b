"""What a comparison of methods found: a table, who is tied with the best, and a recommendation in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import printable

if TYPE_CHECKING:
    import pandas as pd

CONSTANT = "(constant)"
"""The line of the table for a model that gives all rows the overall rate."""
FEW_BAGS = 20
"""Bags below which a comparison is a weak one, and says so."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Trial:
    """How one method did.

    Attributes:
        method: its label.
        log_likelihoods: (repeats, bags) of each bag's counts when it was held out; empty when the method failed.
        errors: (repeats, bags) error of its proportions.
        seconds: of each fit.
        reason: why it has no scores; empty when it has.
    """

    method: str
    log_likelihoods: FloatArray
    errors: FloatArray
    seconds: tuple[float, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """Methods compared on bags that each of them had not seen. Made by ``llpbench.compare``.

    Attributes:
        table: one line for each method, the best first. ``gain`` is how much more likely than under a constant a
            held-out bag's count is (log-likelihood, nats a bag), ``behind`` the distance to the best, ``error`` the
            mean absolute error of proportions; ``_se`` are standard errors over bags, those of ``behind`` of the
            differences bag by bag. ``tied``: not behind the best beyond chance. ``seconds`` of a fit.
        bags: (bags x methods) gain of each held-out bag, the mean over repeats.
        recommended: the method to use; None when none is better than a constant.
        verdict: the recommendation in words.
        folds: folds of bags.
        repeats: how often the bags were cut into folds.
        notes: what else was found.
    """

    table: pd.DataFrame
    bags: pd.DataFrame
    recommended: str | None
    verdict: str
    folds: int
    repeats: int
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join(
            [self.heading, "", self.text_table(), "", *map(printable, self.notes), printable(self.verdict)]
        )

    __repr__ = __str__

    @property
    def heading(self) -> str:
        """What was done, in a line."""
        again = f", {self.repeats} times" if self.repeats > 1 else ""
        scores = "scores of bags that were held out (gain over a constant: nats a bag)"
        return f"{len(self.bags):,} bags in {self.folds} folds{again}; {scores}"

    def text_table(self) -> str:
        """The table as text."""
        from tabulate import tabulate

        return str(tabulate(self._lines(), headers="keys", disable_numparse=True))

    def to_dict(self) -> dict[str, Any]:
        """All but the scores of single bags, as JSON can hold it."""
        lines = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return {
            "methods": lines,
            "recommended": self.recommended,
            "verdict": self.verdict,
            "bags": len(self.bags),
            "folds": self.folds,
            "repeats": self.repeats,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        import pandas as pd

        table = pd.DataFrame(self._lines()).to_html(index=False, escape=True, border=0)
        words = "".join(f"<p>{escape(printable(text))}</p>" for text in (*self.notes, self.verdict))
        return f"<p>{escape(self.heading)}</p>{table}{words}"

    def _lines(self) -> list[dict[str, str]]:
        lines = []
        for row in self.table.to_dict("records"):
            sound = not row["reason"]
            lines.append(
                {
                    "method": printable(str(row["method"])),
                    "gain": _with_error(row, "gain", "+.3f") if sound else "failed",
                    "behind the best": _with_error(row, "behind", ".3f") if sound else "",
                    "tied": "yes" if row["tied"] else "",
                    "error of proportions": _with_error(row, "error", ".4f"),
                    "seconds": "" if np.isnan(row["seconds"]) else f"{row['seconds']:.2f}",
                }
            )
        return lines


def _with_error(row: dict[Any, Any], name: str, form: str) -> str:
    value, error = row[name], row[f"{name}_se"]
    return "" if np.isnan(value) else f"{value:{form}} ± {error:{form.lstrip('+')}}"


def summarise(
    trials: list[Trial], constant: Trial, *, ids: list[Any], folds: int, repeats: int, notes: tuple[str, ...] = ()
) -> Comparison:
    """Make a comparison of trials on the same bags.

    Args:
        trials: the methods.
        constant: the scores of a constant.
        ids: the bags' ids.
        folds: folds of bags.
        repeats: how often they were cut.
        notes: what else was found.
    """
    import pandas as pd

    sound = [trial for trial in trials if not trial.reason]
    base = constant.log_likelihoods.mean(axis=0)
    gains = {trial.method: trial.log_likelihoods.mean(axis=0) - base for trial in sound}
    order = sorted(gains, key=lambda name: -float(gains[name].mean()))
    best = gains[order[0]] if order else np.zeros(len(base))
    lines = [_line(trial, gains[trial.method], best) for trial in sorted(sound, key=lambda t: order.index(t.method))]
    lines.append(_line(constant, np.zeros(len(base)), best))
    nothing = {name: np.nan for name in lines[0] if name not in ("method", "tied", "seconds", "reason")}
    lines += [
        {"method": t.method, **nothing, "tied": False, "seconds": np.nan, "reason": t.reason}
        for t in trials
        if t.reason
    ]
    table = pd.DataFrame(lines)
    failed = tuple(f"{trial.method} failed: {trial.reason}" for trial in trials if trial.reason)
    recommended, verdict = _recommend({line["method"]: line for line in lines}, order, gains)
    return Comparison(
        table=table,
        bags=pd.DataFrame(gains, index=pd.Index(ids, name="bag", tupleize_cols=False)),
        recommended=recommended,
        verdict=verdict,
        folds=folds,
        repeats=repeats,
        notes=(*notes, *failed),
    )


def _line(trial: Trial, gain: FloatArray, best: FloatArray) -> dict[str, Any]:
    errors = trial.errors.mean(axis=0)
    behind = best - gain
    return {
        "method": trial.method,
        "gain": float(gain.mean()),
        "gain_se": standard_error(gain),
        "behind": float(behind.mean()),
        "behind_se": standard_error(behind),
        "tied": trial.method != CONSTANT and not beyond_chance(behind),
        "error": float(errors.mean()),
        "error_se": standard_error(errors),
        "seconds": float(np.mean(trial.seconds)) if trial.seconds else np.nan,
        "reason": trial.reason,
    }


def standard_error(values: FloatArray) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def beyond_chance(differences: FloatArray) -> bool:
    """Whether the mean is above 0 by more than chance would have it: a t interval of 95 % that leaves 0 out."""
    from scipy.stats import t

    reach = float(t.ppf(0.5 + 0.5 * _CONFIDENCE, len(differences) - 1))
    return float(differences.mean()) > reach * standard_error(differences)


def _recommend(
    lines: dict[str, dict[str, Any]], order: list[str], gains: dict[str, FloatArray]
) -> tuple[str | None, str]:
    """The method to use, if any, and why."""
    if not order:
        return None, "No method could be fitted on these bags."
    best, bags = order[0], len(gains[order[0]])
    few = f" {bags} bags are few: another draw of folds may say otherwise." if bags < FEW_BAGS else ""
    gain = f"{gains[best].mean():+.3f} ± {standard_error(gains[best]):.3f} nats a bag"
    if not beyond_chance(gains[best]):
        return None, (
            "No method explains held-out counts better than a constant does, beyond chance "
            f"(the best, {best}, by {gain}). Do not rely on predictions of single rows unless more bags, or columns "
            "that tell bags apart, show that they are worth something." + few
        )
    tied = [name for name in order[1:] if lines[name]["tied"]]
    words = f"Use {best}: it explains held-out counts better than a constant does ({gain})."
    if tied:
        words += f" {_listing(tied)} {'is' if len(tied) == 1 else 'are'} tied with it."
        quickest = min([best, *tied], key=lambda name: float(lines[name]["seconds"]))
        took, other = lines[quickest]["seconds"], lines[best]["seconds"]
        if took < 0.5 * other:
            words += f" Of these {quickest} is the quickest ({took:.2g} s a fit, {best} {other:.2g} s)."
    elif len(order) > 1:
        words += " No other method is tied with it."
    return best, words + few


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

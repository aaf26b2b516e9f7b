"""The result of a comparison of methods: a table, ties with the best method, and a recommendation."""

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
"""The line of the table for a constant prediction."""
FEW_BAGS = 20
"""Number of bags below which the recommendation says that there are few."""
_CONFIDENCE = 0.95
_CLOSE = 0.1
"""How far an agreement may be below the highest of tied methods."""
_SLOW = 10.0
"""Seconds per fit from which on the time decides between tied methods."""


@dataclass(frozen=True)
class MethodScores:
    """Scores of one method.

    Attributes:
        method: its label.
        log_likelihoods: (repeats, bags) of each held-out bag's counts; empty if the method failed.
        errors: (repeats, bags) error of its proportions.
        seconds: of each fit.
        reason: why the method failed; empty otherwise.
        agreement: agreement of fits on single rows; None for random bags.
        better: whether it is clearly better than a constant, by the rule of ``fit``.
    """

    method: str
    log_likelihoods: FloatArray
    errors: FloatArray
    seconds: tuple[float, ...] = ()
    reason: str = ""
    agreement: float | None = None
    better: bool = False


@dataclass(frozen=True)
class Comparison:
    """Methods compared on held-out bags. Returned by ``llpbench.compare``.

    Attributes:
        table: one line per method, the best first. ``gain`` is the gain of log-likelihood over a constant (nats per
            held-out bag), ``behind`` the difference from the best, ``error`` the mean absolute error of proportions;
            ``_se`` are standard errors over bags, paired for ``behind``. ``tied``: one of several methods that are
            not significantly behind the best. ``better``: clearly better than a constant. ``agreement``: of fits on
            different bags about single rows, 0 to 1 (NaN for random bags). ``seconds`` per fit.
        bags: (bags x methods) gain of each held-out bag, the mean over repeats.
        recommended: the method to use; None if none is better than a constant.
        verdict: the recommendation in words.
        folds: number of folds.
        repeats: number of partitions into folds.
        notes: failures, and remarks on the input.
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
        """A line that describes the comparison."""
        again = f", {self.repeats} repeats" if self.repeats > 1 else ""
        return f"{len(self.bags):,} bags in {self.folds} folds{again}; gain over a constant in nats per held-out bag"

    def text_table(self) -> str:
        """The table as text."""
        from tabulate import tabulate

        return str(tabulate(self._lines(), headers="keys", disable_numparse=True))

    def to_dict(self) -> dict[str, Any]:
        """Everything except the scores of single bags, as JSON values."""
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
                    "agreement": "" if np.isnan(row["agreement"]) else f"{100 * row['agreement']:.0f} %",
                    "error of proportions": _with_error(row, "error", ".4f"),
                    "seconds": "" if np.isnan(row["seconds"]) else f"{row['seconds']:.2f}",
                }
            )
        return lines


def _with_error(row: dict[Any, Any], name: str, form: str) -> str:
    value, error = row[name], row[f"{name}_se"]
    return "" if np.isnan(value) else f"{value:{form}} ± {error:{form.lstrip('+')}}"


def summarise(
    methods: list[MethodScores],
    constant: MethodScores,
    *,
    ids: list[Any],
    folds: int,
    repeats: int,
    notes: tuple[str, ...] = (),
) -> Comparison:
    """Summarise the scores of methods and of a constant on the bags ``ids``."""
    import pandas as pd

    sound = [scores for scores in methods if not scores.reason]
    base = constant.log_likelihoods.mean(axis=0)
    gains = {scores.method: scores.log_likelihoods.mean(axis=0) - base for scores in sound}
    order = sorted(gains, key=lambda name: -float(gains[name].mean()))
    best = gains[order[0]] if order else np.zeros(len(base))
    lines = [_line(scores, gains[scores.method], best) for scores in sorted(sound, key=lambda s: order.index(s.method))]
    lines.append(_line(constant, np.zeros(len(base)), best))
    nothing = {name: np.nan for name in lines[0] if name not in ("method", "tied", "better", "seconds", "reason")}
    lines += [
        {"method": scores.method, **nothing, "tied": False, "better": False, "seconds": np.nan, "reason": scores.reason}
        for scores in methods
        if scores.reason
    ]
    table = pd.DataFrame(lines)
    failed = tuple(f"{scores.method} failed: {scores.reason}" for scores in methods if scores.reason)
    recommended, verdict = _recommend({line["method"]: line for line in lines}, order, gains)
    if table["tied"].sum() == 1:
        table["tied"] = False  # a tie needs two
    return Comparison(
        table=table,
        bags=pd.DataFrame(gains, index=pd.Index(ids, name="bag", tupleize_cols=False)),
        recommended=recommended,
        verdict=verdict,
        folds=folds,
        repeats=repeats,
        notes=(*notes, *failed),
    )


def _line(scores: MethodScores, gain: FloatArray, best: FloatArray) -> dict[str, Any]:
    errors = scores.errors.mean(axis=0)
    behind = best - gain
    return {
        "method": scores.method,
        "gain": float(gain.mean()),
        "gain_se": standard_error(gain),
        "behind": float(behind.mean()),
        "behind_se": standard_error(behind),
        "tied": scores.method != CONSTANT and not beyond_chance(behind),
        "better": scores.better,
        "agreement": np.nan if scores.agreement is None else scores.agreement,
        "error": float(errors.mean()),
        "error_se": standard_error(errors),
        "seconds": float(np.mean(scores.seconds)) if scores.seconds else np.nan,
        "reason": scores.reason,
    }


def standard_error(values: FloatArray) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def beyond_chance(differences: FloatArray) -> bool:
    """Whether the mean is significantly above 0: its 95 % t interval excludes 0."""
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
    few = f" There are only {bags} bags: other folds may give another result." if bags < FEW_BAGS else ""
    tied = [name for name in order if lines[name]["tied"]]
    able = [name for name in tied if lines[name]["better"]]
    if not able:
        return None, (
            "No method explains held-out counts significantly better than a constant "
            f"(the best, {best}, by {_gain(gains[best])}). Do not rely on predictions of single rows; try more bags, "
            "or columns in which bags differ." + few
        )
    chosen = break_tie([lines[name] for name in able])
    words = f"Use {chosen}: it explains held-out counts better than a constant ({_gain(gains[chosen])})"
    words += f" and takes {lines[chosen]['seconds']:.2g} s per fit."
    others = [name for name in tied if name != chosen]
    if others:
        words += f" {_listing(others)} {'is' if len(others) == 1 else 'are'} tied with it by held-out counts"
        words += f"; {chosen} is chosen by gain, agreement on rows and time."
    elif len(order) > 1:
        words += " No other method is tied with it."
    return chosen, words + few


def break_tie(lines: list[dict[str, Any]]) -> str:
    """The method to use among tied ones, the best first.

    Methods whose fits agree much less about single rows, and slow ones where another takes less than half of the time,
    are left out; the others are so close that the held-out gain decides.
    """
    agreed = np.nan_to_num(np.array([line["agreement"] for line in lines]), nan=1.0)
    seconds = np.array([line["seconds"] for line in lines])
    left = agreed >= agreed.max() - _CLOSE
    left &= (seconds <= _SLOW) | (seconds <= 2.0 * seconds[left].min())
    return str(lines[int(np.argmax(left))]["method"])


def _gain(gain: FloatArray) -> str:
    return f"{gain.mean():+.3f} ± {standard_error(gain):.3f} nats per bag"


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

"""The report of a model: what was learned, how it did on bags it did not learn from, what the bags are like."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from llpbench.contracts.specs import Scalar
from llpbench.owndata.judging.facts import FitFacts, HeldBackScore
from llpbench.owndata.reports.importance import ColumnEffect
from llpbench.system.files import write_atomically

_WIDTH = 100
_BAR = 24


@dataclass(frozen=True)
class Report:
    """What is known of a model. ``print`` it, or write it as a page with ``to_html``.

    Attributes:
        method: the method's name.
        params: its parameters.
        classes: the classes.
        columns: names of the table's columns.
        facts: bags, score on held-back bags, calibration, warnings; None for a model file of an older version.
        effects: the columns that matter, the most important first; None when they cannot be told.
        why_no_effects: why they cannot be told.
    """

    method: str
    params: dict[str, Scalar]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    facts: FitFacts | None
    effects: tuple[ColumnEffect, ...] | None = None
    why_no_effects: str = ""

    def __str__(self) -> str:
        parts = [f"{self.method}: {len(self.columns)} columns, classes {', '.join(self.classes)}"]
        if self.facts is None:
            return parts[0] + "\n\nThe file of this model has no report: it was written by an older llpbench."
        parts += [_section("Verdict", [self.verdict()])]
        if self.facts.warnings:
            parts += [_section("Warnings", [f"- {text}" for text in self.facts.warnings])]
        for title, rows in self.tables():
            width = max(len(name) for name, _ in rows)
            parts += [_section(title, [f"{name:<{width}}  {value}" for name, value in rows], wrap=False)]
        parts += [_section("Columns that matter", self._effect_lines(), wrap=self.effects is None)]
        return "\n\n".join(parts)

    def verdict(self) -> str:
        """One sentence: is it better than a constant, and how sure may it be?"""
        if self.facts is None:
            return ""
        score = self.facts.score
        sure = "its probabilities are used as they are" if score.slope > 0.9 else _drawn(score)
        if score.better:
            return f"Better than a constant on {score.bags:,} bags that it did not learn from; {sure}."
        return f"Not clearly better than a constant on {score.bags:,} bags that it did not learn from; {sure}."

    def tables(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The facts as titled lists of names and values, for any form of the report."""
        if self.facts is None:
            return []
        return [
            ("On bags it did not learn from", _score_rows(self.facts.score)),
            ("The bags", self._card_rows()),
            ("Predicted and known proportions", self._calibration_rows()),
        ]

    def html(self) -> str:
        """The report as one page that needs nothing else."""
        from llpbench.owndata.reports.page import make_page

        return make_page(self)

    def to_html(self, path: str | Path) -> Path:
        """Write the page to a file."""
        path = Path(path)
        write_atomically(path, self.html().encode())
        return path

    def _card_rows(self) -> list[tuple[str, str]]:
        assert self.facts is not None
        card = self.facts.card
        shares = ", ".join(f"{name} {_percent(share)}" for name, share in zip(self.classes, card.shares, strict=True))
        return [
            ("bags, rows", f"{card.bags:,}, {card.rows:,}"),
            ("rows of a bag", "{} to {}, middle half {} to {}".format(*(card.sizes[i] for i in (0, 4, 1, 3)))),
            ("shares of the classes", shares),
            ("spread of proportions", f"{_points(max(card.proportion_sd))} points (standard deviation)"),
            ("  against bags at random", f"{card.spread:.2f} times"),
            ("spread of mean features", f"{card.mean_spread:.2f} times that of bags at random"),
        ]

    def _calibration_rows(self, most: int = 8) -> list[tuple[str, str]]:
        assert self.facts is not None
        rows = []
        for label in sorted({point.label for point in self.facts.points}):
            points = [point for point in self.facts.points if point.label == label]
            step = max(len(points) // most, 1)
            for start in range(0, len(points), step):
                some = points[start : start + step]
                bags = sum(point.bags for point in some)
                predicted = sum(point.predicted * point.bags for point in some) / bags
                known = sum(point.known * point.bags for point in some) / bags
                name = f"{self.classes[label]}, {bags} bag{'s' if bags > 1 else ''}"
                rows.append((name, f"predicted {_percent(predicted)}, known {_percent(known)}"))
        return rows

    def _effect_lines(self) -> list[str]:
        if self.effects is None:
            return [f"Not known: {self.why_no_effects}."]
        width = max(len(effect.column) for effect in self.effects)
        top = max(max(effect.loss for effect in self.effects), 1e-12)
        lines = ["held-back log-likelihood of a bag that is lost when a column is shuffled, in nats"]
        for effect in self.effects:
            bar = "█" * round(_BAR * max(effect.loss, 0.0) / top)
            lines.append(f"{effect.column:<{width}}  {effect.loss:+8.3f} ± {effect.sd:.3f}  {bar}".rstrip())
        return lines


def _score_rows(score: HeldBackScore) -> list[tuple[str, str]]:
    bags = (
        "held-back bags and both halves of the others" if score.halved else "held-back bags, which also chose the model"
    )
    rows = [
        ("judged on", f"{score.bags:,} bags: {bags}"),
        ("error of proportions", f"{_points(score.error)} points; a constant {_points(score.constant_error)}"),
        ("  less than the constant's by", f"{_range(score.saved, 100.0, 1)} points (90 %)"),
        ("spread that it explains", f"{100 * score.explained:.0f} %"),
        ("gain over the constant", f"{score.gain:.3f} nats for a bag, {_range(score.gains, 1.0, 3)} (90 %)"),
        ("  in standard deviations", f"{score.z:.1f}"),
        ("spread that is left", f"{score.spread:.2f} times that of chance"),
        ("own logits that are left", f"{100 * score.slope:.0f} %"),
    ]
    if score.agreement is not None:
        rows.append(("agreement of halves on rows", f"{100 * score.agreement:.0f} %"))
    return rows


def _drawn(score: HeldBackScore) -> str:
    if score.slope < 0.005:
        return "its probabilities are the overall shares"
    return f"its probabilities are drawn towards the overall shares ({100 * score.slope:.0f} % of its logits are left)"


def _section(title: str, lines: list[str], *, wrap: bool = True) -> str:
    if wrap:
        lines = [part for line in lines for part in textwrap.wrap(line, _WIDTH - 2, subsequent_indent="  ") or [""]]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _range(interval: tuple[float, float], factor: float, digits: int) -> str:
    low, high = (value * factor for value in interval)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100.0 * share:.1f}"

"""The report of a model: score on held-out bags, what the bags are like, and the importance of columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.specs import Scalar
from llpbench.data.encoding.encoder import TableEncoder
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.fitting import FitRecord
from llpbench.owndata.judging.assessment import UnseenBags, judged_by
from llpbench.owndata.judging.facts import NO_FACTS, FitFacts, HeldOutScore, points
from llpbench.owndata.judging.shrinkage import join
from llpbench.owndata.judging.spread import bag_log_likelihood
from llpbench.owndata.model_file import Header
from llpbench.owndata.reading.frames import FrameEncoder
from llpbench.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 100
_BAR = 24
_SHUFFLES = 5
_FEW_COLUMNS, _FEW_SHUFFLES = 40, 2
"""Number of columns above which they are shuffled less often."""
_MOST_PREDICTIONS = 2_000_000
"""Rows times columns times shuffles above which the importance of columns is computed on some of the bags."""
_LEAST_BAGS = 20


@dataclass(frozen=True)
class ColumnEffect:
    """Permutation importance of a column.

    Attributes:
        column: its name.
        loss: loss of log-likelihood per held-out bag if its values are shuffled, in nats; mean over shuffles.
        sd: standard deviation over shuffles.
    """

    column: str
    loss: float
    sd: float


@dataclass(frozen=True)
class Report:
    """What is known about a model. ``print`` it, or write it as a page with ``to_html``.

    Attributes:
        method: the method's name.
        params: its parameters.
        classes: the classes.
        columns: names of the table's columns.
        facts: bags, score on held-out bags, calibration, warnings; None for a model file of an older version.
        effects: importance of the columns, the largest first; None if unknown.
        why_no_effects: why it is unknown.
        proportions: (bags, C) known proportions; None for a loaded model.
    """

    method: str
    params: dict[str, Scalar]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    facts: FitFacts | None
    effects: tuple[ColumnEffect, ...] | None = None
    why_no_effects: str = ""
    proportions: FloatArray | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        parts = [f"{self.method}: {len(self.columns)} columns, classes {', '.join(self.classes)}"]
        if self.facts is None:
            return f"{parts[0]}\n\n{NO_FACTS}"
        parts += [_section("Verdict", [self.verdict()])]
        if self.facts.warnings:
            parts += [_section("Warnings", [f"- {text}" for text in self.facts.warnings])]
        for title, rows in self.tables():
            width = max(len(name) for name, _ in rows)
            parts += [_section(title, [f"{name:<{width}}  {value}" for name, value in rows], wrap=False)]
        parts += [_section("Importance of columns", self._effect_lines(), wrap=self.effects is None)]
        return "\n\n".join(parts)

    @property
    def is_better(self) -> bool:
        """Whether the model is clearly better than a constant."""
        return self.facts is not None and self.facts.score.better

    def verdict(self) -> str:
        """One sentence: whether it is better than a constant, and how far its probabilities are shrunk."""
        if self.facts is None:
            return ""
        score = self.facts.score
        better = "Better" if score.better else "Not clearly better"
        if score.slope > 0.9:
            sure = "its probabilities are used as they are"
        elif score.slope < 0.005:
            sure = "its probabilities are the overall shares"
        else:
            sure = (
                "its probabilities are shrunk towards the overall shares "
                f"({100 * score.slope:.0f} % of its logits are kept)"
            )
        return f"{better} than a constant on {score.bags:,} held-out bag{'s' if score.bags != 1 else ''}; {sure}."

    def tables(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The facts as titled lists of names and values."""
        if self.facts is None:
            return []
        return [
            ("On held-out bags", _score_rows(self.facts.score)),
            ("The bags", self._card_rows()),
            ("Predicted and known proportions", self._calibration_rows()),
        ]

    def html(self) -> str:
        """The report as a self-contained page."""
        from llpbench.owndata.report_page import make_page

        return make_page(self)

    def _repr_html_(self) -> str:
        from llpbench.owndata.report_page import make_frame

        return make_frame(self.html(), self.method)

    def plot(self) -> Figure:
        """A figure of the known proportions, of predicted and known ones of held-out bags, and of the columns.

        Needs matplotlib: ``pip install 'llpbench[plot]'``.
        """
        from llpbench.owndata.report_figure import make_figure

        return make_figure(self)

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
            ("bag size", "{} to {}, middle half {} to {}".format(*(card.sizes[i] for i in (0, 4, 1, 3)))),
            ("shares of the classes", shares),
            ("spread of proportions", f"{points(max(card.proportion_sd))} percentage points (standard deviation)"),
            ("  relative to random bags", f"{card.spread:.2f} times"),
            ("spread of mean features", f"{card.mean_spread:.2f} times that of random bags"),
        ]

    def _calibration_rows(self, most: int = 8) -> list[tuple[str, str]]:
        assert self.facts is not None
        rows = []
        for label in sorted({point.label for point in self.facts.points}):
            own = [point for point in self.facts.points if point.label == label]
            step = max(len(own) // most, 1)
            for start in range(0, len(own), step):
                some = own[start : start + step]
                bags = sum(point.bags for point in some)
                predicted = sum(point.predicted * point.bags for point in some) / bags
                known = sum(point.known * point.bags for point in some) / bags
                name = f"{self.classes[label]}, {bags} bag{'s' if bags > 1 else ''}"
                rows.append((name, f"predicted {_percent(predicted)}, known {_percent(known)}"))
        return rows

    def _effect_lines(self) -> list[str]:
        if self.effects is None:
            return [f"Unknown: {self.why_no_effects}."]
        width = max(len(effect.column) for effect in self.effects)
        top = max(max(effect.loss for effect in self.effects), 1e-12)
        lines = ["loss of log-likelihood per held-out bag if the column is shuffled, in nats"]
        for effect in self.effects:
            bar = "█" * round(_BAR * max(effect.loss, 0.0) / top) if self.is_better else ""
            lines.append(f"{effect.column:<{width}}  {effect.loss:+8.3f} ± {effect.sd:.3f}  {bar}".rstrip())
        return lines


def _score_rows(score: HeldOutScore) -> list[tuple[str, str]]:
    bags = "held-out bags and halves of the others" if score.halved else "the bags that also selected the model"
    rows = [
        ("scored on", f"{score.bags:,} bags: {bags}"),
        (
            "error of proportions",
            f"{points(score.error)} percentage points; a constant {points(score.constant_error)}",
        ),
        ("  reduction", f"{_range(score.saved, 100.0, 1)} percentage points (90 %)"),
        ("explained variance", f"{100 * score.explained:.0f} %"),
        ("gain over a constant", f"{score.gain:.3f} nats per bag, {_range(score.gains, 1.0, 3)} (90 %)"),
        ("  in standard deviations", f"{score.z:.1f}"),
        ("remaining spread", f"{score.spread:.2f} times that of chance"),
        ("logits kept", f"{100 * score.slope:.0f} %"),
    ]
    if score.agreement is not None:
        rows.append(("agreement on rows", f"{100 * score.agreement:.0f} %"))
    return rows


def _section(title: str, lines: list[str], *, wrap: bool = True) -> str:
    if wrap:
        lines = [part for line in lines for part in textwrap.wrap(line, _WIDTH - 2, subsequent_indent="  ") or [""]]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _range(interval: tuple[float, float], factor: float, digits: int) -> str:
    low, high = (value * factor for value in interval)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def make_report(header: Header, memory: FitRecord | None) -> Report:
    """The report of a model, from the content of its file and, unless it was loaded, what is in memory."""
    why, effects = "", None
    if memory is None or header.facts is None:
        why = "it is computed on rows of held-out bags, which a model file does not contain; use the fitted model"
    elif header.facts.score.slope == 0:
        why = "the model's probabilities are the same for every row"
    elif header.facts.score.bags < 2:
        why = "the model was scored on one bag, and shuffling rows inside a bag has no effect"
    else:
        score, unseen = header.facts.score, judged_by(memory.main, memory.halves)
        seed = derive_seed("shuffles", seed=header.seed)
        effects = column_effects(unseen, score.slope, score.phi, feature_blocks(header.encoder), seed)
    return Report(
        method=header.method,
        params=dict(header.params),
        classes=tuple(map(str, header.classes)),
        columns=tuple(header.encoder.names),
        facts=header.facts,
        effects=effects,
        why_no_effects=why,
        proportions=None if memory is None else all_classes(memory.trainer.counts / memory.trainer.bags.sizes[:, None]),
    )


def feature_blocks(encoder: FrameEncoder) -> list[tuple[str, slice]]:
    """The features of each column of the table."""
    blocks, start = [], 0
    for column in encoder.columns:
        width = 1 if encoder.encoding == "none" else TableEncoder((column,)).width
        blocks.append((column.name, slice(start, start + width)))
        start += width
    return blocks


def column_effects(
    unseen: Sequence[UnseenBags], slope: float, phi: float, blocks: Sequence[tuple[str, slice]], seed: int
) -> tuple[ColumnEffect, ...]:
    """Permutation importance of each column on bags that the models were not fitted on, the largest first.

    The values of a column are shuffled over the rows of all bags, since shuffling inside a bag keeps its mean. Columns
    with the same information replace each other, so that each looks unimportant. Of large tables some bags are used.

    Args:
        unseen: models with bags that they were not fitted on.
        slope: the slope of the probabilities.
        phi: the intraclass correlation that the model leaves.
        blocks: the features of each column.
        seed: seed of the shuffles.
    """
    shuffles = _SHUFFLES if len(blocks) <= _FEW_COLUMNS else _FEW_SHUFFLES
    unseen = _some_bags(unseen, _MOST_PREDICTIONS // (shuffles * max(len(blocks), 1)), seed)
    rows = np.concatenate([part.bags.X for part in unseen])
    ends = np.cumsum([len(part.bags.X) for part in unseen])[:-1]
    whole = _likelihood(unseen, np.split(rows, ends), slope, phi)
    found = []
    for number, (name, block) in enumerate(blocks):
        losses = []
        for shuffle in range(shuffles):
            order = np.random.default_rng([seed, number, shuffle]).permutation(len(rows))
            changed = rows.copy()
            changed[:, block] = rows[order][:, block]
            losses.append(whole - _likelihood(unseen, np.split(changed, ends), slope, phi))
        found.append(ColumnEffect(name, float(np.mean(losses)), float(np.std(losses))))
    return tuple(sorted(found, key=lambda effect: -effect.loss))


def _some_bags(unseen: Sequence[UnseenBags], most_rows: int, seed: int) -> list[UnseenBags]:
    """The same models with bags drawn at random: about ``most_rows`` rows, but at least twenty bags of each model."""
    share = most_rows / sum(len(part.bags.X) for part in unseen)
    if share >= 1.0 or any(part.bags.overlap is not None for part in unseen):
        return list(unseen)
    rng = np.random.default_rng([seed, len(unseen)])
    kept = []
    for part in unseen:
        bags = part.bags
        number = min(max(round(share * len(bags)), _LEAST_BAGS), len(bags))
        chosen = np.sort(rng.permutation(len(bags))[:number])
        rows = np.concatenate([np.arange(bags.offsets[b], bags.offsets[b + 1]) for b in chosen])
        offsets = np.concatenate([[0], np.cumsum(bags.sizes[chosen])])
        taken = replace(bags, X=bags.X[rows], offsets=offsets, counts=bags.counts[chosen])
        kept.append(replace(part, bags=taken, unseen_logits=part.unseen_logits[rows]))
    return kept


def _likelihood(unseen: Sequence[UnseenBags], rows: Sequence[FloatArray], slope: float, phi: float) -> float:
    """Mean log-likelihood of a bag whose rows have the given features."""
    judged = join([part.with_rows(own).at([slope]) for part, own in zip(unseen, rows, strict=True)])
    shares = judged.shares.mean(axis=0)
    return float(bag_log_likelihood(judged.known, judged.means[0], judged.within[0], shares, phi).mean())

"""The bag card of a setting (``contracts/bag_card.py``), computed from rows in bags and their true labels.

Proportions. With ``B_b`` the size of bag ``b``, ``a_bc`` its share of class ``c``, ``p_c`` that of all rows in bags and
``n`` bags of ``C`` classes, Pearson's statistic divided by its degrees of freedom,

    phi = Σ_b B_b Σ_c (a_bc − p_c)² / p_c / ((n − 1) (C − 1)),

has the mean ``N / (N − 1)``, practically 1, when rows are put into bags at random, whatever the sizes. The spread is
``sqrt(phi)``: how many times wider proportions lie than those of random bags.

Features. Each is divided by its standard deviation over all rows in bags. The separation is the square root of the mean
squared distance of two rows of different bags (the mean over pairs of bags) over that of two rows of one bag (the mean
over bags): 1 for random bags. With ``m_b`` the mean row of a bag and ``q_b`` its mean squared length both are sums over
bags, so no pair of rows is ever looked at:

    between: mean over b ≠ c of  q_b + q_c − 2 m_b · m_c        within: mean of  2 (q_b − |m_b|²) B_b / (B_b − 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from llpbench.contracts.bag_card import SIZE_PERCENTILES, BagCard
from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.job import Job
from llpbench.experiment.forming import Formed, form_bags, uses_labels
from llpbench.experiment.grid import plan_bags
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import Registry

_ROWS_AT_ONCE = 8192


def survey_bags(
    spec: RunSettings, registry: Registry, *, data: str = "", offline: bool = False
) -> Iterator[tuple[Planned, Formed, BagCard, dict[str, BagCard]]]:
    """The bags of a request, their card and those of several groupings; the methods of ``spec`` are ignored."""
    for plan in plan_bags(spec, registry):
        job = Job(cell=plan.cell, method_name="", dataset_name=plan.dataset_name, out="", data=data, offline=offline)
        formed = form_bags(job, load_split(job, registry.datasets[plan.cell.dataset]), registry)
        card = card_of(formed, uses_labels=uses_labels(plan.cell, registry))
        yield plan, formed, card, grouping_cards(formed)


def card_of(formed: Formed, *, uses_labels: bool) -> BagCard:
    """The card of the training bags, from their true labels (counts may be noisy).

    That of several groupings describes all their bags together and has no separation; ``grouping_cards`` has the rest.
    """
    bags, labels = formed.bags, formed.train_labels
    facts: dict[str, Any] = {"classes": bags.classes, "left_out": formed.left_out, "uses_labels": uses_labels}
    if bags.overlap is None:
        return make_card(bags.X, bags.offsets, labels, **facts)
    nothing = np.zeros((len(bags.members), 0), np.float32)
    return replace(make_card(nothing, bags.offsets, labels[bags.members], **facts), rows=len(labels))


def grouping_cards(formed: Formed) -> dict[str, BagCard]:
    """The card of each of several groupings by name; empty for a single one."""
    bags = formed.bags
    if bags.overlap is None:
        return {}
    rows = len(bags.X) / (1.0 - formed.left_out)
    found = {}
    for number, name in enumerate(bags.groupings):
        first, last = np.searchsorted(bags.grouping_of, [number, number + 1])
        offsets = bags.offsets[first : last + 1]
        members = bags.members[offsets[0] : offsets[-1]]
        labels, left_out = formed.train_labels[members], max(0.0, 1.0 - len(members) / rows)
        found[name] = make_card(bags.X[members], offsets - offsets[0], labels, classes=bags.classes, left_out=left_out)
    return found


def make_card(
    X: FloatArray,
    offsets: IntArray,
    labels: IntArray,
    *,
    classes: int = 2,
    left_out: float = 0.0,
    uses_labels: bool = False,
) -> BagCard:
    """The card of bags whose rows ``X`` and true ``labels`` are sorted by bag.

    ``left_out`` is the share of rows without a bag; ``uses_labels`` says whether the scheme saw labels.
    """
    sizes = np.diff(offsets)
    indicator = (labels[:, None] == np.arange(classes)).astype(np.float64)
    shares = np.add.reduceat(indicator, offsets[:-1], axis=0) / sizes[:, None]
    shown = shares[:, 1:] if classes == 2 else shares
    sd = math.sqrt(float(shown.var(axis=0, ddof=1).mean())) if len(sizes) > 1 else 0.0
    return BagCard(
        bags=len(sizes),
        rows=len(labels),
        left_out=left_out,
        sizes=tuple(float(size) for size in np.percentile(sizes, SIZE_PERCENTILES)),
        proportion_sd=sd,
        spread=pearson_spread(shares, sizes),
        separation=separation(X.reshape(len(X), -1), offsets),
        uses_labels=uses_labels,
    )


def pearson_spread(known: FloatArray, sizes: IntArray) -> float | None:
    """The spread of true proportions (bags, C) relative to random bags of these sizes; None for one bag or one class.

    The root of Pearson's statistic over its degrees of freedom; rare classes count as much as common ones.
    """
    overall = np.average(known, axis=0, weights=sizes)
    there = overall > 0
    freedom = (len(sizes) - 1) * (int(there.sum()) - 1)
    if freedom == 0:
        return None
    apart = (known[:, there] - overall[there]) ** 2 / overall[there]
    return math.sqrt(float((sizes * apart.sum(axis=1)).sum()) / freedom)


def separation(X: FloatArray, offsets: IntArray) -> float | None:
    """Distance between rows of different bags relative to rows of one bag; None for one bag, or bags of one row."""
    sizes = np.diff(offsets)
    several = sizes > 1
    if len(sizes) < 2 or not several.any():
        return None
    centre, scale = _centre_and_scale(X)
    means = np.zeros((len(sizes), X.shape[1]))
    lengths = np.zeros(len(sizes))
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = (X[start : start + _ROWS_AT_ONCE].astype(np.float64) - centre) * scale
        bags = bag_of[start : start + _ROWS_AT_ONCE]
        firsts = np.flatnonzero(np.diff(bags, prepend=-1))
        means[bags[firsts]] += np.add.reduceat(rows, firsts, axis=0)
        lengths[bags[firsts]] += np.add.reduceat((rows**2).sum(axis=1), firsts)
    means /= sizes[:, None]
    lengths /= sizes
    own = (means**2).sum(axis=1)
    n, total = len(sizes), means.sum(axis=0)
    between = 2 * lengths.mean() - 2 * (float(total @ total) - float(own.sum())) / (n * (n - 1))
    inside = sizes[several]
    within = float(np.mean(2 * (lengths - own)[several] * inside / (inside - 1)))
    return math.sqrt(max(between, 0.0) / within) if within > 0 else None


def _centre_and_scale(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each feature, and the inverse of its standard deviation (0 for a constant one).

    Computed in pieces, so that a table of images is never copied.
    """
    n, centre = len(X), X.mean(axis=0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    for start in range(0, n, _ROWS_AT_ONCE):
        squares += ((X[start : start + _ROWS_AT_ONCE].astype(np.float64) - centre) ** 2).sum(axis=0)
    sd = np.sqrt(squares / n)
    there = sd > 1e-9 * np.maximum(1.0, np.abs(centre))
    return centre, np.where(there, 1.0 / np.where(there, sd, 1.0), 0.0)

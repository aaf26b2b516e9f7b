"""Averaging over settings: above its critical strength the similarity term freezes clusters, and which ones is chance.

The mean log-odds of several runs keeps what they agree on. One neighbour search serves all runs, and each run is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags
from llpbench_methods.bp.labelling import Labelling
from llpbench_methods.bp_field.labelling import label_marginals
from llpbench_methods.bp_field.params import FieldSettings
from llpbench_methods.inference import Marginals, SimilarityGraph

Floats = NDArray[np.float64]
NEIGHBOURS = (0.5, 1.0, 2.0)
"""Factors on `k`."""
STRENGTHS = (1.0, 1.2, 1.45)
"""Factors on the weight of the similarity term."""
ROUNDS = 0.2
"""The share of the rounds that one of several runs has."""
CERTAIN = 6.0
"""Log-odds beyond this are cut before they are averaged, so that no run outvotes the others by being sure."""


@dataclass(frozen=True)
class Member:
    """One run: neighbours of each row, and what multiplies the weight of the similarity term."""

    k: int
    strength: float = 1.0


def members_of(settings: FieldSettings, classes: int, *, field: bool) -> tuple[Member, ...]:
    """The runs that are averaged: nine, or the one of the settings.

    Args:
        settings: `ensemble` says when there are nine: `on` always, `auto` where there is no field, `off` never.
        classes: more than two have a single run, because a run takes as much longer as there are classes.
        field: whether rows have a prior.
    """
    if classes > 2 or settings.ensemble == "off" or (settings.ensemble == "auto" and field):
        return (Member(settings.k),)
    neighbours = sorted({max(1, round(share * settings.k)) for share in NEIGHBOURS})
    return tuple(Member(k, strength) for k in neighbours for strength in STRENGTHS)


def label_by_all(
    members: Sequence[Member],
    graph_of: Callable[[int], SimilarityGraph],
    bags: Bags,
    settings: FieldSettings,
    *,
    fields: Floats | None = None,
    threads: int = 1,
) -> Labelling:
    """Run belief propagation for every member, and average.

    Args:
        members: the runs; a single one has all the rounds and its result is returned as it is.
        graph_of: gives the graph of a number of neighbours.
        bags: bags and counts.
        settings: all else.
        fields: prior of the rows, the same for all runs.
        threads: cores to use.
    """
    if len(members) > 1:
        settings = replace(settings, rounds=max(1, round(ROUNDS * settings.rounds)))
    found = []
    for k, runs in groupby(members, key=lambda member: member.k):
        graph = graph_of(k)
        for run in runs:
            strength = run.strength
            found.append(label_marginals(graph, bags, settings, fields=fields, strength=strength, threads=threads))
    return found[0] if len(found) == 1 else average(found)


def average(found: Sequence[Labelling]) -> Labelling:
    """The mean of the cut log-odds of two classes; of what else the runs report, the least favourable."""
    runs = [one.marginals for one in found]
    log_odds = np.mean([np.clip(run.log_odds, -CERTAIN, CERTAIN) for run in runs], axis=0)
    slowest = max(runs, key=lambda run: float(run.residuals[-1]))
    together = Marginals(
        beliefs=np.asarray(0.5 * (1.0 + np.tanh(0.5 * log_odds))),
        log_odds=log_odds,
        residuals=slowest.residuals,
        converged=all(run.converged for run in runs),
        rounds=sum(run.rounds for run in runs),
        damping=slowest.damping,
        stability=max(run.stability for run in runs),
        build_seconds=sum(run.build_seconds for run in runs),
        run_seconds=sum(run.run_seconds for run in runs),
    )
    return Labelling(together, next((one.warning for one in found if one.warning), ""))

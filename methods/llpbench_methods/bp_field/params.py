"""The declared parameters of `bp-field`: those of `bp` with other defaults, and its own. Light to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from llpbench import Param
from llpbench_methods.bp.params import BPSettings, model_params
from llpbench_methods.nets.params import NetworkSettings, network_params


@dataclass(frozen=True)
class FieldSettings(BPSettings):
    """Settings of the pseudo-labels and their use; `field_params` documents them."""

    lambda_s: float | Literal["auto"] = "auto"
    k: int = 10
    length_scale: float | Literal["median"] = "median"
    edge_rule: Literal["union", "sum"] = "union"
    engine: str = "count"
    rounds: int = 200
    damping: float | Literal["auto"] = "auto"
    tau: float | Literal["rate", "top-count"] = "top-count"
    lambda_a: float = 100.0
    agg_reduction: Literal["mean", "sum"] = "mean"
    gain: float | Literal["auto"] = "auto"
    normalise: bool = True
    relaxed: Literal["evidence", "auto", "on", "off"] = "evidence"
    ensemble: Literal["auto", "on", "off"] = "auto"
    covariates: Literal["both", "embeddings"] = "both"
    tempered: bool = False


NETWORK = NetworkSettings(weight_decay=10.0)
"""The shared settings, with the rate tuned on held-out bags (docs/terms.md), and a decay that keeps the network from
learning the labels' errors: Adam's steps are at most about `lr`, so no weight grows beyond `1 / weight_decay`. With C
classes the decay is divided by C - 1: ten classes are not told apart by weights that small."""


def no_pairs(dataset: str, bag_size: int) -> dict[str, float]:  # noqa: ARG001
    """Preset in which pairs have almost no weight; field and counts are as usual."""
    return {"gain": 0.01}


def field_params() -> tuple[Param, ...]:
    """All parameters of `bp-field`: those of `bp`, some with other defaults and choices, and its own among them."""
    default = FieldSettings()
    shared = {
        param.name: replace(param, default=getattr(default, param.name), **_CHANGES.get(param.name, {}))
        for param in model_params(counting=True)
    }

    def among(first: str, last: str) -> Sequence[Param]:
        names = list(shared)
        return [shared[name] for name in names[names.index(first) : names.index(last) + 1]]

    return (
        Param(
            "gain",
            default.gain,
            low=0.01,
            high=10.0,
            log=True,
            choices=("auto",),
            doc="strength of the similarity term, as the share of a row's log-odds that returns through its "
            "neighbours: lambda_s = gain / (2 p (1 - p)), p the rate of positives; below 1 the effect of a count "
            "decays along the graph, above 1 it sustains itself; auto is 0.3 with a relaxed field, 0 with a regression "
            "alone and 1.1 without a prior",
        ),
        *among("lambda_s", "nu"),
        Param(
            "normalise",
            default.normalise,
            doc="scale k_ij to d_i k_ij d_j so that the similarities of every row sum to 1; without it well-connected "
            "rows drift to the frequent label",
        ),
        *among("search", "mode"),
        Param(
            "relaxed",
            default.relaxed,
            choices=("evidence", "auto", "on", "off"),
            doc="prior of each row. evidence: a regression on bag means, plus a field that is smooth along the graph "
            "and explains what is left of the counts, if in cross-validation over bags it predicts counts clearly "
            "better than the regression; on: a field without regression; auto: the same, but no prior if it predicts "
            "counts clearly worse than the overall rate; off: no prior",
        ),
        Param(
            "ensemble",
            default.ensemble,
            choices=("auto", "on", "off"),
            doc="two classes: average the log-odds of nine runs, of k/2, k and 2k neighbours and of 1, 1.2 and 1.45 "
            "times the gain, each with a fifth of the rounds; auto averages if there is no relaxed field",
        ),
        *among("rounds", "iterations"),
        Param(
            "covariates",
            default.covariates,
            choices=("both", "embeddings"),
            doc="space of the neighbour search after the first iteration: features and the network's embeddings "
            "together, or the embeddings alone",
        ),
        *among("lambda_a", "instance_head"),
        Param(
            "tempered",
            default.tempered,
            doc="divide the network's logits by a temperature fitted on held-out bags at every report; useful with "
            "little weight decay, where wrong pseudo-labels make the network overconfident",
            omit_default=True,
        ),
        *_NETWORK,
    )


_CHANGES: dict[str, dict[str, Any]] = {
    "lambda_s": {
        "choices": ("auto",),
        "doc": "weight of the similarity term -lambda_s k_ij (y_i - y_j)^2; auto uses gain",
    },
    "lambda_b": {
        "doc": "weight of the bag term -lambda_b (sum y - count)^2; auto is 1 (with noise of known sd s at most "
        "1/(2 s^2)), and for pairwise engines small enough for the messages to converge",
    },
    "damping": {
        "doc": "share of the old message that is kept; auto uses 0 with counting engines, and otherwise raises it "
        "until the messages converge",
    },
    "tau": {
        "choices": ("top-count",),
        "doc": "threshold on the marginal for label 1 (more than two classes: the most likely class); top-count gives "
        "every bag as many positives as its count",
    },
    "lambda_a": {"doc": "weight of the bag loss in the network's loss"},
}
"""Differences to the parameters of `bp`, besides defaults."""

_NETWORK = tuple(
    replace(param, doc=f"{param.doc}; divided by C - 1 for C classes, which need larger weights")
    if param.name == "weight_decay"
    else param
    for param in network_params(NETWORK, high={"weight_decay": 100.0})
)

"""The declared parameters of `bp`, light to import: the model, the graph, inference, pseudo-labels, the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llpbench import Param
from llpbench_methods.inference.engines import all_engines
from llpbench_methods.nets.params import NetworkSettings, network_params


@dataclass(frozen=True)
class BPSettings:
    """How pseudo-labels are made and used; `bp_params` says what each setting means."""

    gain: float | Literal["auto"] = "auto"
    lambda_s: float | Literal["auto"] = "auto"
    lambda_b: float | Literal["auto"] = "auto"
    lambda_o: float = 1.0
    k: int = 10
    delta_d: float | None = None
    distance: Literal["cosine", "euclidean"] = "cosine"
    kernel: Literal["matern", "rbf"] = "matern"
    length_scale: float | Literal["median"] = "median"
    nu: float = 0.5
    normalise: bool = True
    search: Literal["auto", "exact", "approximate"] = "auto"
    edge_rule: Literal["union", "sum"] = "union"
    edges_kept: float = 1.0
    edge_filter_max_count: float | None = None
    engine: str = "count"
    mode: Literal["sum", "max"] = "sum"
    relaxed: Literal["auto", "on", "off"] = "auto"
    ensemble: Literal["auto", "on", "off"] = "auto"
    rounds: int = 200
    damping: float | Literal["auto"] = "auto"
    tau: float | Literal["top-count"] = "top-count"
    labels: Literal["hard", "soft", "weighted"] = "hard"
    iterations: int = 2
    covariates: Literal["both", "embeddings"] = "both"
    lambda_a: float = 100.0
    pooling: Literal["mean", "attention"] = "mean"
    agg_reduction: Literal["mean", "sum"] = "mean"
    instance_head: Literal["hidden", "direct"] = "hidden"
    tempered: bool = False


_DEFAULT = BPSettings()

NETWORK = NetworkSettings(weight_decay=10.0)
"""The shared settings, with the rate tuned on held-out bags (docs/terms.md), and a decay that keeps the network from
learning the labels' errors: Adam's steps are at most about `lr`, so no weight grows beyond `1 / weight_decay`. With C
classes the decay is divided by C - 1: ten classes are not told apart by weights that small (docs/ablations.md)."""

_MODEL = (
    Param(
        "gain",
        _DEFAULT.gain,
        low=0.01,
        high=10.0,
        log=True,
        choices=("auto",),
        doc="strength of the similarity term, as the share of a row's log-odds that returns through its neighbours: "
        "lambda_s = gain / (2 p (1 - p)), p the rate of positives; below 1 the effect of a count decays along the "
        "graph, above 1 it sustains itself; auto is 0.3 with a relaxed field and 1.1 without",
    ),
    Param(
        "lambda_s",
        _DEFAULT.lambda_s,
        low=1e-4,
        high=200.0,
        log=True,
        choices=("auto",),
        doc="weight of the similarity term -lambda_s k_ij (y_i - y_j)^2 (paper: 1e-4 to 200); auto uses gain",
    ),
    Param(
        "lambda_b",
        _DEFAULT.lambda_b,
        low=1e-4,
        high=200.0,
        log=True,
        choices=("auto",),
        doc="weight of the bag term -lambda_b (sum y - count)^2 (paper: 1e-4 to 200); auto is 1 (with noise of known "
        "sd s at most 1/(2 s^2)), and for pairwise engines small enough for the messages to converge",
    ),
    Param(
        "lambda_o",
        _DEFAULT.lambda_o,
        low=1e-4,
        high=200.0,
        log=True,
        doc="weight of 'one label per row' (more than two classes, pairwise engines; exact in counting engines)",
    ),
)

_GRAPH = (
    Param("k", _DEFAULT.k, low=1, high=30, doc="number of nearest neighbours of each row (paper: 1 to 30)"),
    Param(
        "delta_d",
        _DEFAULT.delta_d,
        low=1e-4,
        high=2.0,
        log=True,
        doc="maximum distance of a neighbour; none keeps all neighbours (paper: cosine distance 1e-4 to 1)",
    ),
    Param("distance", _DEFAULT.distance, choices=("cosine", "euclidean"), doc="metric of the neighbour search"),
    Param(
        "kernel", _DEFAULT.kernel, choices=("matern", "rbf"), doc="similarity k_ij, a function of Euclidean distance"
    ),
    Param(
        "length_scale",
        _DEFAULT.length_scale,
        low=1e-3,
        high=1e3,
        log=True,
        choices=("median",),
        doc="length scale l of the kernel (rbf: exp(-d^2 / (2 l^2))); median uses the median distance of the pairs",
    ),
    Param("nu", _DEFAULT.nu, low=0.1, high=20.0, log=True, doc="smoothness of the Matern kernel; 0.5 is exp(-d / l)"),
    Param(
        "normalise",
        _DEFAULT.normalise,
        doc="scale k_ij to d_i k_ij d_j so that the similarities of every row sum to 1; without it (the paper's "
        "formula) well-connected rows drift to the frequent label",
    ),
    Param(
        "search",
        _DEFAULT.search,
        choices=("auto", "exact", "approximate"),
        doc="neighbour search: exact, or by inverted lists (95 % of the neighbours in a third of the time); "
        "auto is exact up to 20,000 rows",
        tune=False,
    ),
    Param(
        "edge_rule",
        _DEFAULT.edge_rule,
        choices=("union", "sum"),
        doc="whether a mutual pair of neighbours counts once (union) or twice (sum)",
    ),
    Param(
        "edges_kept",
        _DEFAULT.edges_kept,
        low=0.0,
        high=1.0,
        doc="share of the similarity pairs to keep, drawn at random",
    ),
    Param(
        "edge_filter_max_count",
        _DEFAULT.edge_filter_max_count,
        low=0,
        kind="float",
        doc="use only neighbours chosen by rows of bags with at most this count (1 in the released code); none uses "
        "all; two classes only",
    ),
)


def _engine() -> Param:
    """The parameter `engine`; made when asked for, because a plugin may have added an engine."""
    engines = all_engines()
    return Param(
        "engine",
        _DEFAULT.engine,
        choices=tuple(engine.name for engine in engines),
        doc="; ".join(f"{engine.name}: {engine.summary}" for engine in engines),
        tune=False,
    )


_INFERENCE = (
    Param("mode", _DEFAULT.mode, choices=("sum", "max"), doc="sum-product (marginals) or max-product (MAP)"),
    Param(
        "relaxed",
        _DEFAULT.relaxed,
        choices=("auto", "on", "off"),
        doc="use real-valued labels that are smooth along the graph and explain the counts as the prior of each row; "
        "auto omits them if, in cross-validation over bags, they predict counts clearly worse than the overall rate",
    ),
    Param(
        "ensemble",
        _DEFAULT.ensemble,
        choices=("auto", "on", "off"),
        doc="two classes: average the log-odds of nine runs, of k/2, k and 2k neighbours and of 1, 1.2 and 1.45 times "
        "the gain, each with a fifth of the rounds; auto averages if there is no relaxed field",
    ),
    Param(
        "rounds",
        _DEFAULT.rounds,
        low=1,
        high=1000,
        log=True,
        doc="maximum number of message rounds, T (paper: 50, 100 or 200)",
    ),
    Param(
        "damping",
        _DEFAULT.damping,
        low=0.0,
        high=0.999,
        choices=("auto",),
        doc="share of the old message that is kept (paper: 0.5); auto uses 0 with counting engines, and otherwise "
        "raises it until the messages converge",
    ),
)

_LABELS = (
    Param(
        "tau",
        _DEFAULT.tau,
        low=0.0,
        high=1.0,
        choices=("top-count",),
        doc="threshold on the marginal for label 1 (paper: 0 to 1; more than two classes: the most likely class); "
        "top-count gives every bag as many positives as its count",
    ),
    Param(
        "labels",
        _DEFAULT.labels,
        choices=("hard", "soft", "weighted"),
        doc="training targets: hard pseudo-labels (paper), the marginals, or hard labels weighted by |p - tau|",
    ),
    Param(
        "iterations",
        _DEFAULT.iterations,
        low=1,
        high=3,
        doc="rounds of pseudo-labelling and training; each is reported as a stage of its own",
    ),
    Param(
        "covariates",
        _DEFAULT.covariates,
        choices=("both", "embeddings"),
        doc="space of the neighbour search after the first iteration: features and the network's embeddings together, "
        "or the embeddings alone (paper)",
    ),
)

_AGG_EMB = (
    Param(
        "lambda_a",
        _DEFAULT.lambda_a,
        low=0.0,
        high=1000.0,
        doc="weight of the bag loss in the network's loss (paper: 0 to 10)",
    ),
    Param(
        "pooling",
        _DEFAULT.pooling,
        choices=("mean", "attention"),
        doc="how the embeddings of a bag are pooled: mean, or Set-Transformer attention (d 128, 2 heads, 1 seed)",
    ),
    Param(
        "agg_reduction",
        _DEFAULT.agg_reduction,
        choices=("mean", "sum"),
        doc="a bag's row losses are averaged (released code) or summed (paper's formula) before the bag loss is added",
    ),
    Param(
        "instance_head",
        _DEFAULT.instance_head,
        choices=("hidden", "direct"),
        doc="instance head: 64 hidden units between embedding and output (paper), or none (released code)",
    ),
    Param(
        "tempered",
        _DEFAULT.tempered,
        doc="divide the network's logits by a temperature fitted on held-out bags at every report; useful with little "
        "weight decay, where wrong pseudo-labels make the network overconfident",
        omit_default=True,
    ),
)

_NETWORK = tuple(
    replace(param, doc=f"{param.doc}; divided by C - 1 for C classes, which need larger weights")
    if param.name == "weight_decay"
    else param
    for param in network_params(NETWORK, high={"weight_decay": 100.0})
)


def bp_params() -> tuple[Param, ...]:
    """All parameters of `bp`."""
    return (*_MODEL, *_GRAPH, _engine(), *_INFERENCE, *_LABELS, *_AGG_EMB, *_NETWORK)

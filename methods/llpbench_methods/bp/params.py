"""The declared parameters of `bp`, light to import: the model, the graph, inference, pseudo-labels, the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from llpbench import Param
from llpbench_methods.inference.engines import all_engines
from llpbench_methods.nets.params import NetworkSettings, network_params


@dataclass(frozen=True)
class BPSettings:
    """Settings of the pseudo-labels and their use; `model_params` documents them."""

    lambda_s: float | Literal["auto"] = 0.3
    lambda_b: float | Literal["auto"] = "auto"
    lambda_o: float = 1.0
    k: int = 5
    delta_d: float | None = None
    distance: Literal["cosine", "euclidean"] = "cosine"
    kernel: Literal["matern", "rbf"] = "matern"
    length_scale: float | Literal["median"] = 1000.0
    nu: float = 0.5
    search: Literal["auto", "exact", "approximate"] = "auto"
    edge_rule: Literal["union", "sum"] = "sum"
    edges_kept: float = 1.0
    edge_filter_max_count: float | None = None
    engine: str = "pairwise"
    mode: Literal["sum", "max"] = "sum"
    rounds: int = 100
    damping: float | Literal["auto"] = 0.5
    tau: float | Literal["rate", "top-count"] = "rate"
    labels: Literal["hard", "soft", "weighted"] = "hard"
    iterations: int = 2
    lambda_a: float = 10.0
    pooling: Literal["mean", "attention"] = "mean"
    agg_reduction: Literal["mean", "sum"] = "mean"
    instance_head: Literal["hidden", "direct"] = "hidden"


NETWORK = NetworkSettings(lr=3e-3)
"""The shared settings. docs/terms.md describes how they and the defaults of `BPSettings` were chosen."""


def model_params(*, counting: bool = False) -> tuple[Param, ...]:
    """The parameters of `BPSettings`; made when asked for, because a plugin may have added an engine.

    Args:
        counting: whether engines with one counting factor per bag are choices too, besides the paper's pairs.
    """
    settings = BPSettings()
    engines = [engine for engine in all_engines() if counting or not engine.counting]

    def param(name: str, **facts: Any) -> Param:
        return Param(name, getattr(settings, name), **facts)

    return (
        param(
            "lambda_s",
            low=1e-4,
            high=200.0,
            log=True,
            doc="weight of the similarity term -lambda_s k_ij (y_i - y_j)^2; sensitive to a factor of two: below, "
            "counts do not travel along pairs, above, clusters take one label",
        ),
        param(
            "lambda_b",
            low=1e-4,
            high=200.0,
            log=True,
            choices=("auto",),
            doc="weight of the bag term -lambda_b (sum y - count)^2; auto is 1, or less if bags are so large that "
            "messages with this damping would oscillate",
        ),
        param(
            "lambda_o",
            low=1e-4,
            high=200.0,
            log=True,
            doc="weight of 'one label per row' (more than two classes, pairwise engines; exact in counting engines)",
        ),
        param("k", low=1, high=30, doc="number of nearest neighbours of each row"),
        param(
            "delta_d",
            low=1e-4,
            high=2.0,
            log=True,
            doc="maximum distance of a neighbour; none keeps all neighbours (paper of bp: cosine distance 1e-4 to 1)",
        ),
        param("distance", choices=("cosine", "euclidean"), doc="metric of the neighbour search"),
        param("kernel", choices=("matern", "rbf"), doc="similarity k_ij, a function of Euclidean distance"),
        param(
            "length_scale",
            low=1e-3,
            high=1e3,
            log=True,
            choices=("median",),
            doc="length scale l of the kernel (rbf: exp(-d^2 / (2 l^2))); median uses the median distance of the "
            "pairs, 1000 gives all pairs of standardised rows almost the same weight",
        ),
        param("nu", low=0.1, high=20.0, log=True, doc="smoothness of the Matern kernel; 0.5 is exp(-d / l)"),
        param(
            "search",
            choices=("auto", "exact", "approximate"),
            doc="neighbour search: exact, or by inverted lists (95 % of the neighbours in a third of the time); "
            "auto is exact up to 20,000 rows",
            tune=False,
        ),
        param(
            "edge_rule",
            choices=("union", "sum"),
            doc="whether a mutual pair of neighbours counts once (union) or twice (sum)",
        ),
        param("edges_kept", low=0.0, high=1.0, doc="share of the similarity pairs to keep, drawn at random"),
        param(
            "edge_filter_max_count",
            low=0,
            kind="float",
            doc="use only neighbours chosen by rows of bags with at most this count (released code of bp: 1); none "
            "uses all; two classes only",
        ),
        param(
            "engine",
            choices=tuple(engine.name for engine in engines),
            doc="; ".join(f"{engine.name}: {engine.summary}" for engine in engines),
            tune=False,
        ),
        param("mode", choices=("sum", "max"), doc="sum-product (marginals) or max-product (MAP)"),
        param(
            "rounds",
            low=1,
            high=1000,
            log=True,
            doc="maximum number of message rounds, T (paper of bp: 50, 100 or 200)",
        ),
        param(
            "damping",
            low=0.0,
            high=0.999,
            choices=("auto",),
            doc="share of the old message that is kept (0.5 in the paper's engine); auto raises it until the messages "
            "converge",
        ),
        param(
            "tau",
            low=0.0,
            high=1.0,
            choices=("rate",),
            doc="threshold on the marginal for label 1 (more than two classes: the most likely class); rate uses the "
            "threshold that gives label 1 to the known share of positives",
        ),
        param(
            "labels",
            choices=("hard", "soft", "weighted"),
            doc="training targets: hard pseudo-labels, the marginals, or hard labels weighted by |p - tau|",
        ),
        param(
            "iterations",
            low=1,
            high=3,
            doc="rounds of pseudo-labelling and training; each is reported as a stage of its own",
        ),
        param(
            "lambda_a",
            low=0.0,
            high=1000.0,
            doc="weight of the bag loss in the network's loss (paper: 0 to 10)",
        ),
        param(
            "pooling",
            choices=("mean", "attention"),
            doc="how the embeddings of a bag are pooled: mean, or Set-Transformer attention (d 128, 2 heads, 1 seed)",
        ),
        param(
            "agg_reduction",
            choices=("mean", "sum"),
            doc="a bag's row losses are averaged (released code of bp) or summed (formula of its paper) before the "
            "bag loss is added",
        ),
        param(
            "instance_head",
            choices=("hidden", "direct"),
            doc="instance head: 64 hidden units between embedding and output (paper of bp), or none (its released "
            "code)",
        ),
    )


def bp_params() -> tuple[Param, ...]:
    """All parameters of `bp`."""
    return (*model_params(), *network_params(NETWORK))

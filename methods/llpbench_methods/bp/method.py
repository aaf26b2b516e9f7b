"""`bp`: pseudo-labels by belief propagation, a network on them, its embeddings as covariates, and again."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar

from llpbench import Bags, FloatArray, Monitor, State, derive_seed
from llpbench_methods.bp.agg_emb import AggEmb, agg_emb_loss, embedding, instance_logits
from llpbench_methods.bp.labelling import Labelling, label, similarity_graph
from llpbench_methods.bp.params import NETWORK, BPSettings
from llpbench_methods.bp.pseudo import PseudoLabels, pseudo_labels
from llpbench_methods.inference import SimilarityGraph
from llpbench_methods.nets.backend import available_cores
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.state import load_weights, network_shape, no_loss, trainer_state
from llpbench_methods.nets.training import Trainer, TrainingData


class BP:
    """BP + Agg-Emb of Havaldar et al. (ICLR 2024); every ablation of the paper is a parameter.

    Iteration r: covariates (the features; later the network's embeddings) give a neighbour graph; the graph and the bag
    counts a Gibbs law over pairs of rows; sum-product belief propagation its marginals; a threshold the pseudo-labels;
    a fresh Agg-Emb network learns them together with the bags' proportions. Each iteration is a stage of the monitor.
    `predict_scores` is the instance head of the last iteration's network.

    The paper tuned its settings on labels for each dataset and bag size. The defaults here are one choice for all data,
    made by counts of held-out bags (docs/terms.md); `preset="paper"` has the paper's values. Where its equations
    and its released code differ, the default follows the equations, except that a bag's row losses are averaged.

    If rows have several groupings, there is a counting factor for every bag, and the network is trained on rows that
    are repeated for each of their bags.

    Args:
        **params: those of `BPSettings` and `NetworkSettings`.
    """

    settings_type: ClassVar[type[BPSettings]] = BPSettings
    network_defaults: ClassVar[NetworkSettings] = NETWORK

    def __init__(self, **params: Any) -> None:
        shared = {f.name for f in fields(NetworkSettings)}
        given = {name: value for name, value in params.items() if name in shared}
        self.network = replace(self.network_defaults, **given)
        self.settings = self.settings_type(**{name: value for name, value in params.items() if name not in shared})

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BP:
        """Run the iterations."""
        settings = self.settings
        with monitor.phase("network"):
            net = AggEmb(
                bags.X.shape[1],
                1 if bags.classes == 2 else bags.classes,
                size=self.network.mlp,
                pooling=settings.pooling,
                instance_head=settings.instance_head,
            )
            self.trainer_ = Trainer(net, agg_emb_loss(settings.agg_reduction), head=instance_logits)
        covariates, disjoint = bags.X, bags.unrolled
        for number in range(1, settings.iterations + 1):
            stage = f"iteration-{number}"
            stage_seed = derive_seed("bp", seed=seed, iteration=number)
            found = self._label(covariates, bags, monitor, stage, stage_seed)
            targets = pseudo_labels(
                found.marginals.beliefs, found.marginals.log_odds, bags, tau=settings.tau, labels=settings.labels
            )
            with monitor.phase("network"):
                repeated = PseudoLabels(bags.entries(targets.targets), bags.entries(targets.weights))
                self._train(repeated, disjoint, monitor, stage, stage_seed)
                if number < settings.iterations:
                    covariates = self._next_covariates(bags.X, self.trainer_.predict(bags.X, embedding))
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class, by the instance head."""
        return self.trainer_.predict(X)

    def state(self) -> State:
        """All weights of the Agg-Emb network."""
        return trainer_state(self.trainer_, self.trainer_.net.trunk, self.trainer_.net.instance_head)

    def restore(self, state: State) -> BP:
        """Build the network anew, with the saved weights."""
        (n_features,), outputs = network_shape(state)
        shape = {"pooling": self.settings.pooling, "instance_head": self.settings.instance_head}
        net = AggEmb(n_features, outputs, size=self.network.mlp, **shape)
        self.trainer_ = load_weights(Trainer(net, no_loss, head=instance_logits), state)
        return self

    def _next_covariates(self, features: FloatArray, embeddings: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the covariates of the next iteration."""
        return embeddings

    def _label(self, covariates: FloatArray, bags: Bags, monitor: Monitor, stage: str, seed: int) -> Labelling:
        threads = available_cores()
        with monitor.phase("graph"):
            graph = similarity_graph(covariates, self.settings, seed=seed, threads=threads)
        with monitor.phase("bp"):
            found = label(graph, bags, self.settings, threads=threads)
        facts = {"oscillation": found.warning} if found.warning else {}
        self._record(found, graph, monitor, stage, facts)
        return found

    def _record(
        self, found: Labelling, graph: SimilarityGraph, monitor: Monitor, stage: str, facts: dict[str, Any]
    ) -> None:
        """Give marginals, the state of the messages and further `facts` to the monitor."""
        monitor.pseudo_labels(found.marginals.beliefs, stage=stage)
        common: dict[str, Any] = {
            "pairs": len(graph.edges),
            "rounds": found.marginals.rounds,
            "converged": found.marginals.converged,
            "damping": found.marginals.damping,
            "stability": found.marginals.stability,
            "residual": float(found.marginals.residuals[-1]),
        }
        for name, value in (common | facts).items():
            monitor.note(f"{stage} bp {name}", value)

    def _train(self, labels: PseudoLabels, bags: Bags, monitor: Monitor, stage: str, seed: int) -> None:
        data = TrainingData(
            bags.X,
            rows={"targets": labels.targets, "weights": labels.weights},
            bags={"proportions": bags.clipped_proportions},
            shared={"lambda_a": self.settings.lambda_a},
        )
        batches = BagBatches(bags.sizes, self.network.batch_rows)
        self.trainer_.fit(data, batches, self._training(bags), monitor=monitor, seed=seed, stage=stage)

    def _training(self, bags: Bags) -> NetworkSettings:  # noqa: ARG002
        """Return the network settings for these bags."""
        return self.network

"""`bp`: pseudo-labels by belief propagation, a network on them, its embeddings as covariates, and again."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from llpbench import Bags, FloatArray, Monitor, State, derive_seed
from llpbench_methods.bp.agg_emb import AggEmb, agg_emb_loss, embedding, instance_logits
from llpbench_methods.bp.covariates import side_by_side
from llpbench_methods.bp.ensemble import label_by_all, members_of
from llpbench_methods.bp.field import find_field
from llpbench_methods.bp.labelling import Labelling, SimilarityGraphs
from llpbench_methods.bp.params import NETWORK, BPSettings
from llpbench_methods.bp.pseudo import PseudoLabels, pseudo_labels
from llpbench_methods.inference import engine_spec
from llpbench_methods.nets.backend import available_cores
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.state import load_weights, network_shape, no_loss, trainer_state
from llpbench_methods.nets.tempering import Tempering
from llpbench_methods.nets.training import Trainer, TrainingData
from llpbench_methods.shared.temperature import checked_temperature, tempered


class BP:
    """Havaldar et al. (ICLR 2024), with every ablation of the paper as a parameter.

    Iteration r: covariates (the features; later the network's embeddings, beside them or alone) give a neighbour graph;
    the graph and the bag counts a Gibbs law; belief propagation its marginals; these pseudo-labels; a fresh Agg-Emb
    network learns them together with the bags' proportions. Each iteration is a stage of the monitor.
    `predict_scores` is the instance head of the last iteration's network.

    Args:
        **params: those of `BPSettings` and `NetworkSettings`.
    """

    def __init__(self, **params: Any) -> None:
        shared = {f.name for f in fields(NetworkSettings)}
        self.network = replace(NETWORK, **{name: value for name, value in params.items() if name in shared})
        self.settings = BPSettings(**{name: value for name, value in params.items() if name not in shared})

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BP:
        """Run the iterations."""
        settings = self.settings
        self.temperature_ = 1.0
        with monitor.phase("network"):
            net = AggEmb(
                bags.X.shape[1],
                1 if bags.classes == 2 else bags.classes,
                size=self.network.mlp,
                pooling=settings.pooling,
                instance_head=settings.instance_head,
            )
            self.trainer_ = Trainer(net, agg_emb_loss(settings.agg_reduction), head=instance_logits)
        covariates = bags.X
        for number in range(1, settings.iterations + 1):
            stage = f"iteration-{number}"
            stage_seed = derive_seed("bp", seed=seed, iteration=number)
            found = self._label(covariates, bags, monitor, stage, stage_seed)
            targets = pseudo_labels(
                found.marginals.beliefs, found.marginals.log_odds, bags, tau=settings.tau, labels=settings.labels
            )
            with monitor.phase("network"):
                self._train(targets, bags, monitor, stage, stage_seed)
                if number < settings.iterations:
                    embeddings = self.trainer_.predict(bags.X, embedding)
                    covariates = side_by_side(bags.X, embeddings) if settings.covariates == "both" else embeddings
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class, by the instance head at the temperature of the fit."""
        return tempered(self.trainer_.predict(X), self.temperature_)

    def state(self) -> State:
        """All weights of the Agg-Emb network, and the temperature."""
        weights = trainer_state(self.trainer_, self.trainer_.net.trunk, self.trainer_.net.instance_head)
        return {**weights, "temperature": self.temperature_}

    def restore(self, state: State) -> BP:
        """Build the network anew, with the saved weights and temperature (1 in models of before there was one)."""
        self.temperature_ = checked_temperature(state.get("temperature", 1.0))
        (n_features,), outputs = network_shape(state)
        shape = {"pooling": self.settings.pooling, "instance_head": self.settings.instance_head}
        net = AggEmb(n_features, outputs, size=self.network.mlp, **shape)
        self.trainer_ = load_weights(Trainer(net, no_loss, head=instance_logits), state)
        return self

    def _label(self, covariates: FloatArray, bags: Bags, monitor: Monitor, stage: str, seed: int) -> Labelling:
        threads, settings = available_cores(), self.settings
        most = max(member.k for member in members_of(settings, bags.classes, field=False))
        with monitor.phase("graph"):
            graphs = SimilarityGraphs(covariates, settings, most, seed=seed, threads=threads)
            graph = graphs.of(settings.k)
        with monitor.phase("bp"):
            field = find_field(graph, bags, settings, seed=seed)
            members = members_of(settings, bags.classes, field=field.potentials is not None)
            found = label_by_all(
                members,
                lambda k: graph if k == settings.k else graphs.of(k),
                bags,
                settings,
                fields=field.potentials,
                threads=threads,
            )
        monitor.pseudo_labels(found.marginals.beliefs, stage=stage)
        facts: dict[str, float | str | bool] = {
            "pairs": len(graph.edges),
            "runs": len(members),
            "rounds": found.marginals.rounds,
            "converged": found.marginals.converged,
            "damping": found.marginals.damping,
            "stability": found.marginals.stability,
            "residual": float(found.marginals.residuals[-1]),
        }
        if len(members) > 1:
            facts["neighbours"] = ", ".join(map(str, sorted({member.k for member in members})))
        if field.gain is not None:
            facts |= {"field": field.potentials is not None, "field nats": field.gain}
        if found.warning and engine_spec(self.settings.engine).counting:
            # Counting engines do not oscillate; near its critical strength the similarity term converges slowly.
            facts["unsettled"] = True
        elif found.warning:
            facts["oscillation"] = found.warning
        for name, value in facts.items():
            monitor.note(f"{stage} bp {name}", value)
        return found

    def _train(self, labels: PseudoLabels, bags: Bags, monitor: Monitor, stage: str, seed: int) -> None:
        data = TrainingData(
            bags.X,
            rows={"targets": labels.targets, "weights": labels.weights},
            bags={"proportions": bags.clipped_proportions},
            shared={"lambda_a": self.settings.lambda_a},
        )
        batches = BagBatches(bags.sizes, self.network.batch_rows)
        watch = Tempering(self.trainer_, bags.validation, monitor) if self.settings.tempered else None
        network = replace(self.network, weight_decay=self.network.weight_decay / (bags.classes - 1))
        self.trainer_.fit(data, batches, network, monitor=watch or monitor, seed=seed, stage=stage)
        if watch:
            self.temperature_ = watch.best
            monitor.note(f"{stage} temperature", watch.best)

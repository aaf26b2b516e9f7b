"""`bp-field`: the iterations of `bp` with a learned prior of the rows and exact counting factors."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from llpbench import Bags, FloatArray, Monitor, State
from llpbench_methods.bp.labelling import Labelling
from llpbench_methods.bp.method import BP
from llpbench_methods.bp.params import BPSettings
from llpbench_methods.bp.pseudo import PseudoLabels
from llpbench_methods.bp_field.covariates import side_by_side
from llpbench_methods.bp_field.ensemble import label_by_all, members_of
from llpbench_methods.bp_field.field import find_field
from llpbench_methods.bp_field.labelling import SimilarityGraphs
from llpbench_methods.bp_field.params import NETWORK, FieldSettings
from llpbench_methods.inference import engine_spec
from llpbench_methods.nets.backend import available_cores
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.tempering import Tempering
from llpbench_methods.shared.temperature import checked_temperature, tempered


class BPField(BP):
    """Pseudo-labels from a regression on bag means, a Gaussian field and the bag counts; then as in `bp`.

    A method of this project. It shares the network and the two iterations with `bp`, not the pseudo-labels:

    1. Bayesian linear regression of proportions on bag means gives every row a probability.
    2. A Gaussian field, smooth along the neighbour graph, explains what the regression leaves of the counts. It is
       added only if it clearly improves the prediction of the counts of held-out bags. The other values of `relaxed`
       use the field without the regression.
    3. The result is the prior of a Gibbs law whose bags are exact counting factors. Pairs of neighbours are weak, and
       left out without a field. Every bag gets as many positive pseudo-labels as its count.
    4. The Agg-Emb network learns them. The neighbour graph of the second iteration uses features and embeddings
       together.

    Args:
        **params: those of `FieldSettings` and `NetworkSettings`.
    """

    settings_type: ClassVar[type[BPSettings]] = FieldSettings
    network_defaults: ClassVar[NetworkSettings] = NETWORK
    settings: FieldSettings

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BPField:
        """Run the iterations."""
        self.temperature_ = 1.0
        super().fit(bags, monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class, by the instance head at the temperature of the fit."""
        return tempered(self.trainer_.predict(X), self.temperature_)

    def state(self) -> State:
        """All weights of the Agg-Emb network, and the temperature."""
        return {**super().state(), "temperature": self.temperature_}

    def restore(self, state: State) -> BPField:
        """Build the network anew, with the saved weights and temperature."""
        self.temperature_ = checked_temperature(state.get("temperature", 1.0))
        super().restore(state)
        return self

    def _next_covariates(self, features: FloatArray, embeddings: FloatArray) -> FloatArray:
        return side_by_side(features, embeddings) if self.settings.covariates == "both" else embeddings

    def _label(self, covariates: FloatArray, bags: Bags, monitor: Monitor, stage: str, seed: int) -> Labelling:
        threads, settings = available_cores(), self.settings
        most = max(member.k for member in members_of(settings, bags.classes, field=False))
        with monitor.phase("graph"):
            graphs = SimilarityGraphs(covariates, settings, most, seed=seed, threads=threads)
            graph = graphs.of(settings.k)
        with monitor.phase("bp"):
            field = find_field(graph, bags, settings, seed=seed)
            if field.declined and settings.gain == "auto":
                settings = replace(settings, gain=0.0)  # pairs assume what held-out bags did not confirm
            members = members_of(settings, bags.classes, field=field.potentials is not None)
            found = label_by_all(
                members,
                lambda k: graph if k == settings.k else graphs.of(k),
                bags,
                settings,
                fields=field.potentials,
                threads=threads,
            )
        facts: dict[str, float | str | bool] = {"runs": len(members)}
        if len(members) > 1:
            facts["neighbours"] = ", ".join(map(str, sorted({member.k for member in members})))
        if field.gain is not None:
            facts |= {"field": field.accepted, "field nats": field.gain}
        if found.warning and engine_spec(settings.engine).counting:
            # Counting engines do not oscillate; near its critical strength the similarity term converges slowly.
            facts["unsettled"] = True
        elif found.warning:
            facts["oscillation"] = found.warning
        self._record(found, graph, monitor, stage, facts)
        return found

    def _train(self, labels: PseudoLabels, bags: Bags, monitor: Monitor, stage: str, seed: int) -> None:
        if not self.settings.tempered:
            super()._train(labels, bags, monitor, stage, seed)
            return
        watch = Tempering(self.trainer_, bags.validation, monitor)
        super()._train(labels, bags, watch, stage, seed)
        self.temperature_ = watch.best
        monitor.note(f"{stage} temperature", watch.best)

    def _training(self, bags: Bags) -> NetworkSettings:
        return replace(self.network, weight_decay=self.network.weight_decay / (bags.classes - 1))

"""The base of methods that train one shared network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

from llpbench import Bags, FloatArray, Monitor, State
from llpbench_methods.nets.batches import BagBatches, Batches
from llpbench_methods.nets.network import trainer_for, trainer_of_shape
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.state import load_weights, network_shape, no_loss, trainer_state
from llpbench_methods.nets.training import Loss, Trainer, TrainingData


class NetworkMethod:
    """A method that trains one shared network and predicts with it; a subclass brings the loss and its data.

    Args:
        **network: the shared settings of ``NetworkSettings``; ``defaults`` holds for what is not given.
    """

    defaults: ClassVar[NetworkSettings] = NetworkSettings()
    trainer_: Trainer

    def __init__(self, **network: Any) -> None:
        self.settings = replace(self.defaults, **network)

    def train(
        self,
        bags: Bags,
        loss: Loss,
        data: TrainingData,
        *,
        monitor: Monitor,
        seed: int,
        batches: Batches | None = None,
        refresh: Callable[[int], tuple[TrainingData, Batches] | None] | None = None,
    ) -> Self:
        """Build the network for these bags and train it, on batches of whole bags unless others are given.

        ``refresh`` is that of ``Trainer.fit``: new data and batches before an epoch, or None.
        """
        with monitor.phase("network"):
            self.trainer_ = trainer_for(bags, self.settings.mlp, loss)
            batches = batches or BagBatches(bags.sizes, self.settings.batch_rows)
            self.trainer_.fit(
                data,
                batches,
                self.settings,
                monitor=monitor,
                seed=seed,
                predict=self.predict_scores,
                refresh=refresh,
            )
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class."""
        return self.trainer_.probabilities(X)

    def state(self) -> State:
        """Shape of the input, number of logits, and all weights."""
        return trainer_state(self.trainer_, self.trainer_.net, self.trainer_.net)

    def restore(self, state: State) -> Self:
        """Build the network anew and give it the saved weights."""
        shape, outputs = network_shape(state)
        self.trainer_ = load_weights(trainer_of_shape(shape, outputs, self.settings.mlp, no_loss), state)
        return self

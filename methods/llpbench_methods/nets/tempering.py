"""A monitor between trainer and judge that reports every model at the temperature that fits held-out bags best.

A network that learned hard labels is far too sure of itself. The order of its scores does not suffer, but means of bags
do, and a judge of bags would rather take a model that has learned nothing (a constant is never too sure).
"""

from __future__ import annotations

from llpbench import Bags, FloatArray, Monitor, Predict
from llpbench_methods.nets.training import Trainer
from llpbench_methods.shared.temperature import bag_temperature, tempered


class Tempering:
    """Finds the temperature of every model before it is reported; without held-out bags it is 1.

    Args:
        trainer: trains the network; has the weights that are to be reported.
        held_out: the bags that the temperature is fitted on.
        monitor: the judge's.

    Attributes:
        best: the temperature of the best model so far (of the first, where none was called the best).
    """

    def __init__(self, trainer: Trainer, held_out: Bags | None, monitor: Monitor) -> None:
        self.best = 1.0
        self.note, self.phase, self.pseudo_labels = monitor.note, monitor.phase, monitor.pseudo_labels
        self._trainer, self._held_out, self._monitor = trainer, held_out, monitor
        self._first = True

    def report(self, predict: Predict, *, stage: str = "") -> bool:  # noqa: ARG002
        """Report the tempered network, whatever ``predict`` is, and keep the temperature of the best one."""
        temperature = 1.0
        if self._held_out is not None:
            with self.phase("temperature"):
                temperature = bag_temperature(self._trainer.predict(self._held_out.X), self._held_out)

        def scores(X: FloatArray) -> FloatArray:
            return tempered(self._trainer.predict(X), temperature)

        is_best = self._monitor.report(scores, stage=stage)
        if is_best or self._first:
            self.best = temperature
        self._first = False
        return is_best

    @property
    def should_stop(self) -> bool:
        """Whether the stage is closed."""
        return self._monitor.should_stop

"""Controls and bounds that run another method on changed bags or with changed parameters."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from llpbench import Bags, FloatArray, MethodSpec, Monitor, Skip, State, UsageError, method_spec


class OtherMethod:
    """Runs another method; subclasses change its bags or its parameters.

    Reports are judged as everyone's, by the true held-out bags.

    Args:
        method: name of an installed method; neither a bound nor a control that runs another method.
        patience: the monitor's patience.
    """

    control: ClassVar[str]
    """Its own name, for messages."""

    def __init__(self, method: str, patience: int = 20) -> None:
        self.method, self.patience = method, patience
        spec = method_spec(method)
        if spec.oracle or "method" in {p.name for p in spec.params}:
            raise UsageError(f"{self.control} cannot run {method!r}: choose a method that learns from counts.")
        self._spec = spec
        self._inner: Any = spec.load()(**spec.resolve(self._params(spec)))

    def _params(self, spec: MethodSpec) -> dict[str, Any]:  # noqa: ARG002
        """The parameters of the method that are not its defaults."""
        return {}

    def _bags(self, bags: Bags, seed: int) -> Bags:  # noqa: ARG002
        """The bags that the method is given."""
        return bags

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> Self:
        """Fit the method with the same seed."""
        task = "binary" if bags.classes == 2 else "multiclass"
        if task not in self._spec.tasks:
            raise Skip(f"{self.method} is for {' and '.join(self._spec.tasks)} tasks, and this one is {task}")
        if ("images" if bags.X.ndim > 2 else "features") not in self._spec.inputs:
            raise Skip(f"{self.method} takes {' and '.join(self._spec.inputs)} only")
        self._inner = self._inner.fit(self._bags(bags, seed), monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Scores of the method that was run."""
        scores: FloatArray = self._inner.predict_scores(X)
        return scores

    def state(self) -> State:
        """The state of the method that was run."""
        state: State = self._inner.state()
        return state

    def restore(self, state: State) -> Self:
        """Give a fresh method of that name the saved state."""
        self._inner = self._inner.restore(state)
        return self

"""Claims the name of a built-in method."""

import numpy as np

from llpbench import MethodSpec, hookimpl


class Zeros:
    """Knows nothing."""

    def fit(self, bags, *, monitor, seed):
        """Learn nothing."""
        return self

    def predict_scores(self, X):
        """Give every row the same score."""
        return np.zeros(len(X))


@hookimpl
def llpbench_methods():
    """Bring a second ``dllp``, and a method that nobody else has."""
    return [
        MethodSpec(name="dllp", factory="llp_duplicate:Zeros", summary="an impostor", scores="logit"),
        MethodSpec(name="zeros", factory="llp_duplicate:Zeros", summary="the same score for every row", scores="logit"),
    ]

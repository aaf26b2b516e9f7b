"""A method in one file: ridge regression from bag means to proportions."""

import numpy as np

from llpbench import MethodSpec, Param, hookimpl


class BagMeans:
    def __init__(self, penalty=1e-3):
        self.penalty = penalty

    def fit(self, bags, *, monitor, seed):  # sees counts, never labels
        means = np.add.reduceat(bags.X, bags.offsets[:-1], axis=0) / bags.sizes[:, None]
        A, b = means - means.mean(axis=0), bags.proportions[:, 0] - bags.prior[0]
        self.weights_ = np.linalg.solve(A.T @ A + self.penalty * np.eye(A.shape[1]), A.T @ b)
        return self

    def predict_scores(self, X):  # any monotone score of class 1 will do
        return X @ self.weights_


@hookimpl
def llpbench_methods():
    penalty = Param("penalty", 1e-3, low=1e-9, high=1e3, log=True, doc="ridge penalty")
    return [MethodSpec(name="bag-means", factory="llp_good_method:BagMeans", params=(penalty,), scores="logit")]

"""A plugin that ships a suite: the files in its folder ``suites``. Its method scores by one column."""

from llpbench import MethodSpec, Param, hookimpl


class OneColumn:
    def __init__(self, column=0):
        self.column = column

    def fit(self, bags, *, monitor, seed):
        return self

    def predict_scores(self, X):
        return X[:, self.column]


@hookimpl
def llpbench_methods():
    column = Param("column", 0, low=0, high=1000, doc="number of the column")
    return [MethodSpec(name="one-column", factory="llp_tiny_suite:OneColumn", params=(column,), scores="logit")]

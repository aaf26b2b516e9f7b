"""How much a linear model gets out of the CIFAR features: the table of docs/data.md.

    python benchmarks/linear_probe.py [--features patches,simclr]

Logistic regression on the training rows of seed 0; its penalty is chosen on the validation rows, then it is fitted on
both together; test rows are looked at once. Instance labels are used: this measures features, not methods.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from tabulate import tabulate

from llpbench import Split
from llpbench.data.store import DataStore
from llpbench_datasets.cifar import CIFAR10, CIFAR_B, CIFAR_S

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)


def score(model: LogisticRegression, X: np.ndarray, y: np.ndarray) -> float:
    """Accuracy in percent for ten classes, AUROC for two."""
    if len(model.classes_) > 2:
        return 100.0 * float(accuracy_score(y, model.predict(X)))
    return 100.0 * float(roc_auc_score(y, model.decision_function(X)))


def probe(split: Split) -> tuple[float, float]:
    """The score on test rows, and the penalty (C) that the validation rows chose."""
    scale = StandardScaler().fit(split.train.X)
    train, valid, test = (scale.transform(part.X) for part in (split.train, split.valid, split.test))

    def fitted(penalty: float, X: np.ndarray, y: np.ndarray) -> LogisticRegression:
        return LogisticRegression(C=penalty, max_iter=200).fit(X, y)

    chosen = max(PENALTIES, key=lambda c: score(fitted(c, train, split.train.y), valid, split.valid.y))
    both = fitted(chosen, np.concatenate([train, valid]), np.concatenate([split.train.y, split.valid.y]))
    return score(both, test, split.test.y), chosen


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="patches,simclr", help="comma-separated")
    rows = []
    for features in parser.parse_args().features.split(","):
        row = [features]
        for spec in (CIFAR_B, CIFAR_S, CIFAR10):
            value, penalty = probe(spec.load()(DataStore(spec), seed=0, features=features))
            row.append(f"{value:.1f} (C {penalty:g})")
        rows.append(row)
    print(
        tabulate(rows, headers=["features", "cifar-b AUROC", "cifar-s AUROC", "cifar10 accuracy %"], tablefmt="github")
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()

"""Laws of a bag's count, given the probabilities of its rows, for all likelihoods of counts.

The count of a bag of ``B`` rows has the mean ``Σ p_i`` and, by chance alone, the variance ``V = Σ p_i (1 − p_i)``;
noise adds ``count_sd²``, and what the rows of a bag share and no feature shows adds a third part. Three questions are
asked of counts, and each has a law that suits it:

- Which report of a fit is best (rule ``counts``, ``count_likelihood.py``)? The exact law up to 64 rows, a normal one
  above, with a shift ``u ~ N(0, τ²)`` of the bag's log-odds integrated out: to first order it adds ``(V τ)²``. It is
  the model that methods with a bag effect fit, so it judges them by what they aim at.
- Which method explains bags better (``compare``, ``owndata/judging/held_out.py``)? The mass of a normal law on whole
  numbers, with ``B (B − 1) v`` added. The extra part does not depend on the predictions, so that a method that is sure
  of every row (``V`` near 0) has room for it like any other; a mass stays below 1 where a density grows without end.
- How sure may a model be, between itself and a constant (``fit``, ``spread.py``, ``owndata/judging/shrinkage.py``)?
  A normal density of the proportion, with ``φ π (1 − π)`` added: nearly the same with ``v = φ π (1 − π)``, but one
  ``φ`` serves classes of any share, and what it is around a constant is known from all bags.
"""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray

WHOLE = 1.0 / 12.0
"""Variance, in rows², of rounding to a whole number: a count is never known to be sharper than that."""


def all_classes(given: FloatArray, total: FloatArray | IntArray | float = 1.0) -> FloatArray:
    """(n, C) proportions (or counts) of all classes: two columns from the one of class 1.

    Args:
        given: (n, C), or (n, 1) of class 1 of two.
        total: what the classes of a bag add up to: 1 for proportions, (n, 1) sizes for counts.
    """
    return np.hstack([total - given, given]) if given.shape[1] == 1 else given


def over_classes(logs: FloatArray) -> FloatArray:
    """(bags,) log-likelihood of bags from (bags, C) ones of their classes.

    The counts of the classes add up to the bag's size, so of ``C`` terms ``C − 1`` count: for two classes it is that of
    one of them.
    """
    classes = logs.shape[1]
    return np.asarray(logs.sum(axis=1) * (classes - 1) / classes)


def log_density(gaps: FloatArray, variances: FloatArray) -> FloatArray:
    """Log of a normal density: ``−½ (gap² / variance + log 2π variance)``."""
    return np.asarray(-0.5 * (gaps**2 / variances + np.log(2.0 * np.pi * variances)))


def log_mass(counts: FloatArray, means: FloatArray, sds: FloatArray, top: FloatArray | None) -> FloatArray:
    """Log of a normal law's mass around each count; with ``top``, out of its mass from −½ to ``top + ½``."""
    logs = _log_between((counts - 0.5 - means) / sds, (counts + 0.5 - means) / sds)
    return logs if top is None else logs - _log_between((-0.5 - means) / sds, (top + 0.5 - means) / sds)


def _log_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """``log(Φ(high) − Φ(low))``, in the tails as well: where both are positive their mirror images are taken."""
    from scipy.special import log_ndtr

    mirror = low > 0
    low, high = np.where(mirror, -high, low), np.where(mirror, -low, high)
    top = log_ndtr(high)
    return np.asarray(top + np.log1p(-np.exp(np.minimum(log_ndtr(low) - top, -1e-15))))

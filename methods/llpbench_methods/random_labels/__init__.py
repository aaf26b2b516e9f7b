"""Control: the shared network on random labels that fit the counts."""

from __future__ import annotations

from llpbench import MethodSpec, hookimpl
from llpbench_methods.nets.params import network_spec

RANDOM_LABELS = network_spec(
    "random-labels",
    "llpbench_methods.random_labels.method:RandomLabels",
    "control: the shared network trained on random labels that match the counts, with the same budget",
    control=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``random-labels``."""
    return [RANDOM_LABELS]

"""The same network on the true labels: the bound that LLP methods are measured against."""

from __future__ import annotations

from llpbench import MethodSpec, hookimpl
from llpbench_methods.nets.params import network_spec

SUPERVISED = network_spec(
    "supervised",
    "llpbench_methods.supervised.method:Supervised",
    "the shared network trained on the true labels: an upper bound, not an LLP method",
    oracle=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``supervised``."""
    return [SUPERVISED]

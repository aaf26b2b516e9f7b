"""Another method, without the similarity pairs that it claims matter."""

from __future__ import annotations

from typing import Any, ClassVar

from llpbench import MethodSpec, UnknownNameError, UsageError
from llpbench_methods.shared.other_method import OtherMethod

PRESET = "no-pairs"
"""The preset with which a method runs without pairs, the same for all data."""


class NoPairs(OtherMethod):
    """Runs another method with its preset `no-pairs`, everything else at its defaults.

    What the method has above it is the effect of its similarity pairs.

    Args:
        method: name of an installed method with a preset `no-pairs`.
        patience: the monitor's patience.
    """

    control: ClassVar[str] = "no-pairs"

    def __init__(self, method: str = "bp", patience: int = 20) -> None:
        super().__init__(method, patience)

    def _params(self, spec: MethodSpec) -> dict[str, Any]:
        try:
            return spec.preset(PRESET)
        except UnknownNameError:
            raise UsageError(
                f"{self.control} cannot run {spec.name!r}: it declares no preset {PRESET!r}. "
                "Choose a method that has one, such as bp or bp-field."
            ) from None

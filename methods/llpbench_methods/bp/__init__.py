"""Belief propagation on the Gibbs law of labels: graph, model, engines, diagnostics.

The public names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llpbench_methods.bp.counting import (
        bag_marginals as bag_marginals,
    )
    from llpbench_methods.bp.counting import (
        counting_messages as counting_messages,
    )

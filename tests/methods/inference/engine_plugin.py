"""A plugin file that adds an engine: that of `reference-count` under another name."""

from __future__ import annotations

from typing import Any

from llpbench import MethodSpec, hookimpl
from llpbench_methods.inference import Engine, EngineSpec, add_engine

add_engine(EngineSpec("mine", f"{__name__}:start", "an engine of a plugin", counting=True, multiclass=True))


def start(model: Any, *, mode: Any) -> Engine:
    from llpbench_methods.inference.engines.reference_count import start as start_reference

    return start_reference(model, mode=mode)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """No method: a plugin needs at least one hook."""
    return []

"""llpbench: a benchmark suite for learning from label proportions.

The public contracts, imported on first use so that ``import llpbench`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llpbench.cache import cache_root
    from llpbench.data import Bags, Column, Files, FloatArray, IntArray, Part, Split, random_split
    from llpbench.errors import (
        DatasetError,
        DataUnavailableError,
        LLPBenchError,
        MethodError,
        Skip,
        UnknownNameError,
        UsageError,
    )
    from llpbench.estimator import LLPModel, fit, load
    from llpbench.files import whole_file, write_atomically
    from llpbench.hookspecs import hookimpl
    from llpbench.protocols import Method, Monitor, Predict, QuietMonitor
    from llpbench.seeds import derive_seed
    from llpbench.specs import (
        BagScheme,
        DataFile,
        DatasetSpec,
        MethodSpec,
        MetricSpec,
        PackageSource,
        Param,
        Reference,
    )
    from llpbench.state import Restorable, State

__version__ = "0.1.0"

_HOME = {
    "cache_root": "cache",
    "Bags": "data",
    "Column": "data",
    "Files": "data",
    "FloatArray": "data",
    "IntArray": "data",
    "Part": "data",
    "Split": "data",
    "random_split": "data",
    "DataUnavailableError": "errors",
    "DatasetError": "errors",
    "LLPBenchError": "errors",
    "MethodError": "errors",
    "Skip": "errors",
    "UnknownNameError": "errors",
    "UsageError": "errors",
    "LLPModel": "estimator",
    "fit": "estimator",
    "load": "estimator",
    "whole_file": "files",
    "write_atomically": "files",
    "hookimpl": "hookspecs",
    "Method": "protocols",
    "Monitor": "protocols",
    "Predict": "protocols",
    "QuietMonitor": "protocols",
    "derive_seed": "seeds",
    "BagScheme": "specs",
    "DataFile": "specs",
    "DatasetSpec": "specs",
    "MethodSpec": "specs",
    "MetricSpec": "specs",
    "PackageSource": "specs",
    "Param": "specs",
    "Reference": "specs",
    "Restorable": "state",
    "State": "state",
}

__all__ = [
    "BagScheme",
    "Bags",
    "Column",
    "DataFile",
    "DataUnavailableError",
    "DatasetError",
    "DatasetSpec",
    "Files",
    "FloatArray",
    "IntArray",
    "LLPBenchError",
    "LLPModel",
    "Method",
    "MethodError",
    "MethodSpec",
    "MetricSpec",
    "Monitor",
    "PackageSource",
    "Param",
    "Part",
    "Predict",
    "QuietMonitor",
    "Reference",
    "Restorable",
    "Skip",
    "Split",
    "State",
    "UnknownNameError",
    "UsageError",
    "cache_root",
    "derive_seed",
    "fit",
    "hookimpl",
    "load",
    "random_split",
    "whole_file",
    "write_atomically",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"llpbench.{_HOME[name]}"), name)
    raise AttributeError(f"module 'llpbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

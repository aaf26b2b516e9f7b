"""The environment variables that llpbench reads, and those that can change the numbers of a cell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from llpbench.contracts.errors import printable


class Variable(NamedTuple):
    """An environment variable and what it does."""

    name: str
    meaning: str

    @property
    def value(self) -> str | None:
        """Its current value; None if it is not set."""
        return os.environ.get(self.name)


DATA = Variable("LLPBENCH_DATA", "folder with data files, looked at before the cache (--data wins over it)")
CACHE = Variable("LLPBENCH_CACHE", "folder of the cache, instead of the platform's place for caches")
OFFLINE = Variable("LLPBENCH_OFFLINE", "1: never download data (as --offline)")
PLUGINS = Variable("LLPBENCH_PLUGINS", "load only these installed plugins: a,b")
BLOCK = Variable("LLPBENCH_BLOCK", "leave these installed plugins out: a,b")
STRICT = Variable("LLPBENCH_STRICT", "1: a broken plugin is an error, not a warning (for continuous integration)")

VARIABLES = (DATA, CACHE, OFFLINE, PLUGINS, BLOCK, STRICT)
"""All variables, in the order in which ``llpbench config`` shows them."""

_FLAGS = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "LD_PRELOAD",
    "NVIDIA_TF32_OVERRIDE",
    "PYTHONHASHSEED",
    "XLA_FLAGS",
)
_TENSORFLOW = ("CPU_", "CUDNN_", "DETERMINISTIC", "DISABLE_", "ENABLE_", "GPU_", "NUM_", "USE_", "XLA_")
"""Prefixes of TensorFlow's variables after ``TF_``, which is also the prefix of Terraform's, with its secrets."""
_FLAG_FAMILIES = (
    *("BLIS_", "GOTO_", "JAX_", "MKL_", "NPY_", "NUMBA_", "OMP_", "OPENBLAS_", "TORCH_", "VECLIB_"),
    *(f"TF_{word}" for word in _TENSORFLOW),
)
_NO_BITS = ("CACHE", "DIR", "DUMP", "HOST", "LOG", "PATH", "PROFIL", "TOKEN", "VERBOSE")
"""Words in names of variables that do not affect computations."""
_OF_A_PROCESS = ("HF_HOME", "HOME", "LANG", "PATH", "TMPDIR")
_FAMILIES_OF_A_PROCESS = (
    *("CUDA_", "DYLD_", "HIP_", "HSA_", "KERAS_", "LC_", "LD_", "LLPBENCH_", "NVIDIA_", "PYTHON", "ROC", "TF_CPP_"),
    "XLA_",
)
"""What Python, the loader of shared libraries, backends and drivers need; ``HF_HOME`` holds pretrained weights."""


def numeric_flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables that can change the last bits of a number: threads, flags of BLAS and of backends."""
    given = os.environ if environment is None else environment
    found = {}
    for name in sorted(given):
        if name in _FLAGS or (name.startswith(_FLAG_FAMILIES) and not any(word in name for word in _NO_BITS)):
            words = [w for w in given[name].split() if "dump" not in w] if name == "XLA_FLAGS" else [given[name]]
            found[name] = printable(" ".join(words))[:200]
    return {name: value for name, value in found.items() if value}


def keep_variables() -> None:
    """Remove every variable that is neither a numeric flag nor needed to run, so that no method can depend on it."""
    for name in list(os.environ):
        if name not in (*_FLAGS, *_OF_A_PROCESS) and not name.startswith((*_FLAG_FAMILIES, *_FAMILIES_OF_A_PROCESS)):
            del os.environ[name]

"""The code, versions and flags that produced a result, and whether a run would produce it the same way now.

A result is *outdated*, and recomputed by the next run, if its protocol or a selection rule has another version, or if
the code of a plugin file or of an unreleased third-party plugin has changed. It is *stale*, and recomputed by
``--rerun stale``, if anything else differs: versions of libraries, or the code of llpbench itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from llpbench.contracts.cell import Cell
from llpbench.contracts.errors import UnknownNameError, printable
from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.plugins.fingerprint import (
    HARNESS,
    code_name,
    distribution_of,
    fingerprint,
    is_own,
    is_released,
    origin_of,
)
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Registry
from llpbench.system.machine import versions

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


class Provenance:
    """The code that would compute cells now, with single-file plugins ``files``; every plugin is read once."""

    def __init__(self, registry: Registry, files: Iterable[str] = ()) -> None:
        self.registry = registry
        self._files = tuple(files) or tuple(p.distribution for p in registry.plugins if p.from_file)
        self._lines: dict[str, str] = {}

    def origins(self, cell: Cell) -> dict[str, str]:
        """The origin of each part of a cell's code: method (and the methods that it runs), dataset, harness.

        Metrics, selection rules and bag schemes of third-party plugins are parts too.
        """
        found = {
            "method": origin_of(self.registry.methods.entry(cell.method).plugin),
            "dataset": origin_of(self.registry.datasets.entry(cell.dataset).plugin),
            "harness": HARNESS,
        }
        for name in self.registry.methods[cell.method].names_of_methods(cell.params):
            found[f"method {name}"] = origin_of(self.registry.methods.entry(name).plugin)
        return found | {name: origin_of(plugin) for name, plugin in self._judges(cell) if not plugin.builtin}

    def code(self, cell: Cell) -> dict[str, str]:
        """The fingerprint of each part of a cell's code."""
        return {part: self._line(origin) for part, origin in self.origins(cell).items()}

    def judge_files(self, cell: Cell) -> tuple[str, ...]:
        """The single-file plugins that provide the dataset, bag scheme, rules or metrics of a cell."""
        plugins = [self.registry.datasets.entry(cell.dataset).plugin, *(plugin for _, plugin in self._judges(cell))]
        names = {origin_of(plugin) for plugin in plugins if plugin.from_file}
        return tuple(file for file in self._files if f"file:{Path(file).name}" in names)

    def requires(self, cell: Cell) -> tuple[str, ...]:
        """The distributions whose versions belong to a cell's result, besides those of every result."""
        method, dataset = self.registry.methods.entry(cell.method), self.registry.datasets.entry(cell.dataset)
        modules = [*method.spec.requires, *dataset.spec.requires]
        names = [distribution_of(module) for module in modules]
        names += [p.distribution for p in (method.plugin, dataset.plugin) if not (p.builtin or p.from_file)]
        return tuple(dict.fromkeys(names))

    def rules(self) -> dict[str, int]:
        """The version of every selection rule."""
        return {spec.name: spec.version for spec in self.registry.rules.specs}

    def outdated(self, result: CellResult) -> str:
        """Why a result must be recomputed before it is compared with new ones; empty if it need not be."""
        if result.protocol != PROTOCOL:
            return f"were computed under protocol {result.protocol} (this is protocol {PROTOCOL})"
        now = self.rules()
        for rule, version in result.rules.items():
            if rule in now and now[rule] != version:
                return f"were computed with version {version} of rule {rule} (now {now[rule]})"
        for part in self._differing(result):
            before, today = result.code[part], self._line(self.origins(result.cell)[part])
            for line in (today, before):  # also a plugin that replaces a released or built-in one
                if not is_own(line) and not is_released(line):
                    return f"were computed by other code of {code_name(line)}"
        return ""

    def current(self, result: CellResult) -> bool:
        """Whether a run would compute a result now under the same protocol and rules, by the same code."""
        return not self.outdated(result) and not self.other_code(result)

    def other_code(self, result: CellResult) -> bool:
        """Whether the code that produced a result has changed."""
        return result.protocol == PROTOCOL and bool(self._differing(result))

    def stale(self, result: CellResult) -> bool:
        """Whether the protocol, rules, code or versions of a result differ from those installed now."""
        now = _versions(self.requires(result.cell), result.cell.backend)
        changed = bool(result.versions) and result.versions != now
        return changed or bool(self.outdated(result)) or self.other_code(result)

    def _judges(self, cell: Cell) -> list[tuple[str, Plugin]]:
        registry = self.registry
        found = [(f"metric {entry.spec.name}", entry.plugin) for entry in registry.metrics]
        found += [(f"rule {entry.spec.name}", entry.plugin) for entry in registry.rules]
        for name in dict.fromkeys(each.scheme for each in cell.schemes):
            if name in registry.schemes.entries:
                found.append((f"scheme {name}", registry.schemes.entry(name).plugin))
        return found

    def _differing(self, result: CellResult) -> list[str]:
        """Parts whose code has changed."""
        now = self.code(result.cell)
        return [part for part, line in now.items() if part in result.code and result.code[part] != line]

    def _line(self, origin: str) -> str:
        if origin not in self._lines:
            self._lines[origin] = fingerprint(origin, self._files)
        return self._lines[origin]


def count_reasons(reasons: Iterable[str]) -> list[str]:
    """Sentences about the number of cells that are run again, for each reason."""
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return [
        f"1 cell {reason.replace('were', 'was', 1)}: it is run again"
        if n == 1
        else f"{n} cells {reason}: they are run again"
        for reason, n in counts.items()
    ]


def recorded_code(job: Job) -> dict[str, str]:
    """The code of a cell by part, read again where the cell runs; no plugin is loaded.

    Code that was edited during the run, or differs on this machine, gets a line that names both states.
    """
    found = {}
    for part, planned in job.code.items():
        now = fingerprint(job.origins[part], job.plugins) if part in job.origins else planned
        found[part] = planned if now == planned else f"{now or f'absent {code_name(planned)}'}, planned as {planned}"
    return found


def recorded_versions(job: Job) -> dict[str, str]:
    """Versions of the harness, the numeric libraries, the backend and the requirements of a cell; loads no plugin."""
    return _versions(job.requires, job.cell.backend)


def _versions(requires: Iterable[str], backend: str) -> dict[str, str]:
    network = ("keras", backend) if backend else ()
    return dict(versions(*network, *map(distribution_of, requires)))


def numeric_flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables that can change the last bits of a number: threads, flags of BLAS and of backends."""
    given = os.environ if environment is None else environment
    found = {}
    for name in sorted(given):
        if name in _FLAGS or (name.startswith(_FLAG_FAMILIES) and not any(word in name for word in _NO_BITS)):
            words = [w for w in given[name].split() if "dump" not in w] if name == "XLA_FLAGS" else [given[name]]
            found[name] = printable(" ".join(words))[:200]
    return {name: value for name, value in found.items() if value}


def known_cells(results: Iterable[CellResult], about: Callable[[CellResult], str]) -> list[str]:
    """The texts of ``about`` for results whose method and dataset are registered."""
    said = []
    for result in results:
        try:
            said.append(about(result))
        except UnknownNameError:
            continue
    return [text for text in said if text]

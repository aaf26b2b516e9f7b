"""The code, versions and flags that produced a result, and whether a run would produce it the same way now.

A result is *outdated*, and recomputed by the next run, if its protocol or a selection rule has another version, or if
the code of a plugin file or of an unreleased third-party plugin has changed. It is *stale*, and recomputed by
``--rerun stale``, if anything else differs: versions of libraries, or the code of llpbench itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from llpbench.contracts.cell import Cell
from llpbench.contracts.errors import UnknownNameError
from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.data.cache import cache_root
from llpbench.experiment.tuned import Chosen
from llpbench.plugins.fingerprint import (
    HARNESS,
    OWN,
    READ,
    code_name,
    distribution_of,
    fingerprint,
    is_own,
    is_released,
    line_of_part,
    origin_of,
    part_of,
)
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Registry
from llpbench.system.environment import DATA
from llpbench.system.machine import versions


class Provenance:
    """The code that would compute cells now; every plugin is read once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._files = tuple(str(Path(p.distribution).resolve()) for p in registry.plugins if p.from_file)
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
        return self._outdated_code(result.cell, result.code)

    def outdated_search(self, chosen: Chosen) -> str:
        """Why parameters of a search are not those of the methods here; empty if they are."""
        return self._outdated_code(chosen.setting.cell, chosen.code)

    def _outdated_code(self, cell: Cell, code: Mapping[str, str]) -> str:
        for part, before, today in self._differing(cell, code):
            if part.startswith(READ):
                return f"were computed with another {Path(part.rpartition(':')[2]).name}"
            for line in (today, before):  # also a plugin that replaces a released or built-in one
                if not is_own(line) and not is_released(line):
                    return f"were computed by other code of {code_name(line)}"
        return ""

    def current(self, result: CellResult) -> bool:
        """Whether a run would compute a result now under the same protocol and rules, by the same code."""
        return not self.outdated(result) and not self.other_code(result)

    def other_code(self, result: CellResult) -> bool:
        """Whether the code that produced a result has changed."""
        return result.protocol == PROTOCOL and bool(self._differing(result.cell, result.code))

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

    def _differing(self, cell: Cell, code: Mapping[str, str]) -> list[tuple[str, str, str]]:
        """Parts whose code has changed, or files that were read and have: how they were, and how they are now.

        A file beside no plugin may be one of another machine, whose results were merged: here it need not exist.
        """
        read = [part for part in code if part.startswith(READ)]
        here = (part for part in read if ":" in part or Path(part.removeprefix(READ)).exists())
        now = self.code(cell) | {part: self._line_read(part) for part in here}
        return [(part, code[part], line) for part, line in now.items() if part in code and code[part] != line]

    def _line_read(self, part: str) -> str:
        if part not in self._lines:
            self._lines[part] = line_of_part(part, self._files)
        return self._lines[part]

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


def recorded_code(job: Job, *, method_read: Iterable[str] = (), judge_read: Iterable[str] = ()) -> dict[str, str]:
    """The code of a cell by part, read again where the cell runs; no plugin is loaded.

    Code that was edited during the run, or differs on this machine, gets a line that names both states. The files that
    the processes of the cell read are parts, too. Those of the judge count if a plugin takes part in it: the built-in
    datasets check their files, or have a digest of them in the id of the cell.
    """
    found = {}
    for part, planned in job.code.items():
        now = fingerprint(job.origins[part], job.plugins) if part in job.origins else planned
        found[part] = planned if now == planned else f"{now or f'absent {code_name(planned)}'}, planned as {planned}"
    guests = any(not origin.startswith(f"{OWN}:") for part, origin in job.origins.items() if part != "method")
    return found | _files_read(job, [*method_read, *(judge_read if guests else ())])


def _files_read(job: Job, opened: Iterable[str]) -> dict[str, str]:
    """The content of files that a cell read, apart from code that has a part, data files, caches and settings."""
    known = [*job.plugins, job.out, job.scratch, cache_root(), job.data or DATA.value or cache_root()]
    covered = [folder for path in map(Path, known) for folder in (path.absolute(), path.resolve())]
    has_part = {origin.removeprefix("file:") for origin in job.origins.values()}
    plugins = sorted(job.plugins, key=lambda file: Path(file).name not in has_part)  # a file is named by these first
    found = {}
    for path in map(Path, opened):
        part = part_of(path, plugins)
        setting = part == f"{READ}{path}" and _is_setting(path)
        if path.is_file() and not setting and not any(map(path.is_relative_to, covered)):
            found[part] = line_of_part(part, plugins)
    return found


def _is_setting(path: Path) -> bool:
    """Whether a file is in a hidden folder of the user's home, where programs keep settings and caches."""
    home = Path.home()
    return home in path.parents and path.relative_to(home).parts[0].startswith(".")


def recorded_versions(job: Job) -> dict[str, str]:
    """Versions of the harness, the numeric libraries, the backend and the requirements of a cell; loads no plugin."""
    return _versions(job.requires, job.cell.backend)


def _versions(requires: Iterable[str], backend: str) -> dict[str, str]:
    network = ("keras", backend) if backend else ()
    return dict(versions(*network, *map(distribution_of, requires)))


def known_cells(results: Iterable[CellResult], about: Callable[[CellResult], str]) -> list[str]:
    """The texts of ``about`` for results whose method and dataset are registered."""
    said = []
    for result in results:
        try:
            said.append(about(result))
        except UnknownNameError:
            continue
    return [text for text in said if text]

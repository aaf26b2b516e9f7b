"""From planned cells to jobs: which cells are to run, and what each process is given."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from llpbench.contracts.executor import Executor, ExecutorSettings
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import DatasetSpec, MethodSpec, Scalar
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import Rerun, RunSettings
from llpbench.plugins.registry import Entry, Registry
from llpbench.results.provenance import Provenance, count_reasons
from llpbench.results.sealing import Damaged
from llpbench.results.store import Store
from llpbench.system.environment import DATA
from llpbench.system.machine import total_memory_mb


def wanted_cells(
    planned: Iterable[Planned],
    store: Store,
    registry: Registry,
    rerun: Rerun,
    warn: Callable[[str], None],
    note: Callable[[str], None] | None = None,
) -> tuple[list[Planned], list[CellResult]]:
    """Split a plan into cells to run and results to keep, by the rerun rule.

    Damaged files are always run again, and so are results that would stand for something else today (another protocol,
    another version of a rule, other code of a plugin that is not released): ``note`` is told how many, and why.
    """
    run: list[Planned] = []
    kept: list[CellResult] = []
    outdated: list[str] = []
    provenance = Provenance(registry)
    for plan in planned:
        try:
            result = store.read(plan.cell.id)
        except Damaged as damage:
            warn(f"{store.result_path(plan.cell.id)}: {damage}; the cell is run again")
            result = None
        if result is None or rerun == "all" or (rerun == "failed" and result.status in FAILURES):
            run.append(plan)
        elif reason := provenance.outdated(result):
            outdated.append(reason)
            run.append(plan)
        elif rerun == "stale" and provenance.stale(result):
            run.append(plan)
        else:
            kept.append(result)
    for sentence in count_reasons(outdated):
        (note or warn)(sentence)
    return run, kept


def make_executor(settings: RunSettings, registry: Registry) -> Executor:
    """The executor that the settings name."""
    return registry.executor(settings.executor, ExecutorSettings(settings.jobs, settings.threads, settings.start))


def fetch_data(planned: Iterable[Planned], registry: Registry, settings: RunSettings, *, quiet: bool) -> None:
    """Fetch the files of datasets before their cells start."""
    from llpbench.data.fetch_files import fetch_files

    folder = Path(settings.data) if settings.data else None
    for name in dict.fromkeys(plan.cell.dataset for plan in planned):
        fetch_files(registry.datasets[name], folder, offline=settings.offline, quiet=quiet)


def default_memory_mb() -> float:
    """8 GiB for each cell, or four fifths of a smaller machine; never what happens to be free."""
    return min(8192.0, 0.8 * total_memory_mb())


def make_jobs(planned: Iterable[Planned], store: Store, registry: Registry, settings: RunSettings) -> list[Job]:
    """Jobs for cells. Cells of one backend share what is imported for them beforehand."""
    planned = list(planned)
    preload: dict[str, set[str]] = {}
    for plan in planned:
        spec = registry.methods[plan.cell.method]
        keras = ("keras",) if plan.cell.backend else ()
        preload.setdefault(plan.cell.backend, set()).update(keras, spec.preload)
    provenance = Provenance(registry)
    return [
        Job(
            cell=plan.cell,
            method_name=plan.method_name,
            dataset_name=plan.dataset_name,
            out=str(store.root.resolve()),
            locked=_files_of(registry.datasets[plan.cell.dataset], plan.cell.dataset_options, settings.data_folder),
            data=settings.data_folder,
            offline=settings.offline,
            plugins=settings.plugin_files,
            override=tuple(settings.override),
            judge_plugins=provenance.judge_files(plan.cell),
            method=method_facts(registry.methods.entry(plan.cell.method)),
            code=provenance.code(plan.cell),
            origins=provenance.origins(plan.cell),
            requires=provenance.requires(plan.cell),
            preload=tuple(sorted(preload[plan.cell.backend])),
            threads=settings.threads,
            timeout=settings.timeout,
            memory_mb=settings.memory or default_memory_mb(),
            resources=dict(registry.methods[plan.cell.method].resources),
            predictions=settings.predictions,
            tuning_seconds=plan.tuning_seconds,
        )
        for plan in planned
    ]


def _files_of(spec: DatasetSpec, options: Mapping[str, Scalar], data: str) -> tuple[str, ...]:
    """The files that a dataset may be read from: those that it declares, which may be links, and those of its options.

    In an option, a checksum behind ``#`` is no part of the path.
    """
    given = [str(options[p.name]) for p in spec.params if p.names_file and options.get(p.name)]
    paths = [path for text in given for path in (text, text.rpartition("#")[0]) if path]
    if folder := data or DATA.value:
        paths += [str(Path(folder, form.path)) for file in spec.files for form in (file, *file.forms)]
    return tuple(str(Path(path).expanduser().absolute()) for path in paths)


def method_facts(entry: Entry[MethodSpec]) -> MethodFacts:
    """What the judge of a cell knows of its method."""
    spec, plugin = entry.spec, entry.plugin
    origin = plugin.distribution
    if plugin.from_file:
        path = Path(origin).resolve()
        origin = f"{path.stem[:40]}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    return MethodFacts.of(spec, origin)

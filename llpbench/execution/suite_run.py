"""A request for a suite: which of its cells are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from llpbench.contracts.errors import UsageError
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.suites.file import find_suite
from llpbench.experiment.suites.frozen import check_suite
from llpbench.experiment.suites.plan import Limits, all_cells, plan_suite
from llpbench.plugins.registry import Registry

_AXES = ("methods", "datasets", "schemes", "bags", "noise", "seeds")
"""Settings that select from a suite."""


class AskedFor(NamedTuple):
    """What a request asks for: its settings, its cells, the name of its results folder, and notes for the user."""

    settings: RunSettings
    planned: list[Planned]
    name: str
    notes: list[str]


def plan_suite_run(given: Mapping[str, Any], registry: Registry) -> AskedFor:
    """The cells of a suite that are asked for (``NAME``, ``NAME/PART`` or a file).

    All parts share a results folder, so a part can be run first and the rest later.

    Raises:
        UsageError: a setting is given that the suite fixes.
    """
    settings = RunSettings(**given)
    suite, part = find_suite(settings.suite, registry)
    for name, setting in settings.declared().items():
        if name in given and name not in _AXES and (setting.grid or name == "epsilon"):
            raise UsageError(
                f"--{name.replace('_', '-')} does not go with --suite, which fixes it: leave it out, or run the cells "
                f"you want without --suite. Of a suite you can select {', '.join(_AXES)}."
            )
    axes = {name: getattr(settings, "seed_list" if name == "seeds" else name) for name in _AXES if name in given}
    notes = check_suite(suite, registry)
    notes += [] if suite.published else [f"suite {suite.name} is {suite.state}"]
    cells = all_cells(plan_suite(suite, registry, Limits(part=part, **axes)))
    return AskedFor(settings, cells, suite.name, notes)

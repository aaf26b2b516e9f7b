"""A request for a suite: what of it is asked for, how to run it, and its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from llpbench.contracts.errors import UsageError
from llpbench.execution.settings import HOW_KEYS, HowToRun, convert, read_settings, refuse_unknown
from llpbench.experiment.grid import RunSpec
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.file import find_suite
from llpbench.experiment.suites.frozen import check_suite
from llpbench.experiment.suites.plan import Limits, all_cells, plan_suite
from llpbench.plugins.registry import Registry

_AXES = ("methods", "datasets", "schemes", "bags", "noise", "seeds")
"""What a request can take some of."""


class AskedFor(NamedTuple):
    """What a request asks for: how to run, its cells, the name of its results folder, and what to say beforehand."""

    how: HowToRun
    planned: list[Planned]
    name: str
    notes: list[str]


def plan_suite_run(text: str, settings: Mapping[str, Any], registry: Registry) -> AskedFor:
    """The cells of a suite that are asked for (``NAME``, ``NAME/PART`` or a file).

    All parts share a results folder, so a part can be run first and the rest later.
    """
    suite, part = find_suite(text, registry)
    limits, how = limit_suite(part, settings)
    notes = check_suite(suite, registry)
    notes += [] if suite.published else [f"suite {suite.name} is {suite.state}"]
    return AskedFor(how, all_cells(plan_suite(suite, registry, limits)), suite.name, notes)


def limit_suite(part: str, flags: Mapping[str, Any]) -> tuple[Limits, HowToRun]:
    """What of a suite is asked for, and how to run it; settings that the suite itself fixes are refused."""
    given = {key: value for key, value in flags.items() if value is not None}
    refuse_unknown(given, "setting")
    for key in given:
        if key not in HOW_KEYS and key not in _AXES:
            raise UsageError(
                f"--{key.replace('_', '-')} does not go with --suite, which settles it: leave it out, or run the cells "
                f"you want without --suite. Of a suite one can take some {', '.join(_AXES)}."
            )
    read = read_settings(given)
    axes: RunSpec = convert({"methods": [], **{key: read[key] for key in _AXES if key in read}}, RunSpec)
    limits = Limits(
        part=part,
        methods=axes.methods,
        datasets=axes.datasets if "datasets" in read else (),
        schemes=axes.schemes if "schemes" in read else (),
        bags=axes.bags if "bags" in read else (),
        noise=axes.noise if "noise" in read else (),
        seeds=axes.seed_list if "seeds" in read else (),
    )
    return limits, convert({key: value for key, value in read.items() if key in HOW_KEYS}, HowToRun)

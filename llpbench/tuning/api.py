"""``llpbench.tune``: what a notebook calls to search for parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llpbench.api import Names, Paths, Seeds, paths_of
from llpbench.execution.settings import call_text, plain_setting
from llpbench.plugins.options import names_of
from llpbench.tuning.request import plan_tune
from llpbench.tuning.results import TuneResults


def tune(
    methods: Names | None = None,
    *,
    trials: int | None = None,
    rule: Names | None = None,
    shared: bool | None = None,
    seeds: Seeds | None = None,
    per_seed: bool | None = None,
    sampler: str | None = None,
    sampler_seed: int | None = None,
    prune: bool | None = None,
    at_once: int | None = None,
    ranges: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    plugins: Paths = (),
    override: Names = (),
    progress: bool = True,
    **settings: Any,
) -> TuneResults:
    """Search the declared parameters of methods on held-back data; ``run(params=...)`` uses what was found.

    Trials are judged on validation data only: test rows are dropped as they are loaded. Every trial is kept: the same
    call again goes on where it stopped, also beside another one that still runs.

    Args:
        methods: what is given in brackets is fixed: ``"dllp[epochs=30]"``.
        trials: trials of each study (20); the first is the method's defaults.
        rule: the selection rules that judge trials (``"bags"``), each a study of its own; ``"all"`` for all of them.
        shared: one set of trials, drawn at random, serves all rules.
        seeds: how many to tune on (1: seed 0), or which, as in ``run``.
        per_seed: a study for each seed, for runs of that seed alone.
        sampler: tpe (the default) or random (the default where trials are shared).
        sampler_seed: seed of what trials draw (0).
        prune: give up trials that lag behind the median (True).
        at_once: trials of a study at once (1).
        ranges: search these parameters alone, within these ranges: ``{"lr": [1e-4, 1e-2], "loss": ["log", "square"]}``;
            under the name of a method a table of the same form for it alone.
        config: a run file, or the name of a built-in one, whose table ``search`` may state the settings of the search;
            arguments win over it.
        out: where studies and chosen parameters are kept (``"tuned"``).
        plugins: single-file plugins.
        override: names for which the plugin loaded last wins.
        progress: show a line for each trial.
        settings: datasets, bags, schemes, noise, backend, executor, timeout, ...: as in ``run``.

    Returns:
        ``results.chosen`` is a pandas table of what each study chose, ``results.trials`` of every trial.
    """
    given = {name: value for name, value in locals().items() if name != "settings"} | settings
    command = call_text("tune", given)
    for name in ("config", "plugins", "override", "progress"):
        del given[name]
    given = {name: plain_setting(value) for name, value in given.items()}
    request = plan_tune(given, config=config, plugins=paths_of(plugins), override=names_of(override))
    return request.run(progress, command)

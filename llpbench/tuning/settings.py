"""The settings of a search: those of a run, and how trials are drawn and judged."""

from __future__ import annotations

from typing import Any

from llpbench.contracts.errors import UsageError
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import Choice, KeyValues, Location, Names, Seeds, Switch, Whole

UNSTEERED = "random"
"""The sampler that ignores earlier trials, so that several rules can share its trials."""
STEERED = "tpe"
"""The sampler that follows the values of earlier trials."""
SAMPLERS = (STEERED, UNSTEERED)
NOT_FOR_SEARCHES = ("preset", "params", "params_rule", "suite", "metric", "rerun", "exitfirst", "predictions")
"""Settings of a run that ``llpbench tune`` has no option for; a run file may hold them."""


class TuneSettings(RunSettings):
    """What to tune, and how."""

    seeds: Seeds = Seeds("Number of seeds to tune on (from 0), or which: 0,1,2 or 3-5.", 1, short="s", grid=True)
    config: Location = Location(
        "A TOML file with the grid and, in its table [search], the settings of the search, or the name of a built-in "
        "one; options and arguments win over it.",
        "",
    )
    out: Location = Location("Folder of the studies and the chosen parameters.", "tuned", short="o")
    trials: Whole = Whole("Trials of each study; the first is the method's defaults.", 20)
    rule: Names = Names(
        "Selection rules that judge trials: bags (held-out bags), instances (labels of held-out rows), others, or all; "
        "each has a study of its own.",
        ["bags"],
    )
    shared: Switch = Switch(
        "One set of trials, drawn at random, serves all rules; a trial is pruned only if it lags under each of them.",
        False,
        flags="--shared/--no-shared, /--not-shared",
        rare=True,
    )
    per_seed: Switch = Switch(
        "Tune each seed separately; its parameters apply to runs of that seed only.", False, rare=True
    )
    sampler: Choice[str] = Choice("How trials are drawn.", "", choices=SAMPLERS, shown="tpe; shared: random", rare=True)
    sampler_seed: Whole = Whole("Seed of the sampler.", 0, rare=True)
    prune: Switch = Switch(
        "Prune trials that lag behind the median.", True, flags="--prune/--no-prune", shown="prune", rare=True
    )
    at_once: Whole = Whole("Number of trials of a study that run at once.", 1, rare=True)
    ranges: KeyValues = KeyValues(
        'Search only these parameters, within these ranges: {"lr": [1e-4, 1e-2], "loss": ["log", "square"]}; a table '
        "of the same form under the name of a method applies to that method alone.",
        {},
        flags="",
    )

    def derived(self, given: set[str]) -> dict[str, Any]:
        """The sampler, where none is given; settings of the search are checked."""
        sampler = self.sampler or (UNSTEERED if self.shared else STEERED)
        for name in ("trials", "at_once"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.shared and sampler != UNSTEERED:
            raise UsageError(
                f"the sampler {sampler!r} follows the values of one rule and would favour it in shared trials. "
                f"Use --sampler {UNSTEERED} with --shared."
            )
        if self.shared and self.rule != ["all"] and len(set(self.rule)) < 2:
            raise UsageError(
                f"--shared needs at least two rules, got {', '.join(self.rule)}. "
                "Give more (--rule all, --rule instances,bags), or remove --shared."
            )
        return super().derived(given) | {"sampler": sampler}


IN_SEARCH = (TuneSettings.declared().keys() - RunSettings.declared().keys()) | {"seeds"}
"""Settings of the table ``[search]`` of a run file: those that a run does not have, and the seeds to tune on."""

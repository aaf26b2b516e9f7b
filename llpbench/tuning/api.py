"""``llpbench.tune``: search for parameters from Python."""

from __future__ import annotations

from typing import Any

from llpbench.experiment.setting import takes
from llpbench.tuning.request import plan_tune
from llpbench.tuning.results import TuneResults
from llpbench.tuning.settings import TuneSettings


@takes(TuneSettings)
def tune(methods: object = None, **settings: Any) -> TuneResults:
    """Search the declared parameters of methods on held-out data; ``run(params=...)`` uses what was found.

    Trials are judged on validation data only: test rows are dropped as they are loaded. Every trial is kept: the same
    call again goes on where it stopped, also beside another one that still runs. Parameters in brackets are fixed:
    ``"dllp[epochs=30]"``. With ``config``, the table ``search`` of the run file may hold the settings of the search.

    Returns:
        ``results.chosen`` is a pandas table of what each study chose, ``results.trials`` of every trial.
    """
    return plan_tune({"methods": methods, **settings}, python=True).run()

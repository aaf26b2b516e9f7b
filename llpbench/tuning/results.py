"""Results of a search: the chosen parameters of each study, and all trials, as pandas tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.contracts.cell import setting_name
from llpbench.experiment.tuned import Trial
from llpbench.tuning.searches import Search

if TYPE_CHECKING:
    import pandas as pd


def describe_trial(search: Search, trial: Trial) -> str:
    """One line about a finished trial."""
    best = search.history().best
    value = f"{trial.value:.5f}" if trial.value is not None else "-"
    end = "" if trial.status == "ok" else f"  {trial.status}: {trial.reason}"
    reached = f"  best {best.value:.5f}" if best is not None and best.value is not None else ""
    where = setting_name(search.dataset_name, search.setting.cell.bag_size, "  ")
    head = f"{search.method_name}  {where}  {search.setting.rule}"
    return f"[{trial.number + 1}/{search.wanted}] {head}  {value}{reached}  {trial.seconds:.1f} s{end}"


@dataclass(frozen=True)
class TuneResults:
    """Studies and the parameters that they chose.

    Attributes:
        folder: folder of the studies and chosen parameters, for ``run(params=folder)``.
    """

    folder: Path
    searches: list[Search]

    @property
    def complete(self) -> bool:
        """Whether every study chose parameters."""
        return all(search.history().best is not None for search in self.searches)

    @property
    def chosen(self) -> pd.DataFrame:
        """One row per study: the value of the defaults, the best value, the changed parameters."""
        import pandas as pd

        return pd.DataFrame([chosen_row(search) for search in self.searches])

    def _repr_html_(self) -> str:
        return f"<p>{len(self.searches)} studies in {self.folder}</p>{self.chosen.to_html()}"

    @property
    def trials(self) -> pd.DataFrame:
        """One row per trial of each study."""
        import pandas as pd

        return pd.DataFrame(
            [
                {**_setting(search), "trial": trial.number, "status": trial.status, "value": trial.value}
                | {"seconds": trial.seconds, "reports": trial.reports, "params": trial.params, "reason": trial.reason}
                for search in self.searches
                for trial in search.study.trials()
            ]
        )


def _setting(search: Search) -> dict[str, Any]:
    cell = search.setting.cell
    return {
        "method": search.method_name,
        "dataset": search.dataset_name,
        "bag": cell.bag_size,
        "noise": cell.noise,
        "rule": search.setting.rule,
        "seeds": ",".join(map(str, search.setting.seeds)),
    }


def chosen_row(search: Search) -> dict[str, Any]:
    """The row of a study in ``TuneResults.chosen``."""
    history = search.history()
    best, first = history.best, history.first
    statuses = [t.status for t in history.trials]
    changed = {} if best is None else search.method.changed(best.params)
    return {
        **_setting(search),
        "default": first.value if first is not None and first.status == "ok" else None,
        "tuned": best.value if best is not None else None,
        "trials": len(statuses),
        "pruned": statuses.count("pruned"),
        "failed": sum(s not in ("ok", "pruned", "running") for s in statuses),
        "seconds": history.seconds,
        "params": changed,
        "reason": first.reason if best is None and first is not None else "",
    }

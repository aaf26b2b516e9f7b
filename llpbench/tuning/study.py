"""Studies in Optuna's journal storage. All uses of Optuna are in this module.

The journal is a text file to which events are appended under a lock that the system releases when its owner dies.
Several processes may work on one study; a trial belongs to the process that holds its claim, and the trial of a dead
process is continued with its parameters.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from llpbench.contracts.errors import StoreError, UsageError, describe
from llpbench.contracts.specs import Scalar
from llpbench.experiment.seeds import derive_seed
from llpbench.experiment.tuned import Trial
from llpbench.system.locks import Claim, file_lock
from llpbench.tuning.settings import UNSTEERED
from llpbench.tuning.space import Dimension, start_values


def import_optuna() -> Any:
    """Import Optuna; raises ``UsageError`` if it is not installed."""
    try:
        import optuna
    except ImportError:
        raise UsageError("tuning requires optuna: pip install 'llpbench[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def locked(path: Path) -> contextlib.AbstractContextManager[None]:
    """Hold the lock file ``path``; raises an error if another process holds it too long."""
    return file_lock(path, seconds=60)


class Journal:
    """The journal file of a folder and the locks around it."""

    def __init__(self, out: Path) -> None:
        optuna = import_optuna()
        self.path, self.claims = out / "journal.log", out / "claims"
        self.claims.mkdir(parents=True, exist_ok=True)
        lock = self.claims / "journal.lock"
        with locked(lock):
            _mend(self.path)
        try:
            backend = optuna.storages.journal.JournalFileBackend(str(self.path), lock_obj=_Lock(lock))
            self.storage = optuna.storages.JournalStorage(backend)
        except Exception as error:
            raise StoreError(_damaged(self.path, describe(error))) from None

    def claim(self, name: str) -> Claim | None:
        """Claim a name for this process; None if another process holds it."""
        return Claim.take(self.claims / f"{name}.lock")


class _Lock:
    """The journal's lock for Optuna. Optuna's own blocks for 30 seconds if its owner died, this one does not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = contextlib.ExitStack()

    def acquire(self) -> bool:
        self._held.enter_context(locked(self._path))
        return True

    def release(self) -> None:
        self._held.close()


def _mend(path: Path) -> None:
    """Remove an incomplete last line: Optuna would append to it."""
    data = path.read_bytes() if path.exists() else b""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def _damaged(path: Path, what: str) -> str:
    return f"{path} is damaged: {what}. Restore it, or tune into another folder with --out."


class _Sampler:
    """Draws each parameter independently with its own seed, so that it depends only on finished trials and its name.

    A trial whose process died while drawing its parameters is therefore continued unchanged.
    """

    def __init__(self, kind: str, seed: int) -> None:
        samplers = import_optuna().samplers
        self._kind = samplers.RandomSampler if kind == UNSTEERED else samplers.TPESampler
        self._seed = seed

    def infer_relative_search_space(self, *_: Any) -> dict[str, Any]:
        return {}

    def sample_relative(self, *_: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
        seed = derive_seed("tune", seed=self._seed, trial=trial.number, parameter=name)
        return self._kind(seed=seed).sample_independent(study, trial, name, distribution)

    def before_trial(self, *_: Any) -> None:
        pass

    def after_trial(self, *_: Any) -> None:
        pass


@dataclass
class Asked:
    """A trial to run: its number, its parameters and the claim on it."""

    number: int
    params: dict[str, Scalar]
    claim: Claim


class Study:
    """One study in a journal. The first trial has the given start parameters; later ones are drawn.

    Args:
        journal: the journal.
        name: its name, unique in the journal.
        key: the key in file names.
        higher_is_better: the direction of its rule.
        space: the search space.
        start: the parameters of the first trial.
        sampler: ``tpe`` or ``random``.
        seed: trial n draws a parameter with a seed derived from this seed, n and the parameter's name.
    """

    def __init__(
        self,
        journal: Journal,
        name: str,
        *,
        key: str,
        higher_is_better: bool,
        space: tuple[Dimension, ...],
        start: Mapping[str, Scalar],
        sampler: str,
        seed: int,
    ) -> None:
        self._optuna = import_optuna()
        self.journal, self.key, self.space = journal, key, space
        direction = "maximize" if higher_is_better else "minimize"
        try:
            with self._locked():
                self._study = self._optuna.create_study(
                    study_name=name,
                    storage=journal.storage,
                    sampler=_Sampler(sampler, seed),
                    direction=direction,
                    load_if_exists=True,
                )
                if not self._study.get_trials(deepcopy=False):
                    self._study.enqueue_trial(start_values(space, start))
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(_damaged(journal.path, describe(error))) from None

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.journal.claims / f"study-{self.key}.lock")

    def ask(self, wanted: int) -> Asked | None:
        """A trial to run: one whose process died, or a new one if fewer than ``wanted`` were started."""
        states = self._optuna.trial.TrialState
        with self._locked():
            trials = self._study.get_trials(deepcopy=False)
            for trial in trials:
                if trial.state == states.RUNNING and (claim := self._claim(trial.number)) is not None:
                    if self._still_running(trial.number):
                        return self._asked(self._trial(trial.number), claim)
                    claim.release()  # its owner has finished it in the meantime
            if sum(trial.state != states.WAITING for trial in trials) >= wanted:
                return None
            number = next((t.number for t in trials if t.state == states.WAITING), len(trials))
            claim = self._claim(number)
            assert claim is not None
            trial = self._study.ask()
            assert trial.number == number
            return self._asked(trial, claim)

    def _claim(self, number: int) -> Claim | None:
        return self.journal.claim(f"trial-{self.key}-{number}")

    def _still_running(self, number: int) -> bool:
        trials = self._study.get_trials(deepcopy=False)
        return any(t.number == number and not t.state.is_finished() for t in trials)

    def _asked(self, trial: Any, claim: Claim) -> Asked:
        """Draw the parameters that are not drawn yet."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Asked(trial.number, {d.name: d.suggest(trial) for d in self.space}, claim)

    def _trial(self, number: int) -> Any:
        """A trial of the journal that can be finished."""
        found = next(t for t in self._study.get_trials(deepcopy=False) if t.number == number)
        return self._optuna.trial.Trial(self._study, found._trial_id)

    def tell(self, asked: Asked, done: Trial) -> None:
        """Record the result of a trial, and release it."""
        states = self._optuna.trial.TrialState
        trial = self._trial(asked.number)
        facts = {"status": done.status, "seconds": done.seconds, "reports": done.reports, "cells": done.cells}
        trial.set_user_attr("outcome", {**facts, "reason": done.reason, "value": done.value})
        if done.status == "ok" and done.value is not None:
            self._study.tell(trial, done.value)
        elif done.status == "pruned":
            if done.value is not None:
                trial.report(done.value, max(done.reports - 1, 0))
            self._study.tell(trial, state=states.PRUNED)
        else:
            self._study.tell(trial, state=states.FAIL)
        asked.claim.release()

    def trials(self) -> list[Trial]:
        """All trials that were started."""
        states = self._optuna.trial.TrialState
        begun = [t for t in self._study.get_trials(deepcopy=False) if t.state != states.WAITING]
        try:
            return [_record(trial, self.space) for trial in begun]
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise StoreError(_damaged(self.journal.path, f"a trial cannot be read ({describe(error)})")) from None


def _record(trial: Any, space: tuple[Dimension, ...]) -> Trial:
    params: dict[str, Scalar] = {}
    for d in space:
        if d.name in trial.params or d.number_name in trial.params:
            number = d.number_name in trial.params
            params[d.name] = trial.params[d.number_name if number else d.name]
    outcome = trial.user_attrs["outcome"] if trial.state.is_finished() else {"status": "running"}
    return msgspec.convert({"number": trial.number, "params": params, **outcome}, Trial)

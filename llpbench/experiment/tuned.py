"""Files that a search writes: the history of every study, and the chosen parameters.

::

    <out>/studies/<name>.json   every trial: parameters, value, seconds, status
    <out>/tuned.json            the chosen parameters: what ``llpbench run --params`` reads
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from llpbench.contracts.cell import SEARCHED, Cell
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.specs import Scalar
from llpbench.experiment.grid import Tuned
from llpbench.system.files import write_json

FILE = "tuned.json"
T = TypeVar("T")


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One trial. ``value`` is the mean over seeds; for a pruned trial the best value so far."""

    number: int
    params: dict[str, Scalar]
    status: str
    value: float | None = None
    seconds: float = 0.0
    reports: int = 0
    cells: list[str] = []
    reason: str = ""


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is tuned: a method with fixed parameters, on one setting, by one rule, on some seeds.

    Attributes:
        cell: the setting as a cell without parameters.
        fixed: parameters that are not searched.
        seeds: the seeds whose training and validation parts are used.
        own: whether the parameters are only for runs of this seed.
    """

    cell: Cell
    fixed: dict[str, Scalar]
    rule: str
    seeds: list[int]
    own: bool = False


class History(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The history of a study.

    Attributes:
        higher_is_better: the direction of its rule.
        shared: the rules that share these trials, including its own; empty if they are not shared.
    """

    study: str
    setting: Setting
    space: dict[str, str]
    sampler: str
    sampler_seed: int
    wanted: int
    trials: list[Trial]
    higher_is_better: bool
    shared: list[str] = []

    @property
    def best(self) -> Trial | None:
        """The finished trial with the best value, the earliest of ties; None if no trial has a value."""
        done = [t for t in self.trials if t.status == "ok" and t.value is not None]
        sign = -1.0 if self.higher_is_better else 1.0
        return min(done, key=lambda t: (sign * (t.value or 0.0), t.number), default=None)

    @property
    def first(self) -> Trial | None:
        """The trial of the method's defaults."""
        return next((t for t in self.trials if t.number == 0), None)

    @property
    def seconds(self) -> float:
        """Total time of all trials."""
        return sum(t.seconds for t in self.trials)


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters that a study chose; ``code`` is that of the cells of its best trial, by part."""

    study: str
    setting: Setting
    params: dict[str, Scalar]
    value: float
    default_value: float | None
    trials: int
    seconds: float
    code: dict[str, str] = {}

    def serves(self, cell: Cell) -> bool:
        """Whether the parameters apply to the setting of a cell."""
        return tuned_setting(self.setting.cell) == tuned_setting(cell)


class TunedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``tuned.json``."""

    chosen: list[Chosen]


def write_history(out: Path, history: History) -> Path:
    """Write a study's history atomically to a file named after the study."""
    words, _, key = re.sub(r"[^A-Za-z0-9._=-]+", "-", history.study).rpartition("-")
    path = out / "studies" / f"{words[:120]}-{key}.json"
    write_json(path, history)
    return path


def write_chosen(out: Path, code_of: Callable[[Trial], dict[str, str]]) -> list[Chosen]:
    """Write the parameters that all studies of a folder chose to ``tuned.json``, with the code of their trials."""
    chosen = []
    for path in sorted((out / "studies").glob("*.json")):
        history = _decode(path, History)
        best, first = history.best, history.first
        if best is not None and best.value is not None:
            chosen.append(
                Chosen(
                    study=history.study,
                    setting=history.setting,
                    params={**history.setting.fixed, **best.params},
                    value=best.value,
                    default_value=first.value if first is not None and first.status == "ok" else None,
                    trials=len(history.trials),
                    seconds=history.seconds,
                    code=code_of(best),
                )
            )
    write_json(out / FILE, TunedFile(chosen=chosen))
    return chosen


def read_chosen(path: Path) -> list[Chosen]:
    """Read the chosen parameters from a file, or from the output folder of ``llpbench tune``."""
    return _decode(path / FILE if path.is_dir() else path, TunedFile).chosen


def _decode(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file. llpbench tune writes it.") from None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is not a valid file of tuned parameters: {error}.") from None


def bare(cell: Cell) -> Cell:
    """The setting of a cell: without parameters, seed and purpose."""
    return msgspec.structs.replace(cell, params={}, seed=0, preset="", tuning=False)


def tuned_setting(cell: Cell) -> Cell:
    """The setting of a cell for tuned parameters, which do not depend on the folds of the search."""
    return msgspec.structs.replace(bare(cell), folds=0)


class TunedParams:
    """Finds tuned parameters for cells by one rule, and collects what to tell the user."""

    def __init__(self, path: Path, rule: str) -> None:
        self.path, self.rule = path, rule
        self._all = read_chosen(path)
        self.used: dict[str, Chosen] = {}
        self.untuned: dict[str, None] = {}
        self.overlapping: dict[int, tuple[int, ...]] = {}

    def __call__(self, cell: Cell, given: Mapping[str, Scalar]) -> Tuned | None:
        """The parameters for a cell; None if the method was not tuned.

        Raises:
            UsageError: the method was tuned, but for other settings only.
        """
        of_method = [c for c in self._all if c.setting.cell.method == cell.method]
        if not of_method:
            self.untuned[cell.method] = None
            return None
        tests: list[tuple[str, Callable[[Chosen], bool]]] = [
            (f"by rule {self.rule}", lambda c: c.setting.rule == self.rule),
            (f"on {cell.dataset}", lambda c: c.setting.cell.dataset == cell.dataset),
            (f"at bag size {cell.bag_size}", lambda c: c.setting.cell.bag_size == cell.bag_size),
            (f"with noise {cell.noise}", lambda c: c.setting.cell.noise == cell.noise),
            ("with these options of dataset, scheme, noise and backend", lambda c: c.serves(cell)),
            (f"with {dict(given) or 'nothing'} fixed", lambda c: c.setting.fixed == dict(given)),
            (f"for seed {cell.seed}", lambda c: not c.setting.own or c.setting.seeds == [cell.seed]),
        ]
        left, words = of_method, []
        for word, test in tests:
            words.append(word)
            left = [c for c in left if test(c)]
            if not left:
                others = ", ".join(sorted({c.study for c in of_method})[:6])
                raise UsageError(
                    f"{self.path}: {cell.method} was not tuned {', '.join(words)}. Available: {others}. "
                    "Run llpbench tune with the same settings to add it."
                )
        found = max(left, key=lambda c: (c.setting.own, c.trials))
        self.used[found.study] = found
        if found.setting.seeds != [cell.seed]:
            self.overlapping[cell.seed] = tuple(found.setting.seeds)
        return Tuned(found.params, SEARCHED + self.rule, found.seconds)

"""Predictions that somebody hands in for a method that cannot be run here: the folder and its ``submission.json``.

::

    submission.json             the method (``ToldMethod``) and its cells (``ToldCell``), one for each setting and seed
    predictions/<setting>.npz   scores of the test rows (``test``), and maybe of the held-back rows (``valid``)
    inputs/<setting>.npz        what the method was given (``llpbench leaderboard inputs`` writes it); not handed in

``<setting>`` is the id of the setting: no file is ever named by the submitter. What is told (who, seconds, parameters,
the rule that selected) is believed by nobody: it is shown as told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from llpbench.board.content.facts import EVERY_RESULT
from llpbench.board.schema.board import Told
from llpbench.board.validate import (
    Unsound,
    check_name,
    check_values,
    clip,
    has_visible,
    plain_folder,
    read_plain,
    short_line,
)
from llpbench.contracts.cell import OWN_SIZES, USUAL, Cell, SplitBy
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PREDICTIONS_ONLY, CellResult
from llpbench.contracts.specs import DEFAULT_RULE, Scalar

FORMAT = 1
NAME = "submission.json"
LAST_SEED = 9_999
"""Seeds from 10,000 on are those that ``verify`` draws fresh ones from."""
_MOST_CELLS = 20_000
_MOST_PARAMS = 200
_ADDRESS = re.compile(r"https://[^\s<>\"'`\\]+")
_MARK = "[predictions=only]"
_BESIDE = ("setting", "rows", "seconds")


class ToldMethod(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What submitters say of their method.

    Attributes:
        name: lower-case letters, digits, ``-``, ``_``, ``.``; none that a registered method has.
        title: the method in a line.
        who: who hands it in, and how to reach them.
        rule: how they selected among their models: ``bags`` (no label of any row) or ``instances``.
        scores: how scores are to be read: ``probability``, ``logit``, or ``auto``.
        params: parameters of the method; part of every cell.
        citation: the publication in a line; ``paper`` and ``code`` are addresses of it and of the code.
        hardware: what the seconds were measured on.
    """

    name: str
    title: str
    who: str
    rule: str = DEFAULT_RULE
    scores: Literal["auto", "probability", "logit"] = "auto"
    params: dict[str, Scalar] = {}
    citation: str = ""
    paper: str = ""
    code: str = ""
    hardware: str = ""


class ToldCell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The setting of one file of predictions, how long the fit took, and the rows it is of.

    Attributes:
        setting: the id of the setting, which names its files.
        rows: the digest of the features of the test rows that ``inputs`` handed out: predictions of other rows, of
            another seed or of another version of the data are found by it.
        seconds: of the fit, as told.
    """

    setting: str
    dataset: str
    bag_size: int
    seed: int
    rows: str
    seconds: float
    dataset_options: dict[str, Scalar] = {}
    scheme: str = USUAL.scheme
    scheme_options: dict[str, Scalar] = {}
    noise: str = USUAL.noise
    delta: float = USUAL.delta
    mechanism: str = USUAL.mechanism
    feature_noise: float = USUAL.feature_noise
    split: SplitBy = USUAL.split

    def cell(self, about: ToldMethod | None = None) -> Cell:
        """The cell of the method; without one the setting, whose id names the files."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _BESIDE}
        method = {"method": ""} if about is None else {"method": about.name, "params": about.params}
        return Cell(**given, **method)


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``submission.json``."""

    format: int
    method: ToldMethod
    cells: list[ToldCell]


def told_cell(cell: Cell, rows: str, seconds: float = 0.0) -> ToldCell:
    """A setting as a submission states it."""
    setting = msgspec.structs.replace(cell, method="", params={}, backend="", preset="")
    given = {name: getattr(cell, name) for name in ToldCell.__struct_fields__ if name not in _BESIDE}
    return ToldCell(setting=setting.id, rows=rows, seconds=seconds, **given)


def is_submission(folder: Path) -> bool:
    """Whether a folder holds predictions that were handed in."""
    return (folder / NAME).exists() or (folder / NAME).is_symlink()


def predictions_path(folder: Path, cell: ToldCell) -> Path:
    """Where the predictions of a cell lie: a name that nobody chose."""
    return folder / "predictions" / f"{cell.cell().id}.npz"


def inputs_path(folder: Path, setting: Cell) -> Path:
    """Where the inputs of a setting lie."""
    return folder / "inputs" / f"{setting.id}.npz"


def read_submission(folder: Path) -> Submission:
    """A submission whose texts and numbers can be shown; ``StoreError`` says what is wrong with it."""
    path = folder / NAME
    try:
        plain_folder(folder)
        if (folder / "predictions").exists():
            plain_folder(folder / "predictions")
        data = read_plain(path)
        found = msgspec.json.decode(data, type=Submission)
        if found.format != FORMAT:
            raise Unsound(f"it is of format {found.format}, this llpbench reads {FORMAT}")
        check_told_method(found.method)
        _check_cells(found.cells)
    except (Unsound, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise StoreError(f"{path}: {short_line(str(problem))}. docs/submitting.md has the format.") from None
    return found


def read_told_method(path: Path) -> ToldMethod:
    """The published description of a method that was handed in as predictions."""
    try:
        about = msgspec.json.decode(read_plain(path, 1 << 16), type=ToldMethod)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not the description of a submission ({clip(str(error), 200)})") from None
    check_told_method(about)
    if about.name != path.stem:
        raise Unsound(f"it describes {clip(about.name)}")
    return about


def check_told_method(about: ToldMethod) -> None:
    """Refuse a description that cannot be shown, or that lacks what everyone must say."""
    check_name(about.name, "method")
    check_values(msgspec.to_builtins(about))
    if len(about.params) > _MOST_PARAMS:
        raise Unsound(f"method.params has {len(about.params)} parameters; at most {_MOST_PARAMS} are shown")
    for field in ("title", "who"):
        if not has_visible(getattr(about, field)):
            raise Unsound(f"method.{field} is empty")
    if about.rule not in EVERY_RESULT:
        raise Unsound(f"method.rule is {clip(about.rule)}; it is one of {', '.join(EVERY_RESULT)}")
    for field in ("paper", "code"):
        address = getattr(about, field)
        if address and not _ADDRESS.fullmatch(address):
            raise Unsound(f"method.{field} is {clip(address)}, which is no https:// address")


def _check_cells(cells: list[ToldCell]) -> None:
    if not 1 <= len(cells) <= _MOST_CELLS:
        raise Unsound(f"it has {len(cells)} cells; from 1 to {_MOST_CELLS:,} are scored")
    seen: dict[str, int] = {}
    for place, cell in enumerate(cells):
        try:
            check_cell(cell)
        except Unsound as problem:
            raise Unsound(f"cells[{place}]: {problem}") from None
        first = seen.setdefault(cell.cell().id, place)
        if first != place:
            raise Unsound(f"cells[{place}] is the setting of cells[{first}] once more")


def check_cell(cell: ToldCell) -> None:
    """Refuse a setting that no run could have."""
    check_values(msgspec.to_builtins(cell))
    check_name(cell.dataset, "dataset")
    check_name(cell.scheme, "bag scheme")
    if cell.setting != cell.cell().id:
        raise Unsound(
            f"its setting is {clip(cell.setting)}, what it states has the id {cell.cell().id}: leave cells as "
            "'leaderboard inputs' wrote them, but for seconds"
        )
    if not 0 <= cell.seed <= LAST_SEED:
        raise Unsound(f"seed {cell.seed} is not between 0 and {LAST_SEED:,}")
    if cell.bag_size < OWN_SIZES or cell.feature_noise < 0:
        raise Unsound(f"bag size {cell.bag_size}, feature noise {cell.feature_noise:g}: neither may be negative")
    if not cell.seconds > 0:
        raise Unsound("seconds of the fit are not stated")
    if not re.fullmatch(r"[0-9a-f]{32}", cell.rows):
        raise Unsound(f"rows is {clip(cell.rows)}, not the digest that the inputs came with")


def alike(name: str, known: Iterable[str]) -> str | None:
    """The known name that a name would be taken for: the same letters and digits, whatever is between them."""
    plain = re.sub(r"[-_.]", "", name)
    return next((other for other in known if re.sub(r"[-_.]", "", other) == plain), None)


def shown_name(method: str) -> str:
    """What a method that was handed in as predictions is called wherever it is shown."""
    return method + _MARK


def check_shown(result: CellResult) -> None:
    """Predictions carry their mark in the name, and nothing else does."""
    if result.predictions_only != result.method_name.endswith(_MARK):
        raise Unsound(f"the name {clip(result.method_name)} does not say whether it is predictions only")
    if result.predictions_only and (result.oracle or result.cell.folds or result.cell.tuning or result.cell.backend):
        raise Unsound("predictions alone are of no bound, no folds, no trial and no backend")


def told_of(submissions: Mapping[str, ToldMethod], results: Iterable[CellResult]) -> Told | UnsetType:
    """What the board says beside a row of predictions; nothing beside a method that was run."""
    name = next((result.cell.method for result in results if result.predictions_only), None)
    if name is None:
        return UNSET
    about = submissions.get(name) or ToldMethod(name=name, title="", who="")
    return Told(
        mark=PREDICTIONS_ONLY,
        title=about.title,
        who=about.who,
        rule=about.rule,
        citation=about.citation,
        paper=about.paper,
        code=about.code,
        hardware=about.hardware,
    )

"""What a plugin says about itself: frozen, cheap to import, never the thing itself.

A spec names its implementation as ``"module:attribute"``; the module is imported only in the process that
runs a cell, so listing a hundred methods costs nothing.
"""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from llpbench.contracts.data_files import DataFile as DataFile
from llpbench.contracts.data_files import PackageSource as PackageSource
from llpbench.contracts.errors import PluginError, UnknownNameError
from llpbench.contracts.params import Param as Param
from llpbench.contracts.params import Scalar as Scalar
from llpbench.contracts.params import finite

Task = Literal["binary", "multiclass"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_ADDRESS = re.compile(r"https?://[^\s/]+\.[^\s]+\Z")


def import_attribute(path: str) -> Any:
    """The object that ``"module:attribute"`` names."""
    module, attribute = path.split(":")
    return operator.attrgetter(attribute)(importlib.import_module(module))


@dataclass(frozen=True, kw_only=True)
class _Spec:
    """What every registered thing has: a name, an implementation, parameters and a sentence.

    ``exempt`` lists checks of ``llpbench check`` that it cannot meet, each as ``(check, reason)``.
    """

    name: str
    factory: str
    summary: str = ""
    params: tuple[Param, ...] = ()
    requires: tuple[str, ...] = ()
    citation: str = ""
    exempt: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise PluginError(
                f"{type(self).__name__} name {self.name!r} is not allowed: "
                "use lower-case letters, digits, '-', '_' and '.'."
            )
        if self.factory.count(":") != 1:
            raise PluginError(f"{self.name}: factory must read 'module:attribute', not {self.factory!r}.")
        names = [p.name for p in self.params]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise PluginError(f"{self.name}: parameter declared twice: {', '.join(twice)}.")

    def load(self) -> Any:
        """Import the implementation. Heavy: call it only where the thing is about to run."""
        return import_attribute(self.factory)

    def param(self, name: str) -> Param:
        """The declared parameter of that name, or an error that lists the declared ones."""
        for p in self.params:
            if p.name == name:
                return p
        raise UnknownNameError(f"parameter of {self.name}:", name, (p.name for p in self.params))

    def resolve(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The parameters of a cell: the given ones checked, the others at their defaults (but ``omit_default``)."""
        values = self.complete(given)
        return {p.name: values[p.name] for p in self.params if not (p.omit_default and values[p.name] == p.default)}

    def complete(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All parameters with their values: the given ones checked, the others at their defaults."""
        checked = {name: self.param(name).check(value) for name, value in given.items()}
        return {p.name: checked.get(p.name, p.default) for p in self.params}


@dataclass(frozen=True, kw_only=True)
class MethodSpec(_Spec):
    """A method: what it is called, where its class is, what it takes and what it needs.

    Attributes:
        name, factory: what the user types; ``"module:Class"``, called with the parameters as keywords.
        params: declared parameters; a whole number above 0 in one called ``patience`` is also the monitor's patience,
            which is 20 reports otherwise.
        tasks: ``"binary"``, ``"multiclass"`` or both.
        inputs: kinds of ``Bags.X`` it takes: ``"features"`` (rows x columns), ``"images"``.
        backends: backends of Keras it can run on; empty when it uses none.
        requires: modules that must be importable (beside the chosen backend).
        preload: modules worth importing once, before cells are forked (never one that starts threads). Judges are
            forked there too, so only modules of well-known libraries (``fork_server.PRELOADED``) and of llpbench are
            imported; others are left to the method's process, when the method is made.
        oracle: it is given the training labels. Not an LLP method: a bound, set apart in every table.
        control: not a rival but a yardstick: what selection alone buys. Leaderboards say so.
        quick: a fit on some ten thousand rows takes seconds: ``llpbench compare`` tries it without being told.
        presets: named settings, each ``(name, "module:function")`` with ``function(dataset, bag_size)`` giving
            parameters; ``--preset NAME`` uses them (a method without that preset runs at its defaults).
        resources: what a cluster should reserve for a cell beside its threads and memory, each ``(kind, amount)``,
            e.g. ``(("gpu", 1),)``; kinds that no worker declares are not asked for.
        scores: what ``predict_scores`` returns: ``"probability"``, ``"logit"``, or ``"auto"`` (probabilities
            when all values lie in [0, 1], log-odds otherwise).
        paper: address of the publication it comes from.
        code: address of its authors' own code.
    """

    tasks: tuple[Task, ...] = ("binary",)
    inputs: tuple[str, ...] = ("features",)
    backends: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    oracle: bool = False
    control: bool = False
    quick: bool = False
    presets: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, float], ...] = ()
    scores: Literal["auto", "probability", "logit"] = "auto"
    paper: str = ""
    code: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, address in (("paper", self.paper), ("code", self.code)):
            if address and not _ADDRESS.match(address):
                raise PluginError(f"{self.name}: {what} {address!r} is no address; write it out with https://.")
        for kind, amount in self.resources:
            if not _NAME.match(kind) or not finite(amount) or amount <= 0:
                raise PluginError(f"{self.name}: resource {kind!r}: {amount!r} is not a positive amount.")


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(_Spec):
    """A dataset: facts for ``list`` and ``show``, its files, and the function that loads it.

    ``factory`` names ``load(files, *, seed, **options) -> Split``; ``files.path(name)`` gives a checked local path.
    ``embed`` (if any) names ``embed(files, *, encoder, options, retrain, say) -> list[Path]``, which makes costly
    features ahead of the first cell that asks for them (``data embed``) and returns the files it made.
    ``columns`` counts those of the original table (or names an image's shape), ``balance`` is the share of each class.
    ``own_bags`` names the option that, unless it is empty or ``none``, makes it bring its own bags (``Part.bag_of``).
    ``published_runs``: its splits are published and numbered; ``load`` is given ``run`` too, the seed as it was typed.
    ``images``: its rows are images, also where methods are given features of them (``kind`` is what ``load`` returns).
    """

    classes: int = 2
    kind: Literal["features", "images"] = "features"
    rows: int | None = None
    columns: int | str | None = None
    balance: tuple[float, ...] = ()
    split: str = ""
    files: tuple[DataFile, ...] = ()
    licence: str = ""
    homepage: str = ""
    embed: str = ""
    own_bags: str = ""
    published_runs: bool = False
    images: bool = False

    @property
    def task(self) -> Task:
        """``binary`` for two classes, ``multiclass`` for more."""
        return "binary" if self.classes == 2 else "multiclass"


@dataclass(frozen=True, kw_only=True)
class MetricSpec(_Spec):
    """A metric: ``factory`` names ``metric(truth, predicted) -> float``; the truth are labels of the test rows.

    Attributes:
        title: what tables and charts call it, without the unit: ``"AUROC"``; by default its name.
        needs: what it is given as ``predicted``: ``"scores"`` (any monotone score), ``"probabilities"`` (the same in
            [0, 1]), ``"decisions"`` (a class for each row, made with the known overall rate:
            ``experiment/decisions.py``), or ``"bag_shares"``: the mean probabilities of test bags (bags, 1 or C), and
            their true shares of the same form as the truth.
        higher_is_better: which end of the scale wins.
        percent: whether tables print it times one hundred.
    """

    title: str = ""
    tasks: tuple[Task, ...] = ("binary", "multiclass")
    needs: Literal["scores", "probabilities", "decisions", "bag_shares"] = "scores"
    higher_is_better: bool = True
    percent: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "title", self.title or self.name.replace("_", " "))
        known = ("scores", "probabilities", "decisions", "bag_shares")
        if self.needs not in known:
            raise PluginError(f"{self.name}: a metric needs one of {', '.join(known)}, not {self.needs!r}.")


DEFAULT_RULE = "bags"
"""Name of the rule that looks at held-back bags alone: the default, and the only one a method hears of."""


@dataclass(frozen=True, kw_only=True)
class RuleSpec(_Spec):
    """A selection rule: how the best report of a fit is chosen.

    ``factory`` names ``value(held: HeldBack) -> float``, the value of a report on held-back data. Every rule is applied
    to every cell and chooses by itself among the same reports, so a further rule changes no other's choice.

    Attributes:
        title: what the values are, for tables and progress: ``"cross-entropy"``.
        higher_is_better: which end of the scale wins.
        uses_labels: whether it looks at labels of single rows; without, ``held.labels`` is None.
        cross_validated: its values come from further fits, one for each of ``Cell.folds`` folds over all bags: a
            report is worth what reports at the same place of those fits are worth on the bags that each held back.
            Applied to cells with folds only.
        on_request: whether tables, searches and the page leave it out unless it is named (``--rule NAME``).
        version: counted up whenever the rule may choose another report than before; results record it.
    """

    title: str = "value"
    higher_is_better: bool = True
    uses_labels: bool = False
    cross_validated: bool = False
    on_request: bool = False
    version: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.version) is not int or self.version < 1:
            raise PluginError(f"{self.name}: version {self.version!r} is not a whole number from 1 on.")
        if self.cross_validated and self.uses_labels:
            raise PluginError(f"{self.name}: a cross-validated rule looks at bags alone; it cannot use labels.")


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(_Spec):
    """Where cells run: ``factory`` names ``make(settings: ExecutorSettings, **options) -> Executor``.

    ``params`` are its own options, typed in brackets: ``--executor 'dask[scheduler=tcp://host:8786]'``.
    """


NO_BAG = -1
"""The bag number of a row that is in no bag."""
OWN_BAGS = "own-bags"
"""Name of the scheme that hands out the bags of a dataset that brings its own."""


@dataclass(frozen=True, kw_only=True)
class BagScheme(_Spec):
    """A way of forming bags: ``factory`` names ``assign(X, bag_size, *, columns, rng, **options) -> bag_of``.

    ``assign`` returns one bag number for each row, -1 (``NO_BAG``) for a row that is in no bag. It sees features only,
    unless it is declared to see more. (An option of the name ``columns`` is handed over as ``columns_``.)

    Attributes:
        own: it is also given ``bag_of``: the bags a dataset brings itself, or None.
        sizes_itself: it takes no bag size: one cell is planned whatever ``--bags`` says, and ``bag_size`` is 0.
        uses_labels: it is also given ``labels`` of the rows, in the judge's process. Which rows share a bag then tells
            of labels, so tables, ``list`` and ``show`` say so.
        check: ``"module:function"`` of a function of the options that refuses (``UsageError``) what cannot be.
    """

    own: bool = False
    sizes_itself: bool = False
    uses_labels: bool = False
    check: str = ""

    def resolve(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All options with their values, also checked beside one another."""
        values = super().resolve(given)
        if self.check:
            import_attribute(self.check)(**values)
        return values


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A number somebody published, to be shown beside ours.

    Attributes:
        source: the publication, short enough for a table heading.
        dataset: the dataset's label here, e.g. ``adult``.
        method: the method's label here, e.g. ``dllp[lr=0.01]``; empty when no method here is meant to be that one.
        title: the method as the publication calls it.
        bag_size: size of the bags; None for a bound that does not depend on bags.
        noise: the noise level's label here.
        metric: name of the metric.
        mean: the printed value (a share as a share: 0.8919, not 89.19); None where none is printed, ``note`` says why.
        sd: the printed standard deviation, None when none is printed.
        rule: the selection rule the publication used, or ours that looks at the same data (``source`` then names it).
        stage: stage of the fit the value belongs to (``iteration-1``); empty for the whole fit.
        bound: the method was given labels.
    """

    source: str
    dataset: str
    title: str
    metric: str
    mean: float | None
    rule: str
    method: str = ""
    bag_size: int | None = None
    noise: str = "none"
    sd: float | None = None
    stage: str = ""
    bound: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        for name, value in (("mean", self.mean), ("sd", self.sd)):
            if value is not None and not (isinstance(value, int | float) and finite(value)):
                raise PluginError(f"reference {self.title!r} on {self.dataset!r}: {name} {value!r} is not a number.")

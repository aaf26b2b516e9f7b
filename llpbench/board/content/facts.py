"""Descriptions of methods, datasets, metrics and selection rules.

They are published with the results, so building a leaderboard needs no plugin.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

import msgspec

from llpbench.board.validate import Unsound, check_name, clip
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import DatasetSpec, MethodSpec, MetricSpec, Reference, RuleSpec, Scalar
from llpbench.plugins.builtin import llpbench_metrics, llpbench_selection_rules
from llpbench.plugins.fingerprint import OWN
from llpbench.results.metric_style import OWN_METRICS, TEST_ROWS, MetricStyle, style_of
from llpbench.results.shared import Roles


class SuiteAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Coverage of a suite: ``parts`` has a line for each part; ``state`` is draft or published."""

    title: str = ""
    state: str = ""
    parts: tuple[str, ...] = ()


class ParamAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A parameter with its default and what it means."""

    name: str
    default: Scalar = None
    doc: str = ""


class MethodAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Description of a method; ``origin`` is the distribution that provides it."""

    summary: str = ""
    origin: str = ""
    citation: str = ""
    family: str = ""
    paper: str = ""
    code: str = ""
    params: tuple[ParamAbout, ...] = ()
    oracle: bool = False
    control: bool = False
    seed_name: str = ""

    @property
    def comes_along(self) -> bool:
        """Whether llpbench provides it."""
        return self.origin.partition(" ")[0] in ("", OWN)


class DatasetAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Description of a dataset; ``origin`` is the distribution that provides it."""

    summary: str = ""
    origin: str = ""
    citation: str = ""
    homepage: str = ""
    licence: str = ""
    split: str = ""
    rows: int | None = None
    columns: int | str | None = None
    source: str = ""
    classes: int | None = None
    balance: tuple[float, ...] = ()
    images: bool = False
    evaluation_only: bool = False
    task: str = "binary"


class MetricFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a metric is read."""

    higher: bool = True
    percent: bool = True
    title: str = ""
    measured_on: str = TEST_ROWS


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the values of a selection rule are, and whether higher ones are better."""

    title: str = ""
    summary: str = ""
    higher: bool = True


class Facts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything published next to the results."""

    methods: dict[str, MethodAbout] = {}
    datasets: dict[str, DatasetAbout] = {}
    metrics: dict[str, MetricFacts] = {}
    references: list[Reference] = []
    rules: dict[str, RuleFacts] = {}
    suites: dict[str, SuiteAbout] = {}

    def source_of(self, dataset: str) -> str:
        """The source of a dataset (``DatasetSpec.source``); its own name if it states none."""
        about = self.datasets.get(dataset)
        return about.source if about is not None and about.source else dataset

    @property
    def roles(self) -> Roles:
        """Which methods are controls, and which are provided by other packages."""
        return Roles(
            controls=frozenset(name for name, method in self.methods.items() if method.control),
            guests=frozenset(name for name, method in self.methods.items() if not method.comes_along),
        )


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Description of a machine."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    architecture: str
    python: str


def method_facts(spec: MethodSpec, origin: str) -> MethodAbout:
    """Describe a registered method."""
    return msgspec.structs.replace(msgspec.convert(spec, MethodAbout, from_attributes=True), origin=origin)


def dataset_facts(spec: DatasetSpec, origin: str) -> DatasetAbout:
    """Describe a registered dataset."""
    return msgspec.structs.replace(msgspec.convert(spec, DatasetAbout, from_attributes=True), origin=origin)


def metric_facts(spec: MetricSpec) -> MetricFacts:
    """Describe a registered metric."""
    where = style_of(spec).measured_on
    return MetricFacts(higher=spec.higher_is_better, percent=spec.percent, title=spec.title, measured_on=where)


def rule_facts(spec: RuleSpec) -> RuleFacts:
    """Describe a registered rule."""
    return RuleFacts(title=spec.title, summary=spec.summary, higher=spec.higher_is_better)


BUILT_IN_RULES = {spec.name: rule_facts(spec) for spec in llpbench_selection_rules() if not spec.on_request}
"""Rules of llpbench that tables show; a result may have numbers under further rules."""

EVERY_RESULT = tuple(spec.name for spec in llpbench_selection_rules() if not (spec.on_request or spec.cross_validated))
"""Rules under which every result has numbers."""

ON_REQUEST = frozenset(spec.name for spec in llpbench_selection_rules() if spec.on_request)
"""Rules of llpbench that tables do not show."""


def check_facts(facts: Facts) -> None:
    """Raise ``Unsound`` for invalid names, and for two metrics with the same title."""
    kinds: dict[str, Mapping[str, object]] = {
        "method": facts.methods,
        "dataset": facts.datasets,
        "metric": facts.metrics,
        "selection rule": facts.rules,
        "suite": facts.suites,
    }
    for kind, table in kinds.items():
        for name in table:
            check_name(name, kind)
    titles = {spec.name: spec.title for spec in llpbench_metrics()} | {own.name: own.words for own in OWN_METRICS}
    titles |= {name: m.title for name, m in facts.metrics.items() if m.title}
    owners: dict[str, str] = {}
    for name, title in titles.items():
        owner = owners.setdefault(_letters(title or name), name)
        if owner != name:
            raise Unsound(f"metrics {owner!r} and {name!r} have the same title, {clip(title)}")


def _letters(title: str) -> str:
    """Letters and digits of a title in lower case: titles that look alike have the same."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", title).casefold()))


def rules_of(results: Iterable[CellResult], facts: Facts) -> dict[str, RuleFacts]:
    """The rules to show under which results have numbers: the built-in ones first, then others by name."""
    stated = {rule for result in results for rule in result.selected} - ON_REQUEST
    others = {name: RuleFacts() for name in sorted(stated - set(BUILT_IN_RULES))}
    known = {**BUILT_IN_RULES, **others, **facts.rules}
    return {name: rule for name, rule in known.items() if name in stated}


def styles_of(results: Iterable[CellResult], facts: Facts) -> dict[str, MetricStyle]:
    """How the metrics of results are printed: the built-in ones, others by name, then what the harness measures.

    Metrics without a description are left out.
    """
    stated = {name for result in results for chosen in result.selected.values() for name in chosen.metrics}
    styles = {spec.name: style_of(spec) for spec in llpbench_metrics()}
    for name, m in sorted(facts.metrics.items()):
        title = m.title or (styles[name].words if name in styles else "")
        styles[name] = MetricStyle(name, m.higher, m.percent, title, measured_on=m.measured_on)
    styles |= {style.name: style for style in OWN_METRICS}
    return {name: style for name, style in styles.items() if name in stated}

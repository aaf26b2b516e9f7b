"""What is known beside the results: how methods, datasets, metrics and selection rules describe themselves.

Facts lie in the leaderboards folder (``facts.json``), so building needs no plugin. Older folders have no titles of
metrics and no rules: they read as if they held those of the built-in ones.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET, UnsetType

from llpbench.board.schema.overall import DatasetAbout, MethodAbout, ParamAbout, SuiteAbout
from llpbench.board.validate import Unsound, check_name, clip
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import DEFAULT_RULE, DatasetSpec, MethodSpec, MetricSpec, Reference, RuleSpec
from llpbench.plugins.builtin import llpbench_metrics, llpbench_selection_rules
from llpbench.plugins.fingerprint import OWN
from llpbench.results.metric_style import OWN_METRICS, TEST_ROWS, MetricStyle, style_of
from llpbench.results.shared import Roles


class MethodFacts(MethodAbout, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a method says of itself, and the distribution that brings it."""

    oracle: bool = False
    control: bool = False

    @property
    def comes_along(self) -> bool:
        """Whether it comes with llpbench."""
        return self.origin.partition(" ")[0] in ("", OWN)


class DatasetFacts(DatasetAbout, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a dataset says of itself, and the distribution that brings it."""

    task: str = "binary"


class MetricFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a metric is read."""

    higher: bool = True
    percent: bool = True
    title: str | UnsetType = UNSET
    measured_on: str | UnsetType = UNSET


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a selection rule says of itself: what its values are, and which end wins."""

    title: str = ""
    summary: str = ""
    higher: bool = True


class Facts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All that is known beside the results."""

    methods: dict[str, MethodFacts] = {}
    datasets: dict[str, DatasetFacts] = {}
    metrics: dict[str, MetricFacts] = {}
    references: list[Reference] = []
    rules: dict[str, RuleFacts] | UnsetType = UNSET
    suites: dict[str, SuiteAbout] = {}

    @property
    def roles(self) -> Roles:
        """Which methods are yardsticks, and which are guests: of another package than llpbench."""
        return Roles(
            controls=frozenset(name for name, method in self.methods.items() if method.control),
            guests=frozenset(name for name, method in self.methods.items() if not method.comes_along),
        )


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine as a run describes it."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    architecture: str
    python: str


def method_facts(spec: MethodSpec, origin: str) -> MethodFacts:
    """What a registered method says of itself."""
    return MethodFacts(
        summary=spec.summary,
        origin=origin,
        citation=spec.citation,
        paper=spec.paper,
        code=spec.code,
        params=tuple(ParamAbout(name=p.name, default=p.default, doc=p.doc) for p in spec.params),
        oracle=spec.oracle,
        control=spec.control,
    )


def dataset_facts(spec: DatasetSpec, origin: str) -> DatasetFacts:
    """What a registered dataset says of itself."""
    return DatasetFacts(
        summary=spec.summary,
        origin=origin,
        citation=spec.citation,
        homepage=spec.homepage,
        licence=spec.licence,
        split=spec.split,
        rows=spec.rows,
        columns=spec.columns,
        classes=spec.classes,
        balance=spec.balance,
        images=spec.images,
        task=spec.task,
    )


def metric_facts(spec: MetricSpec) -> MetricFacts:
    """What a registered metric says of itself."""
    where = style_of(spec).measured_on
    stated = UNSET if where == TEST_ROWS else where
    return MetricFacts(higher=spec.higher_is_better, percent=spec.percent, title=spec.title, measured_on=stated)


def rule_facts(spec: RuleSpec) -> RuleFacts:
    """What a registered rule says of itself."""
    return RuleFacts(title=spec.title, summary=spec.summary, higher=spec.higher_is_better)


BUILT_IN_RULES = {spec.name: rule_facts(spec) for spec in llpbench_selection_rules() if not spec.on_request}
"""The rules that llpbench brings and shows; a result may have numbers under others beside them."""

EVERY_RESULT = tuple(spec.name for spec in llpbench_selection_rules() if not (spec.on_request or spec.cross_validated))
"""The rules that every result has numbers under."""

ON_REQUEST = frozenset(spec.name for spec in llpbench_selection_rules() if spec.on_request)
"""Built-in rules that a result may have and no table of the board shows; their choices are checked like any other's."""


FIRST_BAGS = RuleFacts(
    title="cross-entropy",
    summary="cross-entropy of the mean prediction on held-back bags, whose counts are all it needs",
    higher=False,
)
"""What the rule ``bags`` was in protocol 1, whose boards say nothing of the built-in rules."""


def check_facts(facts: Facts) -> None:
    """Refuse names that nothing can be registered under, and a metric that has the title of another one.

    Titles of rules are free: they say what the values are, and two rules may look at the same thing.
    """
    rules = facts.rules if isinstance(facts.rules, dict) else {}
    kinds: dict[str, Mapping[str, object]] = {
        "method": facts.methods,
        "dataset": facts.datasets,
        "metric": facts.metrics,
        "selection rule": rules,
        "suite": facts.suites,
    }
    for kind, table in kinds.items():
        for name in table:
            check_name(name, kind)
    titles = {spec.name: spec.title for spec in llpbench_metrics()} | {own.name: own.words for own in OWN_METRICS}
    titles |= {name: m.title for name, m in facts.metrics.items() if isinstance(m.title, str)}
    owners: dict[str, str] = {}
    for name, title in titles.items():
        owner = owners.setdefault(_plain(title or name), name)
        if owner != name:
            raise Unsound(f"the metric {name!r} has the title {clip(title)}, which is that of {owner!r}")


def _plain(title: str) -> str:
    """A title by which two that look alike are the same: letters and digits, in lower case."""
    return "".join(c for c in unicodedata.normalize("NFKC", title).casefold() if c.isalnum())


def rules_of(results: Iterable[CellResult], facts: Facts) -> dict[str, RuleFacts]:
    """The rules that results have numbers under and that are shown: the built-in ones first, then others by name."""
    results = list(results)
    stated = {rule for result in results for rule in result.selected} - ON_REQUEST
    stored = facts.rules if isinstance(facts.rules, dict) else {}
    first = {DEFAULT_RULE: FIRST_BAGS} if any(result.protocol == 1 for result in results) else {}
    known = {
        **BUILT_IN_RULES,
        **first,
        **{name: RuleFacts() for name in sorted(stated - set(BUILT_IN_RULES))},
        **stored,
    }
    return {name: rule for name, rule in known.items() if name in stated}


def styles_of(results: Iterable[CellResult], facts: Facts) -> dict[str, MetricStyle]:
    """How the metrics that results state are printed: the built-in ones, others by name, what the harness measures.

    A metric that nobody described is left out: nobody could say which end of it wins.
    """
    stated = {name for result in results for chosen in result.selected.values() for name in chosen.metrics}
    styles = {spec.name: style_of(spec) for spec in llpbench_metrics()}
    for name, m in sorted(facts.metrics.items()):
        title = m.title if isinstance(m.title, str) else styles[name].words if name in styles else ""
        where = m.measured_on if isinstance(m.measured_on, str) else TEST_ROWS
        styles[name] = MetricStyle(name, m.higher, m.percent, title, measured_on=where)
    styles |= {style.name: style for style in OWN_METRICS}
    return {name: style for name, style in styles.items() if name in stated}

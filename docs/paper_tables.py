"""The tables of `paper.md` and `ablations.md`, filled from results.

    python docs/paper_tables.py collect results/table-adult results/soft-labels ...    # add folders of `llpbench run`
    python docs/paper_tables.py write docs/paper.md docs/ablations.md                  # write the numbers into pages

`collect` keeps one line per cell, selection rule and stage in `results/paper.csv`; a folder replaces what was collected
from a folder of that name before. `results/claims.toml` states the claims, and how each is judged. A comment above a
table says what `write` puts there:

    <!-- values: adult,marketing @ 8,512; stage=iteration-2 -->     numbers of the methods that the lines name
    <!-- reproduction: adult @ 8,32 -->                             a whole table: the paper's numbers and ours
    <!-- claims: main -->                                           a whole table: claims of a group and verdicts
    <!-- stability: adult,marketing -->                             a whole table: do the paper's values converge?

`values` has a column for each dataset and bag size; several groups of columns are separated by ` | `. Options follow
semicolons: `rule` (bags), `metric` (auroc; accuracy; pseudo_labels; graph, bp, network or total for seconds), `stage`
(the one that the rule selected), `noise`, `feature_noise` and `element` (the folder; any).
"""

from __future__ import annotations

import csv
import math
import re
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from llpbench import CellResult, Reference, Results
from llpbench.experiment.grid import Variant
from llpbench.plugins.options import expand, format_options, parse_options
from llpbench.plugins.registry import Registry, load_registry
from llpbench.results.references import ORIGINS
from llpbench_methods.bp.preset import paper, rows
from llpbench_methods.paper import llpbench_references

FOLDER = Path(__file__).parent / "results"
NUMBERS, CLAIMS = FOLDER / "paper.csv", FOLDER / "claims.toml"
RULES = ("bags", "instances")
PHASES = ("graph", "bp", "network")
WHERE = ("element", "method", "dataset", "bag_size", "noise", "feature_noise", "seed", "rule", "stage", "selected")
METRICS = ("auroc", "accuracy", "pseudo_labels", *PHASES, "total")
FIELDS = (*WHERE, "report", *METRICS, "settled")
PERCENT = ("auroc", "accuracy", "pseudo_labels")
MISSING = "–"
REPRODUCED, NOT_REPRODUCED, UNCLEAR = "reproduced", "not reproduced", "cannot be judged"
CALCULATED = ("nearest-rows",)
"""Names of results that are no method's: neighbour_accuracy.py."""
FLOOR, LEVEL = 0.25, 1.0
"""Points: a smaller difference is no effect; two methods within this are level."""
DAMPING_LIMIT = 3.0
"""Messages of pairs settle with a damping of 0.5 if their gain g is below it."""
MARK = re.compile(
    r"^<!-- (?P<kind>values|reproduction|claims|stability): (?P<what>.*?) -->\n(?P<table>(?:\|.*\n)*)", re.M
)

Line = Mapping[str, str]


class Spread(NamedTuple):
    """A mean and its standard error in points, the settings it rests on, and those asked for."""

    mean: float
    error: float
    settings: int
    asked: int


@dataclass(frozen=True)
class Place:
    """Where a number stands: a setting of the results, a rule, a stage and a metric."""

    dataset: str
    bag_size: int
    rule: str = "bags"
    metric: str = "auroc"
    stage: str = ""
    noise: str = "none"
    feature_noise: str = "0"
    element: str = ""

    def moved(self, options: Mapping[str, str]) -> Place:
        """The place with some options replaced."""
        changes: dict[str, Any] = dict(options)
        if "bag_size" in changes:
            changes["bag_size"] = int(changes["bag_size"])
        return replace(self, **changes)


# -- collecting --------------------------------------------------------------------------------------------------------


def collect(folders: Sequence[str], into: Path = NUMBERS) -> None:
    """Add the results of folders to the file; what it has from folders of the same names is replaced."""
    for folder in folders:
        name = Path(folder).resolve().name
        add_lines(name, lines_of(name, Results.of(folder)), into)


def add_lines(element: str, lines: Iterable[Line], into: Path = NUMBERS) -> None:
    """Replace the lines of an element in the file."""
    kept = [line for line in read_lines(into) if line["element"] != element]
    with into.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(sorted([*kept, *lines], key=lambda line: [str(line[name]) for name in WHERE]))


def lines_of(element: str, results: Results) -> Iterator[dict[str, str]]:
    """The lines of a results folder."""
    for result in results.results:
        if result.status == "ok":
            yield from lines_of_cell(element, result)


def lines_of_cell(element: str, result: CellResult) -> Iterator[dict[str, str]]:
    """A line for each rule and stage of a cell."""
    cell = result.cell
    common = {
        "element": element,
        "method": result.method_name,
        "dataset": result.dataset_name.partition(", ")[0],
        "bag_size": cell.bag_size,
        "noise": cell.noise,
        "feature_noise": f"{cell.feature_noise:g}",
        "seed": cell.seed,
        **{phase: _digits(result.phases.get(phase), 2) for phase in PHASES},
        "total": _digits(result.fit_seconds, 2),
    }
    for rule in RULES:
        if rule not in result.selected:
            continue
        whole = result.selected[rule]
        stages = {name: of[rule] for name, of in result.stages.items() if rule in of} or {whole.stage: whole}
        for stage, best in stages.items():
            settled = result.notes.get(f"{stage} bp converged")
            facts = {
                "rule": rule,
                "stage": stage,
                "selected": "yes" if best.report == whole.report else "",
                "report": best.report,
                **{metric: _digits(best.metrics.get(metric), 6) for metric in ("auroc", "accuracy")},
                "pseudo_labels": _digits(result.pseudo_labels.get(stage), 6),
                "settled": "" if settled is None else "yes" if settled else "no",
            }
            yield {name: str(value) for name, value in (common | facts).items()}


def _digits(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


# -- reading -----------------------------------------------------------------------------------------------------------


def read_lines(path: Path = NUMBERS) -> list[dict[str, str]]:
    """The lines of the file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Numbers:
    """The collected numbers, by method and place."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._by_method: dict[tuple[str, str, int], list[Line]] = {}
        for line in lines:
            self._by_method.setdefault((line["method"], line["dataset"], int(line["bag_size"])), []).append(line)

    def seeds(self, method: str, place: Place) -> dict[int, float]:
        """The number of each seed, in points or seconds; of equal cells in several folders, the first."""
        scale = 100.0 if place.metric in PERCENT else 1.0
        found: dict[int, float] = {}
        for line in self._lines(method, place):
            if line[place.metric]:
                found.setdefault(int(line["seed"]), scale * float(line[place.metric]))
        return found

    def settled(self, method: str, place: Place) -> list[bool]:
        """Whether the messages of the first iteration converged, for each seed."""
        return [line["settled"] == "yes" for line in self._lines(method, place) if line["settled"]]

    def _lines(self, method: str, place: Place) -> Iterator[Line]:
        size = 1 if _is_bound(method) else place.bag_size
        for line in self._by_method.get((label_of(method), place.dataset, size), []):
            at = (line["rule"], line["noise"], line["feature_noise"])
            if at != (place.rule, place.noise, place.feature_noise) or place.element not in ("", line["element"]):
                continue
            if line["stage"] == place.stage or (not place.stage and line["selected"]):
                yield line


@cache
def registry() -> Registry:
    """Methods and datasets as they are installed."""
    return load_registry()


@cache
def label_of(method: str) -> str:
    """The name under which results show a method: options at their defaults are left out."""
    name, options = parse_options(method)
    if name in CALCULATED:
        return method
    spec = registry().methods[name]
    origins = {key: options.pop(key)[0] for key in ORIGINS if key in options}
    (given,) = expand(spec, options)
    return format_options(name, {**origins, **given}) if origins else Variant(spec, given).name


@cache
def _is_bound(method: str) -> bool:
    name, _ = parse_options(method)
    return name in CALCULATED or registry().methods[name].oracle


def places_of(text: str) -> list[Place]:
    """The columns that a text asks for, in order."""
    found = []
    for group in text.split(" | "):
        where, *options = (part.strip() for part in group.split("; "))
        datasets, _, sizes = where.partition(" @ ")
        for dataset in datasets.split(","):
            found += [Place(dataset, int(size)).moved(_options(options)) for size in sizes.split(",")]
    return found


def _options(texts: Iterable[str]) -> dict[str, str]:
    return {name.strip(): value.strip() for name, _, value in (text.partition("=") for text in texts)}


@cache
def references() -> tuple[Reference, ...]:
    """The numbers that the paper prints."""
    return tuple(llpbench_references())


def paper_value(method: str, place: Place) -> float | None:
    """What the paper prints for a method at a place, in points."""
    label = label_of(method)
    for r in references():
        there = (r.dataset, r.metric, r.noise) == (place.dataset, place.metric, place.noise)
        at_size = r.bound or r.bag_size == place.bag_size
        if there and at_size and r.mean is not None and label_of(r.method) == label:
            return 100 * r.mean
    return None


# -- claims ------------------------------------------------------------------------------------------------------------


def difference(claim: Mapping[str, Any], numbers: Numbers, **options: str) -> Spread | None:
    """The mean over settings of the seed-paired difference between the two sides of a claim; None if not run.

    With `than`, the mean difference there is subtracted.
    """
    first = _difference(claim, claim["where"], numbers, options)
    if "than" not in claim or first is None:
        return first
    second = _difference(claim, claim["than"], numbers, options)
    if second is None:
        return None
    error = math.hypot(first.error, second.error)
    return Spread(first.mean - second.mean, error, first.settings + second.settings, first.asked + second.asked)


def _difference(claim: Mapping[str, Any], where: str, numbers: Numbers, options: Mapping[str, str]) -> Spread | None:
    means, errors = [], []
    places = [place.moved(options) for place in places_of(where)]
    for place in places:
        a = _side(claim["a"], place, numbers)
        b = _side(claim["b"], place, numbers, of=claim.get("printed_as", claim["a"]))
        shared = sorted(a.keys() & b.keys())
        if len(shared) < 2:
            continue
        each = [a[seed] - b[seed] for seed in shared]
        means.append(statistics.fmean(each))
        errors.append(statistics.stdev(each) / math.sqrt(len(each)))
    if not means:
        return None
    return Spread(statistics.fmean(means), math.hypot(*errors) / len(errors), len(means), len(places))


def _side(text: str, place: Place, numbers: Numbers, of: str = "") -> dict[int, float]:
    """The numbers of one side of a claim, with its own options; `paper` is what it prints for the other."""
    method, *options = (part.strip() for part in text.split("; "))
    if method == "paper":
        printed = paper_value(of.split("; ")[0].strip(), place)
        return {} if printed is None else dict.fromkeys(range(100), printed)
    return numbers.seeds(method, place.moved(_options(options)))


def paper_difference(claim: Mapping[str, Any]) -> float | None:
    """The same difference in the paper's numbers; None if it does not print all of them."""
    titles = claim.get("paper_methods")
    if titles is None:
        return None
    found = []
    for place in places_of(claim["where"]):
        a, b = (paper_value(title, replace(place, rule="bags", stage="")) for title in titles)
        if a is not None and b is not None:
            found.append(a - b)
    return statistics.fmean(found) if found else None


class Verdict(NamedTuple):
    """A judgement of a claim, and what it rests on."""

    words: str
    why: str


def verdict(kind: str, found: Spread | None, printed: float | None, margin: float = LEVEL) -> Verdict:
    """Judge a claim.

    - `above`: reproduced if the difference is at least m (half of what the paper prints, and a quarter point at least)
      and more than two standard errors above zero; not reproduced if it is more than two standard errors below m.
    - `no gain`: the opposite.
    - `level`: reproduced if the difference is two standard errors within the margin; not reproduced if it is two
      standard errors beyond it.
    """
    if found is None:
        return Verdict(UNCLEAR, "not run")
    twice, least = 2 * found.error, max(FLOOR, (printed or 0.0) / 2)
    if kind == "level":
        inside, outside = abs(found.mean) + twice <= margin, abs(found.mean) - twice > margin
        words = REPRODUCED if inside else NOT_REPRODUCED if outside else UNCLEAR
        side = "within" if inside else "beyond" if outside else "not clearly within"
        return Verdict(words, f"{side} {margin:g}")
    above, below = found.mean > twice and found.mean >= least, found.mean + twice < least
    yes, no = (below, above) if kind == "no gain" else (above, below)
    words = REPRODUCED if yes else NOT_REPRODUCED if no else UNCLEAR
    side = "clearly positive" if above else f"below {least:.2g}" if below else "within the error"
    return Verdict(words, side)


def _head(*titles: str) -> str:
    return f"{_row(*titles)}|{'---|' * len(titles)}\n"


def _row(*texts: str) -> str:
    return f"|{'|'.join(texts)}|\n"


def _claims_table(group: str, numbers: Numbers) -> str:
    head = _head("claim of the paper", "run file", "paper", "`bags`", "`instances`", "verdict", "why")
    claims = [claim for claim in tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"] if claim["group"] == group]
    return head + "".join(_claim_row(claim, numbers) for claim in claims)


def _claim_row(claim: Mapping[str, Any], numbers: Numbers) -> str:
    printed = paper_difference(claim)
    if "verdict" in claim:
        judged, texts = Verdict(claim["verdict"], claim["why"]), [MISSING, MISSING]
    else:
        found = {rule: difference({**claim, **_by_rule(claim, rule)}, numbers, rule=rule) for rule in RULES}
        texts = [_spread_text(found[rule]) for rule in RULES]
        main = found[claim.get("rule", "bags")]
        judged = verdict(claim["kind"], main, printed, claim.get("margin", LEVEL))
        why = claim.get("why", judged.why) if main else judged.why
        part = f" ({main.settings} of {main.asked} settings run)" if main and main.settings < main.asked else ""
        judged = judged._replace(why=why + part)
    run = f"`{claim['run']}`" if claim["run"] else MISSING
    said = claim.get("paper") or (MISSING if printed is None else f"{printed:+.1f}")
    return _row(claim["text"], run, said, *texts, f"*{judged.words}*", judged.why)


def _by_rule(claim: Mapping[str, Any], rule: str) -> dict[str, str]:
    """Both sides of a claim, tuned by the rule where they are tuned."""
    return {side: claim[side].replace("tuned-RULE", f"tuned-{rule}") for side in ("a", "b")}


def _spread_text(found: Spread | None) -> str:
    return MISSING if found is None else f"{found.mean:+.1f} ± {found.error:.1f}"


# -- tables ------------------------------------------------------------------------------------------------------------


def _reproduction_table(what: str, numbers: Numbers) -> str:
    """A line for each bag size and method: the paper's number, ours tuned by each rule, and at the defaults."""
    head = _head("bag", "method", "paper", "tuned, `instances`", "tuned, `bags`", "defaults, `bags`")
    places = places_of(what)
    bounds = [r for r in references() if r.bound and r.dataset == places[0].dataset]
    at_first = partial(numbers.seeds, place=places[0])
    lines = [
        _row("any", f"bound `{bound.method}`", _printed(bound), MISSING, MISSING, _mean_text(at_first(bound.method)))
        for bound in bounds
    ]
    for place in places:
        for r in references():
            if (r.dataset, r.bag_size, r.metric, r.noise) != (place.dataset, place.bag_size, "auroc", "none"):
                continue
            name, options = parse_options(r.method)
            if r.bound or set(options) - {"iterations"} or options.get("iterations", ["2"])[0] not in ("1", "2"):
                continue
            stage = f"iteration-{options.get('iterations', ['2'])[0]}" if name == "bp" else ""
            variants = [(f"{name}[params=tuned-{rule}]", rule) for rule in ("instances", "bags")]
            ours = [
                _mean_text(numbers.seeds(method, replace(place, rule=rule, stage=stage)))
                for method, rule in (*variants, (name, "bags"))
            ]
            shown = f"`{name}`" + (f", {stage.replace('-', ' ')}" if stage else "")
            lines.append(_row(str(place.bag_size), shown, _printed(r), *ours))
    return head + "".join(lines)


def _printed(r: Reference) -> str:
    if r.mean is None:
        return r.note
    return f"{100 * r.mean:.1f}" + ("" if r.sd is None else f" ({100 * r.sd:.1f})")


def _mean_text(seeds: Mapping[int, float]) -> str:
    if not seeds:
        return MISSING
    values = list(seeds.values())
    return f"{statistics.fmean(values):.1f}" + (f" ({statistics.stdev(values):.1f})" if len(values) > 1 else "")


def _stability_table(what: str, numbers: Numbers) -> str:
    """Whether messages converge at the paper's values: its condition, the gain of a bag's messages, and the run."""
    head = _head("dataset", "bag", "paper's condition", "in ±1 units", "gain", "settle?", "in the run")
    lines = []
    for dataset in what.split(","):
        share = registry().datasets[parse_options(dataset)[0]].balance[1]
        for name, size in rows():
            if name != parse_options(dataset)[0]:
                continue
            values = paper(name, size)
            weight, pull = float(values["lambda_b"] or 0), float(values["lambda_s"] or 0)
            strength = 2 * weight + 4 * pull
            gain = 2 * weight * (size - 1) * share * (1 - share)
            seen = numbers.settled(CONVERGENCE, Place(dataset, size, stage="iteration-1"))
            ran = f"{sum(seen)} of {len(seen)} settle" if seen else MISSING
            condition = [f"{(size - 1) * math.tanh(strength / unit):.2f}" for unit in (1, 4)]
            settles = "yes" if gain < DAMPING_LIMIT else "no"
            lines.append(_row(name, str(size), *condition, f"{gain:.1f}", settles, ran))
    return head + "".join(lines)


CONVERGENCE = "bp[preset=paper;iterations=1;mlp=small;epochs=1]"
"""The method of the run file `convergence`, as results name it."""


def _values_table(what: str, numbers: Numbers, table: str) -> str:
    """The author's lines, with the numbers of the method that each names; lines without a method stay."""
    places = places_of(what)
    head, line, *body = table.splitlines()
    if head.count("|") - 2 != len(places):
        raise ValueError(f"{head.count('|') - 2} columns stand below a comment that names {len(places)}: {what}")
    filled = []
    for row in body:
        label = row.split("|")[1].strip()
        method = re.search(r"`([^`]+)`", label)
        if method is None:
            filled.append(row + "\n")
            continue
        if label.endswith("(paper)"):
            printed = [paper_value(method[1], place) for place in places]
            texts = [MISSING if value is None else f"{value:.1f}" for value in printed]
        else:
            texts = [_mean_text(numbers.seeds(method[1], place)) for place in places]
        filled.append(_row(label, *texts))
    return "".join([f"{head}\n{line}\n", *filled])


def filled(page: str, lines: Iterable[Line]) -> str:
    """The page with today's numbers in every table that a comment marks.

    Raises:
        ValueError: a table has other columns than its comment names.
    """
    numbers = Numbers(lines)
    whole: dict[str, Callable[[str, Numbers], str]] = {
        "reproduction": _reproduction_table, "claims": _claims_table, "stability": _stability_table
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        kind, what = match["kind"], match["what"]
        table = whole[kind](what, numbers) if kind in whole else _values_table(what, numbers, match["table"])
        return f"<!-- {kind}: {what} -->\n{table}"

    return MARK.sub(fill, page)


def main(arguments: Sequence[str]) -> None:
    """`collect FOLDER...` or `write PAGE...`."""
    verb, *paths = arguments or ["help"]
    if verb == "collect":
        collect(paths)
    elif verb == "write":
        lines = read_lines()
        for page in map(Path, paths):
            page.write_text(filled(page.read_text(encoding="utf-8"), lines), encoding="utf-8")
    else:
        sys.exit(f"unknown verb {verb!r}: expected collect or write")


if __name__ == "__main__":
    main(sys.argv[1:])

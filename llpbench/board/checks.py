"""Checks of a result: its values follow from its cell, its metrics from its predictions, its code is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from llpbench.board.content.bootstrap import BAG_OF
from llpbench.board.validate import Unsound
from llpbench.contracts.cell import OWN_SIZES, USUAL, Cell
from llpbench.contracts.errors import LLPBenchError, PluginError, UnknownNameError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import NO_BAG, BagScheme, DatasetSpec, MethodSpec, MetricSpec, RuleSpec, Scalar
from llpbench.experiment.metrics import kind_of_scores
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.scoring import Answers, digest_of_bags, digest_of_labels
from llpbench.plugins.fingerprint import READ, code_name
from llpbench.plugins.registry import Catalog, Entry, Registry
from llpbench.results.request import Command

_EVEN_SCHEMES = (USUAL.scheme, "by-feature", "cluster-dirichlet", "proportion-dirichlet")


def check_derived(result: CellResult, classes: Iterable[int], seed_name: str = "") -> None:
    """Raise ``Unsound`` if the seeds, noise or bags of a result are not those of its cell.

    Args:
        result: a result with status ``ok``.
        classes: the possible numbers of classes of its dataset.
        seed_name: the name that the method's seeds are derived from; empty for its own.
    """
    _check_seeds(result, seed_name)
    _check_noise(result, classes)
    _check_bags(result)


def derived_seeds(cell: Cell, seed_name: str = "") -> dict[str, int]:
    """Return the seeds of a cell by purpose."""
    from llpbench.experiment.fit_cell import method_seed
    from llpbench.experiment.split import bags_seed, split_seed

    return {"split": split_seed(cell), "bags": bags_seed(cell), "method": method_seed(cell, seed_name)}


def derived_count_sd(cell: Cell, classes: int, groupings: int = 1) -> float:
    """Return the standard deviation of the noise on each count of a cell."""
    from llpbench.experiment.privacy import count_noise_sd, count_sensitivity, epsilon_of

    return count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, count_sensitivity(classes, groupings))


def derived_bags(cell: Cell, rows: int) -> int | None:
    """Return the number of bags that rows are divided into; None if the scheme draws their sizes."""
    if not {each.scheme for each in cell.schemes} <= set(_EVEN_SCHEMES) or cell.bag_size == OWN_SIZES:
        return None
    return -(-rows // cell.bag_size) * sum(int(str(each.scheme_options.get("times", 1))) for each in cell.schemes)


def _check_seeds(result: CellResult, seed_name: str) -> None:
    for name, derived in derived_seeds(result.cell, seed_name).items():
        if result.seeds.get(name) != derived:
            raise Unsound(f"its {name} seed is {result.seeds.get(name)}, expected {derived}")


def _check_noise(result: CellResult, classes: Iterable[int]) -> None:
    try:
        expected = [derived_count_sd(result.cell, number, len(result.groupings) or 1) for number in classes]
    except LLPBenchError as error:
        raise Unsound(f"invalid noise: {error}") from None
    if not any(math.isclose(result.count_sd, sd, rel_tol=1e-9, abs_tol=1e-12) for sd in expected):
        words = " or ".join(f"{sd:.6g}" for sd in dict.fromkeys(expected))
        raise Unsound(f"its count_sd is {result.count_sd:.6g}, expected {words}")


def _check_bags(result: CellResult) -> None:
    if result.rows.get("test", 0) < 1:
        raise Unsound("it has no test rows")
    if result.cell.split != USUAL.split:  # whole bags are divided among the parts
        parts = {"all": (sum(result.rows.values()), sum(result.bags.values()))}
    else:
        parts = {part: (result.rows.get(part, 0), result.bags.get(part, 0)) for part in ("train", "valid")}
    for part, (rows, bags) in parts.items():
        expected = derived_bags(result.cell, rows)
        if not 1 <= bags <= rows * (len(result.groupings) or 1) or (expected is not None and bags != expected):
            raise Unsound(f"it has {bags} bags of {rows} {part} rows, expected {expected or 'at least one'}")


TOLERANCE = 1e-9
"""How far a recomputed metric may be off: sums in another order."""
Arrays = dict[str, NDArray[np.generic]]


def classes_of(scores: NDArray[np.generic]) -> int:
    """Return the number of classes of scores."""
    return 2 if scores.ndim == 1 else scores.shape[1]


def check_metrics(result: CellResult, arrays: Arrays, method: MethodSpec, metrics: Iterable[MetricSpec]) -> None:
    """Raise ``Unsound`` if a metric of a result is not what its predictions give, under any rule."""
    labels = arrays["labels"].astype(np.int64)
    if result.rows.get("test") != len(labels):
        raise Unsound(f"its predictions have {len(labels)} rows, the result has {result.rows.get('test')} test rows")
    if result.digests.get("test_labels") != digest_of_labels(labels):
        raise Unsound("the labels in its predictions do not match the digest of its test labels")
    answers = Answers(labels, np.array(result.rate), _bags_of(result, arrays))
    known = {spec.name: spec for spec in metrics}
    for rule, chosen in result.selected.items():
        scores = arrays[rule].astype(np.float64)
        task = "binary" if scores.ndim == 1 else "multiclass"
        expected = {name for name, spec in known.items() if task in spec.tasks}
        stated = set(chosen.metrics) - {"bag_error"}
        if stated != expected:
            wrong = ", ".join(sorted(stated ^ expected))
            raise Unsound(f"its metrics under {rule!r} are not those of the installed packages: {wrong}")
        for name in sorted(expected):
            found = _values(known[name], answers, scores, method.scores)
            if not any(_near(chosen.metrics[name], one) for one in found):
                raise Unsound(
                    f"its predictions give {name} {found[0]:.6g} under {rule!r}, the result has {chosen.metrics[name]}"
                )


def _bags_of(result: CellResult, arrays: Arrays) -> NDArray[np.int64] | None:
    """The bags of the test rows, if the result was scored with them."""
    stated = result.digests.get("test_bags")
    if stated is None:
        return None
    if BAG_OF not in arrays:
        raise Unsound("its predictions lack the bags of its test rows")
    bag_of = arrays[BAG_OF].astype(np.int64)
    found = np.unique(bag_of[bag_of != NO_BAG])
    if stated != digest_of_bags(bag_of) or len(found) != result.bags.get("test"):
        raise Unsound("the test bags in its predictions do not match those of the result")
    return bag_of


def _values(spec: MetricSpec, answers: Answers, scores: NDArray[np.float64], kind: str) -> list[float]:
    """What a metric may be: one value, or two if the kind of scores is inferred.

    A report on held-out rows may have shown log-odds although the scores of the test rows look like probabilities.
    """
    if spec.needs == "scores" or kind != "auto":
        return [answers.score(spec, scores, kind)]
    return [answers.score(spec, scores, k) for k in dict.fromkeys([kind_of_scores(scores), "logit"])]


def _near(stated: float | None, found: float) -> bool:
    if stated is None or not math.isfinite(found):
        return stated is None and not math.isfinite(found)
    return abs(found - stated) <= TOLERANCE * max(1.0, abs(found))


S = TypeVar("S", MethodSpec, DatasetSpec, BagScheme, RuleSpec)


def check_traced(result: CellResult, registry: Registry) -> None:
    """Raise ``Unsound`` if others cannot reproduce a result with installed packages."""
    if result.cell.tuning or result.status == "pruned":
        raise Unsound("it is a trial of a search")
    method = registered(registry.methods, result.cell.method).spec
    dataset = registered(registry.datasets, result.cell.dataset).spec
    for rule in result.selected:
        version = registered(registry.rules, rule).spec.version
        if result.rules.get(rule) != version:
            raise Unsound(
                f"version {result.rules.get(rule)} of rule {rule!r} selected it, version {version} is installed"
            )
    for part, line in result.code.items():
        if part.startswith(READ):
            raise Unsound(f"it read {code_name(line)}, which belongs to no installed package")
        if line.startswith("file "):
            raise Unsound(f"its {part} is a single file; make it a package (llpbench new)")
    if result.status in ("timeout", "memory"):
        _check_limits(result)
    _check_settings(method, result.cell.params)
    _check_settings(dataset, result.cell.dataset_options)


def check_commands(commands: Iterable[Command]) -> None:
    """Raise ``Unsound`` if a file may have replaced an installed plugin in a run."""
    for command in commands:
        if "--plugin-override" in command if isinstance(command, str) else "override" in command.settings:
            raise Unsound("its run used --plugin-override; results must come from installed packages")


def registered(shelf: Catalog[S], name: str) -> Entry[S]:
    """Return what an installed package registers under a name; raise ``Unsound`` if none does."""
    try:
        entry = shelf.entry(name)
    except (UnknownNameError, PluginError):
        raise Unsound(f"no installed package provides the {shelf.kind} {name!r} (make one: llpbench new)") from None
    if entry.plugin.from_file:
        raise Unsound(f"the {shelf.kind} {name!r} comes from a single file; make it a package (llpbench new)")
    return entry


def _check_limits(result: CellResult) -> None:
    """A method that was stopped must have had the time and memory that every cell has."""
    for limit, least, unit in (("timeout", RunSettings.timeout.default, "s"), ("memory_mb", 8192.0, "MB")):
        had = result.limits.get(limit, 0.0)
        if had < least:
            raise Unsound(f"it was stopped with a {limit} of {had:g} {unit}; at least {least:g} {unit} are required")


def _check_settings(spec: MethodSpec | DatasetSpec, given: dict[str, Scalar]) -> None:
    try:
        resolved = spec.resolve(given)
    except LLPBenchError as error:
        raise Unsound(f"the installed {spec.name} does not accept its settings: {error}") from None
    if resolved != given:
        missing = ", ".join(sorted(set(resolved) - set(given))) or "values differ"
        raise Unsound(f"its settings are not all settings of the installed {spec.name}: {missing}")

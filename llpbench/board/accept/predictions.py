"""Scoring predictions that were handed in: the split is made again here, and its labels judge what was sent.

The submitter sends scores of test rows and nothing that is believed: rows, bags, labels, noise and every metric are
made here, from the data. What cannot be found out is whether the scores came from bags and counts: whoever has a public
dataset has its labels. So these rows are marked wherever they are shown, and are never ranked among methods that run.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from llpbench.board.checks.local_files import check_declared_files
from llpbench.board.checks.trace import registered
from llpbench.board.content.bootstrap import Replicates, read_arrays, replicate
from llpbench.board.content.facts import EVERY_RESULT, MachineFacts
from llpbench.board.content.submission import Submission, ToldCell, ToldMethod, predictions_path, shown_name
from llpbench.board.validate import Unsound, clip
from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPBenchError, Skip
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import PROTOCOL, CellResult, Selected
from llpbench.execution.jobs import Context
from llpbench.experiment.fit_cell import Prepared, prepare_cell
from llpbench.experiment.grid import Variant, shown_data
from llpbench.experiment.judge import finite
from llpbench.experiment.metrics import rows_add_up, to_probabilities
from llpbench.experiment.privacy import count_noise_sd, epsilon_of, noise_name
from llpbench.experiment.rules import SelectionRule, bag_error, make_rules
from llpbench.experiment.scoring import Answers
from llpbench.plugins.fingerprint import HARNESS, fingerprint, origin_of
from llpbench.plugins.registry import Registry
from llpbench.system.machine import machine, machine_id, versions

MOST_REPORTS = 2_000


@dataclass(frozen=True)
class Scored:
    """A cell that was scored: the result, its replicates, the digest of what was handed in, and the machine here."""

    result: CellResult
    replicates: Replicates
    source: str
    machine: MachineFacts


def score_submission(
    folder: Path, submission: Submission, registry: Registry, context: Context
) -> Iterator[tuple[ToldCell, Scored | Unsound]]:
    """Every cell of a submission with what came out, one after another: its scores, or why it is refused."""
    sent: dict[str, tuple[str, int]] = {}
    for place, told in enumerate(submission.cells):
        try:
            scored, digest, varied = _score(folder, told, submission.method, registry, context)
            rows, first = sent.setdefault(digest, (told.rows, place))
            if varied and rows != told.rows:
                raise Unsound(f"its scores are those of cells[{first}], whose test rows are others")
            yield told, scored
        except Unsound as problem:
            yield told, problem
        except MemoryError:
            yield told, Unsound("its data and scores do not fit into the memory of this machine")
        except (Skip, LLPBenchError) as error:
            yield told, Unsound(f"its data cannot be made here: {error}")


def settled_cell(told: ToldCell, about: ToldMethod, registry: Registry) -> tuple[Cell, str]:
    """The cell of a submission and the name of its data, or ``Unsound`` where a run would not state it so."""
    dataset = registered(registry.datasets, told.dataset).spec
    scheme = registered(registry.schemes, told.scheme).spec
    check_declared_files(dataset, told.dataset_options)
    check_declared_files(scheme, told.scheme_options)
    try:
        resolved: dict[str, object] = {
            "dataset_options": dataset.resolve(told.dataset_options),
            "scheme_options": scheme.resolve(told.scheme_options),
            "noise": noise_name(told.noise),
        }
        count_noise_sd(epsilon_of(told.noise), told.delta, told.mechanism)
    except LLPBenchError as error:
        raise Unsound(str(error)) from None
    if told.noise == USUAL.noise:
        resolved |= {"delta": USUAL.delta, "mechanism": USUAL.mechanism}
    if scheme.sizes_itself != (told.bag_size == 0):
        raise Unsound(f"bag size {told.bag_size} with the scheme {told.scheme}, which {_sizes(scheme.sizes_itself)}")
    for name, value in resolved.items():
        if getattr(told, name) != value:
            raise Unsound(f"its {name} must be stated in full, as the inputs do: {clip(str(value), 200)}")
    cell = told.cell(about)
    return cell, shown_data(cell, Variant(dataset, cell.dataset_options), Variant(scheme, cell.scheme_options))


def _sizes(itself: bool) -> str:
    return "sizes its bags itself (bag size 0)" if itself else "needs a size"


def prepared(cell: Cell, result: CellResult, registry: Registry, context: Context) -> Prepared:
    """The data of a cell whose method is not here; ``result`` is told rows, bags, seeds, digests and rate."""
    job = Job(
        cell=cell,
        method_name=result.method_name,
        dataset_name=result.dataset_name,
        out="",
        data=context.data,
        offline=context.offline,
        method=MethodFacts(tasks=("binary", "multiclass"), inputs=("features", "images")),
    )
    return prepare_cell(job, registry, result)


def digest_of_rows(rows: FloatArray) -> str:
    """Thirty-two hexadecimal digits that tell the features of these rows, in this order, from any others."""
    digest = hashlib.blake2b(str((rows.shape, rows.dtype.str)).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(rows).data)
    return digest.hexdigest()


def _score(
    folder: Path, told: ToldCell, about: ToldMethod, registry: Registry, context: Context
) -> tuple[Scored, str, bool]:
    """A scored cell, a digest of its scores, and whether these vary at all."""
    cell, dataset_name = settled_cell(told, about, registry)
    result = CellResult(
        id=cell.id,
        cell=cell,
        status="ok",
        method_name=shown_name(about.name),
        dataset_name=dataset_name,
        protocol=PROTOCOL,
        predictions_only=True,
        fit_seconds=told.seconds,
        machine=machine_id(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    path = predictions_path(folder, told)
    if not path.exists() and not path.is_symlink():
        raise Unsound(f"predictions/{path.name} is not there")
    sent = read_arrays(path, ("test",), ("valid",))
    data = prepared(cell, result, registry, context)
    assert data.test_rows is not None
    assert data.bags.validation is not None
    if told.rows != digest_of_rows(data.test_rows):
        raise Unsound("its rows are not the test rows of this setting: of another seed, or of other data")
    classes = data.bags.classes
    tests = checked_scores(sent["test"], len(data.test_labels), classes, "test", about.scores)
    valid = None
    if "valid" in sent:
        valid = checked_scores(sent["valid"], len(data.valid_labels), classes, "valid", about.scores)
        if len(valid) != len(tests):
            raise Unsound(f"it has {len(tests)} reports of test rows and {len(valid)} of held-back rows")
    if valid is None and len(tests) > 1:
        raise Unsound(f"{len(tests)} reports of test rows need scores of the held-back rows (valid) to choose by")
    _refuse_labels(tests, data.test_labels)
    chosen = _choose(tests, valid, data, about, registry)
    _fill(result, chosen, tests, valid, data, about, registry)
    result.versions = dict(versions())
    dataset = registry.datasets.entry(cell.dataset).plugin
    result.code = {"harness": fingerprint(HARNESS), "dataset": fingerprint(origin_of(dataset))}
    arrays: dict[str, NDArray[np.generic]] = {"labels": data.test_labels}
    arrays |= {rule: tests[report] for rule, (report, _) in chosen.items()}
    digest = hashlib.sha256(np.ascontiguousarray(tests).data).hexdigest()
    source = hashlib.sha256(msgspec.json.encode([told, about, _digests(sent)], order="sorted")).hexdigest()[:32]
    scored = Scored(result, replicate(result, arrays), source, msgspec.convert(machine(), MachineFacts))
    return scored, digest, bool((tests != tests.reshape(-1)[0]).any())


def _digests(arrays: dict[str, NDArray[np.generic]]) -> dict[str, str]:
    return {
        name: hashlib.sha256(str((a.shape, a.dtype.str)).encode() + np.ascontiguousarray(a).tobytes()).hexdigest()
        for name, a in arrays.items()
    }


def checked_scores(given: NDArray[np.generic], rows: int, classes: int, name: str, kind: str) -> FloatArray:
    """Scores as (reports, rows) or, for several classes, (reports, rows, classes); ``Unsound`` if they cannot be."""
    shape = (rows,) if classes == 2 else (rows, classes)
    if not np.issubdtype(given.dtype, np.floating):
        raise Unsound(f"{name} holds {given.dtype}, not floating-point scores")
    found = given[None] if given.ndim == len(shape) else given
    if found.shape[1:] != shape or not 1 <= len(found) <= MOST_REPORTS:
        wanted = " x ".join(map(str, shape))
        raise Unsound(f"{name} has shape {given.shape}; this setting has {wanted} scores (for each report)")
    if not np.isfinite(found).all():
        raise Unsound(f"{name} has scores that are not finite")
    scores: FloatArray = found.astype(np.float64)
    outside = (scores < 0).any() or (scores > 1).any() or (classes > 2 and not rows_add_up(scores))
    if kind == "probability" and outside:
        raise Unsound(f"{name} is said to hold probabilities and does not")
    return scores


def _refuse_labels(tests: FloatArray, labels: IntArray) -> None:
    """Refuse scores that are the labels: no method that learned from bags answers with them."""
    for scores in tests:
        truth = labels == 1 if scores.ndim == 1 else labels[:, None] == np.arange(scores.shape[1])
        if len(np.unique(scores)) == 2 and (((scores == scores.max()) == truth).all()):
            raise Unsound("its scores are the labels of the test rows")


def _choose(
    tests: FloatArray, valid: FloatArray | None, data: Prepared, about: ToldMethod, registry: Registry
) -> dict[str, tuple[int, float | None]]:
    """For each rule with numbers, the report it chose and its value.

    A single report was chosen by whoever sent it, under the rule they declare. Among several we choose, by every rule
    that all results have.
    """
    if valid is None:
        return {about.rule: (0, None)}
    assert data.bags.validation is not None
    wanted = EVERY_RESULT if len(tests) > 1 else (about.rule,)
    specs = [registry.rules[name] for name in wanted]
    rules = make_rules(data.bags.validation, data.valid_labels, specs)
    return {rule.name: _best(rule, valid, about.scores) for rule in rules}


def _best(rule: SelectionRule, valid: FloatArray, kind: str) -> tuple[int, float | None]:
    values = [rule.value(to_probabilities(scores, kind), scores) for scores in valid]
    best = 0
    for report, value in enumerate(values):
        best = report if report and rule.better(value, values[best]) else best
    return best, finite(values[best])


def _fill(
    result: CellResult,
    chosen: dict[str, tuple[int, float | None]],
    tests: FloatArray,
    valid: FloatArray | None,
    data: Prepared,
    about: ToldMethod,
    registry: Registry,
) -> None:
    """Every metric of the chosen reports."""
    task = "binary" if data.bags.classes == 2 else "multiclass"
    metrics = [spec for spec in registry.metrics.specs if task in spec.tasks]
    answers = Answers(data.test_labels, np.array(result.rate), data.test_bag_of)
    held_back = data.bags.validation
    assert held_back is not None
    for rule, (report, value) in chosen.items():
        scores = tests[report]
        values = {m.name: finite(answers.score(m, scores, about.scores)) for m in metrics}
        if valid is not None:
            values["bag_error"] = finite(bag_error(to_probabilities(valid[report], about.scores), held_back))
        result.selected[rule] = Selected(report=report, value=value, metrics=values)
    result.rules = {rule: registry.rules[rule].version for rule in chosen}

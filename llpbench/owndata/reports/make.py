"""Make the report of a model from what its file keeps and what is still in memory."""

from __future__ import annotations

from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.fitting.memory import Memory
from llpbench.owndata.judging.assessment import judged_by
from llpbench.owndata.model_file import Header
from llpbench.owndata.reports.importance import ColumnEffect, column_effects, feature_blocks
from llpbench.owndata.reports.report import Report


def make_report(header: Header, memory: Memory | None) -> Report:
    """The report of a model.

    Args:
        header: what the model's file keeps.
        memory: what is in memory since the fit; None for a loaded model.
    """
    why = _why_not(header, memory)
    return Report(
        method=header.method,
        params=dict(header.params),
        classes=tuple(map(str, header.classes)),
        columns=tuple(header.encoder.names),
        facts=header.facts,
        effects=None if why or memory is None else _effects(header, memory),
        why_no_effects=why,
    )


def _why_not(header: Header, memory: Memory | None) -> str:
    """Why the columns that matter cannot be told; empty when they can."""
    if memory is None or header.facts is None:
        return "they are found on rows of held-back bags, and a model file keeps no rows; ask the model that was fitted"
    if header.facts.score.slope == 0:
        return "the model's probabilities are the same for every row"
    if header.facts.score.bags < 2:
        return "the model was judged on one bag, and shuffling rows inside a bag tells nothing"
    return ""


def _effects(header: Header, memory: Memory) -> tuple[ColumnEffect, ...]:
    assert header.facts is not None
    score = header.facts.score
    blocks = feature_blocks(header.encoder.columns, header.encoder.encoding)
    seed = derive_seed("shuffles", seed=header.seed)
    return column_effects(judged_by(memory.main, memory.halves), score.slope, score.phi, blocks, seed)

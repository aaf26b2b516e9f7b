"""Whether the report that was chosen is the one that its rule chooses on the curve of the fit."""

from __future__ import annotations

from collections.abc import Mapping

from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.leaderboard.validate import Unsound

Curve = list[float | None]


def check_curve(result: CellResult, higher: Mapping[str, bool], *, kind_may_change: bool) -> None:
    """Refuse a result whose chosen reports do not follow from its curve.

    Args:
        result: a result with status ``ok``, as its run wrote it.
        higher: for each rule, whether the highest value wins.
        kind_may_change: the method's scores are read by what they look like; reports before the first that was not a
            probability are then forgotten, so an earlier one may have had a better value.
    """
    patience = int(result.cell.params.get("patience") or 20)
    for rule, chosen in result.selected.items():
        curve = [report.get(rule) for report in result.history]
        where = f"under {rule!r}"
        _check_report(chosen, curve, where)
        if result.stages:
            _check_stages(result, rule, chosen, curve, higher[rule])
            continue
        best = result.selected.get(DEFAULT_RULE)
        closed = len(curve) if best is None else best.report + patience
        after = [i for i in range(chosen.report + 1, len(curve)) if i - chosen.report <= patience and i <= closed]
        before = range(0 if not kind_may_change else chosen.report, chosen.report)
        if any(_beats(curve[i], chosen.value, higher[rule], ties=True) for i in before) or any(
            _beats(curve[i], chosen.value, higher[rule]) for i in after
        ):
            raise Unsound(f"report {chosen.report} is not the best of its curve {where}")


def _check_report(chosen: Selected, curve: Curve, where: str) -> None:
    if not 0 <= chosen.report < len(curve):
        raise Unsound(f"{where} it chose report {chosen.report} of a fit that made {len(curve)}")
    if curve[chosen.report] != chosen.value:
        raise Unsound(f"{where} its value is {chosen.value}, that of report {chosen.report} is {curve[chosen.report]}")


def _check_stages(result: CellResult, rule: str, chosen: Selected, curve: Curve, higher: bool) -> None:
    """The winner is the best of the stages' winners, the earlier one when they tie, and has its numbers."""
    winners = {stage: rules[rule] for stage, rules in result.stages.items() if rule in rules}
    for stage, winner in winners.items():
        _check_report(winner, curve, f"in stage {stage!r} under {rule!r}")
    own = winners.get(chosen.stage)
    if own is None:
        raise Unsound(f"under {rule!r} it chose stage {chosen.stage!r}, which it did not have")
    if own != chosen:
        raise Unsound(f"under {rule!r} stage {chosen.stage!r} won with other numbers than it has")
    names = list(winners)
    for stage, winner in winners.items():
        earlier = names.index(stage) < names.index(chosen.stage)
        if _beats(winner.value, chosen.value, higher, ties=earlier):
            raise Unsound(f"under {rule!r} stage {stage!r} is better than {chosen.stage!r}, which is said to have won")


def _beats(value: float | None, best: float | None, higher: bool, *, ties: bool = False) -> bool:
    """Whether a value wins against another; what is not a number never does, and loses to every number."""
    if value is None:
        return False
    if best is None:
        return True
    return (value > best if higher else value < best) or (ties and value == best)

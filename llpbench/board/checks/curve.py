"""Whether the report that was chosen is the one that its rule chooses on the curve of the fit."""

from __future__ import annotations

from collections.abc import Mapping

from llpbench.board.validate import Unsound
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.judge import patience_of

Curve = list[float | None]


def check_curve(result: CellResult, higher: Mapping[str, bool], *, kind_may_change: bool) -> None:
    """Refuse a result whose chosen reports do not follow from its curve.

    Of a fit in one stage the choice is made again: reports count until ``patience`` of them have not improved on the
    best under ``bags``, and every rule takes the best that counts, the earlier one when they tie. (In protocol 1 each
    rule had a patience of its own.) A curve does not say which report belongs to which of several stages; there the
    winner must be the best of the stages' winners.

    Args:
        result: a result with status ``ok``, as its run wrote it.
        higher: for each rule, whether the highest value wins.
        kind_may_change: the method's scores are read by what they look like; reports before the first that was not a
            probability are then forgotten, so an earlier one may have had a better value.
    """
    patience = patience_of(result.cell.params)
    for rule, chosen in result.selected.items():
        curve = [report.get(rule) for report in result.history]
        _check_report(chosen, curve, f"under {rule!r}")
        if result.stages:
            _check_stages(result, rule, chosen, curve, higher[rule])
            continue
        start = _first(result) if kind_may_change else 0
        closing = rule if result.protocol < 2 or DEFAULT_RULE not in result.selected else DEFAULT_RULE
        watched = [report.get(closing) for report in result.history]
        counted = counting(watched, higher[closing], patience, start)
        if choice(curve, higher[rule], counted) != chosen.report:
            raise Unsound(f"report {chosen.report} is not the best of its curve under {rule!r}")


def _first(result: CellResult) -> int:
    """The latest report from which on a fit whose earlier reports were forgotten may have been judged."""
    return min(chosen.report for chosen in result.selected.values())


def counting(curve: Curve, higher: bool, patience: int, start: int = 0) -> range:
    """The reports that count: until ``patience`` of them in a row have not improved on the best so far."""
    best, waited = start, 0
    for i in range(start + 1, len(curve)):
        improved = _beats(curve[i], curve[best], higher)
        best, waited = (i, 0) if improved else (best, waited + 1)
        if waited >= patience:
            return range(start, i + 1)
    return range(start, len(curve))


def choice(curve: Curve, higher: bool, counted: range) -> int:
    """The best of the reports that count, the earlier one when they tie."""
    best = counted.start
    for i in counted:
        best = i if _beats(curve[i], curve[best], higher) else best
    return best


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

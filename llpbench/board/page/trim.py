"""Remove what the page does not show from a board."""

from __future__ import annotations

from typing import Any

from llpbench.board.page.cards import card_texts
from llpbench.board.page.plain import MAIN_METRIC

Tree = dict[str, Any]
ID_DIGITS = 10  # of a cell's id: enough for ``llpbench rerun``, which takes the beginning of one


def trim(board: Tree) -> Tree:
    """A copy of a board without what the page does not show.

    Values of single seeds are kept for the main metric only; other metrics have mean and standard deviation with the
    decimals that are shown.
    """
    digits = {str(m.get("name")): m.get("digits", 2) for m in board.get("metrics") or []}
    kept = {key: value for key, value in board.items() if key != "missing"}
    standings = [_standing(standing) for standing in board.get("overall") or []]
    datasets = [_dataset(dataset, digits) for dataset in board.get("datasets") or []]
    return {**kept, "overall": standings, "datasets": datasets}


def _standing(standing: Tree) -> Tree:
    """Standings, rounded as shown."""
    rows = [{key: _shown(key, value) for key, value in row.items()} for row in standing.get("rows") or []]
    return {**standing, "rows": rows}


def _shown(key: str, value: object) -> object:
    if key == "bags" and isinstance(value, list):
        return [_round(v, 1) for v in value]
    if key in ("rank", "low", "high"):
        return value  # tables show two decimals, sentences one
    return _round(value, 3 if key in ("p", "wins", "seconds") else 2)


def _dataset(dataset: Tree, digits: dict[str, int]) -> Tree:
    rows = [
        {
            **row,
            "cells": {
                noise: {bag: _entry(entry, digits) for bag, entry in cells.items()}
                for noise, cells in (row.get("cells") or {}).items()
            },
        }
        for row in dataset.get("rows") or []
    ]
    ranks = {
        metric: {rule: [{k: r.get(k) for k in ("method", "mean_rank")} for r in found] for rule, found in of.items()}
        for metric, of in (dataset.get("ranks") or {}).items()
    }
    kept = {key: value for key, value in dataset.items() if key != "cards"}
    return {**kept, "rows": rows, "ranks": ranks, "cards_text": card_texts(dataset)}


def _entry(entry: Tree, digits: dict[str, int]) -> Tree:
    """The entry with scores by ``"metric rule"``, which packs smaller (names have no spaces)."""
    scores = {
        f"{metric} {rule}": _score(score, metric, digits.get(metric, 2))
        for metric, of in (entry.get("scores") or {}).items()
        for rule, score in of.items()
    }
    ids = {key: [str(cell)[:ID_DIGITS] for cell in entry[key]] for key in ("seed_ids", "verified") if entry.get(key)}
    return {**entry, "scores": scores, **ids}


def _score(score: Tree, metric: str, digits: int) -> Tree:
    """A score as the page reads it: without ``shared`` if it equals the mean, with null if it is not compared."""
    dropped = {"seeds"} if metric == MAIN_METRIC else {"seeds", "values", "separated"}
    dropped |= {"note"} if not score.get("note") else set()
    kept = {**{key: value for key, value in score.items() if key not in dropped}, "shared": score.get("shared")}
    if metric != MAIN_METRIC:
        kept |= {key: _round(kept.get(key), digits) for key in ("mean", "sd", "shared", "shared_sd") if key in kept}
    if kept["shared"] is not None and kept["shared"] == kept.get("mean"):
        del kept["shared"]
    if level := kept.pop("at_all_noises", None):
        shown = {key: level.get(key) for key in ("mean", "sd", "note")}
        kept["at_all_noises"] = (
            shown if metric == MAIN_METRIC else {key: _round(value, digits) for key, value in shown.items()}
        )
    return kept


def _round(value: object, digits: int) -> object:
    """Round as a table prints it."""
    return float(f"{value:.{digits}f}") if isinstance(value, float) else value

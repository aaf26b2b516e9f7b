"""The data of the page: what it shows of a board, packed by writing keys and repeated values once.

A packed board is still plain JSON, and the same bytes on every platform, which compressed data is not:

- an object is ``[s, value, ...]`` where ``shapes[s]`` lists its keys, those with a constant value (true, false, null or
  a text of a few letters) as ``[key, constant]``; an array is ``[-1, item, ...]``;
- ``"~k"`` (k in base 36) stands for ``pool[k]``; a string that begins with ``~`` is written with one more;
- ``[-2, part, ...]`` is a command line cut before its options.

``unpack`` of ``core.js`` is the inverse.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from llpbench.board.page.plain import MAIN_METRIC, card_texts

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
                noise: {bag: _aggregate(found, digits) for bag, found in cells.items()}
                for noise, cells in (row.get("cells") or {}).items()
            },
        }
        for row in dataset.get("rows") or []
    ]
    ranks = {
        metric: {rule: [{k: r.get(k) for k in ("method", "mean_rank")} for r in found] for rule, found in of.items()}
        for metric, of in (dataset.get("ranks") or {}).items()
    }
    kept = {key: value for key, value in dataset.items() if key not in ("cards", "groupings")}
    return {**kept, "rows": rows, "ranks": ranks, "cards_text": card_texts(dataset)}


def _aggregate(found: Tree, digits: dict[str, int]) -> Tree:
    """Numbers of a method in a setting, with scores by ``"metric rule"``, which packs smaller."""
    scores = {
        f"{metric} {rule}": _score(score, metric, digits.get(metric, 2))
        for metric, of in (found.get("scores") or {}).items()
        for rule, score in of.items()
    }
    ids = {key: [str(cell)[:ID_DIGITS] for cell in found[key]] for key in ("seed_ids", "verified") if found.get(key)}
    return {**found, "scores": scores, **ids}


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


ARRAY, JOINED = -1, -2
_ALL = 17
_DIGITS = {"params": _ALL, "seconds": 4, "memory_mb": 4, "values": 4}  # enough for what is shown; all else is kept
_WORTH = 7  # a shorter text is not worth a reference
_FEW = 3  # letters of a text that may be part of a shape
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"

Node = tuple[Any, ...]


def pack(tree: object) -> dict[str, Any]:
    """The tree as ``{"shapes", "pool", "root"}``; numbers that are not finite become null."""
    packer = _Packer()
    root = packer.intern(tree, _ALL)
    return packer.write(root)


class _Packer:
    """Equal subtrees get one number, so that counting parents tells what is worth a place in the pool."""

    def __init__(self) -> None:
        self.number: dict[Node, int] = {}
        self.nodes: list[Node] = []
        self.parents: Counter[int] = Counter()
        self.shapes: dict[tuple[Any, ...], int] = {}

    def intern(self, value: object, digits: int) -> int:
        node = self._node(value, digits)
        if node not in self.number:
            self.number[node] = len(self.nodes)
            self.nodes.append(node)
            if node[0] == "list":
                self.parents.update(node[2])
        return self.number[node]

    def _node(self, value: object, digits: int) -> Node:
        if isinstance(value, dict):
            keys = tuple((str(k), v) if _constant(v) else str(k) for k, v in value.items())
            shape = self.shapes.setdefault(keys, len(self.shapes))
            items = (self.intern(v, _DIGITS.get(k, digits)) for k, v in value.items() if not _constant(v))
            return ("list", shape, tuple(items))
        if isinstance(value, list | tuple):
            return ("list", ARRAY, tuple(self.intern(v, digits) for v in value))
        if isinstance(value, str):
            parts = re.split(r"(?= --)", value)
            if len(parts) > 2:
                return ("list", JOINED, tuple(self.intern(part, digits) for part in parts))
            return ("leaf", "str", value)
        if isinstance(value, bool) or value is None:
            return ("leaf", "const", value)
        if isinstance(value, float):
            return ("leaf", "float", _short(value, digits))
        if isinstance(value, int):
            return ("leaf", "int", value)
        return ("leaf", "str", str(value))

    def write(self, root: int) -> dict[str, Any]:
        pooled = [n for n, count in self.parents.most_common() if count > 1 and self._worth(n)]
        place = {n: i for i, n in enumerate(pooled)}

        def name(n: int) -> object:
            return f"~{_base36(place[n])}" if n in place else body(n)

        def body(n: int) -> object:
            node = self.nodes[n]
            if node[0] == "list":
                return [node[1], *map(name, node[2])]
            value = node[2]
            return f"~{value}" if isinstance(value, str) and value.startswith("~") else value

        return {"shapes": [list(s) for s in self.shapes], "pool": [body(n) for n in pooled], "root": body(root)}

    def _worth(self, n: int) -> bool:
        kind, tag, value = self.nodes[n]
        return bool(value) if kind == "list" else tag == "str" and len(value) >= _WORTH


def _constant(value: object) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) < _FEW)


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    # From ten up four digits are two decimals, as shown: what is shown is rounded once.
    rounded = float(f"{value:.{digits}g}") if abs(value) >= 10 else value
    if math.isinf(rounded):  # the largest numbers, rounded up
        return value
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _base36(number: int) -> str:
    digits = _BASE36[number % 36]
    while number := number // 36:
        digits = _BASE36[number % 36] + digits
    return digits

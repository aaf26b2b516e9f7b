"""Boards of any size for tests of the page. Their numbers are made up, and belong nowhere else."""

from __future__ import annotations

import copy
import itertools
import math
import random
from typing import Any

Tree = dict[str, Any]

METHODS = {
    "bp": "belief propagation over neighbours and bag counts, then a network",
    "bp[iterations=1]": "belief propagation, one iteration",
    "bp-count": "learns from bag means, then labels rows to add up to the counts",
    "count-nll": "the exact likelihood of bag counts as a loss",
    "dllp": "cross-entropy of the bag's mean prediction",
    "easyllp": "an unbiased surrogate of the instance loss",
    "genbags": "random combinations of bags",
    "llp-fc": "forward correction of noisy bag labels",
    "llp-vat": "consistency under adversarial perturbation",
    "mean-ridge": "ridge regression on bag means",
}
CONTROLS = {
    "best-feature": "the single column with the best score",
    "random-labels": "the network on labels that fit the counts",
}
PHASES = ("embed", "bp", "pseudo-labels", "train")
PAPER = {"bp", "dllp", "easyllp", "genbags"}
RULES = ("bags", "instances")
METRICS: list[Tree] = [
    {"name": "auroc", "title": "AUROC", "higher": True, "percent": True, "digits": 2, "measured_on": "test rows"},
    {
        "name": "log_loss",
        "title": "log loss",
        "higher": False,
        "percent": False,
        "digits": 3,
        "measured_on": "test rows",
    },
]


def fake_board(
    datasets: int = 2,
    bags: tuple[int, ...] = (8, 32, 128, 512, 1024, 2048),
    noises: tuple[str, ...] = ("none", "medium", "high"),
    seeds: int = 3,
    holes: bool = True,
    metrics: int = 2,
) -> Tree:
    """A board in the form of its JSON. With ``holes`` some cells are skipped, failed, partial or missing.

    It has AUROC and log loss, or with ``metrics=1`` AUROC alone.
    """
    rng = random.Random(7)
    names = ["adult", "marketing", "criteo", "cifar-b", "cifar-s", *(f"dataset-{i}" for i in range(6, 99))][:datasets]
    made = [_dataset(rng, name, bags, noises, seeds, holes) for name in names]
    for metric in METRICS[metrics:]:
        _drop(made, metric["name"])
    missing = [
        {"dataset": d["name"], "method": row["method"], "noise": noise, "bag": int(bag)}
        | {"status": cell["status"], "reason": cell["reason"]}
        for d in made
        for row in d["rows"]
        for noise, cells in row["cells"].items()
        for bag, cell in cells.items()
        if cell["status"] != "ok"
    ]
    versions = {"llpbench": "0.1.0", "numpy": "2.1.0", "keras": "3.6.0", "jax": "0.4.38"}
    machine = {"cpu": "A Processor @ 2.50GHz", "cores": 2, "ram": 15.6, "os": "Linux", "python": "3.11.2"}
    return {
        "schema": 5,
        "protocol": 2,
        "title": "llpbench leaderboard",
        "metrics": copy.deepcopy(METRICS[:metrics]),
        "rules": [{"name": rule, "title": rule, "summary": f"selected by {rule}", "higher": True} for rule in RULES],
        "datasets": made,
        "machines": {"m-1a2b3c4d": {**machine, "versions": versions}},
        "built": "2026-11-16",
        "missing": missing,
        "overall": [],
        "coverage": [],
        "suites": {},
        "methods": {},
        "sources": {},
        "about": {},
    }


def with_overall(board: Tree) -> Tree:
    """The board with standings over all its datasets, what stands around the numbers, and variants that are folded."""
    methods = [m for m in METHODS if "[" not in m]
    rows: list[Tree] = []
    for place, method in enumerate(methods):
        rank = 1.2543 + 0.8 * place  # 1.25 in a table, 1.3 in a sentence: rounded once
        row: Tree = {"method": method, "rank": rank, "low": rank - 0.5, "high": rank + 0.75, "wins": 0.9 - 0.1 * place}
        row |= {"scaled": 0.9 - 0.15 * place, "seconds": 2.0 * place + 0.5, "bags": [rank] * 6, "failed": place % 3}
        rows.append(row)
    judged = [r | ({"separated": place >= 3, "p": 0.04 * place} if place else {}) for place, r in enumerate(rows)]
    shares = [[50.0 + 5 * (j - i) for j in range(len(rows))] for i in range(len(rows))]
    size = {"sources": 2, "datasets": 2, "columns": 12, "cells": 36, "seeds": [0, 1, 2], "machine": "m-1a2b3c4d"}
    size |= {"column_seeds": [2, 3], "bag_sources": [2, 2, 1, 2, 2, 1]}
    standing = {**size, "rows": rows, "bags": [8, 32, 128, 512, 1024, 2048], "unranked": {"late": 4}}
    standing |= {"variants": [{"method": "bp[iterations=1]", "of": "bp", "cells": 12, "wins": 0.25, "scaled": 0.1}]}
    tested = {"rows": judged, "bars": [[0, 2], [2, 5]], "shares": shares}
    overall = [
        {"block": block, "metric": metric["name"], "rule": rule, **standing} | (tested if not place else {})
        for place, metric in enumerate(METRICS)
        for rule in RULES
        for block in ("all", "random", "privacy")
    ]
    about = {"params": [{"name": "lr", "default": 0.001, "doc": "step size"}], "citation": "A. Author (2024). A title."}
    facts = {m: {"summary": text, "paper": "https://example.org/paper", **about} for m, text in METHODS.items()}
    source = {"homepage": "https://example.org/data", "licence": "CC BY 4.0", "rows": 48842, "balance": [0.76, 0.24]}
    card = {"bags": 12, "rows": 96, "left_out": 0.0, "sizes": [8.0] * 5, "proportion_sd": 0.15, "spread": 1.0}
    for dataset in board["datasets"]:
        for line in dataset["rows"]:
            line["name"] = line["method"].partition("[")[0]
        dataset |= {"base": dataset["name"], "cards": {"8": {**card, "separation": 1.0, "uses_labels": False}}}
    words = {"bag": "a group of rows", "cell": "one fit"}
    around = {"version": "0.1.0", "citation": "@software{llpbench,\n  year = {2026},\n}", "words": words}
    around |= {"links": {"Paper": "https://example.org/"}, "files": {"results.csv": "means", "seeds.csv": "every seed"}}
    around |= {"steps": [["write it", "llpbench new method mine"]]}
    lines = [{"block": "random", "methods": 9, "columns": 12, "cells": 324, "numbers": 300}]
    suite = {"title": "A suite", "state": "published 2026-11-16", "parts": ["random: 300 of 324 cells", "images: none"]}
    return board | {
        "overall": overall,
        "suites": {"suite-1": suite},
        "coverage": [{**line, "text": "random: 300 of 324 cells have a number; 24 not run."} for line in lines],
        "methods": facts,
        "sources": {d["name"]: source for d in board["datasets"]},
        "about": around,
    }


def _drop(datasets: list[Tree], metric: str) -> None:
    for dataset in datasets:
        dataset["metrics"].remove(metric)
        for key in ("bounds", "ranks", "pareto"):
            del dataset[key][metric]
        for row in dataset["rows"]:
            for cell in (cell for cells in row["cells"].values() for cell in cells.values()):
                cell["scores"].pop(metric, None)


def _dataset(
    rng: random.Random, name: str, bags: tuple[int, ...], noises: tuple[str, ...], seeds: int, holes: bool
) -> Tree:
    top = rng.uniform(80, 95)
    labels = {**METHODS, **CONTROLS}
    skill = {label: rng.uniform(0.5, 3.0) + (4.0 if label in CONTROLS else 0.0) for label in labels}
    rows: list[Tree] = []
    for label, summary in labels.items():
        cells = {
            noise: {
                str(bag): _cell(rng, name, label, bag, noise, level, top, skill[label], seeds, holes) for bag in bags
            }
            for level, noise in enumerate(noises)
        }
        origin = "llpbench 0.1.0"
        rows.append(
            {"method": label, "name": label, "summary": summary, "oracle": False, "control": label in CONTROLS}
            | {"origin": origin, "cells": cells}
        )
    _mark(rows, bags, noises)
    bound = {"mean": round(top + 0.4, 2), "sd": 0.21, "seeds": seeds, "method": "supervised"}
    oracle = _cell(rng, name, "supervised", 1, "none", 0, top, 0.0, seeds, False)
    rows.append(
        {"method": "supervised", "name": "supervised", "summary": "the same network on the true labels", "origin": ""}
        | {"oracle": True, "control": False, "cells": {"none": {"1": oracle}}}
    )
    return {
        "name": name,
        "label": name.capitalize(),
        "title": name,
        "task": "binary",
        "metrics": [metric["name"] for metric in METRICS],
        "bags": list(bags),
        "noises": list(noises),
        "epsilons": {noise: {"none": None, "medium": 10.0, "high": 1.0}.get(noise, 3.0) for noise in noises},
        "bounds": {
            "auroc": {"bags": bound, "instances": {**bound, "mean": round(top + 0.5, 2)}},
            "log_loss": {rule: {**bound, "mean": 0.123, "sd": 0.004} for rule in RULES},
        },
        "rows": rows,
        "paper": _paper(rows, bags),
        "ranks": {m["name"]: {rule: _ranks(rows, bags, noises, m, rule) for rule in RULES} for m in METRICS},
        "pareto": {
            m["name"]: {rule: {str(b): _pareto(rows, str(b), m, rule) for b in bags} for rule in RULES} for m in METRICS
        },
        "claims": _claims(rows, bags, noises),
    }


def _cell(
    rng: random.Random,
    dataset: str,
    label: str,
    bag: int,
    noise: str,
    level: int,
    top: float,
    skill: float,
    seeds: int,
    holes: bool,
) -> Tree:
    params = {"lr": 0.001, "weight_decay": 1e-5, "epochs": 100, "mlp": "small", "batch_rows": 4096, "patience": 20}
    command = f"llpbench run --datasets {dataset} --methods '{label}' --bags {bag} --noise {noise} --seeds {seeds}"
    cell: Tree = {
        "status": "ok",
        "reason": "",
        "scores": {},
        "seconds": None,
        "memory_mb": None,
        "pseudo": {},
        "params": params | ({"neighbours": 30, "kernel": "cosine", "temperature": 0.5} if "bp" in label else {}),
        "seed_ids": [f"{rng.getrandbits(64):016x}" for _ in range(seeds)],
        "machine": "m-1a2b3c4d",
        "command": command + " --preset default --backend jax",
        "paper": {},
    }
    fate = rng.random() if holes else 1.0
    if fate < 0.04:
        status, reason = rng.choice(
            [("failed", "memory: 8.1 GB of 8 GB"), ("skipped", "needs at least 64 bags"), ("missing", "")]
        )
        return {**cell, "status": status, "reason": reason, "machine": ""}
    if fate < 0.07:
        cell["status"], cell["reason"] = "partial", "seed 2: timeout: 3600 s"
    fall = skill * (math.log2(bag or 64) - 2) * (0.5 + 0.5 * skill / 3) + level * rng.uniform(0.4, 1.6) * skill
    for rule, gift in (("bags", 0.0), ("instances", rng.uniform(0, 0.35) * math.log2(bag or 64))):
        centre = max(50.0, top - fall + gift)
        spread = 0.2 + 0.15 * math.log2(bag or 64) * rng.random() * skill
        values = [round(min(99.9, rng.gauss(centre, spread)), 4) for _ in range(seeds - (cell["status"] == "partial"))]
        mean = math.fsum(values) / len(values)
        cell["scores"].setdefault("auroc", {})[rule] = _score(values)
        losses = [round(1.2 - v / 100, 4) for v in values]
        cell["scores"].setdefault("log_loss", {})[rule] = _score(losses)
    fit = 10 ** rng.uniform(-1, 2.6) if label != "mean-ridge" else rng.uniform(0.05, 0.3)
    parts = PHASES if "bp" in label else PHASES[-1:]
    weights = [rng.random() for _ in parts]
    phases = {p: round(0.97 * fit * w / sum(weights), 4) for p, w in zip(parts, weights, strict=True)}
    cell |= {"seconds": {"fit": round(fit, 4), "phases": phases}, "memory_mb": round(rng.uniform(300, 2400), 1)}
    if "bp" in label:
        cell["pseudo"] = {"iteration-1": round(rng.uniform(60, 90), 2)}
    if label in PAPER and noise == "none":
        paper = {"mean": round(mean + rng.gauss(0, 2), 2), "sd": 0.4, "rule": "instances", "source": "Table 1"}
        cell["paper"] = {"auroc": {**paper, "note": ""}}
    return cell


def _score(values: list[float]) -> Tree:
    mean = math.fsum(values) / len(values)
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None
    score: Tree = {"mean": round(mean, 4), "sd": sd and round(sd, 4), "seeds": len(values), "values": values}
    return score | {"note": "", "shared": None, "best": False, "second": False, "separated": None}


def _column(rows: list[Tree], noise: str, bag: str, metric: Tree, rule: str) -> list[tuple[str, Tree]]:
    found = [
        (row["method"], row["cells"][noise][bag]["scores"][metric["name"]][rule])
        for row in rows
        if not row["oracle"] and row["cells"][noise][bag]["status"] == "ok"
    ]
    return sorted(found, key=lambda item: -item[1]["mean"] if metric["higher"] else item[1]["mean"])


def _mark(rows: list[Tree], bags: tuple[int, ...], noises: tuple[str, ...]) -> None:
    for noise in noises:
        for bag in map(str, bags):
            for metric, rule in itertools.product(METRICS, RULES):
                column = _column(rows, noise, bag, metric, rule)
                for _, score in column:
                    score["shared"] = score["mean"]
                (_, best), (_, second), *rest = column
                best["best"] = second["second"] = True
                if metric["name"] != "auroc":
                    continue
                best["separated"] = second["separated"] = best["mean"] - second["mean"] > 0.8
                for _, other in rest:
                    other["separated"] = best["mean"] - other["mean"] > 0.8


def _ranks(rows: list[Tree], bags: tuple[int, ...], noises: tuple[str, ...], metric: Tree, rule: str) -> list[Tree]:
    places: dict[str, list[int]] = {}
    for bag in map(str, bags):
        for place, (method, _) in enumerate(_column(rows, noises[0], bag, metric, rule), start=1):
            places.setdefault(method, []).append(place)
    ranks = {m: sum(p) / len(p) for m, p in places.items() if m not in CONTROLS}
    return [
        {"method": m, "mean_rank": round(r, 3), "win_rate": 0.5, "cells": len(bags)}
        for m, r in sorted(ranks.items(), key=lambda item: item[1])
    ]


def _pareto(rows: list[Tree], bag: str, metric: Tree, rule: str) -> list[str]:
    sign = 1 if metric["higher"] else -1
    cells = {row["method"]: row["cells"]["none"][bag] for row in rows if not row["oracle"]}
    points = [
        (cell["seconds"]["fit"], sign * cell["scores"][metric["name"]][rule]["mean"], method)
        for method, cell in cells.items()
        if cell["scores"]
    ]
    front, high = [], -math.inf
    for _, value, method in sorted(points):
        if value > high:
            front.append(method)
            high = value
    return front


def _paper(rows: list[Tree], bags: tuple[int, ...]) -> list[Tree]:
    named = [row for row in rows if row["method"] in PAPER]
    out = [
        {
            "method": row["method"].upper(),
            "metric": "auroc",
            "name": row["method"],
            "noise": "none",
            "rule": "instances",
            "source": "Table 1",
            "cells": {
                b: {"mean": c["paper"]["auroc"]["mean"], "sd": 0.4}
                for b, c in row["cells"]["none"].items()
                if c["paper"]
            },
        }
        for row in named
    ]
    lone = {str(bag): {"mean": round(83 - 2 * i, 2), "sd": 0.5} for i, bag in enumerate(bags)}
    other = {"method": "Other-Itr-2", "metric": "auroc", "name": "", "noise": "none", "rule": "instances"}
    out.append({**other, "source": "", "cells": lone})
    return out


def _claims(rows: list[Tree], bags: tuple[int, ...], noises: tuple[str, ...]) -> list[Tree]:
    claims = []
    for rule in RULES:
        for noise in noises:
            for bag in bags:
                (best, a), (second, b), *_ = _column(rows, noise, str(bag), METRICS[0], rule)
                gap = round(a["mean"] - b["mean"], 3)
                sure = gap > 0.8
                text = f"{best} is ahead of {second} by {gap:.2f} points" + (
                    "." if sure else "; three seeds cannot tell them apart."
                )
                claims.append(
                    {
                        "metric": "auroc",
                        "rule": rule,
                        "bag": bag,
                        "noise": noise,
                        "best": best,
                        "second": second,
                        "difference": gap,
                    }
                    | {"low": round(gap - 0.8, 3), "high": round(gap + 0.8, 3), "separated": sure, "text": text}
                    | {"basis": "seeds and test rows"}
                )
    return claims


HOSTILE = [
    "</script><script>window.stolen = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.stolen = 1'>",
    '" onmouseover="window.stolen = 1" x=\'',
    "&lt;b&gt;{{script}}",
    "\u202egnp.exe\u2066 \u05d0\u05d1\u05d2",
    "__proto__",
    "constructor",
    "~1z",
    "javascript:alert(1)",
    "x" * 400,
]


def hostile_board() -> dict[str, Any]:
    """A board in which every text that may come from a file is an attack, and numbers are not numbers."""
    board = fake_board(2, bags=(8, 512), holes=False)
    board["title"] = HOSTILE[0]
    board["built"] = HOSTILE[2]
    for name, dataset in zip(
        ("</title><script>window.stolen = 1</script>", HOSTILE[5]), board["datasets"], strict=True
    ):
        dataset["name"] = name
        dataset["title"] = f"{name} {HOSTILE[3]}"
        renamed: dict[str, str] = {}
        for row, text in zip(dataset["rows"], HOSTILE * 2, strict=False):
            renamed[row["method"]] = row["method"] = text if text not in renamed.values() else f"{text} again"
            row["summary"] = row["name"] = row["origin"] = text
            for cells in row["cells"].values():
                for cell in cells.values():
                    cell["reason"] = cell["command"] = text
                    cell["status"] = "partial"
                    cell["machine"] = "__proto__"
                    cell["params"] = {text: text, "__proto__": [text], "constructor": {"a": text}}
                    cell["pseudo"] = {text: 50.0}
                    cell["seconds"]["phases"] = {text: 1.0, "__proto__": 2.0}
                    cell["seed_ids"] = [text]
        for metric, rule in itertools.product(dataset["metrics"], RULES):
            dataset["bounds"][metric][rule]["method"] = HOSTILE[2]
            for rank in dataset["ranks"][metric][rule]:
                rank["method"] = renamed[rank["method"]]
        for paper in dataset["paper"]:
            paper["method"], paper["name"] = HOSTILE[2], ""
        for claim in dataset["claims"]:
            claim["text"] = claim["basis"] = HOSTILE[0]
    for entry in (*board["metrics"], *board["rules"]):
        entry["title"] = entry["summary"] = HOSTILE[2]
    board["machines"] = {"__proto__": {"cpu": HOSTILE[2], "os": HOSTILE[0]}}
    _hostile_words(board)
    board["missing"] = [{"dataset": HOSTILE[0], "method": HOSTILE[2], "reason": HOSTILE[3]}, HOSTILE[1]]
    return board


def _hostile_words(board: Tree) -> None:
    """Attacks in everything that stands around the numbers."""
    full = with_overall(fake_board(1, bags=(8, 512), holes=False))
    names = [row["method"] for row in board["datasets"][0]["rows"] if not row["oracle"]]
    standing = full["overall"][0]
    for row, text in zip(standing["rows"], names, strict=False):
        row["method"] = text
    standing["variants"] = [{"method": names[-1], "of": names[0], "cells": 1, "wins": 0.5}]
    standing |= {"unranked": {HOSTILE[2]: 1, "__proto__": 2}, "block": HOSTILE[0]}
    attack = {"summary": HOSTILE[2], "paper": "javascript:alert(1)", "code": HOSTILE[3], "citation": HOSTILE[0]}
    params = [{"name": HOSTILE[2], "default": HOSTILE[3], "doc": HOSTILE[0]}]
    board["overall"] = [{**standing, "rule": rule} for rule in RULES]
    board["coverage"] = [{"block": HOSTILE[0], "text": HOSTILE[2]}]
    board["suites"] = {HOSTILE[3]: {"state": HOSTILE[2], "parts": [HOSTILE[0], None, {}]}, "__proto__": HOSTILE[2]}
    board["methods"] = {text: {**attack, "params": params} for text in [*HOSTILE, "__proto__"]}
    for dataset in board["datasets"]:
        dataset |= {"base": dataset["name"], "block": HOSTILE[2], "self_sized": HOSTILE[0]}
    sources = {"homepage": "javascript:alert(1)", "licence": HOSTILE[2], "split": HOSTILE[0], "columns": HOSTILE[3]}
    board["sources"] = {dataset["name"]: sources for dataset in board["datasets"]}
    board["about"] = {
        "version": HOSTILE[2],
        "citation": HOSTILE[0],
        "links": {HOSTILE[2]: "javascript:alert(1)"},
        "files": {"javascript:alert(1)": HOSTILE[0], "../x": HOSTILE[2]},
        "steps": [[HOSTILE[2], HOSTILE[0]]],
        "words": {HOSTILE[0]: HOSTILE[2]},
    }


def odd_boards() -> dict[str, dict[str, Any]]:
    """Boards that lack things, and boards whose numbers are none."""
    base = fake_board(1, bags=(8, 512), noises=("none", "high"))
    odd: dict[str, dict[str, Any]] = {"empty": {"schema": 1, "title": "", "datasets": [], "rules": []}}
    bare = copy.deepcopy(base)
    for key in ("paper", "ranks", "pareto", "claims", "bounds", "epsilons"):
        bare["datasets"][0][key] = [] if key in ("paper", "claims") else {}
    odd["bare"] = bare | {"machines": {}, "missing": []}
    odd["no rows"] = copy.deepcopy(base)
    odd["no rows"]["datasets"][0]["rows"] = []
    odd["one bag"] = fake_board(1, bags=(64,), noises=("none",), seeds=1, holes=False)
    odd["one rule"] = copy.deepcopy(base) | {"rules": base["rules"][:1]}
    odd["no metrics"] = copy.deepcopy(base) | {"metrics": []}
    odd["three rules"] = copy.deepcopy(base)
    odd["three rules"]["rules"].append({"name": "third"})
    for name, number in {"nan": math.nan, "huge": 1e300, "negative": -1e300, "text": "<b>7</b>", "list": [1]}.items():
        board = copy.deepcopy(base)
        for row in board["datasets"][0]["rows"]:
            for cells in row["cells"].values():
                for cell in cells.values():
                    cell["memory_mb"] = number
                    cell["seconds"] = {"fit": number, "phases": {"a": number, "b": 1.0}}
                    for score in (s for scores in cell["scores"].values() for s in scores.values()):
                        score |= {"mean": number, "sd": number, "values": [number, number]}
        odd[name] = board
    return odd

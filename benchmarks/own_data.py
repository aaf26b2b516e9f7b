"""What a user of ``llpbench.fit`` gets: tables with natural groups, whose labels are hidden and then compared.

    python benchmarks/own_data.py [--tables gss-wages:year,adult:education] [--methods default,mean-ridge,recommended]
    python benchmarks/own_data.py --violate --methods bag-logistic,mean-ridge

The tables are those of the development list of the pack with natural groups, Adult by education and occupation, and
Marketing by job and month, at most ``--rows`` rows each. A fifth of the bags is new: the model gets their rows only
after the fit. For each table and method the script measures

- AUROC and log loss of the rows of the fit, whose bags have known counts, and of the rows of new bags, which have none;
- the CPU seconds of ``fit`` (and of ``compare`` for ``recommended``);
- whether ``fit`` called the model clearly better than a constant. A miss is a model that is called so although its log
  loss on new bags is more than .005 worse than the constant's, a false alarm one that is not, although its log loss is
  more than .005 better on the rows of the fit and on new bags;
- how many 90 % intervals of totals of subgroups contain the true total, for the table of the fit and for new bags;
- whether the report's 90 % interval of the reduction of the error of proportions agrees with that of the new bags,
  given that their mean is uncertain too;
- the regret of ``recommended``, the method that ``compare`` recommends of the others (the default if none): the AUROC
  of the best of them less its own, and that of the default less its own.

With ``--violate`` labels are simulated, and columns act differently within bags than between: logistic regression on
the true labels gives the effect of each column between bags, and its effect within bags is that times a normal factor
of mean 1 and standard deviation 1 (so that one in six is reversed).

``constant`` and ``bag share`` predict the overall share and the share of the row's bag; ``bound`` is logistic
regression on the labels and the share of the bag, out of fold.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import llpbench
from llpbench import Categories
from llpbench.data.store import DataStore
from llpbench.plugins.registry import load_registry
from llpbench_datasets.adult.load import read as read_adult
from llpbench_datasets.marketing.load import read as read_marketing
from llpbench_datasets.pack.columns import GROUP, to_table
from llpbench_datasets.pack.declared import declared_tables
from llpbench_datasets.pack.lists import names
from llpbench_datasets.pack.load import LEAST
from llpbench_datasets.pack.reading import read_columns
from llpbench_datasets.tables import LabelledTable

OTHERS = ("adult:education", "adult:occupation", "marketing:job", "marketing:month")
SAME = {"education": ("education", "education-num")}
NEW_BAGS = 0.2
MARGIN = 0.005
FEWEST_BAGS = 10
DEFAULT = "average[members=quick]"
_LEVELS = 8
REGRETS = ("regret auroc", "default auroc", "regret new auroc", "default new auroc")


def all_tables() -> list[str]:
    """``table:group`` of every table with natural groups on the development list, and of Adult and Marketing."""
    tables = declared_tables()
    return [*(f"{name}:{group}" for name in names("development") for group in tables[name].bags), *OTHERS]


def read_table(name: str, group: str, rows: int) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """At most ``rows`` rows of a table in groups of at least ten, the group of each row, and its label."""
    spec = load_registry([]).datasets.entry(name).spec
    paths = [DataStore(spec).path(file.path) for file in spec.files]
    if name in ("adult", "marketing"):
        table = read_adult(paths) if name == "adult" else read_marketing(paths[0])
        column, unused = group, set(SAME.get(group, (group,)))
    else:
        declared = declared_tables()[name]
        table = to_table(declared, read_columns(paths[0], declared))
        column, unused = GROUP + group, set(declared.bags[group]) if len(declared.bags[group]) == 1 else set()
    frame = as_frame(table)
    bag = frame[column]
    frame = frame[[c for c in frame.columns if not c.startswith(GROUP) and c not in unused]]
    label = pd.Series(table.labels, name="label")
    drawn = np.sort(np.random.default_rng([0, 1]).permutation(len(frame))[:rows])
    frame, bag, label = (x.iloc[drawn] for x in (frame, bag, label))
    known = bag.notna() & (bag.map(bag.value_counts()) >= LEAST)
    return tuple(x[known].reset_index(drop=True) for x in (frame, bag.rename("bag"), label))


def as_frame(table: LabelledTable) -> pd.DataFrame:
    columns = {}
    for c in table.columns:
        columns[c.name] = np.array(c.levels, object)[c.codes] if isinstance(c, Categories) else c.values
    return pd.DataFrame(columns)


def encode(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers, and 0/1 columns of categories with at most 50 values."""
    few = frame.apply(lambda c: c if c.nunique() <= 50 or c.dtype != object else c.where(False))
    return pd.get_dummies(few).fillna(0).astype(np.float64)


def violated(frame: pd.DataFrame, bag: pd.Series, label: pd.Series, seed: int) -> pd.Series:
    """Labels of a model in which the effect of a column within bags is not the one between bags."""
    encoded = encode(frame)
    X = StandardScaler().fit_transform(encoded)
    model = LogisticRegression(C=0.1, max_iter=200).fit(X, label)
    rng = np.random.default_rng([seed, 7])
    factors = {str(name): rng.normal(1.0, 1.0) for name in frame.columns}
    source = [c if c in factors else next(f for f in factors if c.startswith(f"{f}_")) for c in map(str, encoded)]
    means = pd.DataFrame(X).groupby(bag.to_numpy()).transform("mean").to_numpy()
    effects = model.coef_[0]
    z = model.intercept_[0] + means @ effects + (X - means) @ (effects * [factors[name] for name in source])
    return pd.Series((rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(int), label.index, name="label")


def subgroups(frame: pd.DataFrame, columns: int) -> Iterator[pd.Series]:
    """The first columns with few values, and quartiles of numbers."""
    for name in frame.columns[:columns]:
        values = frame[name]
        if values.nunique() > _LEVELS:
            if not pd.api.types.is_numeric_dtype(values):
                continue
            values = pd.qcut(values, 4, duplicates="drop").astype(str)
        if 1 < values.nunique() <= _LEVELS:
            yield values.astype(str).rename(name)


def quality(label: pd.Series, p: np.ndarray) -> tuple[float, float]:
    """AUROC and log loss."""
    return float(roc_auc_score(label, p)), float(log_loss(label, np.clip(p, 1e-15, 1 - 1e-15)))


def covered(totals: pd.DataFrame, groups: pd.Series, label: pd.Series) -> tuple[int, int]:
    """How many intervals contain the true total, and how many there are."""
    true = label.groupby(groups).sum().reindex(totals.index)
    held = (totals["low"] - 0.5 <= true) & (true <= totals["high"] + 0.5)
    return int(held.sum()), len(true)


def measure(
    table: str, methods: list[str], rows: int, columns: int, seed: int, violate: bool
) -> Iterator[dict[str, object]]:
    """A line for each method, and for the references."""
    frame, bag, label = read_table(*table.split(":"), rows)
    if bag.nunique() < FEWEST_BAGS:
        return
    if violate:
        label = violated(frame, bag, label, seed)
    ids = np.random.default_rng([seed, 2]).permutation(bag.unique())
    new = bag.isin(ids[: max(round(NEW_BAGS * len(ids)), 1)])
    frame, later, bag_later, bag = frame[~new], frame[new], bag[new], bag[~new]
    label_later, label = label[new], label[~new]
    counts, share = label.groupby(bag).sum(), label.groupby(bag).mean()
    about = {"table": table, "bags": len(counts), "rows": len(frame)}
    constant = quality(label, np.full(len(label), label.mean()))[1]
    constant_later = quality(label_later, np.full(len(label_later), label.mean()))[1]
    yield {**about, "method": "constant", "auroc": 0.5, "loss": constant, "new auroc": 0.5, "new loss": constant_later}
    auroc, loss = quality(label, bag.map((counts + label.mean()) / (bag.value_counts() + 1)).to_numpy())
    yield {**about, "method": "bag share", "auroc": auroc, "loss": loss}
    if "bound" in methods:
        bound = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
        bag_features = np.column_stack([encode(frame).to_numpy(), bag.map(share)])
        auroc, loss = quality(label, cross_val_predict(bound, bag_features, label, cv=5, method="predict_proba")[:, 1])
        yield {**about, "method": "bound", "auroc": auroc, "loss": loss}
    found: dict[str, dict[str, object]] = {}
    for method in (name for name in methods if name != "bound"):
        line: dict[str, object] = {**about, "method": method}
        try:
            if method == "recommended":
                line = {**recommend(frame, bag, counts, found, seed), **line}
            else:
                line |= measure_method(method, frame, bag, counts, label, later, label_later, bag_later, columns, seed)
            line["worse"] = line["new loss"] > constant_later + MARGIN
            line["useful"] = line["loss"] < constant - MARGIN and line["new loss"] < constant_later - MARGIN
            found[method] = line
        except Exception:
            line["failed"] = traceback.format_exc().splitlines()[-1]
        yield line


def recommend(
    frame: pd.DataFrame, bag: pd.Series, counts: pd.Series, found: dict[str, dict[str, object]], seed: int
) -> dict[str, object]:
    """The line of the method that ``compare`` recommends of those measured, with the regret."""
    names = {DEFAULT if name == "default" else name: name for name in found}
    began = time.process_time()
    compared = llpbench.compare(frame, bag_of=bag, counts=counts, methods=list(names), progress=False, seed=seed)
    seconds = time.process_time() - began
    line = dict(found[names[compared.recommended or DEFAULT]])
    for what in ("auroc", "new auroc"):
        line[f"regret {what}"] = max(other[what] for other in found.values()) - line[what]
        line[f"default {what}"] = found["default"][what] - line[what]
    return {**line, "chosen": compared.recommended or "none", "seconds": seconds + line["seconds"]}


def measure_method(
    method: str,
    frame: pd.DataFrame,
    bag: pd.Series,
    counts: pd.Series,
    label: pd.Series,
    later: pd.DataFrame,
    label_later: pd.Series,
    bag_later: pd.Series,
    columns: int,
    seed: int,
) -> dict[str, object]:
    """Fit one method and compare what it says with the hidden labels."""
    line: dict[str, object] = {}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = {} if method == "default" else {"method": method}
        model = llpbench.fit(frame, bag_of=bag, counts=counts, seed=seed, **chosen)
    line["seconds"] = time.process_time() - began
    p = model.predict_proba()[:, 1]
    p_later = model.predict_proba(later)[:, 1]
    line["auroc"], line["loss"] = quality(label, p)
    line["new auroc"], line["new loss"] = quality(label_later, p_later)
    totals = {"own": [0, 0], "new": [0, 0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for groups in subgroups(frame, columns):
            own = covered(model.subgroup_totals(by=groups), groups, label)
            totals["own"] = [a + b for a, b in zip(totals["own"], own, strict=True)]
        for groups in subgroups(later, columns):
            there = covered(model.subgroup_totals(later, by=groups), groups, label_later)
            totals["new"] = [a + b for a, b in zip(totals["new"], there, strict=True)]
    line["totals warned"] = any("least" in str(w.message) for w in caught)
    line |= {"held": totals["own"][0], "totals": totals["own"][1]}
    line |= {"held new": totals["new"][0], "totals new": totals["new"][1]}
    score = model._header.facts.score  # without the importance of columns
    line |= {"slope": score.slope, "better": score.better, "z": score.z, "least gain": score.gains[0]}
    line |= {"agreement": score.agreement, "saved low": score.saved[0], "saved high": score.saved[1]}
    known, predicted = label_later.groupby(bag_later).mean(), pd.Series(p_later, later.index).groupby(bag_later).mean()
    saved = (known - label.mean()).abs() - (known - predicted).abs()
    reach = t.ppf(0.95, max(len(saved) - 1, 1)) * saved.std() / np.sqrt(len(saved))
    doubt = np.hypot(0.5 * (score.saved[1] - score.saved[0]), reach)
    line |= {"saved": saved.mean(), "saved reach": reach, "new bags": len(saved)}
    line["saved held"] = abs(saved.mean() - 0.5 * sum(score.saved)) <= doubt
    return line


def summary(lines: pd.DataFrame) -> str:
    """Means over the tables, coverage and warnings of each method."""
    parts = []
    for method, own in lines.groupby("method", sort=False):
        row: dict[str, object] = {"method": method, "tables": len(own)}
        row |= {name: own[name].mean() for name in ("auroc", "loss", "new auroc", "new loss") if name in own}
        if "seconds" in own and own["seconds"].notna().any():
            row["median s"] = own["seconds"].median()
            row |= {name: own[name].mean() for name in REGRETS if name in own and own[name].notna().any()}
            row["held"] = f"{own['held'].sum():.0f} of {own['totals'].sum():.0f}"
            row["held new"] = f"{own['held new'].sum():.0f} of {own['totals new'].sum():.0f}"
            row["saved held"] = f"{own['saved held'].eq(True).sum()} of {len(own)}"
            better, worse, useful = (own[name].eq(True) for name in ("better", "worse", "useful"))
            row["misses"] = f"{(better & worse).sum()} of {worse.sum()}"
            row["false alarms"] = f"{(~better & useful).sum()} of {useful.sum()}"
        parts.append(row)
    return pd.DataFrame(parts).to_markdown(index=False, floatfmt=".3f")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(all_tables()))
    parser.add_argument("--methods", default="bound,default,bag-logistic,mean-ridge,recommended")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=12, help="columns whose subgroups are measured")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--violate", action="store_true", help="simulate labels that violate the assumptions")
    parser.add_argument("--csv", help="write the line of each table and method to this file")
    options = parser.parse_args()
    lines: list[dict[str, object]] = []
    for table in options.tables.split(","):
        methods, size = options.methods.split(","), (options.rows, options.columns, options.seed)
        for line in measure(table, methods, *size, options.violate):
            lines.append(line)
            print(" ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items()))
            sys.stdout.flush()
        if options.csv:
            pd.DataFrame(lines).to_csv(options.csv, index=False)
    print("\n" + summary(pd.DataFrame(lines)))


if __name__ == "__main__":
    main()
